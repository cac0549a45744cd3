"""The end of a server's output, fit to be shown."""

import os
import re
from pathlib import Path

_TAIL_BYTES = 16 << 10
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST_LINE = 500


def tail(log: Path, lines: int = 20) -> str:
    """The last lines of a log, without colours and control characters; empty when there are none."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    plain = [_CONTROLS.sub("", line).rstrip()[:_LONGEST_LINE] for line in _ESCAPES.sub("", text).split("\n")]
    return "\n".join([line for line in plain if line][-lines:])


def last_words(text: str) -> str:
    """The last line that says something: frames of a stack trace stand indented and do not."""
    lines = text.splitlines()
    return next((line for line in reversed(lines) if not line[0].isspace()), lines[-1].strip() if lines else "")
