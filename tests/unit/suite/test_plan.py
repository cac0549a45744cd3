"""A plan is complete, interleaved, repeatable, and changes only where the suite changes."""

from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from redline.model import Plan, Suite
from redline.suite import (
    Catalogue,
    Overrides,
    expected_length_ns,
    expected_trial_ns,
    load_catalogue,
    load_suite,
    make_plan,
    with_rounds,
)
from redline.suite.validate.referenced_files import Files
from redline.suite.validate.resolve import read_suite
from tests.fakes.catalogues import small_catalogue

TEXT = """\
servers: [fam.plain, {use: fam.layered, with: {log: [off, server-log]}}]
baseline: fam.plain
ceiling: top.null
scenarios: [Get, Post]
loads:
  saturate: {closed: {users: 64}, for: 1s}
  steady: {open: {rate: 100}, for: 2s}
warmup: 250ms
design: interleaved
"""


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Catalogue:
    return small_catalogue(tmp_path_factory.mktemp("plan"))


READ = dict[tuple[str, int | None], Suite]()
"""Suites that were read, by text and trials: reading takes far longer than planning."""


def suite_of(catalogue: Catalogue, text: str = TEXT, seed: int | None = None, trials: int | None = None) -> Suite:
    if (text, trials) not in READ:
        READ[text, trials] = read_suite(text, "f.yaml", catalogue, Overrides(trials=trials))
    suite = READ[text, trials]
    return suite if seed is None else suite.model_copy(update={"seed": seed})


seeds = st.integers(0, 2**53 - 1)


@given(seed=seeds, trials=st.integers(1, 12))
def test_every_round_holds_every_cell_once(catalogue: Catalogue, seed: int, trials: int) -> None:
    plan = make_plan(suite_of(catalogue, seed=seed, trials=trials))
    assert [trial.position for trial in plan.trials] == list(range(len(plan.cells) * trials))
    for round_index in range(trials):
        start = round_index * len(plan.cells)
        block = plan.trials[start : start + len(plan.cells)]
        assert {trial.round for trial in block} == {round_index}
        assert {trial.cell_id for trial in block} == set(plan.cells)


@given(seed=seeds)
def test_the_same_suite_gives_the_same_plan(catalogue: Catalogue, seed: int) -> None:
    assert make_plan(suite_of(catalogue, seed=seed)) == make_plan(suite_of(catalogue, seed=seed))


@given(seed=seeds)
def test_compared_cells_get_the_same_arrivals_and_rounds_different_ones(catalogue: Catalogue, seed: int) -> None:
    plan = make_plan(suite_of(catalogue, seed=seed, trials=6))
    seed_sets = [{trial.seed for trial in plan.trials if trial.round == index} for index in range(6)]
    assert all(len(found) == 1 for found in seed_sets)
    assert len(set.union(*seed_sets)) == 6
    assert all(0 <= trial.seed < 2**53 for trial in plan.trials)


@given(seed=seeds)
def test_taking_a_server_out_leaves_the_others_as_they_were(catalogue: Catalogue, seed: int) -> None:
    whole = make_plan(suite_of(catalogue, seed=seed))
    less = make_plan(
        suite_of(catalogue, TEXT.replace("fam.plain, ", "").replace("baseline: fam.plain\n", ""), seed=seed)
    )
    assert set(less.cells) < set(whole.cells)
    expected = [(t.cell_id, t.round, t.seed) for t in whole.trials if t.cell_id in less.cells]
    assert [(t.cell_id, t.round, t.seed) for t in less.trials] == expected


@pytest.mark.parametrize("design", ["interleaved", "duet"])
def test_further_rounds_are_those_of_a_longer_plan(catalogue: Catalogue, design: str) -> None:
    text = TEXT.replace("design: interleaved", f"design: {design}")
    short, long = (make_plan(suite_of(catalogue, text, trials=trials)) for trials in (2, 5))
    assert with_rounds(short, 5) == long
    assert with_rounds(long, 5) == long


def test_orders_differ_between_rounds_and_seeds(catalogue: Catalogue) -> None:
    def orders(plan: Plan) -> set[tuple[str, ...]]:
        rounds = range(plan.suite.trials)
        return {tuple(t.cell_id for t in plan.trials if t.round == index) for index in rounds}

    found = [orders(make_plan(suite_of(catalogue, seed=seed, trials=10))) for seed in (1, 2)]
    assert [len(each) for each in found] == [10, 10]
    assert not found[0] & found[1]


