"""Which of many commits made a metric worse, if every measurement is uncertain: the probability of each, and the next.

A measured commit is a duet against the oldest one: log ratios of fresh starts, positive if it is worse. The model is
one change of unknown size at one commit, beside no change at all, and several changes. Likelihoods are Student's, with
variances moderated by those of all commits (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).
The next commit is the one whose measurement is expected to tell most for its time (probabilistic bisection: Horstein,
IEEE Transactions on Information Theory 9, 1963; Waeber et al., SIAM Journal on Control and Optimization 51, 2013).
"""

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from redline.stats.distributions import t_quantile

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

CONFIDENCE = 0.95
"""The probability at which a search ends."""
START_SD, START_SD_DF = 0.0065, 2.0
"""The scatter of starts before any is known, and for how many degrees of freedom it counts."""
MODERATION_DF = 8.0
"""For how many degrees of freedom the scatter of all commits counts in that of each."""
BUILD_SD = 0.001
"""How builds of equal speed differ by the layout of their code. More starts do not take it away."""
SAME_SE = 1e-4
"""The error of a commit that builds the same bytes as the oldest one: nothing is measured."""
SIZE_SCALE = 0.05
"""The size of a change before any is known: half of all log ratios are below (Cauchy, so that none is too large)."""
NO_CHANGE, SEVERAL = 0.01, 0.02
"""The probabilities of no change and of several, before anything is measured."""
_SEVERAL_WIDTH = 3.0
"""The level between two changes is anywhere in a range of so many times their sum: before, between, or beyond."""
_TWO_SIDED = 1.96
_ALIKE = 2.0
"""A measurement counts whose bias is at most so many times that of the least biased one of its commit."""
_REACH, _GRID = 12.0, 193
"""Sizes are integrated over so many standard errors to each side of the newest commit's level, at so many points."""
_NEAR = np.linspace(-5.0, 5.0, 41)
"""Further points, in standard errors, around a level that is known twice as well or better."""
_NODES = 24


@dataclass(frozen=True)
class MeasuredCommit:
    """A measured commit: the log ratio to the oldest commit in each start.

    `within_se` is the standard error of a start's value by the scatter within it. `is_same`: it builds the same bytes.
    `bias`: how far all starts may be off alike, within which they are in 95 of 100 cases.
    """

    commit: int
    logs: tuple[float, ...]
    within_se: float = 0.0
    is_same: bool = False
    bias: float = 0.0


@dataclass(frozen=True)
class CommitLevel:
    """The log ratio of a commit to the oldest one, with its standard error and degrees of freedom."""

    value: float
    se: float
    df: float


@dataclass(frozen=True)
class CommitGraph:
    """The commits after the oldest one, in an order in which parents come first; the last contains all others.

    `contains[m, k]`: commit m contains the change of commit k. `weights` are prior weights, all above 0.
    `incomparable` commits do not contain the oldest one, from which they differ by more than these changes.
    """

    contains: Bools
    weights: Floats
    incomparable: frozenset[int] = frozenset()

    @classmethod
    def of_parents(
        cls, parents: Sequence[Collection[int]], weights: Sequence[float], incomparable: Collection[int] = ()
    ) -> "CommitGraph":
        """The commits by the numbers of their parents among them."""
        contains = np.eye(len(parents), dtype=np.bool_)
        for commit, above in enumerate(parents):
            for parent in above:
                contains[commit] |= contains[parent]
        return cls(contains, np.asarray(weights, np.float64), frozenset(incomparable))

    @classmethod
    def in_line(cls, weights: Sequence[float]) -> "CommitGraph":
        """Commits of which each contains all before it."""
        count = len(weights)
        return cls(np.tri(count, dtype=np.bool_), np.asarray(weights, np.float64))

    @property
    def last(self) -> int:
        """The newest commit, which contains all others."""
        return len(self.weights) - 1

    @cached_property
    def prior(self) -> Floats:
        """The probability of each commit, if one of them is the only change."""
        shares: Floats = self.weights / self.weights.sum()
        return shares

    def groups(self, testable: Collection[int]) -> list[tuple[int, ...]]:
        """The commits that no measurement of a testable commit tells apart, together."""
        rows = np.packbits(self.contains[sorted(testable)], axis=0)
        alike: dict[bytes, list[int]] = {}
        for commit in range(len(self.weights)):
            alike.setdefault(rows[:, commit].tobytes(), []).append(commit)
        return [tuple(group) for group in alike.values()]


