"""Many comparisons at once: p-values that may be read as if each comparison were the only one."""

from collections.abc import Sequence


def holm(ps: Sequence[float]) -> tuple[float, ...]:
    """Each p-value adjusted for all of them, in their order.

    The i-th smallest of m counts m - i + 1 times, and none is smaller than one before it. Calling different what has
    at most 5% after that calls any of the equal ones different in at most 5% of families, however they depend on
    each other (S. Holm, A Simple Sequentially Rejective Multiple Test Procedure, Scandinavian J. of Statistics, 1979).
    """
    adjusted = [1.0] * len(ps)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(ps)), key=lambda each: ps[each])):
        largest = max(largest, min(1.0, (len(ps) - place) * ps[index]))
        adjusted[index] = largest
    return tuple(adjusted)
