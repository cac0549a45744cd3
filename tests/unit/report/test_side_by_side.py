"""`redline report A B`: what held from run to run, on every medium."""

import pytest

from redline.analysis.side_by_side import NamedReport, side_by_side
from redline.errors import UsageError
from redline.limits.ratios import limit_comparisons
from redline.model import Comparison, Estimate, Metric, Report, Verdict
from redline.model.claim import Claim, ClaimResult, ClaimState
from redline.model.estimate import DuetComparison
from redline.model.limits import AnyReport
from redline.model.side_by_side import AnswerRow, SideBySide
from redline.render import SIDES
from tests.fakes import limits, reports
from tests.fakes.limits import ends_at, rivals
from tests.fakes.report_cells import comparison


def at(report: Report, *, host: str = "elsewhere", later_s: int = 86_400, redline: str = "1.2") -> Report:
    """The same report of another machine and day."""
    environment = report.environment.model_copy(update={"hostname": host, "redline": redline})
    started = report.run.started_unix_ns + later_s * 1_000_000_000
    return report.model_copy(
        update={"environment": environment, "run": report.run.model_copy(update={"started_unix_ns": started})}
    )


def shown(*run_reports: AnyReport, now: bool = False) -> SideBySide:
    named = [NamedReport(f"run{at}", report, judged_now=now) for at, report in enumerate(run_reports)]
    return side_by_side(named, "1.2")


def ratios(*values: tuple[float, float], primary: bool = True) -> Report:
    """A report whose only comparisons are those of throughput, with these ratios and half widths."""
    report = at(reports.healthy())
    pairs = [c for c in report.comparisons if c.metric is Metric.P50]
    found = [
        comparison(Metric.THROUGHPUT, own.cell_id, own.baseline_id, *value, primary=primary)
        for own, value in zip(pairs, values, strict=False)
    ]
    return report.model_copy(update={"comparisons": tuple(found)})


def changed(report: Report, update: dict[str, object]) -> Report:
    first, *rest = report.comparisons
    return report.model_copy(update={"comparisons": (first.model_copy(update=update), *rest)})


def only(result: SideBySide) -> AnswerRow:
    (row,) = result.rows
    return row


def outcome(a: Report, b: Report) -> tuple[str, str]:
    row = only(shown(a, at(b, host="third")))
    return row.outcome, row.sentence


def test_a_run_beside_itself_of_another_day_holds_everything_that_was_known() -> None:
    healthy = at(reports.healthy())
    result = shown(healthy, at(healthy))
    known = {Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT}
    judged = [row for row in result.rows if row.primary]
    assert {row.outcome for row in judged} == {"held", "open"}
    assert all((row.outcome == "held") == (row.answers[0].verdict in known) for row in judged)
    assert "held: slower on both" in {row.sentence for row in judged}


def test_primary_measures_come_first_in_each_cell() -> None:
    by_cell: dict[str, list[bool]] = {}
    for row in shown(at(reports.healthy()), at(at(reports.healthy()))).rows:
        by_cell.setdefault(row.cell, []).append(row.primary)
    assert all(order == sorted(order, reverse=True) for order in by_cell.values())
    assert any(len(set(order)) == 2 for order in by_cell.values())


def test_ratios_further_apart_than_chance_differ_surely() -> None:
    assert outcome(ratios((0.9, 0.01)), ratios((1.1, 0.01))) == (
        "differs",
        "differs surely: the ratio of run 2 is 1.222 times that of run 1; run 1 slower, run 2 faster",
    )


def test_the_same_verdict_of_ratios_that_are_apart_is_no_agreement() -> None:
    assert outcome(ratios((0.9, 0.01)), ratios((0.7, 0.01)))[0] == "differs"


def test_verdicts_that_differ_by_chance_leave_it_open() -> None:
    found = outcome(ratios((0.97, 0.02)), ratios((0.985, 0.02)))
    assert found == ("open", "not sure: the ratios may be the same; run 1 slower, run 2 inconclusive")


