"""What a command line and `--quick` change of a suite's loads: their length, and the users of closed ones. Pure."""

from redline.errors import Problem
from redline.model import Closed, Load, Open

_IN_THE_SUITE = "change the load in the suite instead"


def for_users(loads: tuple[Load, ...], users: int) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads with so many users in every closed one.

    Where closed loads have just that number already, they are selected and the other closed ones left out. Otherwise
    each gets the number, and of those that become the same the first stays, as `users8` where no other load has that
    name: its own may tell of another number. Open loads stay as they are.
    """
    closed = [load for load in loads if isinstance(load.shape, Closed)]
    if not closed:
        message = "users are given, but this suite has no closed load"
        return loads, [Problem(message, "an open load has a rate instead; add a load with `closed: {users: ...}`")]
    fitting = [load for load in closed if _users(load) == users]
    every = [_with_users(load, users) for load in closed]
    changed = fitting or _distinct(every)
    kept = {load.name: load for load in changed}
    chosen = tuple(kept.get(load.name, load) for load in loads if load.name in kept or load not in closed)
    problems = [*_staged(changed), *_without_their_capacity(chosen, loads, users)]
    return (chosen if fitting else _renamed(chosen, every, f"users{users}")), problems


def for_length(loads: tuple[Load, ...], duration_ns: int) -> tuple[tuple[Load, ...], list[Problem]]:
    """The loads, each measured for so long."""
    changed = tuple(load.model_copy(update={"duration_ns": duration_ns}) for load in loads)
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


def _with_users(load: Load, users: int) -> Load:
    return load.model_copy(update={"shape": load.shape.model_copy(update={"users": users})})


def _distinct(loads: list[Load]) -> list[Load]:
    return [load for index, load in enumerate(loads) if not any(_same(load, earlier) for earlier in loads[:index])]


def _renamed(chosen: tuple[Load, ...], every: list[Load], name: str) -> tuple[Load, ...]:
    """With that name for the first of `chosen` that several of `every` became, and in the shares of it."""
    for load in chosen:
        merged = {one.name for one in every if _same(one, load)}
        if len(merged) > 1 and not any(other.name == name for other in chosen if other is not load):
            return tuple(
                other.model_copy(update={"name": name}) if other is load else _of_another(other, load.name, name)
                for other in chosen
            )
    return chosen


def _of_another(load: Load, of: str, instead: str) -> Load:
    """The load, with its rate a share of `instead` where it is one of `of`."""
    shape = load.shape
    if not isinstance(shape, Open) or shape.share is None or shape.share.of != of:
        return load
    share = shape.share.model_copy(update={"of": instead})
    return load.model_copy(update={"shape": shape.model_copy(update={"share": share})})


def _same(one: Load, other: Load) -> bool:
    return one.model_copy(update={"name": other.name}) == other


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
            f"the rate of `{load.name}` is a share of `{load.shape.share.of}`, which is left out with {users} users",
            _IN_THE_SUITE,
        )
        for load in chosen
        if isinstance(load.shape, Open) and load.shape.share is not None and load.shape.share.of in gone
    ]
