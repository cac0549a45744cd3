"""Make the pictures of the documentation, `docs/pictures/*`, from real runs: `python -m bench.pictures [NAME …]`.

The servers are oracles, of which the second works more for each answer, and one is a queue. `ab.svg` is what a terminal
shows of `redline ab`; the others are first screens of pages, by the Chromium of this machine. `reading.png` has a
number beside each part that the guide to reports explains. With names such as `load history`, only these are made.
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
SCRIPTS = {name: f"null --work {work}" for name, work in WORK.items()} | {"queue": "exponential --rate 1000"}
"""The arguments of the oracle."""
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
    "limit": ("./queue --port {port}", "--objective", "p99 < 200ms"),
    "run": (),
}
PICTURES_OF = {
    "load": (Picture("load.png", 760),),
    "ab": (Picture("report.png", 640), Picture("reading.png", 860, PARTS)),
    "limit": (Picture("limit.png", 760),),
    "run": (Picture("run.png", 760),),
    "history": (Picture("history.png", 620),),
    "view": (Picture("view.png", 420),),
}
NIGHTS = 8
"""Comparisons of a history; in the later half `new` works for twice as long."""
TWICE = "null --work 20000"
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
        for name, mode in SCRIPTS.items():
            _write_server(folder / name, mode)
        (folder / "redline.yaml").write_text(SUITE)
        wanted = sys.argv[1:] or PICTURES_OF
        for name in (name for name in COMMANDS if name in wanted):
            shown = _on_terminal(folder, name, *COMMANDS[name], "-o", f"of-{name}")
            if name == "ab":
                (PICTURES / "ab.svg").write_text(_as_svg(shown))
            _first_screens((folder / f"of-{name}" / "report.html").as_uri(), PICTURES_OF[name])
        if {"history", "view"} & {*wanted}:
            _over_time(folder)
    for made in sorted(PICTURES.iterdir()):
        size = made.stat().st_size
        print(f"{made.name}: {size / 1000:,.0f} kB")
        if size > MOST_BYTES:
            sys.exit(f"{made.name} is larger than {MOST_BYTES / 1000:,.0f} kB")


def _write_server(script: Path, mode: str) -> None:
    script.write_text(f'#!/bin/sh\nexec {build_oracle()} {mode} "$@"\n')
    script.chmod(0o755)


def _over_time(folder: Path) -> None:
    """Compare some times, and show the history of these comparisons, and their list in a browser."""
    for night in range(1, NIGHTS + 1):
        if night > NIGHTS // 2:
            _write_server(folder / "new", TWICE)
        _on_terminal(folder, "ab", *SERVERS, "--for", "15s", "-o", f"runs/night-{night}")
    with (folder / "history.html").open("w") as page:
        subprocess.run([str(REDLINE), "history", "runs", "--format", "html"], cwd=folder, stdout=page, check=True)
    _first_screens((folder / "history.html").as_uri(), PICTURES_OF["history"])
    with subprocess.Popen([str(REDLINE), "view"], cwd=folder, stdout=subprocess.PIPE, text=True) as view:
        try:
            assert view.stdout is not None
            (address,) = re.findall(r"http://\S+", view.stdout.readline())
            _first_screens(address, PICTURES_OF["view"])
        finally:
            view.terminate()


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


def _first_screens(address: str, pictures: tuple[Picture, ...]) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        for picture in pictures:
            opened = browser.new_page(viewport={"width": WIDTH, "height": picture.height})
            opened.goto(address)
            _number(opened, picture.parts)
            opened.screenshot(path=PICTURES / picture.file)
        browser.close()


def _number(opened: Page, parts: tuple[str, ...]) -> None:
    """Put the number of each part beside it. A part that is not there is an error: the guide speaks of it."""
    for number, part in enumerate(parts, 1):
        opened.evaluate(_NUMBER, [opened.locator(part).first.element_handle(), number])


if __name__ == "__main__":
    main()
