"""The page's explorer of a study: its axes, and what each cell and comparison shows. The script pivots them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import NotRequired, TypedDict

from redline.document import format as fmt
from redline.document.blocks import ChangeCell, Prose, Section, line
from redline.document.figures import Pivot
from redline.model import COMPARED, CellReport, Comparison, Metric, Report
from redline.model.variant import FLAGS, PLACE, ROUTE
from redline.report.results import LEVELS, Level, level_hint, level_name, level_score, levels_of
from redline.report.views import invalid_reason

FEWEST_CELLS = 21
"""A table of fewer cells fits a screen or two, and shows all of them at once."""
_SETTING_OF = {"via": ROUTE, FLAGS: FLAGS}
"""The settings that parts of a slug give, where the two have different names."""


class Axis(TypedDict):
    """What cells differ in: its name, and its values in the order of the report."""

    name: str
    values: list[str]


class ShownMetric(TypedDict):
    """A metric: its level is shown, or, if there are any `changes`, the change against the baseline."""

    name: str
    hint: str
    changes: bool


ChangeTexts = tuple[str, str, str, str]
"""A change, its interval, the key of its verdict (empty without a verdict), and remarks on it."""


class ExplorerCell(TypedDict):
    """A cell: the index of its value on each axis, and its levels by metric: value and interval, or None.

    `why` is the reason why it has no numbers.
    """

    at: list[int]
    slug: str
    levels: list[tuple[str, str] | None]
    why: NotRequired[str]
    role: NotRequired[str]


class ComparedCells(TypedDict):
    """A cell against another, by their indices; by the index of a metric its change, or why it is refused."""

    cell: int
    against: int
    changes: dict[int, ChangeTexts]
    refused: dict[int, str]


class ExplorerData(TypedDict):
    """All that the explorer shows.

    `main` is the index of the metric that it shows first, `own` the index of a cell's comparison with its baseline, and
    `verdicts` are the marks and words of verdicts by key.
    """

    axes: list[Axis]
    metrics: list[ShownMetric]
    main: int
    cells: list[ExplorerCell]
    compared: list[ComparedCells]
    own: dict[int, int]
    verdicts: dict[str, tuple[str, str]]


def explorer_section(report: Report) -> Iterator[Section]:
    """The explorer; small runs, and studies with fewer than two axes of several values, have none."""
    if not has_explorer(report):
        return
    axes = ", ".join(name for name, _ in _axes(report.cells))
    said = (
        f"Each cell has the level, its 95% interval, and the change against its baseline, if it has one. Put {axes} in "
        "rows, columns or colour. Pick two cells to see them side by side. The address holds the view: share it."
    )
    yield Section("Explorer", (Prose((line((said, "dim")),)), Pivot("All cells, by axis")), anchor="explorer")


def explorer_payload(report: Report) -> ExplorerData | None:
    """The explorer's data; None without an explorer. A number that has no place in the tables has none here."""
    if not has_explorer(report):
        return None
    made = _axes(report.cells)
    values = [tuple(dict.fromkeys(of_cells)) for _, of_cells in made]
    levels = levels_of(report)
    known: set[Level] = {*levels, *(metric for cell in report.cells for metric in (*cell.known, *cell.bounds))}
    compared = tuple(_all_comparisons(report))
    known.update(comparison.metric for comparison in compared if comparison.ratio)
    shown = tuple(level for level in (*LEVELS, Metric.MEMORY) if level in known)
    has_changes = {comparison.metric for comparison in compared if comparison.ratio}
    places = {cell.cell_id: at for at, cell in enumerate(report.cells)}
    pairs = _pairs(compared, places, shown)
    baselines = {comparison.cell_id: comparison.baseline_id for comparison in report.comparisons}
    order = {pair: at for at, pair in enumerate(pairs)}
    own = {
        places[cell]: order[places[cell], places[baseline]]
        for cell, baseline in baselines.items()
        if (places.get(cell), places.get(baseline)) in order
    }
    return {
        "axes": [{"name": name, "values": list(of)} for (name, _), of in zip(made, values, strict=True)],
        "metrics": [_metric(level, has_changes=level in has_changes) for level in shown],
        "main": _main(shown, report.comparisons),
        "cells": [
            _cell(cell, [of.index(held[at]) for of, (_, held) in zip(values, made, strict=True)], shown)
            for at, cell in enumerate(report.cells)
        ],
        "compared": list(pairs.values()),
        "own": own,
        "verdicts": {sign.value: (sign.mark, sign.words) for sign in fmt.VerdictSign},
    }


