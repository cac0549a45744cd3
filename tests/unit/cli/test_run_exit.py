"""The exit code of `redline run`, when it ran in one part and in two."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from redline.cli import exits
from redline.cli.experiment import Output, check_compares, exit_code
from redline.errors import UsageError
from redline.model import Objective, ObjectiveResult, Report, Verdict
from redline.model.estimate import DuetComparison
from tests.fakes import reports
from tests.fakes.recordings import simulated_run

MET, MISSED, UNKNOWN = (True, True), (False, True), (False, False)


def judged(state: tuple[bool, bool]) -> Report:
    """A healthy report, all of whose cells have an objective."""
    met, known = state
    report = reports.healthy()
    objective = Objective(metric="p99", below=True, limit=1e6, text="p99 < 1ms")
    result = ObjectiveResult(objective=objective, actual=2e5 if met else 2e6, met=met, known=known)
    cells = tuple(cell.model_copy(update={"objectives": (result,)}) for cell in report.cells)
    return report.model_copy(update={"cells": cells})


def invalid(state: tuple[bool, bool] = UNKNOWN) -> Report:
    report = judged(state)
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
        ([judged(UNKNOWN)], exits.MISSED),
        ([invalid(MET)], exits.DONE),
        ([invalid(MISSED)], exits.MISSED),
    ],
    ids=[
        "met",
        "missed",
        "missed in the first",
        "missed in the last",
        "first invalid",
        "last invalid",
        "not known",
        "invalid, and met",
        "invalid, and missed",
    ],
)
def test_objectives_are_for_the_last_part_and_what_could_not_run_is_for_all(parts: Sequence[Report], code: int) -> None:
    assert exit_code(parts) == code


def compared(verdict: Verdict | None, *, matters: bool | None = None, unsettled: str = "") -> Report:
    """A healthy report whose first comparison has this verdict, by duets."""
    report = judged(MET)
    duet = DuetComparison(
        starts=5, between_sd=None, blocks_se=None, control=None, alone=None, unsettled=unsettled, findings=()
    )
    change = {"verdict": verdict, "matters": matters, "primary": True, "duet": duet}
    return report.model_copy(update={"comparisons": (report.comparisons[0].model_copy(update=change),)})


SLOWER, INCONCLUSIVE = Verdict.SLOWER, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("report", "fail_on", "code"),
    [
        (compared(SLOWER), [SLOWER], exits.MISSED),
        (compared(SLOWER, matters=False), [SLOWER], exits.DONE),
        (compared(SLOWER), [], exits.DONE),
        (compared(SLOWER), [INCONCLUSIVE], exits.DONE),
        (compared(INCONCLUSIVE), [SLOWER], exits.DONE),
        (compared(INCONCLUSIVE), [INCONCLUSIVE], exits.MISSED),
        (compared(INCONCLUSIVE, unsettled="not warm"), [SLOWER], exits.DONE),
        (compared(INCONCLUSIVE, unsettled="not warm"), [], exits.DONE),
        (compared(None), [SLOWER], exits.COULD_NOT_RUN),
        (compared(None), [], exits.DONE),
    ],
)
def test_an_unwanted_verdict_fails_and_so_does_a_missing_one(report: Report, fail_on: list[Verdict], code: int) -> None:
    assert exit_code([report], fail_on) == code


@pytest.mark.parametrize(
    ("baseline", "more", "fail_on", "says"),
    [
        (False, 0, [SLOWER], "no baseline, so nothing is compared, and --fail-on could never fail"),
        (False, 1, [], "has no baseline, so nothing of it is undecided"),
        (True, 1, [SLOWER], ""),
        (False, 0, [], ""),
    ],
)
def test_a_gate_that_could_never_fail_is_refused(baseline: bool, more: int, fail_on: list[Verdict], says: str) -> None:
    suite = simulated_run(trials=1, ceiling=None).manifest.plan.suite
    suite = suite if baseline else suite.model_copy(update={"baseline": None, "baselines": {}})
    output = Output("run", None, tuple(fail_on), more_ns=more)
    if not says:
        check_compares(suite, Path("s.yaml"), output)
        return
    with pytest.raises(UsageError, match=says):
        check_compares(suite, Path("s.yaml"), output)


def test_a_server_that_could_not_be_built_does_not_pass_a_gate_as_in_compare() -> None:
    report, missing = compared(Verdict.EQUIVALENT), ["not run: rust.axum.SimpleGet.saturate: cargo failed"]
    assert exit_code([report], [SLOWER], missing) == exits.COULD_NOT_RUN
    assert exit_code([report], [SLOWER]) == exits.DONE
    assert exit_code([compared(SLOWER)], [SLOWER], missing) == exits.MISSED
