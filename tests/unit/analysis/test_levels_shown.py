"""Mean, percentiles, maximum and transfer rate in every table of results, and what a narrow terminal leaves out."""

import io

import pytest
from rich.cells import cell_len
from rich.console import Console

from redline.analysis import build_report
from redline.cli.show import show
from redline.document.blocks import Section
from redline.model import Metric, Report
from redline.quantities import amount, duration
from redline.render import RENDERERS, page, summary
from redline.report.load import load_section
from tests.fakes import studies
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import Cost, compared_run
from tests.fakes.loads import load_of
from tests.fakes.recordings import SATURATE, simulated_run

SHOWN = ["p50", "p75", "p90", "p95", "p99", "p99.9", "max", "mean", "transfer rate"]


def run_report() -> Report:
    return build_report(simulated_run(trials=3, loads=(SATURATE,), ceiling=None))


def console_lines(sections: list[Section], width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show(sections, console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_markdown_has_a_column_for_every_level() -> None:
    report = run_report()
    text = RENDERERS["md"](report).decode()
    (head,) = [line for line in text.splitlines() if line.startswith("| server | throughput | CPU")]
    assert head == f"| server | throughput | CPU per request | {' | '.join(SHOWN)} |"
    (row,) = [line for line in text.splitlines() if line.startswith("| **rust.hyper** (baseline)")]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    hyper = report.cells[0]
    for name, cell in zip(SHOWN[:6], cells[3:9], strict=True):
        estimate = hyper.estimates[Metric(name)]
        assert cell.startswith(f"{amount(estimate.value, 'ns')} ±"), name
    assert cells[9] == duration(hyper.response.max_ns)
    assert cells[10].startswith(f"{amount(hyper.estimates[Metric.MEAN].value, 'ns')} ±")
    assert cells[11].startswith(amount(hyper.estimates[Metric.RECEIVED].value, "B/s"))


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_has_them_without_intervals(width: int) -> None:
    report = run_report()
    lines = console_lines(list(summary(report)), width)
    assert max(map(cell_len, lines)) <= width
    at = lines.index("percentiles, mean and transfer rate")
    hyper = report.cells[0]
    shown = " ".join(lines[at : at + 12])
    for metric in (Metric.P75, Metric.P95, Metric.P999):
        assert duration(hyper.estimates[metric].value) in shown
    assert duration(hyper.response.max_ns) in shown


def test_a_terminal_says_where_the_levels_of_many_cells_stand() -> None:
    lines = console_lines(list(summary(studies.big())), 100)
    assert "percentiles, mean and transfer rate" not in lines
    assert any("stand on the page, in Markdown, CSV and JSON" in line for line in lines)


def test_the_page_has_one_table_with_all_of_them() -> None:
    html = RENDERERS["html"](run_report()).decode()
    table = html.partition('<table class="scores">')[2].partition("</thead>")[0]
    for name in ("throughput", "CPU per request", *SHOWN, "memory"):
        assert f'<span class="sort">{name}</span>' in table.replace("<wbr>", ""), name
    assert any(section.anchor == "results" for section in page(run_report()).sections)


def test_percentiles_between_are_compared_too() -> None:
    report = run_report()
    compared = {comparison.metric for comparison in report.comparisons if comparison.ratio}
    assert {Metric.P75, Metric.P95} <= compared
    markdown = RENDERERS["md"](report).decode()
    assert "| workload | p50 |" not in markdown
    assert "p75" in markdown.partition("Comparisons")[2]


def test_a_terminal_says_which_other_metrics_were_compared() -> None:
    report = build_report(
        simulated_run({"rust.hyper": GOOD, "rust.axum": GOOD, "rust.warp": GOOD}, trials=3, ceiling=None)
    )
    text = " ".join(console_lines(list(summary(report)), 80))
    assert "Compared too, and shown on the page" in text


def test_a_duet_has_its_percentiles_in_a_row_each_and_a_mean_on_the_page() -> None:
    report = build_report(compared_run({"home": Cost(1.2)}))
    lines = console_lines(list(summary(report)), 80)
    for name in ("p50", "p75", "p90", "p95", "p99"):
        assert any(line.split()[:1] == [name] for line in lines), name
    assert all(Metric.MEAN in cell.estimates for cell in report.cells)


def test_a_load_has_its_mean_its_transfer_rate_and_its_status_codes() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=1, loads=(SATURATE,), ceiling=None)
    recording = run.recordings[0]
    cell = load_of(run.manifest.plan.cells[recording.cell_id], recording)
    assert recording.traffic is not None
    mean_ns = cell.known[Metric.MEAN].value
    assert mean_ns == pytest.approx(recording.traffic.response.mean_ns)
    lines = console_lines([load_section(cell, whole=True)], 80)
    assert any(line.startswith(f"mean response time {duration(mean_ns)}") for line in lines)
