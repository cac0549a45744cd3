"""Why two servers differ: their difference of CPU time per request, divided among functions. Published."""

from typing import Literal, NamedTuple

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate


class TouchedFunction(Frozen):
    """A function that a range of commits touches, by its name in the source."""

    name: str
    within: str = omitted_if_default("", "its class, type or module")
    file: str

    @property
    def text(self) -> str:
        """`Handler.serve (src/handler.py)`."""
        return f"{self.within}.{self.name} ({self.file})" if self.within else f"{self.name} ({self.file})"


class CodeCost(Frozen):
    """The difference of CPU time per request in a function, without what it called, or in a library."""

    name: str
    library: str = omitted_if_default("", "of a function: the library of most of its samples")
    before_ns: float = Field(description="in the baseline, mean of the sampled starts")
    after_ns: float = Field(description="in the server")
    difference_ns: Estimate
    p_adjusted: float | None = Field(description="p-value with Holm's correction for all tested functions or libraries")
    touched: bool | None = omitted_if_default(None, "whether the range of commits touches the function; null without")
    below: str = omitted_if_default("", "a touched function that called it, or its callers, in most of its samples")


class CounterChange(Frozen):
    """What a server needs of something other than CPU time, and what its baseline needs."""

    name: str
    per_request: bool = Field(description="false: the level at the end of a start")
    before: float = Field(description="in the baseline, mean of the starts")
    after: float
    difference: Estimate
    p_adjusted: float = Field(description="p-value with Holm's correction for all counters of the table")
    changed: Literal["surely", "surely not", "not decided"] = Field(
        description="surely not: the whole interval is within the threshold of the comparison"
    )


class FrameChange(NamedTuple):
    """A frame of both servers' stacks with what it called; its caller is the last frame before it of less depth.

    At depth 0 is everything. Costs are per request.
    """

    depth: int
    name: str
    before_ns: float
    after_ns: float
    half_width_ns: float
    changed: Literal["grew", "shrank", "not sure"]


class WhyReport(Frozen):
    """How a server's difference of CPU time per request from its baseline divides among functions.

    `whole_ns` is from starts without a profiler. The functions and `others_ns` are from the sampled starts, and
    `rest_ns` is what they leave of the whole: the three always add up.
    """

    cell_id: str
    baseline_id: str
    starts: int = Field(description="sampled starts that are used")
    lost: int = omitted_if_default(0, "sampled starts that are left out")
    lost_because: str = omitted_if_default("", "why the first of them is left out")
    profiler: str = omitted_if_default("", "its name and version")
    samples: int = omitted_if_default(0, "of both servers")
    whole_ns: Estimate | None = omitted_if_default(None, "the difference without a profiler")
    functions: tuple[CodeCost, ...] = omitted_if_default((), "those that surely differ, the largest difference first")
    tested: int = omitted_if_default(0, "the number of functions that were tested")
    touched: tuple[TouchedFunction, ...] | None = omitted_if_default(
        None, "functions that the range of commits touches, which are tested first; null without a range"
    )
    touched_tested: int = omitted_if_default(0, "sampled functions among the tested ones that match them by name")
    others_ns: Estimate | None = omitted_if_default(None, "the sum of all other functions")
    rest_ns: Estimate | None = omitted_if_default(None, "the part of the whole that is not accounted for")
    libraries: tuple[CodeCost, ...] = omitted_if_default((), "libraries that surely differ")
    frames: SkipJsonSchema[tuple[FrameChange, ...]] = Field(default=(), exclude=True)  # in preorder; for pages
    counters: tuple[CounterChange, ...] = omitted_if_default(
        (), "of the starts without a profiler; system calls of the warm-up of the sampled starts"
    )
    uncounted: str = omitted_if_default("", "why system calls were not counted")
    overhead: Estimate | None = omitted_if_default(
        None, "CPU time per request while sampled over that before, in the same starts"
    )
    problem: str = omitted_if_default("", "why the difference is not accounted for")
