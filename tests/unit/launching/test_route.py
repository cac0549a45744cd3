"""Servers behind small real proxies: started from back to front, verified, watched and stopped."""

import contextlib
import socket
import ssl
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.launching.attached import RunningElsewhere
from redline.launching.process import ProcessLauncher
from redline.launching.route import RouteLauncher
from redline.launching.tap import offered_by, tapped
from redline.model import Leg, Route, ServedTls, Variant
from redline.ports import Endpoint, Launch, Placement, RunningServer
from tests.fakes.asking import request_status
from tests.fakes.certificates import write_certificate
from tests.fakes.servers.entries import alive, eventually, make_catalogue, server

FREE = Placement()
SCRIPT = Path(__file__).parents[2] / "fakes/servers/proxy.py"
ORIGIN = SCRIPT.with_name("both_versions.py")


@pytest.fixture
def launcher(tmp_path: Path) -> RouteLauncher:
    return RouteLauncher(ProcessLauncher(make_catalogue(tmp_path / "catalogue"), tmp_path / "cache"))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "server.log"


def proxy(behaviour: str = "relay", *, within_ms: int = 20_000) -> Variant:
    command = (sys.executable, "-I", str(SCRIPT), "{port}", behaviour, "{upstream_host}", "{upstream_port}")
    made = server(command=(*command, "{upstream_ca}"), within_ms=within_ms)
    legs: tuple[Leg, ...] = ("h1", "h1+tls", "h2c", "h2+tls")
    changed = {"name": f"proxy.{behaviour}", "kind": "proxy", "protocols": legs[:1], "upstream": legs}
    return made.model_copy(update={"entry": made.catalogued.model_copy(update=changed)})


def behind(origin: Variant, *hops: Variant, last: Leg = "h1") -> Variant:
    plain: tuple[Leg, ...] = ("h1",)
    legs = (*plain * len(hops), last)
    return origin.model_copy(update={"route": Route(name="some", legs=legs, hops=hops)})


@contextlib.contextmanager
def running(launcher: RouteLauncher, variant: Variant, log: Path) -> Iterator[RunningServer]:
    outcome = launcher.build([variant], lambda _building: None)
    assert outcome.failures == {}
    with launcher.running(Launch(variant, FREE, log)) as started:
        yield started


def test_a_server_is_reached_through_its_hops(launcher: RouteLauncher, log: Path) -> None:
    origin, first, second = server(), proxy(), proxy()
    variant = behind(origin, first, second)
    with running(launcher, variant, log) as started:
        assert request_status("127.0.0.1", started.endpoint.port, "/", 5) == 200
        facts = started.facts
        assert facts is not None
        assert facts.pid in alive(origin)
        assert [hop.process.pid in alive(each) for hop, each in zip(facts.hops, (first, second), strict=True)] == [
            True
        ] * 2
        assert facts.pids == (facts.pid, *(hop.process.pid for hop in facts.hops))
        assert facts.hops[0].process.port == started.endpoint.port
        # Each knows the port of the next hop.
        assert facts.hops[0].process.command[-2] == str(facts.hops[1].process.port)
        assert facts.hops[1].process.command[-2] == str(facts.port)
        assert [(hop.upstream, hop.upstream_seen, hop.certificate) for hop in facts.hops] == [("h1", "h1", "")] * 2
        assert started.death() is None
    assert alive(origin) + alive(first) + alive(second) == []
    assert sorted(each.name for each in log.parent.iterdir()) == ["server-hop-1.log", "server-hop-2.log", "server.log"]


