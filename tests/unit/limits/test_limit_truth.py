"""What a search says of disturbed servers, against its table and the planted truth, for all that can be searched.

The plain search of a rate is in test_limit_doubts; here are limits by request, of recordings, of errors alone, and of
several servers that take turns.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.random import Generator

from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer, probe, with_curve
from redline.limits.doubts import Seen
from redline.limits.ratios import limit_comparisons
from redline.model import Finding, Grade, Objective, Verdict
from redline.model.limits import CellLimit, LimitAnswer
from redline.render import RENDERERS
from redline.report.answer import limit_sentence
from redline.schema.objectives import Selectable, parse_objectives
from redline.search import Converged, Evidence, Proposal, Search, Settings
from tests.fakes.disturbed import LONG_S, Disturbed
from tests.fakes.limits import report, rivals

CAPACITY = 1000.0
"""What a server answers that nothing disturbs, of requests that take its mean time."""
RUSH = np.concatenate([np.arange(0, 20, 0.02), np.arange(20, 24, 0.004), np.arange(24, 60, 0.02)])
"""A minute at 50/s with four seconds at 250/s in it."""
MIX = Selectable(requests={"mix": ("items", "checkout")})
TOLERANCE = 1.1
"""How far from the truth an answer may be: from probes of some seconds a search knows it to some percent."""

Probing = Callable[[Disturbed, float, Generator], Evidence]


@dataclass(frozen=True)
class Kind:
    """Something to search: its objectives, its probes, and how many requests a second it can answer at most."""

    objectives: tuple[Objective, ...]
    probe: Probing
    most_per_s: float
    recorded_per_s: float | None = None


KINDS = {
    "by request": Kind(
        parse_objectives("items: p99 < 50ms, checkout: p99 < 100ms, errors < 1%", MIX),
        lambda server, rate_per_s, rng: server.probe_by_request(rate_per_s, rng),
        CAPACITY / 1.4,
    ),
    "errors alone": Kind(
        parse_objectives("errors < 1%"),
        lambda server, rate_per_s, rng: server.probe_with_timeouts(rate_per_s, rng, 0.2),
        CAPACITY,
    ),
    "recording": Kind(
        parse_objectives("p99 < 50ms, errors < 1%"),
        lambda server, rate_per_s, rng: server.replayed(RUSH, rate_per_s, rng),
        CAPACITY,
        len(RUSH) / 60,
    ),
    "rate": Kind(
        parse_objectives("p99 < 50ms, errors < 1%"),
        lambda server, rate_per_s, rng: server.probe(rate_per_s, rng),
        CAPACITY,
    ),
}
DISTURBED = ("nothing", "stalls", "neighbours", "falls", "stalls, neighbours, falls")


def server_of(disturbed: str, seed: int) -> Disturbed:
    rng = np.random.default_rng([seed, 23])
    moments, busy = np.cumsum(rng.exponential(8.0, 60)).tolist(), np.cumsum(rng.exponential(20.0, 30)).tolist()
    return Disturbed(
        exponential(CAPACITY),
        (2.0, 5.0)[seed % 2],
        stalls=[(at, float(rng.uniform(0.2, 1.5))) for at in moments] if "stalls" in disturbed else (),
        busy=[(at, float(rng.uniform(2, 10)), 0.5) for at in busy] if "neighbours" in disturbed else (),
        falls_at_s=20.0 if "falls" in disturbed else LONG_S,
        falls_to=0.7,
    )


def settings_of(kind: Kind, server: Disturbed) -> Settings:
    if kind.recorded_per_s is None:
        return Settings(start_per_s=0.4 * CAPACITY, lowest_per_s=100 / server.seconds)
    return Settings(
        start_per_s=0.3 * CAPACITY, lowest_per_s=60, highest_per_s=2 * CAPACITY, recorded_per_s=kind.recorded_per_s
    )


def turns(kind: Kind, servers: list[Disturbed], seed: int) -> Iterator[tuple[Search, object]]:
    """The searches on servers that take turns by probes, on one machine, whose time they share."""
    searches = [Search({"good": kind.objectives}, settings_of(kind, server)) for server in servers]
    rngs = [np.random.default_rng([seed, at, 3]) for at in range(len(servers))]
    steps: list[object] = [search.next() for search in searches]
    now_s = 0.0
    while any(isinstance(step, Proposal) for step in steps):
        for at, (search, server) in enumerate(zip(searches, servers, strict=True)):
            step = steps[at]
            if isinstance(step, Proposal):
                server.now_s = now_s
                search.add(kind.probe(server, step.rate_per_s, rngs[at]))
                now_s, steps[at] = server.now_s, search.next()
    return zip(searches, steps, strict=True)


def published(search: Search, end: object, name: str = "server") -> CellLimit:
    """A search as it is published, with the finding that a disturbed machine gives."""
    findings = tuple(
        Finding(kind="cpu-pressure", grade=Grade.WARN, message="", advice="", cell_id="", position=at)
        for at, evidence in enumerate(search.evidence)
        if evidence.client
    )
    probes = tuple(probe(each, search.sets) for each in search.evidence)
    limit = CellLimit(
        slug=name,
        server=name,
        scenario="limit",
        load="open",
        ended="converged" if isinstance(end, Converged) else "exhausted",
        confirmed=False,
        limits=tuple(answer(each, search, Seen(probes, findings)) for each in search.limits()),
        probes=probes,
        findings=findings,
    )
    return with_curve(limit, "")


def check_against_the_table(cell: CellLimit, limit: LimitAnswer, sentence: str) -> None:
    """No probe met or missed it where the sentence denies that, or the sentence names the probe."""
    states = [(each.rate_per_s, each.counts[0].state) for each in cell.probes]
    met = [rate for rate, state in states if state == "met"]
    missed = [rate for rate, state in states if state == "missed"]
    low, high = limit.passed_per_s, limit.failed_per_s
    assert low is None or high is None or low <= high
    if met:
        assert "is known to meet" not in sentence
        if low is None or max(met) >= (high or low * 1.01):
            assert f"{max(met):,.0f}/s" in sentence
    if missed:
        assert "is known to miss" not in sentence
        if high is None or min(missed) <= (low or 0):
            assert f"{min(missed):,.0f}/s" in sentence
    assert sentence in RENDERERS["md"](report(cell)).decode().replace("&lt;", "<")


def check_against_the_truth(kind: Kind, limit: LimitAnswer, sentence: str, disturbed: str, least_per_s: float) -> None:
    """It meets nothing beyond what it can do; and misses nothing that it can do, unless a doubt is said."""
    low, high = limit.passed_per_s, limit.failed_per_s
    if low is not None:
        assert low <= TOLERANCE * kind.most_per_s, sentence
    if high is not None and high < least_per_s / TOLERANCE:
        assert limit.doubts, sentence
        assert disturbed != "nothing", sentence


def holds(evidence: Evidence, objective: Objective) -> bool:
    """Whether an objective holds of what was measured, without a question of chance."""
    if objective.metric == "errors":
        return sum(slice_.errors for slice_ in evidence.slices) < objective.limit * evidence.due
    response = evidence.response if objective.request is None else evidence.requests[objective.request].response
    return response.quantile_ns(0.99) < objective.limit


def sure_per_s(kind: Kind, seed: int) -> float:
    """A rate up to which the undisturbed server meets it: the highest tenth of its capacity at which all five do."""
    rng, sure = np.random.default_rng([seed, 99]), 0.0
    for tenth in range(2, 10):
        rate_per_s = tenth / 10 * kind.most_per_s
        made = [kind.probe(server_of("nothing", seed), rate_per_s, rng) for _ in range(5)]
        if not all(holds(each, objective) for each in made for objective in kind.objectives):
            break
        sure = rate_per_s
    return sure


def check(name: str, disturbed: str, seed: int) -> None:
    kind = KINDS[name]
    ((search, end),) = turns(kind, [server_of(disturbed, seed)], seed)
    cell = published(search, end)
    (limit,) = cell.limits
    sentence = limit_sentence(cell, limit)
    check_against_the_table(cell, limit, sentence)
    check_against_the_truth(kind, limit, sentence, disturbed, sure_per_s(kind, seed))


@pytest.mark.parametrize("disturbed", ["nothing", "stalls, neighbours, falls"])
@pytest.mark.parametrize("name", [name for name in KINDS if name != "rate"])
def test_neither_the_table_nor_the_truth_denies_what_is_said(name: str, disturbed: str) -> None:
    check(name, disturbed, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("disturbed", DISTURBED)
@pytest.mark.parametrize("name", KINDS)
def test_neither_the_table_nor_the_truth_denies_what_is_said_of_many(name: str, disturbed: str, seed: int) -> None:
    check(name, disturbed, seed)


def check_several(name: str, disturbed: str, seed: int) -> None:
    """A and B are alike, and C has 60% of their capacity: no verdict says otherwise without a doubt of a limit."""
    kind = KINDS[name]
    servers = [server_of(disturbed, seed) for _ in "ABC"]
    servers[2] = replace(servers[2], service=exponential(0.6 * CAPACITY))
    least_per_s = sure_per_s(kind, seed)
    made = list(turns(kind, servers, seed))
    answers = []
    for at, (search, end) in enumerate(made):
        cell = published(search, end, "ABC"[at])
        (limit,) = cell.limits
        sentence = limit_sentence(cell, limit)
        check_against_the_table(cell, limit, sentence)
        check_against_the_truth(kind, limit, sentence, disturbed, least_per_s * (0.6 if at == 2 else 1.0))
        answers.append(limit)
    suite, cells, found = rivals(*((limit,) for limit in answers))
    for compared in limit_comparisons(cells, found, suite):
        is_c = compared.slug == cells[2].slug
        doubted = answers[0].doubts or answers[2 if is_c else 1].doubts
        if compared.verdict is Verdict.FASTER or (compared.verdict is Verdict.SLOWER and not is_c):
            assert doubted, compared
        if compared.verdict is Verdict.EQUIVALENT and is_c:
            assert doubted, compared


@pytest.mark.parametrize("disturbed", ["stalls, neighbours, falls"])
def test_what_is_said_of_servers_that_take_turns_is_not_denied(disturbed: str) -> None:
    check_several("rate", disturbed, 1)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("disturbed", DISTURBED)
@pytest.mark.parametrize("name", ["rate", "by request"])
def test_what_is_said_of_many_servers_that_take_turns_is_not_denied(name: str, disturbed: str, seed: int) -> None:
    check_several(name, disturbed, seed)
