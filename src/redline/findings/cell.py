"""Findings about a cell, which need all of its trials or the machine's ceiling."""

import math
from collections.abc import Sequence

from redline.findings.rules import (
    AUTOCORRELATION_P,
    HOLDS,
    TOO_ALIKE,
    TREND_P,
    WANTED_BEYOND,
    WANTED_TRIALS,
    Observation,
    Rule,
)
from redline.model import Cell, Finding, Metric, ServerFacts
from redline.quantities import duration, percent, rate
from redline.stats import Trial, enough_beyond
from redline.stats.builds import BuildScatter, differing
from redline.stats.series import interval_excess, trend, two_groups

TAIL = 0.99
USELESS = 10.0
"""Trials that cannot show a factor of eleven show nothing: larger resolutions are not spelled out."""

UNUSABLE = "Find out first why none is usable: more trials help only then."
REPEAT = "Enough were planned: find out why trials were left out or not run, fix that, and run the suite again."


def _series(cell: Cell, used: Sequence[Trial]) -> tuple[str, list[float]]:
    """The name and values, in the order of the run, of rates if the server sets them, otherwise of median times."""
    if cell.load.saturates:
        return "rate", [trial.rate_per_s for trial in used if trial.rate_per_s > 0]
    medians = (float(trial.traffic.response.quantile_ns(0.5)) for trial in used if trial.traffic)
    return "p50 response time", [median for median in medians if median > 0]


