"""When the command began: what it imports takes time, which is a part of the command's."""

import time

_AT_S: list[float] = []


def begins() -> None:
    """Mark the beginning of the command; the script does so before it imports anything that takes time."""
    _AT_S[:] = [time.monotonic()]


def command_began_s() -> float:
    """When the command began, by the monotonic clock: now, where no script began it."""
    return _AT_S[0] if _AT_S else time.monotonic()
