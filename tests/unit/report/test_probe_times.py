"""A search over time: its loads in order, at their rates, with what each showed."""

from itertools import pairwise
from pathlib import Path

import pytest

from redline.model.limits import CellLimit, LimitReport
from redline.render import RENDERERS
from redline.report.probe_times import probe_items
from redline.report.time_axis import TimeItem, TimeLine, TimePanel
from redline.running.views import search_report
from tests.fakes.searched import bench_in


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> LimitReport:
    bench = bench_in(Path(tmp_path_factory.mktemp("search")) / "run", beyond=True)
    bench.run()
    return search_report(bench.made.store)


@pytest.fixture(scope="module")
def cell(report: LimitReport) -> CellLimit:
    return report.cells[0]


@pytest.fixture(scope="module")
def item(report: LimitReport) -> TimeItem:
    return probe_items(report)[0]


def named(panel: TimePanel, name: str) -> TimeLine:
    return next(line for line in panel["lines"] if line["name"] == name)


def test_every_load_is_there_in_its_order(cell: CellLimit) -> None:
    assert [load.probe for load in cell.loads if load.phase == "probe"] == list(range(len(cell.probes)))
    assert cell.loads[0].phase == "warmup"
    assert cell.loads[-1].phase == "overload"
    for load in cell.loads:
        if load.probe is not None:
            assert load.rate_per_s == cell.probes[load.probe].rate_per_s
            assert load.start == cell.probes[load.probe].start


def test_probes_stand_at_their_rate_by_what_they_showed_one_after_the_other(cell: CellLimit, item: TimeItem) -> None:
    rates, times = item["panels"]
    spans = sorted(
        (start, until, rate, line["name"], said)
        for line in rates["lines"]
        if line["kind"] == "spans" and line["name"] != "warm-up"
        for start, until, rate, said in zip(line["x"], line["until"], line["y"], line["says"], strict=True)
    )
    assert len(spans) == len(cell.probes)
    for (start, until, rate, state, said), probe in zip(spans, cell.probes, strict=True):
        assert start < until
        assert rate == pytest.approx(probe.rate_per_s, rel=1e-3)
        assert {state} == {verdict.state for verdict in probe.counts}
        assert state in said
    assert {"met", "missed"} <= {span[3] for span in spans}
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert item["end"] == pytest.approx(sum(load.ends_s for load in cell.loads))
    assert times["rules"] == [{"y": 20_000_000, "text": "limit 20.0 ms"}]
    p99 = named(times, "p99")["y"]
    assert p99 == [pytest.approx(probe.p99_ns, rel=1e-3) for probe in cell.probes if probe.p99_ns]


def test_the_answers_the_knee_and_the_overload_test_are_drawn(cell: CellLimit, item: TimeItem) -> None:
    rates, _ = item["panels"]
    (answer,) = cell.limits
    (zone,) = rates["zones"]
    assert (zone["low"], zone["high"]) == pytest.approx((answer.passed_per_s, answer.failed_per_s), rel=1e-3)
    assert cell.knee is not None
    assert rates["rules"][0]["y"] == pytest.approx(cell.knee.rate_per_s, rel=1e-3)
    assert cell.beyond is not None
    asked = named(rates, "overload test: offered")
    assert len(asked["x"]) == len(asked["y"]) + 1 == len(cell.beyond.course) + 1
    assert asked["y"] == [pytest.approx(moment.asked_per_s, rel=1e-3) for moment in cell.beyond.course]
    names = [stretch["name"] for stretch in item["stretches"]]
    assert names.count("overload") == 1
    assert "start 2" in names
    assert "and the overload test" in item["says"]


def test_it_is_on_the_page_and_in_no_published_format(report: LimitReport) -> None:
    assert b'data-view="probes" data-place="0"' in RENDERERS["html"](report)
    stored = RENDERERS["json"](report)
    assert b'"loads"' not in stored
    assert b"data-view" not in RENDERERS["html"](LimitReport.model_validate_json(stored)).split(b"<script")[0]
