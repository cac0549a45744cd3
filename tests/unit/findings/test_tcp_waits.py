"""Waits of TCP are named where their lengths show them, and no slow, spread or streamed answer is taken for one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.duet import Duet
from redline.findings import judge
from redline.findings.tcp_waits import alone_at, share_waiting
from redline.model import Cell, Finding, Grade, Histogram, Recording, StreamTraffic
from redline.model.traffic import Outcomes
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording
from tests.fakes.series import counting

MS = 1_000_000
CELL = simulated_cell(load=SATURATE)
KINDS = ("delayed-ack", "sent-again")


def times(ms: list[float]) -> Histogram:
    return Histogram.of([value * MS for value in ms])


def measured(
    response: list[float], first_byte: list[float] | None = None, *, size: int = 200, timeouts: int = 0
) -> Recording:
    """A trial with these times in milliseconds and answers of so many bytes; the last requests timed out."""
    recording = simulated_recording(CELL)
    seen, n = recording.traffic, len(response)
    assert seen is not None
    outcomes = Outcomes(ok=n - timeouts, timeout=timeouts)
    counts = seen.counts.model_copy(
        update={"due": n, "completed": n - timeouts, "outcomes": outcomes, "bytes_received": size * n}
    )
    first = None if first_byte is None else times(first_byte)
    update = {"response": times(response), "service": times(response), "first_byte": first, "counts": counts}
    return recording.model_copy(update={"traffic": seen.model_copy(update=update)})


def found(recording: Recording, cell: Cell = CELL) -> list[Finding]:
    return [finding for finding in judge(cell, recording) if finding.kind in KINDS]


def spread(low: float, high: float, n: int = 1000) -> list[float]:
    return [*map(float, np.linspace(low, high, n))]


def test_an_answer_in_two_parts_of_which_the_second_waits_is_named_with_both_times() -> None:
    (finding,) = found(measured(spread(42.0, 46.0), spread(0.2, 1.2)))
    assert (finding.kind, finding.grade) == ("delayed-ack", Grade.NOTE)
    assert "In 100% of the answers the last byte came 38 to 50 ms after the first" in finding.message
    assert "p50 44" in finding.message
    assert "of the first byte 700 µs" in finding.message
    assert "TCP_NODELAY" in finding.advice


@pytest.mark.parametrize(("share", "named"), [(0.02, False), (0.04, False), (0.07, True), (0.5, True)])
def test_a_twentieth_of_the_answers_must_have_waited(share: float, named: bool) -> None:
    slow = round(1000 * share)
    recording = measured(spread(0.3, 0.9, 1000 - slow) + spread(41.0, 43.0, slow), spread(0.2, 0.8))
    assert bool(found(recording)) is named


@pytest.mark.parametrize(
    ("response", "first_byte"),
    [
        (spread(42.0, 46.0), None),  # an earlier recording
        (spread(42.0, 46.0), spread(42.0, 46.0)),  # a slow server
        (spread(10.0, 37.0), spread(0.2, 0.3)),  # a page that comes bit by bit
        (spread(60.0, 70.0), spread(0.2, 0.3)),
        (spread(101.0, 900.0), spread(0.2, 0.3)),
    ],
)
def test_answers_that_are_slow_as_a_whole_or_take_another_time_did_not_wait(
    response: list[float], first_byte: list[float] | None
) -> None:
    assert found(measured(response, first_byte)) == []


@pytest.mark.parametrize(("size", "named"), [(16_384, True), (16_385, False)])
def test_a_large_answer_may_take_as_long_to_arrive(size: int, named: bool) -> None:
    assert bool(found(measured(spread(42.0, 46.0), spread(0.2, 1.2), size=size))) is named


def test_a_stream_may_pause_as_long_of_itself() -> None:
    recording = measured(spread(42.0, 46.0), spread(0.2, 1.2))
    assert recording.traffic is not None
    streamed = recording.traffic.model_copy(
        update={"streams": StreamTraffic(begun=1, counted=1, first_event=Histogram(), gaps=Histogram())}
    )
    assert found(recording.model_copy(update={"traffic": streamed})) == []


@pytest.mark.parametrize(("waiting", "named"), [((), []), ((1,), ["B"]), ((0, 2), ["A"]), ((0, 1, 2), ["A", "B"])])
def test_a_duet_names_the_server_whose_answers_wait(waiting: tuple[int, ...], named: list[str]) -> None:
    """Places 0 and 2 are the baseline's."""
    starts = []
    for number in range(6):
        start = simulated_duet(number)
        assert start.traffic is not None
        targets = tuple(
            target.model_copy(
                update={
                    "response": times(spread(42.0, 46.0) if place in waiting else spread(0.3, 0.9)),
                    "first_byte": times(spread(0.2, 0.8)),
                }
            )
            for place, target in enumerate(start.traffic.targets)
        )
        starts.append(start.model_copy(update={"traffic": start.traffic.model_copy(update={"targets": targets})}))
    said = [finding.message for finding in Duet(tuple(starts)).findings if finding.kind == "delayed-ack"]
    assert [message.partition(" the last byte")[0] for message in said] == [
        f"In 100% of the answers of {name}" for name in named
    ]


