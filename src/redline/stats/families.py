"""Adjusted p-values for families of comparisons that answer the same question. See docs/decisions/0035-families.md."""

from collections.abc import Hashable, Sequence

import numpy as np


def holm_adjust(ps: Sequence[float]) -> tuple[float, ...]:
    """Adjust p-values by Holm's method, in their order: every adjusted value can be read by itself.

    The i-th smallest of m is multiplied by m - i + 1, and none is smaller than its predecessor (S. Holm, A Simple
    Sequentially Rejective Multiple Test Procedure, Scandinavian J. of Statistics, 1979).
    """
    adjusted = [1.0] * len(ps)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[index]))
        adjusted[index] = largest
    return tuple(adjusted)


def adjust(ps: Sequence[float], servers: Sequence[Hashable]) -> tuple[float, ...]:
    """Adjust the p-values of a family, in their order; `servers` has the server of every p-value.

    Holm's method within a server; among servers, the false discovery rate is 5%. Source: Y. Benjamini and M. Bogomolov,
    Selective Inference on Multiple Families of Hypotheses, J. of the Royal Statistical Society B 76, 2014.
    """
    places: dict[Hashable, list[int]] = {}
    for place, server in enumerate(servers):
        places.setdefault(server, []).append(place)
    own = [1.0] * len(ps)
    for of_server in places.values():
        for place, p in zip(of_server, holm_adjust([ps[place] for place in of_server]), strict=True):
            own[place] = p
    if not ps:
        return ()
    smallest = np.sort([min(own[place] for place in of_server) for of_server in places.values()])
    times = len(smallest) / np.arange(1, len(smallest) + 1)
    # The levels at which 1, 2, ... all servers are called different (Benjamini and Hochberg, 1995).
    levels = np.minimum.accumulate((smallest * times)[::-1])[::-1]
    shares = np.maximum(levels, np.minimum(1.0, np.array(own)[:, np.newaxis] * times))
    return tuple(shares.min(axis=1).tolist())
