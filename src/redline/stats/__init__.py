"""Estimates and comparisons over trials: pure arithmetic on recordings. See docs/concepts/statistics.md."""

from redline.stats.estimate import CONFIDENCE, estimate, paired_ratio, unpaired_ratio, verdict
from redline.stats.samples import Quantiles, Ratios, Sample
from redline.stats.trials import SHARES, cpu_per_request_ns, enough_beyond, sample_of, tells

__all__ = [
    "CONFIDENCE",
    "SHARES",
    "Quantiles",
    "Ratios",
    "Sample",
    "cpu_per_request_ns",
    "enough_beyond",
    "estimate",
    "paired_ratio",
    "sample_of",
    "tells",
    "unpaired_ratio",
    "verdict",
]
