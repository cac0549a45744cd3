"""A server's runtime is recognized by the files that its processes map, whatever its command looks like."""

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.launching.attached import AttachedLauncher, RunningElsewhere
from redline.launching.command import CommandLauncher
from redline.launching.ownership import watch
from redline.launching.process import free_port
from redline.linux.runtimes import runtimes_in, runtimes_of
from redline.model import PlannedDuet, PlannedTrial, Recording, Request, Scenario, Variant
from redline.model.runtime import COMPILES_WHILE_RUNNING, RECOGNISED
from redline.ports import Endpoint, Launch, LoadOptions, Placement
from redline.running.duet import DuetStart, run_start
from redline.running.record import Tools, record_load
from redline.schema.server import ReadySchema
from redline.suite.project import Own
from redline.watching.jvm import compilers_of
from tests.fakes.asking import request_status
from tests.fakes.plugins import FakeDriver, FakeLauncher, FakeServer
from tests.fakes.recordings import simulated_cell
from tests.fakes.servers.entries import SCRIPT, eventually, server

SERVERS = Path(__file__).parents[2] / "fakes" / "servers"
READY = server(within_ms=60_000).catalogued.ready


def mapped(*files: str, flags: str = "r-xp") -> str:
    """The text of /proc/PID/maps of a process that maps these files, among others."""
    lines = [
        "00b6f000-00b71000 r-xp 0076f000 fe:00 247580                             {file}",
        "7f1f50003000-7f1f5003f000 rwxp 00000000 00:00 0 ",
        "7f149d400000-7f149d499000 r-xp 00000000 fe:00 326789                     /usr/lib/x86_64-linux-gnu/libc.so.6",
        "7ffd0b5e3000-7ffd0b5e5000 r-xp 00000000 00:00 0                          [vdso]",
    ]
    own = [lines[0].format(file=file).replace("r-xp", flags) for file in files]
    return "\n".join([*own, *lines[1:]]) + "\n"


@pytest.mark.parametrize(
    ("file", "runtime"),
    [
        ("/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", "jvm"),
        ("/opt/my jdk/lib/server/libjvm.so", "jvm"),
        ("/usr/lib/jvm/java-25/lib/server/libjvm.so (deleted)", "jvm"),
        ("/usr/bin/node", "node"),
        ("/root/.nvm/versions/node/v20.20.2/bin/node", "node"),
        ("/usr/lib/x86_64-linux-gnu/libnode.so.108", "node"),
        ("/home/me/.deno/bin/deno", "deno"),
        ("/home/me/.bun/bin/bun", "bun"),
        ("/usr/bin/python3.11", "python"),
        ("/opt/python3.13t", "python"),
        ("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0", "python"),
        ("/usr/lib/pypy3.9/bin/libpypy3.9-c.so", "pypy"),
        ("/usr/bin/ruby3.1", "ruby"),
        ("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1.2", "ruby"),
        ("/usr/sbin/php-fpm8.2", "php"),
        ("/usr/lib/apache2/modules/libphp8.2.so", "php"),
        ("/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.1/libcoreclr.so", "dotnet"),
        ("/usr/lib/erlang/erts-13.1.5/bin/beam.smp", "beam"),
        ("/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0", "luajit"),
    ],
)
def test_a_runtime_is_recognised_by_what_is_mapped_to_be_executed(file: str, runtime: str) -> None:
    assert runtimes_in(mapped(file)) == {runtime}
    assert runtimes_in(mapped(file, flags="r--p")) == frozenset()
    assert runtime in RECOGNISED
    assert RECOGNISED > COMPILES_WHILE_RUNNING


@pytest.mark.parametrize(
    "file", ["/opt/nodes/server", "/srv/python3.11/app", "/usr/bin/nodemon-like", "/opt/libjvm.so.d/x", "/bin/rubylike"]
)
def test_other_programs_are_native(file: str, tmp_path: Path) -> None:
    assert runtimes_in(mapped(file)) == frozenset()
    write(tmp_path, 7, mapped(file))
    assert runtimes_of([7], str(tmp_path)) == {"native"}


def write(proc: Path, pid: int, maps: str) -> None:
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "maps").write_text(maps)


def test_the_runtimes_of_a_tree_are_those_of_all_its_processes(tmp_path: Path) -> None:
    write(tmp_path, 1, mapped("/usr/bin/dash"))
    write(tmp_path, 2, mapped("/usr/bin/node"))
    write(tmp_path, 3, mapped("/jdk/lib/server/libjvm.so"))
    assert runtimes_of([1, 2, 3], str(tmp_path)) == {"jvm", "node"}
    assert runtimes_of([1], str(tmp_path)) == {"native"}


def test_nothing_is_said_of_processes_that_have_ended_or_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert runtimes_of([], str(tmp_path)) == frozenset()
    assert runtimes_of([9], str(tmp_path)) == frozenset()
    write(tmp_path, 1, mapped("/usr/bin/dash"))
    write(tmp_path, 2, mapped("/usr/bin/node"))
    read_text = Path.read_text

    def hidden(path: Path, **how: str) -> str:
        if path.parent.name == "2":
            raise PermissionError
        return read_text(path, **how)

    monkeypatch.setattr(Path, "read_text", hidden)
    assert runtimes_of([1, 2], str(tmp_path)) == frozenset()


