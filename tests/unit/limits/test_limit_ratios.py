"""The limits of servers against their baselines: ratio, verdict, family, and their wording."""

from math import exp, hypot, log

import numpy as np
import pytest

from redline.analysis.compare import unwanted
from redline.document.blocks import Table, TextCell
from redline.document.format import VerdictSign
from redline.extras.selftest.truth import exponential
from redline.limits.answers import answer
from redline.limits.doubts import Seen
from redline.limits.ratios import limit_comparisons
from redline.model import Suite, Verdict
from redline.model.limits import CellLimit, LimitAnswer, LimitComparison
from redline.render import RENDERERS, csvfile, markdown, summary
from redline.report.comparison import pair_sections
from redline.report.limit_ratios import ratio_section, ratio_sentence
from redline.search import Proposal, Search, Settings
from redline.suite import parse_objectives
from tests.fakes import limits, reports
from tests.fakes.limits import ends_at, rivals
from tests.fakes.queues import Queue


def known(low: float | None, high: float | None, confidence: float | None = 0.95) -> tuple[LimitAnswer, ...]:
    """The answer of a search for one objective."""
    return (ends_at(low, high, confidence),)


def compared(*answers: tuple[LimitAnswer, ...]) -> tuple[LimitComparison, ...]:
    """The comparisons of servers A, B, C, … with these answers."""
    suite, cells, found = rivals(*answers)
    return limit_comparisons(cells, found, suite)


def judged(a: tuple[LimitAnswer, ...], b: tuple[LimitAnswer, ...]) -> LimitComparison:
    """The comparison of B with A."""
    (found,) = compared(a, b)
    return found


SINGLE = "by limits without a confidence"
NINETEEN = known(18_600, 19_400)


def test_the_ratio_is_of_the_middles_and_independent_errors_add_by_their_squares() -> None:
    found = judged(NINETEEN, known(20_900, 21_800))
    assert found.ratio is not None
    assert found.ratio.value == pytest.approx((20_900 * 21_800 / 18_600 / 19_400) ** 0.5)
    half = hypot(log(19_400 / 18_600) / 2, log(21_800 / 20_900) / 2)
    assert found.ratio.low == pytest.approx(found.ratio.value * exp(-half))
    assert found.ratio.high == pytest.approx(found.ratio.value * exp(half))
    assert (found.verdict, found.matters, found.confidence) == (Verdict.FASTER, True, 0.95)


@pytest.mark.parametrize(
    ("other", "verdict", "said"),
    [
        (
            known(20_900, 21_800),
            Verdict.FASTER,
            "B answers 12.4% more requests/s than A within p99 < 50ms [9.1, 15.8]",
        ),
        (
            known(16_900, 17_500),
            Verdict.SLOWER,
            "B answers 9.5% fewer requests/s than A within p99 < 50ms [7.0, 11.9]",
        ),
        (
            known(40_000, 44_000),
            Verdict.FASTER,
            "B answers 2.2 times as many requests/s within p99 < 50ms as A [2.1, 2.3]",
        ),
        (
            known(18_500, 20_500),
            Verdict.INCONCLUSIVE,
            "A and B cannot be distinguished in requests/s within p99 < 50ms: +2.5% [−3.0, +8.4]",  # noqa: RUF001
        ),
        (
            known(40_000, 44_000, None),
            Verdict.INCONCLUSIVE,
            f"B answers 2.1 to 2.4 times as many requests/s within p99 < 50ms as A, {SINGLE}",
        ),
        (
            known(40_000, None),
            Verdict.INCONCLUSIVE,
            "B and A are not compared within p99 < 50ms: a side of a limit is not known",
        ),
    ],
)
def test_the_comparison_in_one_sentence(other: tuple[LimitAnswer, ...], verdict: Verdict, said: str) -> None:
    found = judged(NINETEEN, other)
    assert found.verdict is verdict
    assert ratio_sentence(found, "B", "A") == said.replace("A and B cannot", "B and A cannot")


def test_an_unknown_limit_leaves_no_ratio_and_no_confidence() -> None:
    found = judged(NINETEEN, known(40_000, None))
    assert (found.ratio, found.confidence, found.p_adjusted) == (None, None, None)


def test_limits_within_the_threshold_are_equivalent() -> None:
    close = known(18_950, 19_050)
    found = judged(close, close)
    assert found.verdict is Verdict.EQUIVALENT
    said = ratio_sentence(found, "B", "A")
    assert "are the same within 2% in requests/s within p99 < 50ms: 0.0% [−0.4, +0.4]" in said  # noqa: RUF001


def test_an_interval_of_limits_that_are_sure_to_differ_does_not_begin_at_0() -> None:
    found = judged(known(18_990, 19_010), known(18_800, 18_820))
    assert found.ratio is not None
    near = found.ratio.model_copy(update={"value": 0.9986, "low": 0.9975, "high": 0.9997})
    said = ratio_sentence(found.model_copy(update={"ratio": near}), "B", "A")
    assert said.startswith("B answers 0.14% fewer requests/s than A within p99 < 50ms [0.03, 0.25]")


