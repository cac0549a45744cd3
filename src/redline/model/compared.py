"""Two runs side by side, or the variants of a run with its baseline: the published format of `compare --json`."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.finding import Finding
from redline.model.report import Comparison


class CompareResult(Frozen):
    """`redline compare --json`."""

    format: Literal["redline.compare/1"] = "redline.compare/1"
    base: str
    other: str
    comparisons: tuple[Comparison, ...]
    by_ratios: bool = omitted_if_default(
        default=False, description="the runs have duets alone: what is compared are their ratios to the same baseline"
    )
    unmatched: tuple[str, ...] = Field(
        description="cells that only one of the two runs has; with one run, skipped cells"
    )
    environment_differs: tuple[str, ...] = Field(description="what may explain a difference, such as `os: 11 -> 12`")
    environment_grave: tuple[str, ...] = Field(
        default=(), description="the grave differences: two runs are then compared only with `--anyway`"
    )
    findings: tuple[Finding, ...] = Field(description="findings about the compared cells, of both runs, the base first")
    of_base: int | None = omitted_if_default(None, "how many `findings` are of the base; absent with one run")
    same: str = omitted_if_default("", "what was built has the same bytes, so that nothing was measured")
    notices: tuple[str, ...] = omitted_if_default((), "what the runs lack, such as starts that were lost")

    @property
    def findings_by_run(self) -> tuple[tuple[str, tuple[Finding, ...]], ...]:
        """The findings of each of two runs, with its name; of one run without a name."""
        if self.of_base is None:
            return (("", self.findings),)
        return (self.base, self.findings[: self.of_base]), (self.other, self.findings[self.of_base :])
