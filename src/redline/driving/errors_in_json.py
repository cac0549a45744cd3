"""What answers before the load were: JSON without `errors`, so that those under load are news, or messages."""

import json

from pydantic import JsonValue

from redline.driving.checks import Checked
from redline.driving.encodings import codings_of
from redline.model import Request
from redline.quantities import clip

LONGEST_WATCHED = 64 << 10
"""The bytes of an answer up to which the engine looks for `errors` under load: it has to keep what it looks into."""


_MESSAGES = {
    "text/event-stream": "sse",
    **dict.fromkeys(
        ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"), "ndjson"
    ),
}
"""How a suite names the messages of these content types."""
_SHAPES = {b'"choices"': "openai", b'"type": "message_start"': "anthropic", b'"type":"message_start"': "anthropic"}
"""What the answers of known shapes have in them, beside messages of no other shape."""


class ErrorsWatch:
    """What the answers before a load were: which requests had JSON without `errors`, and what is not read of others."""

    def __init__(self) -> None:
        self._without, self._others = set[int](), set[int]()
        self._unread: dict[str, None] = {}

    def look(self, at: int, request: Request, answer: Checked, line: str) -> None:
        """The request of this number, which `line` names, was answered right."""
        length, is_encoded = answer.body_length or 0, bool(codings_of(answer.header("content-encoding")))
        is_json = "json" in answer.header("content-type") or answer.body.lstrip()[:1] in (b"{", b"[")
        if kind := _untimed(request, answer):
            self._unread[f"{line}: {kind}"] = None
        is_read = length > 0 and is_json and request.stream is None and not request.expect.no_errors
        if is_read and (length > LONGEST_WATCHED or is_encoded):
            self._unread[f"{line}: JSON whose `errors` are not looked for under load"] = None
            is_read = False
        (self._without if is_read and _is_without_errors(answer.body) else self._others).add(at)

    @property
    def unread(self) -> tuple[str, ...]:
        """The answers of JSON that are too long to be looked into, or encoded, and messages that are not timed."""
        return tuple(self._unread)

    @property
    def without_errors(self) -> frozenset[int]:
        """The numbers of the requests all of whose answers were JSON without `errors`."""
        return frozenset(self._without - self._others)


def _untimed(request: Request, answer: Checked) -> str:
    """What to say of an answer of many messages that the load takes as one; empty for all others."""
    content = answer.header("content-type").partition(";")[0].strip().lower()
    kind = _MESSAGES.get(content)
    if kind is None or request.stream is not None:
        return ""
    shape = next((shape for part, shape in _SHAPES.items() if kind == "sse" and part in answer.body), kind)
    return f"messages ({content}) without times of their own: `events: {shape}` times them"


def _is_without_errors(body: bytes) -> bool:
    try:
        return errors_of(json.loads(body)) is None
    except (ValueError, RecursionError):
        return False


def errors_of(whole: JsonValue) -> str | None:
    """Say which errors an answer of JSON has, as GraphQL writes them (section 7); None if it has none."""
    for item in whole if isinstance(whole, list) else [whole]:
        if isinstance(item, dict) and not is_empty(errors := item.get("errors")):
            return f"`errors` in the body: {clip(json.dumps(errors))}"
    return None


def is_empty(value: JsonValue) -> bool:
    """Whether a value is null, or an empty text, list or object."""
    return value is None or (isinstance(value, (str, list, dict)) and not value)
