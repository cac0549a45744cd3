"""Findings about whether a trial was steady: its warm-up, and the length of its answers."""

import math
from collections.abc import Sequence

import numpy as np

from redline.findings.growth import growth_of
from redline.findings.rules import (
    HOLDS,
    TIME_DEPENDENT,
    TOO_CHEAP,
    TOO_SLOW,
    TREND_P,
    Observation,
    Rule,
    judges,
)
from redline.findings.warming import LEAST_S, compiler_cores, warm_up
from redline.model import Cell, Open, Traffic
from redline.model.runtime import COMPILES_WHILE_RUNNING
from redline.quantities import duration, percent
from redline.stats import Trial
from redline.stats.distributions import t_tail
from redline.stats.series import trend, two_groups

FEWEST_ANSWERS = 20
"""The fewest answers in an interval: with fewer, an answer that crosses its end weighs too much."""


NEVER_STEADY = Rule(
    "never-steady",
    warn=0.0,
    biases=TIME_DEPENDENT,
    text="""*With `warmup: detect`.* The server still changed when its warm-up reached its limit, or again in the
    measurement. See [warm-up](warm-up.md).

    The numbers describe no single speed, which may be the answer, so they are shown.

    Advice: Give it more time (`warmup: {detect: {at_most: 3m}}`), more cores to compile on, or a machine without other
    work. Otherwise this server is never steady.
    """,
)


SLOWING_DOWN = Rule(
    "slowing-down",
    warn=0.05,
    biases=TIME_DEPENDENT,
    text="""*With `warmup: detect`.* How much slower the steady server is than at its best before.

    It was faster: a heap fills, code was compiled for the worse, the clock rate fell. Levels within 5% count as equal.

    Advice: See its collector, its memory and the clock rate; a longer trial shows whether it continues.
    """,
)


