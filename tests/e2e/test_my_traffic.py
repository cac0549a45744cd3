"""Files of requests on real servers: every command of the guide, and what is sent of them."""

import json
import re
import shlex
from pathlib import Path

import pytest

from bench.rig import running
from redline.storage.runs import RunStore
from redline.suite.urls import base_of
from tests.e2e.compared import compared
from tests.e2e.conftest import CHECKOUT, Redline
from tests.e2e.recorded import first_byte_of, loaded
from tests.e2e.test_documented_commands import SHORT_AB, SHORT_LIMIT, SHORT_LOAD, TRAFFIC, replaced, with_servers
from tests.fakes import targets

pytestmark = pytest.mark.e2e

LINE = '10.0.0.1 - - [10/Oct/2026:13:55:36 +0000] "{}" {} 23 "-" "Mozilla/5.0"\n'
LINES = (
    *[("GET /items?page=2 HTTP/1.1", 200)] * 2,
    *[("GET /items?page=2&token=1234 HTTP/1.1", 200)] * 2,
    *[("GET / HTTP/1.1", 200)] * 2,
    ("GET /items/17 HTTP/1.1", 200),
    ("GET /old HTTP/1.1", 301),
    ("POST /items HTTP/1.1", 201),
    ("GET /favicon.ico HTTP/1.1", 404),
)
LOG = "".join(LINE.format(*line) for line in LINES)


def write_files(folder: Path) -> None:
    """The files that the guide names, whose requests are answered with 200."""
    (folder / "access.log").write_text(LOG.replace(" 301 ", " 200 "))
    entries = [
        {"request": {"method": "GET", "url": url, "headers": headers}, "response": {"status": 200}}
        for url in ("http://shop.example/", "http://shop.example/items", "http://cdn.example/a.js")
        for headers in ([{"name": "Cookie", "value": "s=1"}, {"name": "X-CSRF-Token", "value": "t"}],)
    ]
    (folder / "shop.har").write_text(json.dumps({"log": {"entries": entries}}))
    (folder / "openapi.yaml").write_text("openapi: 3.1.0\npaths: {/items: {get: {responses: {'200': {}}}}}\n")
    (folder / "recorded.yaml").write_text("- {name: a, get: /a}\n- {name: b, get: /b}\n")
    (folder / "recorded.txt").write_text("0 1\n0.1 2\n0.15 1\n")
    (folder / "users.csv").write_text("name\nann\nbob\n")
    (folder / "checkout.yaml").write_text(
        "journey: {rows: users.csv, steps: [{get: '/{row:name}'}, {name: b, think: 1ms, get: /b}]}\n"
    )
    (folder / "shop.yaml").write_text("- {name: items, get: /items}\n- {name: b, get: /b, weight: 2}\n")


def takes_long(command: str) -> bool:
    """Whether it takes two servers. A single comparison stands for all: the others differ in their file or speed."""
    quick = command.startswith("ab ") and command.endswith("--replay access.log")
    return "./new" in command and not quick


@pytest.mark.parametrize(
    "command", [pytest.param(each, marks=[pytest.mark.long] if takes_long(each) else []) for each in TRAFFIC]
)
def test_a_command_of_the_guide_works(command: str, redline: Redline, oracle: Path, tmp_path: Path) -> None:
    args = shlex.split(command)
    write_files(tmp_path)
    if args[0] == "import" and "-o" in args:
        for flag in {"-o", "--times"} & set(args):
            (tmp_path / args[args.index(flag) + 1]).unlink(missing_ok=True)
    if args[0] == "load":
        # A condition that has to hold for longer than the load lasts is refused.
        args = replaced(args, SHORT_LOAD[2:] if "--abort-when" in args else SHORT_LOAD)
    if args[0] == "limit":
        # A recording is sent at a speed in place of a rate, and has to last longer than a probe at that.
        seconds = (LOG.replace(" 301 ", " 200 ").replace(":36 ", f":{second} ") * 10 for second in range(36, 48))
        (tmp_path / "access.log").write_text("".join(seconds))
        short = [*SHORT_LIMIT[:-1], "2x"] if "--replay" in args else SHORT_LIMIT
        args = replaced(with_servers(args, oracle), short)
    if args[0] == "ab":
        args = replaced(with_servers(args, oracle), SHORT_AB[:2] if "--replay" in args else SHORT_AB)
    with targets.target(targets.healthy) as url:
        done = redline(*(base_of(url) if arg.startswith("http://") else arg for arg in args))
    assert done.code in ({0} if args[0] == "import" else {0, 1, 3}), done.err
    assert "Traceback" not in done.err
    assert done.out
    if args[0] == "import" and "-o" in args:
        assert (tmp_path / args[args.index("-o") + 1]).read_text().startswith(("# Requests of ", "# A journey of "))


