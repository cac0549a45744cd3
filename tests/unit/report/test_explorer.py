"""The explorer's data: axes, levels, and the comparisons that the report made, and no others."""

from redline.document import format as fmt
from redline.model import CellReport, Metric, Report
from redline.report.explorer import FEWEST_CELLS, explorer_payload, explorer_section
from tests.fakes import layers, reports, studies


def with_settings(report: Report) -> Report:
    """The study, with the settings that its slugs name."""

    def settled(cell: CellReport) -> CellReport:
        if cell.role == "ceiling":
            return cell
        value = "server-log" if cell.server.endswith("+interceptor=server-log") else "off"
        return cell.model_copy(update={"settings": {"interceptor": value}})

    return report.model_copy(update={"cells": tuple(map(settled, report.cells))})


def test_small_runs_and_runs_of_one_axis_have_no_explorer() -> None:
    for small in (reports.healthy(), reports.alone(), studies.study(scenarios=("SimpleGet",), users=(1,))):
        axes = {cell.scenario for cell in small.cells}, {cell.load for cell in small.cells}
        assert len(small.cells) < FEWEST_CELLS or all(len(values) == 1 for values in axes)
        assert explorer_payload(small) is None
        assert not list(explorer_section(small))


def test_settings_are_axes_and_leave_the_name_of_the_server() -> None:
    data = explorer_payload(with_settings(studies.big()))
    assert data is not None
    axes = {axis["name"]: axis["values"] for axis in data["axes"]}
    assert list(axes) == ["server", "interceptor", "scenario", "load"]
    assert axes["interceptor"] == ["off", "server-log", "\u2013"], "the ceiling has no interceptor"
    assert len(axes["server"]) == 18
    assert not [name for name in axes["server"] if "+" in name]
    places = [tuple(cell["at"]) for cell in data["cells"]]
    assert len(set(places)) == len(places) == len(studies.big().cells)


def test_cells_that_would_be_alike_keep_their_whole_slugs() -> None:
    report = studies.big()
    alike = [cell.model_copy(update={"settings": {"interceptor": "off"}}) for cell in report.cells]
    data = explorer_payload(report.model_copy(update={"cells": tuple(alike)}))
    assert data is not None
    assert [axis["name"] for axis in data["axes"]] == ["server", "scenario", "load"]
    assert "http4s.tapir+interceptor=server-log" in data["axes"][0]["values"]
    assert len({tuple(cell["at"]) for cell in data["cells"]}) == len(report.cells)


def test_an_option_that_has_the_name_of_an_axis_is_told_apart() -> None:
    report = studies.big()
    cells = [cell.model_copy(update={"settings": {"load": cell.server.partition("+")[2]}}) for cell in report.cells]
    data = explorer_payload(report.model_copy(update={"cells": tuple(cells)}))
    assert data is not None
    assert [axis["name"] for axis in data["axes"]] == ["server", "load (setting)", "scenario", "load"]


def test_levels_and_changes_are_those_of_the_report() -> None:
    report = studies.big()
    data = explorer_payload(report)
    assert data is not None
    names = [metric["name"] for metric in data["metrics"]]
    ids = [cell.cell_id for cell in report.cells]
    for cell, shown in zip(report.cells, data["cells"], strict=True):
        assert shown["slug"] == cell.slug
        assert bool(shown["levels"]) is cell.valid is ("why" not in shown)
        if cell.valid:
            estimate = cell.estimates[Metric.P99]
            level = fmt.amount(estimate.value, estimate.unit), fmt.interval(estimate)
            assert shown["levels"][names.index("p99")] == level
    pairs = {(ids[pair["cell"]], ids[pair["against"]]): pair for pair in data["compared"]}
    for comparison in report.comparisons:
        pair, metric = pairs[comparison.cell_id, comparison.baseline_id], names.index(fmt.label(comparison.metric))
        if comparison.ratio is None:
            assert pair["refused"][metric] == comparison.refused
            assert metric not in pair["changes"]
        else:
            sign = fmt.VerdictSign.of(comparison)
            text, bounds, verdict, _ = pair["changes"][metric]
            assert (text, bounds) == (fmt.change(comparison.ratio), fmt.change_bounds(comparison.ratio))
            assert verdict == (sign.value if sign else "")
    judged = {(one.cell_id, one.baseline_id) for one in report.comparisons}
    judged |= {(effect.comparison.cell_id, effect.comparison.baseline_id) for effect in report.effects}
    assert set(pairs) <= judged, "a pair that the report did not compare has no change"
    assert set(data["own"]) == {ids.index(one.cell_id) for one in report.comparisons}


def test_layers_are_compared_step_by_step() -> None:
    report = layers.refusing()
    cells = [
        cell.model_copy(update={"cell_id": f"{cell.cell_id}-{copy}", "scenario": f"{cell.scenario}{copy}"})
        for copy in range(FEWEST_CELLS)
        for cell in report.cells
    ]
    data = explorer_payload(report.model_copy(update={"cells": (*report.cells, *cells)}))
    assert data is not None
    ids = [cell.cell_id for cell in report.cells]
    steps = {(s.cpu.cell_id, s.cpu.baseline_id) for one in report.layers for s in one.steps if s.cpu}
    assert steps
    assert steps <= {(ids[pair["cell"]], ids[pair["against"]]) for pair in data["compared"]}
