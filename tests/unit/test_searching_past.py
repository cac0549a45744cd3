"""Once an answer stands, a cell is loaded past its edge and back; what goes wrong there takes nothing from it."""

from pathlib import Path

import pytest

from redline.model import Finding, FindingKind, Grade, Open
from redline.model.limits import Beyond
from redline.running.cell_search import CellSearch
from redline.running.recording_driver import WatchedDriver
from redline.search import Converged, Doomed, Search, Settings
from tests.fakes.plugins import DEATH
from tests.fakes.searched import CELL, Bench, bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path)


def past(bench: Bench) -> CellSearch:
    bench.made.past_the_edge = True
    return bench.made


def test_past_the_edge_is_looked_once_and_last(bench: Bench) -> None:
    made = past(bench)
    end = made.run()
    (limit,) = end.limits
    assert limit.high_per_s is not None
    last = bench.driver.drives[-1].cell.load
    assert isinstance(last.shape, Open)
    assert last.shape.stages
    assert last.shape.most_per_s > limit.high_per_s
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.course
    assert sum(bool(drive.cell.load.shape.stages) for drive in bench.driver.drives) == 1


def test_a_server_that_dies_past_the_edge_keeps_its_answer(bench: Bench) -> None:
    def kill(_number: int) -> None:
        staged = bool(bench.driver.drives[-1].cell.load.shape.stages)
        bench.server.dead = DEATH if staged else None

    bench.driver.on_drive = kill
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.recovery == "does not come back"
    assert "killed by SIGKILL" in made.beyond.reason


def test_a_load_past_the_edge_that_found_no_ports_says_nothing_of_the_server(bench: Bench) -> None:
    bench.driver.exhausted = True
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.goodput == made.beyond.recovery == "not known"
    assert "no port, descriptor or memory" in made.beyond.reason


def test_a_load_past_the_edge_whose_cores_the_host_took_says_nothing_of_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"message": "The host took 20% of it.", "advice": "Take another one.", "cell_id": CELL.id}
    taken = Finding(kind=FindingKind.CPU_STEAL, grade=Grade.WARN, **told)

    def findings(_self: WatchedDriver, _cell_id: str, _position: int) -> tuple[Finding, ...]:
        return (taken,) if bench.driver.drives[-1].cell.load.shape.stages else ()

    monkeypatch.setattr(WatchedDriver, "findings", findings)
    made = past(bench)
    assert isinstance(made.run(), Converged)
    assert isinstance(made.beyond, Beyond)
    assert made.beyond.goodput == made.beyond.recovery == "not known"
    assert "the host took 20% of it" in made.beyond.reason


def test_where_no_edge_is_known_nothing_is_looked_for_past_it(bench: Bench) -> None:
    made = past(bench)
    made.search = Search(made.search.sets, Settings(start_per_s=1000, highest_per_s=2000, trials=2))
    assert isinstance(made.run(), Doomed)
    assert made.beyond == "no edge was found to look past"
