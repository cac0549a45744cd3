"""What is seen of the machine in a trial is seen in a duet, and said by the same rules."""

import math
import subprocess
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.analysis.duet import Duet
from redline.findings import duet_machine, machine, network
from redline.findings.duet_machine import WatchedStart
from redline.findings.rules import Judge, Rule
from redline.findings.starts import traffic_of
from redline.findings.table import JUDGES
from redline.model import OTHER_LOAD, OTHERS, DuetRecording, Finding, Grade, RuntimeFacts, Series, ServerFacts, Subject
from redline.model.duet import DuetTraffic
from redline.ports import DuetDrive, Placement
from redline.running.assembly import _duet_monitors
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools
from tests.fakes.compared import compared_run
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FakeDriver, FakeLauncher

SAID_OTHERWISE = {
    "client-saturated": "`client-limited`: in turn with others the engine is never saturated for long",
    "cpu-sampled": "the engine reads the CPU time of servers at the ends of every slice",
    "cpu-unknown": "by the owners of CPU time, for each server",
}
"""Rules about machine and network that duets have in another form."""
NOT_WATCHED = {
    "fixed_work": "compares the speeds of cores between trials; slices in turn share the frequency of their core",
}
PER_S = 1e9


def test_every_rule_about_machine_and_network_judges_duets_too() -> None:
    rules = {rule.kind for module in (machine, network) for rule in vars(module).values() if isinstance(rule, Rule)}
    in_duets = {judge.rule.kind for judge in JUDGES if judge.when == "duet" and judge.rule is not None}
    assert rules - in_duets == set(SAID_OTHERWISE)


def test_a_duet_keeps_every_series_of_the_machine_that_a_trial_keeps() -> None:
    """The monitor of a duet's first server is that of a trial; the others leave out the machine alone."""
    fields = {"series", "hosts", "fixed_work"}
    assert fields - set(DuetRecording.model_fields) == set(NOT_WATCHED)


def line(name: str, subject: Subject, per_s: float, window: tuple[int, int]) -> Series:
    """A counter that grows by so much per second, from before the window to behind it."""
    start, end = window[0] - 10**9, window[1] + 10**9
    times = tuple(range(start, end, 10**8))
    values = tuple(per_s * (at - start) / 1e9 for at in times)
    return Series(name=name, unit="1", subject=subject, kind="counter", times_unix_ns=times, values=values)


def watched(
    around: Mapping[tuple[Subject, str], float],
    servers: Mapping[str, float] | None = None,
    cpus: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
) -> tuple[Finding, ...]:
    """The findings about duets whose machine, engine and servers were watched: counters by their growth per second."""
    starts = []
    for number in range(6):
        made = simulated_duet(number)
        assert made.traffic is not None
        window = made.traffic.window_unix_ns
        assert window is not None
        facts = ServerFacts(pid=1, command=("a",), port=1, cpus=cpus[0] if cpus else (), build="", ready_ns=1)
        engine = made.traffic.engine.model_copy(update={"cpus": cpus[1] if cpus else ()})
        own = tuple(line(name, "server", per_s, window) for name, per_s in (servers or {}).items())
        update = {
            "series": tuple(line(name, subject, per_s, window) for (subject, name), per_s in around.items()),
            "server_series": (own, own, own),
            "servers": (facts, facts, facts),
            "traffic": made.traffic.model_copy(update={"engine": engine}),
        }
        starts.append(made.model_copy(update=update))
    return Duet(tuple(starts)).findings


def graded(findings: tuple[Finding, ...]) -> dict[str, Grade]:
    about = {rule.kind for module in (machine, network) for rule in vars(module).values() if isinstance(rule, Rule)}
    return {finding.kind: finding.grade for finding in findings if finding.kind in about}


QUIET: dict[tuple[Subject, str], float] = {
    ("machine", "busy_ns"): 1.05 * PER_S,
    ("machine", "cpu_pressure_ns"): 0.5 * PER_S,
    ("machine", "tcp_segments_sent"): 1e5,
    ("machine", "tcp_segments_retransmitted"): 1.0,
    ("engine", "run_delay_ns"): 0.01 * PER_S,
}
"""A server that uses its core all the time, and an engine that uses nothing."""
LAB: tuple[Subject, str] = ("machine", f"{OTHER_LOAD}python (4711)")


