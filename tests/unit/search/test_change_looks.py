"""Which probe a search looks at again, and which looks make a change: on probes written by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from redline.model import Histogram
from redline.search import Evidence, ProbeSlice
from redline.search.change import ServerChange, change_of, is_full, look_again
from redline.suite import parse_objectives
from tests.fakes.limits import sets

MS = 1_000_000
SETS = sets(good="p99 < 20ms")


def probe(rate: float = 1000.0, ms: float = 5.0, *, answered: float = 1.0, start: int = 0, **changed: Any) -> Evidence:
    """Fifty slices of a tenth of a second, whose requests all take so long; what is not answered is still open."""
    due = round(rate / 10)
    times = Histogram.of(np.full(due, ms * MS))
    each = ProbeSlice(0.1, due, round(due * answered), 0, times)
    return Evidence(rate, (each,) * 50, start=start, **changed)


def changed(*evidence: Evidence) -> ServerChange | None:
    return change_of(evidence, SETS)


OTHERS = [probe(rate) for rate in (1100.0, 1200.0, 1300.0)]


@pytest.mark.parametrize(("ms", "again_ms", "slower"), [(5.0, 30.0, True), (30.0, 5.0, False)])
def test_two_looks_that_agree_are_a_change(ms: float, again_ms: float, *, slower: bool) -> None:
    first, again = probe(ms=ms), probe(ms=again_ms)
    assert changed(first, *OTHERS, again) is None, "one look may be an accident"
    assert changed(first, *OTHERS, again, again) == ServerChange(slower, ((0, 4), (0, 5)))
    assert changed() is None


def test_a_look_comes_after_three_other_probes() -> None:
    first, again = probe(), probe(ms=30.0)
    assert changed(first, *OTHERS[:2], again, again) is None, "only the second is far enough from the first"
    assert changed(first, *OTHERS, again, again) is not None


def test_three_later_probes_that_all_differ_are_a_change_however_near() -> None:
    first, again = probe(), probe(ms=30.0)
    assert changed(first, again, again, again) is None, "the last one is too near"
    assert changed(first, again, again, OTHERS[0], again) == ServerChange(True, ((0, 1), (0, 2), (0, 4)))
    assert changed(first, again, OTHERS[0], OTHERS[1], again) is None, "two are too few"


def test_looks_that_disagree_are_no_change() -> None:
    first, slower, alike = probe(), probe(ms=30.0), probe()
    assert changed(first, *OTHERS, slower, slower, alike, alike) is None
    assert changed(first, *OTHERS, slower, slower, alike) is not None, "two of three agree"


@pytest.mark.parametrize(("rate", "same"), [(1004.0, True), (1006.0, False), (996.0, True), (994.0, False)])
def test_a_look_is_within_half_a_percent_of_the_rate(rate: float, *, same: bool) -> None:
    again = probe(rate, ms=30.0)
    others = [probe(other) for other in (1100.0, 1200.0, 1300.0)]
    assert (changed(probe(), *others, again, again) is not None) is same


def test_another_start_is_another_server() -> None:
    again = probe(ms=30.0, start=1)
    assert changed(probe(), *OTHERS, again, again) is None
    later = [replace(one, start=1) for one in (probe(), *OTHERS, again, again)]
    assert changed(probe(), *later) == ServerChange(True, ((1, 5), (1, 6)))


@pytest.mark.parametrize(
    "unclear",
    [
        {"client": "it was full"},
        {"aborted": "p99 > 1s"},
        {"slices": tuple(ProbeSlice(0.1, 0, 0, 0, Histogram()) for _ in range(50))},
    ],
)
def test_a_probe_that_does_not_show_the_server_alone_is_no_look(unclear: dict[str, Any]) -> None:
    again = replace(probe(ms=30.0), **unclear)
    assert changed(probe(), *OTHERS, again, again) is None


def test_a_stall_is_no_look() -> None:
    still = ProbeSlice(0.1, 100, 0, 0, Histogram.of(np.full(100, 30.0 * MS)))
    moving = ProbeSlice(0.1, 100, 100, 0, Histogram.of(np.full(100, 30.0 * MS)))
    stalled = replace(probe(), slices=(*[moving] * 20, *[still] * 20, *[moving] * 10))
    assert changed(probe(), *OTHERS, stalled, stalled) is None


def slowly(ms: Sequence[float]) -> Evidence:
    """A probe of ten stretches with these medians."""
    slices = tuple(ProbeSlice(0.1, 100, 100, 0, Histogram.of(np.full(100, ms[at // 5] * MS))) for at in range(50))
    return Evidence(1000.0, slices)


@pytest.mark.parametrize(("factor", "differs"), [(1.35, False), (1.45, True), (1 / 1.35, False), (1 / 1.45, True)])
def test_response_times_differ_by_two_fifths_at_least(factor: float, *, differs: bool) -> None:
    first, again = slowly([5.0] * 10), slowly([5.0 * factor] * 10)
    found = changed(first, *OTHERS, again, again)
    assert (found is not None) is differs
    if found is not None:
        assert found.slower is (factor > 1)


def test_response_times_that_scatter_are_alike() -> None:
    """A mean difference of a half, and stretches whose medians differ by the factor of four up or down."""
    first = slowly([1.0] * 10)
    wild = slowly([1.5 * 4 ** (1 if at % 2 else -1) for at in range(10)])
    assert changed(first, *OTHERS, wild, wild) is None


def overloaded(per_s: float, rate: float = 2000.0) -> Evidence:
    return replace(probe(rate, answered=per_s / rate), hopeless=True)


@pytest.mark.parametrize(("per_s", "found"), [(1000, None), (1050, None), (1100, False), (950, None), (900, True)])
def test_overloaded_servers_differ_by_their_answers(per_s: float, found: bool | None) -> None:
    others = [overloaded(1000.0, rate) for rate in (1500.0, 1600.0, 1700.0)]
    again = overloaded(per_s)
    seen = changed(overloaded(1000.0), *others, again, again)
    assert (seen.slower if seen is not None else None) is found


@pytest.mark.parametrize(("answered", "full"), [(0.96, False), (0.94, True)])
def test_a_server_that_answers_less_than_all_is_full(answered: float, *, full: bool) -> None:
    assert is_full(probe(answered=answered)) is full
    assert is_full(replace(probe(), hopeless=True))


def test_a_search_looks_at_its_first_telling_probe_again_and_at_its_first_miss() -> None:
    first, low, miss = probe(1000.0), probe(300.0), probe(1500.0, ms=30.0)
    assert look_again([first, *OTHERS[:2]], SETS) is None
    assert look_again([first, *OTHERS], SETS) is first
    assert look_again([first, *OTHERS[:2]], SETS, later=1) is first
    assert look_again([first, *OTHERS, probe()], SETS) is None, "it was looked at"
    assert look_again([low, first, *OTHERS], SETS) is first, "a probe far below what it keeps up with tells little"
    seen = [first, miss, *OTHERS, probe()]
    assert look_again(seen, SETS) is miss
    assert look_again([*seen, probe(1500.0, ms=30.0)], SETS) is None


def test_a_look_that_differs_is_tried_once_more() -> None:
    first, differs = probe(), probe(ms=30.0)
    once = [first, *OTHERS, differs]
    assert look_again(once, SETS) is first
    assert look_again([*once, differs], SETS) is None, "two agree"
    assert look_again([*once, probe()], SETS) is None, "they do not agree, and it was tried twice"


def test_a_look_before_the_last_four_probes_is_too_old() -> None:
    first = probe()
    looked = [first, *OTHERS, probe()]
    after = [probe(rate) for rate in (1400.0, 1450.0, 1480.0)]
    assert look_again([*looked, *after], SETS) is None
    assert look_again([*looked, *after, probe(1490.0)], SETS) is first


def test_objectives_that_changed_in_both_ways_leave_it_to_the_times() -> None:
    both = {"quick": tuple(parse_objectives("p99 < 20ms")), "even": tuple(parse_objectives("p50 < 2ms"))}
    first = probe(ms=5.0)
    mixed = Histogram.of([1.0 * MS] * 90 + [30.0 * MS] * 10)
    again = replace(first, slices=tuple(ProbeSlice(0.1, 100, 100, 0, mixed) for _ in range(50)))
    evidence = [first, *OTHERS, again, again]
    found = change_of(evidence, both)
    assert found is not None
    assert found.slower is False, "its medians are a fifth"
