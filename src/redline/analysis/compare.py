"""Compare cells with their baselines: paired by round within a run, unpaired across two runs. Pure."""

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from redline.analysis.duet import NO_FAILURES, Duet, Duets, Failures, duets_of, failures_of, in_duet
from redline.analysis.environments import Difference, differences
from redline.analysis.results import CellResult, Results, judge_run, subjects_by_name, too_few_for
from redline.model import (
    COMPARED,
    FEWEST_TRIALS,
    RESPONSE_TIMES,
    Closed,
    Comparison,
    Load,
    Metric,
    Plan,
    Run,
    Suite,
    Verdict,
)
from redline.model.estimate import HasVerdict
from redline.quantities import percent
from redline.stats import (
    QUANTILE_OF,
    Sample,
    TrialNumbers,
    adjust,
    decide,
    paired,
    sample_of,
    unpaired,
)
from redline.stats.trials import MESSAGE_QUANTILES, chance_at_ends
from redline.suite.planning import is_mix

RATE_TOLERANCE = 0.01
"""The share by which answers may differ from due requests, and rates from each other."""
_FEWEST = 10
"""The same in requests: at the ends of a short window some are always in flight."""

OWN_TIMES = (Metric.P50, Metric.P95, Metric.P99)
"""The response times with verdicts in duets whose servers do not set the rate: of most requests, and of the slow."""

SCHEDULED = "the schedule sets the throughput, and both kept up with it"
CAVEAT = (
    "Users of a closed load wait for their answers, so response times follow from the throughput (Little's law), which "
    "differs: this is no second result. An open load puts the same load on both."
)


@dataclass(frozen=True)
class RunsCompared:
    """The comparison of two runs, and caveats about it."""

    comparisons: tuple[Comparison, ...]
    unmatched: tuple[str, ...]
    environment_differs: tuple[Difference, ...]


def compare_runs(base: Run, other: Run, theirs: Results, ours: Results) -> RunsCompared:
    """Compare the subjects of both runs, `other` over `base`, in every compared metric, as the base says.

    `theirs` are the judged cells of `base`, and `ours` those of `other`, by their ids.
    """
    suite = base.manifest.plan.suite
    return RunsCompared(
        comparisons=with_verdicts(
            [
                compare_cells(
                    cell, theirs[cell_id], metric, suite.threshold, by_round=False, asked=metrics_written(suite)
                )
                for cell_id, cell in ours.items()
                if cell_id in theirs and cell.cell.role == "subject"
                for metric in dict.fromkeys((*COMPARED, *(metrics_written(suite) or ())))
            ],
            lambda comparison: Question(
                f"{comparison.metric.words} of {other.manifest.name} against {base.manifest.name}",
                ours[comparison.cell_id].cell.variant.slug,
            ),
        ),
        unmatched=(*_only_in(base, other), *_only_in(other, base)),
        environment_differs=differences(base.manifest.environment, other.manifest.environment),
    )


def compare_with_baseline(
    results: dict[str, CellResult], suite: Suite, duets: Duets, failures: Failures
) -> tuple[Comparison, ...]:
    """Compare every subject with its baseline in the same scenario and load, in every compared metric.

    Comparisons in the same metric with the same baseline are a family, whatever their scenarios and loads. Those of a
    scenario that mixes the requests of others are a family of their own. Where a duet has verdicts in several metrics,
    all of these are one family: any of them may say that a server is slower. `failures` say why no start of a duet was
    measured.
    """
    subjects = subjects_by_name(results)
    wanted = {objective.metric for objective in suite.objectives}
    of_messages = {metric for metric in MESSAGE_QUANTILES if metric.value in wanted}
    metrics = [metric for metric in Metric if metric in (*COMPARED, *of_messages) or metric is suite.metric]
    compared = []
    for (slug, scenario, load), cell in subjects.items():
        baseline = subjects.get((suite.baseline_of(slug) or "", scenario, load))
        if baseline is not None:
            compared += [
                compare_in_suite(cell, baseline, metric, suite, duets, failures=failures) for metric in metrics
            ]

    mixes = {scenario.name for scenario in suite.scenarios if is_mix(scenario, suite.scenarios)}

    def question_of(comparison: Comparison) -> Question:
        """`CPU per request against rust.hyper`, or `p99 of mix against A`."""
        cell = results[comparison.cell_id].cell
        of = f" of {cell.scenario.name}" if cell.scenario.name in mixes else ""
        baseline = results[comparison.baseline_id].cell.variant.slug
        duet = duets.get((comparison.cell_id, comparison.baseline_id))
        together = metrics_asked(cell.load, suite, duet) if duet and not suite.alone else (comparison.metric,)
        *others, last = [metric.words for metric in together]
        what = f"{', '.join(others)} and {last}" if others else last
        return Question(f"{what}{of} against {baseline}", cell.variant.slug)

    return with_verdicts(compared, question_of)


