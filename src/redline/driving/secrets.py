"""Secrets of loads, such as a proxy's password or a token in a header, which are kept in memory alone.

A suite names a secret as `${NAME}`, a variable of the lab's environment. What a flag gives in plain text gets such a
name here, so that suites, results and messages never hold it.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count

from redline.errors import UsageError
from redline.model.catalogue import passed_names

_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_held: dict[str, str] = {}
_shown: dict[str, str] = {}
_of_files: dict[str, str] = {}
_of_the_lab: ContextVar[Mapping[str, str]] = ContextVar("_of_the_lab")


def hold(name: str, value: str) -> str:
    """Keep a secret of a flag. Returns a reference to it: `${NAME}`, with a number behind if another has that name."""
    free = next(other for other in _numbered(name) if _held.get(other, value) == value)
    _held[free] = value
    return f"${{{free}}}"


def hide(word: str, shown: str) -> None:
    """Let `masked` show the second text for a word of the command line with a secret in it."""
    _shown[word] = shown


def offer(variables: Mapping[str, str]) -> None:
    """Let secrets be taken from these variables of files, where the environment does not have them."""
    _of_files.clear()
    _of_files.update(variables)


def masked(words: list[str]) -> list[str]:
    """The words of a command line as they may be stored: without secrets."""
    return [_masked(word) for word in words]


def masked_call(text: str) -> str:
    """The text of a call in Python, without secrets."""
    for word, shown in _shown.items():
        text = text.replace(repr(word), repr(shown))
    return text


def with_secrets(
    text: str, where: str, *, literal: Callable[[str], str] = str, secret: Callable[[str], str] = str
) -> str:
    """Fill in `${NAME}`, with the secrets and the text around them as they are written there.

    Raises UsageError, which names no value, for a variable that is not set.
    """
    values = _values(text, where)
    parts = _REFERENCE.split(text)
    return "".join(secret(values[part]) if at % 2 else literal(part) for at, part in enumerate(parts))


def secrets_in(texts: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The values of all `${NAME}` in texts, beside which stands where they are. Raises UsageError as `with_secrets`."""
    return {name: value for where, text in texts for name, value in _values(text, where).items()}


@contextmanager
def secrets_of_the_lab(values: Mapping[str, str]) -> Iterator[None]:
    """Let this thread take secrets from these values first: on a host whose environment is not the lab's."""
    before = _of_the_lab.set(values)
    try:
        yield
    finally:
        _of_the_lab.reset(before)


def _values(text: str, where: str) -> dict[str, str]:
    values = {}
    for name in passed_names(text):
        held = next(
            (known[name] for known in (_of_the_lab.get({}), _held, os.environ, _of_files) if name in known), None
        )
        if held is None:
            hint = f"set it, as in `{name}=… redline …`, or write it into the `env_file` of the server"
            raise UsageError(f"{where}: the variable {name} is not set in the environment of redline", hint=hint)
        values[name] = held
    return values


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name}_{number}" for number in count(2))


def _masked(word: str) -> str:
    for secret, shown in _shown.items():
        if word == secret:
            return shown
        before = word.removesuffix(secret)
        if before != word and (before.endswith("=") or re.fullmatch(r"-\w", before)):
            return before + shown
    return word