def test_no_cell_is_favoured_by_the_order(catalogue: Catalogue) -> None:
    """Over 1000 rounds all scenarios and loads come first equally often, and a cell precedes its baseline every other
    time (chi-squared and binomial, p = 0.001)."""
    plan = make_plan(suite_of(catalogue, trials=1000))
    cells = [plan.cells[trial.cell_id] for trial in plan.trials]
    rounds = [cells[at : at + len(plan.cells)] for at in range(0, len(cells), len(plan.cells))]
    firsts = [(found[0].role, found[0].scenario.name, found[0].load.name) for found in rounds]
    chi_squared = sum((firsts.count(block) - 1000 / 6) ** 2 / (1000 / 6) for block in set(firsts))
    assert len(set(firsts)) == 6
    assert chi_squared < stats.chi2.ppf(0.999, 5)
    for cell in plan.cells.values():
        if cell.role == "subject" and cell.variant.slug != "fam.plain":
            baseline = f"fam.plain.{cell.scenario.name}.{cell.load.name}"
            slugs = [[each.slug for each in found] for found in rounds]
            before = sum(each.index(cell.slug) < each.index(baseline) for each in slugs)
            assert stats.binom.ppf(0.0005, 1000, 0.5) <= before <= stats.binom.ppf(0.9995, 1000, 0.5)


@given(seed=seeds)
def test_what_is_compared_is_close_together(catalogue: Catalogue, seed: int) -> None:
    """Nothing comes between the servers of a scenario and load; ceilings stand alone."""
    plan = make_plan(suite_of(catalogue, seed=seed))
    for index in range(plan.suite.trials):
        cells = [plan.cells[trial.cell_id] for trial in plan.trials if trial.round == index]
        blocks = [key for key, _ in groupby(cells, key=lambda one: (one.role, one.scenario.name, one.load.name))]
        assert len(blocks) == len(set(blocks)) == 6


def test_of_two_servers_one_runs_next_to_the_other(catalogue: Catalogue) -> None:
    two = TEXT.replace("{use: fam.layered, with: {log: [off, server-log]}}", "fam.layered").replace(
        "ceiling: top.null\n", ""
    )
    plan = make_plan(suite_of(catalogue, two, trials=20))
    slugs = [plan.cells[trial.cell_id].slug for trial in plan.trials]
    for one, other in zip(slugs[::2], slugs[1::2], strict=True):
        assert one.split(".")[2:] == other.split(".")[2:]
    assert len({tuple(slugs[at : at + 2]) for at in range(0, len(slugs), 2)}) == 8, "AB and BA"


def test_the_ceiling_has_a_cell_for_each_scenario_and_closed_load(catalogue: Catalogue) -> None:
    plan = make_plan(suite_of(catalogue))
    assert [cell.slug for cell in plan.cells.values() if cell.role == "ceiling"] == [
        "top.null.Get.saturate",
        "top.null.Post.saturate",
    ]
    assert len([cell for cell in plan.cells.values() if cell.role == "subject"]) == 3 * 2 * 2


def test_a_ceiling_that_is_a_subject_too_is_measured_once(catalogue: Catalogue) -> None:
    plan = make_plan(suite_of(catalogue, TEXT.replace("fam.plain, ", "fam.plain, top.null, ")))
    assert {cell.role for cell in plan.cells.values()} == {"subject"}
    slugs = [cell.slug for cell in plan.cells.values()]
    assert len(slugs) == len(set(slugs)) == 4 * 2 * 2


def test_cells_that_cannot_be_answered_are_skipped_with_the_reason(catalogue: Catalogue) -> None:
    servers = "servers: [{use: fam.plain, with: {routes: [1, 128]}}]"
    text = TEXT.replace(TEXT.splitlines()[0], servers).replace("[Get, Post]", "[GetMulti]")
    plan = make_plan(suite_of(catalogue, text))
    assert {skipped.slug: skipped.reason for skipped in plan.skipped} == {
        "fam.plain+routes=1.GetMulti.saturate": "GetMulti needs routes: 128, and this server has 1",
        "fam.plain+routes=1.GetMulti.steady": "GetMulti needs routes: 128, and this server has 1",
    }
    assert [cell.slug for cell in plan.cells.values()] == [
        "fam.plain.GetMulti.saturate",
        "fam.plain.GetMulti.steady",
        "top.null.GetMulti.saturate",
    ]


def test_servers_that_are_not_available_are_skipped_with_the_reason(catalogue: Catalogue) -> None:
    plan = make_plan(suite_of(catalogue), {"fam.layered": "no compiler", "top.null": "no cargo"})
    assert {skipped.reason for skipped in plan.skipped if skipped.slug.startswith("fam.layered.")} == {"no compiler"}
    assert len([skipped for skipped in plan.skipped if skipped.reason == "no cargo"]) == 2
    assert {cell.variant.slug for cell in plan.cells.values()} == {"fam.plain", "fam.layered+log=server-log"}


def test_a_plan_may_be_left_without_trials(catalogue: Catalogue) -> None:
    suite = suite_of(
        catalogue,
        TEXT.replace("ceiling: top.null\n", "").replace(", {use: fam.layered, with: {log: [off, server-log]}}", ""),
    )
    plan = make_plan(suite, {"fam.plain": "no compiler"})
    assert (plan.trials, plan.cells, len(plan.skipped)) == ((), {}, 4)
    assert expected_length_ns(plan) == 0


