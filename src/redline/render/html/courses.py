"""Courses as paths of SVG."""

import math
from dataclasses import dataclass

from redline.document.figures import RunCourse
from redline.model import Verdict

WIDTH = 1000
"""The width of a course in units; a browser stretches it to the available width."""
HEIGHT = 96
_EDGE = 8
_LINE = 14
"""The height of a text: ticks closer than this would overlap, so only the highest is shown."""
_LEAST_SPAN = math.log(1.04)
"""Courses that differ by less are drawn flat, so that noise does not look like mountains."""


@dataclass(frozen=True)
class DrawnCourse:
    """A course's line, intervals, dots of runs, beginnings of eras, changes, and positions of ticks."""

    line: str
    whiskers: str
    dots: str
    eras: str
    changes: tuple[tuple[Verdict, str], ...]
    ticks: tuple[tuple[float, str], ...]


def draw_course(course: RunCourse) -> DrawnCourse:
    """Draw runs at equal distances, values on a log scale. Intervals are cut off at the ends of the scale."""
    step = WIDTH / len(course.points)
    known = [point[0] for point in course.points if point]
    lowest, highest = math.log(min(known, default=1.0)), math.log(max(known, default=1.0))
    half = max((highest - lowest) * 0.75, _LEAST_SPAN / 2)
    middle = (lowest + highest) / 2

    def across(place: float) -> float:
        return round((place + 0.5) * step, 1)

    def down(value: float | None) -> float:
        log = math.log(value) if value and value > 0 else middle - half
        share = min(1.0, max(0.0, (log - middle + half) / (2 * half)))
        return round(HEIGHT - _EDGE - share * (HEIGHT - 2 * _EDGE), 1)

    line, whiskers, dots = [], [], []
    pen = "M"
    for place, point in enumerate(course.points):
        if point is None:
            pen = "M"
            continue
        value, low, high = point
        pen = "M" if place in course.eras else pen
        line.append(f"{pen}{across(place)} {down(value)}")
        dots.append(f"M{across(place)} {down(value)}h0")
        if low is not None and high is not None:
            whiskers.append(f"M{across(place)} {down(low)}V{down(high)}")
        pen = "L"
    eras = "".join(f"M{across(place - 0.5)} 0V{HEIGHT}" for place in course.eras)
    changes = tuple((verdict, f"M{across(place - 0.5)} 0V{HEIGHT}") for place, verdict in course.changes)
    ticks = [(down(value), text) for value, text in course.ticks]
    apart = len(ticks) < 2 or ticks[0][0] - ticks[-1][0] >= _LINE
    return DrawnCourse(
        "".join(line), "".join(whiskers), "".join(dots), eras, changes, tuple(ticks if apart else ticks[-1:])
    )
