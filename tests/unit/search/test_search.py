"""The search's laws: where it goes, when it ends, and that it never claims more than it knows."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from redline.extras.selftest.truth import exponential
from redline.model import Objective
from redline.search import Converged, Doomed, Evidence, Exhausted, Proposal, Search, Settings
from redline.search.interval import Bounds
from redline.search.steps import steps
from redline.suite import parse_objectives
from tests.fakes.cliffs import cliff, probe
from tests.fakes.queues import Queue, searched, true_limit
from tests.studies.limit import SETTINGS, Outcome, Setting, one, plain

GOOD = parse_objectives("p99 < 20ms, errors < 0.1%")
ACCEPTABLE = parse_objectives("p99 < 200ms")


def walked(search: Search, server: Callable[[float], Evidence]) -> tuple[list[float], Converged | Exhausted | Doomed]:
    tried: list[float] = []
    while isinstance(step := search.next(), Proposal):
        tried.append(step.rate_per_s)
        assert len(tried) <= search.settings.most_probes(len(search.sets))
        search.add(server(step.rate_per_s))
    return tried, step


def test_it_begins_at_the_start_and_doubles() -> None:
    tried, _ = walked(Search({"good": GOOD}, Settings(start_per_s=300)), cliff(2500))
    assert tried[:5] == pytest.approx([300, 600, 1200, 2400, 4800], rel=0.01)


def test_it_halves_while_nothing_passes() -> None:
    tried, _ = walked(Search({"good": GOOD}, Settings(start_per_s=800)), lambda rate: probe(rate, response_ms=rate / 7))
    assert tried[:4] == [800, 400, 200, 100]


def test_a_cliff_is_between_its_bounds_without_a_model() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=1000))
    _, end = walked(search, cliff(3100))
    (limit,) = search.limits()
    assert isinstance(end, Converged)
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= 3100 * 1.03  # a probe cannot know what lies past the cliff by so little
    assert limit.high_per_s >= 3100
    assert limit.decided


def test_the_same_probes_lead_to_the_same_proposals() -> None:
    first, second = (walked(Search({"good": GOOD}), cliff(3100))[0] for _ in range(2))
    assert first == second


def test_a_first_rate_that_is_too_low_for_the_probes_is_said_to_be_raised() -> None:
    settings = Settings(start_per_s=10, lowest_per_s=20, lower="for lower rates give longer probes (-d)")
    first = Search({"good": GOOD}, settings).next()
    assert first == Proposal(20, "to begin with, not at 10/s: for lower rates give longer probes (-d)")
    assert Search({"good": GOOD}, replace(settings, start_per_s=20)).next() == Proposal(20, "to begin with")


def test_what_even_the_lowest_rate_fails_is_doomed() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=4, lowest_per_s=1))
    tried, end = walked(search, lambda rate: Evidence(rate, probe(20, response_ms=50).slices))
    assert isinstance(end, Doomed)
    assert "even" in end.reason
    assert tried == [4, 2, 1]


def test_a_load_generator_at_its_end_is_reported_and_what_passed_before_is_kept() -> None:
    def server(rate: float) -> Evidence:
        if rate < 3000:
            return probe(rate)
        return Evidence(rate, probe(3000).slices, client="the engine's workers were saturated")

    _, end = walked(Search({"good": GOOD}), server)
    assert isinstance(end, Doomed)
    assert "not the server" in end.reason
    assert end.limits[0].low_per_s == 2000
    assert end.limits[0].high_per_s is None


def test_a_server_that_always_passes_ends_at_the_highest_rate_allowed() -> None:
    _, end = walked(Search({"good": GOOD}, Settings(start_per_s=1000, highest_per_s=4000)), probe)
    assert isinstance(end, Doomed)
    assert "highest rate allowed" in end.reason


def test_errors_alone_can_be_the_limit() -> None:
    search = Search({"it": parse_objectives("errors < 1%")}, Settings(start_per_s=1000))
    walked(search, lambda rate: probe(rate, errors=0.05 if rate > 1500 else 0.0))
    (limit,) = search.limits()
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= 1500 <= limit.high_per_s
    assert limit.decided
    assert not limit.modelled


def unlucky(server: Callable[[float], Evidence], *at: int) -> Callable[[float], Evidence]:
    """The same server, but in the probes with these numbers it is cold, and slow."""
    number = iter(range(1000))
    return lambda rate: probe(rate, response_ms=100) if next(number) in at else server(rate)


def test_a_cold_first_probe_does_not_fix_the_answer() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=1000, probes=20, precision=0.05, looks=False))
    tried, end = walked(search, unlucky(cliff(5000), 0))
    (limit,) = search.limits()
    assert isinstance(end, Converged)
    assert tried.count(1000) == 2
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= 5000 * 1.03
    assert limit.high_per_s >= 5000
    assert limit.decided


def test_a_cold_probe_below_what_passed_is_tried_again() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=1000, probes=20, precision=0.05, looks=False))
    tried, _ = walked(search, unlucky(cliff(5000), 1))
    assert tried.count(2000) == 2
    assert search.limits()[0].high_per_s == pytest.approx(5000, rel=0.1)


def test_confirmed_is_an_answer_whose_ends_fresh_probes_did_not_contradict() -> None:
    _, end = walked(Search({"good": GOOD}, Settings(start_per_s=1000, probes=20)), cliff(3100))
    assert isinstance(end, Converged)
    assert end.confirmed


def test_what_was_not_decided_is_not_confirmed() -> None:
    _, end = walked(Search({"good": GOOD}, Settings(start_per_s=1000, probes=5)), cliff(3100))
    assert isinstance(end, Converged)
    assert not end.confirmed


def test_an_end_that_a_fresh_probe_contradicts_is_not_confirmed() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=1000, probes=12))
    while isinstance(step := search.next(), Proposal):
        fresh = step.why.startswith("fresh")
        search.add(probe(step.rate_per_s, response_ms=100) if fresh else cliff(3100)(step.rate_per_s))
    assert not isinstance(step, Converged) or not step.confirmed


def test_a_set_without_an_answer_does_not_take_it_from_the_others() -> None:
    sets = {"never": parse_objectives("p99 < 500us"), "good": GOOD}
    tried, end = walked(Search(sets, Settings(start_per_s=100, lowest_per_s=25, probes=30)), cliff(3100))
    assert isinstance(end, Converged)
    never, good = end.limits
    assert "even 25/s" in never.reason
    assert (never.low_per_s, never.decided) == (None, False)
    assert good.decided
    assert not good.reason
    assert tried.count(25) == 1


def test_a_load_generator_that_was_late_twice_is_not_asked_again() -> None:
    def server(rate: float) -> Evidence:
        return Evidence(rate, probe(rate).slices, client="it was late") if 3000 < rate < 5000 else cliff(5500)(rate)

    tried, end = walked(Search({"good": GOOD}, Settings(start_per_s=8000, probes=20)), server)
    assert isinstance(end, Converged)
    assert not end.confirmed
    (limit,) = end.limits
    assert "it was late" in limit.reason
    assert limit.high_per_s is not None
    assert limit.low_per_s is not None
    assert sum(3000 < rate < 5000 for rate in tried) == 2
    assert len(tried) < 11


def test_a_load_generator_that_was_late_once_is_asked_again() -> None:
    late: list[float] = []

    def server(rate: float) -> Evidence:
        if 3000 < rate < 5000 and not late:
            late.append(rate)
            return Evidence(rate, probe(rate).slices, client="it was late")
        return cliff(5500)(rate)

    tried, end = walked(Search({"good": GOOD}, Settings(start_per_s=8000, probes=20)), server)
    assert isinstance(end, Converged)
    (limit,) = end.limits
    assert not limit.reason
    assert limit.low_per_s is not None
    assert limit.low_per_s > 5000
    assert tried.count(late[0]) == 2


def test_errors_below_a_far_edge_do_not_drive_the_search_there() -> None:
    rng = np.random.default_rng(12)
    queue = Queue(exponential(6000.0))

    def server(rate: float) -> Evidence:
        found = queue.probe(rate, rng)
        wrong = tuple(replace(each, errors=each.answered // 20) for each in found.slices)
        return replace(found, slices=wrong) if rate > 1500 else found

    search = Search({"good": parse_objectives("p99 < 200ms, errors < 0.1%")}, Settings(start_per_s=400, probes=16))
    tried, _ = walked(search, server)
    (limit,) = search.limits()
    assert max(tried) <= 1600
    assert limit.decided
    assert limit.low_per_s is not None
    assert limit.high_per_s is not None
    assert limit.low_per_s <= 1500 <= limit.high_per_s
    assert limit.confidence is None


def test_without_a_failure_the_probes_are_exhausted() -> None:
    _, end = walked(Search({"good": GOOD}, Settings(probes=3)), probe)
    assert isinstance(end, Exhausted)
    assert end.limits[0].low_per_s == 4000
    assert end.limits[0].high_per_s is None
    assert end.limits[0].confidence is None


def test_two_sets_of_objectives_share_their_probes() -> None:
    search = Search({"good": GOOD[:1], "acceptable": ACCEPTABLE}, Settings(start_per_s=900, probes=16))
    queue = Queue(exponential(2000.0))
    searched(search, queue, 8)
    good, acceptable = search.limits()
    for limit, below_s in ((good, 0.02), (acceptable, 0.2)):
        truth = true_limit("mm1", 1, 1 / 2000, 0.0, 0.99, below_s)
        assert limit.low_per_s is not None
        assert limit.high_per_s is not None
        assert limit.low_per_s <= truth <= limit.high_per_s
    assert len(search.evidence) <= 16


NESTED = ("p99 < 20ms", "p99 < 50ms", "p99 < 200ms", "p90 < 1s")
"""Every objective implies the next."""


@pytest.mark.parametrize("seed", range(4))
def test_the_limits_of_nested_objectives_never_contradict_each_other(seed: int) -> None:
    """On servers that differ from probe to probe, and fail a quarter of the requests of some probes."""
    rng = np.random.default_rng([seed, 21])
    capacity, sigma = 10 ** rng.uniform(2, 3), rng.choice([0.0, 0.05, 0.15, 0.4])
    queue = Queue(exponential(capacity), seconds=1, warmup_s=0.1, slice_s=0.05, drift=lambda r: r.lognormal(0, sigma))
    chosen = Settings(start_per_s=capacity * 2 ** rng.uniform(-3, 1), probes=14, trials=1)
    search = Search({text: parse_objectives(f"{text}, errors < 1%") for text in NESTED}, chosen)
    while isinstance(step := search.next(), Proposal):
        found = queue.probe(step.rate_per_s, rng, whole=step.whole)
        failing = (replace(each, answered=each.answered * 3 // 4, errors=each.answered // 4) for each in found.slices)
        search.add(replace(found, slices=tuple(failing)) if rng.random() < 0.2 else found)
        limits = search.limits()
        lows = [each.low_per_s or 0.0 for each in limits]
        highs = [each.high_per_s or np.inf for each in limits]
        assert lows == sorted(lows)
        assert highs == sorted(highs)
        assert all(low < high for low, high in zip(lows, highs, strict=True))


def contradicting(evidence: Sequence[Evidence], objective: Objective, confidence: float) -> Bounds:
    """A looser objective that is reported to fail long before the stricter objective."""
    low, high = {"p99 < 200ms": (4000.0, 4400.0), "p99 < 1s": (300.0, 345.0)}[objective.text]
    return Bounds(low, high, modelled=True, fit=None, steps=steps(evidence, objective))


@pytest.mark.parametrize(("trials", "fresh"), [(2, 1), (0, 0)])
def test_a_crossing_is_probed_on_a_fresh_start_and_then_undecided(
    monkeypatch: pytest.MonkeyPatch, trials: int, fresh: int
) -> None:
    monkeypatch.setattr("redline.search.search.bounds_of", contradicting)
    sets = {text: parse_objectives(text) for text in ("p99 < 200ms", "p99 < 1s")}
    search = Search(sets, Settings(start_per_s=1000, probes=12, trials=trials))
    seen = []
    while isinstance(step := search.next(), Proposal):
        seen.append(step)
        search.add(cliff(2500)(step.rate_per_s))
    between = [each for each in seen if each.why == "p99 < 200ms passed above where p99 < 1s failed"]
    assert len(between) == search.settings.repeats
    assert {each.fresh_start for each in between} == {fresh}
    assert [each.rate_per_s for each in between] == pytest.approx([(345 * 4000) ** 0.5] * len(between))
    for limit in search.limits():
        assert (limit.low_per_s, limit.high_per_s, limit.decided) == (300, 4400, False)
        assert limit.reason == (
            "the answers for p99 < 200ms and p99 < 1s contradict each other: the interval spans both"
        )


@pytest.mark.parametrize(("objective", "share"), [("errors < 1%", 1.0), ("errors < 50%", 2.0)])
def test_no_limit_lies_above_what_was_ever_answered(objective: str, share: float) -> None:
    search = Search({"good": parse_objectives(f"p99 < 20ms, {objective}")}, Settings(start_per_s=4000, probes=4))
    tried, _ = walked(search, cliff(18_900))
    assert tried == [4000, 8000, 16_000, 32_000]
    (limit,) = search.limits()
    assert limit.low_per_s == 16_000
    assert limit.high_per_s is not None
    assert min(18_900 * share, 32_000) <= limit.high_per_s <= min(18_900 * share * 1.05, 32_000)


def test_a_server_that_sheds_load_is_not_said_to_reach_what_it_was_offered() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=4000, probes=4))
    walked(search, lambda rate: probe(rate, errors=max(0.0, 1 - 18_900 / rate)))
    (limit,) = search.limits()
    assert limit.high_per_s is not None
    assert 18_900 <= limit.high_per_s <= 18_900 * 1.05


def test_what_a_server_answers_under_overload_is_no_cap_where_it_answered_more_before() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=4000, probes=4))
    walked(search, lambda rate: probe(rate, answered=1.0 if rate < 18_900 else 12_000 / rate))
    (limit,) = search.limits()
    assert (limit.low_per_s, limit.high_per_s) == (16_000, 32_000)


def test_without_a_word_on_errors_a_refusal_counts_and_nothing_is_capped() -> None:
    search = Search({"good": GOOD[:1]}, Settings(start_per_s=4000, probes=4))
    walked(search, cliff(18_900))
    assert search.limits()[0].high_per_s == 32_000


SCATTERED = Setting("mm1", 2000, "p99 < 20ms", trials=0.15)


@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_probes_that_differ_make_a_wide_answer_that_says_what_would_decide_it(seed: int) -> None:
    found = one(SCATTERED, seed)
    assert found.hit
    assert found.modelled
    assert found.probes_differ
    assert not found.decided
    assert re.fullmatch(
        r"probes differ by \d+%, however long they are: about --probes \d+ would decide it", found.reason
    )


@pytest.mark.parametrize(
    ("high_per_s", "says"),
    [
        (1_100.0, "starts differ: about --trials 11 would decide it"),
        (1_700.0, "starts differ too much: 40 of them would not decide it"),
    ],
)
def test_starts_that_nobody_waits_for_are_no_advice(high_per_s: float, says: str) -> None:
    search = Search({"good": GOOD}, Settings(precision=0.03))
    for start in range(4):
        search.add(replace(probe(1_000), start=start))
    known = {"p99": Bounds(1_000.0, high_per_s, modelled=True, fit=None, steps=(), starts_differ=True)}
    assert search._wanting(known, [*known.values()]) == says


@pytest.mark.parametrize(
    ("high_per_s", "says"),
    [
        (1_100.0, "about --probes 11 would decide it, or probes 2.5 times as long"),
        (400_000.0, "to decide it would take more than an hour of probes"),
    ],
)
def test_probes_that_nobody_waits_for_are_no_advice(high_per_s: float, says: str) -> None:
    search = Search({"good": GOOD}, Settings(precision=0.03))
    for _ in range(4):
        search.add(probe(1_000))
    known = {"p99": Bounds(1_000.0, high_per_s, modelled=True, fit=None, steps=())}
    assert search._wanting(known, [*known.values()]) == says


@pytest.mark.long
def test_as_many_probes_as_it_says_decide_it() -> None:
    asked = re.search(r"--probes (\d+)", one(SCATTERED, 2).reason)
    assert asked is not None
    assert one(SCATTERED, 2, probes=2 * int(asked[1])).decided


def test_a_server_that_sags_under_overload_is_not_one_whose_probes_differ() -> None:
    search = Search({"good": GOOD}, Settings(start_per_s=4000))
    walked(search, lambda rate: probe(rate, answered=1.0 if rate < 18_900 else 12_000 / rate))
    assert not search.limits()[0].probes_differ


SEARCHES = 30


def test_an_end_that_is_not_known_holds_nothing() -> None:
    assert not Outcome(-np.inf, 1.1, 12, decided=False, modelled=False).hit
    assert not Outcome(0.9, np.inf, 12, decided=False, modelled=False).hit
    assert Outcome(0.9, 1.1, 12, decided=False, modelled=False).hit


@pytest.mark.long
def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """With 95% coverage, fewer than 25 hits in 30 searches occur once in 300 sets of seeds."""
    found = [one(SETTINGS[0], 1000 + seed) for seed in range(SEARCHES)]
    assert sum(each.hit for each in found) >= 25
    assert float(np.median([(each.high - each.low) / 2 for each in found])) <= 0.03
    assert all(each.probes <= 12 for each in found)
    trusting = [plain(SETTINGS[0], 1000 + seed) for seed in range(SEARCHES)]
    assert sum(each.hit for each in trusting) <= 20