def test_two_runs_that_know_nothing_do_not_agree() -> None:
    assert outcome(ratios((0.99, 0.2)), ratios((1.0, 0.2)))[0] == "open"


def test_what_only_one_run_knows_says_why_the_other_does_not() -> None:
    refused = changed(ratios((0.9, 0.01)), {"ratio": None, "verdict": None, "refused": "the cell is invalid"})
    assert outcome(ratios((0.9, 0.01)), refused) == ("only one", "only run 1 knows; run 2: the cell is invalid")
    result = shown(ratios((0.9, 0.01), (0.9, 0.01)), at(ratios((0.9, 0.01)), host="third"))
    assert [row.sentence for row in result.rows][1:] == ["only run 1 knows; run 2: not measured"]


def test_a_ratio_without_an_interval_is_not_judged() -> None:
    bare = Estimate(value=0.9, low=None, high=None, unit="ratio", n=1, method="one trial")
    found = outcome(ratios((0.9, 0.01)), changed(ratios((0.9, 0.01)), {"ratio": bare, "verdict": None}))
    assert found == ("open", "not known: no interval in run 2; run 1 slower, run 2 no verdict")


@pytest.mark.parametrize("verdict", [Verdict.SLOWER, Verdict.INCONCLUSIVE])
def test_a_verdict_stands_of_servers_that_were_not_warm(verdict: Verdict) -> None:
    """The interval allows for how far the ratio may yet move, so that only what is undecided is not known."""
    duet = DuetComparison(
        starts=3, between_sd=None, blocks_se=None, control=None, alone=None, unsettled="cold", findings=()
    )
    cold = changed(ratios((0.9, 0.01)), {"duet": duet, "verdict": verdict})
    expected = "held: slower on both" if verdict is Verdict.SLOWER else "not known: servers were not warm in run 1"
    assert outcome(cold, ratios((0.9, 0.01)))[1].startswith(expected)


def test_described_measures_are_told_by_their_intervals() -> None:
    found = outcome(ratios((0.9, 0.01), primary=False), ratios((0.905, 0.01), primary=False))
    assert found == ("held", "held: lower on both")


def test_many_rows_need_more_than_one_pair_of_intervals_that_do_not_overlap() -> None:
    """One of many rows is apart by chance: Holm's correction holds it back."""
    a, b = ratios((0.9, 0.01)), ratios((0.9 * 1.0205, 0.01))
    assert outcome(a, b)[0] == "differs"
    first = at(reports.healthy())
    cells = [c for c in first.comparisons if c.metric is Metric.P50]
    metrics = [m for m in Metric if m is not Metric.MEMORY]

    def with_others(value: float) -> Report:
        own = [comparison(m, c.cell_id, c.baseline_id, 0.9, 0.01) for c in cells for m in metrics]
        own[0] = comparison(metrics[0], cells[0].cell_id, cells[0].baseline_id, value, 0.01)
        return first.model_copy(update={"comparisons": tuple(own)})

    rows = shown(with_others(0.9), at(with_others(0.9 * 1.0205), host="third")).rows
    assert len(rows) > 20
    assert rows[0].outcome == "open"
    assert "do not overlap" in rows[0].sentence


def test_three_runs_are_one_table() -> None:
    a, b, c = ratios((0.9, 0.01)), ratios((0.9, 0.01)), ratios((1.2, 0.01))
    row = only(shown(a, at(b, host="b"), at(c, host="c")))
    assert (
        row.sentence
        == "differs surely: the ratio of run 3 is 1.333 times that of run 1; run 1 slower, run 2 slower, run 3 faster"
    )


