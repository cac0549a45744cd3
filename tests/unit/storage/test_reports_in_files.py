"""A report in a file, as a colleague mails it: shown as its directory would be, or a clear message."""

import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from redline.analysis import build_report
from redline.cli.command_line import app
from redline.errors import NotStoredError, RedlineError, StoreError
from redline.model.limits import AnyReport, LimitReport
from redline.render import RENDERERS, summary
from redline.render.formats import FILE_ENDINGS
from redline.running.views import search_report, write_run_views, write_views
from redline.storage import reports as stored_reports
from redline.storage.reports import read_report
from redline.storage.runs import RunStore
from tests.fakes import limits, reports
from tests.fakes.compared import compared_run
from tests.fakes.recordings import simulated_run
from tests.fakes.searched import bench_in
from tests.fakes.stored import kept

RUN = simulated_run(trials=2)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A directory of a kind, with its views, of which tests get copies."""

    @cache
    def of_kind(kind: str) -> Path:
        store = RunStore(tmp_path_factory.mktemp(kind) / "kept")
        if kind == "search":
            bench_in(store.folder).run()
            write_views(store, search_report(store))
        else:
            kept(store.folder, RUN if kind == "run" else compared_run())
            write_run_views(store)
        return store.folder

    return of_kind


KINDS = ("run", "search", "comparison")


def of_kinds(values: Iterable[object]) -> list[object]:
    """Each value with every kind of directory: with one of them among the quick tests, with all among the long ones."""
    return [
        pytest.param(kind, value, marks=[] if number % len(KINDS) == place else [pytest.mark.long])
        for number, value in enumerate(values)
        for place, kind in enumerate(KINDS)
    ]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, made: Callable[[str], Path], tmp_path: Path) -> RunStore:
    """A directory of each kind, with its views."""
    return RunStore(Path(shutil.copytree(made(request.param), tmp_path / "kept")))


def searched() -> LimitReport:
    return limits.report(limits.busy())


def redline(*args: str | Path) -> bytes:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(arg) for arg in args])
    assert done.exception is None, done.exception
    return done.stdout_bytes


def error_of(*args: str | Path) -> RedlineError:
    error = CliRunner().invoke(app, [str(arg) for arg in args]).exception
    assert isinstance(error, RedlineError), error
    return error


@pytest.mark.parametrize(("store", "form"), of_kinds([(), *(("-f", form) for form in RENDERERS)]), indirect=["store"])
def test_a_file_is_shown_as_its_directory(store: RunStore, tmp_path: Path, form: tuple[str, ...]) -> None:
    shown = redline("report", store.folder, *form)
    assert shown
    mailed = tmp_path / "from-a-colleague.json"
    mailed.write_bytes((store.folder / "results.json").read_bytes())
    of_file = redline("report", mailed, *form)
    if "html" in form:  # without what happened over time, which only recordings say
        assert b"data-view=" not in of_file
        assert tables(of_file) == tables(shown) != []
    else:
        assert of_file == shown
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(mailed.read_bytes(), mtime=0))
    assert redline("report", packed, *form) == of_file


def tables(page: bytes) -> list[bytes]:
    return re.findall(rb"<table.*?</table>", page, re.DOTALL)


def test_every_kind_has_every_view(store: RunStore) -> None:
    assert {file.name for file in store.folder.iterdir()} > {"report.html", "results.csv", "results.json"}


@pytest.mark.parametrize("make", [reports.healthy, reports.nasty, reports.died, reports.alone, searched])
def test_a_report_comes_back_from_its_json(make: Callable[[], AnyReport], tmp_path: Path) -> None:
    report = make()
    file = tmp_path / "results.json"
    file.write_bytes(RENDERERS["json"](report))
    again = read_report(file)
    assert [RENDERERS[form](again) for form in RENDERERS] == [RENDERERS[form](report) for form in RENDERERS]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\xff", "holds no result that Redline knows"),
        (b'{"format": ', "is not JSON"),
        (b"[1, 2]", "is JSON without a format"),
        (b'{"format": 7}', "is JSON without a format"),
        (b'{"format": "redline.load/1"}', "has the format redline.load/1, and holds no report"),
        (b'{"format": "redline.report/1"}', "run: Field required"),
        (b'{"format": "redline.limit/1"}', "Field required"),
        (gzip.compress(b'{"format": "redline.report/1"}', mtime=0)[:-9], "is damaged"),
        (b"\x1f\x8b" + bytes(60), "is damaged"),
    ],
)
def test_a_file_that_holds_no_report_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    file = tmp_path / "mailed.json"
    file.write_bytes(content)
    error = error_of("report", file)
    assert (type(error), error.exit_code) == (NotStoredError, 2)
    assert f"{file}" in error.message
    assert says in error.message
    assert "\n" not in error.message
    assert error.hint


def test_a_file_that_decompresses_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_reports, "_MOST_BYTES", 1000)
    file = tmp_path / "bomb.json.gz"
    file.write_bytes(gzip.compress(json.dumps("a" * 1000).encode()))
    assert "when it is decompressed" in error_of("report", file).message


def test_a_file_that_cannot_be_opened_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise PermissionError(13, "Permission denied")

    file = tmp_path / "results.json"
    file.write_text("{}")
    monkeypatch.setattr("redline.files._without_waiting", refuse)
    with pytest.raises(StoreError, match=r"results\.json cannot be read: Permission denied"):
        read_report(file)


def test_a_manifest_is_no_report(store: RunStore) -> None:
    assert error_of("report", store.folder / "run.json").hint == f"name its directory: {store.folder}"


def test_the_terminal_has_the_same_sections_for_both(store: RunStore) -> None:
    report = read_report(store.folder / "results.json")
    made: AnyReport = search_report(store) if store.kind == "search" else build_report(store.run(), str(store.folder))
    assert list(summary(report)) == list(summary(made))


@pytest.mark.parametrize(
    ("store", "name"),
    of_kinds(["report.html", "RESULTS.CSV", "results.json", "x.md", "x.xml", "x.parquet"]),
    indirect=["store"],
)
def test_a_file_is_written_by_its_ending(store: RunStore, tmp_path: Path, name: str) -> None:
    file, form = tmp_path / name, FILE_ENDINGS[Path(name).suffix.lower()].name
    assert redline("report", store.folder, "-o", file) == b""
    assert file.read_bytes() == redline("report", store.folder, "--format", form) != b""
    file.write_text("of before")
    redline("report", store.folder, "--format", "md", "-o", file)
    assert file.read_bytes() == redline("report", store.folder, "--format", "md")


def test_a_file_that_says_no_format_or_cannot_be_written_is_refused(store: RunStore, tmp_path: Path) -> None:
    unknown = error_of("report", store.folder, "-o", tmp_path / "report.pdf")
    assert unknown.message == f"-o {tmp_path / 'report.pdf'}: its ending names no format"
    assert ".html" in str(unknown.hint)
    assert "there is no folder" in error_of("report", store.folder, "-o", tmp_path / "gone" / "x.html").message
    assert not (tmp_path / "gone").exists()
