"""The functions: arguments become what is asked for, and errors name the arguments."""

import asyncio
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import redline
from redline.api import calls
from redline.api.arguments import call_text
from redline.asking.asks import ComparisonAsk, LoadAsk
from redline.asking.comparison import comparison_document
from redline.asking.load import load_suite
from redline.asking.written import plain
from redline.cli import commands
from redline.cli.command_line import WHILE_IT_RUNS, AbFlags, LimitFlags, LoadFlags
from redline.errors import RedlineError, StoreError, UsageError
from redline.model import Body, Cell, Traffic
from redline.ports import Drive, Endpoint, Placement
from redline.running import assembly
from redline.running.assembly import Workbench
from redline.running.record import Tools
from redline.storage.runs import RunStore
from redline.suite.project import read_project
from tests.fakes import asks
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_environment, simulated_recording

BARE = "http://127.0.0.1:8080/"
URL = f"{BARE}items"
HEAVY = {"numpy", "pydantic", "rich", "scipy", "typer", "redline.api", "redline.model", "typing"}


class Server(WithoutDuets):
    """A server that answers well, as a driver sees it; `during` runs in the middle of every load."""

    def __init__(self, during: Callable[[], None] = lambda: None) -> None:
        self.during = during

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        traffic = simulated_recording(drive.cell, seed=drive.seed).traffic
        assert traffic is not None
        for interval in traffic.intervals[:2]:
            drive.on_interval(interval)
        self.during()
        return traffic


NOWHERE = Placement()
Loaded = Callable[..., None]


@pytest.fixture
def loaded_by(monkeypatch: pytest.MonkeyPatch) -> Loaded:
    def use(server: Server, placement: Placement = NOWHERE) -> None:
        launcher = FakeLauncher([], FakeServer(facts=None))
        bench = Workbench(Tools(launcher, server, lambda _server: (), placement), simulated_environment())
        monkeypatch.setattr(assembly, "workbench", lambda *_: bench)

    return use


def test_importing_redline_imports_nothing_that_takes_time() -> None:
    code = "import sys; before = {*sys.modules}; import redline; print(*({*sys.modules} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert not HEAVY & {*done.stdout.split()}


def test_every_name_is_there() -> None:
    assert {*redline.__all__} <= {*dir(redline)}
    for name in redline.__all__:
        assert callable(getattr(redline, name))
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        getattr(redline, "lode")  # noqa: B009 - mypy knows that it is not there


