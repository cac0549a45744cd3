"""The core works without its extras, and refuses by name what they would do."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import redline
from bench.rig import running
from tests.e2e.conftest import LIMIT_S, REDLINE, Done
from tests.e2e.preloaded import Preloaded

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="session")
def without_extras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as it is without `extras`."""
    folder = tmp_path_factory.mktemp("core")
    here = Path(redline.__file__).parent
    shutil.copytree(here, folder / "redline", ignore=lambda at, _: {"extras"} if at == str(here) else ())
    assert not (folder / "redline" / "extras").exists()
    return folder


@pytest.fixture(scope="session")
def preloaded(without_extras: Path) -> Iterator[Preloaded]:
    process = Preloaded(REDLINE, without_extras)
    yield process
    process.end()


class Core:
    """The command, without extras."""

    def __init__(self, process: Preloaded, package: Path, folder: Path) -> None:
        self._process, self._folder = process, folder
        self._environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "120", "PYTHONPATH": str(package)}

    def __call__(self, *args: str | Path) -> Done:
        return Done(*self._process.call([str(arg) for arg in args], self._folder, self._environment, LIMIT_S))


@pytest.fixture
def core(preloaded: Preloaded, without_extras: Path, tmp_path: Path) -> Core:
    return Core(preloaded, without_extras, tmp_path)


@pytest.fixture
def server(oracle: Path) -> str:
    return shlex.join([str(oracle), "fixed", "--delay", "1ms", "--port", "{port}"])


@pytest.fixture
def suite(server: str, tmp_path: Path) -> Path:
    """A suite of two servers and two trials of each."""
    file = tmp_path / "suite.yaml"
    document = {
        "servers": [{"name": name, "command": server} for name in ("old", "new")],
        "baseline": "old",
        "scenarios": [{"name": "root", "get": "/"}],
        "loads": {"load": {"closed": {"users": 2}, "for": "300ms"}},
        "warmup": "200ms",
        "trials": 2,
    }
    file.write_text(json.dumps(document))
    return file


def test_it_is_the_core_that_runs(core: Core, without_extras: Path) -> None:
    probe = "import redline, importlib.util as u; print(redline.__file__, u.find_spec('redline.extras'))"
    environment = {**os.environ, "PYTHONPATH": str(without_extras)}
    done = subprocess.run(
        [sys.executable, "-P", "-c", probe], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == [str(without_extras / "redline" / "__init__.py"), "None"]
    assert core("--version").code == 0


def test_it_loads_and_lists_are_read(core: Core, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "requests.yaml").write_text("# of a person\n- {name: root, get: /}\n- {name: other, get: /other}\n")
    with running(oracle, "fixed", "--delay", "1ms") as server:
        done = core(
            "load",
            f"http://{server.endpoint.host}:{server.endpoint.port}",
            "-d",
            "500ms",
            "-c",
            "2",
            "--requests",
            "requests.yaml",
            "--json",
            "-o",
            "load",
        )
    assert done.json["counts"]["outcomes"]["ok"] > 0, done.err  # whether or not a busy machine makes it invalid
    assert core("report", "load").code == 0


def test_it_compares_and_reports(core: Core, server: str, tmp_path: Path) -> None:
    done = core("ab", server, server, "--for", "3s", "--load", "closed:2", "-o", "ab", "--json")
    assert done.code == 0, done.err
    assert done.json["comparisons"]
    for form in ("html", "csv", "json", "md", "junit", "annotations"):
        written = core("report", "ab", "--format", form)
        assert written.code == 0, written.err
        assert written.out
    assert "report.html" in {file.name for file in (tmp_path / "ab").iterdir()}


@pytest.mark.long
def test_it_searches(core: Core, server: str) -> None:
    short = ("--probes", "4", "-d", "1s", "--warmup", "200ms")
    done = core("limit", server, "--objective", "p99 < 500ms", "--start", "100", "-o", "limit", "--json", *short)
    assert done.json["format"] == "redline.limit/1", done.err
    assert "Traceback" not in done.err
    assert core("report", "limit").code == 0


@pytest.mark.long
def test_it_runs_a_suite_and_reports(core: Core, suite: Path) -> None:
    core("run", suite, "-o", "run").measured()
    assert core("report", "run", "--format", "json").json["cells"]
    for form in ("hgrm", "hlog", "intervals-csv", "collapsed", "speedscope", "svg", "bmf", "benchmark"):
        core("report", "run", "--format", form).refused(2, f"--format {form}", "`exports`")


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("import", "access.log"), ("redline import", "`import`")),
        (("selftest",), ("redline selftest", "`selftest`")),
        (("init", "curl", "http://127.0.0.1:1/"), ("redline init curl", "`curl`")),
        (("load", "--like", "wrk -d 1s http://127.0.0.1:1/"), ("--like", "`like`")),
        (("load", "http://127.0.0.1:1/", "--requests", "access.log"), ("access.log", "`importing`")),
        (("load", "http://127.0.0.1:1/", "--openmetrics", "19464"), ("--openmetrics", "`telemetry`")),
        (("load", "http://127.0.0.1:1/", "--otlp", "http://127.0.0.1:1/"), ("--otlp", "`telemetry`")),
        (("run", "suite.yaml", "--profile", "cpu"), ("--profile", "`profilers`")),
        (("run", "suite.yaml", "--on", "127.0.0.1:1"), ("--on", "`hosts`")),
        (("doctor", "--hosts", "127.0.0.1:1"), ("--hosts", "`cluster`")),
        (("load", "http://127.0.0.1:1/", "--replay", "access.log"), ("access.log", "`importing`")),
        (("history", "access.log"), ("access.log", "`results`")),
    ],
)
def test_what_it_lacks_is_refused_by_name(
    core: Core, suite: Path, tmp_path: Path, words: tuple[str, ...], names: tuple[str, ...]
) -> None:
    assert suite.exists()
    (tmp_path / "access.log").write_text('127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 2\n')
    core(*words).refused(2, *names)
