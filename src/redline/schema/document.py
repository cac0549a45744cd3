"""YAML text, or values of a program, -> plain data with the position of each part. Pure.

It is YAML 1.2, in which `on` is text.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import field, replace

from redline.errors import Location, Problem, UsageError
from redline.lazily import dataclass

Plain = str | int | float | bool | None | list["Plain"] | dict[str, "Plain"]
Path = tuple[str | int, ...]
Spot = tuple[int, int]

MOST_NODES = 100_000
SURROGATE = re.compile("[\ud800-\udfff]")
NO_CHARACTER = (
    r"an escape such as `\udcff` does not stand for a character",
    r"write the character itself, or as \U with eight digits; put bytes that are not text into a file",
)


@dataclass(frozen=True)
class Document:
    """A file's content as plain data, with the position (line, column, from 1) of every value and key by its path.

    `parts` are values that other files hold, by the path of each.
    """

    file: str
    value: Plain
    values: dict[Path, Spot] = field(repr=False)
    keys: dict[Path, Spot] = field(repr=False)
    parts: dict[Path, "Document"] = field(default_factory=dict, repr=False)

    def at(self, path: Path) -> Plain:
        """The value at a path, or None when there is none."""
        value = self.value
        for step in path:
            if isinstance(value, dict) and isinstance(step, str):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and step < len(value):
                value = value[step]
            else:
                return None
        return value

    def place(self, path: Path, *, key: bool = False) -> Location:
        """The place of a value, or with `key` of its key; for a missing value, the place where it belongs."""
        for at, part in self.parts.items():
            if path[: len(at)] == at and not (key and path == at):
                return part.place(path[len(at) :], key=key)
        for length in range(len(path), -1, -1):
            shorter = path[:length]
            # A missing value is reported at the key of the mapping that lacks it.
            spots = (self.keys, self.values) if key or length < len(path) else (self.values, self.keys)
            spot = spots[0].get(shorter) or spots[1].get(shorter)
            if spot:
                return Location(self.file, *spot, field=dotted(path) or None)
        return Location(self.file, 1, 1, field=dotted(path) or None)

    def with_part(self, path: Path, part: "Document") -> "Document":
        """The same, whose value at a path of keys is that of another file."""

        def changed(value: Plain, left: Path) -> Plain:
            if not left:
                return part.value
            assert isinstance(value, dict), f"{dotted(path)} is there"
            return {**value, str(left[0]): changed(value[str(left[0])], left[1:])}

        return replace(self, value=changed(self.value, path), parts={**self.parts, path: part})

    def part(self, path: Path) -> "Document":
        """The value at a path as a document of its own, with its places."""

        def within(spots: dict[Path, Spot]) -> dict[Path, Spot]:
            return {at[len(path) :]: spot for at, spot in spots.items() if at[: len(path)] == path}

        return Document(self.file, self.at(path), within(self.values), within(self.keys))

    def renamed(self, path: Path, name: str) -> "Document":
        """The same with another name for a key, whose value is a part of another file."""
        *outer, key = path
        assert not outer, "only keys of the whole document are renamed"
        assert isinstance(self.value, dict), "it has keys"
        value = {name if at == key else at: item for at, item in self.value.items()}
        return replace(
            self, value=value, parts={(name,) if at == path else at: part for at, part in self.parts.items()}
        )


class UnwrittenDocument(Document):
    """Plain data of a program, which was never written: `file` is what the program calls it."""

    def __init__(self, file: str, value: Plain) -> None:
        super().__init__(file, value, {}, {})

    def place(self, path: Path, *, key: bool = False) -> Location:
        """The name of a value; it has no line."""
        del key
        return Location(self.file, field=dotted(path) or None)


def dotted(path: Path) -> str:
    """`servers[1].with.routes`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def parse_document(text: str, file: str) -> Document:
    """Parse one YAML document. Raises UsageError with every syntax problem and its line and column."""
    from redline.schema.yaml_text import read_yaml  # noqa: PLC0415 - importing its parser takes long

    return read_yaml(text, file)


def plain_data(data: object, what: str) -> Plain:
    """Data as YAML and JSON have it. Raises UsageError for what they do not have, such as bytes or a path."""
    try:
        found: Plain = json.loads(json.dumps(data, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        hint = "give mappings, lists, texts, numbers and booleans"
        raise UsageError(f"{what} is no plain data: {error}", hint=hint) from None
    return found


def document_of(value: Plain, name: str) -> Document:
    """The values of a program as a document: their lines are their order, so that problems are sorted by it.

    Raises UsageError for what no file could hold: too many values, and texts that are not Unicode.
    """
    document = Document(name, value, {}, {})
    problems = list[Problem]()

    def walk(part: Plain, path: Path) -> None:
        document.values[path] = (len(document.values) + 1, 1)
        if len(document.values) > MOST_NODES:
            raise UsageError(f"more than {MOST_NODES} values", hint="write less", place=document.place(path))
        texts = [*part] if isinstance(part, dict) else [part] if isinstance(part, str) else []
        if any(SURROGATE.search(text) for text in texts):
            problems.append(Problem(*NO_CHARACTER, document.place(path)))
        for key, item in _items(part):
            walk(item, (*path, key))

    walk(value, ())
    if problems:
        raise UsageError.of_problems(tuple(problems))
    return document


def _items(part: Plain) -> Iterable[tuple[str | int, Plain]]:
    if isinstance(part, dict):
        return part.items()
    return enumerate(part) if isinstance(part, list) else ()
