"""The page in a browser: it draws plots, logs and loads nothing, overflows nowhere, and runs nothing hostile."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from redline.model import COMPARED, Report
from redline.render import RENDERERS
from tests.e2e.browsing import COLOURS, NEEDS_BROWSER, browser
from tests.fakes import layers, profiles, reports, studies

__all__ = ["browser"]
ALL: list[Callable[[], Report]] = [
    reports.healthy,
    reports.alone,
    reports.skipping,
    reports.died,
    reports.nasty,
    studies.small,
    layers.refusing,
    profiles.report_with_profiles,
]

pytestmark = NEEDS_BROWSER

LONG = pytest.mark.long
WIDE = (reports.healthy, reports.nasty, studies.small, profiles.report_with_profiles)
"""Reports that are seen wide and dark in `make test` too; the others have the same tables and plots."""
VIEWS = [
    pytest.param(
        make,
        width,
        scheme,
        marks=[]
        if (width, scheme) == (320, "light") or ((width, scheme) == (1440, "dark") and make in WIDE)
        else [LONG],
    )
    for make in ALL
    for width in (320, 768, 1440)
    for scheme in ("light", "dark")
]


@dataclass
class Opened:
    """A page, with everything that it logged or requested."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def overflow(self) -> int:
        """Pixels by which the page scrolls sideways."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def unfold(self) -> None:
        """Open all that is folded, and wait until what was in it is drawn."""
        self.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        drawn = (
            "[...document.querySelectorAll('figure:not([hidden]) > .plot')].every(plot => plot.querySelector('canvas'))"
        )
        self.page.wait_for_function(drawn, timeout=10_000)

    def height(self) -> int:
        """Pixels from the top of the page to its end."""
        return int(self.page.evaluate("document.documentElement.scrollHeight"))

    def assert_quiet(self) -> None:
        assert self.complaints == []
        assert [url for url in self.requests if not url.startswith(("file:", "data:"))] == []
        assert len([url for url in self.requests if url.startswith("file:")]) == 1


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    pages: list[Page] = []

    def opening(
        report: Report, *, width: int = 1440, scheme: Literal["light", "dark"] = "light", scripts: bool = True
    ) -> Opened:
        file = tmp_path / "report.html"
        file.write_bytes(RENDERERS["html"](report))
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=scripts
        )
        opened = Opened(context.new_page())
        pages.append(opened.page)
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.goto(file.as_uri())
        return opened

    yield opening
    for page in pages:
        page.context.close()


@pytest.mark.parametrize(("make", "width", "scheme"), VIEWS)
def test_it_fits_draws_and_stays_quiet(
    open_report: Callable[..., Opened], make: Callable[[], Report], width: int, scheme: str
) -> None:
    report = make()
    opened = open_report(report, width=width, scheme=scheme)
    assert opened.overflow() == 0
    opened.unfold()
    assert opened.overflow() == 0
    canvases = opened.page.query_selector_all(".plot canvas")
    assert len(canvases) == 3 * len({(cell.scenario, cell.load) for cell in report.cells if cell.valid})
    assert all(canvas.evaluate(COLOURS) > 3 for canvas in canvases)
    assert opened.page.title() == f"{report.run.suite} · Redline".replace("\n", " ")
    opened.assert_quiet()


@pytest.mark.parametrize("width", [320, 768, 1440])
def test_every_forest_keeps_its_marks_inside_the_page(open_report: Callable[..., Opened], width: int) -> None:
    opened = open_report(reports.healthy(), width=width)
    points = opened.page.query_selector_all(".mark .point")
    drawn = [one for one in reports.healthy().comparisons if one.primary and one.ratio]
    assert len(points) == len(drawn) > 0
    outside = opened.page.evaluate(
        """() => [...document.querySelectorAll(".mark .point")].filter(point => {
          const mark = point.getBoundingClientRect(), table = point.closest("table").getBoundingClientRect();
          return mark.width === 0 || mark.left < table.left || mark.right > table.right;
        }).length"""
    )
    assert outside == 0


def test_numbers_do_not_run_into_each_other(open_report: Callable[..., Opened]) -> None:
    for width in (320, 1024, 1440, 1920):
        opened = open_report(reports.skipping(), width=width)
        overlaps = opened.page.evaluate(
            """() => [...document.querySelectorAll(".scores td, table.forest :is(td, th)")].filter(cell => {
              const within = cell.getBoundingClientRect();
              return [...cell.querySelectorAll("b, small, span:not(.unseen)")].some(part =>
                part.getClientRects().length && part.getBoundingClientRect().right > within.right + 1);
            }).length"""
        )
        assert overlaps == 0, width


@pytest.mark.parametrize(("make", "most"), [(reports.healthy, 3_500), (studies.small, 6_000), (reports.alone, 2_500)])
def test_a_page_is_not_longer_than_it_has_to_be(
    open_report: Callable[..., Opened], make: Callable[[], Report], most: int
) -> None:
    assert open_report(make(), width=1280).height() <= most


def test_the_first_screen_has_the_answer_and_its_picture_beside_it(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy(), width=1280)
    places = ("#answer .notes", "#answer .picture")
    words, picture = (opened.page.locator(place).first.bounding_box() for place in places)
    assert words
    assert picture
    assert picture["x"] >= words["x"] + words["width"]
    assert picture["x"] + picture["width"] > 1_200
    assert max(box["y"] + box["height"] for box in (words, picture)) < 900


def test_it_is_printed_on_two_upright_pages(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy(), width=1280)
    printed = opened.page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
    box = re.search(rb"/MediaBox\s*\[0 0 ([0-9.]+) ([0-9.]+)\]", printed)
    assert box
    assert (round(float(box[1])), round(float(box[2]))) == (595, 842)


def test_rows_are_sorted_with_what_is_folded_below_them(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy(), width=1280)
    page = opened.page
    names = "() => [...document.querySelectorAll('.scores .entry')].map(body => body.innerText.split('\\n')[0])"
    before = page.evaluate(names)
    head = page.locator(".scores > thead th", has_text="CPU per request")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    places = page.evaluate(
        """() => [...document.querySelectorAll(".scores .entry")].map(
          body => body.rows[0].cells[2].dataset.place).filter(place => place !== undefined).map(Number)"""
    )
    assert len(places) == 8
    assert places == sorted(places)
    assert not page.locator(".scores .setting").first.is_visible()
    assert page.locator(".scores .entry .workload").first.is_visible()
    head.locator("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    assert page.evaluate(names) == before
    page.locator(".scores .more-of summary").first.click()
    assert page.locator(".scores .more-of table").first.is_visible()
    opened.assert_quiet()


def test_on_a_phone_tables_scroll_inside_themselves_and_show_it(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy(), width=390)
    assert opened.overflow() == 0
    scrolled = opened.page.evaluate(
        """() => { const scroll = document.querySelector(".scores").parentElement;
          return [scroll.scrollWidth > scroll.clientWidth, getComputedStyle(scroll).backgroundAttachment]; }"""
    )
    assert scrolled == [True, "local, local, scroll, scroll"]
    overlapping = opened.page.evaluate(
        """() => [...document.querySelectorAll("svg.axis, .axis svg")].filter(axis => {
          const boxes = [...axis.querySelectorAll("text")].map(text => text.getBoundingClientRect())
            .filter(box => box.width).sort((a, b) => a.left - b.left);
          return boxes.some((box, i) => i && box.left < boxes[i - 1].right);
        }).length"""
    )
    assert overlapping == 0


def test_a_link_opens_the_fold_that_it_points_into(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.died(), width=1280)
    link = opened.page.locator(".scores a.chip").first
    target = (link.get_attribute("href") or "")[1:]
    assert not opened.page.locator(f"#{target}").is_visible()
    link.click()
    opened.page.wait_for_function("id => document.getElementById(id).checkVisibility()", arg=target)


def test_tables_and_the_forest_need_no_javascript(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.skipping(), scripts=False)
    text = opened.page.inner_text("#results")
    assert re.search(r"▼\s*slower", text)
    assert "Sent 14,210/s of 20,000/s (71%)." in text
    assert len(opened.page.query_selector_all(".mark .point")) > 0
    opened.page.locator("#plots summary").first.click()
    assert "The plots need JavaScript" in opened.page.inner_text("#plots")


def test_no_fold_that_is_opened_says_that_plots_need_javascript(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy())
    opened.unfold()
    assert "JavaScript" not in opened.page.inner_text("body")


def test_plots_answer_to_their_controls(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy())
    page = opened.page
    opened.unfold()
    pixels = "() => [...document.querySelectorAll('.percentiles canvas')].map(canvas => canvas.toDataURL())"
    response = page.evaluate(pixels)
    page.check("input[value=service]")
    service = page.evaluate(pixels)
    assert [a != b for a, b in zip(response, service, strict=True)] == [False, True, False, True], (
        "only open loads differ"
    )
    assert page.inner_text("figure.percentiles figcaption") == "Service time by percentile"
    page.check("input[value=p50]")
    assert page.inner_text("figure.latency figcaption") == "p50 of response time over time"
    button = page.locator(".legend button").first
    button.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert page.evaluate(pixels)[0] != service[0]
    page.locator(".percentiles .u-over").first.hover()
    assert "rust.axum" in page.locator(".percentiles .readout").first.inner_text()
    opened.assert_quiet()


def test_plots_follow_the_scheme_the_width_and_the_paper(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.healthy(), width=1440)
    page = opened.page
    opened.unfold()
    pixels = "document.querySelector('.percentiles canvas').toDataURL()"
    light = page.evaluate(pixels)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"light => {pixels} !== light", arg=light)
    page.set_viewport_size({"width": 700, "height": 900})
    page.wait_for_function("document.querySelector('.percentiles canvas').getBoundingClientRect().width < 700")
    assert opened.overflow() == 0
    page.set_viewport_size({"width": 1440, "height": 900})
    folds = page.evaluate("document.querySelectorAll('details[open]').length")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == folds
    opened.assert_quiet()


def test_metrics_are_chosen_without_javascript(open_report: Callable[..., Opened]) -> None:
    opened = open_report(studies.small(), scripts=False)
    page = opened.page
    assert not page.locator("#comparisons .panel.t0").is_visible()
    page.locator("#comparisons summary").click()
    page.locator("#effects summary").click()
    assert page.locator("#comparisons .panel.t0").is_visible()
    assert not page.locator("#comparisons .panel.t2").is_visible()
    page.locator("label[for=comparisons-2]").click()
    assert page.locator("#comparisons .panel.t2").is_visible()
    assert not page.locator("#comparisons .panel.t0").is_visible()
    assert page.locator("#effects .panel.t0").is_visible()
    page.locator("#comparisons-2").press("ArrowRight")
    assert page.locator("#comparisons .panel.t3").is_visible()


@pytest.mark.long
def test_a_large_study_draws_what_is_opened(open_report: Callable[..., Opened]) -> None:
    opened = open_report(studies.big())
    page = opened.page
    assert opened.overflow() == 0
    assert len(page.query_selector_all(".plot canvas")) == 0
    page.locator("#plots details summary").nth(1).click()
    page.wait_for_function("document.querySelectorAll('.plot canvas').length === 3")
    assert page.locator("#results table.scores").count() == 1, "tables that are folded are made when they are opened"
    page.locator("#results > details > summary").nth(1).click()
    second = page.locator("#results table.scores").nth(1)
    second.locator("thead button").first.click()
    assert second.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"
    page.set_viewport_size({"width": 390, "height": 900})
    assert opened.overflow() == 0
    opened.assert_quiet()


@pytest.mark.long
def test_all_tables_of_a_large_study_need_no_javascript(open_report: Callable[..., Opened]) -> None:
    page = open_report(studies.big(), scripts=False).page
    assert page.locator("#results table.scores").count() == 18
    page.locator("#results > details > summary").nth(17).click()
    assert page.locator("#results table.scores").nth(17).is_visible()


def test_hostile_text_does_not_run(open_report: Callable[..., Opened]) -> None:
    opened = open_report(reports.nasty())
    opened.unfold()
    opened.page.locator(".percentiles .u-over").first.hover()
    assert "pwned" in opened.page.locator(".percentiles .readout").first.inner_text()
    assert opened.page.title() != "pwned"
    assert opened.page.query_selector_all("img") == []
    assert len(opened.page.query_selector_all("script")) == 8
    opened.assert_quiet()


@pytest.mark.long
def test_words_keep_their_contrast(open_report: Callable[..., Opened]) -> None:
    """WCAG 2.2, 1.4.3: text against the nearest opaque background, at least 4.5 to 1."""
    for scheme in ("light", "dark"):
        for report in (reports.skipping(), studies.small()):
            opened = open_report(report, scheme=scheme)
            opened.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
            for metric in range(len(COMPARED)):
                for tab in opened.page.query_selector_all(f"label[for$='-{metric}']"):
                    tab.click()
                assert opened.page.evaluate(CONTRAST) == [], scheme


CONTRAST = """() => {
  const parse = text => text.match(/[0-9.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, svg, .skip")) continue;
    const [a, b] = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) weak.add(`${element.className || element.tagName}: ${ratio.toFixed(2)}`);
  }
  return [...weak];
}"""


def test_a_flame_graph_is_read_by_pointer_keyboard_and_search(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_profiles())
    page, readout = opened.page, opened.page.locator("#flame-readout")
    canvas, field = page.locator(".flames canvas"), page.locator(".flames .field")
    assert canvas.evaluate(COLOURS) > 5
    canvas.hover(position={"x": 100, "y": 4 * 19 + 9})
    assert re.search(
        r"^org.http4s.ember.server.internal.ServerHelpers\$.runApp\s+http4s\s+5\d(\.\d)?% of all\s+10,\d\d\d samples\s",
        readout.inner_text(),
    )
    whole = canvas.evaluate("canvas => canvas.toDataURL()")
    canvas.click(position={"x": 100, "y": 4 * 19 + 9})
    assert canvas.evaluate("canvas => canvas.toDataURL()") != whole
    assert page.locator("[data-flame=reset]").is_enabled()
    field.press("ArrowDown")
    assert "ServerInterpreter.apply" in readout.inner_text() or "Parser$Request.parse" in readout.inner_text()
    field.press("Enter")
    field.press("Home")
    assert readout.inner_text().startswith("all")
    page.locator("[data-flame=reset]").click()
    assert page.locator("[data-flame=reset]").is_disabled()
    page.fill("[data-flame=search]", "TAPIR")
    assert re.search(r"^3 frames\s+match “TAPIR”:\s+19(\.\d)?%", readout.inner_text())
    page.fill("[data-flame=search]", "no such function")
    assert readout.inner_text().startswith("0 frames")
    opened.assert_quiet()


def test_a_deep_flame_graph_opens_where_the_program_begins(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_deep_stacks())
    page, readout, field = opened.page, opened.page.locator("#flame-readout"), opened.page.locator(".flames .field")
    canvas, reset = page.locator(".flames canvas"), page.locator("[data-flame=reset]")
    assert re.match(
        r"opened at\s+cats.effect.IOFiber.runLoop\s+which has 100% of the samples of the program's own threads;"
        r"\s+30 frames above it are folded",
        readout.inner_text(),
    )
    folded = canvas.evaluate("canvas => canvas.clientHeight")
    assert folded < 14 * 19
    assert reset.is_enabled()
    canvas.hover(position={"x": 100, "y": 2 * 19 + 9})
    assert readout.inner_text().startswith("cats.effect.IOFiber.runLoop")
    canvas.hover(position={"x": 100, "y": 9})
    assert readout.inner_text().startswith("all")
    field.press("ArrowDown")
    field.press("Home")
    assert readout.inner_text().startswith("all")
    reset.click()
    assert canvas.evaluate("canvas => canvas.clientHeight") >= folded + 30 * 19
    assert reset.is_disabled()
    canvas.hover(position={"x": 100, "y": 5 * 19 + 9})
    assert readout.inner_text().startswith("framework.Layer3.call")
    opened.assert_quiet()


def test_a_flame_graph_is_held_against_others_and_drawn_by_thread(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_profiles())
    page, readout, field = opened.page, opened.page.locator("#flame-readout"), opened.page.locator(".flames .field")
    against = page.locator("[data-flame=against]")
    options = against.locator("option").all_inner_texts()
    assert [option.startswith("baseline: ") for option in options].count(True) == 1
    assert options[-1] == "slow moments, against the rest"
    against.select_option(index=next(at for at, option in enumerate(options) if option.startswith("baseline: ")))
    field.press("Home")
    assert re.search(
        r"(\d+\.\d) µs per request, .* in http4s.vanilla.*:\s+\+1\d\.\d µs per request", readout.inner_text()
    )
    against.select_option("slow")
    field.press("Home")
    assert "in the rest of it:" in readout.inner_text()
    against.select_option("")
    threads = page.locator("[data-flame=threads]")
    assert re.fullmatch(r"io-compute 9\d(\.\d)?%", threads.locator("option").all_inner_texts()[2])
    threads.select_option("GC Thread")
    field.press("Home")
    assert re.search(r"^all\s+[3-5](\.\d)?% of all", readout.inner_text())
    threads.select_option("*")
    field.press("ArrowDown")
    assert readout.inner_text().startswith("io-compute")
    opened.assert_quiet()


def test_a_link_opens_the_same_view_of_a_flame_graph(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_profiles(), width=390)
    page, readout, field = opened.page, opened.page.locator("#flame-readout"), opened.page.locator(".flames .field")
    against = page.locator("[data-flame=against]")
    options = against.locator("option").all_inner_texts()
    against.select_option(index=next(at for at, option in enumerate(options) if option.startswith("baseline: ")))
    page.locator("[data-flame=threads]").select_option("io-compute")
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        field.press(key)
    seen, link, chosen = readout.inner_text(), page.url, against.input_value()
    assert "per request" in seen
    assert page.locator("[data-flame=link]").evaluate("link => link.href") == link
    picture = "canvas => canvas.toDataURL()"
    page.locator(".flames canvas").hover(position={"x": 5, "y": 5})
    drawn = page.locator(".flames canvas").evaluate(picture)
    page.goto("about:blank")
    page.goto(link)
    assert against.input_value() == chosen
    assert page.locator("[data-flame=threads]").input_value() == "io-compute"
    page.locator(".flames canvas").hover(position={"x": 5, "y": 5})
    assert page.locator(".flames canvas").evaluate(picture) == drawn
    assert opened.overflow() == 0
    page.evaluate("location.hash = '#flame?profile=nobody&frame=%3Cimg%3E&threads=none&search=TAPIR'")
    page.wait_for_function("document.getElementById('flame-readout').textContent.includes('TAPIR')")
    assert page.locator("[data-flame=search]").input_value() == "TAPIR"
    assert opened.complaints == []


def test_what_only_the_other_profile_has_is_said(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_profiles())
    page = opened.page
    labels = page.locator("[data-flame=profile] option").all_inner_texts()
    page.locator("[data-flame=profile]").select_option(
        index=next(at for at, label in enumerate(labels) if "vanilla" in label)
    )
    options = page.locator("[data-flame=against] option").all_inner_texts()
    other = next(at for at, option in enumerate(options) if "tapir" in option)
    page.locator("[data-flame=against]").select_option(index=other)
    said = page.locator("[data-flame=missed]").inner_text()
    assert re.search(r"^Not drawn: \d+(\.\d+)? µs per request of http4s.tapir", said)
    assert "ServerInterpreter.apply" in said


def test_without_javascript_the_tables_of_profiles_stand(open_report: Callable[..., Opened]) -> None:
    opened = open_report(profiles.report_with_profiles(), scripts=False)
    text = opened.page.inner_text("#profiles")
    assert "The flame graph needs JavaScript" in text
    assert not opened.page.locator(".flames .controls").is_visible()
    assert "tapir's interpreter" in text
