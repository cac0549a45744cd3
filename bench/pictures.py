"""Make the pictures of the documentation, `docs/pictures/*`, from a real run: `python -m bench.pictures`.

`redline ab` compares two oracles for a minute, of which the second works more for each answer. `ab.svg` is what a
terminal shows of it, and `report.png` the first screen of its page, by the Chromium of this machine.
"""

import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from bench.rig import build_oracle
from tests.e2e.browsing import CHROMIUM

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
REDLINE = Path(sys.executable).with_name("redline")
WORK = {"old": 8_000, "new": 8_900}
"""Steps of work for an answer; 8,000 are most of what an answer of this server costs."""
COLUMNS = 80
WIDTH, HEIGHT = 1280, 640
MOST_BYTES = 200_000
"""The largest picture: more takes too long to open from a far place."""
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts that a picture would load from the network."""


def main() -> None:
    """Measure, and write the pictures."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for name, work in WORK.items():
            script = folder / name
            script.write_text(f'#!/bin/sh\nexec {build_oracle()} null --work {work} "$@"\n')
            script.chmod(0o755)
        shown = _on_terminal(folder, "ab", *(f"./{name} --port {{port}}" for name in WORK), "-o", "run")
        (PICTURES / "ab.svg").write_text(_as_svg(shown))
        _page(folder / "run" / "report.html", PICTURES / "report.png")
    for picture in sorted(PICTURES.iterdir()):
        size = picture.stat().st_size
        print(f"{picture.name}: {size / 1000:,.0f} kB")
        if size > MOST_BYTES:
            sys.exit(f"{picture.name} is larger than {MOST_BYTES / 1000:,.0f} kB")


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


def _page(page: Path, picture: Path) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        opened = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        opened.goto(page.as_uri())
        opened.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    main()
