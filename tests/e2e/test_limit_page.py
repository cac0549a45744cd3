"""The page of a limit in a real browser: curves are drawn, nothing is logged or loaded, nothing overflows."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from redline.model.limits import LimitReport
from redline.render import RENDERERS
from tests.e2e.browsing import COLOURS, NEEDS_BROWSER, browser
from tests.e2e.test_report_page import Opened
from tests.fakes import limits

__all__ = ["browser"]
pytestmark = NEEDS_BROWSER


@pytest.mark.parametrize(("width", "scheme"), [(320, "light"), (1440, "light"), (1440, "dark")])
@pytest.mark.parametrize("make", [limits.by_hand, limits.nasty])
def test_it_fits_draws_and_stays_quiet(
    browser: Browser, tmp_path: Path, make: Callable[[], LimitReport], width: int, scheme: str
) -> None:
    report = make()
    file = tmp_path / "limit.html"
    file.write_bytes(RENDERERS["html"](report))
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if scheme == "dark" else "light"
    )
    opened = Opened(context.new_page())
    opened.page.on("console", lambda message: opened.complaints.append(message.text))
    opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.page.on("request", lambda request: opened.requests.append(request.url))
    opened.page.goto(file.as_uri())
    assert opened.overflow() == 0
    opened.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert opened.overflow() == 0
    canvases = opened.page.query_selector_all(".plot canvas")
    assert len(canvases) == 3, "one curve, and two overload tests"
    assert all(canvas.evaluate(COLOURS) > 3 for canvas in canvases)
    assert opened.page.title() == f"{report.suite} · Redline".replace("\n", " ")
    opened.assert_quiet()
    context.close()
