"""Rates that are a share of a capacity: how they are written, every mistake in them, and the two plans they make."""

from pathlib import Path

import pytest

from redline.model import Cell, Closed, Load, Open, Plan, Share, Suite
from redline.suite import (
    Capacities,
    Overrides,
    capacity_loads,
    capacity_slug,
    make_capacity_plan,
    make_plan,
)
from redline.suite.load_text import load_text
from tests.fakes.catalogues import problems_of, suite_of

S = 1_000_000_000
TEXT = """\
servers: [fam.plain, fam.layered, slow.vanilla]
baseline: fam.plain
ceiling: top.null
scenarios: [Get, Post]
loads:
  half: {open: {rate: 50% of saturate, connections: 9}, for: 3s}
  saturate: {closed: {users: 64}, for: 1s}
  three: {closed: {users: 3}, for: 1s}
  over: {open: {rate: 150% of saturate, arrivals: uniform}, for: 2s}
  steady: {open: {rate: 100}, for: 2s}
trials: 2
"""
FIRST = "fam.plain.Get.saturate"


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return suite_of(tmp_path, TEXT)


def all_measured(suite: Suite, per_s: float) -> Capacities:
    return Capacities(per_s={cell.slug: per_s for cell in make_capacity_plan(suite).cells.values()})


def by_slug(plan: Plan) -> dict[str, Cell]:
    return {cell.slug: cell for cell in plan.cells.values()}


def rate_of(cell: Cell) -> float | None:
    assert isinstance(cell.load.shape, Open)
    return cell.load.shape.rate_per_s


def test_a_share_is_read(suite: Suite) -> None:
    half = suite.loads[0]
    assert half.shape == Open(connections=9, share=Share(share=0.5, of="saturate"))
    assert half.share == Share(share=0.5, of="saturate")
    assert [load.share for load in suite.loads[1:3]] == [None, None]
    assert [load.name for load in capacity_loads(suite)] == ["saturate"]


@pytest.mark.parametrize(
    ("rate", "message", "hint"),
    [
        ("50% of saturat", "there is no load `saturat` in this suite", "did you mean `saturate`?"),
        ("50% of nothing", "there is no load `nothing` in this suite", "a rate may be a share of: saturate, three"),
        ("50% of steady", "`steady` is an open load, which shows no capacity", "a rate may be a share of"),
        ("50% of half", "`half` is an open load, which shows no capacity", "a rate may be a share of"),
        ("50%", "`50%` is not a share of a load", "write a percentage of a closed load"),
        ("2000% of saturate", "`2000% of saturate` is more than 1000%", "write at most 1000%"),
    ],
)
def test_what_is_no_share_is_reported_with_its_place(tmp_path: Path, rate: str, message: str, hint: str) -> None:
    (problem,) = problems_of(tmp_path, TEXT.replace("rate: 50% of saturate", f"rate: {rate}"))
    assert problem.message == message
    assert hint in problem.hint
    assert problem.place is not None
    assert (problem.place.line, problem.place.column, problem.place.field) == (6, 23, "loads.half.open.rate")


@pytest.mark.parametrize("more", ["ramp: {to: 9, over: 1s}", "stages: [{to: 9, over: 1s}]"])
def test_a_share_does_not_change(tmp_path: Path, more: str) -> None:
    (problem,) = problems_of(tmp_path, TEXT.replace("connections: 9", more))
    assert problem.message == "a share of a capacity is a constant rate"


def test_users_who_change_show_no_capacity(tmp_path: Path) -> None:
    (one, other) = problems_of(tmp_path, TEXT.replace("users: 64", "users: 64, ramp: {to: 9, over: 1s}"))
    assert one.message == other.message == "the users of `saturate` change, so it shows no single capacity"
    assert "three" in one.hint


@pytest.mark.parametrize("waits", ["pace: 10", "think: 5ms", "think: {exponential: 5ms}"])
def test_users_who_wait_show_no_capacity(tmp_path: Path, waits: str) -> None:
    (one, other) = problems_of(tmp_path, TEXT.replace("users: 64", f"users: 64, {waits}"))
    key = waits.partition(":")[0]
    assert one.message == other.message == f"the users of `saturate` have a `{key}`, so it shows no capacity"
    assert one.hint == "a rate may be a share of: three"


def test_without_a_closed_load_the_hint_says_to_add_one(tmp_path: Path) -> None:
    only = "loads:\n  half: {open: {rate: 50% of saturate}, for: 3s}\n"
    (problem,) = problems_of(tmp_path, TEXT[: TEXT.index("loads:")] + only)
    assert "add a load with `closed" in problem.hint


def test_a_wrong_capacity_load_is_reported_once(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, TEXT.replace("users: 64", "users: -1"))
    assert problem.place is not None
    assert problem.place.field == "loads.saturate.closed.users"


def test_what_is_measured_first_is_the_loads_that_others_are_a_share_of(suite: Suite) -> None:
    plan = make_capacity_plan(suite)
    assert plan.suite == suite
    assert {cell.load.name for cell in plan.cells.values()} == {"saturate"}
    assert {cell.role for cell in plan.cells.values()} == {"subject", "ceiling"}
    assert len(plan.trials) == 2 * (3 + 1) * 2


def test_the_rest_follows_and_the_ceiling_goes_with_its_closed_loads(suite: Suite) -> None:
    plan = make_plan(suite)
    assert {cell.load.name for cell in plan.cells.values()} == {"half", "three", "over", "steady"}
    assert {cell.load.name for cell in plan.cells.values() if cell.role == "ceiling"} == {"three"}
    assert rate_of(by_slug(plan)["fam.plain.Get.half"]) is None


