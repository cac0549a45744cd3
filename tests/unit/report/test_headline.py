"""The first line of a comparison's Markdown: its verdict, the worst change first, and never too long for a comment."""

import re
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.cli.experiment import exit_code
from redline.model import Comparison, Estimate, Report, Verdict
from redline.render import RENDERERS, markdown
from redline.report.headline import headline
from tests.fakes.compared import Cost, compared_run

LONGEST = 30_000
"""Bytes of a first line at most, escapes included: half of what CI posts as a comment."""
SCENARIOS = ("list", "add", "item", "search", "login", "mix", "cart", "order", "home")


@cache
def measured(scenarios: int) -> Report:
    costs = dict.fromkeys(SCENARIOS[:scenarios], Cost())
    return build_report(compared_run(costs, names=("main", "this pull request")))


def first_line(report: Report) -> str:
    return RENDERERS["md"](report).decode().splitlines()[0]


def said(*outcomes: tuple[Verdict | None, float], refused: str = "", matters: bool = True) -> str:
    """The first line of a comparison with these verdicts and ratios, ± 3 points."""
    report = measured(len(outcomes))
    rest = iter(outcomes)

    def judged(comparison: Comparison) -> Comparison:
        if not comparison.primary:
            return comparison
        verdict, value = next(rest)
        if verdict is None:
            return comparison.model_copy(update={"verdict": None, "ratio": None, "refused": refused})
        ratio = Estimate(value=value, low=value - 0.03, high=value + 0.03, n=6, unit="ratio", method="t")
        return comparison.model_copy(update={"verdict": verdict, "ratio": ratio, "matters": matters, "duet": None})

    return first_line(report.model_copy(update={"comparisons": tuple(map(judged, report.comparisons))}))


SLOWER, FASTER, SAME, OPEN = Verdict.SLOWER, Verdict.FASTER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE
WORST_FIRST = (
    "**slower: add +22%** \\[19, 25\\], list +5.0% \\[2.0, 8.0\\]; **faster: item \u221215%** \\[\u221218, \u221212\\]"
)
ABOUT = " (CPU per request, this pull request over main)"


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([(SLOWER, 1.22)], "**slower: list +22%** \\[19, 25\\]"),
        ([(SLOWER, 1.05), (SLOWER, 1.22), (FASTER, 0.85)], WORST_FIRST),
        (
            [(FASTER, 0.8), (OPEN, 1.01)],
            "**faster: list \u221220%** \\[\u221223, \u221217\\]; no difference found in add",
        ),
        ([(OPEN, 1.01)] * 4, "**no difference found in 4 requests**"),
        ([(SAME, 1.001)] * 4, "**no difference of 2% in 4 requests**"),
        (
            [(SAME, 1.001), (OPEN, 1.01), (OPEN, 1.01)],
            "**no difference of 2% in list**; no difference found in 2 requests",
        ),
        ([(None, 0.0)], "**unknown: list** (B answers wrongly)"),
        ([(SLOWER, 1.22), (None, 0.0)], "**slower: list +22%** \\[19, 25\\]; unknown: add (B answers wrongly)"),
    ],
)
def test_the_first_line_is_the_verdict(outcomes: list[tuple[Verdict | None, float]], expected: str) -> None:
    assert said(*outcomes, refused="B answers wrongly").removesuffix(ABOUT) == expected


def test_a_difference_that_does_not_matter_is_no_verdict_in_bold() -> None:
    line = said((SLOWER, 1.013), matters=False)
    assert line.startswith("slower by less than matters: list +1.3% ")


def test_it_is_the_first_line_of_comparisons_alone() -> None:
    report = measured(1)
    other = report.model_copy(update={"run": report.run.model_copy(update={"kind": "run"})})
    assert first_line(other).startswith("## ")


def test_what_is_not_whole_says_so_first() -> None:
    report = measured(1)
    for update, begins in (
        ({"aborted_by": "errors > 5%"}, "**aborted by errors &gt; 5%**; "),
        ({"interrupted": True}, "**not complete**; "),
    ):
        assert first_line(report.model_copy(update={"run": report.run.model_copy(update=update)})).startswith(begins)


def test_nothing_compared_is_unknown() -> None:
    report = measured(1).model_copy(update={"comparisons": ()})
    assert first_line(report) == "**unknown: nothing was compared**"