def test_the_expected_length_counts_warm_up_measurement_and_the_runtime(catalogue: Catalogue) -> None:
    text = TEXT.replace(TEXT.splitlines()[0], "servers: [fam.plain, slow.vanilla]")
    plan = make_plan(suite_of(catalogue, text, trials=3))
    assert expected_length_ns(plan) == sum(expected_trial_ns(plan.cells[trial.cell_id]) for trial in plan.trials)
    by_slug = {cell.slug: cell for cell in plan.cells.values()}
    native, jvm = by_slug["fam.plain.Get.saturate"], by_slug["slow.vanilla.Get.saturate"]
    assert expected_trial_ns(native) > 1_250_000_000
    assert expected_trial_ns(jvm) > expected_trial_ns(native)
    longer_ns = expected_trial_ns(by_slug["fam.plain.Get.steady"]) - expected_trial_ns(native)
    assert longer_ns == 1_250_000_000, "a server that its load leaves idle is watched without it"


@pytest.mark.parametrize(
    ("stream", "seconds"),
    [("{until: 20, every: 100ms}", 2), ("{until: 20}", 0), ("{for: 3s}", 3), ("{until: 20, for: 3s, every: 100ms}", 3)],
)
def test_conversations_go_on_when_the_load_is_over(catalogue: Catalogue, stream: str, seconds: int) -> None:
    text = TEXT.replace(TEXT.splitlines()[0], "servers: [fam.plain]").replace("ceiling: top.null\n", "")
    plain, followed = (
        make_plan(suite_of(catalogue, text.replace("[Get, Post]", f"[{{name: feed, get: /{more}}}]")))
        for more in ("", f", stream: {{events: sse, {stream.strip('{')}")
    )
    pairs = zip(plain.cells.values(), followed.cells.values(), strict=True)
    assert {expected_trial_ns(after) - expected_trial_ns(before) for before, after in pairs} == {seconds * 10**9}


def test_a_plan_survives_its_own_json(catalogue: Catalogue) -> None:
    plan = make_plan(suite_of(catalogue))
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_the_quickstart_fits_its_time() -> None:
    root = Path(__file__).parents[3]
    plan = make_plan(load_suite(root / "suites" / "quickstart.yaml", load_catalogue(root / "catalogue")))
    assert (len(plan.cells), len(plan.trials), len(plan.duets)) == (10, 60, 24)
    assert expected_length_ns(plan) < 110_000_000_000


@pytest.mark.parametrize(
    ("design", "lasts", "measured_ns"),
    [
        ("interleaved", "60s", 2_251_000_000),
        ("interleaved", "1s", 1_000_000_000),
        ("duet", "60s", 2_251_000_000),
    ],
)
def test_a_replay_ends_with_its_recording(catalogue: Catalogue, design: str, lasts: str, measured_ns: int) -> None:
    assert _replay_of(catalogue, design, lasts, "0\n2.25\n") == {measured_ns}


def test_the_slices_of_a_duet_last_a_second_where_a_recording_is_shorter(catalogue: Catalogue) -> None:
    assert _replay_of(catalogue, "duet", "60s", "0\n0.25\n") == {1_000_000_000}
    assert _replay_of(catalogue, "interleaved", "60s", "0\n0.25\n") == {251_000_000}


def _replay_of(catalogue: Catalogue, design: str, lasts: str, times: str) -> set[int]:
    """How long the cells of a plan are measured that replay these times."""
    load = f"loads:\n  recorded: {{open: {{arrivals: {{replay: times.txt}}}}, for: {lasts}}}\n"
    before, after = TEXT.split("loads:\n", maxsplit=1)[0], f"warmup: 250ms\ndesign: {design}\n"
    suite = read_suite(before + load + after, "f.yaml", catalogue, Overrides(), Files(text=lambda _: times))
    return {cell.load.duration_ns for cell in make_plan(suite).cells.values()}


CLOSING = """\
servers: [{name: a, url: "http://127.0.0.1:1"}]
scenarios:
  - {name: Kept, get: /}
  - {name: Closed, get: /, headers: {connection: close}}
  - {name: Mixed, requests: [{get: /}, {get: /b, headers: {Connection: close}}]}
loads: {load: {closed: {users: 2}, for: 1s}, calm: {open: {rate: 10}, for: 1s}}
warmup: 1s
warmup_by: load
"""


def test_a_request_that_asks_to_close_the_connection_gets_one_of_its_own() -> None:
    plan = make_plan(read_suite(CLOSING, "f.yaml", Catalogue(), Overrides()))
    loads = [load for cell in plan.cells.values() for load in (cell.load, cell.warmup_by) if load is not None]
    assert len(loads) == 9
    asked = {(cell.scenario.name, cell.load.shape.requests_per_connection) for cell in plan.cells.values()}
    assert asked == {("Kept", None), ("Closed", 1), ("Mixed", 1)}
    assert [load.shape.requests_per_connection for load in loads] == [None] * 3 + [1] * 6
