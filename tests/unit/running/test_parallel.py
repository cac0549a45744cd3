"""Parallel duets: their cores, the engine's job, and what is refused, reported and stored."""

import dataclasses
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from redline.cli import experiment
from redline.cli.command_line import CheckFlags, RunFlags
from redline.cli.commands import check, run
from redline.driving.protocol import duet_job
from redline.errors import UsageError
from redline.model import DuetRecording, ServerFacts
from redline.ports import Placement
from redline.running.duet import DuetStart, run_start
from redline.running.parallel import check_cores, sides
from redline.running.record import Tools
from redline.suite import draw_places, expected_length_ns, with_rounds
from redline.watching.machine import place
from tests.fakes.plugins import FACTS, FakeDriver, FakeLauncher, FakeServer
from tests.unit.running.test_duet import TEXT, plan_of

PARALLEL = TEXT.replace("design: duet", "design: parallel-duet")
SERVERS = 4
"""The servers of a round's only duet: the baseline twice, and the server compared with it."""


def cores(number: int) -> tuple[tuple[int, ...], ...]:
    """Physical cores of two threads each, numbered as Linux often does."""
    return tuple((cpu, cpu + number) for cpu in range(number))


@pytest.mark.parametrize("servers", [3, 4, 5])
def test_each_server_has_each_set_of_cores_equally_often(servers: int) -> None:
    starts = [draw_places(7, "ab", number, servers) for number in range(40 * servers)]
    assert all(sorted(places) == list(range(servers)) for places in starts)
    for server in range(servers):
        assert [sum(places[server] == place for places in starts) for place in range(servers)] == [40] * servers
    # The neighbours are drawn too, and every seed draws differently.
    assert len(set(starts)) > servers
    assert starts != [draw_places(8, "ab", number, servers) for number in range(40 * servers)]
    assert starts[5] == draw_places(7, "ab", 5, servers)


@pytest.mark.parametrize(("number", "each"), [(7, (1, 1)), (9, (1, 1)), (10, (2, 1)), (16, (3, 2))])
def test_sides_are_disjoint_and_alike(number: int, each: tuple[int, int]) -> None:
    found = sides(cores(number), 3)
    used = [cpu for side in found for cpu in (*side.server_cpus, *side.engine_cpus)]
    assert len(used) == len(set(used))
    assert {(len(side.server_cpus), len(side.engine_cpus)) for side in found} == {(2 * each[0], 2 * each[1])}
    assert {side.lab_cpus for side in found} == {(0, number)}
    assert not {0, number} & set(used)


def test_too_few_cores_are_refused_with_the_numbers(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"of 3 servers needs 7 cores.*this machine has 6"):
        sides(cores(6), 3)
    plan = plan_of(tmp_path, PARALLEL)
    with pytest.raises(UsageError, match=r"of 4 servers needs 9 cores.*this machine has 2"):
        check_cores(plan, cores(2))
    check_cores(plan, cores(9))
    check_cores(plan_of(tmp_path), cores(2))


