"""The fastest of three or more servers under a load, from their comparisons with a baseline. Pure."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from redline.analysis.ranking import Standing, standing
from redline.model import CellReport, Comparison, Estimate, Metric, Report, Verdict
from redline.suite.load_text import is_open

FEWEST = 3
"""The fewest servers with a fastest: of two, their comparison says it."""

_Apart = Literal["apart", "same", "unknown"]


@dataclass(frozen=True)
class Lead:
    """The first server in a metric, of all servers of a scenario and load, and whether that is sure.

    `ratio` is the first over the second, with the ends of its interval. `same` are equivalent to the first, `unknown`
    cannot be distinguished from it: if either is not empty, no server is fastest. `apart` are surely behind it,
    `without` have no number. `judged`: a verdict was asked for in the metric; otherwise it is only described, and
    `control` is the baseline over itself.
    """

    metric: Metric
    first: CellReport
    second: CellReport
    ratio: tuple[float, float, float]
    threshold: float
    same: tuple[CellReport, ...]
    unknown: tuple[CellReport, ...]
    apart: tuple[CellReport, ...]
    without: tuple[CellReport, ...]
    judged: bool = True
    control: Estimate | None = None
    baseline: str = ""

    @property
    def is_sure(self) -> bool:
        """Whether the first is faster than every other server that has a number."""
        return not self.same and not self.unknown


def leads(report: Report) -> Iterator[Lead]:
    """The leads of all scenarios and loads in which at least three servers are compared with the same baseline.

    By throughput in closed loads, where users decide when to send the next request, otherwise by p99.
    """
    fields: dict[tuple[str, str], list[CellReport]] = {}
    for cell in report.cells:
        if cell.role == "subject":
            fields.setdefault((cell.scenario, cell.load), []).append(cell)
    for cells in fields.values():
        if len(cells) >= FEWEST and len({cell.load_text for cell in cells}) == 1 and (lead := _lead(report, cells)):
            yield lead


def _lead(report: Report, cells: list[CellReport]) -> Lead | None:
    """The lead among these cells; None if they have no common baseline, or too few have a number."""
    metric = Metric.P99 if is_open(cells[0].load_text) else Metric.THROUGHPUT
    by_id = {cell.cell_id: cell for cell in cells}
    against = {
        comparison.cell_id: comparison
        for comparison in report.comparisons
        if comparison.metric is metric and comparison.cell_id in by_id and comparison.baseline_id in by_id
        if comparison.ratio and comparison.ratio.log_interval
    }
    bases = {comparison.baseline_id for comparison in against.values()}
    places = {name: standing(name, against) for name in by_id if name in against or name in bases}
    if len(places) < FEWEST or len({place.root for place in places.values()}) > 1:
        return None
    sign = -1 if metric.higher_is_better else 1
    best, second, *rest = sorted(places, key=lambda name: (sign * places[name].value, name))
    apart = {name: _apart(best, name, against, places) for name in (second, *rest)}
    by_control = max((one for one in against.values() if one.duet and one.duet.control), key=_reach, default=None)
    return Lead(
        metric,
        by_id[best],
        by_id[second],
        _ratio(best, second, against, places),
        report.run.threshold,
        tuple(by_id[name] for name, how in apart.items() if how == "same"),
        tuple(by_id[name] for name, how in apart.items() if how == "unknown"),
        tuple(by_id[name] for name, how in apart.items() if how == "apart"),
        tuple(cell for cell in cells if cell.cell_id not in places),
        judged=any(comparison.primary for comparison in against.values()),
        control=by_control.duet.control if by_control and by_control.duet else None,
        baseline=by_id[by_control.baseline_id].server if by_control else "",
    )


def _between(one: str, other: str, against: Mapping[str, Comparison]) -> tuple[Comparison, int] | None:
    """The comparison of the two, and 1 if it is `one` over `other`, or -1 for the inverse."""
    for cell_id, baseline_id, way in ((one, other, 1), (other, one, -1)):
        comparison = against.get(cell_id)
        if comparison and comparison.baseline_id == baseline_id:
            return comparison, way
    return None


def _apart(best: str, other: str, against: Mapping[str, Comparison], places: Mapping[str, Standing]) -> _Apart:
    """Whether the best is surely better, by their comparison or else by intervals that do not overlap.

    Without a comparison, both need a verdict against the baseline, and at least one of them has to differ from it.
    """
    if direct := _between(best, other, against):
        comparison, _ = direct
        if comparison.verdict is Verdict.EQUIVALENT:
            return "same"
        return "apart" if _tells(comparison) else "unknown"
    ours, theirs = places[best], places[other]
    overlap = ours.low <= theirs.high and theirs.low <= ours.high
    known = [against[name] for name in (best, other) if name in against]
    decided = all(comparison.verdict is not None or _tells(comparison) for comparison in known)
    return "apart" if decided and any(map(_tells, known)) and not overlap else "unknown"


def _tells(comparison: Comparison) -> bool:
    """Whether the comparison has a conclusive verdict, or is a duet's rate that differs by more than its control."""
    if comparison.verdict is not None:
        return comparison.verdict in (Verdict.FASTER, Verdict.SLOWER)
    if comparison.duet is None or comparison.primary or not comparison.differs or comparison.ratio is None:
        return False
    return abs(math.log(comparison.ratio.value)) > _reach(comparison)


def _reach(comparison: Comparison) -> float:
    """How far the baseline may be from itself, as a logarithm; 0 if that is not known."""
    control = comparison.duet.control if comparison.duet else None
    return max(map(abs, control.log_interval or (math.log(control.value),))) if control and control.value > 0 else 0.0


def _ratio(
    best: str, second: str, against: Mapping[str, Comparison], places: Mapping[str, Standing]
) -> tuple[float, float, float]:
    """The best over the second; over a common baseline the ends of both intervals add up, which is conservative."""
    value = places[best].value - places[second].value
    if direct := _between(best, second, against):
        comparison, way = direct
        interval = comparison.ratio.log_interval if comparison.ratio else None
        low, high = sorted(way * end for end in interval or (value, value))
    else:
        low, high = places[best].low - places[second].high, places[best].high - places[second].low
    return math.exp(value), math.exp(low), math.exp(high)
