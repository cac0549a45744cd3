"""Intervals as CSV and NDJSON: what was recorded, read back by numpy and held to the published schema."""

import io
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from pydantic.json_schema import models_json_schema
from typer.testing import CliRunner, Result

from redline.analysis.intervals import IntervalRow, run_rows
from redline.cli.command_line import app
from redline.extras.exports.interval_files import interval_lines, interval_sheet
from redline.model import HostFacts, Outcomes
from redline.model.load_result import StreamSummary
from tests.fakes.behaviour import GOOD
from tests.fakes.histories import comparison
from tests.fakes.recordings import simulated_run
from tests.fakes.stored import kept
from tests.golden import FOLDER

SCHEMA = Path(__file__).parents[4] / "docs" / "reference" / "intervals.schema.json"
RUN = simulated_run({"rust.hyper": GOOD}, trials=2)


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def schema() -> dict[str, Any]:
    kinds, together = models_json_schema([(kind, "serialization") for kind in (IntervalRow, StreamSummary)])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "a line of redline load --stream, or of redline report --format intervals-ndjson",
        "oneOf": list(kinds.values()),
        "$defs": together["$defs"],
    }


def test_the_published_schema_is_that_of_the_code() -> None:
    text = json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("REDLINE_WRITE_SCHEMAS"):
        SCHEMA.write_text(text, encoding="utf-8")
    assert SCHEMA.read_text(encoding="utf-8") == text, "REDLINE_WRITE_SCHEMAS=1 pytest writes it anew"


def test_numpy_reads_every_interval_of_every_trial() -> None:
    sheet = b"".join(interval_sheet(run_rows(RUN))).decode()
    table = np.genfromtxt(io.StringIO(sheet), delimiter=",", names=True, dtype=None, encoding="utf-8")
    for recording in RUN.recordings:
        cell, traffic = RUN.manifest.plan.cells[recording.cell_id], recording.traffic
        assert traffic is not None
        mine = table[(table["cell"] == cell.slug) & (table["trial"] == f"trial-{recording.round + 1}")]
        assert len(mine) == len(traffic.intervals)
        measured = mine[mine["phase"] != "warmup"]
        assert measured["due"].sum() == traffic.counts.due
        assert measured["completed"].sum() == traffic.counts.completed
        assert sum(measured[name].sum() for name in Outcomes.model_fields) == traffic.counts.outcomes.total
        for row, interval in zip(mine, traffic.intervals, strict=True):
            assert row["start_unix_ns"] == traffic.epoch_unix_ns + interval.start_ns
            if interval.response.count:
                assert row["max_ns"] == interval.response.max_ns
                assert row["p50_ns"] == interval.response.quantile_ns(0.5)
            assert row["answered_per_s"] == interval.counts.completed / interval.lasts_ns * 1e9


def test_every_line_fits_the_schema_and_is_read_back() -> None:
    lines = b"".join(interval_lines(run_rows(RUN))).decode().splitlines()
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
    for line, row in zip(lines, run_rows(RUN), strict=True):
        validator.validate(json.loads(line))
        assert IntervalRow.model_validate_json(line) == row


def test_a_percentile_needs_requests_beyond_it() -> None:
    (recording, *_) = RUN.recordings
    assert recording.traffic is not None
    rows = {row.index: row for row in run_rows(RUN) if row.cell == RUN.manifest.plan.cells[recording.cell_id].slug}
    counts = {interval.index: interval.response.count for interval in recording.traffic.intervals}
    assert any(counts[index] < 10_000 for index in rows)
    for index, row in rows.items():
        if counts.get(index, 0) < 10_000:
            assert row.p999_ns is None


def test_cpu_is_that_which_was_sampled_in_the_interval() -> None:
    for recording in RUN.recordings:
        series = recording.find("cpu_ns", "server")
        rows = run_rows(RUN.model_copy(update={"recordings": (recording,)}))
        assert series is not None
        for row in rows:
            assert row.start_unix_ns is not None
            end = row.start_unix_ns + row.end_ns - row.start_ns
            sampled = [at for at in series.times_unix_ns if row.start_unix_ns <= at <= end]
            expected = series.increase(row.start_unix_ns, end) if len(sampled) > 1 else None
            assert row.server_cpu_ns == expected


def test_what_another_host_sampled_has_another_clock() -> None:
    hosts = (HostFacts(name="b", role="server", address="127.0.0.2"),)
    away = tuple(recording.made_on(hosts) for recording in RUN.recordings)
    rows = list(run_rows(RUN.model_copy(update={"recordings": away})))
    assert rows
    assert {row.server_cpu_ns for row in rows} == {row.server_rss_bytes for row in rows} == {None}


def test_a_duet_has_a_row_for_each_slice_without_times() -> None:
    run = comparison(0)
    rows = list(run_rows(run))
    assert {row.kind for row in rows} == {"slice"}
    assert {row.trial for row in rows if row.cell.startswith("B")} == {
        f"start-{n + 1}" for n in {d.round for d in run.duets}
    }
    assert {row.trial for row in rows if row.trial.endswith(".control")}
    (first, *_) = run.duets
    assert first.traffic is not None
    mine = [row for row in rows if row.trial.removesuffix(".control") == f"start-{first.round + 1}"]
    assert len(mine) == sum(len(block.slices) for block in first.traffic.blocks)
    slices = (part for block in first.traffic.blocks for part in block.slices)
    for row, part in zip(mine, slices, strict=True):
        assert (row.completed, row.failed, row.server_cpu_ns) == (
            part.completed,
            part.failed,
            part.cpu_ns[part.target] if part.cpu_ns else None,
        )
        assert row.p50_ns is None
        assert row.outcomes is None


def test_the_command_writes_what_a_directory_holds(tmp_path: Path) -> None:
    kept(tmp_path / "run", RUN)
    done = redline(tmp_path / "run", "--format", "intervals-csv")
    assert done.exit_code == 0, done.output
    assert done.stdout_bytes == b"".join(interval_sheet(run_rows(RUN)))
    lines = redline(tmp_path / "run", "--format", "intervals-ndjson").stdout.splitlines()
    assert len(lines) == len(list(run_rows(RUN)))


def test_a_search_names_its_loads_by_their_files() -> None:
    done = redline(FOLDER / "search-1", "--format", "intervals-ndjson")
    assert done.exit_code == 0, done.output
    rows = [IntervalRow.model_validate_json(line) for line in done.stdout.splitlines()]
    files = {int(file.stem) for file in (FOLDER / "search-1" / "probes").rglob("*.json")}
    assert {int(row.trial.rpartition("-")[2]) for row in rows} <= files
    assert {row.trial.rpartition("-")[0] for row in rows} <= {
        "warmup",
        "approach",
        "search",
        "confirm",
        "curve",
        "overload",
    }


@pytest.mark.parametrize("form", ["intervals-csv", "intervals-ndjson"])
def test_what_has_no_interval_is_refused(form: str, tmp_path: Path) -> None:
    assert f"has no recordings to make {form} from" in str(redline(FOLDER / "report.json", "-f", form).exception)
    kept(tmp_path / "empty", comparison(0).model_copy(update={"duets": ()}))
    assert "has no interval of a load" in str(redline(tmp_path / "empty", "-f", form).exception)
    assert "none does not exist" in str(redline(tmp_path / "none", "-f", form).exception)