def test_what_is_behind_a_proxy_is_seen_once(
    launcher: RouteLauncher, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant, taps = behind(server(), proxy()), list[Endpoint]()

    def counted(endpoint: Endpoint) -> object:
        taps.append(endpoint)
        return tapped(endpoint)

    monkeypatch.setattr("redline.launching.tapped", counted)
    renamed = variant.model_copy(update={"route": variant.route and variant.route.model_copy(update={"name": "other"})})
    for each in (variant, renamed):
        with running(launcher, each, log) as started:
            assert started.facts is not None
            assert started.facts.hops[0].upstream_seen == "h1"
    assert len(taps) == 1
    with running(launcher, behind(h2c_origin(), variant.hops[0], last="h2c"), log):
        assert len(taps) == 2


def h2c_origin() -> Variant:
    """A server that answers in HTTP/1.1 and in HTTP/2."""
    made = server(command=(sys.executable, "-I", str(ORIGIN), "{port}"), within_ms=20_000)
    changed = {"http": ("1.1", "2"), "name": "fake.both"}
    return made.model_copy(update={"entry": made.catalogued.model_copy(update=changed)})


def test_a_proxy_that_speaks_another_protocol_than_the_route_says(launcher: RouteLauncher, log: Path) -> None:
    with running(launcher, behind(h2c_origin(), proxy(), last="h2c"), log) as started:
        assert started.facts is not None
        assert (started.facts.hops[0].upstream, started.facts.hops[0].upstream_seen) == ("h2c", "h1")


@pytest.mark.parametrize("dies", [0, 1])
def test_the_death_of_any_is_named(launcher: RouteLauncher, log: Path, dies: int) -> None:
    origin, hop = server("tires" if dies == 0 else "healthy"), proxy("frail" if dies else "relay")
    with running(launcher, behind(origin, hop), log) as started:
        for _ in range(400):
            if request_status("127.0.0.1", started.endpoint.port, "/", 5) != 200:
                break
        assert eventually(lambda: started.death() is not None)
        death = started.death()
    assert death is not None
    assert death.message.startswith(("fake.tires+via=some exited", "proxy.frail exited")[dies])
    assert ("out of patience", "too many connections")[dies] in death.message
    assert str(log.with_name(("server.log", "server-hop-1.log")[dies])) in death.hint


def test_a_proxy_that_does_not_pass_requests_on(launcher: RouteLauncher, log: Path) -> None:
    origin, hop = server(), proxy("stubborn", within_ms=3_000)
    with pytest.raises(LaunchError) as caught, running(launcher, behind(origin, hop), log):
        pass
    assert caught.value.kind == "not_ready"
    assert "proxy.stubborn answers GET / on port" in str(caught.value)
    assert "with status 502 in place of 200" in str(caught.value)
    assert alive(origin) + alive(hop) == []


def test_an_error_elsewhere_stays_as_it_is(launcher: RouteLauncher, log: Path) -> None:
    error = LaunchError("something else", hint="none", kind="not_ready")
    with pytest.raises(LaunchError) as caught, running(launcher, behind(server(), proxy()), log):
        raise error
    assert caught.value is error


def test_a_running_server_that_is_gone_is_named_before_a_proxy_starts(
    launcher: RouteLauncher, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = RunningElsewhere(Endpoint("127.0.0.1", 1))
    monkeypatch.setattr(ProcessLauncher, "running", lambda *_: contextlib.nullcontext(gone))
    started = launcher.running(Launch(behind(server(), proxy()), FREE, log))
    with pytest.raises(LaunchError, match=r"nothing listens at 127\.0\.0\.1:1: connection refused"), started:
        pass


def test_what_lacks_a_proxy_cannot_be_built(launcher: RouteLauncher) -> None:
    good = proxy()
    build = good.catalogued.catalogue_build.model_copy(update={"run": ("false",)})
    bad = good.model_copy(update={"entry": good.catalogued.model_copy(update={"build": build, "name": "proxy.bad"})})
    variant, alone = behind(server(), bad), server()
    outcome = launcher.build([variant, alone], lambda _building: None)
    assert set(outcome.failures) == {variant.slug, "proxy.bad"}
    assert set(outcome.hashes) == {alone.slug}


def tls_origin(folder: Path, *, name: str = "localhost", days: int = 2, server_name: str = "localhost") -> Variant:
    """A server over TLS whose certificate is for a name and this many days."""
    folder.mkdir()
    (folder / "source.txt").write_text("what it is built of")
    write_certificate(folder, name=name, days=days)
    certificate, key = folder / "server.pem", folder / "server.key"
    made = server(command=(sys.executable, "-I", str(ORIGIN), "{port}", str(certificate), str(key)), within_ms=20_000)
    served = ServedTls(ca="ca.pem", server_name=server_name)
    changed = {"tls": served, "protocols": ("h1+tls", "h2+tls"), "http": ("1.1", "2"), "name": "fake.secure"}
    changed |= {"family_folder": str(folder)}
    return made.model_copy(update={"entry": made.catalogued.model_copy(update=changed)})


@pytest.mark.parametrize(
    ("behaviour", "leg", "seen"),
    [("tls", "h1+tls", "h1+tls"), ("tls", "h2+tls", "h1+tls"), ("tls-h2", "h2+tls", "h2+tls")],
)
def test_the_protocol_over_tls_is_seen(
    launcher: RouteLauncher, log: Path, tmp_path: Path, behaviour: str, leg: Leg, seen: Leg
) -> None:
    variant = behind(tls_origin(tmp_path / "tls"), proxy(behaviour), last=leg)
    with running(launcher, variant, log) as started:
        assert started.facts is not None
        assert (started.facts.hops[0].upstream_seen, started.facts.hops[0].certificate) == (seen, "")


def test_a_proxy_that_checks_gets_the_authority(launcher: RouteLauncher, log: Path, tmp_path: Path) -> None:
    with running(launcher, behind(tls_origin(tmp_path / "tls"), proxy("strict"), last="h1+tls"), log) as started:
        assert request_status("127.0.0.1", started.endpoint.port, "/", 5) == 200


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"name": "elsewhere.example"}, "elsewhere.example"), ({"days": -1}, "expired")],
)
def test_a_certificate_that_is_not_valid_behind_a_proxy(
    launcher: RouteLauncher, log: Path, tmp_path: Path, changes: dict[str, int | str], why: str
) -> None:
    """A proxy that checks it is not ready, and the reason is named; a proxy that does not is watched, and noted."""
    origin = tls_origin(tmp_path / "tls", **changes)  # type: ignore[arg-type]
    strict = behind(origin, proxy("strict", within_ms=3_000), last="h1+tls")
    with pytest.raises(LaunchError) as caught, running(launcher, strict, log):
        pass
    assert "with status 502 in place of 200" in str(caught.value)
    _, _, reason = str(caught.value).partition("the certificate of fake.secure is not valid: ")
    assert why in reason
    with running(launcher, behind(origin, proxy("tls"), last="h1+tls"), log) as started:
        assert started.facts is not None
        assert why in started.facts.hops[0].certificate


