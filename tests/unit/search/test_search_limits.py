"""What a search says of its answer, and where it tries next: by bounds and probes that are written by hand."""

from typing import Any

import pytest

from redline.model import Histogram
from redline.search import Evidence, ProbeSlice, Search, Settings
from redline.search.client import FAILING, calmest_ns, failing
from redline.search.interval import Bounds, width
from redline.search.queue_model import QueueFit
from redline.search.scattered import Scattered
from redline.search.search import _contradiction, _not_even, _round_up, _tried_least
from redline.search.steps import TriedRate
from redline.suite import parse_objectives
from tests.fakes.cliffs import probe
from tests.unit.findings.test_load import counts, traffic

GOOD = parse_objectives("p99 < 20ms, errors < 1%")
MS = 1_000_000


def search(*evidence: Evidence, **settings: Any) -> Search:
    made = Search({"good": GOOD}, Settings(**{"start_per_s": 1000, "precision": 0.05, **settings}))
    made.evidence.extend(evidence)
    return made


def bounds(low: float | None, high: float | None, *, modelled: bool = True, **changed: Any) -> Bounds:
    facts: dict[str, Any] = {"fit": None, "steps": (), **changed}
    return Bounds(low, high, modelled=modelled, **facts)


PROBES = [probe(1000.0), probe(1100.0), probe(1200.0), probe(1300.0)]
WIDE = bounds(1000.0, 1300.0)
"""Its width over that wanted is 5, or 25 times as many probes."""


def wanting(of: Bounds, *evidence: Evidence, **settings: Any) -> str:
    return search(*(evidence or PROBES), **settings)._wanting({"p99": of}, [of])


def times_of(of: Bounds, precision: float = 0.05) -> float:
    return (width({"p99": of}) / precision) ** 2


def test_more_or_longer_probes_would_decide_a_modelled_interval() -> None:
    times = times_of(WIDE)
    assert wanting(WIDE) == (
        f"about --probes {_round_up(times * 4)} would decide it, or probes {times:.2g} times as long"
    )
    assert wanting(bounds(1000.0, 1300.0, modelled=False)) == ""
    assert wanting(bounds(None, 1300.0)) == ""


def test_starts_that_differ_take_more_starts() -> None:
    of = bounds(1000.0, 1300.0, starts_differ=True)
    starts = _round_up(times_of(of))
    assert starts <= 40
    assert wanting(of) == f"starts differ: about --trials {starts} would decide it"
    wide = bounds(1000.0, 2000.0, starts_differ=True)
    assert _round_up(times_of(wide)) > 40
    assert wanting(wide) == "starts differ too much: 40 of them would not decide it"


def test_probes_that_differ_are_not_mended_by_longer_ones() -> None:
    of = bounds(1000.0, 1300.0, scattered=Scattered(1150.0, 150.0, 1200.0, 0.12))
    probes = _round_up(times_of(of) * 4)
    assert wanting(of) == f"probes differ by 12%, however long they are: about --probes {probes} would decide it"


def test_a_server_that_is_slow_in_parts_of_probes_takes_longer_ones() -> None:
    of = bounds(1000.0, 1300.0, modelled=False, uneven=True)
    assert wanting(of) == "the server was slow in parts of some probes, as by pauses: probe for longer, with -d"


def test_what_takes_more_than_an_hour_is_said() -> None:
    slices = (ProbeSlice(300.0, 1000, 1000, 0, Histogram.of([1 * MS] * 1000)),) * 2
    assert wanting(WIDE, Evidence(1000.0, slices)) == "to decide it would take more than an hour of probes"
    just = 3600 / times_of(WIDE) / 2
    below = (ProbeSlice(just * 0.99, 1000, 1000, 0, Histogram.of([1 * MS] * 1000)),) * 2
    assert "hour" not in wanting(WIDE, Evidence(1000.0, below))


@pytest.mark.parametrize(("number", "up"), [(1.2, 2), (9.0, 9), (10.0, 10), (99.1, 100), (101.0, 110), (1234.0, 1300)])
def test_a_number_of_probes_is_rounded_up_to_two_digits(number: float, up: int) -> None:
    assert _round_up(number) == up


def limit(**known: Bounds) -> Any:
    made = search(*PROBES)
    return made._limit("good", dict(zip((one.text for one in GOOD), known.values(), strict=False)))


def test_a_limit_is_as_its_ends_are() -> None:
    of = limit(a=bounds(1000.0, 1040.0), b=bounds(1500.0, None, modelled=False))
    assert (of.low_per_s, of.high_per_s, of.modelled, of.decided, of.reason) == (1000.0, 1040.0, True, True, "")
    assert of.confidence is not None
    assert of.binds_alone is True
    both = limit(a=bounds(1000.0, 1300.0), b=bounds(1000.0, 1300.0, modelled=False))
    assert (both.modelled, both.confidence, both.decided, both.binds_alone) == (False, None, False, False)
    later = limit(a=bounds(1000.0, 1300.0, starts_differ=True), b=bounds(1400.0, 1500.0, starts_differ=True))
    assert later.starts_differ
    assert later.reason.startswith("starts differ")
    other = limit(a=bounds(1000.0, 1300.0), b=bounds(1400.0, 1500.0, starts_differ=True))
    assert not other.starts_differ, "only the ends of the interval count"
    assert not other.probes_differ
    scattered = bounds(1000.0, 1300.0, scattered=Scattered(1.0, 1.0, 1.0, 0.1))
    differing = limit(a=scattered, b=bounds(1400.0, 1500.0))
    assert (differing.probes_differ, differing.modelled, differing.confidence) == (True, True, None)


