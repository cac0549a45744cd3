"""`redline ab --parallel` on real servers, each with its load on cores of its own.

On a machine with too few cores, the same cores are used several times: only then do servers share cores.
"""

import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from redline.cli import experiment
from redline.cli.command_line import AbFlags
from redline.cli.commands import ab
from redline.model import Metric, Report, Verdict
from redline.running import assembly
from redline.running.parallel import sides
from redline.storage.reports import read_report
from redline.storage.runs import RunStore
from redline.watching.machine import plan_placement
from tests.e2e.compared import answer, kinds

pytestmark = pytest.mark.e2e

SERVERS = 3  # A, B, and A again
CORES = 1 + 3 * SERVERS
"""A core for the lab, two for every server, and one for its load."""


@pytest.fixture
def cores() -> Iterator[tuple[tuple[int, ...], ...]]:
    """The machine's cores, repeated if they are too few. The command leaves this process on one of them."""
    cpus, mine = os.sched_getaffinity(0), plan_placement().cores
    yield tuple((mine[number % len(mine)]) for number in range(max(CORES, len(mine))))
    os.sched_setaffinity(0, cpus)


@pytest.mark.long
def test_servers_are_loaded_at_the_same_time_on_cores_of_their_own(
    oracle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: tuple[tuple[int, ...], ...]
) -> None:
    placement = replace(plan_placement(), cores=cores)
    for module in (assembly, experiment):
        monkeypatch.setattr(module, "plan_placement", lambda: placement)
    monkeypatch.chdir(tmp_path)
    quick, slow = (
        shlex.join([str(oracle), "fixed", "--delay", delay, "--port", "{port}"]) for delay in ("1ms", "10ms")
    )
    for length in ("9s", "36s"):  # a busy machine leaves a short comparison without a verdict
        kept = Path(f"kept-{length}")
        ab.execute(AbFlags(a=quick, b=slow, lasts=length, metric="p50", load="closed:12", parallel=True, output=kept))
        read = read_report(kept / "results.json")
        assert isinstance(read, Report)
        report = read
        if answer(report).verdict is Verdict.SLOWER:
            break
    starts = RunStore(kept).duets()
    assert [start.is_complete for start in starts] == [True] * len(starts)
    assert len({start.places for start in starts[:SERVERS]}) == SERVERS
    own = sides(cores, SERVERS)
    is_apart = len(set(cores)) == len(cores)
    for start in starts:
        assert start.traffic is not None
        ran_on = [server.cpus for server in start.servers if server]
        assert ran_on == [own[place].server_cpus for place in start.places]
        assert start.traffic.engine.cpus == tuple(cpu for place in start.places for cpu in own[place].engine_cpus)
        used = [cpu for cpus in (*ran_on, start.traffic.engine.cpus) for cpu in cpus]
        assert len(used) == len(set(used)) or not is_apart
        assert not set(own[0].lab_cpus) & set(used) or not is_apart
        for block in start.traffic.blocks:
            assert len({each.start_ns for each in block.slices}) == 2  # all three together, twice
    assert isinstance(report, Report)
    assert (answer(report).metric, answer(report).verdict) == (Metric.P50, Verdict.SLOWER)
    assert "parallel" in kinds(report)
