"""Send each request of a scenario once before the load, through the engine, and compare the answers."""

import json
import re
import socket
from base64 import b64decode
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from redline.driving.checks import Checked, CheckProcess, checking
from redline.driving.encodings import EncodingError, codings_of, decoded
from redline.driving.errors_in_json import LONGEST_WATCHED, ErrorsWatch, errors_of, is_empty
from redline.driving.protocol import LONGEST_JSON, MOST_KEPT, check, check_journey
from redline.errors import DriveError
from redline.model import Cell, Expected, Request, Timestamp, Tls
from redline.model.template import first_of
from redline.model.way import AccessPoint
from redline.ports import Endpoint
from redline.quantities import clip, either
from redline.wording import part

VERIFY_WITHIN_S = (5.0, 30.0)
SHOWN_BYTES = 120
DIFFERING_BYTES = 40
GRPC = "application/grpc"
_BAD_REQUEST = 400
_REDIRECTION = 3
_BEGUN = "bytes of it"
_ENCODING = "content-encoding"
_SETTINGS, _TYPE_AT, _STREAM_AT, _FRAME_HEAD = 4, 3, 5, 9
"""The frame with which a server begins HTTP/2, and where its type and stream stand (RFC 9113, sections 3.4 and 4.1)."""
_IN_HTTP1 = "answers in HTTP/1, not in HTTP/2"
_NO_TLS = "does not speak TLS"
_SIGNS_OF_TLS = ("certificate", "the server sent the alert")
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


@dataclass
class Verified:
    """How a server answered: its first wrong answer in one line, or None.

    `cookies` are the names of those that its answers set, `encoded` says how answers that may be encoded came, and
    which JSON the engine does not look into, `closes` that it ended the connection after one of them, and `asked` is
    how many requests it was sent. `without_errors` are the requests whose answers were JSON without `errors`.
    """

    wrong: str | None = None
    cookies: tuple[str, ...] = ()
    encoded: tuple[str, ...] = ()
    closes: bool = False
    asked: int = 0
    without_errors: frozenset[int] = frozenset()


def verify(engine: Path, cell: Cell, endpoint: Endpoint, rows: dict[str, Any] | None = None) -> Verified:
    """Send each request once, or take a journey once. Raises DriveError if the engine cannot send the request.

    `rows` are those of a journey, ready for JSON; by default they are read from their file.
    So it asks each of the addresses that the load goes to. Each answer has to be complete within the cell's timeout,
    but that is at least 5 s and at most 30 s here.
    """
    cookies: list[str] = []
    encoded: dict[str, None] = {}
    places, closes, steps, watch = addresses_of(endpoint), False, 0, ErrorsWatch()
    if cell.scenario.journey is not None:
        for place in places:
            walked = _verify_journey(engine, cell, place, rows, watch)
            cookies += walked.cookies
            closes |= walked.closes
            steps += walked.asked
            if walked.wrong is not None:
                return Verified(f"at {place}: {walked.wrong}" if len(places) > 1 else walked.wrong)
        return Verified(None, tuple(dict.fromkeys(cookies)), watch.unread, closes, steps, watch.without_errors)
    with checking(engine) as checks:
        for place, at in ((place, at) for place in places for at in range(len(cell.scenario.requests))):
            request = cell.scenario.requests[at]
            answer = _ask(checks, cell, request, place, _compared_bytes(request))
            closes |= answer.closes
            asked = f"{_request_line(cell, request)}{f' at {place}' if len(places) > 1 else ''}"
            if _is_decoded(request) and answer.body_length:
                if why := _undecodable(request, answer):
                    return Verified(f"{asked}: {why}")
                encoded[f"{_request_line(cell, request)}: {_encoding_of(answer)}"] = None
                answer = decoded_answer(answer)
            if (wrong := difference(request, answer)) is not None:
                meant = _other_scheme(checks, cell, place, answer)
                return Verified(f"{asked}: {wrong}{meant and f'; {meant}'}")
            watch.look(at, request, answer, _request_line(cell, request))
            if not any(name.lower() == "cookie" for name, _ in request.header_lines):
                cookies += _cookies_of(answer)
    steps = len(places) * len(cell.scenario.requests)
    said = (*encoded, *watch.unread)
    return Verified(None, tuple(dict.fromkeys(cookies)), said, closes, steps, watch.without_errors)


