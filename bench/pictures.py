"""Make the pictures of the documentation, `docs/pictures/*`, from real runs: `python -m bench.pictures [NAME …]`.

The servers are oracles, of which the second works more for each answer. `ab.svg` is what a terminal shows of `redline
ab`; the others are first screens of pages, by the Chromium of this machine. `reading.png` has a number beside each part
that the guide to reports explains. With names such as `load run`, only their commands run.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Page, sync_playwright
from rich.console import Console
from rich.text import Text

from bench.rig import build_oracle
from tests.e2e.browsing import CHROMIUM

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
REDLINE = Path(sys.executable).with_name("redline")
WORK = {"old": 8_000, "new": 8_900, "other": 10_000}
"""Steps of work for an answer; 8,000 are most of what an answer of this server costs."""
COLUMNS = 80
WIDTH = 1280
MOST_BYTES = 200_000
"""The largest picture: more takes too long to open from a far place."""
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that a picture would load from the network."""


class Picture(NamedTuple):
    """The first screen of a page: its file, its height in pixels, and the parts that have a number beside them."""

    file: str
    height: int
    parts: tuple[str, ...] = ()


SERVERS = tuple(f"./{name} --port {{port}}" for name in ("old", "new"))
PARTS = ("#answer", "table.forest", "#caveats", "#results")
"""The parts of a page that the guide explains, in its order."""
COMMANDS = {
    "load": (SERVERS[0], "-d", "10s"),
    "ab": SERVERS,
    "run": (),
}
PICTURES_OF = {
    "load": (Picture("load.png", 760),),
    "ab": (Picture("report.png", 640), Picture("reading.png", 860, PARTS)),
    "run": (Picture("run.png", 760),),
}
SUITE = "servers:\n" + "".join(f"  - {{name: {name}, start: './{name} --port {{port}}'}}\n" for name in WORK)
_NUMBER = """([element, number]) => {
  const badge = document.createElement("b"), at = element.getBoundingClientRect();
  badge.textContent = number;
  badge.style.cssText = `position: absolute; left: ${Math.max(4, at.left - 32)}px; top: ${at.top + 4}px; width: 26px;
    text-align: center; font: 700 15px/26px sans-serif; color: #fff; background: #c2152f; border-radius: 13px`;
  document.body.append(badge);
}"""


def main() -> None:
    """Measure, and write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "shop"
        folder.mkdir()
        for name, work in WORK.items():
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {build_oracle()} null --work {work} "$@"\n')
            script.chmod(0o755)
        (folder / "redline.yaml").write_text(SUITE)
        for name in sys.argv[1:] or COMMANDS:
            shown = _on_terminal(folder, name, *COMMANDS[name], "-o", f"of-{name}")
            if name == "ab":
                (PICTURES / "ab.svg").write_text(_as_svg(shown))
            _first_screens(folder / f"of-{name}" / "report.html", PICTURES_OF[name])
    for made in sorted(PICTURES.iterdir()):
        size = made.stat().st_size
        print(f"{made.name}: {size / 1000:,.0f} kB")
        if size > MOST_BYTES:
            sys.exit(f"{made.name} is larger than {MOST_BYTES / 1000:,.0f} kB")


def _on_terminal(folder: Path, *words: str) -> str:
    """What a command prints as its result on a terminal, with its colours."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [str(REDLINE), *words, "--quiet"]
    with subprocess.Popen(command, cwd=folder, stdout=theirs, env=environment) as running:
        os.close(theirs)
        shown = b""
        try:
            while content := os.read(ours, 65536):
                shown += content
        except OSError:  # Linux ends the reading of a terminal that nobody holds any more by an error
            pass
    os.close(ours)
    if running.returncode:
        sys.exit(f"redline {' '.join(words)} ended with {running.returncode}")
    return shown.decode().replace("\r\n", "\n")


def _as_svg(shown: str) -> str:
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"))  # noqa: SIM115, PTH123
    console.print(Text("$ redline ab './old --port {port}' './new --port {port}'\n", style="bold"))
    console.print(Text.from_ansi(shown))
    return _FONTS.sub("", console.export_svg(title="redline ab"))


def _first_screens(page: Path, pictures: tuple[Picture, ...]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for picture in pictures:
            opened = browser.new_page(viewport={"width": WIDTH, "height": picture.height})
            opened.goto(page.as_uri())
            _number(opened, picture.parts)
            opened.screenshot(path=PICTURES / picture.file)
        browser.close()


def _number(opened: Page, parts: tuple[str, ...]) -> None:
    """Put the number of each part beside it. A part that is not there is an error: the guide speaks of it."""
    for number, part in enumerate(parts, 1):
        opened.evaluate(_NUMBER, [opened.locator(part).first.element_handle(), number])


if __name__ == "__main__":
    main()
