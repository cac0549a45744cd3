"""What a reader sees first on a page: the answer, its picture, what to doubt, and words that are explained."""

import re

import pytest

from redline.model import Bound
from redline.model.limits import SearchEnd
from redline.render import RENDERERS, brief
from redline.render.html.terms import explained
from tests.fakes import limits, reports
from tests.fakes.pages import Page, section


def sections(html: str) -> list[str]:
    return re.findall(r'<section id="([^"]*)"', html)


def test_what_to_doubt_stands_below_the_answer_beside_its_picture() -> None:
    html = RENDERERS["html"](reports.healthy()).decode()
    beside = html.split('<div class="beside">')[1]
    picture, doubt, results = (beside.index(text) for text in ('class="picture"', 'id="caveats"', 'id="results"'))
    assert picture < doubt < results
    assert sections(html).count("caveats") == 1


def test_what_says_nothing_is_not_on_the_page() -> None:
    html = RENDERERS["html"](reports.healthy()).decode()
    assert "nothing was found" not in html.lower()
    assert "What limits precision: trials of a cell differ by" in section(html, "caveats").text.replace(" :", ":")
    clean = RENDERERS["html"](limits.alone()).decode()
    assert "What biases" not in clean


def test_a_single_search_shows_its_curve_before_its_doubts_and_a_study_its_limits() -> None:
    assert sections(RENDERERS["html"](limits.report(limits.busy())).decode())[:3] == ["answer", "curves", "caveats"]
    assert sections(RENDERERS["html"](limits.whole()).decode())[:3] == ["answer", "caveats", "limits"]


@pytest.mark.parametrize(("end", "said"), [("interrupted", "Interrupted"), ("broken", "Broken off")])
def test_a_search_that_did_not_come_to_its_end_says_so_first(end: SearchEnd, said: str) -> None:
    cell = limits.busy().model_copy(update={"ended": end})
    text = section(RENDERERS["html"](limits.report(cell)).decode(), "answer").text
    assert text.startswith(
        f"The answer, in words ! {said}: the search of {cell.server}; this is what was known by then."
    )


def test_a_load_shows_its_doubts_and_its_distribution_first_and_each_finding_once() -> None:
    html = RENDERERS["html"](reports.alone()).decode()
    assert sections(html)[:3] == ["answer", "caveats", "plots"]


def test_without_numbers_what_was_recorded_over_time_leads_and_no_tile_says_not_known() -> None:
    report = reports.alone()
    hidden = {
        metric: Bound(unit=of.unit, finding="cut-short", reason="it was interrupted")
        for metric, of in report.cells[0].known.items()
    }
    cell = report.cells[0].model_copy(update={"bounds": hidden})
    html = RENDERERS["html"](report.model_copy(update={"cells": (cell,)})).decode()
    tiles = section(html, "answer").text
    assert "requests" in tiles
    assert "throughput not known" not in tiles


def test_a_term_is_explained_where_it_first_stands() -> None:
    shown = explained('<p>cells and a cell</p><p title="cell">Send-lateness in 2 cells</p>')
    assert shown.count("<abbr") == 2
    assert shown.startswith('<p><abbr title="a server under one load of one scenario">cells</abbr> and a cell</p>')
    assert '<p title="cell"><abbr title="Loads with due times. ' in shown
    assert Page(shown).open == []


@pytest.mark.parametrize(
    "kept", ["<code>cell</code>", '<a href="#cell">cell</a>', "<b>my-cell.cell</b>", "<h2>Cell</h2>"]
)
def test_names_commands_and_links_are_left_alone(kept: str) -> None:
    assert explained(kept) == kept


@pytest.mark.parametrize(("servers", "folds"), [(1, False), (2, False), (3, True), (14, True)])
def test_more_than_two_servers_are_folded(servers: int, folds: bool) -> None:
    report = reports.healthy()
    named = {f"s{n}": f"./serve-{n}" for n in range(servers)}
    html = RENDERERS["html"](report.model_copy(update={"run": report.run.model_copy(update={"servers": named})}))
    head = html.decode().split("<nav")[0].split("<h1>")[1]
    assert ("<details" in head, f"<summary>{servers} servers</summary>" in head) == (folds, folds)
    assert all(text in head for text in named.values())


def test_which_direction_is_better_is_said_once_and_in_columns_that_differ() -> None:
    html = RENDERERS["html"](reports.healthy()).decode()
    assert html.lower().count("less is better") == 1
    assert "more is better" in html


def test_what_was_not_found_has_no_section() -> None:
    assert "findings" not in sections(RENDERERS["html"](reports.healthy()).decode())


def test_a_run_of_several_cells_ends_with_its_answer() -> None:
    shown = brief(reports.healthy())
    assert shown is not None
    assert [section.title for section in shown] == ["quickstart", "Caveats", "The answer, in words"]
    assert brief(limits.by_hand()) is None
    one = reports.healthy().model_copy(update={"cells": reports.healthy().cells[:1], "comparisons": ()})
    assert brief(one) is None
    duel = reports.healthy()
    assert brief(duel.model_copy(update={"run": duel.run.model_copy(update={"kind": "comparison"})})) is None


def test_what_stands_between_backticks_is_set_as_code() -> None:
    report = reports.doubtful()
    html = RENDERERS["html"](report.model_copy(update={"unread": ("run `redline <x>` again",)})).decode()
    assert "run <code>redline &lt;x&gt;</code> again" in html
