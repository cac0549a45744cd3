"""Doubts about a cell from how its trials differ: drift over the run, trials that are alike in turn, two groups."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from redline.findings.doubt import doubt
from redline.findings.groups import two_groups
from redline.findings.loads import asks_at_once
from redline.findings.rules import ALIKE_P
from redline.findings.steadiness import trend
from redline.model import Cell, Finding, FindingKind, Recording
from redline.quantities import duration, percent, rate

FEWEST_IN_TURN = 10
"""Trials from which on the beta distribution fits the rank von Neumann ratio (Bartels 1982)."""


@dataclass(frozen=True)
class Figures:
    """One number of each usable trial, in the run's order, and how it is called."""

    name: str
    values: tuple[float, ...]

    def told(self, value: float) -> str:
        """One of them as people read it."""
        return rate(value) if self.name == "rate" else duration(value)


def judge_rounds(cell: Cell, used: Sequence[Recording]) -> tuple[Finding, ...]:
    """The doubts that come from how the trials differ, given the usable ones."""
    figures = _figures(cell, used)
    return (*_run_drift(cell, figures), *_autocorrelation(cell, figures), *_bimodal(cell, figures))


def _figures(cell: Cell, used: Sequence[Recording]) -> Figures:
    """Rates where they are the server's to choose, median response times otherwise."""
    in_order = [one.traffic for one in sorted(used, key=lambda one: one.position) if one.traffic]
    if asks_at_once(cell):
        return Figures("rate", tuple(traffic.rate_per_s for traffic in in_order if traffic.rate_per_s > 0))
    medians = (float(traffic.response.quantile_ns(0.5)) for traffic in in_order)
    return Figures("p50 response time", tuple(median for median in medians if median > 0))


def _run_drift(cell: Cell, figures: Figures) -> tuple[Finding, ...]:
    change = trend(list(figures.values))
    message = (
        f"From the first to the last of {len(figures.values)} trials the {figures.name} "
        f"{'rose' if change > 0 else 'fell'} by {percent(abs(change))}: something changed during the run."
    )
    return doubt(FindingKind.RUN_DRIFT, abs(change), message, cell)


def _autocorrelation(cell: Cell, figures: Figures) -> tuple[Finding, ...]:
    if trend(list(figures.values)):
        return ()  # it is told as a drift
    narrow = too_narrow(figures.values)
    message = (
        f"Trials that followed each other were alike in their {figures.name}, more than chance allows over "
        f"{len(figures.values)} trials: the interval is about {narrow:.2g} times too narrow."
    )
    return doubt(FindingKind.AUTOCORRELATION, narrow - 1.0, message, cell)


def _bimodal(cell: Cell, figures: Figures) -> tuple[Finding, ...]:
    split = two_groups(figures.values)
    if split is None:
        return ()
    below, above = split.sizes
    message = (
        f"The trials fall into two groups: {below} with a {figures.name} near {figures.told(split.lower)}, {above} "
        f"near {figures.told(split.upper)}, {percent(split.apart)} apart and nothing between. Their mean is neither."
    )
    if split.in_turn:
        message += " All of one group came before all of the other, as when something changes during the run."
    return doubt(FindingKind.BIMODAL, split.apart, message, cell)


def too_narrow(values: Sequence[float]) -> float:
    """By how much an interval over these numbers, in their order, is too narrow: 1 when they may be independent.

    With a correlation r from each to the next the variance of a mean is (1 + r) / (1 - r) times what it is without
    (Bartlett 1946). Taken for chance unless the rank version of von Neumann's ratio says otherwise (Bartels 1982),
    which a single wild trial does not move.
    """
    n = len(values)
    if n < FEWEST_IN_TURN:
        return 1.0
    ranks = scipy.stats.rankdata(values) - (n + 1) / 2
    squares = float((ranks**2).sum())
    if squares <= 0:
        return 1.0
    ratio = float((np.diff(ranks) ** 2).sum()) / squares
    shape = 5 * n * (n + 1) * (n - 1) ** 2 / (2 * (n - 2) * (5 * n**2 - 2 * n - 9)) - 0.5
    if not scipy.stats.beta.cdf(ratio / 4, shape, shape) < ALIKE_P:
        return 1.0
    correlation = min(float((ranks[1:] * ranks[:-1]).sum()) / squares, 0.95)
    return float(np.sqrt((1 + correlation) / (1 - correlation)))
