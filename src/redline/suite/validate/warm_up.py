"""The warm-up of a suite: a time, or until the server is steady, within a time. Pure."""

from redline.errors import Problem
from redline.model import Suite
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.suite import DETECTION_NS, WarmUpSchema
from redline.suite.validate.checking import Sheet
from redline.suite.validate.overrides import Overrides

_HINT = "give a fixed warm-up, such as `warmup: 30s`, or put such loads into a suite of their own"


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
            sheet.wrong(where, _refusal(str(path[-1])), _HINT)


def with_warm_up(suite: Suite, overrides: Overrides) -> tuple[Suite, list[Problem]]:
    """The suite with the warm-up that the overrides ask for, and why it cannot be had."""
    if overrides.warmup_detect:
        most_ns = suite.warmup_ns if suite.warmup_detect else DETECTION_NS
        changed = suite.model_copy(update={"warmup_ns": most_ns, "warmup_detect": True})
        return changed, [Problem(_refusal(load.name), _HINT) for load in suite.loads if load.changes]
    if overrides.warmup_ns is not None:
        return suite.model_copy(update={"warmup_ns": overrides.warmup_ns, "warmup_detect": False}), []
    return suite, []


def _refusal(load: str) -> str:
    return f"the load `{load}` changes by design (stages, or replayed arrivals), so it shows no steady server"
