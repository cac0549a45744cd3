"""What happened over time, in a browser: one pointer and one zoom for all panels, drawn wide, narrow and dark."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from redline.analysis import build_report
from redline.model.limits import AnyReport
from redline.render import RENDERERS
from redline.running.views import search_report
from tests.e2e.browsing import COLOURS, NEEDS_BROWSER, barriers, browser
from tests.fakes.compared import Cost, compared_run
from tests.fakes.recordings import STEADY, simulated_run
from tests.fakes.searched import bench_in

__all__ = ["browser"]
pytestmark = NEEDS_BROWSER


@dataclass
class View:
    """A page at its view over time, and everything that it logged."""

    page: Page
    name: str
    complaints: list[str] = field(default_factory=list)

    def part(self, what: str) -> Any:
        return self.page.locator(f'.times[data-view="{self.name}"] {what}')

    def open(self, report: AnyReport, file: Path) -> None:
        file.write_bytes(RENDERERS["html"](report))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())
        self.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
        self.page.locator(f'.times[data-view="{self.name}"]').scroll_into_view_if_needed()
        self.part("canvas").first.wait_for(state="visible", timeout=10_000)

    def overflow(self) -> int:
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    def pointers(self) -> set[str]:
        """Where the pointers of the panels are."""
        places = "all => all.map(one => one.style.transform.split(',')[0])"
        return set(self.part(".u-cursor-x").evaluate_all(places))

    def across(self, panel: int, *shares: float) -> None:
        """Move over a panel; with two shares, drag from one to the other."""
        area = self.part(".u-over").nth(panel)
        area.scroll_into_view_if_needed()
        box = area.bounding_box()
        places = [(box["x"] + box["width"] * share, box["y"] + box["height"] / 2) for share in shares]
        self.page.mouse.move(*places[0])
        for place in places[1:]:
            self.page.mouse.down()
            self.page.mouse.move(*place, steps=4)
            self.page.mouse.up()


@pytest.fixture
def pages(browser: Browser) -> Iterator[Any]:
    made: list[Page] = []

    def opening(width: int, scheme: Any) -> Page:
        made.append(browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme).new_page())
        return made[-1]

    yield opening
    for page in made:
        page.context.close()


def run_report() -> AnyReport:
    return build_report(simulated_run(trials=2, loads=(STEADY,), ceiling=None))


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_trial_is_drawn_without_a_complaint_or_a_sideways_scroll(
    pages: Any, tmp_path: Path, width: int, scheme: str
) -> None:
    view = View(pages(width, scheme), "trials")
    view.open(run_report(), tmp_path / "report.html")
    assert view.overflow() == 0
    canvases = view.part("canvas")
    assert canvases.count() >= 5
    assert all(canvases.nth(place).evaluate(COLOURS) > 3 for place in range(canvases.count()))
    assert "measured after a warm-up" in view.part(".said").inner_text()
    assert barriers(view.page) == []
    view.part('[data-time="item"]').select_option(label="trial 2")
    assert view.part("canvas").count() == canvases.count()
    assert view.complaints == []
    view.page.emulate_media(media="print")
    assert not view.page.locator("#trials").is_visible()


def test_a_view_over_time_is_folded_and_is_drawn_in_the_colours_of_the_moment(pages: Any, tmp_path: Path) -> None:
    page, file = pages(1280, "light"), tmp_path / "report.html"
    file.write_bytes(RENDERERS["html"](run_report()))
    page.goto(f"{file.as_uri()}#trials")
    assert page.locator(".times canvas").count() == 0
    summary = page.locator("#trials summary").first
    summary.click()
    canvas = page.locator(".times canvas").first
    canvas.wait_for(state="visible", timeout=10_000)
    light = canvas.evaluate("canvas => canvas.toDataURL()")
    summary.click()
    page.emulate_media(color_scheme="dark")
    summary.click()
    redrawn = "before => document.querySelector('.times canvas').toDataURL() !== before"
    page.wait_for_function(redrawn, arg=light, timeout=10_000)
    assert canvas.evaluate("canvas => canvas.clientWidth") > 600


def test_pointer_and_zoom_are_of_all_panels(pages: Any, tmp_path: Path) -> None:
    view = View(pages(1280, "light"), "trials")
    view.open(run_report(), tmp_path / "report.html")
    view.across(2, 0.5)
    assert len(view.pointers()) == 1
    instant = view.part(".instant b").inner_text()
    assert float(instant.removesuffix(" s")) == pytest.approx(1.25 / 2, abs=0.02)  # the middle of the load
    assert "requests" in view.part("figcaption").nth(2).inner_text()
    assert all("µs" in text or "ms" in text for text in [view.part("figcaption").nth(1).inner_text()])
    reset = view.part('[data-time="reset"]')
    assert reset.is_disabled()
    view.across(1, 0.2, 0.4)
    assert reset.is_enabled()
    view.across(3, 0.0)
    assert float(view.part(".instant b").inner_text().removesuffix(" s")) == pytest.approx(0.25, abs=0.02)
    assert len(view.pointers()) == 1
    view.part(".u-over").nth(3).dblclick()
    assert reset.is_disabled()
    view.part(".axes").focus()
    view.page.keyboard.press("ArrowRight")
    assert view.part(".instant b").inner_text().endswith(" s")
    assert view.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_comparison_is_drawn_with_its_blocks(pages: Any, tmp_path: Path, width: int, scheme: str) -> None:
    view = View(pages(width, scheme), "duets")
    view.open(build_report(compared_run({"home": Cost(1.1)}, starts=3)), tmp_path / "report.html")
    assert view.overflow() == 0
    canvases = view.part("canvas")
    assert canvases.count() == 4
    assert barriers(view.page) == []
    assert all(canvases.nth(place).evaluate(COLOURS) > 3 for place in range(canvases.count()))
    view.across(1, 0.5)
    ratio = view.part("figcaption").nth(1).inner_text()
    assert "1.1" in ratio
    assert " to " in ratio
    assert len(view.pointers()) == 1
    assert view.complaints == []


def test_the_pointer_over_a_search_is_at_its_rate_on_the_curve(pages: Any, tmp_path: Path) -> None:
    bench = bench_in(tmp_path / "search", beyond=True)
    bench.run()
    report = search_report(bench.made.store)
    view = View(pages(1280, "dark"), "probes")
    view.open(report, tmp_path / "limit.html")
    assert view.overflow() == 0
    canvases = view.part("canvas")
    assert all(canvases.nth(place).evaluate(COLOURS) > 3 for place in range(canvases.count()))
    assert barriers(view.page) == []
    loads = report.cells[0].loads
    place = next(number for number, load in enumerate(loads) if load.probe is not None)
    before = sum(load.ends_s for load in loads[:place])
    load = loads[place]
    asked = load.rate_per_s or 0.0
    view.across(0, (before + (load.measured_from_s + load.ends_s) / 2) / sum(load.ends_s for load in loads))
    assert "probe 1" in view.part("figcaption").first.inner_text()
    curve = view.page.locator("figure.curve .readout").inner_text()
    nearest = min((point.answered_per_s for point in report.cells[0].curve), key=lambda rate: abs(rate - asked))
    assert curve.split()[0] == f"{nearest:.0f}"
    assert "p50" in curve
    view.page.set_viewport_size({"width": 390, "height": 900})
    assert view.overflow() == 0
    assert view.complaints == []
