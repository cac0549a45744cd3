"""Objectives about messages, where invalid findings leave bounds of times, or nothing."""

from unittest.mock import patch

import pytest

from redline.analysis import trials
from redline.findings import RULES
from redline.model import Cell, Finding, FindingKind, Grade, Histogram, Load, Metric, Stream, StreamTraffic
from redline.model.streams import Good
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD
from tests.fakes.loads import load_of
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

FIRST, GAP = Good(first_message_ns=1_000_000), Good(gap_ns=1_000_000)
BOTH = Good(first_message_ns=1_000_000, gap_ns=1_000_000)
TIMES = Histogram.of([2_000_000] * 5000)


def conversations(good: Good | None, load: Load) -> Cell:
    cell = simulated_cell(load=load)
    request = cell.scenario.request.model_copy(update={"stream": Stream(events="sse", good=good)})
    return cell.model_copy(update={"scenario": cell.scenario.model_copy(update={"request": request})})


def judged(
    text: str, kind: FindingKind, *, good: Good = GAP, share: float = 0.6, load: Load = STEADY, blurred: int = 0
) -> str:
    """The state of an objective, and why, where a finding makes the load invalid, and the client was late by 5 ms."""
    cell = conversations(good, load)
    recording = simulated_recording(cell, GOOD)
    traffic = recording.traffic
    assert traffic is not None
    due = traffic.counts.due
    streams = StreamTraffic(
        begun=due,
        first_event=TIMES,
        gaps=TIMES,
        slowest_gap=TIMES,
        per_message=TIMES,
        push=TIMES,
        jitter=TIMES,
        good=round(share * due),
        blurred=blurred,
    )
    late = {"streams": streams, "lateness": Histogram.of([5_000_000] * due)}
    recording = recording.model_copy(update={"traffic": traffic.model_copy(update=late)})
    finding = Finding(kind=kind, grade=Grade.INVALID, message="It is.", advice="Mend it.", cell_id=cell.id)
    with patch.object(trials, "judge_trial", lambda _cell, _trial: (finding,)):
        (result,) = load_of(cell, recording, *parse_objectives(text)).objectives
    return " ".join(filter(None, (result.state, result.reason)))


@pytest.mark.parametrize("times", ["gap", "slowest-gap", "per-message"])
def test_a_late_client_leaves_times_between_messages_known(times: str) -> None:
    assert judged(f"{times} p50 < 1ms", "send-lateness") == "missed"
    assert judged(f"{times} p50 < 3ms", "send-lateness") == "met"


def test_a_late_client_may_be_why_a_first_message_is_late() -> None:
    assert judged("first-message p50 < 3ms", "send-lateness") == "met"
    assert judged("first-message p50 < 1ms", "send-lateness").startswith("not known the engine was late")


def test_a_late_client_leaves_the_share_known_that_gaps_make_good() -> None:
    assert judged("goodput > 50%", "send-lateness", good=GAP) == "met"
    assert judged("goodput > 70%", "send-lateness", good=GAP) == "missed"


@pytest.mark.parametrize("good", [FIRST, BOTH, Good(response_ns=1)])
def test_a_late_client_only_makes_fewer_conversations_good(good: Good) -> None:
    assert judged("goodput > 50%", "send-lateness", good=good) == "met"
    assert judged("goodput > 70%", "send-lateness", good=good) == "not known hidden by send-lateness"


def test_where_requests_have_no_schedule_a_late_client_leaves_no_bound() -> None:
    """Users who come later load the server less."""
    assert judged("goodput > 50%", "send-lateness", good=FIRST, load=SATURATE) == "not known hidden by send-lateness"


def test_no_conversation_is_good_of_which_nothing_says_what_that_is() -> None:
    cell = conversations(None, STEADY)
    recording = simulated_recording(cell, GOOD)
    traffic = recording.traffic
    assert traffic is not None
    streams = StreamTraffic(begun=traffic.counts.due, first_event=TIMES, gaps=TIMES)
    recording = recording.model_copy(update={"traffic": traffic.model_copy(update={"streams": streams})})
    (result,) = load_of(cell, recording, *parse_objectives("goodput > 90%")).objectives
    assert (result.state, result.actual) == ("not known", None)
    assert result.reason == "no conversation that was due says by `good` what makes it good"


def test_findings_about_rates_alone_leave_the_share_of_good_conversations_known() -> None:
    assert set(RULES["answered-late"].touches) == {"throughput", "CPU and memory"}
    assert judged("goodput > 50%", "answered-late") == "met"
    assert judged("goodput > 70%", "answered-late") == "missed"


@pytest.mark.parametrize("kind", ["unsteady", "client-saturated", "littles-law"])
@pytest.mark.parametrize("text", ["goodput > 50%", "goodput > 70%", "gap p50 < 3ms", "gap p50 < 1ms"])
def test_where_times_are_not_known_neither_are_gaps_and_goodput(kind: FindingKind, text: str) -> None:
    assert judged(text, kind) == f"not known hidden by {kind}"


LATE_READS = "not known the engine read messages late: give it a core of its own"


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("goodput > 59.9%", LATE_READS),
        ("goodput > 50%", "met"),
        ("gap p50 < 3ms", "met"),
        ("gap p50 < 1ms", "missed"),
        ("push p99 < 3ms", LATE_READS),
        ("jitter p50 < 1ms", "missed"),
    ],
)
def test_messages_that_are_read_late_hide_only_what_they_may_decide(text: str, state: str) -> None:
    assert judged(text, "late-reads", blurred=350) == state


def test_other_findings_hide_times_of_messages_that_are_read_late_too() -> None:
    assert judged("gap p50 < 3ms", "unsteady", blurred=350) == "not known hidden by unsteady"


@pytest.mark.parametrize(
    ("text", "good", "state"),
    [("first-message p50 < 3ms", GAP, "met"), ("p50 < 1s", GAP, "met"), ("goodput > 50%", FIRST, "met")],
)
def test_messages_that_are_read_late_leave_the_rest_known(text: str, good: Good, state: str) -> None:
    assert judged(text, "late-reads", good=good).startswith(state)


def test_the_report_of_a_load_that_read_messages_late_has_the_quantiles_that_are_sure() -> None:
    """21 of 610 messages are in doubt, and 579 gaps are 10 ms."""
    cell = conversations(GAP, STEADY)
    recording = simulated_recording(cell, GOOD)
    traffic = recording.traffic
    assert traffic is not None
    gaps = Histogram.of([10_000_000] * 579 + [20_000_000] * 21)
    streams = StreamTraffic(begun=10, counted=610, first_event=Histogram.of([1e6] * 10), gaps=gaps, blurred=21)
    update = {"traffic": traffic.model_copy(update={"streams": streams})}
    report = load_of(cell, recording.model_copy(update=update))
    (finding,) = (finding for finding in report.findings if finding.kind == "late-reads")
    assert finding.grade is Grade.INVALID
    assert finding.message.endswith(" for the engine. So these are not known: gap p99.")
    assert report.streams is not None
    known = {point.q: point.ns for point in report.streams.gaps}
    assert known[0.5] == pytest.approx(10_000_000, rel=0.001)
    assert 0.95 not in known
    assert 1.0 not in known
    assert report.known[Metric.GAP_P50].value == pytest.approx(10_000_000, rel=0.001)
