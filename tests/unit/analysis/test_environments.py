"""What may explain a difference between two runs, and why some are not compared at all."""

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from redline.analysis.environments import MATTERS, differences, grave, kernel_series
from redline.cli.command_line import app
from redline.errors import UsageError
from redline.model import Environment, Run
from redline.model.compared import CompareResult
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_environment, simulated_run

HERE = simulated_environment()
DOCS = Path(__file__).parents[3] / "docs"


def changed(**fields: object) -> Environment:
    return HERE.model_copy(update=fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"cpu_model": "Another CPU"}, "cpu model: Simulated CPU @ 3.00GHz -> Another CPU"),
        ({"cores": 4}, "cores: 2 -> 4"),
        ({"server_cpus": ()}, "server cpus: 0 -> not pinned"),
        ({"engine_cpus": (2, 3)}, "engine cpus: 1 -> 2,3"),
        ({"engine": "0.2.0"}, "engine: 0.1.0 -> 0.2.0"),
        ({"kernel": "6.18.5"}, "kernel: 6.1.0 -> 6.18.5"),
        ({"cgroup_cpu_limit": 1.5}, "cgroup cpu limit: none -> 1.5"),
        ({"virtual": "KVM"}, "virtual: no -> KVM"),
    ],
)
def test_another_world_is_grave(fields: dict[str, object], said: str) -> None:
    (found,) = differences(HERE, changed(**fields))
    assert (found.grave, str(found)) == (True, said)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"kernel": "6.1.9-31"}, "kernel: 6.1.0 -> 6.1.9-31"),
        ({"governor": "performance"}, "governor: not known -> performance"),
        ({"hostname": "other"}, "hostname: simulated -> other"),
        ({"memory_bytes": 1}, "memory bytes: 8589934592 -> 1"),
        ({"redline": "0.2.0"}, "redline: 0.1.0 -> 0.2.0"),
    ],
)
def test_the_rest_is_worth_knowing(fields: dict[str, object], said: str) -> None:
    (found,) = differences(HERE, changed(**fields))
    assert (found.grave, str(found)) == (False, said)


def test_another_build_of_the_engine_is_grave_where_both_are_known() -> None:
    one, other = changed(engine_sha256="a" * 64), changed(engine_sha256="b" * 64)
    assert [str(found) for found in grave(one, other)] == [f"engine sha256: {'a' * 12} -> {'b' * 12}"]
    assert grave(HERE, other) == ()
    assert [str(found) for found in differences(HERE, other)] == [f"engine sha256: not known -> {'b' * 12}"]


def test_grave_ones_come_first() -> None:
    found = differences(HERE, changed(hostname="other", cores=4, os="Debian 13"))
    assert [one.grave for one in found] == [True, False, False]


def test_the_series_of_a_kernel() -> None:
    assert kernel_series("6.1.0-31-amd64") == "6.1"
    assert kernel_series("6.18") == "6.18"


VALUES = {"cores": 3, "hostname": "x", "governor": "performance", "kernel": "7.0", "server_cpus": (), "turbo": True}


@given(st.sets(st.sampled_from(sorted(VALUES))))
def test_differences_have_a_direction_and_nothing_differs_from_itself(names: set[str]) -> None:
    there = changed(**{name: VALUES[name] for name in names})
    assert differences(there, there) == ()
    forth, back = differences(HERE, there), differences(there, HERE)
    assert {found.name.replace(" ", "_") for found in forth} == names
    assert [(found.name, found.before, found.after, found.grave) for found in forth] == [
        (found.name, found.after, found.before, found.grave) for found in back
    ]


def test_the_guide_has_every_matter() -> None:
    page = (DOCS / "guide" / "history.md").read_text()
    for matter in MATTERS:
        assert matter.why in page, matter.field


def stored(folder: Path, name: str, run: Run, environment: Environment = HERE) -> str:
    manifest = run.manifest.model_copy(update={"name": name, "environment": environment})
    store = RunStore(folder / name)
    store.create(manifest)
    for recording in run.recordings:
        store.save(recording, manifest.plan.cells[recording.cell_id])
    return str(store.folder)


@pytest.fixture
def compared(tmp_path: Path) -> Callable[..., Result]:
    """Two runs, the second in an environment with these fields, compared with these flags."""

    def compare(fields: dict[str, object], *flags: str) -> Result:
        run = simulated_run({"rust.hyper": GOOD}, trials=2, loads=(SATURATE,), ceiling=None)
        runs = stored(tmp_path, "A", run), stored(tmp_path, "B", run, changed(**fields))
        return CliRunner().invoke(app, ["compare", *runs, *flags])

    return compare


def test_runs_of_two_worlds_are_not_compared(compared: Callable[..., Result]) -> None:
    done = compared({"cpu_model": "Another CPU", "hostname": "other"})
    assert isinstance(done.exception, UsageError)
    assert (
        "A and B come from environments that differ gravely: cpu model: Simulated CPU @ 3.00GHz -> Another CPU\n"
        in str(done.exception)
    )
    assert "--anyway" in done.exception.hint


def test_they_are_anyway_where_that_is_asked(compared: Callable[..., Result]) -> None:
    done = compared({"cpu_model": "Another CPU", "hostname": "other"}, "--anyway", "--json")
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    jsonschema.validate(document, json.loads((DOCS / "reference" / "cli.schema.json").read_text()))
    result = CompareResult.model_validate(document)
    assert result.comparisons
    assert result.environment_grave == ("cpu model: Simulated CPU @ 3.00GHz -> Another CPU",)
    assert "warn: cpu model: Simulated CPU @ 3.00GHz -> Another CPU\n" in done.stderr
    assert "note: hostname: simulated -> other\n" in done.stderr


def test_lesser_differences_are_reported(compared: Callable[..., Result]) -> None:
    done = compared({"kernel": "6.1.9"})
    assert done.exit_code == 0, done.output
    assert "note: kernel: 6.1.0 -> 6.1.9\n" in done.stderr
    assert "warn: kernel" not in done.stderr
