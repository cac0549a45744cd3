"""A profiler runs in the middle of the measurement, and none of its failures fails a trial."""

import gzip
import itertools
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from redline.extras.profiling import async_profiler, commands, machine
from redline.extras.profiling.async_profiler import Artefacts, AsyncProfiler
from redline.extras.profiling.attach import ask_as_jcmd, load_agent
from redline.extras.profiling.commands import Perf, PySpy
from redline.extras.profiling.machine import MachineProfilers, TrialProfiler
from redline.extras.profiling.sampler import ProfilerError, Sampled, Sampler
from redline.linux import procfs
from redline.model import Interval, LoadStage, PlannedTrial, ProfileFile, ProfileUnit, Recording, Slice, Stacks, Traffic
from redline.ports import Drive, Placement
from redline.running.record import Tools
from redline.running.trial import TrialOptions, run_trial
from tests.fakes.plugins import FakeDriver, FakeLauncher
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

CELL = simulated_cell()
RAMP = simulated_cell(
    load=SATURATE.model_copy(
        update={"shape": SATURATE.shape.model_copy(update={"stages": (LoadStage(to=128, over_ns=500_000_000),)})}
    )
)
PLANNED = PlannedTrial(cell_id=CELL.id, round=0, position=9, seed=1, profile="cpu")


@dataclass
class FakeSampler:
    """Notes its calls, and fails where the test says."""

    events: list[str]
    fails_at: str = ""
    error: Exception = field(default_factory=lambda: ProfilerError("no such thing"))
    stacks: Stacks = field(default_factory=lambda: Stacks.from_text("[main tid=1];a;b 7\n"))
    slices: tuple[Slice, ...] = ()
    name: str = "fake 1.0"
    event: str = "cpu"
    interval: int = 1_000_000
    unit: ProfileUnit = "samples"
    env: dict[str, str] = field(default_factory=lambda: {"FOR_THE_PROFILER": "yes"})

    def prepare(self, pid: int, folder: Path) -> None:
        assert folder.is_dir()
        self._note(f"prepare {pid}", "prepare")

    def start(self, pid: int, folder: Path) -> None:
        assert folder.is_dir()
        self._note(f"sample {pid}", "start")

    def stop(self) -> None:
        self._note("sampled", "stop")

    def read(self, folder: Path, slices: Sequence[Slice]) -> Sampled:
        self.slices = tuple(slices)
        self._note("read", "read")
        (folder / "profile.jfr").write_bytes(b"FLR")
        return Sampled(self.stacks, self.stacks.total, 1, (ProfileFile(name="profile.jfr", form="jfr"),))

    def _note(self, event: str, at: str) -> None:
        self.events.append(event)
        if at == self.fails_at:
            raise self.error


def profiled(folder: Path, sampler: FakeSampler, cell: object = CELL, *, engine: bool = False) -> Recording:
    own = folder / "profiles" / "0009-x.cpu"
    own.mkdir(parents=True)
    launcher = FakeLauncher(sampler.events)
    tools = Tools(launcher, FakeDriver(sampler.events), lambda _server: (), Placement())
    profiler = TrialProfiler("cpu", "engine" if engine else "server", sampler, own)
    made = run_trial(PLANNED, cell, tools, folder, TrialOptions(profiler=profiler))  # type: ignore[arg-type]
    assert [launch.env for launch in launcher.launches] == [{} if engine else sampler.env]
    return made


def test_it_samples_the_measurement_and_is_read_when_the_server_has_stopped(tmp_path: Path) -> None:
    sampler = FakeSampler([])
    made = profiled(tmp_path, sampler)
    assert sampler.events == ["start", "verify", "prepare 4321", "drive", "sample 4321", "sampled", "stop", "read"]
    assert made.perturbed
    assert made.traffic is not None
    facts = made.profile
    assert facts is not None
    assert (facts.kind, facts.subject, facts.profiler, facts.samples, facts.lost) == ("cpu", "server", "fake 1.0", 7, 1)
    assert facts.problem == ""
    assert {file.form: file.name for file in facts.files} == {
        "stacks": "profiles/0009-x.cpu/stacks.gz",
        "speedscope": "profiles/0009-x.cpu/speedscope.json",
        "jfr": "profiles/0009-x.cpu/profile.jfr",
    }
    assert facts.stacks is not None
    assert Stacks.from_bytes((tmp_path / facts.stacks).read_bytes()) == sampler.stacks
    assert gzip.decompress((tmp_path / facts.stacks).read_bytes()) == b"[main tid=1];a;b 7\n"
    assert facts.started is not None
    assert facts.stopped is not None
    assert facts.sampled == (facts.started.end, facts.stopped.start)


