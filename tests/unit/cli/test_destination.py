"""`-o` names the directory in which a measurement is kept, or a file for its report in the format of its ending."""

import io
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from redline import analysis
from redline.cli.destination import Destination
from redline.errors import RedlineError, StoreError, UsageError
from redline.render.formats import FILE_ENDINGS, Needs
from tests.fakes.compared import Cost, compared_run

REPORT = analysis.build_report(compared_run({"home": Cost(1.2)}))
ENDINGS = [ending for ending, form in FILE_ENDINGS.items() if form.needs is Needs.REPORT]
BEGINNINGS = {
    ".html": b"<!doctype",
    ".csv": b"run,",
    ".parquet": b"PAR1",
    ".json": b"{",
    ".md": b"**slower",
    ".xml": b"<?xml",
}


def test_a_directory_is_any_name_without_the_ending_of_a_report(tmp_path: Path) -> None:
    for name in ("run", "run-1.2", "v1.2-rc1", "127.0.0.1", "x.d"):
        assert Destination.at(tmp_path / name) == Destination(tmp_path / name)
    there = tmp_path / "there.html"
    there.mkdir()
    assert Destination.at(there) == Destination(there)
    assert Destination.at(None) == Destination()
    assert (Destination().page, Destination(there).page) == (None, there / "report.html")


@pytest.mark.parametrize("name", ["x.txt", "x.yaml", "x.htm", "x.hlog", "x.ndjson"])
def test_the_ending_of_another_file_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no report has this ending") as caught:
        Destination.at(tmp_path / name)
    assert caught.value.hint.startswith("end it with .html, .csv, ")
    (tmp_path / name).mkdir()
    assert Destination.at(tmp_path / name).folder == tmp_path / name


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_report_is_written_in_the_format_of_its_ending(ending: str, tmp_path: Path) -> None:
    file = tmp_path / f"x{ending.upper()}"
    kept, said = Destination.at(file), io.StringIO()
    assert (kept.folder, kept.file, list(tmp_path.iterdir())) == (None, file, [])
    assert kept.page == (file if ending == ".html" else None)
    kept.write(REPORT, Console(file=said, width=20))
    assert file.read_bytes()[:20].lower().startswith(BEGINNINGS[ending].lower())
    assert said.getvalue() == f"report: {file}\n"


def test_json_is_the_whole_report(tmp_path: Path) -> None:
    Destination.at(tmp_path / "x.json").write(REPORT, Console(file=io.StringIO()))
    assert json.loads((tmp_path / "x.json").read_text())["format"].startswith("redline.report/")


@pytest.mark.parametrize("is_link", [False, True])
def test_what_stands_there_is_left_alone(tmp_path: Path, *, is_link: bool) -> None:
    file = tmp_path / "x.html"
    file.symlink_to(tmp_path / "nowhere") if is_link else file.write_text("mine")
    with pytest.raises(UsageError, match=r"x\.html exists already") as caught:
        Destination.at(file)
    assert caught.value.hint == "give another name, or remove it"
    assert file.is_symlink() if is_link else file.read_text() == "mine"


def test_a_file_that_could_not_be_written_is_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="there is no folder"):
        Destination.at(tmp_path / "no" / "x.md")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RedlineError) as caught:
        Destination.at(tmp_path / "x.parquet")
    assert "x.parquet" in caught.value.message
    assert "redline[data]" in str(caught.value.hint)
    assert list(tmp_path.iterdir()) == []


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    said = io.StringIO()
    Destination(tmp_path / "run").write(REPORT, Console(file=said))
    assert (said.getvalue(), list(tmp_path.iterdir())) == ("", [])