def comparisons_so_far(run: Run) -> tuple[Comparison, ...]:
    """The comparisons that the report of a run has, of servers that are compared in duets alone.

    Where there are trials too, judging all of them again would take long.
    """
    return compare_with_baseline(judge_run(run), run.manifest.plan.suite, duets_of(run), failures_of(run))


def not_run(plan: Plan) -> tuple[str, ...]:
    """Messages about skipped cells that should have been compared, such as those of a server that failed to build."""
    return tuple(f"not run: {slug}: {reason}" for slug, reason in not_compared(plan).items())


def not_compared(plan: Plan) -> dict[str, str]:
    """The reasons of skipped cells that should have been compared, by slug."""
    suite = plan.suite
    pairs = [(variant.slug, suite.baseline_of(variant.slug)) for variant in suite.variants]
    servers = {slug for pair in pairs if pair[1] for slug in pair}
    wanted = {
        f"{server}.{scenario.name}.{load.name}"
        for server in servers
        for scenario in suite.scenarios
        for load in suite.loads
    }
    return {slug: reason for slug, reason in plan.not_run_here.items() if slug in wanted}


def compare_in_suite(  # noqa: PLR0913 - two cells, in what, by what rules, and what was measured of them
    cell: CellResult,
    baseline: CellResult,
    metric: Metric,
    suite: Suite,
    duets: Duets,
    *,
    failures: Failures = NO_FAILURES,
) -> Comparison:
    """Compare a cell with its baseline as the suite does: by a duet if it has the metric.

    Percentiles are compared by trials alone, unless there are no trials or the suite asks for a verdict on a
    percentile.
    """
    duet = duets.get((cell.id, baseline.id))
    asked = metrics_asked(cell.cell.load, suite, duet)
    known = duet is not None and (
        metric in duet.metrics
        or (metric in QUANTILE_OF and (not suite.alone or metric is suite.metric))
        or metric in MESSAGE_QUANTILES
    )
    if not suite.alone:
        why = failures.get((cell.id, baseline.id), "")
        blank = Comparison(
            metric=metric,
            cell_id=cell.id,
            baseline_id=baseline.id,
            ratio=None,
            verdict=None,
            threshold=suite.threshold,
            primary=metric in asked,
            refused="not known in a duet" if duet else f"no start with both was measured{why and f': {why}'}",
        )
        return _with_caveat(in_duet(blank, duet), duet) if duet and known else blank
    alone = compare_cells(cell, baseline, metric, suite.threshold, asked=metrics_written(suite))
    return in_duet(alone, duet) if duet and known else alone


def metrics_written(suite: Suite) -> tuple[Metric, ...] | None:
    """The only metric that a suite judges, if it names one."""
    return (suite.metric,) if suite.metric is not None else None


def metrics_asked(load: Load, suite: Suite, duet: Duet | None = None) -> tuple[Metric, ...]:
    """The metrics in which a suite wants verdicts under a load.

    If servers are compared only in duets, that is CPU per request, or the rate if CPU time is not known. If a schedule
    or waiting users set the rate, response times are the server's own, and count as well; so do those of objectives.
    """
    if suite.metric is not None:
        chosen: tuple[Metric, ...] = (suite.metric,)
    elif suite.alone:
        return load.primary_metrics
    else:
        wanted = {objective.metric for objective in suite.objectives if objective.load in {None, load.name}}
        own = () if load.saturates else OWN_TIMES
        times = (*RESPONSE_TIMES, *MESSAGE_QUANTILES)
        judged = (metric for metric in times if metric in own or metric.value in wanted)
        chosen = (Metric.CPU_PER_REQUEST, *(metric for metric in judged if duet and duet.tells(metric)))
    if suite.alone or duet is None or Metric.CPU_PER_REQUEST not in chosen or duet.ratio(Metric.CPU_PER_REQUEST):
        return chosen
    instead = Metric.THROUGHPUT if duet.saturates else Metric.P50
    return tuple(dict.fromkeys((instead, *chosen[1:])))


def _with_caveat(comparison: Comparison, duet: Duet) -> Comparison:
    """The comparison with the caveat of `caveat_of_rate`, from the rates in the duet."""
    timed = duet.saturates and comparison.metric in QUANTILE_OF and comparison.ratio
    rate = duet.ratio(Metric.THROUGHPUT) if timed else None
    differ = rate is not None and abs(rate.value) > math.log1p(RATE_TOLERANCE)
    return comparison.warned(CAVEAT) if differ else comparison


