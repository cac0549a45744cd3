"""Before the load every request is sent once, and its whole answer is compared; over TLS, the server is checked."""

import contextlib
import hashlib
import json
import shutil
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.driving.verifying import addresses_of, at_pointer, differ, difference, same, verify
from redline.errors import DriveError
from redline.model import Body, Cell, Expected, Request, Scenario, Timestamp, Tls
from redline.model.catalogue import Leg, has_tls, http_of
from redline.model.way import Access, AccessPoint
from redline.model.websocket import WebSocket
from redline.ports import Endpoint
from tests.fakes import targets
from tests.fakes.certificates import Certificate
from tests.fakes.checks import checked, unanswered
from tests.fakes.recordings import simulated_cell

BODY = b'{"now": 1790000000000, "total": 3, "list": [null, {"a/b": true, "m~n": 1.0}], "text": "soon"}'


def mismatch(request: Request, body: bytes = BODY, status: int = 200) -> str:
    return difference(request, checked(body, status)) or ""


@pytest.mark.parametrize(
    ("expect", "says"),
    [
        (Expected(json_values={"/total": 3.0, "/list/1/a~1b": True, "/list/1/m~0n": 1}), ""),
        (Expected(json_values={"/list": [None, {"m~n": 1, "a/b": True}]}), ""),
        (Expected(json_values={"/total": 4}), "3 in place of 4 stands at /total"),
        (Expected(json_values={"/list/1/a~1b": 1}), "true in place of 1 stands at /list/1/a~1b"),
        (Expected(json_values={"/list/01": None}), "nothing stands at /list/01"),
        (Expected(json_values={"/list/2": None}), "nothing stands at /list/2"),
        (Expected(json_values={"/total/x": None}), "nothing stands at /total/x"),
        (Expected(json_values={"": 5}), "stands at the root"),
        (Expected(sha256=hashlib.sha256(BODY).hexdigest()), ""),
        (Expected(sha256="0" * 64), "the SHA-256 of its body is"),
        (Expected(status=404), "status 200 in place of 404"),
        (Expected(length=3), "bytes in place of 3"),
        (Expected(body="x"), "in place of 'x'"),
    ],
)
def test_all_of_an_answer_is_compared(expect: Expected, says: str) -> None:
    wrong = mismatch(Request(expect=expect))
    assert says in wrong
    assert bool(says) == bool(wrong)


def test_what_is_no_json_is_shown() -> None:
    assert "is not JSON but '<html>'" in mismatch(Request(expect=Expected(json_values={"/a": 1})), b"<html>")


@pytest.mark.parametrize(
    ("pointer", "body", "right"),
    [
        ("/now", BODY, True),
        ("/text", BODY, False),
        ("/list", BODY, False),
        ("/none", BODY, False),
        ("/list/1/a~1b", BODY, False),
        (None, b" 1790000000.25\n", True),
        (None, b"now", False),
        (None, b"\xff", False),
    ],
)
def test_a_timestamp_has_to_be_there(pointer: str | None, body: bytes, right: bool) -> None:
    wrong = mismatch(Request(timestamp=Timestamp(pointer=pointer, unit="s")), body)
    assert right == (wrong == "")
    assert right or "no timestamp stands" in wrong


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_every_value_is_found_by_its_pointer_and_is_the_same(value: Any) -> None:
    def all_within(part: Any, pointer: str) -> None:
        assert same(at_pointer(json.loads(json.dumps(value)), pointer), part)
        items = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
        for key, inner in items:
            all_within(inner, f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}")

    all_within(value, "")


def cell_of(*requests: Request, tls: Tls | None = None, http: str = "1.1", **picks: tuple[str, ...]) -> Cell:
    cell = simulated_cell()
    scenario = Scenario(name="M", request=requests[0], others=requests[1:], picks=picks)
    variant = cell.variant.model_copy(update={"tls": tls, "http": http})
    return cell.model_copy(update={"scenario": scenario, "variant": variant})


def asked(
    habit: targets.Habit, cell: Cell, certificate: Certificate | None = None, ca: str | None = None
) -> str | None:
    with targets.target(habit, certificate.context() if certificate else None) as url:
        return verify(find_engine(), cell, Endpoint("127.0.0.1", urlsplit(url).port or 0, ca)).wrong


def test_each_request_is_asked() -> None:
    right = Request(path="/right", timestamp=Timestamp(pointer="/now", unit="ms"))
    wrong = Request(path="/wrong", expect=Expected(json_values={"/total": 4}))
    assert asked(targets.answers_json, cell_of(right, right)) is None
    assert asked(targets.answers_json, cell_of(right, wrong)) == "GET /wrong: 3 in place of 4 stands at /total"


