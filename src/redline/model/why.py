"""Why two servers differ: their difference of CPU time per request, divided among functions. Published."""

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Estimate


class CodeCost(Frozen):
    """The difference of CPU time per request in a function, without what it called, or in a library."""

    name: str
    library: str = omitted_if_default("", "of a function: the library of most of its samples")
    before_ns: float = Field(description="in the baseline, mean of the sampled starts")
    after_ns: float = Field(description="in the server")
    difference_ns: Estimate
    p_adjusted: float | None = Field(description="p-value with Holm's correction for all tested functions or libraries")


class WhyReport(Frozen):
    """How a server's difference of CPU time per request from its baseline divides among functions.

    `whole_ns` is from starts without a profiler. The functions and `others_ns` are from the sampled starts, and
    `rest_ns` is what they leave of the whole: the three always add up.
    """

    cell_id: str
    baseline_id: str
    starts: int = Field(description="sampled starts that are used")
    profiler: str = omitted_if_default("", "its name and version")
    samples: int = omitted_if_default(0, "of both servers")
    whole_ns: Estimate | None = omitted_if_default(None, "the difference without a profiler")
    functions: tuple[CodeCost, ...] = omitted_if_default((), "those that surely differ, the largest difference first")
    tested: int = omitted_if_default(0, "the number of functions that were tested")
    others_ns: Estimate | None = omitted_if_default(None, "the sum of all other functions")
    rest_ns: Estimate | None = omitted_if_default(None, "the part of the whole that is not accounted for")
    libraries: tuple[CodeCost, ...] = omitted_if_default((), "libraries that surely differ")
    overhead: Estimate | None = omitted_if_default(
        None, "CPU time per request while sampled over that before, in the same starts"
    )
    problem: str = omitted_if_default("", "why the difference is not accounted for")
