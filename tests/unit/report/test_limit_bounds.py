"""Where a late client makes a percentile of a probe a bound, every renderer marks it, as those of a load do."""

import csv
import io
import json
from pathlib import Path
from typing import get_args

import pytest

from redline.analysis.bounds import Times
from redline.cli.show import Terminal
from redline.findings import judge_probe, touched_by
from redline.limits.probe_loads import under_probe
from redline.model import Histogram
from redline.model.limits import PROBE_QUANTILES, LimitProbe, LimitReport
from redline.model.percentile import Effect
from redline.quantities import duration
from redline.render import RENDERERS, summary, terminal
from redline.report.limit_probes import probes_table
from redline.running.views import search_report
from tests.fakes.limits import busy, report
from tests.fakes.searched import CELL, bench_in

LATE = 5
"""The number of the load during which the client is late; loads 1 and 2 warm up."""


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> LimitReport:
    """A search in whose third probe the client is late."""
    bench = bench_in(tmp_path_factory.mktemp("late"))
    bench.driver.late = LATE
    bench.run()
    return search_report(bench.made.store)


def test_a_late_probe_has_bounds_and_the_others_have_none(late: LimitReport) -> None:
    probes = late.cells[0].probes
    assert [bool(probe.bounds) for probe in probes] == [at == LATE - 3 for at in range(len(probes))]
    assert probes[LATE - 3].bounds["p99"] == "at most"


def test_the_bounds_are_those_of_a_load(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.driver.late = LATE
    bench.run()
    made = bench.made.store.probes(CELL)[LATE - 1]
    traffic = made.recording.traffic
    assert traffic is not None
    findings = judge_probe(under_probe(CELL, made.load), made.recording)
    touch = touched_by(CELL, findings)["response times"]
    times = Times.of([traffic], findings)
    expected = {name for name, q in PROBE_QUANTILES.items() if times.left_at(q, touch)}
    assert set(bench.state.probes[LATE - 3].bounds) == expected


def test_every_renderer_marks_them(late: LimitReport) -> None:
    probe = late.cells[0].probes[LATE - 3]
    assert probe.p50_ns is not None
    said = f"≤ {duration(probe.p50_ns)}"
    shown = terminal.render(summary(late), Terminal())
    assert shown is not None
    assert said in " ".join(shown.plain.replace("\u00a0", " ").split())
    assert said in RENDERERS["html"](late).decode().replace("\u00a0", " ").replace("&nbsp;", " ")
    assert duration(probe.p50_ns) not in RENDERERS["md"](late).decode().replace(said, ""), "it has no table of probes"
    assert json.loads(RENDERERS["json"](late))["cells"][0]["probes"][LATE - 3]["bounds"]["p50"] == "at most"
    rows = [row for row in csv.DictReader(io.StringIO(RENDERERS["csv"](late).decode())) if row["row"] == "probe"]
    assert [bool(row["bounds"]) for row in rows] == [bool(probe.bounds) for probe in late.cells[0].probes]
    assert "p50: at most" in rows[LATE - 3]["bounds"]


@pytest.mark.parametrize("left", get_args(Effect))
@pytest.mark.parametrize("name", PROBE_QUANTILES)
def test_each_percentile_shows_what_is_left_of_it(name: str, left: Effect) -> None:
    probe: LimitProbe = busy().probes[0].model_copy(update={"response": Histogram.of([1e6] * 20_000)})
    probe = probe.model_copy(update={f"{label.replace('.', '')}_ns": 5_000_000 for label in PROBE_QUANTILES})
    probe = probe.model_copy(update={"bounds": {name: left}})
    table = probes_table([probe])
    at = [column.title for column in table.columns].index(name)
    sign = {"at most": "≤ 5.00 ms", "at least": "≥ 5.00 ms", "unknown": "—"}[left]
    assert table.rows[0][at] == sign
    assert f"{name}: {left}" in RENDERERS["csv"](report(busy().model_copy(update={"probes": (probe,)}))).decode()