def accepts(request: Request) -> tuple[str, ...]:
    """The encodings that a request accepts; empty if it says nothing of them."""
    lines = (value for name, value in request.header_lines if name.lower() == "accept-encoding")
    named = (part.partition(";")[0].strip().lower() for line in lines for part in line.split(","))
    return tuple(name for name in named if name not in {"", "identity"})


def _is_decoded(request: Request) -> bool:
    """Whether its answer is decoded and compared here: the engine compares bodies as they come."""
    return bool(accepts(request)) and request.expect.under_load == "status"


def _encoding_of(answer: Checked) -> str:
    """How an answer came: `gzip, 1,234 bytes, 10,000 decoded`."""
    if not (encoding := answer.header(_ENCODING)):
        return f"not encoded, {answer.body_length:,} bytes"
    return f"{encoding}, {answer.body_length:,} bytes, {decoded_answer(answer).body_length:,} decoded"


def _undecodable(request: Request, answer: Checked) -> str | None:
    """Say why an answer's encoding is wrong: it was not accepted, or does not fit the body; None if it is right."""
    accepted, codings = accepts(request), codings_of(answer.header(_ENCODING))
    if not accepted or not answer.body_length or not codings:
        return None
    if "*" not in accepted and (other := [coding for coding in codings if coding not in map(_plain_name, accepted)]):
        return f"its body is encoded as {other[0]}, and the request accepts {', '.join(accepted)}"
    if answer.body_length > len(answer.body):
        return f"its body of {answer.body_length:,} encoded bytes is too long to be decoded"
    try:
        decoded(answer.body, codings)
    except EncodingError as error:
        return f"its body is not {answer.header(_ENCODING)}, as it says: {error}"
    return None


def _plain_name(coding: str) -> str:
    return coding.removeprefix("x-")


def decoded_answer(answer: Checked) -> Checked:
    """The answer with its body decoded, which has to be whole. Raises EncodingError and UsageError."""
    codings = codings_of(answer.header(_ENCODING))
    if not codings or not answer.body_length:
        return answer
    body = decoded(answer.body, codings)
    return answer.with_body(body)


def addresses_of(endpoint: Endpoint) -> tuple[Endpoint, ...]:
    """The same server at each of its addresses, if the load goes to all of them."""
    if endpoint.way.addresses == "first" or endpoint.way.proxy is not None:  # a proxy looks for the name itself
        return (endpoint,)
    points: dict[AccessPoint, None] = {}
    for place in endpoint.way.connect or (AccessPoint(host=endpoint.host, port=endpoint.port),):
        if place.socket:
            return (endpoint,)
        try:
            found = socket.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
            numeric = socket.NI_NUMERICHOST | socket.NI_NUMERICSERV
            hosts = [socket.getnameinfo(to, numeric)[0] for *_, to in found]
            points.update(dict.fromkeys(AccessPoint(host=host, port=place.port) for host in hosts))
        except OSError:  # the engine says what is wrong with the name
            return (endpoint,)
    return tuple(replace(endpoint, way=endpoint.way.only(point)) for point in points)


def _verify_journey(
    engine: Path, cell: Cell, endpoint: Endpoint, rows: dict[str, Any] | None, watch: ErrorsWatch
) -> Verified:
    """Take the steps once, as the first user, without think times; the first wrong step ends it."""
    journey, requests = cell.scenario.journey, cell.scenario.requests
    assert journey is not None, "others are asked for each request"
    cookies, closes, asked = list[str](), False, 0
    wanted = check_journey(
        cell,
        endpoint,
        timeout_ns=int(verify_within_s(cell) * 1e9),
        keep_bytes=max(map(_compared_bytes, requests)),
        rows=rows,
    )
    with checking(engine) as checks:
        try:
            for answer in checks.walk(wanted):
                at, closes, asked = answer.step or 0, closes or answer.closes, asked + 1
                repeats_once = answer.status in journey.again_at and not answer.wrong
                wrong = None if repeats_once else difference(requests[at], answer)
                if wrong is not None:
                    meant = _other_scheme(checks, cell, endpoint, answer)
                    missing = (cookie for cookie in answer.missing_cookies if cookie not in wrong)
                    return Verified("; ".join(filter(None, (f"{_step_line(cell, at)}: {wrong}", *missing, meant))))
                watch.look(at, requests[at], answer, _request_line(cell, requests[at]))
                cookies += [] if journey.cookies else _cookies_of(answer)
        except DriveError as error:
            raise DriveError(_with_files(error.message, cell.variant.tls), hint=error.hint) from error
    return Verified(None, tuple(dict.fromkeys(cookies)), closes=closes, asked=asked)


