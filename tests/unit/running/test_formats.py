"""Results in the formats of packages, and results of which a folder has several."""

from collections.abc import Callable
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.entry_points import Extension
from redline.errors import RedlineError, StoreError, UsageError
from redline.render.formats import FORMATS
from redline.running import formats
from redline.running.formats import RecordedIn, only_document, renderer_of, write_files
from redline.storage.runs import RunStore
from tests.fakes.recordings import simulated_run

FORM = next(form for form in FORMATS.values() if form.alone and form.log)
REPORT = build_report(simulated_run(trials=2))


class Point:
    """An entry point that loads this renderer."""

    def __init__(self, renderer: Callable[[object], object]) -> None:
        self.renderer = renderer

    def load(self) -> Callable[[object], object]:
        return self.renderer


def rendered(renderer: Callable[[object], object], monkeypatch: pytest.MonkeyPatch) -> bytes:
    class Named:
        point, hint = Point(renderer), "see its page"

        def reason(self, error: Exception) -> str:
            return f"because: {error}"

        def __str__(self) -> str:
            return "the format x"

    asked = list[tuple[object, ...]]()

    def extension(*arguments: object) -> Extension:
        asked.append(arguments)
        return Named()  # type: ignore[return-value]

    monkeypatch.setattr(formats, "extension", extension)
    render = renderer_of("x")
    assert asked == [("redline.renderers", "x", "format", "docs/guide/own-formats.md", FORMATS)]
    return render(REPORT)


def test_a_package_renders_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[object]()

    def render(report: object) -> bytes:
        seen.append(report)
        return b"text"

    assert rendered(render, monkeypatch) == b"text"
    assert seen == [REPORT]


def failing(error: Exception) -> Callable[[object], object]:
    def render(_report: object) -> object:
        raise error

    return render


@pytest.mark.parametrize(
    ("renderer", "message"),
    [
        (failing(ValueError("no")), "the format x failed: because: no"),
        (lambda _report: "text", "the format x gave no text: it is str, not bytes"),
        (lambda _report: b"\xff", "the format x gave no text: 'utf-8' codec"),
    ],
)
def test_a_renderer_that_fails_is_named(
    renderer: Callable[[object], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RedlineError) as raised:
        rendered(renderer, monkeypatch)
    assert raised.value.message.startswith(message)
    assert raised.value.hint == "see its page"


def test_an_error_of_ours_passes_through_a_renderer(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UsageError("not so", hint="but so")
    with pytest.raises(UsageError) as raised:
        rendered(failing(error), monkeypatch)
    assert raised.value is error


def test_a_single_document_is_given_whole() -> None:
    assert [*only_document(FORM, b"all", Path("run"))] == [b"all"]
    assert [*only_document(FORM, iter((b"a", b"b")), Path("run"))] == [b"a", b"b"]
    one = {f"one{FORM.alone}": b"1", "other.txt": b"2"}
    assert [*only_document(FORM, one, Path("run"))] == [b"1"]


def test_of_several_documents_none_is_chosen() -> None:
    two = {f"one{FORM.alone}": b"1", f"two{FORM.alone}": b"2"}
    with pytest.raises(UsageError) as raised:
        only_document(FORM, two, Path("run"))
    assert raised.value.message.startswith(f"run has 2 {FORM.holds}s of response times, and a {FORM.name} file holds")
    assert raised.value.hint == (
        f"write them to files: redline report run --format {FORM.name} -o DIR; or all to one log: --format {FORM.log}"
    )
    with pytest.raises(UsageError, match="has 0"):
        only_document(FORM, {"other.txt": b"2"}, Path("run"))


def test_files_are_written_into_a_folder_that_is_made(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert write_files({"a": b"1", "b": b"2"}, folder) == f"2 files in {folder}"
    assert write_files({"a": b"3"}, folder) == f"1 file in {folder}"
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == {"a": b"3", "b": b"2"}
    with pytest.raises(StoreError):
        write_files({"a": b"1"}, folder / "a")


def test_recordings_are_named_by_their_directory(tmp_path: Path) -> None:
    recorded = RecordedIn(RunStore(tmp_path), lambda: simulated_run(trials=2))
    assert recorded.folder == tmp_path
    assert recorded.full_slugs is False
