"""Journeys by every way to a server: what the engine says of users and steps, and what the oracle behind it counted."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from bench.rig import Oracle, engine_binary, null_variant, running
from redline.driving.engine import EngineDriver
from redline.model import Cell, Closed, DuetTraffic, Load, Open, Scenario, Tls, Traffic
from redline.model.catalogue import ClientCertificate, HttpVersion, sha256_of
from redline.model.way import Access, AccessPoint, Proxy
from redline.ports import Drive, DuetDrive, Endpoint
from tests.e2e.test_journey_counts import MS, STEPS, VERSIONS, scenario
from tests.fakes.certificates import Authority, Issued
from tests.fakes.proxies import FakeProxy, proxy
from tests.fakes.targets import unused_port

pytestmark = pytest.mark.e2e

USERS, JOURNEYS = 4, 30
CLOSED = Load(name="closed", shape=Closed(users=USERS), duration_ns=20_000 * MS, count=JOURNEYS)
OPEN = Load(
    name="open", shape=Open(rate_per_s=100, arrivals="uniform", connections=USERS), duration_ns=JOURNEYS * 10 * MS
)
HAPROXY = """\
defaults
  mode http
  timeout client 30s
  timeout server 30s
  timeout connect 5s
frontend all
  bind 127.0.0.1:{tls} ssl crt {both} alpn h2,http/1.1
  bind 127.0.0.1:{mutual} ssl crt {both} alpn h2,http/1.1 verify required ca-file {ca}
  bind unix@{socket}
  default_backend oracle
backend oracle
  server oracle 127.0.0.1:{oracle}
"""


@dataclass
class Front:
    """HAProxy in front of an oracle, and a proxy that opens tunnels to both."""

    folder: Path
    authority: Authority
    server: Issued
    client: Issued
    between: FakeProxy
    tls: int
    mutual: int

    @property
    def socket(self) -> Path:
        return self.folder / "app.sock"

    @contextmanager
    def of(self, oracle: Oracle) -> Iterator[None]:
        if shutil.which("haproxy") is None:
            pytest.skip("haproxy is not installed")
        config = self.folder / "haproxy.cfg"
        ports = {"tls": self.tls, "mutual": self.mutual, "oracle": oracle.endpoint.port}
        config.write_text(HAPROXY.format(**ports, both=self.server.both, ca=self.authority.file, socket=self.socket))
        with subprocess.Popen(["haproxy", "-db", "-f", config], stderr=subprocess.PIPE, text=True) as server:
            try:
                deadline = time.monotonic() + 30
                while not self.socket.exists() and time.monotonic() < deadline:
                    assert server.poll() is None, server.communicate()[1]
                    time.sleep(0.02)
                yield
            finally:
                server.kill()
                self.socket.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    folder = tmp_path_factory.mktemp("front")
    authority = Authority(folder)
    with proxy() as between:
        issued = authority.issue("server"), authority.issue("client")
        yield Front(folder, authority, *issued, between, unused_port(), unused_port())


def way(name: str, front: Front, oracle: Oracle) -> tuple[Endpoint, Tls | None]:
    """The server's address, and how it is reached."""
    trusting = Tls(ca_pem=front.authority.file.read_text())
    text = front.client.certificate.read_text()
    certificate = ClientCertificate(
        file=str(front.client.certificate),
        key_file=str(front.client.key),
        sha256=sha256_of(text),
    )
    between = Access(proxy=Proxy(host="127.0.0.1", port=front.between.port))
    other = Access(connect=(AccessPoint(host="127.0.0.1", port=oracle.endpoint.port),))
    ways: dict[str, tuple[Endpoint, Tls | None]] = {
        "TLS": (Endpoint("localhost", front.tls), trusting),
        "any certificate": (Endpoint("127.0.0.1", front.tls), Tls(insecure=True)),
        "certificate of the client": (
            Endpoint("localhost", front.mutual),
            trusting.model_copy(update={"cert": certificate}),
        ),
        "Unix socket": (Endpoint("shop", 80, way=Access(connect=(AccessPoint(socket=str(front.socket)),))), None),
        "proxy and TLS": (Endpoint("localhost", front.tls, way=between), trusting),
        "proxy": (replace(oracle.endpoint, way=between), None),
        "another address": (Endpoint("shop", 80, way=other), None),
        "sources": (replace(oracle.endpoint, way=Access(sources=("127.0.0.2", "127.0.0.3"))), None),
    }
    return ways[name]


