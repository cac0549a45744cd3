"""A command line of curl as the flags of a request. Pure.

The options are those of curl 8, as its manual says; what concerns only curl's own output is left out.
"""

import argparse
import re
from collections.abc import Sequence
from typing import NoReturn

from redline.cli.command_line import LoadFlags
from redline.errors import UsageError
from redline.quantities import clip

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
_SET_BY_THE_ENGINE = {"connection", "content-length", "transfer-encoding"}


class _CurlParser(argparse.ArgumentParser):
    """Raises UsageError in place of printing a usage text."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"curl: {message}", hint="give the URL alone, and write the rest into redline.yaml")


def read_curl(words: Sequence[str]) -> LoadFlags:
    """The URL, method, headers and body of a request. Raises UsageError for what has no counterpart."""
    values = _values(words)
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
    return LoadFlags(url=_url(values), method=method, headers=[*filter(_is_sent, headers)], body=body)


def _values(words: Sequence[str]) -> argparse.Namespace:
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
