"""A server that changes while its limit is searched is said to, with when; a server that stays is not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import Generator

from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer, probe
from redline.limits.doubts import Seen
from redline.model.limits import CellLimit, LimitAnswer
from redline.report.answer import limit_sentence
from redline.search import Evidence, Proposal, Search, Settings
from redline.search.evidence import overloaded, stall_ns
from redline.search.search import LOOKS_AGAIN
from tests.fakes.cliffs import probe as quick
from tests.fakes.disturbed import LONG_S, Disturbed
from tests.fakes.limits import sets
from tests.studies.changing import Setting, said

GOOD = "p99 < 50ms, errors < 1%"
CAPACITY = 1000.0


@dataclass
class Tiring(Disturbed):
    """A server that stays slower once it was overloaded."""

    def probe(self, rate_per_s: float, rng: Generator, *, whole: bool = False) -> Evidence:
        made = super().probe(rate_per_s, rng, whole=whole)
        if overloaded(made):
            self.falls_at_s = min(self.falls_at_s, self.now_s)
        return made


def searched(servers: Sequence[Disturbed], seed: int = 1, start_per_s: float = 700.0) -> list[tuple[CellLimit, Search]]:
    """The searches on servers that take turns by probes, as they are published, with the time of each probe."""
    searches = [Search(sets(good=GOOD), Settings(start_per_s=start_per_s, lowest_per_s=20)) for _ in servers]
    rngs, began = [np.random.default_rng([seed, at]) for at in range(len(servers))], [list[float]() for _ in servers]
    now_s, left = 0.0, set(range(len(servers)))
    while left:
        for at in sorted(left):
            step = searches[at].next()
            if not isinstance(step, Proposal):
                left.remove(at)
                continue
            servers[at].now_s = now_s
            searches[at].add(servers[at].probe(step.rate_per_s, rngs[at], whole=step.whole))
            began[at].append(now_s)
            now_s = servers[at].now_s
    return [(published(search, times), search) for search, times in zip(searches, began, strict=True)]


def published(search: Search, times: Sequence[float]) -> CellLimit:
    probes = tuple(
        probe(each, search.sets, began_s=began_s) for each, began_s in zip(search.evidence, times, strict=True)
    )
    (limit,) = search.limits()
    return CellLimit(
        slug="A",
        server="A",
        scenario="",
        load="",
        ended="converged",
        confirmed=True,
        limits=(answer(limit, search, Seen(probes)),),
        probes=probes,
    )


def server(falls_at_s: float = LONG_S, falls_to: float = 1.0) -> Disturbed:
    return Disturbed(exponential(CAPACITY), 4.0, falls_at_s=falls_at_s, falls_to=falls_to)


def the(cell: CellLimit) -> LimitAnswer:
    (limit,) = cell.limits
    return limit


@pytest.mark.parametrize("at_s", [12.0, 25.0, 40.0])
@pytest.mark.parametrize(("factor", "slower"), [(0.6, True), (1.6, False)])
def test_a_change_in_the_middle_is_said_with_when(at_s: float, factor: float, slower: bool) -> None:
    ((cell, search),) = searched([server(at_s, factor)])
    changed = the(cell).changed
    assert changed is not None
    assert changed.slower is slower
    assert changed.until_s is not None
    assert changed.since_s is not None
    assert changed.until_s < at_s + 5
    assert changed.since_s > at_s - 5
    sentence = limit_sentence(cell, the(cell))
    assert ("became slower" in sentence or "misses good from" in sentence) is slower
    assert "into the search" in sentence or "while it was searched" in sentence
    assert "longer" not in the(cell).reason
    assert "--probes" not in the(cell).reason
    assert len(search.evidence) <= search.settings.most_probes(1)


def test_a_server_that_overload_makes_slower_is_said_to_have_changed() -> None:
    ((cell, _),) = searched([Tiring(exponential(CAPACITY), 4.0, falls_to=0.6)])
    changed = the(cell).changed
    assert changed is not None
    assert changed.slower


def test_of_servers_that_take_turns_the_one_that_changed_is_named() -> None:
    (same, _), (changes, _), (other, _) = searched([server(), server(40.0, 0.6), server()])
    assert the(same).changed is None
    assert the(other).changed is None
    assert the(changes).changed is not None


@pytest.mark.parametrize("seed", range(4))
def test_a_server_that_stays_is_not_said_to_change(seed: int) -> None:
    ((cell, search),) = searched([server()], seed)
    assert the(cell).changed is None
    assert search.evidence[-1].rate_per_s in [each.rate_per_s for each in search.evidence[:-2]]


def test_probes_that_differ_at_random_are_no_change() -> None:
    assert [said(Setting(drift=0.1), seed) for seed in range(4)].count("") >= 3


def met_then(*later: Evidence) -> Search:
    """A search that met 1,000/s and 2,000/s, and then saw this."""
    search = Search(sets(good="p99 < 20ms"), Settings(start_per_s=1000, probes=6))
    for each in (quick(1000), quick(2000), quick(4000, response_ms=90), quick(2800, response_ms=90), *later):
        search.add(each)
    return search


def test_one_look_that_differs_is_tried_once_more() -> None:
    search = met_then(quick(2400), quick(2500, response_ms=90))
    look = search.last_look()
    assert look is not None
    assert (look.rate_per_s, look.why) == (2000, LOOKS_AGAIN)
    search.add(quick(2000, response_ms=90))
    assert search.change is None, "one look may be an accident"
    again = search.last_look()
    assert again is not None
    search.add(quick(again.rate_per_s, response_ms=90))
    while (more := search.last_look()) is not None:
        search.add(quick(more.rate_per_s, response_ms=90))
    assert search.change is not None
    assert search.change.slower


def test_a_search_may_do_without_looks() -> None:
    search = met_then(quick(2400), quick(2500, response_ms=90))
    search.settings = replace(search.settings, looks=False)
    assert search.last_look() is None


def test_a_stall_from_the_beginning_of_a_probe_is_seen() -> None:
    rng = np.random.default_rng(3)
    stalled = Disturbed(exponential(CAPACITY), 2.0, stalls=[(0.2, 1.2)]).probe(300, rng, whole=True)
    assert stall_ns(stalled) > 700_000_000
    slow = Disturbed(exponential(CAPACITY), 2.0, base_s=1.0).probe(300, rng, whole=True)
    assert stall_ns(slow) == 0, "a slow server is silent for as long as it takes"


def test_a_changed_server_has_no_verdict() -> None:
    ((cell, _),) = searched([server(40.0, 0.6)])
    assert the(cell).is_contested
