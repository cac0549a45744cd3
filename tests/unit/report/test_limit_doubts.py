"""No sentence of a search contradicts its table of probes, on servers that stand still, are disturbed, or change."""

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer, probe, with_curve
from redline.limits.doubts import Seen
from redline.model import Finding, Grade
from redline.model.limits import CellLimit, LimitAnswer, LimitProbe
from redline.render import RENDERERS
from redline.report.answer import limit_sentence
from redline.search import Converged, Search, Settings
from redline.search.evidence import stall_ns
from tests.fakes.disturbed import LONG_S, Disturbed, searched
from tests.fakes.limits import report, sets
from tests.fakes.queues import Queue

GOOD = "p99 < 50ms, errors < 1%"


def found(server: Disturbed, start_per_s: float, seed: int, findings: tuple[Finding, ...] = ()) -> CellLimit:
    """The search on a disturbed server, as it is published."""
    search = Search(sets(good=GOOD), Settings(start_per_s=start_per_s, lowest_per_s=100 / server.seconds))
    end = searched(search, server, seed)
    probes = tuple(probe(each, search.sets) for each in search.evidence)
    limit = CellLimit(
        slug="server",
        server="server",
        scenario="limit",
        load="open",
        ended="converged" if isinstance(end, Converged) else "exhausted",
        confirmed=False,
        limits=tuple(answer(each, search, Seen(probes, findings)) for each in search.limits()),
        probes=probes,
        findings=findings,
    )
    return with_curve(limit, "")