def _step_line(cell: Cell, at: int) -> str:
    """`step `buy`, POST /orders`; without values of rows and answers."""
    request = cell.scenario.requests[at]
    named = f"step `{request.name}`, " if request.name else ""
    return f"{named}{_request_line(cell, request)}"


def _cookies_of(answer: Checked) -> list[str]:
    """The names of the cookies that an answer sets (RFC 6265, section 4.1)."""
    return [value.partition("=")[0].strip() for name, value in answer.headers or () if name == "set-cookie"]


def _other_scheme(checks: CheckProcess, cell: Cell, endpoint: Endpoint, answer: Checked) -> str:
    """Say that the port speaks TLS and was asked without, or the other way round; empty if neither is so.

    The request that finds it out has nothing of the user's: what was meant for TLS is not sent without.
    """
    without = cell.variant.tls is None
    plain, secure = ("http", "https") if cell.scenario.request.websocket is None else ("ws", "wss")
    if answer.status not in (None, _BAD_REQUEST) if without else not _may_lack_tls(answer):
        return ""
    other = cell.variant.over(Tls(insecure=True) if without else None)
    timeout_ns = int(VERIFY_WITHIN_S[0] * 1e9)
    try:
        seen = checks.ask(check(other, endpoint, Request(), {}, timeout_ns=timeout_ns, keep_bytes=0))
    except DriveError:  # it only explains what is known to be wrong
        return ""
    if without:
        return f"this port speaks TLS: write {secure}://" if seen.tls is not None else ""
    # Many servers answer 400 to a request without TLS on their port for TLS.
    proves = seen.status is not None and (seen.status != _BAD_REQUEST or _NO_TLS in _reason(answer))
    return f"this port speaks HTTP without TLS: write {plain}://" if proves else ""


def _may_lack_tls(answer: Checked) -> bool:
    """Whether a handshake failed without a certificate or an alert, which only a peer that speaks TLS has."""
    return answer.outcome == "tls" and not any(sign in _reason(answer) for sign in _SIGNS_OF_TLS)


def _reason(answer: Checked) -> str:
    return "" if answer.failure is None else answer.failure.reason


