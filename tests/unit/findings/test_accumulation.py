"""A leak for each request is reported; a heap that fills up, or rises and falls, is not."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.findings import judge
from redline.findings.accumulation import (
    LEAST_BYTES,
    SHORTEST_S,
    WatchedServer,
    _of_place,
    _opened,
    _whole,
    half_closed_in_duet,
    kept_in_duet,
)
from redline.findings.duet_machine import WatchedStart
from redline.findings.rules import TREND_P
from redline.model import (
    HOPS,
    Closed,
    Counts,
    CpuOwner,
    DuetRecording,
    Failure,
    Grade,
    HopFacts,
    Load,
    Outcomes,
    Reach,
    Recording,
    Series,
    ServerFacts,
)
from redline.stats.accumulation import Accumulation, accumulation
from tests.fakes.behaviour import GOOD
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording
from tests.studies.accumulation import HEAPS, LEAKS, said

MIB = 1 << 20
CELL = simulated_cell(load=Load(name="long", shape=Closed(users=64), duration_ns=10_000_000_000))
KINDS = {"memory-grows", "descriptors-grow", "threads-grow", "half-closed", "server-unwatched", "cpu-behind"}


@pytest.mark.parametrize("heap", HEAPS)
def test_heaps_that_fill_up_or_go_up_and_down_are_not_said_to_grow(heap: str) -> None:
    """Among 1,000 heaps of 10 s; `docs/concepts/memory.md` gives their numbers, three deviations from the bounds."""
    most = {"sawtooth": 30, "steps": 30, "random walk": 40}.get(heap, 20)
    assert said(HEAPS[heap], 1000) <= most


@pytest.mark.parametrize(("name", "least"), [("10%, quiet", 900), ("30%, quiet", 980), ("30%, noisy", 850)])
def test_even_growth_is_seen(name: str, least: int) -> None:
    assert said(LEAKS[name], 1000) >= least


@pytest.mark.parametrize("kept", [100.0, 4096.0])
def test_what_is_kept_of_each_request_is_known_in_bytes(kept: float) -> None:
    answered = np.linspace(0, 20_000, 33)
    seen = accumulation(answered, 50 * MIB + kept * answered, TREND_P)
    assert seen is not None
    assert seen.by_request == pytest.approx(kept)
    assert seen.last - seen.first == pytest.approx(20_000 * kept, rel=0.05)


@pytest.mark.parametrize("shape", ["steady", "falls", "two steps", "fills up"])
def test_what_does_not_grow_evenly_is_no_growth(shape: str) -> None:
    answered = np.linspace(0, 20_000, 33)
    past = answered / 20_000
    shapes = {"steady": 0 * past, "falls": -past, "two steps": np.floor(2 * past), "fills up": 1 - np.exp(-3 * past)}
    assert accumulation(answered, 50 * MIB + 20 * MIB * shapes[shape], TREND_P) is None


def test_few_answers_or_samples_show_nothing() -> None:
    assert accumulation(np.array([]), np.array([]), TREND_P) is None
    assert accumulation(np.array([0.0, 5.0]), np.array([1.0, 2.0]), TREND_P) is None
    assert accumulation(np.array([0.0, 1e4]), np.array([1.0, 2.0]), TREND_P) is None


def flat(_at: float) -> float:
    """A size that stays as it is."""
    return 50.0 * MIB


def watched(**gauges: Callable[[float], float]) -> Recording:
    """A load of 10 s in which gauges of the server had these values, by the share of the time that had passed."""
    recording = simulated_recording(CELL, GOOD)
    assert recording.traffic is not None
    start, end = recording.traffic.window_unix_ns
    times = tuple(range(start - 10**8, end + 10**8, 3 * 10**8))
    lines = [
        Series(
            name=name,
            unit="1",
            subject="server",
            kind="gauge",
            times_unix_ns=times,
            values=tuple(value((at - start) / (end - start)) for at in times),
        )
        for name, value in ({"rss_bytes": flat} | gauges).items()
    ]
    kept = (line for line in recording.series if line.name not in {"rss_bytes", *gauges})
    return recording.model_copy(update={"series": (*kept, *lines)})


def found(recording: Recording) -> dict[str, tuple[Grade, str]]:
    return {one.kind: (one.grade, one.message) for one in judge(CELL, recording) if one.kind in KINDS}


def test_each_kind_of_growth_is_said_with_its_pace() -> None:
    said = found(
        watched(
            rss_bytes=lambda at: 10 * MIB * (1 + 5 * at),
            descriptors=lambda at: 20 + 500 * at,
            descriptors_limit=lambda _at: 1024.0,
            threads=lambda at: 10 + 400 * at,
        )
    )
    assert {kind: grade for kind, (grade, _) in said.items()} == dict.fromkeys(
        ("memory-grows", "descriptors-grow", "threads-grow"), Grade.WARN
    )
    assert "The memory of the server grew from 11.0 MiB to 59.0 MiB, by " in said["memory-grows"][1]
    assert "Its limit of 1,024 is reached after" in said["descriptors-grow"][1]
    assert "The number of threads of the server grew from" in said["threads-grow"][1]


def test_a_runtime_that_collects_may_only_fill_its_heap() -> None:
    recording = watched(rss_bytes=lambda at: 10 * MIB * (1 + at)).model_copy(
        update={"server": None, "attached_runtimes": ("jvm",)}
    )
    grade, message = found(recording)["memory-grows"]
    assert grade is Grade.NOTE
    assert "a heap before it is collected" in message


@pytest.mark.parametrize(("server", "proxy"), [((), ("jvm",)), (("jvm",), ())])
def test_the_memory_of_each_part_is_judged_by_its_own_runtime(server: tuple[str, ...], proxy: tuple[str, ...]) -> None:
    grows = watched(rss_bytes=lambda at: 10 * MIB * (1 + 5 * at))
    assert grows.server is not None
    facts = {name: grows.server.model_copy(update={"runtimes": own}) for name, own in (("it", server), ("hop", proxy))}
    hop = HopFacts(name="proxy.front", process=facts["hop"], upstream="h1")
    lines = [line.model_copy(update={"subject": HOPS[0]}) for line in grows.series if line.name == "rss_bytes"]
    recording = grows.model_copy(update={"server": facts["it"].behind((hop,)), "series": (*grows.series, *lines)})
    said = [one for one in judge(CELL, recording) if one.kind == "memory-grows"]
    assert [one.grade for one in said] == [Grade.NOTE if "jvm" in own else Grade.WARN for own in (server, proxy)]
    assert ["a heap" in one.message for one in said] == ["jvm" in own for own in (server, proxy)]


@pytest.mark.parametrize(
    "gauges",
    [
        {"rss_bytes": lambda at: 500 * MIB + at * LEAST_BYTES / 2},
        {"descriptors": lambda at: 20 + 10 * at},
        {"threads": lambda at: 20 + 400 * min(at * 10, 1)},
        {"close_wait": lambda _at: 3.0},
    ],
)
def test_what_is_small_or_ends_is_not_said(gauges: dict[str, Callable[[float], float]]) -> None:
    assert found(watched(**gauges)) == {}


def test_a_load_of_a_few_seconds_says_nothing_of_growth() -> None:
    short = simulated_cell(load=Load(name="s", shape=Closed(users=64), duration_ns=int(SHORTEST_S * 0.8e9)))
    recording = simulated_recording(short, GOOD)
    assert not {one.kind for one in judge(short, recording)} & KINDS


def test_connections_that_stay_half_closed_are_counted() -> None:
    assert found(watched(close_wait=lambda _at: 40.0))["half-closed"] == (
        Grade.WARN,
        "40 connections to the server stay in CLOSE-WAIT: their other end closed them, it did not.",
    )
    assert found(watched(close_wait=lambda _at: 8.0))["half-closed"][0] is Grade.NOTE


def test_what_is_not_watched_is_said_with_what_would_help() -> None:
    recording = watched().model_copy(
        update={"server": None, "owner": CpuOwner(unknown="it is another user's", hint="run Redline as root")}
    )
    (finding,) = (one for one in judge(CELL, recording) if one.kind in KINDS)
    assert (finding.kind, finding.grade) == ("server-unwatched", Grade.NOTE)
    assert finding.message == "What the server itself uses is not watched: it is another user's."
    assert finding.advice == "To have it watched, run Redline as root."


def test_a_load_that_failed_says_why_and_not_what_was_not_watched() -> None:
    failure = Failure(stage="load", kind="engine", message="it answers nothing right", hint="see its log")
    recording = watched().model_copy(
        update={"server": None, "owner": CpuOwner(unknown="it is another user's"), "failure": failure}
    )
    assert "server-unwatched" not in {one.kind for one in judge(CELL, recording)}


def test_whom_a_server_asked_is_named() -> None:
    owner = CpuOwner(processes=("shop (1)",), behind="127.0.0.1:5432")
    recording = watched().model_copy(update={"server": None, "owner": owner})
    assert "what was used at 127.0.0.1:5432, which it asks to answer" in found(recording)["cpu-behind"][1]


@pytest.mark.parametrize(
    ("number", "text"), [(2.34, "2.3"), (9.8, "9.8"), (10.0, "10"), (10.4, "10"), (1234.5, "1,234")]
)
def test_few_are_said_with_a_fraction_and_ten_without(number: float, text: str) -> None:
    assert _whole(number) == text


@pytest.mark.parametrize(
    ("limit", "answers", "said"),
    [
        (160.0, 100.0, " Its limit of 160 is reached after 200 more, in 4.00 s."),
        (60.0, 100.0, ""),
        (50.0, 100.0, ""),
        (160.0, 0.0, ""),
        (0.0, 100.0, ""),
        (None, 100.0, ""),
    ],
)
def test_a_limit_is_reached_after_as_many_answers_as_leave_what_is_left(
    limit: float | None, answers: float, said: str
) -> None:
    """Within 2 s, 100 answers left half a descriptor each."""
    line = {"name": "descriptors_limit", "unit": "1", "subject": "server", "kind": "gauge", "times_unix_ns": (1, 2)}
    series = [] if limit is None else [Series.model_validate({**line, "values": (9.0, limit)})]
    times = np.array([1e9, 2e9, 3e9])
    counted = np.array([7.0, 8.0, 7.0 + answers])
    server = WatchedServer("it", series, (0, 1), times, counted, collects=False, opened=0)
    assert server._until(Accumulation(10.0, 60.0, 0.5)) == said


def test_connections_that_a_load_opens_are_no_leak() -> None:
    reach = Reach(opened=40, asked=40, answered=40)
    assert _opened(CELL, reach) == 0, "users have theirs before"
    loaded = simulated_cell(load=STEADY)
    assert _opened(loaded, reach) == 40
    assert _opened(loaded, None) == STEADY.connections


def gauge(name: str, start: int, end: int, value: Callable[[float], float]) -> Series:
    """A gauge of a server from start to end, by the share of the time that has passed."""
    times = tuple(range(start, end, 10**8))
    values = tuple(value((at - start) / (end - start)) for at in times)
    return Series(name=name, unit="1", subject="server", kind="gauge", times_unix_ns=times, values=values)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("rss_bytes", LEAST_BYTES - 1.0, False),
        ("rss_bytes", float(LEAST_BYTES), True),
        ("descriptors", 15.0, False),
        ("descriptors", 16.0, True),
        ("threads", 15.0, False),
        ("threads", 16.0, True),
    ],
)
def test_growth_is_said_from_a_mebibyte_or_sixteen_on(name: str, change: float, *, said: bool) -> None:
    times = np.arange(0, 6e9, 1e9)
    line = gauge(name, 0, 6 * 10**9, lambda at: 10.0 + change * at * 60 / 59)
    server = WatchedServer("it", [line], (0, 6 * 10**9), times, times / 1e6, collects=False, opened=0)
    seen = server.accumulation(name)
    assert seen is not None
    grown = WatchedServer("it", [line.model_copy(update={"values": _scaled(line, change, seen)})], *_rest(server))
    assert len([*grown.findings()]) == said


def _scaled(line: Series, change: float, seen: Accumulation) -> tuple[float, ...]:
    """The gauge, growing from its first level to its last by this change, as the rule reads it."""
    factor = change / (seen.last - seen.first)
    return tuple(10.0 + (value - 10.0) * factor for value in line.values)


def _rest(server: WatchedServer) -> Any:
    return server.window_unix_ns, server.at_unix_ns, server.answers, server.collects, server.opened


@pytest.mark.parametrize(("seconds", "said"), [(4.9, False), (5.0, True)])
def test_growth_is_told_from_five_seconds_on(seconds: float, *, said: bool) -> None:
    end = round(seconds * 1e9)
    times = np.linspace(0, end, 50)
    line = gauge("rss_bytes", 0, end, lambda at: 50 * MIB * (1 + at))
    server = WatchedServer("it", [line], (0, end), times, times / 1e6, collects=False, opened=0)
    assert (server.accumulation("rss_bytes") is not None) is said


def duet_start(
    *grows: float, attached: bool = False, half_closed: Sequence[float] = (), timeouts: Sequence[int] = (0, 0, 0)
) -> DuetRecording:
    """A start of 6 s whose servers' memory grew by these shares, and who left so many connections half closed."""
    made = simulated_duet(0, failed=100)
    traffic = made.traffic
    assert traffic is not None
    assert traffic.window_unix_ns is not None
    start, end = traffic.window_unix_ns
    facts = ServerFacts(pid=1, command=("a",), port=1, build="", ready_ns=1)
    series = [(gauge("rss_bytes", start, end, lambda at, by=by: 50 * MIB * (1 + by * at)),) for by in grows]  # type: ignore[misc]
    series += [(gauge("close_wait", start, end, lambda _at, left=left: left),) for left in half_closed]  # type: ignore[misc]
    targets = [
        target.model_copy(update={"counts": Counts(outcomes=Outcomes(timeout=number, in_flight=number))})
        for target, number in zip(traffic.targets, timeouts, strict=True)
    ]
    update = {
        "series": (gauge("busy_ns", start, end, float),),
        "server_series": tuple(series),
        "servers": (None, facts, None) if attached else (facts, facts, facts),
        "owners": (CpuOwner(runtimes=("jvm",)), None, None) if attached else (),
        "traffic": traffic.model_copy(update={"targets": tuple(targets)}),
    }
    return made.model_copy(update=update)


