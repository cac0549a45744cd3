"""Servers that close each connection and have a short listen queue are loaded by as many users as they take at once."""

import json
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.driving.engine import EngineDriver
from redline.errors import DriveError
from redline.linux.sockets import shortest_queue
from redline.model import Cell, Closed, DuetRecording, Load
from redline.ports import Drive, DuetDrive, Endpoint, LoadOptions, Placement, RunningServer
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools
from tests.fakes.compared import compared_run, server
from tests.fakes.plugins import FakeDriver, FakeLauncher
from tests.fakes.recordings import STEADY

LOAD = Load(name="load", shape=Closed(users=64), duration_ns=10**9)


def start_taking(folder: Path, takes: dict[str, int | None], load: Load = LOAD) -> tuple[DuetRecording, list[int]]:
    """A start of A and B, which take so many users at once, and how many users loaded them."""
    run = compared_run(starts=1, load=load)
    driver = FakeDriver([])

    def takes_at_once(cell: Cell, _server: RunningServer) -> int | None:
        return takes[cell.variant.slug]

    tools = Tools(FakeLauncher([]), driver, lambda _server: (), Placement(), takes_at_once=takes_at_once)
    plan = run.manifest.plan
    start = DuetStart(plan.duets, plan.cells, logs=lambda _duet: folder)
    (made,) = run_start(start, tools)
    return made, [drive.drive.cell.load.connections for drive in driver.duets]


@pytest.mark.parametrize(
    ("takes", "users"),
    [
        ({"A": 6, "B": 6}, 6),
        ({"A": 129, "B": 6}, 6),
        ({"A": None, "B": 6}, 6),
        ({"A": None, "B": None}, None),
        ({"A": 64, "B": 128}, None),
    ],
)
def test_all_servers_get_the_users_that_each_takes_at_once(
    tmp_path: Path, takes: dict[str, int | None], users: int | None
) -> None:
    made, connections = start_taking(tmp_path, takes)
    assert made.failure is None
    assert made.users == users
    assert connections == [users or 64]


@pytest.mark.parametrize(
    "load", [STEADY, Load(name="paced", shape=Closed(users=64, pace_per_s=1.0), duration_ns=10**9)]
)
def test_a_load_whose_rate_is_set_is_not_changed(tmp_path: Path, load: Load) -> None:
    made, connections = start_taking(tmp_path, {"A": 6, "B": 6}, load)
    assert made.users is None
    assert connections == [load.connections]


def test_a_report_says_how_many_users_there_were() -> None:
    run = compared_run()
    duets = tuple(made.model_copy(update={"users": 6}) for made in run.duets)
    findings = build_report(run.model_copy(update={"duets": duets})).findings.values()
    (said,) = {found.message for of_cell in findings for found in of_cell if found.kind == "short-queue"}
    assert said.startswith("6 users loaded each server: connections are opened for each request")
    assert not any(found.kind == "short-queue" for of_cell in build_report(run).findings.values() for found in of_cell)


@pytest.mark.parametrize("backlog", [0, 5, 17])
def test_the_kernel_says_how_long_a_listen_queue_is(backlog: int) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=backlog) as listener:
        assert shortest_queue("127.0.0.1", listener.getsockname()[1]) == backlog + 1


def test_a_queue_counts_where_requests_open_connections_and_only_there() -> None:
    driver = EngineDriver(Path("redline-engine"))
    shape = LOAD.shape.model_copy(update={"requests_per_connection": 1})
    kept = Cell(
        variant=server("A"),
        scenario=compared_run().manifest.plan.suite.scenarios[0],
        load=LOAD,
        warmup_ns=1,
        timeout_ns=1,
    )
    opened = kept.under(LOAD.shaped(shape))
    with socket.create_server(("127.0.0.1", 0), backlog=5) as listener:
        at = Endpoint("127.0.0.1", listener.getsockname()[1])
        assert driver.takes_at_once(kept, at) is None
        assert driver.takes_at_once(opened, at) == 6
    assert driver.takes_at_once(opened, Endpoint("127.0.0.1", 1)) is None


@pytest.mark.parametrize(("backlog", "at_once"), [(5, 3), (0, 1), (62, 31), (63, None), (500, None)])
def test_connections_are_opened_as_a_listen_queue_takes_them(tmp_path: Path, backlog: int, at_once: int | None) -> None:
    """Others are dropped, and their users wait for seconds in the first slice."""
    asked = tmp_path / "job.json"
    engine = tmp_path / "engine"
    engine.write_text(f"#!/bin/sh\nhead -n 1 > {asked}\nexit 3\n")
    engine.chmod(0o755)
    with (
        socket.create_server(("127.0.0.1", 0), backlog=500) as long,
        socket.create_server(("127.0.0.1", 0), backlog=backlog) as short,
    ):
        first, second = (Endpoint("127.0.0.1", listener.getsockname()[1]) for listener in (long, short))
        cell = Cell(
            variant=server("A"),
            scenario=compared_run().manifest.plan.suite.scenarios[0],
            load=LOAD,
            warmup_ns=1,
            timeout_ns=1,
        )
        drive = Drive.of(LoadOptions(log=tmp_path / "log"), cell, first, seed=1, cpus=())
        duet = DuetDrive(drive, ((server("B"), second),), ((), ()), slice_ns=1, longest_slice_ns=1, guard_ns=0)
        with pytest.raises(DriveError):
            EngineDriver(engine).duet(duet)
        assert json.loads(asked.read_text()).get("connects_at_once") == at_once
        with pytest.raises(DriveError):
            EngineDriver(engine).drive(replace(drive, endpoint=second))
        assert json.loads(asked.read_text()).get("connects_at_once") == at_once
