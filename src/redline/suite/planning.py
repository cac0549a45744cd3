"""Suite -> Plan: the trials with their order and seeds, and an estimate of their duration. Pure."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Literal

from redline.errors import Problem, UsageError
from redline.lazily import dataclass
from redline.model import (
    Cell,
    Closed,
    Load,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Profile,
    Request,
    Scenario,
    Skipped,
    Suite,
    Variant,
)
from redline.model.catalogue import as_written, is_among
from redline.quantities import HIGHEST_RATE_PER_S
from redline.suite.budget import MOST_COMPARED
from redline.wording import part

ALL_AVAILABLE: Mapping[str, str] = MappingProxyType({})

# The time of a trial besides its warm-up and measurement: start until ready, verification, the engine's start, the wait
# for the last answers, stop. By runtime, because slow starts are due to the runtime.
_OVERHEAD_NS: Mapping[str, int] = MappingProxyType({"native": 100_000_000, "jvm": 2_000_000_000})
_OVERHEAD_OF_OTHERS_NS = 1_000_000_000
_OVERHEAD_OF_CONTAINER_NS = 1_000_000_000  # to create and to remove a container

# The least time until all servers of a duet together are detected as warm: `findings.warm_duet`.
_SHORTEST_WARM_UP_NS: Mapping[str, int] = MappingProxyType({"jvm": 7_000_000_000})
_SHORTEST_WARM_UP_OF_OTHERS_NS = 2_000_000_000

SHORTEST_PROBE_NS = 1_000_000_000
_LOWEST_RATE_PER_S = 1e-6  # the engine's minimum: docs/reference/engine-protocol.md
_ADD = "add one such as `probe: {closed: {users: 64}, for: 5s}`: the search begins with its users"

_CLOSE = 1e-3
"""The distance of a cell from its baseline, if the places of all baselines are spread over 1."""

_PROFILES: Mapping[str, tuple[Profile, ...]] = MappingProxyType(
    {"jvm": ("cpu", "wall", "alloc", "lock"), "python": ("cpu", "wall")}
)
_PROFILES_OF_OTHERS: tuple[Profile, ...] = ("cpu",)
"""The supported profiles by runtime of the server; the engine can always be profiled."""

_SEED_BITS = 53  # whole numbers of 53 bits survive every JSON reader
SAMPLED_STARTS = 8
"""Sampled starts of each duet: functions are tested by Student's t over starts (docs/decisions/0048-why.md)."""
_SHORTEST_DUET_NS = 1_000_000_000
"""The least time for the slices of a duet, where a recording is shorter."""


@dataclass(frozen=True)
class Capacities:
    """Capacities measured before the rates, by cell slug: the capacity of the cell's group, or why it is missing."""

    per_s: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def make_capacity_plan(suite: Suite, unavailable: Mapping[str, str] = ALL_AVAILABLE) -> Plan:
    """The plan of capacities: the cells of loads that rates are a share of. Otherwise as `make_plan`."""
    return _plan(suite, capacity_loads(suite), unavailable, None)


def make_plan(
    suite: Suite,
    unavailable: Mapping[str, str] = ALL_AVAILABLE,
    capacities: Capacities | None = None,
) -> Plan:
    """The trials and duets of a suite in seeded, interleaved order.

    A round holds every cell once (a complete block), so a drift of the machine affects all cells alike. Cells of a
    scenario and load are neighbours, before or after their baselines. They share the seed of the load, so compared
    cells get the same arrivals. Places come from hashes of seed, round and names: without a server, seeds and
    order of the others stay. Duets of the same servers follow each other, because one start serves all of them.
    Trials and duets with profilers come last.

    `unavailable` says by variant slug why a server cannot be run: its cells are skipped, as are the cells of impossible
    variants and of scenarios that need another value of an option. `capacities`, measured by `make_capacity_plan`, give
    rates to loads whose rate is a share of a capacity; without them such rates stay unknown.
    """
    first = capacity_loads(suite)
    least_ns = _SHORTEST_DUET_NS if suite.has_duets else 0
    loads = [load.within_recording(least_ns) for load in suite.loads if load not in first]
    return _with_samples(_with_profiles(_plan(suite, loads, unavailable, capacities)))


