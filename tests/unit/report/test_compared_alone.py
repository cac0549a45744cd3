"""Reports of suites that compare by duets alone: no trials, levels of slices, a sentence for each scenario."""

import csv
import io
import json
import re

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.document import format as fmt
from redline.model import Comparison, Failure, Metric, Report, Verdict
from redline.render import RENDERERS, summary
from redline.render.terminal import render
from redline.report.answer import run_answer
from tests.fakes.compared import Cost, compared_run
from tests.fakes.pages import Page, section
from tests.fakes.published import published

ROUTES = {"home": Cost(), "search": Cost(1.05), "cart": Cost(), "report": Cost(noise=0.2), "mix": Cost(1.01)}


@pytest.fixture(scope="module")
def one() -> Report:
    return build_report(compared_run())


@pytest.fixture(scope="module")
def several() -> Report:
    return build_report(compared_run(ROUTES))


def text(report: Report, width: int = 100) -> str:
    return render(summary(report), Console(width=width)).plain


def test_the_terminal_names_the_servers_and_ends_with_the_sentence(one: Report) -> None:
    lines = text(one, 160).splitlines()
    assert "A: ./a --port {port}" in lines
    assert "B: ./b --port {port}" in lines
    last = " ".join(line.strip() for line in lines[lines.index("The answer, in words") + 1 :])
    assert last.startswith("B needs 5.1% more CPU per request than A [4.7, 5.6]; A against itself: ")
    reason = "as only CPU per request is judged"
    described = last.split(f"; no verdict on throughput, {reason}: it answers 4.9% fewer requests [")[1]
    assert re.fullmatch(r"[\d.]+, [\d.]+\], and A against itself .?[\d.]+% \[.*\]", described)
    (answer,) = run_answer(one)
    (sentence,) = (line for block in answer.blocks for line in block.lines)  # type: ignore[union-attr]
    assert [span.look for span in sentence if "throughput" in span.text] == ["dim"]
    assert [span.look for span in sentence if "more CPU per request" in span.text] == ["strong"]
    assert "6 starts in 30.0 s" in lines[1]


def test_a_terminal_has_the_table_and_the_answer_in_a_screenful(one: Report) -> None:
    lines = text(one, 80).splitlines()
    assert len(lines) <= 25
    assert [line for line in lines if line in ("Comparisons", "Results", "Caveats", "The answer, in words")] == [
        "Comparisons",
        "The answer, in words",
    ]


def test_several_scenarios_have_one_table_with_the_controls_that_the_answers_leave_out(several: Report) -> None:
    shown = text(several, 80)
    assert [line.split() for line in shown.splitlines() if line.startswith("workload")] == [
        ["workload", "throughput", "p99", "CPU", "per", "request", "A", "over", "A"]
    ]
    assert "; A against itself" not in shown
    assert "What was left out" not in shown
    assert "What was left out" in RENDERERS["md"](several).decode()


def test_one_scenario_has_a_row_for_each_metric_with_the_control_beside_it(one: Report) -> None:
    lines = text(one).splitlines()
    assert any(line.split() == ["B", "over", "A", "A", "over", "A"] for line in lines)
    assert any(line.startswith("CPU per request  +5.1% ▼ [+4.7, +5.6]") for line in lines)


def test_a_planted_cost_stands_in_its_scenario_and_in_no_other(several: Report) -> None:
    slower = {
        cell.scenario
        for one in several.comparisons
        for cell in several.cells
        if cell.cell_id == one.cell_id and one.metric is Metric.CPU_PER_REQUEST and one.verdict is Verdict.SLOWER
        if one.ratio and one.ratio.value > 1.02
    }
    assert slower == {"search"}
    said = text(several, 400).splitlines()
    *answers, shares = said[-6:]
    assert [line.split(":")[0].strip() for line in answers] == ["search", "mix", "home", "cart", "report"]
    assert shares.startswith("  mix: ")


def test_what_had_too_little_time_says_what_it_reached(several: Report) -> None:
    (limits,) = [line for line in text(several, 300).splitlines() if "What limits precision" in line]
    assert "not known to 2%, for which more time helps: report (±" in limits
    assert "home (±" not in limits