WAYS = (
    "TLS",
    "any certificate",
    "certificate of the client",
    "Unix socket",
    "proxy and TLS",
    "proxy",
    "another address",
    "sources",
)


def drive_of(asked: Scenario, load: Load, http: HttpVersion, at: Endpoint, tls: Tls | None, folder: Path) -> Drive:
    variant = null_variant().model_copy(update={"http": http, "tls": tls})
    cell = Cell(variant=variant, scenario=asked, load=load, warmup_ns=0, timeout_ns=10_000 * MS)
    return Drive(cell=cell, endpoint=at, seed=1, cpus=(), workers=2, pids=(), log=folder / "engine.log")


@pytest.mark.parametrize(
    ("name", "load", "http"),
    [
        *((name, CLOSED, http) for name in WAYS for http in VERSIONS),
        *((name, OPEN, VERSIONS[at % 2]) for at, name in enumerate(WAYS)),
    ],
    ids=lambda value: value.name if isinstance(value, Load) else value,
)
def test_journeys_take_every_way(
    oracle: Path, tmp_path: Path, front: Front, name: str, load: Load, http: HttpVersion
) -> None:
    with running(oracle, "null", "--sessions", "--report") as server, front.of(server):
        at, tls = way(name, front, server)
        drive = drive_of(scenario(tmp_path), load, http, at, tls, tmp_path)
        assert EngineDriver(engine_binary()).verify(drive.cell, at) is None
        traffic: Traffic = EngineDriver(engine_binary()).drive(drive)
    made, seen = traffic.journeys, server.seen
    assert made is not None
    assert seen is not None
    # The last journeys of an open load are under way when it ends.
    assert made.due == made.completed + made.unfinished == JOURNEYS
    assert made.completed > 0
    counts, of_check = traffic.counts, 1 + len(STEPS)
    assert seen.requests == counts.sent + counts.retried + counts.resent + USERS + of_check
    assert seen.statuses == {"200": seen.requests}
    if load.name == "closed":
        assert made.completed == JOURNEYS
        assert seen.targets == {"login": USERS + 1} | dict.fromkeys(STEPS, JOURNEYS + 1)
    assert {*seen.users} == {f"user{number}" for number in range(USERS)}
    assert (traffic.tls is None) == (tls is None)
    assert traffic.tls is None or traffic.tls.alpn == ("h2" if http == "2" else "http/1.1")


@pytest.mark.parametrize(("name", "http"), [("TLS", "1.1"), ("TLS", "2"), ("Unix socket", "1.1"), ("proxy", "2")])
def test_journeys_of_a_duet_take_every_way(
    oracle: Path, tmp_path: Path, front: Front, name: str, http: HttpVersion
) -> None:
    with running(oracle, "null", "--sessions", "--report") as server, front.of(server):
        at, tls = way(name, front, server)
        load = Load(name="closed", shape=Closed(users=USERS), duration_ns=300 * MS)
        drive = drive_of(scenario(tmp_path), load, http, at, tls, tmp_path)
        given = DuetDrive(
            replace(drive, workers=1),
            ((drive.cell.variant, at),),
            ((), ()),
            slice_ns=20 * MS,
            longest_slice_ns=200 * MS,
            guard_ns=2 * MS,
        )
        traffic: DuetTraffic = EngineDriver(engine_binary()).duet(given)
    seen = server.seen
    assert seen is not None
    assert all(target.counts.outcomes.errors == 0 for target in traffic.targets)
    assert all(target.journeys and target.journeys.completed for target in traffic.targets)
    # Each target logs all users in. Steps of a slice's guard are in no count of the engine.
    assert seen.targets.pop("login") == 2 * USERS
    assert sum(seen.targets.values()) >= sum(target.counts.outcomes.ok for target in traffic.targets)
    assert seen.statuses == {"200": seen.requests}
