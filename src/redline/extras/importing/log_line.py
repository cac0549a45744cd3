"""A line of a log: its request, and when it was sent. Pure."""

import re
from typing import NamedTuple

from redline.extras.importing.times import NS_PER_S, is_whole, time_of

_ESCAPED = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_CONTROL = {"b": "\b", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "f": "\f"}


class Logged(NamedTuple):
    """The request of a log line: an HTTP request line, or a method and a target separated by a space.

    `left_out`: why it is not to be sent again, if the line says so.
    """

    request: str
    status: str
    host: str = ""
    signed_in: bool = False
    left_out: str = ""


class LogLine(NamedTuple):
    """A line of a log: its request, its time as written, and the seconds that the request took before that time."""

    logged: Logged
    time: str
    took: str = ""

    @property
    def began_ns(self) -> int | None:
        """When the request began, in nanoseconds since 1970; None if the line does not say it.

        Of whole seconds, whole seconds are subtracted: the rest would only seem to be a time.
        """
        at_ns = time_of(self.time)
        took = re.fullmatch(r"\d{1,5}(\.\d+)?", self.took)
        if at_ns is None or took is None:
            return at_ns
        took_s = float(took[0])
        return at_ns - (int(took_s) * NS_PER_S if is_whole(self.time) else round(took_s * NS_PER_S))


def raw(text: str) -> str:
    r"""The text that a server wrote with `\x22`, `\"` and their like. Bytes that are no ASCII become `%C3`."""
    return _ESCAPED.sub(_unescaped, text) if "\\" in text else text


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 3:
        byte = int(escaped[1:], 16)
        return chr(byte) if 0x20 < byte < 0x7F else f"%{escaped[1:].upper()}"
    if escaped in _CONTROL:
        return f"%{ord(_CONTROL[escaped]):02X}"
    return escaped
