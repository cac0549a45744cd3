"""A limit as a page, as Markdown and in words."""

import base64
import hashlib
import json
import re
from collections.abc import Callable

import jsonschema
import pytest

from redline.document.blocks import Items, Strip, Table
from redline.model import Finding, Grade
from redline.model.limits import LimitReport, LimitStart, ProbeState
from redline.render import RENDERERS, page
from redline.report import limit as words
from redline.report.limit_probes import counts_text, probe_note, probes_table
from tests import golden
from tests.fakes import limits
from tests.fakes.pages import Page, data

SECOND = 1_000_000_000

ALL: list[Callable[[], LimitReport]] = [limits.by_hand, limits.whole, limits.alone, limits.nasty, limits.report]


def html(report: LimitReport) -> Page:
    return Page(RENDERERS["html"](report).decode())


def markdown(report: LimitReport) -> str:
    return RENDERERS["md"](report).decode()


@pytest.mark.parametrize("make", ALL)
def test_the_page_is_well_formed_and_the_same_every_time(make: Callable[[], LimitReport]) -> None:
    parsed = html(make())
    assert parsed.open == []
    assert RENDERERS["html"](make()) == RENDERERS["html"](make())
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    links = [attributes["href"][1:] for tag, attributes in parsed.tags if tag == "a"]
    assert set(links) <= set(ids)


