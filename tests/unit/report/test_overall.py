"""The headline over all workloads: what it says rests on verdicts, and its range holds all of them."""

from collections.abc import Sequence

import pytest

from redline.model import Comparison, Metric, Report, Verdict
from redline.report.overall import headline_lines, study_lines
from tests.fakes import reports, studies
from tests.fakes.report_cells import comparison

CPU, RATE = Metric.CPU_PER_REQUEST, Metric.THROUGHPUT
HYPER, AXUM = "rust.hyper", "rust.axum"


def ratios(metric: Metric, values: Sequence[float], relative: float = 0.01) -> list[Comparison]:
    """Comparisons of axum with hyper, in as many workloads of the report as there are values."""
    cells = {(cell.server, cell.scenario, cell.load): cell.cell_id for cell in reports.healthy().cells}
    workloads = [(scenario, load) for server, scenario, load in cells if server == AXUM]
    return [
        comparison(metric, cells[AXUM, *where], cells[HYPER, *where], value, relative)
        for where, value in zip(workloads, values, strict=False)
    ]


def said(*comparisons: Comparison) -> list[str]:
    report = reports.healthy().model_copy(update={"comparisons": comparisons})
    return ["".join(span.text for span in text) for text in headline_lines(report)]


def test_alike_in_all_workloads() -> None:
    (text,) = said(*ratios(CPU, [1.12, 1.17, 1.15, 1.14]), *ratios(RATE, [0.86, 0.87]))
    assert text == (
        "rust.axum needs 12 to 17% more CPU per request than rust.hyper [11, 18] in all 4 workloads, "
        "and answers 13 to 14% fewer requests than rust.hyper [12, 15] in both workloads with a verdict on it"
    )


def test_most_workloads_are_counted_and_fewer_are_no_headline() -> None:
    assert said(*ratios(CPU, [0.88, 0.9, 0.89, 1.0])) == [
        "rust.axum needs 10 to 12% less CPU per request than rust.hyper [9.1, 13] in 3 of 4 workloads"
    ]
    assert said(*ratios(CPU, [0.88, 0.9, 1.2, 1.0])) == []


@pytest.mark.parametrize(
    ("metric", "values", "text"),
    [
        (CPU, [2.0, 3.0], "needs 2.0 to 3.0 times as much CPU per request as rust.hyper [2.0, 3.0] in both workloads"),
        (CPU, [0.5, 0.25], "needs 2.0 to 4.0 times less CPU per request than rust.hyper [2.0, 4.0] in both workloads"),
        (RATE, [2.0, 2.0], "answers 2.0 times as many requests as rust.hyper [2.0, 2.0] in both workloads"),
    ],
)
def test_large_differences_are_said_as_factors(metric: Metric, values: list[float], text: str) -> None:
    assert said(*ratios(metric, values, relative=0.001)) == [f"rust.axum {text}"]


def test_equivalent_in_all_workloads() -> None:
    assert said(*ratios(CPU, [1.0, 1.001, 1.002, 0.999], relative=0.005)) == [
        "rust.axum needs as much CPU per request as rust.hyper, within 2%, in all 4 workloads"
    ]
    assert said(*ratios(CPU, [1.0, 1.0, 1.0, 1.0], relative=0.05)) == [], "inconclusive"


def test_a_workload_without_a_verdict_is_not_counted_among_all() -> None:
    first, *others = ratios(CPU, [1.12, 1.17, 1.15, 1.14])
    (text,) = said(first.model_copy(update={"verdict": None}), *others)
    assert "needs 14 to 17% more CPU per request than rust.hyper [13, 18] " in text
    assert text.endswith(" in all 3 workloads with a verdict on it")
    assert said(*(one.model_copy(update={"verdict": None}) for one in others), first) == [
        "rust.axum needs 12% more CPU per request than rust.hyper [11, 13] in the only workload with a verdict on it"
    ]


def test_a_single_workload_has_no_headline() -> None:
    assert said(*ratios(CPU, [1.2])) == []


