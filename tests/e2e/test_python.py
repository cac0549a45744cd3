"""The functions and the pytest plugin on real servers, and all code of their guides as it stands."""

import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from redline import ab, limit, load, serve
from redline.errors import DriveError, LaunchError, NotKnownError
from redline.model import Verdict
from redline.running import cell_search
from tests.e2e.conftest import CHECKOUT
from tests.e2e.leftovers import exists_below
from tests.e2e.preloaded import SHORT_WAITS_S
from tests.fakes import targets

pytestmark = pytest.mark.e2e

FUNCTIONS = CHECKOUT / "docs/guide/python.md"
PLUGIN = CHECKOUT / "docs/guide/pytest.md"
SERVERS = ("shop", "old", "new")


def blocks(page: Path) -> list[str]:
    """The code of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def takes_long(code: str) -> bool:
    """Whether a block compares or searches."""
    return re.search(r"(?<!asyncio\.)\b(ab|limit|run)\(", code) is not None


def needs_p99(code: str) -> bool:
    """Whether a block reads p99, which takes many requests, and which other tests at the same time change."""
    return re.search(r"\.p99\b", code) is not None


def taking(code: str) -> object:
    """A block as a parameter. Of the blocks that read p99, the default run has one: 200 requests per second."""
    long = [pytest.mark.long] if takes_long(code) or "rate=500" in code or "asyncio" in code else []
    return pytest.param(code, marks=[*long, *([pytest.mark.alone] if needs_p99(code) else [])])


def shortened(code: str) -> str:
    """The same loads, but for a second where nothing reads their p99."""
    return code if needs_p99(code) else re.sub(r'duration="\d+s"', 'duration="1s"', code)


@pytest.fixture(autouse=True)
def _servers(tmp_path: Path, oracle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of the guides, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in SERVERS:
        script = tmp_path / name
        script.write_text(f'#!/bin/sh\nexec {oracle} null "$@"\n')
        script.chmod(0o755)


@pytest.mark.parametrize("code", [code for page in (FUNCTIONS, PLUGIN) for code in blocks(page)])
def test_a_load_whose_p99_is_used_has_requests_enough_for_it(code: str) -> None:
    """Twice as many as p99 needs, since those of a random schedule are more or fewer than its rate says."""
    for given in re.findall(r"\bload[(,](.*?rate=.*?)\)", code) if "p99" in code else []:
        rate = float(re.findall(r"rate=([\d.]+)", given)[0])
        seconds = float((re.findall(r'duration="([\d.]+)s"', given) or ["10"])[0])
        assert rate * seconds >= 2000, given


@pytest.mark.long
@pytest.mark.parametrize("code", [*map(taking, blocks(FUNCTIONS))])
def test_the_code_of_the_guide_to_the_functions_works(code: str, tmp_path: Path) -> None:
    with serve("./shop --port {port}", path="/items") as server:
        file = tmp_path / "code.py"
        file.write_text(shortened(code).replace("http://127.0.0.1:8080/items", server.url))
        done = subprocess.run(
            [sys.executable, file], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", [*map(taking, blocks(PLUGIN))])
def test_the_code_of_the_guide_to_the_plugin_works(code: str, tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(code)
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:redline",
        "-p",
        "redline.pytest_plugin",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout
    assert "error" not in done.stdout.splitlines()[-1]


def test_a_served_command_ends_with_its_block_also_by_an_error() -> None:
    with suppress(ZeroDivisionError), serve("./shop --port {port}", path="/items") as server:
        result = load(server.url, users=2, duration="300ms", warmup="100ms")
        assert result.report.cells[0].counts.outcomes.ok > 1
        assert result.errors == 0
        server.check()
        _ = 1 / 0
    with pytest.raises(DriveError, match="connection refused"):
        load(server.url, users=2, duration="300ms", warmup="0s")


def test_a_command_that_does_not_serve_is_an_error_with_what_it_wrote() -> None:
    with pytest.raises(LaunchError) as raised, serve("sh -c 'echo no such port {port} >&2; exit 3'"):
        pytest.fail("it does not answer")
    assert "no such port" in str(raised.value)


@pytest.mark.long
def test_a_slower_server_is_seen(oracle: Path) -> None:
    quick, slow = (f"{oracle} fixed --delay {delay} --port {{port}}" for delay in ("2ms", "4ms"))
    for budget in ("8s", "16s", "32s"):  # few starts have no verdict where a host takes CPU time
        result = ab(quick, slow, users=4, metric="p50", budget=budget)
        with suppress(NotKnownError):
            if result.verdict is Verdict.SLOWER:
                break
    assert result.change.p50 > "50%"
    assert result.select("A").p50 < "3ms" < result.select("B").p50
    assert result.report.run.command.startswith("redline.ab(")


def test_a_limit_of_a_running_server_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_search, "WAITS_S", SHORT_WAITS_S)
    with targets.target(targets.healthy) as url:
        result = limit(url, objective="p99 < 1s", duration="1s", warmup="50ms", probes=2, start=100)
    assert result.report.cells[0].probes
    assert result.folder is None


def wait_for_a_load(kept: Path) -> None:
    """Wait until the load of a folder has been under way for a while."""
    deadline = time.monotonic() + 120
    while not exists_below(kept, "engine.log"):
        assert time.monotonic() < deadline, "no load"
        time.sleep(0.1)
    time.sleep(3)


def test_ctrl_c_keeps_what_was_measured_and_leaves_no_process(tmp_path: Path) -> None:
    code = (
        "import redline\n"
        "with redline.serve('./shop --port {port}') as server:\n"
        "    try:\n"
        "        redline.load(server.url, users=2, duration='300s', warmup='0s', keep='kept')\n"
        "    except redline.MeasurementInterrupted as interrupt:\n"
        "        print(interrupt.result)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout is not None
    try:
        wait_for_a_load(tmp_path / "kept")
        process.send_signal(signal.SIGINT)
        assert "(interrupted)" in process.stdout.read()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert (tmp_path / "kept" / "report.html").is_file()
    left = {path.name for path in tmp_path.iterdir()} - {*SERVERS, "kept"}
    assert [name for name in left if not name.startswith(("redline-scratch-", "redline-cache-"))] == []
