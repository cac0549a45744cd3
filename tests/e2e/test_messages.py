"""Conversations in the public formats: which of their messages count, what decides, and what is named."""

import socket
import time
from pathlib import Path

import pytest

from bench.rig import running
from redline.model.limits import LimitReport
from tests.e2e.conftest import Redline
from tests.e2e.judged import judged
from tests.e2e.recorded import loaded
from tests.e2e.test_documented_commands import SHORT_AB, SHORT_LIMIT
from tests.fakes import targets

pytestmark = pytest.mark.e2e

RECORDED = Path(__file__).parents[1] / "fakes" / "messages"
SHORT = ["-d", "500ms", "--warmup", "0s"]
GAP_S = 0.002


def talks(connection: socket.socket, gap_s: float = GAP_S) -> None:
    """Answers with the conversation that a path names, message by message."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while request := connection.recv(65536):
        name = request.split()[1].decode().rsplit("/", 1)[-1]
        if name == "json":
            body = b'{"error": {"message": "no such model"}}'
            head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)
            continue
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        whole = (RECORDED / f"{name.removesuffix('-cut')}.sse").read_bytes().split(b"\n\n")[:-1]
        for event in whole[:-1] if name.endswith("-cut") else whole:
            time.sleep(gap_s)
            connection.sendall(b"%x\r\n%s\n\n\r\n" % (len(event) + 2, event))
        connection.sendall(b"0\r\n\r\n")


def talks_slowly(connection: socket.socket) -> None:
    """The same, with gaps that are four times as long."""
    talks(connection, 4 * GAP_S)


@pytest.mark.parametrize(
    ("name", "shape", "messages", "others", "tokens", "is_early"),
    [
        ("openai-chat", "openai", 2, 4, 5, False),
        ("openai-tools", "openai", 2, 3, 0, False),
        ("openai-completions", "openai", 2, 2, 2, False),
        ("openai-responses", "openai", 2, 5, 11, False),
        ("anthropic", "anthropic", 2, 6, 15, False),
        ("anthropic-cut", "anthropic", 2, 5, 15, True),
    ],
)
def test_a_public_format_is_known_by_name(
    redline: Redline, name: str, shape: str, messages: int, others: int, tokens: int, *, is_early: bool
) -> None:
    with targets.target(talks) as url:
        done, traffic = loaded(redline, url.replace("path0", name), "--events", shape, "-c", "1", *SHORT)
    streams = done.json["streams"]
    assert streams["events_of_begun"] == messages * streams["begun"]
    assert streams.get("early", 0) == streams["begun"] * is_early
    assert ("ended-early" in {finding["kind"] for finding in done.json["findings"]}) is is_early
    # One conversation may not have ended with the measurement.
    for counted, each in ((streams.get("aside", 0), others), (streams.get("amount", 0), tokens)):
        assert (streams["begun"] - 1) * each <= counted <= streams["begun"] * each
    assert traffic.streams is not None
    assert traffic.streams.first_event.quantile_ns(0.5) > 1e6


def test_a_stream_that_reports_an_error_is_wrong_though_it_ends_as_it_should(redline: Redline) -> None:
    with targets.target(talks) as url:
        overloaded = url.replace("path0", "anthropic-overloaded")
        done = redline("load", overloaded, "--events", "anthropic", "-c", "1", *SHORT)
    assert done.code == 1, done.out
    assert "a message reports an error:" in " ".join(done.out.split())
    assert "follow" not in done.out, "the advice is not that of conversations that nothing ends"


def test_messages_decide(redline: Redline) -> None:
    with targets.target(talks) as url:
        chat = url.replace("path0", "openai-chat")
        events = "openai good first-message<2s,gap<1s"
        args = ["load", chat, "--events", events, "-c", "2", *SHORT]
        done = redline(*args, "--objective", "first-message p50 < 2s, gap max < 1s, goodput > 50%").measured()
        assert "good" in done.out
        bare = [chat, "--events", "openai", "-c", "2"]
        judged(redline, *bare, objective="gap max < 1us", code=3, line="✗ gap max ")
        bare[2] = "openai good first-message<1us"
        judged(redline, *bare, objective="goodput > 50%", code=3, line="✗ goodput 0%")
        _, traffic = loaded(redline, *bare, *SHORT)
        assert traffic.streams is not None
        assert (traffic.streams.begun > 0, traffic.streams.good) == (True, 0)


def test_a_place_without_messages_is_named_with_the_first(redline: Redline) -> None:
    with targets.target(talks) as url:
        done = redline("load", url.replace("path0", "openai-chat"), "--events", "sse message /content", *SHORT)
        done.refused(1, 'none of 6 messages had a value at "/content"; the first was {')
        done = redline("load", url.replace("path0", "json"), "--events", "openai", *SHORT)
        done.refused(1, "no such model")


@pytest.mark.long
def test_servers_are_compared_by_their_messages(redline: Redline) -> None:
    """Both copies of a server have the same gaps, and the other's are four times as long."""
    with targets.target(talks) as url, targets.target(talks_slowly) as other:
        first, second = (each.replace("path0", "openai-chat") for each in (url, other))
        args = ["--events", "openai", "--metric", "gap p50", *SHORT_AB, "--json"]
        done = redline("ab", first, second, *args)
    assert done.code in {0, 1, 3}, done.err  # an inconclusive comparison has its ratio too
    gaps = [comparison for comparison in done.json["comparisons"] if comparison["metric"] == "gap p50"]
    assert len(gaps) == 1
    assert gaps[0]["primary"]
    assert 2 < gaps[0]["ratio"]["value"] < 6


