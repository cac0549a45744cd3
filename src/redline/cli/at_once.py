"""The version, and the help, without the imports that all other answers need."""

import os
import sys

from redline.version import VERSION

HELPS = os.path.join(os.path.dirname(__file__), "helps")  # noqa: PTH118, PTH120 - pathlib takes longer to import
"""The folder of the texts of `--help`: `REDLINE_WRITE_HELPS=1 pytest tests/unit/cli/test_at_once.py` writes them."""
COLUMNS = 80
"""The width of these texts, and of help on all wider terminals."""
_HELP = ("--help", "-h")
_ALL = "redline"


def is_answered() -> bool:
    """Answer a command line that asks for no more; False for all others, and where stdout cannot be written."""
    text = None if "_REDLINE_COMPLETE" in os.environ else _answer(*sys.argv)
    try:
        return text is not None and os.write(1, text) == len(text)
    except OSError:
        return False


def _answer(script: str, *words: str) -> bytes | None:
    if words == ("--version",):
        return f"redline {VERSION}\n".encode()
    if os.path.basename(script) != "redline" or _columns() < COLUMNS:  # noqa: PTH119
        return None
    if not words or words == ("help",) or (len(words) == 1 and words[0] in _HELP):
        return _help(_ALL)
    first, last, *more = (*words, "")
    if more != [""]:
        return None
    asked = last if first == "help" else first if last in _HELP else _ALL
    return None if asked == _ALL else _help(asked)


def _help(name: str) -> bytes | None:
    """The help of a command; None if it has none here."""
    if not name.isalpha():
        return None
    try:
        with open(os.path.join(HELPS, f"{name}.txt"), "rb") as file:  # noqa: PTH118, PTH123
            return file.read()
    except OSError:
        return None


def _columns() -> int:
    """The width of the terminal, as `shutil.get_terminal_size` has it."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(1).columns or COLUMNS
    except OSError:
        return COLUMNS
