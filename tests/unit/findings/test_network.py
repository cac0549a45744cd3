"""Doubts about the network: a clean network raises none, and every doubt is raised by its cause."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.findings import judge
from redline.model import HOPS, Cell, Finding, FindingKind, Grade, HopFacts, Recording
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording
from tests.fakes.series import counting, showing

CLOSED = simulated_cell(load=SATURATE)
OPEN = simulated_cell(load=STEADY)
GIGABIT = (1e9, 1e9)
PORTS = (28_232.0, 28_232.0)
CLEAN = {
    "tcp_segments_sent": 100_000.0,
    "tcp_segments_retransmitted": 0.0,
    "listen_drops": 0.0,
    "listen_overflows": 0.0,
    "syn_cookies": 0.0,
    "link_sent_bytes": 8e6,
    "link_received_bytes": 20e6,
}


def network(recording: Recording, **per_s: float) -> Recording:
    """The recording with all that a monitor reports of the network, clean but for these counters."""
    counted = counting(recording, "machine", **{**CLEAN, **per_s})
    return showing(counted, "machine", time_wait=(12, 12), local_ports=PORTS, link_bits_per_s=GIGABIT)


def raised(recording: Recording) -> dict[FindingKind, Grade]:
    return {finding.kind: finding.grade for finding in judge(CLOSED, recording)}


def only(recording: Recording) -> Finding:
    (finding,) = judge(CLOSED, recording)
    return finding


@pytest.mark.parametrize("cell", [CLOSED, OPEN], ids=["closed", "open"])
@pytest.mark.parametrize("seed", range(5))
def test_a_clean_network_is_left_alone(cell: Cell, seed: int) -> None:
    recording = simulated_recording(cell, seed=seed)
    assert judge(cell, network(recording)) == judge(cell, recording)


@pytest.mark.parametrize(
    ("per_s", "expected"),
    [
        ({"tcp_segments_retransmitted": 90.0}, {}),
        ({"tcp_segments_retransmitted": 200.0}, {"retransmits": Grade.NOTE}),
        ({"tcp_segments_retransmitted": 2_000.0}, {"retransmits": Grade.NOTE}),
        ({"listen_drops": 4.0}, {"listen-overflow": Grade.NOTE}),
        ({"listen_drops": 40.0, "listen_overflows": 40.0}, {"listen-overflow": Grade.NOTE}),
        ({"syn_cookies": 4.0}, {"listen-overflow": Grade.NOTE}),
        ({"link_sent_bytes": 95e6}, {"network-limited": Grade.NOTE}),
        ({"link_received_bytes": 120e6}, {"network-limited": Grade.WARN}),
    ],
)
def test_each_doubt_is_raised_by_its_cause_alone(per_s: dict[str, float], expected: dict[FindingKind, Grade]) -> None:
    assert raised(network(simulated_recording(CLOSED), **per_s)) == expected


@pytest.mark.parametrize(
    ("own", "of_all", "cookies", "grade", "words"),
    [
        (0.0, 48.0, 0.0, None, ""),
        (4.0, 48.0, 0.0, Grade.NOTE, "The listener of the server dropped"),
        (40.0, 48.0, 9.0, Grade.WARN, "The listener of the server dropped"),
        (0.0, 0.0, 9.0, Grade.NOTE, "On this machine listeners dropped"),
    ],
)
def test_what_other_listeners_dropped_is_not_the_servers(
    own: float, of_all: float, cookies: float, grade: Grade | None, words: str
) -> None:
    recording = network(simulated_recording(CLOSED), listen_drops=of_all, listen_overflows=of_all, syn_cookies=cookies)
    found = judge(CLOSED, counting(recording, "server", listen_drops=own))
    assert [each.grade for each in found] == ([] if grade is None else [grade])
    assert all(words in each.message for each in found)


@pytest.mark.parametrize(
    ("server", "proxy", "words"),
    [
        (0.0, 40.0, ["The listener of the proxy proxy.front dropped 40 "]),
        (4.0, 40.0, ["The listener of the server dropped 4 ", "The listener of the proxy proxy.front dropped 40 "]),
        (40.0, 0.0, ["The listener of the server dropped 40 "]),
        (40.0, None, ["The listener of the server dropped 40 "]),
    ],
)
def test_each_listener_is_blamed_for_what_it_dropped(server: float, proxy: float | None, words: list[str]) -> None:
    recording = counting(network(simulated_recording(CLOSED)), "server", listen_drops=server)
    assert recording.server is not None
    front = HopFacts(name="proxy.front", process=recording.server, upstream="h1", upstream_seen="h1", certificate="")
    routed = recording.server.model_copy(update={"hops": (front,)})
    recording = recording.model_copy(update={"server": routed})
    if proxy is not None:
        recording = counting(recording, HOPS[0], listen_drops=proxy)
    found = [each.message for each in judge(CLOSED, recording) if each.kind == "listen-overflow"]
    assert len(found) == len(words)
    assert all(message.startswith(start) for message, start in zip(found, words, strict=True))


@pytest.mark.parametrize("again", [200.0, 20_000.0])
def test_what_is_counted_for_all_programs_is_blamed_on_none(again: float) -> None:
    dropped = {"listen_drops": 500.0, "listen_overflows": 500.0}
    found = judge(CLOSED, network(simulated_recording(CLOSED), tcp_segments_retransmitted=again, **dropped))
    assert {each.kind for each in found} == {"retransmits", "listen-overflow"}
    assert all(each.grade is Grade.NOTE and "n this machine" in each.message for each in found)


@pytest.mark.parametrize(
    ("at_first", "at_last", "grade"),
    [
        (0, 12_000, None),
        (0, 21_000, Grade.NOTE),
        (0, 31_000, Grade.WARN),
        (27_000, 28_000, None),  # they rest after an earlier trial
        (28_000, 6_000, None),
        (8_000, 31_000, Grade.NOTE),
    ],
)
def test_ports_that_this_trial_used_up_are_reported(at_first: int, at_last: int, grade: Grade | None) -> None:
    recording = showing(network(simulated_recording(CLOSED)), "machine", time_wait=(at_first, at_last))
    assert raised(recording) == ({"port-pressure": grade} if grade else {})


def test_what_rested_before_does_not_hide_what_came_to_rest() -> None:
    recording = network(simulated_recording(CLOSED))
    series = recording.find("time_wait", "machine")
    assert series is not None
    half = len(series.values) // 2
    falls_and_rises = [25_000.0 * abs(half - at) / half for at in range(len(series.values))]
    dip = series.model_copy(update={"values": tuple(falls_and_rises)})
    kept = tuple(dip if one is series else one for one in recording.series)
    assert raised(recording.model_copy(update={"series": kept})) == {"port-pressure": Grade.NOTE}


@pytest.mark.parametrize(
    "missing", ["tcp_segments_sent", "tcp_segments_retransmitted", "local_ports", "time_wait", "link_bits_per_s"]
)
def test_what_nobody_looked_at_is_not_doubted(missing: str) -> None:
    bad = network(
        simulated_recording(CLOSED),
        tcp_segments_retransmitted=9_000.0,
        link_sent_bytes=120e6,
    )
    bad = showing(bad, "machine", time_wait=(0, 28_000))
    assert set(raised(bad)) == {"retransmits", "port-pressure", "network-limited"}
    kept = tuple(one for one in bad.series if one.name != missing)
    assert len(raised(bad.model_copy(update={"series": kept}))) == 2


def test_a_server_on_this_machine_is_never_limited_by_a_link() -> None:
    recording = network(simulated_recording(CLOSED))
    loopback = tuple(one for one in recording.series if not one.name.startswith("link_"))
    assert raised(recording.model_copy(update={"series": loopback})) == {}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda one: network(one, tcp_segments_retransmitted=2_000.0), ["2,000 TCP segments", "100,000", "2%"]),
        (lambda one: network(one, listen_drops=40.0, listen_overflows=30.0, syn_cookies=5.0), ["40", "30", "5 by"]),
        (lambda one: showing(network(one), "machine", time_wait=(0, 28_000)), ["28,232 local ports"]),
        (lambda one: network(one, link_received_bytes=120e6), ["960 Mbit/s came in", "1,000 Mbit/s", "96%"]),
    ],
)
def test_messages_carry_the_numbers(change: Callable[[Recording], Recording], words: list[str]) -> None:
    finding = only(change(simulated_recording(CLOSED)))
    for word in words:
        assert word in finding.message, finding.message
    assert finding.message.endswith(".")
    assert finding.advice.endswith(".")


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1e9), st.floats(0, 1e9), st.integers(0, 60_000))
def test_no_counters_break_the_judgement(again: float, dropped: float, sent: float, received: float, rest: int) -> None:
    recording = network(
        RECORDING,
        tcp_segments_sent=0.0,
        tcp_segments_retransmitted=again,
        listen_drops=dropped,
        link_sent_bytes=sent,
        link_received_bytes=received,
    )
    for finding in judge(CLOSED, showing(recording, "machine", time_wait=(rest, 0))):
        assert finding.grade is not Grade.INVALID


RECORDING = simulated_recording(CLOSED)
