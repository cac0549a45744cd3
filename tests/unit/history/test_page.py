"""The page of a history: its courses, and where they begin, break and change."""

import re
from pathlib import Path

from typer.testing import CliRunner

from redline.cli.command_line import app
from redline.document.figures import Courses, RunCourse
from redline.history.over_runs import build_history
from redline.history.page import page
from redline.model import Environment, Verdict
from redline.model.history import History
from redline.render import history_page
from redline.render.html.courses import HEIGHT, draw_course
from tests.fakes.histories import level_series, seen
from tests.fakes.recordings import simulated_environment

OTHER = simulated_environment().model_copy(update={"cores": 64})


def history(
    speeds: list[float], missing: int | None = None, environments: dict[int, Environment] | None = None
) -> History:
    levels = level_series(speeds, 7, between=0.002)
    given = environments or {}
    runs = [
        seen(place, "the cell is invalid" if place == missing else level, given.get(place))
        for place, level in enumerate(levels)
    ]
    return build_history("runs", runs)


def courses(made: History) -> list[RunCourse]:
    blocks = [block for section in page(made).sections for block in section.blocks]
    return [course for block in blocks if isinstance(block, Courses) for course in block.courses]


def test_a_change_is_marked_before_its_run() -> None:
    (course,) = courses(history([2000.0] * 6 + [1700.0] * 4))
    assert course.changes == ((6, Verdict.SLOWER),)
    drawn = draw_course(course)
    ((verdict, path),) = drawn.changes
    assert (verdict, path) == (Verdict.SLOWER, f"M600.0 0V{HEIGHT}")
    assert drawn.line.count("M") == 1
    assert drawn.dots.count("h0") == 10


def test_an_interval_that_says_nothing_is_not_drawn() -> None:
    made = history([2000.0] * 8)
    cell = made.cells[0]
    assert cell.points[2].estimate is not None
    wide = cell.points[2].estimate.model_copy(update={"low": 1.0, "high": 1e6})
    points = tuple(p.model_copy(update={"estimate": wide}) if at == 2 else p for at, p in enumerate(cell.points))
    (course,) = courses(made.model_copy(update={"cells": (cell.model_copy(update={"points": points}),)}))
    assert course.points[2] == (wide.value, None, None)
    assert None not in (course.points[1] or ())


def test_a_missing_run_breaks_the_line() -> None:
    (course,) = courses(history([2000.0] * 8, missing=3))
    assert course.points[3] is None
    drawn = draw_course(course)
    assert drawn.line.count("M") == 2
    assert drawn.dots.count("h0") == 7


def test_an_era_breaks_the_line_wherever_it_begins() -> None:
    (course,) = courses(history([2000.0] * 6, environments={2: OTHER, 4: OTHER, 5: OTHER}))
    assert course.eras == (2, 3, 4)
    drawn = draw_course(course)
    assert drawn.eras.count("V") == 3
    assert drawn.line.count("M") == 4


def test_noise_is_drawn_flat_and_has_one_tick() -> None:
    (course,) = courses(history([2000.0] * 8))
    drawn = draw_course(course)
    heights = [float(y) for y in re.findall(r" ([\d.]+)", drawn.line)]
    assert max(heights) - min(heights) < HEIGHT / 2
    assert all(0 <= height <= HEIGHT for height in heights)
    assert len(drawn.ticks) in (1, 2)


def test_the_page_names_changes_and_runs() -> None:
    made = history([2000.0] * 6 + [1700.0] * 4)
    text = history_page(made).decode()
    assert "What changed" in text
    assert 'class="change slower"' in text
    assert "since run 7 of 10, run-06" in text
    assert "no change" not in text
    assert text == history_page(made).decode()


def test_a_history_without_changes_says_so(tmp_path: Path) -> None:
    text = history_page(history([2000.0] * 8)).decode()
    assert "No line changed." in text
    assert 'id="unchanged"' in text
    empty = CliRunner().invoke(app, ["history", str(tmp_path), "--format", "html"])
    assert empty.exit_code == 0
    assert f"no run below {tmp_path}" in empty.stdout
