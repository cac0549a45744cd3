"""Findings about a cell, which need all of its trials or the machine's ceiling."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from redline.findings.memory import pauses_in_tail
from redline.findings.rules import (
    AUTOCORRELATION_P,
    CLIENTS_DOING,
    LENGTHENING,
    RULES,
    SERVERS_DOING,
    TREND_P,
    WANTED_BEYOND,
    WANTED_TRIALS,
    graded,
)
from redline.findings.server import server_limited
from redline.findings.steadiness import shrinking_between
from redline.model import Cell, Failure, Finding, FindingKind, Grade, Metric, Open, Recording, ServerFacts
from redline.quantities import duration, percent, rate
from redline.stats import Trial
from redline.stats.builds import BuildScatter, differing
from redline.stats.series import interval_excess, trend, two_groups

TAIL = 0.99
USELESS = 10.0
"""Trials that cannot show eleven times as much show nothing: larger resolutions are not spelled out."""

UNUSABLE = "Find out first why none is usable: more trials help only then."
REPEAT = "Enough were planned: find out why trials were left out or not run, fix that, and run the suite again."


def usable(recording: Recording, findings: Sequence[Finding]) -> bool:
    """Whether a cell's numbers may rest on this trial: it has traffic and none of its findings is `invalid`."""
    return recording.traffic is not None and all(finding.grade is not Grade.INVALID for finding in findings)


def servers_doing(findings: Sequence[Finding], failure: Failure | None = None) -> tuple[FindingKind, ...]:
    """What the server did for which a load is invalid; empty where it is valid, or invalid by other causes.

    A rate that was missed by a client that was itself the limit is none of it, nor is a failure of the engine.
    """
    grave = [each.kind for each in findings if each.grade is Grade.INVALID]
    clients = {FindingKind.RATE_MISSED} if any(kind in CLIENTS_DOING for kind in grave) else set()
    if of_engine(failure):
        clients.add(FindingKind.TRIAL_FAILED)
    return tuple(kind for kind in grave if kind in SERVERS_DOING - clients)


def of_engine(failure: Failure | None) -> bool:
    """Whether the load generator is why a trial failed, which says nothing of the server."""
    return failure is not None and failure.kind == "engine"


def only_lengthened(cell: Cell, findings: Sequence[Finding]) -> bool:
    """Whether an invalid load has true upper bounds of response times all the same: its client was late, no more.

    Requests have to fall due by a schedule. Users who think come later if the client is late, and load the server less.
    """
    shape = cell.load.shape
    grave = {each.kind for each in findings if each.grade is Grade.INVALID}
    scheduled = isinstance(shape, Open) or shape.pace_per_s is not None
    return scheduled and bool(grave & LENGTHENING) and grave <= LENGTHENING | {FindingKind.RATE_MISSED}


def is_valid(made: int, used: int) -> bool:
    """Whether a cell's numbers may be shown as results, with so many trials made so far and so many of them usable.

    At least half must be usable, and at least two when two were made: what mostly fails is not described by the rest.
    """
    return used >= max(1, min(2, made)) and 2 * used >= made


