"""The document of a suite as flags write it, which remembers the flag behind each of its values. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from redline.errors import Problem, UsageError
from redline.model import Suite
from redline.suite import Catalogue, read_suite
from redline.suite.loading import AS_WRITTEN
from redline.suite.project import Origins
from redline.suite.schema.document import Document, Path, Plain, dotted
from redline.suite.validate.overrides import Overrides
from redline.suite.validate.referenced_files import Files

NO_CATALOGUE = Catalogue()
_IN_ONE_LINE = 100
"""Characters up to which a server, a request or a load is written in one line."""


@dataclass(frozen=True)
class Given:
    """A value of the document, and where it comes from: a flag with its value, or a place in a file."""

    source: str
    value: object


def plain(written: object) -> Any:
    """The document alone: mappings, lists, texts and numbers."""
    if isinstance(written, Given):
        return plain(written.value)
    if isinstance(written, Mapping):
        return {key: plain(value) for key, value in written.items()}
    return [plain(value) for value in written] if isinstance(written, (list, tuple)) else written


def of_file(document: Document, path: Path) -> object:
    """A part of a file, with the place of each value."""
    value = document.at(path)
    source = str(document.place(path))
    if isinstance(value, dict):
        return Given(source, {key: of_file(document, (*path, key)) for key in value})
    if isinstance(value, list):
        return Given(source, [of_file(document, (*path, index)) for index in range(len(value))])
    return Given(source, value)


def named_by_flags(error: UsageError, written: object) -> UsageError:
    """The error of a document with flags in place of its fields; the same problem of several values is one."""
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
    """The flag of a problem, or its field where no flag has it; none of a problem without a field."""
    field = problem.place.field if problem.place else None
    if field is None:
        return []
    behind = [name for name in sources if field == name or field.startswith((f"{name}.", f"{name}["))]
    return [sources[max(behind, key=len)] if behind else field]


def _sources(written: object, path: Path = ()) -> Iterator[tuple[str, str]]:
    """The source of each field that has one, by its name in errors."""
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
    """The suite of a document, and its text. Raises UsageError, with flags in place of fields.

    `name` is the suite's; `files` are those that the document names, and `catalogue` has its proxies.
    """
    text = as_yaml(written)
    try:
        suite = read_suite(text, name, catalogue, overrides, files, origins)
    except UsageError as error:
        raise named_by_flags(error, written) from None
    return suite, text


def as_yaml(written: object) -> str:
    """The document as people write it: a line for every short server, request and load."""
    yaml = YAML()
    yaml.width = 10_000
    yaml.indent(mapping=2, sequence=4, offset=2)
    stream = StringIO()
    yaml.dump(_laid_out(plain(written), depth=0), stream)
    return stream.getvalue()


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
