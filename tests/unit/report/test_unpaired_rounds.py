"""A comparison by round reports rounds that have only one of the two cells."""

import io
from functools import cache

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.cli.show import show
from redline.model import Metric, Report
from redline.render import RENDERERS, summary
from redline.report.comparison import pair_sections
from tests.fakes.compared_runs import runs_compared
from tests.fakes.recordings import SATURATE, simulated_run

TEXT = "4 of 6 rounds have a valid trial of both: rust.axum.SimpleGet.saturate and rust.hyper.SimpleGet.saturate"


@cache
def made(**lost: tuple[int, ...]) -> Report:
    """Six rounds, in some of which the trials of a server gave no traffic."""
    run = simulated_run(trials=6, loads=(SATURATE,))
    cells = run.manifest.plan.cells
    recordings = tuple(
        one.model_copy(update={"traffic": None})
        if one.round in lost.get(cells[one.cell_id].variant.entry.name.rpartition(".")[2], ())
        else one
        for one in run.recordings
    )
    return build_report(run.model_copy(update={"recordings": recordings}))


def printed(report: Report) -> tuple[str, str]:
    """As `redline report` and as `redline compare` print it."""
    whole, compared = (Console(file=io.StringIO(), width=200, record=True) for _ in range(2))
    show(summary(report), whole)
    show(pair_sections(report.comparisons, base="a", other="a"), compared)
    return whole.export_text(), compared.export_text()


def test_the_rounds_that_have_one_side_are_counted() -> None:
    """Two rounds lost by either side are two lost rounds, and complete rounds report nothing."""
    for lost in ({"axum": (1, 4)}, {"hyper": (1, 4)}, {"axum": (1,), "hyper": (4,)}):
        found = next(one for one in made(**lost).comparisons if one.metric is Metric.THROUGHPUT)
        assert found.ratio is not None
        assert (found.ratio.n, found.rounds) == (4, 6)
    assert all(one.rounds is None for one in made().comparisons)
    both = next(one for one in made(axum=(1,), hyper=(1,)).comparisons if one.metric is Metric.THROUGHPUT)
    assert both.ratio is not None
    assert (both.ratio.n, both.rounds) == (5, 6)


def test_runs_are_not_paired() -> None:
    run = simulated_run(trials=3, loads=(SATURATE,))
    assert all(one.rounds is None for one in runs_compared(run, run).comparisons)


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_show_it(form: str) -> None:
    text = RENDERERS[form](made(axum=(1, 4))).decode().replace("\\", "")
    assert text.count(TEXT) == 1
    assert "rounds have a valid trial of both" not in RENDERERS[form](made()).decode()


def test_the_terminal_shows_it() -> None:
    report, comparisons = printed(made(axum=(1, 4)))
    assert TEXT in " ".join(report.split())
    assert "4 of 6 rounds have a valid trial of both" in comparisons
    assert "rounds have" not in "".join(printed(made()))


def test_json_has_it_only_where_it_is() -> None:
    assert '"rounds":6' in made(axum=(1, 4)).model_dump_json().replace(" ", "")
    assert made().comparisons[0].model_dump().get("rounds") is None
