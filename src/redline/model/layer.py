"""What each of several layers costs, where baselines have baselines of their own."""

from pydantic import Field

from redline.model.base import Frozen
from redline.model.estimate import Comparison, Estimate


class Layer(Frozen):
    """What one server costs on top of another: one step of a chain, or all of its steps at once.

    Where the two may not be compared, the comparisons say why; `refused` does where there is nothing to compare.
    """

    server: str = Field(description="a variant's slug")
    against: str = Field(description="the slug of what stands below it")
    throughput: Comparison | None = Field(
        default=None, description="null where the load, and not the server, decides how many are answered"
    )
    cpu: Comparison | None = Field(default=None, description="of CPU time per request, as a ratio")
    cpu_ns: Estimate | None = Field(
        default=None, description="CPU time per request, `server` minus `against`: negative when it takes less"
    )
    refused: str = ""

    @property
    def why_not(self) -> tuple[str, ...]:
        """Every reason for which one of its numbers is missing, once."""
        told = [self.refused, *(found.refused for found in (self.throughput, self.cpu) if found)]
        return tuple(dict.fromkeys(reason for reason in told if reason))


class Waterfall(Frozen):
    """A chain of two or more layers in one scenario under one load, from what it begins with upward.

    `whole` is its last server against its first, compared with each other: not the product of the steps.
    """

    scenario: str
    load: str
    base: str = Field(description="the slug of what it begins with")
    base_throughput: Estimate | None = Field(description="null where the load decides, and where it is not known")
    base_cpu: Estimate | None = Field(description="of CPU time per request; null where it is not known")
    steps: tuple[Layer, ...] = Field(min_length=2)
    whole: Layer
