"""Whether a run knows its main comparisons well enough to stop. Pure: the same recordings give the same answer."""

from collections.abc import Iterator
from itertools import takewhile

from redline.model import Closed, Enough, Estimate, Load, Metric, Precision, Run, Suite
from redline.report.compare import compare_by_round
from redline.report.judged import JudgedCell, judge_run
from redline.stats import SHARES, enough_beyond, estimate, sample_of, tells


def telling_metric(load: Load) -> Metric:
    """What a server does better under it: a schedule, or users who wait, decide how much is asked of it."""
    shape = load.shape
    saturates = isinstance(shape, Closed) and shape.pace_per_s is None and shape.think is None
    return Metric.THROUGHPUT if saturates else Metric.P99


def enough(run: Run) -> Enough | None:
    """Why no more rounds are to be made, asked between two rounds; None to go on, as for a suite that fixes them.

    Enough is when every main comparison is as narrow as asked. One that cannot be made (an invalid cell, a p99 of too
    few requests) does not keep the others going; one of too few rounds with both sides usable does, and a run in which
    none can be made goes on.
    """
    auto, rounds = run.manifest.plan.suite.auto, whole_rounds(run)
    if auto is None or rounds < auto.at_least:
        return None
    if auto.budget_ns is not None and _spent_ns(run) >= auto.budget_ns:
        return Enough(rounds=rounds, why="budget")
    found = [_relative(known) for _, known in _main(run) if known]
    narrow = found and all(half is not None and half <= auto.precision for half in found)
    return Enough(rounds=rounds, why="precision") if narrow else None


def precision(run: Run) -> Precision | None:
    """How well it knows them; None for a suite that fixes the number of trials."""
    plan = run.manifest.plan
    if plan.suite.auto is None:
        return None
    rounds, halves = whole_rounds(run), [(cell_id, _relative(known)) for cell_id, known in _main(run)]
    widest = max(((half, cell_id) for cell_id, half in halves if half is not None), default=(None, None))
    planned = {trial.round for trial in plan.trials}
    at_most = "at most" if rounds == len(planned) else "not yet"
    return Precision(
        asked=plan.suite.auto.precision,
        rounds=rounds,
        half_width=widest[0],
        cell_id=widest[1],
        without=tuple(cell_id for cell_id, half in halves if half is None),
        ended=run.enough.why if run.enough else at_most,
    )


def whole_rounds(run: Run) -> int:
    """The rounds, from the first one on, of which every trial has its recording."""
    done = {recording.position for recording in run.recordings}
    missing = {trial.round for trial in run.manifest.plan.trials if trial.position not in done}
    planned = sorted({trial.round for trial in run.manifest.plan.trials})
    return len(list(takewhile(lambda one: one not in missing, planned)))


def _spent_ns(run: Run) -> int:
    return sum(sum(recording.stages_ns.values()) for recording in run.recordings)


def _main(run: Run) -> Iterator[tuple[str, Estimate | None]]:
    """By cell id its main comparison, or its own estimate where it has none and is no baseline of any other."""
    suite = run.manifest.plan.suite
    judged = judge_run(run)
    subjects = {
        (one.cell.variant.slug, one.cell.scenario.name, one.cell.load.name): one
        for one in judged.values()
        if one.cell.role == "subject"
    }
    references = {suite.baseline_of(slug) for slug, _, _ in subjects}
    for (slug, scenario, load), one in subjects.items():
        baseline = subjects.get((suite.baseline_of(slug) or "", scenario, load))
        if baseline is not None or slug not in references:
            yield one.cell.id, _known(one, baseline, suite)


def _known(one: JudgedCell, baseline: JudgedCell | None, suite: Suite) -> Estimate | None:
    metric = telling_metric(one.cell.load)
    if baseline is not None:
        return compare_by_round(one, baseline, metric, suite.threshold).ratio
    told = [recording for recording in one.used if tells(recording, metric)]
    requests = sum(recording.traffic.response.count for recording in told if recording.traffic)
    if not one.valid or not told or (metric in SHARES and not enough_beyond(requests, SHARES[metric])):
        return None
    return estimate(sample_of(told, metric), metric)


def _relative(known: Estimate | None) -> float | None:
    return known.relative_half_width if known else None
