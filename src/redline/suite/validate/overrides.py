"""What a command line changes of a suite: a selection by glob, and numbers in place of those of the file. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from redline.errors import Problem, UsageError
from redline.model import Closed, Load, LoadStage, Scenario, Share, Suite, Variant
from redline.model.plan import FLAGS, PLACE, ROUTE
from redline.quantities import HIGHEST_RATE_PER_S, LONGEST_DURATION_NS, clip, did_you_mean
from redline.suite.catalogue import Catalogue
from redline.suite.schema.load import MOST_CONNECTIONS
from redline.suite.schema.suite import DETECTION_NS, HIGHEST_SEED, MOST_TRIALS, PROFILES, QuickSchema
from redline.suite.schema.types import SHORTEST_LOAD_NS
from redline.suite.validate.loads import DETECTS_ITSELF, WARM_UP_HINT, never_steady

_IN_THE_SUITE = "change the load in the suite instead"


@dataclass(frozen=True)
class Overrides:
    """Globs that select, and values that replace; what is empty or None leaves the suite as it is.

    `servers` are matched against a variant's slug and its server's name, `scenarios` and `loads` against their names;
    letters count as written. A load whose rate is a share of another's stays with that one. `options` are values by an
    option's name, or names of routes by `route`: a variant that has the option has to have one of them. `quick` takes
    what the suite says under that key, before the rest replaces it. `users` is the number of users in closed loads,
    `duration_ns` the measured time of every load, `warmup_ns` the load before each; with `warmup_detect` it ends when
    the server is steady. Of the warm-up `suite.warm_up` makes it. `profile` takes the place of the suite's; `screen`
    takes a fraction of the variants that are left. `scale` multiplies the rates that open loads have of their own.
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