@pytest.mark.parametrize(("runs_on", "slice_ns", "guard_ns"), [("jvm", 50, 10), ("native", 10, 2), ("node", 10, 2)])
def test_slices_are_as_long_as_what_runs_needs(runs_on: str, slice_ns: int, guard_ns: int, tmp_path: Path) -> None:
    cells, driver = (simulated_cell("a"), simulated_cell("b")), FakeDriver([])
    assert {cell.variant.runtime for cell in cells} == {"native"}
    launcher = FakeLauncher([], FakeServer(runtimes=frozenset({runs_on})))
    planned = PlannedDuet(cell_ids=tuple(cell.id for cell in cells), round=0, position=0, seed=1)
    tools = Tools(launcher, driver, lambda _server: (), Placement())
    start = DuetStart((planned,), {cell.id: cell for cell in cells}, logs=lambda _duet: tmp_path)
    assert len(list(run_start(start, tools))) == 1
    (asked,) = driver.duets
    assert (asked.slice_ns, asked.guard_ns) == (slice_ns * 1_000_000, guard_ns * 1_000_000)


JAVA, NODE = shutil.which("java"), shutil.which("node")
needs_java = pytest.mark.skipif(JAVA is None, reason="there is no JDK")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no Node")
HELLO, BURNING, ECHO = SERVERS / "Burning.java", SERVERS / "burning.js", f"{sys.executable} -I -S {SCRIPT}"


@pytest.mark.parametrize(
    ("command", "runtimes"),
    [
        pytest.param(f"sh -c 'exec java {HELLO} {{port}}'", {"jvm"}, marks=needs_java),
        pytest.param(f"sh -c 'java {HELLO} {{port}}; true'", {"jvm"}, marks=needs_java),
        pytest.param(f"env X=1 java {HELLO} {{port}}", {"jvm"}, marks=[needs_java, pytest.mark.long]),
        pytest.param(f"taskset -c 0 java {HELLO} {{port}}", {"jvm"}, marks=[needs_java, pytest.mark.long]),
        pytest.param("{script} {port}", {"jvm"}, marks=needs_java),
        pytest.param(f"sh -c 'node {BURNING} {{port}}; true'", {"node"}, marks=needs_node),
        (f"{ECHO} {{port}} healthy", {"python"}),
    ],
)
def test_what_runs_is_recognised_whatever_starts_it(command: str, runtimes: set[str], tmp_path: Path) -> None:
    script = tmp_path / "app"
    script.write_text(f'#!/bin/sh\njava {HELLO} "$1"\ntrue\n')
    script.chmod(0o755)
    entry = Own(
        command=command.replace("{script}", str(script)),
        folder=str(tmp_path),
        ready=ReadySchema.model_validate({"within": "60s"}),
    ).entry("app", (Scenario(name="ready", request=Request(path=READY.path)),))
    entry = entry.model_copy(update={"ready": READY})
    with CommandLauncher().running(Launch(Variant(entry=entry), Placement(), tmp_path / "log")) as running:
        assert running.runtimes == runtimes
        assert set(running.facts.runtimes) == runtimes
        elsewhere = RunningElsewhere(running.endpoint)
        assert elsewhere.runtimes == runtimes


@contextmanager
def started(*command: str | Path) -> Iterator[int]:
    """The port of a server that the lab did not start; the port is the last word of its command."""
    port = free_port()
    process = subprocess.Popen([*command, str(port)])
    try:
        assert eventually(lambda: answers(port), 60)
        yield port
    finally:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    try:
        return request_status("127.0.0.1", port, "/", 5) == 200
    except OSError:
        time.sleep(0.05)
        return False


@needs_node
def test_what_a_server_behind_a_url_runs_on_is_in_the_recording(tmp_path: Path) -> None:
    cell = simulated_cell()
    tools = Tools(AttachedLauncher(), FakeDriver([]), lambda _server: (), Placement())
    with started(str(NODE), BURNING) as port:
        running = RunningElsewhere(Endpoint("127.0.0.1", port))
        planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=3)
        recording = record_load(cell, planned, running, tools, LoadOptions(log=tmp_path / "log"))
    assert recording.runtimes == {"node"}
    assert Recording.model_validate_json(recording.model_dump_json()).runtimes == {"node"}


@pytest.mark.parametrize(
    ("command", "compiles"),
    [
        pytest.param(("java", "-XX:TieredStopAtLevel=1", HELLO), True, marks=needs_java),
        ((sys.executable, "-I", "-S", SERVERS / "burning.py"), False),
    ],
)
def test_the_compilers_of_a_jvm_behind_a_url_are_watched_while_it_warms_up(
    command: tuple[str | Path, ...], *, compiles: bool
) -> None:
    with started(*command) as port:
        compiled_ns = compilers_of(watch(RunningElsewhere(Endpoint("127.0.0.1", port))).pids)()
    assert (compiled_ns is not None and compiled_ns > 0) == compiles
