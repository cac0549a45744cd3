"""`redline ab --limit`: two searches that take turns, the ratio of their limits, and how it is said."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import exp, hypot, log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redline.analysis.ab_limit import judge_limits
from redline.cli.ab_limit import CONNECTIONS, PROBES, read_limits
from redline.model.ab_limit import AbLimitReport
from redline.report.sections.ab_limit import ab_limit_sections, sentence
from typer.testing import CliRunner, Result

from redline.analysis.limits import Ending, Subject, answer, cell_limit
from redline.cli import ab_limit as under_test
from redline.cli.command_line import AbFlags, app
from redline.cli.commands.ab import read_plan
from redline.cli.limit_flags import TRIALS
from redline.errors import DriveError, LaunchError, UsageError
from redline.model import Cell, Open, Traffic, Verdict
from redline.model.limits import CellLimit, LimitAnswer
from redline.ports import Drive, Endpoint, Placement
from redline.report.render import markdown
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.search import Proposal, Search, Settings
from redline.selftest.truth import exponential
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.plugins import FakeDriver, FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.queues import Queue
from tests.fakes.recordings import simulated_environment, simulated_recording

A, B = "./old --port {port}", "./new --port {port}"
URL_A, URL_B = "http://127.0.0.1:1/x", "http://127.0.0.1:2/x"
SECOND = 1_000_000_000


def known(low: float | None, high: float | None, confidence: float | None = 0.95, reason: str = "") -> CellLimit:
    """A search that ended with this answer."""
    found = LimitAnswer(
        name="p99 < 50ms",
        passed_per_s=low,
        failed_per_s=high,
        confidence=confidence,
        decided=not reason,
        method="queue" if confidence else "single rates",
        binding="p99 < 50ms",
        conditions=("p99 < 50ms", "errors < 1%"),
        met_somewhere=True,
        missed_somewhere=False,
        reason=reason,
    )
    return cell_limit(Subject("a", "a", "requests", "open"), Ending("converged"), [found], (), "not wanted")


def judged(a: CellLimit, b: CellLimit, **given: Any) -> AbLimitReport:
    return judge_limits(("./old", "./new"), "p99 < 50ms", (a, b), seconds=232.0, **given)


NINETEEN = known(18_600, 19_400)


def test_the_ratio_is_of_the_middles_and_independent_errors_add_by_their_squares() -> None:
    report = judged(NINETEEN, known(20_900, 21_800))
    assert report.ratio is not None
    assert report.ratio.value == pytest.approx((20_900 * 21_800 / 18_600 / 19_400) ** 0.5)
    half = hypot(log(19_400 / 18_600) / 2, log(21_800 / 20_900) / 2)
    assert report.ratio.low == pytest.approx(report.ratio.value * exp(-half))
    assert report.ratio.high == pytest.approx(report.ratio.value * exp(half))
    assert (report.verdict, report.confidence) == (Verdict.FASTER, 0.95)


LIMITS_OF_A = "19.0 k/s [18.6, 19.4]; 3 min 52 s"
SINGLE = "by single rates, which give no confidence"
BUSY = "the client is the limit, not the server, at 80000/s: busy"


@pytest.mark.parametrize(
    ("other", "verdict", "begins", "limit"),
    [
        (
            known(20_900, 21_800),
            Verdict.FASTER,
            "B answers 12.4% more requests/s than A within p99 < 50ms (95% interval 9.1 to 15.8%): ",
            "21.3 k/s [20.9, 21.8]",
        ),
        (
            known(16_900, 17_500),
            Verdict.SLOWER,
            "B answers 9.5% fewer requests/s than A within p99 < 50ms (95% interval 7.0 to 11.9%): ",
            "17.2 k/s [16.9, 17.5]",
        ),
        (
            known(40_000, 44_000),
            Verdict.FASTER,
            "B answers 2.21 times as many requests/s within p99 < 50ms as A (95% interval 2.10 to 2.33): ",
            "42 k/s [40, 44]",
        ),
        (
            known(18_500, 20_500),
            Verdict.INCONCLUSIVE,
            "A and B cannot be distinguished in requests/s within p99 < 50ms: 2.5% [−3.0, 8.4]; B ",  # noqa: RUF001
            "19 k/s [18, 20]",
        ),
        (
            known(40_000, 44_000, None),
            Verdict.INCONCLUSIVE,
            f"B answers 2.06 to 2.37 times as many requests/s within p99 < 50ms as A, {SINGLE}: ",
            "42 k/s [40, 44]",
        ),
    ],
)
def test_the_answer_in_one_sentence(other: CellLimit, verdict: Verdict, begins: str, limit: str) -> None:
    report = judged(NINETEEN, other)
    assert report.verdict is verdict
    assert sentence(report) == f"{begins}{limit} against {LIMITS_OF_A}"


def test_a_limit_that_is_not_known_leaves_no_verdict_and_what_is_known() -> None:
    report = judged(NINETEEN, known(40_000, None, None, BUSY))
    assert (report.ratio, report.confidence, report.verdict) == (None, None, Verdict.INCONCLUSIVE)
    a, b = "met up to 18,600/s, missed from 19,400/s (±2.1%)", f"met up to 40,000/s, missed at none ({BUSY})"
    expected = f"The ratio of the limits within p99 < 50ms is not known. A: {a}; B: {b}; 3 min 52 s"
    assert sentence(report) == expected
    wide = judged(known(18_000, 20_000, 0.95, "about --probes 40 would decide it"), known(40_000, None, None))
    assert "--probes" not in markdown.render(ab_limit_sections(wide)).decode()


def test_limits_within_two_percent_are_alike() -> None:
    close = known(18_950, 19_050)
    assert judged(close, close).verdict is Verdict.EQUIVALENT
    assert "are alike in requests/s within p99 < 50ms: 0.0% [−0.4, 0.4]" in sentence(judged(close, close))  # noqa: RUF001


def test_markdown_ends_with_the_sentence() -> None:
    report = judged(NINETEEN, known(20_900, 21_800), interrupted=True)
    text = markdown.render(ab_limit_sections(report)).decode().strip()
    assert text.splitlines()[-1].startswith("**B answers 12.4% more requests/s than A within p99 ")
    assert text.endswith("; interrupted**")


def test_the_ratio_of_two_queues_is_found() -> None:
    """M/M/1 of 2,000 and 2,400/s: p99 < 50 ms is met up to 1,908 and 2,308/s."""
    objectives = parse_objectives("p99 < 50ms")
    cells = []
    for capacity in (2000, 2400):
        search, rng = Search({"p99 < 50ms": objectives}, Settings()), np.random.default_rng([0, capacity])
        while isinstance(step := search.next(), Proposal):
            search.add(Queue(exponential(capacity)).probe(step.rate_per_s, rng, whole=step.whole))
        answers = [answer(each, search) for each in step.limits]
        cells.append(cell_limit(Subject("a", "a", "r", "open"), Ending("converged"), answers, (), ""))
    report = judged(*cells)
    assert report.verdict is Verdict.FASTER
    assert report.ratio is not None
    assert (report.ratio.low or 0) < 2308 / 1908 < (report.ratio.high or 0)


def limits(a: str | None = A, b: str | None = B, **given: Any) -> under_test.LimitsRequest:
    flags = AbFlags(a=a, b=b, **{"limit": True, "objective": "p99 < 50ms", **given})
    return read_limits(flags, (a or "", b or ""), read_plan(flags, 60 * SECOND).cells)


def test_commands_are_probed_on_fresh_starts_within_the_time() -> None:
    made = limits()
    assert made.trials == TRIALS
    cell = made.cells[0]
    assert cell.load.shape == Open(rate_per_s=1000, connections=CONNECTIONS)
    probes, starts = 2 * (PROBES + 2 * TRIALS), 2 * (1 + TRIALS)
    takes_ns = probes * (cell.load.duration_ns + cell.warmup_ns) + starts * 2 * cell.warmup_ns
    assert 0.98 * 240 * SECOND < takes_ns <= 240 * SECOND
    assert list(made.sets) == ["p99 < 50ms"]
    assert [each.text for each in made.sets["p99 < 50ms"]] == ["p99 < 50ms", "errors < 1%"]


def test_a_virtual_machine_is_warmed_up_until_it_is_steady_for_half_of_the_time_at_most() -> None:
    made = limits("java -jar app.jar {port}", lasts="10m")
    assert all(cell.warmup_detect for cell in made.cells)
    assert made.cells[0].warmup_ns * 2 * (1 + TRIALS) == 300 * SECOND


def test_a_virtual_machine_is_recognised_by_a_start_whatever_its_command_is_called() -> None:
    for runtimes, detects in (({"native"}, False), ({"jvm"}, True), (set[str](), False)):
        launcher = FakeLauncher([], FakeServer(runtimes=frozenset(runtimes)))
        tools = Tools(launcher, FakeDriver([]), lambda _server: (), Placement())
        made = under_test.as_they_run(limits(), Workbench(tools, simulated_environment()))
        assert [cell.warmup_detect for cell in made.cells] == [detects, detects]
        assert launcher.events == ["start", "stop"] * 2
    assert made.names == limits().names
    declared = limits("java -jar app.jar {port}", lasts="10m")
    assert under_test.as_they_run(declared, Workbench(tools, simulated_environment())) == declared


def test_servers_that_run_have_one_start_and_may_be_one_server() -> None:
    made = limits(URL_A, URL_A)
    assert made.trials == 0
    assert made.cells[0].id != made.cells[1].id


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"objective": None}, "nothing says what is to be met"),
        ({"limit": False}, "--objective is what limits are searched for"),
        ({"objective": "p98 < 1ms"}, "--objective: "),
        ({"objective": "p99 < 9s"}, "is not below the timeout"),
        ({"load": "closed:8"}, "takes no --load"),
        ({"metric": "p99"}, "takes no --metric"),
        ({"threshold": "2%"}, "takes no --threshold"),
        ({"same_answers": True}, "takes no --same-answers"),
        ({"output": Path("kept")}, "takes no -o"),
        ({"lasts": "20s"}, "--for 20s is too short for two limits"),
        ({"lasts": "soon"}, "--for"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        limits(**given)
    assert says in str(refused.value)


@dataclass
class Servers(WithoutDuets):
    """A of 3000/s and B of 6000/s, as a driver sees them; `after` happens at the load of that number."""

    events: list[str] = field(default_factory=list)
    after: dict[int, Callable[[], None]] = field(default_factory=dict)
    wrong: str | None = None

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return self.wrong

    def drive(self, drive: Drive) -> Traffic:
        self.events.append(drive.cell.load.name)
        self.after.get(len(self.events), lambda: None)()
        shape, most = drive.cell.load.shape, {"A": 3000, "B": 6000}[drive.cell.load.name]
        slow = Behaviour(response_ns=1e9) if isinstance(shape, Open) and (shape.rate_per_s or 0) > most else GOOD
        short = drive.cell.load.model_copy(update={"duration_ns": SECOND})
        traffic = simulated_recording(drive.cell.model_copy(update={"load": short}), slow, seed=drive.seed).traffic
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
        monkeypatch.setattr(under_test, "attached", lambda _variant: bench)
        monkeypatch.setattr(under_test, "commands", lambda: bench)
        return CliRunner().invoke(app, ["ab", *of, "--limit", "--objective", "p99 < 20ms", "--for", "1m", *flags])

    return run


@pytest.mark.parametrize("of", [(A, B), (URL_A, URL_B)])
def test_probes_take_turns_and_both_limits_are_found(redline: Run, of: tuple[str, str]) -> None:
    servers = Servers()
    done = redline(servers, "--json", of=of)
    assert done.exit_code == 0, done.stderr
    report = AbLimitReport.model_validate_json(done.stdout)
    assert (report.a, report.b) == of
    for cell, truth in zip(report.searches, (3000, 6000), strict=True):
        (found,) = cell.limits
        assert (found.passed_per_s or 0) < truth * 1.01
        assert (found.failed_per_s or 0) > truth * 0.99
        assert not any(probe.recording for probe in cell.probes)
    lines = [line[0] for line in done.stderr.splitlines() if line[1:2] == " " and "/s" in line]
    assert "".join(lines).startswith("ABABABABAB")
    assert json.loads(done.stdout)["format"] == "redline.ab-limit/1"


def test_both_servers_are_alive_at_once_and_stopped_in_the_end(redline: Run, launcher: FakeLauncher) -> None:
    redline(Servers())
    looks_what_they_run = ["start", "stop"] * 2
    assert launcher.events[: 4 + 2] == [*looks_what_they_run, "start", "start"]
    assert launcher.events.count("start") == launcher.events.count("stop") == 2 * (1 + 1 + TRIALS)


def interrupt() -> None:
    raise KeyboardInterrupt


WARM_UPS = 2


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (WARM_UPS + 1, "A: nothing is known; B: nothing is known"),
        (2 * WARM_UPS + 3, "A: met at no rate that was tried, missed from 14,000/s; B: met at no rate that was tried"),
    ],
)
def test_ctrl_c_shows_what_is_known(redline: Run, launcher: FakeLauncher, number: int, says: str) -> None:
    done = redline(Servers(after={number: interrupt}))
    assert done.exit_code == 130
    assert says in " ".join(done.stdout.split())
    assert "interrupted" in done.stdout
    assert launcher.events.count("start") == launcher.events.count("stop")


def test_a_server_that_does_not_start_ends_both(redline: Run, launcher: FakeLauncher) -> None:
    launcher.error = LaunchError("A exited with code 1", hint="see its log")
    done = redline(Servers())
    assert isinstance(done.exception, DriveError)
    assert "A exited with code 1" in str(done.exception)
    assert done.exception.hint == "see its log"


def test_the_verdict_is_the_exit_code(redline: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def slower(*_args: object, **_named: object) -> AbLimitReport:
        return judged(known(20_900, 21_800), NINETEEN)

    monkeypatch.setattr(under_test.SearchSession, "execute", lambda _session: (None, False))
    monkeypatch.setattr(under_test, "judge_limits", slower)
    assert redline(Servers()).exit_code == 0
    assert redline(Servers(), "--fail-on", "slower").exit_code == 3
    monkeypatch.setattr(under_test, "judge_limits", lambda *_args, **_named: judged(NINETEEN, known(40_000, None)))
    assert redline(Servers(), "--fail-on", "slower").exit_code == 1
