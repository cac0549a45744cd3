"""The CSV contract of docs/reference/results.md."""

import csv
import io
import re
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.model import Estimate, Metric, Report
from redline.model.claim import Claim, ClaimResult
from redline.render import RENDERERS
from redline.render.csvfile import COLUMNS, SEARCH_COLUMNS
from redline.visible import visible
from tests import golden
from tests.fakes import reports
from tests.fakes.compared import compared_run

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "results.md"


def rows(report: Report) -> list[dict[str, str]]:
    text = RENDERERS["csv"](report).decode()
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def test_golden() -> None:
    golden.check("results.csv", RENDERERS["csv"](reports.skipping()))


OF_REQUESTS = [metric for metric in Metric if not metric.is_of_messages]
"""The metrics of a load without conversations."""


def test_the_reference_names_the_columns_in_their_order() -> None:
    listed = [line.split("`")[1] for line in REFERENCE.read_text().splitlines() if line.startswith("| `")]
    assert tuple(listed[: len(COLUMNS)]) == COLUMNS
    table = REFERENCE.read_text().partition("The CSV of a search")[2]
    ranged = {"p90_ns", "p99_ns"}  # within `p50_ns` to `p999_ns`
    ranged |= {f"first_byte_{name}_ns" for name in ("p75", "p90", "p95", "p99", "p999")}
    assert {name for name in SEARCH_COLUMNS if f"`{name}`" not in table} == ranged


def test_a_row_for_every_cell_and_metric_and_one_for_each_skipped_cell() -> None:
    report = reports.skipping()
    assert len(rows(report)) == len(report.cells) * len(OF_REQUESTS) + len(report.skipped)


def test_a_row_for_every_claim_says_what_was_measured_and_whether_it_agrees() -> None:
    report = reports.healthy()
    of, to = report.cells[0], report.cells[1]
    measured = Estimate(value=0.8, low=0.7, high=0.9, unit="ratio", n=5, method="t")
    level = Claim(id="T1", text="fast", metric=Metric.P99, of=of.slug, expected="< 1ms")
    results = (
        ClaimResult(claim=Claim(id="T2", text="less", of=of.slug, to=to.slug), state="agrees", measured=measured),
        ClaimResult(claim=level, state="differs", measured=measured.model_copy(update={"unit": "ns", "value": 2e6})),
        ClaimResult(claim=Claim(text="a plot", missing="no"), state="not measured", measured=None, reason="no"),
    )
    claimed = rows(report.model_copy(update={"claims": results}))[-3:]
    names = ("cell_id", "metric", "value", "ratio", "ratio_low", "ratio_high", "baseline_id", "verdict", "findings")
    assert [[row[name] for name in names] for row in claimed] == [
        [of.cell_id, "throughput:claim T2", "", "0.8", "0.7", "0.9", to.cell_id, "agrees", ""],
        [of.cell_id, "p99:claim T1", "2000000.0", "", "", "", "", "differs", ""],
        ["", "throughput:claim a plot", "", "", "", "", "", "not measured", "no"],
    ]


def test_numbers_read_back_exactly() -> None:
    report = reports.healthy()
    by_key = {(row["cell_id"], row["metric"]): row for row in rows(report)}
    for cell in report.cells:
        for metric, estimate in cell.estimates.items():
            row = by_key[cell.cell_id, metric.value]
            assert (float(row["value"]), float(row["low"]), float(row["high"])) == (
                estimate.value,
                estimate.low,
                estimate.high,
            )


def test_an_invalid_cell_shows_its_finding_and_no_number() -> None:
    for row in rows(reports.doubtful()):
        if row["valid"] == "false":
            assert row["findings"].startswith("invalid:rate-missed")
            assert not any(row[name] for name in ("value", "low", "high", "ratio", "verdict"))


def test_findings_of_duets_stand_with_the_cell_that_is_compared() -> None:
    report = build_report(compared_run(starts=3))
    (compared,) = {known.cell_id for known in report.comparisons}
    assert {row["findings"] for row in rows(report) if row["cell_id"] == compared} == {"note:few-starts"}
    assert {row["findings"] for row in rows(report) if row["cell_id"] != compared} == {""}


def test_estimates_of_an_invalid_cell_stay_hidden_even_if_there_are_some() -> None:
    report = reports.healthy()
    bad = report.cells[1].model_copy(update={"valid": False})
    shown = rows(report.model_copy(update={"cells": (bad,)}))
    assert not any(row["value"] or row["ratio"] or row["verdict"] for row in shown)


def test_lines_end_as_rfc_4180_says_and_have_one_width() -> None:
    text = RENDERERS["csv"](reports.nasty()).decode()
    parsed = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert {len(row) for row in parsed} == {len(COLUMNS)}
    assert RENDERERS["csv"](reports.healthy()).count(b"\r\n") == len(reports.healthy().cells) * len(OF_REQUESTS) + 1


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff20"])
def test_no_text_begins_as_a_formula(start: str) -> None:
    report = reports.healthy()
    hostile = report.cells[0].model_copy(update={"server": f"{start}cmd|' /C calc'!A0"})
    named = report.run.model_copy(update={"name": f"{start}1+1"})
    row = rows(report.model_copy(update={"cells": (hostile,), "run": named}))[0]
    assert row["server"] == f"'{visible(start)}cmd|' /C calc'!A0"
    assert row["run"] == f"'{visible(start)}1+1"


@pytest.mark.parametrize("separator", [";", "; ", "\t", "\n", "\r\n", "\r\n \t", ';"', "a;b;\u00a0"])
@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\uff1d"])
def test_nor_does_any_part_of_a_text_where_semicolons_separate_fields(separator: str, sign: str) -> None:
    """A spreadsheet that splits at semicolons takes a quote within a field for a character of its text."""
    report = reports.healthy()
    named = report.run.model_copy(update={"name": f"x{separator}{sign}HYPERLINK(1)"})
    content = RENDERERS["csv"](report.model_copy(update={"run": named})).decode()
    cells = [cell.strip(' "\u00a0') for cell in re.split("[;\t\r\n]", content)]
    assert f"'{sign}HYPERLINK(1)" in [cell.partition('"')[0].partition(",")[0] for cell in cells]
    assert not [cell for cell in cells if cell.startswith(sign)]


def test_signs_elsewhere_stay_as_they_are() -> None:
    report = reports.healthy()
    name = "a-b; c=d, e + f -1 (g@h)"
    named = report.run.model_copy(update={"name": name})
    assert rows(report.model_copy(update={"run": named}))[0]["run"] == name


def test_a_trial_left_out_of_a_valid_cell_is_a_warning() -> None:
    assert {(row["valid"], row["findings"]) for row in rows(reports.died())} == {("true", "warn:server-died")}