def test_what_has_no_verdict_says_nothing() -> None:
    bare = [one.model_copy(update={"verdict": None}) for one in ratios(CPU, [1.2, 1.2, 1.2, 1.2])]
    assert said(*bare) == []
    assert said(*ratios(Metric.P99, [1.2, 1.2, 1.2, 1.2])) == []


def test_of_four_servers_the_fastest_is_the_headline() -> None:
    assert headlines(servers=3) == 3
    assert headlines(servers=4) == 0


def headlines(servers: int) -> int:
    """The headlines of a report in which so many servers differ from the baseline."""
    report, comparisons = reports.healthy(), ratios(CPU, [1.2, 1.2, 1.2, 1.2])
    own = [cell for cell in report.cells if cell.server == AXUM]
    cells, compared = [cell for cell in report.cells if cell.server == HYPER], list[Comparison]()
    for number in range(servers):
        cells += [
            cell.model_copy(update={"server": f"s{number}", "cell_id": f"{cell.cell_id}{number}"}) for cell in own
        ]
        compared += [one.model_copy(update={"cell_id": f"{one.cell_id}{number}"}) for one in comparisons]
    made: Report = report.model_copy(update={"cells": tuple(cells), "comparisons": tuple(compared)})
    return len(list(headline_lines(made)))


SMALL = studies.small()


def of_study(most: int, report: Report = SMALL) -> list[str]:
    return ["".join(span.text for span in text) for text in study_lines(report, most)]


def test_a_pair_of_a_study_has_one_sentence_over_all_settings() -> None:
    announced, *texts = of_study(9)
    assert announced == "Each pair, over all workloads:"
    assert [text.split(" [")[0] for text in texts] == [
        "http4s.tapir needs 12 to 20% more CPU per request than http4s.vanilla",
        "vertx.tapir-future needs 2.9 to 6.4% more CPU per request than vertx.vanilla",
    ]
    assert "in all 4 workloads, and answers 10 to 17% fewer requests" in texts[0]


def test_of_more_pairs_those_that_differ_most_have_a_sentence_and_are_counted() -> None:
    announced, text = of_study(1)
    assert announced == "The 1 of 2 pairs that differ most, over all workloads:"
    assert text == of_study(9)[1]
    assert of_study(0) == []


def judged_anew(verdicts: Sequence[Verdict | None], metric: Metric = CPU) -> Report:
    """The study in which one pair is judged like this in a metric, and all else has no verdict."""
    left, made = list(verdicts), []
    names = {cell.cell_id: cell.server for cell in SMALL.cells}
    for one in SMALL.comparisons:
        is_of_it = one.metric is metric and names[one.cell_id].startswith("http4s.tapir")
        verdict = left.pop(0) if is_of_it else None
        ratio = one.ratio
        if ratio and verdict is Verdict.FASTER:
            ratio = ratio.model_copy(update={"value": 0.8, "low": 0.7, "high": 0.9})
        made.append(one.model_copy(update={"verdict": verdict, "ratio": ratio}))
    return SMALL.model_copy(update={"comparisons": tuple(made)})


def test_workloads_without_a_verdict_are_no_part_of_all() -> None:
    (_, text) = of_study(1, judged_anew([Verdict.SLOWER, Verdict.SLOWER, Verdict.SLOWER, None]))
    assert text.endswith(" in all 3 workloads with a verdict on it")


def test_a_pair_without_a_direction_is_said_to_differ() -> None:
    mixed = [Verdict.SLOWER, Verdict.SLOWER, Verdict.FASTER, Verdict.FASTER]
    (_, text) = of_study(1, judged_anew(mixed))
    assert text == (
        "http4s.tapir differs from http4s.vanilla in 4 of 4 workloads, in no direction that most of them share"
    )
    _, *texts = of_study(9, judged_anew([Verdict.SLOWER] * 4))
    assert texts[-1] == "vertx.tapir-future is not known to differ from vertx.vanilla in any workload"
    assert of_study(9, judged_anew([Verdict.INCONCLUSIVE] * 4)) == []
