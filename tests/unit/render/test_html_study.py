"""The page of a study: its comparisons and effects, and its size."""

import re

import pytest

from redline.model import CellReport, Metric, Report, Verdict
from redline.render import RENDERERS
from tests.fakes import reports, studies
from tests.fakes.pages import Page, data, section


def test_costs_stand_with_interval_and_verdict_against_each_ones_own_baseline() -> None:
    text = section(RENDERERS["html"](studies.small()).decode(), "comparisons").text
    assert "http4s .tapir vs http4s .vanilla −10.3% ▼ [−15.7, −5.0]" in text  # noqa: RUF001
    assert "vertx .tapir-future vs vertx .vanilla −2.8% ▼ [−3.9, −1.7]" in text  # noqa: RUF001
    assert "interceptor=server-log" in text


def test_every_comparison_is_a_tile_of_its_metrics_table() -> None:
    report = studies.small()
    parsed = section(RENDERERS["html"](report).decode(), "comparisons")
    tiles = [a["class"] for tag, a in parsed.tags if tag == "td" and "class" in a]
    assert len(tiles) == len(report.comparisons)
    assert len([tile for tile in tiles if tile.startswith("slower")]) == len(
        [c for c in report.comparisons if c.verdict is Verdict.SLOWER]
    )


def test_a_refused_comparison_says_so_and_why_and_a_missing_one_that_it_was_not_run() -> None:
    report = studies.small()
    bad = report.comparisons[0].model_copy(update={"ratio": None, "verdict": None, "refused": "<i>too few</i>"})
    left = report.model_copy(update={"comparisons": (bad, *report.comparisons[2:])})
    html = RENDERERS["html"](left).decode()
    text = section(html, "comparisons").text
    assert "refused 1" in text
    assert "refused: <i>too few</i> (http4s.tapir interceptor=off SimpleGet users128)" in text
    assert "not run" in text
    assert "<i>too few" not in html


def test_effects_have_a_section_and_ranks_stand_with_results() -> None:
    html = RENDERERS["html"](studies.small()).decode()
    effects = section(html, "effects").text
    assert "interceptor: server-log against off" in effects
    assert "SimpleGetMulti against SimpleGet" in effects
    assert "rank 2= with interceptor=off" in section(html, "results").text


def test_where_there_is_nothing_no_section_stands() -> None:
    html = RENDERERS["html"](reports.alone()).decode()
    assert not [name for name in ("comparisons", "effects") if f'id="{name}"' in html or f'href="#{name}"' in html]
    assert 'id="effects"' not in RENDERERS["html"](reports.healthy()).decode()


def test_costs_of_open_loads_are_shown_by_p99_first() -> None:
    report = studies.small()
    by_p99 = tuple(ranking.model_copy(update={"metric": Metric.P99}) for ranking in report.rankings)
    for rankings, first in (
        (report.rankings, "throughput"),
        (by_p99, "p99"),
        ((report.rankings[0], *by_p99[1:]), "throughput"),
    ):
        html = RENDERERS["html"](report.model_copy(update={"rankings": rankings})).decode()
        shown = re.search(r'id="comparisons-(\d)" name="comparisons" checked><label[^>]*>([^<]*)</label>', html)
        assert shown is not None
        assert shown[2] == first


def test_costs_of_shares_of_a_capacity_are_shown_by_p99_first_and_no_rate_stands_for_all() -> None:
    html = RENDERERS["html"](_at_shares(studies.small(), "users128")).decode()
    for name in ("comparisons", "effects"):
        shown = re.search(rf'id="{name}-(\d)" name="{name}" checked><label[^>]*>([^<]*)</label>', html)
        assert shown is not None
        assert shown[2] == "p99"
        section = html.split(f'<section id="{name}"')[1].split("</section>")[0]
        assert "not the same for all" in section
        assert "/s (50%)" not in section


def test_of_open_and_closed_loads_throughput_is_first() -> None:
    report = _at_shares(studies.study(studies.PAIRS, studies.SCENARIOS[:1], (1, 128)), "users1")
    html = RENDERERS["html"](report).decode()
    assert re.search(r'name="comparisons" checked><label[^>]*>throughput</label>', html)


def _at_shares(report: Report, load: str) -> Report:
    """The same report with this load an open one, at half of what each scenario's family can bear."""
    rates: dict[str, int] = {}

    def changed(cell: CellReport) -> CellReport:
        rate = rates.setdefault(cell.server.partition(".")[0] + cell.scenario, 10_000 + 1_000 * len(rates))
        text = f"open, {rate:,}/s (50%) poisson, 64 connections, 25s"
        return cell.model_copy(update={"load_text": text}) if cell.load == load else cell

    kept = tuple(ranking for ranking in report.rankings if ranking.load != load)
    return report.model_copy(update={"cells": tuple(map(changed, report.cells)), "rankings": kept})


def test_every_table_at_a_glance_has_a_caption_and_heads() -> None:
    html = RENDERERS["html"](studies.small()).decode()
    for name in ("comparisons", "effects"):
        for table in html.split(f'<section id="{name}"')[1].split("</section>")[0].split("<table")[1:]:
            assert "<caption>" in table
            assert 'scope="col"' in table
            assert 'scope="row"' in table


def test_rows_say_against_which_of_several_baselines_they_stand() -> None:
    text = section(RENDERERS["html"](studies.small()).decode(), "results").text
    assert "vs http4s .vanilla" in text
    assert "vs vertx .vanilla" in text
    assert "vs rust" not in section(RENDERERS["html"](reports.healthy()).decode(), "results").text


@pytest.mark.long
def test_a_large_study_makes_a_page_that_can_be_mailed() -> None:
    html = RENDERERS["html"](studies.big())
    assert len(html) < 6_000_000, "base64 makes 8 MB of it, and mail servers commonly take 10 MB"
    assert b'class="dots"' not in html
    parsed = Page(html.decode())
    assert parsed.open == []
    assert len([1 for tag, a in parsed.tags if tag == "details" and "open" not in a]) > 40
    assert max(len(group["t"]) for group in data(parsed)["groups"]) < 25


def test_the_tab_of_every_metric_shows_its_tables() -> None:
    html = RENDERERS["html"](studies.small()).decode()
    tabs = set(re.findall(r'class="tab (t\d+)"', html))
    assert len(tabs) > 7
    shown = set(re.findall(r"\.tab\.(t\d+):checked ~ \.panel\.\1(?!\d)", html))
    assert tabs <= shown
    assert len(shown) >= len(Metric), "a suite may ask for any of them"
