"""Rankings: best first, equal ranks where intervals overlap, and nothing ranked that may not be."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.analysis.ranking import Bounded, places, with_bounds
from redline.model import Bound, Closed, Comparison, Estimate, Metric, Open, Option, Place, Run, Share, Think, Verdict
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, STEADY, simulated_run


def estimate(value: float, low: float | None, high: float | None) -> Estimate:
    return Estimate(value=value, low=low, high=high, unit="1/s", n=5, method="given")


def ranks(ranked: tuple[Place, ...]) -> list[tuple[str, int]]:
    return [(place.cell_id, place.rank) for place in ranked]


FOUR = {"a": estimate(100, 90, 110), "b": estimate(95, 88, 99), "c": estimate(89, 86, 89.5), "d": estimate(80, 70, 89)}


def test_a_rank_is_that_of_the_first_as_long_as_its_interval_is_reached() -> None:
    # c overlaps b and not a, so it begins a rank at its position; d overlaps c.
    assert ranks(places(FOUR, higher_is_better=True)) == [("a", 1), ("b", 1), ("c", 3), ("d", 3)]


def test_where_less_is_better_the_least_is_first() -> None:
    assert ranks(places(FOUR, higher_is_better=False)) == [("d", 1), ("c", 1), ("b", 1), ("a", 4)]


def test_what_has_no_interval_has_no_rank() -> None:
    assert ranks(places({**FOUR, "e": estimate(500, None, None)}, higher_is_better=True))[0] == ("a", 1)
    assert places({}, higher_is_better=True) == ()


estimates = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=3),
    st.builds(
        lambda value, below, above: estimate(value, value - below, value + above),
        st.integers(1, 50),
        st.integers(0, 20),
        st.integers(0, 20),
    ),
    max_size=12,
)


@given(estimates, st.booleans(), st.randoms())
def test_the_order_in_which_cells_come_changes_nothing(
    found: dict[str, Estimate], higher: bool, random: Random
) -> None:
    shuffled = list(found.items())
    random.shuffle(shuffled)
    assert places(dict(shuffled), higher_is_better=higher) == places(found, higher_is_better=higher)


@given(estimates, st.booleans())
def test_the_laws_of_ranks(found: dict[str, Estimate], higher: bool) -> None:
    ranked = places(found, higher_is_better=higher)
    assert {place.cell_id for place in ranked} == set(found)
    assert [place.rank for place in ranked] == sorted(place.rank for place in ranked)
    assert not ranked or ranked[0].rank == 1
    levels = [place.estimate for place in ranked if place.estimate]
    assert len(levels) == len(ranked)
    values = [level.value for level in levels]
    assert values == sorted(values, reverse=higher)
    for position, place in enumerate(ranked, start=1):
        leader, own = levels[place.rank - 1], levels[position - 1]
        assert place.rank <= position
        assert ranked[place.rank - 1].rank == place.rank
        assert leader.low is not None
        assert leader.high is not None
        assert own.low is not None
        assert own.high is not None
        assert own.low <= leader.high
        assert leader.low <= own.high


def compared(cell: str, baseline: str, low: float, high: float, verdict: Verdict | None = None) -> Comparison:
    ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, unit="ratio", n=5, method="given")
    said = verdict or (Verdict.INCONCLUSIVE if low <= 1 <= high else Verdict.FASTER if low > 1 else Verdict.SLOWER)
    return Comparison(
        metric=Metric.THROUGHPUT, cell_id=cell, baseline_id=baseline, ratio=ratio, verdict=said, threshold=0.02
    )


NOISY = {name: estimate(100, 40, 160) for name in "abc"}


def test_a_ranking_rests_on_the_comparisons_where_there_are_some() -> None:
    found = [compared("b", "a", 0.66, 0.70), compared("c", "a", 1.3, 1.4)]
    ranked = places(NOISY, found, higher_is_better=True)
    assert ranks(ranked) == [("c", 1), ("a", 2), ("b", 3)]
    assert [place.ratio for place in ranked] == [found[1].ratio, None, found[0].ratio]
    assert ranks(places(NOISY, found, higher_is_better=False)) == [("b", 1), ("a", 2), ("c", 3)]


def test_levels_that_are_off_do_not_turn_a_comparison_around() -> None:
    levels = {"a": estimate(80, 79, 81), "b": estimate(120, 119, 121), "z": estimate(40, 39, 41)}
    ranked = places(levels, [compared("b", "a", 0.66, 0.70)], higher_is_better=True)
    assert ranks(ranked) == [("a", 1), ("b", 2), ("z", 3)]


def test_two_with_a_common_baseline_are_compared_by_their_ratios_to_it() -> None:
    apart = [compared("b", "a", 0.50, 0.52), compared("c", "a", 0.66, 0.70)]
    assert ranks(places(NOISY, apart, higher_is_better=True)) == [("a", 1), ("c", 2), ("b", 3)]
    near = [compared("b", "a", 0.50, 0.52), compared("c", "a", 0.51, 0.53)]
    assert ranks(places(NOISY, near, higher_is_better=True)) == [("a", 1), ("c", 2), ("b", 2)]


def test_a_chain_of_comparisons_is_one_order() -> None:
    chain = [compared("b", "a", 0.80, 0.84), compared("c", "b", 0.80, 0.84)]
    assert ranks(places(NOISY, chain, higher_is_better=True)) == [("a", 1), ("b", 2), ("c", 3)]
    held_back = [chain[0], compared("c", "b", 0.95, 0.99, Verdict.INCONCLUSIVE)]
    assert ranks(places(NOISY, held_back, higher_is_better=True)) == [("a", 1), ("b", 2), ("c", 2)]


def test_what_compares_two_elsewhere_in_the_report_distinguishes_them() -> None:
    found = [compared("b", "a", 0.9, 0.99), compared("c", "a", 0.9, 0.97)]
    step = compared("c", "b", 0.96, 0.99)
    assert [place.rank for place in places(NOISY, found, higher_is_better=True)] == [1, 2, 2]
    assert [place.rank for place in places(NOISY, found, [step], higher_is_better=True)] == [1, 2, 3]


ratios = st.dictionaries(
    st.sampled_from("bcdefg"),
    st.tuples(st.sampled_from("abc"), st.floats(0.3, 3), st.floats(1.0, 1.6)),
    max_size=6,
)


@given(ratios, st.dictionaries(st.sampled_from("abcdefg"), st.floats(50, 150), min_size=1))
def test_no_ranking_contradicts_a_comparison(
    written: dict[str, tuple[str, float, float]], levels: dict[str, float]
) -> None:
    """A server that a comparison calls faster stands above its baseline, and shares no rank, whatever trials show."""
    found = [compared(one, base, at / wide, at * wide) for one, (base, at, wide) in written.items() if base < one]
    ranked = places({name: estimate(at, at / 3, at * 3) for name, at in levels.items()}, found, higher_is_better=True)
    rank = {place.cell_id: place.rank for place in ranked}
    for one in found:
        if one.cell_id in rank and one.baseline_id in rank and one.verdict is not Verdict.INCONCLUSIVE:
            assert (rank[one.cell_id] < rank[one.baseline_id]) == (one.verdict is Verdict.FASTER)


FIELD = {
    "rust.hyper": GOOD,
    "rust.axum": replace(GOOD, rate_per_s=12_000.0, response_ns=900_000.0),
    "vertx.vanilla": replace(GOOD, rate_per_s=19_950.0),
}


def with_option(run: Run, name: str, values: dict[str, str]) -> Run:
    """The run as if these servers had that option, with these values; servers that are not named do not have it."""
    option = Option(values=tuple(sorted(set(values.values()))), default="default")
    plan = run.manifest.plan
    variants = {}
    for variant in plan.suite.variants:
        server = variant.entry.name
        if server in values:
            entry = variant.entry.model_copy(update={"options": {name: option}})
            variants[server] = variant.model_copy(update={"entry": entry, "options": {name: values[server]}})
        else:
            variants[server] = variant
    cells = {
        cell_id: cell.model_copy(update={"variant": variants.get(cell.variant.entry.name, cell.variant)})
        for cell_id, cell in plan.cells.items()
    }
    suite = plan.suite.model_copy(update={"variants": tuple(variants.values())})
    plan = plan.model_copy(update={"suite": suite, "cells": cells})
    return run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})


@pytest.fixture(scope="module")
def run() -> Run:
    return simulated_run(FIELD)


def test_servers_are_ranked_by_throughput_or_by_p99(run: Run) -> None:
    closed, steady = build_report(run).rankings
    assert (closed.scenario, closed.load, closed.setting, closed.metric) == (
        "SimpleGet",
        "saturate",
        "",
        Metric.THROUGHPUT,
    )
    assert (steady.load, steady.metric) == ("steady", Metric.P99)
    for ranking in (closed, steady):
        assert [place.rank for place in ranking.places] == [1, 1, 3]
        assert ranking.places[2].cell_id.startswith("rust.axum")
    report = build_report(run)
    shown = {cell.cell_id: cell.estimates for cell in report.cells}
    assert all(place.estimate == shown[place.cell_id][closed.metric] for place in closed.places)
    assert not any("oracle" in place.cell_id for ranking in report.rankings for place in ranking.places)


def test_servers_are_ranked_by_the_metric_that_their_suite_names(run: Run) -> None:
    plan = run.manifest.plan
    suite = plan.suite.model_copy(update={"metric": Metric.CPU_PER_REQUEST})
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"suite": suite})})
    made = build_report(run.model_copy(update={"manifest": manifest})).rankings
    assert {ranking.metric for ranking in made} == {Metric.CPU_PER_REQUEST}


@pytest.mark.parametrize(
    "shape",
    [Closed(users=64, pace_per_s=10), Closed(users=64, think=Think(mean_ns=1_000))],
    ids=["pace", "think"],
)
def test_users_who_wait_are_ranked_by_p99(shape: Closed) -> None:
    waiting = SATURATE.model_copy(update={"shape": shape})
    (ranking,) = build_report(simulated_run(FIELD, loads=(waiting,))).rankings
    assert ranking.metric is Metric.P99


@pytest.mark.parametrize(
    "wrong",
    [replace(GOOD, engine_busy=0.99, server_busy=0.4), replace(GOOD, perturbed=True)],
    ids=["invalid", "perturbed"],
)
def test_what_may_not_be_compared_is_not_ranked(wrong: Behaviour) -> None:
    run = simulated_run({**FIELD, "rust.axum": wrong}, loads=(SATURATE,))
    (ranking,) = build_report(run).rankings
    assert [place.cell_id.split(".Simple")[0] for place in ranking.places] == ["rust.hyper", "vertx.vanilla"]


def test_with_one_trial_or_one_server_there_is_nothing_to_rank() -> None:
    assert build_report(simulated_run(FIELD, trials=1)).rankings == ()
    assert build_report(simulated_run({"rust.hyper": GOOD})).rankings == ()


def test_values_of_an_option_that_all_have_make_rankings_of_their_own() -> None:
    four = {**FIELD, "netty.tapir": GOOD}
    values = {"rust.hyper": "on", "rust.axum": "off", "vertx.vanilla": "off", "netty.tapir": "on"}
    run = simulated_run(four, loads=(SATURATE,))
    found = build_report(with_option(run, "interceptor", values)).rankings
    assert [(ranking.setting, len(ranking.places)) for ranking in found] == [
        ("interceptor=on", 2),
        ("interceptor=off", 2),
    ]
    some = {name: value for name, value in values.items() if name != "netty.tapir"}
    (whole,) = build_report(with_option(run, "interceptor", some)).rankings
    assert (whole.setting, len(whole.places)) == ("", 4)


def test_loads_whose_rate_is_not_the_same_for_all_are_not_ranked(run: Run) -> None:
    plan = run.manifest.plan
    cells = {}
    for cell_id, cell in plan.cells.items():
        if cell.load.name == STEADY.name:
            rate = 4_000.0 if cell.variant.slug == "rust.axum" else 5_000.0
            shape = Open(rate_per_s=rate, connections=64, share=Share(share=0.5, of="saturate"))
            cells[cell_id] = cell.model_copy(update={"load": cell.load.model_copy(update={"shape": shape})})
        else:
            cells[cell_id] = cell
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": cells})})
    report = build_report(run.model_copy(update={"manifest": manifest}))
    assert [ranking.load for ranking in report.rankings] == ["saturate"]


def bounded(name: str, low: float, high: float) -> Bounded:
    open_end = high == float("inf")
    ends = {"at_least": low} if open_end else {"at_most": high}
    return Bounded(name, Bound(**ends, unit="1/s", finding="send-lateness", reason="Late."), (low, high))


@pytest.mark.parametrize(
    ("reach", "higher", "expected"),
    [
        ((0.0, 69.0), False, [("x", 1), ("d", 2), ("c", 2), ("b", 2), ("a", 5)]),
        ((0.0, 69.0), True, [("a", 1), ("b", 1), ("c", 3), ("d", 3), ("x", 5)]),
        ((111.0, float("inf")), True, [("x", 1), ("a", 2), ("b", 2), ("c", 4), ("d", 4)]),
        ((0.0, 71.0), False, [("d", 1), ("c", 1), ("b", 1), ("a", 4)]),
        ((100.0, float("inf")), True, [("a", 1), ("b", 1), ("c", 3), ("d", 3)]),
    ],
    ids=["at most, first", "at most, last", "at least, first", "at most, undecided", "at least, undecided"],
)
def test_a_bound_is_ranked_only_where_it_decides(
    reach: tuple[float, float], higher: bool, expected: list[tuple[str, int]]
) -> None:
    ranked = places(FOUR, higher_is_better=higher)
    assert ranks(with_bounds(ranked, [bounded("x", *reach)], higher_is_better=higher)) == expected


def test_bounds_alone_are_ranked_where_at_most_and_at_least_are_apart() -> None:
    below, above, over = bounded("x", 0.0, 5.0), bounded("y", 6.0, float("inf")), bounded("z", 4.0, float("inf"))
    assert ranks(with_bounds((), [above, below], higher_is_better=False)) == [("x", 1), ("y", 2)]
    assert with_bounds((), [over, below], higher_is_better=False) == ()
    assert with_bounds((), [below, below], higher_is_better=False) == ()