@judges("answers")
def warmed(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """Findings that the server was never steady, or is slower when steady than before.

    Only if the suite wants a steady server: `unsteady` shows whether a fixed warm-up was long enough.
    """
    if not cell.warmup_detect or traffic.ended != "complete":
        return None
    seen = warm_up(cell, trial)
    in_vain = traffic.measure_start_ns >= cell.warmup_ns
    if seen is None:
        message = "Too few intervals were seen to decide whether it was ever steady."
        return Observation(float(in_vain), message, rule=NEVER_STEADY)
    if seen.kind in ("never steady", "slowing down") and growth_of(trial) is not None:
        return None  # it has its own finding, and more time does not help
    if seen.kind == "never steady":
        since = duration(seen.measured_from_ns)
        message = f"It was steady enough to be measured after {since}, and changed again while it was measured."
        if in_vain:
            message = f"It was still changing when its warm-up had taken all of {since}, and while it was measured."
        return Observation(HOLDS, message, rule=NEVER_STEADY)
    message = (
        f"Steady from {duration(seen.steady_from_ns or 0)} after its first request on, and "
        f"{percent(seen.lost or 0.0)} slower then than at its best before."
    )
    return Observation(seen.lost or 0.0, message, rule=SLOWING_DOWN)


@Rule("still-compiling", when="answers", probes="all", unit=" cores", note=0.10, warn=0.50, biases=TOO_SLOW)
def still_compiling(trial: Trial, traffic: Traffic) -> Observation | None:
    """*JVMs.* Cores that compilers used and waited for during the measurement.

    Code not yet compiled runs several times slower, and compilers take CPU time from requests. A warm server's use some
    hundredths of a core.

    Advice: Warm up by few users (`warmup_by: {users: 2}`), who leave the compilers a core; for longer; or until the
    compilers rest (`warmup: {detect: {at_most: 3m}}`). Give the server more cores to compile on.
    """
    cores = compiler_cores(trial, traffic)
    if cores is None:
        return None
    message = (
        f"While it was measured, the server's compilers used {cores[0]:.2g} cores and waited for another "
        f"{cores[1]:.2g}: it was not compiled yet."
    )
    return Observation(sum(cores), message)


@Rule("not-warmed-up", when="answers", probes="first", unit=" s", note=0.0, biases=TOO_SLOW)
def not_warmed_up(cell: Cell, trial: Trial) -> Observation | None:
    """The runtime compiles while it runs, its compilers were not watched, and a fixed warm-up took less than five
    seconds.

    Code not yet compiled runs several times slower. Compilers rest for seconds at a time.

    Advice: Warm up until the server is steady (`--warmup auto`), or for a time such as `--warmup 30s`, unless earlier
    load has warmed it up.
    """
    compiling = trial.recording.runtimes & COMPILES_WHILE_RUNNING
    watched = trial.increase("compiler_cpu_ns", "server") is not None
    if not compiling or watched or cell.warmup_detect:
        return None
    message = (
        f"The server runs on {' and '.join(sorted(compiling))}, which compiles while it runs, and its warm-up took "
        f"{duration(cell.warmup_ns)}: it may not have been compiled yet."
    )
    return Observation(LEAST_S - cell.warmup_ns / 1e9, message)


@Rule("shrinking-answers", when="answers", note=0.01, warn=0.05, biases=TOO_CHEAP)
def shrinking_answers(cell: Cell, traffic: Traffic) -> Observation | None:
    """Change of the mean length of right answers, with headers, over the measurement or between trials (p < 0.001). Not
    judged where lengths are checked, nor over the measurement of journeys and replays, whose requests change.

    A server that answers less under load does less work. A longer number in a header can change the length by 1%.

    Advice: Compare the body under load too (`under_load: length`); see what short answers leave out.
    """
    shape = cell.load.shape
    takes_turns = cell.scenario.journey is not None or (isinstance(shape, Open) and shape.arrivals == "replayed")
    if _lengths_are_checked(cell) or _wrong(traffic) or (takes_turns and cell.scenario.others):
        return None
    counted = [i.counts for i in traffic.intervals if i.phase == "measure" and i.counts.completed >= FEWEST_ANSWERS]
    return _changed([counts.bytes_received / counts.completed for counts in counted], "intervals")


@shrinking_answers.also("cell")
def shrinking_between(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """The finding that answers had other lengths in some trials than in others; `used` are in the run's order."""
    if _lengths_are_checked(cell):
        return None
    traffics = [trial.traffic for trial in used if trial.traffic]
    counted = [
        traffic.counts for traffic in traffics if traffic.counts.completed >= FEWEST_ANSWERS and not _wrong(traffic)
    ]
    return _changed([counts.bytes_received / counts.completed for counts in counted], "trials")


def _changed(sizes: list[float], parts: str) -> Observation | None:
    if not all(size > 0 for size in sizes):
        return None
    groups, change = two_groups(sizes), max((trend(sizes, TREND_P), from_end_to_end(sizes)), key=abs)
    if groups is not None and groups.apart >= abs(change):
        below, above = groups.sizes
        message = (
            f"Right answers had {groups.upper:,.0f} bytes in {above} {parts} and {groups.lower:,.0f} in {below}, "
            f"headers included."
        )
        return Observation(groups.apart, message)
    message = (
        f"From the first to the last of {len(sizes)} {parts} right answers {'grew' if change > 0 else 'shrank'} by "
        f"{percent(abs(change))}, headers included."
    )
    return Observation(abs(change), message)


def from_end_to_end(sizes: Sequence[float]) -> float:
    """The relative change from the first third to the last third; 0 when it may be chance, by the t test of the logs.

    It detects a single change in the middle, and in the middle of an interval.
    """
    third = len(sizes) // 3
    if third < 2:
        return 0.0
    first, last = np.log(sizes[:third]), np.log(sizes[-third:])
    change = float(last.mean() - first.mean())
    error = math.sqrt((float(first.var(ddof=1)) + float(last.var(ddof=1))) / third)
    if error > 0 and not 2 * t_tail(abs(change) / error, 2 * third - 2) < TREND_P:
        return 0.0
    return math.expm1(change)


def _lengths_are_checked(cell: Cell) -> bool:
    """Whether an answer of another length counts as wrong, which has its own finding."""
    return all(
        (expect.body_length is not None and expect.under_load != "status")
        or (expect.body_sha256 is not None and expect.under_load == "hash")
        for expect in (request.expect for request in cell.scenario.requests)
    )


def _wrong(traffic: Traffic) -> bool:
    """Whether there were wrong answers, whose bytes count as well; they have their own finding."""
    outcomes = traffic.counts.outcomes
    return outcomes.unexpected_status + outcomes.unexpected_body + outcomes.malformed > 0
