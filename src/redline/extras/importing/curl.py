"""Turn curl commands into requests: a command from a terminal, or a file of commands. Pure.

The options follow the manual of curl 8. Options that concern only curl's own output are ignored.
"""

import argparse
import base64
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn
from urllib.parse import quote_plus

from redline.errors import UsageError
from redline.extras.importing import curl_connection, curl_form
from redline.extras.importing.gathering import Gathering, ImportedRequest
from redline.quantities import clip
from redline.schema.multipart import MULTIPART
from redline.suite.pasted import is_curl, read_script
from redline.suite.request_source import RequestSource
from redline.suite.urls import ALONE, with_scheme

_FORM, _JSON = "application/x-www-form-urlencoded", "application/json"
_OF_HEADERS = {
    "-A --user-agent": "User-Agent",
    "-e --referer": "Referer",
}
_SHOWN = (
    "-s --silent -S --show-error -v --verbose -i --include -f --fail --fail-with-body -L --location "
    "--location-trusted -N --no-buffer --http1.1 -# --progress-bar --no-progress-meter -O --remote-name "
    "-J --remote-header-name --create-dirs --path-as-is --tcp-nodelay --no-keepalive -4 --ipv4 -6 --ipv6 --basic "
    "--retry-all-errors --retry-connrefused --raw -p --proxytunnel --proxy-basic"
)
_SHOWN_WITH_VALUE = (
    "-o --output --output-dir -w --write-out -m --max-time --connect-timeout --retry --retry-delay --retry-max-time "
    "--max-redirs -c --cookie-jar -D --dump-header --stderr --trace --trace-ascii --proto --proto-default "
    "--keepalive-time"
)
_FILE = "save the body in a file, and give it as --data-binary @FILE"
_SIGNED = "only Basic and Bearer are sent: give the header that the server wants, with -H 'Authorization: …'"
_REFUSED = {
    "-T --upload-file": _FILE,
    "--url-query": "write the query into the URL",
    "--pass": "write the key without a password: openssl pkey -in KEY -out plain.pem",
    "--http1.0 -0": "the engine speaks HTTP/1.1 and HTTP/2",
    "--http3 --http3-only": "the engine speaks HTTP/1.1 and HTTP/2",
    "--abstract-unix-socket": "let the server listen on a socket with a path, for --unix-socket",
    "--preproxy --socks4 --socks4a --socks5 --socks5-hostname": "the engine tunnels through HTTP proxies alone: -x",
    "--digest --ntlm --negotiate --anyauth --aws-sigv4": _SIGNED,
    "-n --netrc --netrc-file": "give the user and the password with -u",
    "-K --config": "write its options into the command",
    "-: --next": "give a command with a single request",
    "-r --range": "give the header: -H 'Range: bytes=0-99'",
    "-z --time-cond": "give the header: -H 'If-Modified-Since: …'",
    "--request-target": "write the path into the URL",
}
_OF_WINDOWS = "`^` is for the command prompt of Windows"
_AS_BASH = "in the browser, choose `Copy as cURL (bash)`; elsewhere, leave out each ^"
_GLOB = re.compile(r"\{[^{}]*,[^{}]*\}|\[\w+-\w+(?::\d+)?\]")
_NO_TEXT = re.compile("[\0\ud800-\udbff\udc00-\udc7f\udd00-\udfff]")
"""Characters that no command contains: NUL, and half of a UTF-16 surrogate pair. The other surrogates encode bytes."""
_DASHES = re.compile(r"(?:-\w|--[\w-]+=)--")
_SET_BY_THE_ENGINE = {"connection", "content-length"}
_OF_A_BODY = {"transfer-encoding", "expect"}
_TYPE = "Content-Type"
_NEXT = frozenset({"-:", "--next"})


def _no_file(name: str) -> bytes:
    raise UsageError(f"curl: {name} cannot be read from here", hint=_FILE)


