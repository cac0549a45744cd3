"""Answers to checks as the engine reports them."""

import hashlib
from typing import Any

from redline.driving.checks import Checked


def checked(body: bytes = b"", status: int = 200, kind: str = "text/plain", **more: Any) -> Checked:
    """A complete answer, kept as a whole."""
    return Checked(
        event="checked",
        status=status,
        headers=(("content-type", kind),),
        body_length=len(body),
        body_sha256=hashlib.sha256(body).hexdigest(),
        body_base64=body,
        **({"outcome": "ok", "failure": None, "elapsed_ns": 1_000_000} | more),
    )


def unanswered(outcome: str, reason: str) -> Checked:
    """No answer, and why."""
    nothing = dict.fromkeys(("status", "headers", "body_length", "body_sha256", "body_base64"))
    failure = {"outcome": outcome, "reason": reason, "time_ns": 0}
    return Checked.model_validate(
        {"event": "checked", "outcome": outcome, "failure": failure, "elapsed_ns": 1_000_000, **nothing}
    )
