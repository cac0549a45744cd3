"""Percentiles by collector: a plot and a table per server and load, a line and a column per collector."""

import json
from itertools import product

import pytest

from redline.analysis import build_report
from redline.model import Report
from redline.render import RENDERERS
from redline.report.overlays import overlays, percentile_table, values
from redline.report.plots import payload
from redline.report.views import groups
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import SATURATE, SIMPLE_GET, simulated_run
from tests.unit.suite.test_screening import run_of, suite_of


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(run_of(suite_of({"jdk": (21, 25), "gc": ("G1", "Parallel", "Z")}), {}, trials=2))


def test_each_server_and_load_has_its_collectors_laid_over_each_other(report: Report) -> None:
    (group,) = groups(report)
    assert [(one.title, list(one.cells)) for one in overlays(group)] == [
        ("rust.hyper by gc", ["G1", "Parallel", "Z"]),
        ("rust.hyper+jdk=25 by gc", ["G1", "Parallel", "Z"]),
    ]
    assert [cell.settings for cell in report.cells] == [
        {"jdk": jdk, "gc": gc} for jdk, gc in product(("21", "25"), ("G1", "Parallel", "Z"))
    ]


def test_a_server_that_differs_in_another_setting_has_a_table_of_that(report: Report) -> None:
    other = build_report(run_of(suite_of({"jdk": (21, 25), "heap": ("1g", "2g")}), {}, trials=2))
    cells = [
        cell.model_copy(update={"server": f"other+{cell.server}", "cell_id": f"other {cell.cell_id}"})
        for cell in other.cells
    ]
    both = report.model_copy(update={"cells": (*report.cells, *cells)})
    (group,) = groups(both)
    assert [(one.title, list(one.cells)) for one in overlays(group)] == [
        ("rust.hyper by gc", ["G1", "Parallel", "Z"]),
        ("rust.hyper+jdk=25 by gc", ["G1", "Parallel", "Z"]),
        ("other+rust.hyper by jdk", ["21", "25"]),
        ("other+rust.hyper+heap=2g by jdk", ["21", "25"]),
    ]
    text = RENDERERS["md"](both).decode()
    assert text.count("| percentile | 21 | 25 |") == 2
    assert text.count("| percentile | G1 | Parallel | Z |") == 2


def test_a_collector_has_one_colour_in_all_plots(report: Report) -> None:
    made = payload(report)
    assert made["servers"][-3:] == values(report) == ("G1", "Parallel", "Z")
    whole, *by_collector = made["groups"]
    assert whole["curves"] == []
    assert len(whole["courses"]) == 6
    assert [[made["servers"][curve["s"]] for curve in each["curves"]] for each in by_collector] == [
        ["G1", "Parallel", "Z"]
    ] * 2


def test_the_page_has_a_plot_and_a_table_for_each(report: Report) -> None:
    page = RENDERERS["html"](report).decode()
    for place, server in ((1, "rust.hyper"), (2, "rust.hyper+jdk=25")):
        assert f'data-plot="percentiles" data-place="{place}"' in page
        assert f"{server} by gc: response time by percentile" in page
    assert 'data-plot="percentiles" data-place="0"' not in page
    assert 'data-plot="rate" data-place="0"' in page


def test_the_table_goes_from_the_median_to_the_slowest_as_far_as_requests_reach(report: Report) -> None:
    (group,) = groups(report)
    first = overlays(group)[0]
    table = percentile_table(first)
    assert [column.title for column in table.columns] == ["percentile", "G1", "Parallel", "Z"]
    names = [row[0] for row in table.rows]
    assert (names[:5], names[-1]) == (["50%", "75%", "90%", "95%", "99%"], "100%")
    assert "99.9999%" not in names
    text = RENDERERS["md"](report).decode()
    assert "| percentile | G1 | Parallel | Z |" in text


def test_servers_that_differ_in_no_jvm_are_in_one_plot_as_before() -> None:
    made = simulated_run({"rust.hyper": GOOD, "rust.axum": GOOD}, loads=(SATURATE,), scenarios=(SIMPLE_GET,))
    report = build_report(made)
    (group,) = groups(report)
    assert overlays(group) == ()
    assert len(payload(report)["groups"]) == 1
    assert "Response time by percentile" not in RENDERERS["md"](report).decode()
    assert all(not cell.settings for cell in report.cells)
    assert json.loads(RENDERERS["json"](report))["cells"][0].keys().isdisjoint({"settings"})
