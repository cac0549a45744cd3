"""A stored search: its task, and a recording per load."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.load import Load, Open
from redline.model.plan import Cell, Objective
from redline.model.recording import Recording

LoadPhase = Literal["start", "warmup", "approach", "search", "confirm", "curve", "overload", "over"]


class SearchTerms(Frozen):
    """The task of a search. The plan of its manifest has a round for each fresh start."""

    sets: dict[str, tuple[Objective, ...]] = Field(description="the objectives of each answer, by its name")
    asked: dict[str, tuple[str, ...]] = omitted_if_default(
        {}, description="the names of a cell's sets, by its id; absent: all sets for all cells"
    )
    start_per_s: float | None = Field(description="the first rate of every cell; null: as its load says")
    by_warm_up: bool = omitted_if_default(default=False, description="the first rate is based on the warm-up's rate")
    probes: int = Field(description="at most, per cell")
    precision: float = Field(description="the width of an answer's interval at which it is known, as a share")
    trials: int = Field(description="fresh starts at the ends of each answer")
    beyond: bool = Field(description="whether an overload test follows")
    curve: bool = omitted_if_default(default=True, description="whether missing rates of the curve are probed")
    by_probe: bool = omitted_if_default(default=False, description="servers are alive at once and take turns by probes")
    looks: bool = omitted_if_default(default=False, description="whether early rates are tried again before it ends")
    lasts_ns: int | None = omitted_if_default(None, "the most time of the whole session; null: as long as it takes")
    workers: int | None = omitted_if_default(None, "of the engine; null for a worker on each of its cores")


class ProbeRecording(Frozen):
    """`probes/SLUG/0007.json`: the raw facts of a load of the search on a cell.

    The position of the recording counts the loads of the cell, its round the starts of the server.
    """

    format: Literal["redline.probe/1"] = "redline.probe/1"
    phase: LoadPhase = Field(
        description="start: a start without a load: it, its answers or its stop failed; "
        "warmup: users with zero think time on a fresh start; "
        "approach: then a rate below the first probe; "
        "search, confirm: a probe of the search, with `confirm` on a separate start; curve: a probe for the "
        "curve only; overload: the overload test; over: no load, since the time of the search was over"
    )
    why: str = omitted_if_default("", "why this rate was tried")
    load: Load = Field(description="the load, also if it did not run")
    workers: int = Field(description="of the engine")
    again: bool = omitted_if_default(default=False, description="repeats the previous load, which the host disturbed")
    retries_left: int = Field(description="how often this load, if disturbed, could still be repeated")
    cut: bool = omitted_if_default(default=False, description="ended early by the search: its queue only grew")
    recording: Recording

    def stored_as(self, cell: Cell) -> str:
        """Its file in the directory of a search on this cell."""
        return f"probes/{cell.slug}/{self.recording.position:04d}.json"

    @property
    def start(self) -> int:
        """The number of the server's start, from 0."""
        return self.recording.round

    @property
    def rate_per_s(self) -> float:
        """The requested rate, of a recording its mean; 0 in closed loads."""
        shape = self.load.shape
        return shape.mean_per_s or 0.0 if isinstance(shape, Open) else 0.0

    @property
    def tried(self) -> float:
        """What a search varies: the number of users of a closed load, else the rate."""
        return self.load.connections if self.load.by_users else self.rate_per_s
