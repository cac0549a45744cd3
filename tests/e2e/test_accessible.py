"""Every view, unfolded, keeps to WCAG 2.2 A and AA as far as axe sees, in both schemes; every picture has a text."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser

from redline.analysis import build_report
from redline.history.over_runs import build_history
from redline.model.limits import AnyReport
from redline.render import RENDERERS, history_page
from tests.e2e.browsing import NEEDS_BROWSER, barriers, browser
from tests.fakes import layers, limits, profiles, reports, studies
from tests.fakes.compared import Cost, compared_run
from tests.fakes.histories import level_series, seen

__all__ = ["browser"]
pytestmark = NEEDS_BROWSER


def html(report: AnyReport) -> bytes:
    return RENDERERS["html"](report)


def ab() -> bytes:
    return html(build_report(compared_run({"home": Cost(1.2), "items": Cost(1.0)})))


def history() -> bytes:
    levels = level_series([2000.0] * 6 + [1700.0] * 4, 7, between=0.002)
    return history_page(build_history("runs", [seen(place, level) for place, level in enumerate(levels)]))


def explorer() -> bytes:
    return html(studies.study({"http4s.tapir": "http4s.vanilla"}, studies.SCENARIOS[:3], (1, 128)))


VIEWS: dict[str, Callable[[], bytes]] = {
    "run": lambda: html(reports.healthy()),
    "run of doubts": lambda: html(reports.skipping()),
    "run of a server that died": lambda: html(reports.died()),
    "layers": lambda: html(layers.refusing()),
    "profiles": lambda: html(profiles.report_with_profiles()),
    "ab": ab,
    "load": lambda: html(reports.alone()),
    "limit": lambda: html(limits.by_hand()),
    "history": history,
    "explorer": explorer,
}
WITHOUT_TEXT = """() => [...document.querySelectorAll("svg, canvas")].filter(picture => picture.checkVisibility()
  && !picture.closest("[aria-hidden=true]")
  && !picture.closest(":is([role=img], [role=application])[aria-label]:not([aria-label=''])"))
  .map(picture => picture.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize(
    ("view", "scheme"),
    [
        pytest.param(view, scheme, marks=[] if scheme == "light" or view == "ab" else [pytest.mark.long])
        for view in VIEWS
        for scheme in ("light", "dark")
    ],
)
def test_nothing_bars_people_from_a_view(
    browser: Browser, tmp_path: Path, view: str, scheme: Literal["light", "dark"]
) -> None:
    file = tmp_path / "page.html"
    file.write_bytes(VIEWS[view]())
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
    page.goto(file.as_uri())
    if view == "explorer":
        page.locator(".pivot-table button").nth(0).click()
        page.locator(".pivot-table button").nth(7).click()
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert barriers(page) == []
    assert page.evaluate(WITHOUT_TEXT) == []
    page.close()


def test_a_barrier_is_seen(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(
        "<html lang=en><title>t</title><main><p style='color: #ccc; background: #fff'>pale</p><svg></svg></main>"
    )
    (seen_by_axe,) = barriers(page)
    assert seen_by_axe.startswith("color-contrast:")
    assert page.evaluate(WITHOUT_TEXT) == ["<svg></svg>"]
    page.close()