def test_no_answers_contradict_each_other_unless_said() -> None:
    assert _contradiction({"a": WIDE}) == ""
    assert _not_even("1,000/s passes", "probe higher") == "even 1,000/s passes; probe higher"
    assert _not_even("1,000/s passes", "") == "even 1,000/s passes"
    assert _tried_least(PROBES) == 1000.0


TRIED = (TriedRate(1000.0, "met", 1), TriedRate(1200.0, "not known", 1), TriedRate(1600.0, "missed", 1))


def test_unclear_rates_are_repeated_before_an_interval_is_halved() -> None:
    made = search(*PROBES, repeats=2)
    again = made._bisect(bounds(1000.0, 1600.0, steps=TRIED), 1000.0, 1600.0)
    assert (again.rate_per_s, again.why) == (1200.0, "repeated: too near to tell")
    twice = (TRIED[0], TriedRate(1200.0, "not known", 2), TRIED[2])
    halved = made._bisect(bounds(1000.0, 1600.0, steps=twice), 1000.0, 1600.0)
    assert halved.rate_per_s == pytest.approx((1200.0 * 1600.0) ** 0.5), "the wider part of the interval"
    assert halved.why == "half way between what passed and what failed"
    two = (TriedRate(1050.0, "not known", 1), TriedRate(1300.0, "not known", 1))
    near = made._bisect(bounds(1000.0, 1600.0, steps=two), 1000.0, 1600.0)
    assert near.rate_per_s == 1300.0, "the middle is at 1,265"
    outside = (TriedRate(1000.0, "not known", 1), TriedRate(1600.0, "not known", 1))
    assert made._bisect(bounds(1000.0, 1600.0, steps=outside), 1000.0, 1600.0).why.startswith("half way")
    open_ = made._bisect(bounds(None, None), None, None)
    assert open_.rate_per_s == pytest.approx((made.settings.lowest_per_s * 2 * 1300.0) ** 0.5)


FIT = QueueFit(1250.0, 1400.0, 1.0, 10.0, 100.0)


def test_a_model_names_the_next_rate_where_it_is_plausible() -> None:
    made = search(*PROBES)
    near = made._narrow({"p99": bounds(1200.0, 1300.0, fit=FIT)})
    assert near.why == "near where the model sees the limit"
    assert 1000.0 < near.rate_per_s < 1400.0
    rates = {round(made._narrow({"p99": bounds(1200.0, 1300.0, fit=FIT)}).rate_per_s, 3) for _ in range(12)}
    assert len(rates) > 2, "rates around the limit show the line"
    bent = QueueFit(1250.0, 1400.0, 1.0, 10.0, 100.0, bent=True)
    assert made._narrow({"p99": bounds(1200.0, 1300.0, fit=bent)}).why.startswith("half way")
    far = QueueFit(300.0, 400.0, 1.0, 10.0, 100.0)
    assert made._narrow({"p99": bounds(1200.0, 1300.0, fit=far)}).why.startswith("half way")
    assert made._narrow({"p99": bounds(1200.0, 1300.0)}).why.startswith("half way")


def test_where_a_rate_passed_or_failed_it_does_not_look_lower() -> None:
    missed = search(probe(1000.0, response_ms=100.0))
    assert missed._below("good") is None
    passed = search(probe(1000.0))
    assert passed._below("good") is None


@pytest.mark.parametrize(("more", "fails"), [(0, False), (1, True)])
def test_service_times_say_nothing_where_a_share_fails(more: int, *, fails: bool) -> None:
    number = round(FAILING * 1000) + more
    lost = counts(outcomes={"ok": 1000 - number - 300, "reset": number, "timeout": 300})
    assert failing(traffic().model_copy(update={"counts": lost})) is fails


def test_the_calmest_probe_is_that_in_which_nothing_waited() -> None:
    calm = traffic(times_ms=5.0)
    median = calm.service.quantile_ns(0.5)
    assert calmest_ns(calm, None) == median
    assert calmest_ns(calm, median + 1) == median
    assert calmest_ns(calm, 7) == 7
    waiting = calm.model_copy(update={"counts": counts(waited=500)})
    assert calmest_ns(waiting, None) is None
    assert calmest_ns(waiting, 7) == 7
    for times, known in ((49, False), (50, True)):
        few = calm.model_copy(update={"service": Histogram.of([5.0 * MS] * times)})
        assert (calmest_ns(few, None) is not None) is known
