"""Distributions of chosen cells in a browser: drawn, said, kept in the address, and inert whatever a name holds."""

from collections.abc import Callable

from redline.analysis import build_report
from redline.model import Report
from tests.e2e.browsing import COLOURS, NEEDS_BROWSER, browser
from tests.e2e.test_report_page import Opened, open_report
from tests.fakes import reports
from tests.fakes.recordings import simulated_run

__all__ = ["browser", "open_report"]

pytestmark = NEEDS_BROWSER


def a_run() -> Report:
    return build_report(simulated_run(trials=2))


AT_REST = """async () => {
  let still = 0;
  for (let last = -1; still < 20; still = scrollY === last ? still + 1 : 0, last = scrollY)
    await new Promise(requestAnimationFrame);
  return scrollY;
}"""
"""Where the page is once it has not moved for twenty frames: it scrolls smoothly, and for longer on a busy machine."""


def test_chosen_cells_are_drawn_said_and_kept_in_the_address(open_report: Callable[..., Opened]) -> None:
    opened = open_report(a_run(), width=390)
    page, fold = opened.page, opened.page.locator("#distributions")
    assert fold.locator("canvas").count() == 0, "what is folded away is not drawn"
    fold.locator("summary").first.click()
    said = fold.locator(".said")
    assert said.inner_text().count("requests.") == 2
    canvases = fold.locator(".chart canvas")
    assert canvases.count() == 3
    assert all(canvas.evaluate(COLOURS) > 3 for canvas in canvases.element_handles())
    fold.get_by_text("steady: rust.axum", exact=True).first.click()
    fold.locator("[data-of=amount]").select_option("count")
    fold.locator("[data-of=pair]").select_option("1")
    page.locator("[data-choice=scale] input[value=linear]").check()
    assert said.inner_text().count("requests.") == 3
    assert "steady" in fold.locator("figure.difference figcaption").inner_text()
    assert opened.overflow() == 0
    link, shown = page.url, said.inner_text()
    assert "scale=linear" in link
    page.goto("about:blank")
    page.goto(link)
    assert fold.get_attribute("open") is not None
    assert said.inner_text() == shown
    assert page.locator("[data-choice=scale] input[value=linear]").is_checked()
    assert fold.locator("[data-of=pair]").input_value() == "1"
    assert page.evaluate(AT_REST) > 0, "a link leads to its section"
    page.evaluate("scrollTo({ top: 0, behavior: 'instant' })")
    assert page.evaluate(AT_REST) == 0
    page.reload()
    assert page.evaluate(AT_REST) == 0
    assert said.inner_text() == shown
    assert page.evaluate("scrollY") == 0, "a page that is loaded again, as in `redline view`, keeps the reader's place"
    assert opened.complaints == []


def test_what_a_report_does_not_have_is_passed_over_in_an_address(open_report: Callable[..., Opened]) -> None:
    opened = open_report(a_run())
    opened.page.evaluate("location.hash = '#distributions?cell=nobody&pair=99&scale=none&time=%3Cimg%20src%3Dx%3E'")
    opened.page.wait_for_function("document.getElementById('distributions').open")
    assert opened.page.locator("#distributions .said").inner_text() == "Choose a cell to draw."
    opened.page.locator("#distributions").get_by_role("button", name="all", exact=True).click()
    assert opened.page.locator("#distributions .said").inner_text().count("requests.") == 6
    opened.assert_quiet()


def test_hostile_names_are_text_in_its_choices(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.nasty(), width=390)
    opened.unfold()
    assert opened.page.locator("#distributions .cells img, #distributions table img").count() == 0
    assert "<img" in opened.page.locator("#distributions .cells").inner_text()
    assert opened.overflow() == 0
    opened.assert_quiet()
