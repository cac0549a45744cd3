"""YAML 1.2 text -> a document, with the place of every syntax problem. Pure.

libyaml reads it, in a fortieth of the time of ruamel.yaml, which reads the rest and says what is wrong.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from redline.errors import Location, Problem, UsageError
from redline.schema.document import MOST_NODES, NO_CHARACTER, SURROGATE, Document, Path, Plain, Spot, dotted
from redline.schema.json_text import real_number, whole_number

if TYPE_CHECKING:
    from ruamel.yaml.error import YAMLError

_TAG = "tag:yaml.org,2002:"
_TEXT_TAGS = {"str", "timestamp", "merge", "value"}
_PLAIN = (
    ("bool", "tTfF", r"(?:true|True|TRUE|false|False|FALSE)$"),
    ("float", "-+0123456789.", r"[-+]?[0-9][0-9_]*(?:\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$"),
    ("float", "-+.", r"(?:[-+]?\.(?:[0-9_]+(?:[eE][-+][0-9]+)?|inf|Inf|INF)|\.(?:nan|NaN|NAN))$"),
    ("int", "-+0123456789", r"[-+]?(?:0b[01_]+|0o?[0-7_]+|[0-9_]+|0x[0-9a-fA-F_]+)$"),
    ("null", "~nN", r"(?:~|null|Null|NULL|)$"),
)
"""What is not text without quotes in YAML 1.2, as ruamel.yaml has it: its kind, its first characters, and its form."""
_NOT_FOR_LIBYAML = re.compile("^%|[\t\ufeff\u0085\u2028\u2029]", re.MULTILINE)
"""What libyaml, which reads YAML 1.1, takes otherwise: directives, characters that end a line only there, and tabs."""


def read_yaml(text: str, file: str) -> Document:
    """Parse one YAML document. Raises UsageError with every syntax problem and its line and column."""
    try:
        root = _composed(text, file)
        if root is None:
            raise UsageError(
                "the file is empty", hint="write at least the keys that are required", place=Location(file, 1, 1)
            )
        reader = _Reader(file)
        value = reader.convert(root, ())
    except RecursionError:
        raise UsageError(
            "this YAML is nested too deeply", hint="reduce the nesting", place=Location(file, 1, 1)
        ) from None
    except (ValueError, AttributeError, IndexError, KeyError, AssertionError) as error:
        # The YAML reader fails on some malformed tags and directives.
        message = f"this is not YAML that can be read ({type(error).__name__})"
        raise UsageError(message, hint="remove YAML tags and directives", place=Location(file, 1, 1)) from None
    if reader.problems:
        raise UsageError.of_problems(tuple(reader.problems))
    return Document(file, value, reader.values, reader.keys)


def _composed(text: str, file: str) -> Any:
    """The root of the text's nodes, which have an `id`, a `tag`, a `value` and a `start_mark`; None if it has none.

    Raises UsageError for what is not YAML.
    """
    import yaml  # noqa: PLC0415

    if not _NOT_FOR_LIBYAML.search(text):
        try:
            return _loader()(text).get_single_node()
        except (yaml.YAMLError, ValueError, RecursionError, ImportError):  # a PyYAML that was built without libyaml
            pass
    from ruamel.yaml import YAML  # noqa: PLC0415 - this takes long
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        return YAML(typ="safe", pure=True).compose(text)  # the other form keeps a mark where a text is folded
    except YAMLError as error:
        raise UsageError.of_problems((_syntax_problem(error, text, file),)) from None


@cache
def _loader() -> Any:
    """The class that reads a text by libyaml."""
    from yaml.cyaml import CParser  # type: ignore[attr-defined]  # noqa: PLC0415
    from yaml.resolver import BaseResolver  # noqa: PLC0415

    class Loader(CParser, BaseResolver):
        def __init__(self, text: str) -> None:
            CParser.__init__(self, text)
            BaseResolver.__init__(self)

    for kind, first, form in _PLAIN:
        Loader.add_implicit_resolver(f"{_TAG}{kind}", re.compile(form), [*first, *([""] if kind == "null" else [])])
    return Loader


class _Reader:
    """Turns nodes into plain data, and notes their positions and problems."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.values: dict[Path, Spot] = {}
        self.keys: dict[Path, Spot] = {}
        self._open: list[int] = []

    def convert(self, node: Any, path: Path) -> Plain:
        self.values[path] = _spot(node)
        if len(self.values) > MOST_NODES:
            message, hint = f"more than {MOST_NODES} values, aliases counted", "write less, or use fewer aliases"
            raise UsageError(message, hint=hint, place=Location(self.file, *_spot(node)))
        if id(node) in self._open:
            self._problem(node, path, "an alias that contains itself", "write out the value")
            return None
        self._open.append(id(node))
        try:
            return self._convert(node, path)
        finally:
            self._open.pop()

    def _convert(self, node: Any, path: Path) -> Plain:
        if node.id == "scalar":
            return self._scalar(node, path)
        known = str(node.tag) in (f"{_TAG}map", f"{_TAG}seq")
        if not known:
            self._problem(node, path, f"the YAML tag `{node.tag}` has no meaning here", "remove the tag")
        if node.id == "sequence":
            return [self.convert(item, (*path, index)) for index, item in enumerate(node.value)]
        if node.id == "mapping":
            return {name: self.convert(value, (*path, name)) for name, value in self._pairs(node, path)}
        return None

    def _pairs(self, node: Any, path: Path) -> Iterator[tuple[str, Any]]:
        seen: dict[str, Spot] = {}
        for key, value in node.value:
            if key.id != "scalar":
                self._problem(key, path, "a key has to be a word", "quote it, or put a space after the colon")
                continue
            name = self._text(key, path)
            if name in seen:
                self._problem(
                    key, (*path, name), f"the key `{name}` is given twice, first in line {seen[name][0]}", "remove one"
                )
                continue
            seen[name] = self.keys[(*path, name)] = _spot(key)
            yield name, value

    def _scalar(self, node: Any, path: Path) -> Plain:
        text, tag = self._text(node, path), str(node.tag)
        kind = tag.removeprefix(_TAG)
        if kind in _TEXT_TAGS:
            return text
        plain_value = _CONSTANTS.get(kind)
        if plain_value is None:
            self._problem(node, path, f"the YAML tag `{tag}` has no meaning here", "remove the tag")
            return None
        try:
            return plain_value(text)
        except ValueError:
            return text

    def _text(self, node: Any, path: Path) -> str:
        text = str(node.value)
        if SURROGATE.search(text):  # a lone surrogate, which no encoding can express
            self._problem(node, path, *NO_CHARACTER)
        return text

    def _problem(self, node: Any, path: Path, message: str, hint: str) -> None:
        self.problems.append(Problem(message, hint, Location(self.file, *_spot(node), field=dotted(path) or None)))


