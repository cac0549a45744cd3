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
    | (?:{_AT}|\w{{3}}\ [ \d]\d\ [\d:]{{8}})\ \S+\ [^\s:\[]+(?:\[\d+\])?:\   # syslog and journalctl
    | {_AT}\                                                    # kubectl --timestamps
    | \[pod/[^\]]*\]\                                           # kubectl --prefix
    | [\w.-]+(?:@\S+)?\s+\|\                                    # docker compose, docker service
    | \d+[\s:]\s*                                               # the number of a line
    )""",
    re.VERBOSE,
)
_MOST_PREFIXES = 4
_HOST = re.compile(r"(?=[^:]*[A-Za-z])[A-Za-z0-9_.-]+(?::\d{1,5})?")
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

    An address, a number or a single word is no host: collectors, and logs with the addresses of proxies, have these.
    """
    head, dash, user = text.strip().rpartition(" - ")
    words = head.split() if dash else text.split()
    if not dash and 3 <= len(words) <= 4:  # with an identity
        user, words = words[-1], words[:-2]
    signed_in = user.strip() not in _NOBODY
    if len(words) < 2:
        return Before("", signed_in)
    first, *more = words if len(words) == 2 else without_prefixes(" ".join(words)).split() or [""]
    named = len(more) == 1 and ("." in first or ":" in first or first == "localhost")
    return Before(first if named and _HOST.fullmatch(first) else "", signed_in)


def without_prefixes(text: str) -> str:
    """A line without the words that collectors put before it."""
    for _ in range(_MOST_PREFIXES):
        if not (match := _PREFIX.match(text)):
            break
        text = text[match.end() :]
    return text


def host_of(text: str) -> str:
    """A host as a log has it, in lower case; empty for the words that stand for none."""
    host = text.strip().lower().removesuffix(".")
    return "" if host in {"-", "_", ""} else host
