"""What was counted by request of a mix: in reports, in CSV, for loads and in duets."""

import csv
import io
from collections.abc import Sequence

import pytest

from redline.analysis import build_report
from redline.analysis.duet import Duet
from redline.analysis.percentiles import LoadedRequests, request_reports
from redline.document.blocks import Medium, Table
from redline.model import (
    Bound,
    Counts,
    DuetRecording,
    Estimate,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    JourneyReport,
    Metric,
    ObjectiveState,
    Outcomes,
    Recording,
    Report,
    Request,
    RequestRatio,
    RequestReport,
    RequestTraffic,
    Run,
    Scenario,
    TargetTraffic,
)
from redline.model.limits import LimitProbe, ProbeState
from redline.render import csvfile
from redline.render import markdown as md
from redline.report.by_request import MOST_ROWS, request_tables
from redline.report.limit import OUTLINE
from redline.report.run import OUTLINE as RUN_OUTLINE
from tests.fakes import limits
from tests.fakes.duets import simulated_duet
from tests.fakes.limits import busy
from tests.fakes.recordings import SATURATE, simulated_run

MIX = Scenario(
    name="mix",
    request=Request(name="items", path="/items", weight=3),
    others=(Request(method="POST", path="/basket"), Request(method="POST", path="/basket")),
)
SHARES = (0.5, 0.25, 0.25)


def by_request(counts: Counts, response: Histogram) -> tuple[RequestTraffic, ...]:
    """Split the traffic of a load: of each bucket a half, a quarter, and the rest."""
    values, held = response.buckets()
    parts: list[list[float]] = [[], [], []]
    for value, count in zip(values.tolist(), held.tolist(), strict=True):
        first, second = count // 2, count // 4
        for part, own in zip(parts, (first, second, count - first - second), strict=True):
            part.extend([float(value)] * own)
    assert counts.outcomes.errors == 0
    return tuple(
        RequestTraffic(
            completed=round(counts.completed * share),
            body_bytes=5 * len(part),
            status={"2xx": len(part)},
            outcomes=Outcomes(ok=len(part)),
            response=Histogram.of(part),
        )
        for part, share in zip(parts, SHARES, strict=True)
    )


def counted(recording: Recording) -> Recording:
    traffic = recording.traffic
    assert traffic is not None
    requests = by_request(traffic.counts, traffic.response)
    return recording.model_copy(update={"traffic": traffic.model_copy(update={"requests": requests})})


@pytest.fixture(scope="module")
def report() -> Report:
    run = simulated_run(trials=3, scenarios=(MIX,), loads=(SATURATE,), ceiling=None)
    return build_report(Run(manifest=run.manifest, recordings=tuple(map(counted, run.recordings))))


def in_markdown(report: Report) -> str:
    return md.render(RUN_OUTLINE.text(report, Medium.MARKDOWN)).decode()


def test_labels_are_unique() -> None:
    assert MIX.labels == ("items", "POST /basket", "POST /basket #2")


def test_names_are_no_part_of_what_is_measured() -> None:
    other = MIX.model_copy(update={"request": MIX.request.model_copy(update={"name": "things"})})
    assert MIX.asked() == other.asked()


def test_the_parts_of_a_cell_add_up(report: Report) -> None:
    for cell in report.cells:
        assert [own.request for own in cell.requests] == [*MIX.labels]
        assert sum(own.outcomes.total for own in cell.requests) == cell.counts.due
        rates = [own.rate_per_s or 0.0 for own in cell.requests]
        assert rates[0] == pytest.approx(2 * rates[1], rel=0.01)
        assert cell.requests[0].answers == {"200": cell.requests[0].outcomes.ok}


def test_every_medium_has_them(report: Report) -> None:
    markdown = in_markdown(report)
    assert "## By request" in markdown
    assert markdown.count("POST /basket") >= 2 * len(report.cells)
    rows = list(csv.DictReader(io.StringIO(csvfile.render(report).decode())))
    p99 = [row["value"] for row in rows if row["metric"] == "p99:items"]
    assert len(p99) == len(report.cells)
    assert all(float(value) > 0 for value in p99)


def test_a_terminal_shows_the_most_frequent_in_their_order(report: Report) -> None:
    (first, *_) = report.cells[0].requests
    many = [
        first.model_copy(update={"request": f"r{at}", "outcomes": Outcomes(ok=at + 1)}) for at in range(MOST_ROWS + 5)
    ]
    times, _, more, _ = request_tables(many)
    assert [row[0] for row in times.rows] == [f"r{at}" for at in range(5, MOST_ROWS + 5)]  # type: ignore[union-attr]
    assert "5 more came less often" in str(more)


