"""The page of a single server under one load begins with its numbers and their course; no other page does."""

from redline.analysis.percentiles import stream_report
from redline.document.figures import Tiles
from redline.model import Bound, FindingKind, Grade, Histogram, Metric, Report
from redline.model.streams import StreamTraffic
from redline.render import RENDERERS, page
from redline.report.curves import more_curves
from redline.report.single import is_single, tiles
from tests.fakes import reports
from tests.fakes.report_cells import finding


def only(report: Report) -> Report:
    """The report of its first cell alone."""
    return report.model_copy(update={"cells": report.cells[:1], "comparisons": (), "rankings": ()})


def titles(report: Report) -> list[str]:
    return [section.title for section in page(report).sections]


def with_cell(report: Report, **changes: object) -> Report:
    (cell,) = report.cells
    return report.model_copy(update={"cells": (cell.model_copy(update=changes),)})


def doubts(report: Report) -> dict[str, str]:
    made = tiles(report)
    assert isinstance(made, Tiles)
    return {tile.name: tile.doubt for tile in made.tiles if tile.doubt}


def shown(report: Report) -> dict[str, tuple[str, str, bool]]:
    made = tiles(report)
    assert isinstance(made, Tiles)
    return {tile.name: (tile.value, tile.beside, tile.is_bad) for tile in made.tiles}


def test_numbers_their_course_and_their_spread_come_first() -> None:
    report = only(reports.healthy())
    assert is_single(report)
    (cell,) = report.cells
    seen = shown(report)
    assert list(seen) == ["requests", "failed", "throughput", "p50", "p99", "max", "CPU per request"]
    assert seen["requests"] == (f"{cell.counts.due:,}", "", False)
    assert seen["failed"] == ("0", "", False)
    assert titles(report)[:3] == ["The answer, in words", "Caveats", "Plots"]
    several = titles(reports.healthy())
    assert several.index("Plots") > several.index("Results")
    assert sorted(titles(report)) == sorted(set(titles(report))), "no section is there twice"
    content = RENDERERS["html"](report).decode()
    assert content.count('class="numbers"') == 1
    assert content.index("<dt>requests</dt>") < content.index('id="caveats"')


def test_conversations_have_the_numbers_of_their_messages() -> None:
    report = only(reports.healthy())
    (cell,) = report.cells
    due = cell.counts.due
    traffic = StreamTraffic(
        begun=due, events=due * 11, first_event=Histogram.of([2_000_000] * due), gaps=Histogram.of([20_000_000] * due)
    )
    streams = stream_report([traffic], 2.0)
    assert streams
    good = streams.model_copy(update={"goodput": 0.9})
    seen = shown(with_cell(report, streams=good))
    times = ["first message p50", "first message p99", "gap p50", "gap p99"]
    assert list(seen) == ["requests", "failed", "messages", *times, "good", "throughput", "CPU per request"]
    assert (seen["first message p99"][0], seen["gap p50"][0], seen["good"][0]) == ("2.00 ms", "20.0 ms", "90%")
    # Where others are no conversations, the response times are those of all.
    some = shown(with_cell(report, streams=good.model_copy(update={"begun": due - 1})))
    assert set(some) - set(seen) == {"p50", "p99", "max"}
    # Findings are doubts of these numbers too.
    warned = finding("cpu-pressure", Grade.WARN, "m", "a", cell.cell_id)
    assert "messages" in doubts(with_cell(report, streams=good, findings=(warned,)))
    curves = more_curves(with_cell(report, streams=good).cells[0])
    assert list(curves) == ["first message", "between messages"]
    assert max(curves["first message"]["y"]) == 2_001_000  # of its slot
    hidden = good.model_copy(update={"first_event": (), "events_per_s": None})
    assert "messages" not in shown(with_cell(report, streams=hidden))
    assert list(more_curves(with_cell(report, streams=hidden).cells[0])) == ["between messages"]


def test_failures_stand_out_with_their_share() -> None:
    report = only(reports.healthy())
    (cell,) = report.cells
    outcomes = cell.counts.outcomes.model_copy(update={"timeout": cell.counts.outcomes.ok})
    counts = cell.counts.model_copy(update={"outcomes": outcomes})
    failing = report.model_copy(update={"cells": (cell.model_copy(update={"counts": counts}),)})
    assert shown(failing)["failed"] == (f"{outcomes.ok:,}", "50% of all", True)


def test_what_is_hidden_has_no_tile() -> None:
    report = only(reports.healthy())
    (cell,) = report.cells
    known = {metric: estimate for metric, estimate in cell.estimates.items() if metric is not Metric.P99}
    hiding = report.model_copy(update={"cells": (cell.model_copy(update={"estimates": known}),)})
    assert "p99" not in shown(hiding)


def test_a_bound_says_so_and_why() -> None:
    report = only(reports.healthy())
    bound = Bound(unit="ns", at_most=12_000_000, finding="send-lateness", reason="the engine was late")
    known = {metric: estimate for metric, estimate in report.cells[0].estimates.items() if metric is not Metric.P99}
    bounded = with_cell(report, estimates=known, bounds={Metric.P99: bound})
    assert shown(bounded)["p99"] == ("\u2264 12.0 ms", "", False)
    assert doubts(bounded) == {"p99": "the engine was late"}
    assert 'title="the engine was late"' in RENDERERS["html"](bounded).decode()


def test_a_warning_marks_the_numbers_that_it_may_have_moved_and_no_others() -> None:
    report = only(reports.healthy())
    assert doubts(report) == {}

    def found(kind: FindingKind, grade: Grade) -> Report:
        return with_cell(report, findings=(finding(kind, grade, "m", "a", report.cells[0].cell_id),))

    assert doubts(found("heap-pressure", Grade.WARN)) == {
        "p99": "heap-pressure: tails are too high",
        "max": "heap-pressure: tails are too high",
    }
    assert list(doubts(found("other-load", Grade.WARN))) == ["throughput", "p50", "p99", "max"]
    assert doubts(found("too-few-trials", Grade.WARN)) == {}  # so every load has
    assert doubts(found("other-load", Grade.NOTE)) == {}


def test_pages_of_several_servers_have_none() -> None:
    assert tiles(reports.healthy()) is None
    assert 'class="numbers"' not in RENDERERS["html"](reports.healthy()).decode()


def as_load(report: Report) -> Report:
    only_one = only(report)
    server = only_one.cells[0].server
    run = only_one.run.model_copy(update={"kind": "load", "suite": "load", "servers": {server: "./shop --port 80"}})
    return only_one.model_copy(update={"run": run})


def test_the_page_of_a_load_is_titled_by_what_was_loaded_and_how() -> None:
    head = page(as_load(reports.healthy())).head
    assert (head.title, head.about) == ("./shop --port 80", reports.healthy().cells[0].load_text)
    assert head.servers == ()


def test_a_single_server_needs_no_legend_and_no_heading_above_its_plots() -> None:
    alone = RENDERERS["html"](as_load(reports.healthy())).decode()
    several = RENDERERS["html"](reports.healthy()).decode()
    assert ('aria-label="Servers shown"' in alone, "aria-label='Servers shown'" in alone) == (False, False)
    assert "Servers shown" in several


def test_doubts_of_a_single_cell_are_named_without_their_number() -> None:
    report = only(reports.doubtful())
    (caveats,) = [section for section in page(report).sections if section.anchor == "caveats"]
    assert "in 1 cell" not in str(caveats)
