"""The readings of a live JVM equal those of `jstat` and JMX, for every JDK of this machine and every collector."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from redline.launching.jdks import Jdk, installed, provision, read_home
from redline.model import RuntimeFacts
from redline.watching.jvm import Jvm, log_flag
from tests.e2e.workshop import CHECKOUT, RELEASES, if_provided

pytestmark = [pytest.mark.e2e, pytest.mark.long]

SOURCE = Path(__file__).parents[1] / "golden/jvm-logs/Churn.java"
EVER = (0, 1 << 62)
JDKS = CHECKOUT / ".cache/jdks"
FETCHED = filter(None, map(read_home, sorted(JDKS.glob("*"))))
HERE = {jdk.feature: jdk for jdk in sorted((*FETCHED, *installed()), key=lambda jdk: jdk.numbers) if jdk.feature >= 11}
PAUSING = ("Serial", "Parallel", "G1")
COLLECTORS = (*PAUSING, "Shenandoah", "Z")


@dataclass(frozen=True)
class Live:
    """A JVM that has collected and now waits: its process, its readings, and JMX's counts by bean."""

    process: "subprocess.Popen[str]"
    jdk: Jdk
    jvm: Jvm
    beans: dict[str, int]


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the compiled program."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("there is no javac on the PATH")
    folder = tmp_path_factory.mktemp("classes")
    subprocess.run([compiler, "--release", "11", "-d", folder, SOURCE], check=True)
    return folder


def combinations() -> list[object]:
    """Every release on this machine, or that may be fetched, with every collector."""
    return [
        pytest.param((release, collector), id=f"{release}-{collector}", marks=if_provided(release, HERE))
        for release in sorted({*HERE, *RELEASES})
        for collector in COLLECTORS
    ]


@pytest.fixture(scope="module", params=combinations())
def live(request: pytest.FixtureRequest, classes: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    release, collector = request.param
    jdk = HERE.get(release) or provision(release, JDKS, print)
    flags = ["-Xms256m", "-Xmx256m", "-XX:+UnlockExperimentalVMOptions", f"-XX:+Use{collector}GC"]
    asked = subprocess.run([jdk.java, *flags, "-version"], capture_output=True, text=True, check=False)
    words = asked.stdout + asked.stderr
    if asked.returncode and f"Use{collector}GC" in words:
        pytest.skip(f"{jdk.name} has no {collector}: {words.splitlines()[0]}")
    assert asked.returncode == 0, words
    if collector == "Z":  # otherwise collection continues while the program waits
        flags += ["-XX:+UnlockDiagnosticVMOptions", "-XX:-ZProactive"]
    log = log_flag(jdk.feature, tmp_path_factory.mktemp("log") / "jvm.log")
    process = subprocess.Popen(
        [jdk.java, *flags, *log, "-cp", classes, "Churn", "600", "20", "2", "wait"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdin is not None
        if (first := process.stdout.readline()) != "ready\n":
            process.kill()
            pytest.fail(first + process.stdout.read())
        jvm = Jvm.among([process.pid])
        assert jvm is not None
        jvm.sample()
        process.stdin.write("\n")
        process.stdin.flush()
        said = list(iter(process.stdout.readline, "done\n"))
        beans = {found[1]: int(found[2]) for line in said if (found := re.fullmatch(r"(.+)=(\d+)\n", line))}
        yield Live(process, jdk, jvm, beans)
    finally:
        process.kill()
        process.communicate()


def test_log_counters_and_jmx_agree(live: Live) -> None:
    values = live.jvm.sample()
    facts = live.jvm.facts(EVER)
    assert facts is not None
    counted = {check.name for check in facts.checks}
    assert counted == {"safepoints", "safepoint_ns"} | ({"collections"} if facts.collector in PAUSING else set())
    for check in facts.checks:
        if check.name == "collections":
            assert 0 < check.counted == check.logged
        elif check.name == "safepoints":
            assert 0 < check.counted <= check.logged <= check.counted + 3, "the counters are read first"
        else:
            assert check.logged == pytest.approx(check.counted, rel=0.05, abs=2e6)
    assert values["compiler_cpu_ns"] > 0
    assert values["collector_cpu_ns"] > 0
    assert facts.max_heap_bytes == 256 << 20
    assert 0 < values["heap_capacity_bytes"] <= 2 * (256 << 20)
    assert facts.allocated_bytes is not None
    assert 150 << 20 < facts.allocated_bytes < 800 << 20, "of 600 MiB; Shenandoah does not say what it copies"
    assert 18 << 20 < facts.live_bytes[-1] < 32 << 20, "it keeps 20 MiB, and 3 in one array"
    _compare_with_jmx(live, facts)


def _compare_with_jmx(live: Live, facts: RuntimeFacts) -> None:
    found = Counter[str]()
    for one in facts.collections:
        found[one.kind] += one.count
    beans = live.beans
    match facts.collector:
        case "Serial":
            assert (found["young"], found["full"]) == (beans["Copy"], beans["MarkSweepCompact"])
        case "Parallel":
            assert (found["young"], found["full"]) == (beans["PS Scavenge"], beans["PS MarkSweep"])
        case "G1":
            young, full = beans["G1 Young Generation"], beans["G1 Old Generation"]
            assert (found["young"] + found["mixed"], found["full"]) == (young, full)
        case "Shenandoah" | "Z":
            cycles = sum(count for name, count in beans.items() if name.endswith("Cycles") or name == "ZGC")
            assert cycles <= sum(found.values()) <= cycles + 1, "one may have ended since"
        case other:
            raise AssertionError(other)


def test_counters_and_jstat_agree(live: Live) -> None:
    jstat = live.jdk.home / "bin/jstat"
    if not jstat.exists():
        pytest.skip(f"{live.jdk.name} has no jstat")
    values, facts = live.jvm.sample(), live.jvm.facts(EVER)
    assert facts is not None

    def asked(option: str) -> dict[str, str]:
        heads, row = subprocess.check_output([jstat, option, str(live.process.pid)], text=True).splitlines()
        return dict(zip(heads.split(), row.split(), strict=False))  # the last may be empty

    compiled = int(asked("-compiler")["Compiled"])
    assert values["compiles"] == pytest.approx(compiled, abs=20), "it may compile something meanwhile"
    if facts.collector not in PAUSING:
        return  # jstat counts the phases of other collectors
    collected, found, total_ns = asked("-gc"), Counter[str](), Counter[str]()
    for one in facts.collections:
        if one.kind != "cycle":
            found[one.kind] += one.count
            total_ns[one.kind] += one.total_ns
    assert found["young"] + found["mixed"] == int(collected["YGC"])
    assert found["full"] == int(collected["FGC"])
    # The counter's interval lies within the log's, and the log's within the safepoint, however busy the machine is.
    counted_s, logged_s = float(collected["YGCT"]) + float(collected["FGCT"]), sum(total_ns.values()) / 1e9
    rounding_s = 1e-3 + 1e-6 * sum(found.values())
    assert 0 < counted_s - rounding_s < logged_s < facts.pauses.total_ns / 1e9 + rounding_s
    capacity_kib = sum(float(collected[each]) for each in ("S0C", "S1C", "EC", "OC"))
    assert values["heap_capacity_bytes"] == pytest.approx(capacity_kib * 1024, rel=0.01)
