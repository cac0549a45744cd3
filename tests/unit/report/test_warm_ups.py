"""Warm-ups as text: a line for cells that are alike, in every form of a report."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.model import CellReport, WarmUp
from redline.render import RENDERERS
from redline.report.trials import trial_text, warm_up_text, warm_ups
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, simulated_run

S = 1_000_000_000
FLAT = WarmUp(kind="flat", steady_from_ns=0, measured_from_ns=5 * S)
LATER = WarmUp(kind="warmed up", steady_from_ns=int(4.2 * S), measured_from_ns=int(9.5 * S))
LATEST = WarmUp(kind="warmed up", steady_from_ns=int(6.1 * S), measured_from_ns=int(12.5 * S))
COMPILING = WarmUp(kind="still compiling", steady_from_ns=0, measured_from_ns=int(9.5 * S))
SLOWER = WarmUp(kind="slowing down", steady_from_ns=3 * S, measured_from_ns=8 * S, lost=0.123)
NEVER = WarmUp(kind="never steady", measured_from_ns=60 * S)


def cell(*warm_up: WarmUp | None) -> CellReport:
    report = build_report(simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), trials=len(warm_up), ceiling=None))
    (found,) = report.cells
    trials = (one.model_copy(update={"warm_up": seen}) for one, seen in zip(found.trials, warm_up, strict=True))
    return found.model_copy(update={"trials": tuple(trials)})


@pytest.mark.parametrize(
    ("seen", "text"),
    [
        ((None, None), ""),
        ((FLAT, FLAT), "flat; measured from 5.00 s"),
        ((LATER, LATEST), "warmed up after 4.20 s to 6.10 s; measured from 9.50 s to 12.5 s"),
        ((FLAT, LATER, FLAT), "2 of 3 trials flat, 1 warmed up after 4.20 s; measured from 5.00 s to 9.50 s"),
        ((FLAT, None), "1 of 2 trials flat; measured from 5.00 s"),
        ((SLOWER, NEVER), "1 of 2 trials slowing down, by 12%, 1 never steady; measured from 8.00 s to 1 min"),
    ],
)
def test_a_cell_is_described_by_the_kinds_of_its_trials(seen: tuple[WarmUp | None, ...], text: str) -> None:
    assert warm_up_text(cell(*seen)) == text


def test_what_another_load_warmed_up_before_is_said_too() -> None:
    settled = cell(FLAT, COMPILING).model_copy(update={"warmed_up_before": "1 min by 2 users"})
    text = "1 of 2 trials flat, 1 still compiling; measured from 5.00 s to 9.50 s, after 1 min by 2 users"
    assert warm_up_text(settled) == text


def test_a_report_names_the_load_that_warmed_a_server_up() -> None:
    run = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), ceiling=None)
    plan = run.manifest.plan
    cells = {
        id_: one.model_copy(update={"warmup_by": SATURATE, "warmup_ns": 60 * S}) for id_, one in plan.cells.items()
    }
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": cells})})
    (found,) = build_report(run.model_copy(update={"manifest": manifest})).cells
    assert found.warmed_up_before == f"1 min by {SATURATE.connections} users"
    unused = {id_: one.model_copy(update={"warmup_ns": 0}) for id_, one in cells.items()}
    manifest = run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": unused})})
    (found,) = build_report(run.model_copy(update={"manifest": manifest})).cells
    assert found.warmed_up_before == ""


def test_servers_that_are_alike_share_a_line() -> None:
    one = cell(FLAT, FLAT)
    other, unknown = one.model_copy(update={"server": "rust.axum"}), cell(None)
    assert warm_ups([one, unknown, other]) == [("rust.hyper, rust.axum", "flat; measured from 5.00 s")]


def test_a_trial_is_judged_by_itself() -> None:
    assert trial_text(LATER) == "warmed up after 4.20 s, measured from 9.50 s"
    assert trial_text(NEVER) == "never steady, measured from 1 min"
    assert trial_text(None) == ""


def test_a_report_shows_it_in_every_form() -> None:
    long = SATURATE.model_copy(update={"duration_ns": 4 * S})
    report = build_report(simulated_run({"rust.hyper": replace(GOOD, cold_s=0.0)}, loads=(long,), ceiling=None))
    assert {trial.warm_up and trial.warm_up.kind for trial in report.cells[0].trials} == {"flat"}
    for form in ("md", "html", "json"):
        text = RENDERERS[form](report).decode()
        assert "flat" in text, form
    assert "Warm-up of rust.hyper: flat; measured from 250 ms" in RENDERERS["md"](report).decode()