def test_changes_by_request_are_written_as_all_changes_are(report: Report) -> None:
    baseline, cell, *_ = report.cells
    known = Estimate(value=1.24, low=1.1, high=1.39, unit="ratio", n=5, method="t")
    median = RequestRatio(
        cell_id=cell.cell_id, baseline_id=baseline.cell_id, request="items", quantile=0.5, ratio=known
    )
    wide = {"quantile": 0.99, "ratio": known.model_copy(update={"low": 0.01, "high": 150.0})}
    ratios = median, median.model_copy(update=wide)
    text = in_markdown(report.model_copy(update={"request_ratios": ratios})).replace("\\", "")
    assert "+24.0% [+10.0, +39.0]" in text
    assert "+24.0% [not known]" in text


def test_a_run_without_a_mix_has_no_such_section() -> None:
    plain = build_report(simulated_run(trials=1))
    assert all(cell.requests == () for cell in plain.cells)
    assert "By request" not in in_markdown(plain)


def start(number: int, slower: float) -> DuetRecording:
    """A start whose second server answers the second of two requests slower by this factor."""
    recording = simulated_duet(number)
    assert recording.traffic is not None

    def target(at: int) -> TargetTraffic:
        factor = slower if at == 1 else 1.0
        times = [Histogram.of([1e6] * 5000), Histogram.of([2e6 * factor * (1 + number / 1000)] * 5000)]
        requests = [RequestTraffic(outcomes=Outcomes(ok=5000), response=own) for own in times]
        whole = Histogram.merged(times)
        return TargetTraffic(
            counts=Counts(due=10_000, outcomes=Outcomes(ok=10_000)),
            response=whole,
            service=whole,
            lateness=whole,
            engine_cpu_ns=1,
            requests=tuple(requests),
        )

    targets = tuple(map(target, range(3)))
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"targets": targets})})


def test_a_duet_has_no_column_for_the_throughput_that_it_does_not_know(report: Report) -> None:
    requests = [own.model_copy(update={"rate_per_s": None}) for own in report.cells[0].requests]
    for known, has in ((report.cells[0].requests, True), (requests, False)):
        tables = [block for block in request_tables(known) if isinstance(block, Table)]
        assert any("throughput" in {column.title for column in table.columns} for table in tables) is has
        assert all(len(row) == len(table.columns) for table in tables for row in table.rows)


def searched(state: ObjectiveState, rate_per_s: float, requests: Sequence[RequestReport], **more: object) -> LimitProbe:
    probe = busy().probes[0]
    verdict = ProbeState(name="good", state=state)
    changed = {"counts": (verdict,), "rate_per_s": rate_per_s, "requests": tuple(requests), "client": "", **more}
    return probe.model_copy(update=changed)


def test_a_search_has_them_of_the_rate_that_its_answer_rests_on(report: Report) -> None:
    own = report.cells[0].requests
    probes = [
        *(searched("met", 100, own), searched("met", 200, own), searched("missed", 400, own)),
        searched("not known", 300, own, client="the engine was busy"),
    ]

    def at(*given: LimitProbe) -> str:
        cell = busy().model_copy(update={"probes": given})
        return md.render(OUTLINE.text(limits.report(cell), Medium.MARKDOWN)).decode().partition("By request")[2]

    assert "at 200/s, which met the objectives" in at(*probes)
    assert "at 400/s, which missed the objectives" in at(*probes[2:])
    assert "POST /basket" in at(*probes)
    assert at(probes[3]) == at(searched("met", 100, ())) == ""


def test_the_csv_of_a_search_has_a_row_for_each_request_of_a_probe(report: Report) -> None:
    own = report.cells[0].requests[0]
    cut = own.model_copy(update={"outcomes": Outcomes(ok=5, timeout=2, in_flight=4), "first_byte": own.response})
    cell = busy().model_copy(update={"probes": (searched("missed", 400, [own, cut], hopeless=True),)})
    sheet = csvfile.render_search(limits.report(cell)).decode()
    first, second = (row for row in csv.DictReader(io.StringIO(sheet)) if row["row"] == "request")
    assert (first["request"], first["rate_per_s"]) == ("items", "400")
    assert first["requests"] == str(own.outcomes.total)
    assert (second["requests"], second["errors"]) == ("11", "2")  # those in flight were ended by the search
    assert second["p50_ns"] == second["first_byte_p50_ns"] != ""


