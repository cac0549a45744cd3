"""Why requests failed: the first failure of each outcome that is not `ok`, and its text."""

from base64 import b64decode
from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from pydantic import ConfigDict, Field

from redline.model.base import Frozen, omitted_if_default
from redline.visible import quoted

FailedOutcome = Literal[
    "unexpected_status",
    "unexpected_body",
    "malformed",
    "connect",
    "tls",
    "reset",
    "closed",
    "refused",
    "timeout",
    "in_flight",
    "unsent",
]
_ORDER: tuple[str, ...] = get_args(FailedOutcome)
_BEFORE, _AFTER, _SHOWN = 48, 8, 64
"""Bytes of an answer in a text: at least before and after the place of a fault, and at most in all."""


class FirstFailure(Frozen):
    """The first failure of one outcome in a load, from its warm-up to its drain."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    outcome: FailedOutcome
    reason: str = Field(description="the mistake, and the rule that it breaks")
    at: int | None = Field(default=None, description="its offset in the answer, in bytes; null if it has no place")
    begins: int | None = Field(default=None, alias="from", description="where `bytes_base64` begins in the answer")
    bytes_base64: str | None = Field(default=None, description="bytes around that place; null if none arrived")
    time_ns: int = Field(description="since the epoch of the load; 0 if before it")
    request: int | None = omitted_if_default(None, "which request of several it was, counted from 0")
    label: str = omitted_if_default("", "what results call that request")

    @property
    def text(self) -> str:
        r"""The outcome, the request if there are several, the reason and the received bytes, on one line.

        `malformed: a space follows the size of a chunk (RFC 9112, 7.1), at byte 17 of "HTTP/1.1 200 OK\r\n…"`.
        """
        of = f" of {self.label}" if self.label else ""
        return f"{self.outcome.replace('_', ' ')}{of}: {self.reason}{self._bytes_around()}"

    def _bytes_around(self) -> str:
        """The place of a fault, and the bytes around it."""
        place = "" if self.at is None else f"at byte {self.at:,}"
        received = b64decode(self.bytes_base64 or "")
        if not received:
            return f", {place}" if place else ""
        begins = self.begins or 0
        within = (self.at or 0) - begins
        start = max(0, within - _BEFORE) if within > _SHOWN - _AFTER else 0
        shown = received[start : start + _SHOWN]
        before = "…" if begins + start else ""
        after = "…" if start + _SHOWN < len(received) else ""
        text = f'"{before}{quoted(shown)}{after}"'
        return f", {place} of {text}" if place else f": {text}"


class FirstErrors(Frozen):
    """The first right answer of JSON with `errors` at its top, where the answer before the load had none."""

    errors: str = Field(description="the beginning of its `errors`")
    request: int | None = omitted_if_default(None, "which request of several it was, counted from 0")
    label: str = omitted_if_default("", "what results call that request")

    @property
    def text(self) -> str:
        """`first, of list: [{"message": "no"}]`."""
        return f"first{f', of {self.label}' if self.label else ''}: {self.errors}"


def earliest(failures: Iterable[FirstFailure]) -> tuple[FirstFailure, ...]:
    """The first failure of each outcome, in the order of outcomes."""
    first: dict[str, FirstFailure] = {}
    for failure in sorted(failures, key=lambda failure: failure.time_ns):
        first.setdefault(failure.outcome, failure)
    return tuple(first[outcome] for outcome in _ORDER if outcome in first)


def with_labels(
    failures: Iterable[FirstFailure], errors: FirstErrors | None, labels: Sequence[str]
) -> dict[str, object]:
    """What traffic has of them, with what results call their requests; `labels` are empty for a single request."""
    return {
        "failures": labelled(failures, labels),
        "first_errors": errors and errors.model_copy(update={"label": _label(errors.request, labels)}),
    }


def labelled(failures: Iterable[FirstFailure], labels: Sequence[str]) -> tuple[FirstFailure, ...]:
    """The failures with what results call their requests; `labels` are empty for a single request."""
    return tuple(failure.model_copy(update={"label": _label(failure.request, labels)}) for failure in failures)


def _label(request: int | None, labels: Sequence[str]) -> str:
    return labels[request] if request is not None and request < len(labels) else ""
