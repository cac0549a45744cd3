"""Patterns of times are named where they are, and nothing is said of times that only look alike."""

import numpy as np
import pytest

from redline.findings import Pace, judge, judge_search, signatures
from redline.model import Finding, Grade, Histogram, Recording
from redline.model.traffic import Outcomes
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording
from tests.unit.findings.test_across import adding

MS = 1_000_000
CELL = simulated_cell(load=SATURATE)
KINDS = ("timer-multiples",)


def recorded(intervals: list[list[float]]) -> Recording:
    """A trial of intervals with these response times in milliseconds."""
    recording = simulated_recording(CELL)
    seen = recording.traffic
    assert seen is not None
    template = next(one for one in seen.intervals if one.phase == "measure")
    width = (seen.measure_end_ns - seen.measure_start_ns) // len(intervals)
    made = []
    for index, response in enumerate(intervals):
        n, times = len(response), Histogram.of([value * MS for value in response])
        counts = template.counts.model_copy(update={"due": n, "completed": n, "outcomes": Outcomes(ok=n)})
        start = seen.measure_start_ns + index * width
        about = {"index": index, "start_ns": start, "end_ns": start + width, "ticks": ()}
        made.append(template.model_copy(update={"response": times, "service": times, "counts": counts, **about}))
    whole = Histogram.merged(one.response for one in made)
    counts = template.counts.model_copy(
        update={"due": whole.count, "completed": whole.count, "outcomes": Outcomes(ok=whole.count)}
    )
    update = {"response": whole, "service": whole, "counts": counts, "intervals": tuple(made)}
    return recording.carrying(seen.model_copy(update=update))


def found(recording: Recording) -> list[Finding]:
    return [finding for finding in judge(CELL, recording) if finding.kind in KINDS]


def test_multiples_of_a_timer_are_named_with_its_period() -> None:
    rng = np.random.default_rng(1)
    times = 50.0 * rng.integers(1, 4, 600) + rng.uniform(0.2, 3.0, 600)
    (finding,) = found(recorded([times.tolist()]))
    assert (finding.kind, finding.grade) == ("timer-multiples", Grade.NOTE)
    assert "100% of the requests took multiples of 50.0 ms (50.0 ms, 100 ms, 150 ms), and hardly any" in finding.message


def test_a_timer_that_only_some_requests_wait_for_is_named_with_their_share() -> None:
    rng = np.random.default_rng(2)
    waiting = 20.0 * rng.integers(1, 3, 300) + rng.uniform(0.2, 1.0, 300)
    (finding,) = found(recorded([[*rng.uniform(0.2, 3.0, 700), *waiting]]))
    assert finding.message.startswith("30% of the requests took multiples of 20.0 ms (20.0 ms, 40.0 ms)")


