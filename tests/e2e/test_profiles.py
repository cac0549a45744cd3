"""A profile names the code that is known to burn the time, with its known share."""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from redline.extras.profiling import commands
from redline.launching.jdks import installed
from redline.model import ProfileFacts, Recording, Slice, Stacks
from redline.model.profile import UNKNOWN_CALLER
from redline.stats.shares import METHOD_BATCHES, METHOD_COUNT
from redline.storage.runs import RunStore
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab
from tests.e2e.workshop import RELEASES, if_provided

pytestmark = pytest.mark.e2e

SOURCES = Path(__file__).parents[1] / "fakes" / "servers"
TRUE_SHARES = {"often": 0.7, "seldom": 0.3}
"""The share of both functions: the rest is HTTP, whose share is not known."""
WIDER = 3.0
"""Allowance on the report's 95% interval: of 10 blocks or more, one profile of ten thousand misses by chance."""
WIDEST = 0.15
"""The most by which a share may be wrong, however few the samples."""
FEWEST = 1000
"""Samples."""
REQUESTS = "for: 60s, count: 8000"
"""Some 0.2 to 0.4 ms per request: enough samples, however fast and however busy the machine is."""
ENOUGH_CORES = 4
"""On fewer cores py-spy runs only when the engine does not: its shares are not those of the server."""

NATIVE = """\
runtime: native
ready: {path: /, within: 20s}
servers:
  burning:
    about: burns 70 units in `often`, 30 in `seldom`
    build:
      run: [cc, -O1, -fno-omit-frame-pointer, -pthread, -o, burning, burning.c]
      inputs: [burning.c]
      outputs: [burning]
    start: {command: ["{folder}/burning", "{port}"]}
"""

NODE = """\
runtime: node
ready: {path: /, within: 20s}
servers:
  burning:
    about: burns 70 units in `often`, 30 in `seldom`
    build: {run: ['true'], inputs: [burning.js], outputs: [burning.js]}
    start: {command: [node, --no-turbo-inlining, "{folder}/burning.js", "{port}"]}
"""

GO = """\
runtime: go
ready: {path: /, within: 20s}
servers:
  burning:
    about: burns 70 units in `often`, 30 in `seldom`
    build: {run: [go, build, -o, burning, burning.go], inputs: [burning.go], outputs: [burning]}
    start: {command: ["{folder}/burning", "{port}"]}
"""

JVM = """\
runtime: jvm
ready: {path: /, within: 30s}
options:
  jdk: {values: [11, 17, 21, 25], default: 17}
servers:
  burning:
    about: burns 70 units in `often`, 30 in `seldom`
    build: {run: [javac, --release, "11", Burning.java], inputs: [Burning.java], outputs: [Burning.class]}
    start: {command: ["{java}", -Xmx128m, -XX:+UseSerialGC, -cp, "{folder}", Burning, "{port}"]}
"""

PYTHON = f"""\
runtime: python
ready: {{path: /, within: 20s}}
servers:
  burning:
    about: burns 70 units in `often`, 30 in `seldom`
    build: {{run: ['true'], inputs: [burning.py], outputs: [burning.py]}}
    start: {{command: [{sys.executable}, "{{folder}}/burning.py", "{{port}}"]}}
"""

LIBRARIES = r"""
libraries:
- {name: often, symbols: ['(?:JS:|main\.|Burning\.)?often(?: .*)?']}
- {name: seldom, symbols: ['(?:JS:|main\.|Burning\.)?seldom(?: .*)?']}
"""
"""Every function is a library, so that the report gives an interval for its share."""

SUITE = """\
servers: [{server}]
scenarios: [Ok]
loads: {{saturate: {{closed: {{users: {users}}}, {length}}}}}
warmup: {warmup}
trials: 1
profile: [{kinds}]
"""


