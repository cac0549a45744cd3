"""Results in a format: of the table in `render/formats.py`, or of an installed package.

A package brings a renderer by an entry point of the group `redline.renderers`: docs/guide/own-formats.md.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from redline.document.format import count
from redline.entry_points import Extension, extension
from redline.errors import RedlineError, UsageError
from redline.files import as_store_error, write_atomically
from redline.model import Run
from redline.model.limits import AnyReport
from redline.ports import Renderer
from redline.render.formats import FORMATS, ResultFormat
from redline.storage.runs import RunStore
from redline.wording import as_argument

GROUP = "redline.renderers"
PAGE = "docs/guide/own-formats.md"
Rendered: TypeAlias = bytes | Iterable[bytes] | Mapping[str, bytes]
"""A document, its pieces, or several files by their names."""


@dataclass(frozen=True)
class RecordedIn:
    """The directory of a session, and how its recordings are read. `full_slugs`: cells are named by all settings."""

    store: RunStore
    run: Callable[[], Run]
    full_slugs: bool = False

    @property
    def folder(self) -> Path:
        """The directory, as messages name it."""
        return self.store.folder


def renderer_of(name: str) -> Renderer:
    """The renderer of a format that a package brings. Raises UsageError if nobody brings it, or several do.

    It raises RedlineError where it fails, with the place in its code.
    """
    found = extension(GROUP, name, "format", PAGE, FORMATS)
    return lambda report: _rendered(found, report)


def _rendered(renderer: Extension, report: AnyReport) -> bytes:
    """What a renderer of a package makes of a report. Raises RedlineError."""
    try:
        content = renderer.point.load()(report)
    except RedlineError:
        raise
    except Exception as error:
        raise RedlineError(f"{renderer} failed: {renderer.reason(error)}", hint=renderer.hint) from error
    if not isinstance(content, bytes):
        message = f"{renderer} gave no text: it is {type(content).__name__}, not bytes"
        raise RedlineError(message, hint=renderer.hint)
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise RedlineError(f"{renderer} gave no text: {error}", hint=renderer.hint) from None
    return content


def only_document(form: ResultFormat, made: Rendered, source: Path) -> Iterable[bytes]:
    """The pieces of the only document that was made of a source. Raises UsageError where there are several files."""
    if isinstance(made, bytes):
        return (made,)
    if not isinstance(made, Mapping):
        return made
    files = [content for name, content in made.items() if name.endswith(form.alone)]
    if len(files) == 1:
        return files
    alone = " of response times" if form.alone else ""
    whole = f"; or all to one log: --format {form.log}" if form.log else ""
    raise UsageError(
        f"{source} has {len(files)} {form.holds}s{alone}, and a {form.name} file holds a single {form.holds}",
        hint=f"write them to files: redline report {as_argument(source)} --format {form.name} -o DIR{whole}",
    )


def write_rendered(made: Rendered, path: Path) -> None:
    """Write a document to a file, or several files into a folder, which is made. Raises StoreError."""
    if isinstance(made, Mapping):
        write_files(made, path)
        return
    with as_store_error(path, begun=False):
        write_atomically(path, made if isinstance(made, bytes) else b"".join(made))


def write_files(files: Mapping[str, bytes], folder: Path) -> str:
    """Write files into a folder, which is made. Returns what to say of it. Raises StoreError."""
    with as_store_error(folder, begun=False):
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            with as_store_error(folder / name, begun=False):
                write_atomically(folder / name, content)
    return f"{count(len(files), 'file')} in {folder}"
