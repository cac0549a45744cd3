"""Suite -> Plan: which trials, in which order, with which seeds; and an estimate of how long they take. Pure."""

import hashlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from redline.model import Cell, Closed, Load, Plan, PlannedTrial, Scenario, Skipped, Suite, Variant
from redline.suite.catalogue import is_among, plain
from redline.suite.validate.shares import Capacities, capacity_loads, with_rate

ALL_AVAILABLE: Mapping[str, str] = MappingProxyType({})

# What a trial takes beyond its warm-up and measurement: start until ready, verification, the engine's start, the wait
# for the last answers, stop. By runtime, because what starts slowly is the runtime.
_OVERHEAD_NS: Mapping[str, int] = MappingProxyType({"native": 100_000_000, "jvm": 2_000_000_000})
_OVERHEAD_OF_OTHERS_NS = 1_000_000_000

_SEED_BITS = 53  # whole numbers of 53 bits survive every JSON reader


def make_capacity_plan(suite: Suite, unavailable: Mapping[str, str] = ALL_AVAILABLE) -> Plan:
    """What is measured before everything else: the cells of the loads that rates of the suite are a share of.

    It holds the whole suite, so that what follows can be planned from it. Otherwise as `make_plan`.
    """
    return _plan(suite, capacity_loads(suite), unavailable, None)


def make_plan(
    suite: Suite,
    unavailable: Mapping[str, str] = ALL_AVAILABLE,
    capacities: Capacities | None = None,
) -> Plan:
    """The trials of a suite in seeded, interleaved order.

    A round holds every cell once (a complete block), in an order that the seed decides; so a drift of the machine falls
    on all cells alike. All cells of a round share the load's seed, which depends on the suite's seed and the round
    alone: compared cells get the same arrivals. Each cell's place in a round comes from a hash of seed, round and cell,
    so taking a server out changes neither the seeds nor the relative order of the others.

    The ceiling gets one cell for each scenario and closed load, unless it is a subject too.
    `unavailable` says by variant slug why a server cannot be run. Its cells are skipped with that reason; so are those
    of a variant with a value that its server does not take, and those whose scenario needs an option that the variant
    has at another value. A plan may be left without any trial.

    Loads that others are a share of have their own plan, of `make_capacity_plan`. What that found are the `capacities`,
    which give the others their rates; a cell that they give none is skipped. Without them such rates stay unknown.
    """
    first = capacity_loads(suite)
    return _plan(suite, [load for load in suite.loads if load not in first], unavailable, capacities)


def _plan(
    suite: Suite,
    loads: Sequence[Load],
    unavailable: Mapping[str, str],
    capacities: Capacities | None,
) -> Plan:
    cells: dict[str, Cell] = {}
    skipped: list[Skipped] = []
    for asked in _cells(suite, loads):
        reason = asked.variant.misfit or unavailable.get(asked.variant.slug) or _contradiction(asked)
        cell = reason or (with_rate(asked, capacities) if capacities else asked)
        if isinstance(cell, Cell):
            cells[cell.id] = cell
        else:
            skipped.append(Skipped(slug=asked.slug, reason=cell))
    order = [
        (round_index, cell_id)
        for round_index in range(suite.trials)
        for cell_id in sorted(cells, key=lambda name: _draw(suite.seed, round_index, name))
    ]
    trials = tuple(
        PlannedTrial(cell_id=cell_id, round=round_index, position=position, seed=_draw(suite.seed, round_index, "load"))
        for position, (round_index, cell_id) in enumerate(order)
    )
    return Plan(suite=suite, cells=cells, trials=trials, skipped=tuple(skipped))


def expected_length_ns(plan: Plan) -> int:
    """An estimate of how long the plan's trials take in nanoseconds, builds not included.

    Each trial counts its warm-up, at its longest, its measurement and an overhead that depends on the server's runtime:
    a JVM starts in seconds, a native server in milliseconds. A loaded machine takes longer.
    """
    return sum(expected_trial_ns(plan.cells[trial.cell_id]) for trial in plan.trials)


def expected_trial_ns(cell: Cell) -> int:
    """An estimate of how long one trial of a cell takes, in nanoseconds."""
    overhead_ns = _OVERHEAD_NS.get(cell.variant.runtime, _OVERHEAD_OF_OTHERS_NS)
    return cell.warmup_ns + cell.load.duration_ns + overhead_ns


def _cells(suite: Suite, loads: Sequence[Load]) -> list[Cell]:
    """All cells of these loads, in the suite's order: servers, then the ceiling; for each its scenarios and loads."""
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
    bounds = [_cell(suite, ceiling, scenario, load) for scenario in suite.scenarios for load in closed]
    return subjects + [cell.model_copy(update={"role": "ceiling"}) for cell in bounds]


def _cell(suite: Suite, variant: Variant, scenario: Scenario, load: Load) -> Cell:
    return Cell(
        variant=variant,
        scenario=scenario,
        load=load,
        warmup_ns=suite.warmup_ns,
        warmup_detect=suite.warmup_detect,
        timeout_ns=suite.timeout_ns,
        engine=suite.engine,
    )


def _contradiction(cell: Cell) -> str:
    """Why the variant cannot answer the scenario, or an empty text. An option that it does not have is no hindrance."""
    options = cell.variant.options
    for name, needed in cell.scenario.requires.items():
        if name in options and not is_among(options[name], (needed,)):
            return f"{cell.scenario.name} needs {name}: {plain(needed)}, and this server has {plain(options[name])}"
    return ""


def _draw(seed: int, round_index: int, what: str) -> int:
    """A uniform whole number of 53 bits that depends on nothing but its arguments."""
    digest = hashlib.sha256(f"{seed}/{round_index}/{what}".encode()).digest()
    return int.from_bytes(digest[:8]) >> (64 - _SEED_BITS)