@pytest.mark.parametrize(
    "times",
    [
        np.random.default_rng(3).uniform(50, 53, 600),  # one length alone
        np.random.default_rng(4).exponential(40, 600),
        np.random.default_rng(5).lognormal(3, 0.3, 600),
        50.0 * np.random.default_rng(6).integers(1, 4, 600) + np.random.default_rng(7).uniform(0, 15, 600),
        np.concatenate([np.random.default_rng(8).uniform(50, 53, 600), np.full(15, 101.0)]),
        np.concatenate([np.random.default_rng(9).uniform(0.2, 3, 600), np.full(30, 51.0), np.full(30, 101.0)]),
    ],
)
def test_other_times_are_no_multiples(times: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> None:
    assert found(recorded([times.tolist()])) == []


def test_no_period_that_fits_is_ruled_out_before_it_is_looked_at() -> None:
    """Times at and around the multiples of each period, among others: what is ruled out is no period of theirs."""
    rng, patterns = np.random.default_rng(3), 0
    for _ in range(20):
        for period in signatures._PERIODS.tolist():
            off = rng.exponential(rng.choice([0.001, 0.01, 0.05]), 200) - rng.choice([0, 0.015])
            near = period * (rng.integers(1, 5, 200) + off)
            others = rng.exponential(period / 8, 40)
            values, counts = Histogram.of(np.maximum([*near, *others], 1)).buckets()
            fitting = {one for one in signatures._PERIODS.tolist() if signatures._multiples(values, counts, one)}
            assert fitting <= set(signatures._possible(values, counts))
            patterns += len(fitting)
    assert patterns > 100


TEN_MS = Histogram.of([10 * MS] * 30)


def paces(
    workers: float = 4,
    *,
    busy: float | None = 0.1,
    held: float = 0.0,
    light: float = 0.2,
    times: Histogram = TEN_MS,
) -> list[Pace]:
    """Probes of a server with a pool of these workers, each of which a request holds for 10 ms."""
    most = workers / 0.01
    late = Histogram.of([500 * MS] * 100)
    return [
        Pace(overloaded=True, answered_per_s=0.9 * most, response=late, busy=0.01),
        Pace(overloaded=True, answered_per_s=most, response=late, busy=busy, held=held),
        Pace(overloaded=False, answered_per_s=0.9 * most, response=late, busy=0.09),
        Pace(overloaded=False, answered_per_s=light * most, response=times, busy=0.02),
    ]


def pooled(*args: float, **changed: object) -> list[str]:
    return [finding.message for finding in judge_search(CELL, paces(*args, **changed))]  # type: ignore[arg-type]


def test_a_pool_of_workers_is_counted_by_what_it_answers_at_most() -> None:
    (finding,) = judge_search(CELL, paces(4))
    assert (finding.kind, finding.grade, finding.position) == ("pool-of-workers", Grade.NOTE, None)
    assert finding.message == (
        "The server answers no more than 400 /s, and uses 10% of its cores then. Under light load a request takes "
        "10.0 ms, so it works on 4 at a time: a pool of 4 workers, threads or connections, its own or of what it "
        "waits for."
    )
    assert "works on 1 at a time: a single worker, or a lock, its own" in pooled(1)[0]
    assert "works on 1 at a time" in pooled(0.9)[0]
    assert "a pool of about 4.5 workers" in pooled(4.5)[0]
    assert "a pool of about 120 workers" in pooled(123.4)[0]


def test_no_pool_is_seen_where_another_cause_is_as_likely() -> None:
    assert pooled(4, busy=0.49) != []
    assert pooled(4, busy=0.51) == [], "its cores may limit it"
    assert pooled(4, busy=None) == []
    assert pooled(4, busy=0.3, held=0.19) != []
    assert pooled(4, busy=0.3, held=0.21) == [], "it wanted more, and others had its cores"
    assert pooled(4, light=0.3) != []
    assert pooled(4, light=0.31) == [], "requests may wait there already"
    assert pooled(0.84) == [], "less than one at a time: a rate limit, or a quota"
    assert pooled(4, times=Histogram.of([10 * MS] * 6 + [13 * MS] * 14)) != [], "13 ms are the median"
    assert pooled(4, times=Histogram.of([10 * MS] * 11 + [13 * MS] * 9)) == [], "requests are not the same work"
    assert pooled(4, times=Histogram.of([10 * MS] * 11 + [12.4 * MS] * 9)) != []
    assert pooled(4, times=Histogram.of([10 * MS] * 4)) == [], "too few to know"
    assert judge_search(CELL, [pace for pace in paces() if pace.overloaded]) == ()
    assert judge_search(CELL, [pace for pace in paces() if not pace.overloaded]) == ()


@pytest.mark.parametrize(("throttled", "known"), [(4.0, True), (6.0, False)])
def test_no_pool_is_seen_where_a_quota_sets_the_pace(throttled: float, known: bool) -> None:
    recording = adding(quota_periods=10.0, throttled_periods=throttled)(simulated_recording(CELL))
    assert (Pace.of(recording, TEN_MS, 400.0, overloaded=True).busy is not None) is known
