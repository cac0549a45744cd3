"""The data of a page as short JSON: what occurs more than once is written once. plot.js reads it back.

It is `{"shared": [...], "data": ...}`. The text `#3` stands for the fourth shared value, which may itself have such
texts; a text that begins with `#` has another one before it. `{"e": 3, "v": [1, null, 2]}` are the numbers 1000, null
and 2000.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

_SHORTEST: Final = 12
"""Texts of fewer characters are not shared: the reference would be about as long."""
_FEWEST: Final = 6
"""Lists of fewer numbers are written as they are."""
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
        match value:
            case dict():
                assert "e" not in value, "this key is for numbers"
                text = f"{{{','.join(f'{_key(key)}:{self._mark(of)}' for key, of in value.items())}}}"
            case list() | tuple():
                text = _scaled([*value]) or f"[{','.join(map(self._mark, value))}]"
            case str() if value.startswith("#"):
                text = _WRITE(f"#{value}")
            case _:
                text = _WRITE(value)
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


def _key(key: object) -> str:
    return _WRITE(str(key))


def _scaled(values: list[object]) -> str:
    """Numbers that all end in zeros, without these; an empty text for others."""
    if len(values) < _FEWEST or not all(value is None or type(value) is int for value in values):
        return ""
    numbers = [value for value in values if isinstance(value, int)]
    zeros = min((len(text) - len(text.rstrip("0")) for text in map(str, numbers) if text != "0"), default=0)
    if zeros < 2:  # they are shorter where they are
        return ""
    return _WRITE({"e": zeros, "v": [value // 10**zeros if isinstance(value, int) else None for value in values]})