def disturbed(kind: str, seed: int) -> tuple[Disturbed, float]:
    """A server of a kind with seeded moments of disturbance, and the rate at which its search begins."""
    rng = np.random.default_rng([seed, 17])
    seconds, capacity = (1.0, 2.0, 5.0)[seed % 3], (1000.0, 3000.0, 300.0)[seed // 3 % 3]
    moments = np.cumsum(rng.exponential(float(rng.choice([4, 8, 20])), 60)).tolist()
    busy = np.cumsum(rng.exponential(15.0, 20)).tolist()
    server = Disturbed(
        exponential(capacity),
        seconds,
        stalls=[(at, float(rng.uniform(0.2, 1.5))) for at in moments] if "stalls" in kind else (),
        busy=[(at, float(rng.uniform(2, 15)), 0.5) for at in busy] if "neighbours" in kind else (),
        falls_at_s=6 * seconds if "falls" in kind else LONG_S,
        falls_to=0.7,
    )
    return server, capacity * (0.7, 0.1, 2.0)[seed // 9 % 3]


def state(each: LimitProbe) -> str:
    return each.counts[0].state


def check(cell: CellLimit) -> None:
    """The sentence, JSON, CSV, table and page never deny what a probe met or missed."""
    (limit,) = cell.limits
    sentence = limit_sentence(cell, limit)
    met = [each.rate_per_s for each in cell.probes if state(each) == "met"]
    missed = [each.rate_per_s for each in cell.probes if state(each) == "missed"]
    assert (limit.met_at_per_s, limit.missed_at_per_s) == (max(met, default=None), min(missed, default=None))
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
    made = report(cell)
    assert sentence in RENDERERS["md"](made).decode().replace("&lt;", "<")
    (row,) = [row for row in csv.DictReader(io.StringIO(RENDERERS["csv"](made).decode())) if row["row"] == "limit"]
    assert row["doubts"] == "; ".join(limit.doubts)
    assert LimitAnswer.model_validate(json.loads(RENDERERS["json"](made))["cells"][0]["limits"][0]) == limit


@pytest.mark.parametrize("kind", ["stalls", "neighbours", "falls", "stalls, neighbours, falls"])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_said_never_contradicts_the_probes(kind: str, seed: int) -> None:
    server, start_per_s = disturbed(kind, seed)
    check(found(server, start_per_s, seed))


@pytest.mark.long
@pytest.mark.parametrize("kind", ["stalls", "neighbours", "falls", "stalls, neighbours, falls"])
@pytest.mark.parametrize("seed", range(3, 30))
def test_what_is_said_never_contradicts_the_probes_of_many_searches(kind: str, seed: int) -> None:
    server, start_per_s = disturbed(kind, seed)
    check(found(server, start_per_s, seed))


def by_hand(
    *probes: tuple[float, str],
    low: float | None,
    high: float | None,
    findings: tuple[Finding, ...] = (),
    stood_ns: Sequence[int] = (),
) -> str:
    """The sentence of a search with these probes, in their order, which stood still so long, and these ends."""
    search, queue = Search(sets(good=GOOD)), Queue(exponential(1000.0), seconds=0.5)
    evidence = queue.probe(500, np.random.default_rng(1))
    search.add(evidence)
    seen = probe(evidence, search.sets)
    (counts,) = seen.counts
    rows = tuple(
        seen.model_copy(
            update={"rate_per_s": rate, "counts": (counts.model_copy(update={"state": state}),), "stalled_ns": stood}
        )
        for (rate, state), stood in zip(probes, stood_ns or [0] * len(probes), strict=True)
    )
    known = Seen(rows, findings)
    (first,) = search.limits()
    limit = answer(replace(first, low_per_s=low, high_per_s=high, decided=True), search, known)
    cell = CellLimit(
        slug="s", server="s", scenario="", load="", ended="converged", confirmed=True, limits=(limit,), probes=rows
    )
    return limit_sentence(cell, limit)


def test_a_rate_that_met_is_never_denied() -> None:
    said = by_hand((69, "missed"), (4253, "met"), (69, "missed"), low=None, high=9000.0)
    assert "no rate is known" not in said
    assert "1 of 3 probes met it, the highest at 4,253/s" in said
    assert "2 of 3 probes missed it, the lowest at 69/s" in said


def test_a_single_miss_far_below_is_called_a_stall() -> None:
    said = by_hand((69, "missed"), (4000, "met"), (5000, "missed"), (5000, "missed"), low=4000.0, high=5000.0)
    assert said.endswith("but 1 of 4 probes missed it, the lowest at 69/s: a stall, unless it repeats")


def test_answers_that_changed_on_the_way_are_said_with_their_moment() -> None:
    rows = ((2000, "met"), (4000, "met"), (5000, "missed"), (2800, "missed"), (3000, "missed"), (2500, "met"))
    said = by_hand(*rows, low=2500.0, high=2800.0)
    when = "some moment between probe 2 and probe 4"
    assert said.startswith(f"s misses good from 2,800/s on since {when}; before that it met it up to 4,000/s")
    assert "±" not in said


def test_disturbance_is_in_the_sentence_with_its_count() -> None:
    about = {"kind": "cpu-pressure", "message": "", "advice": "", "cell_id": ""}
    findings = tuple(Finding(**about, grade=Grade.WARN, position=at) for at in range(3))
    note = Finding(**about, grade=Grade.NOTE, position=3)
    rows = ((1000, "met"), (1500, "met"), (2000, "missed"), (2000, "missed"))
    said = by_hand(*rows, low=1500.0, high=2000.0, findings=(*findings, note))
    assert said.endswith("; disturbed (cpu-pressure in 3 of 4 probes): by itself it may meet more")


def test_a_server_that_stands_still_is_told_from_one_that_is_overloaded() -> None:
    rng = np.random.default_rng(4)
    assert stall_ns(Disturbed(exponential(1000.0), 2.0, stalls=[(1.0, 0.5)]).probe(500, rng)) > 400_000_000
    assert stall_ns(Disturbed(exponential(1000.0), 2.0).probe(500, rng)) == 0
    assert stall_ns(Disturbed(exponential(1000.0), 2.0).probe(3000, rng)) == 0


def test_a_stall_in_the_first_probe_does_not_hide_the_limit() -> None:
    """The first probe stands still and misses; the limit is far above it."""
    cell = found(Disturbed(exponential(4000.0), 1.0, stalls=[(0.4, 0.7)]), 1000.0, 1)
    (limit,) = cell.limits
    assert state(cell.probes[0]) == "missed"
    assert limit.passed_per_s is not None
    assert limit.passed_per_s > 2000
    assert limit.failed_per_s is None or limit.failed_per_s > 3500


@pytest.mark.parametrize(("stalls", "says"), [(1, "1 of the 2 probes"), (2, "all 2 probes")])
def test_a_server_that_stood_still_where_it_missed_is_said(stalls: int, says: str) -> None:
    rows = ((1000, "met"), (2000, "missed"), (2000, "missed"), (4000, "missed"))
    stood = [0] + [300_000_000] * stalls + [0] * (3 - stalls)
    said = by_hand(*rows, low=1000.0, high=2000.0, stood_ns=stood)
    assert f"it answered nothing for up to 300 ms in {says} that missed it up to there" in said
    assert "answered nothing" not in by_hand(*rows, low=1000.0, high=2000.0, stood_ns=[0, 0, 0, 300_000_000])


def test_stalls_of_many_requests_and_few_are_published_with_their_probe() -> None:
    cell = found(Disturbed(exponential(4000.0), 1.0, stalls=[(0.4, 0.7)]), 1000.0, 1)
    assert cell.probes[0].stalled_ns > 500_000_000
    assert not any(probe.stalled_ns for probe in cell.probes if state(probe) == "met")
