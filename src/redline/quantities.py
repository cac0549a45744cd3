"""Format and parse quantities. Pure, and below all packages, to show a quantity in the same way in all texts.

Formatted values have three significant digits, a fitting unit, and never more precision than the value. Parsed values
are exact.
"""

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches

from redline.errors import WrongValueError

_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES = ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s"))
_SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_BYTE_RATES = tuple((scale, f"{name}/s") for scale, name in _SIZES)
_SCALES = {"ns": _DURATIONS, "1/s": _RATES, "B": _SIZES, "B/s": _BYTE_RATES}

_SURELY_LESS = 0.99
"""What is no more than this is less than 1 in three digits too."""

NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_QUANTITY = re.compile(rf"({NUMBER})(?![0-9.])\s*([A-Za-zµμ]*)\s*")

_DURATION_NS = {
    "h": 3_600_000_000_000,
    "m": 60_000_000_000,
    "s": 1_000_000_000,
    "ms": 1_000_000,
    "us": 1_000,
    "µs": 1_000,
    "ns": 1,
}
_DURATION_HINT = "write a number with a unit (h, m, s, ms, us, ns), such as 250ms, 25s or 1m30s"
_OTHER_WORDS = {"sec": "s", "secs": "s", "second": "s", "seconds": "s", "min": "m", "mins": "m", "minute": "m"}
_OTHER_WORDS |= {"minutes": "m", "hour": "h", "hours": "h", "msec": "ms", "millis": "ms", "μs": "us", "usec": "us"}
LONGEST_DURATION_NS = 24 * _DURATION_NS["h"]

_PER_SECOND = {"": 1.0, "/s": 1.0, "/min": 60.0, "/h": 3600.0}
_RATE_HINT = "write requests per second, such as 5000 or 5000/s; 300/min and 100/h are understood too"
LEAST_SPEED, MOST_SPEED = 0.001, 1000.0
HIGHEST_RATE_PER_S = 1e7

_SIZE_BYTES = {"": 1, "B": 1, "kB": 1000, "KiB": 1024, "MB": 1000**2, "MiB": 1024**2}
_MEMORY_BYTES = _SIZE_BYTES | {"GB": 1000**3, "GiB": 1024**3}
_SIZE_HINT = "write a number of bytes, or a number with a unit (B, kB, KiB, MB, MiB), such as 256 or 5MB"


def significant(value: float, digits: int = 3) -> str:
    """A value with `digits` significant digits, without an exponent: `1.24`, `12.4`, `124`, `0.00124`."""
    if value == 0:
        return "0"
    rounded = f"{value:.{digits - 1}e}"
    places = max(0, digits - 1 - int(rounded.partition("e")[2]))
    return f"{float(rounded):.{places}f}"


def duration(ns: float) -> str:
    """A duration: `312 ns`, `1.24 µs`, `12.4 ms`, `1.20 s`, `2 min 5 s`, `1 h 2 min`."""
    if abs(ns) < 59.95e9:
        return amount(ns, "ns")
    minutes, seconds = divmod(round(abs(ns) / 1e9), 60)
    sign = "-" if ns < 0 else ""
    if minutes < 60:
        return f"{sign}{minutes} min {seconds} s" if seconds else f"{sign}{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {minutes} min" if minutes else f"{sign}{hours} h"


def rate(per_s: float) -> str:
    """A rate: `987 /s`, `182 k/s`, `1.23 M/s`."""
    return amount(per_s, "1/s")


def size(count: float) -> str:
    """Bytes in binary units: `512 B`, `12.3 MiB`."""
    return amount(count, "B")


def amount(value: float, unit: str) -> str:
    """A value in one of the units of an Estimate (`ns`, `1/s`, `B`), scaled to read well; a ratio has unit `ratio`."""
    if unit == "ratio":
        return ratio(value)
    scale, name = scale_of(value, unit)
    return f"{_plain(value / scale, whole=scale == 1.0)} {name}"


def ratio(value: float) -> str:
    """A ratio: three decimals near 1, three digits elsewhere: `1.031`, `0.965`, `12.3`."""
    return f"{value:.3f}" if 0.1 <= abs(value) < 9.9995 else significant(value)


