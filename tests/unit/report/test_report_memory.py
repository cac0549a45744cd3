"""Memory and pauses in a report: the numbers of the trials, in every form, and nothing without a runtime."""

import csv
import io
import json
import re
from dataclasses import replace

import pytest

from redline.analysis.build import build_report
from redline.document.blocks import Fold, Table
from redline.model import Durations, Histogram, Pause, Report, Run, RuntimeFacts, Series
from redline.model.runtime import CollectionSum
from redline.render import RENDERERS
from redline.report.memory import memory_sections
from redline.report.plots import payload
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_run

MIB, MS = 1 << 20, 10**6
JVM = "rust.axum"


def durations(*ns: int) -> Durations:
    return Durations(count=len(ns), total_ns=sum(ns), histogram=Histogram.of(ns))


def facts(window_start_unix_ns: int, trial: int) -> RuntimeFacts:
    pauses = (3 * MS, 12 * MS, 40 * MS + trial)
    return RuntimeFacts(
        runtime="jvm",
        collector="G1",
        max_heap_bytes=256 * MIB,
        pauses=durations(*pauses),
        to_safepoint=durations(*[MS] * 3),
        longest_pauses=tuple(
            Pause(start_unix_ns=window_start_unix_ns + 100 * MS * at, duration_ns=ns, cause="G1CollectForAllocation")
            for at, ns in enumerate(pauses, 1)
        ),
        collections=(
            CollectionSum(kind="young", cause="G1 Evacuation Pause", count=2, total_ns=15 * MS),
            CollectionSum(kind="full", cause="System.gc()", count=1, total_ns=40 * MS),
        ),
        live_unix_ns=(window_start_unix_ns + 400 * MS,),
        live_bytes=(64 * MIB + trial,),
        most_used_bytes=200 * MIB,
        allocated_bytes=500 * MIB,
        allocating_ns=500 * MS,
        stalls=durations(2 * MS),
    )


def with_jvm(run: Run) -> Run:
    """The run with one of its servers on a JVM."""
    cells, recordings = run.manifest.plan.cells, []
    for trial, plain in enumerate(run.recordings):
        on_jvm = cells[plain.cell_id].variant.slug == JVM and plain.traffic is not None
        start = plain.traffic.window_unix_ns[0] if plain.traffic else 0
        recordings.append(plain.model_copy(update={"runtime": facts(start, trial)}) if on_jvm else plain)
    return run.model_copy(update={"recordings": tuple(recordings)})


@pytest.fixture(scope="module")
def plain() -> Run:
    return simulated_run(loads=(STEADY,))


@pytest.fixture(scope="module")
def report(plain: Run) -> Report:
    return build_report(with_jvm(plain))


def test_numbers_are_those_of_all_used_trials(report: Report) -> None:
    (memory,) = [cell.memory for cell in report.cells if cell.memory]
    assert (memory.runtime, memory.collector, memory.trials, memory.seconds) == ("jvm", "G1", 5, 5.0)
    assert memory.allocated_per_s == 1000 * MIB
    assert memory.allocated_per_request == pytest.approx(1000 * MIB / 5000, rel=0.01)
    assert (memory.max_heap_bytes, memory.most_used_bytes) == (256 * MIB, 200 * MIB)
    assert memory.peak_rss_bytes == pytest.approx(20_000_000, rel=0.01), "the largest, soon after the measurement"
    assert memory.live_bytes is not None
    assert 64 * MIB <= memory.live_bytes < 64 * MIB + 20
    assert (memory.pauses.count, memory.pauses.histogram.count) == (15, 15)
    assert memory.paused_share == pytest.approx(0.055, rel=0.01)
    assert [(one.kind, one.count) for one in memory.collections] == [("full", 5), ("young", 10)]
    assert len(memory.longest) == 15
    assert [mark.at_s for mark in memory.longest] == sorted(mark.at_s for mark in memory.longest)
    assert memory.longest[0].at_s == pytest.approx(0.25 + 0.1), "after a warm-up of a quarter of a second"
    assert memory.compiler_cores is None


@pytest.mark.parametrize("good", [0, 2])
def test_a_server_that_failed_for_want_of_memory_still_has_its_numbers(good: int) -> None:
    bad, well = (
        simulated_run({"rust.hyper": GOOD, JVM: replace(GOOD, achieved=achieved)}, loads=(STEADY,))
        for achieved in (0.5, 1.0)
    )
    ids = [id_ for id_, cell in bad.manifest.plan.cells.items() if cell.variant.slug == JVM]
    places = [place for place, each in enumerate(bad.recordings) if each.cell_id in ids][:good]
    recordings = tuple(well.recordings[place] if place in places else each for place, each in enumerate(bad.recordings))
    run = bad.model_copy(update={"recordings": recordings})
    report = build_report(with_jvm(run))
    assert sum(trial.used for cell in report.cells for trial in cell.trials if cell.memory) == good
    (cell,) = [cell for cell in report.cells if cell.memory]
    assert not cell.valid
    assert cell.memory
    assert (cell.memory.trials, cell.memory.most_used_bytes) == (5, 200 * MIB)
    markdown = RENDERERS["md"](report).decode()
    assert re.search(r"rust\.axum.*64.* MiB.*256 MiB", markdown)
    page = RENDERERS["html"](report).decode()
    for text in (markdown, page):
        assert f"Invalid, so over all trials: {JVM}." in text


