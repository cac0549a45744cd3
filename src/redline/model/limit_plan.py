"""The task of a search of a suite."""

from typing import Literal

from redline.model.base import Frozen
from redline.model.plan import Objective
from redline.model.run import Manifest

SEARCH_FORMAT: Literal["redline.search/1"] = "redline.search/1"


class LimitPlan(Frozen):
    """`search.json`: written once, before the first cell. Its manifest's plan has a round for each fresh start.

    `start_per_s` is the first rate of every cell, if it is not that of the cell's load. `trials` are the fresh
    starts at the ends of each limit, `beyond` whether an overload test follows.
    """

    format: Literal["redline.search/1"] = SEARCH_FORMAT
    manifest: Manifest
    sets: dict[str, tuple[Objective, ...]]
    start_per_s: float | None
    probes: int
    precision: float
    trials: int
    beyond: bool