def percent(share: float) -> str:
    """A share from 0 to 1 as `1.2%` or `99.96%`. Only exactly 1 reads `100%`, and only exactly 0 reads `0%`."""
    rest = min(abs(share), abs(1 - share))
    if rest == 0 or abs(share) > 1:
        return f"{share * 100:.0f}%"
    places = min(12, max(0, 1 - math.floor(math.log10(rest * 100))))
    text = f"{share * 100:.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def integer(number: int) -> str:
    """A whole number: `1,234,567`."""
    return f"{number:,}"


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """The largest unit in which the rounded value is at least 1."""
    scales = _SCALES.get(unit, ((1.0, unit),))
    for entry in scales:
        scaled = abs(value / entry[0])
        if scaled >= 1 or (scaled > _SURELY_LESS and float(f"{scaled:.2e}") >= 1):
            return entry
    return scales[-1]


def _plain(value: float, *, whole: bool) -> str:
    """Three digits, but all digits before the point; a value counted in whole units has no decimals."""
    return f"{value:.0f}" if abs(value) >= 1000 or (whole and float(value).is_integer()) else significant(value)


def parse_duration(text: str) -> int:
    """A duration in whole nanoseconds, zero included.

    `25s`, `250ms`, `1.5s`, `1m30s`, `1h 5m`; units h, m, s, ms, us, ns, each at most once and the larger first.
    Raises WrongValueError (a ValueError) for anything else, for parts of a nanosecond and for more than a day.
    """
    parts = _quantities(text)
    if parts is None:
        raise WrongValueError(f"{quoted(text)} is not a duration", _DURATION_HINT)
    total = Decimal(0)
    smaller_than: int | None = None
    for number, unit in parts:
        factor = _duration_unit(text, unit)
        if smaller_than is not None and factor >= smaller_than:
            raise WrongValueError(f"{quoted(text)} is not a duration: its units are out of order", _DURATION_HINT)
        smaller_than = factor
        total += number * factor
    if total != int(total):
        raise WrongValueError(f"{quoted(text)} is not a whole number of nanoseconds", "use a smaller unit, such as ns")
    if total > LONGEST_DURATION_NS:
        raise WrongValueError(f"{quoted(text)} is longer than a day", "no duration may be longer than 24h")
    return int(total)


def parse_rate(text: str | float) -> float:
    """A rate in requests per second, more than 0: `5000`, `5000/s`, `300/min`, `100/h`.

    Raises WrongValueError (a ValueError) for anything else and for more than 1e7/s, which no engine sends.
    """
    rate_per_s = parse_any_rate(text)
    if rate_per_s <= 0:
        raise WrongValueError("a rate of 0 sends nothing", "give a rate above 0, such as 5000/s")
    return rate_per_s


def parse_any_rate(text: str | float) -> float:
    """As `parse_rate`, but 0 is allowed: a rate may start or end there."""
    match = re.fullmatch(rf"({NUMBER}(?:[eE]\+?[0-9]{{1,2}})?)\s*(.*)", str(text).strip())
    if not match:
        raise WrongValueError(f"{quoted(text)} is not a rate", _RATE_HINT)
    number, unit = match.groups()
    if unit not in _PER_SECOND:
        raise WrongValueError(f"{quoted(text)} has an unknown unit `{clip(unit)}`", _RATE_HINT)
    rate_per_s = float(number) / _PER_SECOND[unit]
    if rate_per_s > HIGHEST_RATE_PER_S:
        raise WrongValueError(f"{quoted(text)} is more than one request each nanosecond", _RATE_HINT)
    return rate_per_s


def parse_speed(text: str | float) -> float:
    """A speed from 0.001 to 1000 times that of a recording: `2x`, `0.5`.

    Raises WrongValueError (a ValueError) for anything else.
    """
    match = re.fullmatch(rf"({NUMBER})\s*x?", str(text).strip())
    if not match or not LEAST_SPEED <= float(match[1]) <= MOST_SPEED:
        hint = "write how many times faster than recorded, from 0.001 to 1000: 2x"
        raise WrongValueError(f"{quoted(text)} is not a speed", hint)
    return float(match[1])


