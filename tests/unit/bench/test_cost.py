"""The pure parts of the benches: pairs, verdicts, the output of peers and the engine, and the table."""

import math
from pathlib import Path
from typing import Any

import pytest

from bench.cost.engine import read
from bench.cost.pairs import Client, Interval, Ran, Sample, Samples, difference, in_rounds, ratio
from bench.cost.pairs import sample as measured
from bench.cost.peers import find, pipelining, ran, version
from bench.cost.place import Use, busy_line
from bench.cost.scaling import linear
from bench.cost.table import Row, order, row, table
from redline.errors import DriveError
from redline.extras.peers import ADAPTERS
from redline.model import Histogram

GOLDEN = Path(__file__).parents[2] / "golden" / "peers"


def read_peer(name: str, output: str) -> Ran:
    (adapter,) = (each for each in ADAPTERS if each.name == name)
    return ran(name, adapter.read(output))


def sample(cpu_us: float, faults: str = "") -> Sample:
    return Sample(Ran(1000, 5000.0, faults), cpu_us, 0.5)


def client(name: str) -> Client:
    return Client(name, lambda: Ran(1, 1.0))


def test_a_ratio_is_that_of_pairs_and_its_interval_holds_it() -> None:
    found = ratio([7.0, 14.0, 21.0], [10.0, 20.0, 30.0])
    assert found.value == pytest.approx(0.7)
    assert found.low == pytest.approx(0.7)
    assert found.high == pytest.approx(0.7)
    spread = ratio([6.0, 8.0], [10.0, 10.0])
    assert spread.low < spread.value < spread.high


def test_one_pair_has_no_interval_and_no_verdict() -> None:
    found = ratio([7.0], [10.0])
    assert found.value == pytest.approx(0.7)
    assert math.isinf(found.high)
    assert found.verdict(0.9) == "unclear"
    assert difference([3.0], [1.0]).value == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("low", "high", "goal", "verdict"),
    [
        (0.5, 0.7, 0.7, "met"),
        (0.5, 0.71, 0.7, "unclear"),
        (0.7, 0.8, 0.7, "unclear"),
        (0.71, 0.8, 0.7, "missed"),
        (0.1, 0.2, None, "no goal"),
    ],
)
def test_a_verdict_needs_the_whole_interval_on_one_side(
    low: float, high: float, goal: float | None, verdict: str
) -> None:
    assert Interval((low + high) / 2, low, high).verdict(goal) == verdict


def test_every_second_round_is_in_the_opposite_order_and_who_fails_is_asked_no_more() -> None:
    asked: list[str] = []

    def measure(each: Client) -> Sample:
        asked.append(each.name)
        if each.name == "c":
            raise DriveError("it is broken", hint="none")
        return sample(1.0)

    samples = in_rounds([client("a"), client("b"), client("c")], 3, lambda _line: None, measure)
    assert asked == ["a", "b", "c", "b", "a", "a", "b"]
    assert "it is broken" in samples.failed["c"]
    assert len(samples.of["a"]) == 3


def test_a_run_without_a_right_answer_is_no_sample() -> None:
    with pytest.raises(ValueError, match="9 connect"):
        measured(Client("redline", lambda: Ran(0, 0.0, "9 connect")))


def test_wrk_is_read_with_its_errors_and_percentiles() -> None:
    found = read_peer(
        "wrk2",
        "  Latency Distribution (HdrHistogram - Recorded Latency)\n 50.000%    0.99ms\n 75.000%    1.32ms\n"
        " 99.000%  980.00us\n  59994 requests in 3.00s, 3.95MB read\n"
        "  Socket errors: connect 0, read 1, write 0, timeout 2\n"
        "Requests/sec:  19998.12\n",
    )
    assert (found.requests, found.rate_per_s) == (59994, 19998.12)
    assert (found.p50_us, found.p99_us) == (990.0, 980.0)
    assert found.faults == "Socket errors: connect 0, read 1, write 0, timeout 2"
    with pytest.raises(DriveError):
        read_peer("wrk", "unable to connect")


@pytest.mark.parametrize(
    ("file", "requests", "rate_per_s"),
    [
        ("wrk.txt", 6272, 3133.87),
        ("wrk2.txt", 11965, 997.07),
        ("h2load.txt", 1984, 992.0),
        ("oha.json", 1996, 1000.2758662910124),
        ("k6.json", 2000, 997.8114671812531),
    ],
)
def test_what_the_selftest_reads_is_read_here_too(file: str, requests: int, rate_per_s: float) -> None:
    name = file.partition(".")[0]
    found = read_peer(name, (GOLDEN / file).read_text())
    assert (found.requests, found.rate_per_s, found.faults) == (requests, rate_per_s, "")
    with pytest.raises(DriveError):
        read_peer(name, "unable to connect")


