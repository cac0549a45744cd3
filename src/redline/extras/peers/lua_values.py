"""Values of a Lua script as far as they are known without running it, and the functions that need no machine. Pure."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from redline.extras.peers.lua import Function

_MOST_TEXT = 1 << 20


@dataclass(frozen=True)
class Unknown:
    """A value that only a run could tell; `why` continues `… is not known: `."""

    line: int
    why: str


@dataclass(frozen=True)
class FileText:
    """The content of a file, or with `is_open` the open file."""

    path: str
    is_open: bool = False


@dataclass(frozen=True)
class WrittenRequest:
    """A request as `wrk.format` writes it. Unknown parts stay as such until it is known whether it is sent."""

    line: int
    method: "Value"
    path: "Value"
    headers: "tuple[tuple[str, Value], ...] | Unknown"
    body: "Value"

    def same(self) -> "tuple[Value, Value, tuple[tuple[str, Value], ...] | Unknown, Value]":
        """What tells it from other requests."""
        return self.method, self.path, self.headers, self.body


@dataclass(frozen=True)
class Batch:
    """Requests that are written at once."""

    requests: tuple[WrittenRequest, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batch) and [it.same() for it in self.requests] == [it.same() for it in other.requests]

    def __hash__(self) -> int:
        return hash(tuple(it.same() for it in self.requests))


@dataclass(eq=False)
class LuaTable:
    """A table, whose content may be `unknown`. `folds_case`: the request headers of wrk."""

    fields: dict["Key", "Value"] = field(default_factory=dict)
    unknown: Unknown | None = None
    folds_case: bool = False
    spellings: dict[str, str] = field(default_factory=dict)

    def get(self, key: "Value") -> "Value":
        """The value of a field; None without it."""
        if self.unknown is not None:
            return self.unknown
        if isinstance(key, Unknown):
            return key
        return self.fields.get(self._key(key)) if isinstance(key, str | float) else None

    def put(self, key: "Value", value: "Value", line: int) -> None:
        """Set a field; under a key that is not known, the table's content is unknown."""
        if isinstance(key, str) and self.folds_case:
            self.spellings[key.lower()] = key
        if isinstance(key, str | float):
            if value is None:
                self.fields.pop(self._key(key), None)
            else:
                self.fields[self._key(key)] = value
        else:
            self.unknown = key if isinstance(key, Unknown) else Unknown(line, "it is filed under no text or number")

    def _key(self, key: "Key") -> "Key":
        return key.lower() if isinstance(key, str) and self.folds_case else key

    @property
    def length(self) -> int:
        """The last position before the first gap."""
        at = 0
        while float(at + 1) in self.fields:
            at += 1
        return at

    def headers(self) -> "tuple[tuple[str, Value], ...] | Unknown":
        """Names as they are written, and values."""
        if self.unknown is not None:
            return self.unknown
        return tuple((self.spellings.get(str(key), text(key)), value) for key, value in self.fields.items())


@dataclass(eq=False)
class Scope:
    """Variables, and those around them."""

    parent: "Scope | None"
    names: dict["Key", "Value"] = field(default_factory=dict)

    def of(self, name: str) -> "Scope":
        """The scope that holds a variable: the outermost for those that are not declared."""
        scope = self
        while scope.parent is not None and name not in scope.names:
            scope = scope.parent
        return scope


@dataclass(frozen=True, eq=False)
class LuaClosure:
    """A function of the script."""

    function: Function
    scope: Scope


@dataclass(frozen=True)
class Builtin:
    """A function of Lua or of wrk, by name."""

    name: str


Key: TypeAlias = str | float
Value: TypeAlias = str | float | bool | Unknown | FileText | Batch | LuaTable | LuaClosure | Builtin | None


