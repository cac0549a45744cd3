"""The cost of each layer of a chain of baselines."""

from pydantic import Field

from redline.model.base import Frozen
from redline.model.estimate import Comparison, Estimate


class Layer(Frozen):
    """What one server costs on top of another: one step of a chain, or all of its steps.

    If the two may not be compared, the comparisons say why. If there is nothing to compare, `refused` does.
    """

    server: str = Field(description="a variant's slug")
    against: str = Field(description="the slug of the server below it")
    throughput: Comparison | None = Field(
        default=None, description="null if the load, and not the server, determines the throughput"
    )
    cpu: Comparison | None = Field(default=None, description="of CPU time per request, as a ratio")
    cpu_ns: Estimate | None = Field(
        default=None, description="CPU time per request, `server` minus `against`: negative if it uses less"
    )
    refused: str = ""

    @property
    def why_not(self) -> tuple[str, ...]:
        """The distinct reasons why numbers are missing."""
        reasons = [self.refused, *(found.refused for found in (self.throughput, self.cpu) if found)]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))


class Waterfall(Frozen):
    """A chain of two or more layers in one scenario under one load, from the bottom upward.

    `whole` compares its last server with its first: it is not the product of the steps.
    """

    scenario: str
    load: str
    base: str = Field(description="the slug of the server at the bottom")
    base_throughput: Estimate | None = Field(description="null if the load determines it, or if it is unknown")
    base_cpu: Estimate | None = Field(description="CPU time per request; null if unknown")
    steps: tuple[Layer, ...] = Field(min_length=2)
    whole: Layer
