"""The order of versions, and which are stable releases. Pure."""

import re
from collections.abc import Iterable

_STABLE = re.compile(
    r"v?(\d+(?:\.\d+)*)(?:[.-](?:final|ga|release|jre\d*))?(?:[.-](?:post|sp)(\d+))?(?:\+\S*)?", re.IGNORECASE
)
_NUMBERS = re.compile(r"v?(\d+(?:\.\d+)*)", re.IGNORECASE)

Order = tuple[tuple[int, ...], bool, tuple[tuple[int, str], ...]]


def is_stable(version: str) -> bool:
    """Whether it is a release: numbers alone, or with a word such as `Final`; other words name what comes before."""
    return _STABLE.fullmatch(version) is not None


def order(version: str) -> Order:
    """The key to sort versions by. A version without numbers comes first; trailing zeros do not count."""
    start = _NUMBERS.match(version)
    numbers = [int(part) for part in start[1].split(".")] if start else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    stable = _STABLE.fullmatch(version)
    if stable:
        return tuple(numbers), True, ((int(stable[2] or 0), ""),)
    rest = re.findall(r"\d+|[a-z]+", version[start.end() if start else 0 :].lower())
    return tuple(numbers), False, tuple((int(part), "") if part.isdigit() else (-1, part) for part in rest)


def newest(versions: Iterable[str]) -> str | None:
    """The newest stable version; if none is stable, the newest of all; None if there are none."""
    known = list(versions)
    return max(filter(is_stable, known), key=order, default=None) or max(known, key=order, default=None)


def is_newer(version: str, pinned: str, parts: int | None = None) -> bool:
    """Whether a version is newer than the pinned one, by so many parts of its number if they are given."""
    if parts is None:
        return order(version) > order(pinned)
    return _first(version, parts) > _first(pinned, parts)


def _first(version: str, parts: int) -> tuple[int, ...]:
    start = _NUMBERS.match(version)
    numbers = [int(part) for part in start[1].split(".")[:parts]] if start else []
    return (*numbers, *[0] * (parts - len(numbers)))
