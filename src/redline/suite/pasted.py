"""Parse shell command lines that users paste: quotes, pipes, redirections, line breaks. Pure; no shell runs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple, NoReturn

from redline.errors import Location, UsageError
from redline.quantities import clip

_BLANK = re.compile(r"(?:[^\S\n]|\\\r?\n)+|#[^\n]*")
_OUTPUT = re.compile(r"\d*>>?(?:&\d+)?|&>>?")
_OPERATOR = re.compile(r"\|\|?|&&?|;|<<?<?|[()]|\n")
_QUOTED = re.compile(
    r"'(?P<plain>[^']*)'|\"(?P<double>[^\"\\]*+(?:\\.[^\"\\]*+)*+)\"|\$'(?P<escaped>[^'\\]*+(?:\\.[^'\\]*+)*+)'",
    re.DOTALL,
)
_VALUE = r"\$(?:\([^)]*\)?|\{[^}]*\}?|[A-Za-z0-9_]+)|`[^`]*`"
_BARE = re.compile(rf"\\(?P<char>[^\r\n]|\r(?!\n))|(?P<filled>{_VALUE})|(?P<text>[^\s'\"\\|&;<>()`$]+|\$)", re.DOTALL)
_FILLED = re.compile(rf"\\.|({_VALUE})", re.DOTALL)
_IN_DOUBLE = re.compile(r"\\(?:([$`\"\\])|\r?\n)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ENDS = {"\n", ";", "&", "&&", "||"}
_CLOSE = "close the quotes, or quote the whole command once more"
_WHOLE = "give the whole command"


@dataclass(frozen=True)
class Pasted:
    """A pipeline: the words of every command. `reads` says that the first command reads its input from a file."""

    commands: tuple[tuple[str, ...], ...]
    reads: str | None = None


class ScriptCommand(NamedTuple):
    """The first command of a pipeline, and its line, from 1. `needs` names shell syntax in it; empty without any."""

    line: int
    words: tuple[str, ...]
    needs: str


class _Token(NamedTuple):
    """A word without its quotes, or an operator, and its position.

    `filled` is the part that a shell would replace. `wrong`, with a hint, is the error that ends the parsing there.
    """

    at: int
    word: str = ""
    operator: str = ""
    filled: str = ""
    wrong: str = ""
    hint: str = ""


def read_pasted(text: str, flag: str) -> Pasted:
    """Parse the pipeline that a shell would run; errors name `flag`. Redirections of output are left out.

    Raises UsageError for text that only a shell can fill in, and for several commands.
    """
    commands: list[list[str]] = [[]]
    reads, names_input, ended_by = None, False, ""
    for token in _tokens(text):
        if token.operator == "\n" and (ended_by or not commands[-1]):
            continue
        _check(token, flag, ended_by)
        if token.operator in {"\n", ";", "&"}:
            ended_by = token.operator
        elif token.operator == "|":
            commands.append([])
        elif token.operator == "<" and len(commands) == 1:
            names_input = True
        elif token.operator:
            _refuse(flag, token.operator)
        elif names_input:
            reads, names_input = token.word, False
        else:
            commands[-1].append(token.word)
    return Pasted(tuple(map(tuple, commands)), reads)


def _check(token: _Token, flag: str, ended_by: str) -> None:
    """Raise UsageError for a token that needs a shell, or that follows the end of the command."""
    if token.wrong:
        raise UsageError(f"{flag}: {token.wrong}", hint=token.hint)
    if ended_by:
        _refuse(flag, ended_by)
    if token.filled:
        raise UsageError(f"{flag}: `{clip(token.filled)}` is for a shell to fill in", hint="write its value")


def _refuse(flag: str, operator: str) -> NoReturn:
    shown = "a second line" if operator == "\n" else f"`{operator}`"
    hint = "give a single command; quote a URL with `&`, and end a line that goes on with a backslash"
    raise UsageError(f"{flag}: {shown} is for a shell", hint=hint)


def read_script(text: str, name: str) -> Iterator[ScriptCommand]:
    """The first command of every pipeline in a script; errors give `name`. Redirections of output are left out.

    Raises UsageError, with the line, for quotes that do not end.
    """
    line, counted = 1, 0
    words, needs, begins = list[str](), "", 1
    in_pipe = goes_on = False
    for token in chain(_tokens(text), [_Token(len(text), operator=";")]):
        line += text.count("\n", counted, token.at)
        counted = token.at
        if token.wrong:
            raise UsageError(token.wrong, hint=token.hint, place=Location(name, line))
        if token.operator == "\n" and goes_on:
            continue
        if token.operator in _ENDS:
            if words or needs:
                yield ScriptCommand(begins, tuple(words), needs)
            words, needs, in_pipe, goes_on = [], "", False, False
            continue
        begins = begins if words or needs else line
        in_pipe = in_pipe or (token.operator == "|" and bool(words or needs))
        goes_on = token.operator == "|"
        if not in_pipe and token.operator:
            needs = needs or f"`{token.operator}` of the shell"
        elif not in_pipe:
            words.append(token.word)
            needs = needs or ("a variable of the shell" if token.filled else "")


def _tokens(text: str) -> Iterator[_Token]:
    """The words and operators, without redirections of output; an error is the last token."""
    at, names_output = 0, False
    while at < len(text):
        if match := _BLANK.match(text, at):
            at = match.end()
        elif match := _OUTPUT.match(text, at):
            at, names_output = match.end(), "&" not in match[0][1:]
        elif match := _OPERATOR.match(text, at):
            yield _Token(at, operator=match[0])
            at, names_output = match.end(), False
        else:
            token, at = _word(text, at)
            if token.wrong or not names_output:
                yield token
            names_output = False
            if token.wrong:
                return


def _word(text: str, begins: int) -> tuple[_Token, int]:
    """The word that begins at a position, and its end."""
    parts, filled, at = list[str](), "", begins
    while at < len(text):
        if match := _QUOTED.match(text, at):
            piece, value = _unquoted(match)
        elif match := _BARE.match(text, at):
            piece, value = match["char"] or match["text"] or "", match["filled"] or ""
        elif text[at] in "'\"":
            return _Token(at, wrong=f"no closing quotation after {clip(text[at:])}", hint=_CLOSE), at
        else:
            break
        parts.append(piece)
        filled, at = filled or value, match.end()
    if at == begins:  # a backslash or a backquote at the very end
        wrong = f"`{clip(text[at:])}` is not the end of a command"
        return _Token(at, wrong=wrong, hint=_WHOLE), at
    return _Token(begins, "".join(parts), filled=filled), at


def _unquoted(match: re.Match[str]) -> tuple[str, str]:
    """The text without quotes, and the part that a shell would replace."""
    if match["plain"] is not None:
        return match["plain"], ""
    if match["escaped"] is not None:
        return unescaped(match["escaped"]), ""
    filled = next((filled[1] for filled in _FILLED.finditer(match["double"]) if filled[1]), "")
    return _IN_DOUBLE.sub(lambda escape: escape[1] or "", match["double"]), filled


def unescaped(text: str) -> str:
    r"""Expand the escapes of `$'…'` and `printf`, such as `\n` and `\u00e9`; `\x` gives bytes of UTF-8."""

    def char(match: re.Match[str]) -> str:
        byte, short, long, octal, other = match.groups()
        if byte or octal:
            code = int(byte, 16) if byte else int(octal, 8) & 0xFF
            return chr(code if code < 0x80 else 0xDC00 + code)
        if short or long:
            code = int(short or long, 16)
            return chr(code) if code <= 0x10FFFF else match[0]
        return _ESCAPES.get(other, other if other in "\\'\"?" else match[0])

    # Browsers write a character beyond U+FFFF as a UTF-16 surrogate pair.
    made = _ESCAPE.sub(char, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    try:
        return made.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate
        return made


def is_curl(word: str) -> bool:
    """Whether a word is the program curl, with or without its folder."""
    return word.rpartition("/")[2] in {"curl", "curl.exe"}


def begins_curl(line: str) -> bool:
    """Whether a line begins a curl command, with or without the prompt `$ `."""
    return any(map(is_curl, line.lstrip().removeprefix("$ ").split(maxsplit=1)[:1]))


def split_curl(text: str) -> tuple[str, ...]:
    """Split a curl command into words as a shell would, without redirections of its output.

    Raises UsageError for text that only a shell can fill in.
    """
    return read_pasted(text.lstrip().removeprefix("$ "), "curl").commands[0]