def apply_overrides(suite: Suite, overrides: Overrides, catalogue: Catalogue) -> tuple[Suite, list[Problem]]:
    """The suite as overridden, and every problem of the overrides; the suite counts only without problems.

    A baseline that `servers` does not select is dropped: only what is selected is run, so nothing is compared with it.
    The ceiling stays, whatever is selected.
    """
    variants, server_problems = _select_variants(suite, overrides.servers, catalogue)
    variants, option_problems = _select_options(suite, variants, overrides.options)
    scenarios, scenario_problems = _select_scenarios(suite, overrides.scenarios, catalogue)
    loads, load_problems = _select_loads(suite, overrides.loads)
    loads, length_problems = _changed_loads(loads, overrides)
    warmup_by = suite.warmup_by and scaled(suite.warmup_by, overrides.scale or 1)
    changed = suite.keeping(variants).asking(scenarios).under(loads, warmup_by)
    has_budget = suite.auto is not None and suite.auto.precision is None
    if overrides.trials is not None and not has_budget:
        changed = changed.repeated(overrides.trials)
    if overrides.seed is not None:
        changed = changed.seeded(overrides.seed)
    if overrides.profile:
        changed = changed.profiling(
            tuple(one for name in dict.fromkeys(overrides.profile) for one in PROFILES if one == name)
        )
    changed, warm_up_problems = _with_warm_up(changed, overrides)
    too_many = "--trials sets the number of starts, and this suite has as many as its budget allows"
    problems = [
        *([Problem(too_many, "leave it out, or change `budget`")] if overrides.trials and has_budget else []),
        *server_problems,
        *option_problems,
        *scenario_problems,
        *load_problems,
        *length_problems,
        *warm_up_problems,
    ]
    problems += [*_range_problems(overrides), *_profile_problems(overrides)]
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
    """Those that have, of every option that is named, one of the values that are named or not the option at all.

    A route and a set of flags are selected like an option, by their names.
    """
    absent = {PLACE}
    absent |= set() if any(variant.route for variant in suite.variants) else {ROUTE}
    absent |= set() if any(variant.flags for variant in suite.variants) else {FLAGS}

    def axes(variant: Variant) -> dict[str, str]:
        """Its options, and its route and flags if the suite has any."""
        return {
            name: value for name, value in variant.settings.items() if name not in absent or name in variant.options
        }

    there: dict[str, dict[str, None]] = {}
    for variant in suite.variants:
        for name, value in axes(variant).items():
            there.setdefault(name, {})[value] = None
    problems = [_no_option(name, value, there) for name, value in wanted if value not in there.get(name, {})]
    values: dict[str, set[str]] = {}
    for name, value in wanted:
        values.setdefault(name, set()).add(value)
    chosen = tuple(
        variant
        for variant in variants
        if all(value in values.get(name, {value}) for name, value in axes(variant).items())
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
    return [Problem("no server matches both -s and -w", "leave out one of the two")]


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


def _select_loads(suite: Suite, globs: tuple[str, ...]) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads that match, and those that they are a share of."""
    named = [load for load in suite.loads if not globs or any(_matches((load.name,), glob) for glob in globs)]
    needed = {load.name for load in named} | {load.share.of for load in named if load.share}
    there = tuple(load.name for load in suite.loads)
    problems = [
        Problem(f"no load of this suite matches `{glob}`", _nothing_selected(glob, there, (), "loads"))
        for glob in globs
        if not any(_matches((name,), glob) for name in there)
    ]
    return tuple(load for load in suite.loads if load.name in needed), problems


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
    if not loads:
        return loads, problems  # that none was selected is said already
    if overrides.duration_ns is not None:
        loads, found = _for_length(loads, overrides.duration_ns)
        problems += found
    if overrides.users is not None:
        loads, found = _for_users(loads, overrides.users)
        problems += found
    if overrides.scale is not None:
        loads, found = _scaled(loads, overrides.scale)
        problems += found
    return loads, problems


def scaled(load: Load, factor: float) -> Load:
    """The load with its rate and stages times a factor, which its name says; as it is without a rate of its own."""
    shape = load.shape
    if isinstance(shape, Closed) or shape.rate_per_s is None or shape.share is not None or factor == 1:
        return load
    stages = tuple(LoadStage(to=stage.to * factor, over_ns=stage.over_ns) for stage in shape.stages)
    percent = f"{100 * factor:.6g}".replace(".", "_")
    return load.named(f"{load.name}-{percent}pct").shaped(shape.staged(shape.rate_per_s * factor, stages))


def _scaled(loads: tuple[Load, ...], factor: float) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads at a factor of their rates; a share of a capacity fits the machine already."""
    changed = tuple(scaled(load, factor) for load in loads)
    if factor != 1 and changed == loads:
        message = "--scale is given, but no load of this suite has a rate of its own"
        return loads, [Problem(message, "leave it out; a share of a capacity fits the machine already")]
    problems = [
        Problem(f"--scale makes the rate of `{load.name}` more than {HIGHEST_RATE_PER_S:,.0f}/s", "give a smaller one")
        for load in changed
        if not isinstance(load.shape, Closed) and load.shape.most_per_s > HIGHEST_RATE_PER_S
    ]
    return changed, problems


def _range_problems(overrides: Overrides) -> list[Problem]:
    numbers = (
        ("-u", overrides.users, 1, MOST_CONNECTIONS),
        ("--trials", overrides.trials, 1, MOST_TRIALS),
        ("--seed", overrides.seed, 0, HIGHEST_SEED),
    )
    durations = (
        ("-d", overrides.duration_ns, SHORTEST_LOAD_NS, "1ms to 24h"),
        ("--warmup", overrides.warmup_ns, 0, "0s to 24h"),
    )
    wrong_numbers = [
        Problem(f"{flag} must be {low} to {high}, not {value}", "give a number in that range")
        for flag, value, low, high in numbers
        if value is not None and not low <= value <= high
    ]
    wrong_durations = [
        Problem(f"{flag} must be {allowed}", "give a duration such as 25s")
        for flag, value, low, allowed in durations
        if value is not None and not low <= value <= LONGEST_DURATION_NS
    ]
    return wrong_numbers + wrong_durations


def _profile_problems(overrides: Overrides) -> list[Problem]:
    return [
        Problem(
            f"there is no profile `{clip(name)}`", did_you_mean(name, PROFILES) or f"choose of: {', '.join(PROFILES)}"
        )
        for name in overrides.profile
        if name not in PROFILES
    ]


def _with_warm_up(suite: Suite, overrides: Overrides) -> tuple[Suite, list[Problem]]:
    """The suite with the warm-up that the overrides ask for, and why it is not possible."""
    if overrides.warmup_detect:
        most_ns = suite.warmup_ns if suite.warmup_detect else DETECTION_NS
        changed = suite.warming_up(most_ns, detect=True)
        problems = [Problem(never_steady(load.name), WARM_UP_HINT) for load in suite.loads if load.changes]
        return changed, problems + ([Problem(DETECTS_ITSELF, WARM_UP_HINT)] if suite.warmup_by else [])
    if overrides.warmup_ns is not None:
        return suite.warming_up(overrides.warmup_ns, detect=False), []
    return suite, []


def quickened(suite: Suite, quick: QuickSchema | None) -> Suite:
    """The suite with every cell, measured in less time; what is shorter already stays.

    Raises UsageError when the suite does not say what is quick.
    """
    if quick is None:
        raise UsageError(
            f"the suite {suite.name} does not say what is quick",
            hint="add `quick: {warmup: 1s, for: 2s, trials: 2}` to it, or give -d and --trials",
        )

    def shorter(value: int, quick_value: int | None) -> int:
        return value if quick_value is None else min(value, quick_value)

    loads = tuple(load.lasting(shorter(load.duration_ns, quick.duration)) for load in suite.loads)
    warmup_ns = shorter(suite.warmup_ns, quick.warmup)
    # A time that was shortened is one that is kept.
    detect = suite.warmup_detect and warmup_ns == suite.warmup_ns
    short = suite.under(loads, suite.warmup_by).warming_up(warmup_ns, detect=detect)
    return short if quick.trials is None else short.repeated(min(suite.trials, quick.trials))


def _for_users(loads: tuple[Load, ...], users: int) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads with so many users in every closed one.

    Where closed loads have just that number already, they are selected and the other closed ones left out. Otherwise
    each gets the number, and of those that become the same the first stays, as `users8` where no other load has that
    name: its own name may hold another number. Open loads stay as they are.
    """
    closed = [load for load in loads if isinstance(load.shape, Closed)]
    if not closed:
        message = "users are given, but this suite has no closed load"
        return loads, [Problem(message, "an open load has a rate instead; add a load with `closed: {users: ...}`")]
    fitting = [load for load in closed if _users(load) == users]
    every = [load.shaped(load.shape.with_users(users)) for load in closed if isinstance(load.shape, Closed)]
    changed = fitting or _distinct(every)
    kept = {load.name: load for load in changed}
    chosen = tuple(kept.get(load.name, load) for load in loads if load.name in kept or load not in closed)
    problems = [*_staged(changed), *_without_their_capacity(chosen, loads, users)]
    return (chosen if fitting else _renamed(chosen, every, f"users{users}")), problems


def _for_length(loads: tuple[Load, ...], duration_ns: int) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads, each measured for so long."""
    changed = tuple(load.lasting(duration_ns) for load in loads)
    problems = []
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
    return changed, problems


def _users(load: Load) -> int | None:
    """How many users it has, when that does not change."""
    return load.shape.users if isinstance(load.shape, Closed) and not load.shape.stages else None


def _distinct(loads: list[Load]) -> list[Load]:
    return [load for index, load in enumerate(loads) if not any(_same(load, earlier) for earlier in loads[:index])]


def _renamed(chosen: tuple[Load, ...], every: list[Load], name: str) -> tuple[Load, ...]:
    """With that name for the first of `chosen` that several of `every` became, and in the shares of it."""
    for load in chosen:
        merged = {one.name for one in every if _same(one, load)}
        if len(merged) > 1 and not any(other.name == name for other in chosen if other is not load):
            return tuple(
                other.named(name) if other is load else _of_another(other, load.name, name) for other in chosen
            )
    return chosen


def _of_another(load: Load, of: str, instead: str) -> Load:
    """The load, with its rate a share of `instead` where it is one of `of`."""
    if load.share is None or load.share.of != of:
        return load
    return load.shaped(load.open_shape.sharing(Share(share=load.share.share, of=instead)))


def _same(one: Load, other: Load) -> bool:
    return one.named(other.name) == other


def _staged(loads: list[Load]) -> list[Problem]:
    return [
        Problem(f"users are given, but those of the load `{load.name}` change in stages", _IN_THE_SUITE)
        for load in loads
        if load.shape.stages
    ]


def _without_their_capacity(chosen: tuple[Load, ...], loads: tuple[Load, ...], users: int) -> list[Problem]:
    """Rates that are shares of what a load showed that is left out now."""
    gone = {load.name for load in loads} - {load.name for load in chosen}
    return [
        Problem(
            f"the rate of `{load.name}` is a share of `{load.share.of}`, which is left out with {users} users",
            _IN_THE_SUITE,
        )
        for load in chosen
        if load.share is not None and load.share.of in gone
    ]
