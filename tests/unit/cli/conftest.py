"""For the tests of commands, which run in the process of the tests."""

from functools import cache

import pytest

from redline.launching import inputs

_ask_once = cache(inputs._ask)


@pytest.fixture(autouse=True)
def tools_that_are_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask each tool of the built-in servers for its version once. Some start a JVM, and a test has its own folder."""
    monkeypatch.setattr(inputs, "_ask", _ask_once)
