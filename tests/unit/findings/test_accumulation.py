"""A leak for each request is reported; a heap that fills up, or rises and falls, is not."""

from collections.abc import Callable

import numpy as np
import pytest

from redline.findings import judge
from redline.findings.accumulation import LEAST_BYTES, SHORTEST_S, WatchedServer, _opened, _whole
from redline.findings.rules import TREND_P
from redline.model import Closed, CpuOwner, Failure, Grade, Load, Reach, Recording, Series
from redline.stats.accumulation import Accumulation, accumulation
from tests.fakes.behaviour import GOOD
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
