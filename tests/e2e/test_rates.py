"""Rates that are a share of a capacity, as a user meets them: two parts in one command, resumed anywhere."""

import shutil
import signal
import time
from pathlib import Path

import pytest

from redline.analysis import capacities
from redline.model import Metric, Open, Report, Run, Share
from redline.storage.runs import RunStore
from tests.e2e.conftest import Redline
from tests.e2e.lab import Lab

pytestmark = pytest.mark.e2e

REAL = """\
servers: [rust.hyper, rust.axum]
baseline: rust.hyper
ceiling: oracle.null
scenarios: [SimpleGet]
loads:
  saturate: {closed: {users: 4}, for: 300ms}
  half: {open: {rate: 50% of saturate, connections: 16}, for: 300ms}
warmup: 50ms
trials: 2
"""
HALF = "  half: {open: {rate: 50% of saturate, connections: 16}, for: 300ms}\n"
TOO_BUSY = "this machine is too busy to measure a valid capacity"


@pytest.fixture
def lab(redline: Redline, oracle: Path) -> Lab:
    return Lab(redline.folder, oracle)


def suite_with_half(lab: Lab, servers: str, trials: int, more: str = "baseline: good.one") -> Path:
    suite = lab.suite(servers, trials=trials, more=more)
    suite.write_text(suite.read_text().replace("warmup:", f"{HALF}warmup:"))
    return suite


def stored(redline: Redline, folder: str = "out") -> Run:
    return RunStore(redline.folder / folder).run()


def rates(run: Run) -> dict[str, float | None]:
    shapes = {cell.variant.slug: cell.load.shape for cell in run.manifest.plan.cells.values()}
    return {slug: shape.rate_per_s for slug, shape in shapes.items() if isinstance(shape, Open)}


def has_no_capacity(redline: Redline) -> bool:
    """A machine may be too busy for a valid measurement; the run then reports it and ends, which is right as well."""
    return bool(capacities(stored(redline, "out/capacity")).missing)


@pytest.mark.long
@pytest.mark.alone
def test_both_of_a_pair_get_the_same_share_of_the_weaker_ones_capacity(redline: Redline) -> None:
    suite = redline.folder / "suite.yaml"
    suite.write_text(REAL)
    done = redline("run", suite, "-o", "out", "--json")
    assert "Traceback" not in done.err
    if has_no_capacity(redline):
        done.refused(1, "nothing is left to run", "without a capacity")
        pytest.skip(TOO_BUSY)
    report = Report.model_validate(done.json)
    first = Report.model_validate_json((redline.folder / "out" / "capacity" / "results.json").read_bytes())
    assert report.run.complete
    assert first.run.complete
    assert {(cell.server, cell.load) for cell in report.cells} == {("rust.hyper", "half"), ("rust.axum", "half")}
    assert {cell.server for cell in first.cells} == {"rust.hyper", "rust.axum", "oracle.null"}
    assert {cell.load for cell in first.cells} == {"saturate"}
    weaker = min(cell.estimates[Metric.THROUGHPUT].value for cell in first.cells if cell.role == "subject")
    run = stored(redline)
    half = float(f"{weaker * 0.5:.3g}")
    assert rates(run) == {"rust.hyper": half, "rust.axum": half}
    for cell in run.manifest.plan.cells.values():
        assert isinstance(cell.load.shape, Open)
        assert cell.load.shape.share == Share(share=0.5, of="saturate")
    assert all(f"{half:,.10g}/s (50% of saturate) poisson" in cell.load_text for cell in report.cells)
    assert len({(recording.round, recording.seed) for recording in run.recordings}) == 2
    assert "part 1 of 2: the capacity" in done.err
    assert "part 2 of 2" in done.err
    assert redline("report", "out/capacity", "--json").json["run"]["name"] == "out/capacity"


@pytest.mark.long
@pytest.mark.alone
def test_flags_are_for_both_parts(redline: Redline, lab: Lab) -> None:
    suite = suite_with_half(lab, "good.one, good.two", 2)
    redline("run", suite, "-o", "out", "-s", "good.two", "-u", "2", "-d", "200ms", "--trials", "1")
    (cell,) = stored(redline, "out/capacity").manifest.plan.cells.values()
    assert (cell.variant.slug, cell.load.connections, cell.load.duration_ns) == ("good.two", 2, 200_000_000)
    if has_no_capacity(redline):
        pytest.skip(TOO_BUSY)
    run = stored(redline)
    (cell,) = run.manifest.plan.cells.values()
    assert (cell.load.name, cell.load.duration_ns, len(run.recordings)) == ("half", 200_000_000, 1)


