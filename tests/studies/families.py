"""How families of comparisons decide: `python -m tests.studies.families [SEEDS]` prints the tables of decision 35.

A report compares servers with a baseline in some scenarios and in two primary metrics, throughput and CPU per
request, which correlate at -.9. Rounds differ by 3% or by 16%, as on a quiet and on a busy virtual machine. The servers
of a round share the baseline's trial of each scenario. P-values are Student's of the log ratios by round: those of
duets' starts, and of trials alone where their blocks scatter less.
"""

import sys
from collections.abc import Callable
from itertools import product

import numpy as np
from scipy import stats

from redline.stats import ALPHA, adjust, holm_adjust
from redline.stats.samples import Floats

SCATTERS = (0.03, 0.16)
ROUNDS = (3, 5, 10)
SHAPES = ((1, 4), (1, 12), (4, 1), (12, 1), (60, 1), (10, 6))
"""Servers and scenarios."""
FACTORS = (1.02, 1.05, 1.5, 6.0)
CORRELATION = -0.9


def chances(rng: np.random.Generator, rounds: int, scatter: float, factors: Floats) -> Floats:
    """The p-values of a report, by metric, server and scenario; `factors` say how much slower each is."""
    covariance = scatter**2 * np.array([[1, CORRELATION], [CORRELATION, 1]])
    trials = rng.multivariate_normal(np.zeros(2), covariance, (len(factors) + 1, factors.shape[1], rounds))
    ratios = trials[1:] - trials[0] + np.log(factors)[:, :, np.newaxis, np.newaxis] * np.array([-1, 1])
    value = np.abs(ratios.mean(axis=2)) / (ratios.std(axis=2, ddof=1) / np.sqrt(rounds))
    return np.asarray(np.moveaxis(2 * stats.t.sf(value, rounds - 1), 2, 0))


def _holm(ps: Floats) -> Floats:
    return np.reshape(holm_adjust(ps.ravel().tolist()), ps.shape)


def _false_discovery(ps: Floats) -> Floats:
    """Benjamini and Hochberg over all comparisons, as if each were of a server of its own."""
    return np.reshape(adjust(ps.ravel().tolist(), range(ps.size)), ps.shape)


def _by_server(ps: Floats) -> Floats:
    servers = np.repeat(np.arange(len(ps)), ps.shape[1])
    return np.reshape(adjust(ps.ravel().tolist(), servers.tolist()), ps.shape)


def _by_question(way: Callable[[Floats], Floats]) -> Callable[[Floats], Floats]:
    return lambda ps: np.array([way(of_metric) for of_metric in ps])


WAYS: dict[str, Callable[[Floats], Floats]] = {
    "Holm, report": _holm,
    "Holm, question": _by_question(_holm),
    "FDR, question": _by_question(_false_discovery),
    "FDR of servers, Holm within": _by_question(_by_server),
}


def rates(seeds: int, rounds: int, scatter: float, factors: Floats) -> dict[str, tuple[float, float, float]]:
    """The power, the false share of those called different, and questions with any false verdict, by method."""
    equal = factors == 1
    sums = {name: np.zeros(3) for name in WAYS}
    for seed in range(seeds):
        ps = chances(np.random.default_rng([seed, rounds, *factors.shape]), rounds, scatter, factors)
        for name, way in WAYS.items():
            said = way(ps) < ALPHA
            false = said[:, equal].sum(axis=1)
            power = said[:, ~equal].mean() if not equal.all() else 0.0
            sums[name] += np.array([power, false.sum() / max(1, said.sum()), (false > 0).mean()]) / seeds
    return {name: (float(one[0]), float(one[1]), float(one[2])) for name, one in sums.items()}


def planted(shape: tuple[int, int], factor: float, share: str) -> Floats:
    """The planted factors: in `one` comparison, or in `half` of them, of whole servers if there are several."""
    factors = np.ones(shape)
    if share == "one":
        factors[0, 0] = factor
    elif shape[0] > 1:
        factors[: shape[0] // 2] = factor
    else:
        factors[:, : shape[1] // 2] = factor
    return factors


def main() -> None:
    """Print the tables in Markdown: equal servers, then half of the comparisons slower by a factor, then one."""
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    heads = " | ".join(WAYS)
    print(f"Questions about equal servers that any difference is called in, {seeds} seeds\n")
    print(f"| rounds | servers | scenarios | {heads} |\n|{'---|' * (3 + len(WAYS))}")
    for rounds, shape in product(ROUNDS, SHAPES):
        found = rates(seeds, rounds, SCATTERS[0], np.ones(shape))
        cells = " | ".join(f"{one[2]:.1%}" for one in found.values())
        print(f"| {rounds} | {shape[0]} | {shape[1]} | {cells} |", flush=True)
    for share in ("half", "one"):
        print(f"\nSlower: {share}. Power / false among those called / questions with any false one\n")
        print(f"| factor | rounds differ by | rounds | servers | scenarios | {heads} |\n|{'---|' * (5 + len(WAYS))}")
        for factor, scatter, rounds, shape in product(FACTORS, SCATTERS, ROUNDS, SHAPES):
            found = rates(seeds, rounds, scatter, planted(shape, factor, share))
            cells = " | ".join(f"{one[0]:.0%} / {one[1]:.1%} / {one[2]:.0%}" for one in found.values())
            print(f"| {factor:g} | {scatter:.0%} | {rounds} | {shape[0]} | {shape[1]} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