@pytest.mark.long
def test_conversations_that_outlast_slices_are_compared(redline: Redline, oracle: Path) -> None:
    """They take 120 and 240 ms, and slices of short requests 50 ms at most."""
    tokens = ["null", "--tokens", "--events", "12", "--event-gap"]
    with running(oracle, *tokens, "10ms") as a, running(oracle, *tokens, "20ms") as b:
        done = redline("ab", a.url, b.url, "--events", "openai", "--metric", "gap p50", "--for", "30s", "--json")
    assert done.code in {0, 1, 3}, done.err
    (gaps,) = [comparison for comparison in done.json["comparisons"] if comparison["metric"] == "gap p50"]
    assert 1.6 < gaps["ratio"]["value"] < 2.4


def test_a_limit_holds_for_messages(redline: Redline) -> None:
    with targets.target(talks) as url:
        chat = url.replace("path0", "openai-chat")
        objective = "first-message p50 < 1s, goodput > 50%, errors < 5%"
        args = ["--events", "openai good gap<1s", "--objective", objective, *SHORT_LIMIT, "--json"]
        done = redline("limit", chat, *args)
    assert "Traceback" not in done.err
    assert done.code in {0, 1, 3}, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    states = [state.state for probe in cell.probes for state in probe.counts]
    assert "met" in states, done.out


@pytest.mark.long
def test_a_limit_says_how_many_users_are_under_way_at_once(redline: Redline, oracle: Path) -> None:
    """Conversations wait for one worker, 5 ms each, and take 120 ms then: 200/s are the most, which are 25 users."""
    queue = ["deterministic", "--service", "5ms", "--events", "12", "--tokens", "--event-gap", "10ms"]
    objective = ["--objective", "first-message p95 < 100ms"]
    with running(oracle, *queue) as server:
        probes = ["-d", "2s", "--warmup", "100ms", "--probes", "4", "--start", "60"]
        done = redline("limit", server.url, "--events", "openai", *objective, *probes, "--json")
    assert done.code in {0, 1, 3}, done.err
    (cell,) = LimitReport.model_validate(done.json).cells
    (limit,) = cell.limits
    known = [
        (rate, users)
        for rate, users in ((limit.passed_per_s, limit.passed_users), (limit.failed_per_s, limit.failed_users))
        if rate is not None
    ]
    assert known, cell.reason
    assert all(users is not None and users / rate > 0.12 for rate, users in known)
    assert limit.passed_per_s is None or limit.passed_per_s <= 200
