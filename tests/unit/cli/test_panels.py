"""What the panels of run, ab, limit and load say, at the widths that terminals have."""

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.analysis.compare import comparisons_so_far
from redline.cli import panel
from redline.cli.load_panel import LoadPanel, speed_text
from redline.cli.recent import RecentDuet, RecentLoad, left_text
from redline.cli.session_view import SessionView, TrialsView
from redline.document.format import with_bounds
from redline.model import Cell, Counts, Interval, Metric, Outcomes, Run
from redline.running.session import run_trials
from redline.search import Limit
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import compared_run
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import QuietListener
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording, simulated_run
from tests.fakes.screens import FakeTerminal
from tests.fakes.searched import bench_in

WIDTHS = pytest.mark.parametrize("width", [60, 80, 120])
SECOND = 10**9


@pytest.fixture(autouse=True)
def every_paint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(panel, "LEAST_S", 0.0)


def intervals_of(cell: Cell) -> Sequence[Interval]:
    traffic = simulated_recording(cell, GOOD).traffic
    assert traffic is not None
    return traffic.intervals


def has(lines: Sequence[str], *patterns: str) -> None:
    """Each pattern is a whole line of the panel, in this order."""
    places = [next((at for at, line in enumerate(lines) if re.fullmatch(one, line)), None) for one in patterns]
    assert None not in places, (patterns, lines)
    assert places == sorted(places, key=lambda at: at or 0), lines


@WIDTHS
def test_a_load_shows_its_time_its_rate_and_its_histogram(width: int) -> None:
    terminal, cell = FakeTerminal(width), simulated_cell()
    with LoadPanel(cell, terminal.console) as shown:
        intervals = intervals_of(cell)
        shown.seen(intervals[0])
        assert re.fullmatch(r"(warmup|measure)  \d+ s left  \d+\.\d s of .*", terminal.shown[0])
        for interval in intervals:
            shown.seen(interval)
        lines = terminal.shown
        measured = sum(interval.response.count for interval in intervals if interval.phase != "warmup")
        counts = [
            int(row[2].replace(",", ""))
            for line in lines
            if (row := re.match(r" *([\d.]+ .s|[\d.]+ s) +([\d,]+) ", line))
        ]
        assert sum(counts) == measured
        assert max(map(len, lines)) < width
        has(lines, r".* k/s  p50 .*s  p99 .*s  [▁▂▃▄▅▆▇█]+", r"response up to +requests +share")
    assert terminal.shown == [""]


@WIDTHS
def test_trials_show_their_number_the_time_left_and_the_current_cell(width: int) -> None:
    run = simulated_run()
    terminal, plan = FakeTerminal(width), run.manifest.plan
    trial = plan.trials[0]
    cell = plan.cells[trial.cell_id]
    with TrialsView(plan, 0, terminal.console) as view:
        view.trial_started(trial, cell)
        has(terminal.shown, rf"1 of {plan.length}  .* left", rf"{re.escape(cell.slug)}  round 1", "starting the server")
        for interval in intervals_of(cell):
            if interval.phase != "drain":
                view.interval_seen(trial, interval)
        has(terminal.shown, rf"1 of {plan.length}  .*", r"measure  .* k/s  p50 .*s  p99 .*s( .*)?")
        view.trial_ended(simulated_recording(cell, replace(GOOD, steal=0.4)), cell)
        view.trial_started(plan.trials[1], plan.cells[plan.trials[1].cell_id])
        lines = terminal.shown
        assert re.fullmatch(rf"2 of {plan.length}  .* (left|planned)  1 !.*", lines[-3]), lines
    assert terminal.shown[0].startswith(f"[1/{plan.length}] {cell.slug}")
    assert "starting" not in "".join(terminal.shown)


def two_servers() -> Run:
    slower = replace(GOOD, rate_per_s=GOOD.rate_per_s * 0.8)
    return simulated_run({"fake.base": GOOD, "fake.slower": slower}, trials=3, loads=(SATURATE,), baseline="fake.base")


def shown_by(view: TrialsView, run: Run) -> None:
    """The view follows all trials of the run."""
    cells, planned = run.manifest.plan.cells, {trial.position: trial for trial in run.manifest.plan.trials}
    for recording in run.recordings:
        view.trial_started(planned[recording.position], cells[recording.cell_id])
        view.trial_ended(recording, cells[recording.cell_id])


@WIDTHS
def test_trials_compare_a_server_with_its_baseline_from_the_second_round_on(width: int) -> None:
    run, terminal = two_servers(), FakeTerminal(width)
    (same,) = [one for one in build_report(run).comparisons if one.metric is Metric.THROUGHPUT]
    assert same.ratio is not None
    with TrialsView(run.manifest.plan, 0, terminal.console) as view:
        shown_by(view, run)
        has(terminal.shown, rf"{re.escape(with_bounds(same.ratio))}  by 3 rounds  throughput of fake.*")
        assert max(map(len, terminal.shown)) < width


