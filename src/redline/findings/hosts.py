"""Findings about runs on several hosts: their clocks, and how similar the hosts are."""

from collections.abc import Sequence

from redline.findings.rules import ALL_BUT_COUNTS, LONG_TAILS, Observation, Rule
from redline.model import Cell, Estimate, Finding, LoadShare, OneWay, PairSpeed, Traffic
from redline.model.hosts import HostFacts, one_way_bound_ns
from redline.model.traffic import MOST_CLOCK_ERROR
from redline.quantities import duration, percent
from redline.stats import Trial

FEW = 100
"""The fewest requests for the median of a host to be meaningful."""


@Rule(
    "clock-bound",
    when="requests",
    note=0.02,
    warn=MOST_CLOCK_ERROR,
    biases="one-way times are too long one way, and too short the other",
)
def clock_bound(trial: Trial, traffic: Traffic) -> Observation | None:
    """How far the hosts' clocks may be apart, of the shorter median one-way time.

    A one-way time is off by as much as its two clocks. Above a tenth the report does not show it. Response times are of
    one clock.

    Advice: Let chrony follow a nearer or common source on both hosts; see docs/guide/many-machines.md.
    """
    return observe_clocks(traffic.measured_one_way, trial.recording.hosts)


def observe_clocks(ways: OneWay | None, hosts: tuple[HostFacts, ...]) -> Observation | None:
    """How far the clocks of these hosts may be apart, of the shorter median; None without one-way times or hosts."""
    shortest_ns = None if ways is None else ways.shortest_ns
    if shortest_ns is None or not hosts:
        return None
    bound_ns = one_way_bound_ns(hosts)
    share = 0.0 if bound_ns == 0 else float("inf")
    if bound_ns is None:
        silent = [host.name for host in hosts if host.clock_bound_ns is None]
        message = f"Nobody says how far the clock of {' and '.join(silent)} is off, so one-way times mean nothing."
    elif shortest_ns <= 0:
        message = "A median one-way time is not above 0, so the clocks of the hosts are further apart than they say."
    else:
        share = bound_ns / shortest_ns
        message = (
            f"The clocks of the hosts may be {duration(bound_ns)} apart, which is {percent(share)} of a one-way time"
            f" of {duration(shortest_ns)}."
        )
    return Observation(share, message)


@Rule(
    "clock-stepped",
    when="requests",
    note=0.0001,
    warn=0.001,
    invalid=0.01,
    biases="CPU time and pauses are those of another time; one-way times are off by the step",
    touches=ALL_BUT_COUNTS,
)
def clock_stepped(trial: Trial, traffic: Traffic) -> Observation | None:
    """Share of the measurement's length by which a host's clock was set during it.

    At 1%, CPU time, memory and pauses are those of another time.

    Advice: Let chrony slew the clock (`makestep` only at its start), and keep other programs from setting it.
    """
    stepped = max(trial.recording.hosts, key=lambda host: abs(host.clock_step_ns or 0), default=None)
    if stepped is None or not stepped.clock_step_ns:
        return None
    step_ns = stepped.clock_step_ns
    message = (
        f"The clock of {stepped.name} was set {duration(abs(step_ns))} {'forwards' if step_ns > 0 else 'back'} during"
        f" the trial, which measured for {duration(traffic.seconds * 1e9)}."
    )
    return Observation(abs(step_ns) / (traffic.seconds * 1e9), message)


PAIRS_DIFFER = Rule(
    "pairs-differ",
    note=0.02,
    warn=0.10,
    scatters=True,
    text="""CPU time per request of one server on a pair of hosts, against the others, before the run.

    A cell's interval is as wide as its pairs are apart. Comparisons in a round are not affected.

    Advice: Use hosts of one kind and setting (clock rate, cores, kernel, `redline doctor --hosts`), or one pair.
    """,
)


def pairs_differ(cell: Cell, pairs: Sequence[PairSpeed]) -> tuple[Finding, ...]:
    """The finding about a pair of hosts that differs from the cell's other pairs by more than chance."""
    sure = {pair.host: pair.ratio.value for pair in pairs if pair.ratio and _excludes_one(pair.ratio)}
    if not sure:
        return ()
    host = max(sure, key=lambda name: abs(sure[name] - 1))
    apart = abs(sure[host] - 1)
    says = f"{percent(apart)} {'more' if sure[host] > 1 else 'less'} CPU time"
    message = f"Before the run one server took {says} for a request on {host} than on the other hosts."
    return tuple(PAIRS_DIFFER.findings(Observation(apart, message), cell.id))


def _excludes_one(ratio: Estimate) -> bool:
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


@Rule("load-hosts-differ", when="requests", note=0.10, warn=0.25, biases=LONG_TAILS)
def load_hosts_differ(trial: Trial) -> Observation | None:
    """Distance of the slowest load host's median response time from the fastest one's.

    A host that differs has a local or network problem; the total describes no host.

    Advice: Check that host's clock rate, cores, network card and route; measure with the others alone.
    """
    shares = {
        host.name: host.share
        for host in trial.recording.hosts
        if host.share is not None and host.share.response.count >= FEW
    }
    if len(shares) < 2:
        return None
    medians = {name: share.response.quantile_ns(0.5) for name, share in shares.items()}
    slowest, fastest = max(medians, key=lambda name: medians[name]), min(medians, key=lambda name: medians[name])
    value = medians[slowest] / max(1, medians[fastest]) - 1.0
    message = (
        f"{slowest} saw a median of {duration(medians[slowest])} and {fastest} one of {duration(medians[fastest])},"
        f" {percent(value)} less: {_why(shares[slowest], shares[fastest])}."
    )
    return Observation(value, message)


def _why(slow: LoadShare, fast: LoadShare) -> str:
    late, early = slow.lateness.quantile_ns(0.99), fast.lateness.quantile_ns(0.99)
    if late > 2 * early and late > 1_000_000:
        return f"its engine was later (p99 {duration(late)} against {duration(early)})"
    return "their ways to the server may differ"
