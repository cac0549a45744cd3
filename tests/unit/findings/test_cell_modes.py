"""Cells whose host changed its speed, whose trials are alike, or whose builds are the same bytes."""

import pytest

from redline.findings.cell import host_mode, in_modes
from redline.model import Grade
from tests.fakes.recordings import SATURATE, simulated_cell

CELL = simulated_cell(load=SATURATE)


def test_modes_are_counted_by_their_direction() -> None:
    assert in_modes([1.0, 1.2, 0.81]) == ""
    one = in_modes([1.31, 1.0, 1.0])
    assert one == "in 1 of 3 trials the server's cores were 31% faster than in the run's median trial"
    two = in_modes([1.31, 1.41, 0.5, 1.0])
    assert two == (
        "in 2 of 4 trials the server's cores were 31 to 41% faster and in 1 50% slower than in the run's median trial"
    )


@pytest.mark.parametrize(("speed", "found"), [(1.24, False), (1.26, True), (1 / 1.24, False), (1 / 1.26, True)])
def test_a_quarter_faster_or_slower_is_another_mode(speed: float, *, found: bool) -> None:
    made = host_mode(CELL, [1.0, speed])
    assert bool(made) is found
    assert not made or made[0].grade is Grade.NOTE


def test_without_trials_there_is_no_mode() -> None:
    assert host_mode(CELL, []) == ()