def _plan(
    suite: Suite,
    loads: Sequence[Load],
    unavailable: Mapping[str, str],
    capacities: Capacities | None,
) -> Plan:
    cells: dict[str, Cell] = {}
    skipped: list[Skipped] = []
    for planned in _cells(suite, loads):
        if ruled_out := planned.variant.misfit or _contradiction(planned):
            skipped.append(Skipped(slug=planned.slug, reason=ruled_out, cause="suite"))
            continue
        cell = unavailable.get(planned.variant.slug) or (_with_rate(planned, capacities) if capacities else planned)
        if isinstance(cell, Cell):
            cells[cell.id] = cell
        else:
            skipped.append(Skipped(slug=planned.slug, reason=cell, cause="machine"))
    wanted: list[tuple[str, ...]] = [(cell_id,) for cell_id in cells] if suite.alone else []
    wanted += _duets(suite, cells) if suite.has_duets else []
    trials, duets = rounds_of(suite, cells, dict.fromkeys(range(suite.trials), wanted), first_position=0)
    return Plan(suite=suite, cells=cells, trials=trials, duets=duets, skipped=tuple(skipped))


def _with_profiles(plan: Plan) -> Plan:
    """The plan with a profiled trial for every subject and profile, or the reason why it cannot be made."""
    seed, wanted, without = _draw(plan.suite.seed, 0, "load"), list[PlannedTrial](), dict[Skipped, None]()
    for cell in plan.cells.values():
        for profile in plan.suite.profile if cell.role == "subject" else ():
            if reason := cannot_profile(cell.variant, profile):
                without[_without_profile(cell.variant, profile, reason, "suite")] = None
            else:
                position = plan.next_position + len(wanted)
                wanted.append(PlannedTrial(cell_id=cell.id, round=0, position=position, seed=seed, profile=profile))
    return plan.profiling(tuple(wanted), tuple(without))


def _with_samples(plan: Plan) -> Plan:
    """The plan with sampled starts of every duet whose servers can be sampled, or the reasons why there are none."""
    if not plan.suite.why:
        return plan
    without, wanted = dict.fromkeys(plan.unprofiled), list[tuple[str, ...]]()
    for cell_ids in dict.fromkeys(duet.cell_ids for duet in plan.duets):
        unsampled = _unsampled(plan, cell_ids)
        reasons = {_without_profile(variant, "cpu", reason, "suite"): None for variant, reason in unsampled}
        without |= reasons
        if not reasons:
            wanted.append(cell_ids)
    starts = dict.fromkeys(range(SAMPLED_STARTS), wanted)
    _, duets = rounds_of(plan.suite, plan.cells, starts, first_position=plan.next_position)
    return plan.sampling(tuple(duet.sampled() for duet in duets), tuple(without))


def _unsampled(plan: Plan, cell_ids: Sequence[str]) -> Iterator[tuple[Variant, str]]:
    """Yield the servers that cannot be sampled in a duet, with the reason."""
    for variant in (plan.cells[cell_id].variant for cell_id in cell_ids):
        reason = "it is not started here" if variant.is_attached else cannot_profile(variant, "cpu")
        if reason:
            yield variant, reason


def cannot_profile(variant: Variant, profile: Profile) -> str:
    """The reason why no profiler supports this profile of the server, whatever is installed; empty if one does."""
    if profile == "engine":
        return ""
    known = _PROFILES.get(variant.runtime, _PROFILES_OF_OTHERS)
    if profile not in known:
        return f"only {' and '.join(known)} can be profiled of a server whose runtime is {variant.runtime}"
    if variant.is_of_containers:
        return "its files are in its container, and profilers look for them on this machine"
    if variant.runtime == "jvm" and variant.container is not None:
        return "the profiler of JVMs is not in the container's image"
    return ""


def without_profiles(plan: Plan, missing: Mapping[tuple[str, Profile], str]) -> Plan:
    """The plan without profiles that this machine cannot make. `missing`: reasons by variant slug and profile."""
    kept, without = list[PlannedTrial](), dict.fromkeys(plan.unprofiled)
    for trial in plan.profiled:
        variant = plan.cells[trial.cell_id].variant
        if trial.profile is not None and (reason := missing.get((variant.slug, trial.profile))):
            without[_without_profile(variant, trial.profile, reason, "machine")] = None
        else:
            kept.append(trial.at(len(plan.steps) + len(kept)))
    sampled = list[PlannedDuet]()
    for duet in plan.sampled:
        variants = [plan.cells[cell_id].variant for cell_id in duet.cell_ids]
        reasons = [(it, reason) for it in variants if (reason := missing.get((it.slug, "cpu")))]
        without |= {_without_profile(it, "cpu", reason, "machine"): None for it, reason in reasons}
        if not reasons:
            sampled.append(duet.at(len(plan.steps) + len(kept) + len(sampled)))
    return plan.profiling(tuple(kept), tuple(without)).sampling(tuple(sampled), tuple(without))


