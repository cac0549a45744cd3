"""What a command line changes of a suite: a selection by glob, and numbers in place of those of the file. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from redline.errors import Problem
from redline.model import Closed, Load, Scenario, Suite, Variant
from redline.suite.catalogue import Catalogue
from redline.suite.forms import SHORTEST_LOAD_NS
from redline.suite.units import LONGEST_DURATION_NS, did_you_mean
from redline.suite.written_load import MOST_CONNECTIONS
from redline.suite.written_suite import HIGHEST_SEED, MOST_TRIALS


@dataclass(frozen=True)
class Overrides:
    """Globs that select, and values that replace; what is empty or None leaves the suite as it is.

    `servers` are matched against a variant's slug and its server's name, `scenarios` against scenario names; letters
    count as written. `users` replaces the users of every closed load, `duration_ns` the measured time of every load.
    """

    servers: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    users: int | None = None
    duration_ns: int | None = None
    trials: int | None = None
    seed: int | None = None


def apply_overrides(suite: Suite, overrides: Overrides, catalogue: Catalogue) -> tuple[Suite, list[Problem]]:
    """The suite as overridden, and every problem of the overrides; the suite counts only without problems.

    A baseline that `servers` does not select is dropped: only what is selected is run, so nothing is compared with it.
    The ceiling stays, whatever is selected.
    """
    variants, server_problems = _select_variants(suite, overrides.servers, catalogue)
    scenarios, scenario_problems = _select_scenarios(suite, overrides.scenarios, catalogue)
    loads, load_problems = _changed_loads(suite.loads, overrides)
    slugs = [variant.slug for variant in variants]
    changed = suite.model_copy(
        update={
            "variants": variants,
            "baseline": suite.baseline if suite.baseline in slugs else None,
            "scenarios": scenarios,
            "loads": loads,
            "trials": suite.trials if overrides.trials is None else overrides.trials,
            "seed": suite.seed if overrides.seed is None else overrides.seed,
        }
    )
    return changed, [*server_problems, *scenario_problems, *load_problems, *_range_problems(overrides)]


def _select_variants(
    suite: Suite, globs: tuple[str, ...], catalogue: Catalogue
) -> tuple[tuple[Variant, ...], list[Problem]]:
    def names(variant: Variant) -> tuple[str, str]:
        return variant.slug, variant.entry.name

    chosen = tuple(v for v in suite.variants if not globs or any(_matches(names(v), glob) for glob in globs))
    there = tuple(variant.slug for variant in suite.variants)
    problems = []
    for glob in globs:
        if any(_matches(names(variant), glob) for variant in suite.variants):
            continue
        if suite.ceiling is not None and _matches(names(suite.ceiling), glob):
            hint = f"{suite.ceiling.slug} is this suite's ceiling and is run anyway; select among: {', '.join(there)}"
        else:
            hint = _nothing_selected(glob, there, catalogue.servers, "servers")
        problems.append(Problem(f"no server of this suite matches `{glob}`", hint))
    return chosen, problems


def _select_scenarios(
    suite: Suite, globs: tuple[str, ...], catalogue: Catalogue
) -> tuple[tuple[Scenario, ...], list[Problem]]:
    chosen = tuple(s for s in suite.scenarios if not globs or any(_matches((s.name,), glob) for glob in globs))
    there = tuple(scenario.name for scenario in suite.scenarios)
    problems = [
        Problem(
            f"no scenario of this suite matches `{glob}`",
            _nothing_selected(glob, there, catalogue.scenarios, "scenarios"),
        )
        for glob in globs
        if not any(_matches((name,), glob) for name in there)
    ]
    return chosen, problems


def _nothing_selected(glob: str, there: tuple[str, ...], catalogue: Iterable[str], key: str) -> str:
    hints = []
    if any(_matches((name,), glob) for name in catalogue):
        hints.append(f"the catalogue has it: add it to `{key}` in the suite")
    elif near := did_you_mean(glob, there):
        hints.append(near)
    hints.append(f"this suite has: {', '.join(there)}")
    return "; ".join(hints)


def _matches(names: tuple[str, ...], glob: str) -> bool:
    return any(fnmatchcase(name, glob) for name in names)


def _changed_loads(loads: tuple[Load, ...], overrides: Overrides) -> tuple[tuple[Load, ...], list[Problem]]:
    changed = tuple(_changed_load(load, overrides) for load in loads)
    problems = []
    if overrides.users is not None and not any(isinstance(load.shape, Closed) for load in loads):
        message = "users are given, but this suite has no closed load"
        problems.append(Problem(message, "an open load has a rate instead; add a load with `closed: {users: ...}`"))
    for index, load in enumerate(changed):
        for earlier, original in zip(changed[:index], loads, strict=False):
            if _same(earlier, load) and not _same(original, loads[index]):
                message = f"the loads `{earlier.name}` and `{load.name}` would be the same"
                problems.append(Problem(message, "change the loads in the suite instead"))
    return changed, [*problems, *_stage_problems(changed, overrides)]


def _same(one: Load, other: Load) -> bool:
    return one.model_copy(update={"name": other.name}) == other


def _stage_problems(loads: tuple[Load, ...], overrides: Overrides) -> list[Problem]:
    problems = []
    for load in loads:
        stages_ns = sum(stage.over_ns for stage in load.shape.stages)
        if overrides.users is not None and load.shape.stages and isinstance(load.shape, Closed):
            message = f"users are given, but those of the load `{load.name}` change in stages"
            problems.append(Problem(message, "change the load in the suite instead"))
        if overrides.duration_ns is not None and stages_ns > overrides.duration_ns:
            message = (
                f"the stages of the load `{load.name}` take {stages_ns / 1e9:g}s, longer than it would be measured"
            )
            problems.append(Problem(message, "give a longer duration, or change the load in the suite"))
    return problems


def _changed_load(load: Load, overrides: Overrides) -> Load:
    users, duration_ns = overrides.users, overrides.duration_ns
    update: dict[str, object] = {}
    if users is not None and isinstance(load.shape, Closed):
        update["shape"] = load.shape.model_copy(update={"users": users})
    if duration_ns is not None:
        update["duration_ns"] = duration_ns
    return load.model_copy(update=update)


def _range_problems(overrides: Overrides) -> list[Problem]:
    ranges = (
        ("users", overrides.users, 1, MOST_CONNECTIONS),
        ("trials", overrides.trials, 1, MOST_TRIALS),
        ("the seed", overrides.seed, 0, HIGHEST_SEED),
    )
    problems = [
        Problem(f"{name} must be {low} to {high}, not {value}", "give a number in that range")
        for name, value, low, high in ranges
        if value is not None and not low <= value <= high
    ]
    duration_ns = overrides.duration_ns
    if duration_ns is not None and not SHORTEST_LOAD_NS <= duration_ns <= LONGEST_DURATION_NS:
        problems.append(Problem("the duration must be 1ms to 24h", "give a duration such as 25s"))
    return problems