def differ(engine: Path, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
    """Return the first difference between two servers' answers, on one line; None if they agree. Headers may differ.

    Where the load goes to several addresses of a server, all are compared with the first of the first server. Waits for
    each answer as long as `verify`. Raises DriveError if the engine cannot send the request.
    """
    places = [(name, addresses_of(endpoint)) for name, endpoint in zip(names, endpoints, strict=True)]
    all_of = [(f"{name} at {at}" if len(ends) > 1 else name, at) for name, ends in places for at in ends]
    with checking(engine) as checks:
        for request in cell.scenario.requests:
            answers = [(name, _ask(checks, cell, request, at, MOST_KEPT)) for name, at in all_of]
            for name, answer in answers:
                if answer.status is None:
                    return f"{_request_line(cell, request)}: {name}: {answer.wrong}"
                if (why := _undecodable(request, answer)) is not None:
                    return f"{_request_line(cell, request)}: {name}: {why}"
            if accepts(request):
                answers = [(name, decoded_answer(answer)) for name, answer in answers]
            for name, answer in answers[1:]:
                if (different := _first_difference((answers[0][0], name), answers[0][1], answer)) is not None:
                    return f"{_request_line(cell, request)}: {different}"
    return None


def _first_difference(names: tuple[str, str], first: Checked, second: Checked) -> str | None:
    for what, values in {
        "status": (first.status, second.status),
        "content-type": (first.header("content-type"), second.header("content-type")),
    }.items():
        if values[0] != values[1]:
            said = " and ".join(f"{value or 'none'} from {name}" for value, name in zip(values, names, strict=True))
            return f"{what} {said}"
    if first.body_sha256 == second.body_sha256:
        return None
    alike = (pair[0] == pair[1] for pair in zip(first.body, second.body, strict=False))
    at = next((place for place, same in enumerate(alike) if not same), min(len(first.body), len(second.body)))
    said = " and ".join(
        f"{shown(answer.body[at : at + DIFFERING_BYTES])} from {name} ({answer.body_length} bytes)"
        for answer, name in zip((first, second), names, strict=True)
    )
    return f"the bodies differ from byte {at} on: {said}"


def verify_within_s(cell: Cell) -> float:
    """Return the time limit for an answer that is compared."""
    shortest, longest = VERIFY_WITHIN_S
    if cell.scenario.journey is not None and cell.scenario.journey.gathers:
        return longest + cell.scenario.longest_stream_ns / 1e9
    return min(max(cell.timeout_ns / 1e9, shortest), longest)


def _compared_bytes(request: Request) -> int:
    """Return the bytes of the body to compare or show here: the engine compares its length and its SHA-256."""
    if _is_decoded(request):
        return MOST_KEPT
    return LONGEST_JSON if request.expect.looks_into_json or request.timestamp else LONGEST_WATCHED


def _request_line(cell: Cell, request: Request) -> str:
    return first_of(request.line, cell.scenario.picks)


def _ask(checks: CheckProcess, cell: Cell, request: Request, endpoint: Endpoint, keep_bytes: int) -> Checked:
    """Return the answer, compared with all expectations."""
    # The engine does not decode: what it is to compare is compared here.
    wanted = request.checked_for_status if _is_decoded(request) else request.checked_entirely
    timeout_ns = int(verify_within_s(cell) * 1e9)
    picks = cell.scenario.picks
    try:
        return checks.ask(check(cell.variant, endpoint, wanted, picks, timeout_ns=timeout_ns, keep_bytes=keep_bytes))
    except DriveError as error:
        raise DriveError(_with_files(error.message, cell.variant.tls), hint=error.hint) from error


def _with_files(message: str, tls: Tls | None) -> str:
    """A message of the engine with the files of the client's certificate in place of fields of the check."""
    if tls is None or tls.cert is None:
        return message
    return message.replace("target.tls.cert_pem", tls.cert.file).replace("target.tls.key_pem", tls.cert.key_file)


def difference(request: Request, answer: Checked) -> str | None:
    """Say how an answer differs from the expected answer, on one line; None if it does not."""
    if answer.status is None:
        return f"{answer.wrong}{_endless(answer) or _other_version(answer)}"
    if request.websocket is not None:
        return answer.wrong or None
    expect, body = request.expect, answer.body
    if answer.header("content-type").startswith(GRPC) and answer.grpc_status is None:
        return "it answers gRPC, whose status is read over HTTP/2 alone"
    if answer.status not in expect.statuses:
        return f"status {status_of(answer)} in place of {either(expect.statuses)}, body {shown(body)}"
    # Any other error that the engine reports would be an error under load too.
    # The engine looks for the time in each message of a stream.
    timestamp = request.timestamp if request.stream is None else None
    differences = _body_of(expect, answer), _json_of(expect, body), _time_of(timestamp, body), answer.wrong
    return next(filter(None, differences), None)


def _endless(answer: Checked) -> str:
    """Say how to ask for an answer that has no end; empty for any other."""
    if answer.outcome != "timeout" or answer.failure is None or _BEGUN not in answer.failure.reason:
        return ""
    said = f"{part('events', 'sse')}, or `stream: sse`"
    return f"; it began and did not end: if it is a stream of events, say so ({said})"


def _other_version(answer: Checked) -> str:
    """Say that the port speaks another version of HTTP than it was asked in; empty if that is not seen."""
    if answer.failure is None or answer.outcome != "malformed":
        return ""
    if _IN_HTTP1 in answer.failure.reason:
        return f"; this port speaks HTTP/1.1: leave out {part('http2')}, or write `http: 1.1` of the server"
    received = b64decode(answer.failure.bytes_base64 or "")
    begins = answer.failure.begins == 0 and len(received) >= _FRAME_HEAD
    is_settings = begins and received[_TYPE_AT] == _SETTINGS and not any(received[_STREAM_AT:_FRAME_HEAD])
    return f"; this port speaks HTTP/2: give {part('http2')}, or write `http: 2` of the server" if is_settings else ""


def status_of(answer: Checked) -> str:
    """The status of an answer; of a redirect also where it leads: `302 to /login`."""
    location = answer.header("location")
    is_redirect = answer.status is not None and answer.status // 100 == _REDIRECTION
    return f"{answer.status} to {clip(location)}" if is_redirect and location else str(answer.status)


def _body_of(expect: Expected, answer: Checked) -> str | None:
    if expect.body is not None and answer.body_sha256 != expect.body_sha256:
        return f"body {shown(answer.body)} in place of {shown(expect.body.encode())}"
    if expect.length not in (None, answer.body_length):
        return f"{answer.body_length} bytes in place of {expect.length}"
    if expect.sha256 not in (None, answer.body_sha256):
        return f"the SHA-256 of its body is {answer.body_sha256} in place of {expect.sha256}"
    return None


def shown(body: bytes) -> str:
    """Return the beginning of a body, as Python writes it."""
    more = " and more" if len(body) > SHOWN_BYTES else ""
    return f"{body[:SHOWN_BYTES].decode('utf-8', 'backslashreplace')!r}{more}"


def _json_of(expect: Expected, body: bytes) -> str | None:
    if not (expect.looks_into_json or expect.no_errors):
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return f"its body is not JSON but {shown(body)}" if expect.looks_into_json else None
    differences = (
        *(_value_of(value, pointer, right, body) for pointer, right in expect.json_values.items()),
        *(_stands_of(value, pointer, stands, body) for pointer, stands in expect.json_stands.items()),
        errors_of(value) if expect.no_errors else None,
    )
    return next(filter(None, differences), None)


def _value_of(whole: JsonValue, pointer: str, right: JsonValue, body: bytes) -> str | None:
    try:
        value = at_pointer(whole, pointer)
    except LookupError:
        return f"nothing stands at {pointer or 'the root'} of {shown(body)}"
    if same(value, right):
        return None
    return f"{json.dumps(value)} in place of {json.dumps(right)} stands at {pointer or 'the root'}"


def _stands_of(whole: JsonValue, pointer: str, stands: str, body: bytes) -> str | None:
    try:
        value = at_pointer(whole, pointer)
    except LookupError:
        return f"nothing stands at {pointer} of {shown(body)}" if stands == "present" else None
    if stands == "present" or (stands == "empty" and is_empty(value)):
        return None
    wanted = "nothing" if stands == "absent" else "nothing, null or an empty value"
    return f"{clip(json.dumps(value))} in place of {wanted} stands at {pointer or 'the root'}"


def _time_of(timestamp: Timestamp | None, body: bytes) -> str | None:
    if timestamp is None:
        return None
    try:
        if timestamp.pointer is None:
            value: JsonValue = body.decode().strip()
        else:
            value = at_pointer(json.loads(body), timestamp.pointer)
    except (ValueError, LookupError):
        value = None
    where = "as its body" if timestamp.pointer is None else f"at {timestamp.pointer}"
    is_time = not isinstance(value, bool) and _NUMBER.fullmatch(str(value))
    return None if is_time else f"no timestamp stands {where}: {shown(body)}"


def at_pointer(value: JsonValue, pointer: str) -> JsonValue:
    """Return the value at a JSON Pointer (RFC 6901). Raises LookupError if there is none."""
    for token in pointer.split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = value[key]
        elif isinstance(value, list) and re.fullmatch(r"0|[1-9]\d*", key):
            value = value[int(key)]
        else:
            raise LookupError(pointer)
    return value


def same(left: JsonValue, right: JsonValue) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    return left == right
