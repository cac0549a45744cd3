"""The dots behind intervals are the used trials, and the rounds of which both cells have one."""

import pytest

from redline.model import Metric
from redline.report.render import RENDERERS
from redline.report.sections.dots import ratios, values
from tests.fakes import reports


def test_a_dot_is_the_ratio_of_one_round() -> None:
    report = reports.healthy()
    cells = {cell.cell_id: cell for cell in report.cells}
    one = next(each for each in report.comparisons if each.metric is Metric.THROUGHPUT)
    cell, baseline = cells[one.cell_id], cells[one.baseline_id]
    lost = cell.trials[1].model_copy(update={"used": False})
    cells[cell.cell_id] = cell.model_copy(update={"trials": (cell.trials[0], lost, *cell.trials[2:])})
    found = ratios(cells, one)
    assert len(found) == len(cell.trials) - 1
    ours, theirs = cell.trials[2].rate_per_s, baseline.trials[2].rate_per_s
    assert ours
    assert theirs
    assert found[1] == pytest.approx(ours / theirs)
    assert len(values(cells, cell.cell_id, Metric.P99)) == len(cell.trials) - 1


def test_what_no_single_trial_has_and_what_is_refused_has_no_dots() -> None:
    report = reports.doubtful()
    cells = {cell.cell_id: cell for cell in report.cells}
    refused = next(each for each in report.comparisons if each.ratio is None)
    assert ratios(cells, refused) == ()
    assert values(cells, report.cells[0].cell_id, Metric.MEMORY) == ()


def test_the_page_draws_them() -> None:
    report = reports.healthy()
    for small in (report, report.model_copy(update={"comparisons": ()})):
        assert '<g class="dots"' in RENDERERS["html"](small).decode()
