"""The page's picture and table: every fact once, nothing drawn of what is not known, rounds counted from 1."""

import math
import re

import pytest

from redline.analysis import build_report
from redline.document import format as fmt
from redline.document.blocks import ChangeCell, ScoreCell, Strip, Table
from redline.model import COMPARED, Comparison, Estimate, Metric, Report, Verdict
from redline.model.estimate import DuetComparison
from redline.render import RENDERERS
from redline.report.forest import forest, scale_of
from redline.report.layers import layer_sections
from redline.report.measured import built_section
from redline.report.table import table_section
from tests.fakes import layers, reports, studies
from tests.fakes.compared import compared_run
from tests.fakes.pages import page, section


def results(report: Report) -> Table:
    (made,) = table_section(report)
    return next(block for block in made.blocks if isinstance(block, Table))


def strips(report: Report) -> list[Strip]:
    return [cell for table in forest(report) for row in table.rows for cell in row if isinstance(cell, Strip)]


def changed(report: Report, **edit: object) -> Report:
    first, *others = report.comparisons
    return report.model_copy(update={"comparisons": (first.model_copy(update=edit), *others)})


def test_the_picture_has_a_row_for_all_that_is_judged_on_a_scale_for_each_metric() -> None:
    report = reports.healthy()
    judged = [comparison for comparison in report.comparisons if comparison.primary]
    drawn = strips(report)
    assert len(drawn) == len(judged) == 8
    pictures = forest(report)
    assert {scale_of(table).name for table in pictures} == {
        f"forest-{comparison.metric.value}" for comparison in judged
    }
    for table in pictures:
        assert {cell.scale for row in table.rows for cell in row if isinstance(cell, Strip)} == {scale_of(table)}
    assert all(strip.dots for strip in drawn)
    assert forest(reports.alone()) == ()


def test_a_wide_interval_of_one_metric_leaves_the_scale_of_another() -> None:
    report = reports.healthy()
    p99 = next(one for one in report.comparisons if one.primary and one.metric is Metric.P99)
    wide = Estimate(value=6.4, low=2.0, high=20.0, unit="ratio", n=5, method="t")
    others = tuple(one.model_copy(update={"ratio": wide}) if one == p99 else one for one in report.comparisons)
    before, after = (
        {scale_of(table).name: scale_of(table).high for table in forest(made)}
        for made in (report, report.model_copy(update={"comparisons": others}))
    )
    assert {name for name in before if before[name] != after[name]} == {"forest-p99"}


def test_the_picture_says_why_a_rate_of_duets_is_not_judged() -> None:
    headings = {str(row[0]) for table in forest(build_report(compared_run())) for row in table.rows}
    assert headings == {"throughput, more is better (only CPU per request is judged)", "CPU per request"}


def test_a_change_without_the_verdict_that_was_asked_for_says_why_in_a_hint() -> None:
    ratio = next(one.ratio for one in reports.healthy().comparisons if one.ratio)
    few = changed(reports.healthy(), verdict=None, p=None, ratio=ratio.model_copy(update={"n": 2}))
    hint = "No verdict: 2 of the 3 trials that a verdict needs"
    assert hint in [dict(attributes).get("title") for _, attributes in page(few).tags]
    assert hint not in [dict(attributes).get("title") for _, attributes in page(reports.healthy()).tags]


def test_of_many_it_has_the_largest() -> None:
    report = studies.big()
    first, *others = forest(report)
    assert len(first.rows) + sum(len(table.rows) for table in others) == 24
    judged = [c for c in report.comparisons if c.primary and c.ratio]
    title = "".join(span.text for span in first.title)
    assert title.startswith(f"The 24 largest of {len(judged):,} differences: ratios with 95% intervals")
    assert "".join(span.text for span in forest(reports.healthy())[0].title).startswith("Change against rust.hyper: ")
    for table in (first, *others):
        sizes = [abs(math.log(cell.value or 1)) for row in table.rows for cell in row if isinstance(cell, Strip)]
        assert sizes == sorted(sizes, reverse=True)


def test_an_interval_that_says_nothing_has_no_whisker() -> None:
    wide = Estimate(value=1.3, low=0.003, high=186.0, unit="ratio", n=3, method="t")
    first, *_ = strips(changed(reports.healthy(), ratio=wide, verdict=Verdict.INCONCLUSIVE))
    assert (first.value, first.low, first.high) == (1.3, None, None)
    assert "[not known]" in page(changed(reports.healthy(), ratio=wide, verdict=Verdict.INCONCLUSIVE)).text


def test_every_ratio_stands_once_in_the_table() -> None:
    report = reports.healthy()
    cells = [cell for row in results(report).rows for cell in row if isinstance(cell, ScoreCell)]
    shown = [cell.change.text for cell in cells if cell.change and cell.change.text]
    assert sorted(shown) == sorted(fmt.change(c.ratio) for c in report.comparisons if c.ratio)
    html = RENDERERS["html"](report).decode()
    bounds = {fmt.change_bounds(c.ratio): 0 for c in report.comparisons if c.ratio}
    for text in bounds:
        of_it = sum(fmt.change_bounds(c.ratio) == text for c in report.comparisons if c.ratio)
        assert html.count(f"<small>{text}</small>") == of_it


