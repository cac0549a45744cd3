"""Findings about known patterns in response times: multiples of a timer, a pool of workers."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from redline.findings.machine import SETS_THE_PACE, held_share, server_share, throttled_share
from redline.findings.rules import Observation, Rule
from redline.lazily import dataclass
from redline.model import Histogram, Recording, Traffic
from redline.quantities import duration, percent, rate, significant
from redline.stats import Trial
from redline.stats.gaps import FEWEST_BESIDE

MS = 1_000_000
_PERIODS = MS * np.array((1_000, 500, 250, 200, 100, 50, 40, 30, 25, 20, 16, 15, 10, 5, 4, 2))
"""Periods of timers that people and kernels choose. The longest one that fits is meant: multiples of it are also
multiples of its parts."""
_EARLY, _LATE = 0.02, 0.10
"""How far from a multiple a time may be, as a share of the period: the request itself comes on top."""
_SCREENED = 1.01
"""Times that are this much farther are counted as well where periods are ruled out."""
_FITS = 0.95
"""The least share of the times from half a period on that are near a multiple."""
_OF_A_MULTIPLE = 0.05
_LIGHT = 0.3
"""Up to this share of what a server answers at most, three of four requests find even a single worker free."""
_ALIKE = 1.25
"""How much longer than half of the requests three quarters of them may take, if all are the same work."""
_WHOLE = 0.15
"""How far from a whole number a number of workers may be to be that number, as is."""


@Rule("timer-multiples", when="answers", note=0.2)
def timer_multiples(traffic: Traffic) -> Observation | None:
    """Requests whose times lie at two or more multiples of a period of 2 ms to 1 s, up to a tenth later, and hardly any
    elsewhere from half a period on.

    They wait for a timer once, twice, …, such as a poll or a sleep between attempts; or for turns of equal length in a
    pool of workers.

    Advice: Look for a sleep, poll or retry of this length in the server and in what it waits for, and for a pool with
    fewer workers than users.
    """
    values, counts = traffic.response.buckets()
    n = int(counts.sum())
    for period_ns in _possible(values, counts):
        if found := _multiples(values, counts, period_ns):
            share = sum(found.values()) / n
            shown = ", ".join(duration(multiple * period_ns) for multiple in sorted(found)[:3])
            shown += ", …" if len(found) > 3 else ""
            message = (
                f"{percent(share)} of the requests took multiples of {duration(period_ns)} ({shown}), and hardly any a "
                "time between: they waited for a timer, or for turns of that length."
            )
            return Observation(share, message)
    return None


def _possible(values: NDArray[np.int64], counts: NDArray[np.int64]) -> list[int]:
    """The periods that may fit: of all others there are too few times around their multiples, or none are as long."""
    longest_ns = values.max(initial=0)
    periods = _PERIODS[np.searchsorted(-_PERIODS, -2 * longest_ns) :]
    multiples = longest_ns // periods + 1
    if not len(periods) or multiples.sum() > len(values):
        return [int(period_ns) for period_ns in periods]
    first = np.cumsum(multiples) - multiples
    each = np.repeat(periods, multiples)
    middles = each * (np.arange(len(each)) - np.repeat(first, multiples) + 1)
    ends = middles - _SCREENED * _EARLY * each, middles + _SCREENED * _LATE * each
    below = np.concatenate(([0], np.cumsum(counts)))
    before, until = below[np.searchsorted(values, ends)]
    later = below[-1] - below[np.searchsorted(values, periods / 2)]
    fits = np.add.reduceat(until - before, first) >= _FITS * later
    return [int(period_ns) for period_ns in periods[fits]]


def _multiples(values: NDArray[np.int64], counts: NDArray[np.int64], period_ns: int) -> dict[int, int]:
    """The numbers of times near multiples of a period; empty unless nearly all times from half of it on are."""
    later = values >= period_ns / 2
    n = int(counts[later].sum())
    nearest = np.floor(values[later] / period_ns + _EARLY).astype(np.int64)
    beyond = values[later] / period_ns - nearest
    near = (beyond <= _LATE) & (nearest >= 1)
    if counts[later][near].sum() < _FITS * n:
        return {}
    by_multiple = {
        int(multiple): int(counts[later][near & (nearest == multiple)].sum()) for multiple in np.unique(nearest[near])
    }
    many = [count for count in by_multiple.values() if count >= max(FEWEST_BESIDE, _OF_A_MULTIPLE * n)]
    return by_multiple if len(many) > 1 else {}


@dataclass(frozen=True)
class Pace:
    """How a server answered in a probe of a search.

    `busy` is the share of its cores that it used; None if that is unknown, or a quota set the pace. `held` is the share
    that it wanted and did not get.
    """

    overloaded: bool
    answered_per_s: float
    response: Histogram
    busy: float | None
    held: float = 0.0

    @classmethod
    def of(cls, recording: Recording, response: Histogram, answered_per_s: float, *, overloaded: bool) -> "Pace":
        """The pace in a recorded probe."""
        trial = Trial(recording)
        busy = None if throttled_share(trial, "server") > SETS_THE_PACE else server_share(trial)
        return cls(overloaded, answered_per_s, response, busy, held_share(trial))


@Rule("pool-of-workers", when="search", note=0.5)
def pool_of_workers(paces: Sequence[Pace]) -> Observation | None:
    """Idle cores of an overloaded server, if a probe at 30% or less of what it answers is known.

    What it answers at most, times the time of a request under light load, is how many it works on at once (Little's
    law). With idle cores, a pool of workers, threads or connections lets no more through.

    Advice: Enlarge the pool, or shorten what its workers wait for.
    """
    full = max((pace for pace in paces if pace.overloaded), key=lambda pace: pace.answered_per_s, default=None)
    light = min(
        (pace for pace in paces if not pace.overloaded and pace.response.count >= FEWEST_BESIDE),
        key=lambda pace: pace.answered_per_s,
        default=None,
    )
    if full is None or full.busy is None or light is None or light.answered_per_s > _LIGHT * full.answered_per_s:
        return None
    half_ns, most_ns = light.response.quantile_ns(0.5), light.response.quantile_ns(0.75)
    at_once = full.answered_per_s * half_ns / 1e9
    if most_ns > _ALIKE * half_ns or at_once < 1 - _WHOLE:
        return None
    whole = round(at_once)
    workers = str(whole) if abs(at_once - whole) <= _WHOLE else f"about {significant(at_once, 2)}"
    one = workers == "1"
    message = (
        f"The server answers no more than {rate(full.answered_per_s)}, and uses {percent(full.busy)} of its cores then."
        f" Under light load a request takes {duration(half_ns)}, so it works on {workers} at a time: "
        + ("a single worker, or a lock," if one else f"a pool of {workers} workers, threads or connections,")
        + " its own or of what it waits for."
    )
    return Observation(1 - min(full.busy + full.held, 1.0), message)
