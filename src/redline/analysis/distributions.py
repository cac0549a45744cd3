"""All distributions that a run recorded, unjudged, for other programs. Pure."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from redline.model import DuetRecording, Histogram, Plan, Recording, Run


@dataclass(frozen=True)
class RecordedSpan:
    """The times that were recorded between two instants, in Unix time."""

    start_unix_ns: int
    end_unix_ns: int
    times: Histogram


@dataclass(frozen=True)
class RecordedTimes:
    """The response or service times of a cell in a trial, or in a start of a duet: in total, and over time.

    `cell` is its slug, or its id if another cell has the same slug. `trial` is `trial-1`, `start-1`, or, for the second
    copy of a baseline, `start-1.control`. A duet has a single span, since it does not record times by interval.
    """

    cell: str
    trial: str
    kind: str
    spans: tuple[RecordedSpan, ...]

    @property
    def name(self) -> str:
        """`rust.hyper.SimpleGet.saturate.trial-1.response`."""
        return f"{self.cell}.{self.trial}.{self.kind}"

    @property
    def times(self) -> Histogram:
        """The times of all spans together."""
        return Histogram.merged(span.times for span in self.spans)


def distributions(run: Run) -> Iterator[RecordedTimes]:
    """The measured part of all trials and starts that sent requests, in the order of execution."""
    names = cell_names(run.manifest.plan)
    for recording in run.recordings:
        yield from _of_trial(names[recording.cell_id], recording)
    for duet in run.duets:
        yield from _of_start([names[cell_id] for cell_id in duet.cell_ids], duet)


def cell_names(plan: Plan) -> dict[str, str]:
    """A name for each cell by its id: its slug, or the id where another cell has that slug."""
    often = Counter(cell.slug for cell in plan.cells.values())
    return {cell_id: cell.slug if often[cell.slug] == 1 else cell_id for cell_id, cell in plan.cells.items()}


def _of_trial(slug: str, recording: Recording) -> Iterator[RecordedTimes]:
    """The measurement and its drain, which together contain the requests due in the measurement."""
    traffic = recording.traffic
    if traffic is None or not traffic.counts.due:
        return
    measured = [interval for interval in traffic.intervals if interval.phase != "warmup"]
    for kind in ("response", "service"):
        spans = (
            RecordedSpan(
                traffic.epoch_unix_ns + interval.start_ns,
                traffic.epoch_unix_ns + interval.end_ns,
                interval.response if kind == "response" else interval.service,
            )
            for interval in measured
        )
        yield RecordedTimes(slug, f"trial-{recording.round + 1}", kind, tuple(spans))


def _of_start(names: list[str], duet: DuetRecording) -> Iterator[RecordedTimes]:
    traffic = duet.traffic
    slices = [
        part for block in (traffic.blocks if traffic else ()) if block.phase == "measure" for part in block.slices
    ]
    if traffic is None or not slices:
        return
    start, end = (
        traffic.epoch_unix_ns + edge
        for edge in (min(part.start_ns for part in slices), max(part.end_ns for part in slices))
    )
    for place, target in enumerate(traffic.targets):
        control = place > 0 and names[place] == names[0]
        trial = f"start-{duet.round + 1}{'.control' if control else ''}"
        for kind, times in (("response", target.response), ("service", target.service)):
            yield RecordedTimes(names[place], trial, kind, (RecordedSpan(start, end, times),))
