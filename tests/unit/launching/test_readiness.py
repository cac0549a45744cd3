"""The readiness request: when it is answered, how long it is repeated, and its report of other answers."""

import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from redline.driving.checks import Checked, CheckProcess
from redline.driving.engine_process import find_engine
from redline.launching import readiness
from redline.launching.failures import OF_COMMAND, FailedStart
from redline.launching.guard import LaunchOrder
from redline.launching.readiness import WaitEnd, reached, wait_until_ready
from redline.model import Ready, Route, Scenario, ServedTls, Tls, Variant
from redline.model.exchange import Request
from redline.ports import Endpoint
from redline.suite.project import ready_of
from redline.wording import advising
from tests.fakes.certificates import Certificate
from tests.fakes.checks import checked, unanswered
from tests.fakes.servers.entries import server

OK = b"HTTP/1.1 200 OK\r\n"
SOON = Ready(within_ns=20_000_000_000)


@contextmanager
def answering(*parts: bytes, keep_open: bool = False) -> Iterator[int]:
    """A listener that sends these parts to every client after its request, and then closes or waits."""
    over = threading.Event()

    def answer(connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):  # a client who no longer waits
            connection.recv(4096)
            for part in parts:
                connection.sendall(part)
            if keep_open:
                over.wait(60)

    def accept() -> None:
        while not over.is_set():
            try:
                connection = listener.accept()[0]
            except TimeoutError:
                continue
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.1)
        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            over.set()
            thread.join()


def lives(pause: float) -> bool:
    """A server that continues."""
    time.sleep(pause)
    return True


def waited(
    port: int,
    ready: Ready = SOON,
    alive: Callable[[float], bool] = lives,
    variant: Variant | None = None,
    *,
    any_status: bool = False,
) -> WaitEnd:
    """The end of a wait that begins now."""
    endpoint, since_ns = Endpoint("127.0.0.1", port), time.monotonic_ns()
    return wait_until_ready(
        find_engine(), variant or server(), endpoint, ready, alive=alive, since_ns=since_ns, any_status=any_status
    )


@pytest.mark.parametrize(
    ("parts", "keep_open"),
    [
        ((OK + b"\r\n",), False),
        ((OK + b"content-LENGTH: 3\r\n\r\nabc",), True),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",), True),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n",), True),
        ((b"H", b"TTP/1", b".1 200 X\r\nContent-Length: 0\r", b"\n\r\n"), True),
        ((b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", OK + b"Content-Length: 0\r\n\r\n"), True),
        ((b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + OK + b"Content-Length: 0\r\n\r\n",), True),
        ((OK + b"X: y\r\n" * 127 + b"Content-Length: 0\r\n\r\n",), True),
    ],
)
def test_a_whole_answer_is_waited_for(parts: tuple[bytes, ...], keep_open: bool) -> None:
    with answering(*parts, keep_open=keep_open) as port:
        assert waited(port).ended == "ready"


@pytest.mark.parametrize(
    ("status", "head"), [(204, b"204 No Content"), (304, b"304 Not Modified\r\nContent-Length: 9")]
)
def test_an_answer_without_a_body_ends_with_its_head(status: int, head: bytes) -> None:
    with answering(b"HTTP/1.1 " + head + b"\r\n\r\n", keep_open=True) as port:
        assert waited(port, SOON.model_copy(update={"status": status})).ended == "ready"


