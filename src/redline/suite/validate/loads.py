"""Checks across the loads of a suite: shares of a capacity, `quick`, and warm-up detection. Pure."""

from collections.abc import Mapping

from redline.model import Share
from redline.quantities import clip, did_you_mean
from redline.schema.document import Path
from redline.schema.load import LoadSchema
from redline.schema.suite import QuickSchema, WarmUpSchema
from redline.suite.validate.checking import Sheet, suggest
from redline.wording import advice

Loads = Mapping[str, LoadSchema | None]
"""The loads of a suite by name; None for a load with a problem of its own."""
DETECTS_ITSELF = "a server's steadiness is detected under the measured load, not under `warmup_by`"


def check_loads(sheet: Sheet) -> Loads:
    """The loads, after noting conflicts with the rest of the suite."""
    loads = {str(path[-1]): sheet.sound(LoadSchema, path) for path in sheet.items(("loads",))}
    quick = sheet.sound(QuickSchema, ("quick",))
    has_budget = sheet.document.at(("budget",)) is not None
    detects = sheet.document.at(("warmup", "detect")) is not None
    for name, load in loads.items():
        if load is None:
            continue
        if load.duration is None and not has_budget:
            sheet.wrong(("loads", name), "`for` is missing", "add it, such as `for: 1s`")
        if load.open and isinstance(load.open.rate, Share):
            _check_share(sheet, ("loads", name, "open", "rate"), load.open.rate.of, loads)
        stages_ns = sum(stage.over_ns for stage in load.written.steps)
        if quick and quick.duration is not None and stages_ns > quick.duration:
            message = f"the stages of the load `{name}` take {stages_ns / 1e9:g}s, longer than that"
            hint = "write a longer `for`, or leave it out: then `quick` has less warm-up and fewer trials"
            sheet.wrong(("quick", "for"), message, hint)
        if detects and (load.written.steps or (load.open and load.open.replayed)):
            sheet.wrong(("warmup", "detect"), never_steady(name), warm_up_hint())
    if (by := sheet.document.at(("warmup_by",))) is not None:
        implied = has_budget and sheet.document.at(("warmup",)) is None
        _check_warmup_by(sheet, by, loads, detects=detects or implied)
    return loads


def _check_warmup_by(sheet: Sheet, by: object, loads: Loads, *, detects: bool) -> None:
    """Note why a named load cannot warm servers up, and that a detected warm-up excludes `warmup_by`."""
    path = ("warmup_by",)
    if detects:
        sheet.wrong(path, DETECTS_ITSELF, "give a fixed warm-up")
    if not isinstance(by, str):
        return
    written = loads.get(by)
    if by not in loads:
        sheet.wrong(path, f"there is no load `{clip(by)}` in this suite", suggest(by, loads, "this suite has"))
    elif written is not None and not _is_constant(written):
        hint = "name a load of constant users, or of a constant rate"
        sheet.wrong(path, f"`{by}` is not a constant load", hint)


def _is_constant(load: LoadSchema) -> bool:
    replays = load.open is not None and (load.open.replayed or isinstance(load.open.rate, Share))
    return not load.written.steps and not replays and load.count is None


def _check_share(sheet: Sheet, path: Path, of: str, loads: Loads) -> None:
    """Note a share of a load without a capacity: only constant users with zero think time have a capacity."""
    written = loads.get(of)
    if of in loads and written is None:
        return  # it has a problem of its own
    able = tuple(name for name, load in loads.items() if load and not _wrong_with(name, load))
    known = f"a rate may be a share of: {', '.join(able)}" if able else "add a load with `closed: {users: ...}`"
    if written is None:
        sheet.wrong(path, f"there is no load `{clip(of)}` in this suite", did_you_mean(of, able) or known)
    elif wrong := _wrong_with(of, written):
        sheet.wrong(path, wrong, known)


def _wrong_with(name: str, load: LoadSchema) -> str:
    """The reason why the load shows no capacity; empty if it does."""
    closed = load.closed
    if closed is None:
        return f"`{name}` is an open load, which shows no capacity"
    if closed.steps:
        return f"the users of `{name}` change, so it shows no single capacity"
    waits = "pace" if closed.pace is not None else "think" if closed.think is not None else ""
    return f"the users of `{name}` have a `{waits}`, so it shows no capacity" if waits else ""


def read_warm_up(written: int | WarmUpSchema) -> tuple[int, bool]:
    """The length of the warm-up in nanoseconds, or its maximum; and whether its end is detected."""
    return (written, False) if isinstance(written, int) else (written.detect.at_most, True)


def warm_up_hint() -> str:
    """What to do where warm-up cannot be detected."""
    return advice("warm-up", "give a fixed warm-up, such as `warmup: 30s`, or move such loads to another suite")


def never_steady(load: str) -> str:
    """The reason why the warm-up of a load cannot be detected."""
    return f"the load `{load}` changes by design (stages, or replayed arrivals), so it shows no steady server"