def has_explorer(report: Report) -> bool:
    """Whether the report is one of a study: many cells, by two axes or more."""
    return len(report.cells) >= FEWEST_CELLS and len(_axes(report.cells)) > 1


def _axes(cells: tuple[CellReport, ...]) -> list[tuple[str, list[str]]]:
    """The axes of several values, with each cell's value: server, settings, scenario and load.

    Options that a server lacks are a dash. If two cells were alike, servers are named by their whole slugs, and there
    are no settings: no number may take another's place.
    """
    names = dict.fromkeys(name for cell in cells for name in cell.settings)
    settings = {_free(name): [cell.settings.get(name, "\u2013") for cell in cells] for name in names}
    ends = {"scenario": [cell.scenario for cell in cells], "load": [cell.load for cell in cells]}
    bases = {"server": [_base(cell) for cell in cells], **settings, **ends}
    if len(set(zip(*bases.values(), strict=True))) < len(cells):
        bases = {"server": [cell.server for cell in cells], **ends}
    return [(name, held) for name, held in bases.items() if len(set(held)) > 1]


def _free(name: str) -> str:
    return f"{name} (setting)" if name in ("server", "scenario", "load") else name


def _base(cell: CellReport) -> str:
    """The server without the parts of its slug that its settings give: `rust.axum` of `rust.axum+routes=1`."""
    name, *parts = cell.server.split("+")
    place = cell.settings.get(PLACE)

    def is_given(part: str) -> bool:
        key = part.partition("=")[0]
        return _SETTING_OF.get(key, key) in cell.settings or (place is not None and part.startswith("container"))

    return "+".join([name, *(part for part in parts if not is_given(part))])


def _all_comparisons(report: Report) -> Iterator[Comparison]:
    """What the report compared: with baselines, steps on an axis, and layers."""
    yield from report.comparisons
    yield from (effect.comparison for effect in report.effects)
    for waterfall in report.layers:
        for layer in (*waterfall.steps, waterfall.whole):
            yield from (comparison for comparison in (layer.throughput, layer.cpu) if comparison)


def _pairs(
    compared: Iterable[Comparison], places: Mapping[str, int], shown: tuple[Level, ...]
) -> dict[tuple[int, int], ComparedCells]:
    """The comparisons by pair of cells. The first of a metric counts: the report shows it most prominently."""
    pairs: dict[tuple[int, int], ComparedCells] = {}
    for comparison in compared:
        cell, against = places.get(comparison.cell_id), places.get(comparison.baseline_id)
        if cell is None or against is None or comparison.metric not in shown:
            continue
        pair = pairs.setdefault((cell, against), {"cell": cell, "against": against, "changes": {}, "refused": {}})
        metric = shown.index(comparison.metric)
        if metric in pair["changes"] or metric in pair["refused"]:
            continue
        if comparison.ratio is None:
            pair["refused"][metric] = comparison.refused or "no reason was given"
            continue
        change = ChangeCell.of(comparison)
        remarks = ", ".join(filter(None, (change.times, change.remark, change.why)))
        pair["changes"][metric] = change.text, change.bounds, change.verdict.value if change.verdict else "", remarks
    return {pair: held for pair, held in pairs.items() if held["changes"] or held["refused"]}


def _metric(level: Level, *, has_changes: bool) -> ShownMetric:
    return {"name": level_name(level), "hint": level_hint(level), "changes": has_changes and level in COMPARED}


def _main(shown: tuple[Level, ...], comparisons: Iterable[Comparison]) -> int:
    """The first metric that gets verdicts, else the first of all."""
    primary = {comparison.metric for comparison in comparisons if comparison.primary}
    return next((at for at, level in enumerate(shown) if level in primary), 0)


def _cell(cell: CellReport, at: list[int], shown: tuple[Level, ...]) -> ExplorerCell:
    is_shown = cell.shows_numbers
    levels = [_level(cell, level) for level in shown] if is_shown else []
    made: ExplorerCell = {"at": at, "slug": cell.slug, "levels": levels}
    if not is_shown:
        made["why"] = invalid_reason(cell)
    if cell.is_baseline or cell.role == "ceiling":
        made["role"] = "ceiling" if cell.role == "ceiling" else "baseline"
    return made


def _level(cell: CellReport, level: Level) -> tuple[str, str] | None:
    score = level_score(cell, level)
    return (score.value, score.bounds) if score.value else None
