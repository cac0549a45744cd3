"""Factors with levels: their coding, what a set of runs can show, and main effects by least squares."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from redline.stats.distributions import f_tail, t_quantile
from redline.stats.samples import CONFIDENCE, Floats

_ALIASED = 1e-6
"""Below this, an interaction's part in a main effect is rounding."""


def contrasts(levels: int) -> Floats:
    """The coding of a factor, shape (levels, levels - 1): orthogonal columns with mean 0 and mean square 1.

    Column i sets level i + 1 against all levels before it: Helmert's contrasts.
    """
    before = np.arange(1, levels)
    coding: Floats = np.triu(np.ones((levels, levels - 1))) - np.eye(levels, levels - 1, -1) * before
    return coding * np.sqrt(levels / (before * (before + 1)))


def coded(runs: Sequence[Sequence[int]], levels: Sequence[int]) -> list[Floats]:
    """The columns of every factor's contrasts, shape (runs, its levels - 1); a run lists the index of each level."""
    indices = np.array(runs, dtype=np.int64).reshape(len(runs), len(levels))
    return [contrasts(count)[indices[:, factor]] for factor, count in enumerate(levels)]


def aliases(factors: Sequence[Floats]) -> list[list[tuple[int, int]]]:
    """For each factor, the pairs of factors whose interaction is confounded with its main effect.

    The largest part comes first. The model has the mean and all main effects. An interaction outside it adds its alias
    matrix times itself to them (G. Box and K. Wilson, On the Experimental Attainment of Optimum Conditions, JRSS B 13,
    1951).
    """
    runs = len(factors[0])
    model = np.linalg.pinv(np.column_stack([np.ones(runs), *factors]))
    ends = np.cumsum([1, *(factor.shape[1] for factor in factors)])
    parts: list[list[tuple[float, tuple[int, int]]]] = [[] for _ in factors]
    for pair in combinations(range(len(factors)), 2):
        matrix = np.abs(model @ interaction(factors[pair[0]], factors[pair[1]]))
        for factor in range(len(factors)):
            part = float(matrix[ends[factor] : ends[factor + 1]].max())
            if part > _ALIASED:
                parts[factor].append((-part, pair))
    return [[pair for _, pair in sorted(of_factor)] for of_factor in parts]


def interaction(first: Floats, second: Floats) -> Floats:
    """The columns of the interaction of two factors, shape (runs, columns of first x columns of second)."""
    columns: Floats = np.einsum("ri,rj->rij", first, second).reshape(len(first), -1)
    return columns


def resolution(factors: Sequence[Floats]) -> Literal["III", "IV", "V"]:
    """III if main effects are mixed with two-factor interactions, IV if only such interactions are mixed, else V."""
    if any(aliases(factors)):
        return "III"
    pairs = [interaction(first, second) for first, second in combinations(factors, 2)]
    both = np.column_stack([np.ones(len(factors[0])), *factors, *pairs])
    return "V" if np.linalg.matrix_rank(both) == both.shape[1] else "IV"


@dataclass(frozen=True)
class FactorEffect:
    """The effect of a factor: every other level minus the first, with its half width, and their joint p-value.

    `p` is the probability of so large an F if no levels differ.
    """

    differences: tuple[tuple[float, float], ...]
    p: float


def main_effects(
    values: Sequence[float], rounds: Sequence[int], factors: Sequence[Floats]
) -> tuple[FactorEffect | None, ...] | None:
    """The main effect of every factor, all else equal, with rounds as further factors; None if no error is known.

    An effect is None if the runs cannot distinguish it from others. The error is the residual of main effects and
    rounds: scatter and interactions.
    """
    y = np.array(values, dtype=np.float64)
    own = np.eye(max(rounds) + 1)[list(rounds)]
    model = np.column_stack([own[:, own.any(axis=0)], *factors])
    rank = int(np.linalg.matrix_rank(model))
    left = len(y) - rank
    if left < 1:
        return None
    inverse = np.linalg.pinv(model.T @ model)
    fitted = inverse @ model.T @ y
    variance = float(((y - model @ fitted) ** 2).sum()) / left
    wide = t_quantile((1 + CONFIDENCE) / 2, left)
    effects: list[FactorEffect | None] = []
    end = model.shape[1] - sum(factor.shape[1] for factor in factors)
    for factor in factors:
        columns = np.arange(end, end + factor.shape[1])
        end += factor.shape[1]
        without = np.delete(model, columns, axis=1)
        if rank - int(np.linalg.matrix_rank(without)) < len(columns):
            effects.append(None)
            continue
        own_inverse = inverse[np.ix_(columns, columns)]
        coding = contrasts(factor.shape[1] + 1)
        steps = coding[1:] - coding[0]
        errors = np.sqrt(variance * np.einsum("ij,jk,ik->i", steps, own_inverse, steps))
        explained = fitted[columns] @ np.linalg.solve(own_inverse, fitted[columns]) / len(columns)
        p = float(explained <= 0)
        if variance > 0:
            p = f_tail(float(explained / variance), len(columns), left)
        differences = zip((steps @ fitted[columns]).tolist(), (wide * errors).tolist(), strict=True)
        effects.append(FactorEffect(tuple(differences), p))
    return tuple(effects)