def test_a_suite_without_shares_has_one_plan(tmp_path: Path) -> None:
    text = "\n".join(line for line in TEXT.splitlines() if "% of" not in line)
    suite = suite_of(tmp_path, text)
    assert not capacity_loads(suite)
    assert make_plan(suite) == make_plan(suite, capacities=Capacities())
    assert {cell.load.name for cell in make_plan(suite).cells.values()} == {"saturate", "three", "steady"}
    assert not make_capacity_plan(suite).trials


def test_a_cell_gets_its_share_to_three_digits(suite: Suite) -> None:
    cells = by_slug(make_plan(suite, capacities=all_measured(suite, 1001.1)))
    assert rate_of(cells["fam.plain.Get.half"]) == 501
    assert rate_of(cells["slow.vanilla.Post.over"]) == 1500
    assert rate_of(cells["fam.plain.Get.steady"]) == 100
    assert cells["fam.plain.Get.half"].load.share == Share(share=0.5, of="saturate")


@pytest.mark.parametrize(
    ("capacity", "half"),
    [(0.9, 0.45), (0.1, 0.05), (2.01, 1.0), (99.99, 50.0), (1001.1, 501.0), (246_913.0, 123_000.0)],
)
def test_a_small_share_is_as_exact_as_a_large_one(suite: Suite, capacity: float, half: float) -> None:
    cells = by_slug(make_plan(suite, capacities=all_measured(suite, capacity)))
    assert rate_of(cells["fam.plain.Get.half"]) == half


def test_less_than_can_be_asked_is_skipped(suite: Suite) -> None:
    plan = make_plan(suite, capacities=all_measured(suite, 1e-6))
    reasons = {skipped.slug: skipped.reason for skipped in plan.skipped}
    assert reasons["fam.plain.Get.half"] == "50% of saturate is 5e-07/s, and 1e-06/s is the lowest rate"


def test_other_rates_are_other_cells_and_the_same_are_the_same(suite: Suite) -> None:
    one, again, other = (make_plan(suite, capacities=all_measured(suite, rate)) for rate in (1000, 1000.2, 1010))
    assert one == again
    slugs = by_slug(one)["fam.plain.Get.half"], by_slug(other)["fam.plain.Get.half"]
    assert slugs[0].id != slugs[1].id
    assert {trial.seed for trial in one.trials} == {trial.seed for trial in other.trials}


def test_without_a_capacity_a_cell_is_skipped_and_says_why(suite: Suite) -> None:
    known = all_measured(suite, 1000)
    per_s = {slug: rate for slug, rate in known.per_s.items() if slug != FIRST}
    plan = make_plan(suite, capacities=Capacities(per_s=per_s, missing={FIRST: "it never answered"}))
    assert {skipped.slug: skipped.reason for skipped in plan.skipped} == {
        "fam.plain.Get.half": "it never answered",
        "fam.plain.Get.over": "it never answered",
    }
    assert "fam.plain.Get.steady" in by_slug(plan)
    nothing = make_plan(suite, capacities=Capacities())
    assert {skipped.reason for skipped in nothing.skipped} == {"saturate was not measured"}


def test_more_than_can_be_asked_is_skipped(suite: Suite) -> None:
    plan = make_plan(suite, capacities=all_measured(suite, 9e6))
    assert {skipped.reason for skipped in plan.skipped} == {
        "150% of saturate is 13,500,000/s, and 10,000,000/s is the highest rate"
    }


def test_other_reasons_go_before(suite: Suite) -> None:
    plan = make_plan(suite, {"fam.plain": "no compiler"}, capacities=Capacities())
    reasons = {skipped.slug: skipped.reason for skipped in plan.skipped}
    assert reasons["fam.plain.Get.half"] == "no compiler"
    assert reasons["fam.layered.Get.half"] == "saturate was not measured"


def test_the_cell_whose_capacity_is_meant(suite: Suite) -> None:
    cells = by_slug(make_plan(suite))
    assert capacity_slug(cells["fam.plain.Get.half"]) == FIRST
    assert capacity_slug(cells["fam.plain.Get.steady"]) is None


def test_flags_change_what_is_shared_from(tmp_path: Path) -> None:
    suite = suite_of(
        tmp_path, TEXT.replace("users: 3}", "users: 3, depth: 2}"), Overrides(users=8, duration_ns=5 * S, trials=3)
    )
    (saturate,) = {cell.load for cell in make_capacity_plan(suite).cells.values()}
    assert saturate == Load(name="saturate", shape=Closed(users=8), duration_ns=5 * S)
    assert {cell.load.duration_ns for cell in make_plan(suite).cells.values()} == {5 * S}
    assert {trial.round for trial in make_capacity_plan(suite).trials} == {0, 1, 2}


def test_in_words() -> None:
    half = Share(share=0.125, of="saturate")
    unknown = Load(name="a", shape=Open(connections=9, share=half), duration_ns=S)
    known = Load(name="a", shape=Open(connections=9, share=half, rate_per_s=12345), duration_ns=S)
    assert half.text == "12.5% of saturate"
    assert load_text(unknown) == "open, 12.5% of saturate poisson, 9 connections, 1s"
    assert load_text(known) == "open, 12,345/s (12.5% of saturate) poisson, 9 connections, 1s"
