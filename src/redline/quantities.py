"""Quantities as people read them: three significant digits, a unit that fits, and never more precision than there is.

Pure, and beneath all rooms: what a finding says and what a table shows are written by the same hand.
"""

import math

_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_RATES = ((1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s"))
_SIZES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_SCALES = {"ns": _DURATIONS, "1/s": _RATES, "B": _SIZES}


def significant(value: float, digits: int = 3) -> str:
    """The value to so many significant digits, without an exponent: `1.24`, `12.4`, `124`, `0.00124`."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    places = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:.{places}f}"


def duration(ns: float) -> str:
    """`312 ns`, `1.24 µs`, `12.4 ms`, `1.20 s`, `2 min 5 s`, `1 h 2 min`."""
    if abs(ns) < 59.95e9:
        return amount(ns, "ns")
    minutes, seconds = divmod(round(abs(ns) / 1e9), 60)
    sign = "-" if ns < 0 else ""
    if minutes < 60:
        return f"{sign}{minutes} min {seconds} s" if seconds else f"{sign}{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{sign}{hours} h {minutes} min" if minutes else f"{sign}{hours} h"


def rate(per_s: float) -> str:
    """`987 /s`, `182 k/s`, `1.23 M/s`."""
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
    """`1.031`, `0.965`, `12.3`: three decimals near one, three digits elsewhere."""
    return f"{value:.3f}" if 0.1 <= abs(value) < 9.9995 else significant(value)


def percent(share: float) -> str:
    """A share (1 is all of it): `1.2%`, `99.96%`. What is not all never reads `100%`, what is not none never `0%`."""
    rest = min(abs(share), abs(1 - share))
    if rest == 0 or abs(share) > 1:
        return f"{share * 100:.0f}%"
    places = min(12, max(0, 1 - math.floor(math.log10(rest * 100))))
    text = f"{share * 100:.{places}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + "%"


def integer(number: int) -> str:
    """`1,234,567`."""
    return f"{number:,}"


def scale_of(value: float, unit: str) -> tuple[float, str]:
    """The largest unit in which the value, as it will be rounded, is at least one."""
    scales = _SCALES.get(unit, ((1.0, unit),))
    return next((entry for entry in scales if abs(float(f"{value / entry[0]:.2e}")) >= 1), scales[-1])


def _plain(value: float, *, whole: bool) -> str:
    """Three digits, but all of those before the point; a value that was counted in whole units has no decimals."""
    return f"{value:.0f}" if abs(value) >= 1000 or (whole and float(value).is_integer()) else significant(value)
