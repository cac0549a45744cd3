"""Make text safe to show: escape characters that control a terminal or browser, or that are invisible. Pure."""

import json
import re
import unicodedata
from functools import lru_cache

_UNUSUAL = re.compile(r"[^\n\t -~\r]|\r(?!\n)")
_BLANK = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"
    + "".join(map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))
)
"""Printable characters that are invisible: letters, marks, an empty pattern and variation selectors.

Selectors can hide any text. The selector that asks for an emoji in colour is among them.
"""


def visible(text: str) -> str:
    r"""The text with control characters, invisible characters and changes of direction escaped, as in `\u001b`.

    Line ends and tabs stay. JSON writes characters in the same way, so a text in JSON remains the same data.
    """
    return _UNUSUAL.sub(lambda match: _escaped(match[0]), text)


def printable(text: str) -> str:
    """Make foreign text a single `visible` line, without control characters that a terminal would obey."""
    return visible(re.sub(r"\s+", lambda spaces: " " * min(2, len(spaces[0])), text))


@lru_cache(1024)
def _escaped(char: str) -> str:
    if (char.isprintable() and char not in _BLANK) or unicodedata.category(char) == "Zs":
        return char
    return json.dumps(char)[1:-1]


def quoted(received: bytes) -> str:
    r"""Received bytes as text on one line: line ends become `\r\n`, invalid UTF-8 becomes `\xff`."""
    text = received.decode(errors="backslashreplace")
    for char, seen in (("\r", r"\r"), ("\n", r"\n"), ("\t", r"\t")):
        text = text.replace(char, seen)
    return visible(text)
