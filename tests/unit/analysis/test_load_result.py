"""A load is judged as the only cell of a run: its command, its report and Python have the same numbers."""

import csv
import io
from dataclasses import replace

import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.analysis.load_result import load_result
from redline.api.results import RunResult
from redline.document.blocks import Section
from redline.model import Grade, Metric, Report
from redline.render import RENDERERS, summary, terminal
from redline.report.load import load_section
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.loads import load_of
from tests.fakes.recordings import SATURATE, simulated_run

CUT = replace(GOOD, ended="interrupted", measured=0.2)
SHORT = replace(GOOD, ended="deadline", measured=0.2)


def report_of(behaviour: Behaviour, *, kind: str = "load", checks: int | None = 2) -> Report:
    run = simulated_run({"rust.hyper": behaviour}, trials=1, loads=(SATURATE,), ceiling=None)
    recordings = tuple(recording.model_copy(update={"checks": checks}) for recording in run.recordings)
    manifest = run.manifest.model_copy(update={"kind": kind})
    return build_report(run.model_copy(update={"recordings": recordings, "manifest": manifest}))


def text_of(*sections: Section) -> list[str]:
    return terminal.render(sections, Console(file=io.StringIO(), width=100)).plain.splitlines()


@pytest.mark.parametrize("behaviour", [GOOD, CUT, SHORT, replace(GOOD, outcomes={"malformed": 1})])
def test_the_report_of_a_stored_load_has_what_its_command_shows(behaviour: Behaviour) -> None:
    report = report_of(behaviour)
    run = simulated_run({"rust.hyper": behaviour}, trials=1, loads=(SATURATE,), ceiling=None)
    (recording,), (cell,) = run.recordings, run.manifest.plan.cells.values()
    alone = load_of(cell, recording.checked(2, ""))
    stored = load_result(report.cells[0])
    assert load_result(alone) == stored
    assert stored.sent is not None
    assert stored.sent.check == 2
    assert str(RunResult(report, None)).splitlines() == text_of(load_section(alone))


@pytest.mark.parametrize("behaviour", [GOOD, CUT, SHORT])
def test_a_report_shows_in_a_terminal_all_that_the_command_of_its_load_prints(behaviour: Behaviour) -> None:
    report = report_of(behaviour)
    lines, printed = text_of(*summary(report)), text_of(load_section(report.cells[0], whole=True))
    first = lines.index("Results  closed, 64 users, 1s") + 1
    numbers = lines[first : lines.index("", first)]
    findings = [line for line in printed[len(numbers) :] if not line.startswith("  ")]
    assert printed[: len(numbers)] == numbers
    assert numbers[0].startswith("throughput  ")
    assert all(line.split(": ")[0] in {*Grade} for line in findings)


def test_a_run_of_one_trial_that_is_no_load_has_the_results_of_a_run() -> None:
    text = "\n".join(text_of(*summary(report_of(GOOD, kind="run"))))
    assert "Results\n" in text
    assert "engine lateness" not in text


def test_what_was_measured_until_a_user_ended_a_load_is_known_in_its_report() -> None:
    (cell,) = report_of(CUT).cells
    assert not cell.valid
    assert {Metric.THROUGHPUT, Metric.P50, Metric.P99, Metric.CPU_PER_REQUEST} <= set(cell.known)
    assert RunResult(report_of(CUT), None).throughput > "1000/s"
    for report in (report_of(SHORT), report_of(CUT, kind="run")):
        assert report.cells[0].known == {}


def test_a_load_whose_findings_hide_cpu_and_memory_shows_neither() -> None:
    wrong = load_result(report_of(replace(GOOD, outcomes={"malformed": 1})).cells[0])
    right = load_result(report_of(GOOD).cells[0])
    assert right.server is not None
    assert wrong.server is not None
    assert None not in (right.server.cpu_per_request_ns, right.server.rss_bytes, right.engine_cpu_per_request)
    assert (wrong.server.cpu_per_request_ns, wrong.server.rss_bytes, wrong.engine_cpu_per_request) == (None, None, None)
    assert wrong.server.descriptors == right.server.descriptors


def test_a_load_without_findings_of_its_trial_has_no_finding_about_its_cell() -> None:
    (cell,) = report_of(GOOD).cells
    assert "too-few-trials" in {finding.kind for finding in cell.findings}
    assert "too-few-trials" not in {finding.kind for finding in load_result(cell).findings}


def test_only_a_load_by_itself_has_its_facts_and_earlier_recordings_do_not_say_what_was_sent() -> None:
    assert report_of(GOOD, kind="run").cells[0].load_facts is None
    facts = report_of(GOOD, checks=None).cells[0].load_facts
    assert facts is not None
    assert facts.sent is None


def test_the_page_and_the_csv_of_a_load_have_the_columns_of_wrk() -> None:
    report = report_of(GOOD)
    facts = report.cells[0].load_facts
    assert facts is not None
    assert facts.deviations is not None
    response, rate = facts.deviations.response, facts.deviations.rate
    assert response is not None
    assert rate is not None
    sheet = csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode()))
    rows = {row["metric"]: row for row in sheet}
    assert [float(rows[f"response-{name}"]["value"]) for name in ("mean", "stdev", "max", "within-stdev")] == [
        response.mean,
        response.stdev,
        response.max,
        response.within,
    ]
    assert [float(rows[f"rate-{name}"]["value"]) for name in ("mean", "stdev", "max", "within-stdev")] == [
        rate.mean,
        rate.stdev,
        rate.max,
        rate.within,
    ]
    assert [rows[name]["unit"] for name in ("response-stdev", "rate-stdev", "rate-within-stdev")] == [
        "ns",
        "1/s",
        "ratio",
    ]
    page = RENDERERS["html"](report).decode()
    assert 'id="deviations"' in page
    assert f"{response.within:.1%}" in page


def test_a_run_has_no_columns_of_wrk() -> None:
    report = report_of(GOOD, kind="run")
    assert "response-stdev" not in RENDERERS["csv"](report).decode()
    assert 'id="deviations"' not in RENDERERS["html"](report).decode()