def speed(times: float) -> str:
    """How much faster than recorded: `4.2x`."""
    text = significant(times)
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}x"


def paced(said: str, times: float | None) -> str:
    """A rate that is `said` so, of a recording with its speed: `4.2x (930/s)`."""
    return said if times is None else f"{speed(times)} ({said})"


def users(number: float) -> str:
    """A number of users: `1 user`, `1,200 users`."""
    return f"{number:,.0f} user{'' if number == 1 else 's'}"


def parse_share(text: str | float) -> float:
    """A share between 0 and 1, both included: `2%`, `0.1%`, `0.02`.

    Raises WrongValueError (a ValueError) for anything else.
    """
    match = re.fullmatch(rf"({NUMBER})\s*(%?)", str(text).strip())
    if not match:
        raise WrongValueError(
            f"{quoted(text)} is not a share", "write a percentage such as 2%, or a part of 1 such as 0.02"
        )
    number, percent = match.groups()
    share = Decimal(number) / (100 if percent else 1)
    if share > 1:
        hint = f"did you mean {number}%?" if not percent else "write at most 100%"
        raise WrongValueError(f"{quoted(text)} is more than 100%", hint)
    return float(share)


def parse_memory(text: str | int) -> int:
    """As `parse_size`, but with GB and GiB."""
    return _parse_size(text, _MEMORY_BYTES)


def parse_size(text: str | int) -> int:
    """A size in whole bytes: `256`, `64KiB`, `5MB`. Raises WrongValueError (a ValueError) for anything else."""
    return _parse_size(text, _SIZE_BYTES)


def _parse_size(text: str | int, units: Mapping[str, int]) -> int:
    match = re.fullmatch(rf"({NUMBER})\s*([^\d\s.]*)", str(text).strip())
    if not match:
        raise WrongValueError(f"{quoted(text)} is not a size", _SIZE_HINT)
    number, unit = match.groups()
    if unit not in units:
        same = [known for known in units if known.lower() == unit.lower()]
        hint = f"did you mean `{number}{same[0]}`?" if same else _SIZE_HINT
        raise WrongValueError(f"{quoted(text)} has an unknown unit `{clip(unit)}`", hint)
    size = Decimal(number) * units[unit]
    if size != int(size):
        raise WrongValueError(f"{quoted(text)} is not a whole number of bytes", _SIZE_HINT)
    return int(size)


def either(numbers: Iterable[int]) -> str:
    """`200`, `200 or 304`, `200, 302 or 304`."""
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last


def did_you_mean(word: str, known: tuple[str, ...]) -> str:
    """`did you mean `x`?` with the most similar known word; empty if none is similar."""
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=0.6)
    return f"did you mean `{by_fold[near[0]]}`?" if near else ""


def _quantities(text: str) -> list[tuple[Decimal, str]] | None:
    """Parse `1m30s` as [(1, m), (30, s)]; None for anything but numbers with units."""
    stripped = text.strip()
    parts, position = [], 0
    while position < len(stripped):
        match = _QUANTITY.match(stripped, position)
        if not match:
            return None
        parts.append((Decimal(match[1]), match[2]))
        position = match.end()
    return parts or None


def _duration_unit(text: str, unit: str) -> int:
    if unit in _DURATION_NS:
        return _DURATION_NS[unit]
    if not unit:
        raise WrongValueError(f"{quoted(text)} has no unit", f"for seconds write `{text.strip()}s`; {_DURATION_HINT}")
    word = unit.lower()
    plain = _OTHER_WORDS.get(word, word)
    hint = f"did you mean `{plain}`? {_DURATION_HINT}" if plain in _DURATION_NS else _DURATION_HINT
    raise WrongValueError(f"{quoted(text)} has an unknown unit `{clip(unit)}`", hint)


def quoted(text: str | float) -> str:
    """A text in a message: clipped, on one line, in backticks."""
    return f"`{clip(str(text))}`"


def clip(text: str, most: int = 60) -> str:
    """Enough of a text to recognise it, on one line of at most `most` characters."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= most else f"{plain[: most - 3]}..."
