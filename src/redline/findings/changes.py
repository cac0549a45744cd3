"""Where the level of a series changes: outliers clipped, then change points of the mean. Pure.

Sources: Killick, Fearnhead and Eckley 2012 (PELT); Yao 1988 (the penalty); Barrett et al. 2017 (outliers first, and the
order of magnitude of the penalty, for series of virtual machines that warm up).
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FEWEST_POINTS = 3
"""Of a segment: what is shorter is taken for an outlier and clipped."""

WINDOW = 2 * FEWEST_POINTS + 1
"""Points of the running median: a disturbance of up to half of them leaves no trace in it, and a step stays a step."""

FENCE = 3.0
"""Standard deviations from the running median beyond which a value is clipped: 1 in 370 of a normal series."""

PENALTY = 15.0
"""Times log n is what one more change has to explain, in squared noise, as Barrett et al. chose for series like these.
White noise wants 2 (Yao 1988), but neighbouring intervals of a server are alike, and such noise looks like steps: see
`tests/studies/warming.py`."""

HASTY_PENALTY = 5.0
"""The same while a server warms up: to see a change that is none costs a moment, to miss one a trial."""

LEAST_NOISE = 0.005
"""Of the logs: half a percent from interval to interval is never taken for more than noise."""

_OF_NORMAL = 1.4826
"""A normal distribution's standard deviation over its median absolute deviation."""


@dataclass(frozen=True)
class Segment:
    """Points `start` to `end` (exclusive) of a series have one level: their mean."""

    start: int
    end: int
    level: float

    @property
    def n(self) -> int:
        """How many points."""
        return self.end - self.start


def clipped(values: Floats) -> Floats:
    """The series without what is far from its neighbours: single intervals in which something else was going on."""
    middle = scipy.ndimage.median_filter(values, size=WINDOW, mode="nearest")
    off = values - middle
    reach = FENCE * max(_OF_NORMAL * float(np.median(np.abs(off))), LEAST_NOISE)
    return np.asarray(middle + np.clip(off, -reach, reach), dtype=np.float64)


def noise(values: Floats) -> float:
    """The standard deviation from point to point, from the differences of neighbours, so that a step is not in it."""
    steps = np.abs(np.diff(values))
    return max(_OF_NORMAL * float(np.median(steps)) / np.sqrt(2.0), LEAST_NOISE) if len(steps) else LEAST_NOISE


def segments(values: Floats, penalty: float = PENALTY) -> list[Segment]:
    """The levels of a series, in order and without gaps: one for a series of one level, or of too few points to tell.

    The segmentation minimises the squared distances to the levels, in units of the noise, plus `penalty` times log n
    for each change; PELT finds it exactly.
    """
    import ruptures  # noqa: PLC0415 - half a second that only those pay who ask

    ends = [len(values)]
    if len(values) >= 2 * FEWEST_POINTS:
        search = ruptures.KernelCPD(kernel="linear", min_size=FEWEST_POINTS)
        found = search.fit_predict(values[:, None] / noise(values), pen=penalty * float(np.log(len(values))))
        ends = [int(end) for end in found]
    starts = [0, *ends[:-1]]
    return [Segment(start, end, float(values[start:end].mean())) for start, end in zip(starts, ends, strict=True)]
