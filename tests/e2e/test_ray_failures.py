"""A run whose host, network or lab goes away.

With `-s`, every test prints how long that took: docs/guide/many-machines.md has the figures.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redline.findings import judge
from redline.model import Grade
from redline.storage.runs import RunStore
from tests.e2e.conftest import REDLINE, Done
from tests.e2e.lab import Lab
from tests.e2e.namespaces import NetHost, cluster, skip_unless_possible, start_cluster

pytestmark = [pytest.mark.e2e, pytest.mark.long, pytest.mark.alone]

SUITE = """\
servers: [good.one]
scenarios: [SimpleGet]
loads:
  steady: {open: {rate: 500, arrivals: poisson, connections: 8}, for: 6s}
warmup: 500ms
timeout: 1s
trials: 1
hosts: {load: 2}
"""
CPUS = {"head": "1", "server-0": "0", "load-0": "1", "load-1": "1"}
WITHIN_S = 90.0
GONE_WITHIN_S = 60.0
"""The engine's own deadline is its load plus half a minute; servers end with their agents."""
Net = dict[str, NetHost]


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    skip_unless_possible()
    with cluster(tmp_path / "net", CPUS) as found:
        yield found


@pytest.fixture
def lab(tmp_path: Path, oracle: Path) -> Lab:
    made = Lab(tmp_path / "lab", oracle)
    (made.folder / "hosts.yaml").write_text(SUITE)
    return made


@contextmanager
def running(net: Net, lab: Lab, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """The command on the head, for as long as the block; `words` are its arguments."""
    process = subprocess.Popen(
        net["head"].command(str(REDLINE), *words),
        cwd=lab.folder,
        env=net["head"].environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def until(true: Callable[[], bool], within_s: float, what: str) -> None:
    deadline = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


@contextmanager
def timed(what: str) -> Iterator[None]:
    begin_s = time.monotonic()
    yield
    print(f"\n{what} after {time.monotonic() - begin_s:.1f} s")


def ours(host: NetHost) -> list[str]:
    """The engines and servers that run on a host."""
    return host.running("redline-engine", "redline-oracle")


def loaded(net: Net) -> bool:
    return all(ours(net[name]) for name in CPUS if name != "head")


def ended(process: "subprocess.Popen[str]") -> Done:
    out, err = process.communicate(timeout=WITHIN_S)
    return Done(process.returncode, out, err)


def failure(lab: Lab) -> str:
    """Why the single trial of the run does not count."""
    store = RunStore(lab.folder / "run")
    (recording,) = store.recordings()
    cell = store.manifest().plan.cells[recording.cell_id]
    assert Grade.INVALID in {finding.grade for finding in judge(cell, recording)}
    assert recording.failure is not None
    return recording.failure.message


@pytest.mark.parametrize("name", ["load-1", "server-0"])
def test_a_host_that_dies_fails_its_trial_and_leaves_nothing(net: Net, lab: Lab, name: str) -> None:
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        until(lambda: loaded(net), WITHIN_S, "no load")
        net[name].end()
        with timed(f"{name} died: the run ended"):
            done = ended(process)
    assert "Traceback" not in done.err, done.err
    assert done.code == 1, done.err
    assert failure(lab)
    left = [other for other in CPUS if other != name]
    with timed("and nothing was left"):
        until(lambda: not any(ours(net[other]) for other in left), GONE_WITHIN_S, "something is left")


def test_a_host_that_is_cut_off_ends_by_itself(net: Net, lab: Lab) -> None:
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        until(lambda: loaded(net), WITHIN_S, "no load")
        net["load-1"].cut()
        with timed("load-1 was cut off: the run ended"):
            done = ended(process)
    assert "Traceback" not in done.err, done.err
    assert done.code == 1, done.err
    assert "load-1" in failure(lab)
    with timed("and nothing was left"):
        until(lambda: not any(ours(net[name]) for name in CPUS), GONE_WITHIN_S, "something is left")
    net["load-1"].mend()


def test_a_lab_that_is_killed_leaves_nothing_and_its_run_is_resumed(net: Net, lab: Lab) -> None:
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        until(lambda: loaded(net), WITHIN_S, "no load")
        for pid in net["head"].running("bin/redline run"):
            os.kill(int(pid), signal.SIGKILL)
    with timed("the lab was killed: nothing was left"):
        until(lambda: not any(ours(net[name]) for name in CPUS), GONE_WITHIN_S, "something is left")
    assert RunStore(lab.folder / "run").recordings() == ()
    with running(net, lab, "run", "--resume", "run", "--on", "auto") as process:
        done = ended(process)
    (recording,) = RunStore(lab.folder / "run").recordings()
    assert recording.failure is None, done.err
    assert recording.traffic is not None
    assert recording.traffic.counts.outcomes.ok > 0


def test_a_head_that_restarts_ends_the_run_which_is_resumed(net: Net, lab: Lab) -> None:
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        until(lambda: loaded(net), WITHIN_S, "no load")
        for pid in net["head"].running("gcs_server"):
            os.kill(int(pid), signal.SIGKILL)
        with timed("the head was killed: the run ended"):
            process.wait(WITHIN_S)
    with timed("and nothing was left"):
        until(lambda: not any(ours(net[name]) for name in CPUS), GONE_WITHIN_S, "something is left")
    for host in net.values():
        host.end()
    start_cluster(net)
    for file in (lab.folder / "run/recordings").glob("*.json"):
        file.unlink()  # of a trial that the end of the cluster made invalid; `--resume` repeats it
    with running(net, lab, "run", "--resume", "run", "--on", "auto") as process:
        done = ended(process)
    (recording,) = RunStore(lab.folder / "run").recordings()
    assert recording.failure is None, (recording.failure, done.err)
    assert recording.traffic is not None
    assert recording.traffic.counts.outcomes.ok > 0


def test_an_interrupt_ends_the_load_and_keeps_what_was_measured(net: Net, lab: Lab) -> None:
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        until(lambda: loaded(net), WITHIN_S, "no load")
        for pid in net["head"].running("bin/redline run"):
            os.kill(int(pid), signal.SIGINT)
        with timed("an interrupt: the run ended"):
            done = ended(process)
    assert done.code == 130, (done.code, done.err)
    assert "Traceback" not in done.err, done.err
    with timed("and nothing was left"):
        until(lambda: not any(ours(net[name]) for name in CPUS), GONE_WITHIN_S, "something is left")


def test_a_host_with_a_slow_way_is_found(net: Net, lab: Lab) -> None:
    net["load-1"].slow("1mbit")
    text = SUITE.replace("open: {rate: 500, arrivals: poisson, connections: 8}", "closed: {users: 8}")
    (lab.folder / "hosts.yaml").write_text(text.replace("6s", "2s"))
    with running(net, lab, "run", "hosts.yaml", "--on", "auto", "-o", "run") as process:
        done = ended(process)
    store = RunStore(lab.folder / "run")
    (recording,) = store.recordings()
    cell = store.manifest().plan.cells[recording.cell_id]
    found = {finding.kind: finding for finding in judge(cell, recording)}
    assert found["load-hosts-differ"].grade is Grade.WARN, (done.err, found)
    assert found["load-hosts-differ"].message.startswith(net["load-1"].name)
