"""Times between messages of which some were read together and late: what is sure of their quantiles. Pure."""

from math import inf

from redline.model import StreamTraffic

MOST_BLURRED = 0.01
"""The share of messages of unsure times from which on the client, not the server, makes the p99 of the gaps."""

SMALL_PART = 0.1
"""Times in doubt that are at most this part of those beyond a quantile hardly move it."""

ROUNDING = 1e-9
"""Shares that differ by less are equal."""

MOST_APART = 0.02
"""A quantile is known whose ends are at most this share apart: no more than the differences that matter by default."""


def share_in_doubt(streams: StreamTraffic, name: str) -> float:
    """The share of these times of `MESSAGE_TIMES` that messages read late may have moved; beyond 1 is all."""
    if name == "first-message":
        return 0.0
    times = streams.times(name)
    # The first message of a conversation moves its whole schedule, and with it the jitter of all of its messages.
    moves_all = name == "jitter" and bool(streams.first_event.count)
    return streams.blurred / max(1, streams.begun if moves_all else times.count if times else 0)


def ends_ns(streams: StreamTraffic, name: str, q: float) -> tuple[float, float]:
    """The least and the most that a quantile (0 to 1) of these times of `MESSAGE_TIMES` can be, in nanoseconds.

    With n of N times in doubt, wherever these belong, the true value of rank k lies between the measured ones of ranks
    k - n and k + n. Both ends are what was measured where few are in doubt for what lies beyond the quantile, and of
    first messages, which do not count as read late.
    """
    times, moves = streams.times(name), share_in_doubt(streams, name)
    if times is None or not times.count or moves <= min(MOST_BLURRED, SMALL_PART * (1 - q)) + ROUNDING:
        usual = float(times.quantile_ns(q)) if times else 0.0
        return usual, usual
    # Messages that were read together lie within the time until the last of them: none of their gaps is longer.
    most = float(times.max_ns) if name in ("gap", "slowest-gap") else inf
    low, high = times.quantiles_ns((max(q - moves, 0.0), min(q + moves, 1.0)))
    return float(low) if q > moves else 0.0, float(high) if q + moves <= 1 else most


def is_sure(streams: StreamTraffic | None, name: str, q: float) -> bool:
    """Whether a quantile of these times is known, but for a little."""
    low, high = ends_ns(streams, name, q) if streams else (0.0, 0.0)
    return high <= low * (1 + MOST_APART)
