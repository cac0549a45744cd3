"""Many comparisons at once: the laws of Holm's correction, and how seldom equal cells are called different."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from redline.analysis.compare import Question, with_verdicts
from redline.model import Comparison, Estimate, Metric, Verdict
from redline.stats import ALPHA, Ratios, adjust, holm_adjust, paired
from tests.studies.families import planted, rates

chances = st.lists(st.floats(0, 1), max_size=30)


def test_by_hand() -> None:
    assert holm_adjust([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm_adjust([0.5, 0.9]) == (1.0, 1.0)
    assert holm_adjust([0.03]) == (0.03,)
    assert holm_adjust([]) == ()


@given(chances)
def test_adjusted_are_chances_no_smaller_than_plain_ones_and_no_larger_than_bonferronis(ps: list[float]) -> None:
    adjusted = holm_adjust(ps)
    assert all(p <= each <= min(1, p * len(ps)) for p, each in zip(ps, adjusted, strict=True))


@given(chances)
def test_the_order_is_kept(ps: list[float]) -> None:
    adjusted = holm_adjust(ps)
    by_plain = [adjusted[place] for place in sorted(range(len(ps)), key=lambda each: ps[each])]
    assert by_plain == sorted(by_plain)
    assert holm_adjust(ps[::-1]) == adjusted[::-1]


@given(chances, st.floats(0, 1))
def test_more_comparisons_make_none_more_certain(ps: list[float], another: float) -> None:
    assert all(one <= more for one, more in zip(holm_adjust(ps), holm_adjust([*ps, another]), strict=False))


def comparison(
    metric: Metric, p: float | None, low: float = 1.05, high: float = 1.15, cell_id: str = "a"
) -> Comparison:
    """A cell that is slower, or faster in throughput, if nothing else is compared with it."""
    ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, unit="ratio", n=5, method="given")
    return Comparison(
        metric=metric, cell_id=cell_id, baseline_id="b", ratio=ratio, verdict=None, threshold=0.02, primary=True, p=p
    )


def as_one(_: Comparison) -> Question:
    return Question("all", "a")


def test_a_family_holds_verdicts_back_and_the_interval_stays() -> None:
    slow = [comparison(Metric.P99, p) for p in (0.001, 0.01, 0.02)]
    made = with_verdicts([*slow, comparison(Metric.CPU_PER_REQUEST, 0.03)], as_one)
    assert [each.verdict for each in made] == [Verdict.SLOWER] * 4
    assert [each.matters for each in made] == [True] * 4
    made = with_verdicts([*slow, comparison(Metric.P99, 0.04), comparison(Metric.CPU_PER_REQUEST, 0.03)], as_one)
    assert [each.verdict for each in made] == [Verdict.SLOWER, Verdict.SLOWER, *[Verdict.INCONCLUSIVE] * 3]
    assert [each.held_back for each in made] == [False, False, True, True, True]
    assert {(each.family, each.family_name) for each in made} == {(5, "all")}
    assert made[2].p_adjusted == pytest.approx(0.06)
    assert made[2].ratio == slow[2].ratio
    assert made[2].p == 0.02


def test_families_do_not_hold_each_other_back() -> None:
    slow = [comparison(metric, 0.02) for metric in (Metric.P99, Metric.CPU_PER_REQUEST)]
    made = with_verdicts([*slow, comparison(Metric.P99, 0.9)], lambda one: Question(one.metric.words, "a"))
    assert [(each.family_name, each.family) for each in made] == [("p99", 2), ("CPU per request", 1), ("p99", 2)]
    assert [each.p_adjusted for each in made] == pytest.approx([0.04, 0.02, 0.9])


def test_what_is_described_or_refused_has_no_verdict() -> None:
    refused = comparison(Metric.P99, None).model_copy(update={"ratio": None, "refused": "why"})
    described = comparison(Metric.P50, None).model_copy(update={"primary": False})
    made = with_verdicts([refused, comparison(Metric.P99, 0.04), described], as_one)
    assert (made[0], made[2]) == (refused, described)
    assert (made[1].p_adjusted, made[1].family, made[1].verdict) == (0.04, 1, Verdict.SLOWER)


def test_a_small_difference_that_is_not_significant_among_others_is_equivalent() -> None:
    """Alone it is a difference that does not matter; neither word contradicts its interval."""
    same = comparison(Metric.P99, 0.01, 1.001, 1.01)
    (alone,) = with_verdicts([same], as_one)
    assert (alone.verdict, alone.matters) == (Verdict.SLOWER, False)
    among = with_verdicts([same, *[comparison(Metric.P99, 0.9)] * 20], as_one)[0]
    assert (among.verdict, among.matters) == (Verdict.EQUIVALENT, None)
    assert not among.held_back


def test_a_family_of_equal_cells_seldom_holds_a_difference() -> None:
    """20 comparisons of equal cells with a baseline: any is called different in at most 5% of the families."""
    families, wrong = 150, 0
    for seed in range(families):
        rng = np.random.default_rng([seed, 3])
        baseline = Ratios(np.exp(rng.normal(0, 0.03, 5)), np.ones(5))
        found = [paired(Ratios(np.exp(rng.normal(0, 0.03, 5)), np.ones(5)), baseline) for _ in range(20)]
        wrong += min(holm_adjust([each.p or 0.0 for each in found if each])) < ALPHA
    assert wrong <= stats.binom.ppf(1 - 1e-4, families, 0.05)


def by_definition(ps: list[float], servers: list[int], alpha: float) -> list[bool]:
    """What is called different at a level: servers by Benjamini and Hochberg, then of each by Holm at what is left."""
    own = {each: holm_adjust([p for p, of in zip(ps, servers, strict=True) if of == each]) for each in set(servers)}
    smallest = sorted(min(each) for each in own.values())
    called = max((at for at, p in enumerate(smallest, 1) if p <= alpha * at / len(own)), default=0)
    taken = {server: iter(each) for server, each in own.items()}
    return [next(taken[server]) <= alpha * called / len(own) for server in servers]


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 5)), min_size=1, max_size=20), st.floats(0.001, 0.999))
def test_adjusted_values_are_the_levels_from_which_on_each_is_called_different(
    members: list[tuple[float, int]], alpha: float
) -> None:
    ps, servers = [p for p, _ in members], [server for _, server in members]
    adjusted = adjust(ps, servers)
    assume(all(abs(p - alpha) > 1e-9 for p in adjusted))
    assert [p <= alpha for p in adjusted] == by_definition(ps, servers, alpha)


@given(chances)
def test_one_server_is_adjusted_by_holm_alone(ps: list[float]) -> None:
    assert adjust(ps, ["one"] * len(ps)) == pytest.approx(holm_adjust(ps))


def test_many_servers_that_differ_do_not_hold_each_other_back() -> None:
    """Factors of six after three rounds on a busy machine: Holm's method would ask for 60 times less."""
    assert max(holm_adjust([0.005] * 60)) > ALPHA > max(adjust([0.005] * 60, range(60)))


def test_a_planted_request_is_found_and_no_other_is_called_different_more_often_than_stated() -> None:
    """12 requests of one service: the study behind decision 35, in little."""
    found = rates(200, 5, 0.03, planted((1, 12), 1.5, "one"))["FDR of servers, Holm within"]
    assert found[0] > 0.99
    assert found[2] <= stats.binom.ppf(1 - 1e-4, 200, 0.05) / 200