def judge_cell(
    cell: Cell, used: Sequence[Trial], *, planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The findings about a cell as a whole, given its usable trials and the ceiling's rate in its scenario and load."""
    in_order = sorted(used, key=lambda trial: trial.recording.position)
    return (
        *pauses_in_tail(cell, used),
        *server_limited(cell, used),
        *_near_ceiling(cell, used, ceiling_per_s),
        *_judge_rounds(cell, in_order),
        *builds_alike(cell, in_order),
        *shrinking_between(cell, in_order),
        *_too_few_trials(cell, used, planned),
        *_too_few_samples(cell, used),
    )


@dataclass(frozen=True)
class _TrialValues:
    """One number of each usable trial, in the run's order, and what it is called."""

    name: str
    values: tuple[float, ...]

    def text(self, value: float) -> str:
        """One of them as people read it."""
        return rate(value) if self.name == "rate" else duration(value)


def _judge_rounds(cell: Cell, used: Sequence[Trial]) -> tuple[Finding, ...]:
    """What shows in how the trials differ: rates where they are the server's to choose, else median response times."""
    traffics = [trial.traffic for trial in used if trial.traffic]
    if cell.load.saturates:
        series = _TrialValues("rate", tuple(one.rate_per_s for one in traffics if one.rate_per_s > 0))
    else:
        medians = (float(one.response.quantile_ns(0.5)) for one in traffics)
        series = _TrialValues("p50 response time", tuple(median for median in medians if median > 0))
    drift = trend(series.values, TREND_P)
    return (
        *_run_drift(cell, series, drift),
        *_autocorrelation(cell, series, drift),
        *_bimodal(cell, series),
        *_builds_differ(cell, series, used),
    )


def _run_drift(cell: Cell, series: _TrialValues, drift: float) -> tuple[Finding, ...]:
    message = (
        f"From the first to the last of {len(series.values)} trials the {series.name} "
        f"{'rose' if drift > 0 else 'fell'} by {percent(abs(drift))}: something changed during the run."
    )
    return graded(FindingKind.RUN_DRIFT, abs(drift), message, cell)


def _autocorrelation(cell: Cell, series: _TrialValues, drift: float) -> tuple[Finding, ...]:
    if drift:
        return ()  # a drift makes neighbours alike, and is reported itself
    excess = interval_excess(series.values, AUTOCORRELATION_P)
    message = (
        f"Consecutive trials were more alike in their {series.name} than chance allows over {len(series.values)} "
        f"trials: the interval is too narrow by a factor of about {excess:.2g}."
    )
    return graded(FindingKind.AUTOCORRELATION, excess - 1.0, message, cell)


def _bimodal(cell: Cell, series: _TrialValues) -> tuple[Finding, ...]:
    groups = two_groups(series.values)
    if groups is None:
        return ()
    below, above = groups.sizes
    message = (
        f"The trials fall into two groups: {below} with a {series.name} near {series.text(groups.lower)}, {above} "
        f"near {series.text(groups.upper)}, {percent(groups.apart)} apart and nothing between. Their mean is neither."
    )
    if groups.one_after_the_other:
        message += " All of one group came before all of the other, as when something changes during the run."
    return graded(FindingKind.BIMODAL, groups.apart, message, cell)


def _builds_differ(cell: Cell, series: _TrialValues, used: Sequence[Trial]) -> tuple[Finding, ...]:
    builds = [server.build_number for trial in used if (server := trial.recording.server)]
    if len(builds) != len(series.values):
        return ()  # a trial has no value, so nobody knows which is whose
    found = differing([math.log(value) for value in series.values], builds)
    if found is None:
        return ()
    return graded(FindingKind.BUILDS_DIFFER, found.between_sd, f"{builds_text(found)} in their {series.name}.", cell)


def builds_text(found: BuildScatter) -> str:
    """`The 3 builds differ by 4.1% (standard deviation), and starts of one build by 0.8%`."""
    between, within = percent(found.between_sd), percent(found.within_sd)
    return f"The {found.builds} builds differ by {between} (standard deviation), and starts of one build by {within}"


def builds_alike(cell: Cell, used: Sequence[Trial]) -> tuple[Finding, ...]:
    """Builds that are the same bytes."""
    alike = identical_builds([trial.recording.server for trial in used])
    return (
        graded(FindingKind.BUILDS_ALIKE, float(alike - 1), f"All {alike} builds are identical.", cell) if alike else ()
    )


def identical_builds(servers: Sequence[ServerFacts | None]) -> int:
    """How many builds of one server ran, if all are the same bytes; else 0."""
    builds = {server.build_number: server.outputs for server in servers if server and server.outputs}
    return len(builds) if len(builds) > 1 and len(set(builds.values())) == 1 else 0


def host_mode(cell: Cell, speeds: Sequence[float]) -> tuple[Finding, ...]:
    """Trials whose server's cores were much faster or slower than in the run's median trial.

    `speeds` are those of the cell's trials: 1.4 is 40% faster, both before and after the load.
    """
    most = max((max(speed, 1 / speed) for speed in speeds), default=1.0)
    return graded(FindingKind.HOST_MODE, most - 1, f"Just before and after the load, {in_modes(speeds)}.", cell)


def in_modes(speeds: Sequence[float]) -> str:
    """`in 12 of 81 trials the server's cores were 31 to 41% faster than in the run's median trial`; empty for none."""
    note = RULES[FindingKind.HOST_MODE].note or 0.0
    fast = [speed - 1 for speed in speeds if speed - 1 > note]
    slow = [1 - speed for speed in speeds if 1 / speed - 1 > note]
    counts = [f"in {len(fast)} of {len(speeds)} trials the server's cores were {_from_to(fast)} faster"] if fast else []
    if slow:
        counts.append(
            f"in {len(slow)} {_from_to(slow)} slower"
            if fast
            else f"in {len(slow)} of {len(speeds)} trials the server's cores were {_from_to(slow)} slower"
        )
    return f"{' and '.join(counts)} than in the run's median trial" if counts else ""


def _from_to(shares: Sequence[float]) -> str:
    low, high = (f"{share:.0%}" for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix('%')} to {high}"


def _too_few_trials(cell: Cell, used: Sequence[Trial], planned: int) -> tuple[Finding, ...]:
    trials = "trial is" if len(used) == 1 else "trials are"
    lacks = {0: "there is nothing to report", 1: "there is no interval and no verdict", 2: "there is no verdict"}
    message = (
        f"{len(used)} usable {trials} left of {planned} planned: {lacks.get(len(used), 'the intervals are wide')}."
    )
    advice = REPEAT if planned >= WANTED_TRIALS else None if used else UNUSABLE
    return graded(FindingKind.TOO_FEW_TRIALS, WANTED_TRIALS - len(used), message, cell, advice=advice)


def _too_few_samples(cell: Cell, used: Sequence[Trial]) -> tuple[Finding, ...]:
    if not used:
        return ()
    count = sum(trial.traffic.counts.due for trial in used if trial.traffic)
    beyond = count * (1 - TAIL)
    message = f"{count:,} requests were measured, so p99 rests on the slowest {beyond:,.0f}."
    return graded(FindingKind.TOO_FEW_SAMPLES, WANTED_BEYOND - beyond, message, cell)


def undecided(cell: Cell, shown: Sequence[tuple[Metric, float]], takes: str) -> tuple[Finding, ...]:
    """What the undecided comparisons of a cell could have shown, and what it `takes` to show less."""
    names = {Metric.CPU_PER_REQUEST: "CPU per request"}
    parts = " and ".join(
        f"{'more than ' if share > USELESS else ''}{percent(round(min(share, USELESS), 2))}"
        f" in {names.get(metric, metric.value)}"
        for metric, share in shown
    )
    message = f"These rounds show differences from {parts} on; {takes}."
    return graded(FindingKind.RESOLUTION, max(share for _, share in shown), message, cell)


def _near_ceiling(cell: Cell, used: Sequence[Trial], ceiling_per_s: float | None) -> tuple[Finding, ...]:
    seconds = sum(trial.traffic.seconds for trial in used if trial.traffic)
    if not cell.load.saturates or cell.role == "ceiling" or not ceiling_per_s or seconds <= 0:
        return ()
    achieved = sum(trial.traffic.counts.completed for trial in used if trial.traffic) / seconds
    message = (
        f"{achieved:,.0f}/s is {percent(achieved / ceiling_per_s)} of the {ceiling_per_s:,.0f}/s that a server which "
        f"does nothing reaches here."
    )
    return graded(FindingKind.NEAR_CEILING, achieved / ceiling_per_s, message, cell)
