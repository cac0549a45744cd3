"""The ratio of two servers of a duet, from its slices and fresh starts. See docs/concepts/statistics.md.

The speed of a shared core changes within some 50 ms, so each slice is compared with its neighbour. Ratios are fitted by
least squares for usual differences and by absolute values beyond (Huber, 1964), since steal makes outliers. The effect
of a server loaded twice in a row, whose caches are warm, is fitted as well. The interval is Student's over starts, and
never narrower than the scatter within starts implies, since few starts may agree by luck.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from redline.lazily import dataclass
from redline.stats.estimate import METHOD_BUILDS, METHOD_HOSTS, Contrast, Spread, both_spreads, contrast_of, over_groups
from redline.stats.samples import BATCHES, Floats

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
USUAL = 1.345
"""In robust standard deviations: values beyond are weighted down. Normal data would lose 5% of their precision."""
ROUNDS, SAME = 20, 1e-6
"""The weights and the fit alternate at most this many times, or until the fit changes by less."""
EXACT = 1e-9
"""Logarithms closer than this are equal: if most fit exactly, the distances of the others would be rounding errors."""
FEWEST_IN_BATCH = 2
"""The fewest slices of a server in a batch."""
_TWO_SIDED = 1.96
"""The standard deviations within which a normal value is in 95 of 100 cases."""

METHOD_STARTS = "t interval over fresh starts, each a robust fit to neighbouring slices"
METHOD_WITHIN_STARTS = "t interval with the standard error within starts, wider than over starts"


@dataclass(frozen=True)
class LogRatio:
    """A log ratio over `starts` fresh starts.

    `starts_sd`: the standard deviation of the starts' values, None for a single start. `batch_se`: the standard error
    of a start's value from its batches, None for too few. `hosts`, `builds`: the spread over several. `bias`: how far
    the ratio may be off because servers were not warm, or because other work disturbed some of the requests.
    `resolution`: the relative step of the ratio; 0 if it is continuous.
    """

    value: float
    starts: int
    starts_sd: float | None
    batch_se: float | None
    hosts: Spread | None = None
    bias: float = 0.0
    builds: Spread | None = None
    resolution: float = 0.0

    @property
    def spreads(self) -> dict[str, Spread]:
        """Its spreads by chance, by the names of their methods."""
        spreads = {}
        if self.starts_sd is not None:
            spreads[METHOD_STARTS] = Spread(self.starts_sd**2 / self.starts, self.starts - 1)
        if self.batch_se is not None:
            spreads[METHOD_WITHIN_STARTS] = Spread(self.batch_se**2 / self.starts, self.starts * (BATCHES - 1))
        if self.hosts is not None:
            spreads[METHOD_HOSTS] = self.hosts
        if self.builds is not None:
            spreads[METHOD_BUILDS] = self.builds
        return spreads

    @property
    def contrast(self) -> Contrast:
        """The ratio with its interval, and the spreads for tests of it."""
        return contrast_of(math.exp(self.value), self.spreads, self.starts, self.resolution, self.bias)

    def over(self, other: "LogRatio") -> Contrast:
        """The ratio of two ratios to the same baseline, which were measured at different times.

        Their starts are independent. What slows a server and its baseline alike is in neither.
        """
        ours, theirs = self.spreads, other.spreads

        def of(spreads: dict[str, Spread], name: str) -> Spread | None:
            """Where builds or hosts do not differ, starts are what scatters."""
            return spreads.get(name) or (None if name == METHOD_WITHIN_STARTS else spreads.get(METHOD_STARTS))

        known = {name: both_spreads(of(ours, name), of(theirs, name)) for name in dict.fromkeys((*ours, *theirs))}
        # Without the spread over starts of both, the scatter within starts would be too little.
        whole = known.get(METHOD_STARTS) is not None
        spreads = {f"{name}, of two runs": spread for name, spread in known.items() if spread is not None and whole}
        starts, bias = min(self.starts, other.starts), self.bias + other.bias
        resolution = math.hypot(self.resolution, other.resolution)
        return contrast_of(math.exp(self.value - other.value), spreads, starts, resolution, bias)

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95% interval of the logarithm; infinite if the spread is unknown."""
        ratio = self.contrast.ratio
        if ratio.low is None or ratio.high is None:
            return -math.inf, math.inf
        return math.log(ratio.low), math.log(ratio.high)

    @property
    def between_sd(self) -> float | None:
        """The standard deviation of starts beyond the scatter of their batches; 0 if the batches explain all of it.

        None for a single start, or if too few batches are known to tell the two apart.
        """
        if self.starts_sd is None or self.batch_se is None:
            return None
        return math.sqrt(max(0.0, self.starts_sd**2 - self.batch_se**2))