def test_without_a_terminal_the_line_of_a_trial_compares_its_server() -> None:
    run, out = two_servers(), io.StringIO()
    (same,) = [one for one in build_report(run).comparisons if one.metric is Metric.THROUGHPUT]
    assert same.ratio is not None
    shown_by(TrialsView(run.manifest.plan, 0, Console(file=out, width=200)), run)
    rounds = [line for line in out.getvalue().splitlines() if line.startswith("[")][1::2]
    assert "throughput" not in rounds[0], "one round has no interval"
    assert rounds[-1].endswith(f"  {with_bounds(same.ratio)} throughput of fake.slower against fake.base by 3 rounds")


def followed(run: Run, terminal: FakeTerminal) -> TrialsView:
    """The view after all of the run's starts."""
    view = TrialsView(run.manifest.plan, 0, terminal.console)
    cells = run.manifest.plan.cells
    for number, made in enumerate(run.duets):
        planned = run.manifest.plan.duets[number]
        compared = tuple(cells[cell_id] for cell_id in planned.cell_ids)
        view.duet_started(planned, compared)
        assert made.traffic is not None
        for block in made.traffic.blocks:
            view.block_seen(planned, block)
        view.duet_ended(made, compared)
        view.compared(run.model_copy(update={"duets": run.duets[: number + 1]}))
        view._judge_after = 0.0
    return view


@WIDTHS
def test_a_comparison_shows_its_interval_as_it_narrows(width: int) -> None:
    run, terminal = compared_run(starts=4), FakeTerminal(width)
    with followed(run, terminal):
        (primary,) = [one for one in build_report(run).comparisons if one.primary]
        assert primary.ratio is not None
        shown = f"{with_bounds(primary.ratio)}  by 4 starts"
        has(
            terminal.shown,
            r"start 4  \d+ s left.*",
            r"A \| B home.load",
            r"measure  .* k/s A  .* k/s B( .*)?",
            rf"{re.escape(shown)}  CPU per request of B .*",
        )
        assert max(map(len, terminal.shown)) < width
    assert terminal.shown == [""]


def test_what_is_shown_on_the_way_is_what_the_report_says() -> None:
    run = compared_run(starts=5)
    for starts in range(1, 6):
        so_far = run.model_copy(update={"duets": run.duets[:starts]})
        assert comparisons_so_far(so_far) == build_report(so_far).comparisons


def test_one_start_has_no_interval_and_shows_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    run, terminal = compared_run(starts=1), FakeTerminal()
    made = comparisons_so_far(run)
    without = tuple(
        one.model_copy(update={"ratio": one.ratio and one.ratio.model_copy(update={"low": None, "high": None})})
        for one in made
    )
    monkeypatch.setattr("redline.cli.session_view.compare.comparisons_so_far", lambda _run: without)
    with followed(run, terminal):
        assert any(line.startswith("not known yet") for line in terminal.shown)


def test_a_budget_says_how_much_time_is_left() -> None:
    run, terminal = compared_run(starts=2), FakeTerminal()
    with followed(run, terminal):  # two starts of 5 s of a budget of 60 s
        assert re.match(r"start 2  (49|50) s left", terminal.shown[0])


def test_judging_on_the_way_leaves_most_of_the_time_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    run, terminal, judged = compared_run(starts=2), FakeTerminal(), list[int]()

    def counted(run: Run) -> tuple[()]:
        judged.append(len(run.duets))
        return ()

    monkeypatch.setattr("redline.cli.session_view.compare.comparisons_so_far", counted)
    with TrialsView(run.manifest.plan, 0, terminal.console) as view:
        view.compared(run)
        view._judge_after = view._judge_after + 60
        view.compared(run)
    assert judged == [2]


def test_a_session_tells_of_every_start(tmp_path: Path) -> None:
    run, store, listener = compared_run(starts=3), RunStore(tmp_path / "run"), QuietListener()
    store.create(run.manifest.with_plan(run.manifest.plan))

    class Replayed:
        def execute(self, steps: Sequence[object]) -> Sequence[object]:
            return [run.duets[step.position] for step in steps]  # type: ignore[attr-defined]

    def after_three(so_far: Run) -> None:
        return None

    run_trials(run.manifest.plan, store, Replayed(), listener, after_three)  # type: ignore[arg-type]
    assert listener.compared_starts == [1, 2, 3]
    again = QuietListener()
    run_trials(run.manifest.plan, store, Replayed(), again, after_three)  # type: ignore[arg-type]
    assert again.compared_starts == [3], "a resumed view starts with the stored starts"