def test_the_csv_of_a_run_has_statuses_and_outcomes_of_each_request(report: Report) -> None:
    first, *others = report.cells
    own = first.requests[0].model_copy(
        update={"answers": {"201": 7, "5xx": 3}, "outcomes": Outcomes(ok=7, unexpected_status=3)}
    )
    changed = report.model_copy(update={"cells": (first.model_copy(update={"requests": (own,)}), *others)})
    rows = {row["metric"]: row["value"] for row in csv.DictReader(io.StringIO(csvfile.render(changed).decode()))}
    assert (rows["answers-201:items"], rows["answers-5xx:items"], rows["unexpected-status:items"]) == ("7", "3", "3")
    assert "timeout:items" not in rows


@pytest.mark.parametrize(("kind", "are_known"), [("unsteady", True), ("server-died", False)])
def test_where_no_level_is_known_counts_are_shown_if_they_are_sure(
    kind: FindingKind, are_known: bool, report: Report
) -> None:
    first, *others = report.cells
    hidden = Bound(unit="1/s", finding=kind, reason="it was not steady")
    journeys = JourneyReport(begun_per_s=4.0, begun=8, completed=7, unfinished=1, response=())
    invalid = {
        "valid": False,
        "estimates": {},
        "bounds": {Metric.THROUGHPUT: hidden},
        "findings": (
            Finding(kind=kind, grade=Grade.INVALID, cell_id=first.cell_id, message="it was not steady", advice="wait"),
        ),
        "journeys": journeys,
    }
    changed = report.model_copy(update={"cells": (first.model_copy(update=invalid), *others)})
    assert not changed.cells[0].shows_numbers
    written = csv.DictReader(io.StringIO(csvfile.render(changed).decode()))
    rows = {row["metric"]: row["value"] for row in written if row["cell_id"] == first.cell_id}
    assert rows.get("journeys-completed") == ("7" if are_known else None)
    assert ("requests:items" in rows) is are_known
    assert not {"journeys-per-second", "journey-p50", "throughput:items", "p50:items"} & rows.keys()
    assert (f"{first.server}, journeys" in in_markdown(changed).replace("\\", "")) is are_known


def test_a_duet_says_which_request_is_slower() -> None:
    duet = Duet(tuple(start(number, 1.5) for number in range(5)))
    same, slower = duet.of_request(0, 0.5), duet.of_request(1, 0.5)
    assert same is not None
    assert slower is not None
    assert same.contrast.ratio.value == pytest.approx(1.0)
    assert slower.contrast.ratio.value == pytest.approx(1.5, rel=0.01)
    assert duet.of_request(1, 0.9999) is None
    assert Duet((start(0, 1.5),)).of_request(0, 0.5) is None
    assert Duet((simulated_duet(0), simulated_duet(1), simulated_duet(2))).of_request(0, 0.5) is None


def test_the_first_byte_of_a_request_is_shown_where_it_is_not_the_last() -> None:
    whole, late, early = (Histogram.of([ms * 1e6] * 400) for ms in (1, 30, 4))
    made = [
        RequestTraffic(outcomes=Outcomes(ok=400), response=whole, first_byte=whole),
        RequestTraffic(outcomes=Outcomes(ok=400), response=late, first_byte=early),
        RequestTraffic(outcomes=Outcomes(ok=400), response=late),
    ]
    loads = [LoadedRequests((*made,), 1200, 2.0)] * 2
    items, basket, unknown = request_reports(MIX, loads)
    assert (items.first_byte, unknown.first_byte) == ((), ())
    assert {point.ns for point in basket.first_byte} == {*early.quantiles_ns((0.5,))}
    tables = [block for block in request_tables([items, basket, unknown]) if isinstance(block, Table)]
    assert [table.rows[0][0] for table in tables if table.columns[0].title == "first byte of"] == [basket.request]


def test_times_to_the_first_byte_are_known_only_where_every_load_counted_them() -> None:
    times = Histogram.of([1e6] * 4)
    known, old = RequestTraffic(response=times, first_byte=times), RequestTraffic(response=times)
    assert RequestTraffic.merged([known, known]).first_byte == Histogram.merged([times, times])
    assert RequestTraffic.merged([known, old]).first_byte is None
