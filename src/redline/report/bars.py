"""Successive numbers as bars in a line of text."""

import math
from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_MISSING = "·"


def bars(values: Sequence[float | None], threshold: float) -> str:
    """A bar for every value on a log scale, lowest to highest; `·` for unknown values and 0.

    The scale spans at least four thresholds, so that noise does not look like mountains.
    """
    logs = [math.log(value) if value is not None and value > 0 else None for value in values]
    known = [log for log in logs if log is not None]
    if not known:
        return _MISSING * len(values)
    middle = (min(known) + max(known)) / 2
    half = max((max(known) - min(known)) / 2, 2 * math.log1p(threshold))
    heights = (None if log is None else (log - middle + half) / (2 * half) for log in logs)
    return "".join(
        _MISSING if height is None else _BARS[min(len(_BARS) - 1, int(height * len(_BARS)))] for height in heights
    )


def sparkline(values: Sequence[float]) -> str:
    """A bar for every value on a scale from 0 to the largest; `·` for 0, so that what stands still is seen."""
    most = max(values, default=0.0)
    heights = (value / most if most > 0 else 0.0 for value in values)
    return "".join(_BARS[max(0, math.ceil(height * len(_BARS)) - 1)] if height > 0 else _MISSING for height in heights)
