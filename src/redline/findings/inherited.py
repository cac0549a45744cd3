"""What requests of earlier duets have changed in the same start: rows that a mix writes make reads dearer. Pure."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from redline.findings.served import Growths, growths, processes, served
from redline.findings.starts import BASELINE, COMPARED, is_whole
from redline.lazily import dataclass
from redline.model import DuetRecording, Run, Scenario
from redline.stats.growth import CostGrowth

Ids = tuple[str, ...]


@dataclass(frozen=True)
class Inherited:
    """What the baseline and the compared server of a duet had been changed by before it, by requests of `scenario`.

    `writes`: how many requests that write each had served by then. `bias`: how far that may move their ratio, as a
    logarithm.
    """

    scenario: str
    writes: tuple[float, float]
    bias: float

    def said(self, names: tuple[str, str]) -> str:
        """`requests of mix had changed the servers before: A had 4,006 writes, B 5,751`."""
        (first, second), (ours, theirs) = names, self.writes
        return (
            f"{self.scenario} had changed the servers before: {first} by {ours:,.0f} writes, {second} by {theirs:,.0f}"
        )


def inherited(run: Run) -> Mapping[tuple[str, str], Inherited]:
    """What was inherited, by the ids of a cell and its baseline, where the cost of a request grows with writes."""
    cells, groups = run.manifest.plan.cells, dict[Ids, list[DuetRecording]]()
    for recording in run.duets:
        groups.setdefault(recording.cell_ids, []).append(recording)
    same: dict[Ids, list[_Duets]] = {}
    for ids, starts in groups.items():
        servers = tuple(cells[cell_id].variant.slug for cell_id in ids)
        same.setdefault(servers, []).append(_Duets(ids, cells[ids[BASELINE]].scenario, tuple(starts)))
    found: dict[tuple[str, str], Inherited] = {}
    for alike in same.values():
        if len(alike) < 2 or not any(duets.scenario.writes for duets in alike):
            continue
        for duets in alike:
            for target in range(COMPARED, len(duets.ids) - 1):
                made_by = [made for other in alike if (made := _inherited(duets, other, alike, target)) is not None]
                if made_by:
                    found[duets.ids[target], duets.ids[BASELINE]] = max(made_by, key=lambda made: made.bias)
    return found


@dataclass
class _Duets:
    """The duets of the same cells, in all starts."""

    ids: Ids
    scenario: Scenario
    made: tuple[DuetRecording, ...]

    @cached_property
    def whole(self) -> list[DuetRecording]:
        return [start for start in self.made if is_whole(start)]

    @cached_property
    def growths(self) -> Mapping[int, Growths]:
        """How the costs of each server grow."""
        counts, last = served(self.whole), len(self.ids) - 1
        places = {BASELINE: (BASELINE, last), **{target: (target,) for target in range(COMPARED, last)}}
        return {at: growths(self.whole, counts, own) for at, own in places.items()}

    def steepest(self, target: int) -> tuple[CostGrowth, bool] | None:
        """The steeper line of the baseline and a server, and whether it is of CPU time; None if neither grows."""
        known = [self.growths[at] for at in (BASELINE, target)] if self.whole else []
        lines = [(own.any, own.cpu is not None) for own in known]
        return max(
            ((line, by_cpu) for line, by_cpu in lines if line is not None),
            key=lambda line: line[0].per_request,
            default=None,
        )

    @cached_property
    def wrote(self) -> Mapping[tuple[int, int], Sequence[float]]:
        """How many requests that write each server served, by round and position."""
        share = _writes(self.scenario)
        return {(start.round, start.position): [share * n for n in _served(start)] for start in self.made if share}

    def before(self, start: DuetRecording) -> Iterator[Sequence[float]]:
        """The same of the duets that came before one, in its start."""
        made = self.wrote.items()
        yield from (own for (number, at), own in made if number == start.round and at < start.position)


def _inherited(duets: _Duets, other: _Duets, alike: Sequence[_Duets], target: int) -> Inherited | None:
    """What some duets inherited, by the line of others that write, which hold their requests."""
    if other is duets or not duets.whole or not other.scenario.writes:
        return None
    steep, reads = other.steepest(target), _share(other.scenario, duets.scenario)
    if steep is None or not reads or (duets.scenario.writes and duets.steepest(target) is None):
        return None  # where it writes itself, and that does not make it dearer, nothing did before
    starts = [[before for every in alike for before in every.before(start)] for start in duets.whole]
    writes = [np.sum(before, axis=0)[[BASELINE, target]] for before in starts if before]
    costs = [cost for start in duets.whole if (cost := _cost(start, target, by_cpu=steep[1]))]
    if not writes or not costs:
        return None
    first, second = np.mean(writes, axis=0).tolist()
    per_write = steep[0].per_request / (reads * _writes(other.scenario))  # all that grows may be in these requests
    bias = math.log1p(per_write * abs(second - first) / float(np.mean(costs)))
    return Inherited(other.scenario.name, (first, second), bias)


def _served(start: DuetRecording) -> list[float]:
    """How many requests the process of each target served."""
    whose = processes(start)
    made = dict.fromkeys(whose, 0.0)
    for slice_ in (slice_ for block in (start.traffic.blocks if start.traffic else ()) for slice_ in block.slices):
        made[whose[slice_.target]] += slice_.completed + slice_.failed
    return [made[process] for process in whose]


def _writes(scenario: Scenario) -> float:
    """The share of the requests that write."""
    wrote = set(scenario.writes)
    weights = [
        (label in wrote, request.weight) for label, request in zip(scenario.labels, scenario.requests, strict=True)
    ]
    return sum(weight for writes, weight in weights if writes) / sum(weight for _, weight in weights)


def _share(of: Scenario, part: Scenario) -> float:
    """The share of a scenario's requests that another has as well."""
    theirs = {request.model_dump_json(exclude={"weight", "name"}) for request in part.requests}
    weights = [
        (request.model_dump_json(exclude={"weight", "name"}) in theirs, request.weight) for request in of.requests
    ]
    return sum(weight for both, weight in weights if both) / sum(weight for _, weight in weights)


def _cost(start: DuetRecording, target: int, *, by_cpu: bool) -> float:
    """The CPU or wall time of a request to a server over all measured slices; 0 if unknown."""
    blocks = start.traffic.blocks if start.traffic is not None else ()
    own = [
        slice_
        for block in blocks
        if block.phase == "measure"
        for slice_ in block.slices
        if slice_.target == target and (slice_.cpu_ns or not by_cpu)
    ]
    spent = sum((slice_.cpu_ns[target] or 0) if by_cpu else slice_.measured_ns for slice_ in own)
    answers = sum(slice_.completed if by_cpu else slice_.measured for slice_ in own)
    return spent / answers if answers else 0.0