def test_the_guide_shows_what_import_prints(redline: Redline, tmp_path: Path) -> None:
    text = (CHECKOUT / "docs/guide/my-traffic.md").read_text()
    shown = re.findall(r"^```text\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)[0]
    (tmp_path / "access.log").write_text(LOG)
    assert redline("import", "access.log").out == shown


def test_only_the_server_that_is_named_gets_the_requests(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "shop.vegeta").write_text(
        "GET http://shop.example/a\nCookie: s=1\nX-Mine: 1\n\nPOST http://shop.example/b?token=1\n@b.json\n"
    )
    (tmp_path / "b.json").write_text('{"n": "{seq}"}')
    with targets.target(targets.echoes) as url:
        done = redline("load", base_of(url), "--requests", "shop.vegeta", *SHORT_LOAD, "--json")
    assert done.json["counts"]["outcomes"]["ok"] > 0
    assert "2 requests from shop.vegeta\n" in done.err
    assert "not sent: the header Cookie (1), the parameter `token` (1)" in done.err
    assert "http://shop.example is not contacted" in done.err


def test_a_written_list_is_what_the_file_is(redline: Redline, tmp_path: Path) -> None:
    write_files(tmp_path)
    assert redline("import", "access.log", "-o", "list.yaml").code == 0
    redline("import", "access.log", "-o", "list.yaml").refused(2, "list.yaml exists already")
    redline("import", "access.log", "-o", "new", "--times", "./new").refused(2, "--times new is the file of -o")
    redline("import", "list.yaml").refused(2, "list.yaml is a list of requests already")
    for name, flags in (("access.log", ()), ("list.yaml", ("-m", "mix"))):
        suite = f"{name}.suite.yaml"
        done = redline("ab", "./a {port}", "./b {port}", "--requests", name, *flags, "--write-suite", suite)
        assert done.code == 0, done.err
    texts = [(tmp_path / f"{name}.suite.yaml").read_text().splitlines()[1:] for name in ("access.log", "list.yaml")]
    assert texts[0] == texts[1]
    assert "name: mix" in "\n".join(texts[0])


def test_bodies_in_files_stay_where_the_list_is(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "t.vegeta").write_text("POST http://h/a\n@b.bin\n")
    (tmp_path / "in" / "b.bin").write_bytes(b"\xff")
    redline("import", "in/t.vegeta", "-o", "list.yaml").refused(2, "names b.bin", "-o in/list.yaml")
    assert redline("import", "in/t.vegeta", "-o", "in/list.yaml").code == 0
    with targets.target(targets.healthy) as url:
        done = redline("load", base_of(url), "--requests", "in/list.yaml", *SHORT_LOAD, "--json")
    assert done.json["counts"]["outcomes"]["ok"] > 0


def test_what_is_no_file_of_requests_is_refused(redline: Redline, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("hello")
    redline("import", "text").refused(2, "text:1:1: this is not a list of requests, and no other format of them")
    redline("import", "text", "--format", "logs").refused(2, "--format logs: there is no such format", "`log`")
    redline("import", "text", "--format", "log").refused(2, "this access log has no request that can be sent")
    redline("import", "none").refused(2, "there is no file none")
    redline("import", "text", "--most", "0").refused(2, "--most 0 is not possible")
    redline("load", "http://127.0.0.1:1/", "--requests", "text").refused(2, "text:1:1: this is not a list of requests")


def test_the_suite_of_a_replay_is_one_that_runs(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    """It names the due times that its directory keeps, and not the log, which no suite reads."""
    (tmp_path / "access.log").write_text("".join(LINE.format(f"GET /{at % 3} HTTP/1.1", 200) for at in range(300)))
    with running(oracle, "null") as server:
        url = server.url.removesuffix("/path0")
        done = redline("load", url, "--replay", "access.log", "--speed", "2x", "-o", "out")
        done.measured()
        (tmp_path / "access.log").unlink()
        redline("run", "out/suite.yaml", "-o", "again")
    suite = (tmp_path / "out" / "suite.yaml").read_text()
    assert suite.startswith("# times.txt has the due times; it is in the directory of this run\n")
    runs = [RunStore(tmp_path / name).run() for name in ("out", "again")]
    loads = [[cell.load.shape for cell in run.manifest.plan.cells.values()] for run in runs]
    assert loads[0] == loads[1]
    assert runs[0].manifest.suite_text == suite
    (recording,) = runs[1].recordings
    assert recording.traffic is not None
    assert recording.traffic.counts.due == 300


@pytest.mark.long
def test_both_sides_of_a_comparison_get_the_recorded_requests(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    (tmp_path / "access.log").write_text("".join(LINE.format(f"GET /{at % 3} HTTP/1.1", 200) for at in range(300)))
    command = shlex.join([str(oracle), "null", "--port", "{port}"])
    done = compared(redline, command, command, "--replay", "access.log")
    assert done.code == 0, done.err
    assert "300 requests in 997 ms; the file has whole seconds, over which they are spread evenly" in done.err
    (cell, *_) = done.json["cells"]
    assert "300 replayed requests" in json.dumps(cell)


def test_the_first_byte_of_every_request_is_measured(redline: Redline, oracle: Path, tmp_path: Path) -> None:
    """The body of both requests takes 20 ms longer than the head; in one piece there is no such row."""
    (tmp_path / "shop.yaml").write_text("- {name: items, get: /items}\n- {name: b, get: /b, weight: 2}\n")
    asked = ("--requests", "shop.yaml", "-m", "mix", "-R", "100", "-d", "1s", "--warmup", "0s")
    with running(oracle, "null", "--body-bytes", "4000", "--body-over", "20ms") as server:
        _, traffic = loaded(redline, f"http://{server.endpoint.host}:{server.endpoint.port}/", *asked)
    assert len(traffic.requests) == 2
    for request in traffic.requests:
        assert request.response.quantile_ns(0.5) > first_byte_of(request).quantile_ns(0.5) + 10_000_000
    with running(oracle, "null") as server:
        done, _ = loaded(redline, f"http://{server.endpoint.host}:{server.endpoint.port}/", *asked)
    assert [request.get("first_byte") for request in done.json["requests"]] == [None, None]
