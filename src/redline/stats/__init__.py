"""Estimates and comparisons over trials: pure arithmetic on recordings. See docs/concepts/statistics.md."""

from typing import TYPE_CHECKING

from redline.lazily import offered

if TYPE_CHECKING:
    from redline.stats.abort import AbortJudge, DuetAbortJudge
    from redline.stats.estimate import (
        ALPHA,
        Contrast,
        Decision,
        Spread,
        contrast_of,
        decide,
        paired,
        paired_difference,
        rounds_for,
        scatter_of,
        scatter_showing,
        shown_by,
        unpaired,
        unpaired_ratio,
        within_trials,
    )
    from redline.stats.factorial import aliases, coded
    from redline.stats.families import adjust, holm_adjust
    from redline.stats.samples import CONFIDENCE, LogRatios, Quantiles, Ratios, Sample, pooled
    from redline.stats.trials import (
        QUANTILE_OF,
        Trial,
        TrialNumbers,
        enough_beyond,
        merged_of,
        requests_needed,
        sample_of,
    )
else:
    __getattr__ = offered(__name__)
