"""Estimates and comparisons over trials: pure arithmetic on recordings. See docs/concepts/statistics.md."""

from redline.stats.estimate import (
    ALPHA,
    Contrast,
    estimate,
    paired,
    paired_ratio,
    unpaired,
    unpaired_ratio,
    verdict,
)
from redline.stats.holm import holm
from redline.stats.samples import CONFIDENCE, Quantiles, Ratios, Sample
from redline.stats.trials import SHARES, cpu_per_request_ns, enough_beyond, requests_needed, sample_of, tells

__all__ = [
    "ALPHA",
    "CONFIDENCE",
    "SHARES",
    "Contrast",
    "Quantiles",
    "Ratios",
    "Sample",
    "cpu_per_request_ns",
    "enough_beyond",
    "estimate",
    "holm",
    "paired",
    "paired_ratio",
    "requests_needed",
    "sample_of",
    "tells",
    "unpaired",
    "unpaired_ratio",
    "verdict",
]
