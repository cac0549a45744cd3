"""What CI servers read: JUnit's XML, annotations, and the numbers of tools that follow benchmarks."""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from redline.analysis import build_report
from redline.model import Estimate, Metric, Report, Verdict
from redline.model.limits import AnyReport, LimitReport
from redline.render import RENDERERS, ci
from redline.report.outcomes import Outcome, outcomes
from tests import golden
from tests.fakes import limits, reports, studies
from tests.fakes.compared import Cost, compared_run

ALL: list[Callable[[], AnyReport]] = [
    reports.healthy,
    reports.alone,
    reports.doubtful,
    reports.skipping,
    reports.died,
    reports.nasty,
    studies.small,
    limits.by_hand,
    limits.whole,
    limits.nasty,
]
PER_REQUEST = Metric.CPU_PER_REQUEST


@pytest.fixture(scope="module")
def three() -> Report:
    """B is slower in `slow`, and the same in `same`."""
    return build_report(compared_run({"slow": Cost(1.1), "same": Cost(1.0), "quick": Cost(0.9)}))


def suite(report: AnyReport) -> ET.Element:
    (only,) = ET.fromstring(RENDERERS["junit"](report))
    return only


def document(form: str, report: AnyReport) -> Any:
    return json.loads(RENDERERS[form](report))


def as_read(report: Report, low: float, high: float, *, verdict: Verdict = Verdict.INCONCLUSIVE) -> Report:
    """The first comparison alone, in CPU per request, with another ratio and verdict."""
    first = next(each for each in report.comparisons if each.metric is PER_REQUEST)
    ratio = Estimate(value=(low * high) ** 0.5, low=low, high=high, unit="ratio", n=6, method="t")
    changed = first.model_copy(update={"ratio": ratio, "verdict": verdict, "matters": None})
    return report.model_copy(update={"comparisons": (changed,)})


def states(report: AnyReport) -> dict[str, str]:
    return {outcome.name: outcome.state for outcome in outcomes(report)}


@pytest.mark.parametrize(
    ("form", "name"), [("junit", "junit.xml"), ("bmf", "bmf.json"), ("benchmark", "benchmark.json")]
)
def test_golden(form: str, name: str) -> None:
    golden.check(name, RENDERERS[form](reports.skipping()))


@pytest.mark.parametrize("make", ALL)
def test_every_outcome_is_a_test_case_with_a_name_of_its_own(make: Callable[[], AnyReport]) -> None:
    report = make()
    found, cases = outcomes(report), suite(report).findall("testcase")
    assert len(cases) == len(found) > 0
    assert len({(case.get("classname"), case.get("name")) for case in cases}) == len(cases)
    counts = Counter(outcome.state for outcome in found)
    assert suite(report).get("failures") == str(counts["failed"])
    assert suite(report).get("errors") == str(counts["unknown"])
    assert suite(report).get("skipped") == str(counts["undecided"])
    assert suite(report).get("tests") == str(len(found))
    assert all("".join(case.itertext()).strip() for case in cases)


def test_what_is_slower_fails_and_says_by_how_much(three: Report) -> None:
    assert states(three) == {"slow · load": "failed", "same · load": "passed", "quick · load": "passed"}
    (failure,) = suite(three).iter("failure")
    assert re.match(r"slow: B needs 1\d% more CPU per request than A \[", failure.text or "")
    assert failure.get("message") == failure.text


def test_a_difference_that_does_not_matter_passes(three: Report) -> None:
    report = as_read(three, 1.008, 1.012, verdict=Verdict.SLOWER)
    small = report.comparisons[0].model_copy(update={"matters": False})
    assert set(states(report.model_copy(update={"comparisons": (small,)})).values()) == {"passed"}


def test_what_is_not_decided_is_skipped_and_says_what_would_decide_it(three: Report) -> None:
    report = as_read(three, 0.97, 1.03)
    timed = report.model_copy(update={"run": report.run.model_copy(update={"seconds": 120.0})})
    (skipped,) = suite(timed).iter("skipped")
    assert "cannot be distinguished; " in (skipped.text or "")
    assert "; about 5 min in place of 2 min would decide it, if the ratio stays" in (skipped.text or "")


