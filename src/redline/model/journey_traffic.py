"""What became of journeys: as the engine counts them, and as reports say it."""

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Self

from pydantic import Field, model_validator

from redline.model.base import Frozen, omitted_if_default
from redline.model.histogram import Histogram
from redline.model.percentile import Effect, Percentile, bounded


class JourneyTraffic(Frozen):
    """The journeys that fell due in the measurement. Lists are by request, in the order of the scenario.

    Every journey was completed, abandoned after a step, or unfinished when the load ended.
    """

    due: int = 0
    completed: int = Field(default=0, description="their last steps were answered right")
    abandoned: tuple[int, ...] = Field(default=(), description="ended by a wrong or failed step")
    skipped: tuple[int, ...] = Field(default=(), description="steps that were left out because of their conditions")
    unfinished: int = Field(default=0, description="under way when the load ended, or whose user left")
    again: int = Field(default=0, description="how often users took `once` again")
    response: Histogram = Field(description="of completed journeys: the sum of the steps' response times")
    rows_used_up: bool = omitted_if_default(default=False, description="no row was left for another journey")

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> "JourneyTraffic":
        ended = self.completed + sum(self.abandoned) + self.unfinished
        if not self.due == ended or self.response.count != self.completed:
            raise ValueError(
                f"{self.due} journeys that fell due have {ended} ends, and {self.completed} completed journeys have"
                f" {self.response.count} response times"
            )
        return self

    @classmethod
    def merged(cls, parts: "Iterable[JourneyTraffic | None]") -> Self | None:
        """The sums of the parts; None if a part is unknown, and for no parts."""
        given = list(parts)
        known = [part for part in given if part is not None]
        if not known or len(known) < len(given):
            return None
        return cls(
            due=sum(part.due for part in known),
            completed=sum(part.completed for part in known),
            abandoned=_sums([part.abandoned for part in known]),
            skipped=_sums([part.skipped for part in known]),
            unfinished=sum(part.unfinished for part in known),
            again=sum(part.again for part in known),
            response=Histogram.merged(part.response for part in known),
            rows_used_up=any(part.rows_used_up for part in known),
        )


def _sums(lists: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(map(sum, zip_longest(*lists, fillvalue=0)))


class JourneyReport(Frozen):
    """What became of the journeys of a scenario, in all used trials together; nothing of it is compared by itself."""

    begun_per_s: float | None = Field(description="journeys that fell due per second; null in duets")
    begun: int = Field(description="journeys that fell due: completed, abandoned or unfinished")
    completed: int = Field(description="the last step was answered right")
    abandoned: dict[str, int] = Field(default={}, description="journeys that a wrong or failed step ended, by step")
    skipped: dict[str, int] = Field(default={}, description="how often a condition left a step out, by step")
    unfinished: int = Field(default=0, description="under way when the load ended")
    again: int = Field(default=0, description="how often users took `once` again")
    rows_used_up: bool = omitted_if_default(default=False, description="no row was left for another journey")
    response: tuple[Percentile, ...] = Field(
        description="of completed journeys: the sum of the steps' response times, without think times; ns"
    )

    def bounded(self, leaves: Effect | None) -> "JourneyReport":
        """The same with bounds of its times, as far as findings leave them."""
        return self.model_copy(update={"response": bounded(self.response, leaves)})

    @property
    def ended_early(self) -> int:
        """Abandoned journeys."""
        return sum(self.abandoned.values())
