"""The history of every cell over many runs. Pure. docs/guide/history.md explains the method."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import Literal

from redline.analysis.cells import server_facts
from redline.analysis.compare import metrics_asked, refused_for_rate
from redline.analysis.duet import Duet, duets_of
from redline.analysis.environments import differences, eras_of
from redline.analysis.own_servers import own_server
from redline.analysis.results import CellResult, judge_run, too_few_for
from redline.findings import is_valid
from redline.history.changes import Level, Step, standing, steps
from redline.model import Cell, Environment, Estimate, Metric, Plan, Run, ServerEntry, Variant, Verdict
from redline.model.history import (
    Change,
    Followed,
    History,
    HistoryPoint,
    HistoryRun,
    LeftOut,
    OtherLine,
    Reported,
    ReportedRegression,
)
from redline.stats import LogRatios, pooled
from redline.stats.duets import StartRatio, over_starts
from redline.stats.estimate import estimate
from redline.suite.planning import is_mix


@dataclass(frozen=True)
class Sight:
    """A cell in a run: the value of every metric, or why it has none."""

    slug: str
    role: Literal["subject", "ceiling"]
    build: str
    levels: Mapping[Metric, Level | str]
    baseline: str = ""
    """The server that the cell is compared with, if `levels` are ratios."""
    baseline_slug: str = ""
    baseline_build: str = ""
    request: str = ""

    @property
    def slugs(self) -> tuple[str, ...]:
        """The slugs of the cells that a run needs to show it."""
        return tuple(filter(None, (self.slug, self.baseline_slug)))


@dataclass(frozen=True)
class SeenRun:
    """The part of a run that a history keeps: many whole runs do not fit into memory."""

    name: str
    folder: str
    suite: str
    started_unix_ns: int
    complete: bool
    threshold: float
    environment: Environment
    cells: Mapping[str, Sight] = field(default_factory=dict)
    suite_text: str = ""
    is_comparison: bool = False
    """Whether flags name the compared servers, so that a run of other servers says nothing about these."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Why cells of the suite did not run, by slug, such as a failed build."""


def see(run: Run, folder: str, wanted: Callable[[Cell], bool]) -> SeenRun:
    """The wanted cells of a run, judged by today's rules."""
    manifest = run.manifest
    levels = judge_run(run) if manifest.plan.suite.alone else {}
    cells = {cell_id: _sight(cell, manifest.plan) for cell_id, cell in levels.items() if wanted(cell.cell)}
    return SeenRun(
        name=PurePath(folder).name or manifest.name,  # CI gives the runs that it keeps names of their own
        folder=folder,
        suite=manifest.plan.suite.name,
        started_unix_ns=manifest.created_unix_ns,
        complete=run.complete or manifest.same is not None,
        threshold=manifest.plan.suite.threshold,
        environment=manifest.environment,
        cells=cells if manifest.same is not None else cells | dict(_ratios(run, wanted)),
        suite_text=manifest.suite_text,
        is_comparison=manifest.kind == "comparison",
        skipped=manifest.plan.not_run_here,
    )


def build_history(
    folder: str,
    seen: Iterable[SeenRun],
    left_out: Sequence[LeftOut] = (),
    foreign: Sequence[str] = (),
    others: Sequence[OtherLine] = (),
) -> History:
    """The runs in the order of their start, and all their cells in the relevant metrics, latest plan first."""
    runs = sorted(seen, key=lambda seen: (seen.started_unix_ns, seen.name))
    eras, era_of = eras_of([seen.environment for seen in runs])
    order = dict.fromkeys(cell_id for run in reversed(runs) for cell_id in run.cells)
    return History(
        folder=folder,
        runs=_runs(runs, era_of),
        eras=eras,
        cells=tuple(followed for cell_id in order for followed in _followed(cell_id, runs, era_of)),
        left_out=tuple(left_out),
        foreign=tuple(foreign),
        others=tuple(others),
    )


def regressions(history: History, recent: int | None = None) -> tuple[Followed, ...]:
    """The subjects that became slower and still are, in plans that are still run.

    With `recent`, only changes within this many of the last runs: earlier changes are accepted.
    """
    return tuple(
        cell
        for cell in history.cells
        if cell.regressed
        and cell.current
        and cell.role == "subject"
        and (recent is None or _held_by(cell, history) <= recent)
    )


