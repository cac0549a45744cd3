"""Decide whether a run's main comparisons are precise enough to stop. Pure: recordings determine the answer."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from redline.analysis.compare import compare_in_suite, metrics_asked
from redline.analysis.duet import duets_of
from redline.analysis.results import CellResult, judge_run, subjects_by_name
from redline.model import Enough, Estimate, Metric, Precision, Run
from redline.model.estimate import DuetComparison
from redline.stats import rounds_for, scatter_of


@dataclass(frozen=True)
class _Main:
    """A main comparison, or a cell that counts by itself, and its precision."""

    cell: CellResult
    baseline: CellResult | None
    known: Estimate | None
    duet: DuetComparison | None = None

    @property
    def half_width(self) -> float | None:
        """Half the relative width of the interval; None without an interval."""
        return self.known.relative_half_width if self.known else None

    @property
    def lost(self) -> tuple[str, ...]:
        """Its cells that had trials, but no valid trial."""
        sides = (self.cell, self.baseline) if self.baseline else (self.cell,)
        return tuple(side.id for side in sides if side.trials and not side.used)

    def forecast(self, wanted: float) -> int | None:
        """The approximate number of trials or starts for this half width; None if it is not known."""
        scatter = scatter_of(self.known, self.duet.bias if self.duet else 0.0) if self.known else None
        needed = None if scatter is None else rounds_for(scatter, wanted)
        return max(needed, self.known.n + 1) if needed and self.known else None

    @property
    def scatter(self) -> Literal["starts", "machine"] | None:
        """The main source of a duet's scatter; None for trials alone, or if too few batches are known."""
        if self.duet is None or self.duet.blocks_se is None or self.duet.between_sd is None:
            return None
        return "starts" if self.duet.between_sd > self.duet.blocks_se else "machine"


def enough(run: Run, judge: Callable[[Run], Mapping[str, CellResult]] = judge_run) -> Enough | None:
    """Why no more rounds are needed; None to continue, as for a suite with a fixed number of rounds.

    `judge` is that of a `GrowingRun` for calls after every round.

    A run is done when every main comparison is as narrow as asked. Impossible comparisons (an invalid cell, a p99 of
    too few requests) do not prolong it; comparisons with too few rounds in which both sides are usable do. If no
    comparison is possible yet, the run goes on, unless all have a side without a valid trial.
    """
    auto, rounds = run.manifest.plan.suite.auto, whole_rounds(run)
    if auto is None or rounds < auto.at_least:
        return None
    if auto.budget_ns is not None and _is_spent(run, auto.budget_ns, rounds, fills=auto.precision is None):
        return Enough(rounds=rounds, why="budget")
    if auto.precision is None:
        return None
    all_ = tuple(_main(run, judge(run)))
    if all_ and all(main.lost for main in all_):
        return Enough(rounds=rounds, why="no valid trial")
    widths, asked = [main.half_width for main in all_ if main.known], auto.precision
    narrow = widths and all(half is not None and half <= asked for half in widths)
    return Enough(rounds=rounds, why="precision") if narrow else None


def precision(run: Run, results: Mapping[str, CellResult]) -> Precision | None:
    """The precision of the main comparisons; None for a suite that asks for none."""
    plan = run.manifest.plan
    asked = plan.suite.auto.precision if plan.suite.auto else None
    if asked is None:
        return None
    rounds, all_ = whole_rounds(run), tuple(_main(run, results))
    known = [main for main in all_ if main.half_width is not None]
    widest = max(known, key=lambda main: main.half_width or 0, default=None)
    at_most = plan.suite.trials  # `--more` leaves out planned rounds, and may add some beyond them
    return Precision(
        asked=asked,
        rounds=rounds,
        half_width=widest.half_width if widest else None,
        cell_id=widest.cell.id if widest else None,
        forecast=widest.forecast(asked) if widest else None,
        at_most=at_most,
        scatter=widest.scatter if widest else None,
        without=tuple(main.cell.id for main in all_ if main.half_width is None),
        lost=tuple(dict.fromkeys(cell_id for main in all_ for cell_id in main.lost)),
        ended=run.enough.why if run.enough else "at most" if rounds == at_most else "not yet",
    )


def whole_rounds(run: Run) -> int:
    """The number of rounds, from the first on, in which every trial has a recording."""
    done, steps = run.done, run.manifest.plan.steps
    missing = {step.round for step in steps if step.position not in done}
    planned = sorted({step.round for step in steps})
    return len(list(takewhile(lambda number: number not in missing, planned)))


def _is_spent(run: Run, budget_ns: int, rounds: int, *, fills: bool) -> bool:
    """Whether a budget is spent; with `fills`, whether another round like the last would exceed it."""
    taken = [(recording.round, sum(recording.stages_ns.values())) for recording in run.recordings]
    taken += [(duet.round, duet.took_ns) for duet in run.duets]
    spent_ns, last_ns = sum(ns for _, ns in taken), sum(ns for number, ns in taken if number == rounds - 1)
    return spent_ns + last_ns > budget_ns if fills else spent_ns >= budget_ns


def _main(run: Run, results: Mapping[str, CellResult]) -> Iterator[_Main]:
    """The main comparison of every cell, or its own estimate if it has none and is no baseline.

    Unless the suite names the metric, it is CPU per request in a duet, otherwise the primary metric of the load.
    """
    suite, subjects, duets = run.manifest.plan.suite, subjects_by_name(results), duets_of(run)
    references = {suite.baseline_of(slug) for slug, _, _ in subjects}
    for (slug, scenario, load), cell in subjects.items():
        baseline = subjects.get((suite.baseline_of(slug) or "", scenario, load))
        if baseline is not None:
            asked = metrics_asked(cell.cell.load, suite, duet := duets.get((cell.id, baseline.id)))
            metric = Metric.CPU_PER_REQUEST if duet and Metric.CPU_PER_REQUEST in asked else asked[0]
            comparison = compare_in_suite(cell, baseline, metric, suite, duets)
            yield _Main(cell, baseline, comparison.ratio, comparison.duet)
        elif slug not in references:
            yield _Main(cell, None, cell.level(cell.cell.load.primary_metric))
