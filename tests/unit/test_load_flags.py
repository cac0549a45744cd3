"""What the flags of `redline load` mean, and what is said of those that mean nothing."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from redline.cli.command_line import Arrivals
from redline.cli.load_shape import Pressure, read_load
from redline.cli.load_target import read_picks, read_request, read_tls, read_url
from redline.errors import UsageError
from redline.model import Closed, LoadStage, Open, Think, Tls

S = 1_000_000_000
PLAIN = Pressure(connections=64, duration_ns=60 * S)
STAGES = (LoadStage(to=1000, over_ns=10 * S), LoadStage(to=0, over_ns=0))


@pytest.mark.parametrize(
    ("asked", "shape"),
    [
        ({}, Closed(users=64)),
        ({"connections": 1_000_000, "depth": 16}, Closed(users=1_000_000, depth=16)),
        ({"think": "100ms"}, Closed(users=64, think=Think(mean_ns=S // 10))),
        ({"think": "exp:1s"}, Closed(users=64, think=Think(distribution="exponential", mean_ns=S))),
        ({"pace": "300/min", "requests_per_connection": 9}, Closed(users=64, pace_per_s=5, requests_per_connection=9)),
        ({"connections": 0, "stages": ("1000:10s", "0:0s")}, Closed(users=0, stages=STAGES)),
        ({"rate": "5000", "arrivals": Arrivals.UNIFORM}, Open(rate_per_s=5000, arrivals="uniform", connections=64)),
        ({"rate": "0", "stages": ("1000/s:10s", "0:0s")}, Open(rate_per_s=0, connections=64, stages=STAGES)),
        ({"rate": "5", "depth": 4}, Open(rate_per_s=5, connections=64, depth=4)),
    ],
)
def test_loads(asked: dict[str, object], shape: Closed | Open) -> None:
    assert read_load(replace(PLAIN, **asked)).shape == shape  # type: ignore[arg-type]


def test_a_count_and_a_replay(tmp_path: Path) -> None:
    (tmp_path / "times").write_text("0\n0.5\n")
    load = read_load(replace(PLAIN, replay=tmp_path / "times", count=2))
    assert load.shape == Open(arrivals="replayed", replayed_ns=(0, S // 2), connections=64)
    assert load.count == 2


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"connections": 0}, "-c 0: a load without users"),
        ({"connections": 1_000_001}, "-c 1000001: "),
        ({"rate": "1", "connections": 0}, "-c 0: "),
        ({"rate": "0"}, "-R 0: a rate of 0"),
        ({"rate": "fast"}, "-R fast: `fast` is not a rate"),
        ({"rate": "1000000000000"}, "-R 1000000000000: "),
        ({"rate": "5", "think": "1s"}, "--think 1s: only users"),
        ({"rate": "5", "pace": "1"}, "--pace 1: only users"),
        ({"think": "1s", "pace": "1"}, "think, or keep a pace"),
        ({"think": "exp:soon"}, "--think exp:soon: `soon` is not a duration"),
        ({"think": "exp"}, "--think exp: "),
        ({"depth": 0}, "--depth 0: "),
        ({"pace": "1", "depth": 2}, "one request in flight"),
        ({"count": 0}, "--count 0: "),
        ({"requests_per_connection": 0}, "--requests-per-connection 0: "),
        ({"stages": ("1000",)}, "--stage 1000 is not a stage"),
        ({"stages": ("1.5:10s",)}, "--stage 1.5:10s is not a stage"),
        ({"stages": ("10:long",)}, "--stage: `long` is not a duration"),
        ({"stages": ("10:2m",)}, "stages take longer"),
        ({"replay": Path("none.txt")}, "there is no file none.txt"),
        ({"replay": Path("none.txt"), "rate": "5"}, "have times, and no rate"),
        ({"replay": Path("none.txt"), "think": "1s"}, "--think 1s: only users"),
        ({"replay": Path("none.txt"), "arrivals": Arrivals.UNIFORM}, "--arrivals uniform: --replay says when"),
        ({"arrivals": Arrivals.UNIFORM}, "--arrivals uniform: users of a closed load"),
        ({"arrivals": Arrivals.POISSON}, "--arrivals poisson: users of a closed load"),
    ],
)
def test_loads_that_cannot_be(asked: dict[str, object], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_load(replace(PLAIN, **asked))  # type: ignore[arg-type]
    assert says in str(caught.value)
    told = f"{caught.value} {caught.value.hint}"
    assert caught.value.hint
    assert not re.search(r"`(users|connections|rate|ramp|stages?|think|pace|depth|for)\b", told), told


def test_hints_name_flags() -> None:
    for asked, hint in (
        ({"connections": 0}, "write -c 64, or add a --stage"),
        ({"think": "1s", "pace": "1"}, "remove --think or --pace"),
        ({"stages": ("10:2m",)}, "write a longer -d"),
        ({"replay": Path("none.txt"), "think": "1s"}, "leave out --replay or --think"),
    ):
        with pytest.raises(UsageError) as caught:
            read_load(replace(PLAIN, **asked))
        assert caught.value.hint == hint


def test_where_to() -> None:
    assert read_url("https://example.org/x")[0].port == 443
    assert read_url("http://example.org/x")[0].port == 80
    assert read_url("https://[::1]:8443/x")[0].port == 8443
    assert read_url("127.0.0.1:1/a b/{seq}/{x}")[1] == "/a%20b/{seq}/%7Bx%7D"
    with pytest.raises(UsageError, match="cannot load ftp"):
        read_url("ftp://x/")


def test_tls(tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("-----BEGIN CERTIFICATE-----\n")
    assert read_tls("http://x/", None, insecure=False) is None
    assert read_tls("x/", None, insecure=False) is None
    assert read_tls("https://x/", None, insecure=False) == Tls()
    assert read_tls("https://x/", None, insecure=True) == Tls(insecure=True)
    assert read_tls("https://x/", ca, insecure=False) == Tls(ca_pem="-----BEGIN CERTIFICATE-----\n")


def test_tls_that_cannot_be(tmp_path: Path) -> None:
    junk = tmp_path / "junk"
    junk.write_text("junk")
    for url, cacert, insecure, says in (
        ("http://x/", None, True, "--insecure means nothing without TLS"),
        ("http://x/", junk, False, "--cacert means nothing without TLS"),
        ("https://x/", junk, False, "holds no certificate"),
        ("https://x/", junk, True, "--insecure takes any"),
        ("https://x/", tmp_path / "none", False, "there is no file"),
    ):
        with pytest.raises(UsageError, match=says):
            read_tls(url, cacert, insecure=insecure)


def test_a_header_may_be_given_several_times() -> None:
    request = read_request("/", None, ["Cookie: a=1", "Accept: x", "cookie:b=2"], None, 200)
    assert request.headers == {"Cookie": ("a=1", "b=2"), "Accept": "x"}
    assert request.header_lines == (("Cookie", "a=1"), ("Cookie", "b=2"), ("Accept", "x"))


def test_placeholders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ids.txt").write_text("1\n2\n")
    request = read_request("/{pick:ids.txt}", None, ["X: {seq}"], '{"n": {rand:1..9}}', 200)
    assert read_picks(request) == {"ids.txt": ("1", "2")}
    with pytest.raises(UsageError, match=r"`\{rand:9\.\.1\}` cannot be filled in"):
        read_request("/", None, ["X: {rand:9..1}"], None, 200)
    with pytest.raises(UsageError, match="there is no file"):
        read_picks(read_request("/{pick:none.txt}", None, [], None, 200))
