"""Recordings that a search sends."""

from redline.model import Load, Open

S = 1_000_000_000


def recorded(*, requests: int = 3000, per_s: float = 100.0, speed: float = 1.0, seconds: float = 5.0) -> Load:
    """An open load of evenly spaced times, at a speed, for a time."""
    times = tuple(round(number / per_s / speed * S) for number in range(requests))
    shape = Open(arrivals="replayed", connections=8, replayed_ns=times, speed=speed)
    return Load(name="probe", shape=shape, duration_ns=round(seconds * S))
