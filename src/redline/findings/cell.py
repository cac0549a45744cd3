"""Doubts about a cell, which need all of its trials or the machine's ceiling."""

from collections.abc import Sequence

from redline.findings.answers import shrinking_between
from redline.findings.doubt import doubt
from redline.findings.loads import asks_at_once
from redline.findings.rounds import judge_rounds
from redline.findings.rules import WANTED_BEYOND, WANTED_TRIALS
from redline.findings.server import server_limited
from redline.model import Cell, Finding, FindingKind, Grade, Recording
from redline.quantities import percent

TAIL = 0.99

REPEAT = "Enough were planned: find out why trials were left out or not made, mend that, and run the suite again."


def usable(recording: Recording, findings: Sequence[Finding]) -> bool:
    """Whether a cell's numbers may rest on this trial: it has traffic and none of its findings is `invalid`."""
    return recording.traffic is not None and all(finding.grade is not Grade.INVALID for finding in findings)


def is_valid(made: int, used: int) -> bool:
    """Whether a cell's numbers may be shown as results, with so many trials made so far and so many of them usable.

    At least half must be usable, and at least two when two were made: what mostly fails is not described by the rest.
    """
    return used >= max(1, min(2, made)) and 2 * used >= made


def judge_cell(
    cell: Cell, used: Sequence[Recording], *, planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The doubts about a cell as a whole, given its usable trials and the ceiling's rate in its scenario and load."""
    return (
        *server_limited(cell, used),
        *_near(cell, used, ceiling_per_s),
        *judge_rounds(cell, used),
        *shrinking_between(cell, used),
        *_too_few_trials(cell, used, planned),
        *_too_few_samples(cell, used),
    )


def _too_few_trials(cell: Cell, used: Sequence[Recording], planned: int) -> tuple[Finding, ...]:
    short = WANTED_TRIALS - len(used)
    trials = "trial is" if len(used) == 1 else "trials are"
    lacks = {0: "there is nothing to report", 1: "there is no interval and nothing can be compared"}
    message = (
        f"{len(used)} usable {trials} left of {planned} planned: {lacks.get(len(used), 'the intervals are wide')}."
    )
    found = doubt(FindingKind.TOO_FEW_TRIALS, short, message, cell)
    if planned < WANTED_TRIALS:
        return found
    return tuple(finding.model_copy(update={"advice": REPEAT}) for finding in found)


def _too_few_samples(cell: Cell, used: Sequence[Recording]) -> tuple[Finding, ...]:
    if not used:
        return ()
    count = sum(one.traffic.response.count for one in used if one.traffic)
    beyond = count * (1 - TAIL)
    message = f"{count:,} requests were measured, so p99 rests on the slowest {beyond:,.0f}."
    return doubt(FindingKind.TOO_FEW_SAMPLES, WANTED_BEYOND - beyond, message, cell)


def _near(cell: Cell, used: Sequence[Recording], ceiling_per_s: float | None) -> tuple[Finding, ...]:
    seconds = sum(one.traffic.seconds for one in used if one.traffic)
    if not asks_at_once(cell) or cell.role == "ceiling" or not ceiling_per_s or seconds <= 0:
        return ()
    rate = sum(one.traffic.counts.completed for one in used if one.traffic) / seconds
    message = (
        f"{rate:,.0f}/s is {percent(rate / ceiling_per_s)} of the {ceiling_per_s:,.0f}/s that a server which does "
        f"nothing reaches here."
    )
    return doubt(FindingKind.NEAR_CEILING, rate / ceiling_per_s, message, cell)
