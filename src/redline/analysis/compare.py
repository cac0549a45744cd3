"""Cells against their baselines: within one run paired by round, across two runs unpaired."""

from dataclasses import dataclass
from typing import Literal

from redline.analysis.environments import Difference, differences
from redline.analysis.families import judged_together
from redline.analysis.judged import JudgedCell, judge_run
from redline.analysis.rates import caveat_of_rate, refused_for_rate
from redline.analysis.skipped import skipped_here
from redline.model import COMPARED, Cell, Comparison, Grade, Metric, Recording, Run, Suite
from redline.stats import SHARES, enough_beyond, paired, sample_of, tells, unpaired, verdict

Pairing = Literal["by round", "none"]


@dataclass(frozen=True)
class RunsCompared:
    """Two runs against each other, and what to know before believing it."""

    comparisons: tuple[Comparison, ...]
    unmatched: tuple[str, ...]
    environment_differs: tuple[Difference, ...]


def compare_runs(base: Run, other: Run) -> RunsCompared:
    """Each subject that both runs hold, `other` over `base`, in every compared metric; the threshold is the base's."""
    theirs, ours = judge_run(base), judge_run(other)
    threshold = base.manifest.plan.suite.threshold
    return RunsCompared(
        comparisons=judged_together(
            [
                _compare(cell, theirs[cell_id], metric, threshold, "none")
                for cell_id, cell in ours.items()
                if cell_id in theirs and cell.cell.role == "subject"
                for metric in COMPARED
            ]
        ),
        unmatched=(*_only_in(base, other), *_only_in(other, base)),
        environment_differs=differences(base.manifest.environment, other.manifest.environment),
    )


def compare_with_baseline(judged: dict[str, JudgedCell], suite: Suite) -> tuple[Comparison, ...]:
    """Each subject against its own baseline in the same scenario and load, in every compared metric.

    All of one metric are a family: no more than 5% of reports of equal servers call any of them different.
    """
    subjects = [one for one in judged.values() if one.cell.role == "subject"]
    by = {(one.cell.variant.slug, one.cell.scenario.name, one.cell.load.name): one for one in subjects}
    found = []
    for one in subjects:
        slug = suite.baseline_of(one.cell.variant.slug)
        baseline = by.get((slug, one.cell.scenario.name, one.cell.load.name)) if slug else None
        if baseline is not None:
            found += [compare_by_round(one, baseline, metric, suite.threshold) for metric in COMPARED]
    return judged_together(found)


def not_run(run: Run) -> tuple[str, ...]:
    """The cells that were to be compared with others of the run and were skipped, as where a server cannot be built."""
    suite = run.manifest.plan.suite
    pairs = [(variant.slug, suite.baseline_of(variant.slug)) for variant in suite.variants]
    servers = {slug for pair in pairs if pair[1] for slug in pair}
    wanted = {
        f"{server}.{one.name}.{load.name}" for server in servers for one in suite.scenarios for load in suite.loads
    }
    found = skipped_here(run.manifest.plan).items()
    return tuple(f"not run: {slug}: {reason}" for slug, reason in found if slug in wanted)


def compare_by_round(cell: JudgedCell, baseline: JudgedCell, metric: Metric, threshold: float) -> Comparison:
    """Two cells of one run in one metric, paired by round; refused, with the reason, where it would not be fair.

    Judged by itself: where there are others beside it, `judged_together` judges them all.
    """
    return _compare(cell, baseline, metric, threshold, "by round")


def is_baseline(cell: Cell, suite: Suite) -> bool:
    """Whether others are compared with this cell: with that of the whole suite, or of some servers in it."""
    return cell.role == "subject" and cell.variant.slug in (suite.baseline, *suite.baselines.values())


def _compare(cell: JudgedCell, baseline: JudgedCell, metric: Metric, threshold: float, pairing: Pairing) -> Comparison:
    ours, theirs = _told(cell, metric), _told(baseline, metric)
    if pairing == "by round":
        ours, theirs = _same_rounds(ours, theirs)
    load = cell.cell.load
    refused = _refused(cell, baseline) or _untold(metric, ours, theirs) or refused_for_rate(load, metric, ours, theirs)
    found = None
    if not refused:
        contrast = paired if pairing == "by round" else unpaired
        found = contrast(sample_of(ours, metric), sample_of(theirs, metric))
        refused = "" if found else f"{metric} is zero on one side"
    return Comparison(
        metric=metric,
        cell_id=cell.cell.id,
        baseline_id=baseline.cell.id,
        ratio=found.ratio if found else None,
        verdict=verdict(found.ratio, metric, threshold) if found else None,
        threshold=threshold,
        refused=refused,
        caveat=caveat_of_rate(load, metric, ours, theirs) if found else "",
        rounds=_rounds(cell, baseline, len(ours)) if found and pairing == "by round" else None,
        p=found.p if found else None,
        p_equivalent=found.p_equivalent(threshold) if found else None,
    )


def _told(cell: JudgedCell, metric: Metric) -> list[Recording]:
    return [recording for recording in cell.used if tells(recording, metric)]


def _same_rounds(ours: list[Recording], theirs: list[Recording]) -> tuple[list[Recording], list[Recording]]:
    """The trials of the rounds in which both cells have one, in the same order."""
    by_round = {recording.round: recording for recording in theirs}
    pairs = [(recording, by_round[recording.round]) for recording in ours if recording.round in by_round]
    return [one for one, _ in pairs], [two for _, two in pairs]


def _rounds(cell: JudgedCell, baseline: JudgedCell, whole: int) -> int | None:
    """In how many rounds either cell was run; None where all of them are among the whole ones."""
    run = {trial.recording.round for one in (cell, baseline) for trial in one.trials}
    return len(run) if whole < len(run) else None


def _refused(cell: JudgedCell, baseline: JudgedCell) -> str:
    for name, one in (("the cell", cell), ("the baseline", baseline)):
        if not one.valid:
            grave = next((finding for finding in one.findings if finding.grade is Grade.INVALID), None)
            return f"{name} is invalid: {grave.message}" if grave else f"{name} has no usable trials"
        if any(recording.perturbed for recording in one.used):
            return f"{name} was measured with a probe that perturbs"
    return ""


def _untold(metric: Metric, ours: list[Recording], theirs: list[Recording]) -> str:
    if not ours or not theirs:
        return f"no trials of both tell {metric}"
    share = SHARES.get(metric)
    if share is None:
        return ""
    fewest = min(sum(r.traffic.response.count for r in side if r.traffic) for side in (ours, theirs))
    return "" if enough_beyond(fewest, share) else f"{fewest:,} requests are too few for {metric}"


def _only_in(one: Run, another: Run) -> tuple[str, ...]:
    there = another.manifest.plan.cells
    return tuple(
        f"only in {one.manifest.name}: {cell.slug}"
        for cell_id, cell in one.manifest.plan.cells.items()
        if cell_id not in there
    )
