"""Measured values, which compare with values as people write them: `p99 < "20ms"`."""

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import total_ordering
from numbers import Real
from typing import Literal

from redline.errors import NotKnownError, WrongValueError
from redline.quantities import NUMBER, amount, parse_any_rate, parse_duration, parse_memory, parse_share, percent, users

__tracebackhide__ = True  # pytest shows the line of a test that compares, and not these
Unit = Literal["ns", "1/s", "users", "B", "share", "change"]
"""A change is relative: 0.05 where B needs 5% more than A."""
_CHANGE = re.compile(rf"([+-]?{NUMBER})\s*%")
_USERS = re.compile(rf"({NUMBER})(?:\s*users?)?")
_PLAIN_NUMBERS = ("1/s", "users", "share")
"""The units in which a number alone has one meaning: requests per second, users, and a part of 1."""


def _matched(text: str, form: re.Pattern[str], what: str, hint: str) -> float:
    match = form.fullmatch(text.strip())
    if match is None:
        raise WrongValueError(f"`{text}` is not {what}", hint)
    return float(match[1])


def _parse_change(text: str) -> float:
    """A relative change: `3%`, `+3%`, `-2.5%`."""
    return _matched(text, _CHANGE, "a change", "write a percentage, such as 3%, +3% or -3%") / 100


def _parse_users(text: str) -> float:
    """A number of users: `40`, `40 users`."""
    return _matched(text, _USERS, "a number of users", "write one such as 40, or 40 users")


_TEXTS: Mapping[Unit, tuple[Callable[[str], float], str]] = {
    "ns": (parse_duration, "20ms"),
    "1/s": (parse_any_rate, "500/s"),
    "users": (_parse_users, "40 users"),
    "B": (parse_memory, "64MiB"),
    "share": (parse_share, "0.1%"),
    "change": (_parse_change, "+3%"),
}
"""How a text of each unit is read, and an example of one."""


@total_ordering
@dataclass(frozen=True, eq=False)
class Amount:
    """A measured value with its 95% interval, if it has one; `value`, `low` and `high` are in its unit.

    It compares with texts, such as `"20ms"`, `"500/s"`, `"64MiB"` or `"3%"`, and with other amounts of its unit.
    A comparison is about the value alone; that of an end of the interval is about `at_least` or `at_most`. Raises
    WrongValueError for a text that has another unit, and TypeError for what has none.
    """

    name: str
    value: float
    unit: Unit
    low: float | None = None
    high: float | None = None

    @property
    def at_least(self) -> "Amount":
        """The lower end of its interval. Raises WrongValueError where it has none."""
        return self._end(self.low, "lower")

    @property
    def at_most(self) -> "Amount":
        """The upper end of its interval. Raises WrongValueError where it has none."""
        return self._end(self.high, "upper")

    def _end(self, value: float | None, which: str) -> "Amount":
        if value is None:
            hint = "intervals are of several trials or starts: use `ab`, or `run` with `trials`"
            raise WrongValueError(f"{self.name} {self._text(self.value)} has no interval", hint)
        return Amount(f"the {which} end of {self.name}", value, self.unit)

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        text = self._text(self.value)
        return text if self.low is None or self.high is None else f"{text} [{self._ends(self.low, self.high)}]"

    def __repr__(self) -> str:
        return f"<{self.name} {self}>"

    def __eq__(self, other: object) -> bool:
        known = self._number(other)
        return NotImplemented if known is None else self.value == known

    def __lt__(self, other: object) -> bool:
        known = self._number(other)
        if known is None:
            raise self._no_value(other)
        return self.value < known

    def __hash__(self) -> int:
        return hash((self.value, self.unit))

    def _ends(self, low: float, high: float) -> str:
        return f"{self._text(low)}, {self._text(high)}"

    def _text(self, value: float) -> str:
        if self.unit == "change":
            return f"{value * 100:+.1f}%"
        if self.unit == "users":
            return users(value)
        return percent(value) if self.unit == "share" else amount(value, self.unit)

    def _number(self, other: object) -> float | None:
        """What it is compared with, in its unit; None for what is no amount. Raises WrongValueError and TypeError."""
        if isinstance(other, str):
            return self._parsed(other)
        if isinstance(other, Amount):
            if other.unit != self.unit:
                raise WrongValueError(f"{self!r} and {other!r} have different units", "compare what is of one kind")
            return other.value
        if isinstance(other, timedelta) and self.unit == "ns":
            return other / timedelta(microseconds=1) * 1000
        if isinstance(other, Real):
            if self.unit not in _PLAIN_NUMBERS:
                raise self._no_value(other)
            return float(other)
        return None

    def _parsed(self, text: str) -> float:
        try:
            return _TEXTS[self.unit][0](text)
        except WrongValueError as error:
            raise WrongValueError(f"{self.name} cannot be compared: {error.message}", error.hint) from None

    def _no_value(self, other: object) -> TypeError:
        example = _TEXTS[self.unit][1]
        return TypeError(f"{self.name} {self} cannot be compared with {other!r}; write a text such as {example!r}")


class BoundedAmount(Amount):
    """A value that is not known itself, but lies between `low` and `high`, of which one may be None.

    A comparison is true or false where the bounds decide it, and raises NotKnownError with the reason elsewhere. Its
    value alone raises that too; `at_least` and `at_most` are the bounds.
    """

    _why: tuple[str, str]

    def __init__(self, name: str, unit: Unit, ends: tuple[float | None, float | None], why: tuple[str, str]) -> None:
        """`ends` are the lower and the upper bound, `why` is the reason that the value is not known, and a hint."""
        for field, given in (("name", name), ("unit", unit), ("low", ends[0]), ("high", ends[1]), ("_why", why)):
            object.__setattr__(self, field, given)  # it is frozen

    @property
    def value(self) -> float:
        """Raises NotKnownError."""
        raise self._unknown("")

    def __lt__(self, other: object) -> bool:
        return self._decided("<", operator.lt, other)

    def __le__(self, other: object) -> bool:
        return self._decided("<=", operator.le, other)

    def __gt__(self, other: object) -> bool:
        return self._decided(">", operator.gt, other)

    def __ge__(self, other: object) -> bool:
        return self._decided(">=", operator.ge, other)

    def __eq__(self, other: object) -> bool:
        known = self._number(other)
        if known is None:
            return NotImplemented
        if (self.high is not None and self.high < known) or (self.low is not None and self.low > known):
            return False
        raise self._unknown(f" == {other}")

    def __hash__(self) -> int:
        return hash((self.low, self.high, self.unit))

    def __str__(self) -> str:
        least = "" if self.low is None else f"at least {self._text(self.low)}"
        if self.high is None:
            return least
        return f"at most {self._text(self.high)}{f' ({least})' if self.low else ''}"

    def _decided(self, sign: str, holds: Callable[[float, float], bool], other: object) -> bool:
        """Whether the value compares so: it does, or does not, where both ends do. Raises NotKnownError elsewhere."""
        known = self._number(other)
        if known is None:
            raise self._no_value(other)
        low, high = -math.inf if self.low is None else self.low, math.inf if self.high is None else self.high
        if holds(low, known) != holds(high, known):
            raise self._unknown(f" {sign} {other}")
        return holds(low, known)

    def _end(self, value: float | None, which: str) -> Amount:
        if value is None:
            raise self._unknown("")
        return Amount(f"the {which} bound of {self.name}", value, self.unit)

    def _unknown(self, comparison: str) -> NotKnownError:
        reason, hint = self._why
        return NotKnownError(f"{self.name}{comparison} is not known: it is {self}. {reason}", hint=hint)