def unreported(worse: Iterable[Followed], history: History, reported: Reported) -> tuple[Followed, ...]:
    """The regressions among these that were not reported, or became worse in a run after the report."""
    newest = {(each.cell_id, each.metric): each.newest_unix_ns for each in reported.regressions}
    return tuple(
        cell
        for cell in worse
        if any(
            history.runs[change.run].started_unix_ns > newest.get((cell.cell_id, cell.metric), -1)
            for change in cell.changes
            if change.verdict is Verdict.SLOWER
        )
    )


def with_reported(news: Iterable[Followed], history: History, reported: Reported) -> Reported:
    """These regressions of today's runs beside those that were reported before."""
    known = {(each.cell_id, each.metric): each for each in reported.regressions}
    until = history.runs[-1].started_unix_ns
    for cell in news:
        made = ReportedRegression(cell_id=cell.cell_id, metric=cell.metric, newest_unix_ns=until)
        known[cell.cell_id, cell.metric] = made
    return Reported(regressions=tuple(known.values()))


def _held_by(followed: Followed, history: History) -> int:
    """The number of runs in its last era with a value since the change that stands."""
    era = history.runs[followed.points[-1].run].era
    since = followed.regressed_since or 0
    return sum(point.run >= since and history.runs[point.run].era == era for point in followed.known)


def silent(history: History) -> tuple[Followed, ...]:
    """The subjects without a value in the last run, in plans that are still run.

    That is the last run of all, or the last of the suite that showed them before: a run of another suite without a
    number for a cell does not count for that suite. Subjects that never had a value are not listed.
    """
    return tuple(
        cell for cell in history.cells if cell.current and cell.role == "subject" and _is_silent(cell, history)
    )


def _is_silent(followed: Followed, history: History) -> bool:
    if followed.last is not None or followed.points[-1].run == len(history.runs) - 1:
        return followed.last is None
    suites = [history.runs[point.run].suite for point in followed.points]
    shown = [suite for suite, point in zip(suites, followed.points, strict=True) if point.estimate is not None]
    lasts = dict(zip(suites, followed.points, strict=True))
    return bool(shown) and lasts[shown[-1]].estimate is None


def overlooked(history: History) -> tuple[LeftOut, ...]:
    """The runs that were left out and are not known to be older than the last run of their suite.

    A run that is still going will be judged when it has ended.
    """
    last = {run.suite: run.started_unix_ns for run in history.runs}
    return tuple(
        left_out
        for left_out in history.left_out
        if not left_out.going
        and (
            left_out.started_unix_ns is None
            or left_out.started_unix_ns >= last.get(left_out.suite, left_out.started_unix_ns)
        )
    )


def _sight(cell: CellResult, plan: Plan) -> Sight:
    return Sight(
        slug=cell.cell.slug,
        role=cell.cell.role,
        build=server_facts(cell, "build"),
        levels={metric: _level_of(cell, metric) for metric in cell.cell.load.primary_metrics},
        request=_request_of(cell.cell, plan),
    )


def _request_of(cell: Cell, plan: Plan) -> str:
    """What `-m` selects its request by, of several; empty for the only one, and for a mix of several."""
    scenario, scenarios = cell.scenario, plan.suite.scenarios
    return "" if len(scenarios) < 2 or is_mix(scenario, scenarios) else scenario.name


def _level_of(cell: CellResult, metric: Metric) -> Level | str:
    used = cell.having(metric)
    # Where most trials failed or cannot be read, a change could not be told from chance.
    if not cell.comparable or not (cell.valid or is_valid(len(cell.trials), len(used))):
        bound = cell.bound(metric) if cell.comparable else None
        unknown = f"{metric} is {bound.unknown}" if bound else "the cell is invalid"
        return unknown if cell.trials else "not measured"
    if cell.perturbed:
        return "measured with a monitor that perturbs"
    requests = sum(trial.traffic.counts.due for trial in used if trial.traffic)
    if not used:
        return f"no trials have {metric}"
    refused = too_few_for(metric, requests) or refused_for_rate(cell.cell.load, metric, used, used)
    return refused or Level(cell.estimate(metric), pooled([cell.sample(metric)]))


