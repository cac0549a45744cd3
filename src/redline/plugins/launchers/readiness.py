"""When is a server ready? When it answers a real request as its entry says, and not before."""

import http.client
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from redline.model import Ready

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.020
_ATTEMPT_S = 5.0


@dataclass(frozen=True)
class Waited:
    """How the wait ended, and what the last request saw: a status, or what went wrong in words."""

    ended: Literal["ready", "died", "late"]
    at_ns: int
    saw: int | str


def wait_until_ready(host: str, port: int, ready: Ready, alive: Callable[[float], bool], since_ns: int) -> Waited:
    """Ask again and again, at first every millisecond, then every 20, until the right answer, death or the time limit.

    Another status is no end: a server may answer 503 or 404 while its routes are being set up. `alive` is given the
    seconds to pause; `since_ns` is the server's start on CLOCK_MONOTONIC, from which `ready.within_ns` counts.
    """
    deadline = since_ns + ready.within_ns
    pause = _FIRST_PAUSE_S
    while True:
        left_s = (deadline - time.monotonic_ns()) / 1e9
        saw = ask(host, port, ready.path, min(_ATTEMPT_S, max(left_s, _FIRST_PAUSE_S)))
        now = time.monotonic_ns()
        if saw == ready.status and now <= deadline:
            return Waited("ready", now, saw)
        if not alive(pause):
            return Waited("died", time.monotonic_ns(), saw)
        if time.monotonic_ns() >= deadline:
            return Waited("late", time.monotonic_ns(), saw)
        pause = min(pause * 1.5, _LONGEST_PAUSE_S)


def ask(host: str, port: int, path: str, timeout_s: float) -> int | str:
    """The status of `GET path`, its body read, on a connection of its own; or why there was no answer."""
    connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
    try:
        connection.connect()
        if connection.sock.getsockname() == connection.sock.getpeername():
            return "nothing listened"
        connection.request("GET", path, headers={"Connection": "close"})
        response = connection.getresponse()
        response.read()
    except ConnectionRefusedError:
        return "nothing listened"
    except TimeoutError:
        return f"no answer within {timeout_s:.3g} s"
    except (OSError, http.client.HTTPException) as error:
        return f"no HTTP answer ({str(error) or type(error).__name__})"
    else:
        return response.status
    finally:
        connection.close()
