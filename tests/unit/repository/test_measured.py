"""`Done.measured` of the end-to-end tests: what it takes for the work of a busy machine, and what for a fault."""

import json

import pytest

from redline.findings import RULES
from tests.e2e.conftest import OF_A_BUSY_MACHINE, Done


def load(*kinds: str) -> str:
    return json.dumps({"findings": [{"kind": kind, "grade": "invalid"} for kind in kinds]})


def run(*kinds: str) -> str:
    return json.dumps({"cells": [{"findings": []}, json.loads(load(*kinds))]})


@pytest.mark.parametrize("out", [load("unsteady"), run("unsteady", "too-few-trials"), "invalid: Sent 12/s of 50/s."])
def test_what_a_busy_machine_hides_was_measured(out: str) -> None:
    Done(1, out, "").measured()
    Done(0, "", "").measured()


@pytest.mark.parametrize(
    "done",
    [
        Done(1, load("unsteady", "errors"), ""),
        Done(1, run("server-died"), ""),
        Done(1, load(), "invalid"),
        Done(1, "invalid: 1 of 2 failed", "redline: nothing listens\n  hint: start it"),
        Done(1, "", ""),
        Done(2, load("unsteady"), ""),
        Done(0, "", "Traceback (most recent call last):"),
    ],
)
def test_a_fault_was_not(done: Done) -> None:
    with pytest.raises(AssertionError):
        done.measured()


def test_no_fault_of_a_server_or_of_the_engine_is_taken_for_the_work_of_the_machine() -> None:
    assert RULES.keys() >= OF_A_BUSY_MACHINE
    touching_all = {kind for kind, rule in RULES.items() if rule.invalid is not None and "counts" in rule.touches}
    assert not touching_all & OF_A_BUSY_MACHINE