def test_what_could_not_be_judged_is_an_error_and_what_was_not_warm_is_undecided(three: Report) -> None:
    report = as_read(three, 0.9, 1.2)
    (comparison,) = report.comparisons
    assert comparison.duet is not None
    cold = comparison.model_copy(update={"duet": comparison.duet.model_copy(update={"unsettled": "they were cold"})})
    (skipped,) = suite(report.model_copy(update={"comparisons": (cold,)})).iter("skipped")
    assert ": they were cold; A against itself" in (skipped.text or "")
    unknown = cold.model_copy(update={"verdict": None})
    assert len(list(suite(report.model_copy(update={"comparisons": (unknown,)})).iter("error"))) == 1
    assert "invalid" in RENDERERS["junit"](reports.doubtful()).decode()


def test_a_search_has_a_case_for_every_limit_and_comparison() -> None:
    report = limits.by_hand()
    found = outcomes(report)
    answers = sum(len(cell.limits) or 1 for cell in report.cells)
    assert len(found) == answers + len(report.comparisons) + len(report.skipped)
    assert any("rust.hyper meets good up to 880/s" in outcome.text for outcome in found)


@pytest.mark.parametrize("make", ALL)
def test_an_annotation_is_a_single_line(make: Callable[[], AnyReport]) -> None:
    report = make()
    lines = RENDERERS["annotations"](report).decode().splitlines()
    assert len(lines) == len(outcomes(report))
    assert all(re.fullmatch(r"::(warning|notice) title=[^:,]+::.+", line) for line in lines)
    assert lines == sorted(lines, key=lambda line: line.startswith("::notice"))


def test_an_annotation_holds_no_command_of_its_own() -> None:
    made = ci.annotations([Outcome("a,b::c", "100%\n::error::x", "failed", "one\n::stop-commands::y")]).decode()
    assert made.count("\n") == 1
    assert "%0A::stop-commands::y" in made
    assert made.startswith("::warning title=a%2Cb%3A%3Ac%2C 100%25%0A%3A%3Aerror%3A%3Ax::")


@pytest.mark.parametrize("make", ALL)
def test_numbers_of_benchmarks_lie_in_their_intervals(make: Callable[[], AnyReport]) -> None:
    for measures in document("bmf", make()).values():
        for number in measures.values():
            assert set(number) <= {"value", "lower_value", "upper_value"}
            assert number.get("lower_value", -1.0) <= number["value"] <= number.get("upper_value", float("inf"))


def test_a_benchmark_is_a_cell_or_a_ratio(three: Report) -> None:
    made = document("bmf", three)
    assert made["B/slow/load over A"]["cpu-per-request-ratio"]["value"] == pytest.approx(1.1, rel=0.02)
    assert set(made) >= {"A/slow/load", "B/slow/load"}
    assert not [name for name in document("bmf", reports.doubtful()) if "rust.axum/PostBytes/steady" in name]


def test_the_limit_of_a_search_is_the_middle_of_its_interval() -> None:
    made = document("bmf", limits.by_hand())
    limit = next(measures["limit"] for name, measures in made.items() if name.startswith("rust.hyper+http2/"))
    assert (limit["lower_value"], limit["upper_value"]) == (880.0, 920.0)
    assert limit["value"] == pytest.approx((880 * 920) ** 0.5)
    assert isinstance(limits.by_hand(), LimitReport)
    assert document("benchmark", limits.by_hand()) == []


def test_a_search_with_several_loads_has_the_limits_of_all() -> None:
    first = limits.by_hand().cells[0]
    slugs = [f"rust.hyper.SimpleGet.{load}" for load in ("few", "many")]
    report = limits.report(*(first.model_copy(update={"slug": slug}) for slug in slugs))
    assert list(document("bmf", report)) == [f"{slug}/good" for slug in slugs]


def test_only_what_is_better_when_smaller_is_in_the_list(three: Report) -> None:
    made = document("benchmark", three)
    assert all(set(entry) <= {"name", "unit", "value", "range"} for entry in made)
    names = [entry["name"] for entry in made]
    assert len(set(names)) == len(names)
    assert "B/slow/load over A cpu-per-request-ratio" in names
    assert not [name for name in names if "throughput" in name]
