"""Starts of duets that give no ratio are counted and explained in every format; nothing compared is no success."""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.analysis.unanswered import unanswered
from redline.cli import exits
from redline.cli.experiment import exit_code
from redline.model import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, Failure, Metric, Report, Run, Stream
from redline.model.failures import FirstFailure
from redline.render import RENDERERS, summary
from redline.render.terminal import render
from redline.report.outcomes import outcomes
from tests.fakes.compared import Cost, compared_run
from tests.unit.running.test_duet import run_with_duets

MS = 1_000_000
REFUSED = Failure(
    stage="load", kind="engine", message="targets.0.way: Extra inputs are not permitted", hint="report it"
)
WRONG = Failure(stage="verify", kind="wrong_answer", message="B answered search wrongly: status 404", hint="fix it")
MALFORMED = FirstFailure(outcome="malformed", reason="the size of a chunk is not a number", time_ns=9)


def failed(recording: DuetRecording, failure: Failure = REFUSED) -> DuetRecording:
    return recording.model_copy(update={"traffic": None, "failure": failure})


def losing(run: Run, how: Callable[[DuetRecording], DuetRecording] = failed, first: int | None = None) -> Run:
    """The run in which the first starts are lost: all unless it is said how many."""
    lost = len(run.duets) if first is None else first
    duets = (how(duet) if at < lost else duet for at, duet in enumerate(run.duets))
    return run.model_copy(update={"duets": tuple(duets)})


def shown(report: Report) -> dict[str, str]:
    """The report in every format for people, with single spaces."""
    terminal = render(summary(report), Console(width=100)).plain
    written = {form: RENDERERS[form](report).decode() for form in ("md", "html")}
    plain = {"terminal": terminal, **{form: re.sub(r"<[^>]*>|[*\\\\]", "", text) for form, text in written.items()}}
    return {form: " ".join(text.split()) for form, text in plain.items()}


def refused(report: Report) -> set[str]:
    return {comparison.refused for comparison in report.comparisons if comparison.metric is Metric.CPU_PER_REQUEST}


def test_lost_starts_of_a_run_with_trials_are_in_every_format_and_in_the_exit_code() -> None:
    """Its servers have trials too, by which it compares them: that the duets are missing is said all the same."""
    run = losing(run_with_duets())
    report = build_report(run)
    lost = report.lost_starts[0]
    assert (lost.lost, lost.made, lost.reason, lost.hint) == (6, 6, REFUSED.message, "report it")
    assert sum(starts.lost for starts in report.lost_starts) == len(run.duets)
    for form, text in shown(report).items():
        assert "starts of duets are lost" in text, form
        assert "6 of 6 starts of rust.hyper | rust.axum" in text, form
        assert REFUSED.message in text, form
    assert json.loads(RENDERERS["json"](report))["lost_starts"][0]["lost"] == 6
    rows = [row["findings"] for row in csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode()))]
    assert f"lost: 6 of 6 starts: {REFUSED.message}" in rows
    assert exit_code([report]) == exits.COULD_NOT_RUN
    assert {said.state for said in outcomes(report) if said.name == "starts"} == {"unknown"}
    assert exit_code([build_report(run_with_duets())]) == exits.DONE


def test_some_lost_starts_are_said_and_the_others_compare() -> None:
    for whole in (run_with_duets(), compared_run()):
        report = build_report(losing(whole, first=1))
        (lost,) = report.lost_starts
        assert (lost.lost, lost.made, lost.all) == (1, 6, False)
        assert exit_code([report]) == exits.DONE
        for form, text in shown(report).items():
            assert "1 start of duets is lost" in text, form
        duet = next(one.duet for one in report.comparisons if one.duet and one.cell_id == lost.cell_ids[1])
        (said,) = (found.message for found in duet.findings if found.kind == "failed-starts")
        assert said == "1 of 6 starts failed: targets.0.way: Extra inputs are not permitted."


def test_a_run_without_lost_starts_says_nothing_of_them() -> None:
    report = build_report(compared_run())
    assert report.lost_starts == ()
    assert "lost_starts" not in json.loads(RENDERERS["json"](report))
    assert all("lost" not in text for form, text in shown(report).items() if form != "html")


def test_a_request_that_was_given_up_keeps_no_others_from_being_compared() -> None:
    run = compared_run({"home": Cost(), "search": Cost()})
    cells = run.manifest.plan.cells
    one = losing(run, lambda made: failed(made, WRONG) if cells[made.cell_ids[0]].scenario.name == "search" else made)
    report = build_report(one)
    (lost,) = report.lost_starts
    assert (lost.scenario, lost.lost, lost.given_up) == ("search", 6, True)
    assert exit_code([report]) == exits.DONE
    (nothing,) = build_report(losing(compared_run(), lambda made: failed(made, WRONG))).lost_starts
    assert not nothing.given_up