def test_a_peer_is_looked_for_in_the_folder_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, number in (("first", "9.8.7"), ("second", "1.2.3")):
        fake = tmp_path / folder / "wrk"
        fake.parent.mkdir()
        fake.write_text(f"#!/bin/sh\necho wrk {number}\n")
        fake.chmod(0o755)
    monkeypatch.delenv("REDLINE_PEERS", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "second"))
    find.cache_clear()
    assert (version("wrk"), version("oha")) == ("wrk 1.2.3", "oha not installed")
    monkeypatch.setenv("REDLINE_PEERS", str(tmp_path / "first"))
    find.cache_clear()
    assert version("wrk") == "wrk 9.8.7"
    find.cache_clear()


def test_h2load_is_read_with_what_tls_agreed_on() -> None:
    found = read_peer(
        "h2load",
        "TLS Protocol: TLSv1.3\nCipher: TLS_AES_128_GCM_SHA256\nfinished in 1.00s, 82889.00 req/s, 5.45MB/s\n"
        "requests: 82891 total, 82897 started, 82889 done, 82887 succeeded, 2 failed, 2 errored, 0 timeout\n",
    )
    assert (found.requests, found.rate_per_s) == (82887, 82889.0)
    assert found.faults == "2 failed, 2 errored"
    assert found.note == "TLSv1.3 TLS_AES_128_GCM_SHA256"


def test_the_engines_requests_are_those_of_all_phases_and_its_rate_that_of_the_window() -> None:
    events: list[dict[str, Any]] = [
        {"event": "started", "engine": {"backend": "epoll"}, "tls": {"version": "1.3", "cipher": "C", "alpn": None}},
        {"event": "interval", "counts": {"completed": 50}},
        {"event": "interval", "counts": {"completed": 200}},
        {
            "event": "result",
            "ended": "complete",
            "measure_start_ns": 0,
            "measure_end_ns": 2_000_000_000,
            "counts": {"completed": 200, "outcomes": {"ok": 200, "timeout": 1}},
            "response": Histogram.of([1000.0] * 201).encode(),
        },
    ]
    found = read(events, "io_uring")
    assert (found.requests, found.rate_per_s) == (250, 100.0)
    assert found.faults == "1 timeout, used epoll"
    assert found.p50_us == pytest.approx(1.0, rel=0.01)
    assert found.note == "TLS 1.3 C"


def test_the_peer_with_the_goal_stands_between_both_engines() -> None:
    named = order([client("uring"), client("epoll")], [client("wrk"), client("oha")])
    assert [each.name for each in named] == ["uring", "wrk", "epoll", "oha"]
    assert [each.name for each in order([client("uring"), client("epoll")], [])] == ["uring", "epoll"]


def test_a_peer_that_is_not_there_leaves_the_engines_figures() -> None:
    samples = Samples(of={"redline": [sample(4.0)]}, failed={"wrk": "not installed"})
    found = row("plain", "redline", "wrk", 0.7, samples)
    assert found.verdict == "not run"
    assert found.ours_us == pytest.approx(4.0)
    assert "wrk: not installed" in found.note


def test_what_went_wrong_stands_below_the_table() -> None:
    samples = Samples(of={"redline": [sample(4.0), sample(4.2, "3 timeout")], "wrk": [sample(6.0), sample(6.1)]})
    lines = table([row("plain", "redline", "wrk", 0.7, samples), Row("other", "a", "b", None, None)])
    assert "3 timeout" in lines[-1]
    assert "(1)" in lines[2]
    assert "not run" in lines[3]
    assert {each.count("|") for each in lines[:4]} == {11}


def test_two_workers_that_make_what_one_made_are_half_of_linear() -> None:
    found = linear([sample(4.0), sample(4.0)], [sample(4.0), sample(4.0)], 2)
    assert found is not None
    assert found.value == pytest.approx(0.5)
    assert linear([], [sample(4.0)], 2) is None


def test_others_are_what_is_not_ours() -> None:
    before = Use(busy_s=100.0, stolen_s=1.0, ours_s=5.0, at_s=0.0, cores=2)
    quiet = Use(busy_s=108.0, stolen_s=1.0, ours_s=12.9, at_s=5.0, cores=2)
    busy = Use(busy_s=109.0, stolen_s=1.0, ours_s=6.0, at_s=5.0, cores=2)
    assert quiet.others_since(before)[0] == pytest.approx(0.01)
    assert "busy" not in busy_line(before, quiet)
    assert busy.others_since(before)[0] == pytest.approx(0.8)
    assert "do not keep" in busy_line(before, busy)


def test_wrks_script_asks_so_many_at_once(tmp_path: Path) -> None:
    flag, script = pipelining(16, "/path0", tmp_path)
    assert flag == "-s"
    text = (tmp_path / "pipelined16.lua").read_text()
    assert script.endswith("pipelined16.lua")
    assert "for i = 1, 16 do" in text
    assert "'/path0'" in text
