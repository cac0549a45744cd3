"""All errors that Redline raises on purpose. Only the command line turns them into exit codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal, Self


@dataclass(frozen=True)
class NamedPart:
    """A part of what is asked for, by its name in `redline.asking.asks`, and its value, if one is meant."""

    name: str
    value: object = None


class WordedText(str):  # noqa: SLOT000 - it keeps its parts
    """A text, which keeps the parts that it names: of `part("rate", 0) + " is not possible"` it is `rate` with 0."""

    parts: tuple[NamedPart, ...]

    def __new__(cls, text: str, *parts: NamedPart) -> Self:
        """A text about these parts."""
        made = super().__new__(cls, text)
        made.parts = parts
        return made

    def __add__(self, other: str) -> "WordedText":
        return WordedText(f"{self}{other}", *self.parts, *parts_of(other))

    def __radd__(self, other: str) -> "WordedText":
        return WordedText(f"{other}{self}", *parts_of(other), *self.parts)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return str(self), *self.parts


def parts_of(text: str) -> tuple[NamedPart, ...]:
    """The parts that a text names and keeps."""
    return text.parts if isinstance(text, WordedText) else ()


@dataclass(frozen=True)
class Location:
    """The place of an error in a file; line and column count from 1."""

    file: str
    line: int | None = None
    column: int | None = None
    field: str | None = None

    def __str__(self) -> str:
        spot = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return f"{spot}: {self.field}" if self.field else spot


def joined(between: str, texts: Sequence[str]) -> str:
    """Texts with `between` among them, which keep their parts."""
    return reduce(lambda text, more: text + between + more, texts)


@dataclass(frozen=True)
class Problem:
    """A problem, its place, and what to do about it.

    `message` and `hint` are in the words of whoever asks; `parts` says which parts of what is asked for the message is
    about, as data, and `part` and `value` are the first of them.
    """

    message: str
    hint: str
    place: Location | None = None

    @property
    def parts(self) -> tuple[NamedPart, ...]:
        """The parts that the message names, in its order; empty where it is about none."""
        return parts_of(self.message)

    @property
    def part(self) -> str | None:
        """The name of the first part; None where the message names none."""
        return self.parts[0].name if self.parts else None

    @property
    def value(self) -> object:
        """The value of the first part; None where it has none."""
        return self.parts[0].value if self.parts else None

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        return f"{where}{self.message}\n  hint: {self.hint}"


class RedlineError(Exception):
    """An error that a user can act on: always a message and a hint, never a stack trace.

    `exit_code` is the exit code of the command line.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str, place: Location | None = None) -> None:
        super().__init__(message)
        self.problems: tuple[Problem, ...] = (Problem(message, hint, place),)

    @classmethod
    def of(cls, error: "RedlineError") -> Self:
        """An error of this class with the message and hint of another error."""
        return cls(error.message, hint=error.hint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make errors picklable: they travel from other hosts to the lab."""
        return _restored, (type(self), self.args, self.__dict__)

    @property
    def message(self) -> str:
        """The message of the first problem, without its place and hint."""
        return self.problems[0].message

    @property
    def hint(self) -> str:
        """The hint of the first problem."""
        return self.problems[0].hint

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


def _restored(kind: type[RedlineError], arguments: tuple[Any, ...], state: dict[str, Any]) -> RedlineError:
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    return error


class UsageError(RedlineError):
    """The user's input is wrong: a flag, a suite, a catalogue entry. Exit code 2."""

    exit_code = 2

    @classmethod
    def of_problems(cls, problems: tuple[Problem, ...]) -> "UsageError":
        """A single error for many problems, so that a user fixes a file once."""
        error = cls(problems[0].message, hint=problems[0].hint, place=problems[0].place)
        error.problems = problems
        return error


class BuildError(RedlineError):
    """A server could not be built; its cells are skipped, visibly.

    `reason` says why in one line, for a table that names the server already. It defaults to the first line of the
    message.
    """

    def __init__(self, message: str, *, hint: str, place: Location | None = None, reason: str = "") -> None:
        super().__init__(message, hint=hint, place=place)
        self.reason = reason or message.partition("\n")[0].removesuffix(":")

    @classmethod
    def of_server(cls, name: str, reason: str, *, hint: str) -> "BuildError":
        """An error about a server, with the message `name: reason`."""
        return cls(f"{name}: {reason}", hint=hint, reason=reason)


class LaunchError(RedlineError):
    """A server did not start or did not become ready; `log_tail` is the end of what it wrote.

    Of one that did not become ready, `answered` is the status that it answered in place of the right one, and
    `may_be_slow` whether nothing else than too little time was seen.
    """

    def __init__(  # noqa: PLR0913 - what is said, and what was seen
        self,
        message: str,
        *,
        hint: str,
        place: Location | None = None,
        kind: Literal["start", "not_ready"] = "start",
        log_tail: str = "",
        answered: int | None = None,
        may_be_slow: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, place=place)
        self.kind: Literal["start", "not_ready"] = kind
        self.log_tail = log_tail
        self.answered = answered
        self.may_be_slow = may_be_slow


class DriveError(RedlineError):
    """The load could not be put on the server."""


class StoreError(RedlineError):
    """The run directory could not be read or written."""


class TakenError(StoreError):
    """A place that the user named for results cannot hold them: it is taken, or its folder is missing. Exit code 2."""

    exit_code = 2


class NotStoredError(StoreError):
    """A directory that the user named does not hold the expected files. Exit code 2."""

    exit_code = 2


class NotKnownError(RedlineError):
    """A result has no such number: it is invalid, was not measured, or there are several of which none is meant."""


class WrongValueError(ValueError):
    """A wrong value, with a message and a hint about what to write instead.

    `field` is the wrong key, if a mapping is wrong as a whole. The message does not name it: a suite
    prints the place of the key, the command line its flag.
    """

    def __init__(self, message: str, hint: str, *, field: str | None = None) -> None:
        super().__init__(f"{message}; {hint}")
        self.message = message
        self.hint = hint
        self.field = field
