"""The trials of several runs, as the trials of one."""

from collections.abc import Sequence

import numpy as np

from redline.stats.samples import Quantiles, Ratios, Sample


def pooled(samples: Sequence[Sample]) -> Sample:
    """All trials of these samples of one metric, in their order, without their course; at least one sample is needed.

    Raises TypeError for samples that do not measure the same.
    """
    first = samples[0]
    ratios = [one for one in samples if isinstance(one, Ratios)]
    if len(ratios) == len(samples):
        over, under = (np.concatenate(parts) for parts in zip(*((one.over, one.under) for one in ratios), strict=True))
        return Ratios(over, under, max(one.resolution for one in ratios))
    quantiles = [one for one in samples if isinstance(one, Quantiles)]
    if len(quantiles) != len(samples) or not isinstance(first, Quantiles):
        raise TypeError("samples of different kinds have no trials in common")
    return Quantiles(tuple(each for one in quantiles for each in one.histograms), first.q, first.resolution)