def _without_profile(variant: Variant, profile: Profile, reason: str, cause: Literal["suite", "machine"]) -> Skipped:
    return Skipped(slug=f"{variant.slug}: {profile}", reason=reason, cause=cause)


def rounds_of(
    suite: Suite, cells: Mapping[str, Cell], rounds: Mapping[int, Sequence[tuple[str, ...]]], first_position: int
) -> tuple[tuple[PlannedTrial, ...], tuple[PlannedDuet, ...]]:
    """Plan the cells and duets of each round once, in the order that the seed gives the round."""
    order = [
        (round_index, cell_ids)
        for round_index, wanted in rounds.items()
        for cell_ids in sorted(wanted, key=lambda names: _place(suite, cells, names, round_index))
    ]
    trials, duets, started = list[PlannedTrial](), list[PlannedDuet](), set[tuple[int, str]]()
    for position, (round_index, cell_ids) in enumerate(order, first_position):
        seed = _draw(suite.seed, round_index, "load")
        build = 0 if cells[cell_ids[0]].role == "ceiling" else round_index % suite.builds
        if len(cell_ids) == 1:
            trials.append(
                PlannedTrial(cell_id=cell_ids[0], round=round_index, position=position, seed=seed, build_number=build)
            )
        else:
            servers = _servers(cells, cell_ids)
            drawn_of = (suite.seed, servers, round_index, len(cell_ids) + 1)
            places = draw_places(*drawn_of) if suite.design == "parallel-duet" else ()
            again = (round_index, servers) in started
            started.add((round_index, servers))
            duets.append(
                PlannedDuet(
                    cell_ids=cell_ids,
                    round=round_index,
                    position=position,
                    seed=seed,
                    places=places,
                    build_number=build,
                    warmup_ns=suite.warmup_again_ns if again else None,
                )
            )
    return tuple(trials), tuple(duets)


def draw_places(seed: int, name: str, number: int, servers: int) -> tuple[int, ...]:
    """The number of each server's set of cores, in the start of this number.

    In N starts of N servers, every server gets every set once; then the order is drawn anew.
    """
    group, shift = divmod(number, servers)
    drawn = sorted(range(servers), key=lambda place: _draw(seed, group, f"{name} on {place}"))
    return tuple(drawn[(server + shift) % servers] for server in range(servers))


def _place(suite: Suite, cells: Mapping[str, Cell], cell_ids: tuple[str, ...], round_index: int) -> tuple[float, ...]:
    """The sort key of cells in a round: it keeps a scenario and load together, and cells next to their baselines.

    A cell is before its baseline as often as after it. Disturbances last seconds, so they affect neighbours alike.
    """
    cell = cells[cell_ids[0]]
    if len(cell_ids) > 1:
        servers, cells_drawn = (
            _draw(suite.seed, round_index, text) for text in (_servers(cells, cell_ids), "/".join(cell_ids))
        )
        # A mix warms the servers up for all of its requests.
        return servers, not is_mix(cell.scenario, suite.scenarios), cells_drawn
    if cell.role == "ceiling":
        return (_draw(suite.seed, round_index, cell_ids[0]),)
    where, chain = f"{cell.scenario.name}.{cell.load.name}", suite.chain_of(cell.variant.slug)
    draws = (_draw(suite.seed, round_index, f"{slug}.{where}") / 2**_SEED_BITS for slug in chain)
    around = sum((draw - 0.5) * _CLOSE**depth for depth, draw in enumerate(draws))
    return _draw(suite.seed, round_index, where), around


def is_mix(scenario: Scenario, scenarios: Iterable[Scenario]) -> bool:
    """Whether the scenario has all requests of at least two other scenarios, and no order of its own."""
    if scenario.journey is not None:
        return False
    held = unweighted(scenario)
    return sum(unweighted(other) <= held for other in scenarios if other.name != scenario.name) > 1


def unweighted(scenario: Scenario) -> frozenset[str]:
    """The requests of a scenario, as JSON without their weights and names."""
    return frozenset(map(as_asked, scenario.requests))


