"""Suite -> its screen: the fraction of each server's variants that shows which of its axes matter. Pure."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import ceil, lcm
from typing import TYPE_CHECKING

from redline import stats
from redline.entry_points import missing_package
from redline.errors import UsageError
from redline.lazily import LateModule, dataclass
from redline.model import Suite, Variant
from redline.wording import part

if TYPE_CHECKING:
    import numpy as np
else:
    np = LateModule("numpy")

_STARTS = 5
_MORE = 1.5  # runs per effect, where they cannot be orthogonal
_MOST = 1_000
_AUGMENTED = 0.01  # share of the information of all variants, to make the first runs of a search no special case
_ORTHOGONAL = 99.9  # percent of the information of orthogonal runs


@dataclass(frozen=True)
class Axes:
    """The axes of a server: their values by name, in the order of the suite, and its variants as levels."""

    values: Mapping[str, tuple[str, ...]]
    runs: tuple[tuple[int, ...], ...]

    @property
    def levels(self) -> list[int]:
        """The number of values of every axis."""
        return [len(values) for values in self.values.values()]


def axes_of_server(variants: Sequence[Variant]) -> Axes:
    """The axes on which the variants of a server differ."""
    settings = [variant.settings for variant in variants]
    values = {name: tuple(dict.fromkeys(setting[name] for setting in settings)) for name in settings[0]}
    varying = {name: known for name, known in values.items() if len(known) > 1}
    runs = tuple(tuple(known.index(setting[name]) for name, known in varying.items()) for setting in settings)
    return Axes(varying, runs)


def by_server(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """The variants of each server, by the name that they share."""
    servers: dict[str, list[Variant]] = {}
    for variant in variants:
        servers.setdefault(variant.server, []).append(variant)
    return servers


def screened(suite: Suite) -> Suite:
    """The suite with a fraction of the variants of each server that has enough. A baseline that is left out is dropped.

    A fraction is D-optimal for the main effects of all axes, over the possible combinations. A server with too few
    combinations for a fraction keeps all of them. Raises UsageError if every server does.
    """
    kept: dict[str, Variant] = {}
    for variants in by_server(suite.variants).values():
        possible = [variant for variant in variants if not variant.misfit]
        axes = axes_of_server(possible) if possible else Axes({}, ())
        chosen = fraction(axes.levels, axes.runs, suite.seed)
        kept |= {variant.slug: variant for variant in (variants if chosen is None else [possible[at] for at in chosen])}
    if len(kept) == len(suite.variants):
        raise UsageError(
            f"a screen of the suite {suite.name} would leave nothing out",
            hint=f"leave out {part('screen')}; it takes a fraction where a server has about twice as many variants as "
            "effects, such as three axes of two values",
        )
    counts = {
        name: sum(not variant.misfit for variant in variants) for name, variants in by_server(suite.variants).items()
    }
    return suite.keeping(tuple(variant for variant in suite.variants if variant.slug in kept)).screening(counts)


def runs_needed(levels: Sequence[int], possible: int) -> int | None:
    """The number of runs of a fraction, at most half of the possible runs; None if that is too few.

    Main effects are orthogonal only if all pairs of levels of two axes are equally frequent. If that takes too many
    runs, the levels of every axis are equally frequent, as far as possible, or not even that.
    """
    effects = 1 + sum(count - 1 for count in levels)
    pairs = lcm(*(first * second for first, second in combinations(levels, 2)))
    for step, least in ((pairs, effects), (lcm(*levels), _MORE * effects), (1, _MORE * effects)):
        runs = ceil(least / step) * step
        if 2 * runs <= possible:
            return runs
    return None


def fraction(levels: Sequence[int], possible: Sequence[Sequence[int]], seed: int) -> list[int] | None:
    """Choose runs among the possible runs: their indices, ascending; None for all of them."""
    runs = runs_needed(levels, len(possible)) if len(levels) > 1 else None
    if runs is None:
        return None
    if len(possible) > _MOST:
        message = f"a server with {len(possible):,} variants is too large for a screen"
        raise UsageError(message, hint=f"write shorter axes: {_MOST:,} variants of a server at most")
    try:
        from pydoe import optimal_design  # noqa: PLC0415 - an extra
    except ImportError:
        raise missing_package(part("screen"), "pydoe", "screen") from None

    factors = stats.coded(possible, levels)
    columns = np.column_stack(factors)
    designs: list[tuple[float, int, list[int]]] = []
    for start in range(_STARTS):
        order = np.random.default_rng((seed, start)).permutation(len(columns))
        design, facts = optimal_design(columns[order], runs, 1, method="fedorov", alpha=_AUGMENTED)
        chosen = sorted({int(np.abs(columns - row).sum(axis=1).argmin()) for row in design})
        mixed = sum(map(len, stats.aliases([factor[chosen] for factor in factors])))
        designs.append((-round(min(facts["D_eff"], _ORTHOGONAL), 1), mixed, chosen))
    return min(designs)[2]
