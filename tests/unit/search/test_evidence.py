"""What a probe showed: its counts, its capacity, its backlog, and where it stood still. Values are by hand."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from redline.model import Histogram
from redline.search import Evidence, ProbeSlice, growth, hopeless
from redline.search.evidence import (
    Capacity,
    _grows_throughout,
    answering,
    batch_means,
    by_rate,
    capacity_of,
    overloaded,
    slows,
    stall_ns,
)

MS = 1e6


def part(due: int, answered: int, *, errors: int = 0, seconds: float = 0.1, ms: float = 1.0) -> ProbeSlice:
    return ProbeSlice(seconds, due, answered, errors, Histogram.of(np.full(answered + errors, ms * MS)))


def probe(*slices: ProbeSlice, rate: float = 1000.0) -> Evidence:
    return Evidence(rate, slices)


def test_rates_are_of_the_time_with_load() -> None:
    seen = probe(part(100, 90, errors=6), part(100, 80, errors=10, seconds=0.3), part(0, 14, seconds=0.0))
    assert seen.slices[0].ended == 96
    assert (seen.seconds, seen.due, len(seen.timed)) == pytest.approx((0.4, 200, 2))
    assert seen.offered_per_s == pytest.approx(500)
    assert seen.answered_per_s == pytest.approx(425)  # 90 + 80: the 14 came after the load
    assert seen.response.count == 200
    assert probe(part(5, 5, seconds=0.0)).offered_per_s == probe(part(5, 5, seconds=0.0)).answered_per_s == 0


def test_what_became_known_after_the_load_is_spread_over_it() -> None:
    seen = probe(part(100, 90), part(100, 80), part(0, 20, errors=10, seconds=0.0))
    assert seen.counted("answered").tolist() == [90, 80]
    assert seen.all_counted("answered").tolist() == [100, 90]
    assert seen.all_counted("errors").tolist() == [5, 5]
    assert probe(part(0, 7, seconds=0.0)).all_counted("answered").tolist() == []


def test_the_backlog_is_what_fell_due_and_has_not_ended() -> None:
    seen = probe(part(10, 4, errors=1), part(10, 10), part(10, 12))
    assert seen.backlog().tolist() == [5, 5, 3]


def test_rates_within_half_a_percent_are_one_rate() -> None:
    assert by_rate([1006.0, 1000.0, 1004.9, 500.0], lambda rate: rate) == [[500.0], [1000.0, 1004.9], [1006.0]]


def test_a_capacity_combines_chance_and_tolerance_as_a_hypotenuse() -> None:
    assert Capacity(1000.0, 3.0, 4.0).sd_per_s == pytest.approx(5.0)


def test_the_capacity_of_an_overloaded_probe_is_what_it_answered() -> None:
    counts = [90, 110] * 10
    seen = probe(*(part(200, count) for count in counts))
    found = capacity_of(seen)
    assert found is not None
    assert found.per_s == pytest.approx(1000)
    # In batches of two slices nothing varies: chance is half of Poisson's, 0.5 sqrt(2000) / 2 s.
    assert found.chance_per_s == pytest.approx(0.5 * sqrt(2000) / 2)
    # Twice as much fell due as was answered: 0.5% and 2% more.
    assert found.tolerance_per_s == pytest.approx(25)


def test_a_capacity_varies_as_its_batches_do() -> None:
    counts = [50, 50, 150, 150] * 5
    found = capacity_of(probe(*(part(100, count) for count in counts)))
    assert found is not None
    assert found.chance_per_s == pytest.approx(np.std([500, 1500] * 5, ddof=1) / sqrt(10))
    assert found.tolerance_per_s == pytest.approx(5), "nothing beyond the capacity fell due"


def test_few_slices_or_no_answers_show_no_capacity() -> None:
    assert capacity_of(probe(*[part(100, 50)] * 9)) is None
    assert capacity_of(probe(*[part(100, 50)] * 10)) is not None
    assert capacity_of(probe(*[part(100, 0)] * 10)) is None


def test_batches_are_stretches_of_equal_length() -> None:
    assert batch_means(np.array([1.0, 3.0, 5.0, 7.0]), 2).tolist() == [2, 6]
    assert batch_means(np.array([1.0, 3.0]), 5).tolist() == [1, 3]


def test_growth_is_of_the_backlog_by_second_and_by_request() -> None:
    found = growth([part(100, 90), part(100, 70)])
    assert found.per_s == pytest.approx(40 / 0.2)
    assert found.share == pytest.approx(0.2)
    # Steps of 10 and 30 spread by 14.1: the mean of 20 is 2 standard errors of 14.1 / sqrt(2) away.
    assert found.errors == pytest.approx(2.0)
    # Steps that are equal spread as chance has due requests: by sqrt(100).
    assert growth([part(100, 80)] * 4).errors == pytest.approx(20 / (10 / 2))


@pytest.mark.parametrize("slices", [[part(100, 50)], [part(0, 0)] * 3, [part(100, 50, seconds=0.0)] * 3])
def test_what_lasts_no_time_or_has_nothing_due_does_not_grow(slices: list[ProbeSlice]) -> None:
    assert (growth(slices).per_s, growth(slices).share, growth(slices).errors) == (0, 0, 0)


def test_two_slices_show_growth() -> None:
    assert growth([part(100, 50)] * 2).share == 0.5
    assert growth([part(1, 0), part(0, 0)]).share == 1


@pytest.mark.parametrize(("due", "left", "grows"), [(10_000, 200, True), (10_000, 199, False), (40_000, 800, True)])
def test_less_than_two_percent_left_over_is_not_hopeless(due: int, left: int, *, grows: bool) -> None:
    assert hopeless([part(due, due - left)] * 20) is grows


@pytest.mark.parametrize(("left", "grows"), [(12, True), (10, False)])
def test_growth_must_be_five_standard_errors_from_chance(left: int, *, grows: bool) -> None:
    # 20 slices of 100 spread by 10 at least: 11.2 left over in each are 5 standard errors.
    assert hopeless([part(100, 100 - left)] * 20) is grows


def test_ten_slices_are_enough_and_nine_too_few() -> None:
    assert hopeless([part(1000, 500)] * 11)
    assert not hopeless([part(1000, 500)] * 9)


def test_a_backlog_that_stays_in_a_quarter_is_not_hopeless() -> None:
    grows, stays = [part(1000, 500)] * 5, [part(1000, 1000)] * 5
    assert hopeless(grows * 4)
    for at in range(4):
        assert not hopeless([*grows * at, *stays, *grows * (3 - at)])


def test_slices_count_from_the_first_outcome_and_a_long_response_on() -> None:
    silent, answers = part(100, 0), part(100, 100, ms=250)
    slices = [silent] * 3 + [answers] * 20
    # 250 ms are reached within the third slice after the first outcome.
    assert len(answering(slices)) == 17
    assert answering([silent] * 4) == []


def test_of_too_few_slices_after_a_long_response_all_count_only_where_much_is_left_and_no_more_ends() -> None:
    def since(left: int, later: int, length: int = 12) -> int:
        half = length // 2
        slow = [part(1000, 1000 - left, ms=500)] * half + [part(1000, 1000 - left + later, ms=500)] * half
        return len(answering(slow))

    assert since(500, 0) == 12
    assert since(299, 0) == 6, "less than three tenths are left"
    assert since(301, 0) == 12
    # 6 x 500 end in each half: one standard deviation of their difference is sqrt(6000) = 77, or 12.9 a slice.
    assert since(500, 12) == 12
    assert since(500, 14) == 6
    assert since(500, 0, 16) == 10, "enough slices are left"


def test_a_server_stood_still_while_requests_waited_and_none_ended() -> None:
    works, stands = part(10, 10), part(10, 0)
    caught_up = part(10, 40)
    seen = probe(*[works] * 5, *[stands] * 3, caught_up, *[works] * 5)
    assert stall_ns(seen) == 300_000_000
    assert stall_ns(probe(*[works] * 9)) == 0
    # One slice without an answer lacks 10: as many as end in another.
    assert stall_ns(probe(*[works] * 5, stands, part(10, 20), *[works] * 5)) == 100_000_000
    few = [part(9, 9)] * 5
    assert stall_ns(probe(*few, part(9, 0), part(9, 9), *few)) == 0, "nine answers may be missing by chance"


def test_a_server_that_answers_nothing_stood_still_all_the_time() -> None:
    assert stall_ns(probe(*[part(10, 0)] * 7)) == 700_000_000


def test_of_several_stalls_the_longest_counts() -> None:
    works, stands, caught_up = part(100, 100), part(100, 0), part(100, 300)
    seen = probe(*[works] * 3, stands, stands, caught_up, *[works] * 3, stands, part(100, 200), *[works] * 3)
    assert stall_ns(seen) == 200_000_000


@pytest.mark.parametrize(("ms", "stalled"), [(100, True), (160, False)])
def test_silence_before_the_first_answer_is_a_stall_of_a_fast_server_alone(ms: float, *, stalled: bool) -> None:
    # A quarter of 500 ms: who answers within 125 ms was not silent for want of time.
    seen = probe(*[part(100, 0)] * 5, part(100, 600, ms=ms), *[part(100, 100, ms=ms)] * 10)
    assert stall_ns(seen) == (500_000_000 if stalled else 0)


def test_a_backlog_grows_throughout_where_each_quarter_leaves_two_percent() -> None:
    assert _grows_throughout([part(1000, 980)] * 8)
    assert not _grows_throughout([part(1000, 981)] * 8)
    assert not _grows_throughout([*[part(1000, 500)] * 6, *[part(1000, 1000)] * 2])


def test_answers_slow_down_where_the_last_quarter_takes_twice_as_long() -> None:
    def seen(last_ms: float) -> Evidence:
        return probe(*[part(100, 100, ms=10)] * 6, *[part(100, 100, ms=last_ms)] * 2)

    assert slows(seen(21))
    assert not slows(seen(19.9))
    assert slows(probe(*(part(10, 10, ms=ms) for ms in (10, 10, 10, 30)))), "four slices have quarters"
    assert not slows(probe(*(part(10, 10, ms=ms) for ms in (10, 10, 30))))


def test_a_recording_is_overloaded_only_where_answers_slow_down_too() -> None:
    grows = probe(*[part(1000, 900)] * 40)
    assert overloaded(grows)
    assert not overloaded(replace(grows, speed=1.0))
    slower = replace(grows, slices=tuple(part(1000, 900, ms=10 + at) for at in range(40)), speed=1.0)
    assert overloaded(slower)
    assert overloaded(replace(probe(part(1, 1)), hopeless=True))
