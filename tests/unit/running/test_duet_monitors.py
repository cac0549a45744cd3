"""What watches a duet: the machine and the engine once, and of each server what disturbs it and grows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.errors import LaunchError
from redline.model import CpuOwner, PlannedDuet, Series
from redline.model.streams import Stream
from redline.ports import Placement
from redline.running.duet import DuetStart, _differing, _longest_slice_ns, _Monitors, _proved, _Samplers, run_start
from redline.running.record import Tools
from tests.fakes.plugins import FakeDriver, FakeLauncher, FakeServer
from tests.fakes.recordings import simulated_cell
from tests.unit.running.test_record_failures import tools_of


class Monitor:
    """Keeps what it follows, and gives these series."""

    def __init__(self, *named: tuple[str, str]) -> None:
        self.named, self.followed = named, list[tuple[str, int]]()

    def follow(self, subject: str, pid: int) -> None:
        self.followed.append((subject, pid))

    def finish(self) -> tuple[Series, ...]:
        kind: dict[str, Any] = {"unit": "1", "kind": "counter", "times_unix_ns": (1,), "values": (1.0,)}
        return tuple(Series.model_validate({"name": name, "subject": subject, **kind}) for subject, name in self.named)


def watching(*monitors: tuple[Monitor, ...]) -> _Monitors:
    servers = [FakeServer()] * len(monitors)
    return _Monitors(servers, tools_of(FakeDriver([]), duet_monitors=lambda _servers: monitors))


def test_the_first_servers_monitors_follow_the_engine() -> None:
    first, second = Monitor(), Monitor()
    made = watching((first,), (second,))
    made.begin([(7,), (8,)])
    made.started(99)
    assert first.followed == [("server", 4321), ("engine", 99)]
    assert second.followed == [("server", 4321)]
    watching().started(99)
    assert watching().finish() == ((), ())


def test_series_are_divided_into_those_around_and_those_of_each_server() -> None:
    first = Monitor(("machine", "busy_ns"), ("engine", "cpu_ns"), ("server", "cpu_ns"), ("server", "preemptions"))
    second = Monitor(("machine", "steal_ns"), ("server", "rss_bytes"), ("hop-1", "cpu_ns"))
    around, own = watching((first,), (second,)).finish()
    assert [(line.subject, line.name) for line in around] == [("machine", "busy_ns"), ("engine", "cpu_ns")]
    assert [[(line.subject, line.name) for line in of_one] for of_one in own] == [
        [("server", "cpu_ns")],
        [("server", "rss_bytes"), ("hop-1", "cpu_ns")],
    ]


def test_series_of_processes_that_turned_out_not_to_be_a_servers_are_left_out() -> None:
    first, second = Monitor(("server", "cpu_ns"), ("server", "listen_drops")), Monitor(("server", "rss_bytes"))
    _, own = watching((first,), (second,)).finish()
    known, unknown = CpuOwner(), CpuOwner(unknown="others answer")

    def names(*owners: CpuOwner) -> list[list[str]]:
        return [[line.name for line in lines] for lines in _proved(own, owners)]

    assert names(known, known) == names() == [["cpu_ns", "listen_drops"], ["rss_bytes"]]
    assert names(unknown, known) == [["listen_drops"], ["rss_bytes"]]
    assert names(known, unknown) == [["cpu_ns", "listen_drops"], []]


@pytest.mark.parametrize(("runtimes", "slice_ms", "guard_ms"), [((), 10, 2), (("node",), 10, 2), (("jvm",), 50, 10)])
def test_slices_are_longer_on_a_jvm(tmp_path: Path, runtimes: tuple[str, ...], slice_ms: int, guard_ms: int) -> None:
    driver, server = FakeDriver([]), FakeServer(runtimes=frozenset(runtimes))
    cells = {cell.id: cell for cell in (simulated_cell(name) for name in ("a.one", "b.two"))}
    planned = PlannedDuet(cell_ids=tuple(cells), round=0, position=0, seed=1)
    tools = Tools(FakeLauncher([], server), driver, lambda _server: (), Placement())
    (made,) = run_start(DuetStart((planned,), cells, lambda _duet: tmp_path), tools)
    assert made.failure is None
    (drive,) = driver.duets
    assert (drive.slice_ns, drive.guard_ns) == (slice_ms * 1_000_000, guard_ms * 1_000_000)
    assert drive.longest_slice_ns == 50_000_000
    assert drive.drive.workers == 1
    assert not drive.parallel


@pytest.mark.parametrize(("seconds", "longest_ms"), [(0.3, 50), (15, 1250), (3600, 60_000)])
def test_slices_of_conversations_are_long_enough_for_some(seconds: float, longest_ms: int) -> None:
    cell = simulated_cell()
    load = cell.load.model_copy(update={"duration_ns": round(seconds * 1e9)})
    request = cell.scenario.requests[0].model_copy(update={"stream": Stream(events="openai")})
    scenario = cell.scenario.model_copy(update={"request": request})
    assert _longest_slice_ns(cell.model_copy(update={"load": load})) == 50_000_000
    assert _longest_slice_ns(cell.model_copy(update={"load": load, "scenario": scenario})) == longest_ms * 1_000_000


def test_a_duet_whose_servers_do_not_start_has_no_time_of_a_start(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in (simulated_cell(name) for name in ("a.one", "b.two"))}
    planned = tuple(PlannedDuet(cell_ids=tuple(cells), round=0, position=at, seed=1) for at in range(2))
    launcher = FakeLauncher([], error=LaunchError("it ended", hint=""))
    tools = Tools(launcher, FakeDriver([]), lambda _server: (), Placement())
    made = list(run_start(DuetStart(planned, cells, lambda _duet: tmp_path), tools))
    assert [(one.launch_ns, one.failure is not None, one.traffic) for one in made] == [(0, True, None)] * 2


def test_samples_begin_once_servers_were_measured_for_long_enough_without() -> None:
    """100 ns from the first measured slice on, which may begin at 0 and at any later time."""
    begun, warm, now = list[int](), list[int](), [0]
    profiler: Any = SimpleNamespace(
        warm=lambda: warm.append(now[0]), begin=lambda: begun.append(now[0]), end=lambda: begun.append(-1)
    )
    for first_ns in (0, 50):
        begun.clear()
        warm.clear()
        samplers = _Samplers((), (), 100)
        samplers._profilers = (profiler,)
        blocks = [
            ("warmup", ((first_ns, 900),)),
            ("measure", ()),
            ("measure", ((first_ns, first_ns + 40), (first_ns + 40, first_ns + 99))),
            ("measure", ((first_ns + 99, first_ns + 100),)),
        ]
        for now[0], (phase, spans) in enumerate(blocks):
            slices = tuple(SimpleNamespace(start_ns=start_ns, end_ns=end_ns) for start_ns, end_ns in spans)
            samplers.seen(SimpleNamespace(phase=phase, slices=slices))  # type: ignore[arg-type]
        samplers.end()
        assert (warm, begun) == ([2], [3, -1]), "the warm-up ends with the first block that has slices"


def test_the_same_answers_are_asked_of_each_server_beside_the_first() -> None:
    """Where they differ, the first server is asked twice, since it may not answer alike itself."""
    asked = list[tuple[str, str]]()

    class Differing(FakeDriver):
        differs: tuple[str, ...] = ()

        def differ(self, cell: Any, names: tuple[str, str], endpoints: Any) -> str | None:
            asked.append(names)
            return "the body" if names[1] in self.differs else None

    def cell(slug: str) -> Any:
        return SimpleNamespace(variant=SimpleNamespace(slug=slug))

    driver = Differing([])
    cells, servers = [cell("A"), cell("B"), cell("C")], [FakeServer(), FakeServer(), FakeServer()]
    assert _differing(cells[:1], servers[:1], driver) is None
    assert asked == []
    assert _differing(cells[:2], servers[:2], driver) is None
    driver.differs = ("C",)
    failure = _differing(cells, servers, driver)
    assert failure is not None
    assert failure.message == "A and C answer differently: the body"
    assert asked == [("A", "B"), ("A", "C"), ("its first answer", "its second answer")]
    driver.differs = ("B", "its second answer")
    failure = _differing(cells[:2], servers[:2], driver)
    assert failure is not None
    assert failure.message == "A does not answer alike twice: the body"