@pytest.mark.parametrize(
    ("module", "flags"),
    [(check, CheckFlags(suite=Path("mine.yaml"))), (run, RunFlags(suite=Path("mine.yaml"), output=Path("out")))],
)
def test_check_and_run_refuse_before_anything_is_started(
    module: ModuleType, flags: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = plan_of(tmp_path, PARALLEL).suite
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").touch()
    monkeypatch.setattr(check if module is check else experiment, "plan_placement", lambda: Placement(cores=cores(2)))
    monkeypatch.setattr(module, "read_suite_file", lambda *_: (suite, PARALLEL))
    with pytest.raises(UsageError, match="needs 9 cores"):
        module.execute(flags)


def test_a_plan_says_where_servers_run_and_takes_as_long_as_in_turn(tmp_path: Path) -> None:
    plan, in_turn = plan_of(tmp_path, PARALLEL), plan_of(tmp_path)
    assert [sorted(duet.places) for duet in plan.duets] == [list(range(SERVERS))] * 3
    assert with_rounds(plan, 6) == plan_of(tmp_path, PARALLEL.replace("trials: 3", "trials: 6"))
    assert expected_length_ns(plan) == expected_length_ns(in_turn)
    assert [duet.model_copy(update={"places": ()}) for duet in plan.duets] == list(in_turn.duets)


def test_servers_and_their_loads_get_the_cores_of_their_places(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, PARALLEL)
    planned, launcher, driver = plan.duets[0], FakeLauncher([]), FakeDriver([])
    placement = dataclasses.replace(place(cores(13)), cores=cores(13))
    tools = Tools(launcher, driver, lambda _server: (), placement)
    (recording,) = run_start(DuetStart((planned,), plan.cells, logs=lambda _duet: tmp_path), tools)
    found = [sides(cores(13), SERVERS)[place] for place in planned.places]
    assert [launch.placement for launch in launcher.launches] == found
    (asked,) = driver.duets
    assert asked.drive.cpus == tuple(cpu for side in found for cpu in side.engine_cpus)
    assert asked.drive.workers * SERVERS == len(asked.drive.cpus)
    assert duet_job(asked)["duet"]["parallel"] is True
    assert recording.places == planned.places
    assert DuetRecording.model_validate_json(recording.model_dump_json()) == recording


@pytest.mark.parametrize("facts", [FACTS, None], ids=["started", "running already"])
@pytest.mark.parametrize("text", [TEXT, PARALLEL], ids=["in turn", "parallel"])
def test_a_server_that_is_its_own_control_shares_its_slices(
    tmp_path: Path, facts: ServerFacts | None, text: str
) -> None:
    plan, driver = plan_of(tmp_path, text), FakeDriver([])
    placement = dataclasses.replace(place(cores(13)), cores=cores(13))
    launcher = FakeLauncher([], FakeServer(facts=facts))
    start = DuetStart(plan.duets[:1], plan.cells, logs=lambda _duet: tmp_path)
    assert list(run_start(start, Tools(launcher, driver, lambda _server: (), placement)))
    shares = facts is None and text == TEXT
    assert duet_job(driver.duets[0])["duet"].get("last_is_first", False) is shares


def test_each_server_of_a_duet_is_warmed_up_by_the_load_of_the_suite(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, PARALLEL + "warmup_by: {users: 2}\nwarmup: 7s\n")
    planned, driver = plan.duets[0], FakeDriver([])
    cells = tuple(plan.cells[cell_id] for cell_id in planned.cell_ids)
    placement = dataclasses.replace(place(cores(13)), cores=cores(13))
    tools = Tools(FakeLauncher([]), driver, lambda _server: (), placement)
    assert len(list(run_start(DuetStart((planned,), plan.cells, logs=lambda _duet: tmp_path), tools))) == 1
    assert [drive.cell.variant.slug for drive in driver.drives] == [cell.variant.slug for cell in (*cells, cells[0])]
    warming = {(drive.cell.load.connections, drive.cell.load.duration_ns) for drive in driver.drives}
    assert warming == {(2, 7_000_000_000)}
    (asked,) = driver.duets
    assert (asked.drive.cell.load.name, asked.drive.cell.warmup_ns) == (cells[0].load.name, 7_000_000_000 * SERVERS)


def cpus(number: int, servers: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    placements = sides(tuple((cpu,) for cpu in range(number)), servers)
    return [(placement.server_cpus, placement.engine_cpus) for placement in placements]


def test_each_server_has_half_of_its_share_rounded_up() -> None:
    assert cpus(5, 2) == [((1,), (2,)), ((3,), (4,))]
    assert cpus(7, 2) == [((1, 2), (3,)), ((4, 5), (6,))]
    assert cpus(6, 2) == cpus(5, 2), "a remainder is left to the lab"
    assert cpus(3, 1) == [((1,), (2,))]
    with pytest.raises(UsageError, match="needs 5 cores"):
        cpus(4, 2)
