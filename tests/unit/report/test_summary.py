"""The terminal's view: it fits, is complete, and cannot be controlled by servers."""

import io
from collections.abc import Callable

import pytest
from rich.cells import cell_len
from rich.console import Console

from redline.cli.show import show
from redline.model import Metric, Report
from redline.render import summary
from redline.report.comparison import pair_sections
from tests.fakes import reports, studies

ALL: list[Callable[[], Report]] = [
    reports.healthy,
    reports.alone,
    reports.doubtful,
    reports.skipping,
    reports.died,
    reports.nasty,
    studies.small,
]


def shown(report: Report, width: int = 80, *, terminal: bool = False, no_color: bool = False) -> str:
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=terminal,
        no_color=no_color,
        color_system="standard" if terminal else None,
    )
    show(summary(report), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 80, 120, 200])
@pytest.mark.parametrize("make", ALL)
def test_no_line_is_longer_than_the_terminal(make: Callable[[], Report], width: int) -> None:
    assert max(cell_len(line) for line in shown(make(), width).splitlines()) <= width


def test_values_and_changes_fit_80_columns() -> None:
    lines = shown(reports.healthy()).splitlines()
    assert "rust.axum    89.7 k/s ±0.7%  647 µs ±0.5%   1.46 ms ±2.5%  19.0 µs ±0.9%" in [
        line.rstrip() for line in lines
    ]
    assert "SimpleGet · saturate       −6.6% ▼         +5.8%          +3.0%          +4.1% ▼" in lines  # noqa: RUF001
    assert "                      [−7.6, −5.6]  [+4.1, +7.5]   [−3.6, +9.6]     [+2.9, +5.3]" in lines  # noqa: RUF001


def test_a_pipe_gets_no_escape_and_neither_does_no_color() -> None:
    assert "\x1b" not in shown(reports.skipping())
    assert "\x1b[3" in shown(reports.skipping(), terminal=True)
    assert "\x1b[3" not in shown(reports.skipping(), terminal=True, no_color=True)


def test_an_invalid_cell_shows_its_finding_in_place_of_its_number() -> None:
    lines = [line.rstrip() for line in shown(reports.doubtful()).splitlines()]
    assert "rust.axum     ✕ invalid: Sent 14,210/s of 20,000/s (71%)." in lines


def test_a_cell_that_stands_is_marked_with_a_warning_for_the_trial_it_lost() -> None:
    lines = [line.rstrip() for line in shown(reports.died()).splitlines()]
    assert not any("✕" in line for line in lines)
    assert "!" in lines
    assert "  1 of 5 trials left out: Failed in stage load: it panicked." in lines


def test_the_same_finding_on_many_cells_is_reported_once_with_its_advice() -> None:
    text = shown(reports.doubtful())
    assert text.count("The hypervisor took 3.1% of the CPU time.") == 1
    assert "every cell" in text
    assert text.count("→ Run on a machine of your own, or ask for more trials.") == 1


def test_what_was_skipped_and_what_was_missed_is_reported() -> None:
    text = shown(reports.skipping())
    assert "Skipped: 4 cells" in text
    assert text.count("mvn is not on the PATH") == 1
    assert "51 of 60 trials" in text
    assert "This run is not complete" in " ".join(text.split())
    assert "✗ p99 < 1.5 ms" in text


def test_escape_sequences_from_a_server_are_shown_and_not_sent() -> None:
    report = reports.doubtful()
    cells = [
        cell.model_copy(
            update={
                "findings": tuple(f.model_copy(update={"message": "\x1b]0;owned\x07[bold]hi"}) for f in cell.findings)
            }
        )
        for cell in report.cells
    ]
    text = shown(report.model_copy(update={"cells": tuple(cells)}))
    assert "\x1b" not in text
    assert "\\u001b]0;owned\\u0007[bold]hi" in text


def test_comparisons_have_change_interval_and_verdict() -> None:
    report = reports.doubtful()
    console = Console(file=io.StringIO(), width=80)
    show(pair_sections(report.comparisons, base="monday", other="tuesday"), console)
    assert isinstance(console.file, io.StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    assert lines[0] == "tuesday against monday"
    assert "rust.axum.SimpleGet.saturate  against rust.hyper.SimpleGet.saturate" in lines
    assert "CPU per request +4.1% [+2.9, +5.3] ▼ slower" in [" ".join(line.split()) for line in lines]
    assert any(line.endswith("not compared: this cell is invalid") for line in lines)


def test_of_the_far_tail_a_comparison_shows_only_what_could_be_compared() -> None:
    report = reports.healthy()
    changes = {"ratio": None, "verdict": None, "refused": "500 requests are too few for p99.9"}
    tails = [found for found in report.comparisons if found.metric is Metric.P999]
    for comparisons, rows in ((tails, len(tails)), ([c.model_copy(update=changes) for c in tails], 0)):
        console = Console(file=io.StringIO(), width=80)
        show(pair_sections(comparisons, base="monday", other="tuesday"), console)
        assert isinstance(console.file, io.StringIO)
        text = console.file.getvalue()
        assert text.count("p99.9 ") == rows
        assert "too few" not in text
        assert max(map(cell_len, text.splitlines())) <= 80


def test_the_far_tail_stands_in_a_table_without_intervals() -> None:
    heads = [line.split() for line in shown(reports.healthy()).splitlines() if line.startswith("server ")]
    assert ["server", "throughput", "p50", "p99", "CPU", "per", "request"] in heads
    assert ["server", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"] in heads


def test_many_servers_and_workloads_are_compared_in_a_table_for_each_metric() -> None:
    lines = [line.rstrip() for line in shown(studies.small()).splitlines()]
    start = lines.index("Comparisons")
    for metric in ("throughput", "p99", "CPU per request"):
        title = next(at for at, each in enumerate(lines) if at > start and each.startswith(f"{metric} users128"))
        assert {"interceptor=off", "interceptor=server-log"} <= set(lines[title:])
    assert "  http4s.tapir vs http4s.vanilla          −10% ▼          −17% ▼" in lines[start:]  # noqa: RUF001


def test_a_refused_comparison_is_reported() -> None:
    lines = [line.rstrip() for line in shown(reports.doubtful()).splitlines()]
    assert "PostBytes · steady     refused [2]   refused [2]    refused [2]      refused [2]" in lines
    assert "  [2] refused: this cell is invalid" in lines


def test_what_is_compared_with_a_baseline_of_its_own_says_with_which() -> None:
    lines = [line.strip() for line in shown(studies.small()).splitlines()]
    assert any("vs http4s.vanilla " in line for line in lines)
    assert any("vs vertx.vanilla " in line for line in lines)
    assert not any(line.startswith("vs ") for line in map(str.strip, shown(reports.healthy()).splitlines()))


def test_loads_that_are_not_the_same_for_all_are_reported_by_row() -> None:
    report = reports.healthy()
    first = report.cells[0].model_copy(update={"load_text": "open, 12000/s poisson, 1s"})
    text = shown(report.model_copy(update={"cells": (first, *report.cells[1:])}), 120)
    assert "not the same for all" in text
    assert "12000/s" in text
