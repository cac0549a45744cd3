"""Quantities as people write them: durations, rates, shares, sizes and objectives. Pure text in, exact numbers out."""

import re
from decimal import Decimal
from difflib import get_close_matches

from redline.errors import WrongValueError
from redline.model import Objective, Share

_NUMBER = r"[0-9]{1,15}(?:\.[0-9]{1,15})?"
_QUANTITY = re.compile(rf"({_NUMBER})(?![0-9.])\s*([A-Za-zµμ]*)\s*")

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
HIGHEST_RATE_PER_S = 1e7
HIGHEST_SHARE = 10.0
_CAPACITY_HINT = "write a percentage of a closed load of this suite, such as `50% of saturate`"

_SIZE_BYTES = {"": 1, "B": 1, "kB": 1000, "KiB": 1024, "MB": 1000**2, "MiB": 1024**2}
_SIZE_HINT = "write a number of bytes, or a number with a unit (B, kB, KiB, MB, MiB), such as 256 or 5MB"

_LATENCY_METRICS = ("p50", "p90", "p99", "p99.9", "max")
_SHARE_METRICS = ("errors", "achieved")
_OBJECTIVE_HINT = "write conditions such as `p99 < 200ms, errors < 0.1%, achieved > 99%`"
_CONDITION = re.compile(r"([^\s<>=]+)\s*([<>]=?|=+)\s*(.+)", re.DOTALL)


def parse_duration(text: str) -> int:
    """A duration in whole nanoseconds, zero included.

    `25s`, `250ms`, `1.5s`, `1m30s`, `1h 5m`; units h, m, s, ms, us, ns, each at most once and the larger first.
    Raises WrongValueError (a ValueError) for anything else, for parts of a nanosecond and for more than a day.
    """
    parts = _quantities(text)
    if parts is None:
        raise WrongValueError(f"{_quoted(text)} is not a duration", _DURATION_HINT)
    total = Decimal(0)
    smaller_than: int | None = None
    for number, unit in parts:
        factor = _duration_unit(text, unit)
        if smaller_than is not None and factor >= smaller_than:
            raise WrongValueError(f"{_quoted(text)} is not a duration: its units are out of order", _DURATION_HINT)
        smaller_than = factor
        total += number * factor
    if total != int(total):
        raise WrongValueError(f"{_quoted(text)} is not a whole number of nanoseconds", "use a smaller unit, such as ns")
    if total > LONGEST_DURATION_NS:
        raise WrongValueError(f"{_quoted(text)} is longer than a day", "no duration may be longer than 24h")
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
    """As `parse_rate`, with 0 allowed: a rate may start or end there."""
    match = re.fullmatch(rf"({_NUMBER}(?:[eE]\+?[0-9]{{1,2}})?)\s*(.*)", str(text).strip())
    if not match:
        raise WrongValueError(f"{_quoted(text)} is not a rate", _RATE_HINT)
    number, unit = match.groups()
    if unit not in _PER_SECOND:
        raise WrongValueError(f"{_quoted(text)} has an unknown unit `{clip(unit)}`", _RATE_HINT)
    rate_per_s = float(number) / _PER_SECOND[unit]
    if rate_per_s > HIGHEST_RATE_PER_S:
        raise WrongValueError(f"{_quoted(text)} is more than one request each nanosecond", _RATE_HINT)
    return rate_per_s


def parse_share(text: str | float) -> float:
    """A share between 0 and 1, both included: `2%`, `0.1%`, `0.02`.

    Raises WrongValueError (a ValueError) for anything else.
    """
    match = re.fullmatch(rf"({_NUMBER})\s*(%?)", str(text).strip())
    if not match:
        raise WrongValueError(
            f"{_quoted(text)} is not a share", "write a percentage such as 2%, or a part of 1 such as 0.02"
        )
    number, percent = match.groups()
    share = Decimal(number) / (100 if percent else 1)
    if share > 1:
        hint = f"did you mean {number}%?" if not percent else "write at most 100%"
        raise WrongValueError(f"{_quoted(text)} is more than 100%", hint)
    return float(share)


def parse_rate_or_share(text: str | float) -> float | Share:
    """A rate, 0 included, or a share of what a closed load shows: `5000/s`, or `50% of saturate`, up to 1000%.

    Raises WrongValueError (a ValueError) for anything else.
    """
    if not re.search(r"%|\bof\b", str(text)):
        return parse_any_rate(text)
    match = re.fullmatch(rf"({_NUMBER})\s*%\s*of\s+(\S+)", str(text).strip())
    if not match:
        raise WrongValueError(f"{_quoted(text)} is not a share of a load", _CAPACITY_HINT)
    share = float(Decimal(match[1]) / 100)
    if share <= 0:
        raise WrongValueError("a rate of 0 sends nothing", _CAPACITY_HINT)
    if share > HIGHEST_SHARE:
        raise WrongValueError(f"{_quoted(text)} is more than {HIGHEST_SHARE:.0%}", "write at most 1000%")
    return Share(share=share, of=match[2])