@WIDTHS
def test_a_search_shows_what_passed_and_what_was_missed(width: int) -> None:
    terminal, cell = FakeTerminal(width), simulated_cell()
    limit = Limit("p99 < 200 ms", 1720.0, 1817.0, None, False, True, "p99 < 200 ms")
    with SessionView(terminal.console).cell(cell, 1, 1, left_ns=90 * SECOND) as view:
        view.started(0)
        has(terminal.shown, r"probe 1  at most 1 min 30 s left.*", "start 1: starting the server")
        for interval in intervals_of(cell):
            view.seen(interval)
        view.narrowed([limit])
        has(
            terminal.shown,
            r"probe 1  at most .* left.*",
            r"\w+  .* k/s  p50 .*s  p99 .*s( .*)?",
            r"passed at 1\.72 k/s  missed at 1\.82 k/s  p99 < 200 ms",
        )
        assert max(map(len, terminal.shown)) < width
        view.narrowed([replace(limit, low_per_s=None)])
        has(terminal.shown, r"missed at 1\.82 k/s  p99 < 200 ms")
        view.narrowed([replace(limit, low_per_s=None, high_per_s=None)])
        has(terminal.shown, r"nothing is known yet  p99 < 200 ms")


def test_servers_that_take_turns_are_shown_together() -> None:
    terminal = FakeTerminal()
    view = SessionView(terminal.console)
    view.by_probe = True
    limit = Limit("p99 < 200 ms", 1720.0, None, None, False, True, "p99 < 200 ms")
    for server in ("rust.hyper", "rust.axum"):
        with view.cell(simulated_cell(server), 1, 2, left_ns=SECOND) as turn:
            turn.narrowed([limit])
            last = terminal.shown
    has(last, r"passed at .*  rust.hyper: p99 < 200 ms", r"passed at .*  rust.axum: p99 < 200 ms")


def test_a_capacity_that_lacks_recordings_is_said_with_what_completes_it(tmp_path: Path) -> None:
    shown = io.StringIO()
    SessionView(Console(file=shown, width=80)).lacks(RunStore(tmp_path / "capacity"))
    assert "the capacity lacks recordings, and the rates stay as they were planned" in shown.getvalue()
    assert shown.getvalue().endswith(f"run --resume {tmp_path / 'capacity'}\n")


def test_a_search_tells_what_its_next_step_rests_on(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    end = bench.run()
    assert bench.listener.known[-1] == end.limits
    widths = [(one[0].low_per_s, one[0].high_per_s) for one in bench.listener.known]
    assert widths[0] != widths[-1]


def test_a_search_has_less_and_less_time_left(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    left = [bench.state.longest_left_ns()]
    while bench.made.turn():
        left.append(bench.state.longest_left_ns())
    assert left == sorted(left, reverse=True)
    assert left[0] > left[-1] >= 0


def test_each_server_of_a_duet_has_the_rate_of_its_own_slices() -> None:
    course, made = RecentDuet(2), simulated_duet(0, (1.0, 2.0))
    assert made.traffic is not None
    for block in made.traffic.blocks:
        course.add(block)
    first, second = course.last
    assert first is not None
    assert second is not None
    assert first / second == pytest.approx(2.0, rel=0.05)


def test_a_panel_may_be_painted_while_another_thread_adds_to_a_load() -> None:
    course, cell = RecentLoad(), simulated_cell()
    for interval in intervals_of(cell):
        rates = iter(course.rates)
        course.add(interval)
        list(rates)
    for number in range(100):
        one = intervals_of(cell)[0]
        course.add(one.model_copy(update={"start_ns": number * SECOND, "end_ns": (number + 1) * SECOND}))
    assert len(course.rates) == 24


@pytest.mark.parametrize(
    ("left_ns", "text"),
    [
        (31.4 * SECOND, "31 s left"),
        (0.2 * SECOND, "1 s left"),
        (125 * SECOND, "2 min 5 s left"),
        (3720 * SECOND, "1 h 2 min left"),
        (0, "longer than planned"),
        (-SECOND, "longer than planned"),
    ],
)
def test_the_time_left_is_in_whole_seconds(left_ns: float, text: str) -> None:
    assert left_text(left_ns) == text


def test_an_interval_without_a_right_answer_says_why() -> None:
    traffic = simulated_recording(simulated_cell(), replace(GOOD, achieved=0.0)).traffic
    assert traffic is not None
    first = traffic.intervals[0]
    assert speed_text(first, 0.5, 0.99) == "no right answers"
    quiet = first.model_copy(update={"counts": Counts()})
    assert speed_text(quiet, 0.5, 0.99) == "nothing is due"
    assert speed_text(quiet, 0.5, 0.99, waiting=3) == "no answers yet"


def test_what_waits_for_an_answer_is_told_from_what_is_not_due() -> None:
    traffic, course = simulated_recording(simulated_cell(), GOOD).traffic, RecentLoad()
    assert traffic is not None
    sent = traffic.intervals[0].model_copy(update={"counts": Counts(due=3)})
    course.add(sent)
    assert course.waiting == 3
    course.add(sent.model_copy(update={"counts": Counts(completed=2, outcomes=Outcomes(ok=2))}))
    assert course.waiting == 1
    course.add(sent.model_copy(update={"phase": "measure", "counts": Counts(completed=1)}))
    assert course.waiting == 0