@pytest.mark.parametrize("form", ["md", "html", "terminal"])
def test_nothing_is_said_of_trials_that_were_never_to_be_made(one: Report, several: Report, form: str) -> None:
    for report in (one, several):
        shown = text(report) if form == "terminal" else RENDERERS[form](report).decode()
        shown = Page(shown).text if form == "html" else shown
        assert "0 of 0" not in shown
        assert "trials of a cell" not in shown
        assert "refused" not in shown
        assert "No trial" not in shown


def cpu_bounds(comparison: Comparison) -> str:
    assert comparison.ratio is not None
    return fmt.change_bounds(comparison.ratio)


def test_each_comparison_stands_once_on_the_page(several: Report) -> None:
    html = RENDERERS["html"](several).decode()
    cpu = next(one for one in several.comparisons if one.metric is Metric.CPU_PER_REQUEST and one.ratio)
    results = section(html, "results")
    assert results.open == []
    assert results.text.count("fresh starts; starts differ by") >= 2 * len(ROUTES)
    assert cpu.duet is not None
    assert len(cpu.duet.of_starts) == cpu.duet.starts
    assert 'id="comparisons"' not in html
    alike = [one for one in several.comparisons if one.ratio and fmt.change_bounds(one.ratio) == cpu_bounds(cpu)]
    assert html.count(f"<small>{cpu_bounds(cpu)}</small>") == len(alike)


def test_levels_are_of_slices(one: Report) -> None:
    first, second = one.cells
    assert first.estimates[Metric.CPU_PER_REQUEST].value == pytest.approx(20_000, rel=0.01)
    assert second.estimates[Metric.CPU_PER_REQUEST].value == pytest.approx(21_000, rel=0.01)
    assert first.estimates[Metric.THROUGHPUT].value == pytest.approx(50_000, rel=0.01)
    assert first.estimates[Metric.P50].value == pytest.approx(1_500_000, rel=0.01)
    assert first.estimates[Metric.THROUGHPUT].n == 6
    assert (first.trials, first.trials_planned, first.valid) == ((), 0, True)
    page = RENDERERS["html"](one).decode()
    measured = section(page, "measured").text
    assert "of the service time, all slices together" in measured
    assert "CPU per request" in measured
    assert fmt.label(Metric.GAP_P99) not in measured
    results = section(page, "results").text
    assert "A level is the mean over starts" in results
    assert "a change by neighbouring slices in each start, so the change is not the quotient of two levels" in results
    assert "A change without a sign is described: only CPU per request is judged." in results


def test_csv_and_json_carry_it_all(several: Report) -> None:
    assert Report.model_validate_json(RENDERERS["json"](several)) == published(several)
    run = json.loads(RENDERERS["json"](several))["run"]
    assert (run["kind"], run["starts"], run["alone"]) == ("comparison", 6, False)
    rows = [row for row in csv.DictReader(io.StringIO(RENDERERS["csv"](several).decode())) if row["ratio"]]
    assert {(row["scenario"], row["design"]) for row in rows} == {(name, "duet") for name in ROUTES}


def test_an_interrupted_comparison_says_so() -> None:
    assert "interrupted" in text(build_report(compared_run(interrupted=True)))


def test_cells_of_which_no_start_was_measured_say_why() -> None:
    run = compared_run(starts=2)
    failure = {"stage": "launch", "kind": "died", "message": "B ended with status 1", "hint": "read its output"}
    lost = tuple(each.model_validate({**each.model_dump(), "traffic": None, "failure": failure}) for each in run.duets)
    shown = text(build_report(run.model_copy(update={"duets": lost})))
    assert "No start came to its measurement. The first failed in stage launch: B ended with status 1" in " ".join(
        shown.split()
    )


def test_a_request_that_was_answered_wrongly_says_so_in_its_row() -> None:
    run = compared_run({"home": Cost(), "search": Cost()})
    said = "B answered search wrongly before any load: status 404"
    failure = Failure(stage="verify", kind="wrong_answer", message=said, hint="see its log")
    cells = run.manifest.plan.cells
    duets = tuple(
        duet.model_copy(update={"traffic": None, "failure": failure})
        if cells[duet.cell_ids[0]].scenario.name == "search"
        else duet
        for duet in run.duets
    )
    report = build_report(run.model_copy(update={"duets": duets}))
    refused = {comparison.refused for comparison in report.comparisons if "search" in comparison.cell_id}
    assert refused == {f"no start with both was measured: {said}"}
    assert f"[1] refused: no start with both was measured: {said}" in text(report, 160)
