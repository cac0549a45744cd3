"""Doubts about a warm-up that was to end when the server is steady."""

from redline.findings.doubt import doubt
from redline.findings.warming import warm_up
from redline.model import Cell, Finding, FindingKind, Recording, Traffic, WarmUp
from redline.quantities import duration, percent


def warmed(cell: Cell, recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """That the server was never steady, or is slower when it is steady than it was before.

    Only where the suite asks for a steady server: whether a fixed warm-up was long enough, `unsteady` tells.
    """
    if not cell.warmup_detect or traffic.ended != "complete":
        return ()
    seen = warm_up(cell, recording)
    in_vain = traffic.measure_start_ns >= cell.warmup_ns
    if seen is None:
        message = "Too few intervals were seen of it to tell whether it was ever steady."
        return doubt(FindingKind.NEVER_STEADY, float(in_vain), message, recording)
    if seen.kind == "never steady":
        return doubt(FindingKind.NEVER_STEADY, 1.0, _never(seen, in_vain=in_vain), recording)
    message = (
        f"Steady since {duration(seen.steady_from_ns or 0)} after its first request, and {percent(seen.lost or 0.0)} "
        f"slower then than at its best before."
    )
    return doubt(FindingKind.SLOWING_DOWN, seen.lost or 0.0, message, recording)


def _never(seen: WarmUp, *, in_vain: bool) -> str:
    since = duration(seen.measured_from_ns)
    if in_vain:
        return f"It was still changing when its warm-up had taken all of {since}, and while it was measured."
    return f"It was steady enough to be measured after {since}, and changed again while it was measured."
