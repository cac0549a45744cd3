"""When recorded requests were sent: the times of access logs and recordings. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from itertools import groupby

NS_PER_S = 1_000_000_000
_COMMON = re.compile(
    r"(\d{1,2})/(\w{3})/(\d{4})[: ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?(?: (Z|UTC|GMT|[+-]\d\d:?\d\d))?"
)
_ISO = re.compile(
    r"(\d{4})[-/](\d\d)[-/](\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)? ?([Zz]|UTC|GMT|[+-]\d\d:?\d\d)?"
)
_C = re.compile(r"\w{3} (\w{3}) {1,2}(\d{1,2}) (\d\d:\d\d:\d\d)(?:\.(\d{1,9}))? (\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EARLIEST_S, _LATEST_S = 946_684_800, 7_258_118_400  # 2000 and 2200
_UNITS_OF_UNIX = (1, 1_000, 1_000_000, 1_000_000_000)


def time_of(text: str) -> int | None:
    """A time in nanoseconds since 1970, as access logs and recordings write it; None for anything else.

    Known are `10/Oct/2000:13:55:36 -0700`, ISO 8601 and `Tue Oct 10 13:55:36 2000`, with UTC where they name no zone,
    and numbers since 1970, in seconds, ms, us or ns, told apart by their size. A time before 2000 or after 2199 is that
    of a wrong clock.
    """
    text = text.strip().strip("[]")
    if (common := _COMMON.fullmatch(text)) is not None:
        day, month, year, hour, minute, second, fraction, zone = common.groups()
        iso = f"{year}-{_month(month)}-{int(day):02}T{hour}:{minute}:{second}"
        return _instant(iso, fraction, zone)
    if (iso_time := _ISO.fullmatch(text)) is not None:
        year, month, day, clock, fraction, zone = iso_time.groups()
        return _instant(f"{year}-{month}-{day}T{clock}", fraction, zone)
    if (in_c := _C.fullmatch(text)) is not None:
        month, day, clock, fraction, year = in_c.groups()
        return _instant(f"{year}-{_month(month)}-{int(day):02}T{clock}", fraction, None)
    return _unix(text)


def _month(name: str) -> str:
    """The number of a month; empty for another word, which makes no time."""
    return f"{_MONTHS.index(name) + 1:02}" if name in _MONTHS else ""


def is_whole(text: str) -> bool:
    """Whether a time is written in whole seconds."""
    return re.search(r"[.,]|^\s*\d{11,}\s*$", text) is None


def _instant(iso: str, fraction: str | None, zone: str | None) -> int | None:
    offset = "+00:00" if zone is None or zone.isalpha() else zone
    try:
        whole_s = int(datetime.fromisoformat(f"{iso}{offset}").timestamp())
    except (ValueError, OverflowError):
        return None
    return whole_s * NS_PER_S + int((fraction or "").ljust(9, "0")) if _EARLIEST_S <= whole_s < _LATEST_S else None


def _unix(text: str) -> int | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    if not number.is_finite():
        return None
    for unit in _UNITS_OF_UNIX:
        if _EARLIEST_S * unit <= number < _LATEST_S * unit:
            return int(number * (NS_PER_S // unit))
    return None


def spread(times_ns: Sequence[int]) -> list[int]:
    """Times in order, where those of whole seconds are spread evenly over their second, unless some have fractions."""
    if any(time_ns % NS_PER_S for time_ns in times_ns):
        return list(times_ns)
    counts = Counter(times_ns)
    return [
        second_ns + at * NS_PER_S // counts[second_ns]
        for second_ns, same in groupby(times_ns)
        for at, _ in enumerate(same)
    ]
