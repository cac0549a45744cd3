"""What is sure of the times between messages of which some were read together and late."""

from itertools import pairwise
from math import inf

import numpy as np
import pytest

from redline.model import Histogram, StreamTraffic
from redline.stats.late_reads import ends_ns, is_sure, share_in_doubt

MS = 1_000_000


def seen(gaps_ms: list[float], blurred: int) -> StreamTraffic:
    times = Histogram.of([ms * MS for ms in gaps_ms])
    return StreamTraffic(
        begun=10,
        counted=len(gaps_ms) + 10,
        first_event=Histogram.of([MS] * 10),
        gaps=times,
        per_message=times,
        push=times,
        jitter=times,
        blurred=blurred,
    )


def test_a_median_of_500_sure_gaps_is_known_beside_21_in_doubt() -> None:
    streams = seen([10.0] * 579 + [20.0] * 21, 21)
    assert [is_sure(streams, "gap", q) for q in (0.5, 0.9, 0.99, 1.0)] == [True, True, False, False]


def test_a_median_is_not_known_where_as_many_ranks_make_a_difference() -> None:
    assert not is_sure(seen([0.0] * 310 + [10.0] * 290, 21), "gap", 0.5)
    assert is_sure(seen([0.0] * 350 + [10.0] * 250, 21), "gap", 0.5)


@pytest.mark.parametrize(("longer_ms", "sure"), [(10.19, True), (10.25, False)])
def test_a_quantile_is_known_up_to_a_fiftieth(longer_ms: float, sure: bool) -> None:
    assert is_sure(seen([10.0] * 310 + [longer_ms] * 290, 21), "gap", 0.5) is sure


@pytest.mark.parametrize(("q", "blurred"), [(0.5, 60), (0.9, 60), (0.95, 30), (0.99, 6), (0.999, 0), (1.0, 0)])
def test_few_in_doubt_for_what_lies_beyond_leave_a_quantile_as_it_was_measured(q: float, blurred: int) -> None:
    gaps = [10.0 + at / 10 for at in range(6000)]
    streams, more = seen(gaps, blurred), seen(gaps, blurred + 30)
    assert ends_ns(streams, "gap", q) == (streams.gaps.quantile_ns(q),) * 2
    low, high = ends_ns(more, "gap", q)
    assert low < streams.gaps.quantile_ns(q) <= high


def test_a_late_read_may_be_the_slowest_gap_of_each_stream_and_the_longest_of_all() -> None:
    """1,000 streams of 500 gaps of 20 ms, and in each a read of four messages at once: 0.8% of all messages."""
    gaps, slowest = Histogram.of([20 * MS] * 9_980 + [80 * MS] * 20), Histogram.of([80 * MS] * 20)
    streams = StreamTraffic(
        begun=20, counted=10_000, first_event=Histogram(), gaps=gaps, slowest_gap=slowest, blurred=80
    )
    assert is_sure(streams, "gap", 0.5)
    assert not any(is_sure(streams, "gap", q) for q in (0.999, 1.0))
    assert not any(is_sure(streams, "slowest-gap", q) for q in (0.5, 0.99))


def test_a_first_message_in_doubt_puts_all_the_jitter_of_its_stream_in_doubt() -> None:
    streams = seen([10.0] * 600, 1)
    assert share_in_doubt(streams, "jitter") == 0.1, "one of ten streams"
    assert share_in_doubt(streams, "gap") == 1 / 600
    assert share_in_doubt(streams, "first-message") == 0.0
    later = streams.model_copy(update={"first_event": Histogram()})
    assert share_in_doubt(later, "jitter") == share_in_doubt(later, "gap") < 0.01, "no schedule began here"


@pytest.mark.parametrize(
    ("name", "ends"),
    [
        ("first-message", (MS, MS)),
        ("gap", (9, 12)),
        ("push", (9, inf)),
        ("per-message", (9, inf)),
        ("jitter", (0, inf)),
    ],
)
def test_ends_beyond_the_longest_are_known_of_gaps_alone(name: str, ends: tuple[float, float]) -> None:
    """Messages that were read together have no gap longer than what was measured; others may be any time apart."""
    low, high = ends_ns(seen([9.0] * 500 + [12.0] * 10, 25), name, 0.99)
    expected = ends if name == "first-message" else tuple(end * MS for end in ends)
    assert (low, high) == pytest.approx(expected, rel=0.01)


def test_the_true_quantiles_lie_between_the_ends() -> None:
    """Messages in clusters are read one by one, or some of them together and late: then only the last has its time."""
    drawn = np.random.default_rng(7)
    for _ in range(50):
        arrived = np.cumsum(drawn.lognormal(mean=2.0, sigma=1.0, size=600)) * MS
        truth = Histogram.of(np.diff(arrived, prepend=0.0))
        read, blurred = arrived.copy(), 0
        for first in drawn.choice(np.arange(0, 590, 5), size=12, replace=False):
            many = int(drawn.integers(2, 5))
            read[first : first + many] = arrived[first + many - 1]
            blurred += many
        streams = StreamTraffic(
            counted=600, first_event=Histogram(), gaps=Histogram.of(np.diff(read, prepend=0.0)), blurred=blurred
        )
        for q in (0.1, 0.5, 0.9, 0.95, 0.99, 1.0):
            low, high = ends_ns(streams, "gap", q)
            assert low <= truth.quantile_ns(q) <= high, q
        ends = [ends_ns(streams, "gap", q) for q in (0.1, 0.5, 0.9)]
        assert all(lower <= upper for lower, upper in pairwise(low for low, _ in ends))
