"""Handmade probes, and a server without a queue: constantly fast up to a rate, and overrun past it."""

from collections.abc import Callable

import numpy as np

from redline.model import Histogram
from redline.search import Evidence, ProbeSlice

MS = 1e6


def probe(rate: float, *, response_ms: float = 1.0, answered: float = 1.0, errors: float = 0.0) -> Evidence:
    """Five even seconds, of which shares are answered or fail; the rest is still open."""
    due = round(rate / 10)
    times = Histogram.of(np.full(due, response_ms * MS))
    each = ProbeSlice(0.1, due, round(due * (answered - errors)), round(due * errors), times)
    return Evidence(rate, (each,) * 50)


def cliff(at_per_s: float) -> Callable[[float], Evidence]:
    """A server without a queue: one millisecond up to a rate; past it more falls due than it can do."""
    return lambda rate: probe(rate, answered=min(1.0, at_per_s / rate))