def test_placeholders_are_filled_and_headers_stand_several_times() -> None:
    request = Request(
        method="POST",
        path="/{pick:ids}/{rand:5..9}",
        headers={"Cookie": ("a={seq}", "b=2")},
        body=Body(text='{"n": {seq}}'),
        expect=Expected(status=204),
    )
    wrong = asked(targets.echoes, cell_of(request, ids=("one", "two")))
    assert wrong is not None
    assert wrong.startswith("POST /one/5: status 200 in place of 204, body 'POST /one/5 HTTP/1.1")
    length = Request(method="POST", headers={"A": ("x", "y")}, body=Body(text="{seq}"), expect=Expected(status=204))
    shown = asked(targets.echoes, cell_of(length)) or ""
    assert "A: x" in shown
    assert "A: y" in shown


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    return Certificate(tmp_path_factory.mktemp("certificate"))


def test_over_tls_it_is_checked_who_answers(certificate: Certificate) -> None:
    request = Request(expect=Expected(body="path0"))

    def said(tls: Tls, ca: str | None = None) -> str | None:
        return asked(targets.healthy, cell_of(request, tls=tls), certificate, ca)

    assert said(Tls(ca_pem=certificate.pem)) is None
    assert said(Tls(), ca=certificate.pem) is None
    assert said(Tls(ca_pem=certificate.pem, server_name="localhost", versions=("1.2",))) is None
    assert said(Tls(insecure=True)) is None
    assert "tls: the TLS handshake failed: " in str(said(Tls()))
    assert "tls: the TLS handshake failed: " in str(said(Tls(ca_pem=certificate.pem, server_name="example.org")))
    with pytest.raises(DriveError, match="there is no certificate in it"):
        said(Tls(ca_pem="junk"))


def test_a_port_for_tls_is_not_taken_for_one_without(certificate: Certificate) -> None:
    """As nginx does it, the server answers 400 to a request without TLS."""
    asked_plainly = list[bytes]()

    def either(connection: socket.socket) -> None:
        begun = connection.recv(1, socket.MSG_PEEK)
        if begun != b"\x16":
            asked_plainly.append(connection.recv(65536))
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return
        with contextlib.suppress(OSError), certificate.context().wrap_socket(connection, server_side=True) as secured:
            targets.healthy(secured)

    wrong = str(asked(either, cell_of(Request(), tls=Tls())))
    assert "certificate" in wrong
    assert "without TLS" not in wrong
    assert not asked_plainly


def test_what_was_meant_for_tls_is_not_sent_without() -> None:
    sent = list[bytes]()

    def plain(connection: socket.socket) -> None:
        while request := connection.recv(65536):
            sent.append(request)
            status = b"200 OK" if request.startswith(b"GET / ") else b"400 Bad Request"
            connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: 0\r\n\r\n" % status)

    request = Request(path="/a?key=secret", headers={"Authorization": "Bearer secret", "Cookie": "sid=secret"})
    wrong = str(asked(plain, cell_of(request, tls=Tls())))
    assert "this port speaks HTTP without TLS: write http://" in wrong
    message = request.model_copy(update={"websocket": WebSocket(message="text"), "body": Body(text="hello")})
    wrong = str(asked(plain, cell_of(message, tls=Tls())))
    assert "this port speaks HTTP without TLS: write ws://" in wrong
    assert not any(b"secret" in piece for piece in sent)


def test_a_server_of_http_2_is_named_to_who_asks_in_http_1() -> None:
    def begins(connection: socket.socket) -> None:
        connection.recv(65536)
        connection.sendall(bytes.fromhex("000006040000000000000300000064"))

    wrong = str(asked(begins, cell_of(Request())))
    assert wrong.endswith("this port speaks HTTP/2: give --http2, or write `http: 2` of the server")
    assert "HTTP/2" not in str(asked(targets.garbage, cell_of(Request())))


def test_a_server_of_http_1_is_named_to_who_asks_in_http_2() -> None:
    wrong = str(asked(targets.healthy, cell_of(Request(), http="2")))
    assert wrong.endswith("this port speaks HTTP/1.1: leave out --http2, or write `http: 1.1` of the server")


def test_a_server_without_tls_is_reported() -> None:
    assert "tls: the TLS handshake failed: " in str(asked(targets.garbage, cell_of(Request(), tls=Tls(insecure=True))))


@pytest.mark.parametrize("habit", [targets.stalls, targets.trickles])
def test_over_tls_nothing_is_waited_for_either(
    certificate: Certificate, habit: targets.Habit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.driving.verifying.VERIFY_WITHIN_S", (0.5, 0.5))
    cell = cell_of(Request(expect=Expected(length=100_000)), tls=Tls(insecure=True))
    assert str(asked(habit, cell, certificate)).startswith("GET /: timeout: no ")


def test_an_engine_that_cannot_ask_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DriveError, match="cannot be started"):
        EngineDriver(tmp_path / "none").verify(cell_of(Request()), Endpoint("127.0.0.1", 1))


def test_why_there_is_no_answer_is_said_by_the_engine() -> None:
    answer = unanswered("malformed", "a space follows the size of a chunk (RFC 9112, 7.1)")
    assert difference(Request(), answer) == "malformed: a space follows the size of a chunk (RFC 9112, 7.1)"