def in_duet(judge: Any, *starts: DuetRecording) -> list[Any]:
    sides = (("A", (0, 2)), ("B", (1,)))
    return [*judge.function(SimpleNamespace(starts=starts, sides=sides))]


def test_the_baseline_of_a_duet_has_the_answers_of_its_place_and_both_if_it_ran_already() -> None:
    started, attached = WatchedStart.all([duet_start(0.0), duet_start(0.0, attached=True)])
    traffic = started.start.traffic
    assert traffic is not None
    slices = [slice_ for block in traffic.blocks for slice_ in block.slices]
    answered = {at: sum(one.completed + one.failed for one in slices if one.target == at) for at in range(3)}
    first = _of_place(started, "A", (0, 2))
    assert (first.answers[0], first.answers[-1]) == (0, answered[0])
    assert first.at_unix_ns[0] == started.window_unix_ns[0]
    assert first.at_unix_ns[-1] == started.window_unix_ns[1]
    assert not first.collects
    both = _of_place(attached, "A", (0, 2))
    assert both.answers[-1] == answered[0] + answered[2]
    assert both.collects, "its owner is a JVM"
    second = _of_place(attached, "B", (1,))
    assert second.answers[-1] == answered[1]
    assert (second.series, second.opened, second.collects) == ((), 0, False)


