"""Explain why a comparison within a budget ended without an answer."""

from collections.abc import Sequence

from redline.errors import DriveError
from redline.model import AttachedServer, DuetRecording, Failure, Metric, Report, Run, Variant
from redline.quantities import duration

_LOG_LINES = 10


def start_failed(run: Run, failure: Failure) -> DriveError:
    """The error for a failed start that ends a comparison, with the last lines of the server's log.

    So users need not look for the log file. The message has one of these lines.
    """
    lines = failure.log_tail.splitlines()[-_LOG_LINES:]
    for end in (-1, 0):
        if lines and failure.message.endswith(lines[end].strip()):
            lines.pop(end)
    said = failure.message + "".join(f"\n    {text}" for text in lines)
    variants = run.manifest.plan.suite.variants
    who = ", ".join(filter(None, map(_revision_of, variants))) if failure.stage in ("launch", "load") else ""
    return DriveError(said, hint=f"{who}; {failure.hint}" if who else failure.hint)


def _revision_of(variant: Variant) -> str:
    """`A: main (1a2b3c4d5)`, if a revision has another name here; otherwise empty."""
    checkout = None if isinstance(variant.entry, AttachedServer) else variant.entry.checkout
    return f"{variant.slug}: {checkout.revision}" if checkout and checkout.revision.name != variant.slug else ""


def unanswered(run: Run, report: Report) -> DriveError | None:
    """The error if no servers could be compared although no start failed or was aborted; None if any could."""
    if report.run.aborted_by or any(comparison.ratio is not None for comparison in report.comparisons):
        return None
    if idle := nothing_due(run.duets):
        return DriveError(idle, hint="measure for longer, or load them more")
    if lost := next((starts for starts in report.lost_starts if starts.all), None):
        return DriveError(lost.reason, hint=lost.hint)
    primary = [comparison for comparison in report.comparisons if comparison.primary]
    measured = [comparison.refused for comparison in primary if comparison.duet is not None or run.duets]
    if refused := next(filter(None, measured), ""):
        return DriveError(refused, hint="`redline load` on that server shows more")
    metric = run.manifest.plan.suite.metric or Metric.CPU_PER_REQUEST
    return DriveError(f"not enough data to compare {metric.words}", hint="measure for longer")


def nothing_due(recordings: Sequence[DuetRecording]) -> str:
    """A message if no request for some server fell due; empty if all servers had requests."""
    loads = [
        recording.traffic for recording in recordings if recording.traffic is not None and recording.traffic.blocks
    ]
    slices = [slice_ for load in loads for block in load.blocks for slice_ in block.slices]
    loaded = {slice_.target for slice_ in slices if slice_.completed or slice_.failed}
    if not slices or loaded == set(range(len(loads[0].targets))):
        return ""
    seconds = sum(slice_.end_ns - slice_.start_ns for slice_ in slices) / len(loads[0].targets)
    lacking = "" if not loaded else " to one of the servers"
    return f"nothing fell due{lacking} in {duration(seconds)} of load"
