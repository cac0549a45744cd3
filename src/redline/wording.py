"""How people write the parts of what they ask for: as flags of a command, or as parameters of a call. Pure.

Whatever names a part in a message says `part("budget", "10x")`. That is `--for 10x` to whom gave flags, and
`budget='10x'` to a caller in Python. Nothing else puts such names into words. A message about a part adds it,
`part("budget", "10x") + " adds nothing"`, and so keeps its name and value as data. Advice that only some can follow is
said as `advice("longer", "raise `ready.within`")`, and a place with other means says what they are (`advising`).
"""

import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from numbers import Number
from pathlib import PurePath
from typing import Protocol

from redline.errors import NamedPart, WordedText
from redline.lazily import dataclass

FLAGS = {
    "budget": "--for",
    "connections": "-c",
    "cookie": "-b",
    "duration": "-d",
    "headers": "-H",
    "keep": "-o",
    "loads": "-l",
    "method": "-X",
    "options": "-w",
    "rate": "-R",
    "referer": "-e",
    "scenarios": "-m",
    "servers": "-s",
    "sources": "--source",
    "stages": "--stage",
    "threads": "-t",
    "user_agent": "-A",
    "users": "-u",
}
"""The flags of parts; that of any other part is its name, as `--same-answers` of `same_answers`."""

_INPUTS = {"budget": "for", "names": "names", "requests": "requests", "threshold": "threshold"}
"""The inputs of the action, and of the job in upper case; `ci/compare` makes flags of them."""
_SPACE = re.compile(r"\s|^$")


class Asker(Protocol):
    """The place where somebody asks, with its way to write a part and its value."""

    def name(self, part: str) -> str:
        """The name of a part there."""

    def said(self, part: str, value: object) -> str:
        """A part with its value, or an example of one, as it is written there."""


class CommandLine:
    """Flags with their values."""

    def name(self, part: str) -> str:
        """The flag: `--for`."""
        return FLAGS.get(part) or f"--{part.replace('_', '-')}"

    def said(self, part: str, value: object) -> str:
        """The flag and its value, in quotes where a shell needs them: `--objective 'p99 < 5ms'`."""
        if isinstance(value, (list, tuple)):
            return " ".join(self.said(part, item) for item in value)
        text = f"@{value}" if part == "body" and isinstance(value, PurePath) else str(value)
        return f"{self.name(part)} {repr(text) if _SPACE.search(text) else text}"


class StepOfCi(CommandLine):
    """The inputs of a step in CI: `for: 10x` of an action, or `REDLINE_FOR=10x` of a job; else flags."""

    def __init__(self, *, has_inputs: bool) -> None:
        self._has_inputs = has_inputs

    def name(self, part: str) -> str:
        """The input, the variable, or the flag."""
        if part not in _INPUTS:
            return super().name(part)
        return f"`{_INPUTS[part]}`" if self._has_inputs else f"REDLINE_{_INPUTS[part].upper()}"

    def said(self, part: str, value: object) -> str:
        """The input with its value."""
        if part not in _INPUTS:
            return super().said(part, value)
        return f"`{_INPUTS[part]}: {value}`" if self._has_inputs else f"{self.name(part)}={value}"


@dataclass(frozen=True)
class Call:
    """Parameters of a function of Python. `names` are those that are not called as their parts."""

    names: Mapping[str, str] = field(default_factory=dict)

    def name(self, part: str) -> str:
        """The parameter: `budget`."""
        return self.names.get(part, part)

    def said(self, part: str, value: object) -> str:
        """The parameter and its value, as Python writes it: `trials=2`."""
        if part == "headers" and ": " in str(value):
            name, _, text = str(value).partition(": ")
            return f"headers={ {name: text}!r}"
        if part == "load":
            kind, _, number = str(value).partition(":")
            return f"users={number}" if kind == "closed" else f"rate={number!r}"
        if part == "names":
            return f"{self.name(part)}={str(value).split(',')!r}"
        if isinstance(value, (list, tuple)):
            return self.said(part, value[0]) if len(value) == 1 else f"{self.name(part)}={[*value]!r}"
        if part == "body" and isinstance(value, PurePath):
            return f"{self.name(part)}=Path({str(value)!r})"
        shown = value if isinstance(value, Number) else str(value)
        return f"{self.name(part)}={shown!r}"


_MEDIUM: ContextVar[Asker] = ContextVar("_MEDIUM")
_ADVICE: ContextVar[Mapping[str, str]] = ContextVar("_ADVICE")
_COMMAND_LINE = CommandLine()
_NO_VALUE = object()
ASKS_BY = "REDLINE_ASKS_BY"
"""The variable by which `ci/compare` says whether it was given inputs or variables."""


@contextmanager
def asked_by(medium: Asker) -> Iterator[None]:
    """Let messages of a block be in the words of a medium."""
    before = _MEDIUM.set(medium)
    try:
        yield
    finally:
        _MEDIUM.reset(before)


@contextmanager
def advising(own: Mapping[str, str]) -> Iterator[None]:
    """Let `advice` in a block be `own`, by its name, where the usual advice cannot be followed."""
    before = _ADVICE.set({**_ADVICE.get({}), **own})
    try:
        yield
    finally:
        _ADVICE.reset(before)


def advice(name: str, usual: str) -> str:
    """What to do about a problem: `usual`, unless whoever asks has other means for what `name` says."""
    return _ADVICE.get({}).get(name, usual)


def medium_of(environment: Mapping[str, str]) -> Asker:
    """The medium of a command: that of the script of CI that runs it, or the command line."""
    asks = environment.get(ASKS_BY)
    return StepOfCi(has_inputs=asks == "inputs") if asks in ("inputs", "variables") else _COMMAND_LINE


def as_argument(path: object) -> str:
    """A path in a command that a reader may copy: in quotes where a shell needs them."""
    return shlex.quote(str(path))


def part(name: str, value: object = _NO_VALUE) -> WordedText:
    """A part of what is asked for, alone or with a value, as whoever asks writes it; it keeps both."""
    medium = _MEDIUM.get(_COMMAND_LINE)
    if value is _NO_VALUE:
        return WordedText(medium.name(name), NamedPart(name))
    return WordedText(medium.said(name, value), NamedPart(name, value))