def slow(recording: DuetRecording, lasts_ns: int = 400 * MS, blocks: int = 2) -> DuetRecording:
    """The start of servers whose answers take so long that no block is over in the time for measuring."""

    def late(at: int, slice_: DuetSlice) -> DuetSlice:
        times = {"start_ns": at * lasts_ns, "end_ns": (at + 1) * lasts_ns, "measured": 0, "completed": 64}
        return slice_.model_copy(update=times)

    def block(block_: DuetBlock) -> DuetBlock:
        slices = tuple(late(at, slice_) for at, slice_ in enumerate(block_.slices))
        return block_.model_copy(update={"phase": "warmup", "slices": slices})

    return changed(recording, lambda traffic: {"blocks": tuple(map(block, traffic.blocks[:blocks]))})


def changed(recording: DuetRecording, how: Callable[[DuetTraffic], dict[str, object]]) -> DuetRecording:
    assert recording.traffic is not None
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=how(recording.traffic))})


SLOW = "answers take too long: until all were there, a slice lasted A 400 ms, B 400 ms, and a block 2.40 s"


@pytest.mark.parametrize(
    ("lasts_ns", "hint"),
    [
        (400 * MS, "give --for 5m"),
        (50 * MS, "give --for 30s"),
        (4000 * MS, "such answers take too long for a comparison in turn: `redline run` compares trials of each"),
    ],
)
def test_slow_answers_say_how_long_they_take_and_which_time_is_enough(lasts_ns: int, hint: str) -> None:
    run = losing(compared_run(), lambda made: slow(made, lasts_ns))
    report = build_report(run)
    error = unanswered(run, report)
    assert error is not None
    assert error.hint.startswith(hint)
    if lasts_ns == 400 * MS:
        assert error.message == SLOW
        assert refused(report) == {f"no start with both was measured: {SLOW}"}


def test_long_conversations_may_have_a_third_of_the_budget() -> None:
    """A block takes 24 s: six and one of the warm-up need 168 s."""
    run = losing(compared_run(), lambda made: slow(made, 4000 * MS))
    plan = run.manifest.plan
    talks = [
        scenario.model_copy(update={"request": scenario.request.model_copy(update={"stream": Stream(events="sse")})})
        for scenario in plan.suite.scenarios
    ]
    plan = plan.model_copy(update={"suite": plan.suite.model_copy(update={"scenarios": tuple(talks)})})
    run = run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})
    error = unanswered(run, build_report(run))
    assert error is not None
    assert error.hint.startswith("give --for 10m")


def test_slow_answers_in_a_run_name_the_time_of_its_load() -> None:
    (lost, *_) = build_report(losing(run_with_duets(), slow)).lost_starts
    assert lost.hint == "measure for 3.20 s: `for` of the load"


def going_wrong(recording: DuetRecording) -> DuetRecording:
    """The start of a server B that fails in its warm-up, in which the load ends."""

    def wrong(slices: Sequence[DuetSlice]) -> tuple[DuetSlice, ...]:
        change = {"completed": 10, "failed": 90}
        return tuple(slice_.model_copy(update=change) if slice_.target == 1 else slice_ for slice_ in slices)

    def ended(traffic: DuetTraffic) -> dict[str, object]:
        blocks = (
            block.model_copy(update={"phase": "warmup", "slices": wrong(block.slices)}) for block in traffic.blocks
        )
        targets = [target.model_copy(update={"counts": target.counts.merged(())}) for target in traffic.targets]
        targets[1] = targets[1].model_copy(update={"failures": (MALFORMED,)})
        return {"blocks": tuple(blocks), "targets": tuple(targets)}

    return changed(recording, ended)


def test_a_server_that_went_wrong_before_anything_was_measured_is_named_with_outcome_and_rule() -> None:
    run = losing(compared_run(), going_wrong)
    error = unanswered(run, build_report(run))
    assert error is not None
    assert error.message == (
        "3,600 of 4,000 requests to B failed: first malformed: the size of a chunk is not a number"
    )
    assert error.hint == "fix what the failure names"


def test_a_start_without_any_block_says_so() -> None:
    run = losing(compared_run(), lambda made: changed(made, lambda _: {"blocks": ()}))
    (lost,) = build_report(run).lost_starts
    assert lost.reason == "no block of slices was completed"


def test_an_interrupt_loses_no_start() -> None:
    run = losing(compared_run(), lambda made: changed(made, lambda _: {"blocks": (), "ended": "interrupted"}))
    assert build_report(run).lost_starts == ()


@pytest.mark.parametrize("kept", [0, 1, 3, 19])
def test_a_server_without_right_answers_after_its_warm_up_is_no_traceback(kept: int) -> None:
    """Measured blocks of which no cost of B is known, after a warm-up of which all costs are."""

    def silent(traffic: DuetTraffic) -> dict[str, object]:
        warm = tuple(block.model_copy(update={"phase": "warmup"}) for block in traffic.blocks[:kept])
        nothing = {"measured": 0, "completed": 0, "failed": 5}
        wrong = tuple(
            block.model_copy(
                update={
                    "slices": tuple(
                        slice_.model_copy(update=nothing) if slice_.target == 1 else slice_ for slice_ in block.slices
                    )
                }
            )
            for block in traffic.blocks[kept:]
        )
        return {"blocks": (*warm, *wrong)}

    for run in (
        losing(compared_run(), lambda made: changed(made, silent)),
        losing(run_with_duets(), lambda made: changed(made, silent)),
    ):
        report = build_report(run)
        assert all(one.verdict is None for one in report.comparisons if one.duet or "B" in one.cell_id)