@dataclass(frozen=True)
class Slices:
    """A metric in the slices of a start, in their order: the server that was loaded, and the metric's logarithm.

    Server 0 is the baseline, and the last server is the baseline once more. `again` is true if the previous slice was
    of the same server.
    """

    servers: Ints
    logs: Floats
    again: Bools

    @cached_property
    def _effects(self) -> Floats | None:
        """The log ratio of every server to the first; None if the slices do not tell it."""
        effects = self._effects_of([np.arange(len(self.logs))])
        return None if effects is None else effects[0]

    @cached_property
    def _effects_of_batches(self) -> Floats | None:
        """The same by batch; None if any batch has too few slices of a server, or does not tell it."""
        batches = np.array_split(np.arange(len(self.logs)), BATCHES)
        counts = [np.bincount(self.servers[batch], minlength=self._count) for batch in batches]
        return None if np.min(counts) < FEWEST_IN_BATCH else self._effects_of(batches)

    @property
    def _count(self) -> int:
        return int(self.servers.max()) + 1

    def _effects_of(self, parts: Sequence[Ints]) -> Floats | None:
        """The log ratios of all servers to the first, by part of the slices; None if any part does not tell them.

        All parts are fitted at once: they are many, and short. A shorter one ends with rows of zeros.
        """
        lengths = np.array([len(part) - 1 for part in parts])
        differences = np.zeros((len(parts), lengths.max(), self._count))
        values = np.zeros(differences.shape[:2])
        for of_part, changes, part in zip(differences, values, parts, strict=True):
            again = self.again[part].copy()
            again[0] = False  # it has no predecessor
            columns = np.column_stack((self.servers[part, np.newaxis] == np.arange(1, self._count), again))
            of_part[: len(part) - 1] = np.diff(columns.astype(np.float64), axis=0)
            changes[: len(part) - 1] = np.diff(self.logs[part])
        effects = self._count - 1 + differences[:, :, -1].any(axis=1)
        if (np.linalg.matrix_rank(differences) < effects).any():
            return None  # in so few slices two effects always came together
        fitted = _huber(differences, values, lengths)
        return np.concatenate((np.zeros((len(parts), 1)), fitted[:, :-1]), axis=1)

    def ratio(self, contrast: Floats) -> "StartRatio | None":
        """The log ratio for a contrast of the servers, which weights their logarithms and sums to 0.

        Every server must have a slice. None if there are too few slices to tell the servers apart, and from the order
        in which they ran.
        """
        if self._effects is None:
            return None
        value = float(contrast @ self._effects)
        if self._effects_of_batches is None:
            return StartRatio(value, None)
        return StartRatio(value, float(np.std(self._effects_of_batches @ contrast, ddof=1)) / math.sqrt(BATCHES))


@dataclass(frozen=True)
class StartRatio:
    """The log ratio of a start, and its standard error; None if it has too few slices."""

    value: float
    standard_error: float | None


def shares_around(q: float, slices: int) -> tuple[float, float]:
    """The shares of requests between which a quantile may lie where other work disturbs whole slices of a server.

    All requests of a slice then count as one, so that so many `slices` of each server are the sample (Kish, Survey
    Sampling, 1965). The ends are those of the 95% interval of a share (Woodruff, J. of the American Statistical
    Association 47, 1952), of one server against the two copies of another.
    """
    half = _TWO_SIDED * math.sqrt((1 + 1 / 2) * q * (1 - q) / slices)
    return max(q - half, 0.0), min(q + half, 1.0)


def _huber(differences: Floats, values: Floats, lengths: Ints) -> Floats:
    """Fit coefficients of `differences` to `values`: by least squares for usual values, robustly for the others.

    Parts x rows x columns, parts x rows; gives parts x columns. The first rows of a part count, as many as its length.
    """
    beyond = np.arange(values.shape[1]) >= lengths[:, np.newaxis]
    parts, middle = np.arange(len(values)), ((lengths - 1) // 2, lengths // 2)
    fitted = _least_squares(differences, values, np.ones(values.shape))
    settled = np.zeros(len(values), dtype=bool)
    for _ in range(ROUNDS):
        apart = np.abs(values - (differences @ fitted[..., np.newaxis])[..., 0])
        apart[beyond] = np.inf
        ordered = np.sort(apart, axis=1)
        median = (ordered[parts, middle[0]] + ordered[parts, middle[1]]) / 2
        usual = np.maximum(USUAL * 1.4826 * median, EXACT)[:, np.newaxis]
        again = _least_squares(differences, values, usual / np.maximum(apart, usual))
        before, fitted = fitted, np.where(settled[:, np.newaxis], fitted, again)
        settled |= np.abs(fitted - before).max(axis=1) < SAME
        if settled.all():
            break
    return fitted


def _least_squares(columns: Floats, values: Floats, weights: Floats) -> Floats:
    """Fit coefficients by the normal equations: the columns are few, and of similar size. That of zeros is 0."""
    weighted = columns.swapaxes(1, 2) * weights[:, np.newaxis]
    normal, diagonal = weighted @ columns, np.arange(columns.shape[2])
    normal[:, diagonal, diagonal] += normal[:, diagonal, diagonal] == 0
    return np.asarray(np.linalg.solve(normal, weighted @ values[..., np.newaxis])[..., 0])


def over_starts(
    starts: Sequence[StartRatio], hosts: Sequence[str] = (), builds: Sequence[str] = (), resolution: float = 0.0
) -> LogRatio:
    """The ratio over all starts, at least one; `hosts` and `builds` are those of the starts, if there are several.

    `resolution` as in `LogRatio`.
    """
    values = np.array([start.value for start in starts])
    errors = [start.standard_error for start in starts if start.standard_error is not None]
    within = math.sqrt(float(np.mean(np.square(errors)))) if errors else None
    between = float(values.std(ddof=1)) if len(values) >= 2 else None
    of_hosts, of_builds = over_groups(values, hosts), over_groups(values, builds)
    return LogRatio(float(values.mean()), len(values), between, within, of_hosts, 0.0, of_builds, resolution)
