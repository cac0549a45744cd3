"""`redline limit A B`: flags as a suite, searches that take turns by probes, and the exit code of their comparison."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from redline.asking.search import TRIALS, search_document
from redline.asking.written import plain, read_written
from redline.cli import began
from redline.cli.command_line import app
from redline.cli.experiment import search_exit_code as exit_code
from redline.errors import LaunchError, UsageError
from redline.limits.ratios import limit_comparisons
from redline.model import AttachedServer, Cell, Open, Skipped, Suite, Traffic, Verdict
from redline.model.limits import LimitReport
from redline.ports import Drive, Endpoint, Placement
from redline.running import assembly, searching
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.search.times import AROUND_NS, SHORTEST_NS, least_ns, probe_times
from redline.suite.validate.referenced_files import NO_FILES
from tests.fakes import asks, limits
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.limits import ends_at, rivals
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_environment, simulated_recording

A, B = "./old --port {port}", "./new --port {port}"
URL_A, URL_B = "http://127.0.0.1:1/x", "http://127.0.0.1:2/x"
SECOND = 1_000_000_000
MAX_PROBES = 12


def document(*targets: str, **given: Any) -> dict[str, Any]:
    """The document that these flags write."""
    flags = asks.search(targets=list(targets), **given)
    found: dict[str, Any] = plain(search_document(flags, lambda text: tuple(text.split("..", 1)), str))  # type: ignore[arg-type,return-value]
    return found


def suite(*targets: str, **given: Any) -> Suite:
    """The suite of these flags."""
    flags = asks.search(targets=list(targets), **given)
    return read_written(search_document(flags, lambda _: ("", ""), str), "limit", NO_FILES)[0]


def test_several_servers_have_the_first_as_their_baseline() -> None:
    found = document(A, B, "./third --port {port}")
    assert [server["name"] for server in found["servers"]] == ["A", "B", "C"]
    assert found["baseline"] == "A"
    assert found["scenarios"] == [{"name": "requests", "get": "/"}]
    assert suite(A, B).baseline_of("B") == "A"


def test_a_server_alone_is_called_by_its_address_or_program() -> None:
    assert "baseline" not in document(URL_A)
    assert suite(URL_A).variants[0].slug == "127.0.0.1:1"
    assert suite(A).variants[0].slug == "old"


def test_a_range_names_two_revisions() -> None:
    found = document(git="main..HEAD")
    assert [server["revision"] for server in found["servers"]] == ["main", "HEAD"]
    assert "scenarios" not in found  # redline.yaml says what is requested
    with pytest.raises(UsageError, match="leave out either"):
        document(A, git="main..HEAD")


def test_what_is_started_is_warmed_up_until_it_is_steady_and_what_runs_already_for_a_second() -> None:
    assert suite(A, B).warmup_detect
    started, running = suite(A, B), suite(URL_A, URL_B)
    assert started.loads[0].duration_ns == running.loads[0].duration_ns == 5 * SECOND
    assert (running.warmup_ns, running.warmup_detect) == (SECOND, False)
    assert (suite(A, B, warmup="2s").warmup_ns, suite(A, B, warmup="2s").warmup_detect) == (2 * SECOND, False)


@pytest.mark.parametrize("trials", [0, TRIALS])
@pytest.mark.parametrize("minutes", [1, 4, 20])
def test_a_search_takes_the_time_that_it_is_given(trials: int, minutes: int) -> None:
    lasts_ns = minutes * 60 * SECOND
    found = probe_times(lasts_ns, 2, MAX_PROBES, trials)
    settle_ns = min(found.probe_ns // 5, SECOND)
    probes, starts = 2 * (MAX_PROBES + 2 * max(trials, 1)), 2 * (1 + trials)
    warm_ups_ns = starts * (found.warmup_ns + settle_ns)
    around_ns = AROUND_NS * (probes + 2 * 2 * (1 + trials))
    planned_ns = probes * (found.probe_ns + settle_ns) + warm_ups_ns + around_ns
    if (trials, minutes) == (TRIALS, 1):
        # On four starts of each of two servers not all probes have room, not even at their shortest: the clock ends it,
        # after as many as a search needs to say something (test_search_time holds it to its time).
        assert found.probe_ns == SHORTEST_NS
        assert least_ns(2, trials) <= lasts_ns < planned_ns
        return
    assert found.probe_ns > SHORTEST_NS
    assert 0.8 * lasts_ns < planned_ns <= 1.001 * lasts_ns
    assert found.detects == (trials > 0 and minutes > 1)


def test_a_time_that_is_too_short_is_refused() -> None:
    with pytest.raises(UsageError, match="--for 20s is too short"):
        document(A, B, lasts="20s")
    with pytest.raises(UsageError, match="leave out either"):
        document(A, B, lasts="4m", duration="2s")


@dataclass
class Servers(WithoutDuets):
    """Servers of 3000/s and 6000/s, as a driver sees them; `after` runs at the load with that number."""

    events: list[str] = field(default_factory=list)
    after: dict[int, Callable[[], None]] = field(default_factory=dict)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        name = drive.cell.variant.slug
        self.events.append(name)
        self.after.get(len(self.events), lambda: None)()
        shape, most = drive.cell.load.shape, {"A": 3000, "B": 6000}[name]
        slow = Behaviour(response_ns=1e9) if isinstance(shape, Open) and (shape.rate_per_s or 0) > most else GOOD
        short = drive.cell.load.lasting(SECOND)
        traffic = simulated_recording(drive.cell.under(short), slow, seed=drive.seed).traffic
        assert traffic is not None
        return traffic


Run = Callable[..., Result]


@pytest.fixture
def launcher() -> FakeLauncher:
    return FakeLauncher([], FakeServer(facts=None))


@pytest.fixture
def redline(monkeypatch: pytest.MonkeyPatch, launcher: FakeLauncher) -> Run:
    def run(servers: Servers, *flags: str, of: tuple[str, str] = (A, B)) -> Result:
        bench = Workbench(Tools(launcher, servers, lambda _server: (), Placement()), simulated_environment())
        monkeypatch.setattr(assembly, "workbench", lambda *_: bench)
        return CliRunner().invoke(app, ["limit", *of, "--objective", "p99 < 20ms", "--for", "1m", *flags])

    return run


@pytest.mark.parametrize("of", [(A, B), (URL_A, URL_B)])
def test_probes_take_turns_and_the_limits_are_compared(redline: Run, of: tuple[str, str]) -> None:
    servers = Servers()
    done = redline(servers, "--json", of=of)
    assert done.exit_code == 0, (done.stderr, done.exception)
    report = LimitReport.model_validate_json(done.stdout)
    assert [cell.target for cell in report.cells] == list(of)
    for cell, truth in zip(report.cells, (3000, 6000), strict=True):
        (found,) = cell.limits
        assert (found.passed_per_s or 0) < truth * 1.01
        assert (found.failed_per_s or 0) > truth * 0.99
        assert not any(probe.recording for probe in cell.probes)
    lines = [line[0] for line in done.stderr.splitlines() if line[1:2] == " " and "/s" in line and line[0] in "AB"]
    assert "".join(lines).startswith(("ABABABABAB", "BABABABABA"))
    (compared,) = report.comparisons
    assert (compared.slug, compared.baseline) == (report.cells[1].slug, report.cells[0].slug)


@pytest.mark.parametrize("of", [(A, B), (URL_A, URL_B)])
def test_the_time_of_the_search_begins_with_the_command(
    redline: Run, monkeypatch: pytest.MonkeyPatch, of: tuple[str, str]
) -> None:
    """Its imports took an hour: no load begins, and what was left out is said."""
    monkeypatch.setattr(began, "_AT_S", [time.monotonic() - 3600])
    done = redline(Servers(), "--json", of=of)
    report = LimitReport.model_validate_json(done.stdout)
    assert [len(cell.probes) for cell in report.cells] == [0, 0]
    assert all(cell.left_out for cell in report.cells)


def test_builds_take_none_of_the_time(redline: Run, monkeypatch: pytest.MonkeyPatch, launcher: FakeLauncher) -> None:
    """The clock is a fake, which builds alone move on."""
    clock = [0.0]
    monkeypatch.setattr(searching.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(began, "_AT_S", [0.0])
    build_all = searching.build_all

    def slow(*given: Any) -> Any:
        clock[0] += 3600
        return build_all(*given)

    monkeypatch.setattr(searching, "build_all", slow)
    report = LimitReport.model_validate_json(redline(Servers(), "--json").stdout)
    assert not any(cell.left_out for cell in report.cells)


def test_both_servers_are_alive_at_once_and_stopped_in_the_end(redline: Run, launcher: FakeLauncher) -> None:
    redline(Servers())
    assert launcher.events[:2] == ["start", "start"]
    assert launcher.events.count("start") == launcher.events.count("stop") == 2 * (1 + TRIALS)


def interrupt() -> None:
    raise KeyboardInterrupt


def test_ctrl_c_shows_what_is_known(redline: Run, launcher: FakeLauncher) -> None:
    done = redline(Servers(after={7: interrupt}))
    assert done.exit_code == 130
    said = " ".join(done.stdout.split())
    assert "interrupted: this is what was known by then" in said
    assert "a side of a limit is not known" in said
    assert launcher.events.count("start") == launcher.events.count("stop")


def test_a_server_that_does_not_start_ends_the_search_of_all(redline: Run, launcher: FakeLauncher) -> None:
    launcher.error = LaunchError("A exited with code 1", hint="see its log")
    servers = Servers()
    done = redline(servers)
    assert isinstance(done.exception, LaunchError)
    assert "A exited with code 1" in str(done.exception)
    assert servers.events == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("-s", "x"), "without a suite"),
        (("suite.yaml",), "is a suite, which says itself what is asked how"),
        (("--objective", "p99 < 9s"), "is not below"),
    ],
)
def test_what_means_nothing_is_refused(redline: Run, flags: tuple[str, ...], says: str) -> None:
    done = redline(Servers(), *flags)
    assert isinstance(done.exception, UsageError), done.exception
    assert says in str(done.exception)


@pytest.mark.parametrize(
    "flag",
    [
        *("-H A:b", "--user ann:pw", "--oauth2-bearer t0ken", "-X PUT", "--body x", "--compressed", "--status 201"),
        "--events sse",
    ],
)
def test_a_suite_says_itself_what_is_asked(flag: str) -> None:
    done = CliRunner().invoke(app, ["limit", "suite.yaml", *flag.split()])
    assert isinstance(done.exception, UsageError), done.exception
    assert "suite.yaml is a suite, which says itself what is asked how, and takes no" in str(done.exception)


def test_running_servers_have_no_fresh_starts(redline: Run) -> None:
    done = redline(Servers(), "--trials", "3", of=(URL_A, URL_B))
    assert "is not started" in str(done.exception)
    assert isinstance(suite(URL_A).variants[0].entry, AttachedServer)


def test_an_unwanted_verdict_is_the_exit_code() -> None:
    def report(*ends: tuple[float, float]) -> LimitReport:
        made, cells, found = rivals(*((ends_at(low, high),) for low, high in ends))
        return limits.report(*found.values(), comparisons=limit_comparisons(cells, found, made))

    slower = report((20_900, 21_800), (18_600, 19_400))
    assert exit_code(slower) == 0
    assert exit_code(slower, (Verdict.SLOWER,)) == 3
    assert exit_code(report((18_990, 19_010), (18_800, 18_820)), (Verdict.SLOWER,)) == 0
    assert exit_code(report((18_600, 19_400), (18_500, 20_500)), (Verdict.INCONCLUSIVE,)) == 3


def test_a_server_that_could_not_be_built_does_not_pass_a_gate() -> None:
    missing = Skipped(slug="C.requests.probe", reason="cargo failed", cause="machine")
    report = limits.report(limits.busy().model_copy(update={"ended": "converged"}), skipped=(missing,))
    assert (exit_code(report), exit_code(report, [Verdict.SLOWER])) == (0, 1)
