"""What `bench.traffic` sends, and what it reads of tools that have no adapter."""

import base64
import json
import os
import sys
from pathlib import Path

import pytest

from bench.cost.peers import FOLDER, find
from bench.traffic import sends, tools
from bench.traffic.before import engines
from bench.traffic.cpu import cost
from bench.traffic.tools import Called, Tool, Wanted
from redline.errors import DriveError
from redline.extras.peers import PeerOutput

BASE = "http://127.0.0.1:8080"


def test_a_mix_is_of_a_hundred_requests_and_one_in_ten_has_a_body() -> None:
    mix = sends.mix()
    assert len(mix) == 100
    assert [send.method for send in mix].count("POST") == 10
    assert len({send.path for send in mix if not send.body}) == 90
    assert {len(send.body) for send in mix if send.body} == {200}


def test_every_form_of_the_list_has_the_same_requests() -> None:
    mix = sends.mix()
    listed = [(each["method"], each["path"], each.get("body", "")) for each in json.loads(sends.as_list(mix))]
    targets = [json.loads(line) for line in sends.as_targets(mix, BASE).splitlines()]
    bodies = [base64.b64decode(each.get("body", "")).decode() for each in targets]
    lines = [(*line.split(" ", 2), "")[:3] for line in sends.as_lines(mix).splitlines()]
    benchmark = json.loads(sends.as_hyperfoil(mix, BASE, 64, 1500))
    (steps,) = (each["main"] for each in benchmark["phases"][0]["main"]["always"]["scenario"])
    exact = [(send.method, send.path, send.body) for send in mix]
    assert listed == exact
    assert lines == exact
    assert [
        (each["method"], each["url"].removeprefix(BASE), body) for each, body in zip(targets, bodies, strict=True)
    ] == exact
    assert [(*next(iter(step["httpRequest"].items())), step["httpRequest"].get("body", "")) for step in steps] == exact
    assert sends.as_urls(mix, BASE).splitlines() == [BASE + send.path for send in mix]
    assert sends.as_lua(mix).count("wrk.format('POST'") == 10


def test_a_journey_takes_a_token_that_the_other_steps_send() -> None:
    journey = sends.journey()
    first, *others = json.loads(sends.as_journey(journey))["journey"]["steps"]
    assert first["take"] == {"token": {"json": "/token"}}
    assert "headers" not in first
    assert [step["headers"] for step in others] == [{"X-Token": "{take:token}"}] * 4
    unlinked = json.loads(sends.as_unlinked(journey))
    assert [each["path"] for each in unlinked] == [send.path for send in journey]
    assert [len(each.get("headers", {})) for each in unlinked] == [0, 2, 2, 2, 2]
    benchmark = json.loads(sends.as_hyperfoil(journey, BASE, 64, 1500))
    assert benchmark["ergonomics"]["repeatCookies"]
    assert not json.loads(sends.as_hyperfoil(sends.mix(), BASE, 64, 1500))["ergonomics"]["repeatCookies"]


def test_the_last_table_of_gatling_counts() -> None:
    row = "> Global                |     {} |     {} |         {}\n"
    output = row.format("630", "629", "1") + "---- traffic ---\n" + row.format("1,230", "1,228", "2")
    found = tools.read_gatling(output, 2.0)
    assert (found.requests, found.rate_per_s, found.faults) == (1228, 614.0, "2 KO")
    assert tools.read_gatling("Exception in thread main", 2.0).requests is None


def test_hyperfoil_is_read_from_its_line_of_json() -> None:
    found = tools.read_hyperfoil('INFO (main) Allocating\n{"answered": 12, "ok": 10, "errors": 1}\n', 2.0)
    assert (found.requests, found.rate_per_s, found.faults) == (10, 5.0, "3 wrong")
    assert tools.read_hyperfoil("", 2.0).requests is None


def test_the_start_of_a_tool_is_not_in_what_a_request_costs(tmp_path: Path) -> None:
    """A tool that works for 0.3 s first, and then for 1 ms a request: 100 requests a second."""
    program = tmp_path / "tool.py"
    program.write_text(
        "import sys, time\n"
        "requests = int(sys.argv[1])\n"
        "until = 0.3 + requests / 1000\n"
        "while time.process_time() < until: pass\n"
        "print(requests)\n"
    )

    def call(wanted: Wanted) -> Called:
        requests = round(wanted.seconds * 100)
        return Called(
            [sys.executable, str(program), str(requests)], lambda said: PeerOutput(requests=int(said), rate_per_s=1.0)
        )

    wanted = Wanted(sends.plain(), BASE, 4, tmp_path)
    found = cost(Tool("busy", "1", call), wanted, min(os.sched_getaffinity(0)))
    assert found.ran.requests == 400
    assert found.cpu_us_per_request == pytest.approx(1000, rel=0.1)


def test_a_tool_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    tool = Tool(
        "sh", "1", lambda _wanted: Called(["sh", "-c", "echo no such flag >&2; exit 3"], lambda _said: PeerOutput())
    )
    with pytest.raises(DriveError, match="sh ended with 3: no such flag"):
        cost(tool, Wanted(sends.plain(), BASE, 1, tmp_path), min(os.sched_getaffinity(0)))


def test_tools_that_are_not_installed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    find.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv(FOLDER, str(tmp_path))
    try:
        found = tools.peers(tmp_path / "classes")
    finally:
        find.cache_clear()
    assert found.found == ()
    assert list(found.missing) == ["wrk", "h2load", "oha", "vegeta", "Gatling", "Hyperfoil"]
    assert all("not installed" in why for why in found.missing.values())


def test_two_engines_get_the_same_job(tmp_path: Path) -> None:
    pairs = engines(Path("now"), Path("before"), port=8080, core=1)
    assert [(ours.name, theirs.name) for ours, theirs in pairs] == [
        ("engine (io_uring)", "before (io_uring)"),
        ("engine (epoll)", "before (epoll)"),
    ]
    wanted = Wanted(sends.plain(), "", 2, tmp_path)
    for pair in pairs:
        jobs = []
        for tool in pair:
            called = tool.call(wanted)
            jobs.append(json.loads(Path(called.command[-1]).read_text()))
            assert called.read("no events").requests is None
        assert jobs[0] == jobs[1]
        assert jobs[0]["measure_ns"] + jobs[0]["warmup_ns"] == 2_000_000_000
