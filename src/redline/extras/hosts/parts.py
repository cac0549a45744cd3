"""Split a load into parts for the engines of several hosts, and merge their traffic. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from redline.driving.intervals import kept_ns
from redline.driving.protocol import MOST_WORKERS
from redline.model import Engine, Interval, JourneyTraffic, Traffic
from redline.model.failures import earliest
from redline.model.kept import KeptRequests
from redline.model.traffic import Reach, merged_requests, sums

_ENDINGS: tuple[Literal["interrupted", "deadline", "complete"], ...] = ("interrupted", "deadline", "complete")
"""If a part ends early, so does the whole load."""
_PHASES = ("warmup", "measure", "drain")


@dataclass(frozen=True)
class Part:
    """The workers of an engine among those of all engines."""

    first_worker: int
    workers: int
    all_workers: int

    def keys(self) -> dict[str, Any]:
        """Return the keys of its job."""
        part = {"first_worker": self.first_worker, "all_workers": self.all_workers}
        return {"workers": self.workers, "part": part, "commands": True}


def parts_of(workers: Sequence[int], connections: int) -> tuple[Part, ...]:
    """Return a part for every host with its number of workers; every worker needs a connection.

    The last hosts get no part if connections do not suffice, and very many hosts have fewer workers.
    """
    most = max(1, MOST_WORKERS // len(workers))
    asked = [min(wanted, most) for wanted in workers]
    parts: list[Part] = []
    first, given = 0, min(sum(asked), connections, MOST_WORKERS)
    for wanted in asked:
        mine = min(wanted, given - first)
        if mine > 0:
            parts.append(Part(first, mine, given))
        first += mine
    return tuple(parts)


def merged(parts: Sequence[Traffic], interval_ns: int) -> Traffic:
    """Sum up the parts, at least one, which have the same schedule and intervals of this length."""
    first = parts[0]
    engine = Engine(
        name=first.engine.name,
        version=first.engine.version,
        backend=first.engine.backend,
        workers=sum(part.engine.workers for part in parts),
        cpus=first.engine.cpus if len(parts) == 1 else (),
        processes=sum(part.engine.processes for part in parts),
    )
    return Traffic(
        engine=engine,
        connections=sum(part.connections for part in parts),
        connect_ns=max(part.connect_ns for part in parts),
        epoch_unix_ns=first.epoch_unix_ns,
        measure_start_ns=max(part.measure_start_ns for part in parts),
        measure_end_ns=max(part.measure_end_ns for part in parts),
        clocks=next((part.clocks for part in parts if part.clocks is not None), None),
        ended=next(ending for ending in _ENDINGS if any(part.ended == ending for part in parts)),
        addresses=tuple(dict.fromkeys(address for part in parts for address in part.addresses)),
        encoded=tuple(dict.fromkeys(line for part in parts for line in part.encoded)),
        tls=next((part.tls for part in parts if part.tls is not None), None),
        **sums(parts),
        requests=merged_requests(part.requests for part in parts),
        journeys=JourneyTraffic.merged(part.journeys for part in parts),
        reach=Reach.merged(part.reach for part in parts),
        kept=KeptRequests.merged(part.kept for part in parts),
        failures=earliest(failure for part in parts for failure in part.failures),
        first_errors=next((part.first_errors for part in parts if part.first_errors is not None), None),
        intervals=merged_intervals([part.intervals for part in parts], interval_ns),
    )


def merged_intervals(parts: Sequence[Sequence[Interval]], interval_ns: int) -> tuple[Interval, ...]:
    """Return the intervals of all parts without gaps, merged if they end at the same place of their phase.

    An engine whose output was not read for a while joins several intervals, and so does a long measurement (`kept_ns`).
    """
    by_place: dict[tuple[int, int], list[Interval]] = {}
    measured_ns = max(sum(interval.lasts_ns for interval in part if interval.phase == "measure") for part in parts)
    for part in parts:
        for place, interval in _placed(part, interval_ns, kept_ns(interval_ns, measured_ns)):
            by_place.setdefault(place, []).append(interval)
    intervals: list[Interval] = []
    end_ns = 0
    for index, place in enumerate(sorted(by_place)):
        here = by_place[place]
        last_ns = max(*(interval.end_ns for interval in here), end_ns + 1)
        intervals.append(Interval.merged(here, index, end_ns, last_ns))
        end_ns = last_ns
    return tuple(intervals)


def _placed(part: Sequence[Interval], interval_ns: int, measured_ns: int) -> Iterator[tuple[tuple[int, int], Interval]]:
    """Yield intervals with their phase and the index in it, by their ends. Measured intervals may be longer."""
    phase, start_ns, least = "", 0, 0
    for interval in part:
        if interval.phase != phase:
            phase, start_ns, least = interval.phase, interval.start_ns, 0
        length_ns = measured_ns if phase == "measure" else interval_ns
        number = max(-(-(interval.end_ns - start_ns) // length_ns) - 1, least)
        least = number + 1
        yield (_PHASES.index(phase), number), interval