@pytest.mark.long
@pytest.mark.alone
def test_ctrl_c_in_the_first_part_keeps_what_was_measured_and_resume_continues(redline: Redline, lab: Lab) -> None:
    suite = suite_with_half(lab, "good.one, good.two", 3)
    process = redline.start("run", suite, "-o", "out")
    _wait_for_recordings(redline.folder / "out" / "capacity", 2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "run --resume out" in " ".join(err.split())
    assert "Traceback" not in err
    assert "saturate" in out
    kept = stored(redline, "out/capacity").recordings
    assert 2 <= len(kept) < 6
    assert not (redline.folder / "out" / "run.json").exists()
    assert (redline.folder / "out" / "capacity" / "report.html").exists()
    redline("report", "out").refused(1, "no further than its capacity", "--resume out", "redline report out/capacity")
    redline("run", suite, "-o", "out").refused(2, "out already holds a run", "--resume out")
    done = redline("run", "--resume", "out", "--fail-on", "slower", "--json")
    assert "Traceback" not in done.err
    assert stored(redline, "out/capacity").complete
    assert stored(redline, "out/capacity").recordings[: len(kept)] == kept
    if has_no_capacity(redline):
        done.refused(1, "without a capacity")
        pytest.skip(TOO_BUSY)
    assert Report.model_validate(done.json).run.complete
    assert {cell.load.name for cell in stored(redline).manifest.plan.cells.values()} == {"half"}


@pytest.mark.alone
def test_resume_continues_between_the_parts_and_in_the_second(redline: Redline, lab: Lab) -> None:
    redline("run", suite_with_half(lab, "good.one, good.two", 1), "-o", "out")
    if has_no_capacity(redline):
        pytest.skip(TOO_BUSY)
    whole, folder = stored(redline), redline.folder / "out"
    first = stored(redline, "out/capacity")
    (folder / "run.json").unlink()
    for name in ("recordings", "duets"):
        shutil.rmtree(folder / name)
    redline("run", "--resume", "out")
    again = stored(redline)
    assert again.complete
    assert again.manifest.plan == whole.manifest.plan
    assert again.manifest.command == whole.manifest.command
    (folder / "recordings" / sorted(file.name for file in (folder / "recordings").iterdir())[1]).unlink()
    redline("run", "--resume", "out")
    assert stored(redline).complete
    assert stored(redline).recordings[0] == again.recordings[0]
    assert stored(redline, "out/capacity") == first


@pytest.mark.long
@pytest.mark.alone
def test_a_server_without_a_capacity_costs_its_group_the_rates_and_nothing_else(redline: Redline, lab: Lab) -> None:
    suite = suite_with_half(lab, "good.one, good.two, bad.wrong", 1, more="baseline: {bad.wrong: good.one}")
    done = redline("run", suite, "-o", "out", "--json")
    assert done.code == 1
    found = capacities(stored(redline, "out/capacity"))
    assert {"good.one.SimpleGet.saturate", "bad.wrong.SimpleGet.saturate"} <= set(found.missing)
    if "good.two.SimpleGet.saturate" in found.missing:
        done.refused(1, "nothing is left to run")
        pytest.skip(TOO_BUSY)
    report = Report.model_validate(done.json)
    assert [cell.slug for cell in report.cells] == ["good.two.SimpleGet.half"]
    reasons = {skipped.slug: skipped.reason for skipped in report.skipped}
    assert set(reasons) == {"good.one.SimpleGet.half", "bad.wrong.SimpleGet.half"}
    assert all("bad.wrong.SimpleGet.saturate: " in reason and "404" in reason for reason in reasons.values())
    assert "404" in done.err


def test_check_shows_both_parts_and_starts_nothing(redline: Redline, lab: Lab) -> None:
    suite = suite_with_half(lab, "good.one, good.two", 2)
    done = redline("check", suite)
    assert done.code == 0
    part_1, part_2 = done.out.split("part 2 of 2")
    assert "part 1 of 2: the capacity" in part_1
    assert "the capacity under saturate" in part_1
    assert "saturate" in part_1
    assert "half (50% of saturate)" in part_2
    assert "4 cells, 8 trials" in part_2
    checked = redline("check", suite, "--json").json
    assert [cell["slug"].rpartition(".")[2] for cell in checked["capacity"]] == ["saturate", "saturate"]
    assert [cell["share"] for cell in checked["cells"]] == [{"share": 0.5, "of": "saturate"}] * 2
    assert checked["trials"] == 8
    loaded_ms = (8 + 4 * 3) * (50 + 300 + 100)  # each of the four duets has three servers
    assert checked["expected_length_ns"] == (loaded_ms + 4 * 250) * 1_000_000, "open loads are watched afterwards"
    assert not (redline.folder / "runs").exists()


def test_a_share_of_nothing_is_reported_by_line(redline: Redline, lab: Lab) -> None:
    suite = suite_with_half(lab, "good.one", 1)
    suite.write_text(suite.read_text().replace("of saturate", "of saturat"))
    redline("check", suite).refused(2, "suite.yaml:6:23", "loads.half.open.rate", "did you mean `saturate`?")


def _wait_for_recordings(run: Path, count: int) -> None:
    for _ in range(600):
        if len(list((run / "recordings").glob("0*.json"))) >= count:
            return
        time.sleep(0.05)
    raise AssertionError("no recordings came")