def test_another_version_another_suite_and_other_definitions_are_said() -> None:
    old = at(ratios((0.9, 0.01)), redline="0.9", host="old")
    old = old.model_copy(update={"run": old.run.model_copy(update={"suite_text": "servers: [x]"})})
    first, *rest = old.cells
    ids = {first.cell_id: f"{first.slug}-00000000"}
    renamed = tuple(
        c.model_copy(
            update={"cell_id": ids.get(c.cell_id, c.cell_id), "baseline_id": ids.get(c.baseline_id, c.baseline_id)}
        )
        for c in old.comparisons
    )
    cells = (first.model_copy(update={"cell_id": ids[first.cell_id]}), *rest)
    old = old.model_copy(update={"cells": cells, "comparisons": renamed})
    version, suites, otherwise = shown(ratios((0.9, 0.01)), old).notices
    assert version.startswith("run 2 was measured by Redline 0.9, this is 1.2: its verdicts are of that version")
    assert suites == "the suites are not the same text"
    assert otherwise.startswith("servers, requests or loads of the same name are defined otherwise: rust.axum")
    assert "judged by this version" in shown(ratios((0.9, 0.01)), old, now=True).notices[0]
    assert shown(ratios((0.9, 0.01)), at(ratios((0.9, 0.01)))).notices == ()


def test_searches_are_shown_by_their_ratios_of_limits() -> None:
    suite, cells, found = rivals((ends_at(18_600, 19_400),), (ends_at(20_900, 21_800),))
    report = limits.report(*found.values(), comparisons=limit_comparisons(cells, found, suite))
    other = report.model_copy(update={"started_unix_ns": report.started_unix_ns + 1})
    named = [NamedReport("a", report, judged_now=True), NamedReport("b", other, judged_now=True)]
    row = only(side_by_side(named, "1.2"))
    assert (row.measure.partition(" ")[0], row.outcome) == ("limit", "held")


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        ((reports.healthy(), reports.healthy()), "are the same run"),
        ((reports.healthy(), at(reports.alone())), "compares nothing"),
        ((reports.healthy(), limits.report(limits.busy())), "compares nothing"),
    ],
)
def test_runs_that_cannot_be_shown_are_refused(pair: tuple[AnyReport, AnyReport], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        shown(*pair)


def test_runs_without_a_common_comparison_are_refused() -> None:
    a, b = reports.healthy(), at(reports.healthy())
    half = len(a.comparisons) // 2

    def named(report: Report, comparisons: tuple[Comparison, ...]) -> Report:
        return report.model_copy(update={"comparisons": comparisons})

    with pytest.raises(UsageError, match="no comparison in common"):
        shown(named(a, a.comparisons[:half]), named(b, b.comparisons[half:]))


def test_every_medium_names_machines_dates_versions_and_what_held() -> None:
    result = shown(at(reports.healthy(), host="first"), at(at(reports.healthy()), host="second", redline="0.9"))
    page = SIDES["html"](result).decode()
    text = SIDES["md"](result).decode()
    for made in (page, text):
        for said in ("first", "second", "0.9", "Redline 1.2", "UTC", "held: slower on both", "this is 1.2"):
            assert said in made
    assert "| metric | run 1 first | run 2 second |" in text


def claimed(text: str, state: ClaimState, ratio: float) -> ClaimResult:
    measured = Estimate(value=ratio, low=ratio * 0.9, high=ratio * 1.1, unit="ratio", n=5, method="")
    claim = Claim(id="T2", text=text, of="a.B.c", to="b.B.c", expected="0.8", low=0.72, high=0.88)
    return ClaimResult(claim=claim, state=state, measured=measured)


def test_every_claim_has_what_each_run_says_to_it() -> None:
    healthy = at(reports.healthy())
    one = healthy.model_copy(update={"claims": (claimed("GETs", "agrees", 0.8), claimed("POSTs", "differs", 0.2))})
    other = at(healthy.model_copy(update={"claims": (claimed("GETs", "not known", 0.7),)}))
    result = shown(one, other)
    assert [(row.claim.text, [each and each.state for each in row.results]) for row in result.claims] == [
        ("GETs", ["agrees", "not known"]),
        ("POSTs", ["differs", None]),
    ]
    text = SIDES["md"](result).decode()
    assert "agrees<br>\u00d7 0.800 \\[0.720, 0.880\\]" in text
    assert "no such claim" in text
    assert "Published claims" not in SIDES["md"](shown(healthy, at(healthy))).decode()