def as_asked(request: Request) -> str:
    """A request as JSON without its weight and name."""
    return request.model_dump_json(exclude={"weight", "name"})


def _servers(cells: Mapping[str, Cell], cell_ids: Sequence[str]) -> str:
    """The identity of the servers of a start."""
    return "/".join(cells[cell_id].variant.slug for cell_id in cell_ids)


def _duets(suite: Suite, cells: Mapping[str, Cell]) -> list[tuple[str, ...]]:
    """The cells of every duet: a baseline, and at most `MOST_COMPARED` cells that are compared with it."""
    ids = {cell.slug: cell_id for cell_id, cell in cells.items() if cell.role == "subject" and cell.load.fits_duet}
    compared: dict[str, list[str]] = {}
    for slug, cell_id in ids.items():
        cell = cells[cell_id]
        baseline = suite.baseline_of(cell.variant.slug)
        name = f"{baseline}.{cell.scenario.name}.{cell.load.name}"
        if baseline is not None and name in ids and name != slug:
            compared.setdefault(ids[name], []).append(cell_id)
    return [
        (baseline_id, *others[at : at + MOST_COMPARED])
        for baseline_id, others in compared.items()
        for at in range(0, len(others), MOST_COMPARED)
    ]


def expected_length_ns(plan: Plan) -> int:
    """The estimated duration of the plan in nanoseconds, without builds and with the longest warm-ups."""
    trials_ns = sum(expected_trial_ns(plan.cells[trial.cell_id]) for trial in plan.trials)
    trials_ns += sum(expected_trial_ns(plan.cells[trial.cell_id].under_profiler) for trial in plan.profiled)
    trials_ns += _duets_ns(plan, plan.sampled, lambda duet: _least_loaded_ns(duet, _alive(plan, duet)))
    if plan.duets and (budget_ns := _budget_ns(plan)) is not None:
        return trials_ns + max(budget_ns, least_length_ns(plan))
    starts = (
        len(plan.trials)
        + len(plan.profiled)
        + len({(duet.round, _servers(plan.cells, duet.cell_ids)) for duet in plan.duets})
    )
    trials_ns += plan.suite.rest_ns * max(starts - 1, 0)
    return trials_ns + _duets_ns(plan, plan.duets, lambda duet: sum(_loaded_ns(cell) for cell in _alive(plan, duet)))


def least_length_ns(plan: Plan) -> int:
    """The least time in nanoseconds of the starts that a plan with a budget always makes; 0 without a budget.

    A warm-up whose end is detected counts with its shortest possible length.
    """
    auto = plan.suite.auto
    if auto is None or _budget_ns(plan) is None:
        return 0
    certain = [duet for duet in plan.duets if duet.round < auto.at_least]
    return _duets_ns(plan, certain, lambda duet: _least_loaded_ns(duet, _alive(plan, duet)))


def _budget_ns(plan: Plan) -> int | None:
    """The budget that starts of duets fill, in nanoseconds; None without a budget, or if servers also run alone."""
    return plan.suite.auto.budget_ns if plan.suite.auto is not None and not plan.suite.alone else None


def _alive(plan: Plan, duet: PlannedDuet) -> list[Cell]:
    """The cells of a duet, with the baseline's cell once more as the control. Every cell has the time of a trial."""
    cells = [plan.cells[cell_id] for cell_id in (*duet.cell_ids, duet.cell_ids[0])]
    return cells if duet.profile is None else [cell.under_samplers for cell in cells]


def expected_starts_ns(plan: Plan, wanted: Sequence[tuple[str, ...]]) -> int:
    """The estimated time of one more start of these cells and duets, in nanoseconds, with the longest warm-ups."""
    spent_ns, started = 0, set[str]()
    for cell_ids in wanted:
        cells, servers = [plan.cells[cell_id] for cell_id in cell_ids], _servers(plan.cells, cell_ids)
        alive = cells if len(cells) == 1 else [*cells, cells[0]]
        again_ns = plan.suite.warmup_again_ns if servers in started and len(cells) > 1 else None
        if servers not in started or len(cells) == 1:
            spent_ns += plan.suite.rest_ns + sum(map(_overhead_ns, alive))
        spent_ns += sum(_loaded_ns(cell if again_ns is None else cell.warming_up_for(again_ns)) for cell in alive)
        started.add(servers)
    return spent_ns


