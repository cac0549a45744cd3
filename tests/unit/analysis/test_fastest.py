"""Who is fastest of three servers: said only where the comparisons tell all others apart from the first."""

import math
from collections.abc import Mapping

import pytest

from redline.analysis.fastest import leads
from redline.model import Comparison, Estimate, Metric, Report, Verdict
from redline.model.estimate import DuetComparison
from redline.report.answer import TITLE, run_answer
from redline.report.fastest import fastest_lines
from tests.fakes import reports
from tests.fakes.report_cells import cell, comparison

LOAD = "closed, 64 users, 1s"


def field(ratios: Mapping[str, tuple[float, float]], load: str = "saturate", workloads: int = 1) -> Report:
    """`go` and others with these ratios of the load's metric to it, and half of the relative width of the interval."""
    metric = Metric.THROUGHPUT if load == "saturate" else Metric.P99
    cells, compared = [], []
    for number in range(workloads):
        base = cell("go", f"Get{number}", load, rate=28_100, p50_us=400, baseline="go")
        cells.append(base)
        for name, (ratio, half) in ratios.items():
            cells.append(cell(name, f"Get{number}", load, rate=28_100 * ratio, p50_us=400, baseline="go"))
            compared.append(comparison(metric, cells[-1].cell_id, base.cell_id, ratio, half))
    return reports.report(cells, tuple(compared))


def said(report: Report) -> list[str]:
    return ["".join(span.text for span in line) for line in fastest_lines(report)]


def test_the_baseline_is_fastest_and_by_how_much() -> None:
    report = field({"node": (0.48, 0.05), "python": (0.1, 0.02)})
    assert said(report) == [f"go is fastest: it answers 28.1 k/s, 2.1 times node [2.0, 2.2] ({LOAD})"]
    (answer,) = run_answer(report)
    assert answer.title == TITLE
    assert "".join(span.text for span in answer.blocks[0].lines[0]) == said(report)[0]  # type: ignore[union-attr]


def test_over_a_common_baseline_the_ends_of_both_intervals_add_up() -> None:
    (lead,) = leads(field({"rust": (2.0, 0.1), "node": (0.5, 0.1), "java": (1.5, 0.02)}))
    assert (lead.first.server, lead.second.server, lead.is_sure) == ("rust", "java", True)
    assert lead.ratio == pytest.approx((2 / 1.5, 1.8 / 1.53, 2.2 / 1.47))
    (text,) = said(field({"rust": (2.0, 0.1), "node": (0.5, 0.1), "java": (1.5, 0.02)}))
    assert text.startswith("rust is fastest: it answers 56.2 k/s, 33.3% more than java [17.6, 49.7]")


@pytest.mark.parametrize(
    ("rust", "answer"),
    [
        (
            (1.01, 0.05),
            (
                "which server is fastest is not known: rust and go cannot be distinguished in throughput, "
                "and python is behind"
            ),
        ),
        (
            (1.001, 0.005),
            "no server is fastest: rust and go are the same within 2% in throughput, and python is behind",
        ),
    ],
)
def test_nobody_is_fastest_of_what_is_not_told_apart(rust: tuple[float, float], answer: str) -> None:
    (text,) = said(field({"rust": rust, "python": (0.1, 0.02)}))
    assert text == f"{answer} ({LOAD})"


def test_of_many_that_cannot_be_distinguished_only_the_first_is_named() -> None:
    (text,) = said(field({f"server{n}": (1.0, 0.05) for n in range(1, 14)}))
    assert text == (
        f"which server is fastest is not known: go and 13 others cannot be distinguished in throughput ({LOAD})"
    )
    (five,) = said(field({f"server{n}": (1.0, 0.05) for n in range(1, 4)}))
    assert "go, server1, server2 and server3 cannot" in five


def test_two_that_are_only_compared_with_a_third_have_to_be_apart_by_their_intervals() -> None:
    (lead,) = leads(field({"rust": (1.5, 0.05), "zig": (1.4, 0.05)}))
    assert (lead.first.server, [other.server for other in lead.unknown]) == ("rust", ["zig"])


def test_a_small_lead_is_said_in_percent() -> None:
    (text,) = said(field({"rust": (1.05, 0.01), "node": (0.5, 0.01)}))
    assert "5.0% more than go [4.0, 6.1]" in text.replace("[4.0, 6.0]", "[4.0, 6.1]")


def test_in_an_open_load_the_lowest_p99_is_fastest() -> None:
    (text,) = said(field({"node": (2.0, 0.1), "python": (4.0, 0.1)}, load="steady"))
    assert text.startswith("go is fastest: its p99 is ")
    assert "node's is 2.0 times as high [1.8, 2.2]" in text


