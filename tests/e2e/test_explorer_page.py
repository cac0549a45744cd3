"""The explorer in a browser: it pivots, filters, compares, is kept in the address, and draws what is in view."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from redline.model import CellReport, Report
from redline.render import RENDERERS
from tests.e2e.browsing import NEEDS_BROWSER, barriers, browser
from tests.e2e.test_report_page import Opened
from tests.fakes import reports, studies
from tests.unit.report.test_explorer import with_settings

__all__ = ["browser"]
pytestmark = NEEDS_BROWSER
BUTTONS = ".pivot-table button"


def study() -> Report:
    return with_settings(studies.study({"http4s.tapir": "http4s.vanilla"}, studies.SCENARIOS[:3], (1, 128)))


def hostile() -> Report:
    """Every name of the study is hostile."""

    def renamed(cell: CellReport) -> CellReport:
        server, scenario = (f"{name}{reports.NASTY}" for name in (cell.server, cell.scenario))
        return cell.model_copy(update={"server": server, "scenario": scenario, "slug": f"{cell.slug}{reports.NASTY}"})

    report = study()
    return report.model_copy(update={"cells": tuple(map(renamed, report.cells))})


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    pages: list[Page] = []

    def opening(report: Report, *, hashed: str = "", width: int = 1280, dark: bool = False) -> Opened:
        file = tmp_path / "report.html"
        file.write_bytes(RENDERERS["html"](report))
        opened = Opened(
            browser.new_page(viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light")
        )
        pages.append(opened.page)
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(f"{file.as_uri()}{hashed}")
        return opened

    yield opening
    for page in pages:
        page.close()


def heads(page: Page, part: str) -> list[str]:
    return [text.strip() for text in page.locator(f".pivot-table {part} th").all_inner_texts()]


def test_axes_are_pivoted_filtered_and_kept_in_the_address(show: Callable[..., Opened]) -> None:
    opened = show(study())
    page = opened.page
    assert heads(page, "tbody")[0].split("\n") == ["http4s.vanilla", "off"]
    assert heads(page, "thead")[:3] == ["SimpleGet", "SimpleGetMulti", "PostBytes"]
    page.get_by_label("where server stands").select_option("columns")
    page.get_by_label("where load stands").select_option("colour")
    assert "colour=load" in page.url
    assert heads(page, "thead")[3:6] == ["http4s.vanilla", "http4s.tapir", "oracle.null"]
    assert page.locator(f"{BUTTONS} .swatch").first.is_visible()
    page.locator("[data-axis='1'] summary").click()
    page.get_by_role("checkbox", name="server-log").uncheck()
    assert "interceptor" in page.inner_text(".pivot-controls")
    assert not [text for text in heads(page, "tbody") if "server-log" in text]
    page.locator(".pivot-controls > label select").select_option("p99 against the baseline")
    page.locator(BUTTONS, has_text="slower").first.click()
    view, address = page.inner_text(".pivot"), page.url
    again = show(study(), hashed=address[address.index("#") :])
    assert again.page.inner_text(".pivot") == view
    page.get_by_role("button", name="reset").click()
    assert page.url.endswith("#explorer")
    assert heads(page, "tbody")[0].split("\n") == ["http4s.vanilla", "off"]
    for seen in (opened, again):
        seen.assert_quiet()


def test_two_cells_are_compared_as_the_report_did_or_not_at_all(show: Callable[..., Opened]) -> None:
    report = study()
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    judged = next(one for one in report.comparisons if one.primary and one.ratio)
    pair = slugs[judged.baseline_id], slugs[judged.cell_id]
    page = show(report, hashed=f"#explorer?pick={pair[0]}&pick={pair[1]}").page
    said = page.inner_text(".pivot-sides")
    assert "against" in page.inner_text(".pivot-status")
    assert str(judged.verdict) in said
    others = [cell.slug for cell in report.cells if cell.valid and cell.role == "subject"]
    ends = others[0], next(slug for slug in others if "PostBytes" in slug and "users128" in slug and "tapir" in slug)
    page = show(report, hashed=f"#explorer?pick={ends[0]}&pick={ends[1]}").page
    assert "did not compare these two" in page.inner_text(".pivot-status")
    said = page.inner_text(".pivot-sides")
    assert not [words for words in ("faster", "slower", "equivalent", "inconclusive") if words in said]
    assert "not compared" in said
    page.get_by_role("button", name="clear").click()
    assert page.inner_text(".pivot-status") == "Pick two cells to see them side by side."


@pytest.mark.long
def test_the_keyboard_reaches_every_cell(show: Callable[..., Opened]) -> None:
    opened = show(studies.big())
    page = opened.page
    assert page.locator(f"{BUTTONS}[tabindex='0']").count() == 1, "the tabulator has a single way in"
    page.locator(f"{BUTTONS}[tabindex='0']").focus()
    place = "document.activeElement.dataset.row + ' ' + document.activeElement.dataset.column"
    seen = []
    for key in ("ArrowDown", "ArrowRight", "End", "PageDown", "PageDown", "PageDown", "PageDown", "Home", "ArrowUp"):
        page.keyboard.press(key)
        seen.append(page.evaluate(place))
    assert seen == ["1 0", "1 1", "1 17", "11 17", "21 17", "31 17", "34 17", "34 0", "33 0"]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    assert "Pick a second cell" in page.inner_text(".pivot-status")
    page.locator("[data-axis='0'] summary").press("Enter")
    page.locator("[data-axis='0'] input[type=search]").fill("netty.van")
    page.locator("[data-axis='0'] button", has_text="none").click()
    assert "594 of 630 cells" in page.inner_text(".pivot")
    page.keyboard.press("Escape")
    assert not page.locator("[data-axis='0'] details").get_attribute("open")
    opened.assert_quiet()


@pytest.mark.long
def test_only_what_is_in_view_is_in_the_document(show: Callable[..., Opened]) -> None:
    opened = show(studies.big())
    page = opened.page
    assert page.locator(BUTTONS).count() < 300
    page.evaluate("document.querySelector('.pivot-scroll').scrollTo(1e6, 1e6)")
    page.wait_for_function(
        "() => [...document.querySelectorAll('.pivot-table tbody th')].some(th => th.title.startsWith('oracle'))"
    )
    assert page.locator(BUTTONS).count() < 300
    box = page.locator(".pivot-table tbody th", has_text="oracle.null").bounding_box()
    frame = page.locator(".pivot-scroll").bounding_box()
    assert box
    assert frame
    assert abs(box["y"] + box["height"] - frame["y"] - frame["height"]) < 16, "rows stand where their numbers say"
    opened.assert_quiet()


@pytest.mark.parametrize(("width", "dark"), [(390, False), pytest.param(1280, True, marks=pytest.mark.long)])
def test_it_fits_phones_and_bars_nobody(show: Callable[..., Opened], width: int, dark: bool) -> None:
    opened = show(study(), hashed="#explorer?colour=load", width=width, dark=dark)
    opened.page.locator(BUTTONS).nth(0).click()
    opened.page.locator(BUTTONS).nth(2).click()
    opened.page.locator(".pivot-filter summary").first.click()
    assert opened.overflow() == 0
    assert barriers(opened.page, "#explorer") == []
    opened.assert_quiet()


BAD = (
    "#%E0%A4%A",
    "#explorer?%E0%A4%A&rows=%",
    "#explorer?show=__proto__&rows=constructor,load,load&colour=server,load,scenario&only.server=nobody&pick=nothing",
    "#explorer?" + "&".join(f"pick={random.Random(1).random()}&only.load={at}" for at in range(500)),
)


@pytest.mark.parametrize("hashed", BAD)
def test_a_bad_address_is_harmless(show: Callable[..., Opened], hashed: str) -> None:
    opened = show(study(), hashed=hashed)
    assert "30 of 30 cells" in opened.page.inner_text(".pivot")
    assert opened.page.locator(BUTTONS).count() >= 20
    opened.assert_quiet()


def test_hostile_names_stay_text(show: Callable[..., Opened]) -> None:
    opened = show(hostile())
    page = opened.page
    page.get_by_label("where scenario stands").select_option("colour")
    for button in page.locator(BUTTONS).all()[:2]:
        button.click()
    assert "pwned" in page.inner_text(".pivot-sides")
    assert page.evaluate("document.querySelectorAll('.pivot img').length") == 0
    opened.assert_quiet()


def test_small_runs_have_no_explorer(show: Callable[..., Opened]) -> None:
    opened = show(reports.healthy(), hashed="#explorer?rows=server")
    assert opened.page.locator(".pivot").count() == 0
    opened.assert_quiet()
