"""Every petstore server, and every proxy in front of one, on each protocol: the contract in catalogue/README.md."""

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from redline.model import Cell, Expected
from redline.plugins.drivers.engine import EngineDriver, find_engine
from redline.suite import Overrides, load_catalogue, make_plan
from redline.suite.validate.resolve import read_suite
from tests.e2e.workshop import CATALOGUE, CEILING, ENTRIES, Workshop, started

pytestmark = [pytest.mark.e2e, pytest.mark.long]  # all of them are built, and what some need is downloaded

SERVERS = [
    entry
    for entry in ENTRIES.values()
    if entry.kind == "server" and entry.name != CEILING and "routes" not in entry.options
]


def cells() -> list[Cell]:
    """One for each server and each leg that it serves, planned as a suite's are."""
    routes = {leg.replace("+", "-"): [leg] for entry in SERVERS for leg in entry.serves}
    servers = [{"use": entry.name, "route": [leg.replace("+", "-") for leg in entry.serves]} for entry in SERVERS]
    load = {"closed": {"users": 1}, "for": "1s"}
    suite = {"servers": servers, "routes": routes, "scenarios": ["Petstore"], "loads": {"one": load}}
    return list(
        make_plan(read_suite(json.dumps(suite), "contract", load_catalogue(CATALOGUE), Overrides())).cells.values()
    )


def marked(cell: Cell) -> object:
    jvm = [pytest.mark.jvm] if cell.variant.runtime == "jvm" else []
    return pytest.param(cell, id=cell.variant.slug, marks=jvm)


@pytest.mark.parametrize("cell", [marked(cell) for cell in cells()])
def test_the_pets_are_served_and_nothing_else(workshop: Workshop, tmp_path: Path, cell: Cell) -> None:
    elsewhere = cell.scenario.request.model_copy(update={"path": "/v1/nothing", "expect": Expected(status=404)})
    not_found = cell.model_copy(update={"scenario": cell.scenario.model_copy(update={"request": elsewhere})})
    driver = EngineDriver(find_engine())
    with started(workshop, cell.variant, tmp_path) as server:
        assert driver.verify(cell, server.endpoint) is None
        assert driver.verify(not_found, server.endpoint) is None
        if cell.variant.http == "1.1" and cell.variant.tls is None:
            connection = HTTPConnection(server.endpoint.host, server.endpoint.port, timeout=20)
            connection.request("GET", "/v1/pets")
            answer = connection.getresponse()
            assert (answer.getheader("Content-Type") or "").startswith("application/json")
            connection.close()
