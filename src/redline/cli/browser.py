"""`--open`: show a page in a browser of this machine, or say where it is."""

import os
import webbrowser
from pathlib import Path

from rich.console import Console

from redline.cli.show import insist
from redline.errors import UsageError

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")


def open_page(page: Path | str, console: Console) -> None:
    """Open a file, or a URL, in a browser; without a display, print one message. A browser of text would take over."""
    url = page if isinstance(page, str) else page.resolve().as_uri()
    if not any(map(os.environ.get, _DISPLAYS)):
        insist(console, f"--open: there is no display, and BROWSER names no browser; the page: {url}", "yellow")
    elif not webbrowser.open(url):
        insist(console, f"--open: no browser could be started; the page: {url}", "yellow")


def check_is_kept(*, opens: bool, is_kept: bool) -> None:
    """Raise UsageError if a page is to be opened and nothing is kept."""
    if opens and not is_kept:
        raise UsageError("--open shows the page of what is kept", hint="keep it: give -o DIR or -o FILE.html too")