@pytest.mark.parametrize(
    ("at", "most"), [((-5, -1, 0, 100, 101), 3.0), ((-5, -4, -3, -2, -1), 5.0), ((-500, -400, 180, 200, 300), 3.0)]
)
def test_the_most_of_a_gauge_is_that_of_the_window(at: tuple[int, ...], most: float) -> None:
    values = (9.0, 8.0, 3.0, 2.0, 5.0)
    series = Series(name="x", unit="B", subject="server", kind="gauge", times_unix_ns=at, values=values)
    assert series.most(0, 100) == most


def test_sizes_of_before_and_after_the_measurements_are_in_no_table(plain: Run) -> None:
    recordings = []
    for recording in with_jvm(plain).recordings:
        start, end = recording.traffic.window_unix_ns if recording.traffic else (0, 0)
        gauges = tuple(
            Series(
                name=name,
                unit="B",
                subject="server",
                kind="gauge",
                times_unix_ns=(start - 1, start, end, end + 1),
                values=(900.0, 10.0, 20.0, 800.0),
            )
            for name in ("rss_bytes", "heap_capacity_bytes")
        )
        others = tuple(each for each in recording.series if each.name not in ("rss_bytes", "heap_capacity_bytes"))
        recordings.append(recording.model_copy(update={"series": (*gauges, *others)}))
    made = build_report(plain.model_copy(update={"recordings": tuple(recordings)}))
    (memory,) = [cell.memory for cell in made.cells if cell.memory]
    assert (memory.peak_rss_bytes, memory.heap_bytes) == (20, 20)


def pauses_of(report: Report) -> dict[str, str]:
    """The row of the server on a runtime in the table of pauses of the page, by column."""
    (section,) = memory_sections(report)
    (fold,) = [block for block in section.blocks if isinstance(block, Fold)]
    table = next(each for each in fold.blocks if isinstance(each, Table) and each.columns[2].title == "pauses")
    return dict(zip([column.title for column in table.columns], map(str, table.rows[0]), strict=True))


@pytest.mark.parametrize(("runtime", "known"), [("jvm", True), ("node", False), ("go", False)])
def test_a_runtime_without_safepoints_has_no_time_to_them(plain: Run, runtime: str, *, known: bool) -> None:
    run = with_jvm(plain)
    recordings = tuple(
        each.model_copy(update={"runtime": each.runtime.model_copy(update={"runtime": runtime})})
        if each.runtime
        else each
        for each in run.recordings
    )
    report = build_report(run.model_copy(update={"recordings": recordings}))
    assert bool(pauses_of(report)["to safepoint, p99"]) == known
    assert pauses_of(report)["longest"]


def test_what_compilers_used_and_what_they_waited_for_is_shown(report: Report, plain: Run) -> None:
    assert pauses_of(report)["compiler threads: used, waited"] == ""
    recordings = []
    for recording in with_jvm(plain).recordings:
        start, end = recording.traffic.window_unix_ns if recording.traffic else (0, 1)
        clocks = tuple(
            Series(
                name=f"compiler_{clock}_ns",
                unit="ns",
                subject="server",
                kind="counter",
                times_unix_ns=(start, end),
                values=(0.0, cores * (end - start)),
            )
            for clock, cores in (("cpu", 0.25), ("wait", 0.5))
        )
        recordings.append(recording.model_copy(update={"series": (*recording.series, *clocks)}))
    made = build_report(plain.model_copy(update={"recordings": tuple(recordings)}))
    assert pauses_of(made)["compiler threads: used, waited"] == "0.25, 0.50"


def test_every_form_has_them(report: Report) -> None:
    page = RENDERERS["html"](report).decode()
    assert "Invalid, so" not in page
    assert page.count('id="memory"') == 1
    text = re.sub(r"<[^>]+>", " ", page)
    assert re.search(r"Pauses by length", text)
    for each in ("Memory and pauses", "15, 3 /s", "5.5%", "10, 75", "System.gc() (full) 5", "12 "):
        assert each in text, each
    markdown = RENDERERS["md"](report).decode()
    assert "### Memory and pauses\n\n**SimpleGet · steady**" in markdown
    assert re.search(r"rust\.axum.*64.* MiB.*256 MiB.*5\.5%.*40", markdown)
    rows = {(row["server"], row["metric"]): row for row in csv.DictReader(io.StringIO(_csv(report)))}
    assert float(rows[JVM, "time-paused"]["value"]) == pytest.approx(0.055, rel=0.01)
    assert float(rows[JVM, "pause-max"]["value"]) == pytest.approx(40 * MS, rel=0.001)
    assert ("rust.hyper", "pause-max") not in rows
    cells = json.loads(RENDERERS["json"](report))["cells"]
    assert [cell["server"] for cell in cells if "memory" in cell] == [JVM]


def _csv(report: Report) -> str:
    return RENDERERS["csv"](report).decode()


def test_pauses_are_marks_on_the_plot_of_response_times(report: Report) -> None:
    plots = payload(report)
    (group,) = plots["groups"]
    (marks,) = group["pauses"]
    assert plots["servers"][marks["s"]] == JVM
    assert len(marks["t"]) == len(marks["ns"]) == 15
    assert max(marks["ns"]) >= 40 * MS


def test_servers_without_a_runtime_that_speaks_have_no_such_section(plain: Run) -> None:
    silent = build_report(plain)
    assert all(cell.memory is None for cell in silent.cells)
    for form in ("html", "md"):
        assert "Memory and pauses" not in RENDERERS[form](silent).decode()
    assert "pauses" not in payload(silent)["groups"][0]
    assert "pause-max" not in _csv(silent)