class _CurlParser(argparse.ArgumentParser):
    """An argument parser that raises UsageError instead of printing a usage text."""

    def __init__(self) -> None:
        self.with_value: set[str] = set()
        super().__init__(prog="curl", add_help=False, allow_abbrev=False)

    def add_argument(self, *names: str, **options: Any) -> argparse.Action:
        action = super().add_argument(*names, **options)
        if action.nargs is None:
            self.with_value.update(names)
        return action

    def glued(self, words: Sequence[str]) -> Iterator[str]:
        """The words, with values that begin with `-` in the word of their option: curl takes any word for a value."""
        rest = iter(words)
        for word in rest:
            value = next(rest, None) if word in self.with_value else None
            if word == "--":  # only URLs follow
                continue
            if value is None:  # of `-d=x` curl takes `=x` for the value
                yield f"{word[:2]}={word[2:]}" if word[:2] in self.with_value and word[2:3] == "=" else word
            elif value.startswith("-"):
                yield f"{word}={value}" if word.startswith("--") else f"{word}{value}"
            else:
                yield from (word, value)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"curl: {message}", hint="give the URL alone, and write the rest into redline.yaml")


@dataclass(frozen=True)
class CurlRequest:
    """The request of a curl command: `headers` are lines, `body` is text or @FILE; `method` is None unless given.

    `way` says how the server is reached, by names of Redline's flags; a list of requests does not describe that.
    `is_text`: curl leaves out the line ends of the file.
    """

    url: str
    method: str | None
    headers: list[str]
    body: str | None
    way: dict[str, Any] = field(default_factory=dict)
    is_text: bool = False


def read_curl(words: Sequence[str], read: Callable[[str], bytes] = _no_file) -> CurlRequest:
    """The URL, method, headers and body of a request. Raises UsageError for an option that has no counterpart.

    `read` reads the files of a form.
    """
    if any(map(_NO_TEXT.search, words)):
        hint = "write the character itself, or save the body in a file, for --data-binary @FILE"
        raise UsageError("curl: half of a character, or a NUL, stands in the command", hint=hint)
    values = _values(words)
    url, headers, body = _url(values), list(values.headers or ()), _body(values)
    for header in headers:
        _check_header(header)
    described = _described(values)
    if values.form:
        if body is not None or values.query:
            raise UsageError("curl: -F stands beside -d or -G", hint="curl takes one of them: leave out the others")
        # curl adds its boundary to a type that is given by -H.
        given = [header for header in headers if _name_of(header) == _TYPE.lower()]
        if other := next((header for header in given if header.partition(":")[2].strip().lower() != MULTIPART), ""):
            hint = f"leave out -H {other!r}: curl says the type and the boundary itself"
            raise UsageError(f"curl: -F stands beside -H {other!r}", hint=hint)
        body, described[_TYPE] = curl_form.build_form(values.form, read)
        headers = [header for header in headers if header not in given]
    elif values.query and body is not None:
        if body.startswith("@"):
            raise UsageError(f"curl -G -d {body}: a file is not a query", hint="write the query into the URL")
        url, _, _ = url.partition("#")
        url, body = f"{url}{'&' if '?' in url else '?'}{body}", None
    elif any(kind == "json" for kind, _ in values.parts or ()):
        described |= {_TYPE: _JSON, "Accept": _JSON}
    elif body is not None:
        described[_TYPE] = _FORM
    # A header given by -H replaces the option's header, even if it is empty.
    named = set(map(_name_of, headers))
    headers += [f"{name}: {text}" for name, text in described.items() if name.lower() not in named]
    method = values.method or ("HEAD" if values.head else None)
    sent = [
        header for header in headers if _is_sent(header) and (body is not None or _name_of(header) not in _OF_A_BODY)
    ]
    way, is_text = curl_connection.connection_of(values), any(kind == "data" for kind, _ in values.parts or ())
    return CurlRequest(url=url, method=method, headers=sent, body=body, way=way, is_text=is_text)


def _name_of(header: str) -> str:
    return header.partition(":")[0].strip().lower()


def _described(values: argparse.Namespace) -> dict[str, str]:
    """The headers that options set, except for -H and the headers of a body."""
    described = {name: given for name in _OF_HEADERS.values() if (given := getattr(values, name)) is not None}
    for cookie in values.cookies or ():
        if "=" not in cookie:
            raise UsageError(f"curl -b {cookie}: this is a file", hint="give the cookies: -b 'name=value'")
        described["Cookie"] = "; ".join(filter(None, (described.get("Cookie"), cookie)))
    if values.user is not None:
        described["Authorization"] = f"Basic {_basic(values.user)}"
    if values.bearer is not None:
        described["Authorization"] = f"Bearer {values.bearer}"
    if values.compressed:
        described["Accept-Encoding"] = "deflate, gzip"
    return described


