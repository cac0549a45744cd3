"""Detect shell syntax in commands: they start without a shell, so it would reach the program unchanged."""

import re
import shlex
from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator

from redline.errors import WrongValueError
from redline.model.catalogue import names_in_braces

FILLED = ("port", "cpus", "scratch")
KNOWN = "{port}, {cpus} and {scratch}"

_SETS = re.compile(r"[A-Za-z_]\w*\+?=.*")
_BUILT_IN = re.compile(r"\.|alias|cd|eval|exec|export|set|source|ulimit|umask|unset")
_HOME = re.compile(r"~(?:/.*)?")
_OUTPUT = re.compile(r"\d*>>?(?:&?\S*)?|&>>?\S*")
_OPERATOR = re.compile(r"&&|\|\|?|;|&|\d*<<?<?\S*|\(|\)|\S+;")
_VARIABLE = re.compile(r".*(?:\$(?:[A-Za-z_]\w*|\{\w|\()|`).*")
_PORT = re.compile(r"\$(?:PORT\b|\{PORT\b[^}]*\})")
_ONLY_A_VARIABLE = re.compile(r"(?:-[\w-]+=?)?\$(?:[A-Za-z_]\w*|\{\w+\})")
SHELLS = frozenset({"ash", "bash", "dash", "fish", "ksh", "sh", "zsh"})


def for_a_shell(text: str) -> tuple[str, str] | None:
    """The shell syntax in a command and advice on it, as a message and a hint; None without any.

    Quoted text is for the program. Raises ValueError for quotes that do not end.
    """
    words = shlex.split(text, posix=False)
    match = _word_for_a_shell(words, _VARIABLE)
    return match and _advice(*match, f"`env {text.strip()}`", f"`sh -c {shlex.quote(text.strip())}`")


def words_for_a_shell(words: Sequence[str]) -> tuple[str, str] | None:
    """As `for_a_shell`, for a list of words: only whole-word variables count, and nothing if a shell is started."""
    if any(word.rpartition("/")[2] in SHELLS for word in words):
        return None
    match = _word_for_a_shell(words, _ONLY_A_VARIABLE)
    return match and _advice(*match, "`env` as the first word", f"`[sh, -c, {shlex.quote(' '.join(words))}]`")


def _word_for_a_shell(words: Sequence[str], variable: re.Pattern[str]) -> tuple[str, re.Pattern[str]] | None:
    """The first unquoted word that needs a shell, and the pattern that it matches."""
    for at, word in enumerate(words):
        kinds = (*((_SETS, _BUILT_IN) if at == 0 else ()), _HOME, _OUTPUT, _OPERATOR, variable)
        kind = next((kind for kind in kinds if kind.fullmatch(word)), None)
        if kind is not None and "'" not in word and '"' not in word:
            return word, kind
    return None


def _advice(word: str, kind: re.Pattern[str], with_env: str, with_shell: str) -> tuple[str, str]:
    if kind in {_VARIABLE, _ONLY_A_VARIABLE} and _PORT.search(word):
        advice = f"write `{_PORT.sub('{port}', word)}`: Redline chooses the port"
    elif kind is _SETS:
        advice = f"write {with_env}"
    elif kind is _OUTPUT:
        advice = f"leave it out: the output goes to a log; or write {with_shell}"
    elif kind is _HOME:
        advice = f"write the whole path, or {with_shell}"
    elif word == "&":
        advice = "leave it out: a server has to stay in the foreground"
    else:
        advice = f"write {with_shell}"
    return f"`{word}` is for a shell, and commands start without one", advice


def read_command(text: str) -> tuple[str, ...]:
    """Split a command, which is started without a shell, into words. Raises WrongValueError."""
    try:
        parts, advice = tuple(shlex.split(text)), for_a_shell(text)
    except ValueError as error:
        raise WrongValueError(f"{text!r} is not a command: {error}", "quote it as a shell would") from None
    if parts and parts[0].rpartition("/")[2] == "curl":
        hint = f"`redline init {shlex.quote(text)}` writes its request into redline.yaml, which `redline run` loads"
        raise WrongValueError(f"{text!r} sends a request, and starts no server", hint)
    if advice is not None:
        raise WrongValueError(f"{text!r}: {advice[0]}", advice[1])
    named = [name for part in parts for name in names_in_braces(part)]
    if "port" not in named:
        hint = "write {port} where the command takes its port"
        hint += f"; if the server reads it from PORT: `env PORT={{port}} {text}`"
        raise WrongValueError(f"{text!r} has no {{port}}", hint)
    for name in named:
        if name not in FILLED:
            raise WrongValueError(f"{{{name}}} is not a placeholder", f"known are {KNOWN}")
    return parts


def _command(text: str) -> str:
    read_command(text)
    return text


CommandLine = Annotated[str, AfterValidator(_command)]
"""A command in shell quoting, with {port}."""
