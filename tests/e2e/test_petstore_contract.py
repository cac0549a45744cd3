"""Every petstore server, and every proxy in front of a server, in every protocol: catalogue/README.md's contract."""

import json
import time
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import find_engine
from redline.errors import LaunchError
from redline.model import Cell, Expected
from redline.ports import Endpoint, Launch, Placement, Upstream
from redline.suite import Overrides, load_catalogue, make_plan
from redline.suite.validate.resolve import read_suite
from tests.e2e.workshop import CATALOGUE, CEILING, Workshop, check_built, entries, routed, started

pytestmark = [pytest.mark.e2e, pytest.mark.long]  # all of them are built, and the downloads of some are large

PLAIN = str.maketrans("+.", "--")
PROXIED = "axum.petstore"
LOAD = {"closed": {"users": 1}, "for": "1s"}
PETSTORES = [
    entry
    for entry in entries().values()
    if entry.kind == "server" and entry.name != CEILING and not {"routes", "mode", "gap"} & entry.options.keys()
]
SPOKEN = {("proxy.light-proxy", "h2+tls"): "h1+tls"}
"""The protocol that a proxy really uses to the server, where its setting for HTTP/2 has no effect."""
SECURED = {"security", "to-security", "to-body", "to-audit", "to-sanitizer", "full"}
AUDITED = {"audit", "to-audit", "to-sanitizer", "full"}
REQUESTS = 20
KEPT = 120
"""More requests than Tomcat answers on a connection by default."""
PROXIES = [entry for entry in entries().values() if entry.name.startswith("proxy.")]


def planned(
    servers: dict[str, list[str]],
    routes: dict[str, list[str]],
    options: dict[str, object] | None = None,
    scenario: str = "Petstore",
) -> list[Cell]:
    """The cells of a suite with these servers, each with these options and on some of these routes."""
    items = [{"use": server, "route": names, "with": options or {}} for server, names in servers.items()]
    suite = {"servers": items, "routes": routes, "scenarios": [scenario], "loads": {"one": LOAD}}
    plan = make_plan(read_suite(json.dumps(suite), "contract", load_catalogue(CATALOGUE), Overrides()))
    return list(plan.cells.values())


def named(cell: Cell) -> object:
    """As the parameter of a test."""
    jvm = "jvm" in {each.runtime for each in (cell.variant, *cell.variant.hops)}
    return pytest.param(cell, id=cell.variant.slug, marks=[pytest.mark.jvm] if jvm else [])


def direct() -> list[Cell]:
    """Every petstore on every leg that it serves."""
    names = {entry.name: [leg.replace("+", "-") for leg in entry.serves] for entry in PETSTORES}
    return planned(names, {leg.replace("+", "-"): [leg] for entry in PETSTORES for leg in entry.serves})


def proxied() -> list[Cell]:
    """Every proxy on every leg that it serves in front of HTTP/1.1, and on every leg that it uses behind HTTP/1.1."""
    pairs = [(entry.name, leg, "h1") for entry in PROXIES for leg in entry.serves]
    pairs += [(entry.name, "h1", leg) for entry in PROXIES for leg in entry.upstream if leg != "h1"]
    routes = {f"{leg}-{proxy}-{behind}".translate(PLAIN): [leg, proxy, behind] for proxy, leg, behind in pairs}
    return planned({PROXIED: list(routes)}, routes)


def check(cell: Cell, endpoint: Endpoint) -> None:
    """The pets, and an unknown path."""
    elsewhere = cell.scenario.request.model_copy(update={"path": "/v1/nothing", "expect": Expected(status=404)})
    not_found = cell.model_copy(update={"scenario": cell.scenario.model_copy(update={"request": elsewhere})})
    driver = EngineDriver(find_engine())
    assert driver.verify(cell, endpoint) is None
    assert driver.verify(not_found, endpoint) is None


