"""The text of hey, https://github.com/rakyll/hey."""

import re

from redline.extras.peers.outputs.reading import PeerOutput, reported

_QUANTILE = re.compile(r"^ *(\d{1,2})%{1,2} in (\d{1,9}\.\d+) secs", re.MULTILINE)  # its version 0.1.5 prints two signs
_TOTAL = re.compile(r"^Summary:\n +Total:\s+(\d{1,9}\.\d+) secs", re.MULTILINE)
_SLOWEST = re.compile(r"^ +Slowest:\s+(\d{1,9}\.\d+) secs", re.MULTILINE)
_STATUSES = re.compile(r"^ +\[(\d{3})\]\s+(\d{1,18}) responses", re.MULTILINE)
_ERRORS = re.compile(r"^ +\[(\d{1,18})\]\s+(?!\d+ responses)(\S.*)$", re.MULTILINE)
_ERROR_HEAD = "Error distribution:"
_FIRST_FAULT = 400
_NS = 1e9


def knows(text: str) -> bool:
    """Whether hey printed it. The text of oha looks alike, but its summary begins with a rate of success."""
    return _TOTAL.search(text) is not None


def runs(text: str) -> int:
    """How many runs a text holds."""
    return len(_TOTAL.findall(text))


def read(output: str) -> PeerOutput:
    """Read hey's times, in tenths of a millisecond. Its own rate is not used: it counts failed requests too."""
    total, slowest = _TOTAL.search(output), _SLOWEST.search(output)
    statuses = {int(status): int(count) for status, count in _STATUSES.findall(output)}
    errors = [(int(count), text.strip()) for count, text in _ERRORS.findall(output.partition(_ERROR_HEAD)[2])]
    times: dict[float, float | None] = {int(q) / 100: float(seconds) * _NS for q, seconds in _QUANTILE.findall(output)}
    if times and slowest is not None:
        times[1.0] = float(slowest[1]) * _NS
    right = sum(count for status, count in statuses.items() if status < _FIRST_FAULT)
    wrong = [f"{count} with status {status}" for status, count in statuses.items() if status >= _FIRST_FAULT]
    return PeerOutput(
        reported(times),
        right if total else None,
        right / float(total[1]) if total and right and float(total[1]) > 0 else None,
        "; ".join([*wrong, *(f"{count} {text}" for count, text in errors)]),
        failed=sum(statuses.values()) - right + sum(count for count, _ in errors) if total else None,
    )