def _integer(text: str) -> int | float:
    digits = text.replace("_", "").lower()
    for prefix, base in (("0o", 8), ("0x", 16), ("0b", 2)):
        if prefix in digits[:3]:
            return int(digits, base)
    return whole_number(digits)


def _real(text: str) -> float:
    return real_number(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan"))


def _boolean(text: str) -> bool | str:
    # A file that declares YAML 1.1 marks `on` as a boolean too; here it stays text.
    return {"true": True, "false": False}.get(text.lower(), text)


_CONSTANTS: Mapping[str, Callable[[str], Plain]] = {
    "int": _integer,
    "float": _real,
    "bool": _boolean,
    "null": lambda _text: None,
}


def _spot(node: Any) -> Spot:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _syntax_problem(error: "YAMLError", text: str, file: str) -> Problem:
    from ruamel.yaml.error import MarkedYAMLError  # noqa: PLC0415
    from ruamel.yaml.reader import ReaderError  # noqa: PLC0415

    if isinstance(error, ReaderError):
        line = text.count("\n", 0, error.position) + 1
        column = error.position - (text.rfind("\n", 0, error.position) + 1) + 1
        place = Location(file, line, column)
        return Problem("a character that YAML does not allow", "remove the control character", place)
    if not isinstance(error, MarkedYAMLError):
        return Problem(str(error).splitlines()[0], "see https://yaml.org/spec/1.2.2/", Location(file, 1, 1))
    mark = error.problem_mark or error.context_mark
    place = Location(file, mark.line + 1, mark.column + 1) if mark else Location(file, 1, 1)
    words = " ".join(str(part) for part in (error.context, error.problem) if part)
    return Problem(f"this is not YAML: {words}", _syntax_hint(words), place)


_SYNTAX_HINTS = {
    "'\\t'": "indent with spaces; YAML does not take tabs",
    "\t": "indent with spaces; YAML does not take tabs",
    "mapping values are not allowed": "check the indentation, or quote a text that holds a colon",
    "another document": "one file holds one document: remove the second `---`",
    "cannot start any token": "quote a text that begins with a special character",
    "got '{'": "quote a text with braces: start: './server --port {port}'",
    "quoted scalar": "close the quote",
}


def _syntax_hint(words: str) -> str:
    known = (hint for part, hint in _SYNTAX_HINTS.items() if part in words)
    return next(known, "check the indentation, brackets and quotes here and just above")
