"""What `redline run` exits with, when it ran in one part and in two."""

from collections.abc import Sequence

import pytest

from redline.cli import exits
from redline.cli.commands.run import exit_code
from redline.model import Objective, ObjectiveResult, Report
from tests.fakes import reports

MET, MISSED = True, False


def judged(met: bool) -> Report:
    """A healthy report, each of whose cells has an objective."""
    report = reports.healthy()
    objective = Objective(metric="p99", below=True, limit=1e6, text="p99 < 1ms")
    result = ObjectiveResult(objective=objective, actual=2e5 if met else 2e6, met=met)
    cells = tuple(cell.model_copy(update={"objectives": (result,)}) for cell in report.cells)
    return report.model_copy(update={"cells": cells})


def invalid() -> Report:
    report = judged(MET)
    cells = tuple(cell.model_copy(update={"valid": False}) for cell in report.cells)
    return report.model_copy(update={"cells": cells})


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([judged(MET)], exits.DONE),
        ([judged(MISSED)], exits.MISSED),
        ([judged(MISSED), judged(MET)], exits.DONE),
        ([judged(MET), judged(MISSED)], exits.MISSED),
        ([invalid(), judged(MISSED)], exits.COULD_NOT_RUN),
        ([judged(MET), invalid()], exits.COULD_NOT_RUN),
    ],
    ids=["met", "missed", "missed in the first", "missed in the last", "first invalid", "last invalid"],
)
def test_objectives_are_for_the_last_part_and_what_could_not_run_is_for_all(parts: Sequence[Report], code: int) -> None:
    assert exit_code(parts) == code