@pytest.mark.parametrize("make", ALL)
def test_nothing_is_loaded_and_nothing_but_our_own_text_may_act(make: Callable[[], LimitReport]) -> None:
    parsed = html(make())
    policy = next(a["content"] for _, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    data_block, tables_block, *scripts = parsed.raw["script"]
    assert "<" not in data_block + tables_block
    assert len(scripts) == 3
    for text in (*scripts, *parsed.raw["style"]):
        assert f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy
    for tag, attributes in parsed.tags:
        assert tag != "img"
        assert "style" not in attributes
        assert not [name for name in attributes if name.startswith("on")]


def test_the_page_holds_every_answer_and_every_probe() -> None:
    report = limits.whole()
    text = html(report).text
    for cell in report.cells:
        for answer in cell.limits:
            for side in (answer.passed_per_s, answer.failed_per_s):
                assert words.rate_text(side) in text
        for probe in cell.probes:
            assert words.rate_text(probe.rate_per_s) in text
    assert "play.vanilla.SimpleGet" in text.replace(" .", ".")
    assert "it collapses" in text


def test_the_plots_have_what_the_curve_has() -> None:
    report = limits.whole()
    cells = data(html(report))["cells"]
    assert len(cells) == 3
    for cell, drawn in zip(report.cells, cells, strict=True):
        kept, lost = drawn["kept"], drawn["lost"]
        assert len(kept["x"]) + len(lost["x"]) == len(cell.curve)
        assert [len(column) for column in kept["y"]] == [len(kept["x"])] * 4
        assert all(a < b for a, b in zip(kept["x"], kept["x"][1:], strict=False))
        assert (drawn["knee"] is None) == (cell.knee is None)
    assert cells[0]["limits"] == [50_000_000, 200_000_000]
    assert [band["s"] for band in cells[0]["bands"]] == [4, 5]
    assert cells[2]["course"] is None


def test_the_legend_has_a_cross_where_some_rate_was_too_high() -> None:
    cell = limits.whole().cells[0]
    kept = tuple(point for point in cell.curve if not point.overloaded)
    assert 0 < len(kept) < len(cell.curve)
    for curve, has_cross in ((cell.curve, True), (kept, False)):
        report = limits.whole().model_copy(update={"cells": (cell.model_copy(update={"curve": curve}),)})
        assert ("did not keep up</" in RENDERERS["html"](report).decode()) is has_cross


def test_many_cells_are_folded_but_the_first() -> None:
    cells = [limits.busy().model_copy(update={"slug": f"rust.hyper+n={n}"}) for n in range(5)]
    folds = [
        a for tag, a in html(limits.report(*cells)).tags if tag == "details" and a.get("id", "").startswith("cell-")
    ]
    assert [("open" in each) for each in folds] == [True, False, False, False, False]


@pytest.mark.parametrize("make", ALL)
def test_every_row_of_a_table_has_the_columns_of_its_head(make: Callable[[], LimitReport]) -> None:
    for block in markdown(make()).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_hostile_text_is_out_of_force_in_markdown() -> None:
    text = markdown(limits.nasty())
    assert "<img" not in text
    assert "</script" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "@all" not in text
    assert set(re.findall(r"<[^>]*>", text)) <= {"<br>"}


def test_markdown_says_what_the_page_says() -> None:
    report = limits.whole()
    text = " ".join(markdown(report).replace("\\", "").split())
    page = html(report).text
    for cell in report.cells:
        for phrase in (words.ending_text(cell), words.knee_text(cell), *words.overload_texts(cell)):
            assert phrase in page
            assert phrase.replace("<", "&lt;") in text
    assert "hysteresis: " in text


@pytest.mark.parametrize("make", ALL)
def test_json_reads_back(make: Callable[[], LimitReport]) -> None:
    rendered = RENDERERS["json"](make())
    assert LimitReport.model_validate_json(rendered) == make()
    jsonschema.validate(json.loads(rendered), LimitReport.model_json_schema(mode="serialization"))


def test_golden() -> None:
    golden.check("limit.json", RENDERERS["json"](limits.by_hand()))
    golden.check("limit.md", RENDERERS["md"](limits.by_hand()))


def test_what_was_stored_is_still_read() -> None:
    stored = (golden.FOLDER / "limit.json").read_bytes()
    assert LimitReport.model_validate_json(stored).cells[0].slug == "rust.hyper+http2"


def test_the_words_of_an_answer() -> None:
    answer = limits.by_hand().cells[0].limits[0]
    assert words.answer_text(answer) == "met up to 880/s, missed from 920/s (±2.2%)"
    assert words.method_text(answer) == "95% interval, by the model of a queue with one worker"
    assert words.method_text(answer.model_copy(update={"confidence": None})) == "by single rates"
    mixed = answer.model_copy(update={"confidence": None, "starts_differ": True})
    assert words.method_text(mixed) == "by how starts differ, and by single rates"
    unknown = answer.model_copy(update={"passed_per_s": None, "met_somewhere": False})
    assert words.answer_text(unknown) == "met at no rate that was tried, missed from 920/s"
    high = answer.model_copy(update={"failed_per_s": None})
    assert words.answer_text(high) == "met up to 880/s, from where it is missed is not known"


def test_the_words_of_confirmation() -> None:
    cell = limits.busy()
    fresh = tuple(
        cell.probes[0].model_copy(update={"phase": "confirm", "fresh": True, "start": start}) for start in (1, 1, 2)
    )
    confirmed = cell.model_copy(update={"confirmed": True, "probes": (*cell.probes, *fresh)})
    assert words.confirmation(confirmed) == "confirmed at both ends on 2 fresh starts of the server"
    assert words.confirmation(limits.bare()) == ""


def test_the_words_of_warm_ups() -> None:
    def text(*starts: LimitStart) -> str:
        return words.starts_text(limits.busy().model_copy(update={"starts": starts}))

    fixed, late = LimitStart(warmed_ns=60 * SECOND), LimitStart(warmed_ns=90 * SECOND, steady=False)
    assert text() == ""
    assert text(LimitStart(warmed_ns=12_500_000_000, steady=True)) == "steady after 12.5 s"
    assert text(fixed, fixed) == "each of 2 starts warmed up for 1 min"
    assert text(LimitStart(warmed_ns=9 * SECOND, steady=True), late) == (
        "start 1 steady after 9.00 s; start 2 still changing after 1 min 30 s"
    )


def test_findings_are_counted_by_grade_and_the_gravest_come_first() -> None:
    report = limits.whole()
    cell = report.cells[0]
    grades = (Grade.WARN, Grade.INVALID, Grade.WARN, Grade.NOTE)
    found = tuple(
        Finding(kind="send-lateness", grade=grade, message=f"m{at}.", advice="Do.", cell_id=cell.slug, position=at)
        for at, grade in enumerate(grades)
    )
    own = found[3].model_copy(update={"position": None})
    changed = cell.model_copy(update={"findings": (own, *found)})
    (section,) = words.search_findings(report.model_copy(update={"cells": (changed,)}))
    (items,) = section.blocks
    assert isinstance(items, Items)
    assert [item.head[0].look for item in items.items] == [Grade.INVALID, Grade.WARN, Grade.NOTE]
    of = f"of {len(cell.probes)} probes, for example at"
    where = [item.lines[-1][0].text for item in items.items]
    assert where[0] == f"in 1 {of} {cell.probes[1].said}"
    assert where[1] == f"in 2 {of} {cell.probes[0].said}"


def test_a_client_that_was_the_limit_is_reported() -> None:
    cell = limits.busy().model_copy(update={"probes": (limits.client_limited(),)})
    assert words.client_text(cell) == (
        "the server was not the limit at 64,000/s: all 256 connections were busy: give -c more"
    )
    again = limits.client_limited().model_copy(update={"client": ""})
    cell = cell.model_copy(update={"probes": (*cell.probes, again)})
    assert words.client_text(cell) == (
        "1 probe gave no result, for example at 64,000/s: all 256 connections were busy: give -c more"
    )
    note = probe_note(limits.client_limited())
    assert note == "hopeless: ended early; not the server: all 256 connections were busy: give -c more"


def test_the_table_says_what_each_probe_counts_for_and_why() -> None:
    busy = limits.client_limited()
    assert counts_text(busy) == "not the server", "of a search that kept no recordings"
    unknown = ProbeState(name="good", state="not known", why="the engine was late")
    met = ProbeState(name="acceptable", state="met")
    void, used = (busy.model_copy(update={"counts": counts}) for counts in ((unknown,), (unknown, met)))
    assert counts_text(void) == "not known: the engine was late"
    assert counts_text(used) == "good: not known (the engine was late); acceptable: met"
    assert (void.is_void, used.is_void) == (True, False)
    assert probes_table([void, used]).muted == {0}
    assert probe_note(void) == "hopeless: ended early"


def test_a_probe_has_all_percentiles_and_a_terminal_those_that_it_has_room_for() -> None:
    probe = limits.client_limited()
    timed = probe.model_copy(update={"p75_ns": 1_110_000, "p95_ns": 2_220_000, "max_ns": 9_990_000})
    table, brief = probes_table([timed]), probes_table([timed], brief=True)
    heads = [column.title for column in table.columns]
    assert heads[2:9] == ["p50", "p75", "p90", "p95", "p99", "p99.9", "max"]
    row = dict(zip(heads, table.rows[0], strict=True))
    assert (row["p75"], row["p95"], row["max"]) == ("1.11 ms", "2.22 ms", "9.99 ms")
    assert [column.title for column in brief.columns][2:6] == ["p50", "p90", "p99", "p99.9"]
    assert len(brief.columns) == len(brief.rows[0])


@pytest.mark.parametrize("brief", [True, False])
def test_the_table_says_when_each_probe_began_if_that_is_known(brief: bool) -> None:
    """In order of the rate, as the rows are: only this column shows that a server changed on the way."""
    untimed = [probe.model_copy(update={"began_s": None}) for probe in limits.whole().cells[0].probes]
    assert "at" not in [column.title for column in probes_table(untimed, brief=brief).columns]
    timed = [untimed[0]] + [
        probe.model_copy(update={"began_s": 5.6 * number}) for number, probe in enumerate(untimed[1:], 1)
    ]
    table = probes_table(timed, brief=brief)
    assert table.columns[0].title == "at"
    expected = sorted(timed, key=lambda probe: probe.rate_per_s)
    texts = ["—" if probe.began_s is None else f"{probe.began_s:.0f} s" for probe in expected]
    assert [row[0] for row in table.rows] == texts
    assert texts != sorted(texts)


def test_every_probe_of_a_search_says_what_it_counts_for() -> None:
    for cell in limits.whole().cells:
        names = [answer.name for answer in cell.limits]
        assert all([each.name for each in probe.counts] == names for probe in cell.probes)


def strips(report: LimitReport) -> list[Strip]:
    (answers,) = (section for section in page(report).sections if section.anchor == "limits")
    (table,) = (block for block in answers.blocks if isinstance(block, Table))
    return [cell for row in table.rows for cell in row if isinstance(cell, Strip)]


def test_a_side_that_is_not_known_is_open() -> None:
    both, low = strips(limits.by_hand())
    assert both.low is not None
    assert both.high is not None
    assert (low.low, low.high is None) == (None, False)
    drawn = RENDERERS["html"](limits.by_hand()).decode().split('<td class="strip">')[1:]
    assert [text.split("</svg>")[0].count('class="end"') for text in drawn] == [2, 1]
    assert '<rect class="span" x="0%"' in drawn[1]


def test_one_without_anything_says_how_it_ended() -> None:
    assert strips(limits.report(limits.bare())) == []
    assert "interrupted: this is what was known by then" in html(limits.report(limits.bare())).text


def test_each_probe_on_the_page_leads_to_its_recording() -> None:
    (cell, *_) = limits.by_hand().cells
    file = "probes/rust.hyper+http2.Simple&Get/0002.json"
    probes = (cell.probes[0].model_copy(update={"recording": file}), *cell.probes[1:])
    page = RENDERERS["html"](limits.report(cell.model_copy(update={"probes": probes}))).decode()
    assert page.count('<a href="probes/') == 1
    assert '<a href="probes/rust.hyper%2Bhttp2.Simple%26Get/0002.json">' in page
