"""Files for the tools of HdrHistogram: held to the reference library, and to what the engine counted."""

import re
from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from redline.analysis.distributions import distributions
from redline.analysis.intervals import run_rows
from redline.analysis.percentile_levels import percentile_levels
from redline.cli.command_line import app
from redline.document.blocks import Table
from redline.errors import UsageError
from redline.extras.exports.hdr_files import interval_log, percentile_distribution
from redline.model import Histogram
from redline.report.load import spectrum_section
from tests.fakes.behaviour import GOOD
from tests.fakes.compared import with_a_further_duet
from tests.fakes.histories import comparison
from tests.fakes.loads import load_of
from tests.fakes.recordings import simulated_run
from tests.fakes.stored import kept
from tests.golden import FOLDER

LINE = re.compile(r"^Tag=([^,\s]+),(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),(HIST\S+)$")


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


@given(st.lists(st.integers(1, 3_600_000_000_000), min_size=1, max_size=300))
def test_levels_rise_to_the_largest_value(values: list[int]) -> None:
    times = Histogram.of(values)
    levels = list(percentile_levels(times))
    assert [(level.q, level.ns, level.requests) for level in levels][-1] == (1.0, times.max_ns, len(values))
    assert all(level.ns == times.quantile_ns(level.requests / len(values)) for level in levels)
    assert all(level.requests >= level.q * len(values) - 1e-6 for level in levels)
    assert [level.q for level in levels] == sorted({level.q for level in levels})


def test_levels_halve_what_is_left() -> None:
    levels = [level.q for level in percentile_levels(Histogram.of(range(1, 1001)))]
    assert levels[:11] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75])


def test_the_footer_is_in_the_unit_of_the_lines() -> None:
    lines = percentile_distribution(Histogram.of([2e6, 4e6])).decode().splitlines()
    assert lines[-3:-1] == [
        "#[Mean    =        3.001, StdDeviation   =        1.000]",
        "#[Max     =        4.002, Total count    =            2]",
    ]


def test_an_empty_distribution_has_no_levels() -> None:
    lines = percentile_distribution(Histogram()).decode().splitlines()
    assert [line for line in lines[1:] if not line.startswith("#")] == [""]


def test_every_request_of_a_trial_is_in_the_log() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=2)
    lines = b"".join(interval_log(distributions(run), "a run, of\nmany words")).decode().splitlines()
    assert lines[:2] == ["#[a run  of many words]", "#[Histogram log format version 1.3]"]
    counts: dict[str, int] = {}
    starts = []
    for line in lines[4:]:
        found = LINE.match(line)
        assert found, line
        tag, start, _, largest, text = found.groups()
        times = Histogram.decode(HdrHistogram.decode(text.encode()).encode().decode())
        counts[tag] = counts.get(tag, 0) + times.count
        assert float(largest) == pytest.approx(times.max_ns / 1e6, abs=5e-4)
        starts.append(float(start))
    assert starts == sorted(starts)
    for recording in run.recordings:
        slug = run.manifest.plan.cells[recording.cell_id].slug
        assert recording.traffic is not None
        assert counts[f"{slug}.trial-{recording.round + 1}.response"] == recording.traffic.counts.due


def test_a_start_has_the_times_of_every_copy() -> None:
    run = comparison(0)
    names = [part.name for part in distributions(run)]
    assert names[:6] == [
        "A.home.load.start-1.response",
        "A.home.load.start-1.service",
        "B.home.load.start-1.response",
        "B.home.load.start-1.service",
        "A.home.load.start-1.control.response",
        "A.home.load.start-1.control.service",
    ]
    assert len(set(names)) == len(names)


def test_two_duets_of_a_baseline_in_a_round_have_names_of_their_own() -> None:
    run = with_a_further_duet(comparison(0))
    names = [part.name for part in distributions(run)]
    assert len(set(names)) == len(names)
    assert {"A.home.load.start-1.response", "A.home.load.start-1-2.response", "C.home.load.start-1-2.response"} <= set(
        names
    )
    rows = [(row.cell, row.trial, row.start_ns) for row in run_rows(run)]
    assert len(set(rows)) == len(rows)
    assert {trial for _, trial, _ in rows} == {name.split(".", 3)[3].removesuffix(".response") for name in names[::2]}


def test_files_of_a_run(tmp_path: Path) -> None:
    run = comparison(0)
    kept(tmp_path / "run", run)
    done = redline(tmp_path / "run", "--format", "hgrm", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert done.stderr == f"{len(list(distributions(run)))} files in {tmp_path / 'out'}\n"
    assert {file.name for file in (tmp_path / "out").iterdir()} == {f"{part.name}.hgrm" for part in distributions(run)}
    several = redline(tmp_path / "run", "--format", "hgrm").exception
    assert isinstance(several, UsageError)
    assert "distributions of response times, and a hgrm file holds a single distribution" in several.message
    log = redline(tmp_path / "run", "--format", "hlog")
    assert log.stdout.count("Tag=") == len(list(distributions(run)))


def test_what_has_no_recordings_is_refused(tmp_path: Path) -> None:
    for form in ("hgrm", "hlog"):
        refused = redline(FOLDER / "report.json", "--format", form).exception
        assert f"has no recordings to make {form} from" in str(refused)
    kept(tmp_path / "empty", comparison(0).model_copy(update={"duets": ()}))
    assert "has no measured request" in str(redline(tmp_path / "empty", "--format", "hlog").exception)
    assert "holds a search for limits" in str(redline(FOLDER / "search-1", "--format", "hlog").exception)
    assert "its ending names no format" in str(redline(tmp_path, "-o", tmp_path).exception)


def test_a_spectrum_ends_where_few_requests_are_left() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=1)
    recording = run.recordings[0]
    cell = run.manifest.plan.cells[recording.cell_id]
    judged = load_of(cell, recording)
    (table,) = spectrum_section(judged, recording).blocks
    assert isinstance(table, Table)
    rows = [tuple(map(str, row)) for row in table.rows]
    assert recording.traffic is not None
    due = recording.traffic.counts.due
    beyond = [due - int(row[2].replace(",", "")) for row in rows]
    assert rows[0][1] == "0.000000"
    assert rows[-1][1:] == ("1.000000", f"{due:,}", "")
    assert min(beyond[:-1]) >= 9
    assert not spectrum_section(judged.model_copy(update={"response_percentiles": ()}), recording).blocks


def test_a_spectrum_is_for_people() -> None:
    done = CliRunner().invoke(app, ["load", "http://127.0.0.1:1/", "--spectrum", "--json"])
    assert "--spectrum is for people" in str(done.exception)