def _duets_ns(plan: Plan, duets: Sequence[PlannedDuet], loaded_ns: Callable[[PlannedDuet], int]) -> int:
    """The time of duets: their loads, and a start of their servers for all duets of a round."""
    starts = {(duet.round, _servers(plan.cells, duet.cell_ids)): _alive(plan, duet) for duet in duets}
    return sum(map(loaded_ns, duets)) + sum(_overhead_ns(cell) for cells in starts.values() for cell in cells)


def _least_loaded_ns(duet: PlannedDuet, cells: Sequence[Cell]) -> int:
    warmup_ns = sum(cell.warmup_ns if duet.warmup_ns is None else duet.warmup_ns for cell in cells)
    if cells[0].warmup_detect:
        runtimes = {runtime for cell in cells for runtime in cell.variant.runtimes}
        known = (_SHORTEST_WARM_UP_NS.get(runtime, _SHORTEST_WARM_UP_OF_OTHERS_NS) for runtime in runtimes)
        warmup_ns = min(warmup_ns, max(known, default=_SHORTEST_WARM_UP_OF_OTHERS_NS))
    return warmup_ns + sum(cell.settling_ns + cell.load.duration_ns for cell in cells)


def expected_trial_ns(cell: Cell) -> int:
    """The estimated duration of a trial of a cell, in nanoseconds. Conversations go on when the load is over."""
    after_ns = cell.scenario.longest_stream_ns + cell.load.unloaded_ns(cell.load.duration_ns)
    return _loaded_ns(cell) + after_ns + _overhead_ns(cell)


def _loaded_ns(cell: Cell) -> int:
    return cell.warmup_ns + cell.settling_ns + cell.load.duration_ns


def _overhead_ns(cell: Cell) -> int:
    overhead_ns = sum(_OVERHEAD_NS.get(runtime, _OVERHEAD_OF_OTHERS_NS) for runtime in cell.variant.runtimes)
    containers = sum(part.is_in_container for part in (cell.variant, *cell.variant.hops))
    return overhead_ns + containers * _OVERHEAD_OF_CONTAINER_NS


def _cells(suite: Suite, loads: Sequence[Load]) -> list[Cell]:
    """All cells of these loads in the suite's order: servers, then the ceiling under closed loads."""
    subjects = [
        _cell(suite, variant, scenario, load)
        for variant in suite.variants
        for scenario in suite.scenarios
        for load in loads
    ]
    ceiling = suite.ceiling
    if ceiling is None or ceiling.slug in [variant.slug for variant in suite.variants]:
        return subjects
    closed = [load for load in loads if isinstance(load.shape, Closed)]
    role: Literal["ceiling"] = "ceiling"
    return subjects + [_cell(suite, ceiling, scenario, load, role) for scenario in suite.scenarios for load in closed]


def _cell(
    suite: Suite, variant: Variant, scenario: Scenario, load: Load, role: Literal["subject", "ceiling"] = "subject"
) -> Cell:
    warmup_by = suite.warmup_by if suite.warmup_by and suite.warmup_by.name != load.name else None
    if scenario.journey is not None and scenario.journey.pauses:
        load = load.pausing()
    if scenario.closes_connections(variant.http):
        load, warmup_by = load.closing(), warmup_by and warmup_by.closing()
    return Cell(
        variant=variant,
        scenario=scenario,
        load=load,
        warmup_ns=suite.warmup_ns if load.count is None or suite.warms_counted else 0,
        warmup_detect=suite.warmup_detect,
        warmup_by=warmup_by,
        timeout_ns=suite.timeout_ns,
        engine=suite.engine,
        role=role,
        abort_when=suite.abort_when,
    )


def _contradiction(cell: Cell) -> str:
    """The reason why the variant cannot answer the scenario, or an empty text. Options that it lacks are ignored."""
    options = cell.variant.options
    for name, needed in cell.scenario.requires.items():
        if name in options and not is_among(options[name], (needed,)):
            has = as_written(options[name])
            return f"{cell.scenario.name} needs {name}: {as_written(needed)}, and this server has {has}"
    return ""


