"""A server that is already running is neither built, started nor stopped; only its address is known."""

import socket
from pathlib import Path

import pytest

from redline.errors import LaunchError
from redline.launching.attached import AttachedLauncher
from redline.model import AttachedServer, PlannedTrial, Variant
from redline.ports import Endpoint, Launch, LoadOptions, Placement
from redline.running.record import Tools, record_load
from tests.fakes.plugins import FakeDriver, FakeMonitor
from tests.fakes.recordings import simulated_cell


def attached(port: int) -> Variant:
    return Variant(entry=AttachedServer(host="127.0.0.1", port=port))


def test_it_is_there_until_nothing_listens_any_more() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with AttachedLauncher().running(Launch(attached(port), Placement(), Path("unused"))) as server:
        assert server.endpoint == Endpoint("127.0.0.1", port)
        assert server.facts is None
        assert server.death() is None
        listener.close()
        death = server.death()
    assert death is not None
    assert (death.kind, f"127.0.0.1:{port}: connection refused" in death.message) == ("died", True)


def test_nothing_is_built_and_no_server_of_the_catalogue_is_taken() -> None:
    launcher = AttachedLauncher()
    assert launcher.build((attached(80),), lambda _building: None).hashes == {"127.0.0.1:80": ""}
    variant = simulated_cell().variant
    with pytest.raises(LaunchError, match=variant.slug), launcher.running(Launch(variant, Placement(), Path("unused"))):
        pass


def test_a_load_on_it_is_recorded_without_a_server(tmp_path: Path) -> None:
    events: list[str] = []
    cell = simulated_cell().model_copy(update={"variant": attached(1)})
    tools = Tools(AttachedLauncher(), FakeDriver(events), lambda _server: (FakeMonitor(events),), Placement())
    planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=3)
    with tools.launcher.running(Launch(cell.variant, tools.placement, tmp_path / "log")) as server:
        recording = record_load(cell, planned, server, tools, LoadOptions(log=tmp_path / "log"))
    assert events == ["drive", "follow engine 99", "finish"]
    assert recording.server is None
    assert recording.traffic is not None
    assert (recording.cell_id, recording.seed) == (cell.id, 3)


def test_its_plan_can_be_stored_and_read() -> None:
    variant = attached(8080)
    assert Variant.model_validate_json(variant.model_dump_json()) == variant
    assert variant.slug == "127.0.0.1:8080"
    with pytest.raises(TypeError, match="already running"):
        _ = variant.catalogued
