"""`quick:` of a suite: the same cells in less time. Pure."""

from redline.errors import UsageError
from redline.model import Suite
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.suite import QuickSchema
from redline.suite.validate.checking import Sheet


def check_quick(sheet: Sheet) -> None:
    """Note loads whose stages take longer than they would be measured."""
    quick = sheet.sound(QuickSchema, ("quick",)) if sheet.document.at(("quick",)) is not None else None
    if quick is None or quick.duration is None:
        return
    for path in sheet.items(("loads",)):
        load = sheet.sound(LoadSchema, path)
        shape = load and (load.closed or load.open)
        stages_ns = sum(stage.over for stage in shape.steps) if shape else 0
        if stages_ns > quick.duration:
            message = f"the stages of the load `{path[-1]}` take {stages_ns / 1e9:g}s, longer than that"
            hint = "write a longer `for`, or leave it out: then `quick` has less warm-up and fewer trials"
            sheet.wrong(("quick", "for"), message, hint)


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

    loads = [load.model_copy(update={"duration_ns": shorter(load.duration_ns, quick.duration)}) for load in suite.loads]
    warmup_ns = shorter(suite.warmup_ns, quick.warmup)
    return suite.model_copy(
        update={
            "warmup_ns": warmup_ns,
            # A time that was shortened is one that is kept.
            "warmup_detect": suite.warmup_detect and warmup_ns == suite.warmup_ns,
            "loads": tuple(loads),
            "trials": shorter(suite.trials, quick.trials),
            "auto": suite.auto if quick.trials is None else None,
        }
    )