def test_what_the_engine_alone_finds_wrong_is_wrong() -> None:
    failure = {"outcome": "unexpected_status", "reason": "grpc-status 13 in place of 0", "time_ns": 0}
    answer = checked(kind="application/grpc", grpc_status=13, outcome="unexpected_status", failure=failure)
    assert difference(Request(), answer) == "unexpected status: grpc-status 13 in place of 0"


def answers(status: str = "200 OK", kind: str = "text/plain", body: bytes = b"the same") -> targets.Habit:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode()

    def habit(connection: socket.socket) -> None:
        while connection.recv(65536):
            connection.sendall(head + body)

    return habit


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (answers(), None),
        (answers(status="404 Not Found"), "GET /path0: status 200 from A and 404 from B"),
        (answers(kind="text/html"), "GET /path0: content-type text/plain from A and text/html from B"),
        (
            answers(body=b"the other"),
            "GET /path0: the bodies differ from byte 4 on: 'same' from A (8 bytes) and 'other' from B (9 bytes)",
        ),
        (
            answers(body=b"the same and more"),
            "GET /path0: the bodies differ from byte 8 on: '' from A (8 bytes) and ' and more' from B (17 bytes)",
        ),
        (targets.leaves, "GET /path0: B: closed: the connection ended before the answer"),
    ],
)
def test_where_two_servers_answer_differently_is_reported(other: targets.Habit, says: str | None) -> None:
    with targets.target(answers()) as one, targets.target(other) as two:
        ends = [Endpoint("127.0.0.1", urlsplit(url).port or 0) for url in (one, two)]
        assert differ(find_engine(), simulated_cell(), ("A", "B"), (ends[0], ends[1])) == says


def at_all(*urls: str) -> Endpoint:
    """A server at the addresses of several."""
    ports = [urlsplit(url).port or 0 for url in urls]
    points = tuple(AccessPoint(host="127.0.0.1", port=port) for port in ports)
    return Endpoint("app.example", 80, way=Access(connect=points, addresses="all"))


def test_every_address_that_is_loaded_is_asked() -> None:
    cell, engine = simulated_cell(), find_engine()
    with targets.target(answers(body=b"path0")) as one, targets.target(answers(body=b"other")) as two:
        place = f"127.0.0.1:{urlsplit(two).port}"
        assert verify(engine, cell, at_all(one, one)).wrong is None
        assert (
            verify(engine, cell, at_all(one, two)).wrong == f"GET /path0 at {place}: body 'other' in place of 'path0'"
        )
        different = str(differ(engine, cell, ("A", "B"), (at_all(one, two), at_all(one))))
    assert f"(5 bytes) and 'other' from A at {place} (5 bytes)" in different


def test_every_address_of_a_name_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 80)) for host in ("127.0.0.3", "127.0.0.4", "127.0.0.3")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_args, **_kinds: found)
    named = Endpoint("app.example", 80, way=Access(addresses="all"))
    assert [str(at) for at in addresses_of(named)] == ["127.0.0.3:80", "127.0.0.4:80"]
    assert addresses_of(Endpoint("app.example", 80)) == (Endpoint("app.example", 80),)


def over(leg: Leg, status: bytes, certificate: Certificate, stack: contextlib.ExitStack) -> Endpoint:
    """A server whose answer has a status (an index in HPACK's table, as HTTP/2 sends it) and no body."""

    def habit(connection: socket.socket) -> None:
        if leg.startswith("h2"):
            return targets.speaks_http2(connection, status)
        words = {b"\x88": b"200 OK", b"\x8d": b"404 Not Found"}
        return answers(words[status].decode(), body=b"")(connection)

    context = certificate.context("h2" if leg.startswith("h2") else "http/1.1") if has_tls(leg) else None
    url = stack.enter_context(targets.target(habit, context))
    return Endpoint("127.0.0.1", urlsplit(url).port or 0)


@pytest.mark.parametrize("leg", ["h1", "h1+tls", "h2c", "h2+tls"])
def test_all_protocols_are_verified_and_compared_alike(leg: Leg, certificate: Certificate) -> None:
    tls = Tls(insecure=True) if has_tls(leg) else None
    cell, engine = cell_of(Request(path="/a"), tls=tls, http=http_of(leg)), find_engine()
    with contextlib.ExitStack() as stack:
        right, wrong = (over(leg, status, certificate, stack) for status in (b"\x88", b"\x8d"))
        assert verify(engine, cell, right).wrong is None
        assert verify(engine, cell, wrong).wrong == "GET /a: status 404 in place of 200, body ''"
        assert differ(engine, cell, ("A", "B"), (right, right)) is None
        assert differ(engine, cell, ("A", "B"), (right, wrong)) == "GET /a: status 200 from A and 404 from B"


def test_an_answer_of_grpc_is_refused_over_http_1() -> None:
    assert asked(answers(kind="application/grpc"), cell_of(Request(path="/path0"))) == (
        "GET /path0: it answers gRPC, whose status is read over HTTP/2 alone"
    )
