"""Advice to read a number stands only where that number does: in each command and each renderer."""

import re
from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.cli.show import Terminal
from redline.findings import RULES
from redline.model import Report
from redline.model.limits import LimitReport
from redline.render import RENDERERS, summary, terminal
from redline.running.views import search_report
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_run, with_trials
from tests.fakes.searched import bench_in
from tests.unit.analysis.test_validity import loaded

NAMED = {
    "service time": r"service",
    "CPU per request": r"CPU per request|cpu_per_request|cpu per request",
    "throughput": r"throughput",
    "response time": r"p50|p99",
    "pauses": r"pause",
    "scatter": r"±|low",
    "ratio": r"ratio",
    "single trials": r"trial",
}
"""The numbers that advice names, and how outputs name them."""
IN_SEARCHES = {"response time"}
"""What the report of a search has of them; it has rates, too."""
LATE = (20_000.0, 30_000.0, 60_000.0, 150_000.0)
"""A note, a warning, and two that are invalid."""


def named(advice: str) -> set[str]:
    """The numbers that an advice tells to read."""
    return {number for number in NAMED if re.search(rf"\b{number}", advice, re.IGNORECASE)}


def test_every_advice_that_says_read_names_a_number_that_is_known_here() -> None:
    """A new advice adds its number to the list above, and with it a test that it stands there."""
    others = {"output", "rate", "number"}  # no number of a report; the rate that was asked for; the number itself
    for rule in RULES.values():
        for said in re.findall(r"\b[Rr]ead (?:the |in the )?([\w' ]+)", rule.advice if rule.text else ""):
            assert named(said) or any(word in said for word in others) or "end of its output" in said, rule.kind


@pytest.mark.parametrize("kind", [rule.kind for rule in RULES.values() if rule.probes])
def test_the_advice_of_a_search_names_no_number_that_searches_lack(kind: str) -> None:
    assert named(RULES[kind].advice_without_service_times) <= IN_SEARCHES


def output(report: Report | LimitReport, form: str) -> str:
    if form != "terminal":
        return RENDERERS[form](report).decode()
    rendered = terminal.render(summary(report), Terminal())
    assert rendered is not None
    return rendered.plain


@pytest.fixture(scope="module")
def late_search(tmp_path_factory: pytest.TempPathFactory) -> LimitReport:
    bench = bench_in(tmp_path_factory.mktemp("late"))
    bench.driver.late = 5
    bench.run()
    return search_report(bench.made.store)


@pytest.mark.parametrize("form", ["terminal", "md", "html", "json", "csv"])
def test_a_search_in_which_the_client_was_late_names_no_service_time(late_search: LimitReport, form: str) -> None:
    said = output(late_search, form)
    assert "send-lateness" in said or form == "csv"
    said = said.replace("Response time runs from when a request was due", "")
    assert "service time" not in said


def late_run(late_ns: float) -> Report:
    run = simulated_run({"rust.hyper": GOOD}, loads=(STEADY,), ceiling=None)
    return build_report(with_trials(run, dict.fromkeys(range(5), replace(GOOD, lateness_ns=late_ns))))


@pytest.mark.parametrize("late_ns", LATE)
@pytest.mark.parametrize("form", ["terminal", "md", "html", "json", "csv"])
def test_a_run_whose_advice_names_the_service_time_shows_it(late_ns: float, form: str) -> None:
    report = late_run(late_ns)
    (cell,) = report.cells
    advice = [finding.advice for finding in cell.findings if "service time" in finding.advice]
    assert advice
    said = output(report, form)
    rest = said
    for text in (*advice, "service time from when it was written"):
        rest = rest.replace(text, "")
    assert "service" in rest or not any(text in said for text in advice), "CSV has no advice"


@pytest.mark.parametrize("late_ns", LATE)
def test_a_load_whose_advice_names_the_service_time_shows_it(late_ns: float) -> None:
    result, said = loaded(replace(GOOD, lateness_ns=late_ns))
    assert re.search(r"p99 .*service|service .*p99|response +service", " ".join(said.split()))
    assert result.service
