"""The suite that is asked for, as values that remember what asked for each; and its text. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from numbers import Integral
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from redline.errors import Problem, UsageError
from redline.model import Suite
from redline.suite import Catalogue, suite_of
from redline.suite.json_text import WrittenNumber
from redline.suite.loading import AS_WRITTEN
from redline.suite.project import Origins
from redline.suite.schema.document import Document, Path, Plain, document_of, dotted
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.referenced_files import Files

NO_CATALOGUE = Catalogue()
_IN_ONE_LINE = 100
"""The longest server, request or load, in characters, that is written on a single line."""


@dataclass(frozen=True)
class Given:
    """A value of the suite, and its source: the part that asked for it, with its value, or a place in a file."""

    source: str
    value: object


def plain(written: object) -> Any:
    """Return the document without sources: mappings, lists, texts and numbers."""
    if isinstance(written, Given):
        return plain(written.value)
    if isinstance(written, Mapping):
        return {key: plain(value) for key, value in written.items()}
    if isinstance(written, (list, tuple)):
        return [plain(value) for value in written]
    return int(written) if isinstance(written, Integral) and not isinstance(written, bool) else written


def of_file(document: Document, path: Path) -> object:
    """Return a part of a file, with the place of each value."""
    value = document.at(path)
    source = str(document.place(path))
    if isinstance(value, dict):
        return Given(source, {key: of_file(document, (*path, key)) for key in value})
    if isinstance(value, list):
        return Given(source, [of_file(document, (*path, index)) for index in range(len(value))])
    return Given(source, value)


def named_by_sources(error: UsageError, written: object) -> UsageError:
    """Name what asked for fields in an error; the same problem of several values is reported once."""
    sources = dict(_sources(written))
    of_problems: dict[tuple[str, str], list[str]] = {}
    for problem in error.problems:
        named = of_problems.setdefault((problem.message, problem.hint), [])
        named += [source for source in _source_of(problem, sources) if source not in named]
    return UsageError.of_problems(
        tuple(
            Problem(f"{' and '.join(named)}: {message}" if named else message, hint)
            for (message, hint), named in of_problems.items()
        )
    )


def _source_of(problem: Problem, sources: Mapping[str, str]) -> list[str]:
    """Return what asked for the field of a problem, or the field if nothing did; empty if it has no field."""
    field = problem.place.field if problem.place else None
    if field is None:
        return []
    behind = [name for name in sources if field == name or field.startswith((f"{name}.", f"{name}["))]
    return [sources[max(behind, key=len)] if behind else field]


def _sources(written: object, path: Path = ()) -> Iterator[tuple[str, str]]:
    """Yield the source of every field that has one, by its name in errors."""
    if isinstance(written, Given):
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
) -> tuple[Suite, str]:
    """Return the suite of a document's values, and its text. Raises UsageError that names what was asked for.

    `name` is the suite's name; `files` reads files that the document names, and `catalogue` has its proxies.
    """
    values = plain(written)
    try:
        suite = suite_of(document_of(values, name), catalogue, overrides, files, origins)
    except UsageError as error:
        raise named_by_sources(error, written) from None
    return suite, as_yaml(values)


def as_yaml(written: object) -> str:
    """Format the document as people write it: a line for every short server, request and load."""
    yaml = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.add_representer(WrittenNumber, _as_it_stands)
    stream = StringIO()
    yaml.dump(_laid_out(plain(written), depth=0), stream)
    return stream.getvalue()


def _as_it_stands(representer: Any, number: WrittenNumber) -> Any:
    kind = "int" if number.text == "-0" else "float"
    return representer.represent_scalar(f"tag:yaml.org,2002:{kind}", number.text)


def _laid_out(value: Plain, depth: int) -> Any:
    if isinstance(value, str) and (not value.isprintable() or value.startswith((":", "?"))):
        return DoubleQuotedScalarString(value)  # ruamel.yaml writes some of these in a form that it reads otherwise
    if not isinstance(value, (dict, list)):
        return value
    node = (
        CommentedMap({_laid_out(key, 0): _laid_out(child, depth + 1) for key, child in value.items()})
        if isinstance(value, dict)
        else CommentedSeq([_laid_out(child, depth + 1) for child in value])
    )
    if depth > 1 and len(repr(value)) <= _IN_ONE_LINE:
        node.fa.set_flow_style()
    return node