def test_a_quarter_of_the_measurement_is_not_profiled_before_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The measurement is twice as long, so that as much is profiled as the suite says."""
    sampler, now = FakeSampler([]), [0]
    monkeypatch.setattr(machine, "time", SimpleNamespace(time_ns=lambda: now[0]))
    expected = simulated_recording(CELL.under_profiler, seed=PLANNED.seed + PLANNED.position).traffic
    assert expected is not None

    def seen(interval: Interval) -> None:
        now[0] = expected.epoch_unix_ns + interval.end_ns
        if interval.phase == "measure":
            sampler.events.append("measured")

    tools = Tools(FakeLauncher(sampler.events), FakeDriver(sampler.events), lambda _server: (), Placement())
    profiler = TrialProfiler("cpu", "server", sampler, tmp_path)
    made = run_trial(PLANNED, CELL, tools, tmp_path, TrialOptions(seen, profiler))
    begin, end = sampler.events.index("sample 4321"), sampler.events.index("sampled")
    measured = [sampler.events[a:b].count("measured") for a, b in ((0, begin), (begin, end), (end, None))]
    assert made.traffic is not None
    whole = sum(each.phase == "measure" for each in made.traffic.intervals)
    assert made.traffic.measure_end_ns - made.traffic.measure_start_ns == 2 * CELL.load.duration_ns
    assert measured == [whole // 4, whole // 2, whole // 4]
    assert made.profile is not None
    assert made.profile.sampled is not None
    assert len(sampler.slices) == whole // 2
    for one, other in zip(made.profile.sampled, (sampler.slices[0].start, sampler.slices[-1].end), strict=True):
        assert abs(one - other) < 1_000_000


class SoonWarm(FakeDriver):
    """Ends the warm-up long before its maximum."""

    def drive(self, drive: Drive) -> Traffic:
        return super().drive(replace(drive, cell=RAMP))


@pytest.mark.parametrize(("longest", "measured_before"), [(1, 0), (100, 1)])
def test_a_load_that_changes_is_profiled_as_a_whole_however_the_warm_up_ends(
    tmp_path: Path, longest: int, measured_before: int
) -> None:
    """The last interval of a warm-up of known length is the beginning; of another, the first that was measured."""
    seen, cell = list[str](), RAMP.model_copy(update={"warmup_ns": RAMP.warmup_ns * longest})
    profiler = TrialProfiler("cpu", "server", FakeSampler(seen), tmp_path)
    tools = Tools(FakeLauncher(seen), SoonWarm(seen), lambda _server: (), Placement())
    made = run_trial(PLANNED, cell, tools, tmp_path, TrialOptions(lambda each: seen.append(each.phase), profiler))
    before, after = seen[: seen.index("sample 4321")], seen[seen.index("sample 4321") :]
    assert "warmup" in before
    assert before.count("measure") == measured_before
    assert "warmup" not in after
    assert after.index("drain") < after.index("sampled")
    assert made.traffic is not None
    assert made.traffic.measure_end_ns - made.traffic.measure_start_ns == RAMP.load.duration_ns


def test_without_a_warm_up_it_begins_with_the_engine(tmp_path: Path) -> None:
    sampler = FakeSampler([])
    profiled(tmp_path, sampler, RAMP.model_copy(update={"warmup_ns": 0}), engine=True)
    assert sampler.events[:5] == ["start", "verify", "drive", "sample 99", "sampled"]


@pytest.mark.parametrize(
    ("at", "error", "says"),
    [
        ("prepare", ProfilerError("the server has no process that is a JVM"), "no process"),
        ("start", ProfilerError("the JVM did not load it"), "did not load"),
        ("stop", ProfilerError("it did not end"), "did not end"),
        ("read", OSError(28, "No space left on device", "stacks.gz"), "No space left"),
    ],
)
def test_what_goes_wrong_is_reported_of_the_profile_and_the_trial_stands(
    tmp_path: Path, at: str, error: Exception, says: str
) -> None:
    made = profiled(tmp_path, FakeSampler([], fails_at=at, error=error))
    assert made.failure is None
    assert made.traffic is not None
    assert made.perturbed
    assert made.profile is not None
    assert says in made.profile.problem
    assert made.profile.stacks is None
    assert made.profile.samples == 0


def test_what_was_sampled_before_an_interrupt_is_kept(tmp_path: Path) -> None:
    events = list[str]()
    profiler = TrialProfiler("cpu", "server", FakeSampler(events), tmp_path)

    class Interrupted(FakeDriver):
        def drive(self, drive: Drive) -> Traffic:
            super().drive(
                replace(drive, on_interval=lambda each: drive.on_interval(each) if each.phase != "drain" else None)
            )
            raise KeyboardInterrupt

    tools = Tools(FakeLauncher(events), Interrupted(events), lambda _server: (), Placement())
    with pytest.raises(KeyboardInterrupt):
        run_trial(PLANNED, CELL, tools, tmp_path, TrialOptions(profiler=profiler))
    assert events[-2:] == ["sampled", "stop"]


def test_a_profile_without_a_sample_says_so(tmp_path: Path) -> None:
    made = profiled(tmp_path, FakeSampler([], stacks=Stacks()))
    assert made.profile is not None
    assert "no sample" in made.profile.problem


def tool(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!{sys.executable} -S\n{text}")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder on the PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    for cached in (commands.missing, commands.version):
        cached.cache_clear()
    return folder


def test_the_setting_that_forbids_to_sample_is_named_where_it_does(tmp_path: Path) -> None:
    setting = tmp_path / "perf_event_paranoid"
    assert commands.by_paranoia(setting, 1000) == ""
    setting.write_text("2\n")
    assert commands.by_paranoia(setting, 1000) == ""
    setting.write_text("4\n")
    assert commands.by_paranoia(setting, 0) == ""
    assert commands.by_paranoia(setting, 1000) == f"; {setting} is 4: lower it to 2, or run as root"


def test_a_root_without_the_capability_is_told_how_to_get_it(tmp_path: Path) -> None:
    status = tmp_path / "status"
    assert commands.by_capabilities(status, 0) == ""
    status.write_text("Name:\tredline\nCapEff:\t00000000a80425fb\n")  # those of a container by default
    assert commands.by_capabilities(status, 0).endswith("start the container with --cap-add PERFMON")
    assert commands.by_capabilities(status, 1000) == ""
    for effective in ("00000040a80425fb", "00000000a82425fb", "000001ffffffffff"):
        status.write_text(f"CapEff:\t{effective}\n")
        assert commands.by_capabilities(status, 0) == ""


def test_what_is_not_installed_or_not_permitted_has_a_hint(path: Path) -> None:
    profilers, python = MachineProfilers(path), runtime("python")
    assert "linux-perf" in profilers.missing(CELL.variant, "cpu", print)
    assert "linux-perf" in profilers.missing(runtime("jvm"), "engine", print)
    assert "py-spy" in profilers.missing(python, "wall", print)
    tool(path, "perf", "import sys; print('Permission denied'); sys.exit(1)")
    commands.missing.cache_clear()
    assert profilers.missing(CELL.variant, "cpu", print) == "perf does not sample: Permission denied"
    wrapper = "WARNING: perf not found for kernel 6.1\\n\\n  You may need to install:\\n    linux-cloud-tools-generic"
    tool(path, "perf", f"import sys; print('{wrapper}'); sys.exit(2)")
    commands.missing.cache_clear()
    assert profilers.missing(CELL.variant, "cpu", print) == "perf does not sample: perf not found for kernel 6.1"
    tool(path, "perf", "print('perf version 6.1')")
    commands.missing.cache_clear()
    assert profilers.missing(CELL.variant, "cpu", print) == ""
    assert profilers.missing(python, "cpu", print) == ""  # the interpreter's functions are better than none
    assert "py-spy" in profilers.missing(python, "wall", print)


def runtime(name: str):  # type: ignore[no-untyped-def]
    entry = CELL.variant.catalogued.model_copy(update={"runtime": name})
    return CELL.variant.model_copy(update={"entry": entry})


def test_each_runtime_has_its_profiler(path: Path, tmp_path: Path) -> None:
    def profiler(runs_on: str, profile: str) -> TrialProfiler:
        planned = PLANNED.model_copy(update={"profile": profile})
        cell = CELL.model_copy(update={"variant": runtime(runs_on)})
        return MachineProfilers(tmp_path).profiler(planned, cell, tmp_path)

    def sampler(runs_on: str, profile: str) -> Sampler:
        return profiler(runs_on, profile)._sampler

    assert isinstance(sampler("jvm", "alloc"), AsyncProfiler)
    assert isinstance(sampler("native", "cpu"), Perf)
    # a command that nobody declared as Node's may start it
    for runs_on in ("node", "native", ""):
        assert "--perf-basic-prof" in profiler(runs_on, "cpu").env["NODE_OPTIONS"]
    assert profiler("node", "engine").env == {}
    assert isinstance(sampler("jvm", "engine"), Perf)
    assert isinstance(sampler("python", "cpu"), Perf)
    tool(path, "py-spy", "print('py-spy 0.4.3')")
    commands.missing.cache_clear()
    assert isinstance(sampler("python", "cpu"), PySpy)


def test_logs_that_v8_writes_where_a_server_runs_are_removed(path: Path, tmp_path: Path) -> None:
    tool(path, "perf", OBEDIENT)
    folder = tmp_path / "served"
    folder.mkdir()
    server = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], cwd=folder)
    try:
        perf = Perf()
        perf.start(server.pid, tmp_path)
        perf.stop()
        for pid in (server.pid, server.pid + 1):
            (folder / f"isolate-0x1-{pid}-v8.log").touch()
        (tmp_path / "perf.data").touch()
        tool(path, "perf", "pass")
        perf.read(tmp_path, ())
    finally:
        server.kill()
        server.wait()
    assert [file.name for file in folder.iterdir()] == [f"isolate-0x1-{server.pid + 1}-v8.log"]


OBEDIENT = """
import os, signal, sys
orders, answers = map(int, sys.argv[-5].partition("fd:")[2].split(","))
signal.signal(signal.SIGINT, lambda *_: sys.exit())
while order := os.read(orders, 64):
    print("it shall", order.decode(), flush=True)
    os.write(answers, b"ack\\n\\0")
