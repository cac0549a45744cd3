"""Comparisons over time: every block with its cost, the blocks that count, and the ratio after each start."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from redline.analysis import build_report
from redline.analysis.duet import Duet, duets_of
from redline.analysis.duet_timelines import MOST_OF_DUET, duet_timelines
from redline.model import DuetRecording, Metric, Report
from redline.model.timeline import DuetTimeline
from redline.render import RENDERERS
from redline.report.duet_blocks import duet_items
from redline.report.time_axis import TimeItem
from tests.fakes.compared import Cost, compared_run
from tests.fakes.duets import MEASURED, SLICE_NS, simulated_duet

IDS = "B", "A"


def timeline(starts: Sequence[DuetRecording], **facts: object) -> DuetTimeline:
    (made,) = duet_timelines({IDS: Duet(tuple(starts), **facts)})  # type: ignore[arg-type]
    return made


def starts(number: int, costs: tuple[float, float] = (1.0, 1.1), warmup: int = 0) -> list[DuetRecording]:
    return [simulated_duet(start, costs, warmup=warmup) for start in range(number)]


def test_a_block_has_the_cost_and_the_rate_of_each_server() -> None:
    made = timeline(starts(3, warmup=5))
    for start in made.starts:
        assert [block.warms for block in start.blocks] == [True] * 5 + [False] * MEASURED
        assert [block.counts for block in start.blocks] == [False] * 5 + [True] * MEASURED
        for block in start.blocks:
            baseline, server, control = block.costs
            assert None not in block.costs
            assert baseline is not None
            assert server is not None
            assert control is not None
            assert server / math.sqrt(baseline * control) == pytest.approx(1.1, rel=0.05)
            assert block.rates[0] == pytest.approx(1e9 / baseline, rel=0.01)
            assert block.end_s - block.at_s == pytest.approx(6 * SLICE_NS / 1e9)


def test_the_ratio_after_each_start_is_that_of_a_comparison_that_ends_there() -> None:
    recorded = starts(5)
    made = timeline(recorded)
    for number, start in enumerate(made.starts, 1):
        ratio = Duet(tuple(recorded[:number])).ratio(Metric.CPU_PER_REQUEST)
        assert ratio is not None
        assert start.so_far[Metric.CPU_PER_REQUEST] == ratio.contrast.ratio


def test_merged_blocks_lose_nothing_and_mix_none_that_count_with_others() -> None:
    recorded = starts(60, warmup=3)
    made = timeline(recorded)
    blocks = [block for start in made.starts for block in start.blocks]
    assert len(blocks) <= 1.5 * MOST_OF_DUET
    assert sum(block.blocks for block in blocks) == 60 * (MEASURED + 3)
    assert sum(block.blocks for block in blocks if block.counts) == 60 * MEASURED
    slices = [part for block in recorded[0].traffic.blocks for part in block.slices]  # type: ignore[union-attr]
    of_server = [part for part in slices if part.target == 1]
    answered = sum(
        rate * 2 * SLICE_NS / 1e9 * block.blocks for block in made.starts[0].blocks if (rate := block.rates[1])
    )
    assert answered == pytest.approx(sum(part.measured for part in of_server))


def test_unknown_cpu_time_is_a_gap_and_a_failing_server_has_no_ratio() -> None:
    recorded = simulated_duet(1)
    assert recorded.traffic is not None
    unknown = recorded.model_copy(update={"traffic": recorded.traffic.without_cpu(frozenset({1}))})
    for block in timeline([unknown]).starts[0].blocks:
        assert block.costs[1] is None
        assert block.costs[0]
        assert block.rates[1]
    bad = timeline([simulated_duet(start, failed=500) for start in range(3)])
    assert not any(start.so_far for start in bad.starts)


def test_cold_starts_are_left_out_with_their_reason() -> None:
    def cools(block: int, server: int) -> float:
        return 1.0 - block / 40 if server == 1 else 0.0

    warm = [simulated_duet(start, warmup=30) for start in range(4)]
    cold = simulated_duet(9, warmup=30, cold=cools)
    made = timeline([*warm, cold], detects=True)
    assert [bool(start.left_out) for start in made.starts] == [False] * 4 + [True]
    assert not any(block.counts for block in made.starts[-1].blocks)
    recorded = [cold, *warm]
    for number, start in enumerate(timeline(recorded, detects=True).starts, 1):
        fresh = Duet(tuple(recorded[:number]), detects=True).ratio(Metric.CPU_PER_REQUEST)
        assert fresh is not None
        assert start.so_far[Metric.CPU_PER_REQUEST] == fresh.contrast.ratio


def report() -> Report:
    return build_report(compared_run({"home": Cost(1.1), "cart": Cost(1.0)}, starts=4))


def item(made: Report) -> TimeItem:
    return duet_items(made)[0]


def test_every_comparison_is_an_item_whose_last_reading_is_the_result() -> None:
    made = report()
    items = duet_items(made)
    assert [(one["subject"], one["name"]) for one in items] == [
        (f"{cell.scenario} · {cell.load}", "B against A")
        for timeline in made.duet_timelines
        for cell in made.cells
        if cell.cell_id == timeline.cell_id
    ]
    assert len(items) == len(duets_of(compared_run({"home": Cost(1.1), "cart": Cost(1.0)}, starts=4)))
    titles = [panel["title"] for panel in item(made)["panels"]]
    assert titles[:2] == ["CPU time per request", "B / A in CPU per request"]
    ratio = item(made)["panels"][1]
    band, line, *_ = ratio["lines"]
    result = next(
        one for one in made.comparisons
        if one.cell_id == made.duet_timelines[0].cell_id and one.metric is Metric.CPU_PER_REQUEST
    ).ratio  # fmt: skip
    assert result is not None
    assert line["y"][-1] == pytest.approx(result.value, rel=1e-3)
    assert (band["y"][-1], band["high"][-1]) == pytest.approx(result.interval, rel=1e-3)


def test_starts_stand_one_after_the_other_with_gaps_between_them() -> None:
    made = item(report())
    for line in made["panels"][0]["lines"]:
        assert line["x"] == sorted(line["x"])
        assert len(line["x"]) == len(line["y"]) + 1
        gaps = [
            right - left
            for left, right, value in zip(line["x"], line["x"][1:], line["y"], strict=False)
            if value is None
        ]
        assert np.allclose(gaps, 0)
    assert made["end"] == pytest.approx(4 * MEASURED * 6 * SLICE_NS / 1e9, rel=0.01)


def test_the_page_of_a_comparison_has_it() -> None:
    page = RENDERERS["html"](report())
    assert b'data-view="duets"' in page
    assert b'data-view="trials"' not in page


def test_a_single_reading_is_said_once() -> None:
    assert " at first, and " in item(report())["says"]
    says = item(build_report(compared_run({"home": Cost(1.1)}, starts=1)))["says"]
    assert "In CPU per request the ratio read +" in says
    assert "at first" not in says
