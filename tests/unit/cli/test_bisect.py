"""The lines that a search for a commit prints while it runs."""

import io

from rich.console import Console

from redline.cli.commands.bisect import BisectView
from redline.model.bisection import Bisection
from tests.fakes.bisections import begun


def printed(told: Bisection) -> str:
    out = io.StringIO()
    BisectView(Console(file=out, width=200)).measured(told.commits[-1], told)
    return out.getvalue().strip()


def test_a_line_names_what_is_most_probable() -> None:
    level = {1: (0.05, 0.04, 0.06)}
    line = printed(begun(2).known_by(level, [0.2, 0.5], 0.2, 0.1))
    assert line == "CPU per request +5.0% [+4.0, +6.0]; most likely 000000000: 50%"
    line = printed(begun(2).known_by(level, [0.02, 0.05], 0.92, 0.01))
    assert line == "CPU per request +5.0% [+4.0, +6.0]; several changes: 92%; no change: 1%"