def _ratios(run: Run, wanted: Callable[[Cell], bool]) -> Iterator[tuple[str, Sight]]:
    """The ratios of the servers that a run's duets compare."""
    manifest, duets = run.manifest, duets_of(run)
    plan = manifest.plan
    pairs = dict.fromkeys((target, duet.cell_ids[0]) for duet in plan.duets for target in duet.cell_ids[1:])
    for pair in pairs:
        cell, baseline = (plan.cells[cell_id] for cell_id in pair)
        if not wanted(cell):
            continue
        duet = duets.get(pair)
        asked = dict.fromkeys((*metrics_asked(cell.load, plan.suite, duet), *(duet.metrics if duet else ())))
        yield (
            _comparison_id(cell, baseline, by_command=manifest.kind == "comparison"),
            Sight(
                slug=cell.slug,
                role=cell.role,
                build=duet.build if duet else "",
                levels={metric: _ratio_of(duet, metric) for metric in asked},
                baseline=baseline.variant.slug,
                baseline_slug=baseline.slug,
                baseline_build=duet.baseline_build if duet else "",
                request=_request_of(cell, plan),
            ),
        )


def _comparison_id(cell: Cell, baseline: Cell, *, by_command: bool) -> str:
    """The identity of a comparison: servers, scenario and load, whatever the length of the measurement.

    With `by_command`, a user's server is identified by its command, since flags call any two servers A and B.
    """
    servers = [
        variant.content | {"own": _own(variant) if by_command else ""} for variant in (cell.variant, baseline.variant)
    ]
    workload = [
        cell.scenario.asked(),
        cell.load.model_dump(mode="json", exclude={"duration_ns"}),
        cell.engine.model_dump(mode="json"),
    ]
    text = json.dumps([servers, workload], sort_keys=True)
    return f"{cell.slug}-{baseline.variant.slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _own(variant: Variant) -> str:
    """The command, the URL, or the revision by the user's name for it, whatever its commit is today."""
    entry = variant.entry
    checkout = entry.checkout if isinstance(entry, ServerEntry) else None
    return checkout.revision.name if checkout else own_server(variant)


def _ratio_of(duet: Duet | None, metric: Metric) -> Level | str:
    if duet is None:
        return "no start with both was measured"
    if duet.failing is not None:
        return duet.failing
    few = duet.too_few(metric) or duet.unstable(metric)
    ratio = duet.ratio(metric)
    if few or ratio is None:
        return few or f"no start knows {metric} of both"
    if math.isinf(ratio.bias):
        return duet.unsettled or f"too much was read late to know {metric}"
    return Level(ratio.contrast.ratio, duet.logs(metric), ratio.bias)


def _runs(runs: Sequence[SeenRun], era_of: Sequence[int]) -> tuple[HistoryRun, ...]:
    before: dict[int, Environment] = {}
    made = []
    for run, era in zip(runs, era_of, strict=True):
        differs = differences(before.get(era, run.environment), run.environment)
        before[era] = run.environment
        made.append(
            HistoryRun(
                name=run.name,
                folder=run.folder,
                suite=run.suite,
                started_unix_ns=run.started_unix_ns,
                complete=run.complete,
                era=era,
                environment_differs=tuple(map(str, differs)),
            )
        )
    return tuple(made)


