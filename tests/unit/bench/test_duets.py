"""The bench of known differences reads what `redline ab --json` prints, and counts what its runs say."""

import json
import math
from typing import Any

import pytest

from bench.designs import half_width
from bench.duets import METRICS, Found, ratio_of
from redline.analysis import build_report
from redline.render import RENDERERS
from tests.fakes.compared import Cost, compared_run


def printed(times: float) -> Any:
    """The report of a comparison in which B costs so many times as much."""
    report = build_report(compared_run({"home": Cost(times)}, starts=4))
    return json.loads(RENDERERS["json"](report))


def test_every_metric_of_a_report_has_its_ratio_and_that_of_a_with_itself() -> None:
    report = printed(1.1)
    for metric in METRICS:
        for control in (False, True):
            ratio = ratio_of(report, metric, control=control)
            assert ratio is None or ratio["low"] <= ratio["value"] <= ratio["high"]
    cost, same = (ratio_of(report, "cpu-per-request", control=control) for control in (False, True))
    assert cost is not None
    assert same is not None
    assert cost["value"] == pytest.approx(1.1, rel=0.02)
    assert same["value"] == pytest.approx(1.0, rel=0.02)
    assert half_width(report) == pytest.approx((math.log(cost["high"]) - math.log(cost["low"])) / 2)


def test_runs_that_say_nothing_or_fail_are_counted_apart() -> None:
    found = Found("cpu-per-request")
    found.add(printed(1.1))
    found.add(None)
    found.add({"comparisons": [{"metric": "cpu-per-request", "ratio": None, "duet": {"control": None}}]})
    found.add({"comparisons": [{"metric": "cpu-per-request", "ratio": None, "refused": "too few requests"}]})
    assert (len(found.ratios), found.unknown, found.failed) == (1, 2, 1)


@pytest.mark.parametrize(
    ("metric", "low", "high", "planted", "wrong", "held"),
    [
        ("cpu-per-request", 1.04, 1.06, 5.0, 0, 1),
        ("cpu-per-request", 0.90, 0.95, 5.0, 1, 0),
        ("cpu-per-request", 0.99, 1.01, 0.0, 0, 1),
        ("cpu-per-request", 1.01, 1.03, 0.0, 1, 0),
        ("throughput", 1.01, 1.03, 5.0, 1, None),
        ("throughput", 0.97, 0.99, 5.0, 0, None),
        ("p99", 0.80, 0.90, 5.0, 1, None),
        ("p99", 0.80, 0.90, 0.0, 1, 0),
    ],
)
def test_a_row_counts_what_is_wrong(
    metric: str, low: float, high: float, planted: float, wrong: int, held: int | None
) -> None:
    found = Found(metric, [((low + high) / 2, low, high)])
    *_, excluded, off, kept, controls, unknown, failed = found.row(planted, [1 + planted / 100] * 2).split()
    assert int(excluded) == (not low <= 1 <= high)
    assert (int(off), kept) == (wrong, "-" if held is None else str(held))
    assert (controls, unknown, failed) == ("0", "0", "0")


def test_without_a_run_a_row_has_no_numbers() -> None:
    assert Found("p50", failed=2).row(0.0, [1.0, 1.0]).split()[-1] == "2"
