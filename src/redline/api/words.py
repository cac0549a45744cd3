"""Errors of flags in the words of Python: the commands name `--for 10x`, and a caller wrote `budget="10x"`."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from redline.cli.declaring import Flags
from redline.errors import RedlineError, UsageError

NAMES = {"lasts": "budget", "mine": "target_is_mine", "output": "keep", "listed": "requests"}
"""The parameters that are not called as the fields of the flags."""
_NOT_DECLARED = {"--path": "path"}
"""Flags of other commands, which hints name, with their parameters."""
_COMMAND = r"`[\w./][\w./-]* [^`]*`"
"""A command in a message: a program with its arguments, between backticks."""
_TAKES_A_NAME = "--target-is-mine"
"""Its value in a message is the next word; that of any other flag is a number, or is quoted."""


@contextmanager
def in_words_of_python(
    kind: type[Flags], names: Mapping[str, str] = {}, commands: Iterable[str | None] = ()
) -> Iterator[None]:
    """Let the errors of a block name parameters in place of flags. Raises RedlineError.

    `names` are further parameters that are not called as their fields. The caller's `commands` stay as they are, and so
    do messages that are not about arguments: they may quote what a server wrote about flags of its own.
    """
    try:
        yield
    except RedlineError as error:
        called = NAMES | dict(names)
        by_flag = _NOT_DECLARED | {
            flag: called.get(field, field)
            for field, declared in kind.declared().items()
            for flag in declared.param_decls or ()
        }
        kept = tuple(filter(None, commands))
        is_ours = isinstance(error, UsageError)
        error.problems = tuple(
            replace(
                problem,
                message=translated(problem.message, by_flag, kept) if is_ours else problem.message,
                hint=translated(problem.hint, by_flag, kept),
            )
            for problem in error.problems
        )
        raise


def translated(text: str, by_flag: Mapping[str, str], commands: Iterable[str] = ()) -> str:
    """The text with parameters in place of flags: `give --trials 2 or more` becomes `give trials=2 or more`.

    Words between backticks that begin with a program are commands, such as `curl -v`, and stay, as the caller's
    `commands` do.
    """
    flags = "|".join(map(re.escape, sorted(by_flag, key=len, reverse=True)))
    value = rf"(?<={_TAKES_A_NAME} )\S+|'[^']*'|[\d.](?:[^\s,;`]*[^\s,;:`])?"
    stay = "|".join([_COMMAND, *map(re.escape, commands)])
    written = re.compile(rf"({stay})|(?<![\w-])({flags})(?![\w-])(?:[ ]({value}))?")

    def parameter(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        name, value = by_flag[match[2]], match[3]
        return name if value is None else f"{name}={_literal(value)}"

    return written.sub(parameter, text)


def _literal(text: str) -> str:
    return text if text.startswith("'") or re.fullmatch(r"\d+(\.\d+)?", text) else repr(text)
