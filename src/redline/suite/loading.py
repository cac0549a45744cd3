"""Load suites and catalogues from disk. The only module of `redline.suite` that reads files."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from redline.errors import Location, Problem, UsageError
from redline.files import open_regular, open_within
from redline.model import Library, Scenario, ServerEntry, Suite
from redline.quantities import did_you_mean
from redline.schema.document import parse_document
from redline.schema.server import LibrariesSchema
from redline.suite.catalogue import Catalogue, read_family, read_scenarios
from redline.suite.request_source import RequestSource
from redline.suite.validate.checking import Sheet, raise_all
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.referenced_files import Files
from redline.suite.validate.resolve import read_suite
from redline.wording import part

MOST_BYTES = 256 * 1024
MOST_DATA_BYTES = 4 * 1024 * 1024
MOST_BODY_BYTES = 64 * 1024 * 1024
AS_WRITTEN = Overrides()
_YAML = (".yaml", ".yml")
_NAME_ONE = "name a suite or a catalogue file"
_HERE = Path(__file__).resolve()
_OURS = (_HERE.parents[3] / "catalogue", _HERE.parents[1] / "shipped" / "catalogue")
"""Redline's own catalogue, in a checkout or as installed."""


def load_suite(path: Path, catalogue: Catalogue, overrides: Overrides = AS_WRITTEN) -> Suite:
    """Load a suite. Raises UsageError with the file, line, column, field and hint of every problem."""
    return read_suite(read_text(path), str(path), catalogue, overrides, referenced_files(path))


def referenced_files(path: Path) -> Files:
    """A reader of files that a suite, a scenario or a project names: they are in its folder, links followed."""

    def text(name: str) -> str:
        return read_data(path.parent / name, lambda _: open_within(path.parent, name))

    def body(name: str) -> bytes:
        return read_body(path.parent / name, lambda _: open_within(path.parent, name))

    return Files(text, body, lambda name: str(path.parent.absolute() / name))


def load_catalogue(folder: Path) -> Catalogue:
    """Load every `<family>/server.yaml` and the `scenarios.yaml` of a folder.

    Raises UsageError with every problem of all files.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no catalogue at {folder}", hint="name a folder that holds <family>/server.yaml")
    files = sorted(folder.glob("*/server.yaml"))
    if not files:
        raise UsageError(f"the catalogue at {folder} has no server", hint="add a server as <family>/server.yaml")
    servers: dict[str, ServerEntry] = {}
    scenarios: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for file in files:
        with _collected(problems):
            servers |= _servers_of(_catalogue_text(file), str(file), str(file.parent.resolve()))
    if (file := folder / "scenarios.yaml").exists():
        with _collected(problems):
            scenarios = read_scenarios(_catalogue_text(file), str(file), referenced_files(file))
    with _collected(problems):
        _read_libraries(folder / "libraries.yaml")  # to report a mistake before the run, not after it
    raise_all(problems)
    return Catalogue(servers=servers, scenarios=scenarios)


def load_libraries(*folders: Path) -> tuple[Library, ...]:
    """The library tables of catalogues, followed by Redline's own. Raises UsageError as `load_catalogue` does."""
    files = dict.fromkeys(place.resolve() / "libraries.yaml" for place in (*folders, *_OURS))
    return tuple(library for file in files for library in _read_libraries(file))


def _read_libraries(file: Path) -> Sequence[Library]:
    """The libraries of a file; empty if there is no such file."""
    if not file.exists():
        return ()
    return _libraries_of(_catalogue_text(file), str(file))


@lru_cache(maxsize=128)
def _servers_of(text: str, file: str, folder: str) -> Mapping[str, ServerEntry]:
    """The servers of a family's text, which several suites of a command and commands of a program have in common."""
    return MappingProxyType(read_family(text, file, folder))


@lru_cache(maxsize=16)
def _libraries_of(text: str, file: str) -> tuple[Library, ...]:
    sheet = Sheet(parse_document(text, file), LibrariesSchema, "docs/concepts/profiles.md")
    written = sheet.read(LibrariesSchema)
    sheet.raise_problems()
    return tuple(written.libraries) if written else ()


@contextmanager
def _collected(problems: list[Problem]) -> Iterator[None]:
    """Collect the problems of a UsageError that the block raises."""
    try:
        yield
    except UsageError as error:
        problems += error.problems


def read_text(path: Path) -> str:
    """Read a YAML file. Raises UsageError if it does not exist, is not a file, exceeds 256 KiB, or is not UTF-8."""
    return _text(path, _content(path, MOST_BYTES, "256 KiB", _NAME_ONE, _open_any))


def _catalogue_text(path: Path) -> str:
    return _text(path, _content(path, MOST_BYTES, "256 KiB", _NAME_ONE))


def read_data(path: Path, opened: Callable[[Path], BinaryIO] = open_regular) -> str:
    """Read a text file of at most 4 MiB that a suite or a flag names. Raises UsageError as `read_text` does."""
    return _text(path, _content(path, MOST_DATA_BYTES, "4 MiB", "give a part of it", opened))


def read_body(path: Path, opened: Callable[[Path], BinaryIO] = open_regular) -> bytes:
    """Read a file of at most 64 MiB to send as it is. Raises UsageError as `read_text` does."""
    return _content(path, MOST_BODY_BYTES, "64 MiB", "send less", opened)


def _open_any(path: Path) -> BinaryIO:
    """Open any file: a suite may come from a pipe, as in `redline run <(make-suite)`."""
    return path.open("rb")


@contextmanager
def opened_requests(path: Path) -> Iterator[RequestSource]:
    """Open a file of requests in any format, which may be a pipe. Raises UsageError as `read_text` does.

    Files that it names are read from its folder.
    """
    with _readable(path), _open_any(path) as file:
        yield RequestSource(str(path), file, referenced_files(path).body)


def _content(
    path: Path, most_bytes: int, most: str, too_long_hint: str, opened: Callable[[Path], BinaryIO] = open_regular
) -> bytes:
    with _readable(path), opened(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise UsageError(f"{path} is longer than {most}", hint=too_long_hint)
    return content


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn an OSError of reading a file into a UsageError with a hint."""
    try:
        yield
    except FileNotFoundError:
        raise UsageError(f"there is no file {path}", hint=_similar_files_hint(path)) from None
    except IsADirectoryError:
        raise UsageError(f"{path} is a folder, not a file", hint=_folder_hint(path)) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{path} cannot be read: {reason}", hint="check the path and who may read it") from None


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        place = Location(str(path), content.count(b"\n", 0, error.start) + 1, error.start - start + 1)
        raise UsageError("this is not UTF-8 text", hint="save the file as UTF-8", place=place) from None


def _similar_files_hint(path: Path) -> str:
    if path.name.isdigit():
        return f"this is the name of a file; a number of requests is {part('count', int(path.name))}"
    there = _files(path.parent, _YAML if path.suffix in ("", *_YAML) else (path.suffix,))
    near = did_you_mean(path.name, tuple(there))
    if near:
        return near
    return f"{path.parent} has: {', '.join(there)}" if there else "check the path"


def _folder_hint(path: Path) -> str:
    there = _files(path, _YAML)
    return f"name one of its files: {', '.join(there)}" if there else "name a file in it"


def _files(folder: Path, endings: tuple[str, ...]) -> list[str]:
    try:
        return sorted(file.name for file in folder.iterdir() if file.suffix in endings)[:20]
    except (OSError, ValueError):
        return []
