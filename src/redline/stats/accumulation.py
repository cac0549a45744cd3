"""What grows with the requests that a server has answered, and not what fills up, or goes up and down. Pure."""

import numpy as np

from redline.lazily import dataclass
from redline.stats.distributions import kendall_p
from redline.stats.samples import Floats
from redline.stats.series import median, slope

BLOCKS = 10
"""Parts of the measurement, with as many answers in each. The smallest value of a part counts: what goes up and down
comes back to it."""

FEWEST_BLOCKS = 8
"""The fewest parts with a sample: with 8, a perfect trend has p = 2 / 8! = 0.00005."""

GOES_ON = 0.75
"""The growth of the second half, over that of the first, from which on it does not end soon. What fills up
exponentially has 0.61 if the measurement takes one of its time constants, and 0.78 if it takes half of one."""

MOST_SPEEDS_UP = 3.0
"""A second half that grows by more than this is a step, and no growth by request."""

LARGEST_STEP = 0.3
"""The largest step from one part to the next, of all growth: an even growth has 0.11."""


@dataclass(frozen=True)
class Accumulation:
    """A value at both ends, and what it grew for each answer."""

    first: float
    last: float
    by_request: float

    @property
    def share(self) -> float:
        """The growth, of the value at the beginning."""
        return (self.last - self.first) / max(self.first, 1.0)


def accumulation(answered: Floats, values: Floats, chance: float) -> Accumulation | None:
    """The growth of a value with the number of answers so far, given both at several times in their order.

    None if it does not grow, if that may be chance (Kendall's test), or if it grows in steps or less and less.
    """
    total = float(answered[-1] - answered[0]) if len(answered) else 0.0
    if total < BLOCKS:
        return None
    part = np.minimum((answered - answered[0]) * BLOCKS / total, BLOCKS - 1).astype(int)
    kept = [part == number for number in range(BLOCKS) if (part == number).any()]
    if len(kept) < FEWEST_BLOCKS:
        return None
    smallest = [int(np.flatnonzero(own)[np.argmin(values[own])]) for own in kept]
    at, lowest = answered[smallest] - answered[0], values[smallest]
    by_request = slope(at.tolist(), lowest)
    if by_request <= 0 or not kendall_p(lowest) < chance or not _goes_on(at, lowest):
        return None
    if float(np.diff(lowest).max()) > LARGEST_STEP * by_request * total:
        return None
    first = median(lowest - by_request * at)
    return Accumulation(first, first + by_request * total, by_request)


def _goes_on(at: Floats, lowest: Floats) -> bool:
    """Whether the second half grows about as fast as the first."""
    half = len(at) // 2
    early, late = (slope(at[part].tolist(), lowest[part]) for part in (slice(half + 1), slice(half, None)))
    return late > 0 and GOES_ON * early <= late <= MOST_SPEEDS_UP * max(early, 1e-300)
