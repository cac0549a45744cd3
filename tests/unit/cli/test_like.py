"""`--like`: command lines of other load generators as flags of `redline load`."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from redline.asking.load import load_suite
from redline.cli.asks import load_ask
from redline.cli.command_line import LoadFlags, app
from redline.cli.commands import load
from redline.cli.commands.load import as_like
from redline.driving.secrets import masked
from redline.errors import UsageError
from redline.extras.peers.like import read_like
from redline.model import Closed, Open
from redline.model.template import has_placeholders, sent

URL = "http://127.0.0.1:8080/items"


@pytest.mark.parametrize(
    ("command", "tool", "flags"),
    [
        (f"wrk -t2 -c64 -d10s {URL}", "wrk", {"threads": 2, "connections": 64, "duration": "10s", "timeout": "2s"}),
        (f"wrk {URL}", "wrk", {"threads": 2, "connections": 10, "duration": "10s", "warmup": "0s"}),
        (f"wrk -d 30 -H 'A: b' --latency {URL}", "wrk", {"duration": "30s", "headers": ["A: b"]}),
        (f"wrk -R2k -c100 {URL}", "wrk2", {"rate": "2000", "arrivals": "uniform", "connections": 100}),
        (f"/usr/bin/wrk2 -t1 -R500 {URL}", "wrk2", {"rate": "500", "threads": 1, "warmup": "0s", "duration": "10s"}),
        (f"wrk2 -d1m -R500 {URL}", "wrk2", {"warmup": "10s", "duration": "50s"}),
        (f"wrk -t3 -c64 {URL}", "wrk", {"connections": 63}),
        (f"wrk -T 5s --timeout=6s {URL}", "wrk", {"timeout": "6s"}),
        (
            f"wrk -H 'connection: close' -H 'A: b' {URL}",
            "wrk",
            {"headers": ["A: b", "Connection: close"], "requests_per_connection": 1},
        ),
        (f"h2load -H 'connection: close' {URL}", "h2load", {"headers": [], "requests_per_connection": 1}),
        (f"wrk -H 'Connection: keep-alive' {URL}", "wrk", {"headers": []}),
        (f"time wrk -c20 {URL} 2>&1 | tee out.txt", "wrk", {"connections": 20}),
        (f"GOGC=off taskset -c 0,1 wrk -c20 {URL} > out.txt &", "wrk", {"connections": 20}),
        (f"docker run --rm -it --network host williamyeh/wrk:4.0.2 -c20 {URL}", "wrk", {"connections": 20}),
        (f"wrk -c20 \\\n  -d5s \\\n  {URL}  # as in the blog", "wrk", {"connections": 20, "duration": "5s"}),
        (f"hey -z 5s -c 10 -q 20 {URL}", "hey", {"duration": "5s", "connections": 10, "pace": "20"}),
        (f"hey -n 1000 -c 64 {URL}", "hey", {"count": 960}),
        (f"hey --n 100 -c=10 -disable-keepalive=false -cpus 2 {URL}", "hey", {"count": 100, "connections": 10}),
        (f"hey {URL}", "hey", {"headers": ["Content-Type: text/html", "Accept-Encoding: gzip"]}),
        (
            f"hey -T '' -disable-compression -U me {URL}",
            "hey",
            {"headers": ["User-Agent: me", "Content-Type: text/html"]},
        ),
        (
            f"hey -a user:pass -H 'Accept-Encoding: br' -T a/b {URL}",
            "hey",
            {"headers": ["Accept-Encoding: br", "Content-Type: a/b"], "user": "user:pass"},
        ),
        (f"hey -n=500 -m POST -d x -T text/plain {URL}", "hey", {"count": 500, "method": "POST", "body": "x"}),
        (f"hey -D items.json -disable-keepalive {URL}", "hey", {"body": "@items.json", "requests_per_connection": 1}),
        (f"oha -z 3s -q 30 --no-tui {URL}", "oha", {"duration": "3s", "rate": "30", "arrivals": "uniform"}),
        (
            f"oha {URL}",
            "oha",
            {
                "count": 200,
                "connections": 50,
                "timeout": "10m",
                "headers": ["Accept: */*", "Accept-Encoding: gzip, compress, deflate, br"],
            },
        ),
        (f"oha -n 1k -p 4 -r 0 --output-format json {URL}", "oha", {"count": 1000, "depth": 1}),
        (f"oha --http-version 2 -p 4 {URL}", "oha", {"http2": True, "depth": 4}),
        (f"h2load -n1000 -c10 -m 5 {URL}", "h2load", {"count": 1000, "depth": 5, "http2": True}),
        (f"h2load -c10 -D 30 --rps 100 -w30 {URL}", "h2load", {"pace": "100", "connections": 10}),
        (
            f"h2load -n10 -p http/1.1 -H ':method: PUT' -H 'a: b' {URL}",
            "h2load",
            {"http2": False, "method": "PUT", "headers": ["a: b"]},
        ),
        (f"h2load --h1 -D 10 --warm-up-time 2 {URL}", "h2load", {"http2": False, "duration": "10s", "warmup": "2s"}),
        (f"echo 'GET {URL}' | vegeta attack -rate=300/1m -duration=5s | vegeta report", "vegeta", {"rate": "5"}),
        (
            f'echo "GET {URL}"|vegeta attack -duration=5s|tee x.bin|vegeta report',
            "vegeta",
            {"duration": "5s", "connections": 10000, "connections_at_start": 1},
        ),
        (
            f"echo 'GET {URL}' | vegeta -cpus 2 attack -keepalive=false -http2=false -max-workers 9",
            "vegeta",
            {"requests_per_connection": 1, "connections": 9, "http2": False},
        ),
        (
            f"echo -e 'PUT {URL}\\nAccept-Encoding: br\\n@a.json' | vegeta attack",
            "vegeta",
            {"method": "PUT", "body": "@a.json", "headers": ["Accept-Encoding: br"]},
        ),
        (
            f"printf 'GET {URL}\\nA: b\\n' | vegeta attack -duration 0",
            "vegeta",
            {"headers": ["A: b", "Accept-Encoding: gzip"], "duration": "10m"},
        ),
        (f"vegeta attack -rate 100/s -duration 5s {URL}", "vegeta", {"rate": "100", "connections": 10000}),
        (f"ab -k -n 1000 -c 5 {URL}", "ab", {"count": 1000, "connections": 5, "warmup": "0s"}),
        (f"ab -t 30 {URL}", "ab", {"count": 50000, "duration": "30s"}),
        (f"ab -n 9 -t 30 {URL}", "ab", {"count": 50000}),
        (f"ab -t 30 -n 90000 {URL}", "ab", {"count": 90000, "duration": "30s"}),
        (
            f"ab -n 9 -i -A u:p -C a=1 -v 2 -g x.tsv {URL.removeprefix('http://')}",
            "ab",
            {"method": "HEAD", "headers": ["Cookie: a=1", "Accept: */*"], "user": "u:p"},
        ),
        (
            f"ab -u a.txt {URL}",
            "ab",
            {"method": "PUT", "body": "@a.txt", "headers": ["Accept: */*", "Content-Type: text/plain"]},
        ),
        (f"ab -n 10 -p a.json -T application/json {URL}", "ab", {"requests_per_connection": 1, "body": "@a.json"}),
        (f"echo 'POST {URL}' | vegeta attack -duration=5s", "vegeta", {"method": "POST", "rate": "50"}),
        (f"echo 'GET {URL}' | vegeta attack -body a.json", "vegeta", {"method": "GET", "body": "@a.json"}),
        (f"hey -d x {URL}", "hey", {"method": "GET", "body": "x"}),
        (f"hey -q 5 {URL}", "hey", {"pace": "5"}),
        (f"oha -q 10 {URL}", "oha", {"rate": "10", "arrivals": "uniform"}),
        (f"./hey_linux_amd64 -c 10 {URL}", "hey", {"connections": 10}),
        ("k6 run --vus 10 -d 30s script.js", "k6", {"connections": 10, "duration": "30s"}),
        (
            "k6 run --stage 5s:10,5m:20 -e A=b - < s.js",
            "k6",
            {"stages": ["10:5s", "20:5m"], "duration": "305000000000ns"},
        ),
        ("k6 run -u 4 -i 100 -d 30s x.js", "k6", {"connections": 4, "count": 100, "duration": "30s"}),
        ("k6 run -u 4 -i 100 x.js", "k6", {"connections": 4, "count": 100, "duration": "10m"}),
        ("k6 run -s 30s:10 -s 1m:0 script.js", "k6", {"stages": ["10:30s", "0:1m"]}),
    ],
)
def test_a_command_line_means_the_same_load(command: str, tool: str, flags: dict[str, Any]) -> None:
    like = read_like(command)
    assert like.tool == tool
    assert {name: like.flags[name] for name in flags} == flags
    assert like.flags.get("url") == (None if tool == "k6" else URL)
    assert like.says


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("", "this is no command"),
        ("curl http://127.0.0.1/", "this is no command"),
        ("wrk 'http://127.0.0.1/", "no closing quotation"),
        (f"wrk -s post.lua {URL}", "-s post.lua: No such file or directory"),
        ("wrk -s post.lua", "a script needs the URL of the server"),
        (f"wrk -c ten {URL}", "ten is not a whole number"),
        (f"wrk {URL} -c", "option -c requires argument"),
        (f"wrk --bogus {URL}", "option --bogus not recognized"),
        (f"wrk -t8 -c4 {URL}", "wrk -t8 -c4: each thread needs a connection"),
        (f"wrk -t$(nproc) {URL}", "`$(nproc)` is for a shell to fill in"),
        (f'wrk -H "A: $TOKEN" {URL}', "`$TOKEN` is for a shell to fill in"),
        (f"wrk {URL}?a=1&b=2", "`&` is for a shell"),
        (f"wrk {URL}\nwrk {URL}", "a second line is for a shell"),
        ("wrk 127.0.0.1:8080", "`127.0.0.1:8080` is neither an option of wrk nor a URL"),
        (f"wrk {URL} twice", "`twice` is neither an option of wrk nor a URL"),
        (f"cat x | wrk {URL}", "wrk reads no input"),
        (f"wrk2 {URL}", "wrk2 needs a rate"),
        (f"hey -n 10 -c 64 {URL}", "fewer requests than connections"),
        (f"hey {URL} -n 1000", "-n stands after the URL"),
        (f"hey -d @item.json {URL}", "hey -d sends `@item.json` as it is"),
        (f"hey -n1000 {URL}", "option -n1000 not recognized"),
        (f"hey -h2=maybe {URL}", "option -h2 is true or false, not maybe"),
        (f"hey {URL} -c", "-c stands after the URL"),
        (f"oha -n 9 -z 9s {URL}", "oha takes -n or -z"),
        (f"oha --http-version 3 {URL}", "--http-version 3 has no counterpart"),
        (f"ab -n 10 -c 64 {URL}", "fewer requests than connections"),
        (f"h2load -n 10 -c 64 {URL}", "fewer requests than connections"),
        ("vegeta report results.bin", "vegeta report makes no load"),
        ("vegeta attack < targets.txt", "vegeta reads its targets from targets.txt"),
        ("cat targets.txt | vegeta attack", "vegeta reads its targets from `cat`"),
        (f"echo 'GET {URL}' 'GET {URL}' | vegeta attack", "is not a target"),
        (f"printf 'GET {URL}\\nGET {URL}\\n' | vegeta attack", "several targets"),
        ("echo hello | vegeta attack", "`hello` is not a target of vegeta"),
        (f"vegeta attack -targets=t.txt {URL}", "vegeta -targets has no counterpart"),
        ("K6_VUS=10 k6 run s.js", "K6_VUS has no counterpart"),
        ("k6 run -d 30 s.js", "k6 -d 30 has no unit"),
        ("k6 run -s 10:5 s.js", "k6 -s 10: `10` has no unit"),
        (f"wrk2 -R100 -d abc {URL}", "wrk2 -d abc: `abc` is not a duration"),
        ("k6 cloud s.js", "k6 cloud makes no load here"),
        ("k6 run --rps 10 s.js", "k6 --rps has no counterpart"),
        ("bash -c 'wrk http://h/'", "this is no command"),
        (f"wrk {URL} {URL}2", "2 URLs"),
        (f"vegeta attack -rate=0 {URL}", "-rate=0 is not a rate"),
        (f"hey -x proxy:80 {URL}", "hey -x has no counterpart"),
    ],
)
def test_what_cannot_be_done_alike_is_refused(command: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        read_like(command)


def test_a_rate_of_0_is_none() -> None:
    assert "pace" not in read_like(f"hey -q 0 {URL}").flags
    assert {"rate", "arrivals"}.isdisjoint(read_like(f"oha -q 0.0 {URL}").flags)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (f"hey -n 1 -c 1 -a ann:sekret {URL}", f"hey -n 1 -c 1 -a 'ann:***' {URL}"),
        (f"ab -A 'ann:sek ret' {URL}", f"ab -A 'ann:***' {URL}"),
        (f"oha {URL} -a ann:se\\kret", "oha …"),
    ],
)
def test_a_password_is_kept_in_memory_alone(command: str, shown: str) -> None:
    suite, text = load_suite(load_ask(as_like(LoadFlags(like=command))[0]))
    assert dict(suite.scenarios[0].request.header_lines)["Authorization"].startswith("Basic ${REDLINE_BASIC")
    stored = shlex.join(masked(["load", "--like", command]))
    assert shlex.split(stored)[-1].replace("'", "") == shown.replace("'", "")
    assert "kret" not in stored + text


@pytest.mark.parametrize(
    "command",
    [
        "hey -H 'X-Id: {seq}' -d 'x {seq}' 'http://127.0.0.1:1/a/{seq}'",
        "oha -H 'X-Id: {seq}' -d 'x {seq}' 'http://127.0.0.1:1/a/{seq}'",
        "wrk -H 'X-Id: {seq}' 'http://127.0.0.1:1/a/{seq}'",
        "h2load -H 'X-Id: {seq}' 'http://127.0.0.1:1/a/{seq}'",
        "ab -H 'X-Id: {seq}' 'http://127.0.0.1:1/a/{seq}'",
        "printf 'GET http://127.0.0.1:1/a/{seq}\nX-Id: {seq}\n' | vegeta attack",
    ],
)
def test_what_looks_like_a_placeholder_is_sent_as_it_is(command: str) -> None:
    request = load_suite(load_ask(as_like(LoadFlags(like=command))[0]))[0].scenarios[0].request
    body = (request.body and request.body.text) or ""
    assert not any(map(has_placeholders, request.texts))
    assert (request.path, request.headers["X-Id"]) == ("/a/%7Bseq%7D", "{{seq}}")
    assert sent(body) == ("x {seq}" if "-d" in command else "")


def test_the_name_of_a_file_stays() -> None:
    assert read_like(f"hey -D 'a{{seq}}.json' {URL}").flags["body"] == "@a{seq}.json"


def test_options_without_a_counterpart_are_named() -> None:
    assert read_like(f"hey -cpus=2 -n 200 {URL}").ignored == ("-cpus",)


def test_vegeta_speaks_http2_over_tls_unless_told_otherwise() -> None:
    attack = "echo 'GET https://127.0.0.1:8443/' | vegeta attack"
    assert read_like(attack).flags["http2"] is True
    assert read_like(f"{attack} -http2=false").flags["http2"] is False


def test_it_says_what_the_tool_does_not_say_of_its_own_numbers() -> None:
    assert "63 connections in place of 64" in " ".join(read_like(f"wrk -t3 -c64 {URL}").says)
    assert "960 requests in place of 1000" in " ".join(read_like(f"hey -n 1000 -c 64 {URL}").says)
    assert "until Ctrl-C" in " ".join(read_like(f"vegeta attack {URL}").says)


def test_flags_beside_it_take_precedence() -> None:
    flags, like = as_like(LoadFlags(like=f"wrk -c8 -d10s {URL}", duration="2s"))
    assert like is not None
    assert (flags.connections, flags.duration, flags.url) == (8, "2s", URL)
    assert as_like(LoadFlags(url=URL))[1] is None


def test_a_time_beside_it_takes_the_place_of_a_number_of_requests() -> None:
    command = f"hey -n 200 -c 50 {URL}"
    flags, _ = as_like(LoadFlags(like=command, duration="5s"))
    assert (flags.count, flags.duration) == (None, "5s")
    flags, _ = as_like(LoadFlags(like=command, duration="5s", count=7))
    assert (flags.count, flags.duration) == (7, "5s")
    flags, _ = as_like(LoadFlags(like=command, count=100))
    assert (flags.count, flags.duration) == (100, "10m")


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
            f"vegeta attack -rate=50/s -duration=5s -max-connections 7 {URL}",
            Open(rate_per_s=50.0, arrivals="uniform", connections=7, connections_at_start=1),
        ),
    ],
)
def test_the_suite_has_that_load(command: str, shape: object) -> None:
    suite, _ = load_suite(load_ask(as_like(LoadFlags(like=command))[0]))
    assert suite.loads[0].shape == shape
    assert suite.scenarios[0].request.path == "/items"


def test_no_server_is_an_error() -> None:
    with pytest.raises(UsageError, match="no server is named"):
        load_suite(load_ask(as_like(LoadFlags(like="k6 run -u 3 -d 1s script.js"))[0]))


@given(
    st.lists(st.text(), max_size=6), st.sampled_from(["wrk", "hey", "oha", "h2load", "vegeta attack", "ab", "k6 run"])
)
def test_any_command_line_is_read_or_refused(words: list[str], tool: str) -> None:
    try:
        like = read_like(f"{tool} {' '.join(words)}")
    except UsageError:
        return
    assert like.says


def test_latency_of_wrk_asks_for_its_columns() -> None:
    assert read_like(f"wrk --latency {URL}").has_deviations
    assert read_like(f"wrk2 -R9 -L {URL}").has_deviations
    assert not read_like(f"wrk {URL}").has_deviations


def test_a_suite_is_written_of_a_command_with_threads(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    wanted = LoadFlags(like=f"wrk -t2 -c64 -d5s {URL}", write_suite=file)
    with pytest.raises(UsageError, match="measures nothing, and takes no -t"):
        load.execute(LoadFlags(**vars(wanted) | {"threads": 2}))
    assert not file.exists()
    load.execute(wanted)
    assert "users: 64" in file.read_text()
    assert "\n# What differs: the engine has a worker on each of its cores, not 2\n" in file.read_text()
