"""Placeholders of requests: what stands for a value in paths, header values and text bodies.

The steps of a journey also have `{take:name}`, a value of an earlier answer, and `{row:column}`, a value of a row.

Any other brace is sent as it is, so JSON needs no escaping. A placeholder in double braces is sent in single braces,
unchanged.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

_KNOWN = (
    r"seq|traceparent(?::(\d{1,3}(?:\.\d{1,9})?)%)?|rand:(-?\d{1,18})\.\.(-?\d{1,18})|pick:([A-Za-z0-9._/-]+)"
    r"|take:([A-Za-z_][A-Za-z0-9_.-]*)|row:([A-Za-z_][A-Za-z0-9_.-]*)"
)
_PART = re.compile(rf"\{{\{{(?:{_KNOWN})\}}\}}|\{{(?:{_KNOWN})\}}")
_ALONE = re.compile(rf"\{{(?:{_KNOWN})\}}")
_MEANT = re.compile(r"\{(?:(?:rand|pick|traceparent)\b)[^{}]*\}?|\{(?:take|row):[^{}\s]*\}")
_ALL_PERCENT = 100.0
_UNSAMPLED = f"00-{1:032x}-{1:016x}-00"
"""A valid context of a trace that nobody records."""


@dataclass(frozen=True)
class Placeholder:
    """A placeholder: `{seq}`, a number from 0 that no two requests share, `{rand:low..high}` or `{pick:file}`.

    `{traceparent:1%}` is a context of W3C Trace Context, of which `sampled_percent` are sampled. In a journey also
    `{take:name}` or `{row:column}`.
    """

    text: str
    low: int = 0
    high: int | None = None
    pick: str | None = None
    take: str | None = None
    row: str | None = None
    sampled_percent: float | None = None

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers."""
        return self.pick is None and self.sampled_percent is None and not self.is_of_journey

    @property
    def is_of_journey(self) -> bool:
        """Whether only a journey fills it in."""
        return self.take is not None or self.row is not None


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


def has_placeholders(text: str) -> bool:
    """Whether the text has placeholders, so that requests differ."""
    return any(not isinstance(part, str) for part in parts(text))


def picked(text: str) -> tuple[str, ...]:
    """Names of the files in a text's `{pick:…}`, in order."""
    return tuple(part.pick for part in parts(text) if isinstance(part, Placeholder) and part.pick)


def taken(text: str) -> tuple[str, ...]:
    """Names of the values in a text's `{take:…}`, in order."""
    return tuple(part.take for part in parts(text) if isinstance(part, Placeholder) and part.take)


def rows_used(text: str) -> tuple[str, ...]:
    """Names of the columns in a text's `{row:…}`, in order."""
    return tuple(part.row for part in parts(text) if isinstance(part, Placeholder) and part.row)


def is_traced(text: str) -> bool:
    """Whether the text has a trace context."""
    return any(not isinstance(part, str) and part.sampled_percent is not None for part in parts(text))


def has_texts(text: str) -> bool:
    """Whether the text has placeholders whose values are texts, which a body may have to escape."""
    return any(not isinstance(part, str) and not part.is_number for part in parts(text))


def with_picks(text: str, rename: Callable[[str], str]) -> str:
    """The text with the files of its `{pick:…}` renamed."""
    return _PART.sub(lambda match: f"{{pick:{rename(match[10])}}}" if match[10] else match[0], text)


def malformed(text: str) -> str | None:
    """The first placeholder that is invalid or cannot be filled; None if there is none."""
    for part in parts(text):
        if isinstance(part, Placeholder):
            if (part.high is not None and part.low > part.high) or (part.sampled_percent or 0) > _ALL_PERCENT:
                return part.text
        elif not _PART.fullmatch(f"{{{part}}}") and (match := _MEANT.search(part)):
            return match[0]
    return None


def as_literal(text: str) -> str:
    """A template that yields the text itself, with its apparent placeholders in double braces."""
    return _ALONE.sub(r"{\g<0>}", text)


def sent(text: str) -> str:
    """The text as it is sent: double braces become single ones. Placeholders stay as they are written."""
    return "".join(part if isinstance(part, str) else part.text for part in parts(text))


def for_engine(text: str) -> str:
    """The text with all literal braces doubled, as the engine's protocol requires."""
    return for_each_literal(text, lambda literal: literal.replace("{", "{{").replace("}", "}}"))


def for_each_literal(text: str, change: Callable[[str], str]) -> str:
    """The text with its literal pieces changed, and its placeholders unchanged."""
    return "".join(change(part) if isinstance(part, str) else part.text for part in parts(text))


def first_of(text: str, picks: Mapping[str, tuple[str, ...]]) -> str:
    """The text of a sample request: with the first number, the lowest value, the first entry.

    What only a journey fills in stays as it is written.
    """

    def sample(part: Placeholder) -> str:
        if part.is_of_journey:
            return part.text
        if part.sampled_percent is not None:
            return _UNSAMPLED
        return picks[part.pick][0] if part.pick else str(part.low)

    return "".join(part if isinstance(part, str) else sample(part) for part in parts(text))


def _placeholder(match: "re.Match[str]") -> Placeholder:
    percent, low, high, pick, take, row = match.groups()[6:]
    sampled = float(percent or _ALL_PERCENT) if match[0].startswith("{traceparent") else None
    return Placeholder(match[0], int(low or 0), None if high is None else int(high), pick, take, row, sampled)
