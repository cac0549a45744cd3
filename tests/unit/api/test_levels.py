"""The levels of a cell: what is not known says why."""

import pytest

from redline.api.levels import level_of
from redline.errors import NotKnownError
from redline.model import Grade, Metric
from redline.model.validity import Bound
from tests.fakes import reports
from tests.fakes.report_cells import finding


def test_a_percentile_that_a_finding_hides_without_a_bound_says_which() -> None:
    cell = reports.healthy().cells[0]
    late = finding("send-lateness", Grade.INVALID, "The engine was late.", "Give it a core.", cell.cell_id)
    known = {
        metric: estimate for metric, estimate in cell.estimates.items() if metric not in (Metric.P99, Metric.MEMORY)
    }
    bound = Bound(at_most=1e6, unit="ns", reason="The engine was late.", finding="send-lateness")
    hidden = cell.model_copy(
        update={"valid": False, "findings": (late,), "estimates": known, "bounds": {Metric.P95: bound}, "too_few": ()}
    )
    assert level_of(hidden, Metric.THROUGHPUT).value == cell.estimates[Metric.THROUGHPUT].value
    with pytest.raises(NotKnownError, match="p99 is not known: The engine was late") as refused:
        level_of(hidden, Metric.P99)
    assert refused.value.hint == "Give it a core."
    with pytest.raises(NotKnownError, match="memory was not measured"):
        level_of(hidden, Metric.MEMORY)
    with pytest.raises(NotKnownError, match="gap p99 was not measured") as other:
        level_of(hidden, Metric.GAP_P99)
    assert "messages" in other.value.hint
