"""How often the interval of a duet holds the truth, and how wide it is, with the noise that was measured.

    python -m tests.studies.duet [SEEDS]

A core shared with others runs at changing speed: the logarithm of the CPU time per request scatters by 18% from slice
to slice of 10 ms, its correlation is .83 between neighbours and .2 after 20 slices, and its steps have heavy tails.
The hypervisor takes time in a share of the slices, which read 3 to 30% more. A server that was loaded just before
costs less. Starts differ by .6%.
"""

import sys

import numpy as np

from redline.stats.duets import Slices, over_starts

SPEED, KEPT, SCATTER, BETWEEN, AGAIN = 0.025, 0.9, 0.04, 0.006, -0.09
CONTRAST = np.array([-0.5, 1, -0.5])


def start(rng: np.random.Generator, blocks: int, truth: float, stolen: float, most: float = 0.3) -> Slices:
    """A start of A, B and A again; steal adds up to `most`, as a logarithm, to a share of the slices."""
    orders = [rng.permutation(3) for _ in range(blocks)]
    servers = np.concatenate([(*order, *order[::-1]) for order in orders])
    effects = np.array([0, truth, 0]) + rng.normal(0, BETWEEN / 1.5**0.5, 3)
    steps = SPEED * rng.standard_t(2, len(servers))
    speed = np.empty(len(servers))
    speed[0] = rng.normal(0, 0.15)
    for at in range(1, len(speed)):
        speed[at] = KEPT * speed[at - 1] + steps[at]
    logs = effects[servers] + speed + rng.normal(0, SCATTER, len(servers))
    again = np.concatenate(([False], servers[1:] == servers[:-1]))
    logs[again] += AGAIN
    hit = rng.random(len(servers)) < stolen
    logs[hit] += rng.uniform(most / 10, most, hit.sum())
    return Slices(servers, logs, again)


def main(seeds: int) -> None:
    """Print a table: of `seeds` duets, how many intervals hold the truth, and how many exclude equality."""
    print(f"{'truth':>6} {'steal':>6} {'starts':>7} {'blocks':>7} {'holds':>7} {'half width':>11} {'found':>7}")
    for stolen in (0.0, 0.1, 0.3):
        for truth in (0.0, 0.02, 0.05):
            for starts, each in ((6, 110), (12, 52), (24, 22)):
                holds = found = 0
                widths = []
                for seed in range(seeds):
                    rng = np.random.default_rng(seed)
                    made = (start(rng, each, truth, stolen).ratio(CONTRAST) for _ in range(starts))
                    ratio = over_starts([ratio for ratio in made if ratio is not None])
                    low, high = ratio.interval
                    holds += low <= truth <= high
                    found += not low <= 0 <= high
                    widths.append((high - low) / 2)
                shown = f"{holds / seeds:7.1%} {np.median(widths):11.2%} {found / seeds:7.1%}"
                print(f"{truth:6.0%} {stolen:6.0%} {starts:7} {each:7} {shown}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
