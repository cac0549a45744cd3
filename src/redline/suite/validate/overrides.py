"""Apply a command line's changes to a suite: a selection by glob, and other numbers. Pure."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from redline.errors import Problem, UsageError
from redline.lazily import dataclass
from redline.model import Closed, Load, LoadStage, Scenario, Share, Suite, Variant
from redline.model.variant import FLAGS, PLACE, ROUTE
from redline.quantities import HIGHEST_RATE_PER_S, LONGEST_DURATION_NS, clip, did_you_mean
from redline.schema.load import MOST_CONNECTIONS
from redline.schema.suite import DETECTION_NS, HIGHEST_SEED, MOST_TRIALS, PROFILES, QuickSchema
from redline.schema.types import SHORTEST_LOAD_NS
from redline.suite.catalogue import Catalogue
from redline.suite.validate.checking import suggest
from redline.suite.validate.loads import DETECTS_ITSELF, never_steady, warm_up_hint
from redline.wording import part

T = TypeVar("T", Scenario, Load)
Problems = list[Problem]
"""The problems so far; functions add to them."""
_IN_THE_SUITE = "change the load in the suite instead"


@dataclass(frozen=True)
class Overrides:
    """Globs that select, and values that replace; an empty value or None leaves the suite as it is.

    `servers` match a variant's slug or its server's name; `options` are values by an option's name, or names of routes
    by `route`, which restrict the variants that have the option. A selected load keeps the load that its rate is a
    share of. `quick` applies the suite's `quick`, before the rest. `users` is for closed loads, `duration_ns` for every
    load. With `warmup_detect` the warm-up ends when the server is steady. `screen` takes a fraction of the variants.
    `scale` multiplies the own rates of open loads.
    """

    servers: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    scenarios: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    users: int | None = None
    duration_ns: int | None = None
    warmup_ns: int | None = None
    warmup_detect: bool = False
    trials: int | None = None
    seed: int | None = None
    quick: bool = False
    profile: tuple[str, ...] = ()
    screen: bool = False
    scale: float | None = None


def apply_overrides(suite: Suite, overrides: Overrides, catalogue: Catalogue) -> tuple[Suite, Problems]:
    """The overridden suite, and every problem of the overrides; the suite is valid only without problems.

    Only selected servers run, so a baseline that is not selected is dropped. The ceiling stays.
    """
    problems: Problems = []
    has_budget = suite.auto is not None and suite.auto.precision is None
    if overrides.trials and has_budget:
        message = part("trials") + " sets the number of starts, and this suite has as many as its budget allows"
        problems.append(Problem(message, "leave it out, or change `budget`"))
    variants = _select_variants(suite, overrides.servers, catalogue, problems)
    variants = _select_options(suite, variants, overrides.options, problems)
    scenarios = _selected(suite.scenarios, overrides.scenarios, "scenario", catalogue.scenarios, problems)
    loads = _selected(suite.loads, overrides.loads, "load", (), problems)
    needed = {load.name for load in loads} | {load.share.of for load in loads if load.share}
    loads = _changed_loads(tuple(load for load in suite.loads if load.name in needed), overrides, problems)
    warmup_by = suite.warmup_by and scaled(suite.warmup_by, overrides.scale or 1)
    changed = suite.keeping(variants).asking(scenarios).under(loads, warmup_by)
    if overrides.trials is not None and not has_budget:
        changed = changed.repeated(overrides.trials)
    if overrides.seed is not None:
        changed = changed.seeded(overrides.seed)
    if overrides.profile:
        known = dict(zip(PROFILES, PROFILES, strict=True))
        changed = changed.profiling(tuple(known[name] for name in dict.fromkeys(overrides.profile) if name in known))
    changed = _with_warm_up(changed, overrides, problems)
    problems += [*_range_problems(overrides), *_profile_problems(overrides)]
    if not variants and not problems:
        names, options = part("servers"), part("options")
        problems.append(Problem(f"no server matches both {names} and {options}", f"leave out {names} or {options}"))
    return changed, problems


def _select_variants(
    suite: Suite, globs: tuple[str, ...], catalogue: Catalogue, problems: Problems
) -> tuple[Variant, ...]:
    def matches(variant: Variant, glob: str) -> bool:
        return fnmatchcase(variant.slug, glob) or fnmatchcase(variant.entry.name, glob)

    there = tuple(variant.slug for variant in suite.variants)
    for glob in globs:
        if any(matches(variant, glob) for variant in suite.variants):
            continue
        if suite.ceiling is not None and matches(suite.ceiling, glob):
            hint = f"{suite.ceiling.slug} is this suite's ceiling and is run anyway; select among: {', '.join(there)}"
        else:
            hint = _nothing_selected(glob, there, catalogue.servers, "servers")
        problems.append(Problem(f"no server of this suite matches `{glob}`", hint))
    return tuple(variant for variant in suite.variants if not globs or any(matches(variant, glob) for glob in globs))


def _select_options(
    suite: Suite, variants: tuple[Variant, ...], wanted: tuple[tuple[str, str], ...], problems: Problems
) -> tuple[Variant, ...]:
    """The variants with a named value of every named option that they have. Routes and flags count as options."""
    absent = {PLACE}
    absent |= set() if any(variant.route for variant in suite.variants) else {ROUTE}
    absent |= set() if any(variant.flags for variant in suite.variants) else {FLAGS}

    def axes(variant: Variant) -> dict[str, str]:
        """The variant's options, and its route and flags if the suite has any."""
        return {
            name: value for name, value in variant.settings.items() if name not in absent or name in variant.options
        }

    there: dict[str, dict[str, None]] = {}
    for variant in suite.variants:
        for name, value in axes(variant).items():
            there.setdefault(name, {})[value] = None
    values: dict[str, set[str]] = {}
    for name, value in wanted:
        values.setdefault(name, set()).add(value)
        if name not in there:
            hint = suggest(name, there, "their options")
            problems.append(Problem(f"no server of this suite has an option `{clip(name)}`", hint))
        elif value not in there[name]:
            hint = suggest(value, there[name], "this suite has")
            problems.append(Problem(f"no server of this suite has {name}={clip(value)}", hint))
    return tuple(
        variant
        for variant in variants
        if all(value in values.get(name, {value}) for name, value in axes(variant).items())
    )