@Rule("run-drift", when="cell", note=0.02, warn=0.10, scatters=True)
def run_drift(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """*From seven trials on.* Change of the rate (zero think time) or p50 (other loads) from the first trial to the
    last; tested as in [unsteady](#unsteady).

    Trials are interleaved, so a drift spares the ratios, but levels depend on the time.

    Advice: Compare within this run only. Look for what changed: heat, clock rate, other work, a disk that fills.
    """
    name, values = _series(cell, used)
    drift = trend(values, TREND_P)
    message = (
        f"From the first to the last of {len(values)} trials the {name} "
        f"{'rose' if drift > 0 else 'fell'} by {percent(abs(drift))}: something changed during the run."
    )
    return Observation(abs(drift), message)


@Rule("autocorrelation", when="cell", note=0.0, warn=0.5, scatters=True)
def autocorrelation(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """*From ten trials on.* By how much wider the interval should be because consecutive trials are alike, if the rank
    version of von Neumann's ratio (Bartels, 1982) has p < 0.001.

    With a correlation r between neighbours, the interval should be sqrt((1 + r) / (1 - r)) times as wide.

    Advice: Do not trust the interval. Run on another day as well, and look for what comes and goes on this machine.
    """
    name, values = _series(cell, used)
    if trend(values, TREND_P):
        return None  # a drift makes neighbours alike, and is reported itself
    excess = interval_excess(values, AUTOCORRELATION_P)
    message = (
        f"Consecutive trials were more alike in their {name} than chance allows over {len(values)} trials: the "
        f"interval is too narrow by a factor of about {excess:.2g}."
    )
    return Observation(excess - 1.0, message)


@Rule("bimodal", when="cell", note=0.02, warn=0.05, scatters=True)
def bimodal(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """*From five trials on.* Distance of two groups of two or more trials with nothing between: a gap that one group
    shows once in 1,000 times.

    A mean between two modes is neither.

    Advice: Read the single trials, and compare modes with modes. Find what differs between starts of the server.
    """
    name, values = _series(cell, used)
    groups = two_groups(values)
    if groups is None:
        return None
    below, above = groups.sizes
    text = rate if name == "rate" else duration
    message = (
        f"The trials fall into two groups: {below} with a {name} near {text(groups.lower)}, {above} near "
        f"{text(groups.upper)}, {percent(groups.apart)} apart and nothing between. Their mean is neither."
    )
    if groups.one_after_the_other:
        message += " All of one group came before all of the other, as when something changes during the run."
    return Observation(groups.apart, message)


@Rule("kept-services", when="cell", note=0.0, scatters=True)
def kept_services(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """Services of a compose file that ran through several starts of a server, with `fresh: service`.

    What differs from start to start of a database is not part of the interval, which may be too narrow. What a trial
    writes is there in the next.

    Advice: Let all services start afresh, if there is time: leave out `fresh`.
    """
    return observe_kept(cell.variant.entry.name, [trial.recording.server for trial in used])


def observe_kept(name: str, servers: Sequence[ServerFacts | None]) -> Observation | None:
    """That services beside a server ran through several of its starts; None if none did."""
    kept = {service: None for server in servers if server is not None for service in server.kept}
    if not kept:
        return None
    started = max(1, sum(server is not None and not server.kept for server in servers))
    times = "once" if started == 1 else f"{started} times"
    message = (
        f"{', '.join(kept)} of {name} started {times} for {len(servers)} starts of it: how starts of what it needs "
        "would differ is not part of the intervals."
    )
    return Observation(HOLDS, message)


@Rule("builds-differ", when="cell", note=0.0, warn=0.02, scatters=True)
def builds_differ(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """Standard deviation of [builds](../reference/suite.md#builds) beyond that of their trials or starts, if a
    permutation test of the F ratio has p < 0.01.

    Trials of one build share its layout of code.

    Advice: Read the scatter of the builds as the precision, and use more builds (`builds`) to improve it.
    """
    name, values = _series(cell, used)
    builds = [server.build_number for trial in used if (server := trial.recording.server)]
    if len(builds) != len(values):
        return None  # a trial has no value, so values cannot be assigned to trials
    scatter = differing([math.log(value) for value in values], builds)
    return Observation(scatter.between_sd, f"{builds_text(scatter)} in their {name}.") if scatter else None


def builds_text(scatter: BuildScatter) -> str:
    """`The 3 builds differ by 4.1% (standard deviation), and starts of one build by 0.8%`."""
    between, within = percent(scatter.between_sd), percent(scatter.within_sd)
    return f"The {scatter.builds} builds differ by {between} (standard deviation), and starts of one build by {within}"


@Rule("builds-alike", when="cell", note=0.0)
def builds_alike(used: Sequence[Trial]) -> Observation | None:
    """All builds of the server are the same bytes.

    They say nothing about the effect of another layout of code.

    Advice: Leave out `builds`, which costs time here and adds nothing.
    """
    alike = identical_builds([trial.recording.server for trial in used])
    return Observation(HOLDS, f"All {alike} builds are identical.") if alike else None


def identical_builds(servers: Sequence[ServerFacts | None]) -> int:
    """The number of builds of a server, if all are the same bytes; otherwise 0."""
    builds = {server.build_number: server.outputs for server in servers if server and server.outputs}
    return len(builds) if len(builds) > 1 and len(set(builds.values())) == 1 else 0


HOST_MODE = Rule(
    "host-mode",
    note=0.25,
    scatters=True,
    text="""*From five trials on.* How much faster or slower the server's cores were than in the run's median trial, by
    a fixed piece of work before and after the load. [What it shows](simulations.md#the-speed-of-cores).

    A core slows down by a third or more while another hardware thread, perhaps another guest's, runs on it. Fixed work
    varies by 15% within one mode.

    Advice: Compare by duets (`design: duet`), whose slices alternate faster than the host's modes; for levels, run more
    trials, or use a machine whose cores are not shared.
    """,
)


def host_mode(cell: Cell, speeds: Sequence[float]) -> tuple[Finding, ...]:
    """The finding about trials whose server's cores were much faster or slower than in the run's median trial.

    `speeds` are those of the cell's trials: 1.4 is 40% faster, both before and after the load.
    """
    most = max((max(speed, 1 / speed) for speed in speeds), default=1.0)
    observation = Observation(most - 1, f"Just before and after the load, {in_modes(speeds)}.")
    return tuple(HOST_MODE.findings(observation, cell.id))


def in_modes(speeds: Sequence[float]) -> str:
    """`in 12 of 81 trials the server's cores were 31 to 41% faster than in the run's median trial`; empty for none."""
    note = HOST_MODE.note or 0.0
    fast = [speed - 1 for speed in speeds if speed - 1 > note]
    slow = [1 - speed for speed in speeds if 1 / speed - 1 > note]
    counts: list[str] = []
    of_all = f" of {len(speeds)} trials the server's cores were"
    for shares, how in ((fast, "faster"), (slow, "slower")):
        if shares:
            counts.append(f"in {len(shares)}{'' if counts else of_all} {_from_to(shares)} {how}")
    return f"{' and '.join(counts)} than in the run's median trial" if counts else ""


def _from_to(shares: Sequence[float]) -> str:
    low, high = (f"{share:.0%}" for share in (min(shares), max(shares)))
    return low if low == high else f"{low.removesuffix('%')} to {high}"


@Rule("too-few-trials", when="cell", unit="", note=0.0, warn=2.0, invalid=4.0, scatters=True, touches={})
def too_few_trials(used: Sequence[Trial], planned: int) -> Observation | None:
    """Usable trials missing to five: **note** for four or three, **warn** for two or one, **invalid** for none.

    An interval over 5 trials is 1.4 times as wide as over many, over 2 it is 6.5 times as wide; a single trial has
    none.

    Advice: Let `redline run` make more trials: --trials 5 or more.
    """
    trials = "trial is" if len(used) == 1 else "trials are"
    lacks = {
        0: "no number rests on all that was measured",
        1: "there is no interval and no verdict",
        2: "there is no verdict",
    }
    left = (
        "A single trial was planned"
        if planned == len(used) == 1
        else f"{len(used)} usable {trials} left of {planned} planned"
    )
    message = f"{left}: {lacks.get(len(used), 'the intervals are wide')}."
    advice = REPEAT if planned >= WANTED_TRIALS else None if used else UNUSABLE
    return Observation(WANTED_TRIALS - len(used), message, advice=advice)


@Rule("too-few-samples", when="cell", unit="", note=0.0, warn=90.0, scatters=True)
def too_few_samples(used: Sequence[Trial]) -> Observation | None:
    """Requests missing to 100 beyond p99: **note** below 100, **warn** below 10, where p99 is not given.

    100 requests beyond p99 fix it to about 2% if response times fall off exponentially, 10 to about 7%.

    Advice: Measure longer: p99 needs 10,000 requests in all, p99.9 needs 100,000.
    """
    if not used:
        return None
    count = sum(trial.traffic.counts.due for trial in used if trial.traffic)
    beyond = count * (1 - TAIL)
    rests = f"so p99 rests on the slowest {beyond:,.0f}" if enough_beyond(count, TAIL) else "too few for a p99"
    message = f"{count:,} requests were measured, {rests}."
    return Observation(WANTED_BEYOND - beyond, message)


RESOLUTION = Rule(
    "resolution",
    note=0.05,
    scatters=True,
    text="""The smallest difference that an undecided comparison could have shown: half its interval, on logarithms. The
    message says what would show 5%.

    It says nothing about smaller differences.

    Advice: Compare by duets, or add rounds; a quieter machine needs fewer.
    """,
)


def undecided(cell: Cell, shown: Sequence[tuple[Metric, float]], takes: str) -> tuple[Finding, ...]:
    """The finding about differences that a cell's undecided comparisons could have shown, and what less `takes`."""
    names = {Metric.CPU_PER_REQUEST: "CPU per request"}
    parts = " and ".join(
        f"{'more than ' if share > USELESS else ''}{percent(round(min(share, USELESS), 2))}"
        f" in {names.get(metric, metric.value)}"
        for metric, share in shown
    )
    message = f"These rounds show differences from {parts} on; {takes}."
    return tuple(RESOLUTION.findings(Observation(max(share for _, share in shown), message), cell.id))


@Rule("near-ceiling", when="cell", note=0.80, warn=0.95, biases=TOO_ALIKE)
def near_ceiling(cell: Cell, used: Sequence[Trial], ceiling_per_s: float | None) -> Observation | None:
    """*Users with zero think time.* Throughput over that of the ceiling server in the same scenario and load.

    From 80% on, kernel and client do most of the work, which all servers share: throughput ratios move towards 1.

    Advice: Compare CPU per request instead, or give the scenario more work.
    """
    seconds = sum(trial.traffic.seconds for trial in used if trial.traffic)
    if not cell.load.saturates or cell.role == "ceiling" or not ceiling_per_s or seconds <= 0:
        return None
    achieved = sum(trial.traffic.counts.completed for trial in used if trial.traffic) / seconds
    message = (
        f"{achieved:,.0f}/s is {percent(achieved / ceiling_per_s)} of the {ceiling_per_s:,.0f}/s that a server which "
        f"does nothing reaches here."
    )
    return Observation(achieved / ceiling_per_s, message)