"""
"""A perf that obeys the orders of its pipe."""


def test_perf_is_attached_before_the_load_and_samples_once_it_says_so(path: Path, tmp_path: Path) -> None:
    tool(path, "perf", OBEDIENT)
    perf, log = Perf(), tmp_path / "perf.log"
    perf.prepare(os.getpid(), tmp_path)
    assert log.read_text().split() == ["it", "shall", "disable"]
    perf.start(os.getpid(), tmp_path)
    assert log.read_text().split() == ["it", "shall", "disable", "it", "shall", "enable"]
    perf.stop()
    perf.stop()
    assert log.exists()


@pytest.mark.parametrize(("ended", "attaches"), [(2, True), (4, True), (5, False)])
def test_perf_is_attached_again_where_a_thread_ends_meanwhile(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: int, *, attaches: bool
) -> None:
    tries, gone = tmp_path / "tries", "The sys_perf_event_open() syscall returned with 3 (No such process)"
    monkeypatch.setattr(procfs, "threads", lambda _pid: frozenset((1,)))  # the fake perf is a child of this process
    tries.touch()
    counting = f"import sys\nwith open({str(tries)!r}, 'a+b') as tries:\n    tries.write(b'.'); tries.seek(0)\n"
    perf = Perf()
    tool(path, "perf", f"{counting}    if len(tries.read()) <= {ended}: sys.exit({gone!r})\n{OBEDIENT}")
    if attaches:
        perf.prepare(os.getpid(), tmp_path)
        perf.stop()
    else:
        with pytest.raises(ProfilerError, match="No such process"):
            perf.prepare(os.getpid(), tmp_path)
    assert len(tries.read_bytes()) == min(ended + 1, 5)


@pytest.mark.parametrize(("began", "attached"), [(1, 2), (9, 5)])
def test_perf_is_attached_again_where_threads_begin_meanwhile(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, began: int, attached: int
) -> None:
    """It misses them, and all that they start; where there are always new ones, the last try counts."""
    tries, perf = tmp_path / "tries", Perf()
    tool(path, "perf", f"with open({str(tries)!r}, 'ab') as tries: tries.write(b'.')\n{OBEDIENT}")
    seen = itertools.count()
    monkeypatch.setattr(procfs, "threads", lambda _pid: frozenset(range(min(next(seen), 2 * began - 1))))
    perf.prepare(os.getpid(), tmp_path)
    perf.start(os.getpid(), tmp_path)
    perf.stop()
    assert len(tries.read_bytes()) == attached


def test_py_spy_is_awaited_until_it_samples(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "py-spy> Sampling process 250 times a second. Press Control-C to exit."
    answer = "import signal, sys, time\nif '--version' in sys.argv: sys.exit()\n"
    sampling = f"{answer}time.sleep(.2); print('{said}', flush=True); signal.pause()"
    tool(path, "py-spy", sampling)
    py_spy = PySpy("cpu")
    py_spy.start(os.getpid(), tmp_path)
    assert said in (tmp_path / "py-spy.log").read_text()
    py_spy.stop()
    tool(path, "py-spy", "import sys; sys.exit('Error: Permission denied')")
    with pytest.raises(ProfilerError, match="ended before it sampled: Permission denied"):
        PySpy("cpu").start(os.getpid(), tmp_path)
    monkeypatch.setattr(commands, "_ANSWERS_WITHIN_S", 0.01)
    slow_tool = path / "py-spy"
    slow_tool.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    slow = PySpy("cpu")
    with pytest.raises(ProfilerError, match=r"did not sample within 0\.01 s"):
        slow.start(os.getpid(), tmp_path)
    slow.stop()


def test_of_a_measurement_that_did_not_begin_perf_leaves_nothing(path: Path, tmp_path: Path) -> None:
    tool(path, "perf", OBEDIENT)
    profiler = TrialProfiler("cpu", "server", Perf(), tmp_path)
    profiler.follow("server", os.getpid())
    assert [file.name for file in tmp_path.glob("perf.*")] == ["perf.log"]
    profiler.end()
    assert profiler.facts(None).problem == "the measurement did not begin"
    assert not list(tmp_path.glob("perf.*"))


def test_a_perf_that_fails_or_never_attaches_itself_is_quoted_and_ended(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool(path, "perf", "import sys; print('event syntax error'); sys.exit(129)")
    perf = Perf()
    with pytest.raises(ProfilerError, match="ended before it sampled: event syntax error"):
        perf.start(1, tmp_path)
    with pytest.raises(ProfilerError, match="event syntax error"):
        perf.stop()
    monkeypatch.setattr(commands, "_ANSWERS_WITHIN_S", 0.01)
    tool(path, "perf", "import time; time.sleep(600)")
    profiler = TrialProfiler("cpu", "server", Perf(), tmp_path)
    profiler.follow("server", os.getpid())
    profiler.begin()
    profiler.end()
    assert "did not attach itself within 0.01 s" in profiler.facts(None).problem
    assert not [one for one in psutil.Process().children() if str(path / "perf") in one.cmdline()]


@pytest.fixture
def script(path: Path, tmp_path: Path) -> Callable[[str], Sampled]:
    """The result of reading a `perf script` that runs this text."""

    def read(text: str) -> Sampled:
        perf = Perf()  # before it could be asked for its version
        tool(path, "perf", text)
        for name in ("perf.data", "perf.log"):
            (tmp_path / name).touch()
        return perf.read(tmp_path, ())

    return read


def test_what_perf_writes_is_read_while_it_writes(script: Callable[[str], Sampled], tmp_path: Path) -> None:
    """More than a pipe holds; and some without an end of line, as from a process that was killed while it wrote."""
    read = script("for at in range(9000): print(f'app 9     {at}.000000000: \\n\\t 1 hot (/srv/app)\\n\\n', end='')")
    assert (read.samples, read.lost, len(read.stacks.weights)) == (9000, 0, 1)
    assert not list(tmp_path.glob("perf.*"))
    assert script("print('app 9     1.000000000: \\n\\t 1 hot (/srv/app)', end='')").samples == 1


def test_what_perf_cannot_read_is_quoted_and_kept(script: Callable[[str], Sampled], tmp_path: Path) -> None:
    failing = "print('app 9     1.000000000: \\n\\t 1 hot (/srv/app)\\n'); import sys; sys.exit('corrupted data')"
    with pytest.raises(ProfilerError, match="ended with 1: corrupted data"):
        script(failing)
    assert (tmp_path / "perf.data").exists()


def test_a_perf_that_stops_to_write_is_ended(
    script: Callable[[str], Sampled], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_SILENT_WITHIN_S", 0.01)
    with pytest.raises(ProfilerError, match=r"wrote nothing for 0\.01 s"):
        script("import time; time.sleep(600)")
    assert not [one for one in psutil.Process().children() if str(path / "perf") in one.cmdline()]


MAVEN = """
import pathlib, sys
wanted = dict(each[2:].split("=", 1) for each in sys.argv if each.startswith("-D"))
_, name, version = wanted["artifact"].split(":")
pathlib.Path(wanted["outputDirectory"], f"{name}-{version}.jar").write_bytes(b"another content")
"""


def test_what_maven_brings_must_be_the_release(path: Path, tmp_path: Path) -> None:
    tool(path, "mvn", MAVEN)
    jvm, said = runtime("jvm"), list[str]()
    profilers = MachineProfilers(tmp_path / "cache")
    assert "SHA-256" in profilers.missing(jvm, "cpu", said.append)
    assert said == ["fetching async-profiler-4.6.jar"]
    assert "SHA-256" in profilers.missing(jvm, "alloc", said.append)
    assert len(said) == 1  # what failed once is not tried again
    tool(path, "mvn", "import sys; print('[ERROR] Could not transfer artifact'); sys.exit(1)")
    assert "Could not transfer" in MachineProfilers(tmp_path / "cache").missing(jvm, "cpu", said.append)
    (path / "mvn").unlink()
    assert "install Maven" in MachineProfilers(tmp_path / "cache").missing(jvm, "cpu", said.append)
    assert not list((tmp_path / "cache").rglob("*.jar"))


def test_what_is_in_the_cache_is_not_fetched(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "profilers"
    found = Artefacts(folder / "async-profiler-4.6" / "libasyncProfiler.so", folder / "jfr-converter-4.5.jar")
    for file in (found.library, found.converter):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"there")
    assert async_profiler.provide(tmp_path, print) == found
    assert MachineProfilers(tmp_path).missing(runtime("jvm"), "cpu", print) == ""


JVM = """
import os, pathlib, signal, socket, sys, time
address = pathlib.Path(f"/tmp/.java_pid{os.getpid()}")
def opened(*_):
    if pathlib.Path(f"/tmp/.attach_pid{os.getpid()}").exists():
        listening.bind(str(address))
        listening.listen()