def _selected(
    parts: Sequence[T], globs: tuple[str, ...], noun: str, catalogue: Iterable[str], problems: Problems
) -> tuple[T, ...]:
    """The scenarios or loads whose names match; all of them without globs."""
    there = tuple(part.name for part in parts)
    problems += [
        Problem(f"no {noun} of this suite matches `{glob}`", _nothing_selected(glob, there, catalogue, f"{noun}s"))
        for glob in globs
        if not any(fnmatchcase(name, glob) for name in there)
    ]
    return tuple(part for part in parts if not globs or any(fnmatchcase(part.name, glob) for glob in globs))


def _nothing_selected(glob: str, there: tuple[str, ...], catalogue: Iterable[str], key: str) -> str:
    hint = did_you_mean(glob, there)
    if any(fnmatchcase(name, glob) for name in catalogue):
        hint = f"the catalogue has it: add it to `{key}` in the suite"
    return "; ".join(filter(None, (hint, f"this suite has: {', '.join(there)}")))


def _changed_loads(loads: tuple[Load, ...], overrides: Overrides, problems: Problems) -> tuple[Load, ...]:
    if not loads:
        return loads  # an empty selection is noted already
    if overrides.duration_ns is not None:
        loads = _for_length(loads, overrides.duration_ns, problems)
    if overrides.users is not None:
        loads = _for_users(loads, overrides.users, problems)
    return loads if overrides.scale is None else _scaled(loads, overrides.scale, problems)


def scaled(load: Load, factor: float) -> Load:
    """The load with its rate and stages times a factor, which its name shows; unchanged without its own rate."""
    shape = load.shape
    if isinstance(shape, Closed) or shape.rate_per_s is None or shape.share is not None or factor == 1:
        return load
    stages = tuple(LoadStage(to=stage.to * factor, over_ns=stage.over_ns) for stage in shape.stages)
    percent = f"{100 * factor:.6g}".replace(".", "_")
    return load.named(f"{load.name}-{percent}pct").shaped(shape.staged(shape.rate_per_s * factor, stages))


def _scaled(loads: tuple[Load, ...], factor: float, problems: Problems) -> tuple[Load, ...]:
    """The loads with scaled rates; a share of a capacity already fits the machine."""
    changed = tuple(scaled(load, factor) for load in loads)
    if factor != 1 and changed == loads:
        message = part("scale") + " is given, but no load of this suite has a rate of its own"
        problems.append(Problem(message, "leave it out; a share of a capacity already fits the machine"))
    problems += [
        Problem(part("scale") + f" makes the rate of `{load.name}` more than {HIGHEST_RATE_PER_S:,.0f}/s", "lower it")
        for load in changed
        if not isinstance(load.shape, Closed) and load.shape.most_per_s > HIGHEST_RATE_PER_S
    ]
    return changed


def _range_problems(overrides: Overrides) -> Problems:
    number, length = "give a number in that range", "give a duration such as 25s"
    ranges = (
        ("users", overrides.users, 1, MOST_CONNECTIONS, ""),
        ("trials", overrides.trials, 1, MOST_TRIALS, ""),
        ("seed", overrides.seed, 0, HIGHEST_SEED, ""),
        ("duration", overrides.duration_ns, SHORTEST_LOAD_NS, LONGEST_DURATION_NS, "1ms to 24h"),
        ("warmup", overrides.warmup_ns, 0, LONGEST_DURATION_NS, "0s to 24h"),
    )
    return [
        Problem(part(name) + f" must be {text or f'{low} to {high}, not {value}'}", length if text else number)
        for name, value, low, high, text in ranges
        if value is not None and not low <= value <= high
    ]


def _profile_problems(overrides: Overrides) -> Problems:
    return [
        Problem(f"there is no profile `{clip(name)}`", suggest(name, PROFILES, "choose of"))
        for name in overrides.profile
        if name not in PROFILES
    ]


