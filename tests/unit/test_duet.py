"""The answer of a duet: its interval holds the truth, whatever the machine does, and its doubts are stated."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis.duet import judge
from redline.model import DuetBlock, DuetRecording, DuetSlice, DuetTraffic, Histogram, Metric, TargetTraffic, Verdict
from redline.model.duet import AbReport
from redline.model.traffic import Counts, Engine
from redline.stats.duets import over_starts, standard_error, trimmed_mean

ENGINE = Engine(name="redline-engine", version="0", backend="epoll", workers=1)
SLICE_NS = 50_000_000
NS_PER_REQUEST = 20_000


def recording(
    start: int, *, cost: float, noise: float = 0.01, idle: float = 0.0, failed: int = 0, busy: float = 1.0
) -> DuetRecording:
    """One start of A, B and A again: a request of B costs `cost` times the CPU of one of A."""
    rng = np.random.default_rng(start)
    of_start = (1.0, cost * math.exp(rng.normal(0, 0.003)), math.exp(rng.normal(0, 0.003)))
    blocks, now_ns = [], 0
    for index in range(20):
        slices = []
        for target in (0, 1, 2, 2, 1, 0):
            cost_ns = NS_PER_REQUEST * of_start[target] * math.exp(rng.normal(0, noise))
            completed = int(SLICE_NS * busy / cost_ns)
            cpu_ns = [int(idle * SLICE_NS)] * 3
            cpu_ns[target] = int(completed * cost_ns)
            slices.append(
                DuetSlice(
                    target=target,
                    start_ns=now_ns,
                    end_ns=now_ns + SLICE_NS,
                    measured_ns=SLICE_NS,
                    measured=completed,
                    completed=completed,
                    failed=failed,
                    cpu_ns=tuple(cpu_ns),
                    engine_cpu_ns=1,
                )
            )
            now_ns += SLICE_NS
        blocks.append(DuetBlock(index=index, phase="measure", slices=tuple(slices)))
    times = Histogram.of([1_000_000 * factor for factor in of_start[:1]])
    targets = [
        TargetTraffic(counts=Counts(), response=times, service=times, lateness=times, engine_cpu_ns=1) for _ in of_start
    ]
    traffic = DuetTraffic(
        engine=ENGINE,
        connections=3,
        connect_ns=1,
        epoch_unix_ns=start * 10**10 + 10**9,
        ended="complete",
        blocks=tuple(blocks),
        targets=tuple(targets),
    )
    return DuetRecording(start=start, seed=start, started_unix_ns=start * 10**10, traffic=traffic)


def judged(starts: int = 8, *, metric: Metric = Metric.CPU_PER_REQUEST, closed: bool = True, **kind: Any) -> AbReport:
    found = judge(("./a", "./b"), metric, [recording(n, **kind) for n in range(starts)], closed=closed, cores=1)
    assert found is not None
    return found


def test_a_planted_difference_is_found() -> None:
    report = judged(cost=1.05)
    assert report.verdict is Verdict.SLOWER
    assert report.ratio.low is not None
    assert report.ratio.high is not None
    assert 1 < report.ratio.low < 1.05 < report.ratio.high < 1.1
    throughput = next(each for each in report.also if each.metric is Metric.THROUGHPUT)
    assert throughput.verdict is Verdict.SLOWER
    assert throughput.ratio.value == pytest.approx(1 / 1.05, rel=0.01)


def test_equal_servers_are_alike() -> None:
    report = judged(cost=1.0)
    assert report.verdict is Verdict.EQUIVALENT
    assert report.findings == ()


def test_the_throughput_of_an_open_load_is_no_comparison() -> None:
    assert Metric.THROUGHPUT not in {each.metric for each in judged(cost=1.0, closed=False).also}
    assert judge(("a", "b"), Metric.THROUGHPUT, [recording(0, cost=1)], closed=False, cores=1) is None


@pytest.mark.parametrize(
    ("kind", "starts", "expected"),
    [
        ({}, 1, "one-start"),
        ({}, 3, "few-starts"),
        ({"idle": 0.05}, 8, "idle-work"),
        ({"failed": 1}, 8, "errors"),
        ({"busy": 0.5}, 8, "client-limited"),
    ],
)
def test_doubts_are_stated(kind: dict[str, Any], starts: int, expected: str) -> None:
    assert expected in {each.kind for each in judged(starts, cost=1.0, **kind).findings}


def test_the_time_counts_from_the_first_start_to_the_end_of_the_last_load() -> None:
    assert judged(2, cost=1.0).seconds == pytest.approx(10 + 1 + 20 * 6 * 0.05)


def test_a_control_that_is_the_same_process_is_not_idle_work() -> None:
    same = recording(0, cost=1.0, idle=0.5).model_copy(update={"servers": (None, None, None)})
    found = judge(("a", "b"), Metric.CPU_PER_REQUEST, [same], closed=True, cores=1)
    assert found is not None
    assert "idle-work" not in {each.kind for each in found.findings}


def test_nothing_measured_is_no_answer() -> None:
    empty = DuetRecording(start=0, seed=0, started_unix_ns=0)
    assert judge(("a", "b"), Metric.CPU_PER_REQUEST, [empty], closed=True, cores=1) is None


@given(st.floats(-1, 1), st.integers(20, 100), st.integers(1, 9))
def test_steal_in_a_tenth_of_the_blocks_moves_nothing(value: float, blocks: int, factor: int) -> None:
    values = np.full(blocks, value)
    values[: blocks // 10] += factor
    assert trimmed_mean(values) == pytest.approx(value)
    assert standard_error(values) == pytest.approx(0, abs=1e-12)


def test_one_start_without_enough_blocks_has_no_interval() -> None:
    found = over_starts([np.array([0.1, 0.2])])
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert found.starts_sd is None


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    holds = 0
    for _ in range(400):
        found = over_starts([rng.normal(0.02 + rng.normal(0, 0.006), 0.014, 16) for _ in range(12)])
        holds += found.low <= 0.02 <= found.high
    assert 0.92 <= holds / 400 <= 0.98