listening = socket.socket(socket.AF_UNIX)
signal.signal(signal.SIGQUIT, opened)
print("ready", flush=True)
while not address.exists():
    time.sleep(0.005)
try:
    for answer in sys.argv[1:]:
        connection, _ = listening.accept()
        heard = b""
        while heard.count(b"\\0") < 5:
            heard += connection.recv(4096)
        print(heard.decode().replace("\\0", " "), flush=True)
        connection.sendall(answer.encode())
        connection.close()
finally:
    address.unlink()
"""


def test_an_agent_is_loaded_by_the_socket_that_a_jvm_opens_for_its_tools(tmp_path: Path) -> None:
    answers = (
        "0\nreturn code: 0\n",
        "0\nreturn code: 0\n",
        "0\nno such file\n",
        "0\nTotal: 1KB\n",
        "1\nno such command\n",
    )
    command = [sys.executable, "-S", "-c", JVM, *answers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as jvm:
        assert jvm.stdout is not None
        assert jvm.stdout.readline() == "ready\n"
        load_agent(jvm.pid, Path("/lib.so"), "start,event=cpu")
        load_agent(jvm.pid, Path("/lib.so"), "stop")  # the socket is there now
        with pytest.raises(ProfilerError, match="no such file"):
            load_agent(jvm.pid, Path("/lib.so"), "stop")
        assert ask_as_jcmd(jvm.pid, "VM.native_memory") == "Total: 1KB\n"
        with pytest.raises(ProfilerError, match=r"refused VM\.other: no such command"):
            ask_as_jcmd(jvm.pid, "VM.other")
        assert jvm.stdout.read().splitlines() == [
            *(f"1 load /lib.so true {word} " for word in ("start,event=cpu", "stop", "stop")),
            "1 jcmd VM.native_memory   ",
            "1 jcmd VM.other   ",
        ]
    assert not list(Path("/tmp").glob(f".*_pid{jvm.pid}"))