def test_what_is_refused_has_a_number_and_its_reason_once() -> None:
    text = section(RENDERERS["html"](reports.healthy()).decode(), "results").text
    assert "refused" not in text
    assert text.count("the schedule sets the throughput, and both kept up with it") == 1


def test_the_number_of_a_reason_stands_in_a_cell_also_where_there_is_no_level() -> None:
    report = changed(reports.healthy(), ratio=None, verdict=None, refused="5,385 requests are too few")
    first = report.comparisons[0]
    cells = tuple(
        cell.model_copy(
            update={
                "estimates": {metric: level for metric, level in cell.estimates.items() if metric is not first.metric}
            }
        )
        if cell.cell_id == first.cell_id
        else cell
        for cell in report.cells
    )
    text = RENDERERS["html"](report.model_copy(update={"cells": cells})).decode()
    assert "[1] not compared: 5,385 requests are too few" in text
    assert '<sup title="not compared: see below">1</sup>' in text


def test_rows_are_sorted_by_ratios_where_servers_are_compared_and_else_by_levels() -> None:
    places = [cell.place for cell in results(reports.healthy()).rows[1] if isinstance(cell, ScoreCell)]
    assert places[0] == pytest.approx(0.934)
    base, *_, ceiling = results(reports.healthy()).rows[:3]
    names = {fmt.label(metric) for metric in COMPARED}
    compared = [at for at, column in enumerate(results(reports.healthy()).columns) if column.title in names]
    assert {cell.place for at in compared if isinstance(cell := base[at], ScoreCell)} == {1.0}
    assert {cell.place for at in compared if isinstance(cell := ceiling[at], ScoreCell)} == {None}
    (alone,) = results(reports.alone()).rows
    first = next(cell for cell in alone if isinstance(cell, ScoreCell))
    assert first.place == reports.alone().cells[0].estimates[Metric.THROUGHPUT].value


def test_trials_stand_below_their_row_and_rounds_count_from_one() -> None:
    html = RENDERERS["html"](reports.alone()).decode()
    trial = re.search(r"<tr>\s*<th scope=\"row\">(\d+)</th><td>(\d+)</td><td>yes</td>", html)
    assert trial is not None
    assert trial.groups() == ("1", "0000")


def test_the_starts_of_a_duet_stand_below_their_row() -> None:
    about = DuetComparison(
        starts=2, between_sd=None, blocks_se=None, control=None, alone=None, of_starts=(1.1, 0.9), findings=()
    )
    assert "throughput by start: +10.0%, −10.0%" in page(changed(reports.healthy(), duet=about)).text.replace(  # noqa: RUF001
        " : ", ": "
    )


def test_a_waterfall_of_which_all_is_refused_has_its_reasons_and_no_picture() -> None:
    report = layers.refusing()
    falls = []
    for fall in report.layers:
        none = {"throughput": None, "cpu": None, "cpu_ns": None, "refused": "the cell is invalid"}
        steps = tuple(step.model_copy(update=none) for step in fall.steps)
        falls.append(fall.model_copy(update={"steps": steps, "whole": fall.whole.model_copy(update=none)}))
    (made,) = layer_sections(report.model_copy(update={"layers": tuple(falls)}))
    assert "BarChart" not in repr(made)
    assert "the cell is invalid" in repr(made)


def test_a_runtime_that_no_server_reports_is_not_called_unknown() -> None:
    report = reports.healthy()
    cells = tuple(cell.model_copy(update={"runtime_version": ""}) for cell in report.cells)
    (made,) = built_section(report.model_copy(update={"cells": cells}))
    (table,) = made.blocks
    assert isinstance(table, Table)
    assert [column.title for column in table.columns] == ["server", "build"]


@pytest.mark.parametrize(
    ("metric", "ratio", "half", "text"),
    [
        (Metric.THROUGHPUT, 0.625, 0.05, "1.6 times fewer requests"),
        (Metric.THROUGHPUT, 2.1, 0.05, "2.1 times as many requests"),
        (Metric.CPU_PER_REQUEST, 3.8, 0.05, "3.8 times as much CPU"),
        (Metric.P99, 0.5, 0.05, "p99 2.0 times lower"),
        (Metric.P99, 1.5, 0.6, ""),
        (Metric.THROUGHPUT, 1.49, 0.01, ""),
        (Metric.THROUGHPUT, 0.68, 0.01, ""),
    ],
)
def test_a_large_difference_is_said_in_times(metric: Metric, ratio: float, half: float, text: str) -> None:
    estimate = Estimate(value=ratio, low=ratio - half, high=ratio + half, unit="ratio", n=5, method="t")
    compared: Comparison = reports.healthy().comparisons[0].model_copy(update={"metric": metric, "ratio": estimate})
    assert fmt.times(compared, named=True) == text
    assert ChangeCell.of(compared).times in text


def test_text_has_a_column_of_times_beside_ratios() -> None:
    ratio = Estimate(value=0.625, low=0.6, high=0.65, unit="ratio", n=5, method="t")
    markdown = RENDERERS["md"](changed(reports.healthy(), ratio=ratio)).decode()
    assert "| times |" in markdown
    assert "1.6 times<br>fewer requests" in markdown
    assert "| times |" not in RENDERERS["md"](reports.healthy()).decode()
