"""Readiness: a server is ready when it answers a real request as its entry says."""

import time
from collections.abc import Callable
from http import HTTPStatus
from pathlib import Path
from typing import Literal

from redline.driving.checks import Checked, checking
from redline.driving.protocol import check
from redline.lazily import dataclass
from redline.model import Expected, Ready, Request, Tls, Variant
from redline.model.catalogue import has_tls, http_of
from redline.ports import Endpoint

_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.020
_FIRST_ATTEMPT_S = 0.25
_LONGEST_ATTEMPT_S = 5.0
_SETTLED_NS = 1_000_000_000
_REFUSED = "Connection refused"
NOTHING = "nothing listened"


@dataclass(frozen=True)
class WaitEnd:
    """How the wait ended, and the answer to the last request in time: a status, or a description of the error."""

    ended: Literal["ready", "died", "late"]
    at_ns: int
    last_answer: int | str


def wait_until_ready(  # noqa: PLR0913 - by whom, where, what, and until when
    engine: Path,
    variant: Variant,
    endpoint: Endpoint,
    ready: Ready,
    *,
    alive: Callable[[float], bool],
    since_ns: int,
    any_status: bool = False,
) -> WaitEnd:
    """Poll, at first every millisecond, then every 20, until the right answer, death or the time limit.

    Another status does not end the wait: routes may still be set up. With `any_status`, also that of `ready`, a status
    below 500 does, after a second of the same answer. `alive` is given the seconds to pause;
    `ready.within_ns` counts from `since_ns` (CLOCK_MONOTONIC). Raises DriveError if the engine cannot send requests.
    """
    deadline = since_ns + ready.within_ns
    pause, attempt = _FIRST_PAUSE_S, _FIRST_ATTEMPT_S
    target, request = reached(variant), request_of(ready)
    last_answer: int | str | None = None
    since = (last_answer, since_ns)
    with checking(engine) as checks:
        while True:
            started = time.monotonic_ns()
            left_s = (deadline - started) / 1e9
            within_s = min(attempt, max(left_s, _FIRST_PAUSE_S))
            wanted = check(target, endpoint, request, {}, timeout_ns=int(within_s * 1e9), keep_bytes=0)
            answer = answer_of(checks.ask(wanted))
            now = time.monotonic_ns()
            # A request cut short by the deadline says nothing of the server: the request before it does.
            if last_answer is None or now <= deadline:
                last_answer = answer
            since = since if answer == since[0] else (answer, now)
            is_settled = (any_status or ready.any_status) and _may_be_meant(answer) and now - since[1] >= _SETTLED_NS
            if (last_answer == ready.status or is_settled) and now <= deadline:
                return WaitEnd("ready", now, last_answer)
            if not alive(pause):
                return WaitEnd("died", time.monotonic_ns(), last_answer)
            if time.monotonic_ns() >= deadline:
                return WaitEnd("late", time.monotonic_ns(), last_answer)
            pause = min(pause * 1.5, _LONGEST_PAUSE_S)
            # A request without an answer must not hide a server's death for long; a slow first answer gets time.
            if now - started >= attempt * 1e9:
                attempt = min(attempt * 2, _LONGEST_ATTEMPT_S)


def _may_be_meant(answer: int | str) -> bool:
    """Whether a server may keep answering so: while starting, a server reports failures."""
    return isinstance(answer, int) and answer < HTTPStatus.INTERNAL_SERVER_ERROR


def reached(variant: Variant) -> Variant:
    """Reach a server or proxy directly, with any certificate: the verification checks who answers."""
    tls = None
    if has_tls(variant.serves):
        served = variant.catalogued.tls
        behind = Tls(server_name=served.server_name if served else None)
        tls = (behind if variant.route else variant.tls or behind).accepting(anybody=True)
    return variant.directly(http_of(variant.serves), tls)


def request_of(ready: Ready) -> Request:
    """The readiness request."""
    return Request(path=ready.path, headers=ready.headers, expect=Expected(status=ready.status, under_load="status"))


def answer_of(answer: Checked) -> int | str:
    """Return the status of a complete answer, or a description of the error."""
    if answer.status is not None and answer.outcome in ("ok", "unexpected_status"):
        return answer.status
    if answer.outcome == "connect" and answer.failure and answer.failure.reason.startswith(_REFUSED):
        return NOTHING
    return answer.wrong
