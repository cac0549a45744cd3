"""The suite that is asked for, as values that remember what asked for each; and its text. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

from redline.errors import Location, Problem, UsageError, joined
from redline.lazily import dataclass
from redline.model import Suite
from redline.schema.document import Document, Path, document_of, dotted
from redline.suite import Catalogue, suite_of
from redline.suite.loading import AS_WRITTEN
from redline.suite.project import Origins
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.referenced_files import Files

NO_CATALOGUE = Catalogue()


@dataclass(frozen=True)
class Sourced:
    """A value of the suite, and its source: the part that asked for it, with its value, or a place in a file."""

    source: str | Location
    value: object

    @property
    def source_text(self) -> str:
        """The source as messages write it."""
        return _text(self.source)


def plain(written: object) -> Any:
    """Return the document without sources: mappings, lists, texts and numbers."""
    if isinstance(written, Sourced):
        return plain(written.value)
    if isinstance(written, Mapping):
        return {key: plain(value) for key, value in written.items()}
    if isinstance(written, (list, tuple)):
        return [plain(value) for value in written]
    return int(written) if isinstance(written, Integral) and not isinstance(written, bool) else written


def of_file(document: Document, path: Path) -> object:
    """Return a part of a file, with the place of each value."""
    value = document.at(path)
    source = document.place(path)
    if isinstance(value, dict):
        return Sourced(source, {key: of_file(document, (*path, key)) for key in value})
    if isinstance(value, list):
        return Sourced(source, [of_file(document, (*path, index)) for index in range(len(value))])
    return Sourced(source, value)


def named_by_sources(error: UsageError, written: object) -> UsageError:
    """Name what asked for fields in an error; the same problem of several values is reported once."""
    sources = dict(_sources(written))
    of_problems: dict[tuple[str, str], list[str | Location]] = {}
    for problem in error.problems:
        named = of_problems.setdefault((problem.message, problem.hint), [])
        named += [source for source in _source_of(problem, sources) if source not in named]
    return UsageError.of_problems(tuple(_problem_at(*told, named) for told, named in of_problems.items()))


def _problem_at(message: str, hint: str, sources: Sequence[str | Location]) -> Problem:
    """A problem of what these sources asked for; that of a single place in a file is at that place."""
    if len(sources) == 1 and isinstance(place := sources[0], Location):
        return Problem(message, hint, place)
    texts = [*map(_text, sources)]
    return Problem(joined(" and ", texts) + ": " + message if texts else message, hint)


def _text(source: str | Location) -> str:
    return str(source) if isinstance(source, Location) else source


def _source_of(problem: Problem, sources: Mapping[str, str | Location]) -> list[str | Location]:
    """Return what asked for the field of a problem, or the field if nothing did; empty if it has no field."""
    field = problem.place.field if problem.place else None
    if field is None:
        return []
    behind = [name for name in sources if field == name or field.startswith((f"{name}.", f"{name}["))]
    return [sources[max(behind, key=len)] if behind else field]


def _sources(written: object, path: Path = ()) -> Iterator[tuple[str, str | Location]]:
    """Yield the source of every field that has one, by its name in errors."""
    if isinstance(written, Sourced):
        yield dotted(path), written.source
        yield from _sources(written.value, path)
    elif isinstance(written, Mapping):
        for key, value in written.items():
            yield from _sources(value, (*path, key))
    elif isinstance(written, (list, tuple)):
        for index, value in enumerate(written):
            yield from _sources(value, (*path, index))


def read_written(
    written: Mapping[str, object],
    name: str,
    files: Files,
    origins: Origins = Origins(),
    overrides: Overrides = AS_WRITTEN,
    catalogue: Catalogue = NO_CATALOGUE,
    *,
    with_text: bool = True,
) -> tuple[Suite, str]:
    """Return the suite of a document's values, and its text. Raises UsageError that names what was asked for.

    The text is empty unless it is wanted `with_text`: nothing is written of what is not kept.
    `name` is the suite's name; `files` reads files that the document names, and `catalogue` has its proxies.
    """
    values = plain(written)
    try:
        suite = suite_of(document_of(values, name), catalogue, overrides, files, origins)
    except UsageError as error:
        raise named_by_sources(error, written) from None
    return suite, as_yaml(values) if with_text else ""


def as_yaml(written: object) -> str:
    """Format the document as people write it: a line for every short server, request and load."""
    from redline.asking.yaml_text import formatted  # noqa: PLC0415 - importing what writes YAML takes long

    return formatted(plain(written))
