"""All distributions and profiles that a run recorded, unjudged, for other programs. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redline.model import (
    Cell,
    DuetRecording,
    Histogram,
    Interval,
    OneWay,
    Plan,
    ProfileFacts,
    ProfileUnit,
    Recording,
    Run,
    Signed,
    Stacks,
    TargetTraffic,
)
from redline.model.hosts import one_way_bound_ns
from redline.model.traffic import earlier_first_byte


@dataclass(frozen=True)
class RecordedSpan:
    """The times that were recorded between two instants, in Unix time."""

    start_unix_ns: int
    end_unix_ns: int
    times: Histogram | Signed


@dataclass(frozen=True)
class RecordedTimes:
    """Times of a cell in a trial, or in a start of a duet: in total, and over time.

    `cell` is its slug, or its id if another cell has the same slug. `trial` is `trial-1`, `start-1`, or, for the second
    copy of a baseline, `start-1.control`. `kind` is `response`, `service` or `first-byte`, or `to-server` or
    `from-server`, which are signed. A duet has a single span, since it does not record times by interval.
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
    def times(self) -> Histogram | Signed:
        """The times of all spans together."""
        signed = [span.times for span in self.spans if isinstance(span.times, Signed)]
        if signed:
            return Signed.merged(signed)
        return Histogram.merged(span.times for span in self.spans if isinstance(span.times, Histogram))


_FIRST_BYTE = "first-byte"
_KINDS: Mapping[str, Callable[[Interval | TargetTraffic], Histogram | Signed | None]] = {
    "response": lambda of: of.response,
    "service": lambda of: of.service,
    _FIRST_BYTE: lambda of: of.first_byte,
    "to-server": lambda of: of.one_way.to_server if of.one_way and of.one_way.to_server.count else None,
    "from-server": lambda of: of.one_way.from_server if of.one_way else None,
}
_ONE_WAY = ("to-server", "from-server")


def distributions(run: Run, *, full: bool = False) -> Iterator[RecordedTimes]:
    """The measured part of all trials and starts that sent requests, in the order of execution.

    `full`: cells are named by their full slugs.
    """
    cells = run.manifest.plan.cells

    def slug_of(cell: Cell, *threads: int) -> str:
        return cell.full_slug(threads) if full else cell.slug

    often = Counter(map(slug_of, cells.values()))

    def name(cell_id: str, threads: int) -> str:
        cell = cells[cell_id]
        return slug_of(cell, threads) if often[slug_of(cell)] == 1 else cell_id

    for recording in run.recordings:
        if recording.traffic is not None and recording.traffic.counts.due:
            yield from _of_trial(name(recording.cell_id, recording.traffic.engine.workers), recording)
    for duet in run.duets:
        if duet.traffic is not None:
            threads = duet.traffic.engine.workers
            names = [name(cell_id, threads) for cell_id in duet.cell_ids]
            yield from _of_start(names, start_name(run.manifest.plan, duet.round, duet.cell_ids[:-1]), duet)


def cell_names(plan: Plan) -> dict[str, str]:
    """A name for each cell by its id: its slug, or the id where another cell has that slug."""
    often = Counter(cell.slug for cell in plan.cells.values())
    return {cell_id: cell.slug if often[cell.slug] == 1 else cell_id for cell_id, cell in plan.cells.items()}


def start_name(plan: Plan, round_: int, cell_ids: Sequence[str]) -> str:
    """`start-1`; `start-1-2` for the second duet of a baseline in a round, which has some if it has many servers.

    `cell_ids` are those of a duet, without its control.
    """
    beside = [duet.cell_ids for duet in plan.duets if duet.round == round_ and duet.cell_ids[0] == cell_ids[0]]
    places = {cell_id: place for place, cell_id in enumerate(plan.cells)}
    beside.sort(key=lambda ids: [places[cell_id] for cell_id in ids])  # rounds have them in orders of their own
    number = 1 + beside.index(tuple(cell_ids)) if tuple(cell_ids) in beside else 1
    return f"start-{round_ + 1}" if number == 1 else f"start-{round_ + 1}-{number}"


def _of_trial(slug: str, recording: Recording) -> Iterator[RecordedTimes]:
    """The measurement and its drain, which together contain the requests due in the measurement."""
    traffic = recording.traffic
    if traffic is None:
        return
    measured = [interval for interval in traffic.intervals if interval.phase != "warmup"]
    one_way = _knows_one_way(traffic.measured_one_way, recording)
    early = earlier_first_byte([traffic]) is not None
    for kind, of in _KINDS.items():
        if (kind in _ONE_WAY and not one_way) or (kind == _FIRST_BYTE and not early):
            continue
        spans = tuple(
            RecordedSpan(traffic.epoch_unix_ns + interval.start_ns, traffic.epoch_unix_ns + interval.end_ns, times)
            for interval in measured
            if (times := of(interval)) is not None
        )
        if spans or kind not in _ONE_WAY:
            yield RecordedTimes(slug, f"trial-{recording.round + 1}", kind, spans)


def _of_start(names: list[str], start: str, duet: DuetRecording) -> Iterator[RecordedTimes]:
    traffic = duet.traffic
    slices = [
        part for block in (traffic.blocks if traffic else ()) if block.phase == "measure" for part in block.slices
    ]
    if traffic is None or not slices:
        return
    begin, end = (
        traffic.epoch_unix_ns + edge
        for edge in (min(part.start_ns for part in slices), max(part.end_ns for part in slices))
    )
    for place, target in enumerate(traffic.targets):
        control = place > 0 and names[place] == names[0]
        trial = f"{start}.control" if control else start
        early, one_way = earlier_first_byte([target]) is not None, _knows_one_way(target.one_way, duet)
        for kind, of in _KINDS.items():
            if (kind in _ONE_WAY and not one_way) or (kind == _FIRST_BYTE and not early):
                continue
            if (times := of(target)) is not None:
                yield RecordedTimes(names[place], trial, kind, (RecordedSpan(begin, end, times),))


def _knows_one_way(ways: OneWay | None, made: Recording | DuetRecording) -> bool:
    return ways is not None and ways.is_known(one_way_bound_ns(made.hosts))


@dataclass(frozen=True)
class RecordedProfile:
    """The stacks of a cell by kind; `name` is such as `rust.hyper.SimpleGet.saturate.cpu`."""

    name: str
    unit: ProfileUnit
    stacks: Stacks


def recorded_profiles(run: Run) -> Iterator[RecordedProfile]:
    """The profiles that have stacks, in the order in which they were first made. Raises StoreError."""
    names, files = cell_names(run.manifest.plan), dict[tuple[str, ProfileUnit], list[str]]()
    made = [(recording.cell_id, recording.profile) for recording in run.profiled]
    made += [pair for duet in run.sampled for pair in zip(duet.cell_ids, duet.profiles, strict=False)]
    for cell_id, facts in made:
        if facts is not None and facts.stacks is not None and facts.samples:
            name = f"{names[cell_id]}.{_kind(facts)}"
            files.setdefault((name, facts.unit), []).append(facts.stacks)
    for (name, unit), stacks in files.items():
        if run.profiles is not None:
            yield RecordedProfile(name, unit, Stacks.merged(map(run.profiles.stacks, stacks)))


def _kind(facts: ProfileFacts) -> str:
    return "engine" if facts.subject == "engine" else facts.kind