def catalogue(folder: Path, family: str, text: str, source: str) -> None:
    (folder / "catalogue" / family).mkdir(parents=True)
    (folder / "catalogue" / family / "server.yaml").write_text(text)
    (folder / "catalogue" / "scenarios.yaml").write_text("scenarios: {Ok: {get: /, expect: {status: 200, body: ok}}}\n")
    (folder / "catalogue" / "libraries.yaml").write_text(LIBRARIES)
    shutil.copy(SOURCES / source, folder / "catalogue" / family)


def profiled(
    redline: Redline,
    folder: Path,
    server: str,
    *kinds: str,
    users: int = 2,
    length: str = "for: 6s",
    warmup: str = "2s",
) -> tuple[Recording, ...]:
    """The recordings of a run that profiles a server in these ways."""
    suite = folder / "suite.yaml"
    suite.write_text(SUITE.format(server=server, kinds=", ".join(kinds), users=users, length=length, warmup=warmup))
    redline("run", suite, "-o", folder / "run").measured()
    run = RunStore(folder / "run").run()
    assert run.complete
    assert [recording.perturbed for recording in run.recordings] == [False]
    assert all(recording.perturbed for recording in run.profiled)
    report = json.loads((folder / "run" / "results.json").read_text())
    assert len(report["cells"][0]["trials"]) == 1
    return run.profiled


def stacks_of(folder: Path, recording: Recording) -> tuple[ProfileFacts, Stacks]:
    facts = recording.profile
    assert facts is not None
    assert facts.problem == ""
    for file in facts.files:
        assert (folder / "run" / file.name).stat().st_size > 0, file
    assert facts.stacks is not None
    return facts, Stacks.from_bytes((folder / "run" / facts.stacks).read_bytes())


def weight(stacks: Stacks, function: str) -> int:
    """The weight of a function's samples."""
    return sum(number for stack, number in stacks.weights.items() if any(function in frame for frame in stack.frames))


def check_report(folder: Path, method: str = METHOD_BATCHES, least_part: float = 0.5) -> None:
    """The report names both functions, the hotter first, each with its known share within the interval.

    Both together have at least this share of all samples.
    """
    results = json.loads((folder / "run" / "results.json").read_text())
    (profile,) = (each for each in results["profiles"] if (each["kind"], each["subject"]) == ("cpu", "server"))
    assert profile["samples"] >= FEWEST
    shares: dict[str, dict[str, Any]] = {each["name"]: each["share"] for each in profile["libraries"]}
    both = sum(shares[name]["value"] for name in TRUE_SHARES)
    assert both > least_part
    for name, true_share in TRUE_SHARES.items():
        found = shares[name]
        assert found["method"] == method
        assert found["low"] < found["value"] < found["high"]
        allowed = WIDER * (found["high"] - found["low"]) / 2
        assert allowed < WIDEST, (profile["samples"], found)
        assert abs(found["value"] - true_share * both) < allowed, (profile["samples"], found, both)
    named = [each for each in profile["frames"] if each["library"] in TRUE_SHARES]
    assert [each["library"] for each in named] == list(TRUE_SHARES), "each function once, the hot one first"
    for frame in named:
        assert re.search(rf"\b{frame['library']}\b", frame["frame"])
        assert frame["self_share"] == pytest.approx(shares[frame["library"]]["value"], abs=0.02)
        assert frame["total_share"] >= frame["self_share"]
    if least_part >= 0.5:
        assert profile["frames"][0] == named[0]


@pytest.fixture
def perf() -> None:
    if reason := commands.missing(commands.PERF):
        pytest.skip(reason)


