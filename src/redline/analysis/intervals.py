"""Every interval that a run or a search recorded, as rows for other programs. Nothing is judged. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Literal

from pydantic import Field

from redline.analysis.distributions import cell_names, start_name
from redline.model import Cell, DuetRecording, Histogram, Interval, Manifest, Outcomes, Recording, Run, Series
from redline.model.base import Frozen
from redline.model.profile import Subject
from redline.model.search import ProbeRecording
from redline.model.traffic import Phase
from redline.stats import enough_beyond

_QUANTILES = {"p50_ns": 0.5, "p75_ns": 0.75, "p90_ns": 0.9, "p95_ns": 0.95, "p99_ns": 0.99, "p999_ns": 0.999}


class IntervalRow(Frozen):
    """An interval of a load, or a slice of a duet. Null: not known, or not recorded of that kind.

    Times of requests are response times, in nanoseconds. A percentile is null where too few requests lie beyond it.
    """

    kind: Literal["interval", "slice"]
    cell: str = Field(description="slug of the cell; its id where two cells have the same slug")
    trial: str = Field(description="`trial-1`; in a duet `start-1`, or `start-1.control`; in a search `search-7`")
    phase: Phase
    index: int = Field(description="number of the interval in its load, or of the block in its duet, from 0")
    start_ns: int = Field(description="since the load began; the warm-up begins at 0")
    end_ns: int
    start_unix_ns: int | None = Field(description="null while the load runs")
    answered_per_s: float | None = Field(description="right answers per second; of a slice, after its guard")
    completed: int = Field(description="right answers received in it")
    failed: int
    due: int | None
    outcomes: Outcomes | None = Field(description="of the requests whose outcome was known in it")
    p50_ns: int | None = None
    p75_ns: int | None = None
    p90_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None
    p999_ns: int | None = None
    max_ns: int | None = None
    engine_cpu_ns: int
    server_cpu_ns: float | None = Field(
        default=None, description="with its proxies; null where it was sampled less than twice in the interval"
    )
    server_rss_bytes: float | None = Field(default=None, description="the most that was sampled, without proxies")
    steal_ns: float | None = Field(default=None, description="CPU time that the host took from the machine")


def interval_row(cell: str, trial: str, interval: Interval, recording: Recording | None = None) -> IntervalRow:
    """The row of an interval: as the engine reports it while the load runs, or with what its recording knows of it."""
    counts, seconds = interval.counts, interval.lasts_ns / 1e9
    traffic = recording.traffic if recording else None
    epoch_unix_ns = traffic.epoch_unix_ns if traffic else None
    return IntervalRow(
        kind="interval",
        cell=cell,
        trial=trial,
        phase=interval.phase,
        index=interval.index,
        start_ns=interval.start_ns,
        end_ns=interval.end_ns,
        start_unix_ns=None if epoch_unix_ns is None else epoch_unix_ns + interval.start_ns,
        answered_per_s=counts.completed / seconds if seconds > 0 else None,
        completed=counts.completed,
        failed=counts.outcomes.errors,
        due=counts.due,
        outcomes=counts.outcomes,
        **_times(interval.response),
        engine_cpu_ns=interval.engine_cpu_ns,
        **_sampled(interval, recording, epoch_unix_ns),
    )


def run_rows(run: Run) -> Iterator[IntervalRow]:
    """The rows of all trials and starts of a run, warm-ups too, in the order in which they were executed."""
    names = cell_names(run.manifest.plan)
    for recording in run.recordings:
        yield from _trial_rows(names[recording.cell_id], f"trial-{recording.round + 1}", recording)
    for duet in run.duets:
        start = start_name(run.manifest.plan, duet.round, duet.cell_ids[:-1])
        yield from _slice_rows([names[cell_id] for cell_id in duet.cell_ids], start, duet)


def search_rows(manifest: Manifest, cell: Cell, probes: Iterable[ProbeRecording]) -> Iterator[IntervalRow]:
    """The rows of all loads of a search on a cell. A load is named by its purpose and the number of its file."""
    name = cell_names(manifest.plan)[cell.id]
    for probe in probes:
        yield from _trial_rows(name, f"{probe.phase}-{probe.recording.position}", probe.recording)


def _trial_rows(cell: str, trial: str, recording: Recording) -> Iterator[IntervalRow]:
    intervals = recording.traffic.intervals if recording.traffic else ()
    return (interval_row(cell, trial, interval, recording) for interval in intervals)


def _sampled(interval: Interval, recording: Recording | None, epoch_unix_ns: int | None) -> dict[str, float | None]:
    """What the monitors sampled within an interval; nothing of another host, whose clock is another."""
    if recording is None or epoch_unix_ns is None or recording.hosts:
        return {}
    window = _Window(recording, epoch_unix_ns + interval.start_ns, epoch_unix_ns + interval.end_ns)
    return {
        "server_cpu_ns": window.server_cpu_ns(),
        "server_rss_bytes": window.server_rss_bytes(),
        "steal_ns": window.increase("steal_ns", "machine"),
    }


class _Window:
    """What the monitors of a trial sampled within an interval, as far as that is enough."""

    def __init__(self, recording: Recording, start_unix_ns: int, end_unix_ns: int) -> None:
        self._recording, self._window = recording, (start_unix_ns, end_unix_ns)

    def server_cpu_ns(self) -> float | None:
        parts = [self.increase("cpu_ns", part) for part in self._recording.parts]
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None

    def server_rss_bytes(self) -> float | None:
        series = self._series("rss_bytes", "server", samples=1)
        return None if series is None else series.most(*self._window)

    def increase(self, name: str, subject: Subject) -> float | None:
        series = self._series(name, subject, samples=2)
        return None if series is None else series.increase(*self._window)

    def _series(self, name: str, subject: Subject, samples: int) -> Series | None:
        """The series, if it has so many samples in the interval: none is made up from those around it."""
        series, (start, end) = self._recording.find(name, subject), self._window
        if series is None:
            return None
        within = bisect_right(series.times_unix_ns, end) - bisect_left(series.times_unix_ns, start)
        return series if within >= samples else None


def _slice_rows(cells: list[str], start: str, duet: DuetRecording) -> Iterator[IntervalRow]:
    traffic = duet.traffic
    if traffic is None:
        return
    for block in traffic.blocks:
        for part in block.slices:
            control = part.target > 0 and cells[part.target] == cells[0]
            yield IntervalRow(
                kind="slice",
                cell=cells[part.target],
                trial=f"{start}.control" if control else start,
                phase=block.phase,
                index=block.index,
                start_ns=part.start_ns,
                end_ns=part.end_ns,
                start_unix_ns=traffic.epoch_unix_ns + part.start_ns,
                answered_per_s=part.measured / part.measured_ns * 1e9 if part.measured_ns > 0 else None,
                completed=part.completed,
                failed=part.failed,
                due=None,
                outcomes=None,
                engine_cpu_ns=part.engine_cpu_ns,
                server_cpu_ns=part.cpu_ns[part.target] if part.cpu_ns else None,
                steal_ns=part.steal_ns,
            )


def _times(response: Histogram) -> dict[str, int]:
    count = response.count
    if not count:
        return {}
    times = zip(_QUANTILES.items(), response.quantiles_ns((*_QUANTILES.values(),)), strict=True)
    return {name: ns for (name, q), ns in times if enough_beyond(count, q)} | {"max_ns": response.max_ns}
