"""What a page costs its reader: its size, its height, the time until it is open, and frames while it scrolls.

`python -m bench.pages` makes synthetic runs of several sizes, as `redline run` stores them, renders their pages, opens
them in the Chromium of this machine, and prints a table. Frames are counted while the page, and then the explorer,
scroll by a part of a screen in every frame. Without a screen, as here, Chromium aims at 60 frames a second.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from bench.judging import Size, store
from redline.analysis import build_report
from redline.render import RENDERERS
from redline.storage.runs import RunStore
from tests.e2e.browsing import CHROMIUM, FLAGS

SIZES = {
    2: Size(servers=2, scenarios=1, trials=5, loads=1),
    15: Size(servers=5, scenarios=3, trials=5, loads=1),
    200: Size(servers=20, scenarios=5, trials=5),
    1000: Size(servers=50, scenarios=10, trials=5),
}
"""Runs by their number of cells."""
REPEATS = 3
SCROLLED = """(selector) => new Promise(done => {
  const moved = selector ? document.querySelector(selector) : document.scrollingElement;
  if (!moved) return done(null);
  if (selector) moved.scrollIntoView({ behavior: "instant" });
  const times = [];
  const frame = now => {
    times.push(now);
    moved.scrollBy({ top: 150, behavior: "instant" });
    if (now - times[0] < 2000) requestAnimationFrame(frame);
    else done(times.slice(1).map((time, i) => time - times[i]));
  };
  requestAnimationFrame(frame);
})"""
"""The milliseconds between the frames of two seconds, or null if nothing of this name is on the page."""
OPENED = """() => new Promise(done => {
  const drawn = () => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
  if (document.readyState === "complete") drawn(); else addEventListener("load", drawn);
})"""
"""Milliseconds from the beginning of the navigation until the loaded page is painted."""


def _open(browser: Browser, file: Path) -> tuple[Page, float]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(file.as_uri(), wait_until="commit")
    return page, page.evaluate(OPENED)


def _frames(page: Page, selector: str | None) -> str:
    """`60/s, longest 17 ms`: the median rate, and the longest distance of two frames."""
    between = page.evaluate(SCROLLED, selector)
    if not between:
        return "-"
    return f"{1000 / statistics.median(between):.0f}/s, longest {max(between):.0f} ms"


def measure(browser: Browser, cells: int) -> list[str]:
    """The row of a run of so many cells."""
    with tempfile.TemporaryDirectory() as scratch:
        folder, file = Path(scratch) / "run", Path(scratch) / "report.html"
        store(SIZES[cells], folder)
        report = build_report(RunStore(folder).run())
        began = time.process_time()
        content = RENDERERS["html"](report)
        rendered = time.process_time() - began
        file.write_bytes(content)
        opened = []
        for _ in range(REPEATS):
            page, took = _open(browser, file)
            opened.append(took)
            if len(opened) < REPEATS:
                page.close()
        height = page.evaluate("document.documentElement.scrollHeight")
        elements = page.evaluate("document.getElementsByTagName('*').length")
        frames = [_frames(page, None), _frames(page, ".pivot-scroll")]
        page.close()
    figures = [f"{rendered:.1f}", f"{len(content) / 1e6:.2f}", str(elements), str(height)]
    return [str(cells), *figures, f"{min(opened):.0f}", *frames]


def main() -> None:
    """Print a table with a row for each size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", type=int, choices=[[], *SIZES], help="default: all sizes")
    given = parser.parse_args()
    heads = ["cells", "render s (CPU)", "MB", "elements", "height px", "open ms", "page scrolls", "explorer scrolls"]
    print(f"| {' | '.join(heads)} |\n|{'---|' * len(heads)}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        for cells in given.cells or SIZES:
            print(f"| {' | '.join(measure(browser, cells))} |", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
