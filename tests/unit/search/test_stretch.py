"""The stretch of a recording that all probes of a search send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.model import Load, Open
from redline.search.stretch import (
    FEWEST,
    SPAN,
    asked_stretch,
    at_rate,
    at_speed,
    shortest_probe_ns,
    stretch_of,
    without_times,
)
from tests.fakes.replayed import S, recorded


def load_of(times: list[int], speed: float = 1.0) -> Load:
    shape = Open(
        arrivals="replayed",
        connections=8,
        replayed_ns=tuple(times),
        replayed_requests=tuple(number % 3 for number in range(len(times))),
        speed=speed,
    )
    return Load(name="probe", shape=shape, duration_ns=5 * S)


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=50), st.integers(1, 60), st.floats(0.01, 1000))
def test_all_speeds_send_the_same_requests_in_their_order(gaps: list[int], requests: int, speed: float) -> None:
    times = [sum(gaps[: at + 1]) for at in range(len(gaps))]
    load = load_of(times)
    if times[-1] == times[0]:
        return
    stretch = stretch_of(load.open_shape, requests)
    sent = at_speed(load, stretch, speed)
    shape = sent.open_shape
    assert len(shape.replayed_ns) == stretch.requests == len(shape.replayed_requests)
    assert shape.replayed_requests == load.open_shape.replayed_requests[: stretch.requests]
    assert all(abs(due - was / speed) <= 1 for due, was in zip(shape.replayed_ns, times, strict=False))
    assert shape.replayed_ns[-1] <= sent.duration_ns + 1
    if sent.duration_ns > 1_000_000:  # shorter loads are rounded to nanoseconds
        assert shape.mean_per_s == pytest.approx(stretch.requests / sent.duration_ns * 1e9, rel=1e-5)
    Open.model_validate(shape.model_dump())


def test_a_stretch_ends_when_the_next_request_is_due() -> None:
    stretch = stretch_of(load_of([0, S, 2 * S, 3 * S, 7 * S]).open_shape, 3)
    assert (stretch.requests, stretch.recorded_ns) == (3, 3 * S)
    assert stretch.per_s == 1
    whole = stretch_of(load_of([0, S, 2 * S, 3 * S, 4 * S]).open_shape, 99)
    assert (whole.requests, whole.recorded_ns) == (5, 5 * S), "the last request has a gap after it too"


def test_requests_of_the_same_time_are_sent_together_or_not_at_all() -> None:
    stretch = stretch_of(load_of([0, S, 2 * S, 2 * S, 2 * S, 3 * S]).open_shape, 4)
    assert stretch.requests == 2


def test_a_rate_is_a_speed_of_the_recording() -> None:
    load = recorded(per_s=100, seconds=5)
    stretch = asked_stretch(load)
    assert stretch.requests == 500
    sent = at_rate(load, stretch, 420)
    assert sent.open_shape.speed == pytest.approx(4.2)
    assert sent.duration_ns == pytest.approx(5 * S / 4.2, abs=2)


def test_times_at_a_first_speed_are_those_of_the_recording() -> None:
    slow, fast = recorded(per_s=100, speed=1, seconds=8), recorded(per_s=100, speed=4, seconds=2)
    assert asked_stretch(slow) == asked_stretch(fast)
    sent = [at_speed(load, asked_stretch(load), 3).open_shape.replayed_ns for load in (slow, fast)]
    assert sent[0] == pytest.approx(sent[1], abs=3)


def test_few_requests_are_no_stretch() -> None:
    assert asked_stretch(recorded(per_s=1, seconds=5)).requests == FEWEST


def test_the_busiest_tenth_is_known() -> None:
    assert stretch_of(recorded().open_shape, 1000).peak == pytest.approx(1, abs=0.02)
    rush = load_of([at * S // 1000 for at in range(900)] + [9 * S + at * S // 10 for at in range(10)])
    assert stretch_of(rush.open_shape, 999).peak == pytest.approx(9.9, abs=0.2)


def test_a_probe_keeps_no_times() -> None:
    load = recorded()
    sent = at_speed(load, asked_stretch(load), 2)
    kept = without_times(sent)
    assert kept.open_shape.replayed_ns == ()
    assert Load.model_validate(kept.model_dump()) == kept
    assert kept.open_shape.mean_per_s == sent.open_shape.mean_per_s
    assert without_times(load) is load


def test_a_probe_has_a_shortest_length() -> None:
    assert shortest_probe_ns(recorded(seconds=5)) == 5 * S / SPAN
    rate = Load(name="probe", shape=Open(rate_per_s=5, connections=1), duration_ns=S)
    assert shortest_probe_ns(rate) == S
