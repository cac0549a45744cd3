"""What the benches and the tests of truth share: an oracle of a discipline, and one load of the engine on it."""

import json
import os
import platform
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from redline.driving.engine import EngineDriver
from redline.driving.engine_process import ORACLE, find_engine
from redline.model import (
    Cell,
    Expected,
    Load,
    Request,
    Scenario,
    Traffic,
    Variant,
)
from redline.model.catalogue import HttpVersion
from redline.ports import Drive, Endpoint
from redline.suite import load_catalogue

CHECKOUT = Path(__file__).resolve().parents[1]
PATH = "/path0"
SIMPLE_GET = Scenario(name="SimpleGet", request=Request(path=PATH, expect=Expected(body=PATH[1:])))
_LISTENING = "listening on "
_SECOND_NS = 1_000_000_000


def machine() -> str:
    """What the figures were taken on, in one line: processor, cores, kernel."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    model = models[0].partition(":")[2].strip() if models else platform.machine()
    return f"{model}, {len(os.sched_getaffinity(0))} cores, Linux {platform.release()}"


def engine_binary() -> Path:
    """The engine that REDLINE_ENGINE names, else the one next to this Python or on the PATH. Raises DriveError."""
    named = os.environ.get("REDLINE_ENGINE")
    return Path(named) if named else find_engine()


def engine_version() -> str:
    """Name and version of the engine, and the first digits of its SHA-256: a version has many builds."""
    driver = EngineDriver(engine_binary())
    return f"redline-engine {driver.version()} ({driver.sha256()[:12]})"


def null_variant() -> Variant:
    """The oracle as the catalogue has it; every discipline is the same binary."""
    return Variant(entry=load_catalogue(CHECKOUT / "catalogue").servers["oracle.null"])


def build_oracle() -> Path:
    """The oracle's binary: what REDLINE_ORACLE names, else that which is installed with the engine."""
    named = os.environ.get("REDLINE_ORACLE")
    return Path(named) if named else find_engine().with_name(ORACLE).absolute()


@dataclass(frozen=True)
class AskedOf:
    """What is asked of an oracle, and in which version of HTTP."""

    scenario: Scenario = SIMPLE_GET
    http: HttpVersion = "1.1"


@dataclass(frozen=True)
class OwnLateness:
    """How late the oracle was against its own truth, in nanoseconds: from due to the end of the write."""

    answered: int
    late_p50_ns: int
    late_p90_ns: int
    late_p99_ns: int
    late_p999_ns: int
    late_max_ns: int


@dataclass(frozen=True)
class Moments:
    """When bytes of answers were sent, in nanoseconds from the arrival of their requests, to one part in 1024."""

    count: int
    p50_ns: int
    p99_ns: int
    max_ns: int


@dataclass(frozen=True)
class SeenByOracle:
    """What an oracle counted: requests by target and by user, answers by status."""

    connections: int
    requests: int
    passed_over: int
    reset: int
    body_bytes: int
    messages: int
    message_bytes: int
    closes: dict[str, int]
    targets: dict[str, int]
    statuses: dict[str, int]
    users: dict[str, int]
    first_byte: Moments
    answer: Moments


@dataclass
class Oracle:
    """A running oracle; `lateness` is there once it has been stopped, except for `null`, which is never late.

    So is `seen` of an oracle with `--report`.
    """

    endpoint: Endpoint
    pid: int
    lateness: OwnLateness | None = None
    seen: SeenByOracle | None = None

    @property
    def url(self) -> str:
        """Where the benches send their requests."""
        return f"http://{self.endpoint.host}:{self.endpoint.port}{PATH}"


@contextmanager
def running(
    binary: Path, *arguments: str, cpu: int | str | None = None, ends_within_s: float = 10.0
) -> Iterator[Oracle]:
    """An oracle of that mode on a free port, on these cores when any are given; stopped with SIGTERM at the end."""
    pinned = [] if cpu is None else ["taskset", "--cpu-list", str(cpu)]
    process = subprocess.Popen([*pinned, binary, *arguments, "--port", "0"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        host, _, port = process.stdout.readline().removeprefix(_LISTENING).strip().rpartition(":")
        oracle = Oracle(Endpoint(host, int(port)), process.pid)
        yield oracle
        process.send_signal(signal.SIGTERM)
        summary = process.communicate(timeout=ends_within_s)[0]
        said = json.loads(summary) if summary else {}
        if "lateness" in said:
            first_byte, answer = Moments(**said.pop("first_byte")), Moments(**said.pop("answer"))
            oracle.lateness = OwnLateness(**said.pop("lateness"))
            oracle.seen = SeenByOracle(**said, first_byte=first_byte, answer=answer)
        elif said:
            oracle.lateness = OwnLateness(**said)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def drive(
    oracle: Oracle,
    load: Load,
    asked: AskedOf | None = None,
    *,
    warmup_ns: int = _SECOND_NS // 2,
    cpu: int | None = None,
) -> Traffic:
    """One load on the oracle by a fresh engine of one worker; unless another is given, of `GET /path0`, checked."""
    asked = asked or AskedOf()
    variant = null_variant().model_copy(update={"http": asked.http})
    cell = Cell(variant=variant, scenario=asked.scenario, load=load, warmup_ns=warmup_ns, timeout_ns=5 * _SECOND_NS)
    with tempfile.TemporaryDirectory() as folder:
        cpus = () if cpu is None else (cpu,)
        log = Path(folder) / "engine.log"
        given = Drive(cell=cell, endpoint=oracle.endpoint, seed=1, cpus=cpus, workers=1, pids=(oracle.pid,), log=log)
        return EngineDriver(engine_binary()).drive(given)