@pytest.mark.long
@pytest.mark.usefixtures("perf")
def test_perf_finds_the_share_of_a_function_and_the_engine_its_own(redline: Redline, tmp_path: Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("there is no C compiler")
    catalogue(tmp_path, "native", NATIVE, "burning.c")
    server, engine = profiled(redline, tmp_path, "native.burning", "cpu", "engine", length=REQUESTS, warmup="1s")
    facts, stacks = stacks_of(tmp_path, server)
    assert (facts.kind, facts.subject, facts.event) == ("cpu", "server", "cpu-clock")
    assert len(stacks.slices) >= 10
    check_report(tmp_path)
    facts, stacks = stacks_of(tmp_path, engine)
    assert (facts.kind, facts.subject) == ("cpu", "engine")
    assert weight(stacks, "often") == 0
    assert stacks.total > 0


@pytest.mark.long
@pytest.mark.usefixtures("perf")
@pytest.mark.parametrize(("family", "text", "source"), [("node", NODE, "burning.js"), ("go", GO, "burning.go")])
def test_perf_finds_the_share_of_a_function_of_another_runtime(
    redline: Redline, tmp_path: Path, family: str, text: str, source: str
) -> None:
    """A flag and a comment keep both compilers from inlining the functions, which perf could not tell apart then."""
    if shutil.which(family) is None:
        pytest.skip(f"there is no {family}")
    catalogue(tmp_path, family, text, source)
    (server,) = profiled(redline, tmp_path, f"{family}.burning", "cpu", length=REQUESTS, warmup="1s")
    facts, _ = stacks_of(tmp_path, server)
    assert (facts.kind, facts.subject, facts.event) == ("cpu", "server", "cpu-clock")
    check_report(tmp_path)


def test_py_spy_finds_the_share_of_a_function(redline: Redline, tmp_path: Path) -> None:
    if reason := commands.missing(commands.PY_SPY):
        pytest.skip(reason)
    catalogue(tmp_path, "python", PYTHON, "burning.py")
    judged = len(os.sched_getaffinity(0)) >= ENOUGH_CORES
    length, warmup = ("6s", "2s") if judged else ("2s", "500ms")
    cpu, wall = profiled(
        redline, tmp_path, "python.burning", "cpu", "wall", users=1, length=f"for: {length}", warmup=warmup
    )
    facts, stacks = stacks_of(tmp_path, cpu)
    assert (facts.kind, facts.event) == ("cpu", "running threads")
    assert weight(stacks, "often") > weight(stacks, "seldom") > 0
    if judged:
        check_report(tmp_path, METHOD_COUNT, 0.0)  # threads that wait for a connection may pass for running threads
    facts, stacks = stacks_of(tmp_path, wall)
    assert (facts.kind, facts.event) == ("wall", "all threads")
    assert weight(stacks, "serve") > 0


def test_what_cannot_be_profiled_is_reported_and_fails_no_run(redline: Redline, tmp_path: Path, oracle: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "true").symlink_to(shutil.which("true") or "/bin/true")
    redline.environment["PATH"] = str(tools)
    suite = Lab(tmp_path, oracle).suite("good.one", trials=1)
    done = redline("run", suite, "-o", tmp_path / "run", "--profile", "cpu,alloc", "--profile", "engine").measured()
    words = " ".join(done.err.split())
    assert "good.one: alloc: only cpu can be profiled of a server whose runtime is native" in words
    assert words.count("perf is not installed: try `apt install linux-perf`") == 2
    run = RunStore(tmp_path / "run").run()
    assert run.complete
    assert run.profiled == ()
    assert {(one.slug, one.cause) for one in run.manifest.plan.unprofiled} == {
        ("good.one: alloc", "suite"),
        ("good.one: cpu", "machine"),
        ("good.one: engine", "machine"),
    }


def releases() -> list[object]:
    """Every JDK release on this machine, and the others that a test may fetch."""
    here = {jdk.feature for jdk in installed()}
    return [pytest.param(release, marks=if_provided(release, here)) for release in RELEASES]


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize("release", releases())
def test_async_profiler_finds_the_share_of_a_method_on_every_jdk(
    redline: Redline, tmp_path: Path, release: int
) -> None:
    if shutil.which("javac") is None or shutil.which("mvn") is None:
        pytest.skip("there is no JDK with javac, or no Maven")
    catalogue(tmp_path, "java", JVM, "Burning.java")
    cpu, alloc = profiled(redline, tmp_path, f"{{use: java.burning, with: {{jdk: {release}}}}}", "cpu", "alloc")
    facts, stacks = stacks_of(tmp_path, cpu)
    assert {file.form for file in facts.files} == {"stacks", "speedscope", "jfr", "flamegraph", "heatmap"}
    check_report(tmp_path)
    assert all(stack.thread for stack in stacks.weights)
    assert stacks.total == facts.samples
    facts, stacks = stacks_of(tmp_path, alloc)
    assert (facts.kind, facts.unit) == ("alloc", "bytes")
    assert facts.samples > 0
    assert weight(stacks, "often") == 0
    assert weight(stacks, "allocated") > 0.5 * stacks.total
    native = {one.purpose: one.committed_bytes for one in facts.native}
    assert 1 << 20 < native["Java Heap"] <= 128 << 20
    assert {"Thread", "Code", "GC"} <= native.keys()


@pytest.mark.jvm
@pytest.mark.long
@pytest.mark.parametrize("release", releases())
def test_async_profiler_sees_threads_that_wait_all_the_time_and_for_how_long(
    redline: Redline, tmp_path: Path, release: int
) -> None:
    """One thread does nothing; two pass a lock to each other: at any time one sleeps with it, and the other waits."""
    if shutil.which("javac") is None or shutil.which("mvn") is None:
        pytest.skip("there is no JDK with javac, or no Maven")
    catalogue(tmp_path, "java", JVM, "Burning.java")
    wall, lock = profiled(redline, tmp_path, f"{{use: java.burning, with: {{jdk: {release}}}}}", "wall", "lock")
    facts, stacks = stacks_of(tmp_path, wall)
    assert facts.kind == "wall"
    idle = Counter[Slice | None]()
    for stack, number in stacks.weights.items():
        if stack.thread and stack.thread.name == "idle":
            idle[stack.slice] += number
    whole = [idle[each] for each in stacks.slices[1:-1]]
    assert len(whole) >= 3
    assert min(whole) > 0.5 * max(whole), "an idle thread is sampled as often at any time"
    facts, stacks = stacks_of(tmp_path, lock)
    assert (facts.kind, facts.unit) == ("lock", "ns")
    seconds = (stacks.slices[-1].end - stacks.slices[0].start) / 1e9
    assert weight(stacks, "contended") / 1e9 == pytest.approx(seconds, rel=0.1)


DEEP = """\
#include <stdint.h>
volatile uint64_t sum;
__attribute__((noinline)) void burn(void) { for (int i = 0; i < 10000; i++) sum += i; }
__attribute__((noinline)) void down(int more) { if (more) down(more - 1); else burn(); sum++; }
int main(void) { for (;;) { down(200); burn(); } }
"""


def test_stacks_deeper_than_perf_follows_say_that_their_callers_are_unknown(tmp_path: Path) -> None:
    if (why := commands.missing(commands.PERF)) or shutil.which("cc") is None:
        pytest.skip(why or "there is no C compiler")
    if commands.deepest_stack(commands._DEEPEST) > 190:
        pytest.skip("perf follows stacks further than this program is deep")
    (tmp_path / "deep.c").write_text(DEEP)
    built = ["cc", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-o", "deep", "deep.c"]
    subprocess.run(built, cwd=tmp_path, check=True)
    with subprocess.Popen([tmp_path / "deep"]) as process:
        perf = commands.Perf()
        perf.start(process.pid, tmp_path)
        time.sleep(2.0)
        perf.stop()
        process.kill()
    stacks = perf.read(tmp_path, ()).stacks
    deepest = commands.deepest_stack(commands._DEEPEST)
    deep = [stack.frames for stack in stacks.weights if len(stack.frames) >= deepest]
    # `burn` has more callers than perf follows. On the way to it there may be just as many, with `main` as the first.
    cut = [frames for frames in deep if frames[0] == UNKNOWN_CALLER and any("burn" in frame for frame in frames)]
    assert cut
    assert not any("main" in frames for frames in cut)
    assert "down" not in {frames[0] for frames in deep}, "it has a caller"
