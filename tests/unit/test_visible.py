"""Texts in which everything is visible, on streams, consoles and in every form of a report."""

import io
import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text

from redline.cli.show import OneLine, Terminal
from redline.cli.streams import VisibleStream
from redline.model.history import LeftOut
from redline.render import RENDERERS
from redline.visible import visible
from tests.fakes import reports

HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}
HOSTILE = "\x1b[8m\x1b]0;owned\x07\r\x08\x7f\x9b31m\u202e\u2066\u200b\u2028\ufeff\U000e0041[link=http://x]\udc80"


def obeyed(text: str) -> set[str]:
    """The characters of a text that act without being seen; line ends and tabs are layout."""
    return {char for char in text.replace("\r\n", "\n") if char not in "\n\t" and unicodedata.category(char) in HIDDEN}


@given(st.text(st.characters()))
def test_nothing_acts_or_hides(text: str) -> None:
    shown = visible(text)
    assert not obeyed(shown)
    assert visible(shown) == shown
    kept = [char for char in text if char.isprintable() and char not in "\\\u3164"]
    assert all(char in shown for char in kept if unicodedata.category(char)[0] in "LNPS" and char.isascii())


@given(st.text(st.characters(), max_size=20))
def test_json_remains_the_same_data(text: str) -> None:
    for written in (json.dumps({text: text}), json.dumps({text: text}, ensure_ascii=False)):
        assert json.loads(visible(written)) == {text: text}


def test_what_people_write_stays() -> None:
    for text in ("4 µs · ≤ 3 ▲", "größer\tals", "日本語", "e\u0301", "1\u00a0000", "\U0001f600", "a\r\nb\n"):
        assert visible(text) == text
    assert visible("\r\x1b\u3164") == r"\r\u001b\u3164"


def test_what_is_printable_and_blank_is_seen() -> None:
    selectors = [*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]
    for char in (*map(chr, selectors), "\u2800"):
        assert char.isprintable()
        assert visible(f"a{char}b") == f"a{json.dumps(char)[1:-1]}b"
    assert visible("\u27ff\u2801\ufe10") == "\u27ff\u2801\ufe10"  # beside them


def test_a_stream_lets_nothing_else_through() -> None:
    behind = io.StringIO()
    stream = VisibleStream(behind)
    stream.write(HOSTILE)
    stream.writelines([HOSTILE, "\n"])
    print(HOSTILE, file=stream)
    assert not obeyed(behind.getvalue())
    assert behind.getvalue().count(r"\u001b]0;owned") == 3


class Tty(io.StringIO):
    """A terminal that keeps all that is written to it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_has_no_colours_and_no_links_but_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = Tty()
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(sys, "stderr", VisibleStream(behind))
    console = Terminal(stderr=True)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    for each in (HOSTILE, Text(HOSTILE, style="red"), table, "[/b] :smile:"):
        console.print(each, style="bold", width=300, highlight=False)
    folded = Table(width=40)
    folded.add_column(overflow="fold")
    folded.add_row(Text(HOSTILE))
    before = behind.tell()
    console.print(folded)
    kept = "".join(re.sub(r"\x1b\[\d*m|[│┃]", "", behind.getvalue()[before:]).split())
    assert visible(re.sub("[\x07\x08\r]", "", HOSTILE)) in kept  # in lines as wide as the visible text
    with OneLine(console) as line:
        line.say(Text(HOSTILE))
    written = behind.getvalue()
    assert "\x1b[1m" in written  # ours
    assert "\x1b[8m" not in written
    assert "\x1b]" not in written
    assert obeyed(written) <= {"\x1b", "\r"}  # the line in place
    assert "[/b] :smile:" in written


@pytest.mark.parametrize("form", RENDERERS)
def test_a_report_hides_nothing_in_any_form(form: str) -> None:
    report = reports.healthy()
    text = f"{HOSTILE[:-1]}</script>=1"
    cells = tuple(cell.model_copy(update={"server": text, "load": text}) for cell in report.cells)
    named = report.run.model_copy(update={"name": text, "suite": text})
    made = report.model_copy(update={"cells": cells, "run": named})
    content = RENDERERS[form](made).decode()
    assert not obeyed(content)
    assert "\\u202e" in content
    if form == "html":
        assert content.count("</script>") == content.count("<script")
    if form == "json":
        assert json.loads(content)["run"]["name"] == text


@pytest.mark.parametrize("indent", [None, 1, 2])
def test_a_name_that_no_encoding_has_can_be_stored(indent: int | None) -> None:
    odd, read_back = (LeftOut(folder=f"ä{name}", reason="1 < 2", started_unix_ns=3) for name in ("\udcff", r"\udcff"))
    assert odd.model_dump_json(indent=indent) == read_back.model_dump_json(indent=indent)
    assert LeftOut.model_validate_json(odd.model_dump_json()) == read_back
