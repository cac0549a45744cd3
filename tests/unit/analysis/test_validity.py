"""Validity belongs to each number: a finding hides what it touches, or leaves bounds; the rest stays in all media."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.analysis.load_result import load_result
from redline.api.amounts import BoundedAmount
from redline.api.results import RunResult
from redline.cli.commands.load import exit_code
from redline.errors import NotKnownError
from redline.findings import RULES, touched_by
from redline.findings.rules import EVERYTHING
from redline.model import (
    CellReport,
    Closed,
    Finding,
    Grade,
    Load,
    Metric,
    Numbers,
    Open,
    Report,
    Think,
    Verdict,
)
from redline.model.load_result import LoadResult
from redline.model.percentile import Effect
from redline.quantities import duration
from redline.render import RENDERERS, summary, terminal
from redline.report.load import load_section
from redline.report.outcomes import outcomes
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.loads import load_of
from tests.fakes.recordings import (
    MEASURE_NS,
    SATURATE,
    STEADY,
    simulated_cell,
    simulated_recording,
    simulated_run,
    with_trials,
)

LATE = replace(GOOD, lateness_ns=150_000.0)
LATE_TAIL = replace(GOOD, lateness_ns=60_000.0)
"""More than half of p99 is lateness, and less than half of p50."""
TAIL = (Metric.P99, Metric.P999)
SURE = (Metric.THROUGHPUT, Metric.RECEIVED, Metric.CPU_PER_REQUEST, Metric.MEMORY)


def report_of(behaviour: Behaviour, load: Load = STEADY, *servers: str) -> Report:
    names = servers or ("rust.hyper",)
    run = simulated_run(dict.fromkeys(names, GOOD), loads=(load,), ceiling=None)
    return build_report(with_trials(run, dict.fromkeys(range(5 * len(names)), behaviour)))


def cell_of(behaviour: Behaviour, load: Load = STEADY) -> CellReport:
    (cell,) = report_of(behaviour, load).cells
    return cell


def loaded(behaviour: Behaviour, load: Load = STEADY) -> tuple[LoadResult, str]:
    """The result of a load, and what its command prints of it."""
    cell = simulated_cell(load=load)
    judged = load_of(cell, simulated_recording(cell, behaviour))
    console = Console(file=io.StringIO(), width=200)
    return load_result(judged), terminal.render(
        [load_section(judged, "http://127.0.0.1:8080/", whole=True)], console
    ).plain


def test_every_invalid_rule_says_what_it_leaves_of_which_numbers() -> None:
    numbers, effects = set(get_args(Numbers)), set(get_args(Effect))
    for rule in RULES.values():
        if rule.invalid is not None:
            assert set(rule.touches) <= numbers, rule.kind
            assert set(rule.touches.values()) <= effects, rule.kind
            # One follows from the others; the other says itself which percentiles it leaves.
            assert rule.touches or rule.kind in ("too-few-trials", "late-reads"), rule.kind
    assert RULES["of-another-version"].touches == EVERYTHING


def test_lateness_leaves_bounds_of_what_it_lengthens_and_all_other_numbers() -> None:
    cell = cell_of(LATE)
    assert not cell.valid
    assert set(cell.estimates) == set(SURE)
    assert cell.counts.due == 25_000
    good = cell_of(GOOD)
    for metric in SURE:
        assert cell.estimates[metric].value == pytest.approx(good.estimates[metric].value, rel=0.05)
    service = {point.q: point.ns for point in cell.service_percentiles}
    for metric, q in ((Metric.P50, 0.5), (Metric.P99, 0.99)):
        bound = cell.bounds[metric]
        assert bound.finding == "send-lateness"
        assert bound.at_least is not None
        assert bound.at_most is not None
        assert service[q] <= bound.at_least <= bound.at_most
        point = next(point for point in cell.response_percentiles if point.q == q)
        assert (point.bound, point.ns, point.at_least_ns) == ("at most", bound.at_most, bound.at_least)


def test_percentiles_that_lateness_hardly_lengthens_stay_numbers() -> None:
    cell = cell_of(LATE_TAIL)
    assert not cell.valid
    assert set(TAIL) <= set(cell.bounds)
    assert Metric.P50 in cell.estimates
    assert Metric.P50 not in cell.bounds
    assert cell.estimates[Metric.P50].interval is not None


def test_a_service_time_bounds_nothing_where_requests_went_out_in_bunches() -> None:
    """They wait for each other then, as they would not have if each had been sent when it was due."""
    fast = Load(name="fast", shape=Open(rate_per_s=200_000, connections=64), duration_ns=MEASURE_NS)
    cell = cell_of(LATE, fast)
    assert "bunched-sends" in {finding.kind for finding in cell.findings}
    bound, service = cell.bounds[Metric.P50], {point.q: point.ns for point in cell.service_percentiles}
    assert bound.at_least is not None
    assert bound.at_least < service[0.5]


def test_users_who_think_have_no_bound_where_the_client_is_late() -> None:
    thinking = Load(name="think", shape=Closed(users=8, think=Think(mean_ns=1_000_000)), duration_ns=MEASURE_NS)
    late = Finding(kind="send-lateness", grade=Grade.INVALID, message="Late.", advice="", cell_id="a")
    for load, leaves in ((thinking, "unknown"), (STEADY, "at most")):
        touched = touched_by(simulated_cell(load=load), [late])
        assert {numbers: touch.leaves for numbers, touch in touched.items()} == {"response times": leaves}


def test_bounds_from_both_sides_show_nothing_unless_the_client_alone_missed_the_rate() -> None:
    cell = simulated_cell(load=STEADY)

    def found(*kinds: str) -> dict[str, str]:
        findings = [Finding(kind=k, grade=Grade.INVALID, message=k, advice="", cell_id="a") for k in kinds]
        return {numbers: touch.leaves for numbers, touch in touched_by(cell, findings).items()}

    assert found("rate-missed") == {
        "response times": "at least",
        "service times": "at least",
        "message times": "at least",
    }
    assert found("send-lateness", "rate-missed") == {"response times": "at most"}
    assert found("send-lateness", "errors")["response times"] == "unknown"
    assert found("errors", "backlog")["response times"] == "unknown"
    assert set(found("littles-law", "send-lateness").values()) == {"unknown"}


@pytest.mark.parametrize(
    ("behaviour", "load", "throughput", "p99"),
    [
        (replace(GOOD, achieved=0.9), STEADY, "4.50 k/s", "at least"),
        (replace(GOOD, outcomes={"reset": 400}), STEADY, "4.60 k/s", "at least"),
        (replace(GOOD, outcomes={"malformed": 1}), STEADY, "not known", "not known"),
        (replace(GOOD, exhausted=400, outcomes={"connect": 400}), STEADY, "at least 4.60 k/s", "not known"),
    ],
    ids=["rate-missed", "errors", "wrong-answers", "exhausted"],
)
def test_what_other_findings_leave_of_a_load(behaviour: Behaviour, load: Load, throughput: str, p99: str) -> None:
    result, text = loaded(behaviour, load)
    assert not result.valid
    last = next(line for line in text.splitlines() if line.startswith("throughput"))
    assert last.startswith(f"throughput  {throughput}, ")
    assert f"p99 {p99}" in last
    ok = result.counts.outcomes.ok
    assert f"outcomes  {ok:,} ok" in text


def test_a_load_prints_what_is_sure_with_the_service_time_beside_the_hint() -> None:
    _, text = loaded(LATE)
    assert "throughput  5.00 k/s, p50 at most 184 µs (at least 178 µs), p99 at most 452 µs (at least 438 µs)" in text
    assert "outcomes  5,000 ok" in text
    assert "read the service time" in text
    heads, *rows = text.splitlines()[2:]
    assert heads.split() == ["response", "service", "engine", "lateness"]
    p99 = next(row for row in rows if row.split()[0] == "p99")
    assert p99.split()[:5] == ["p99", "≤", "452", "µs", "438"]
    assert "█" not in text  # a histogram would show lateness as the server's time
    assert "≤" not in loaded(GOOD)[1]


def test_json_of_a_load_marks_bounds_and_has_no_hidden_number() -> None:
    result, _ = loaded(LATE)
    document = json.loads(result.model_dump_json())
    assert document["valid"] is False
    assert document["throughput"]["value"] == pytest.approx(5000)
    assert "mean" not in document
    p99 = next(point for point in document["response"] if point["q"] == 0.99)
    assert p99["bound"] == "at most"
    assert document["bounds"]["p99"]["at_most"] == p99["ns"]
    assert document["bounds"]["p99"]["at_least"] == p99["at_least_ns"]
    assert document["bounds"]["p99"]["finding"] == "send-lateness"
    wrong, _ = loaded(replace(GOOD, outcomes={"malformed": 1}))
    hidden = json.loads(wrong.model_dump_json())
    assert (hidden["throughput"], hidden["response"], hidden["service"], "mean" in hidden) == (None, [], [], False)
    assert hidden["counts"]["outcomes"]["ok"] == 4999
    assert LoadResult.model_validate_json(result.model_dump_json()) == result


def test_every_medium_of_a_run_has_the_numbers_that_are_sure_and_the_bounds() -> None:
    report = report_of(LATE)
    (cell,) = report.cells
    times = {point.q: duration(point.ns) for point in cell.service_percentiles}
    service = f"p50 {times[0.5]}, p90 {times[0.9]}, p99 {times[0.99]}"
    text = " ".join(str(RunResult(report, None)).split())
    markdown, page = RENDERERS["md"](report).decode(), RENDERERS["html"](report).decode()
    for shown in (text, markdown, page):
        assert "5.00 k/s" in shown
        assert "≤ 468 µs" in shown
        assert "has no valid result" not in shown
    for shown in (text, markdown):
        assert "are upper bounds (≤): At p99 the engine took up requests" in shown
        assert f"service time {service}" in shown
    assert f'title="{cell.bounds[Metric.P99].reason}' in page
    rows = {row["metric"]: row for row in csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode(), newline=""))}
    assert float(rows["throughput"]["value"]) == cell.estimates[Metric.THROUGHPUT].value
    p99 = rows["p99"]
    assert (p99["value"], p99["hidden_by"]) == ("", "send-lateness")
    assert (float(p99["at_least"]), float(p99["at_most"])) == (
        cell.bounds[Metric.P99].at_least,
        cell.bounds[Metric.P99].at_most,
    )
    assert float(rows["service-p99"]["value"]) == next(p.ns for p in cell.service_percentiles if p.q == 0.99)
    document = json.loads(RENDERERS["json"](report))["cells"][0]
    assert "p99" not in document["estimates"]
    assert document["bounds"]["p99"]["at_most"] == cell.bounds[Metric.P99].at_most
    (outcome,) = outcomes(report)
    assert outcome.state == "passed"
    assert "p99 at most" in outcome.text


def test_python_compares_by_the_bounds() -> None:
    result = RunResult(report_of(LATE), None)
    p99 = result.p99
    assert p99 < "500us"
    assert not p99 > "500us"
    assert not p99 < "400us"
    assert p99 > "400us"
    assert str(p99).startswith("at most ")
    for undecided in (lambda: p99 < "460us", lambda: p99 >= "460us", lambda: p99 == "460us", lambda: p99.value):
        with pytest.raises(NotKnownError, match=r"p99.* is not known: it is at most .* At p99 the engine") as refused:
            undecided()
        assert "service time" in refused.value.hint
    assert p99.at_most < "500us"
    assert p99.at_least > "400us"
    assert result.throughput > "4900/s"
    assert result.errors == 0
    assert result.cpu_per_request > "1us"
    assert not result.valid


@pytest.mark.parametrize(
    ("low", "high", "less", "less_or_same", "more"),
    [
        (1e6, 2e6, None, None, None),
        (1e6, 1.5e6, None, True, False),
        (1.5e6, 2e6, False, None, None),
        (None, 1.4e6, True, True, False),
        (1.6e6, None, False, False, True),
        (None, 2e6, None, None, None),
    ],
)
def test_what_both_ends_of_a_bound_decide(
    low: float | None, high: float | None, less: bool | None, less_or_same: bool | None, more: bool | None
) -> None:
    amount = BoundedAmount("p99", "ns", (low, high), ("Late.", "free a core"))
    pairs: list[tuple[Callable[[], bool], bool | None]] = [
        (lambda: amount < "1.5ms", less),
        (lambda: amount <= "1.5ms", less_or_same),
        (lambda: amount > "1.5ms", more),
        (lambda: amount < "1.5ms", less),
        (lambda: amount >= "1.5ms", None if less is None else not less),
    ]
    for compare, expected in pairs:
        if expected is None:
            with pytest.raises(NotKnownError):
                compare()
        else:
            assert compare() is expected


def test_a_comparison_by_cpu_per_request_remains_where_latency_is_not_known() -> None:
    report = report_of(LATE, STEADY, "rust.hyper", "rust.axum")
    compared = {comparison.metric: comparison for comparison in report.comparisons}
    assert compared[Metric.CPU_PER_REQUEST].verdict is Verdict.EQUIVALENT
    assert compared[Metric.P99].ratio is None
    assert compared[Metric.P99].refused.startswith("p99 of the cell is not known: it is at most ")
    assert ". At p99 the engine took up requests" in compared[Metric.P99].refused


def test_what_is_known_of_a_server_that_failed_is_not_compared() -> None:
    report = report_of(replace(GOOD, outcomes={"reset": 400}), STEADY, "rust.hyper", "rust.axum")
    assert all(cell.shows_numbers for cell in report.cells)
    assert {comparison.ratio for comparison in report.comparisons} == {None}
    assert {outcome.state for outcome in outcomes(report) if outcome.name == "result"} == {"unknown"}


def test_estimates_of_earlier_reports_that_do_not_say_what_is_known_stay_hidden() -> None:
    (cell,) = report_of(GOOD).cells
    earlier = cell.model_copy(update={"valid": False})
    assert earlier.known == {}
    assert not earlier.shows_numbers


def test_the_exit_code_of_a_late_load_is_that_of_one_that_was_measured() -> None:
    assert exit_code(loaded(LATE)[0]) == 0
    assert exit_code(loaded(replace(GOOD, achieved=0.9))[0]) == 1
    assert exit_code(loaded(replace(GOOD, outcomes={"malformed": 1}))[0]) == 1
    assert exit_code(loaded(replace(LATE, outcomes={"reset": 400}))[0]) == 1


def test_a_summary_says_all_of_it_without_a_page() -> None:
    console = Console(file=io.StringIO(), width=120)
    text = terminal.render(list(summary(report_of(LATE_TAIL, STEADY))), console).plain
    assert "p99 at most" in text
    assert "invalid:" not in text.split("Results")[1].split("Findings")[0]


def test_users_who_think_are_said_to_wait_and_late_answers_are_not_named_in_a_closed_load() -> None:
    thinking = Load(name="think", shape=Closed(users=8, think=Think(mean_ns=1_000_000)), duration_ns=MEASURE_NS)
    result, _ = loaded(GOOD, thinking)
    assert (result.users, result.users_waiting) == (8, None)  # the fake's rate breaks Little's law
    paced = Load(name="paced", shape=Closed(users=20, pace_per_s=250), duration_ns=MEASURE_NS)
    result, text = loaded(GOOD, paced)
    recording = simulated_recording(simulated_cell(load=paced), GOOD)
    assert recording.traffic is not None
    waiting = recording.traffic.service.count * recording.traffic.service.mean_ns / 1e9
    assert result.users_waiting == pytest.approx(waiting / recording.traffic.seconds)
    assert f"users  {waiting:.2g} of 20 waited for an answer, on average" in text
    assert "answered after the end" not in text
    saturated, text = loaded(GOOD, SATURATE)
    assert saturated.users is None
    assert "on average" not in text
