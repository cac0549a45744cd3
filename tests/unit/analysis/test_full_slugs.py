"""Full slugs: every axis, the threads, the connections and the duration, in an order that scripts can rely on."""

import csv
import io
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from redline.analysis import build_report
from redline.analysis.distributions import distributions
from redline.cli.command_line import app
from redline.errors import StoreError, UsageError
from redline.files import as_store_error
from redline.model import Closed, Load, Run
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_run, simulated_variant
from tests.fakes.stored import kept
from tests.golden import FOLDER

FULL = "rust.hyper+http=1.1+in=process+route=direct+tls=off.SimpleGet.saturate.t1.c64.d1s"


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def small() -> Run:
    return simulated_run({"rust.hyper": GOOD}, trials=2, ceiling=None)


def test_it_is_read_from_its_end() -> None:
    report = build_report(small())
    assert report.cells[0].full_slug == FULL
    server, scenario, load, threads, connections, duration = FULL.rsplit(".", 5)
    assert server.partition("+")[0] == report.cells[0].server
    assert (scenario, load) == (report.cells[0].scenario, report.cells[0].load)
    assert (threads, connections, duration) == ("t1", "c64", "d1s")


@pytest.mark.parametrize(
    ("duration_ns", "threads", "end"),
    [
        (600 * 10**9, (16,), "t16.c400.d600s"),
        (1_500_000_000, (4, 2, 4), "t2-4.c400.d1500ms"),
        (1_500_000_001, (), "t0.c400.d1500000001ns"),
    ],
)
def test_its_end_holds_no_further_dot(duration_ns: int, threads: tuple[int, ...], end: str) -> None:
    load = Load(name="busy", shape=Closed(users=400), duration_ns=duration_ns)
    assert simulated_cell("rust.hyper").under(load).full_slug(threads).endswith(f".SimpleGet.busy.{end}")


def test_options_are_named_whether_they_are_defaults_or_not() -> None:
    variant = simulated_variant("rust.hyper").model_copy(
        update={"options": {"routes": 128, "log": False, "zone": "a/b"}}
    )
    name, *axes = variant.full_slug.split("+")
    assert name == "rust.hyper"
    assert [axis.partition("=")[0] for axis in axes] == ["http", "in", "log", "route", "routes", "tls", "zone"]
    assert axes[2:5] == ["log=off", "route=direct", "routes=128"]
    assert "/" not in variant.full_slug


def test_csv_has_it_in_place_of_the_slug(tmp_path: Path) -> None:
    kept(tmp_path / "run", small())
    short, full = (
        list(csv.DictReader(io.StringIO(redline(tmp_path / "run", "-f", "csv", *more).stdout)))
        for more in ([], ["--slug", "full"])
    )
    assert {row["slug"] for row in short} == {"rust.hyper.SimpleGet.saturate", "rust.hyper.SimpleGet.steady"}
    assert FULL in {row["slug"] for row in full}
    assert [{**row, "slug": ""} for row in short] == [{**row, "slug": ""} for row in full]


def test_files_and_tags_of_hdr_histogram_have_it(tmp_path: Path) -> None:
    kept(tmp_path / "run", small())
    done = redline(tmp_path / "run", "-f", "hgrm", "--slug", "full", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "out" / f"{FULL}.trial-2.response.hgrm").is_file()
    assert f"Tag={FULL}.trial-1.service," in redline(tmp_path / "run", "-f", "hlog", "--slug", "full").stdout


def test_cells_of_the_same_full_slug_have_their_ids() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=1, ceiling=None)
    plan = run.manifest.plan
    cells = {cell_id: cell.under(cell.load.named("saturate")) for cell_id, cell in plan.cells.items()}
    same = {
        cell_id: cell.model_copy(update={"load": next(iter(cells.values())).load}) for cell_id, cell in cells.items()
    }
    alike = run.model_copy(
        update={"manifest": run.manifest.model_copy(update={"plan": plan.model_copy(update={"cells": same})})}
    )
    assert {part.cell for part in distributions(alike, full=True)} == set(plan.cells)


def test_where_there_is_none_a_message_says_why(tmp_path: Path) -> None:
    for form in ("md", "html", "json"):
        refused = redline(FOLDER / "report.json", "-f", form, "--slug", "full").exception
        assert isinstance(refused, UsageError)
        assert "--slug full is for --format csv, parquet, hgrm and hlog" in refused.message
    assert isinstance(redline(FOLDER / "report.json", "--slug", "full").exception, UsageError)
    older = build_report(small())
    older = older.model_copy(update={"cells": tuple(cell.model_copy(update={"full_slug": ""}) for cell in older.cells)})
    (tmp_path / "results.json").write_text(older.model_dump_json())
    refused = redline(tmp_path / "results.json", "-f", "csv", "--slug", "full").exception
    assert "is of an earlier version" in str(refused)
    searched = redline(FOLDER / "search-1", "-f", "csv", "--slug", "full").exception
    assert "is a search, whose rates vary" in str(searched)
    wrong = redline(FOLDER / "report.json", "-f", "csv", "--slug", "long")
    assert wrong.exit_code == 2


def test_a_name_that_is_too_long_for_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as failed, as_store_error(tmp_path / "a", begun=False):
        (tmp_path / ("a" * 300)).touch()
    assert failed.value.hint is not None
    assert "leave --slug full out" in failed.value.hint
