"""Widths that a terminal cannot have: what is printed is there all the same."""

import io
import sys

import pytest

from redline.cli.show import Terminal, show
from redline.document.blocks import Prose, Section

TEXT = "every word of this line is printed"


def printed(monkeypatch: pytest.MonkeyPatch, columns: str, *, on_terminal: bool = False) -> list[str]:
    out = io.StringIO()
    out.isatty = lambda: on_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("TERM", "dumb")
    show([Section("A title", (Prose.of((TEXT,)),))])
    return out.getvalue().splitlines()


@pytest.mark.parametrize("on_terminal", [False, True])
@pytest.mark.parametrize("columns", ["0", "00", "-1", "abc", "", "1", "2", "19", "20", "80", "99999"])
def test_all_words_are_printed(monkeypatch: pytest.MonkeyPatch, columns: str, on_terminal: bool) -> None:
    lines = printed(monkeypatch, columns, on_terminal=on_terminal)
    assert " ".join(" ".join(lines).split()) == f"A title {TEXT}"


def test_a_width_of_0_is_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    assert Terminal().width >= 80
    monkeypatch.setenv("COLUMNS", "1")
    assert Terminal().width == 20
    monkeypatch.setenv("COLUMNS", "50")
    assert Terminal().width == 50