@pytest.mark.parametrize(
    ("more", "servers", "grades"),
    [
        ({}, {}, {}),
        ({("machine", "busy_ns"): 2.0 * PER_S}, {}, {"cpu-pressure": Grade.WARN}),
        (
            {("machine", "busy_ns"): 2.0 * PER_S, ("machine", "cpu_pressure_ns"): 0.3 * PER_S},
            {},
            {"cpu-pressure": "note"},
        ),
        ({LAB: 1.0}, {}, {"other-load": Grade.NOTE}),
        (
            {LAB: 1.0, ("machine", "busy_ns"): 2.0 * PER_S},
            {},
            {"other-load": Grade.WARN, "cpu-pressure": Grade.WARN},
        ),
        ({("machine", "tcp_segments_retransmitted"): 500.0}, {}, {"retransmits": Grade.NOTE}),
        ({}, {"quota_periods": 10.0, "throttled_periods": 2.0, "throttled_ns": 1e8}, {"throttled": Grade.WARN}),
    ],
)
def test_what_disturbs_the_machine_is_said_of_a_duet(
    more: Mapping[tuple[Subject, str], float], servers: Mapping[str, float], grades: Mapping[str, Grade]
) -> None:
    assert graded(watched({**QUIET, **more}, servers)) == grades


@pytest.mark.parametrize(("waits", "grade"), [(0.01, None), (0.07, Grade.NOTE), (0.3, Grade.WARN)])
def test_neighbours_on_reserved_cores_are_said_of_a_duet(waits: float, grade: Grade | None) -> None:
    around = {**QUIET, ("engine", "run_delay_ns"): waits * PER_S}
    found = graded(watched(around, {"run_delay_ns": 0.0, "cores_busy_ns": 1.0 * PER_S}, cpus=((0,), (1,))))
    assert found == ({"noisy-neighbour": grade} if grade else {})
    shared = graded(watched(around, {"run_delay_ns": 0.0, "cores_busy_ns": 1.0 * PER_S}, cpus=((0,), (0,))))
    assert shared == {}, "who shares cores anyway has no neighbour"


def test_those_who_used_most_are_named() -> None:
    around = {**QUIET, ("machine", "busy_ns"): 2.0 * PER_S, ("machine", f"{OTHERS}rustc"): 0.8 * PER_S}
    (said,) = [found.message for found in watched(around) if found.kind == "cpu-pressure"]
    assert ": of one core, rustc used 80%" in said


def test_what_an_older_recording_does_not_hold_is_not_judged() -> None:
    assert graded(Duet(tuple(simulated_duet(number) for number in range(6))).findings) == {}


def test_cpu_time_that_is_not_known_blames_nobody() -> None:
    """Such as that of servers which somebody else runs, and whose processes are hidden."""
    around = {**QUIET, ("machine", "busy_ns"): 2.0 * PER_S, LAB: 1.0}
    starts = []
    for number in range(6):
        made = simulated_duet(number)
        assert made.traffic is not None
        window = made.traffic.window_unix_ns or (0, 0)
        series = tuple(line(name, subject, per_s, window) for (subject, name), per_s in around.items())
        starts.append(made.model_copy(update={"series": series, "traffic": made.traffic.without_cpu(frozenset({1}))}))
    assert graded(Duet(tuple(starts)).findings) == {"cpu-unknown": Grade.WARN, "other-load": Grade.NOTE}


class Seen:
    """A monitor that keeps the processes that it follows."""

    perturbs = False

    def __init__(self, place: int) -> None:
        self.place, self.followed, self.ended = place, list[Subject](), 0

    def follow(self, subject: Subject, pid: int) -> None:
        del pid
        self.followed.append(subject)

    def finish(self) -> tuple[Series, ...]:
        self.ended += 1
        window = (10**9, 2 * 10**9)
        named = (*((subject, "cpu_ns") for subject in self.followed), ("machine", "busy_ns"))
        return tuple(line(name, subject, self.place, window) for subject, name in named)

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        del window_unix_ns, server_log
        return None


class Here:
    """A server of a process."""

    def __init__(self, pid: int) -> None:
        self.facts = ServerFacts(pid=pid, command=("a",), port=1, build="", ready_ns=1)


class Starting(FakeDriver):
    """A driver whose engine is a process."""

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        drive.drive.on_start(4711)
        return super().duet(drive)


