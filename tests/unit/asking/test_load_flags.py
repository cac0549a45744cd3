"""What the flags of `redline load` mean, and the errors for meaningless flags."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redline.asking.asks import LoadAsk
from redline.asking.load import load_suite
from redline.cli.command_line import app
from redline.defaults import LOAD_LENGTH
from redline.errors import UsageError
from redline.model import Closed, Load, LoadStage, Open, Request, Suite, Think, Tls
from redline.suite import make_plan
from redline.suite.urls import read_url
from tests.fakes import asks

S = 1_000_000_000
URL = "http://127.0.0.1:1/"
STAGES = (LoadStage(to=1000, over_ns=10 * S), LoadStage(to=0, over_ns=0))


def flags(**given: Any) -> LoadAsk:
    return asks.load(**{"url": URL, "connections": 64, "duration": "60s", **given})


def suite_of(**given: Any) -> Suite:
    return load_suite(flags(**given))[0]


def load_of(**given: Any) -> Load:
    return suite_of(**given).loads[0]


def request_of(**given: Any) -> Request:
    return suite_of(**given).scenarios[0].request


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        ({}, Closed(users=64)),
        ({"connections": 1_000_000, "depth": 16}, Closed(users=1_000_000, depth=16)),
        ({"think": "100ms"}, Closed(users=64, think=Think(mean_ns=S // 10))),
        ({"think": "exp:1s"}, Closed(users=64, think=Think(distribution="exponential", mean_ns=S))),
        ({"pace": "300/min", "requests_per_connection": 9}, Closed(users=64, pace_per_s=5, requests_per_connection=9)),
        ({"connections": 0, "stages": ("1000:10s", "0:0s")}, Closed(users=0, stages=STAGES)),
        ({"rate": "5000", "arrivals": "uniform"}, Open(rate_per_s=5000, arrivals="uniform", connections=64)),
        ({"rate": "0", "stages": ("1000/s:10s", "0:0s")}, Open(rate_per_s=0, connections=64, stages=STAGES)),
        ({"rate": "5", "depth": 4}, Open(rate_per_s=5, connections=64, depth=4)),
    ],
)
def test_loads(asked: dict[str, object], shape: Closed | Open) -> None:
    assert load_of(**asked).shape == shape


LOG = '10.0.0.1 - - [10/Oct/2026:13:55:{} +0000] "GET /{} HTTP/1.1" 200 23\n'


def test_a_log_is_replayed_with_its_requests(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(LOG.format(*line) for line in (("36", "a"), ("36", "b"), ("38", "a"))))
    load = load_of(replay=log, speed="2x", duration=LOAD_LENGTH)
    assert load.open_shape.replayed_ns == (0, S // 4, S)
    assert load.open_shape.replayed_requests == (0, 1, 0)
    # No longer than the log lasts, unless that is asked for.
    assert load.duration_ns == S + S // 1000
    assert load_of(replay=log, duration="30s", typed=frozenset({"duration"})).duration_ns == 30 * S


@pytest.mark.parametrize("quiet", [True, False])
def test_what_a_log_holds_is_said_unless_it_is_to_be_quiet(
    quiet: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "access.log"
    log.write_text("".join(LOG.format(second, "a") for second in range(30, 50)))
    load_of(replay=log, duration="10s", quiet=quiet)
    said = capsys.readouterr().err
    assert ("20 requests in 19" in said, "the first 10s of it are sent" in said) == (not quiet, not quiet)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"requests": Path("list.yaml")}, "--replay access.log: it has its own requests"),
        ({"scenarios": ["a"]}, "-m a: a replay sends all of its requests"),
        ({"speed": "fast"}, "--speed: `fast` is not a speed"),
        ({"speed": "0"}, "--speed: `0` is not a speed"),
        ({"replay": None, "speed": "2"}, "--speed 2: only a recording has a speed"),
    ],
)
def test_what_does_not_go_with_a_log(
    asked: dict[str, object], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("access.log").write_text(LOG.format("36", "a"))
    with pytest.raises(UsageError) as caught:
        load_of(**{"replay": Path("access.log")} | asked)
    assert str(caught.value).startswith(says)


def test_a_count_and_a_replay(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("0\n0.5\n")
    load = load_of(replay=tmp_path / "times", count=2)
    assert load.shape == Open(arrivals="replayed", replayed_ns=(0, S // 2), connections=64)
    assert load.count == 2


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"connections": 0}, "-c 0: a load without users"),
        ({"connections": 1_000_001}, "-c 1000001: "),
        ({"rate": "1", "connections": 0}, "-c 0: "),
        ({"rate": "0"}, "-R 0: a rate of 0"),
        ({"duration": "0s"}, "-d 0s: must be at least 1ms"),
        ({"duration": "25"}, "-d 25: `25` has no unit"),
        ({"rate": "fast"}, "-R fast: `fast` is not a rate"),
        ({"rate": "1000000000000"}, "-R 1000000000000: "),
        ({"rate": "5", "think": "1s"}, "--think 1s: only users"),
        ({"rate": "5", "pace": "1"}, "--pace 1: only users"),
        ({"think": "1s", "pace": "1"}, "--pace 1: users have a think time or a pace, not both"),
        ({"think": "exp:soon"}, "--think exp:soon: `soon` is not a duration"),
        ({"think": "exp"}, "--think exp: "),
        ({"think": ""}, "--think '': `` is not a duration"),
        ({"depth": 0}, "--depth 0: "),
        ({"pace": "1", "depth": 2}, "--depth 2: users with a pace have one request in flight"),
        ({"count": 0}, "--count 0: "),
        ({"connections_at_start": 0, "rate": "5"}, "--connections-at-start 0: "),
        ({"connections_at_start": 65, "rate": "5"}, "--connections-at-start 65: "),
        ({"connections_at_start": 1}, "--connections-at-start 1: a closed load opens a connection for each user"),
        ({"requests_per_connection": 0}, "--requests-per-connection 0: "),
        ({"stages": ("1000",)}, "--stage 1000 is not a stage"),
        ({"stages": ("1.5:10s",)}, "--stage 1.5:10s is not a stage"),
        ({"stages": ("10:long",)}, "--stage 10:long: `long` is not a duration"),
        ({"stages": ("10:2m",)}, "-d 60s: the stages take 120s, longer than the measurement"),
        ({"replay": Path("none.txt")}, "there is no file none.txt"),
        ({"replay": Path("none.txt"), "rate": "5"}, "-R 5: replayed arrivals have times, not a rate"),
        ({"replay": Path("/dev/zero")}, "/dev/zero is not a regular file"),
        ({"replay": Path("none.txt"), "think": "1s"}, "--think 1s: only users"),
        ({"replay": Path("none.txt"), "arrivals": "uniform"}, "--arrivals uniform: --replay says when"),
        ({"arrivals": "uniform"}, "--arrivals uniform: in a closed load, requests follow the answers"),
        ({"arrivals": "poisson"}, "--arrivals poisson: in a closed load, requests follow the answers"),
    ],
)
def test_loads_that_cannot_be(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_of(**asked)
    assert says in str(caught.value)
    text = f"{caught.value} {caught.value.hint}"
    assert caught.value.hint
    assert not re.search(r"`(users|connections|rate|ramp|stages?|think|pace|depth|for)\b", text), text


def test_hints_say_what_to_change() -> None:
    for asked, hint in (
        ({"connections": 0}, "give at least 1, or a stage to more"),
        ({"think": "1s", "pace": "1"}, "leave out the think time or the pace"),
        ({"stages": ("10:2m",)}, "measure for 120s or longer"),
        ({"replay": Path("none.txt"), "think": "1s"}, "leave out --replay or --think"),
        ({"replay": Path("/dev")}, "name a file in it"),
        ({"body": "@/dev"}, "name a file in it"),
    ):
        with pytest.raises(UsageError) as caught:
            load_of(**asked)
        assert caught.value.hint == hint


def test_where_to() -> None:
    assert read_url("https://example.org/x")[0].port == 443
    assert read_url("http://example.org/x")[0].port == 80
    assert read_url("https://[::1]:8443/x")[0].port == 8443
    assert read_url("127.0.0.1:1/a b/{seq}/{x}")[1] == "/a%20b/{seq}/%7Bx%7D"
    with pytest.raises(UsageError, match="cannot load ftp"):
        read_url("ftp://x/")


def tls_of(url: str, **given: Any) -> Tls | None:
    return suite_of(url=url, **given).variants[0].tls


def test_tls(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"
    ca.write_text(f"{pem}-----BEGIN PRIVATE KEY-----\nsecret\n-----END PRIVATE KEY-----\n")
    assert tls_of("http://127.0.0.1/") is None
    assert tls_of("127.0.0.1/") is None
    assert tls_of("https://127.0.0.1/") == Tls()
    assert tls_of("https://127.0.0.1/", insecure=True) == Tls(insecure=True)
    assert tls_of("https://127.0.0.1/", cacert=ca) == Tls(ca_pem=pem)


def test_tls_that_cannot_be(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("junk")
    for url, given, says in (
        ("http://127.0.0.1/", {"insecure": True}, "--insecure means nothing without TLS"),
        ("http://127.0.0.1/", {"cacert": junk}, "--cacert means nothing without TLS"),
        ("https://127.0.0.1/", {"cacert": junk}, "contains no certificate"),
        ("https://127.0.0.1/", {"cacert": junk, "insecure": True}, "--insecure takes any"),
        ("https://127.0.0.1/", {"cacert": tmp_path / "none"}, "there is no file"),
    ):
        with pytest.raises(UsageError, match=says):
            tls_of(url, **given)


def test_a_header_may_be_given_several_times() -> None:
    request = request_of(headers=["Cookie: a=1", "Accept: x", "cookie:b=2"])
    assert request.headers == {"Cookie": ("a=1", "b=2"), "Accept": "x"}
    assert request.header_lines == (("Cookie", "a=1"), ("Cookie", "b=2"), ("Accept", "x"))


def test_placeholders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("1\n2\n")
    suite = suite_of(url=f"{URL}{{pick:ids.txt}}", headers=["X: {seq}"], body='{"n": {rand:1..9}}')
    assert suite.scenarios[0].picks == {"ids.txt": ("1", "2")}
    with pytest.raises(UsageError, match=r"`\{rand:9\.\.1\}` cannot be filled in"):
        request_of(headers=["X: {rand:9..1}"])
    with pytest.raises(UsageError, match="there is no file"):
        request_of(url=f"{URL}{{pick:none.txt}}")


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([URL, "--seed", "-1"], "--seed -1: must be at least 0, not `-1`"),
        ([URL, "--seed", "9007199254740992"], "--seed 9007199254740992: must be at most 9007199254740991"),
        ([URL, "-H", "Content-Length: 5"], "-H 'Content-Length: 5': the engine sets `Content-Length`"),
        ([URL, "-H", "a b: v"], "-H 'a b: v': `a b` is not a header name"),
        ([URL, "-H", "a: b\r\nc: d"], "-H 'a: b\\r\\nc: d': a header's value is one line"),
        ([URL, "-H", "a: b\n"], "-H 'a: b\\n': a header's value is one line"),
        ([URL, "-H", "a\r\nb: c"], "-H 'a\\r\\nb: c': `a  b` is not a header name"),
        ([URL, "-H", "Upgrade: h2c", "--http2"], "-H 'Upgrade: h2c': HTTP/2 forbids `Upgrade`"),
        ([URL, "-X", "CONNECT"], "-X CONNECT: "),
        ([URL, "-X", "GE T"], "-X 'GE T': is not a method"),
        ([URL, "-X", ""], "-X '': is not a method"),
        (["http://a b/"], "http://a b/: `a b` is not a host name"),
        (["http://exämple.org/"], "`exämple.org` is not a host name"),
        (["http://127.0.0.1:1/a\r\nb"], "a URL is one line"),
        (["http://me:secret@127.0.0.1:1/"], "the URL of 127.0.0.1:1 holds a user and a password"),
        ([URL, "--body", "@/dev/zero"], "--body @/dev/zero: /dev/zero is not a regular file"),
        ([URL, "--body", os.fsdecode(b"\xff")], "--body: it is not UTF-8"),
        ([URL, "--body", "@/none"], "--body @/none: there is no file /none"),
        ([URL, "-t", "9", "-c", "4"], "-t 9 is more than the 4 connections"),
        ([URL, "-t", "2000", "-c", "4000"], "-t 2000 is more than 1024 workers"),
        ([URL, "-t", "0"], "-t 0 is not possible"),
        ([URL, "--timeout", "2h"], "--timeout 2h: must be at most 1h"),
        ([URL, "--status", "100"], "--status 100: must be at least 200, not `100`"),
    ],
)
@pytest.mark.parametrize("command", [["load"], ["limit", "--objective", "p99 < 1s"]], ids=["load", "limit"])
def test_a_wrong_flag_is_refused_before_the_engine_starts(command: list[str], args: list[str], says: str) -> None:
    error = CliRunner().invoke(app, [*command, *args]).exception
    assert isinstance(error, UsageError), error
    assert error.exit_code == 2
    assert says in str(error)
    assert error.hint
    assert "secret" not in str(error)


def test_a_body_has_a_limit(tmp_path: Path) -> None:
    with (tmp_path / "body").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(UsageError, match="body is longer than 64 MiB"):
        request_of(body=f"@{tmp_path / 'body'}")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="pipe is not a regular file"):
        request_of(body=f"@{tmp_path / 'pipe'}")
    with pytest.raises(UsageError, match="pipe is not a regular file"):
        load_of(replay=tmp_path / "pipe")


def test_an_entry_that_cannot_be_picked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("1\na b\n")
    with pytest.raises(UsageError, match=r"entry 2 of ids.txt cannot be part of a path"):
        request_of(url=f"{URL}{{pick:ids.txt}}")


def test_objectives_are_those_of_a_suite() -> None:
    found = suite_of(objective=["p99 < 50ms, errors < 0.1%", "achieved > 99%"], rate="2000").objectives
    assert [objective.text for objective in found] == ["p99 < 50ms", "errors < 0.1%", "achieved > 99%"]
    assert suite_of().objectives == ()


def test_the_pace_of_users_is_a_rate_to_achieve() -> None:
    suite = suite_of(objective=["achieved > 99%"], pace="2")
    (cell,) = make_plan(suite).cells.values()
    assert suite.objectives[0].applies_to(cell)


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["p99 fast"], "--objective: `p99 fast` is not a condition"),
        (["p99 < 1s", "p99 < 2s"], "--objective: `p99` has more than one condition"),
        (["achieved > 99%"], "--objective: `achieved` is a share of a rate"),
    ],
)
def test_wrong_objectives_are_refused(texts: list[str], says: str) -> None:
    with pytest.raises(UsageError) as error:
        suite_of(objective=texts)
    assert str(error.value).startswith(says)


@pytest.mark.parametrize(
    ("given", "warmup_ns"),
    [
        ({}, S),
        ({"count": 500}, 0),
        ({"count": 500, "rate": "100"}, 0),
        ({"count": 500, "warmup": "2s"}, 2 * S),
        ({"warmup": "0s"}, 0),
    ],
)
def test_a_load_of_so_many_requests_warms_up_only_when_asked(given: dict[str, Any], warmup_ns: int) -> None:
    assert suite_of(**given).warmup_ns == warmup_ns


@pytest.mark.parametrize(
    ("given", "path"), [({}, "/path0"), ({"path": "/path1"}, "/path1")], ids=["what a ready one answers", "a path"]
)
def test_a_server_of_the_catalogue_is_started(given: dict[str, Any], path: str) -> None:
    suite, text = load_suite(asks.load(url="vertx.vanilla@5", **given))
    (variant,) = suite.variants
    assert variant.catalogued.catalogue_build.target == "vertx-vanilla@5.1.6"
    assert [scenario.request.path for scenario in suite.scenarios] == [path]
    assert "use: vertx.vanilla@5" in text


def test_a_server_of_the_catalogue_is_started_with_options() -> None:
    suite, text = load_suite(asks.load(url="vertx.vanilla+interceptor=server-log"))
    (variant,) = suite.variants
    assert variant.slug == "vertx.vanilla+interceptor=server-log"
    assert "interceptor: server-log" in text


def test_a_scenario_of_the_catalogue_is_selected() -> None:
    suite, _ = load_suite(asks.load(url="vertx.vanilla", scenarios=("PostBytes",)))
    (scenario,) = suite.scenarios
    assert (scenario.name, scenario.request.method) == ("PostBytes", "POST")


def test_a_version_that_a_server_has_not_is_no_url() -> None:
    with pytest.raises(UsageError, match=r"vertx\.vanilla has no version 9") as caught:
        load_suite(asks.load(url="vertx.vanilla@9"))
    assert caught.value.hint == "there is vertx.vanilla@4, vertx.vanilla@5"


def test_a_command_is_started_and_asked_for_a_path() -> None:
    for given, path in (({}, "/"), ({"path": "/items"}, "/items")):
        suite = suite_of(url="./shop --port {port}", **given)
        (variant,), (scenario,) = suite.variants, suite.scenarios
        assert not variant.is_attached
        assert scenario.request.path == path


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"path": "/items"}, "--path /items is for a command"),
        ({"url": "./shop {port}", "path": ""}, "is not a path"),
        ({"url": "./shop"}, "has no {port}"),
        ({"url": "./shop {port}", "insecure": True}, "means nothing without TLS"),
        ({"url": "./shop {port}", "unix_socket": Path("/run/shop.sock")}, "how a running server is reached"),
        ({"url": "unix:/run/shop.sock"}, "names a Unix socket"),
    ],
)
def test_what_a_command_cannot_have_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        suite_of(**given)
    assert message in str(refused.value)