def _part(kind: str) -> Callable[[str], tuple[str, str]]:
    return lambda text: (kind, text)


def _values(words: Sequence[str]) -> argparse.Namespace:
    parser = _CurlParser()
    parser.add_argument("-X", "--request", dest="method")
    parser.add_argument("-H", "--header", dest="headers", action="append")
    for kind, options in {
        "data": "-d --data --data-ascii",
        "binary": "--data-binary",
        "raw": "--data-raw",
        "encoded": "--data-urlencode",
        "json": "--json",
    }.items():
        parser.add_argument(*options.split(), dest="parts", action="append", type=_part(kind))
    for kind, options in curl_form.OPTIONS.items():
        parser.add_argument(*options.split(), dest="form", action="append", type=_part(kind))
    parser.add_argument("-G", "--get", dest="query", action="store_true")
    parser.add_argument("-u", "--user", dest="user")
    parser.add_argument("--oauth2-bearer", dest="bearer")
    parser.add_argument("-I", "--head", dest="head", action="store_true")
    parser.add_argument("-g", "--globoff", dest="literal", action="store_true")
    curl_connection.add_options(parser)
    parser.add_argument("--compressed", dest="compressed", action="store_true")
    parser.add_argument("--url", dest="urls", action="append")
    parser.add_argument("-b", "--cookie", dest="cookies", action="append")
    for options, dest in _OF_HEADERS.items():
        parser.add_argument(*options.split(), dest=dest)
    parser.add_argument(*_SHOWN.split(), dest="shown", action="store_true")
    parser.add_argument(*_SHOWN_WITH_VALUE.split(), dest="shown_with")
    for options in _REFUSED:
        parser.add_argument(*options.split(), dest=options, nargs="?", const="")
    glued = list(parser.glued(words))
    if dashes := next(filter(_DASHES.fullmatch, glued), None):  # which argparse would drop
        raise UsageError(f"curl {dashes}: the value -- cannot be given here", hint=_FILE)
    values, rest = parser.parse_known_args(glued)
    for options, instead in _REFUSED.items():
        if getattr(values, options) is not None:
            raise UsageError(f"curl {_written(options, words)} has no counterpart here", hint=instead)
    if any(word.startswith("^") or word.endswith("^") for word in rest):
        raise UsageError(f"curl: {_OF_WINDOWS}", hint=_AS_BASH)
    if unknown := [word for word in rest if word.startswith("-")]:
        is_of_init = unknown[0].partition("=")[0] == "--path"
        hint = ALONE if is_of_init else "leave it out if it is not about the request"
        raise UsageError(f"curl {unknown[0]} is not known here", hint=hint)
    values.urls = [*(values.urls or ()), *rest]
    return values


def _written(options: str, words: Sequence[str]) -> str:
    """The option as the command spells it, or else its first spelling."""
    return next((option for option in options.split() if option in words), options.split(maxsplit=1)[0])


def _url(values: argparse.Namespace) -> str:
    if len(values.urls) != 1:
        has = "several URLs" if values.urls else "no URL"
        raise UsageError(f"this curl command has {has}", hint="give one, such as http://127.0.0.1:8080/items")
    url = with_scheme(values.urls[0])
    if not values.literal and (several := _GLOB.search(url)):
        hint = "give one of them, or -g if it is meant literally"
        raise UsageError(f"curl makes several URLs of `{clip(several[0])}`", hint=hint)
    return url


def _basic(user: str) -> str:
    if ":" not in user:
        raise UsageError(f"curl -u {user}: curl asks for the password", hint=f"write it: -u {user}:PASSWORD")
    return base64.b64encode(user.encode(errors="surrogateescape")).decode()


def _check_header(header: str) -> None:
    if header.startswith("@"):
        raise UsageError(f"curl -H {header}: headers are not read from files", hint="give them with -H 'Name: value'")
    if ":" not in header:
        message = f"curl -H {header!r} is not a header with a value"
        raise UsageError(message, hint="write it like -H 'Accept: text/plain', or leave it out")


