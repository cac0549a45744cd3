"""Streams of events on real servers: every command of the guide, mixes, comparisons and what is refused."""

import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import Redline
from tests.e2e.recorded import loaded
from tests.e2e.test_documented_commands import SHORT_AB, SHORT_LIMIT, STREAMS, replaced
from tests.fakes import targets

pytestmark = pytest.mark.e2e

SHORT = ["-d", "500ms", "--warmup", "50ms"]
SHORTER = {"-c 50": "-c 4", "-c 200": "-c 4", "load http://127.0.0.1:8080/v1": "load -c 4 http://127.0.0.1:8080/v1"} | {
    "for 3s": "for 100ms",
    "p95 <": "p50 <",
}
"""What a busy machine and a server in Python can do in a short load."""
MIX = """\
- {name: feed, get: /feed, stream: {events: sse, stall: 1s}}
- {name: lines, get: /lines, stream: {events: ndjson, until: 2}}
"""


@pytest.mark.long
def test_the_commands_of_the_guide_work(redline: Redline) -> None:
    with targets.target(targets.streams) as url, targets.target(targets.streams) as other:
        for command in STREAMS:
            for shown, short in SHORTER.items():
                command = command.replace(shown, short)  # noqa: PLW2901 - the same command, with a short load
            args = shlex.split(command)
            args = replaced(args, SHORT_AB if args[0] == "ab" else SHORT)
            for shown, real in {"http://127.0.0.1:8080": url, "http://127.0.0.1:8081": other}.items():
                args = [arg.replace(shown, real.removesuffix("/path0")) for arg in args]
            done = redline(*args).measured()
            said = done.out.lower()
            assert "between messages" in said or "read together and late" in said, "hidden only where it says why"


def test_events_and_the_times_between_them_are_in_the_result(redline: Redline) -> None:
    with targets.target(targets.streams) as url:
        done, traffic = loaded(redline, url, "--events", "sse until 4 stall 1s", "-c", "2", *SHORT)
    streams = done.json["streams"]
    assert streams["begun"] > 10
    assert streams["stalls"] == 0
    assert streams["events"] > 3 * streams["begun"]
    assert traffic.streams is not None
    assert 2e6 < traffic.streams.gaps.quantile_ns(0.5) < 20e6
    assert not {"reconnecting", "errors"} & {finding["kind"] for finding in done.json["findings"]}


def test_a_mix_has_its_streams_by_request(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "mix.yaml").write_text(MIX)
    with targets.target(targets.streams) as url:
        base = url.removesuffix("/path0")
        done = redline("load", f"{base}/", "--requests", "mix.yaml", "-c", "2", *SHORT, "--json").measured()
        by_request = {request["request"]: request["streams"] for request in done.json["requests"]}
        assert by_request["feed"]["events"] + by_request["lines"]["events"] == done.json["streams"]["events"]
        limit = redline(
            "limit", f"{base}/", "--requests", "mix.yaml", "-m", "feed", "--objective", "p99 < 1s", *SHORT_LIMIT
        )
    assert "Traceback" not in limit.err
    assert limit.code in {0, 1, 3}, limit.err


def test_a_stream_that_nothing_ends_is_said_to_be_one(redline: Redline) -> None:
    with targets.target(targets.streams) as url:
        endless = url.replace("path0", "endless")
        done = redline("load", endless, "--events", "sse", "-c", "2", *SHORT, "--timeout", "300ms")
        assert done.code == 1
        assert "`until` so many messages" in done.out.replace("\n  ", " ")
        done = redline("load", endless, "--events", "sse for 200ms", "-c", "2", *SHORT, "--timeout", "100ms")
        done.measured()
        asked = redline("load", endless, *SHORT, "--timeout", "1s")
        asked.refused(1, "if it is a stream of events, say so (--events sse")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("xml", "`xml` is not a stream of events"),
        ("sse until", "is not a stream of events"),
        ("sse until 0", "--events 'sse until 0'"),
        ("sse until many", "`many` is not a number of events"),
        ("sse stall 0s", "must be at least 1ns"),
        ("sse stall 1s stall-fails 2s", "`stall` is given twice"),
        ("chunks for 2h", "must be at most 1h"),
    ],
)
def test_what_is_no_stream_is_refused(redline: Redline, text: str, says: str) -> None:
    redline("load", "http://127.0.0.1:1/", "--events", text).refused(2, says)


def test_what_does_not_go_with_streams_is_refused(redline: Redline, tmp_path: Path) -> None:
    with targets.target(targets.healthy) as url:
        redline("load", url, "--events", "ndjson", *SHORT).refused(1, "Content-Type is not that of NDJSON")
        redline("load", url, "--events", "chunks", *SHORT).refused(1, "not sent in chunks")
    (tmp_path / "list.yaml").write_text("- {name: a, get: /a, stream: sse, expect: {body: x}}\n")
    redline("load", "http://127.0.0.1:1/", "--requests", "list.yaml").refused(2, "list.yaml:1", "no `body` to check")
    (tmp_path / "list.yaml").write_text("- {name: a, head: /a, stream: sse}\n")
    redline("load", "http://127.0.0.1:1/", "--requests", "list.yaml").refused(2, "an answer to HEAD has no events")