def parse_size(text: str | int) -> int:
    """A size in whole bytes: `256`, `64KiB`, `5MB`. Raises WrongValueError (a ValueError) for anything else."""
    match = re.fullmatch(rf"({_NUMBER})\s*([^\d\s.]*)", str(text).strip())
    if not match:
        raise WrongValueError(f"{_quoted(text)} is not a size", _SIZE_HINT)
    number, unit = match.groups()
    if unit not in _SIZE_BYTES:
        same = [known for known in _SIZE_BYTES if known.lower() == unit.lower()]
        hint = f"did you mean `{number}{same[0]}`?" if same else _SIZE_HINT
        raise WrongValueError(f"{_quoted(text)} has an unknown unit `{clip(unit)}`", hint)
    size = Decimal(number) * _SIZE_BYTES[unit]
    if size != int(size):
        raise WrongValueError(f"{_quoted(text)} is not a whole number of bytes", _SIZE_HINT)
    return int(size)


def parse_objectives(text: str) -> tuple[Objective, ...]:
    """Conditions with commas between them, in the order written: `p99 < 200ms, errors < 0.1%, achieved > 99%`.

    p50, p90, p99, p99.9 and max are upper bounds of the response time; `errors` is an upper bound of the share of
    requests that did not end well; `achieved` a lower bound of the share of an open load's rate that was answered.
    Raises WrongValueError (a ValueError) for anything else, for a limit that nothing can meet, and for a metric that
    is named twice.
    """
    objectives = tuple(_objective(part.strip()) for part in text.split(","))
    metrics = [objective.metric for objective in objectives]
    for metric in metrics:
        if metrics.count(metric) > 1:
            raise WrongValueError(f"`{metric}` has more than one condition", "keep the stricter one")
    return objectives


def _objective(text: str) -> Objective:
    match = _CONDITION.fullmatch(text)
    if not match:
        raise WrongValueError(f"{_quoted(text)} is not a condition", _OBJECTIVE_HINT)
    metric, sign, limit_text = match.groups()
    if metric not in (*_LATENCY_METRICS, *_SHARE_METRICS):
        hint = did_you_mean(metric, (*_LATENCY_METRICS, *_SHARE_METRICS)) or _OBJECTIVE_HINT
        raise WrongValueError(f"`{clip(metric)}` is not something that an objective can bound", hint)
    right_sign = ">" if metric == "achieved" else "<"
    if sign != right_sign:
        side = "lower" if metric == "achieved" else "upper"
        raise WrongValueError(
            f"`{metric}` takes {'an' if side == 'upper' else 'a'} {side} bound, not `{sign}`",
            f"write `{metric} {right_sign} {limit_text.strip()}`",
        )
    limit = float(parse_duration(limit_text)) if metric in _LATENCY_METRICS else parse_share(limit_text)
    if (sign == "<" and limit == 0) or (sign == ">" and limit == 1):
        raise WrongValueError(f"{_quoted(text)} can never be met", _OBJECTIVE_HINT)
    plain = f"{metric} {sign} {limit_text.strip()}"
    return Objective.model_validate({"metric": metric, "below": sign == "<", "limit": limit, "text": plain})


def did_you_mean(word: str, known: tuple[str, ...]) -> str:
    """`did you mean `x`?` when something known looks like the word, else an empty text."""
    by_fold = {name.casefold(): name for name in known}
    near = get_close_matches(word.casefold(), list(by_fold), n=1, cutoff=0.6)
    return f"did you mean `{by_fold[near[0]]}`?" if near else ""


def _quantities(text: str) -> list[tuple[Decimal, str]] | None:
    """`1m30s` as [(1, m), (30, s)]; None when the text is anything else than numbers with units."""
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
        raise WrongValueError(f"{_quoted(text)} has no unit", _DURATION_HINT)
    word = unit.lower()
    plain = _OTHER_WORDS.get(word, word)
    hint = f"did you mean `{plain}`? {_DURATION_HINT}" if plain in _DURATION_NS else _DURATION_HINT
    raise WrongValueError(f"{_quoted(text)} has an unknown unit `{clip(unit)}`", hint)


def _quoted(text: str | float) -> str:
    return f"`{clip(str(text))}`"


def clip(text: str) -> str:
    """Enough of a text to recognise it, on one line."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= 60 else f"{plain[:57]}..."
