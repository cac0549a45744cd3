"""Every petstore server, and every proxy in front of one, on each protocol: the contract in catalogue/README.md."""

import json
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.model import Cell, Expected
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.ports import Endpoint, Placement, Upstream
from redline.suite import Overrides, load_catalogue, make_plan
from redline.suite.validate.resolve import read_suite
from tests.e2e.workshop import CATALOGUE, CEILING, ENTRIES, Workshop, check_built, routed

pytestmark = [pytest.mark.e2e, pytest.mark.long]  # all of them are built, and what some need is downloaded

PLAIN = str.maketrans("+.", "--")
PROXIED = "axum.petstore"
LOAD = {"closed": {"users": 1}, "for": "1s"}
PETSTORES = [
    entry
    for entry in ENTRIES.values()
    if entry.kind == "server" and entry.name != CEILING and "routes" not in entry.options
]
PROXIES = [entry for entry in ENTRIES.values() if entry.name.startswith("proxy.")]


def planned(servers: dict[str, list[str]], routes: dict[str, list[str]]) -> list[Cell]:
    """The cells of a suite with these servers, each on some of these routes."""
    items = [{"use": server, "route": names} for server, names in servers.items()]
    suite = {"servers": items, "routes": routes, "scenarios": ["Petstore"], "loads": {"one": LOAD}}
    plan = make_plan(read_suite(json.dumps(suite), "contract", load_catalogue(CATALOGUE), Overrides()))
    return list(plan.cells.values())


def named(cell: Cell) -> object:
    """As the parameter of a test."""
    return pytest.param(cell, id=cell.variant.slug, marks=[pytest.mark.jvm] if cell.variant.runtime == "jvm" else [])


def direct() -> list[Cell]:
    """Each petstore on each leg that it serves."""
    names = {entry.name: [leg.replace("+", "-") for leg in entry.serves] for entry in PETSTORES}
    return planned(names, {leg.replace("+", "-"): [leg] for entry in PETSTORES for leg in entry.serves})


def proxied() -> list[Cell]:
    """Each proxy on each leg that it serves in front of HTTP/1.1, and on each that it speaks behind HTTP/1.1."""
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
            connection.request("GET", "/v1/pets")
            assert (connection.getresponse().getheader("Content-Type") or "").startswith("application/json")
            connection.close()


@pytest.mark.parametrize("cell", [named(cell) for cell in proxied()])
def test_a_proxy_passes_the_pets_on_between_each_two_legs(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    with routed(workshop, cell.variant, tmp_path) as server:
        check(cell, server.endpoint)
        assert server.facts is not None
        (hop,) = server.facts.hops
        assert (hop.upstream_seen, hop.certificate) == (hop.upstream, "")


@pytest.mark.parametrize("cell", [named(cell) for cell in proxied() if cell.variant.serves == "h1+tls"])
def test_a_proxy_trusts_no_server_of_another_authority(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    check_built(workshop, cell.variant)
    launcher, (hop,), nowhere = workshop.launcher, cell.variant.hops, Placement()
    entry = hop.catalogued
    impatient = entry.model_copy(update={"ready": entry.ready.model_copy(update={"within_ns": 2_000_000_000})})
    with launcher.running(cell.variant, nowhere, tmp_path / "server.log") as server:
        endpoint = replace(
            server.endpoint,
            ca_pem=(CATALOGUE / "proxy" / "out" / entry.name.removeprefix("proxy.") / "ca.pem").read_text(),
        )
        upstream = Upstream(endpoint, "h1+tls", cell.variant.catalogued.ready)
        proxy = hop.model_copy(update={"entry": impatient})
        with (
            pytest.raises(LaunchError, match=r"50[23]"),
            launcher.in_front(proxy, upstream, nowhere, tmp_path / "proxy.log"),
        ):
            pass
