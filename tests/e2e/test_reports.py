"""`redline report`, `compare`, `check`, `list` and `doctor`, on stored runs: no load is needed."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from redline.cli.contracts import CheckResult, DoctorResult, ListResult
from redline.model import Metric, Report, Run, Verdict
from redline.model.compared import CompareResult
from redline.model.side_by_side import SideBySide
from redline.storage.runs import RunStore
from tests.e2e.conftest import CHECKOUT, Redline
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_run

pytestmark = pytest.mark.e2e

SLOWER = {"rust.hyper": GOOD, "rust.axum": replace(GOOD, rate_per_s=15_000.0)}
ALIKE = {"rust.hyper": GOOD, "rust.axum": GOOD}


def stored(redline: Redline, name: str, run: Run) -> str:
    store = RunStore(redline.folder / name)
    store.create(run.manifest)
    for recording in run.recordings:
        store.save(recording, run.manifest.plan.cells[recording.cell_id])
    return name


def published(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((CHECKOUT / "docs" / "reference" / name).read_text())
    return schema


def test_a_slower_variant_fails_on_slower(redline: Redline) -> None:
    name = stored(redline, "run", simulated_run(SLOWER))
    done = redline("compare", name, "--fail-on", "slower", "--json")
    assert done.code == 3, done.err
    jsonschema.validate(done.json, published("cli.schema.json"))
    result = CompareResult.model_validate(done.json)
    throughput = [
        c for c in result.comparisons if c.metric is Metric.THROUGHPUT and c.ratio and "saturate" in c.cell_id
    ]
    assert [comparison.verdict for comparison in throughput] == [Verdict.SLOWER]
    assert throughput[0].ratio is not None
    assert throughput[0].ratio.value == pytest.approx(0.75, rel=0.05)
    assert redline("compare", name).code == 0


def test_equal_variants_do_not_fail(redline: Redline) -> None:
    name = stored(redline, "run", simulated_run(ALIKE, trial_effect=0.0005))
    done = redline("compare", name, "--fail-on", "slower", "--json")
    verdicts = {
        c.verdict for c in CompareResult.model_validate(done.json).comparisons if c.primary and "saturate" in c.cell_id
    }
    assert verdicts == {Verdict.EQUIVALENT}
    assert done.code == 0


def test_two_runs_are_compared_cell_by_cell(redline: Redline) -> None:
    before = stored(redline, "before", simulated_run(ALIKE, seed=1))
    after = stored(redline, "after", simulated_run(SLOWER, seed=2))
    done = redline("compare", before, after, "--fail-on", "slower", "--json")
    assert done.code == 3, done.err
    slower = {
        comparison.cell_id.rsplit("-", 1)[0]
        for comparison in CompareResult.model_validate(done.json).comparisons
        if comparison.metric is Metric.THROUGHPUT and comparison.verdict is Verdict.SLOWER
    }
    assert slower == {"rust.axum.SimpleGet.saturate"}


@pytest.mark.long
def test_runs_of_two_days_are_shown_side_by_side(redline: Redline) -> None:
    first = stored(redline, "first", simulated_run(SLOWER, seed=1))
    again = simulated_run(SLOWER, seed=2)
    later = again.manifest.model_copy(update={"created_unix_ns": again.manifest.created_unix_ns + 86_400 * 10**9})
    second = stored(redline, "second", again.model_copy(update={"manifest": later}))
    done = redline("report", first, second, "--json")
    assert done.code == 0, done.err
    jsonschema.validate(done.json, published("cli.schema.json"))
    rows = [row for row in SideBySide.model_validate(done.json).rows if row.measure == "throughput" and row.primary]
    assert {row.sentence for row in rows} == {"held: slower on both"}
    assert "held: slower on both" in redline("report", first, second).out
    assert "| metric |" in redline("report", first, second, "--format", "md").out
    assert redline("report", first, second, "-o", "both.html").code == 0
    assert "side by side" in (redline.folder / "both.html").read_text()


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("run", "run"), "is there twice"),
        (("run", "copy"), "are the same run"),
        (("run", "nowhere.json"), "does not exist"),
        (("run", "other", "--format", "csv"), "not shown as csv"),
    ],
)
def test_runs_that_cannot_be_shown_side_by_side_are_refused(redline: Redline, args: tuple[str, ...], says: str) -> None:
    for name in ("run", "copy"):
        stored(redline, name, simulated_run(SLOWER))
    done = redline("report", *args)
    assert done.code == 2
    assert says in done.err
    assert done.err.count("hint:") == 1
    assert done.out == ""


def test_what_only_one_run_has_is_reported(redline: Redline) -> None:
    before = stored(redline, "before", simulated_run(ALIKE))
    after = stored(redline, "after", simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,)))
    done = redline("compare", before, after)
    assert done.code == 0, done.err
    assert "rust.axum.SimpleGet.saturate" in done.err


def test_runs_without_a_common_cell_are_not_compared(redline: Redline) -> None:
    one = stored(redline, "one", simulated_run({"rust.hyper": GOOD}, ceiling=None))
    other = stored(redline, "other", simulated_run({"rust.axum": GOOD}, ceiling=None, baseline=None))
    redline("compare", one, other).refused(2, "no cell in common")


def test_a_run_without_a_baseline_is_reported(redline: Redline) -> None:
    redline("compare", stored(redline, "run", simulated_run(baseline=None))).refused(2, "no baseline")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_no_run_is_reported(redline: Redline, command: str) -> None:
    redline(command, "nowhere").refused(2, "nowhere does not exist")


def test_a_damaged_run_is_reported_by_file(redline: Redline) -> None:
    name = stored(redline, "run", simulated_run())
    damaged = min((redline.folder / name / "recordings").iterdir())
    damaged.write_text("{")
    done = redline("report", name)
    assert done.code == 0, done.err
    assert damaged.name in done.out.replace("\n", "")


@pytest.mark.parametrize(("form", "start"), [("html", "<!doctype html>"), ("csv", "run,"), ("json", "{"), ("md", "#")])
def test_a_stored_run_is_rendered_again(redline: Redline, form: str, start: str) -> None:
    name = stored(redline, "run", simulated_run())
    done = redline("report", name, "--format", form)
    assert done.code == 0, done.err
    assert done.out.startswith(start)


def test_the_report_as_json_fits_its_schema(redline: Redline) -> None:
    name = stored(redline, "run", simulated_run(done=7))
    document = redline("report", name, "--format", "json").json
    jsonschema.validate(document, published("report.schema.json"))
    assert not Report.model_validate(document).run.complete


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (("list", "--json"), ListResult),
        (("doctor", "--json"), DoctorResult),
        (("check", str(CHECKOUT / "suites" / "quickstart.yaml"), "--json"), CheckResult),
    ],
)
def test_json_fits_the_published_schema(
    redline: Redline, args: tuple[str, ...], kind: type[ListResult | DoctorResult | CheckResult]
) -> None:
    done = redline(*args)
    assert done.code == 0, done.err
    jsonschema.validate(done.json, published("cli.schema.json"))
    kind.model_validate(done.json)


def test_the_list_says_what_is_there(redline: Redline) -> None:
    result = ListResult.model_validate(redline("list", "--json").json)
    assert {server.name for server in result.servers} >= {"rust.hyper", "rust.axum", "oracle.null", "vertx.vanilla"}
    assert "quickstart.yaml" in {Path(suite.file).name for suite in result.suites}


@pytest.mark.parametrize("args", [("runn",), ("run", "--no-such-flag"), ("report", "x", "--format", "pdf")])
def test_a_wrong_command_line_is_exit_code_2(redline: Redline, args: tuple[str, ...]) -> None:
    done = redline(*args)
    assert done.code == 2
    assert "Traceback" not in done.err