def test_servers_have_their_own_names_everywhere() -> None:
    text = RENDERERS["md"](measured(3)).decode()
    assert "this pull request over main" in text
    assert not re.search(r"\b[AB]\b", text)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([*Verdict, None]), st.floats(1e-9, 1e9), st.floats(0, 5), st.booleans(), TEXTS, TEXTS
        ),
        min_size=1,
        max_size=40,
    ),
    TEXTS,
    TEXTS,
)
def test_whatever_came_out_it_is_one_line_that_fits(
    outcomes: list[tuple[Verdict | None, float, float, bool, str, str]], main: str, head: str
) -> None:
    base = measured(1)
    (a, b) = base.cells
    primary = next(comparison for comparison in base.comparisons if comparison.primary)
    cells, comparisons = [a.model_copy(update={"server": main})], []
    for number, (verdict, value, wide, matters, name, refused) in enumerate(outcomes):
        cell_id = f"cell-{number}"
        cells.append(b.model_copy(update={"cell_id": cell_id, "scenario": name, "server": head}))
        low, high = value / (1 + wide), value * (1 + wide)
        ratio = Estimate(value=value, low=low, high=high, n=6, unit="ratio", method="t")
        update = {
            "cell_id": cell_id,
            "verdict": verdict,
            "matters": matters,
            "duet": None,
            "ratio": None if verdict is None else ratio,
            "refused": refused if verdict is None else "",
        }
        comparisons.append(primary.model_copy(update=update))
    report = base.model_copy(update={"cells": tuple(cells), "comparisons": tuple(comparisons)})
    (line,) = markdown.render(headline(report)).decode().splitlines()
    assert 0 < len(line.encode()) <= LONGEST
    states = {verdict for verdict, *_ in outcomes}
    if Verdict.SLOWER in {verdict for verdict, _, _, matters, *_ in outcomes if matters}:
        assert line.startswith("**slower: ")
    elif states == {None}:
        assert line.startswith("**unknown: ")


OUTCOMES: dict[str, tuple[dict[str, Any], str, tuple[int, int, int]]] = {
    "slower": ({"verdict": SLOWER, "matters": True}, "**slower: ", (0, 3, 0)),
    "slower, by less than matters": ({"verdict": SLOWER, "matters": False}, "slower by less than matters: ", (0, 0, 0)),
    "faster": ({"verdict": FASTER, "matters": True}, "**faster: ", (0, 0, 0)),
    "equivalent": ({"verdict": SAME}, "**no difference of 2% in home", (0, 0, 0)),
    "cannot be distinguished": ({"verdict": OPEN}, "**no difference found in home", (0, 0, 3)),
    "not warm": ({"verdict": OPEN, "unsettled": "they were not warm"}, "**unknown: home** (they were not", (0, 0, 3)),
    "nothing is known": (
        {"verdict": None, "ratio": None, "refused": "it failed"},
        "**unknown: home** (it fail",
        (0, 1, 1),
    ),
    "aborted": ({"verdict": OPEN, "aborted_by": "errors > 5%"}, "**aborted by errors", (3, 3, 3)),
}
"""What is changed, how the first line begins, and the exit codes: "What is red" in docs/guide/ab-in-ci.md."""


@pytest.mark.parametrize("name", OUTCOMES)
def test_only_what_is_red_fails_a_job(name: str) -> None:
    change, begins, codes = OUTCOMES[name]
    report = build_report(compared_run({"home": Cost()}))

    def changed(comparison: Comparison) -> Comparison:
        if not comparison.primary:
            return comparison
        unsettled = str(change.get("unsettled", ""))
        duet = comparison.duet and comparison.duet.model_copy(update={"unsettled": unsettled})
        own = {key: value for key, value in change.items() if key not in {"unsettled", "aborted_by"}}
        return comparison.model_copy(update={"duet": duet, **own})

    run = report.run.model_copy(update={"aborted_by": change.get("aborted_by", "")})
    report = report.model_copy(update={"comparisons": tuple(map(changed, report.comparisons)), "run": run})
    assert first_line(report).startswith(begins)
    assert tuple(exit_code([report], fail_on) for fail_on in ((), (SLOWER,), (OPEN,))) == codes
