"""What invalid findings leave of the numbers of a load: all, bounds, or nothing."""

from collections.abc import Mapping, Sequence

from redline.findings.growth import slows_as_it_serves
from redline.findings.load import cut_short, rate_missed, send_lateness
from redline.findings.over_time import LATENCY_CHANGED, RATE_CHANGED, UNSTEADY
from redline.findings.table import RULES
from redline.lazily import dataclass
from redline.model import Cell, Finding, Grade, Histogram, Numbers
from redline.model.percentile import Effect


@dataclass(frozen=True)
class Touch:
    """What is left of numbers, and the gravest finding that hides the rest."""

    leaves: Effect
    finding: Finding


Touched = Mapping[Numbers, Touch]
"""The numbers that are not known as they were measured; the others are."""


CHANGES_IN_TIME = frozenset(rule.kind for rule in (UNSTEADY, RATE_CHANGED, LATENCY_CHANGED, slows_as_it_serves))
"""The findings that a number was not the same all the time."""


def touched_by(cell: Cell, findings: Sequence[Finding]) -> Touched:
    """What the invalid findings of a load leave of its numbers.

    A rate that was missed because the client was the limit says nothing more than what limited the client.
    """
    grave = [finding for finding in findings if finding.grade is Grade.INVALID]
    if any(RULES[finding.kind].blames == "client" for finding in grave):
        grave = [finding for finding in grave if finding.kind != rate_missed.kind]
    touches: dict[Numbers, list[Touch]] = {}
    for finding in grave:
        for numbers, leaves in RULES[finding.kind].touches.items():
            # Users who think come later if the client is late, and load the server less: their times have no bound.
            left = "unknown" if leaves == "at most" and not cell.load.is_scheduled else leaves
            touches.setdefault(numbers, []).append(Touch(left, finding))
    return {numbers: touch for numbers, some in touches.items() if (touch := left_by_all(some))}


def ends_early(findings: Sequence[Finding]) -> bool:
    """Whether a trial was not measured to its end: it failed, or was cut short."""
    return any(finding.grade is Grade.INVALID and RULES[finding.kind].ends for finding in findings)


def until_cut(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings that touch what was measured until the load was cut short, for the trial by itself."""
    return tuple(finding for finding in findings if finding.kind != cut_short.kind)


def at_each_time(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings that touch the numbers of single intervals: what changes from one to the next is known in each."""
    return tuple(finding for finding in findings if finding.kind not in CHANGES_IN_TIME)


def left_by_all(touches: Sequence[Touch]) -> Touch | None:
    """What several findings leave of the same numbers: of bounds from both sides neither is sure."""
    if not touches:
        return None
    gravest = next((touch for touch in touches if touch.leaves == "unknown"), touches[0])
    return gravest if len({touch.leaves for touch in touches}) == 1 else Touch("unknown", gravest.finding)


def is_late_at(q: float | None, lateness: Histogram, response: Histogram) -> bool:
    """Whether so much of a percentile of the response times, or of their mean, is the engine's that it is a bound."""
    assert send_lateness.invalid is not None
    late, whole = ((times.mean_ns if q is None else times.quantile_ns(q)) for times in (lateness, response))
    return late > send_lateness.invalid * whole
