"""A suite -> its screen: of each server's variants the fraction that tells which of its axes matter. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil, lcm

import numpy as np

from redline.errors import UsageError
from redline.model import Suite, Variant
from redline.stats.factorial import aliases, coded

_STARTS = 5
_MORE = 1.5  # times as many runs as there are effects, where they cannot be orthogonal
_MOST = 1_000
_AUGMENTED = 0.01  # of the information of all variants, so that the first runs of a search are no special case
_ORTHOGONAL = 99.9  # percent of the information that orthogonal runs would give


@dataclass(frozen=True)
class Axes:
    """The axes of a server: their values by name, in the order of the suite, and its variants as levels."""

    values: Mapping[str, tuple[str, ...]]
    runs: tuple[tuple[int, ...], ...]

    @property
    def levels(self) -> list[int]:
        """How many values the axes have."""
        return [len(values) for values in self.values.values()]


def axes_of_server(variants: Sequence[Variant]) -> Axes:
    """The axes on which the variants of a server differ."""
    settings = [variant.settings for variant in variants]
    values = {name: tuple(dict.fromkeys(setting[name] for setting in settings)) for name in settings[0]}
    varying = {name: known for name, known in values.items() if len(known) > 1}
    runs = tuple(tuple(known.index(setting[name]) for name, known in varying.items()) for setting in settings)
    return Axes(varying, runs)


def by_server(variants: Sequence[Variant]) -> dict[str, list[Variant]]:
    """The variants of each server, by the name of what they have in common."""
    servers: dict[str, list[Variant]] = {}
    for variant in variants:
        servers.setdefault(variant.server, []).append(variant)
    return servers


def screened(suite: Suite) -> Suite:
    """The suite with a fraction of the variants of each server that has enough; a baseline that is left out is none.

    A fraction is D-optimal for the main effects of all axes, over the combinations that are possible. A server with
    too few combinations for a fraction keeps all of them. Raises UsageError where that goes for every server.
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
            hint="leave out --screen; it takes a fraction where a server has about twice as many variants as effects, "
            "such as three axes of two values",
        )
    counts = {
        name: sum(not variant.misfit for variant in variants) for name, variants in by_server(suite.variants).items()
    }
    return suite.keeping(tuple(variant for variant in suite.variants if variant.slug in kept)).screening(counts)


def runs_needed(levels: Sequence[int], possible: int) -> int | None:
    """How many of the possible runs a fraction takes, at most half of them; None where that is too few.

    Main effects are orthogonal only where every pair of levels of two axes comes as often as every other. Where that
    takes too many runs, each level of an axis comes as often as the others, as far as possible; or not even that.
    """
    effects = 1 + sum(count - 1 for count in levels)
    pairs = lcm(*(first * second for first, second in combinations(levels, 2)))
    for step, least in ((pairs, effects), (lcm(*levels), _MORE * effects), (1, _MORE * effects)):
        runs = ceil(least / step) * step
        if 2 * runs <= possible:
            return runs
    return None


def fraction(levels: Sequence[int], possible: Sequence[Sequence[int]], seed: int) -> list[int] | None:
    """Which of the possible runs are taken, in their order; None for all of them."""
    runs = runs_needed(levels, len(possible)) if len(levels) > 1 else None
    if runs is None:
        return None
    if len(possible) > _MOST:
        message = f"a server with {len(possible):,} variants is too large for a screen"
        raise UsageError(message, hint=f"write shorter axes: {_MOST:,} variants of a server at most")
    from pydoe import optimal_design  # noqa: PLC0415 - takes seconds to import, and few commands need it

    factors = coded(possible, levels)
    columns = np.column_stack(factors)
    designs: list[tuple[float, int, list[int]]] = []
    for start in range(_STARTS):
        order = np.random.default_rng((seed, start)).permutation(len(columns))
        design, facts = optimal_design(columns[order], runs, 1, method="fedorov", alpha=_AUGMENTED)
        chosen = sorted({int(np.abs(columns - row).sum(axis=1).argmin()) for row in design})
        mixed = sum(map(len, aliases([factor[chosen] for factor in factors])))
        designs.append((-round(min(facts["D_eff"], _ORTHOGONAL), 1), mixed, chosen))
    return min(designs)[2]