@pytest.mark.parametrize(
    ("parts", "keep_open", "seen"),
    [
        ((OK + b"Content-Length: 3\r\n\r\nab",), True, "timeout: "),
        ((OK,), True, "timeout: "),
        ((), True, "timeout: "),
        ((), False, "closed: "),
        ((b"SSH-2.0-OpenSSH\r\n",), True, "malformed: "),
        ((b"HTTP/2.0 200 OK\r\n\r\n",), False, "malformed: "),
        ((OK + b"Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n",), True, "malformed: "),
        ((OK + b"X: y\r\n" * 128 + b"Content-Length: 0\r\n\r\n",), True, "malformed: "),
        ((b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n",), True, 503),
    ],
)
def test_what_is_reported_of_other_answers(parts: tuple[bytes, ...], keep_open: bool, seen: str | int) -> None:
    with answering(*parts, keep_open=keep_open) as port:
        end = waited(port, Ready(within_ns=600_000_000))
    assert end.ended == "late"
    if isinstance(seen, int):
        assert end.last_answer == seen
    else:
        assert str(end.last_answer).startswith(seen)


@pytest.mark.parametrize(
    ("status", "ended", "within_ms"), [(404, "ready", 5000), (302, "ready", 5000), (503, "late", 600)]
)
def test_any_status_that_stays_may_be_enough(
    status: int, ended: str, within_ms: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readiness, "_SETTLED_NS", 150_000_000)
    with answering(b"HTTP/1.1 %d Other\r\nContent-Length: 0\r\n\r\n" % status, keep_open=True) as port:
        end = waited(port, Ready(within_ns=within_ms * 10**6), any_status=True)
        of_ready = waited(port, Ready(within_ns=within_ms * 10**6, any_status=True))
    assert (end.ended, end.last_answer) == (ended, status)
    assert (of_ready.ended, of_ready.last_answer) == (ended, status)


def test_a_server_may_lack_the_first_of_several_requests() -> None:
    new, old = Request(path="/new"), Request(path="/")
    alone, mixed = Scenario(name="new", request=new), Scenario(name="mix", request=new, others=(old,))
    for several in ((mixed,), (alone, Scenario(name="old", request=old))):
        assert (ready_of(several).path, ready_of(several).any_status) == ("/new", True)
    assert not ready_of((alone,)).any_status


def test_nothing_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        end = waited(free.getsockname()[1], alive=lambda _pause: False)
    assert (end.ended, end.last_answer) == ("died", "nothing listened")


def test_a_server_that_wants_a_header_gets_it() -> None:
    """Other requests get 401, as readiness without the request's headers would for ever."""

    def answer(connection: socket.socket) -> None:
        with connection:
            status = b"200 OK" if b"\r\nAuthorization: Bearer key\r\n" in connection.recv(65536) else b"401 Who"
            connection.sendall(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")

    request = Request(path="/", headers={"Authorization": "Bearer {pick:keys}"})
    ready = ready_of((Scenario(name="check", request=request, picks={"keys": ("key", "other")}),))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: answer(listener.accept()[0]), daemon=True).start()
        assert waited(listener.getsockname()[1], ready).ended == "ready"


def test_a_request_with_a_body_is_asked_for_by_a_get_with_its_other_headers() -> None:
    headers = {"Authorization": "x", "Content-Type": "application/json"}
    asked = ready_of((Scenario(name="check", request=Request(method="POST", path="/orders", headers=headers)),))
    assert (asked.path, asked.status, asked.headers) == ("/", 200, {"Authorization": "x"})


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    return Certificate(tmp_path_factory.mktemp("certificate"))


def test_over_tls_any_certificate_will_do(certificate: Certificate) -> None:
    def answer(plain: socket.socket) -> None:
        with certificate.context().wrap_socket(plain, server_side=True) as connection:
            connection.recv(65536)
            connection.sendall(OK + b"Content-Length: 0\r\n\r\n")

    variant = server().model_copy(update={"tls": Tls(server_name="other.example")})
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=lambda: answer(listener.accept()[0]), daemon=True).start()
        assert waited(listener.getsockname()[1], variant=variant).ended == "ready"


def test_a_server_is_asked_over_the_leg_that_it_serves() -> None:
    direct = server().model_copy(update={"http": "2", "tls": Tls(server_name="a.example", versions=("1.3",))})
    assert reached(direct) == direct.model_copy(
        update={"tls": direct.tls and direct.tls.model_copy(update={"insecure": True})}
    )
    entry = direct.catalogued.model_copy(update={"tls": ServedTls(server_name="own.example")})
    route = Route(name="some", legs=("h1", "h2+tls"), hops=(server(),))
    behind = reached(server().model_copy(update={"entry": entry, "route": route}))
    assert (behind.http, behind.tls) == ("2", Tls(insecure=True, server_name="own.example"))


def test_a_request_cut_short_by_the_time_limit_hides_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = Ready(within_ns=500_000_000)
    deadline_ns = time.monotonic_ns() + ready.within_ns

    def ask(_checks: CheckProcess, _check: object) -> Checked:
        if time.monotonic_ns() < deadline_ns - 20_000_000:
            return checked(status=404)
        time.sleep(max(0.0, (deadline_ns - time.monotonic_ns()) / 1e9) + 0.001)
        return unanswered("timeout", "no answer within 4 ms")

    monkeypatch.setattr(CheckProcess, "ask", ask)
    end = wait_until_ready(
        Path("/bin/cat"),
        server(),
        Endpoint("127.0.0.1", 1),
        ready,
        alive=lambda _pause: True,
        since_ns=deadline_ns - ready.within_ns,
    )
    assert (end.ended, end.last_answer) == ("late", 404)


def test_a_right_answer_that_came_too_late_is_not_called_a_wrong_status() -> None:
    order = LaunchOrder(
        command=("shop",), folder=Path(), env={}, cpus=(), log=Path("none"), grace_ns=0, cgroup_parent=None
    )
    late = FailedStart("shop", "127.0.0.1", 8080, order, OF_COMMAND).not_ready(Ready(path="/up"), 200, "")
    assert "shop was not ready within 10 s: its answer to GET /up on port 8080 was right, but later" in late.message
    assert "raise `ready.within` in redline.yaml" in late.hint


@pytest.mark.parametrize(
    ("saw", "where", "answered", "may_be_slow"),
    [
        (200, "", None, True),
        (503, "", 503, False),
        ("connect: connection refused", "", None, True),
        ("connect: connection refused", "shop listens on port 9", None, False),
        ("malformed: no HTTP", "", None, False),
    ],
)
def test_an_error_holds_what_was_seen(saw: int | str, where: str, answered: int | None, may_be_slow: bool) -> None:
    order = LaunchOrder(
        command=("shop",), folder=Path(), env={}, cpus=(), log=Path("none"), grace_ns=0, cgroup_parent=None
    )
    error = FailedStart("shop", "127.0.0.1", 8080, order, OF_COMMAND).not_ready(Ready(path="/up"), saw, where)
    assert (error.answered, error.may_be_slow) == (answered, may_be_slow)


def test_advice_is_that_of_the_place_where_a_server_is_started() -> None:
    order = LaunchOrder(
        command=("shop",), folder=Path(), env={}, cpus=(), log=Path("none"), grace_ns=0, cgroup_parent=None
    )
    failed = FailedStart("shop", "127.0.0.1", 8080, order, OF_COMMAND)
    with advising({"longer": "give its URL", "request": "name another path", "mend": "build it with --build"}):
        assert failed.not_ready(Ready(path="/up"), 200, "").hint == "if it needs longer, give its URL"
        assert failed.not_ready(Ready(path="/up"), 404, "").hint == "fix the server, or name another path"
