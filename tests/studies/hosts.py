"""How often intervals hold the truth when trials are dealt to hosts that differ: `python -m tests.studies.hosts`.

Simulated logarithms: a host has its own effect, a trial its own scatter, of standard deviation 1. Printed for
intervals that take trials for independent, and for those with hosts as a random effect (`over_groups`).
"""

import itertools

import numpy as np

from redline.stats.distributions import t_quantile
from redline.stats.estimate import Spread, over_groups

RUNS = 2_000


def main() -> None:
    """Print the table of docs/decisions/0027-host-pairs.md."""
    rng = np.random.default_rng(1)
    print("| hosts | trials of each | hosts differ by | trials alone | with hosts | width |")
    print("|---:|---:|---:|---:|---:|---:|")
    for hosts, each, between in itertools.product((2, 4, 8), (3, 5), (0.0, 0.3, 1.0, 3.0)):
        names = [str(host) for host in range(hosts) for _ in range(each)]
        held, widths = np.zeros(2), np.zeros(2)
        for _ in range(RUNS):
            logs = np.repeat(rng.normal(0, between, hosts), each) + rng.normal(0, 1, hosts * each)
            n = len(logs)
            alone = Spread(float(logs.var(ddof=1)) / n, n - 1)
            found = over_groups(logs, names)
            reaches = [_reach(alone), max(_reach(alone), _reach(found) if found else 0.0)]
            held += [abs(float(logs.mean())) <= reach for reach in reaches]
            widths += reaches
        shares = f"{held[0] / RUNS:.0%} | {held[1] / RUNS:.0%}"
        print(f"| {hosts} | {each} | {between:g} | {shares} | {widths[1] / widths[0]:.1f} |")


def _reach(spread: Spread) -> float:
    return t_quantile(0.975, spread.freedom) * float(np.sqrt(spread.variance))


if __name__ == "__main__":
    main()
