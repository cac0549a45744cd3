"""A load ends early once a condition has held for its time, by what ended in it."""

from typing import Literal

from redline.model import Counts, DuetBlock, DuetSlice, Histogram, Interval, Outcomes
from redline.schema.abort_when import parse_abort_rule
from redline.stats.abort import AbortJudge, DuetAbortJudge

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
    said = judged("errors > 5% for 1s", *(interval(at, ok=0, failed=1) for at in range(11)))
    assert [bool(text) for text in said] == [False] * 9 + [True] * 2, "ten requests are enough"


def test_the_warm_up_does_not_count() -> None:
    assert not any(judged("errors > 5% for 1s", *(interval(at, failed=90, phase="warmup") for at in range(9))))


def test_a_percentile_is_judged_by_the_share_beyond_it() -> None:
    said = judged("p99 > 1s for 1s", interval(0, ms=2000), interval(1, ms=2000))
    assert said[1].startswith("p99 > 1s for 1s: p99 was 2.00 s")
    assert not any(judged("p99 > 1s for 1s", interval(0, ms=900), interval(1, ms=900)))


def test_short_intervals_are_judged_by_the_second() -> None:
    """One of ten requests fails, in every tenth of the intervals: each alone is within the limit, or far beyond it."""
    every = [interval(at, ok=9 if at % 10 else 0, failed=0 if at % 10 else 10) for at in range(60)]
    tenth = STEP_NS // 5
    short = [
        each.model_copy(update={"start_ns": at * tenth, "end_ns": (at + 1) * tenth}) for at, each in enumerate(every)
    ]
    assert any(judged("errors > 5% for 3s", *short))
    assert not any(judged("errors > 15% for 3s", *short))


def block(at: int, *failed: int, phase: Literal["warmup", "measure"] = "measure") -> DuetBlock:
    """A block of a tenth of a second, with 10 requests to each server, of which so many fail."""
    slices = tuple(
        DuetSlice(
            target=target,
            start_ns=at * STEP_NS // 5,
            end_ns=(at + 1) * STEP_NS // 5,
            measured_ns=1,
            measured=0,
            completed=10 - count,
            failed=count,
            cpu_ns=(),
            engine_cpu_ns=1,
        )
        for target, count in enumerate(failed)
    )
    return DuetBlock(index=at, phase=phase, slices=slices)


def test_a_duet_is_judged_by_each_server() -> None:
    rules = [parse_abort_rule("errors > 5% for 2s"), parse_abort_rule("p99 > 1ms for 1s")]
    judge = DuetAbortJudge(rules, ("A", "B", "the second A"))
    assert not any(judge.seen(block(at, 0, at % 2 * (at % 4 == 1), 0)) for at in range(60))
    judge = DuetAbortJudge(rules, ("A", "B", "the second A"))
    said = [judge.seen(block(at, 0, 2 * (at % 2), 0)) for at in range(30)]
    assert next(filter(None, said)) == "errors > 5% for 2s: 9.5% of 210 requests to B failed in 2.10 s"
    judge = DuetAbortJudge(rules, ("A", "B", "the second A"))
    assert not any(judge.seen(block(at, 5, 5, 5, phase="warmup")) for at in range(60))
