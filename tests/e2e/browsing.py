"""The browser in which pages are opened: Chromium of this machine, which asks nothing of the network.

`barriers` is what axe finds on a page: it is empty if the page holds to WCAG 2.2, levels A and AA, as far as a machine
can say.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, _NAMES)), None)
"""The first that is installed: a page takes the shell, which has no windows, a third of Chromium's CPU time."""
NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason=f"no Chromium on the PATH (install: apt install {_NAMES[0]})"),
]
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


COLOURS = """canvas => {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const pixels = new Uint32Array(data.buffer).filter(pixel => pixel >>> 24 > 200);
  return new Set(pixels.map(pixel => pixel & 0xffffff)).size;
}"""
"""The number of colours on a canvas that nearly cover what is behind them, in JavaScript."""

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "cat.aria", "cat.tables")
"""The tags of rules: WCAG's, and those of axe's best practices for ARIA and tables."""


def barriers(page: Page, within: str = "html") -> list[str]:
    """What keeps people from reading the page, or the part of a selector: rule, help, and the first such elements.

    What is folded away is not looked at: open it first.
    """
    page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(
        """([within, rules]) => axe.run(within, { runOnly: rules, resultTypes: ["violations"] }).then(
          ({ violations }) => violations.map(({ id, help, nodes }) => ({ id, help, count: nodes.length,
            where: nodes.slice(0, 3).map(node => `${node.target} ${node.any[0]?.message ?? ""}`) })))""",
        [within, list(RULES)],
    )
    return [f"{one['id']}: {one['help']} ({one['count']}): {'; '.join(one['where'])}" for one in found]
