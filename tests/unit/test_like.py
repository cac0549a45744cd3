"""`--like`: command lines of other load generators as flags of `redline load`."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from redline.cli.command_line import LoadFlags, app
from redline.cli.commands import load
from redline.cli.load_flags import as_like, load_suite
from redline.errors import UsageError
from redline.model import Closed, Open
from redline.peers.like import read_like

URL = "http://127.0.0.1:8080/items"


@pytest.mark.parametrize(
    ("command", "tool", "flags"),
    [
        (f"wrk -t2 -c64 -d10s {URL}", "wrk", {"threads": 2, "connections": 64, "duration": "10s", "timeout": "2s"}),
        (f"wrk {URL}", "wrk", {"threads": 2, "connections": 10, "duration": "10s", "warmup": "0s"}),
        (f"wrk -d 30 -H 'A: b' --latency {URL}", "wrk", {"duration": "30s", "headers": ["A: b"]}),
        (f"wrk -R2k -c100 {URL}", "wrk2", {"rate": "2000", "arrivals": "uniform", "connections": 100}),
        (f"/usr/bin/wrk2 -t1 -R500 {URL}", "wrk2", {"rate": "500", "threads": 1, "warmup": "10s"}),
        (f"hey -z 5s -c 10 -q 20 {URL}", "hey", {"duration": "5s", "connections": 10, "pace": "20"}),
        (f"hey -n=500 -m POST -d x -T text/plain {URL}", "hey", {"count": 500, "method": "POST", "body": "x"}),
        (f"hey -D items.json -disable-keepalive {URL}", "hey", {"body": "@items.json", "requests_per_connection": 1}),
        (f"oha -z 3s -q 30 --no-tui {URL}", "oha", {"duration": "3s", "rate": "30", "arrivals": "uniform"}),
        (f"oha {URL}", "oha", {"count": 200, "connections": 50}),
        (f"h2load -n1000 -c10 -m 5 {URL}", "h2load", {"count": 1000, "depth": 5, "http2": True}),
        (f"h2load --h1 -D 10 --warm-up-time 2 {URL}", "h2load", {"http2": False, "duration": "10s", "warmup": "2s"}),
        (f"echo 'GET {URL}' | vegeta attack -rate=300/1m -duration=5s | vegeta report", "vegeta", {"rate": "5"}),
        (f"vegeta attack -rate 100/s -duration 5s {URL}", "vegeta", {"rate": "100", "connections": 10000}),
        (f"ab -k -n 1000 -c 5 {URL}", "ab", {"count": 1000, "connections": 5, "warmup": "0s"}),
        (f"ab -n 10 -p a.json -T application/json {URL}", "ab", {"requests_per_connection": 1, "body": "@a.json"}),
        (f"echo 'POST {URL}' | vegeta attack -duration=5s", "vegeta", {"method": "POST", "rate": "50"}),
        (f"echo 'GET {URL}' | vegeta attack -body a.json", "vegeta", {"method": "GET", "body": "@a.json"}),
        (f"hey -d x {URL}", "hey", {"method": "GET", "body": "x"}),
        ("k6 run --vus 10 -d 30s script.js", "k6", {"connections": 10, "duration": "30s"}),
        ("k6 run -s 30s:10 -s 1m:0 script.js", "k6", {"stages": ["10:30s", "0:1m"]}),
    ],
)
def test_a_command_line_means_the_same_load(command: str, tool: str, flags: dict[str, Any]) -> None:
    like = read_like(command)
    assert like.tool == tool
    assert {name: like.flags[name] for name in flags} == flags
    assert like.flags.get("url") == (None if tool == "k6" else URL)
    assert not like.ignored
    assert like.says


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "this is no command"),
        ("curl http://127.0.0.1/", "this is no command"),
        ("wrk 'http://127.0.0.1/", "no closing quotation"),
        (f"wrk -s post.lua {URL}", "wrk -s has no counterpart"),
        (f"wrk -c ten {URL}", "ten is not a whole number"),
        (f"wrk {URL} -c", "expected one argument"),
        (f"wrk {URL} {URL}2", "2 URLs"),
        (f"vegeta attack -rate=0 {URL}", "-rate=0 is not a rate"),
        (f"hey -x proxy:80 {URL}", "hey -x has no counterpart"),
    ],
)
def test_what_cannot_be_done_alike_is_refused(command: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_like(command)


def test_options_without_a_counterpart_are_named() -> None:
    assert read_like(f"wrk --bogus {URL}").ignored == ("--bogus",)


def test_flags_beside_it_take_precedence() -> None:
    flags, like = as_like(LoadFlags(like=f"wrk -c8 -d10s {URL}", duration="2s"))
    assert like is not None
    assert (flags.connections, flags.duration, flags.url) == (8, "2s", URL)
    assert as_like(LoadFlags(url=URL))[1] is None


def test_a_flag_with_its_default_takes_precedence_too(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[LoadFlags]()
    monkeypatch.setattr(load, "execute", seen.append)
    CliRunner().invoke(app, ["load", "--like", f"wrk -c100 -d30s {URL}", "-c", "64", "--warmup", "1s"])
    flags, _ = as_like(seen[0])
    assert (flags.connections, flags.warmup, flags.duration) == (64, "1s", "30s")
    assert flags.url == URL


@pytest.mark.parametrize(
    ("command", "shape"),
    [
        (f"wrk -t2 -c64 {URL}", Closed(users=64)),
        (f"hey -n 100 -c 4 -q 5 {URL}", Closed(users=4, pace_per_s=5.0)),
        (
            f"vegeta attack -rate=50/s -duration=5s -connections 7 {URL}",
            Open(rate_per_s=50.0, arrivals="uniform", connections=7),
        ),
    ],
)
def test_the_suite_has_that_load(command: str, shape: object) -> None:
    suite, _ = load_suite(as_like(LoadFlags(like=command))[0])
    assert suite.loads[0].shape == shape
    assert suite.scenarios[0].request.path == "/items"


def test_no_server_is_an_error() -> None:
    with pytest.raises(UsageError, match="no server is named"):
        load_suite(as_like(LoadFlags(like="k6 run -u 3 -d 1s script.js"))[0])


@given(
    st.lists(st.text(), max_size=6), st.sampled_from(["wrk", "hey", "oha", "h2load", "vegeta attack", "ab", "k6 run"])
)
def test_any_command_line_is_read_or_refused(words: list[str], tool: str) -> None:
    try:
        like = read_like(f"{tool} {' '.join(words)}")
    except UsageError:
        return
    assert like.says
