"""Placeholders of requests: `{seq}`, `{rand:a..b}`, `{pick:file}` in paths, header values and text bodies.

Any other brace is sent as it is, so JSON needs no escaping. A placeholder in double braces is sent with single ones,
unchanged.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_KNOWN = r"seq|rand:(-?\d{1,18})\.\.(-?\d{1,18})|pick:([A-Za-z0-9._/-]+)"
_PART = re.compile(rf"\{{\{{(?:{_KNOWN})\}}\}}|\{{(?:{_KNOWN})\}}")
_MEANT = re.compile(r"\{(?:rand|pick)\b[^{}]*\}?")


@dataclass(frozen=True)
class Seq:
    """A number from 0 that no two requests share."""


@dataclass(frozen=True)
class Rand:
    """A whole number from `low` to `high`, both included."""

    low: int
    high: int


@dataclass(frozen=True)
class Pick:
    """An entry of the picks of that name."""

    name: str


Placeholder = Seq | Rand | Pick


def parts(text: str) -> Iterator[str | Placeholder]:
    """The text in order, as literal pieces and placeholders."""
    at = 0
    for match in _PART.finditer(text):
        if match.start() > at:
            yield text[at : match.start()]
        yield match[0][1:-1] if match[0].startswith("{{") else _placeholder(match)
        at = match.end()
    if at < len(text):
        yield text[at:]


def placeholders(text: str) -> tuple[Placeholder, ...]:
    """The placeholders of a text, in order."""
    return tuple(part for part in parts(text) if not isinstance(part, str))


def malformed(text: str) -> str | None:
    """The first text that looks like a placeholder but is none, or cannot be filled; None if there is none."""
    for part in parts(text):
        if isinstance(part, str) and not _PART.fullmatch(f"{{{part}}}") and (found := _MEANT.search(part)):
            return found[0]
        if isinstance(part, Rand) and part.low > part.high:
            return f"{{rand:{part.low}..{part.high}}}"
    return None


def for_engine(text: str) -> str:
    """The text with all literal braces doubled, as the engine's protocol requires."""
    return for_each_literal(text, lambda literal: literal.replace("{", "{{").replace("}", "}}"))


def for_each_literal(text: str, change: Callable[[str], str]) -> str:
    """The text with all but its placeholders changed."""
    return _built(text, change, _written)


def first_of(text: str, picks: Mapping[str, tuple[str, ...]]) -> str:
    """The text of one possible request: with the first number, the lowest value, the first entry."""

    def value(placeholder: Placeholder) -> str:
        match placeholder:
            case Seq():
                return "0"
            case Rand(low, _):
                return str(low)
            case Pick(name):
                return picks[name][0]

    return _built(text, lambda literal: literal, value)


def _built(text: str, literal: Callable[[str], str], value: Callable[[Placeholder], str]) -> str:
    return "".join(literal(part) if isinstance(part, str) else value(part) for part in parts(text))


def _placeholder(match: "re.Match[str]") -> Placeholder:
    low, high, name = match.groups()[3:]
    if name is not None:
        return Pick(name)
    return Seq() if low is None else Rand(int(low), int(high))


def _written(placeholder: Placeholder) -> str:
    match placeholder:
        case Seq():
            return "{seq}"
        case Rand(low, high):
            return f"{{rand:{low}..{high}}}"
        case Pick(name):
            return f"{{pick:{name}}}"
