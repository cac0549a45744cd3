"""After an answer, a cell is loaded above its limit and back; failures there leave the answer unchanged."""

from dataclasses import replace
from pathlib import Path

import pytest

from redline.limits import search_state
from redline.model import Cell, Finding, Grade, Open, Recording, Traffic
from redline.model.limits import Beyond
from redline.ports import Drive, NoResultError
from redline.search import Converged, Doomed
from tests.fakes.plugins import DEATH
from tests.fakes.searched import CELL, Bench, bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return bench_in(tmp_path, beyond=True)


def test_the_overload_test_is_made_once_and_last(bench: Bench) -> None:
    end = bench.run()
    (limit,) = end.limits
    assert limit.high_per_s is not None
    last = bench.driver.drives[-1].cell.load
    assert isinstance(last.shape, Open)
    assert last.shape.stages
    assert last.shape.most_per_s > limit.high_per_s
    assert isinstance(beyond := bench.state.limit().beyond, Beyond)
    assert beyond.course
    assert sum(bool(drive.cell.load.shape.stages) for drive in bench.driver.drives) == 1


def test_a_server_that_dies_under_overload_keeps_its_answer(bench: Bench) -> None:
    def kill(_number: int) -> None:
        staged = bool(bench.driver.drives[-1].cell.load.shape.stages)
        bench.server.dead = DEATH if staged else None

    bench.driver.on_drive = kill
    assert isinstance(bench.run(), Converged)
    assert isinstance(beyond := bench.state.limit().beyond, Beyond)
    assert beyond.recovery == "does not come back"
    assert "killed by SIGKILL" in beyond.reason


def test_an_overload_test_that_found_no_ports_says_nothing_of_the_server(bench: Bench) -> None:
    bench.driver.exhausted = True
    assert isinstance(bench.run(), Converged)
    assert isinstance(beyond := bench.state.limit().beyond, Beyond)
    assert beyond.goodput == beyond.recovery == "not known"
    assert "no port, descriptor or memory" in beyond.reason


def test_an_overload_test_whose_cores_the_host_took_says_nothing_of_the_server(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = {"message": "The host took 20% of it.", "advice": "Take another one.", "cell_id": CELL.id}
    taken = Finding(kind="cpu-steal", grade=Grade.WARN, **fields)

    def findings(cell: Cell, _recording: Recording) -> tuple[Finding, ...]:
        return (taken,) if cell.load.shape.stages else ()

    monkeypatch.setattr(search_state, "judge_probe", findings)
    assert isinstance(bench.run(), Converged)
    assert isinstance(beyond := bench.state.limit().beyond, Beyond)
    assert beyond.goodput == beyond.recovery == "not known"
    assert "the host took 20% of it" in beyond.reason


def test_an_overload_test_without_a_result_is_judged_by_what_came_of_it(bench: Bench) -> None:
    drive = bench.driver.drive

    def cut(wanted: Drive) -> Traffic:
        traffic = drive(wanted)
        if not wanted.cell.load.shape.stages:
            return traffic
        seen = traffic.model_copy(update={"ended": "deadline"})
        raise NoResultError("the engine ended with code -9 and no result: it said nothing", hint="none", traffic=seen)

    bench.driver.drive = cut  # type: ignore[method-assign, assignment]
    assert isinstance(bench.run(), Converged)
    found = bench.state.limit()
    assert (found.ended, found.reason) == ("converged", "")
    assert isinstance(beyond := found.beyond, Beyond)
    assert beyond.course
    assert "the engine ended with code -9 and no result" in beyond.reason
    assert bench.again().state.ended


def test_where_no_limit_is_known_there_is_no_overload_test(bench: Bench) -> None:
    bench.state.search.settings = replace(bench.state.search.settings, highest_per_s=2000)
    assert isinstance(bench.run(), Doomed)
    assert bench.state.limit().no_beyond == "no rate above the limit is known"


def test_an_interrupted_overload_test_is_made_when_the_search_is_resumed(bench: Bench) -> None:
    def interrupt(_number: int) -> None:
        if bench.driver.drives[-1].cell.load.shape.stages:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    with pytest.raises(KeyboardInterrupt):
        bench.run()
    limit = bench.state.limit()
    assert (limit.ended, limit.beyond, limit.no_beyond) == ("converged", None, "it was not reached")
    bench.driver.on_drive = lambda _number: None
    probes = len(bench.again().state.probes)
    assert not bench.state.ended
    bench.run()
    assert isinstance(bench.state.limit().beyond, Beyond)
    assert len(bench.state.probes) == probes
    assert bench.again().state.ended