@dataclass(frozen=True)
class Posterior:
    """What is known: the probability that each commit is the only change, of no change, and of several.

    `sizes` are log ratios of the change at each commit of `commits`, as points with their probabilities.
    """

    commits: Floats
    none: float
    several: float
    sizes: Floats
    of_sizes: Floats

    @property
    def best(self) -> int:
        """The most probable commit."""
        return int(np.argmax(self.commits))

    @property
    def size(self) -> tuple[float, float]:
        """The mean and the standard deviation of the change's size."""
        total = self.of_sizes.sum(axis=0)
        total /= total.sum()
        mean = float(total @ self.sizes)
        return mean, math.sqrt(float(total @ (self.sizes - mean) ** 2))

    def size_at(self, commits: Collection[int]) -> tuple[float, float, float]:
        """The log ratio of the change if it is one of these commits: its median and its 95% interval."""
        density = self.of_sizes[sorted(commits)].sum(axis=0)
        below = np.cumsum(density) - density / 2
        low, middle, high = np.interp([0.025, 0.5, 0.975], below / density.sum(), self.sizes)
        return float(middle), float(low), float(high)


def levels(measured: Sequence[MeasuredCommit]) -> dict[int, CommitLevel]:
    """The level of every measured commit, from all starts of its measurements that are least biased."""
    starts: dict[int, list[float]] = {}
    within, biases, least = dict[int, float](), dict[int, float](), dict[int, float]()
    for one in measured:
        least[one.commit] = min(least.get(one.commit, math.inf), one.bias)
    for one in measured:
        if not one.is_same and one.bias <= max(_ALIKE * least[one.commit], BUILD_SD):
            starts.setdefault(one.commit, []).extend(one.logs)
            within[one.commit] = max(within.get(one.commit, 0.0), one.within_se)
            biases[one.commit] = max(biases.get(one.commit, 0.0), one.bias)
    pooled = _pooled([MeasuredCommit(commit, tuple(logs)) for commit, logs in starts.items()])
    found = {one.commit: CommitLevel(0.0, SAME_SE, math.inf) for one in measured if one.is_same}
    for commit, logs in starts.items():
        of_commit = MODERATION_DF + len(logs) - 1
        variance = (MODERATION_DF * pooled + float(np.var(logs)) * len(logs)) / of_commit
        variance = max(variance, within[commit] ** 2)
        se = math.hypot(math.sqrt(variance / len(logs)), BUILD_SD, biases[commit] / _TWO_SIDED)
        found[commit] = CommitLevel(float(np.mean(logs)), se, of_commit)
    return found


def _log_density(values: Floats, at: Floats, se: Floats, df: Floats) -> Floats:
    """Student's density of values around `at`, up to a factor for each value that no hypothesis changes."""
    squared = ((values - at) / se) ** 2
    many = np.isinf(df)
    finite = np.where(many, 1.0, df)
    found: Floats = np.where(many, -squared / 2, -(finite + 1) / 2 * np.log1p(squared / finite))
    return found


def posterior(commits: CommitGraph, measured: Sequence[MeasuredCommit]) -> Posterior:
    """Return what the measurements say. The newest commit has to be among them."""
    known = levels(measured)
    rows = sorted(known)
    value, se, df = (np.array([getattr(known[row], name) for row in rows]) for name in ("value", "se", "df"))
    newest = known[commits.last]
    sizes = _sizes(newest, known.values())
    at_zero = _log_density(value, np.zeros(len(rows)), se, df)
    at_size = _log_density(value[:, np.newaxis], sizes, se[:, np.newaxis], df[:, np.newaxis])
    size_prior = _log_size_prior(sizes) + np.log(np.gradient(sizes))

    contained = commits.contains[rows]
    patterns, members = np.unique(np.packbits(contained, axis=0), axis=1, return_inverse=True)
    members = members.reshape(-1)
    masks = np.unpackbits(patterns, axis=0, count=len(rows)).astype(np.float64)  # measured x groups
    weights: Floats = np.bincount(members, weights=commits.prior, minlength=masks.shape[1]).astype(np.float64)

    single = at_zero.sum() + masks.T @ (at_size - at_zero[:, np.newaxis]) + size_prior
    most = float(max(single.max(), at_zero.sum()))
    density = np.exp(single - most) * (1 - NO_CHANGE - SEVERAL)  # of each group, over sizes
    none = NO_CHANGE * math.exp(float(at_zero.sum()) - most)
    several = SEVERAL * _two_changes((value, se, df), masks, weights, most)
    of_sizes = density[members] * commits.prior[:, np.newaxis]
    total = float(of_sizes.sum()) + none + several
    of_sizes /= total
    return Posterior(of_sizes.sum(axis=1), none / total, several / total, sizes, of_sizes)


