"""The command line holds no constant of the method: lengths, numbers and confidences are for the rooms below."""

import ast
import re
from pathlib import Path

import redline.cli

FOLDER = Path(redline.cli.__file__).parent
QUANTITY = re.compile(r"\s*[\d.]+\s*(ns|us|ms|s|m|h|%|/s|/min)\s*|.*[<>]\s*[\d.]+\s*(ns|us|ms|s|%).*")
LAYOUT = {
    "COLUMNS",  # of the help that a wheel has
    "LEAST_S",  # between two paints of a panel
    "PLAIN_S",  # between two lines of a log
    "WAITS_S",  # for the answer of a question
    "POINT_NS",  # what a panel shows is about so long
    "_AGAIN_S",  # how soon an interrupt that Python lost is sent again
    "_CHECKOUT",  # the folder of this checkout
    "_DEFAULT_PORTS",
    "_GAP",
    "_INSTALLED",  # the folder of what is installed with the lab
    "_IN_ONE_LINE",
    "_JUDGING_SHARE",  # of the time, for what is shown on the way
    "_LEAST_REST",
    "_MOST_ENCODED",  # lines about encoded answers
    "_LONGEST_S",  # what `redline selftest --seconds` takes
    "_LONGEST_WAIT_S",  # for whoever paints
    "_LOOK_S",  # how soon a question that is over gives the terminal back
    "_MOST",  # points of a course
    "_MOST_COMPARED",  # servers whose comparisons a panel shows
    "_MOST_BYTES",  # of the file of the user's hosts
    "_MOST_LINES",
    "_NARROWEST",  # columns of a terminal
    "_UNLIMITED",  # the columns of what is piped
    "_MOST_RUNS",
    "_NAMED",
    "_SAID",  # the percentiles beside the throughput
    "_NS_PER_S",
    "_SHORTEST_S",
    "_SPINNER_COLUMNS",
}
"""How output is printed, and what flags mean."""
EXIT_CODES = "exits.py"
TIME = re.compile(r"[\d.]+\s*(ns|us|ms|s|m|h|%)|(closed|open):\d+")


def constants(source: str) -> set[str]:
    """The names at the top of a module whose values hold a number or a quantity."""
    found = set()
    for statement in ast.parse(source).body:
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        value = getattr(statement, "value", None)
        if targets and value is not None and any(map(_is_quantity, ast.walk(value))):
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def times(source: str) -> set[str]:
    """The times, shares and loads among the texts of a module, such as the default of a flag."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and TIME.fullmatch(text)}


def _is_quantity(node: ast.AST) -> bool:
    if not isinstance(node, ast.Constant) or isinstance(node.value, bool):
        return False
    return isinstance(node.value, (int, float)) or (
        isinstance(node.value, str) and QUANTITY.fullmatch(node.value) is not None
    )


def test_what_is_looked_for() -> None:
    assert constants("STARTS = 3\nFOR: str = '60s'\nFEW = ['errors < 1%']\nA, B = 1, 'x'\nMODE = 'r'\nON = True\n") == {
        "STARTS",
        "FOR",
        "FEW",
        "A",
        "B",
    }


def test_a_default_that_is_a_time_is_seen_where_it_stands() -> None:
    source = 'lasts = flag("-d", "How long: 10s.", "10s")\nload = {"for": "1.5 s", "share": f(x="3%")}\n'
    assert times(source) == {"10s", "1.5 s", "3%"}


def test_no_time_stands_in_the_command_line() -> None:
    found = {f"{file.name}: {text}" for file in FOLDER.rglob("*.py") for text in times(file.read_text())}
    assert sorted(found) == []


def test_no_constant_of_the_method_stands_in_the_command_line() -> None:
    modules = [file for file in FOLDER.rglob("*.py") if file.name != EXIT_CODES]
    found = {f"{file.name}: {name}" for file in modules for name in constants(file.read_text()) - LAYOUT}
    assert sorted(found) == []
