"""The dots behind intervals are the used trials, and the rounds of which both cells have one."""

import pytest

from redline.model import Metric
from redline.model.estimate import DuetComparison
from redline.render import RENDERERS
from redline.report.dots import ratios
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


def test_what_no_single_trial_has_and_what_is_refused_has_no_dots() -> None:
    report = reports.doubtful()
    cells = {cell.cell_id: cell for cell in report.cells}
    refused = next(each for each in report.comparisons if each.ratio is None)
    assert ratios(cells, refused) == ()


def test_a_dot_of_a_duet_is_the_ratio_of_one_start() -> None:
    report = reports.healthy()
    cells = {cell.cell_id: cell for cell in report.cells}
    about = DuetComparison(
        starts=3, between_sd=None, blocks_se=None, control=None, alone=None, of_starts=(1.1, 1.2, 1.3), findings=()
    )
    assert ratios(cells, report.comparisons[0].model_copy(update={"duet": about})) == (1.1, 1.2, 1.3)


def test_the_page_draws_them() -> None:
    assert '<g class="dots"' in RENDERERS["html"](reports.healthy()).decode()
