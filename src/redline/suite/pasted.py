"""Command lines as people copy them for a shell: quotes, pipes, redirections, line breaks. Pure; no shell runs."""

import re
from dataclasses import dataclass
from typing import NoReturn

from redline.errors import UsageError
from redline.quantities import clip

_COMMENT = re.compile(r"#[^\n]*")
_OUTPUT = re.compile(r"\d*>>?(?:&\d+)?|&>>?")
_OPERATOR = re.compile(r"\|\|?|&&?|;|<<?<?|[()]|\n")
_QUOTED = re.compile(r"'(?P<plain>[^']*)'|\"(?P<double>(?:\\.|[^\"\\])*)\"|\$'(?P<escaped>(?:\\.|[^'\\])*)'", re.DOTALL)
_BARE = re.compile(
    r"\\(?P<char>.)|(?P<dollar>\$(?:\([^)]*\)|\{[^}]*\}|\w+)|`[^`]*`)|(?P<text>[^\s'\"\\|&;<>()`$]+|\$)", re.DOTALL
)
_FILLED = re.compile(r"\\.|(\$(?:\([^)]*\)|\{[^}]*\}|[A-Za-z_]\w*)|`[^`]*`)", re.DOTALL)
_IN_DOUBLE = re.compile(r"\\([$`\"\\]|\n)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)


@dataclass(frozen=True)
class Pasted:
    """A pipeline: the words of each command. `reads` says that the first gets a file as its input."""

    commands: tuple[tuple[str, ...], ...]
    reads: str | None = None


def read_pasted(text: str, flag: str) -> Pasted:
    """The pipeline that a shell would run; `flag` is named in errors. Where its output goes is left out.

    Raises UsageError for what only a shell can fill in, and for several commands.
    """
    commands: list[list[str]] = [[]]
    reads, skips, at = None, False, 0
    text = text.replace("\\\r\n", "\\\n").replace("\\\n", " ").strip()
    while at < len(text):
        if text[at] in " \t\r":
            at += 1
        elif match := _COMMENT.match(text, at):
            at = match.end()
        elif match := _OUTPUT.match(text, at):
            at, skips = match.end(), "&" not in match[0][1:]
        elif match := _OPERATOR.match(text, at):
            at = match.end()
            rest = text[at:].strip()
            if match[0] == "|":
                commands.append([])
            elif match[0] == "<" and len(commands) == 1:
                reads, skips = rest.split()[0] if rest else "", True
            elif rest or match[0] not in {"&", ";"}:
                _refuse(flag, match[0])
        else:
            word, at = _word(text, at, flag)
            if not skips:
                commands[-1].append(word)
            skips = False
    return Pasted(tuple(map(tuple, commands)), reads)


def _refuse(flag: str, operator: str) -> NoReturn:
    shown = "a second line" if operator == "\n" else f"`{operator}`"
    hint = "give a single command; a URL with `&` stands in quotes, and a line that goes on ends in a backslash"
    raise UsageError(f"{flag}: {shown} is for a shell", hint=hint)


def _word(text: str, at: int, flag: str) -> tuple[str, int]:
    """The word that begins there, without its quotes, and where it ends. Raises UsageError."""
    parts: list[str] = []
    while at < len(text):
        if match := _QUOTED.match(text, at):
            parts.append(_unquoted(match, flag))
        elif match := _BARE.match(text, at):
            if match["dollar"]:
                _refuse_variable(flag, match["dollar"])
            parts.append(match["char"] or match["text"])
        elif text[at] in "'\"":
            hint = "close the quotes, or quote the whole command once more"
            raise UsageError(f"{flag}: no closing quotation after {clip(text[at:])}", hint=hint)
        else:
            break
        at = match.end()
    if not parts:  # a backslash or a backquote at the very end
        raise UsageError(f"{flag}: `{clip(text[at:])}` is not the end of a command", hint="give the whole command")
    return "".join(parts), at


def _unquoted(match: re.Match[str], flag: str) -> str:
    if match["plain"] is not None:
        return match["plain"]
    if match["escaped"] is not None:
        return unescaped(match["escaped"])
    for filled in _FILLED.finditer(match["double"]):
        if filled[1]:
            _refuse_variable(flag, filled[1])
    return _IN_DOUBLE.sub(r"\1", match["double"])


def _refuse_variable(flag: str, text: str) -> NoReturn:
    raise UsageError(f"{flag}: `{clip(text)}` is for a shell to fill in", hint="write its value")


def unescaped(text: str) -> str:
    r"""A text with the escapes of `$'…'` and `printf`, such as `\n` and `\u00e9`; `\x` gives bytes of UTF-8."""

    def char(match: re.Match[str]) -> str:
        byte, short, long, octal, other = match.groups()
        if byte or octal:
            code = int(byte, 16) if byte else int(octal, 8) & 0xFF
            return chr(code if code < 0x80 else 0xDC00 + code)
        if short or long:
            code = int(short or long, 16)
            return chr(code) if code <= 0x10FFFF else match[0]
        return _ESCAPES.get(other, other if other in "\\'\"?" else match[0])

    # Browsers write a character beyond U+FFFF as the two halves of UTF-16.
    made = _ESCAPE.sub(char, text).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    try:
        return made.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character
        return made
