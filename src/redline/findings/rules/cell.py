"""Doubts about a cell, which need all of its trials. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

CELL = (
    Rule(
        FindingKind.NEAR_CEILING,
        "closed loads without think time or pace: throughput over that of the do-nothing server in the same scenario "
        "and load",
        note=0.80,
        warn=0.95,
        invalid=None,
        reason="From 80% on most of each exchange is the kernel's and the client's work, which all servers share, so "
        "throughput ratios are pressed towards 1.",
        advice="Compare CPU per request instead, or give the scenario more work.",
    ),
    Rule(
        FindingKind.RUN_DRIFT,
        "relative change over the cell's trials, in the run's order, along their Theil-Sen line: of the rate where "
        "users ask at once, of p50 otherwise; where Kendall's test rules out chance",
        note=0.02,
        warn=0.10,
        invalid=None,
        reason="Trials are interleaved, so a drift falls on all cells alike and spares the ratios; but the level "
        "depends on when one measured. 2% is what is worth acting on; past 10% the rounds are of different machines.",
        advice="Compare within this run only; look for what changed: heat, clock rate, a neighbour, a disk that fills.",
    ),
    Rule(
        FindingKind.AUTOCORRELATION,
        "by how much wider the interval over trials should be, where ten or more trials follow each other more "
        "alike than chance allows (rank von Neumann ratio)",
        note=0.0,
        warn=0.5,
        invalid=None,
        reason="An interval over n trials takes them for independent. Neighbours that are alike count less than they "
        "seem: with a correlation r the interval should be sqrt((1 + r) / (1 - r)) times as wide.",
        advice="Do not trust the interval; run on another day as well, and look for what comes and goes on this "
        "machine.",
    ),
    Rule(
        FindingKind.BIMODAL,
        "how far the upper of two groups of trials is above the lower, where the gap between them is no chance: of the "
        "rate where users ask at once, of p50 otherwise",
        note=0.02,
        warn=0.05,
        invalid=None,
        reason="A mean between two modes is neither, and what a start will draw is a lottery: of the JIT, of memory "
        "layout, of how connections fall on threads. 2% is what is worth acting on.",
        advice="Read the single trials, and compare modes with modes; find what differs between starts of the server.",
    ),
    Rule(
        FindingKind.TOO_FEW_TRIALS,
        "usable trials short of 5",
        note=0.0,
        warn=3.0,
        invalid=4.0,
        reason="An interval over n trials has n - 1 degrees of freedom: with 4 it is 1.4 times as wide as with many, "
        "with 1 it is 6.5 times, with a single trial there is none.",
        advice="Run more trials: --trials 5 or more.",
    ),
    Rule(
        FindingKind.TOO_FEW_SAMPLES,
        "requests beyond p99, short of 100",
        note=0.0,
        warn=90.0,
        invalid=None,
        reason="p99 rests on the slowest hundredth alone. 100 requests there fix it to about 2% when response times "
        "fall off exponentially, 10 to about 7%; with fewer than 10 it is not reported.",
        advice="Measure longer: p99 wants 10,000 requests in all, p99.9 wants 100,000.",
    ),
)
