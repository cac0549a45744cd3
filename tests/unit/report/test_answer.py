"""The answer in words matches the verdicts, and claims no more."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from redline.analysis import build_report
from redline.cli.commands.compare import gate
from redline.document import format as fmt
from redline.document.blocks import Prose, Section
from redline.errors import RedlineError
from redline.model import Comparison, Estimate, LevelEffect, MainEffect, Metric, Report, Verdict
from redline.model.compared import CompareResult
from redline.model.estimate import DuetComparison
from redline.render import RENDERERS, page, summary
from redline.render.terminal import render
from redline.report.answer import difference, limit_answer, own_control, run_answer
from redline.report.comparison import pair_sections
from redline.report.main_effects import sentence
from tests.fakes import limits, reports, studies
from tests.fakes.compared import Cost, compared_run


def test_objectives_met_and_missed_are_reported_alike() -> None:
    report = reports.healthy()
    assert said(report)[-1] == (
        "✗ p99 < 1.5 ms is not met by rust.hyper.PostBytes.saturate (1.68 ms), rust.axum.PostBytes.saturate (1.78 ms); "
        "6 of 8 cells meet it"
    )
    met = [cell for cell in report.cells if all(one.met for one in cell.objectives)]
    assert said(report.model_copy(update={"cells": tuple(met)}))[-1] == "✓ p99 < 1.5 ms is met by all 6 cells"
    assert said(report.model_copy(update={"cells": tuple(met[:1])}))[-1] == "✓ p99 1.38 ms < 1.5 ms"


def said(report: Report) -> list[str]:
    return lines_of(next(run_answer(report)))


def lines_of(section: Section) -> list[str]:
    (block,) = section.blocks
    assert isinstance(block, Prose)
    return ["".join(span.text for span in each) for each in block.lines]


def compared(metric: Metric, value: float, low: float, high: float, verdict: Verdict) -> Comparison:
    ratio = Estimate(value=value, low=low, high=high, unit="ratio", n=9, method="t")
    return Comparison(metric=metric, cell_id="a", baseline_id="b", ratio=ratio, verdict=verdict, threshold=0.02)


def test_a_control_keeps_the_options_of_its_name() -> None:
    itself = Estimate(value=1.031, low=1.012, high=1.05, unit="ratio", n=9, method="t")
    duet = DuetComparison(starts=9, between_sd=None, blocks_se=None, control=itself, alone=None, findings=())
    comparison = compared(Metric.P50, 1.2, 1.1, 1.3, Verdict.SLOWER).model_copy(update={"duet": duet})
    assert own_control(comparison, "a.b+c=d") == ", and a.b+c=d against itself 3.1% [1.2, 5.0]"


@pytest.mark.parametrize(
    ("metric", "ratio", "words"),
    [
        (Metric.CPU_PER_REQUEST, (1.24, 1.2, 1.28), "needs 24% more CPU per request than hyper [20, 28]"),
        (Metric.CPU_PER_REQUEST, (0.966, 0.955, 0.98), "needs 3.4% less CPU per request than hyper [2.0, 4.5]"),
        (Metric.CPU_PER_REQUEST, (1.124, 1.003, 1.26), "needs 12.4% more CPU per request than hyper [0.3, 26.0]"),
        (Metric.CPU_PER_REQUEST, (0.9994, 0.999, 0.9997), "needs 0.06% less CPU per request than hyper [0.03, 0.10]"),
        (Metric.THROUGHPUT, (0.8, 0.75, 0.86), "answers 20% fewer requests than hyper [14, 25]"),
        (Metric.THROUGHPUT, (2.3, 2.1, 2.5), "answers 2.3 times the requests of hyper [2.1, 2.5]"),
        (Metric.THROUGHPUT, (0.625, 0.5, 0.72), "answers 1.6 times fewer requests than hyper [1.4, 2.0]"),
        (Metric.CPU_PER_REQUEST, (0.5, 0.4, 0.6), "needs 2.0 times less CPU per request than hyper [1.7, 2.5]"),
        (Metric.P99, (1.4, 1.2, 3.1), "has a p99 40% higher than hyper [20, 210]"),
        (Metric.P99, (1.6, 1.2, 3.1), "has 1.6 times the p99 of hyper [1.2, 3.1]"),
        (Metric.GAP_P50, (1.05, 1.04, 1.06), "has a gap p50 5.0% higher than hyper [4.0, 6.0]"),
        (Metric.P99, (0.6, 0.5, 0.8), "has a p99 1.7 times lower than hyper [1.2, 2.0]"),
    ],
)
def test_a_difference_has_a_direction_a_size_and_an_interval(
    metric: Metric, ratio: tuple[float, float, float], words: str
) -> None:
    assert difference(compared(metric, *ratio, Verdict.SLOWER), "hyper") == words


def test_a_metric_of_messages_that_is_judged_is_the_answer() -> None:
    report = build_report(compared_run({"home": Cost(1.2)}))
    judged = [made.model_copy(update={"metric": Metric.GAP_P50}) for made in report.comparisons if made.primary]
    answer = said(report.model_copy(update={"comparisons": tuple(judged)}))
    assert any(line.startswith("B has a gap p50 2") for line in answer), answer


@pytest.mark.parametrize("value", [0.2, 0.66, 0.67, 0.9, 1.2, 1.49, 1.5, 2.5])
def test_sentences_and_tables_say_the_same_differences_in_times(value: float) -> None:
    found = compared(Metric.THROUGHPUT, value, value * 0.99, value * 1.01, Verdict.SLOWER)
    in_table, in_sentence = fmt.times(found), difference(found, "hyper")
    assert bool(in_table) == (" times " in in_sentence) == (fmt.factor_in_times(value) is not None)
    if in_table:
        assert in_table.partition(" times ")[0] in in_sentence


def test_the_resolution_is_the_difference_that_the_interval_could_just_show() -> None:
    assert compared(Metric.P99, 1.0, 1 / 1.28, 1.28, Verdict.INCONCLUSIVE).resolution == pytest.approx(0.28)
    assert compared(Metric.P99, 1.0, 0.0, 1.28, Verdict.INCONCLUSIVE).resolution is None


def test_a_pair_has_one_sentence_and_what_is_not_decided_stands_at_its_end() -> None:
    overall, first, second, *_ = said(reports.healthy())
    assert overall.startswith("rust.axum answers 6.6% fewer requests than rust.hyper ")
    assert first == (
        "SimpleGet · saturate: rust.axum needs 4.1% more CPU per request than rust.hyper [2.9, 5.3] and answers 6.6% "
        "fewer requests [5.6, 7.6]"
    )
    assert second.endswith("; its CPU per request is the same within 2%")
    report = reports.healthy()
    p99 = next(one for one in report.comparisons if one.metric is Metric.P99)
    judged = p99.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    some = tuple(judged if one == p99 else one for one in report.comparisons)
    third = said(report.model_copy(update={"comparisons": some}))[1]
    assert third == f"{first}; its p99 (resolution 6.6%) cannot be distinguished"
    assert judged.ratio is not None
    wide = judged.model_copy(update={"ratio": judged.ratio.model_copy(update={"low": 0.001, "high": 2000.0})})
    some = tuple(wide if one == p99 else one for one in report.comparisons)
    fourth = said(report.model_copy(update={"comparisons": some}))[1]
    assert fourth == f"{first}; its p99 (resolution beyond 1000%) cannot be distinguished"


def test_what_many_comparisons_leave_open_has_its_size() -> None:
    report = reports.healthy()
    one = next(each for each in report.comparisons if each.verdict is Verdict.SLOWER)
    held = one.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "p": 0.01, "p_adjusted": 0.057, "family": 5})
    assert said(report.model_copy(update={"comparisons": (held,)}))[0].endswith(
        ": throughput reads \u22126.6% [\u22127.6, \u22125.6], which may be chance (p 0.057 among 5)"
    )


COLD = "in 2 of 3 starts the servers were not warm"


def unjudged(*, n: int, duet: bool, low: float = 1.45, high: float = 1.98, unsettled: str = "") -> Report:
    """A comparison with a ratio and no verdict, because of too few trials or servers that were `unsettled`."""
    report = reports.healthy()
    one = next(each for each in report.comparisons if each.verdict is Verdict.SLOWER)
    ratio = Estimate(value=1.69, low=low, high=high, unit="ratio", n=n, method="t")
    about = DuetComparison(
        starts=n, between_sd=None, blocks_se=None, control=None, alone=None, unsettled=unsettled, findings=()
    )
    verdict = Verdict.INCONCLUSIVE if unsettled else None
    update = {"metric": Metric.CPU_PER_REQUEST, "ratio": ratio, "verdict": verdict, "p": None, "primary": True}
    made = one.model_copy(update={**update, "duet": about if duet else None})
    return report.model_copy(update={"comparisons": (made,)})


def test_what_differs_and_has_no_verdict_says_both() -> None:
    differs = "rust.axum and rust.hyper: CPU per request differs, +69.0% [+45.0, +98.0], but no verdict: "
    assert said(unjudged(n=2, duet=True))[0].endswith(f"{differs}2 of the 3 starts that a verdict needs")
    assert said(unjudged(n=2, duet=False))[0].endswith(f"{differs}2 of the 3 trials that a verdict needs")


def test_a_comparison_of_cold_servers_says_why_and_is_no_pass() -> None:
    """The possible movement makes the interval wide, so they are not called indistinguishable."""
    report = unjudged(n=3, duet=True, low=0.97, unsettled=COLD)
    assert said(report)[0].endswith(f"CPU per request has no verdict, +69.0% [\u22123.0, +98.0]: {COLD}")
    sections = pair_sections(report.comparisons, base="a", other="b")
    assert f"no verdict: {COLD}" in " ".join(render(sections, Console(width=200)).plain.split())
    result = CompareResult(
        base="a", other="b", comparisons=report.comparisons, unmatched=(), environment_differs=(), findings=()
    )
    with pytest.raises(RedlineError, match=r"not everything could be compared: .*not warm"):
        gate(result, {Verdict.SLOWER})


def test_a_difference_that_is_there_and_too_small_to_matter_has_its_size() -> None:
    report = unjudged(n=9, duet=False)
    ratio = Estimate(value=1.008, low=1.005, high=1.011, unit="ratio", n=9, method="t")
    same = report.comparisons[0].model_copy(update={"ratio": ratio, "verdict": Verdict.SLOWER, "matters": False})
    report = report.model_copy(update={"comparisons": (same,)})
    assert said(report)[0].endswith(
        "needs 0.8% more CPU per request than rust.hyper [0.5, 1.1], within the 2% that do not matter"
    )


VALUES = st.floats(0.3, 3.0)


@given(VALUES, st.floats(1.0, 3.0), st.sampled_from([None, *Verdict]), st.integers(2, 9), st.booleans())
def test_nothing_that_differs_by_its_interval_cannot_be_distinguished(
    value: float, wide: float, verdict: Verdict | None, n: int, duet: bool
) -> None:
    report = unjudged(n=n, duet=duet, low=value / wide, high=value * wide)
    (one,) = report.comparisons
    text = " ".join(said(report.model_copy(update={"comparisons": (one.model_copy(update={"verdict": verdict}),)})))
    if one.differs:
        assert "cannot be distinguished" not in text
        assert "not compared" not in text


def test_an_axis_whose_interval_excludes_1_is_not_said_not_to_show() -> None:
    def effect(axis: str, low: float, high: float) -> MainEffect:
        ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, unit="ratio", n=9, method="t")
        return MainEffect(
            axis=axis,
            reference="a",
            levels=(LevelEffect(value="b", ratio=ratio),),
            p=0.02,
            p_adjusted=0.08,
            resolution=0.07,
            verdict="not shown",
            mixed_with=(),
        )

    effects = [effect("gc", 0.96, 1.1), effect("heap", 1.02, 1.165)]
    assert sentence(effects) == (
        "gc does not show (resolution 7%); heap reads +9.0% [+2.0, +16.5], which may be chance (p 0.08 among all axes)"
    )


def test_a_pair_that_is_not_compared_says_why() -> None:
    assert "PostBytes · steady: rust.axum and rust.hyper are not compared: this cell is invalid" in said(
        reports.doubtful()
    )


def test_without_a_difference_both_are_named() -> None:
    report = reports.healthy()
    wide = [
        one.model_copy(
            update={
                "ratio": one.ratio.model_copy(update={"low": 1 / 1.12, "high": 1.12}),
                "verdict": Verdict.INCONCLUSIVE,
            }
        )
        for one in report.comparisons
        if one.ratio and one.primary
    ]
    assert said(report.model_copy(update={"comparisons": tuple(wide)}))[0] == (
        "SimpleGet · saturate: rust.axum and rust.hyper: CPU per request (resolution 12%) and throughput "
        "(resolution 12%) cannot be distinguished"
    )


def test_without_comparisons_levels_and_ranks_are_reported() -> None:
    assert said(reports.alone()) == [
        "rust.hyper answers 96.0 k/s, p99 1.38 ms, CPU per request 17.7 µs (one trial: no interval)"
    ]
    ranked = said(studies.small().model_copy(update={"comparisons": ()}))
    assert any("by throughput" in each and "1. " in each and "2. " in each for each in ranked)


def test_an_invalid_cell_has_no_level() -> None:
    (doubtful, *_) = [each for each in reports.doubtful().cells if not each.valid]
    alone = reports.doubtful().model_copy(update={"cells": (doubtful,), "comparisons": ()})
    assert said(alone)[:1] == ["rust.axum has no valid result: Sent 14,210/s of 20,000/s (71%)."]


def test_a_study_is_counted_and_says_of_each_pair_how_it_compares_over_all_workloads() -> None:
    first, *pairs = said(studies.big())
    assert first.startswith("3,177 verdicts: 122 faster, ")
    assert first.endswith(". Each pair, over all workloads:")
    assert [text.partition(" ")[0] for text in pairs[:3]] == [
        "http4s.tapir",
        "http4s.blaze-tapir",
        "netty.tapir-future",
    ]
    assert len(pairs) == len({text.partition(" ")[0] for text in pairs}) == 10
    assert all("more CPU per request than" in text and " workloads" in text for text in pairs)


def test_of_two_servers_under_many_workloads_the_largest_differences_are_reported() -> None:
    costs = {f"r{number}": Cost(1.2 + number / 20) for number in range(13)}
    lines = said(build_report(compared_run(costs)))
    (at,) = [at for at, text in enumerate(lines) if text.endswith(". The largest differences:")]
    assert [text.partition(":")[0] for text in lines[at + 1 :]] == [f"r{number}" for number in range(12, 0, -1)]


@pytest.mark.parametrize(("factor", "says"), [(1.2, "These differ:"), (1.0, "No difference is significant.")])
def test_a_comparison_of_many_requests_announces_what_follows(factor: float, says: str) -> None:
    costs = {f"r{number}": Cost(factor if number == 7 else 1.0) for number in range(13)}
    lines = said(build_report(compared_run(costs)))
    assert lines[0].startswith("B needs as much CPU per request as A, within 2%, in all 13 workloads") is (factor == 1)
    *_, counted = [at for at, line in enumerate(lines) if line.endswith(f". {says}")]
    assert [line.startswith("r7: B needs ") for line in lines[counted + 1 :]] == [True] * (factor > 1)


def test_it_is_first_on_the_page_and_in_markdown_and_last_on_the_terminal() -> None:
    report = reports.healthy()
    (block,) = next(run_answer(report)).blocks
    assert page(report).sections[0].blocks == (block,)
    after = RENDERERS["md"](report).decode().partition("### ")[2]
    assert after.startswith("The answer, in words\n\n- rust.axum **answers 6.6% fewer requests than rust.hyper")
    assert list(summary(report))[-1].blocks == (block,)


def test_a_search_says_what_each_server_sustains() -> None:
    report = limits.by_hand()
    (section,) = limit_answer(report)
    cut, told = section.blocks
    in_text = replace(section, blocks=(told,))
    assert lines_of(in_text)[0] == "rust.hyper meets good up to 880/s and misses it from 920/s on (±2.2%)"
    assert list(summary(report))[-1] == in_text
    assert page(report).sections[0].blocks == (cut, told)


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (None, None, "rust.hyper: no rate is known to meet good, and none to miss it"),
        (None, 920.0, "rust.hyper misses good from 920/s on; no rate is known to meet it"),
        (880.0, None, "rust.hyper meets good up to 880/s; no rate is known to miss it"),
    ],
)
def test_an_open_side_of_a_limit_is_reported(low: float | None, high: float | None, words: str) -> None:
    report = limits.by_hand()
    answer = report.cells[0].limits[0].model_copy(update={"passed_per_s": low, "failed_per_s": high})
    cell = report.cells[0].model_copy(update={"limits": (answer,)})
    (section,) = limit_answer(report.model_copy(update={"cells": (cell,)}))
    assert lines_of(section) == [words]


@pytest.mark.parametrize(
    ("low", "high", "seconds", "says"),
    [
        (0.97, 1.03, 120.0, "; about 5 min in place of 2 min would decide it, if the ratio stays"),
        (0.97, 1.03, 6.0, "; about 20 s in place of 10 s would decide it, if the ratio stays"),
        (0.98, 1.08, 60.0, "; about 3 min in place of 60 s would decide it, if the ratio stays"),
        (0.5, 2.0, 60.0, "; to decide it, if the ratio stays, would take more than an hour"),
        (0.97, 1.03, 0.0, ""),
    ],
)
def test_a_duet_that_decides_nothing_says_how_long_it_would_take(
    low: float, high: float, seconds: float, says: str
) -> None:
    """A ratio that reads 1 has to become known to the threshold, and any other to be distinguished from 1."""
    report = unjudged(n=3, duet=True, low=low, high=high)
    (one,) = report.comparisons
    assert one.ratio is not None
    ratio = one.ratio.model_copy(update={"value": (low * high) ** 0.5})
    open_ = one.model_copy(update={"ratio": ratio, "verdict": Verdict.INCONCLUSIVE})
    timed = {"comparisons": (open_,), "run": report.run.model_copy(update={"seconds": seconds})}
    assert said(report.model_copy(update=timed))[0].partition(" cannot be distinguished")[2] == says
    assert open_.duet is not None
    cold = open_.model_copy(update={"duet": open_.duet.model_copy(update={"unsettled": COLD})})
    assert "would" not in said(report.model_copy(update={**timed, "comparisons": (cold,)}))[0]


def test_a_duet_that_many_comparisons_hold_back_needs_little_more_time() -> None:
    report = unjudged(n=3, duet=True, low=1.07, high=1.85)
    (one,) = report.comparisons
    judged = {"verdict": Verdict.INCONCLUSIVE, "p": 0.026, "p_adjusted": 0.052, "family": 2}
    timed = {"run": report.run.model_copy(update={"seconds": 60.0}), "comparisons": (one.model_copy(update=judged),)}
    assert said(report.model_copy(update=timed))[0].endswith(
        "which may be chance (p 0.052 among 2); about 90 s in place of 60 s would decide it, if the ratio stays"
    )
    judged |= {"p": 0.04, "p_adjusted": 0.8, "family": 20}
    timed["comparisons"] = (one.model_copy(update=judged),)
    assert "; about 3 min in place of 60 s" in said(report.model_copy(update=timed))[0]
