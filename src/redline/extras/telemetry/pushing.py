"""Push the sums of a meter somewhere every few seconds while a command runs, and once more at its end."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from redline.errors import UsageError

EVERY_S = 5.0
"""The time between two pushes."""


def pushed_to(flag: str, url: str, path: str, example: str) -> str:
    """Where a flag's URL has metrics pushed: a URL without a path gets this one. Raises UsageError.

    A URL with a user's name is refused: the command line of a run is kept with it, and any process may read it.
    """
    try:
        parts = urlsplit(url)
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    if not is_url:
        raise UsageError(f"{flag} {url}: this is no URL", hint=f"give the URL of a collector, such as {example}")
    if parts.username is not None:
        raise UsageError(
            f"{flag}: the URL has a user's name, and perhaps a password, which would be kept with the results",
            hint="give them as a header, in a variable: see `Metrics` in docs/reference/exports.md",
        )
    return url if parts.path.strip("/") else f"{url.rstrip('/')}{path}"


@contextmanager
def pushing(push: Callable[[], str], name: str, at_end_s: float, say: Callable[[str], object]) -> Iterator[None]:
    """Call `push` every few seconds, and once more in the end; it returns why it failed, or nothing.

    A push that fails or raises ends no load. `say` gets how many failed, and why, in the end, which the last push may
    hold up for `at_end_s` seconds. `name` is what is pushed where, for that message.
    """
    pushes = _Pushes(push)
    thread = threading.Thread(target=pushes.run, name="pushes", daemon=True)
    thread.start()
    try:
        yield
    finally:
        pushes.over.set()
        thread.join(at_end_s)
        if pushes.failed or thread.is_alive():
            why = pushes.why or "it does not answer"
            say(f"{pushes.failed or 1} of {pushes.made} pushes of {name} failed: {why}")


class _Pushes:
    """Pushes until they are `over`, and counts them; `why` the last one failed that did."""

    def __init__(self, push: Callable[[], str]) -> None:
        self._push = push
        self.over = threading.Event()
        self.made = self.failed = 0
        self.why = ""

    def run(self) -> None:
        while not self.over.wait(EVERY_S):
            self._make()
        self._make()

    def _make(self) -> None:
        self.made += 1
        try:
            why = self._push()
        except Exception as error:  # noqa: BLE001 - whatever the other end does, the load goes on
            why = str(error) or type(error).__name__
        self.failed += bool(why)
        self.why = why or self.why
