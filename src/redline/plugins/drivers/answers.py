"""What a request's one answer must be, compared whole: before any load, so that nothing wrong is timed. Pure."""

import hashlib
import json
import re

from pydantic import JsonValue

from redline.model import Expected, Request, Timestamp

SHOWN_BYTES = 120
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


def difference(request: Request, asked: str, status: int, body: bytes) -> str | None:
    """In one line, how an answer differs from the expected one; None when it does not."""
    expect = request.expect
    if status != expect.status:
        return f"{asked}: status {status} instead of {expect.status}, body {shown(body)}"
    if expect.body is not None and body != expect.body.encode():
        return f"{asked}: body {shown(body)} instead of {shown(expect.body.encode())}"
    if expect.body_length is not None and len(body) != expect.body_length:
        least = "at least " if len(body) > SHOWN_BYTES else ""
        return f"{asked}: {least}{len(body)} bytes instead of {expect.body_length}"
    wrong = _hash_of(expect, body) or _json_of(expect, body) or _time_of(request.timestamp, body)
    return wrong and f"{asked}: {wrong}"


def shown(body: bytes) -> str:
    """The beginning of a body, as Python writes it."""
    more = " and more" if len(body) > SHOWN_BYTES else ""
    return f"{body[:SHOWN_BYTES].decode('utf-8', 'backslashreplace')!r}{more}"


def _hash_of(expect: Expected, body: bytes) -> str | None:
    if expect.sha256 is None or hashlib.sha256(body).hexdigest() == expect.sha256:
        return None
    return f"the SHA-256 of its body is {hashlib.sha256(body).hexdigest()} instead of {expect.sha256}"


def _json_of(expect: Expected, body: bytes) -> str | None:
    for pointer, right in expect.json_values.items():
        try:
            value = at_pointer(json.loads(body), pointer)
        except ValueError:
            return f"its body is not JSON but {shown(body)}"
        except LookupError:
            return f"nothing stands at {pointer or 'the root'} of {shown(body)}"
        if not same(value, right):
            return f"{json.dumps(value)} instead of {json.dumps(right)} stands at {pointer or 'the root'}"
    return None


def _time_of(timestamp: Timestamp | None, body: bytes) -> str | None:
    if timestamp is None:
        return None
    try:
        if timestamp.pointer is None:
            told: JsonValue = body.decode().strip()
        else:
            told = at_pointer(json.loads(body), timestamp.pointer)
    except (ValueError, LookupError):
        told = None
    where = "as its body" if timestamp.pointer is None else f"at {timestamp.pointer}"
    is_time = not isinstance(told, bool) and _NUMBER.fullmatch(str(told))
    return None if is_time else f"no timestamp stands {where}: {shown(body)}"


def at_pointer(value: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON Pointer (RFC 6901). Raises LookupError where there is none."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9]\d*", key):
            value = value[int(key)]
        else:
            raise LookupError(pointer)
    return value


def same(one: JsonValue, other: JsonValue) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return one == other