def test_a_start_records_what_its_monitors_saw(tmp_path: Path) -> None:
    monitors = tuple((Seen(place),) for place in range(3))
    tools = Tools(
        FakeLauncher([]), Starting([]), lambda _server: (), Placement(), duet_monitors=lambda _servers: monitors
    )
    plan = compared_run(starts=1).manifest.plan
    (made,) = run_start(DuetStart(plan.duets, plan.cells, logs=lambda _duet: tmp_path), tools)
    assert [monitor.followed for (monitor,) in monitors] == [["server", "engine"], ["server"], ["server"]]
    assert [monitor.ended for (monitor,) in monitors] == [1, 1, 1]
    assert {(series.subject, series.name) for series in made.series} == {("engine", "cpu_ns"), ("machine", "busy_ns")}
    assert [[series.name for series in own] for own in made.server_series] == [["cpu_ns"]] * 3
    assert DuetRecording.model_validate_json(made.model_dump_json()) == made


def test_one_monitor_of_a_duet_watches_the_machine_and_takes_no_server_for_a_neighbour() -> None:
    """Servers that use a core each: the first is watched with the machine, and the others are of the same duet."""
    busy = ["sh", "-c", "while :; do :; done"]
    with ExitStack() as ended:
        processes = [subprocess.Popen(busy) for _ in range(3)]
        for process in processes:
            ended.callback(process.wait)
            ended.callback(process.kill)
        servers = [Here(process.pid) for process in processes]
        own = [monitor for (monitor,) in _duet_monitors(servers)]  # type: ignore[arg-type]
        for monitor, server in zip(own, servers, strict=True):
            monitor.follow("server", server.facts.pid)
        time.sleep(0.5)
        seen = [monitor.finish() for monitor in own]
    of_machine = [[series.name for series in series_ if series.subject == "machine"] for series_ in seen]
    assert "busy_ns" in of_machine[0]
    assert f"{OTHERS}sh" not in of_machine[0]
    assert of_machine[1:] == [[], []]


def test_a_whole_window_is_that_of_the_measured_slices() -> None:
    made = simulated_duet(0, warmup=3)
    assert made.traffic is not None
    window = made.traffic.window_unix_ns
    assert window is not None
    slices = [slice_ for block in made.traffic.blocks if block.phase == "measure" for slice_ in block.slices]
    assert math.isclose(window[1] - window[0], slices[-1].end_ns - slices[0].start_ns)


def watched_start(around: Mapping[tuple[Subject, str], float], **servers: float) -> WatchedStart:
    """A start whose servers have core 0, and whose engine has core 1; counters by their increase in the window."""
    made = simulated_duet(0)
    assert made.traffic is not None
    window = made.traffic.window_unix_ns
    assert window is not None
    per_s = 1e9 / (window[1] - window[0])
    facts = ServerFacts(pid=1, command=("a",), port=1, cpus=(0,), build="", ready_ns=1)
    own = tuple(line(name, "server", increase * per_s, window) for name, increase in servers.items())
    update = {
        "series": tuple(line(name, subject, increase * per_s, window) for (subject, name), increase in around.items()),
        "server_series": (own, own, own),
        "servers": (facts, facts, facts),
        "traffic": made.traffic.model_copy(
            update={"engine": made.traffic.engine.model_copy(update={"cpus": (1,), "workers": 1})}
        ),
    }
    return WatchedStart(made.model_copy(update=update), window)


def test_cpu_time_of_others_is_that_of_no_server_engine_or_interrupt() -> None:
    base = watched_start({("machine", "busy_ns"): 1.0})
    assert base.servers_ns is not None
    own = base.servers_ns + base.engine_ns
    one = watched_start({("machine", "busy_ns"): 2 * own, ("machine", "interrupts_ns"): 0.25 * own})
    assert one.others == pytest.approx((2 - 0.25 - 1) / 2, rel=1e-3)
    assert watched_start({("machine", "busy_ns"): 2 * own}).others == pytest.approx(0.5, rel=1e-3)
    assert watched_start({("machine", "busy_ns"): 0.0}).others is None
    assert watched_start({}).others is None


def test_an_engine_is_held_up_by_others_where_no_quota_held_it() -> None:
    lasts = watched_start({}).lasts_ns
    waits: dict[tuple[Subject, str], float] = {("engine", "run_delay_ns"): 0.5 * lasts}
    assert watched_start(waits).engine_held_up == pytest.approx(0.5, rel=1e-3)
    throttled: dict[tuple[Subject, str], float] = {**waits, ("engine", "throttled_ns"): 0.2 * lasts}
    assert watched_start(throttled).engine_held_up == pytest.approx(0.3, rel=1e-3)
    throttled["engine", "throttled_ns"] = 0.9 * lasts
    assert watched_start(throttled).engine_held_up == 0
    assert watched_start({}).engine_held_up is None


