"""Checks across the loads of a suite: shares of a capacity, `quick`, and warm-up detection. Pure."""

from collections.abc import Mapping

from redline.model import Share
from redline.suite.schema.document import Path
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.suite import QuickSchema, WarmUpSchema
from redline.suite.schema.units import clip, did_you_mean
from redline.suite.validate.checking import Sheet

WARM_UP_HINT = "give a fixed warm-up, such as `warmup: 30s`, or move such loads to another suite"


def check_shares(sheet: Sheet) -> None:
    """Note rates that are shares of a load without a capacity: only constant users with zero think time have one."""
    loads = {str(path[-1]): sheet.sound(LoadSchema, path) for path in sheet.items(("loads",))}
    for name, written in loads.items():
        rate = written.open.rate if written and written.open else None
        if isinstance(rate, Share):
            _check_share(sheet, ("loads", name, "open", "rate"), rate.of, loads)


def _check_share(sheet: Sheet, path: Path, of: str, loads: Mapping[str, LoadSchema | None]) -> None:
    written = loads.get(of)
    if of in loads and written is None:
        return  # a problem of its own
    able = tuple(name for name, load in loads.items() if load and not _wrong_with(name, load))
    known = f"a rate may be a share of: {', '.join(able)}" if able else "add a load with `closed: {users: ...}`"
    if written is None:
        sheet.wrong(path, f"there is no load `{clip(of)}` in this suite", did_you_mean(of, able) or known)
    elif wrong := _wrong_with(of, written):
        sheet.wrong(path, wrong, known)


def _wrong_with(name: str, load: LoadSchema) -> str:
    """Why the load shows no capacity; empty when it does."""
    closed = load.closed
    if closed is None:
        return f"`{name}` is an open load, which shows no capacity"
    if closed.steps:
        return f"the users of `{name}` change, so it shows no one capacity"
    waits = "pace" if closed.pace is not None else "think" if closed.think is not None else ""
    return f"the users of `{name}` have a `{waits}`, so it shows no capacity" if waits else ""


def check_quick(sheet: Sheet) -> None:
    """Note loads whose stages take longer than they would be measured."""
    quick = sheet.sound(QuickSchema, ("quick",)) if sheet.document.at(("quick",)) is not None else None
    if quick is None or quick.duration is None:
        return
    for path in sheet.items(("loads",)):
        load = sheet.sound(LoadSchema, path)
        shape = load and (load.closed or load.open)
        stages_ns = sum(stage.over_ns for stage in shape.steps) if shape else 0
        if stages_ns > quick.duration:
            message = f"the stages of the load `{path[-1]}` take {stages_ns / 1e9:g}s, longer than that"
            hint = "write a longer `for`, or leave it out: then `quick` has less warm-up and fewer trials"
            sheet.wrong(("quick", "for"), message, hint)


def read_warm_up(written: int | WarmUpSchema) -> tuple[int, bool]:
    """How long it is in nanoseconds, or at most; and whether its end is detected."""
    return (written, False) if isinstance(written, int) else (written.detect.at_most, True)


def check_warm_up(sheet: Sheet) -> None:
    """Note that the warm-up of a load that changes by design cannot be detected."""
    where = ("warmup", "detect")
    if sheet.document.at(where) is None:
        return
    for path in sheet.items(("loads",)):
        load = sheet.sound(LoadSchema, path)
        shape = load and (load.closed or load.open)
        if load and shape and (shape.steps or (load.open and load.open.replayed)):
            sheet.wrong(where, never_steady(str(path[-1])), WARM_UP_HINT)


def never_steady(load: str) -> str:
    """Why the warm-up of a load cannot be detected."""
    return f"the load `{load}` changes by design (stages, or replayed arrivals), so it shows no steady server"