def test_a_sure_difference_within_the_threshold_does_not_matter_and_fails_no_gate() -> None:
    found = judged(known(18_990, 19_010), known(18_800, 18_820))
    assert (found.verdict, found.matters) == (Verdict.SLOWER, False)
    assert ratio_sentence(found, "B", "A").endswith(", within the 2% that do not matter")
    assert unwanted([found], {Verdict.SLOWER}) == ()
    sure = judged(known(20_900, 21_800), NINETEEN)
    assert unwanted([sure], {Verdict.SLOWER}) == (sure,)


@pytest.mark.parametrize(
    ("verdict", "matters", "said", "look"),
    [
        (Verdict.SLOWER, True, "▼ slower", VerdictSign.SLOWER),
        (Verdict.SLOWER, False, "▽ slower, within the 2% that do not matter", VerdictSign.SLIGHTLY_SLOWER),
        (Verdict.FASTER, False, "△ faster, within the 2% that do not matter", VerdictSign.SLIGHTLY_FASTER),
        (Verdict.EQUIVALENT, None, "≈ equivalent", VerdictSign.EQUIVALENT),
        (Verdict.INCONCLUSIVE, None, "? inconclusive", VerdictSign.INCONCLUSIVE),
    ],
)
def test_a_verdict_has_the_same_words_and_colour_in_limit_and_compare(
    verdict: Verdict, matters: bool | None, said: str, look: VerdictSign
) -> None:
    about = {"verdict": verdict, "matters": matters, "threshold": 0.02, "p_adjusted": None}
    of_run = next(known for known in reports.doubtful().comparisons if known.primary and known.verdict)
    (_, section) = pair_sections([of_run.model_copy(update=about)], base="a", other="a")
    suite, cells, found = rivals(NINETEEN, NINETEEN)
    (of_limits,) = limit_comparisons(cells, found, suite)
    (ratios,) = ratio_section(limits.report(*found.values(), comparisons=(of_limits.model_copy(update=about),)))
    for block in (section.blocks[0], ratios.blocks[0]):
        assert isinstance(block, Table)
        cell = block.rows[0][-1]
        assert isinstance(cell, TextCell)
        assert [(span.text, span.look) for line in cell.lines for span in line] == [(said, look)]


def test_comparisons_with_one_baseline_are_a_family() -> None:
    """The difference of B alone is sure, but not among three that are no clearer."""
    barely = known(19_200, 20_100)
    assert judged(NINETEEN, barely).verdict is Verdict.FASTER
    found = compared(NINETEEN, barely, NINETEEN, NINETEEN)
    assert [one.family for one in found] == [3, 3, 3]
    assert {one.family_name for one in found} == {"limit within p99 < 50ms against A"}
    assert found[0].verdict is Verdict.INCONCLUSIVE
    assert "among 3" in ratio_sentence(found[0], "B", "A")


def test_the_ratio_of_two_queues_is_found() -> None:
    """M/M/1 of 2,000 and 2,400/s: p99 < 50 ms is met up to 1,908 and 2,308/s."""
    objectives = parse_objectives("p99 < 50ms")
    answers = []
    for capacity in (2000, 2400):
        search, rng = Search({"p99 < 50ms": objectives}, Settings()), np.random.default_rng([0, capacity])
        while isinstance(step := search.next(), Proposal):
            search.add(Queue(exponential(capacity)).probe(step.rate_per_s, rng, whole=step.whole))
        answers.append(tuple(answer(each, search, Seen(())) for each in step.limits))
    found = judged(*answers)
    assert found.verdict is Verdict.FASTER
    assert found.ratio is not None
    assert (found.ratio.low or 0) < 2308 / 1908 < (found.ratio.high or 0)


def test_every_format_says_the_ratio_and_what_the_servers_are() -> None:
    suite, cells, found = rivals(NINETEEN, known(20_900, 21_800))
    report = limits.report(*found.values(), comparisons=limit_comparisons(cells, found, suite))
    text = RENDERERS["md"](report).decode()
    assert "B answers 12.4% more requests/s than A within p99 &lt; 50ms" in text
    assert "▲ faster" in text
    assert "./B --port {port}" in text
    compared = [row for row in csvfile.render_search(report).decode().splitlines() if row.startswith("comparison,")]
    assert len(compared) == 1
    assert ",faster,true," in compared[0]
    assert b"B answers 12.4% more requests/s than A" in RENDERERS["html"](report)
    last = markdown.render(summary(report)).decode().strip().splitlines()[-1]
    assert "B answers 12.4% more requests/s than A" in last


def test_answers_of_other_names_are_not_compared() -> None:
    suite, cells, found = rivals(NINETEEN, NINETEEN)
    lonely: dict[str, CellLimit] = {cells[1].id: found[cells[1].id]}
    assert limit_comparisons(cells, lonely, suite) == ()
    assert limit_comparisons(cells, {}, _without_baseline(suite)) == ()


def _without_baseline(suite: Suite) -> Suite:
    return suite.model_copy(update={"baseline": None})
