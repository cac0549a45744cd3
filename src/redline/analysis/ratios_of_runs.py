"""Compare two runs that were measured in duets: the ratio of their ratios to the same baseline. Pure."""

import math
from collections.abc import Iterator

from redline.analysis.compare import (
    CAVEAT,
    RATE_TOLERANCE,
    Question,
    RunsCompared,
    metrics_asked,
    with_verdicts,
)
from redline.analysis.duet import Duet, duets_of
from redline.analysis.environments import differences
from redline.errors import UsageError
from redline.model import COMPARED, Comparison, Metric, Run, Suite
from redline.stats import QUANTILE_OF
from redline.stats.trials import MESSAGE_QUANTILES

_Place = tuple[str, str, str]
"""A server, its scenario and its load, by name."""
_HISTORY = "follow the ratios over several runs: redline history, with the folder above them"


def compare_ratios(base: Run, other: Run) -> RunsCompared:
    """Compare the servers of two runs by their ratios to a baseline, `other` over `base`, with the base's threshold.

    Servers match by their names: their commands, revisions and builds may differ. Raises UsageError if the baselines
    were not surely the same.
    """
    theirs, ours = _by_place(base), _by_place(other)
    common = [place for place in ours if place in theirs]
    for place in common:
        _check_baselines(base, theirs[place], other, ours[place])
    names = {ours[place].starts[0].cell_ids[ours[place].target]: place[0] for place in common}
    of_runs = f"{other.manifest.name} against {base.manifest.name}"
    return RunsCompared(
        comparisons=with_verdicts(
            [
                comparison
                for place in common
                for comparison in _compared(ours[place], theirs[place], base.manifest.plan.suite, other)
            ],
            lambda comparison: Question(
                f"{comparison.metric.words} of {of_runs}, by ratios", names[comparison.cell_id]
            ),
        ),
        unmatched=(*_only_in(base, theirs, ours), *_only_in(other, ours, theirs)),
        environment_differs=differences(base.manifest.environment, other.manifest.environment),
    )


def _by_place(run: Run) -> dict[_Place, Duet]:
    cells = run.manifest.plan.cells
    return {
        (cells[cell_id].variant.slug, cells[cell_id].scenario.name, cells[cell_id].load.name): duet
        for (cell_id, _), duet in duets_of(run).items()
    }


def _check_baselines(base: Run, theirs: Duet, other: Run, ours: Duet) -> None:
    """Raise UsageError unless both runs measured the same build of the same baseline under the same load."""
    name, between = theirs.names[0], f"{base.manifest.name} and {other.manifest.name}"
    if theirs.starts[0].cell_ids[0] != ours.starts[0].cell_ids[0]:
        raise UsageError(
            f"{between} have duets alone, against different baselines or under different loads: their ratios are not "
            "about the same",
            hint=f"measure both against one baseline, with the same requests and load; or {_HISTORY}",
        )
    if not theirs.baseline_build or not ours.baseline_build:
        raise UsageError(
            f"{between} have duets alone, and their baseline {name} may not be the same: Redline does not know its "
            "build in both",
            hint=f"let Redline start the baseline, by a command or a revision; or {_HISTORY}",
        )
    if theirs.baseline_build != ours.baseline_build:
        raise UsageError(
            f"{between} have duets alone, against different builds of the baseline {name} ({theirs.baseline_build} and "
            f"{ours.baseline_build}): their ratios are not about the same",
            hint=f"measure both against one build; or {_HISTORY}",
        )


def _compared(ours: Duet, theirs: Duet, suite: Suite, other: Run) -> Iterator[Comparison]:
    cell_id, base_id = (duet.starts[0].cell_ids[duet.target] for duet in (ours, theirs))
    asked = metrics_asked(other.manifest.plan.cells[cell_id].load, suite, ours)
    for metric in Metric:
        if metric not in COMPARED and metric not in asked and metric is not suite.metric:
            continue
        refused = _refused(ours, theirs, metric)
        ratios = None if refused else (ours.ratio(metric), theirs.ratio(metric))
        contrast = ratios[0].over(ratios[1]) if ratios and ratios[0] and ratios[1] else None
        judged = contrast is not None and metric in asked
        yield Comparison(
            metric=metric,
            cell_id=cell_id,
            baseline_id=base_id,
            ratio=contrast.ratio if contrast else None,
            verdict=None,
            threshold=suite.threshold,
            primary=metric in asked,
            refused=refused or ("" if contrast else "not known in both duets"),
            caveat=_caveat(ours, theirs, metric) if contrast else "",
            p=contrast.p if contrast and judged else None,
            p_equivalent=contrast.p_equivalent(suite.threshold) if contrast and judged else None,
        )


def _refused(ours: Duet, theirs: Duet, metric: Metric) -> str:
    for duet in (ours, theirs):
        if why := duet.failing or duet.too_few(metric) or duet.unstable(metric):
            return why
    of_times = metric in QUANTILE_OF or metric in MESSAGE_QUANTILES
    known = of_times or all(metric in duet.metrics for duet in (ours, theirs))
    return "" if known else "not known in a duet"


def _caveat(ours: Duet, theirs: Duet, metric: Metric) -> str:
    """Response times of a closed load follow from its throughput, where that differs too."""
    if metric not in QUANTILE_OF or not ours.saturates:
        return ""
    rates = ours.ratio(Metric.THROUGHPUT), theirs.ratio(Metric.THROUGHPUT)
    if not rates[0] or not rates[1]:
        return ""
    return CAVEAT if abs(rates[0].value - rates[1].value) > math.log1p(RATE_TOLERANCE) else ""


def _only_in(run: Run, places: dict[_Place, Duet], there: dict[_Place, Duet]) -> tuple[str, ...]:
    return tuple(f"only in {run.manifest.name}: {'.'.join(place)}" for place in places if place not in there)
