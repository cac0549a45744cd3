"""`redline limit --replay` from flags to what is printed and kept, with a driver that simulates the server."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redline.cli.command_line import app
from redline.errors import UsageError
from redline.model import Open, Traffic
from redline.model.limits import LimitReport
from redline.ports import Drive, Placement
from redline.running import assembly
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.storage.runs import RunStore
from tests.fakes.plugins import FakeLauncher, FakeServer
from tests.fakes.recordings import simulated_environment
from tests.unit.running.test_assembly_limit import URL, Server

LINE = '10.0.0.1 - - [26/Nov/2026:12:{:02}:{:02} +0000] "GET /{} HTTP/1.1" 200 5 "-" "x"\n'
OBJECTIVE = ("--objective", "p99 < 20ms")
SUITE = """\
servers: [{url: "http://127.0.0.1:1", name: a}]
scenarios: [{name: items, get: /items}]
loads:
  day: {open: {arrivals: {replay: times.txt, speed: 10x}, connections: 64}, for: 1s}
warmup: 1s
objective: p99 < 20ms
"""


class Keeping(Server):
    """The same server, and what it was sent."""

    def __init__(self, speed: float = 1.0) -> None:
        super().__init__()
        self.sent: list[Open] = []
        self.speed = speed

    def drive(self, drive: Drive) -> Traffic:
        if isinstance(drive.cell.load.shape, Open):
            self.sent.append(drive.cell.load.shape)
        return super().drive(drive)


def write_log(folder: Path, seconds: int) -> None:
    lines = (LINE.format(at // 60, at % 60, number % 5) for at in range(seconds) for number in range(40))
    (folder / "access.log").write_text("".join(lines))


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """The command in a folder with a log of 10 minutes at 40/s."""
    monkeypatch.chdir(tmp_path)
    write_log(tmp_path, 600)
    (tmp_path / "times.txt").write_text("".join(f"{at / 50}\n" for at in range(3000)))
    (tmp_path / "day.yaml").write_text(SUITE)

    def run(server: Server, *flags: str, targets: tuple[str, ...] = (URL,)) -> Result:
        bench = Workbench(
            Tools(FakeLauncher([], FakeServer()), server, lambda _server: (), Placement()), simulated_environment()
        )
        monkeypatch.setattr(assembly, "workbench", lambda *_: bench)
        return CliRunner().invoke(app, ["limit", *targets, *flags])

    return run


def test_the_answer_is_a_speed_and_a_rate(limit: Callable[..., Result], tmp_path: Path) -> None:
    server = Keeping()
    done = limit(server, "--replay", "access.log", *OBJECTIVE, "-d", "1s", "--start", "20x", "-o", "out")
    assert done.exit_code == 0, done.output
    report = LimitReport.model_validate_json((tmp_path / "out/results.json").read_text())
    (cell,) = report.cells
    (answer,) = cell.limits
    assert cell.stretch is not None
    assert (cell.stretch.requests, round(cell.stretch.per_s)) == (800, 40)
    assert answer.passed_per_s is not None
    assert answer.failed_per_s is not None
    assert answer.passed_per_s <= 3000 <= answer.failed_per_s
    assert answer.passed_speed == pytest.approx(answer.passed_per_s / 40)
    assert answer.failed_speed == pytest.approx(answer.failed_per_s / 40)
    assert answer.confidence is None
    # In all of it: the terminal, its progress, the page, the rows.
    said = f"up to {answer.passed_speed:.1f}x ({answer.passed_per_s:,.0f}/s) and misses it from"
    assert said in " ".join(done.stdout.split())
    assert "  1  20x (800 /s)  p50" in done.stderr
    assert said in (tmp_path / "out/report.html").read_text()
    assert "the first 800 of 24,000 recorded requests, in 20.0 s at 1x" in cell.load
    rows = [*csv.DictReader((tmp_path / "out/results.csv").read_text().splitlines())]
    assert {float(row["speed"]) for row in rows if row["row"] == "probe"} == {probe.speed for probe in cell.probes}
    assert float(rows[0]["passed_speed"]) == answer.passed_speed


def test_all_probes_send_the_same_requests(limit: Callable[..., Result], tmp_path: Path) -> None:
    server = Keeping()
    limit(server, "--replay", "access.log", *OBJECTIVE, "-d", "1s", "--start", "20x", "-o", "out")
    probes = [shape for shape in server.sent if shape.is_replay]
    assert len(probes) > 3
    assert {shape.replayed_requests for shape in probes} == {probes[0].replayed_requests}
    for shape in probes:
        assert shape.replayed_ns[-1] * shape.speed == pytest.approx(probes[0].replayed_ns[-1] * probes[0].speed, abs=99)
    stored = [*(tmp_path / "out/probes").rglob("*.json")]
    assert all("replayed_ns" not in json.loads(file.read_text())["load"]["shape"] for file in stored)
    assert (tmp_path / "out/times.txt").read_text().startswith("0.0")


def test_by_the_warm_up_a_probe_lasts_as_long_as_asked_at_first(limit: Callable[..., Result]) -> None:
    server = Keeping()
    done = limit(server, "--replay", "access.log", *OBJECTIVE, "-d", "1s", "--json")
    first = LimitReport.model_validate_json(done.stdout).cells[0].probes[0]
    assert first.seconds == pytest.approx(1, abs=0.05)


def test_servers_that_are_compared_get_the_same_stretch(limit: Callable[..., Result]) -> None:
    server = Keeping()
    flags = ("--replay", "access.log", *OBJECTIVE, "-d", "1s", "--probes", "3", "--json")
    done = limit(server, *flags, targets=(URL, "http://127.0.0.1:2/"))
    cells = LimitReport.model_validate_json(done.stdout).cells
    assert len(cells) == 2
    assert cells[0].stretch == cells[1].stretch
    assert cells[0].probes[0].speed == cells[1].probes[0].speed


def test_a_search_that_stopped_goes_on_with_the_same_stretch(limit: Callable[..., Result], tmp_path: Path) -> None:
    def stop(_drive: Drive) -> None:
        raise KeyboardInterrupt

    server = Keeping()
    server.after = {5: stop}
    done = limit(server, "--replay", "access.log", *OBJECTIVE, "-d", "1s", "-o", "out")
    assert done.exit_code == 130, done.output
    before = LimitReport.model_validate_json((tmp_path / "out/results.json").read_text()).cells[0]
    (tmp_path / "access.log").unlink()
    done = limit(Keeping(), "--resume", "out", targets=())
    assert done.exit_code == 0, done.output
    after = LimitReport.model_validate_json((tmp_path / "out/results.json").read_text()).cells[0]
    assert len(after.probes) > len(before.probes)
    assert after.stretch == before.stretch
    manifest = RunStore(tmp_path / "out").manifest()
    assert manifest.suite_text.startswith("# times.txt has the due times")


def test_a_suite_says_the_first_speed(limit: Callable[..., Result], tmp_path: Path) -> None:
    done = limit(Keeping(), "-o", "out", targets=("day.yaml",))
    assert done.exit_code == 1, done.output
    assert "begin faster: --start 50x" in " ".join(done.stdout.split())
    cell = LimitReport.model_validate_json((tmp_path / "out/results.json").read_text()).cells[0]
    assert cell.probes[0].speed == 10
    assert cell.stretch is not None
    assert cell.stretch.requests == 500
    done = limit(Keeping(), "-o", "faster", "--start", "40x", targets=("day.yaml",))
    cell = LimitReport.model_validate_json((tmp_path / "faster/results.json").read_text()).cells[0]
    assert cell.probes[0].speed == 40
    assert cell.stretch is not None
    assert cell.stretch.requests == 2000


def test_a_recording_that_is_too_short_for_a_fast_server_is_named(limit: Callable[..., Result], tmp_path: Path) -> None:
    (tmp_path / "short.txt").write_text("".join(f"{at / 50}\n" for at in range(200)))
    done = limit(Keeping(), "--replay", "short.txt", *OBJECTIVE, "-d", "1s", "--json")
    assert done.exit_code == 1
    (cell,) = LimitReport.model_validate_json(done.stdout).cells
    assert cell.ended == "doomed"
    assert "20x (1,000/s), the highest speed allowed, meets p99 < 20ms" in cell.reason
    assert "the recording lasts only 200 ms then: take a longer one, or give shorter probes (-d)" in cell.reason


@pytest.mark.parametrize(
    ("flags", "says", "hint"),
    [
        (("--start", "900"), "--start 900: a recording is sent at a speed", "--start 2x"),
        (("--start", "900/s"), "--start 900/s: a recording is sent at a speed", "--start 2x"),
        (("--start", "0x"), "--start 0x: `0x` is not a speed", "from 0.001 to 1000"),
        (("--start", "1x", "-d", "1s"), "at 1x, 40 requests of the recording are due in 1.00 s", "--start 10x"),
        (("--arrivals", "poisson"), "--arrivals poisson: --replay says when", "leave out --arrivals"),
        (("--for", "5m"), "--for 5m: how long a probe of a recording takes", "give -d"),
        (("--requests", "times.txt"), "it has its own requests", "leave out --requests"),
        (("-m", "mix"), "a replay sends all of its requests", "leave out -m"),
        (("--abort-when", "errors > 5% for 3s"), "cannot end a probe of 1.00 s", "shorten its time"),
    ],
)
def test_what_no_recording_takes_is_refused(
    flags: tuple[str, ...], says: str, hint: str, limit: Callable[..., Result], tmp_path: Path
) -> None:
    write_log(tmp_path, 30)
    done = limit(Keeping(), "--replay", "access.log", *OBJECTIVE, *flags)
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)
    assert hint in done.exception.hint


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("few.txt", "0\n1\n2\n", "the recording has 3 requests, and a search needs 100 at least"),
        ("same.txt", "1.5\n" * 200, "all 200 requests of the recording are due at the same time"),
        ("none.log", None, "there is no file none.log"),
    ],
)
def test_what_is_no_recording_is_refused(
    name: str, text: str | None, says: str, limit: Callable[..., Result], tmp_path: Path
) -> None:
    if text is not None:
        (tmp_path / name).write_text(text)
    server = Keeping()
    done = limit(server, "--replay", name, *OBJECTIVE)
    assert isinstance(done.exception, UsageError)
    assert says in str(done.exception)
    assert server.drives == 0


def test_a_suite_takes_its_own_recording_and_speed(limit: Callable[..., Result], tmp_path: Path) -> None:
    def refused(*flags: str) -> str:
        done = limit(Keeping(), *flags, targets=("day.yaml",))
        assert isinstance(done.exception, UsageError), done.output
        return str(done.exception)

    assert "takes no --replay" in refused("--replay", "access.log")
    assert "a recording is sent at a speed" in refused("--start", "900")
    assert "at 1000x the recording lasts 60.0 ms, and a probe 200 ms at least" in refused("--start", "1000x")
    rated = "  rated: {open: {rate: 100}, for: 1s}\nwarmup"
    (tmp_path / "day.yaml").write_text(SUITE.replace("warmup", rated))
    assert "`day` is a recording with a speed, and `rated` has a rate" in refused("--start", "2x")
    (tmp_path / "day.yaml").write_text(SUITE.replace("{replay: times.txt, speed: 10x}", "poisson, rate: 100"))
    assert "--start 2x: `2x`" in refused("--start", "2x")