def text(value: Value) -> str:
    """A number or a text as Lua writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "nil" if value is None else f"{value:.14g}" if isinstance(value, float) else str(value)


def number(value: Value) -> float | None:
    """The number of a text; None if it is none."""
    if not isinstance(value, str):
        return value if isinstance(value, float) else None
    if re.fullmatch(r"\s*[-+]?0[xX][0-9a-fA-F]+\s*", value):
        return float(int(value, 16))
    known = float(value) if re.fullmatch(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*", value, re.ASCII) else math.inf
    return known if math.isfinite(known) else None


def is_true(value: Value) -> bool:
    """Whether a condition holds: for all but nil and false."""
    return value is not None and value is not False


def concatenated(parts: Sequence[Value], between: str, line: int) -> Value:
    """Texts and numbers as one text, or requests as a batch."""
    for part in parts:
        if isinstance(part, Unknown):
            return part
    if all(isinstance(part, str | float) and not isinstance(part, bool) for part in parts):
        joined = between.join(map(text, parts))
        return joined if len(joined) <= _MOST_TEXT else Unknown(line, "a text of more than 1 MiB")
    if between == "" and all(isinstance(part, Batch) or part == "" for part in parts):
        return Batch(tuple(sent for part in parts if isinstance(part, Batch) for sent in part.requests))
    return Unknown(line, "it joins more than texts, numbers and whole requests")


def _concat(arguments: Sequence[Value], line: int) -> Value:
    table, between = arguments[0], (*arguments, None)[1]
    if not isinstance(table, LuaTable) or len(arguments) > 2:
        return Unknown(line, "`table.concat` gets no whole table")
    if table.unknown is not None:
        return table.unknown
    parts = [table.fields[float(at + 1)] for at in range(table.length)]
    return concatenated(parts, between if isinstance(between, str) else "", line)


def _format(arguments: Sequence[Value], line: int) -> Value:
    form, values = arguments[0], list(arguments[1:])
    if not isinstance(form, str) or not all(isinstance(value, str | float) for value in values):
        return Unknown(line, "`string.format` gets more than texts and numbers")
    made = [int(value) if isinstance(value, float) and value.is_integer() else value for value in values]
    if re.search(r"%[-+ #0]*(\d{4}|\*|\d*\.\d{4}|\d*\.\*)", form):
        return Unknown(line, "`string.format` gets a width of thousands")
    try:
        return form % tuple(made)
    except (TypeError, ValueError):
        return Unknown(line, "`string.format` gets values that do not fit")


def _slice(arguments: Sequence[Value], line: int) -> Value:
    whole, start, end = (*arguments, None, None)[:3]
    if not isinstance(whole, str) or not isinstance(start, float) or not isinstance(end, float | None):
        return Unknown(line, "`string.sub` gets no text with positions")
    first = max(int(start) if start >= 0 else len(whole) + int(start) + 1, 1)
    last = len(whole) if end is None else int(end) if end >= 0 else len(whole) + int(end) + 1
    return whole[first - 1 : max(last, 0)]


def _repeated(arguments: Sequence[Value], line: int) -> Value:
    whole, times = arguments[0], number(arguments[1]) if len(arguments) > 1 else None
    if not isinstance(whole, str) or times is None or len(whole) * times > _MOST_TEXT:
        return Unknown(line, "`string.rep` gets no text, or makes more than 1 MiB")
    return whole * max(int(times), 0)


def _tonumber(arguments: Sequence[Value], line: int) -> Value:
    if len(arguments) > 1:
        return Unknown(line, "`tonumber` gets a base")
    return number(arguments[0])


def _of_text(change: Callable[[str], Value]) -> Callable[[Sequence[Value], int], Value]:
    def call(arguments: Sequence[Value], line: int) -> Value:
        given = arguments[0]
        given = text(given) if isinstance(given, float) else given
        return change(given) if isinstance(given, str) else Unknown(line, "a function of texts gets none")

    return call


def _of_number(change: Callable[[float], float]) -> Callable[[Sequence[Value], int], Value]:
    def call(arguments: Sequence[Value], line: int) -> Value:
        given = number(arguments[0])
        return Unknown(line, "a function of numbers gets none") if given is None else float(change(given))

    return call


FUNCTIONS: Mapping[str, Callable[[Sequence[Value], int], Value]] = {
    "tostring": lambda arguments, _: text(arguments[0]),
    "tonumber": _tonumber,
    "table.concat": _concat,
    "string.format": _format,
    "string.sub": _slice,
    "string.rep": _repeated,
    "string.upper": _of_text(str.upper),
    "string.lower": _of_text(str.lower),
    "string.len": _of_text(lambda whole: float(len(whole.encode()))),
    "math.floor": _of_number(lambda value: value // 1),
    "math.ceil": _of_number(lambda value: -(-value // 1)),
}
"""Functions that depend on their arguments alone; they get at least one, and none that is unknown."""


def same(first: Value, second: Value) -> bool:
    """Whether both are known, and the same value."""
    if isinstance(first, LuaTable | LuaClosure) or isinstance(second, LuaTable | LuaClosure):
        return first is second
    return type(first) is type(second) and not isinstance(first, Unknown) and first == second


def single(operator: str, value: Value, line: int) -> Value:
    """What an operator makes of one value."""
    if isinstance(value, Unknown):
        return value
    if operator == "not":
        return not is_true(value)
    if operator == "#":
        if isinstance(value, LuaTable):
            return value.unknown or float(value.length)
        return float(len(value.encode())) if isinstance(value, str) else Unknown(line, "the length of this")
    known = number(value)
    return Unknown(line, "it counts with what is no number") if known is None else -known


def calculated(operator: str, first: Value, second: Value, line: int) -> Value:
    """What an operator for numbers, or for the order of texts, makes of two values."""
    if operator in {"<", ">", "<=", ">="} and isinstance(first, str) and isinstance(second, str):
        return {"<": first < second, ">": first > second, "<=": first <= second, ">=": first >= second}[operator]
    left, right = number(first), number(second)
    if left is None or right is None:
        return Unknown(line, "it counts with what is no number")
    if operator in {"<", ">", "<=", ">="}:
        return {"<": left < right, ">": left > right, "<=": left <= right, ">=": left >= right}[operator]
    try:
        result = {
            "+": lambda: left + right,
            "-": lambda: left - right,
            "*": lambda: left * right,
            "/": lambda: left / right,
            "%": lambda: left % right,
            "^": lambda: float(left**right),
        }[operator]()
        if math.isfinite(result):
            return result
    except (ZeroDivisionError, OverflowError, TypeError):
        pass
    return Unknown(line, "it counts beyond what is a number")
