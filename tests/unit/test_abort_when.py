"""Loads that end early because a condition held for a time: what is written, when it holds, and what is kept."""

import re

import pytest

from redline.cli import exits
from redline.cli.commands.load import exit_code
from redline.cli.load_view import load_result, load_section
from redline.errors import WrongValueError
from redline.model import Counts, Histogram, Interval, Outcomes
from redline.running.aborting import AskedAbort
from redline.stats.abort import AbortJudge
from redline.suite.schema.abort_when import parse_abort_rule
from tests.fakes.behaviour import GOOD
from tests.fakes.probed import cell
from tests.fakes.recordings import simulated_recording
from tests.unit.test_terminal_views import shown

STEP_NS = 500_000_000


def interval(at: int, *, ok: int = 100, failed: int = 0, ms: float = 1.0, phase: str = "measure") -> Interval:
    """The interval of half a second with this number, from 0."""
    outcomes = Outcomes(ok=ok, unexpected_status=failed)
    times = Histogram.of([ms * 1e6] * outcomes.total)
    return Interval.model_validate(
        {
            "phase": phase,
            "index": at,
            "start_ns": at * STEP_NS,
            "end_ns": (at + 1) * STEP_NS,
            "counts": Counts(due=outcomes.total, outcomes=outcomes),
            "response": times,
            "service": times,
            "lateness": times,
            "engine_cpu_ns": 1,
        }
    )


def judged(rule: str, *intervals: Interval) -> list[str]:
    judge = AbortJudge([parse_abort_rule(rule)])
    return [judge.seen(each) for each in intervals]


def test_it_holds_only_once_it_has_held_for_its_time() -> None:
    said = judged("errors > 5% for 1s", *(interval(at, failed=10) for at in range(3)))
    assert said[0] == ""
    assert said[1].startswith("errors > 5% for 1s: 9.1% of 220 requests failed in 1")


def test_an_interval_within_the_limit_begins_it_anew() -> None:
    failed = [10, 5, 10, 5, 10, 10]
    said = judged("errors > 5% for 1s", *(interval(at, failed=count) for at, count in enumerate(failed)))
    assert [bool(text) for text in said] == [False] * 5 + [True]


def test_an_interval_in_which_nothing_ended_shows_nothing() -> None:
    said = judged("errors > 5% for 1s", interval(0, ok=0), interval(1, failed=10), interval(2, ok=0), interval(3, ok=0))
    assert [bool(text) for text in said] == [False, False, True, True]


def test_a_few_requests_show_nothing() -> None:
    assert not any(judged("errors > 5% for 1s", *(interval(at, ok=0, failed=1) for at in range(9))))


def test_the_warm_up_does_not_count() -> None:
    assert not any(judged("errors > 5% for 1s", *(interval(at, failed=90, phase="warmup") for at in range(9))))


def test_a_percentile_is_judged_by_the_share_beyond_it() -> None:
    said = judged("p99 > 1s for 1s", interval(0, ms=2000), interval(1, ms=2000))
    assert said[1].startswith("p99 > 1s for 1s: p99 was 2.00 s")
    assert not any(judged("p99 > 1s for 1s", interval(0, ms=900), interval(1, ms=900)))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("errors > 5%", "does not say for how long"),
        ("errors < 5% for 3s", "above a limit"),
        ("erors > 5% for 3s", "`erors` is not a metric"),
        ("errors > 100% for 3s", "can never be"),
        ("errors > 5% for 0s", "at once"),
        ("often", "does not say when to abort"),
    ],
)
def test_what_is_wrong_is_named(text: str, says: str) -> None:
    with pytest.raises(WrongValueError, match=re.escape(says)):
        parse_abort_rule(text)


def test_what_was_measured_is_kept_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.kill", lambda *_: None)
    abort = AskedAbort([parse_abort_rule("errors > 5% for 1s")])
    abort.started(1)
    for at in range(2):
        abort.seen(interval(at, failed=10))
    loaded = cell()
    recording = simulated_recording(loaded, GOOD)
    assert recording.traffic is not None
    traffic, failure = abort.ended(recording.traffic)
    assert failure is None
    assert (traffic.ended, traffic.counts) == ("aborted", recording.traffic.counts)
    result = load_result("http://a/", loaded, recording.model_copy(update={"traffic": traffic}))
    assert exit_code(result) == exits.MISSED
    text = " ".join(" ".join(shown(load_section(result))).split())
    assert "aborted by errors > 5% for 1s: 9.1% of 220 requests failed" in text
    assert "(aborted)" in text