@pytest.mark.parametrize(("waited", "share"), [(37.0, 0.0), (38.5, 1.0), (49.5, 1.0), (51.0, 0.0)])
def test_an_acknowledgement_waits_38_to_50_ms(waited: float, share: float) -> None:
    first = spread(1.0, 2.0)
    assert share_waiting(times([ms + waited for ms in first]), times(first)) == share


@pytest.mark.parametrize("again", [0, 24, 25, 4_000])
@pytest.mark.parametrize(("at_ms", "what"), [(200, "lost segment"), (1_000, "SYN"), (3_000, "SYN")])
def test_requests_that_waited_for_another_segment_are_named_with_the_kernels_count(
    at_ms: int, what: str, again: int
) -> None:
    recording = measured(spread(0.2, 2.0) + spread(at_ms * 1.005, at_ms * 1.02, 50))
    seconds = recording.traffic.seconds if recording.traffic else 1.0
    named = found(counting(recording, "machine", tcp_segments_retransmitted=again / seconds))
    if again < 25:
        assert named == []
        return
    (finding,) = named
    assert (finding.kind, finding.grade) == ("sent-again", Grade.NOTE)
    assert finding.message.startswith("50 requests took ")
    assert f"sent {again:,} TCP segments again" in finding.message
    assert what in finding.message


def test_requests_that_timed_out_after_that_time_are_no_sign_of_it() -> None:
    recording = measured(spread(0.2, 2.0) + spread(1_001.0, 1_002.0, 50), timeouts=50)
    cell = CELL.model_copy(update={"timeout_ns": 1_000 * MS})
    assert found(counting(recording, "machine", tcp_segments_retransmitted=1_000.0), cell) == []


def test_requests_that_timed_out_later_hide_nothing() -> None:
    recording = measured(spread(0.2, 2.0) + spread(201.0, 204.0, 50) + [5_001.0] * 60, timeouts=60)
    (finding,) = found(counting(recording, "machine", tcp_segments_retransmitted=1_000.0))
    assert finding.message.startswith("50 requests took 200 ms")


def test_nothing_is_said_where_nobody_counted_segments() -> None:
    assert found(measured(spread(0.2, 2.0) + spread(1_001.0, 1_002.0, 50))) == []


@pytest.mark.parametrize(
    ("more", "requests"),
    [
        ([], 50),
        (spread(162.0, 198.0, 5), 50),
        (spread(162.0, 198.0, 6), 0),
        (spread(242.0, 278.0, 6), 0),
        (spread(2.0, 159.0, 400), 50),
        (spread(282.0, 900.0, 400), 50),
    ],
)
def test_only_times_that_stand_alone_count(more: list[float], requests: int) -> None:
    assert alone_at(times(spread(201.0, 204.0, 50) + more), 200 * MS) == requests


@pytest.mark.parametrize(("few", "requests"), [(9, 0), (10, 10)])
def test_ten_times_are_the_fewest(few: int, requests: int) -> None:
    assert alone_at(times(spread(201.0, 219.0, few)), 200 * MS) == requests


@given(
    middle=st.floats(0.05, 5_000.0),
    sigma=st.floats(0.2, 2.0),
    later=st.floats(1.0, 3.0),
    seed=st.integers(0, 1_000),
)
def test_nothing_is_said_of_times_as_servers_have_them(middle: float, sigma: float, later: float, seed: int) -> None:
    """Answers of any middle and spread, whose last byte comes up to three times as late as their first."""
    first = np.random.default_rng(seed).lognormal(np.log(middle), sigma, 2_000)
    response = (first * later).tolist()
    recording = counting(measured(response, first.tolist()), "machine", tcp_segments_retransmitted=1e6)
    named = {finding.kind for finding in found(recording)}
    assert "sent-again" not in named
    if middle * (later - 1) < 2.0 and sigma < 1.0:
        assert not named


@pytest.mark.parametrize("seed", range(5))
def test_a_good_server_is_left_alone(seed: int) -> None:
    assert found(counting(simulated_recording(CELL, seed=seed), "machine", tcp_segments_retransmitted=1e6)) == []


@pytest.mark.parametrize(
    ("at_ms", "lost"), [(200, "a lost segment"), (1000, "a SYN without an answer"), (3000, "a SYN without an answer")]
)
def test_linux_sends_again_after_200_ms_a_second_and_three(at_ms: int, lost: str) -> None:
    late = spread(1.005 * at_ms, 1.1 * at_ms, 20)
    recording = counting(measured(spread(1.0, 2.0) + late), "machine", tcp_segments_retransmitted=1e6)
    (said,) = found(recording)
    assert said.kind == "sent-again"
    assert said.message.startswith("20 requests took ")
    assert f"{lost} is sent again after" in said.message
    early = spread(0.85 * at_ms, 0.95 * at_ms, 20)
    assert found(counting(measured(spread(1.0, 2.0) + early), "machine", tcp_segments_retransmitted=1e6)) == []
