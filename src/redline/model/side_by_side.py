"""Runs of a suite side by side, from several machines or days: the published format of `report A B --json`."""

from typing import Literal, TypeAlias

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.claim import Claim, ClaimResult
from redline.model.estimate import Estimate, Verdict

Outcome: TypeAlias = Literal["held", "differs", "open", "only one"]
"""What became of a comparison from run to run."""


class ShownRun(Frozen):
    """A run among those side by side."""

    label: str = Field(description="run 1, run 2, … as the command names them")
    source: str = Field(description="the directory or the file")
    name: str
    suite: str
    hostname: str
    cpu_model: str
    cores: int
    started_unix_ns: int
    redline: str = Field(description="version of Redline that measured it")
    judged_now: bool = Field(description="judged from its recordings by this version; else as its file says")


class ShownAnswer(Frozen):
    """What a run says of a comparison. Without a ratio, `missing` says why."""

    ratio: Estimate | None
    verdict: Verdict | None = None
    matters: bool | None = omitted_if_default(None, "of faster or slower: whether it may exceed the threshold")
    missing: str = omitted_if_default("")
    unsettled: str = omitted_if_default("", "why the ratio may still move: servers were not warm")


class AnswerRow(Frozen):
    """A comparison of a cell with its baseline: what each run says, in the order of the runs, and what became of it.

    `held`: verdicts agree and intervals overlap. `differs`: the ratios differ by more than chance. `open`: neither is
    sure. `only one`: fewer than two runs have a ratio.
    """

    cell: str = Field(description="the cell's slug")
    baseline: str = Field(description="the slug of the baseline's cell")
    measure: str = Field(description="a metric, or `limit` with the name of its objective")
    primary: bool = Field(description="whether this measure gets a verdict")
    answers: tuple[ShownAnswer, ...]
    outcome: Outcome
    sentence: str
    p_adjusted: float | None = omitted_if_default(
        None, "probability of such different ratios if they are the same, with Holm's correction for the table"
    )

    def with_outcome(self, outcome: Outcome, sentence: str, p_adjusted: float | None) -> "AnswerRow":
        """The row with what became of it."""
        return self.model_copy(update={"outcome": outcome, "sentence": sentence, "p_adjusted": p_adjusted})


class ClaimRow(Frozen):
    """A published claim, and what each run says to it; null where a suite has no such claim."""

    claim: Claim
    results: tuple[ClaimResult | None, ...]


class SideBySide(Frozen):
    """`redline report A B --json`."""

    format: Literal["redline.side-by-side/1"] = "redline.side-by-side/1"
    redline: str = Field(description="version that made this")
    runs: tuple[ShownRun, ...] = Field(min_length=2)
    rows: tuple[AnswerRow, ...]
    claims: tuple[ClaimRow, ...] = omitted_if_default((), "what the suites say was published")
    notices: tuple[str, ...] = Field(description="what may explain a difference, or casts doubt on the comparison")