def _sizes(newest: CommitLevel, known: Iterable[CommitLevel]) -> Floats:
    """The sizes of a change over which its probability is integrated."""
    sizes = newest.value + newest.se * np.linspace(-_REACH, _REACH, _GRID)
    near = [level.value + level.se * _NEAR for level in known if 2 * level.se <= newest.se]
    found: Floats = np.unique(np.clip(np.concatenate([sizes, *near]), sizes[0], sizes[-1]))
    return found


def _log_size_prior(size: Floats) -> Floats:
    density: Floats = -np.log1p((size / SIZE_SCALE) ** 2) - math.log(SIZE_SCALE * math.pi)
    return density


def _two_changes(seen: tuple[Floats, Floats, Floats], masks: Floats, weights: Floats, most: float) -> float:
    """The likelihood of changes at two commits that measurements tell apart, over exp(`most`), by Laplace's method.

    `seen` are values, their errors and degrees of freedom; `masks` says which of them contain each group of commits.
    """
    value, se, df = seen
    first, second = np.triu_indices(masks.shape[1], k=1)
    if not len(first):
        return 0.0
    one, other = masks[:, first].T, masks[:, second].T  # pairs x measured
    precision = 1 / se**2
    found = np.full(len(first), 0.0)
    total = np.zeros_like(found)
    for which, is_sum in ((one * other, True), (one * (1 - other), False), (other * (1 - one), False)):
        some = which.any(axis=1)
        held = which @ precision
        held[~some] = 1.0
        level = (which @ (precision * value)) / held
        spread = np.sqrt(2 * math.pi / held)
        found += (which * _log_density(value, level[:, np.newaxis], se, df)).sum(axis=1)
        if is_sum:
            total = level
            found += np.where(some, _log_size_prior(level) + np.log(spread), 0.0)
        else:
            width = np.maximum(_SEVERAL_WIDTH * np.abs(total), spread)
            found += np.where(some, np.log(spread / width), 0.0)
    found += ((1 - one) * (1 - other)) @ _log_density(value, np.zeros(len(value)), se, df)
    prior = 2 * weights[first] * weights[second]
    return float((prior * np.exp(np.minimum(found - most, 600.0))).sum())


@dataclass(frozen=True)
class BisectCosts:
    """What a measurement costs: `measure` for the duet itself, and `build` before it if the commit is not built yet."""

    measure: float = 1.0
    build: float = 0.0
    starts: int = 3


def _pooled(measured: Sequence[MeasuredCommit]) -> float:
    """The variance of starts, by all measurements."""
    squares = sum(float(np.var(one.logs)) * len(one.logs) for one in measured)
    df = sum(len(one.logs) - 1 for one in measured)
    return (START_SD_DF * START_SD**2 + squares) / (START_SD_DF + df)


def _information(shares: Floats, apart: float) -> Floats:
    """The expected information, in nats, of a normal value that is 0 or, with a share, `apart` standard deviations."""
    nodes, weights = _nodes()
    told = np.zeros_like(shares)
    for centre, of_centre in ((0.0, 1 - shares), (apart, shares)):
        at = nodes + centre
        ratio = np.exp(np.clip(apart * at - apart**2 / 2, -600, 600))  # of the two densities there
        mixed = 1 - shares[:, np.newaxis] + shares[:, np.newaxis] * ratio
        own = np.log(ratio if centre else np.ones_like(ratio))
        told += of_centre * ((own - np.log(np.maximum(mixed, 1e-300))) @ weights)
    return told


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(_NODES)
    return nodes, weights / weights.sum()


