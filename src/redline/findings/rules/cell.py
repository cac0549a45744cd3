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
