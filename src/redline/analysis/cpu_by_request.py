"""Which request of a mix uses the server's CPU time, from duets of the mix and of its requests. Pure."""

from collections.abc import Iterator, Sequence

import numpy as np

from redline.analysis.duet import Duet, Duets
from redline.findings.starts import BASELINE, cpu_unknown, measured, traffic_of
from redline.model import Cell, DuetRecording, MixCpu, Plan, RequestCpu
from redline.model.estimate import FEWEST_TRIALS
from redline.stats import decide
from redline.stats.duets import Floats
from redline.stats.mixes import Costs, DividedMix, MixStart, divided
from redline.suite.planning import as_asked


def cpu_by_request(duets: Duets, plan: Plan) -> Iterator[MixCpu]:
    """Yield how the CPU time of every server in a mix divides, in the order of the duets.

    Left out are mixes of which a request was not measured by itself in the same starts; servers that failed, or whose
    CPU time is not known; and journeys, whose steps depend on each other. Of servers that were not warm, the reason
    is given.
    """
    said = set[str]()
    for (cell_id, baseline_id), duet in duets.items():
        cell = plan.cells[cell_id]
        if not cell.scenario.others or cell.scenario.journey is not None:
            continue
        alone = _of_requests(cell, plan.cells[baseline_id], duets, plan)
        if not alone or any(own.failing is not None for own in (duet, *alone)):
            continue
        reason = _not_warm(duet, alone)
        for own_id, places in ((baseline_id, (BASELINE, -1)), (cell_id, (duet.target,))):
            made = _starts(duet, alone, places)
            if own_id not in said and reason and _has_cpu(duet, places):
                said.add(own_id)
                yield MixCpu(cell_id=own_id, parts_over_mix=None, reason=reason, requests=())
            elif own_id not in said and made:
                said.add(own_id)
                yield from _divided(own_id, cell, made, plan.suite.threshold)


def _of_requests(cell: Cell, baseline: Cell, duets: Duets, plan: Plan) -> list[Duet]:
    """The duets of the same servers and load for each request of a mix by itself; empty if one is missing."""
    alone = dict[str, Duet]()
    for (cell_id, baseline_id), duet in duets.items():
        own = plan.cells[cell_id]
        if not own.scenario.others and _is_alike(own, cell) and _is_alike(plan.cells[baseline_id], baseline):
            alone[as_asked(own.scenario.request)] = duet
    known = [alone.get(as_asked(request)) for request in cell.scenario.requests]
    return [] if None in known else [duet for duet in known if duet is not None]


def _is_alike(cell: Cell, mix: Cell) -> bool:
    """Whether a cell is of the same server and load."""
    return cell.variant.slug == mix.variant.slug and cell.load == mix.load


def _not_warm(mix: Duet, alone: Sequence[Duet]) -> str:
    """Why these duets cannot tell, if servers were not warm or too few starts count; empty if they can."""
    for duet in (mix, *alone):
        where = "under the mix" if duet is mix else "under one of its requests alone"
        if duet.unsettled:
            return f"{duet.unsettled} {where}"
        if duet.left_out and len(duet.counting) < FEWEST_TRIALS:
            starts = f"{len(duet.counting)} of {len(duet.starts)} starts"
            return f"only {starts} count {where}, and it takes {FEWEST_TRIALS}: the servers were not warm in the others"
    few = "" if mix.attached else f"fewer than {FEWEST_TRIALS} starts measured the mix and all of its requests"
    return few if any(len(duet.counting) < FEWEST_TRIALS for duet in (mix, *alone)) else ""


def _has_cpu(mix: Duet, places: tuple[int, ...]) -> bool:
    """Whether the CPU time of the servers at these places is known in a start."""
    return any(_costs(start, places) is not None for start in mix.starts)


def _starts(duet: Duet, alone: Sequence[Duet], places: tuple[int, ...]) -> list[tuple[MixStart, str]]:
    """The starts that served the mix and each request, with their hosts; none if they are fewer than three.

    A server that was already running has a single start.
    """
    of_rounds = [{start.round: start for start in own.counting} for own in (duet, *alone)]
    made = list[tuple[MixStart, str]]()
    for round_, mixed in of_rounds[0].items():
        costs = [_costs(own[round_], places) if round_ in own else None for own in of_rounds]
        drawn, known = _drawn(mixed, places, len(alone)), [own for own in costs if own is not None]
        if len(known) == len(of_rounds) and drawn.sum() > 0:
            made.append((MixStart(tuple(known[1:]), known[0], drawn), mixed.host))
    return made if len(made) >= (1 if duet.attached else FEWEST_TRIALS) else []


def _costs(start: DuetRecording, places: tuple[int, ...]) -> Costs | None:
    """The CPU time and answers of the servers at these places, in slices whose CPU time is known; None without any."""
    traffic = traffic_of(start)
    among = {place % len(traffic.targets) for place in places}
    if any(cpu_unknown(traffic, place) for place in among):
        return None
    slices = [slice_ for block in measured(traffic) for slice_ in block.slices if slice_.target in among]
    known = [
        (used_ns, slice_.completed)
        for slice_ in slices
        if slice_.cpu_ns and (used_ns := slice_.cpu_ns[slice_.target]) is not None
    ]
    used, answered = np.array(known, dtype=np.float64).reshape(-1, 2).T
    return Costs(used, answered) if used.sum() > 0 and answered.sum() > 0 else None


def _drawn(start: DuetRecording, places: tuple[int, ...], requests: int) -> Floats:
    """How often the servers at these places answered each request rightly; zeros where the engine did not say it."""
    targets = [traffic_of(start).targets[place] for place in places]
    if any(len(target.requests) != requests for target in targets):
        return np.zeros(requests)
    counts = np.array([[own.outcomes.ok for own in target.requests] for target in targets], dtype=np.float64)
    return np.asarray(counts.sum(axis=0))


def _divided(cell_id: str, cell: Cell, made: Sequence[tuple[MixStart, str]], threshold: float) -> Iterator[MixCpu]:
    """Yield the shares; none if the requests by themselves need surely another CPU time, by more than may matter."""
    weights = np.array([request.weight for request in cell.scenario.requests], dtype=np.float64)
    weights /= weights.sum()
    found = divided([start for start, _ in made], weights, [host for _, host in made if host])
    ratio = found.whole
    if ratio.interval is None:
        return
    adds_up = not decide(ratio, threshold, higher_is_better=True).matters
    yield MixCpu(
        cell_id=cell_id,
        parts_over_mix=ratio,
        requests=tuple(_shares(found, cell, weights.tolist())) if adds_up else (),
    )


def _shares(found: DividedMix, cell: Cell, weights: Sequence[float]) -> Iterator[RequestCpu]:
    for at, (label, weight) in enumerate(zip(cell.scenario.labels, weights, strict=True)):
        if (share := found.share(at)) is not None:
            yield RequestCpu(request=label, of_requests=weight, share=share)
