"""The study behind docs/decisions/0020-no-pooling.md: `python -m tests.studies.pooling [REPORTS]` prints its table.

Six comparisons of a report, each paired by round. Does it pay to let them share their variance? By itself (Student's
t), moderated (G. K. Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004), and pooled where
Bartlett's test at 10% does not object. The interval should hold the truth in 95%, of all comparisons and of the one
that really varies most.
"""

import sys

import numpy as np
from scipy import optimize, special, stats

COMPARISONS = 6
SPREADS = {
    "all alike": np.full(COMPARISONS, 0.16),
    "0.10 to 0.25": np.geomspace(0.10, 0.25, COMPARISONS),
    "five of 0.10, one of 0.30": np.array([0.10] * 5 + [0.30]),
}


def moderated(variances: np.ndarray, freedom: int) -> tuple[np.ndarray, np.ndarray]:
    """The variances drawn towards their common part, and the degrees of freedom of each: shape (m,)."""
    logs = np.log(variances) - special.digamma(freedom / 2) + np.log(freedom / 2)
    more = logs.var(ddof=1) - special.polygamma(1, freedom / 2)
    if more <= 1e-3:
        total = freedom * len(variances)
        return np.full_like(variances, variances.mean()), np.full_like(variances, total)
    half = optimize.brentq(lambda x: special.polygamma(1, x) - more, 1e-3, 1e5)
    common = np.exp(logs.mean() + special.digamma(half) - np.log(half))
    prior = min(2 * half, freedom * (len(variances) - 1))
    freedoms = np.full_like(variances, freedom + prior)
    return (prior * common + freedom * variances) / freedoms, freedoms


def pooled(variances: np.ndarray, freedom: int) -> tuple[np.ndarray, np.ndarray]:
    """One variance for all if the test shows no difference, else separate variances."""
    m = len(variances)
    apart = freedom * (m * np.log(variances.mean()) - np.log(variances).sum())
    apart /= 1 + (m / freedom - 1 / (m * freedom)) / (3 * (m - 1))
    if stats.chi2.sf(apart, m - 1) > 0.1:
        return np.full_like(variances, variances.mean()), np.full_like(variances, m * freedom)
    return variances, np.full_like(variances, freedom)


def alone(variances: np.ndarray, freedom: int) -> tuple[np.ndarray, np.ndarray]:
    """Redline's method."""
    return variances, np.full_like(variances, freedom)


METHODS = {"by itself": alone, "moderated": moderated, "pooled if alike": pooled}


def row(name: str, rounds: int, reports: int, stolen: float) -> str:
    """Coverage of all, coverage of the comparison that varies most, and the median half width, by method."""
    sigmas = SPREADS[name]
    held = {method: np.zeros(COMPARISONS) for method in METHODS}
    widths: dict[str, list[float]] = {method: [] for method in METHODS}
    rng = np.random.default_rng([rounds, 41])
    for _ in range(reports):
        logs = rng.normal(0, sigmas[:, np.newaxis], (COMPARISONS, rounds))
        logs += np.where(rng.random(logs.shape) < stolen, rng.choice([-0.7, 0.7], logs.shape), 0.0)
        means, variances = logs.mean(axis=1), logs.var(axis=1, ddof=1)
        for method, share in METHODS.items():
            shared, freedom = share(variances, rounds - 1)
            half = stats.t.ppf(0.975, freedom) * np.sqrt(shared / rounds)
            held[method] += np.abs(means) <= half
            widths[method].append(float(np.median(half)))
    cells = [
        f"{held[method].mean() / reports:.1%} / {held[method][-1] / reports:.1%} / {np.expm1(np.median(width)):.0%}"
        for method, width in widths.items()
    ]
    return f"| {name}{', one trial in nine stolen' if stolen else ''} | {rounds} | {' | '.join(cells)} |"


def main() -> None:
    """Print the table in Markdown."""
    reports = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
    print("| spread of the rounds | rounds |", " | ".join(METHODS), "|\n" + "|---" * (2 + len(METHODS)) + "|")
    for stolen in (0.0, 2 / 9):
        for name in SPREADS:
            for rounds in (3, 5, 9):
                print(row(name, rounds, reports, stolen), flush=True)


if __name__ == "__main__":
    main()
