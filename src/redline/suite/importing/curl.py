"""Command lines of curl as requests: one from a terminal, or a file of them. Pure.

The options are those of curl 8, as its manual says; what concerns only curl's own output is left out.
"""

import argparse
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NoReturn

from redline.errors import UsageError
from redline.quantities import clip
from redline.suite.importing.gathering import Asked, Gathering
from redline.suite.importing.source import RequestSource

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_OF_HEADERS = {
    "-A --user-agent": "User-Agent",
    "-b --cookie": "Cookie",
    "-e --referer": "Referer",
}
_SHOWN = "-s --silent -S --show-error -v --verbose -i --include -f --fail -L --location -N --no-buffer -g --http1.1"
_SHOWN_WITH_VALUE = "-o --output -w --write-out -m --max-time --connect-timeout --retry"
_SUITE = "write a suite, whose servers have `tls` and `http`: docs/reference/suite.md"
_FILE = "save the body in a file, and give it as --data-binary @FILE"
_REFUSED = {
    "-F --form": _FILE,
    "-T --upload-file": _FILE,
    "--data-urlencode": "give the encoded text as --data",
    "-G --get": "write the query into the URL",
    "-u --user": "give the header: -H 'Authorization: Basic …'",
    "-k --insecure": _SUITE,
    "--cacert": _SUITE,
    "-E --cert": "a client certificate cannot be given to the engine",
    "--http2": _SUITE,
    "--http2-prior-knowledge": _SUITE,
    "--http3": "the engine speaks HTTP/1.1 and HTTP/2",
    "--unix-socket": "let the server listen on a port of 127.0.0.1",
    "-x --proxy": "give the URL of the proxy itself",
}
ALONE = "a URL is given alone, with its path, and flags of init stand before it"
_SCHEME = re.compile(r"\w+://")
_ABOUT_THE_CONNECTION = frozenset({"-k --insecure", "--http2", "--http2-prior-knowledge"})
"""Options that say how the server is reached, which a list of requests does not."""
_TOKEN = re.compile(
    r"""(?P<space>[ \t]+|\\\r?\n)|(?P<end>[\r\n;&|]+)|(?P<single>'[^']*')|(?P<escaped>\$'(?:\\.|[^'\\])*')"""
    r"""|(?P<double>"(?:\\.|[^"\\])*")|(?P<char>\\.)|(?P<plain>[^\s'"\\;&|$]+|\$)""",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
_VARIABLE = re.compile(r"(?<!\\)(?:\$[A-Za-z_{(]|`)")
_SET_BY_THE_ENGINE = {"connection", "content-length", "transfer-encoding"}


class _CurlParser(argparse.ArgumentParser):
    """Raises UsageError in place of printing a usage text."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"curl: {message}", hint="give the URL alone, and write the rest into redline.yaml")


@dataclass(frozen=True)
class CurlRequest:
    """What a command requests: `headers` as lines, and `body` as text, or @FILE; `method` only where it is given."""

    url: str
    method: str | None
    headers: list[str]
    body: str | None


def read_curl(words: Sequence[str], ignored: Collection[str] = ()) -> CurlRequest:
    """The URL, method, headers and body of a request. Raises UsageError for what has no counterpart.

    `ignored`: options without one that change nothing of the request.
    """
    values = _values(words, ignored)
    headers, body = list(values.headers or ()), _body(values)
    named = {header.partition(":")[0].strip().lower() for header in headers}
    described = {name: given for name in _OF_HEADERS.values() if (given := getattr(values, name)) is not None}
    if values.compressed:
        described["Accept-Encoding"] = "deflate, gzip"
    if values.json is not None:
        described |= {"Content-Type": _JSON, "Accept": _JSON}
    elif body is not None:
        described["Content-Type"] = _FORM
    # A header of -H replaces the option's, also where it is empty.
    headers += [f"{name}: {text}" for name, text in described.items() if name.lower() not in named]
    method = values.method or ("HEAD" if values.head else None)
    return CurlRequest(url=_url(values), method=method, headers=[*filter(_is_sent, headers)], body=body)


def _values(words: Sequence[str], ignored: Collection[str]) -> argparse.Namespace:
    parser = _CurlParser(prog="curl", add_help=False, allow_abbrev=False)
    parser.add_argument("-X", "--request", dest="method")
    parser.add_argument("-H", "--header", dest="headers", action="append")
    parser.add_argument("-d", "--data", "--data-ascii", "--data-binary", dest="data", action="append")
    parser.add_argument("--data-raw", dest="raw", action="append")
    parser.add_argument("--json", dest="json", action="append")
    parser.add_argument("-I", "--head", dest="head", action="store_true")
    parser.add_argument("--compressed", dest="compressed", action="store_true")
    parser.add_argument("--url", dest="urls", action="append")
    for options, dest in _OF_HEADERS.items():
        parser.add_argument(*options.split(), dest=dest)
    parser.add_argument(*_SHOWN.split(), dest="shown", action="store_true")
    parser.add_argument(*_SHOWN_WITH_VALUE.split(), dest="shown_with")
    for options in _REFUSED:
        if options in ignored:
            parser.add_argument(*options.split(), dest=options, action="store_const", const=None)
        else:
            parser.add_argument(*options.split(), dest=options, nargs="?", const="")
    values, rest = parser.parse_known_args(list(words))
    for options, instead in _REFUSED.items():
        if getattr(values, options) is not None:
            raise UsageError(f"curl {options.split()[0]} has no counterpart here", hint=instead)
    if unknown := [word for word in rest if word.startswith("-")]:
        is_of_init = unknown[0].partition("=")[0] == "--path"
        hint = ALONE if is_of_init else "leave it out if it is not about the request"
        raise UsageError(f"curl {unknown[0]} is not known here", hint=hint)
    values.urls = [*(values.urls or ()), *rest]
    return values


def _url(values: argparse.Namespace) -> str:
    if len(values.urls) != 1:
        has = "several URLs" if values.urls else "no URL"
        raise UsageError(f"this command of curl has {has}", hint="give one, such as http://127.0.0.1:8080/items")
    (url,) = values.urls
    return with_scheme(url)


def with_scheme(url: str) -> str:
    """The URL as it is, or of http where it has no scheme."""
    return url if _SCHEME.match(url) else f"http://{url}"


def _body(values: argparse.Namespace) -> str | None:
    """The body, or @FILE."""
    parts = [*(values.data or ()), *(values.raw or ())]
    files = [part for part in (values.data or ()) if part.startswith("@")]
    if files and (len(parts) > 1 or values.json):
        raise UsageError(f"curl: the body is {files[0][1:]} and more", hint="give one file, or texts alone")
    if values.json:
        return "".join([*values.json, *parts])
    if not files and parts and parts[0].startswith("@"):
        # For --data-raw it is text, and the flag of the body would read a file.
        raise UsageError(f"curl --data-raw {clip(parts[0])}: a text cannot begin with `@` here", hint=_FILE)
    return "&".join(parts) if parts else None


def _is_sent(header: str) -> bool:
    """Whether the header is for the engine to send: it sets some itself, and curl leaves out those without a value."""
    name, _, text = header.partition(":")
    return bool(text.strip()) and name.strip().lower() not in _SET_BY_THE_ENGINE


def is_curl(line: str) -> bool:
    """Whether a line begins a command of curl."""
    return re.match(r"\s*(?:\$ )?curl\s", line) is not None


def read_commands(source: RequestSource, into: Gathering) -> None:
    """Read a file of commands, as a browser copies them, or a script has them. Raises UsageError at a line.

    A command that asks what a request cannot say is left out.
    """
    for line, words in _commands(source):
        name, *rest = words[words[0] == "$" :] or words
        if name != "curl":
            hint = "write one command of curl a line; copy it as cURL (bash)"
            raise source.wrong("this is no command of curl", hint, line)
        if any("\0" in word for word in words):
            into.leave_out("with a variable of the shell", f"line {line}")
            continue
        try:
            request = read_curl(rest, _ABOUT_THE_CONNECTION)
        except UsageError as error:
            into.leave_out(f"that cannot be sent: {error.message}", f"line {line}")
            continue
        _add(request, source, into)


def _add(request: CurlRequest, source: RequestSource, into: Gathering) -> None:
    lines = (header.partition(":") for header in request.headers)
    headers = tuple((name.strip(), value.strip()) for name, _, value in lines)
    method = (request.method or ("GET" if request.body is None else "POST")).upper()
    asked = Asked(method, "", headers=headers, body=request.body)
    if request.body is not None and request.body.startswith("@"):
        source.body(request.body[1:])
        asked = asked._replace(body=None, body_file=request.body[1:])
    into.add_url(asked, request.url)


def _commands(source: RequestSource) -> Iterator[tuple[int, list[str]]]:
    """The words of each command as bash reads them, and the line at which it begins.

    A word with a variable of the shell has a NUL in place of it, which no command line can hold.
    """
    text, at, line = source.text(), 0, 1
    words, word, begins = list[str](), None, 1
    while at < len(text):
        if text[at] == "#" and word is None:
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
            continue
        match = _TOKEN.match(text, at)
        if match is None:
            raise source.wrong("a quotation mark does not end, or a character has no meaning here", "quote it", line)
        if match.lastgroup in {"space", "end"}:
            words += [] if word is None else [word]
            word = None
            if match.lastgroup == "end" and words:
                yield begins, words
                words = []
        else:
            begins = begins if words or word is not None else line
            word = (word or "") + _piece(match)
        line += match[0].count("\n")
        at = match.end()
    words += [] if word is None else [word]
    if words:
        yield begins, words


def _piece(match: "re.Match[str]") -> str:
    """A piece of a word without its quotes."""
    piece = match[0]
    match match.lastgroup:
        case "single":
            return piece[1:-1]
        case "escaped":
            return _ESCAPE.sub(_unescaped, piece[2:-1])
        case "double":
            return "\0" if _VARIABLE.search(piece) else re.sub(r"\\([\\\"$`\n])", _kept, piece[1:-1])
        case "char":
            return piece[1:]
    following = match.string[match.end() : match.end() + 1]
    is_variable = piece == "$" and re.match(r"[A-Za-z_{(]", following)
    return "\0" if is_variable or "`" in piece else piece


def _kept(match: "re.Match[str]") -> str:
    return "" if match[1] == "\n" else match[1]


def _unescaped(match: "re.Match[str]") -> str:
    """A character that `$'…'` names."""
    small, *hexadecimal, octal, other = match.groups()
    code = next((int(digits, 16) for digits in (small, *hexadecimal) if digits), int(octal, 8) if octal else None)
    if code is None:
        return _ESCAPES.get(other, other)
    return chr(code) if code <= 0x10FFFF else "\ufffd"