def next_commit(
    commits: CommitGraph,
    measured: Sequence[MeasuredCommit],
    broken: Collection[int],
    known: Posterior,
    costs: BisectCosts = BisectCosts(),
) -> int:
    """The commit whose measurement tells most for its time; commits near those that do not build count for less."""
    size, uncertain = known.size
    inexact = [one for one in measured if not one.is_same]
    within = [one.within_se**2 for one in inexact]
    variance = max(_pooled(inexact), float(np.mean(within or [0.0])))
    se = math.hypot(math.sqrt(variance / costs.starts), BUILD_SD, uncertain)
    total = float(known.commits.sum()) + known.none
    if known.several > 1 - known.several - float(known.commits.max()):
        return _least_fitting(commits, measured, known)
    shares = np.clip(commits.contains @ known.commits / total, 0.0, 1.0)
    built = np.zeros(len(shares), np.bool_)
    built[[one.commit for one in measured]] = True
    score = _information(shares, min(abs(size) / se, 30.0)) / (costs.measure + np.where(built, 0.0, costs.build))
    score *= np.where(built, 1.0, _builds(len(shares), broken))
    score[[*broken, *commits.incomparable]] = -1.0
    score[[one.commit for one in measured if one.is_same]] = -1.0  # it is known
    return int(np.argmax(score))


def _least_fitting(commits: CommitGraph, measured: Sequence[MeasuredCommit], known: Posterior) -> int:
    """The measured commit whose level fits least to one change at the most probable commit."""
    size, _ = known.size
    contains = commits.contains[:, known.best]
    misfits = {
        commit: abs(level.value - size * contains[commit]) / level.se for commit, level in levels(measured).items()
    }
    same = {one.commit for one in measured if one.is_same}
    return max(misfits, key=lambda commit: (commit not in same, misfits[commit]))


def _builds(count: int, broken: Collection[int]) -> Floats:
    """How likely each commit builds, by its distance from those that do not; the more do not, the further that goes."""
    chance = np.ones(count)
    for one in broken:
        chance *= 1 - 0.9 * 0.5 ** (np.abs(np.arange(count) - one) / len(broken))
    return chance


@dataclass(frozen=True)
class BisectAnswer:
    """Why a search ends. `commits` hold the change with `probability`: one, or the few that remain."""

    ending: str
    commits: tuple[int, ...] = ()
    probability: float = 0.0


FOUND, SEVERAL_CHANGES, NO_DIFFERENCE, UNDECIDED = "found", "several", "none", "undecided"


def most_measurements(count: int) -> int:
    """The most measurements of a search among so many commits, with those that do not build."""
    return 4 * math.ceil(math.log2(count + 1)) + 12


def answer(commits: CommitGraph, known: Posterior, broken: Collection[int], tried: int) -> BisectAnswer | None:
    """The answer, if one is sure enough, or if no more is `tried`; None to go on."""
    testable = {*range(len(commits.weights))}.difference(broken, commits.incomparable)
    own = [group for group in commits.groups(testable) if known.best in group]
    best = BisectAnswer(FOUND, own[0], float(known.commits[list(own[0])].sum()))
    if best.probability >= CONFIDENCE:
        return best
    if known.several >= CONFIDENCE:
        return BisectAnswer(SEVERAL_CHANGES, (), known.several)
    if known.none >= CONFIDENCE:
        return BisectAnswer(NO_DIFFERENCE, (), known.none)
    if tried >= most_measurements(len(commits.weights)):
        return BisectAnswer(UNDECIDED, best.commits, best.probability)
    return None


Span: TypeAlias = tuple[float, float, float]
"""A log ratio with the ends of its 95% interval."""


def spans(measured: Sequence[MeasuredCommit]) -> dict[int, Span]:
    """The level of every measured commit."""
    return {commit: _span(level.value, level.se, level.df) for commit, level in levels(measured).items()}


@dataclass(frozen=True)
class Rise:
    """The difference of a measured commit from the last measured one that it contains; None for the oldest commit.

    `commits` are those that only the later of the two contains.
    """

    before: int | None
    after: int
    commits: int
    span: Span


def rises(commits: CommitGraph, measured: Sequence[MeasuredCommit]) -> list[Rise]:
    """How the level changes up to each measured commit."""
    found: list[Rise] = []
    known, oldest = levels(measured), CommitLevel(0.0, 0.0, math.inf)
    for commit, level in sorted(known.items()):
        before = max((one for one in known if one != commit and commits.contains[commit, one]), default=None)
        own = commits.contains[commit] if before is None else commits.contains[commit] & ~commits.contains[before]
        last = oldest if before is None else known[before]
        span = _span(level.value - last.value, math.hypot(level.se, last.se), min(level.df, last.df))
        found.append(Rise(before, commit, int(own.sum()), span))
    return found


def _span(value: float, se: float, df: float) -> Span:
    reach = t_quantile(0.975, min(df, 1e6)) * se
    return value, value - reach, value + reach