def test_servers_are_held_up_by_what_else_ran_on_their_cores_while_they_waited() -> None:
    empty = watched_start({})
    lasts, used = empty.lasts_ns, empty.servers_ns
    assert used is not None
    ticks = 2 * 10_000_000
    busy = used + ticks + 0.3 * lasts
    found = watched_start({}, run_delay_ns=0.2 * lasts / 1, cores_busy_ns=busy).servers_held_up
    assert found == pytest.approx(min(3 * 0.2, 0.3), rel=1e-2), "no longer than others ran"
    found = watched_start({}, run_delay_ns=0.01 * lasts, cores_busy_ns=busy).servers_held_up
    assert found == pytest.approx(0.03, rel=1e-2), "no longer than the three waited"
    less = watched_start({}, run_delay_ns=0.2 * lasts, cores_busy_ns=busy, cores_interrupts_ns=0.1 * lasts)
    assert less.servers_held_up == pytest.approx(0.2, rel=1e-2)
    assert watched_start({}, run_delay_ns=0.2 * lasts).servers_held_up is None
    assert watched_start({}, run_delay_ns=1.0, cores_busy_ns=used).servers_held_up == 0


def _judging(judge: Judge) -> Any:
    return judge.function


def test_connections_that_listeners_dropped_are_those_of_all_places_of_a_server() -> None:
    def start(**drops: float) -> DuetRecording:
        made = watched_start({("machine", "busy_ns"): 1.0}, **drops).start
        targets = traffic_of(made).targets
        asked = [
            target.model_copy(update={"counts": target.counts.model_copy(update={"due": due})})
            for target, due in zip(targets, (1000, 500, 200), strict=True)
        ]
        traffic = traffic_of(made).model_copy(update={"targets": tuple(asked)})
        return made.model_copy(update={"traffic": traffic})

    sides, judged = (("A", (0, 2)), ("B", (1,))), _judging(duet_machine.listen_overflow)
    first, second = judged(SimpleNamespace(starts=(start(listen_drops=30.0),) * 2, sides=sides))
    assert first.value == pytest.approx(120 / 2400, rel=1e-2)
    assert second.value == pytest.approx(60 / 1000, rel=1e-2)
    assert [*judged(SimpleNamespace(starts=(start(),), sides=sides))] == []


BUSY: tuple[Subject, str] = ("machine", "busy_ns")
PRESSURE: tuple[Subject, str] = ("machine", "cpu_pressure_ns")
DELAY: tuple[Subject, str] = ("engine", "run_delay_ns")
NOBODY = watched_start({})
WINDOW, OWN = NOBODY.lasts_ns, (NOBODY.servers_ns or 0.0) + NOBODY.engine_ns


@pytest.mark.parametrize(
    ("around", "disturbed"),
    [
        ({BUSY: OWN / 0.88, PRESSURE: 0.41 * WINDOW}, True),
        ({BUSY: OWN / 0.92, PRESSURE: 0.41 * WINDOW}, False),
        ({BUSY: OWN / 0.88, PRESSURE: 0.39 * WINDOW}, False),
        ({BUSY: OWN / 0.88, LAB: 1.0}, True),
        ({BUSY: OWN / 0.92, LAB: 1.0}, False),
        ({DELAY: 0.11 * WINDOW}, True),
        ({DELAY: 0.09 * WINDOW}, False),
        ({BUSY: OWN / 0.99, LAB: 0.12 * OWN}, True),
        ({}, False),
    ],
)
def test_slices_are_disturbed_by_a_tenth_of_the_cpu_time_that_they_wait_for(
    around: dict[tuple[Subject, str], float], *, disturbed: bool
) -> None:
    """Others use 12% or 8% of what was busy, or engines of other labs that much; or cores of their own were taken."""
    assert duet_machine.is_disturbed([watched_start(around).start]) is disturbed


def test_what_is_known_of_some_starts_is_their_mean() -> None:
    starts = [watched_start({BUSY: busy}).start for busy in (2 * OWN, 4 * OWN)]
    unknown = watched_start({("machine", "load"): 1.0}).start
    found = _judging(duet_machine.cpu_pressure)(SimpleNamespace(starts=(unknown, *starts)))
    assert found is None, "it is not known how long tasks waited"
    waiting = [watched_start({BUSY: busy, PRESSURE: 0.5 * WINDOW}).start for busy in (2 * OWN, 4 * OWN)]
    said = _judging(duet_machine.cpu_pressure)(SimpleNamespace(starts=(unknown, *waiting)))
    assert said.value == pytest.approx(0.5, rel=1e-3)
    assert duet_machine._mean(WatchedStart.all(starts), lambda one: one.others) == pytest.approx((0.5 + 0.75) / 2, 1e-3)


