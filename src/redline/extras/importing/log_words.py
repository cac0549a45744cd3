"""What stands around the request of a log line: prefixes of collectors, the client, the user and the host. Pure."""

import re
from typing import NamedTuple

_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_AT = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"
_PREFIX = re.compile(
    rf"""\s*(?:
      <\d{{1,3}}>(?:1\ )?                                       # the priority of syslog
    | {_AT}\ std(?:out|err)\ [FP]\                              # containerd and CRI
    | {_AT}\ \S+\ \S+\ \S+\ \S+\ (?:-|\[.*?\])\                 # RFC 5424: host, program, pid, kind, data
    | (?:{_AT}|\w{{3}}\ {{1,2}}\d{{1,2}}\ [\d:]{{8}})\ \S+\ [^\s:\[]+(?:\[\d+\])?:\   # syslog and journalctl
    | {_AT}\                                                    # kubectl --timestamps
    | \[pod/[^\]]*\]\                                           # kubectl --prefix
    | [\w.-]+(?:@\S+)?\s+\|\                                    # docker compose, docker service
    | \d+[\s:]\s*                                               # the number of a line
    )""",
    re.VERBOSE,
)
_MOST_PREFIXES = 4
_HOST = re.compile(r"(?=[^:]*[A-Za-z])[A-Za-z0-9_.-]+(?::\d{1,5})?")
_ADDRESS = re.compile(r"[\d.:-]*|\[?[\da-f.]*+:[\da-f.]*+:[\da-f:.]*+\]?(?::\d+)?")
_NOBODY = frozenset({"", "-", '""'})


def without_colours(line: str) -> str:
    """A line without the codes that colour it in a terminal."""
    return _COLOURS.sub("", line) if "\x1b" in line else line


class Before(NamedTuple):
    """The words of a line before its request: the host, if they have it, and whether a user signed in."""

    host: str = ""
    signed_in: bool = False


def read_before(text: str) -> Before:
    """Read `client identity user`, with the host before the client, as in Apache's `vhost_combined`.

    lighttpd has the host in the place of the identity. An address, a number or a single word is no host: collectors,
    and logs with the addresses of proxies, have these.
    """
    words = text.split()
    if len(words) == 3 and words[1] == "-":  # of nearly every line
        return Before("", words[2] not in _NOBODY)
    head, dash, user = text.strip().rpartition(" - ")
    words, user = (head.split(), user) if dash else (text.split(), "")
    if not dash and 3 <= len(words) <= 4:  # with an identity
        identity, user = words[-2:]
        words = words[:-2]
        if _is_host(identity):
            return Before(identity, user not in _NOBODY)
    signed_in = user.strip() not in _NOBODY
    if len(words) < 2:
        return Before("", signed_in)
    first, *more = without_prefixes(" ".join(words)).split() or [""]
    return Before(first if len(more) == 1 and _is_host(first) else "", signed_in)


def _is_host(word: str) -> bool:
    return ("." in word or ":" in word or word == "localhost") and _HOST.fullmatch(word) is not None


def without_prefixes(text: str) -> str:
    """A line without the words that collectors put before it."""
    for _ in range(_MOST_PREFIXES):
        if not (match := _PREFIX.match(text)):
            break
        text = text[match.end() :]
    return text


def host_of(text: str) -> str:
    """A host as a log has it, in lower case; empty for words that stand for none, and for addresses.

    An address may be that of the client, as Tomcat's `host` is.
    """
    if not text:
        return ""
    host = text.strip().lower().removesuffix(".")
    return "" if host == "_" or _ADDRESS.fullmatch(host) else host
