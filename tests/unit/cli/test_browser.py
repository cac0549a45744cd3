"""`--open`: the page in a browser, or a message that says where it is."""

import io
import webbrowser
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner

from redline.cli.browser import open_page
from redline.cli.command_line import app
from tests.fakes.compared import Cost, compared_run
from tests.fakes.stored import kept


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that a browser is given, on a machine with a display."""
    urls: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")

    def seen(url: str) -> bool:
        urls.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", seen)
    return urls


def message(page: Path | str) -> str:
    out = io.StringIO()
    open_page(page, Console(file=out, width=200, quiet=True))
    return out.getvalue()


def test_a_file_and_an_address_are_opened_without_a_word(opened: list[str], tmp_path: Path) -> None:
    assert message(tmp_path / "a b.html") == message("http://127.0.0.1:1/x") == ""
    assert opened == [(tmp_path / "a b.html").as_uri(), "http://127.0.0.1:1/x"]
    assert opened[0].endswith("a%20b.html")


def test_without_a_display_one_message_says_where_the_page_is(
    opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    assert message("http://127.0.0.1:1/x").splitlines() == [
        "--open: there is no display, and BROWSER names no browser; the page: http://127.0.0.1:1/x"
    ]
    assert opened == []
    monkeypatch.setenv("BROWSER", "none")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert message("x:y").splitlines() == ["--open: no browser could be started; the page: x:y"]


def test_a_report_opens_the_page_of_its_directory_or_the_file_that_it_writes(opened: list[str], tmp_path: Path) -> None:
    folder = kept(tmp_path / "run", compared_run({"home": Cost(1.2)})).folder
    refused = CliRunner().invoke(app, ["report", str(folder), "--open"])
    assert "--open shows a page, and there is none" in str(refused.exception)
    written = tmp_path / "x.html"
    assert CliRunner().invoke(app, ["report", str(folder), "--open", "-o", str(written)]).exit_code == 0
    assert opened == [written.as_uri()]
    written.rename(folder / "report.html")
    assert CliRunner().invoke(app, ["report", str(folder), "--open"]).exit_code == 0
    assert opened[1:] == [(folder / "report.html").as_uri()]
    refused = CliRunner().invoke(app, ["report", str(folder), "--open", "-o", str(tmp_path / "x.json")])
    assert "--open shows a page" in str(refused.exception)
    assert not (tmp_path / "x.json").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["load", "http://127.0.0.1:1/", "--open"],
        ["ab", "http://127.0.0.1:1/", "http://127.0.0.1:2/", "--open"],
        ["limit", "http://127.0.0.1:1/", "--objective", "p99 < 1s", "--open"],
    ],
    ids=lambda words: words[0],
)
def test_what_is_not_kept_has_no_page_to_open(words: list[str], opened: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert "--open shows the page of what is kept" in str(done.exception)
    assert opened == []
