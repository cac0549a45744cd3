"""`redline limit` from flags to exit code, with a driver that simulates the server; no socket is opened."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from redline.asking.origins import FromRepository
from redline.asking.searching import read_servers_search, read_sets, read_suites_search
from redline.cli.command_line import app
from redline.cli.show import show
from redline.errors import DriveError, UsageError
from redline.limits import search_state
from redline.limits.answers import answer
from redline.limits.doubts import Seen
from redline.model import Cell, Closed, Finding, Grade, Interval, Open, Outcomes, Recording, Traffic
from redline.model.limits import LimitAnswer, LimitReport, LimitStart
from redline.ports import Drive, Endpoint, Placement
from redline.render import summary
from redline.running import assembly
from redline.running.assembly import Workbench
from redline.running.probing import WARM_SHARE
from redline.running.record import Tools
from redline.search import Converged, Doomed, Exhausted, Limit, Proposal, Search
from tests.fakes import asks, limits
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_environment, simulated_recording

WARM_UPS = 2
URL = "http://127.0.0.1:1/"
CAPACITY = 3000
SECOND = 1_000_000_000


@dataclass
class Server(WithoutDuets):
    """A server of 3000/s, as the driver sees it; `after` runs at the load with that number; two warm it up."""

    wrong: str | None = None
    after: dict[int, Callable[[Drive], None]] = field(default_factory=dict)
    failing: bool = False
    drives: int = 0

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return self.wrong

    def drive(self, drive: Drive) -> Traffic:
        self.drives += 1
        if self.drives in self.after:
            self.after[self.drives](drive)
        shape = drive.cell.load.shape
        slow = Behaviour(response_ns=1e9) if isinstance(shape, Open) and (shape.mean_per_s or 0) > CAPACITY else GOOD
        traffic = simulated_recording(drive.cell, slow, seed=drive.seed).traffic
        assert traffic is not None
        return traffic.model_copy(update={"intervals": tuple(map(failed, traffic.intervals))} if self.failing else {})


def failed(interval: Interval) -> Interval:
    """The same with a fast 503 for every request."""
    wrong = {"completed": 0, "outcomes": Outcomes(unexpected_status=interval.counts.due)}
    return interval.model_copy(update={"counts": interval.counts.model_copy(update=wrong)})


@pytest.fixture
def redline(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    def run(server: Server, *flags: str, runs_on: str = "native") -> Result:
        launcher = FakeLauncher([], FakeServer(facts=None, runtimes=frozenset({runs_on})))
        bench = Workbench(Tools(launcher, server, lambda _server: (), Placement()), simulated_environment())
        monkeypatch.setattr(assembly, "workbench", lambda *_: bench)
        length = () if "-d" in flags else ("-d", "1s")
        return CliRunner().invoke(app, ["limit", URL, "--objective", "p99 < 20ms", *length, *flags])

    return run


@pytest.mark.parametrize(("runs_on", "warmup", "said"), [("node", "1s", 1), ("node", "5s", 0), ("native", "1s", 0)])
def test_that_a_server_was_cold_is_said_once(
    redline: Callable[..., Result], runs_on: str, warmup: str, said: int
) -> None:
    done = redline(Server(), "--warmup", warmup, runs_on=runs_on)
    assert done.stdout.count("The server runs on node, which compiles while it runs") == said
    done = redline(Server(), "--warmup", warmup, "--json", runs_on=runs_on)
    (cell,) = LimitReport.model_validate_json(done.stdout).cells
    found = [each for each in cell.findings if each.kind == "not-warmed-up"]
    assert [each.position for each in found] == [None] * said


def interrupt(_drive: Drive) -> None:
    raise KeyboardInterrupt


def die(drive: Drive) -> None:
    hint = f"its messages are in {drive.log}" if drive.log_is_kept else "see whether it still runs"
    raise DriveError("the engine ended: reset by peer", hint=hint)


def test_a_wrong_answer_is_not_measured(redline: Callable[..., Result]) -> None:
    server = Server(wrong="GET /: status 503, not 200")
    done = redline(server)
    assert isinstance(done.exception, DriveError)
    assert done.exception.exit_code == 1
    assert "GET /: status 503, not 200" in str(done.exception)
    assert "503" not in done.stderr  # whoever catches it prints it, once
    assert server.drives == 0


def test_ctrl_c_keeps_what_is_known(redline: Callable[..., Result]) -> None:
    done = redline(Server(after={5: interrupt}), "--json")
    assert done.exit_code == 130
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    assert (result.ended, len(result.probes)) == ("interrupted", 2)


def test_a_running_server_is_warmed_up_once_and_until_it_is_steady_when_asked(redline: Callable[..., Result]) -> None:
    drives: list[Drive] = []
    keep: Callable[[Drive], None] = drives.append
    starts: list[tuple[LimitStart, ...]] = []
    for flags in ((), ("--warmup", "auto"), ("--warmup", "0s")):
        done = redline(Server(after=dict.fromkeys((1, 2, 3), keep)), "--json", *flags)
        assert done.exit_code == 0, done.stderr
        starts.append(LimitReport.model_validate_json(done.stdout).cells[0].starts)
    first, calm, probe, watched, _, settled, cold, _, _ = drives
    assert (first.cell.load.duration_ns, first.cell.warmup_ns, probe.cell.warmup_ns) == (SECOND, 0, SECOND)
    assert first.cell.load.shape == watched.cell.load.shape == Closed(users=256)
    assert calm.cell.load.shape == Open(rate_per_s=WARM_SHARE * 14_000, connections=256), "users got 20,000/s"
    assert probe.cell.load.shape == Open(rate_per_s=14_000, connections=256)
    assert watched.is_warm
    assert (watched.cell.warmup_ns, settled.cell.warmup_ns, settled.is_warm) == (60 * SECOND, SECOND, None)
    assert (cold.cell.warmup_ns, cold.cell.load.shape) == (
        0,
        Open(rate_per_s=search_state.FIRST_PER_S, connections=256),
    )
    assert starts[0] == (LimitStart(warmed_ns=SECOND),)
    assert starts[1][0].steady is not None
    assert starts[2] == ()


def test_ctrl_c_before_the_first_probe_is_reported(redline: Callable[..., Result]) -> None:
    done = redline(Server(after={1: interrupt}), "--json")
    assert done.exit_code == 130
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    assert (result.ended, result.limits, result.probes) == ("interrupted", (), ())
    assert "interrupted: this is what was known by then" in redline(Server(after={1: interrupt})).stdout


def test_a_probe_that_the_host_disturbs_is_made_again(
    redline: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def findings(_cell: Cell, recording: Recording) -> tuple[Finding, ...]:
        taken = Finding(kind="cpu-steal", grade=Grade.WARN, message="M.", advice="A.", cell_id="cell")
        return (taken,) if recording.position == WARM_UPS + 2 else ()

    monkeypatch.setattr(search_state, "judge_probe", findings)
    monkeypatch.setattr("redline.running.cell_search.WAITS_S", (0.5,))
    done = redline(Server(), "--start", "1000", "--json")
    assert "not the server: m  (doubled: nothing failed yet)\n     once more in 0.5 s" in done.stderr
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    (first, again) = result.probes[2:4]
    assert (first.client, again.client, again.rate_per_s) == ("m", "", first.rate_per_s)
    assert "again: " in again.why


def test_a_server_that_dies_leaves_what_is_known(redline: Callable[..., Result]) -> None:
    done = redline(Server(after={5: die}), "--json")
    assert done.exit_code == 1
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    assert (result.ended, result.reason, len(result.probes)) == ("broken", "the engine ended: reset by peer", 2)
    assert "reset by peer" in done.stderr
    assert "engine.log" not in done.stderr
    assert "reset by peer; this is what was known" in redline(Server(after={5: die})).stdout


def test_one_that_is_dead_at_once_is_an_error(redline: Callable[..., Result]) -> None:
    done = redline(Server(after={1: die}))
    assert isinstance(done.exception, DriveError)
    assert "engine.log" not in str(done.exception)


class OneProbe(Search):
    """A search with one probe, and then no answer."""

    def next(self) -> Proposal | Converged | Exhausted | Doomed:
        return Exhausted(self.limits()) if self.evidence else super().next()


def test_used_up_probes_are_no_success(redline: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_state, "Search", OneProbe)
    done = redline(Server(), "--start", "1000")
    assert done.exit_code == 1
    output = " ".join(done.stdout.split())  # a narrow terminal breaks the line
    assert "all 1 probes are used up; begin at a higher rate (--start), or allow more (--probes)" in output


def test_fast_failures_are_no_speed(redline: Callable[..., Result]) -> None:
    done = redline(Server(failing=True), "--start", "500", "--json")
    assert done.exit_code == 1
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    assert (result.ended, result.limits[0].passed_per_s) == ("doomed", None)
    assert "does not meet p99 < 20ms, errors < 1%" in result.reason
    assert result.limits[0].conditions == ("p99 < 20ms", "errors < 1%")
    assert "  errors " in done.stderr


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--objective", "p99 < 20ms"), "write both in one objective, with a comma"),
        (("--objective", "p50 < 5s"), "raise --timeout"),
        (("--objective", "max < 1s", "--timeout", "1s"), "raise --timeout"),
        (("-d", "500ms"), "give -d 1s or more"),
    ],
)
def test_wrong_flags(redline: Callable[..., Result], flags: tuple[str, ...], says: str) -> None:
    done = redline(Server(), *flags)
    assert isinstance(done.exception, UsageError)
    assert says in done.exception.hint


@pytest.mark.parametrize("target", ["127.0.0.1:8080", "localhost:8080/path", "[::1]:80/", "ftp://127.0.0.1/"])
def test_half_a_url_is_no_suite(target: str) -> None:
    done = CliRunner().invoke(app, ["limit", target, "--objective", "p99 < 20ms", "-c", "8"])
    assert isinstance(done.exception, UsageError)
    assert "nor a URL of http:// or https://" in str(done.exception)
    assert done.exception.hint == f"try http://{target.removeprefix('ftp://')}"


def test_the_command_can_be_given_to_a_shell(redline: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["redline", "limit", URL, "--objective", "p99 < 20ms"])
    report = LimitReport.model_validate_json(redline(Server(), "--json").stdout)
    assert report.command == f"redline limit {URL} --objective 'p99 < 20ms'"


def test_a_server_that_answers_no_more_has_no_limit(redline: Callable[..., Result]) -> None:
    """Its refusals are fast, and at the next rates too: they would pass for an edge."""

    def gone(server: Server) -> Callable[[Drive], None]:
        def end(_drive: Drive) -> None:
            server.failing, server.wrong = True, "GET /: connection refused"

        return end

    server = Server()
    server.after = {5: gone(server)}
    done = redline(server, "--start", "1000", "--json")
    assert done.exit_code == 1
    (result,) = LimitReport.model_validate_json(done.stdout).cells
    assert (result.ended, len(result.probes)) == ("broken", 3)
    assert result.reason == "127.0.0.1:1 gives no right answer any more after 4.00 k/s: GET /: connection refused"


def test_objectives_have_names_or_are_their_own() -> None:
    sets = read_sets(["good: p99 < 20ms, errors < 0.1%", "p50 < 1ms"])
    assert {name: [each.text for each in one] for name, one in sets.items()} == {
        "good": ["p99 < 20ms", "errors < 0.1%"],
        "p50 < 1ms": ["p50 < 1ms", "errors < 1%"],
    }
    with pytest.raises(UsageError, match="--objective"):
        read_sets(["p98 < 3ms"])


@pytest.mark.parametrize("name", ["items", "mix/items"])
def test_an_objective_of_a_request_is_of_the_mix_that_has_it(name: str, tmp_path: Path) -> None:
    requests = tmp_path / "requests.yaml"
    requests.write_text("- {name: items, get: /items}\n- {name: add, post: /items}\n")
    asked = f"{name}: p99 < 20ms"
    flags = asks.search(targets=[URL], requests=requests, scenarios=["mix"], objective=[asked])
    (conditions,) = read_servers_search(flags, FromRepository(tmp_path)).request.terms.sets.values()
    assert [(each.text, each.request) for each in conditions] == [(asked, "items"), ("errors < 1%", None)]
    with pytest.raises(UsageError, match="no objective is for `items` under the load `probe`"):
        read_servers_search(asks.search(targets=[URL], requests=requests, objective=[asked]), FromRepository(tmp_path))
    named = [f"good: p99 < 1s, {name}: p99 < 20ms", "p99 < 2s"]
    flags = asks.search(targets=[URL], requests=requests, scenarios=["mix"], objective=named)
    assert {*read_servers_search(flags, FromRepository(tmp_path)).request.terms.sets} == {"good", "p99 < 2s"}


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        ("itms: p99 < 20ms", "there is no request `itms`"),
        ("GET /nothing: p99 < 20ms", "there is no request `GET /nothing`"),
        ("good: itms: p99 < 20ms", "there is no scenario, load or request `itms`"),
        ("items: achieved > 99%", "`achieved` is about the rate of a whole load"),
    ],
)
def test_a_request_that_is_not_asked_is_named(objective: str, says: str, tmp_path: Path) -> None:
    requests = tmp_path / "requests.yaml"
    requests.write_text("- {name: items, get: /items}\n- {name: add, post: /items}\n")
    flags = asks.search(targets=[URL], requests=requests, scenarios=["mix"], objective=[objective])
    with pytest.raises(UsageError, match=says):
        read_servers_search(flags, FromRepository(tmp_path))


def test_a_search_takes_the_abort_rules_of_its_suite_or_of_the_flags(tmp_path: Path) -> None:
    suite = tmp_path / "suite.yaml"
    suite.write_text(
        f"servers: [{{url: '{URL}'}}]\nscenarios: [{{name: a, get: /}}]\nabort_when: errors > 5% for 3s\n"
        "loads: {probe: {open: {rate: 100}, for: 4s}}\n"
    )
    for given, rule in (([], "errors > 5% for 3s"), (["p99 > 1s for 2s"], "p99 > 1s for 2s")):
        flags = asks.search(targets=[str(suite)], objective=["p99 < 20ms"], abort_when=given)
        cells = read_suites_search(flags, FromRepository(tmp_path)).request.plan().cells.values()
        assert {each.text for cell in cells for each in cell.abort_when} == {rule}
    flags = asks.search(targets=[str(suite)], objective=["p99 < 20ms"], abort_when=["errors > 5%"])
    with pytest.raises(UsageError, match=r"--abort-when: .* does not say for how long"):
        read_suites_search(flags, FromRepository(tmp_path))
    flags = asks.search(targets=[str(suite)], objective=["p99 < 20ms"], abort_when=["errors > 5% for 5s"])
    with pytest.raises(UsageError, match=r"`errors > 5% for 5s` cannot end a probe of 4.00 s"):
        read_suites_search(flags, FromRepository(tmp_path))


def test_servers_that_are_compared_in_a_search_take_rules_about_percentiles(tmp_path: Path) -> None:
    targets = [URL, "http://127.0.0.1:9/"]
    flags = asks.search(targets=targets, objective=["p99 < 20ms"], abort_when=["p99 > 1s for 2s"])
    suite = read_servers_search(flags, FromRepository(tmp_path)).request.suite
    assert [rule.text for rule in suite.abort_when] == ["p99 > 1s for 2s"]


def printed(**changes: object) -> str:
    limit = LimitAnswer(
        name="good",
        passed_per_s=900,
        failed_per_s=1100,
        confidence=None,
        decided=True,
        method="single rates",
        binding="p99 < 20ms",
        conditions=("p99 < 20ms", "errors < 1%"),
        met_somewhere=True,
        missed_somewhere=True,
    ).model_copy(update=changes)
    empty = {"slug": "", "server": "", "scenario": "", "load": "", "no_knee": "", "no_beyond": ""}
    cell = limits.bare().model_copy(update={"ended": "exhausted", "limits": (limit,), **empty})
    console = Console(width=200)
    with console.capture() as captured:
        show(summary(limits.report(cell)), console)
    return captured.get()


def test_an_answer_by_single_rates_has_no_confidence() -> None:
    assert printed().splitlines()[2].split() == ["good", "900/s", "1,100/s", "±10%"]
    assert "by single rates" in printed()
    assert "95% interval, by the model of a queue with one worker" in printed(confidence=0.95)
    few = "95% interval, by how starts differ: they are few, so it may be too sure"
    assert few in printed(confidence=0.95, starts_differ=True)
    assert "by how probes differ: how often that is right is not known" in printed(probes_differ=True)
    assert "p99 < 20ms, errors < 1%" in printed()


def test_an_open_side_says_no_more_than_is_true() -> None:
    def sides(**changes: object) -> str:
        return " ".join(printed(**changes).splitlines()[2].split()[1:])

    assert sides(passed_per_s=None, met_somewhere=False).startswith("at none 1,100/s")
    assert sides(passed_per_s=None).startswith("not known 1,100/s")
    assert sides(failed_per_s=None, missed_somewhere=False).startswith("900/s at none")
    assert sides(failed_per_s=None, reason="every probe scattered").startswith("900/s not known")
    assert "every probe scattered" in printed(reason="every probe scattered")


def test_what_was_never_probed_was_neither_met_nor_missed() -> None:
    search = Search(read_sets(["good: p99 < 20ms"]))
    limit = Limit("good", None, None, None, decided=False, modelled=False, binding="p99 < 20ms")
    result = answer(limit, search, Seen(()))
    assert (result.met_somewhere, result.missed_somewhere) == (False, False)
