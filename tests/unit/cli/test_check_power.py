"""`redline check` reports what difference a plan can show, by the last run of its cells on this machine."""

import os
import socket
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.analysis.resolution import forecast
from redline.cli.commands.check import last_run, power_text
from redline.model import AutoTrials, Plan, Report
from redline.render import RENDERERS
from redline.suite import with_rounds
from tests.fakes.recordings import simulated_run

RUN = simulated_run(trials=5)
PLAN = RUN.manifest.plan


def report(host: str) -> Report:
    made = build_report(RUN)
    return made.model_copy(update={"environment": made.environment.model_copy(update={"hostname": host})})


def keep(folder: Path, host: str) -> None:
    folder.mkdir(parents=True)
    (folder / "results.json").write_bytes(RENDERERS["json"](report(host)))


def planned(**changes: object) -> Plan:
    return PLAN.model_copy(update={"suite": PLAN.suite.model_copy(update=changes)})


def test_more_rounds_show_less() -> None:
    before = report("here")
    few, many = forecast(PLAN, before), forecast(with_rounds(PLAN, 50), before)
    assert few
    assert all(one.difference <= 0.4 * other.difference for one, other in zip(many, few, strict=True))
    by_run = {(one.cell_id, one.metric): one.resolution for one in before.comparisons}
    assert all(one.difference == pytest.approx(by_run[one.cell_id, one.metric]) for one in few)


def test_other_cells_and_another_design_say_nothing() -> None:
    assert forecast(PLAN.model_copy(update={"cells": {}}), report("here")) == ()
    made = report("here")
    duet = made.comparisons[0].model_copy(update={"duet": None})
    assert forecast(PLAN, made.model_copy(update={"comparisons": (duet.model_copy(update={"primary": False}),)})) == ()


def test_the_newest_run_of_these_cells_on_this_machine_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = power_text(PLAN, *last_run(PLAN))
    assert text == "what difference it can show is not known: runs/ has no run of these cells on this machine yet"
    keep(Path("runs/20261120-000000-x"), socket.gethostname())
    keep(Path("runs/20261121-000000-x"), "another")
    broken = Path("runs/20261122-000000-x")
    broken.mkdir()
    (broken / "results.json").write_text("{")
    text = power_text(PLAN, *last_run(PLAN))
    assert text.startswith("5 rounds can show differences of ")
    assert text.endswith(", by runs/20261120-000000-x")
    keep(Path("runs/mine"), socket.gethostname())
    for place, age in (("runs/mine", 2), ("runs/20261120-000000-x", 1)):
        file = Path(place) / "run.json"
        file.touch()
        os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
    assert power_text(PLAN, *last_run(PLAN)).endswith(", by runs/20261120-000000-x"), "by age, not by name"


def test_a_plan_that_compares_nothing_or_ends_by_itself_has_no_forecast() -> None:
    auto = AutoTrials(precision=0.02, at_least=3)
    for plan in (planned(baseline=None, baselines={}), planned(auto=auto)):
        assert power_text(plan, Path("runs"), ()) == ""
