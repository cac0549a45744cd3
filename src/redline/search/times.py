"""How the time of a search is spent on probes and warm-ups. Pure."""

from dataclasses import dataclass

SETTLE_SHARE, LONGEST_SETTLE_NS = 0.2, 1_000_000_000
"""The warm-up of each probe, as a share of the probe, and its maximum."""
OF_WARM_UPS = 0.5
"""The share of the time in which starts may be warmed up: a server that compiles while it runs is slow at first."""
_APPROACH = 2
"""Probe warm-ups that each start needs besides its own warm-up."""


@dataclass(frozen=True)
class ProbeTimes:
    """The lengths in nanoseconds of a probe, and of the warm-up of a start, which is a maximum if it is detected."""

    probe_ns: int
    warmup_ns: int


def probe_times(lasts_ns: int, searches: int, probes: int, trials: int) -> ProbeTimes:
    """The times with which so many searches last about `lasts_ns` at most.

    `trials` are the fresh starts at the ends of each answer; 0 if servers cannot be started: their ends have one more
    probe each, and their warm-up is as long as that of a probe.
    """
    starts, most = searches * (1 + trials), searches * (probes + 2 * max(trials, 1))
    loads_ns = lasts_ns * (1 - OF_WARM_UPS if trials else 1)
    probe_ns = int(loads_ns / (most * (1 + SETTLE_SHARE) + starts * _APPROACH * SETTLE_SHARE))
    if trials:
        return ProbeTimes(probe_ns, int(lasts_ns * OF_WARM_UPS) // starts)
    return ProbeTimes(probe_ns, min(int(SETTLE_SHARE * probe_ns), LONGEST_SETTLE_NS))