def _draw(seed: int, round_index: int, what: str) -> int:
    """A uniform whole number of 53 bits, from a hash of the arguments."""
    digest = hashlib.sha256(f"{seed}/{round_index}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> (64 - _SEED_BITS)


def capacity_loads(suite: Suite) -> tuple[Load, ...]:
    """The loads whose capacity sets other loads' rates, in the order of the suite."""
    needed = {share.of for load in suite.loads if (share := load.share)}
    return tuple(load for load in suite.loads if load.name in needed)


def capacity_slug(cell: Cell) -> str | None:
    """The slug of the cell whose capacity determines this cell's rate; None if its rate is not a share."""
    share = cell.load.share
    if share is None:
        return None
    return cell.under(cell.load.named(share.of)).slug


def _with_rate(cell: Cell, capacities: Capacities) -> Cell | str:
    """The cell with its rate from a capacity, to three significant digits; or the reason why it has no rate.

    More digits would suggest a precision that no capacity has. A cell with its own rate stays as it is.
    """
    share, slug = cell.load.share, capacity_slug(cell)
    if share is None or slug is None:
        return cell
    if slug not in capacities.per_s:
        return capacities.missing.get(slug, f"{share.of} was not measured")
    rate_per_s = float(f"{share.share * capacities.per_s[slug]:.3g}")
    if rate_per_s > HIGHEST_RATE_PER_S:
        return f"{share.text} is {rate_per_s:,.0f}/s, and {HIGHEST_RATE_PER_S:,.0f}/s is the highest rate"
    if rate_per_s < _LOWEST_RATE_PER_S:
        return f"{share.text} is {rate_per_s:g}/s, and {_LOWEST_RATE_PER_S:g}/s is the lowest rate"
    return cell.under(cell.load.at_rate(rate_per_s))


def to_search(suite: Suite, trials: int, *, by_users: bool = False) -> tuple[Suite, tuple[str, ...]]:
    """The suite with its open loads, the templates of probes, and the names of its other loads. Raises UsageError.

    With `by_users`, or where all its loads are closed, its closed loads: of each the number of users is searched.
    `trials` is the number of fresh starts at both ends of an answer.
    """
    by_users = by_users or all(load.by_users for load in suite.loads)
    loads = tuple(load for load in suite.loads if load.by_users == by_users)
    if not loads:
        raise UsageError(f"the suite {suite.name} has no closed load, and these have users", hint=_ADD)
    problems = [problem for load in loads if (problem := _problem(load)) is not None]
    problems += [
        Problem(
            f"`{objective.text}` is for one load or scenario, and a search is about all", "write it without the name"
        )
        for objective in suite.objectives
        if objective.load or (objective.scenario and not objective.request)
    ]
    if problems:
        raise UsageError.of_problems(tuple(problems))
    # A rate may be too high for a cold server, but the search looks for the limit of a warm server.
    by = suite.warmup_by if suite.warmup_by and isinstance(suite.warmup_by.shape, Closed) else None
    return suite.under(loads, by).for_search(trials), tuple(load.name for load in suite.loads if load not in loads)


def make_search_plan(whole: Suite, suites: Sequence[Suite], unavailable: Mapping[str, str] = ALL_AVAILABLE) -> Plan:
    """The searches of several suites, in the order and with the seeds of the `whole`."""
    # Probes take as much of a recording as they need, at speeds of their own.
    plans = [_with_profiles(_plan(suite, suite.loads, unavailable, None)) for suite in suites]
    cells = {cell_id: cell for plan in plans for cell_id, cell in plan.cells.items()}
    wanted = [(cell_id,) for cell_id in cells]
    trials, _ = rounds_of(whole, cells, dict.fromkeys(range(whole.trials), wanted), first_position=0)
    skipped = dict.fromkeys(skipped for plan in plans for skipped in plan.skipped)
    return Plan(suite=whole, cells=cells, trials=trials, skipped=tuple(skipped))


def _problem(load: Load) -> Problem | None:
    """The problem that keeps this load from being a template of probes; None if there is none."""
    name = f"the load `{load.name}`"
    if load.share is not None:
        hint = "a search finds the rate: give the load a number to begin at, such as `rate: 1000`"
        return Problem(f"{name} has a rate that is a share of a capacity", hint)
    if load.shape.stages or load.count is not None:
        hint = "leave out its stages and its count, or measure it with `redline run`"
        what = "number of users" if load.by_users else "rate"
        return Problem(f"{name} has no constant {what} for a fixed time, as probes have", hint)
    if load.duration_ns < SHORTEST_PROBE_NS:
        hint = f"a probe takes 1 s at least: give {part('duration', '1s')} or more"
        return Problem(f"{name} is too short for a probe", hint)
    return None
