"""Comparisons that are read together are judged together: Holm's correction, by metric. Pure."""

from collections.abc import Sequence

from redline.model import Comparison, Metric
from redline.stats import holm, verdict


def judged_together(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The comparisons with adjusted p-values and the verdicts that these allow; each metric is a family of its own.

    What has no p-value, being refused or resting on one trial, takes no part.
    """
    families: dict[Metric, list[int]] = {}
    for place, comparison in enumerate(comparisons):
        if comparison.p is not None:
            families.setdefault(comparison.metric, []).append(place)
    made = list(comparisons)
    for places in families.values():
        for place, p in zip(places, holm([comparisons[place].p or 0.0 for place in places]), strict=True):
            made[place] = _adjusted(comparisons[place], p, len(places))
    return tuple(made)


def _adjusted(comparison: Comparison, p: float, family: int) -> Comparison:
    if comparison.ratio is None:
        return comparison
    said = verdict(comparison.ratio, comparison.metric, comparison.threshold, p)
    return comparison.model_copy(update={"p_adjusted": p, "family": family, "verdict": said})
