"""How the time of a search is spent on probes and warm-ups. Pure."""

from dataclasses import dataclass

SETTLE_SHARE, LONGEST_SETTLE_NS = 0.2, 1_000_000_000
"""The warm-up of a probe, as a share of the probe, and its maximum."""
OF_WARM_UPS = 0.5
"""The share of the time for warming up starts: a server that compiles while it runs is slow at first."""
SHORTEST_DETECTED_NS = 10_000_000_000
"""Below this maximum the end of a warm-up is not detected: little would be seen, and probes need the time."""
PROBE, CONNECTIONS = "probe", 256
"""The name of the load of probes, and its most connections."""
AROUND_NS = 300_000_000
"""What a load takes besides its time, roughly: the engine starts, connects, and waits for the last answers."""
SHORTEST_NS, FEWEST_PROBES = 1_000_000_000, 6
"""The shortest probe, and the fewest probes with which a search may say something, besides those at its ends."""
_LOOKS = 2
"""The probes that look again at early rates at the end, of a server that did not change."""
TRIALS = 3
"""Fresh starts at the ends of each answer."""
RUNNING_PROBE, RUNNING_WARM_UP = "5s", "1s"
"""The lengths of a probe and of the warm-up for a server that is already running."""
FEW_SHARE, FEW_ERRORS = 0.01, "errors < 1%"
"""The objective for errors in a set that has none."""


@dataclass(frozen=True)
class ProbeTimes:
    """The lengths of a probe and of a start's warm-up in nanoseconds; the warm-up's is a maximum if it is detected."""

    probe_ns: int
    warmup_ns: int
    detects: bool


def probe_times(lasts_ns: int, searches: int, probes: int, trials: int) -> ProbeTimes:
    """The times with which this many searches last about `lasts_ns` at most.

    `trials` is the number of fresh starts at the ends of every answer; 0 if servers cannot be started. Two probes look
    again at early rates.
    """
    starts, most = searches * (1 + trials), searches * (probes + 2 * trials + _LOOKS)
    longest_ns = int(lasts_ns * OF_WARM_UPS) // starts
    detects = trials > 0 and longest_ns >= SHORTEST_DETECTED_NS
    loads_ns = lasts_ns - (longest_ns * starts if detects else 0)
    loads_ns -= AROUND_NS * (most + 2 * starts)
    # A start has two further loads, each as long as the warm-up of a probe.
    probe_ns = int(loads_ns / (most * (1 + SETTLE_SHARE) + starts * 2 * SETTLE_SHARE))
    if probe_ns < SHORTEST_NS and lasts_ns >= least_ns(searches, trials):
        probe_ns = SHORTEST_NS  # fewer probes than there may be
    return ProbeTimes(
        probe_ns, longest_ns if detects else min(int(SETTLE_SHARE * probe_ns), LONGEST_SETTLE_NS), detects
    )


def least_ns(searches: int, trials: int) -> int:
    """The least time in which this many searches may say something."""
    loads, starts = FEWEST_PROBES + 2 * max(trials, 1), 1 + trials
    probes_ns = int(loads * (1 + SETTLE_SHARE) * SHORTEST_NS + starts * 2 * SETTLE_SHARE * SHORTEST_NS)
    return searches * (probes_ns + AROUND_NS * (loads + 2 * starts))
