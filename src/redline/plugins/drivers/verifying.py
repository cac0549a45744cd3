"""Sends each request of a scenario once, on a connection of its own, before the load, and compares the answers."""

import contextlib
import hashlib
import http.client
import json
import re
import ssl
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from redline.errors import DriveError
from redline.model import Cell, Closed, Expected, Load, Request, Timestamp, Tls, Traffic
from redline.model.template import first_of
from redline.plugins.timed import connect
from redline.ports import Drive, Endpoint, LoadOptions

VERIFY_WITHIN_S = (5.0, 30.0)
LONGEST_BODY = 64 << 20
_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
SHOWN_BYTES = 120
DIFFERING_BYTES = 40
GRPC = "application/grpc"
_NUMBER = re.compile(r"\d+(\.\d+)?([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Answer:
    """One answer. Of a body that is too long there is only the beginning."""

    status: int
    content_type: str
    body: bytes


def verify(cell: Cell, endpoint: Endpoint) -> str | None:
    """The first wrong answer in one line, or None. Speaks HTTP/1.1, over TLS where the cell does.

    Each answer has to be over within the cell's timeout, but no sooner than in 5 s and no later than in 30.
    """
    answers = (_verify_one(cell, request, endpoint) for request in cell.scenario.requests)
    return next((wrong for wrong in answers if wrong is not None), None)


def differ(cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
    """In one line, where two servers first answer differently; None where they do not. The headers may differ.

    Speaks HTTP/1.1, and waits for each answer as long as `verify`.
    """
    for request in cell.scenario.requests:
        answers = [_ask(cell, request, endpoint, None) for endpoint in endpoints]
        line = _request_line(cell, request)
        for name, answer in zip(names, answers, strict=True):
            if isinstance(answer, str):
                return f"{line}: {name}: {answer}"
        one, other = [answer for answer in answers if isinstance(answer, Answer)]
        if (found := _first_difference(names, one, other)) is not None:
            return f"{line}: {found}"
    return None


def _first_difference(names: tuple[str, str], one: Answer, other: Answer) -> str | None:
    for what, values in {
        "status": (one.status, other.status),
        "content-type": (one.content_type, other.content_type),
    }.items():
        if values[0] != values[1]:
            said = " and ".join(f"{value or 'none'} from {name}" for value, name in zip(values, names, strict=True))
            return f"{what} {said}"
    if one.body == other.body:
        return None
    alike = (pair[0] == pair[1] for pair in zip(one.body, other.body, strict=False))
    at = next((place for place, same in enumerate(alike) if not same), min(len(one.body), len(other.body)))
    said = " and ".join(
        f"{shown(answer.body[at : at + DIFFERING_BYTES])} from {name} ({len(answer.body)} bytes)"
        for answer, name in zip((one, other), names, strict=True)
    )
    return f"the bodies differ from byte {at} on: {said}"


def verify_by_load(cell: Cell, endpoint: Endpoint, drive: Callable[[Drive], Traffic]) -> str | None:
    """The same through the engine: one request of each, and all of its answer is checked that may be under load.

    Why it could open no connection, such as a certificate that is not valid, it says itself.
    """
    for request in cell.scenario.requests:
        expect = request.expect.model_copy(update={"under_load": "hash" if request.expect.body_sha256 else "length"})
        once = cell.model_copy(
            update={
                "scenario": cell.scenario.model_copy(
                    update={"request": request.model_copy(update={"expect": expect}), "others": ()}
                ),
                "load": Load(name="once", shape=Closed(users=1), duration_ns=int(verify_within_s(cell) * 1e9), count=1),
                "warmup_ns": 0,
            }
        )
        with tempfile.TemporaryDirectory() as scratch:
            log = Path(scratch) / "engine.log"
            request_line = f"{request.method} {first_of(request.path, cell.scenario.picks)}"
            try:
                counts = drive(Drive.of(LoadOptions(log=log), once, endpoint, seed=1, cpus=())).counts
            except DriveError as error:
                return f"{request_line}: {error.message}"
        wrong = [kind.replace("_", " ") for kind, number in counts.outcomes if number and kind != "ok"]
        if wrong or not counts.outcomes.ok:
            said = filter(None, [", ".join(counts.status), counts.grpc_statuses])
            classes = f" (status {', '.join(said)})" if counts.status else ""
            return f"{request_line}: {', '.join(wrong) or 'no answer'}{classes}"
    return None


def verify_within_s(cell: Cell) -> float:
    """How long the answer that is compared may take."""
    shortest, longest = VERIFY_WITHIN_S
    return min(max(cell.timeout_ns / 1e9, shortest), longest)


def _verify_one(cell: Cell, request: Request, endpoint: Endpoint) -> str | None:
    answer, line = _ask(cell, request, endpoint, request.expect.body_length), _request_line(cell, request)
    if isinstance(answer, Answer) and answer.content_type.startswith(GRPC):
        return f"{line}: it answers gRPC, whose status is read over HTTP/2 alone"
    return f"{line}: {answer}" if isinstance(answer, str) else difference(request, line, answer.status, answer.body)


def _request_line(cell: Cell, request: Request) -> str:
    return f"{request.method} {first_of(request.path, cell.scenario.picks)}"


def _ask(cell: Cell, request: Request, endpoint: Endpoint, expected_length: int | None) -> Answer | str:
    """The answer, or why there is none."""
    within_s = verify_within_s(cell)
    picks = cell.scenario.picks
    connection = http.client.HTTPConnection(endpoint.host, endpoint.port)
    try:
        tls = cell.variant.tls
        context, name = (tls_context(tls, endpoint), tls.server_name) if tls else (None, None)
        connection.sock = connect(endpoint.host, endpoint.port, within_s, context, name)
        _send(connection, request, first_of(request.path, picks), picks)
        answer = connection.getresponse()
        return Answer(answer.status, answer.getheader("content-type", ""), _body(answer, expected_length))
    except TimeoutError:
        return f"no whole answer within {within_s:.3g} s"
    except http.client.HTTPException as error:
        return _http_problem(error)
    except ssl.SSLError as error:
        return f"TLS failed: {getattr(error, 'verify_message', '') or error.reason or error}"
    except OSError as error:
        return error.strerror or type(error).__name__
    finally:
        with contextlib.suppress(OSError):
            connection.close()


def tls_context(tls: Tls, endpoint: Endpoint) -> ssl.SSLContext:
    """The TLS settings of a client. Raises OSError (of it SSLError) for authorities that cannot be read."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = min(_VERSIONS[version] for version in tls.versions)
    context.maximum_version = max(_VERSIONS[version] for version in tls.versions)
    context.set_alpn_protocols(["http/1.1"])
    authorities = tls.ca_pem or endpoint.ca_pem
    if tls.insecure:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    elif authorities:
        context.load_verify_locations(cadata=authorities)
    else:
        context.load_default_certs()
    return context


def _send(
    connection: http.client.HTTPConnection, request: Request, path: str, picks: dict[str, tuple[str, ...]]
) -> None:
    """As `HTTPConnection.request` would, but with headers that stand several times."""
    body = request.body
    content = None
    if body is not None:
        content = body.content() if body.text is None else first_of(body.text, picks).encode()
    named = {name.lower() for name, _ in request.header_lines}
    connection.putrequest(request.method, path, skip_host="host" in named, skip_accept_encoding=True)
    for name, value in request.header_lines:
        connection.putheader(name, first_of(value, picks))
    if content is not None or request.method in ("POST", "PUT", "PATCH"):
        connection.putheader("Content-Length", str(len(content or b"")))
    connection.endheaders(content)


def _body(answer: http.client.HTTPResponse, expected: int | None) -> bytes:
    """The body, or a little more of it than was expected: enough to see that it is wrong, and to show it."""
    most = LONGEST_BODY if expected is None else max(expected, SHOWN_BYTES)
    body = answer.read(most + 1)
    if expected is None and len(body) > most:
        raise http.client.HTTPException(f"a body that is longer than {most} bytes")
    # Of a body that is read in part, http.client does not say that it broke off.
    if len(body) <= most and answer.length:
        raise http.client.IncompleteRead(body, answer.length)
    return body


def _http_problem(error: http.client.HTTPException) -> str:
    match error:
        case http.client.RemoteDisconnected():
            return "the connection was closed without an answer"
        case http.client.BadStatusLine():
            return f"no HTTP answer but {shown(str(error).encode('latin-1', 'replace'))}"
        case http.client.IncompleteRead():
            more = f", {error.expected} more were announced" if error.expected else ""
            return f"the connection was closed within the body, after {len(error.partial)} bytes{more}"
        case _:
            return str(error) or type(error).__name__


def difference(request: Request, request_line: str, status: int, body: bytes) -> str | None:
    """In one line, how an answer differs from the expected one; None when it does not."""
    expect = request.expect
    if status != expect.status:
        return f"{request_line}: status {status} instead of {expect.status}, body {shown(body)}"
    if expect.body is not None and body != expect.body.encode():
        return f"{request_line}: body {shown(body)} instead of {shown(expect.body.encode())}"
    if expect.body_length is not None and len(body) != expect.body_length:
        least = "at least " if len(body) > SHOWN_BYTES else ""
        return f"{request_line}: {least}{len(body)} bytes instead of {expect.body_length}"
    sha256 = hashlib.sha256(body).hexdigest()
    if expect.sha256 not in (None, sha256):
        return f"{request_line}: the SHA-256 of its body is {sha256} instead of {expect.sha256}"
    wrong = _json_of(expect, body) or _time_of(request.timestamp, body)
    return wrong and f"{request_line}: {wrong}"


def shown(body: bytes) -> str:
    """The beginning of a body, as Python writes it."""
    more = " and more" if len(body) > SHOWN_BYTES else ""
    return f"{body[:SHOWN_BYTES].decode('utf-8', 'backslashreplace')!r}{more}"


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
            value: JsonValue = body.decode().strip()
        else:
            value = at_pointer(json.loads(body), timestamp.pointer)
    except (ValueError, LookupError):
        value = None
    where = "as its body" if timestamp.pointer is None else f"at {timestamp.pointer}"
    is_time = not isinstance(value, bool) and _NUMBER.fullmatch(str(value))
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
