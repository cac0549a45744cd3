"""What findings say of the use of a trial or a cell: whether its numbers count, and whose doing it is if not."""

from collections.abc import Sequence

from redline.findings.failed import trial_failed
from redline.findings.load import rate_missed
from redline.findings.table import RULES
from redline.model import Cell, Failure, Finding, FindingKind, Grade, Open, Recording


def usable(recording: Recording, findings: Sequence[Finding]) -> bool:
    """Whether a cell's numbers may rest on this trial: it has traffic and none of its findings is `invalid`."""
    return recording.traffic is not None and all(finding.grade is not Grade.INVALID for finding in findings)


def servers_doing(findings: Sequence[Finding], failure: Failure | None = None) -> tuple[FindingKind, ...]:
    """What the server did for which a load is invalid; empty where it is valid, or invalid by other causes.

    A rate that was missed by a client that was itself the limit is none of it, nor is a failure of the engine.
    """
    grave = [finding.kind for finding in findings if finding.grade is Grade.INVALID]
    clients = {rate_missed.kind} if any(RULES[kind].blames == "client" for kind in grave) else set()
    if of_engine(failure):
        clients.add(trial_failed.kind)
    return tuple(kind for kind in grave if RULES[kind].blames == "server" and kind not in clients)


def of_engine(failure: Failure | None) -> bool:
    """Whether the load generator is why a trial failed, which says nothing of the server."""
    return failure is not None and failure.kind == "engine"


def only_lengthened(cell: Cell, findings: Sequence[Finding]) -> bool:
    """Whether an invalid load has true upper bounds of response times all the same: its client was late, no more.

    Requests have to fall due by a schedule. Users who think come later if the client is late, and load the server less.
    """
    shape = cell.load.shape
    grave = {finding.kind for finding in findings if finding.grade is Grade.INVALID}
    lengthening = {kind for kind in grave if RULES[kind].lengthens}
    scheduled = isinstance(shape, Open) or shape.pace_per_s is not None
    return scheduled and bool(grave & lengthening) and grave <= lengthening | {rate_missed.kind}


def is_valid(made: int, used: int) -> bool:
    """Whether a cell's numbers may be shown as results, with so many trials made so far and so many of them usable.

    At least half must be usable, and at least two when two were made: what mostly fails is not described by the rest.
    """
    return used >= max(1, min(2, made)) and 2 * used >= made
