"""When a server counts as warm: each bound of the last level, held just below and just above."""

import numpy as np
import pytest

from redline.findings.warming import Timeline, is_warm, last_stretch

POINTS_PER_S = 4


def timeline(seconds: float, speeds: list[float] | None = None, kept_up: float | None = None) -> Timeline:
    n = round(seconds * POINTS_PER_S)
    ends = tuple(round((at + 1) * 1e9 / POINTS_PER_S) for at in range(n))
    values = np.zeros(n) if speeds is None else np.array(speeds)
    return Timeline(ends, values, None if kept_up is None else np.full(n, kept_up))


def cold_then_warm(cold_s: float, warm_s: float, *, by: float = 1.0) -> Timeline:
    cold, warm = round(cold_s * POINTS_PER_S), round(warm_s * POINTS_PER_S)
    noise = np.tile([0.004, -0.004, 0.0, 0.002, -0.002], 50)[: cold + warm]
    return timeline(cold_s + warm_s, [*(np.repeat([0.0, by], [cold, warm]) + noise)])


def test_a_steady_server_is_warm_after_five_seconds() -> None:
    assert not is_warm(timeline(4.75))
    assert is_warm(timeline(5.0))


def test_eight_points_are_needed_however_long_they_are() -> None:
    def slow(points: int) -> Timeline:
        return Timeline(tuple((at + 1) * 10**9 for at in range(points)), np.zeros(points))

    assert not is_warm(slow(7))
    assert is_warm(slow(8))


def test_a_level_must_last_twice_as_long_as_all_before_it() -> None:
    assert not is_warm(cold_then_warm(6, 11))
    assert is_warm(cold_then_warm(6, 13))


def test_a_level_must_last_five_seconds_itself() -> None:
    assert not is_warm(cold_then_warm(1, 4.5))
    assert is_warm(cold_then_warm(1, 5.5))


def test_an_overloaded_server_is_not_warm() -> None:
    assert not is_warm(timeline(6, kept_up=0.94))
    assert is_warm(timeline(6, kept_up=0.96))


def test_a_server_that_goes_on_getting_faster_is_not_warm() -> None:
    rising = timeline(8, [*np.linspace(0.0, 0.2, 32)])
    assert last_stretch(rising, hasty=True).moves
    assert not is_warm(rising)


def test_the_last_three_points_must_be_of_the_level() -> None:
    assert not is_warm(timeline(8, [*[0.0] * 29, 0.2, 0.2, 0.2]))
    assert is_warm(timeline(8))


@pytest.mark.parametrize(("by", "same"), [(0.04, True), (0.06, False)])
def test_levels_within_a_twentieth_are_the_same(by: float, *, same: bool) -> None:
    found = last_stretch(cold_then_warm(5, 10, by=by))
    assert (found.start == 0) is same
    assert found.tolerance == pytest.approx(np.log(1.05))
    assert not found.moves


def test_a_stretch_knows_the_fastest_level_before_it() -> None:
    found = last_stretch(cold_then_warm(5, 10, by=-0.5))
    assert (found.best, found.level) == pytest.approx((0, -0.5), abs=0.01)
    assert last_stretch(timeline(6)).best == 0


def test_a_point_begins_where_the_one_before_it_ended() -> None:
    assert [timeline(2).start_ns(at) for at in (0, 1, 2)] == [0, 250_000_000, 500_000_000]