def test_what_most_starts_keep_is_said_of_a_duet_by_the_start_in_the_middle() -> None:
    assert [said.rule.kind for said in in_duet(kept_in_duet, duet_start(0.5))] == ["memory-grows"]
    assert in_duet(kept_in_duet, duet_start(0.0), duet_start(0.5)) == [], "half of the starts are not most"
    of_three = in_duet(kept_in_duet, duet_start(0.0), duet_start(0.5), duet_start(0.9))
    assert [said.value for said in of_three] == [in_duet(kept_in_duet, duet_start(0.9))[0].value]
    (middle,) = in_duet(kept_in_duet, duet_start(0.9), duet_start(0.1), duet_start(0.5))
    assert middle == in_duet(kept_in_duet, duet_start(0.5))[0]
    second = in_duet(kept_in_duet, duet_start(0.0, 0.5))
    assert ["memory of B grew" in said.message for said in second] == [True]


def test_connections_of_a_duet_that_stay_half_closed_are_those_of_the_start_with_most() -> None:
    """Without those of requests that were left unanswered, by the baseline or its control."""
    starts = [duet_start(half_closed=(left, 9.0), timeouts=(1, 0, 2)) for left in (30.0, 50.0, 40.0)]
    assert [(said.value, said.message.split(" stay")[0]) for said in in_duet(half_closed_in_duet, *starts)] == [
        (44, "44 connections to A"),
        (9, "9 connections to B"),
    ]


@pytest.mark.parametrize(("left", "grade"), [(3.0, None), (4.0, Grade.NOTE), (15.0, Grade.NOTE), (16.0, Grade.WARN)])
def test_more_than_three_half_closed_connections_are_a_note_and_more_than_fifteen_a_warning(
    left: float, grade: Grade | None
) -> None:
    assert found(watched(close_wait=lambda _at: left)).get("half-closed", (None,))[0] is grade
