"""Searches beside a client that is late, or whose pool hides the queue, and with probes that are short."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.extras.selftest.truth import exponential
from redline.model import Counts, Histogram, Outcomes
from redline.search import Evidence, ProbeSlice, Proposal, Search, Settings
from redline.search.client import busy_connections, busy_workers, calmest_ns, failing, lacking, late_engine
from redline.search.steps import reason, shows, state_of, steps
from redline.suite import parse_objectives
from tests.fakes.cliffs import MS, probe
from tests.fakes.probed import traffic
from tests.fakes.queues import Queue, evidence

GOOD = parse_objectives("p99 < 20ms, errors < 1%")


def beside_an_engine(queue: Queue, connections: int, late_ms: float) -> Callable[[float], Evidence]:
    """Probes of a queue behind a pool of connections, by an engine whose lateness has this p99, in milliseconds.

    Requests that wait for a connection wait in the client: a service time is no longer than the server takes for all.
    """
    rng, longest_ns = np.random.default_rng(7), connections / queue.capacity_per_s * 1e9

    def made(rate_per_s: float) -> Evidence:
        due, responses = queue.requests(rate_per_s, rng)
        late_s = rng.exponential(late_ms / 1e3 / np.log(100), len(due))
        found = evidence(rate_per_s, due, responses + late_s, queue.seconds, queue.slice_s, queue.warmup_s)
        times = {
            "response": found.response,
            "service": Histogram.of(np.minimum(responses * 1e9, longest_ns)),
            "lateness": Histogram.of(late_s * 1e9),
            "counts": Counts(due=found.due, completed=found.due, outcomes=Outcomes(ok=found.due)),
        }
        return late_engine(found, traffic().model_copy(update=times), GOOD)

    return made


def searched(search: Search, server: Callable[[float], Evidence]) -> Search:
    while isinstance(step := search.next(), Proposal):
        search.add(server(step.rate_per_s))
    return search


def test_a_pool_that_hides_the_queue_hides_no_limit() -> None:
    """The engine is late by 2.9 ms, a seventh of the limit, and service times meet it at every rate."""
    queue = Queue(exponential(4350.0))
    server = beside_an_engine(queue, connections=26, late_ms=2.9)
    search = searched(Search({"good": GOOD}, Settings(start_per_s=4200)), server)
    (limit,) = search.limits()
    assert not search.evidence[1].client, "at twice its capacity, though it was late"
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= 4120 * 1.02
    assert limit.high_per_s >= 3900


def test_a_late_client_decides_nothing_at_the_limit_and_hides_nothing_below_it() -> None:
    """The engine is later than the limit: above no rate can be judged, but that is no fault of the server."""
    queue = Queue(exponential(4350.0))

    def server(rate_per_s: float) -> Evidence:
        late_ms = 60.0 if rate_per_s > 2000 else 0.6
        return beside_an_engine(queue, connections=26, late_ms=late_ms)(rate_per_s)

    search = searched(Search({"good": GOOD}, Settings(start_per_s=1000)), server)
    (limit,) = search.limits()
    assert limit.low_per_s == 2000
    assert limit.high_per_s is None or limit.high_per_s > 4000


def clustered(rate_per_s: float, beyond: float, *, slices: int = 50, slow_ms: float = 400) -> Evidence:
    """A probe of a second, the last slices of which have only slow requests."""
    due = round(rate_per_s / slices)
    calm, slow = (ProbeSlice(1 / slices, due, due, 0, Histogram.of([ms * MS] * due)) for ms in (5.0, slow_ms))
    late = round(beyond * slices)
    return Evidence(rate_per_s, (calm,) * (slices - late) + (slow,) * late)


@pytest.mark.parametrize(
    ("text", "beyond", "said"),
    [
        ("p99 < 200ms", 0.5, "missed"),
        ("p99 < 200ms", 0.4, "not known"),
        ("p90 < 200ms", 0.5, "not known"),
        ("p50 < 200ms", 0.5, "not known"),
        ("p50 < 200ms", 0.8, "not known"),
        ("p99 < 200ms", 0.0, "met"),
    ],
)
def test_half_of_all_requests_beyond_the_limit_of_p99_is_a_miss_however_short(
    text: str, beyond: float, said: str
) -> None:
    """A looser objective is missed surely only if the slow requests do not come all at once."""
    assert state_of((clustered(8000, beyond),), parse_objectives(text)[0]) == said


def test_errors_of_half_of_all_requests_are_a_miss_however_they_cluster() -> None:
    good, wrong = ProbeSlice(0.02, 20, 20, 0, Histogram.of([MS] * 20)), ProbeSlice(0.02, 20, 0, 20, Histogram())
    errors = parse_objectives("errors < 1%")[0]
    assert state_of((Evidence(1000, (good,) * 25 + (wrong,) * 25),), errors) == "missed"
    assert state_of((Evidence(1000, (good,) * 35 + (wrong,) * 15),), errors) == "not known"


def test_why_a_probe_counts_as_it_does() -> None:
    p99 = GOOD[0]
    assert reason(clustered(8000, 0.4, slow_ms=30), p99) == "too few requests to be sure: probe for longer, with -d"
    assert reason(probe(1000, answered=0.9), p99) == "its backlog only grew"
    assert reason(probe(1000), p99) == ""
    busy = replace(probe(1000), client="the engine was busy", lengthens=True)
    assert reason(busy, p99) == "in spite of this: the engine was busy"
    assert reason(replace(busy, lengthens=False), p99) == "the engine was busy"
    assert reason(Evidence(1, (ProbeSlice(0.1, 0, 0, 0, Histogram()),) * 10), p99) == "nothing fell due"


def test_where_no_higher_rate_can_be_tried_what_is_unclear_is_tried_again_and_then_halved() -> None:
    made: list[float] = []

    def server(rate_per_s: float) -> Evidence:
        made.append(rate_per_s)
        if rate_per_s > 1500:
            return replace(probe(rate_per_s), client="it was busy")
        return clustered(rate_per_s, 0.04, slow_ms=30) if rate_per_s > 600 else probe(rate_per_s)

    (limit,) = searched(Search({"good": GOOD}, Settings(start_per_s=1000)), server).limits()
    assert made == [1000, 2000, 2000, 1000, 1000, 500]
    assert limit.low_per_s == 500


def test_a_client_at_its_limit_does_not_hide_what_passed_for_one_set_of_two() -> None:
    """From 2,000/s on it is busy: response times are 50 ms then, which one set allows."""
    sets = {"good": GOOD, "acceptable": parse_objectives("p99 < 200ms")}

    def server(rate_per_s: float) -> Evidence:
        busy = replace(probe(rate_per_s, response_ms=50), client="it was busy", lengthens=True)
        return busy if rate_per_s > 1500 else probe(rate_per_s)

    search = Search(sets, Settings(start_per_s=1000, highest_per_s=8000))
    good, acceptable = searched(search, server).limits()
    assert (good.low_per_s, good.high_per_s) == (1000, None)
    assert acceptable.low_per_s == 8000
    assert [shows(search.evidence[1], *conditions) for conditions in sets.values()] == [False, True]
    assert len(steps(search.evidence, *GOOD)) == 1


def seen(*, due: int = 1000, times: int = 1000, service_ms: float = 1.0, **changed: Any) -> Any:
    """Traffic of 1 s, of which `times` service times are known; all requests were answered."""
    counts = {"due": due, "completed": due, "waited": 0, "exhausted": 0, "connects_often": False}
    outcomes = {"errors": 0, "in_flight": 0, "unsent": 0, "timeout": 0}
    for name in [*changed]:
        if name in outcomes:
            outcomes[name] = changed.pop(name)
        elif name in counts:
            counts[name] = changed.pop(name)
    facts = {"seconds": 1.0, "engine_cpu_ns": 0, "service": Histogram.of([service_ms * MS] * times)} | changed
    return SimpleNamespace(**facts, counts=SimpleNamespace(**counts, outcomes=SimpleNamespace(**outcomes)))


@pytest.mark.parametrize(("exhausted", "said"), [(1, False), (2, True)])
def test_an_engine_lacks_ports_from_a_thousandth_of_the_requests_on(exhausted: int, *, said: bool) -> None:
    assert bool(lacking(seen(exhausted=exhausted))) is said


@pytest.mark.parametrize(("busy", "often", "says"), [(1.9, False, ""), (1.92, False, "give -t more"), (1.92, True, "")])
def test_workers_are_busy_beyond_95_percent_of_their_time(busy: float, often: bool, says: str) -> None:
    text = busy_workers(seen(engine_cpu_ns=round(busy * 1e9), connects_often=often), 2)
    assert bool(text) is (busy > 1.9)
    assert says in text
    assert ("give -t more" in text) is bool(says)
    assert "100% of the time" in busy_workers(seen(engine_cpu_ns=9 * 10**9), 2), "no more than all of it"


@pytest.mark.parametrize(("waits", "count"), [("waited", 50), ("unsent", 50)])
def test_the_calmest_probe_is_the_fastest_in_which_hardly_any_request_waited(waits: str, count: int) -> None:
    assert calmest_ns(seen(**{waits: count}), None) == pytest.approx(MS, rel=0.01)
    assert calmest_ns(seen(**{waits: count + 1}), None) is None
    assert calmest_ns(seen(**{waits: count + 1}), 7) == 7
    assert calmest_ns(seen(), 7) == 7
    assert calmest_ns(seen(), 10**9) == pytest.approx(MS, rel=0.01)
    assert calmest_ns(seen(times=50), None) is not None
    assert calmest_ns(seen(times=49), None) is None


@pytest.mark.parametrize(
    ("counts", "fails"),
    [
        ({"errors": 50}, False),
        ({"errors": 51}, True),
        ({"errors": 80, "in_flight": 10, "unsent": 10, "timeout": 10}, False),
        ({"errors": 81, "in_flight": 10, "unsent": 10, "timeout": 10}, True),
    ],
)
def test_a_twentieth_of_failures_that_no_waiting_explains_says_nothing_of_times(
    counts: dict[str, int], *, fails: bool
) -> None:
    assert failing(seen(**counts)) is fails


@pytest.mark.parametrize(
    ("changed", "busy"),
    [
        ({"waited": 51}, True),
        ({"waited": 50}, False),
        ({"waited": 51, "service_ms": 0.49}, False),
        ({"waited": 51, "service_ms": 0.51}, True),
        ({"waited": 51, "service_ms": 0.49, "times": 49}, True),
    ],
)
def test_connections_are_too_few_where_half_of_them_work_and_requests_wait(
    changed: dict[str, Any], *, busy: bool
) -> None:
    """1,000 a second of 1 ms each are one in flight at any time: half of a place of two."""
    text = busy_connections(seen(due=1000, **{"times": 1000, **changed}), 1, MS)
    assert text == ("all 1 connections were busy: give -c more" if busy else "")
    assert busy_connections(seen(**changed), 1, None) == ""