@pytest.mark.parametrize(
    ("sent", "received", "grade"),
    [(70.1, 0.0, Grade.NOTE), (69.9, 69.9, None), (0.0, 90.1, Grade.WARN), (None, 90.0, None), (90.0, None, None)],
)
def test_a_link_is_used_by_its_busier_direction(
    sent: float | None, received: float | None, grade: Grade | None
) -> None:
    """A link that carries 800 bits in the time of the window; bytes in percent of that."""
    speed = 800 * 1e9 / WINDOW
    one = watched_start({(("machine"), "busy_ns"): 1.0})
    window = one.window_unix_ns
    named = {"link_sent_bytes": sent, "link_received_bytes": received}
    lines = [
        line(name, "machine", bytes_ * 1e9 / WINDOW, window) for name, bytes_ in named.items() if bytes_ is not None
    ]
    link = line("link_bits_per_s", "machine", 0.0, window)
    fast = link.model_copy(update={"values": tuple(speed for _ in link.values)})
    start = one.start.model_copy(update={"series": (*one.start.series, *lines, fast)})
    said = _judging(duet_machine.network_limited)(SimpleNamespace(starts=(start,)))
    assert (said is not None) is (None not in (sent, received))
    if said is not None:
        assert said.value == pytest.approx(max(sent or 0.0, received or 0.0) / 100, rel=1e-3)
        assert network.network_limited.grade(said.value) is grade
    without = one.start.model_copy(update={"series": (*one.start.series, *lines)})
    assert _judging(duet_machine.network_limited)(SimpleNamespace(starts=(without,))) is None


def test_a_quota_of_a_duet_is_that_of_the_server_or_engine_that_lost_most_often() -> None:
    quota = {"quota_periods": 100.0, "throttled_periods": 20.0, "throttled_ns": 5e6}
    around: dict[tuple[Subject, str], float] = {
        ("engine", "quota_periods"): 100.0,
        ("engine", "throttled_periods"): 30.0,
        ("engine", "throttled_ns"): 7e6,
    }
    duet = {"names": ("A", "B"), "target": 1, "servers": 3}
    judged = _judging(duet_machine.throttled)
    said = judged(SimpleNamespace(starts=(watched_start({BUSY: 1.0}, **quota).start,) * 2, **duet))
    assert (said.value, said.message.split(" had")[0]) == (pytest.approx(0.2, rel=1e-3), "A")
    assert "lost 10 ms of CPU time" in said.message
    said = judged(SimpleNamespace(starts=(watched_start({**around, BUSY: 1.0}, **quota).start,) * 2, **duet))
    assert (said.value, said.message.split(" had")[0]) == (pytest.approx(0.3, rel=1e-3), "The engine")
    often = {**quota, "throttled_periods": 300.0}
    assert judged(SimpleNamespace(starts=(watched_start({BUSY: 1.0}, **often).start,), **duet)).value == 1.0
    none = {**quota, "quota_periods": 0.0}
    assert judged(SimpleNamespace(starts=(watched_start({BUSY: 1.0}, **none).start,), **duet)) is None


def test_ports_of_a_duet_are_those_of_the_start_with_most() -> None:
    def start(resting: float) -> DuetRecording:
        one = watched_start({BUSY: 1.0})
        window = one.window_unix_ns
        ports = line("local_ports", "machine", 0.0, window)
        held = line("time_wait", "machine", 0.0, window)
        rises = (*(0.0 for _ in held.values[:-20]), *(resting for _ in held.values[-20:]))
        more = (
            ports.model_copy(update={"values": tuple(1000.0 for _ in ports.values)}),
            held.model_copy(update={"values": rises}),
        )
        return one.start.model_copy(update={"series": (*one.start.series, *more)})

    judged = _judging(duet_machine.port_pressure)
    said = judged(SimpleNamespace(starts=(start(300.0), start(600.0), start(400.0))))
    assert said.value == pytest.approx(0.6)
    assert judged(SimpleNamespace(starts=(watched_start({BUSY: 1.0}).start,))) is None