def test_of_many_workloads_it_is_counted() -> None:
    report = field({"node": (0.5, 0.01), "rust": (1.5, 0.01)}, workloads=5)
    assert said(report) == ["Fastest, of 5 workloads: rust in 5"]


@pytest.mark.parametrize(("rust", "answer"), [((1.01, 0.05), "not known in 5"), ((1.001, 0.005), "several alike in 5")])
def test_of_many_workloads_those_without_a_fastest_are_counted(rust: tuple[float, float], answer: str) -> None:
    report = field({"rust": rust, "python": (0.1, 0.02)}, workloads=5)
    assert said(report) == [f"Fastest, of 5 workloads: {answer}"]


def test_of_two_servers_or_without_a_common_baseline_nothing_is_said() -> None:
    assert said(field({"node": (0.5, 0.01)})) == []
    assert said(reports.alone()) == []


def test_what_cannot_be_compared_is_named() -> None:
    report = field({"node": (0.5, 0.01), "rust": (1.5, 0.01), "c": (2.0, 0.01)})
    *kept, last = report.comparisons
    refused = last.model_copy(update={"ratio": None, "verdict": None, "refused": "it failed"})
    (text,) = said(report.model_copy(update={"comparisons": (*kept, refused)}))
    assert text.startswith("rust is fastest of those compared: ")
    assert text.endswith("; c cannot be compared")


def test_a_level_that_is_not_valid_is_not_said() -> None:
    report = field({"node": (0.48, 0.05), "python": (0.1, 0.02)})
    first, *others = report.cells
    doubted = first.model_copy(update={"valid": False})
    assert said(report.model_copy(update={"cells": (doubted, *others)})) == [
        f"go is fastest: it answers 2.1 times node [2.0, 2.2] ({LOAD})"
    ]
    report = field({"node": (2.0, 0.1), "python": (4.0, 0.1)}, load="steady")
    first, *others = report.cells
    doubted = first.model_copy(update={"valid": False})
    (text,) = said(report.model_copy(update={"cells": (doubted, *others)}))
    assert text.startswith("go is fastest: the p99 of node is 2.0 times as high [1.8, 2.2] (")


def judged(
    verdict: Verdict | None, *, primary: bool, duet: bool, control: Estimate | None = None, workloads: int = 1
) -> Report:
    report = field({"node": (0.5, 0.01), "python": (0.1, 0.01)}, workloads=workloads)
    about = DuetComparison(starts=3, between_sd=None, blocks_se=None, control=control, alone=None, findings=())

    def changed(compared: Comparison) -> Comparison:
        edit = {"verdict": verdict, "primary": primary, "duet": about if duet else None}
        return compared.model_copy(update=edit)

    return report.model_copy(update={"comparisons": tuple(map(changed, report.comparisons))})


def test_without_a_verdict_nobody_is_said_to_be_fastest() -> None:
    for report in (judged(None, primary=False, duet=False), judged(None, primary=True, duet=True)):
        assert said(report)[0].startswith("which server is fastest is not known")
    undecided = judged(Verdict.INCONCLUSIVE, primary=True, duet=True)
    assert said(undecided)[0].startswith("which server is fastest is not known")


def test_rates_by_duets_without_a_verdict_are_described_in_grey_with_their_own_control() -> None:
    report = judged(None, primary=False, duet=True, control=itself(1.1, 0.02))
    (line,) = fastest_lines(report)
    assert {span.look for span in line} == {"dim"}
    assert said(report)[0].startswith("go is first in throughput, which has no verdict: it answers 28.1 k/s, 2.0 times")
    assert said(report)[0].endswith("; go against itself: 10.0% [8.0, 12.0]")


def test_a_rate_that_differs_by_no_more_than_its_control_tells_nothing() -> None:
    """The baseline against itself is 2.2 times as fast: half as fast is no more than that."""
    report = judged(None, primary=False, duet=True, control=itself(2.2, 0.1))
    (text,) = said(report)
    assert text.startswith("which server is fastest is not known: go and node cannot be distinguished")
    assert text.endswith("; go against itself: 120% [110, 130]")


def test_counts_of_many_workloads_say_that_there_is_no_verdict() -> None:
    (line,) = fastest_lines(judged(None, primary=False, duet=True, workloads=5))
    assert {span.look for span in line} == {"dim"}
    assert line[0].text == "First in throughput, which has no verdict, of 5 workloads"


def itself(value: float, half: float) -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, unit="ratio", n=3, method="t")


def test_a_lead_is_the_same_whichever_server_is_the_baseline() -> None:
    (one,) = leads(field({"node": (0.5, 0.05), "python": (0.1, 0.05)}))
    assert math.prod(one.ratio[1:]) ** 0.5 == pytest.approx(one.ratio[0], rel=0.01)