def _with_warm_up(suite: Suite, overrides: Overrides, problems: Problems) -> Suite:
    """The suite with the warm-up of the overrides."""
    if overrides.warmup_detect:
        problems += [Problem(never_steady(load.name), warm_up_hint()) for load in suite.loads if load.changes]
        problems += [Problem(DETECTS_ITSELF, warm_up_hint())] if suite.warmup_by else []
        return suite.warming_up(suite.warmup_ns if suite.warmup_detect else DETECTION_NS, detect=True)
    return suite if overrides.warmup_ns is None else suite.warming_up(overrides.warmup_ns, detect=False)


def quickened(suite: Suite, quick: QuickSchema | None) -> Suite:
    """The suite with every cell, measured in less time; shorter values stay.

    Raises UsageError if the suite has no `quick`.
    """
    if quick is None:
        raise UsageError(
            f"the suite {suite.name} has no `quick`",
            hint="add `quick: {warmup: 1s, for: 2s, trials: 2}` to it, or give "
            f"{part('duration')} and {part('trials')}",
        )

    def shorter(value: int, quick_value: int | None) -> int:
        return value if quick_value is None else min(value, quick_value)

    loads = tuple(load.lasting(shorter(load.duration_ns, quick.duration)) for load in suite.loads)
    warmup_ns = shorter(suite.warmup_ns, quick.warmup)
    detect = suite.warmup_detect and warmup_ns == suite.warmup_ns  # a shorter time is fixed
    short = suite.under(loads, suite.warmup_by).warming_up(warmup_ns, detect=detect)
    return short if quick.trials is None else short.repeated(min(suite.trials, quick.trials))


def _for_users(loads: tuple[Load, ...], users: int, problems: Problems) -> tuple[Load, ...]:
    """The loads with this number of users in every closed load; open loads stay as they are.

    If closed loads have this number already, they are selected, and other closed loads are left out. Otherwise all get
    the number. The first of loads that become equal stays, as `users8` if no other load has that name: its own name may
    contain another number.
    """
    closed = [load for load in loads if isinstance(load.shape, Closed)]
    if not closed:
        hint = "an open load has a rate instead; add a load with `closed: {users: ...}`"
        problems.append(Problem("users are given, but this suite has no closed load", hint))
        return loads
    fitting = [load for load in closed if _users(load) == users]
    every = [load.shaped(load.shape.with_users(users)) for load in closed if isinstance(load.shape, Closed)]
    changed = fitting or [load for at, load in enumerate(every) if not any(_same(load, other) for other in every[:at])]
    kept = {load.name: load for load in changed}
    chosen = tuple(kept.get(load.name, load) for load in loads if load.name in kept or load not in closed)
    gone = {load.name for load in loads} - {load.name for load in chosen}
    problems += [
        Problem(f"users are given, but those of the load `{load.name}` change in stages", _IN_THE_SUITE)
        for load in changed
        if load.shape.stages
    ]
    problems += [
        Problem(
            f"the rate of `{load.name}` is a share of `{load.share.of}`, which is left out with {users} users",
            _IN_THE_SUITE,
        )
        for load in chosen
        if load.share is not None and load.share.of in gone
    ]
    return chosen if fitting else _renamed(chosen, every, f"users{users}")


def _for_length(loads: tuple[Load, ...], duration_ns: int, problems: Problems) -> tuple[Load, ...]:
    """The loads, measured for `duration_ns`."""
    changed = tuple(load.lasting(duration_ns) for load in loads)
    for load in loads:
        stages_ns = sum(stage.over_ns for stage in load.shape.stages)
        if stages_ns > duration_ns:
            message = (
                f"the stages of the load `{load.name}` take {stages_ns / 1e9:g}s, longer than it would be measured"
            )
            problems.append(Problem(message, "give a longer duration, or change the load in the suite"))
    for index, load in enumerate(changed):
        for earlier, original in zip(changed[:index], loads, strict=False):
            if _same(earlier, load) and not _same(original, loads[index]):
                message = f"the loads `{earlier.name}` and `{load.name}` would be the same"
                problems.append(Problem(message, "change the loads in the suite instead"))
    return changed


def _users(load: Load) -> int | None:
    """The number of users, if it is constant."""
    return load.shape.users if isinstance(load.shape, Closed) and not load.shape.stages else None


def _renamed(chosen: tuple[Load, ...], every: list[Load], name: str) -> tuple[Load, ...]:
    """Rename the first load of `chosen` that several of `every` became, and its name in shares of its capacity."""
    for load in chosen:
        merged = {original.name for original in every if _same(original, load)}
        if len(merged) > 1 and not any(other.name == name for other in chosen if other is not load):
            return tuple(
                other.named(name) if other is load else _of_another(other, load.name, name) for other in chosen
            )
    return chosen


def _of_another(load: Load, of: str, instead: str) -> Load:
    """The load, with its rate a share of `instead` where it is a share of `of`."""
    if load.share is None or load.share.of != of:
        return load
    return load.shaped(load.open_shape.sharing(Share(share=load.share.share, of=instead)))


def _same(load: Load, other: Load) -> bool:
    return load.named(other.name) == other
