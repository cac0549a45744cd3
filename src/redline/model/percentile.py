"""A point of a distribution of times."""

from redline.model.base import Frozen


class Percentile(Frozen):
    """A point of a latency distribution: a share `q` of requests took no longer than `ns`."""

    q: float
    ns: int