@pytest.mark.parametrize("cell", [named(cell) for cell in direct()])
def test_a_server_serves_the_pets_on_each_leg(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    with routed(workshop, cell.variant, tmp_path) as server:
        check(cell, server.endpoint)
        if cell.variant.serves == "h1":
            connection = HTTPConnection(server.endpoint.host, server.endpoint.port, timeout=20)
            sockets = set()
            for _ in range(KEPT):
                connection.request("GET", "/v1/pets")
                sockets.add(connection.sock)
                answer = connection.getresponse()
                assert (answer.getheader("Content-Type") or "").startswith("application/json")
                answer.read()
            connection.close()
            assert len(sockets) == 1, "it closes connections after some requests"


@pytest.mark.parametrize("cell", [named(cell) for cell in proxied()])
def test_a_proxy_passes_the_pets_on_between_each_two_legs(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    with routed(workshop, cell.variant, tmp_path) as server:
        check(cell, server.endpoint)
        assert server.facts is not None
        (hop,) = server.facts.hops
        expected = SPOKEN.get((hop.name, hop.upstream), hop.upstream)
        assert (hop.upstream_seen, hop.certificate) == (expected, "")


@pytest.mark.parametrize("cell", [named(cell) for cell in proxied() if cell.variant.serves == "h1+tls"])
def test_a_proxy_trusts_no_server_of_another_authority(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    check_built(workshop, cell.variant)
    launcher, (hop,), nowhere = workshop.launcher, cell.variant.hops, Placement()
    entry = hop.catalogued
    patience = entry.ready.model_copy(update={"within_ns": (20 if entry.runtime == "jvm" else 2) * 10**9})
    impatient = entry.model_copy(update={"ready": patience})
    own_authority = Path(entry.build_folder) / ((entry.tls and entry.tls.ca) or "")
    with launcher.running(Launch(cell.variant, nowhere, tmp_path / "server.log")) as server:
        endpoint = replace(server.endpoint, ca_pem=own_authority.read_text())
        upstream = Upstream(endpoint, "h1+tls", cell.variant.catalogued.ready)
        proxy = hop.model_copy(update={"entry": impatient})
        with (
            pytest.raises(LaunchError, match=r"50[23]"),
            launcher.running(Launch(proxy, nowhere, tmp_path / "proxy.log", upstream=upstream)),
        ):
            pass


def with_middleware() -> list[Cell]:
    """light-4j with every part of its chain, and its older version with the whole chain."""
    options = entries()["light-4j.petstore"].options["middleware"].values
    return planned({"light-4j.petstore": ["h1"]}, {"h1": ["h1"]}, {"middleware": list(options)}) + planned(
        {"light-4j.petstore-2-2": ["h1"]}, {"h1": ["h1"]}, {"middleware": "full"}
    )


def lines_of(file: Path, wanted: int) -> list[str]:
    """The lines of its log, once there are enough: light-4j writes them after it has answered."""
    deadline = time.monotonic() + 5
    while len(lines := file.read_text().splitlines()) < wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return lines


@pytest.mark.parametrize("cell", [named(cell) for cell in with_middleware()])
def test_middleware_passes_the_pets_and_security_refuses_without_a_token(
    workshop: Workshop, tmp_path: Path, cell: Cell
) -> None:
    request, chain = cell.scenario.request, cell.variant.options["middleware"]
    refused = request.model_copy(update={"headers": {}, "expect": Expected(status=401)})
    tokenless = cell.scenario.model_copy(update={"request": refused if chain in SECURED else request})
    driver = EngineDriver(find_engine())
    with started(workshop, cell.variant, tmp_path) as server:
        check(cell, server.endpoint)
        assert driver.verify(cell.model_copy(update={"scenario": tokenless}), server.endpoint) is None
        before = len(server.log.read_text().splitlines())
        for _ in range(REQUESTS):
            assert driver.verify(cell, server.endpoint) is None
        assert len(server.log.read_text().splitlines()) - before < REQUESTS, "something is logged for each request"
        wanted = REQUESTS + 1 if chain in AUDITED else 0
        audited = lines_of(server.scratch / "audit.log", wanted)
        assert (len(audited) > REQUESTS) == (chain in AUDITED)


def with_large_bodies() -> list[Cell]:
    """Requests with 5 MB through every proxy, from HTTP/1.1 and from HTTP/2."""
    pairs = [(leg, entry.name) for entry in PROXIES for leg in ("h1", "h2+tls")]
    routes = {f"{leg}-{proxy}".translate(PLAIN): [leg, proxy, "h1"] for leg, proxy in pairs}
    return planned({"rust.axum": list(routes)}, routes, scenario="PostLongBytes")


@pytest.mark.parametrize("cell", [named(cell) for cell in with_large_bodies()])
def test_a_proxy_passes_on_a_large_body(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    with routed(workshop, cell.variant, tmp_path) as server:
        assert EngineDriver(find_engine()).verify(cell, server.endpoint) is None