def compare_cells(  # noqa: PLR0913 - what is compared, and how
    cell: CellResult,
    baseline: CellResult,
    metric: Metric,
    threshold: float,
    *,
    by_round: bool = True,
    asked: tuple[Metric, ...] | None = None,
) -> Comparison:
    """Compare two cells in a metric, or refuse with a reason if that would be unfair.

    Cells of the same run pair by round. The result has no verdict yet: `with_verdicts` adjusts the p-values of a
    family.
    """
    sides: tuple[Sequence[TrialNumbers], Sequence[TrialNumbers]] = cell.having(metric), baseline.having(metric)
    ours, theirs = same_rounds(*sides) if by_round else sides
    load = cell.cell.load
    refused = _refused(cell, baseline, metric) or _too_little(metric, ours, theirs)
    refused = refused or refused_for_rate(load, metric, ours, theirs)
    contrast = None
    # Throughput counts if a side did not keep up with the schedule: response times are then not comparable.
    primary = metric in (asked or load.primary_metrics)
    primary = primary or (not asked and metric is Metric.THROUGHPUT and not refused and not _waits(load))
    if not refused:
        compare = paired if by_round else unpaired
        contrast = compare(_sample(cell, ours, metric), _sample(baseline, theirs, metric))
        refused = "" if contrast else f"{metric} is zero on one side"
    tested = contrast if contrast and primary and contrast.ratio.n >= FEWEST_TRIALS else None
    return Comparison(
        metric=metric,
        cell_id=cell.id,
        baseline_id=baseline.id,
        ratio=contrast.ratio if contrast else None,
        verdict=None,
        threshold=threshold,
        primary=primary,
        refused=refused,
        caveat=caveat_of_rate(load, metric, ours, theirs) if contrast else "",
        rounds=_rounds(cell, baseline, len(ours)) if contrast and by_round else None,
        p=tested.p if tested else None,
        p_equivalent=tested.p_equivalent(threshold) if tested else None,
    )


def same_rounds(
    ours: Sequence[TrialNumbers], theirs: Sequence[TrialNumbers]
) -> tuple[list[TrialNumbers], list[TrialNumbers]]:
    """The trials of rounds in which both cells ran on the same host; otherwise hosts would be compared."""
    by_round = {(trial.round, trial.host): trial for trial in theirs}
    pairs = [(trial, by_round[place]) for trial in ours if (place := (trial.round, trial.host)) in by_round]
    return [our for our, _ in pairs], [their for _, their in pairs]


def _sample(cell: CellResult, trials: Sequence[TrialNumbers], metric: Metric) -> Sample:
    """The sample of these trials; the cell's own if these are all of its trials."""
    same = [trial.position for trial in trials] == [trial.position for trial in cell.having(metric)]
    return cell.sample(metric) if same else sample_of(trials, metric)


def _rounds(cell: CellResult, baseline: CellResult, whole: int) -> int | None:
    """The number of rounds in which either cell ran; None if both ran in all of them."""
    run = {trial.numbers.round for side in (cell, baseline) for trial in side.trials}
    return len(run) if whole < len(run) else None


def _refused(cell: CellResult, baseline: CellResult, metric: Metric) -> str:
    """Why not to compare them in this metric. What is known of an invalid cell is, unless the server failed."""
    for name, side in (("the cell", cell), ("the baseline", baseline)):
        known = side.comparable and bool(side.having(metric))
        if side.comparable and not known and (bound := side.bound(metric)):
            return f"{metric.words} of {name} is {bound.unknown}"
        if not (known or (side.comparable and side.valid)):
            return f"{name} is invalid: {side.why_invalid}" if side.why_invalid else f"{name} has no usable trials"
        if side.perturbed:
            return f"{name} was measured with a monitor that perturbs"
    return ""


def _too_little(metric: Metric, ours: Sequence[TrialNumbers], theirs: Sequence[TrialNumbers]) -> str:
    if not ours or not theirs:
        return f"no trials of both have {metric}"
    return too_few_for(metric, min(_totals(side)[0] for side in (ours, theirs)))


class Question(NamedTuple):
    """The name of the family of a comparison, and the server that it is about."""

    family: str
    server: str


def with_verdicts(
    comparisons: Sequence[Comparison], question_of: Callable[[Comparison], Question]
) -> tuple[Comparison, ...]:
    """The comparisons with p-values adjusted within each family, and the resulting verdicts.

    Primary metrics get a verdict from `FEWEST_TRIALS` on. A comparison without a p-value is in no family.
    """
    families: dict[str, list[tuple[int, float, str]]] = {}
    for place, comparison in enumerate(comparisons):
        if comparison.p is not None:
            family, server = question_of(comparison)
            families.setdefault(family, []).append((place, comparison.p, server))
    decided = list(comparisons)
    for family, members in families.items():
        places, ps, servers = zip(*members, strict=True)
        for place, p in zip(places, adjust(ps, servers), strict=True):
            decided[place] = decided[place].in_family(family, len(places), p)
    return tuple(map(_decided, decided))