def test_a_load_gives_its_report_and_prints_nothing(
    loaded_by: Loaded, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    loaded_by(Server())
    result = redline.load(URL, rate=500, duration="2s", objective="p50 < 5s")
    assert result.valid
    assert result.met
    assert result.p50 > "1ns"
    assert result.folder is None
    assert result.report.run.kind == "load"
    assert result.report.run.command == f"redline.load({URL!r}, rate=500, duration='2s', objective='p50 < 5s')"
    assert result.report.cells[0].load_text.startswith("open")
    assert "throughput" in str(result)
    assert capfd.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == []


def test_progress_and_recordings_are_for_those_who_ask(
    loaded_by: Loaded, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    loaded_by(Server())
    result = redline.load(URL, users=4, keep=tmp_path / "kept", progress=True)
    assert result.folder == tmp_path / "kept"
    assert (tmp_path / "kept" / "report.html").is_file()
    assert capfd.readouterr().out == ""


def test_the_thread_has_its_cpus_again(loaded_by: Loaded) -> None:
    before = os.sched_getaffinity(0)
    few = tuple(sorted(before))[:1]
    loaded_by(Server(), Placement(few, few, few))
    suite = redline.Suite.from_dict(SUITE)
    redline.run(suite, trials=1, duration="100ms", warmup="0s")
    assert os.sched_getaffinity(0) == before


def test_a_call_from_a_hook_of_git_knows_nothing_of_its_repository(
    loaded_by: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    seen = list[str | None]()
    loaded_by(Server(lambda: seen.append(os.environ.get("GIT_DIR"))))
    redline.load(URL, users=2)
    assert seen == [None]
    assert os.environ["GIT_DIR"] == "/elsewhere"


def test_a_function_imports_what_it_needs_before_it_measures() -> None:
    code = "import sys; from redline import load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    later = {"analysis.judging", "api.results", "cli.commands.ab", "document.blocks", "findings.rules", "model.report"}
    assert not {f"redline.{name}" for name in (*later, "report.run", "running.session")} & {*done.stdout.split()}


def test_a_suite_of_revisions_is_of_its_own_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "redline.yaml").write_text("start: ./shop --port {port}\n")
    as_somebody = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    for words in (("init", "-q"), ("add", "."), (*as_somebody, "commit", "-qm", "one")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=60)
    monkeypatch.setenv("GIT_DIR", "/elsewhere")
    suite = redline.Suite.from_dict({**SUITE, "servers": [{"revision": "HEAD"}]}, folder=tmp_path)
    assert suite.servers == ("HEAD",)
    assert os.environ["GIT_DIR"] == "/elsewhere"


def test_functions_work_in_any_thread(loaded_by: Loaded) -> None:
    seen = list[str]()
    loaded_by(Server(lambda: seen.append(threading.current_thread().name)))

    async def measured() -> None:
        result = await asyncio.to_thread(redline.load, URL, users=2)
        assert result.valid

    asyncio.run(measured())
    assert seen
    assert threading.main_thread().name not in seen


SUITE = {
    "servers": [{"url": "http://127.0.0.1:8080"}],
    "scenarios": [{"name": "items", "get": "/items"}],
    "loads": {"few": {"closed": {"users": 4}, "for": "1s"}, "many": {"closed": {"users": 8}, "for": "1s"}},
}


def test_a_suite_of_data_is_run_as_a_file_is(loaded_by: Loaded, tmp_path: Path) -> None:
    loaded_by(Server())
    suite = redline.Suite.from_dict(SUITE, name="shop")
    assert (suite.servers, suite.scenarios, suite.loads) == (("127.0.0.1:8080",), ("items",), ("few", "many"))
    of_data = redline.run(suite, trials=2, loads="few")
    file = suite.write(tmp_path / "shop.yaml")
    of_file = redline.run(file, trials=2, loads="few")
    assert redline.Suite.read(file).loads == suite.loads
    assert [cell.cell_id for cell in of_data.cells] == [cell.cell_id for cell in of_file.cells]
    assert len(of_data.cells[0].trials) == 2
    assert of_data.report.run.suite == "shop"
    with pytest.raises(UsageError, match="cannot be written: File exists"):
        suite.write(file)


def test_an_interrupt_keeps_what_was_measured(loaded_by: Loaded) -> None:
    loads = list[int]()

    def interrupted() -> None:
        loads.append(len(loads))
        if len(loads) > 1:
            raise KeyboardInterrupt

    loaded_by(Server(interrupted))
    with pytest.raises(redline.MeasurementInterrupted) as raised:
        redline.run(redline.Suite.from_dict(SUITE), trials=2)
    result = raised.value.result
    assert isinstance(raised.value, KeyboardInterrupt)
    assert sum(len(cell.trials) for cell in result.report.cells if hasattr(cell, "trials")) == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: redline.load(URL, rate="5x", duration="10"), ("rate='5x': ", "duration='10': ")),
        (lambda: redline.load("./a"), ("'./a' has no {port}",)),
        (lambda: redline.load("./a {port}", path="/", requests=[]), ("requests say what is requested",)),
        (lambda: redline.load(URL, path="/"), ("path='/' is for a command",)),
        (lambda: redline.load(URL, rate=5, users=4), ("users are of a load without a rate",)),
        (lambda: redline.load(URL, stages="1s:x"), ("stages='1s:x' is not a stage", "stages='1000:10s'")),
        (lambda: redline.load(URL, connections=4), ("connections are of a load with a rate",)),
        (lambda: redline.load("http://example.com/"), ("target_is_mine='example.com'",)),
        (lambda: redline.load(BARE, requests=[{"got": "/"}]), ("requests: [0]",)),
        (lambda: redline.load(BARE, requests=[{"name": "a", "get": Path("/")}]), ("no plain data",)),
        (lambda: redline.ab("./a {port}", "./b {port}", budget="1"), ("budget='1': ", "has no unit")),
        (lambda: redline.ab("./a {port}", "./b {port}", users=1, rate=5), ("users or a rate",)),
        (lambda: redline.ab("./a {port}"), ("./a {port} is compared with nothing",)),
        (lambda: redline.limit("./a {port}", objective="p99 < 5"), ("objective: `5` has no unit",)),
        (lambda: redline.limit("./a {port}"), ("objective='p99 < 200ms, errors < 0.1%'",)),
        (lambda: redline.limit("./a {port}", objective="p99 < 5ms", trials=1), ("trials=1 ", "give trials=2 or more")),
        (lambda: redline.run("none.yaml"), ("there is no file none.yaml",)),
        (lambda: redline.run(redline.Suite.from_dict(SUITE), loads="nona"), ("nona",)),
        (lambda: redline.Suite.from_dict({"servers": []}), ("servers", "`scenarios`", "`loads`")),
        (lambda: redline.Suite.from_dict({"servers": b"x"}), ("no plain data",)),
    ],
)
def test_an_error_names_the_arguments(
    call: Callable[[], object], words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with pytest.raises(UsageError) as raised:
        call()
    for word in words:
        assert word in str(raised.value)
    assert " --" not in str(raised.value)
    assert [path for path in tmp_path.iterdir() if path.name != "config"] == []


def test_an_error_that_is_no_mistake_of_the_caller_names_them_too(loaded_by: Loaded, tmp_path: Path) -> None:
    loaded_by(Server())
    redline.load(URL, users=2, keep=tmp_path / "kept")
    with pytest.raises(StoreError, match="already holds a") as raised:
        redline.load(URL, users=2, keep=tmp_path / "kept")
    assert "keep" in raised.value.hint
    assert "-o" not in raised.value.hint


def test_what_a_command_says_of_its_own_flags_stays() -> None:
    with pytest.raises(UsageError, match=r"'./a -c 2 --threads 4' has no \{port\}"):
        redline.load("./a -c 2 --threads 4")


def test_an_argument_that_is_not_there_is_a_mistake_in_python() -> None:
    with pytest.raises(TypeError, match=r"no argument 'usr': see help\(redline\.load\)"):
        redline.load(URL, usr=4)  # type: ignore[call-arg]


def test_a_hint_names_nothing_that_a_program_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    calls_: tuple[Callable[[], object], ...] = (redline.load, redline.ab, redline.limit, redline.run)
    for call in calls_:
        with pytest.raises(UsageError) as refused:
            call()
        assert not re.search(r"redline (load|ab|limit|run)\b", refused.value.hint)
    with pytest.raises(UsageError, match="http://h/ is a server, and not a suite"):
        redline.run("http://h/")


def test_a_failure_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RedlineError) as raised, redline.serve("./none --port {port}"):
        pytest.fail("it cannot be started")
    assert raised.value.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"command": "sleep 5"}, "command: 'sleep 5' has no {port}"),
        ({"path": "items"}, "path: `items` is not a path"),
        ({"env": {"MODE": 1}}, "env.MODE: must be text"),
        ({"ready": {"within": "x"}}, "ready.within: `x` is not a duration"),
        ({"other": 1}, "other: unknown key `other`"),
        ({"stop": {1}}, "stop is no plain data"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_error_of_a_server_names_the_argument(given: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError) as refused, redline.serve(**{"command": "./shop {port}", **given}):
        pytest.fail("it cannot be started")
    assert refused.value.message.startswith(said)


@pytest.mark.parametrize(("given", "loads"), [({}, ["few"]), ({"users": 64}, ["load"]), ({"rate": 5}, ["load"])])
def test_a_load_that_is_given_goes_before_those_of_the_file(
    given: dict[str, int], loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[ComparisonAsk]()

    def created(ask: ComparisonAsk, *_: object) -> None:
        seen.append(ask)
        raise RedlineError("enough is known", hint="")

    monkeypatch.setattr(commands, "created_comparison", created, raising=False)
    with pytest.raises(RedlineError, match="enough is known"):
        redline.ab(**given)  # type: ignore[arg-type]
    servers = "servers: [{name: a, url: 'http://127.0.0.1:1'}, {name: b, url: 'http://127.0.0.1:2'}]\n"
    project = read_project(f"{servers}loads: {{few: {{closed: {{users: 4}}}}}}\n", "redline.yaml")
    assert [*plain(comparison_document(seen[0], lambda _: ("", ""), str, project))["loads"]] == loads


def test_arguments_are_what_is_asked_for() -> None:
    request = {
        "headers": {"Accept": "text/plain", "X-Id": ["1", "2"]},
        "body": Path("item.json"),
        "timeout": timedelta(milliseconds=250),
        "target_is_mine": "shop.example",
        "cacert": "ca.pem",
    }
    ask = calls._ask(LoadAsk, redline.load, {"server": URL, "duration": None, "request": request})
    assert ask.headers == (("Accept", "text/plain"), ("X-Id", "1"), ("X-Id", "2"))
    assert (ask.body, ask.timeout, ask.target_is_mine) == (Path("item.json"), "250000us", ("shop.example",))
    assert (ask.server, ask.cacert, ask.duration) == (URL, Path("ca.pem"), None)


@pytest.mark.parametrize("body", ["@file", "@", b"@file", b"\xff\x00{seq}"])
def test_a_body_is_sent_as_it_is(body: str | bytes, loaded_by: Loaded, tmp_path: Path) -> None:
    loaded_by(Server())
    result = redline.load(URL, body=body, keep=tmp_path / "kept", duration="1s")
    assert result.valid
    (cell,) = RunStore(tmp_path / "kept").manifest().plan.cells.values()
    sent = cell.scenario.request.body
    assert sent == Body(text=body) if isinstance(body, str) else sent == Body(raw=body)
    kept = tmp_path / "kept" / "body.bin"
    assert kept.read_bytes() == body if isinstance(body, bytes) else not kept.exists()


@pytest.mark.parametrize("name", ["requests", "body"])
def test_a_path_of_another_library_is_a_path(name: str, loaded_by: Loaded, tmp_path: Path) -> None:
    loaded_by(Server())
    (tmp_path / "items.yaml").write_text("- {name: items, get: /items}\n")
    (file,) = os.scandir(tmp_path)
    given: dict[str, Any] = {name: file}
    assert redline.load(URL if name == "body" else BARE, duration="1s", **given).valid
    with pytest.raises(UsageError, match=r"items\.yaml"):
        redline.run(file)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [AbFlags, LimitFlags, LoadFlags])
def test_every_flag_is_an_argument_or_is_about_printing(kind: type[LoadFlags]) -> None:
    function = {AbFlags: redline.ab, LimitFlags: redline.limit, LoadFlags: redline.load}[kind]
    given = {*function.__annotations__, *calls.RequestOptions.__annotations__}
    renamed = {"lasts": "budget", "mine": "target_is_mine", "output": "keep", "load": "users", "url": "server"}
    printing = {"stream", "json", "form", "spectrum", "fail_on", "resume", "write_suite", *WHILE_IT_RUNS}
    of_suites = {"servers", "loads", "options", "quick", "on"}
    of_the_engine = {
        "connections_at_start",
        "requests_per_connection",
        "no_keepalive",
        "follow",
        "backend",
        "spin",
        "pace",
        "like",
    }
    short_for_headers_and_method = {"user_agent", "cookie", "referer", "head"}
    others = printing | of_suites | of_the_engine | short_for_headers_and_method
    missing = {renamed.get(name, name) for name in kind.declared()} - given - others
    assert missing == set()


def test_a_call_is_told_without_its_defaults() -> None:
    defaults = {name: parameter.default for name, parameter in signature(redline.limit).parameters.items()}
    given = defaults | {"targets": ("a", "b"), "seed": 3, "request": {"http2": True}}
    assert call_text(redline.limit, given) == "redline.limit('a', 'b', seed=3, http2=True)"


LOGGED = ((36, "a"), (36, "b"), (38, "a"))


def test_a_command_replays_a_log(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    lines = (f'10.0.0.1 - - [10/Oct/2026:13:55:{at} +0000] "GET /{path} HTTP/1.1" 200 2\n' for at, path in LOGGED)
    log.write_text("".join(lines))
    ask = asks.load(url="./shop --port {port}", replay=log)
    suite, _ = load_suite(ask)
    assert suite.loads[0].open_shape.replayed_requests == (0, 1, 0)
    assert [request.path for request in suite.scenarios[0].requests] == ["/a", "/b"]
    with pytest.raises(UsageError, match="requests say what is requested"):
        load_suite(asks.load(url="./shop --port {port}", replay=log, path="/items"))


def test_a_run_waits_for_quiet_before_every_start(loaded_by: Loaded, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded_by(Server())
    waits = list[float]()
    monkeypatch.setattr(calls.Quiet, "wait", lambda quiet, *_: waits.append(quiet.at_most_s))
    suite = {
        "servers": ["rust.hyper"],
        "scenarios": ["SimpleGet"],
        "loads": {"x": {"closed": {"users": 1}, "for": "1s"}},
    }
    redline.run(redline.Suite.from_dict(suite), trials=3, wait_quiet=True)
    assert waits == [300.0] * 3


@pytest.mark.parametrize(("asked", "duration"), [({}, None), ({"duration": "10s"}, "10s")])
def test_an_explicit_duration_is_asked_for_even_if_it_is_the_usual_one(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, str], duration: str | None
) -> None:
    """A recording that is shorter ends a load whose duration nobody asked for."""
    orders = list[commands.LoadOrder]()

    def measure(order: commands.LoadOrder, *_: object) -> None:
        orders.append(order)
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        redline.load(URL, **asked)  # type: ignore[arg-type]
    assert [order.ask.duration for order in orders] == [duration]