def hello(*alpn: str) -> bytes:
    """The ClientHello of a client that offers these protocols."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    if alpn:
        context.set_alpn_protocols(alpn)
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="localhost").do_handshake()
    return outgoing.read()


def test_what_a_client_offers_is_read() -> None:
    assert offered_by(hello("h2", "http/1.1")) == ("h2", "http/1.1")
    assert offered_by(hello()) == ()
    assert offered_by(hello("h2")[:60]) is None
    assert offered_by(b"") is None


@pytest.mark.parametrize(
    ("sends", "answers", "seen"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", "h1"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"", "h2c"),
        (b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n", "h2c"),
        (b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", "h1"),
        (b"\x00\x01", b"", None),
        (b"", b"", None),
    ],
)
def test_what_passes_a_tap_is_recognized(sends: bytes, answers: bytes, seen: Leg | None) -> None:
    def answer(listener: socket.socket) -> None:
        with listener.accept()[0] as connection:
            if sends:
                connection.recv(65536)
            connection.sendall(answers)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=answer, args=(listener,))
        thread.start()
        with tapped(Endpoint("127.0.0.1", listener.getsockname()[1])) as tap:
            with socket.create_connection(("127.0.0.1", tap.endpoint.port), 5) as client:
                client.sendall(sends)
                received = b""
                while more := client.recv(65536):
                    received += more
            assert received == answers
            assert tap.leg() == seen
        thread.join()


def test_a_tap_without_a_server_ends_its_connections() -> None:
    with (
        tapped(Endpoint("127.0.0.1", 1)) as tap,
        socket.create_connection(("127.0.0.1", tap.endpoint.port), 5) as client,
    ):
        assert client.recv(1) == b""


def test_a_tap_that_nothing_passes_knows_nothing() -> None:
    with tapped(Endpoint("127.0.0.1", 1)) as tap:
        assert tap.leg() is None