def _decided(comparison: Comparison) -> Comparison:
    if not comparison.primary or comparison.ratio is None or comparison.ratio.n < comparison.fewest:
        return comparison
    higher = comparison.metric.higher_is_better
    decision = decide(comparison.ratio, comparison.threshold, higher_is_better=higher, p_adjusted=comparison.p_adjusted)
    return comparison.with_verdict(decision.verdict, matters=decision.matters)


_HasVerdict = TypeVar("_HasVerdict", bound=HasVerdict)


def unwanted(comparisons: Iterable[_HasVerdict], fail_on: Collection[Verdict]) -> tuple[_HasVerdict, ...]:
    """The comparisons that fail a gate: their verdict is in `fail_on`, and a difference among them may matter."""
    return tuple(item for item in comparisons if item.verdict in fail_on and item.matters is not False)


def lacks_verdict(comparison: Comparison) -> bool:
    """Whether a verdict was asked for but not possible: nothing was measured, or servers were not warm."""
    return comparison.primary and bool(comparison.why_no_verdict)


def was_not_judged(comparison: Comparison) -> bool:
    """Whether a verdict was asked for and there is none: nothing was measured, or nothing is known of the ratio.

    A ratio with an interval was judged, also where servers were not warm: that is allowed for, and inconclusive.
    """
    return lacks_verdict(comparison) and comparison.verdict is None


def refused_for_rate(load: Load, metric: Metric, ours: Sequence[TrialNumbers], theirs: Sequence[TrialNumbers]) -> str:
    """Why the rates rule out a comparison of two cells in this metric; empty if they do not.

    If a schedule sets the load, two servers that keep up have its throughput. A server that falls behind is measured at
    another rate, and its response times depend on the length of the trial. A server that answers more than was due
    works off a backlog: its throughput depends on the backlog, and with all cores busy a request costs less CPU.
    """
    if _waits(load):
        return ""
    strayed = [
        (f"{name} answered {percent(share)} of what was due", share)
        for name, side in (("the cell", ours), ("the baseline", theirs))
        if (share := off_schedule(side)) is not None
    ]
    backlogs = [text for text, share in strayed if share > 1]
    if metric is Metric.THROUGHPUT:
        if not strayed:
            return SCHEDULED
        return f"{backlogs[0]}: part of its throughput is what warm-up left behind" if backlogs else ""
    if metric is Metric.CPU_PER_REQUEST and backlogs:
        return f"{backlogs[0]}: while it works off what warm-up left behind, a request costs less CPU time"
    if metric not in QUANTILE_OF or not strayed:
        return ""
    within = percent(RATE_TOLERANCE)
    return f"{strayed[0][0]}: response times are compared only where both answer what was due, to {within}"


def off_schedule(side: Sequence[TrialNumbers]) -> float | None:
    """The answered share of due requests; None if it is 1 within RATE_TOLERANCE, or within chance."""
    due, completed = _totals(side)
    loads = [trial.traffic for trial in side if trial.traffic]
    chance = math.hypot(*(chance_at_ends(load.counts.completed, load.response, load.seconds) for load in loads))
    strayed = due > 0 and abs(due - completed) > max(RATE_TOLERANCE * due, _FEWEST, chance)
    return completed / due if strayed else None


def caveat_of_rate(load: Load, metric: Metric, ours: Sequence[TrialNumbers], theirs: Sequence[TrialNumbers]) -> str:
    """A caveat about a ratio of response times if the rates differ; otherwise empty."""
    if metric not in QUANTILE_OF or not _waits(load):
        return ""
    rates = [_rate(side) for side in (ours, theirs)]
    return CAVEAT if max(rates) > (1 + RATE_TOLERANCE) * min(rates) else ""


def _waits(load: Load) -> bool:
    """Whether users wait for their answers, so that the server sets the rate."""
    return isinstance(load.shape, Closed) and load.shape.pace_per_s is None


def _totals(side: Sequence[TrialNumbers]) -> tuple[int, int]:
    counts = [trial.traffic.counts for trial in side if trial.traffic]
    return sum(count.due for count in counts), sum(count.completed for count in counts)


def _rate(side: Sequence[TrialNumbers]) -> float:
    seconds = sum(trial.traffic.seconds for trial in side if trial.traffic)
    return _totals(side)[1] / seconds if seconds > 0 else 0.0


def _only_in(run: Run, other: Run) -> tuple[str, ...]:
    name, cells, there = run.manifest.name, run.manifest.plan.cells, other.manifest.plan.cells
    return tuple(f"only in {name}: {cell.slug}" for cell_id, cell in cells.items() if cell_id not in there)
