"""Checks across the loads of a suite: a detected warm-up, and `quick`, which keeps every cell."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.errors import UsageError
from redline.model import Load, Open
from redline.suite import Overrides, make_plan, to_search
from redline.suite.load_text import warmed_by
from tests.fakes.catalogues import SUITE, problems_of, suite_of, write_catalogue
from tests.fakes.schemas import schemas

S = 1_000_000_000
DETECT = SUITE + "warmup: {detect: {at_most: 20s}}\n"
STAGED = DETECT.replace("{users: 64}", "{users: 0, ramp: {to: 64, over: 1s}}")
AUTO = Overrides(warmup_detect=True)
QUICK = Overrides(quick=True)
LONG = SUITE.replace("for: 1s}", "for: 25s}\n  short: {closed: {users: 1}, for: 100ms}") + "warmup: 10s\ntrials: 4\n"


@pytest.mark.parametrize(
    ("text", "overrides", "seconds", "detect"),
    [
        (SUITE, Overrides(), 1, False),
        (SUITE + "warmup: 30s\n", Overrides(), 30, False),
        (DETECT, Overrides(), 20, True),
        (SUITE + "warmup: {detect: {}}\n", Overrides(), 60, True),
        (SUITE + "warmup: 30s\n", AUTO, 60, True),
        (DETECT, AUTO, 20, True),
        (DETECT, Overrides(warmup_ns=3 * S), 3, False),
        (DETECT + "quick: {warmup: 2s}\n", Overrides(quick=True), 2, False),
        (DETECT + "quick: {trials: 2}\n", Overrides(quick=True), 20, True),
        (DETECT + "quick: {warmup: 2s}\n", Overrides(quick=True, warmup_detect=True), 60, True),
    ],
)
def test_a_warm_up_is_a_time_or_detected(
    tmp_path: Path, text: str, overrides: Overrides, seconds: int, detect: bool
) -> None:
    suite = suite_of(tmp_path, text, overrides)
    assert (suite.warmup_ns, suite.warmup_detect) == (seconds * S, detect)
    assert {(cell.warmup_ns, cell.warmup_detect) for cell in make_plan(suite).cells.values()} == {(seconds * S, detect)}


def test_a_fixed_warm_up_keeps_its_cells_and_a_detected_one_has_others(tmp_path: Path) -> None:
    fixed, detected = (make_plan(suite_of(tmp_path, text)).cells for text in (SUITE + "warmup: 20s\n", DETECT))
    assert not set(fixed) & set(detected)
    assert all("warmup_detect" not in cell.model_dump(mode="json") for cell in fixed.values())


@pytest.mark.parametrize(
    ("text", "says", "hint", "field"),
    [
        (
            SUITE + "warmup: {detect: {at_most: 2s}}\n",
            "at least 5s",
            "detection takes that long",
            "warmup.detect.at_most",
        ),
        (SUITE + "warmup: {detect: {at_least: 9s}}\n", "unknown key `at_least`", "at_most", "warmup.detect.at_least"),
        (SUITE + "warmup: {}\n", "`detect` is missing", "at_most: 60s", "warmup.detect"),
        (SUITE + "warmup: {detect: 60s}\n", "mapping of keys", "as soon as the server is steady", "warmup.detect"),
        (SUITE + "warmup: 30\n", "has no unit", "write `30s`", "warmup"),
        (STAGED, "the load `saturate` changes by design", "fixed warm-up", "warmup.detect"),
    ],
)
def test_a_wrong_warm_up_is_reported_at_its_place(tmp_path: Path, text: str, says: str, hint: str, field: str) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert says in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert (problem.place.field, problem.place.line) == (field, text.rstrip("\n").count("\n") + 1)


OPEN = SUITE.replace("for: 1s}", "for: 1s}\n  steady: {open: {rate: 500}, for: 1s}")
BY = OPEN + "warmup: 9s\nwarmup_by: saturate\n"


def test_a_load_may_warm_up_for_the_others(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, BY)
    cells = {cell.load.name: cell for cell in make_plan(suite).cells.values()}
    assert cells["saturate"].warmup_by is None
    assert cells["steady"].warmup_by == cells["saturate"].load
    plain = make_plan(suite_of(tmp_path, OPEN + "warmup: 9s\n")).cells
    assert cells["saturate"].id in plain
    assert cells["steady"].id not in plain


def test_a_number_of_users_may_warm_up_for_every_load(tmp_path: Path) -> None:
    cells = make_plan(suite_of(tmp_path, OPEN + "warmup_by: {users: 2}\n")).cells.values()
    assert {(cell.load.name, cell.warmup_by and cell.warmup_by.connections) for cell in cells} == {
        ("saturate", 2),
        ("steady", 2),
    }


def test_a_rate_may_warm_up_for_every_load(tmp_path: Path) -> None:
    cells = make_plan(suite_of(tmp_path, OPEN + "warmup_by: {rate: 1500, connections: 8}\n")).cells.values()
    found = {cell.warmup_by for cell in cells}
    assert found == {Load(name="rate-of-the-warm-up", shape=Open(rate_per_s=1500, connections=8), duration_ns=1)}
    assert {warmed_by(by) for by in found if by} == {"1,500 requests/s"}


def test_users_warm_up_for_a_search_too_but_no_rate_does(tmp_path: Path) -> None:
    users = suite_of(tmp_path, OPEN + "warmup_by: {users: 2}\n")
    assert to_search(users, 2)[0].warmup_by == users.warmup_by is not None
    rate = OPEN + "  calm: {open: {rate: 100}, for: 1s}\nwarmup_by: calm\n"
    assert to_search(suite_of(tmp_path, rate), 2)[0].warmup_by is None


def test_the_load_that_warms_up_need_not_be_measured(tmp_path: Path) -> None:
    cells = make_plan(suite_of(tmp_path, BY, Overrides(loads=("steady",)))).cells.values()
    assert {(cell.load.name, cell.warmup_by and cell.warmup_by.name) for cell in cells} == {("steady", "saturate")}


@pytest.mark.parametrize(
    ("text", "says", "hint"),
    [
        (OPEN + "warmup_by: saturated\n", "no load `saturated`", "saturate"),
        (OPEN + "warmup_by: {users: 2, rate: 9}\n", "both users and a rate", "{rate: 1000}"),
        (OPEN + "warmup_by: {}\n", "neither users nor a rate", "{rate: 1000}"),
        (OPEN + "warmup_by: steady\nwarmup: {detect: {}}\n", "detected under the measured load", "fixed"),
        (OPEN + "warmup_by: {users: 2}\nwarmup: {detect: {}}\n", "detected under the measured load", "fixed"),
        (
            OPEN.replace("rate: 500", "rate: 0, ramp: {to: 64, over: 1s}") + "warmup_by: steady\n",
            "`steady` is not a constant load",
            "constant",
        ),
    ],
)
def test_a_load_that_cannot_warm_up_is_refused(tmp_path: Path, text: str, says: str, hint: str) -> None:
    problem = next(each for each in problems_of(tmp_path, text) if each.place and each.place.field == "warmup_by")
    assert says in problem.message
    assert hint in problem.hint


def test_a_warm_up_by_another_load_is_not_detected(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, BY, AUTO)
    assert "not under `warmup_by`" in problem.message


def test_a_load_that_changes_is_refused_from_the_command_line_too(tmp_path: Path) -> None:
    staged = STAGED.replace("warmup: {detect: {at_most: 20s}}\n", "")
    (problem,) = problems_of(tmp_path, staged, AUTO)
    assert "`saturate` changes by design" in problem.message


def test_check_shows_a_detected_warm_up(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "catalogue")
    (tmp_path / "some.yaml").write_text(SUITE, encoding="utf-8")
    asked = ["check", str(tmp_path / "some.yaml"), "--warmup", "auto"]
    document = json.loads(CliRunner().invoke(app, [*asked, "--json"], catch_exceptions=False).stdout)
    assert {(cell["warmup_ns"], cell["warmup_detect"]) for cell in document["cells"]} == {(60 * S, True)}
    assert "≤ 1 min" in CliRunner().invoke(app, asked, catch_exceptions=False).stdout
    (tmp_path / "some.yaml").write_text(SUITE + "warmup: 2s\n", encoding="utf-8")
    document = json.loads(CliRunner().invoke(app, [*asked[:2], "--json"], catch_exceptions=False).stdout)
    assert "warmup_detect" not in document["cells"][0]


def test_the_schema_knows_both_forms() -> None:
    assert len(schemas()["suite.schema.json"]["properties"]["warmup"]["anyOf"][0]["oneOf"]) == 2


@pytest.mark.parametrize(
    ("quick", "warmup_s", "lengths_s", "trials"),
    [
        ("{warmup: 2s, for: 3s, trials: 2}", 2, [3, 0.1], 2),
        ("{for: 3s}", 10, [3, 0.1], 4),
        ("{trials: 9, warmup: 1m}", 10, [25, 0.1], 4),
    ],
)
def test_quick_shortens_what_is_longer(
    tmp_path: Path, quick: str, warmup_s: float, lengths_s: list[float], trials: int
) -> None:
    text = LONG + f"quick: {quick}\n"
    whole, short = suite_of(tmp_path, text), suite_of(tmp_path, text, QUICK)
    assert whole == suite_of(tmp_path, LONG)
    assert (short.warmup_ns / 1e9, [load.duration_ns / 1e9 for load in short.loads]) == (warmup_s, lengths_s)
    assert short.trials == trials
    assert [cell.slug for cell in make_plan(short).cells.values()] == [
        cell.slug for cell in make_plan(whole).cells.values()
    ]


def test_other_flags_go_before_quick(tmp_path: Path) -> None:
    text = LONG + "quick: {warmup: 2s, for: 3s, trials: 2}\n"
    suite = suite_of(tmp_path, text, Overrides(quick=True, duration_ns=5_000_000_000, trials=3, users=64))
    assert (suite.trials, [load.duration_ns for load in suite.loads]) == (3, [5_000_000_000])


def test_a_suite_that_does_not_say_what_is_quick(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        suite_of(tmp_path, LONG, QUICK)
    (problem,) = caught.value.problems
    assert problem.message == "the suite some has no `quick`"
    assert "quick: {warmup: 1s" in problem.hint


QUICK_STAGED = SUITE.replace("{users: 64}, for: 1s", "{users: 0, ramp: {to: 64, over: 10s}}, for: 25s")


@pytest.mark.parametrize(
    ("text", "says", "hint", "field"),
    [
        (SUITE + "quick: {}\n", "`quick` is empty", "at least one of", "quick"),
        (SUITE + "quick: {for: 0s}\n", "must be at least 1ms", "a shorter load", "quick.for"),
        (SUITE + "quick: {trails: 2}\n", "unknown key `trails`", "did you mean `trials`?", "quick.trails"),
        (SUITE + "quick: {trials: 0}\n", "must be at least 1", "how often", "quick.trials"),
        (
            QUICK_STAGED + "quick: {for: 2s}\n",
            "the stages of the load `saturate` take 10s, longer than that",
            "or leave it out",
            "quick.for",
        ),
    ],
)
def test_what_is_wrong_with_quick(tmp_path: Path, text: str, says: str, hint: str, field: str) -> None:
    (problem,) = problems_of(tmp_path, text)
    assert says in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.field == field


def test_a_load_in_stages_may_have_less_of_the_rest(tmp_path: Path) -> None:
    suite = suite_of(tmp_path, QUICK_STAGED + "quick: {trials: 1}\n", QUICK)
    assert (suite.trials, suite.loads[0].duration_ns) == (1, 25_000_000_000)
