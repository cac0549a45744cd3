"""What a command line changes of a suite: a selection by glob, and numbers in place of those of the file. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from redline.errors import Problem
from redline.model import Load, Scenario, Suite, Variant
from redline.model.catalogue import option_text
from redline.suite.catalogue import Catalogue
from redline.suite.schema.load import MOST_CONNECTIONS
from redline.suite.schema.suite import HIGHEST_SEED, MOST_TRIALS
from redline.suite.schema.types import SHORTEST_LOAD_NS
from redline.suite.schema.units import LONGEST_DURATION_NS, clip, did_you_mean
from redline.suite.validate.load_overrides import for_length, for_users


@dataclass(frozen=True)
class Overrides:
    """Globs that select, and values that replace; what is empty or None leaves the suite as it is.

    `servers` are matched against a variant's slug and its server's name, `scenarios` against scenario names; letters
    count as written. `options` are values by an option's name: a variant that has the option has to have one of them.
    `quick` takes what the suite says under that key, before the rest replaces it. `users` is the number of users in
    closed loads, `duration_ns` the measured time of every load, `warmup_ns` what goes before each;
    with `warmup_detect` it ends when the server is steady. Of the warm-up `suite.warm_up` makes it.
    """

    servers: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    scenarios: tuple[str, ...] = ()
    users: int | None = None
    duration_ns: int | None = None
    warmup_ns: int | None = None
    warmup_detect: bool = False
    trials: int | None = None
    seed: int | None = None
    quick: bool = False


def apply_overrides(suite: Suite, overrides: Overrides, catalogue: Catalogue) -> tuple[Suite, list[Problem]]:
    """The suite as overridden, and every problem of the overrides; the suite counts only without problems.

    A baseline that `servers` does not select is dropped: only what is selected is run, so nothing is compared with it.
    The ceiling stays, whatever is selected.
    """
    variants, server_problems = _select_variants(suite, overrides.servers, catalogue)
    variants, option_problems = _select_options(suite, variants, overrides.options)
    scenarios, scenario_problems = _select_scenarios(suite, overrides.scenarios, catalogue)
    loads, load_problems = _changed_loads(suite.loads, overrides)
    slugs = {variant.slug for variant in variants}
    changed = suite.model_copy(
        update={
            "variants": variants,
            "baseline": suite.baseline if suite.baseline in slugs else None,
            "baselines": {one: of for one, of in suite.baselines.items() if one in slugs and of in slugs},
            "scenarios": scenarios,
            "loads": loads,
            "trials": suite.trials if overrides.trials is None else overrides.trials,
            "auto": suite.auto if overrides.trials is None else None,
            "seed": suite.seed if overrides.seed is None else overrides.seed,
        }
    )
    problems = [*server_problems, *option_problems, *scenario_problems, *load_problems, *_range_problems(overrides)]
    return changed, problems or _nothing_left(variants)


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


def _select_options(
    suite: Suite, variants: tuple[Variant, ...], wanted: tuple[tuple[str, str], ...]
) -> tuple[tuple[Variant, ...], list[Problem]]:
    """Those that have, of every option that is named, one of the values that are named or not the option at all."""
    there: dict[str, dict[str, None]] = {}
    for variant in suite.variants:
        for name, value in variant.options.items():
            there.setdefault(name, {})[option_text(value)] = None
    problems = [_no_option(name, value, there) for name, value in wanted if value not in there.get(name, {})]
    values: dict[str, set[str]] = {}
    for name, value in wanted:
        values.setdefault(name, set()).add(value)
    chosen = tuple(
        variant
        for variant in variants
        if all(option_text(value) in values.get(name, {option_text(value)}) for name, value in variant.options.items())
    )
    return chosen, problems


def _no_option(name: str, value: str, there: dict[str, dict[str, None]]) -> Problem:
    if name not in there:
        hint = did_you_mean(name, tuple(there)) or f"their options: {', '.join(there) or 'none'}"
        return Problem(f"no server of this suite has an option `{clip(name)}`", hint)
    hint = did_you_mean(value, tuple(there[name])) or f"this suite has: {', '.join(there[name])}"
    return Problem(f"no server of this suite has {name}={clip(value)}", hint)


def _nothing_left(variants: tuple[Variant, ...]) -> list[Problem]:
    if variants:
        return []
    return [Problem("no server has both the name and the options that are asked for", "leave one of both out")]


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
    problems: list[Problem] = []
    if overrides.duration_ns is not None:
        loads, found = for_length(loads, overrides.duration_ns)
        problems += found
    if overrides.users is not None:
        loads, found = for_users(loads, overrides.users)
        problems += found
    return loads, problems


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
    if overrides.warmup_ns is not None and not 0 <= overrides.warmup_ns <= LONGEST_DURATION_NS:
        problems.append(Problem("the warm-up must be 0s to 24h", "give a duration such as 30s"))
    return problems