@dataclass(frozen=True)
class _CellHistory:
    """A cell in a metric over all runs that have it; `says` is by the index of a run."""

    cell_id: str
    metric: Metric
    says: Mapping[int, Level | str]
    runs: Sequence[SeenRun]
    era_of: Sequence[int]

    @property
    def last(self) -> int:
        """The index of the last run that has it."""
        return max(self.says)

    @property
    def levels(self) -> dict[int, Level]:
        """The levels of the runs that have a value."""
        return {place: level for place, level in self.says.items() if isinstance(level, Level)}

    def points(self) -> Iterator[HistoryPoint]:
        """The points of all runs."""
        for place, level in self.says.items():
            estimate, missing = (level.estimate, "") if isinstance(level, Level) else (None, level)
            build, baseline_build = self._builds(place)
            yield HistoryPoint(
                run=place, estimate=estimate, missing=missing, build=build, baseline_build=baseline_build
            )

    def changes(self) -> tuple[Change, ...]:
        """The changes within every era, in the order of the runs."""
        changes = []
        for era, steps_of_era in self._steps.items():
            own, levels = self._levels(era)
            for step in steps_of_era:
                before, after = self._builds(own[step.at - 1]), self._builds(own[step.at])
                changes.append(
                    Change(
                        run=own[step.at],
                        ratio=step.ratio,
                        verdict=step.verdict,
                        before=_pooled(levels[step.since : step.at], self.metric),
                        after=_pooled(levels[step.at : step.until], self.metric),
                        runs=step.until - step.at,
                        build_before=before[0],
                        build_after=after[0],
                        baseline_build_before=before[1],
                        baseline_build_after=after[1],
                    )
                )
        return tuple(sorted(changes, key=lambda change: change.run))

    def regressed_since(self) -> int | None:
        """The index of the run since which it is slower than before, in its last era; None if it is not."""
        era = self.era_of[self.last]
        own, levels = self._levels(era)
        step = standing(levels, self._steps.get(era, ()), self.metric, self._threshold)
        return own[step.at] if step else None

    @cached_property
    def _steps(self) -> dict[int, tuple[Step, ...]]:
        eras = dict.fromkeys(self.era_of[place] for place in self.levels)
        return {era: steps(self._levels(era)[1], self.metric, self._threshold) for era in eras}

    def _levels(self, era: int) -> tuple[list[int], list[Level]]:
        own = [place for place in self.levels if self.era_of[place] == era]
        return own, [self.levels[place] for place in own]

    @property
    def _threshold(self) -> float:
        return self.runs[self.last].threshold

    def _builds(self, place: int) -> tuple[str, str]:
        """The build of the server, and that of its baseline."""
        sight = self.runs[place].cells.get(self.cell_id)
        return (sight.build, sight.baseline_build) if sight else ("", "")


def _followed(cell_id: str, runs: Sequence[SeenRun], era_of: Sequence[int]) -> Iterator[Followed]:
    """The cell in every metric that its last run asks for; in metrics after the first only if a run has a value."""
    places = [place for place, run in enumerate(runs) if cell_id in run.cells]
    last = runs[places[-1]]
    own = last.cells[cell_id]
    later = _that_say(own, last, dict(enumerate(runs[places[-1] + 1 :], start=places[-1] + 1)))
    skipped = _skipped(own, later)
    for number, metric in enumerate(own.levels):
        says = {place: runs[place].cells[cell_id].levels.get(metric, "not known") for place in places} | skipped
        history = _CellHistory(cell_id, metric, says, runs, era_of)
        if number and not history.levels:
            continue
        since = history.regressed_since()
        yield Followed(
            cell_id=cell_id,
            slug=own.slug,
            baseline=own.baseline,
            request=own.request,
            role=own.role,
            metric=metric,
            threshold=last.threshold,
            current=not later or bool(skipped),
            points=tuple(history.points()),
            changes=history.changes(),
            regressed=since is not None,
            regressed_since=since,
        )


def _that_say(cell: Sight, last: SeenRun, later: Mapping[int, SeenRun]) -> dict[int, SeenRun]:
    """The later runs that show why they lack the cell: they skipped it, or the suite changed.

    A run of the same text without the cell ran a part of the suite, or was quick.
    """
    own = {place: run for place, run in later.items() if run.suite == last.suite and not run.is_comparison}
    return {
        place: run
        for place, run in own.items()
        if not run.skipped.keys().isdisjoint(cell.slugs) or run.suite_text != last.suite_text
    }


def _skipped(cell: Sight, later: Mapping[int, SeenRun]) -> dict[int, Level | str]:
    """Why runs skipped the cell, by index; empty if another cell of that name replaced it, or no run is left."""
    others = [other for run in later.values() for other in run.cells.values()]
    if not later or any((other.slug, other.baseline) == (cell.slug, cell.baseline) for other in others):
        return {}
    reasons: dict[int, Level | str] = {
        place: f"skipped: {run.skipped[slug]}"
        for place, run in later.items()
        for slug in cell.slugs
        if slug in run.skipped
    }
    return reasons if max(later) in reasons else {}


def _pooled(levels: Sequence[Level], metric: Metric) -> Estimate:
    sample = pooled([level.sample for level in levels])
    if isinstance(sample, LogRatios):
        starts = [StartRatio(log, None) for log in sample.logs]
        return over_starts(starts, resolution=sample.resolution).contrast.ratio
    return estimate(sample, metric)