def _body(values: argparse.Namespace) -> str | None:
    """The body, or @FILE."""
    parts: list[tuple[str, str]] = values.parts or []
    files = [text for kind, text in parts if kind in {"data", "binary", "json"} and text.startswith("@")]
    if files and len(parts) > 1:
        raise UsageError(f"curl: the body is {files[0][1:]} and more", hint="give one file, or texts alone")
    if files and files[0] == "@-":
        raise UsageError("curl: the body is read from the standard input", hint=_FILE)
    if files:
        return files[0]
    text = ""
    for kind, part in parts:
        joint = "&" if text and kind != "json" else ""
        text += joint + (_encoded(part) if kind == "encoded" else part)
    if text.startswith("@"):
        # --data-raw takes it as text, but the body flag would read a file.
        raise UsageError(f"curl --data-raw {clip(text)}: a text cannot begin with `@` here", hint=_FILE)
    return text if parts else None


def _encoded(text: str) -> str:
    """Encode `text`, `=text` or `name=text` as --data-urlencode does: a space is a plus."""
    match = re.fullmatch(r"(?:([^=@]*)([=@]))?(.*)", text, re.DOTALL)
    assert match is not None, "the last part takes any text"
    before, sign, after = match.groups("")
    if sign == "@":
        raise UsageError(f"curl --data-urlencode {clip(text)}: files are not encoded", hint="give the text itself")
    return f"{before}{'=' if before else ''}{quote_plus(after, errors='surrogateescape')}"


def _is_sent(header: str) -> bool:
    """Whether the engine sends this header: it sets some itself, and curl leaves out headers without a value."""
    name, _, text = header.partition(":")
    return bool(text.strip()) and name.strip().lower() not in _SET_BY_THE_ENGINE


def read_commands(source: RequestSource, into: Gathering) -> None:
    """Read a file of curl commands, copied from a browser or a script. Raises UsageError at a line.

    Commands that a request cannot express are left out.
    """
    for line, words, needs in read_script(source.text(), source.name):
        program, *rest = (words[1:] if words[:1] == ("$",) else words) or ("",)
        if any(word.startswith("^") or word.endswith("^") for word in words):
            raise source.wrong(_OF_WINDOWS, _AS_BASH, line)
        if not is_curl(program):
            hint = "write one curl command per line, with its URL in quotes; copy it as cURL (bash)"
            raise source.wrong("this is not a curl command", hint, line)
        if needs:
            into.leave_out(f"with {needs}", f"line {line}")
            continue
        try:
            request = read_curl(rest, source.body)
            if request.body is not None and request.body.startswith("@"):
                request = _with_file(request, source.body(request.body[1:]))
        except UsageError as error:
            several = sum(word in _NEXT for word in rest)  # each begins another request of the command
            into.leave_out(f"that cannot be sent: {error.message}", f"line {line}", 1 + several)
            continue
        _add(request, into)
        for name in request.way:
            why = f"--{name.replace('_', '-')} of curl, which is a flag of the command that loads"
            into.leave_out(why, f"line {line}", kind="secret")


def _with_file(request: CurlRequest, content: bytes) -> CurlRequest:
    """The request with the content of its file, where curl does not send that as it is. Raises UsageError."""
    sent = content.translate(None, b"\r\n\0") if request.is_text else content
    if sent == content:
        return request
    why = f"curl -d {request.body} leaves out the file's line ends"
    try:
        text = sent.decode()
    except UnicodeDecodeError:
        raise UsageError(why, hint="give it as --data-binary") from None
    if not text or text.startswith("@"):
        raise UsageError(why, hint="give it as --data-binary")
    return replace(request, body=text)


def _add(request: CurlRequest, into: Gathering) -> None:
    lines = (header.partition(":") for header in request.headers)
    headers = tuple((name.strip(), value.strip()) for name, _, value in lines)
    method = (request.method or ("GET" if request.body is None else "POST")).upper()
    asked = ImportedRequest(method, "", headers=headers, body=request.body)
    if request.body is not None and request.body.startswith("@"):
        asked = asked._replace(body=None, body_file=request.body[1:])
    into.add_url(asked, request.url)
