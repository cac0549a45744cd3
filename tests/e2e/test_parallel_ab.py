"""`redline ab --parallel` on real servers. Its sets of cores share the few cores there are: it runs, no more."""

import os
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from redline.analysis.ab import judge
from redline.cli.command_line import AbFlags
from redline.cli.commands.ab import read_plan
from redline.model import Metric, Verdict
from redline.ports import Placement
from redline.running.assembly import duet_tools
from redline.running.duet import DuetLogs, run_duet

pytestmark = pytest.mark.e2e


def test_servers_are_loaded_at_the_same_time_and_their_sides_swapped(
    oracle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = sorted(os.sched_getaffinity(0))
    cores = tuple((cpus[number % len(cpus)],) for number in range(10))
    monkeypatch.setattr("redline.cli.commands.ab.plan_placement", lambda: Placement(cores=cores))
    quick, slow = (
        shlex.join([str(oracle), "fixed", "--delay", delay, "--port", "{port}"]) for delay in ("1ms", "10ms")
    )
    flags = AbFlags(a=quick, b=slow, lasts="3s", load="closed:4", parallel=True)
    plan = read_plan(flags, 3_000_000_000)
    tools = replace(duet_tools(), placement=Placement(cores=cores))
    starts = list(run_duet(plan, tools, DuetLogs(tmp_path, are_kept=True), lambda _start, _block: None))
    assert [each.failure for each in starts] == [None] * len(starts)
    assert len({each.places for each in starts[:3]}) == 3
    for start in starts:
        assert start.traffic is not None
        # One core for the load of each server, two for the server.
        assert (start.traffic.engine.workers, len(start.traffic.engine.cpus)) == (3, 3)
        ran_on = [server.cpus for server in start.servers if server]
        assert ran_on == [tuple(sorted({*cores[1 + 3 * place], *cores[2 + 3 * place]})) for place in start.places]
        for block in start.traffic.blocks:
            assert len({each.start_ns for each in block.slices}) == 2
    report = judge(("a", "b"), Metric.P50, starts, closed=True, cores=0)
    assert report is not None
    assert report.verdict is Verdict.SLOWER
    assert "parallel" in {each.kind for each in report.findings}
