"""The data of a page as short JSON: what occurs more than once is written once. plot.js reads it back.

It is `{"shared": [...], "data": ...}`. The text `#3` stands for the fourth shared value, which may itself have such
texts; a text that begins with `#` has another one before it. `{"e": 3, "v": [1, null, 2]}` are the numbers 1000, null
and 2000.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from math import isfinite
from typing import Final

_SHORTEST: Final = 12
"""Texts of fewer characters are not shared: the reference would be about as long."""
_FEWEST: Final = 6
"""Lists of fewer numbers are written as they are."""
_NUMBERS: Final = frozenset({int, float, bool, type(None)})
_PART = re.compile("\0([0-9]+);")
_WRITE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def packed(data: object) -> str:
    """Write plain data, whose dicts have no key `e`, as short JSON."""
    return _Packing(data).text()


class _Packing:
    """The parts of some data by their text, in which parts of them are marked by their numbers."""

    def __init__(self, data: object) -> None:
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._uses: Counter[int] = Counter()
        self._places: dict[int, int] = {}
        self._shared: list[str] = []
        self._whole = self._mark(data)

    def text(self) -> str:
        """The whole JSON."""
        data = self._filled(self._whole)
        return f'{{"shared":[{",".join(self._shared)}],"data":{data}}}'

    def _mark(self, value: object) -> str:
        if isinstance(value, str):
            text = _WRITE(f"#{value}" if value.startswith("#") else value)
        elif isinstance(value, dict):
            assert "e" not in value, "this key is for numbers"
            text = f"{{{','.join([f'{_key(key)}:{self._mark(of)}' for key, of in value.items()])}}}"
        elif not isinstance(value, (list, tuple)):
            return _number(value)
        elif _NUMBERS.issuperset(map(type, value)):
            text = _scaled(value) or _WRITE(value)
        else:
            text = f"[{','.join(map(self._mark, value))}]"
        if len(text) < _SHORTEST:
            return text
        if text not in self._numbers:
            self._numbers[text] = len(self._texts)
            self._texts.append(text)
            self._uses.update(int(part) for part in _PART.findall(text))
        return f"\0{self._numbers[text]};"

    def _filled(self, text: str) -> str:
        """The text with its parts in the places of their marks: themselves, or where they are shared."""
        return "".join(self._pieces(text))

    def _pieces(self, text: str) -> Iterator[str]:
        for at, piece in enumerate(_PART.split(text)):
            yield self._part(int(piece)) if at % 2 else piece

    def _part(self, number: int) -> str:
        if self._uses[number] < 2:
            return self._filled(self._texts[number])
        if number not in self._places:
            text = self._filled(self._texts[number])
            self._places[number] = len(self._shared)
            self._shared.append(text)
        return f'"#{self._places[number]}"'


@cache
def _key(key: object) -> str:
    return _WRITE(str(key))


def _number(value: object) -> str:
    """A number, a boolean or None, as JSON has it; most are numbers."""
    if type(value) is int or (type(value) is float and isfinite(value)):
        return repr(value)
    return "null" if value is None else _WRITE(value)


def _scaled(values: Sequence[object]) -> str:
    """Numbers that all end in zeros, without these; an empty text for others."""
    if len(values) < _FEWEST:
        return ""
    numbers = [value for value in values if type(value) is int]
    if any(number % 100 for number in numbers):  # they are shorter where they are
        return ""
    if len(numbers) + values.count(None) < len(values) or not any(numbers):
        return ""
    zeros = min(len(text) - len(text.rstrip("0")) for text in map(str, numbers) if text != "0")
    rest = (str(value // 10**zeros) if isinstance(value, int) else "null" for value in values)
    return f'{{"e":{zeros},"v":[{",".join(rest)}]}}'
