"""Check documents against their schemas: every pydantic error becomes a problem with place and hint. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from redline.errors import Problem, UsageError, WrongValueError
from redline.lazily import dataclass
from redline.quantities import clip, did_you_mean
from redline.schema.document import Document, Path, dotted

T = TypeVar("T")

# Steps that pydantic adds to a location and that files do not have: a union's tag (ours) and the mark of a key.
_TAG_MARK = "<"
_KEY_MARK = "[key]"


_ADAPTERS: dict[object, TypeAdapter[Any]] = {}


def _adapter(kind: type[T]) -> TypeAdapter[T]:
    """The validator of a kind, kept: to make it takes 20 ms, and a suite has hundreds of values to check."""
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


@dataclass
class Sheet:
    """A document during its check: its file model, the page that explains it, and its problems so far.

    `context` is for the validators of the model.
    """

    document: Document
    root: type[BaseModel]
    reference: str
    context: Mapping[str, object] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def read(self, kind: type[T], path: Path = ()) -> T | None:
        """The value at `path` as `kind`, or None after noting every problem of its form."""
        try:
            return _adapter(kind).validate_python(self.document.at(path), context=self.context)
        except ValidationError as error:
            self.problems += [self._explain(detail, path) for detail in error.errors(include_url=False)]
            return None

    def sound(self, kind: type[T], path: Path) -> T | None:
        """The value at `path` as `kind`, or None if it is wrong; `read` has noted that already."""
        try:
            return _adapter(kind).validate_python(self.document.at(path), context=self.context)
        except ValidationError:
            return None

    def items(self, path: Path) -> list[Path]:
        """The paths of the items of the list or mapping at `path`; empty for any other value."""
        container = self.document.at(path)
        if isinstance(container, dict):
            return [(*path, key) for key in container]
        return [(*path, index) for index in range(len(container))] if isinstance(container, list) else []

    def sound_items(self, kind: type[T], path: Path) -> list[tuple[Path, T]]:
        """The values of `items` as `kind` with their paths, without wrong values."""
        values = ((item, self.sound(kind, item)) for item in self.items(path))
        return [(item, value) for item, value in values if value is not None]

    def wrong(self, path: Path, message: str, hint: str, *, key: bool = False, once: bool = False) -> None:
        """Note a problem at a value, or its key, unless it is noted already; with `once`, unless the place has any."""
        place = self.document.place(path, key=key)
        there = [problem.message for problem in self.problems if problem.place == place]
        if message not in there and not (once and there):
            self.problems.append(Problem(message, hint, place))

    def is_sound(self, path: Path) -> bool:
        """Whether nothing is wrong at `path` or within it, so far."""
        name = dotted(path)
        fields = [problem.place.field or "" for problem in self.problems if problem.place]
        return not any(field == name or field.startswith((f"{name}.", f"{name}[")) for field in fields)

    def raise_problems(self) -> None:
        """Raise UsageError with all problems, in the order of the file, when there are any."""
        raise_all(self.problems)

    def _explain(self, detail: ErrorDetails, base: Path) -> Problem:
        raw = base + tuple(detail["loc"])
        path = self._in_file(raw)
        kind = detail["type"]
        if kind == "extra_forbidden":
            hint = self._instead(path) or suggest(str(path[-1]), keys_at(self.root, path[:-1]), "known here")
            return Problem(f"unknown key `{clip(str(path[-1]))}`", hint, self.document.place(path, key=True))
        if kind == "missing":
            hint = f"add it{_example(field_at(self.root, path), f'{path[-1]}: ')}"
            return Problem(f"`{path[-1]}` is missing", hint, self.document.place(path))
        mistake = explain(detail, path, self.root)
        hint = mistake.hint or f"see {self.reference}"
        return Problem(mistake.message, hint, self.document.place(mistake.path, key=_KEY_MARK in raw))

    def _instead(self, path: Path) -> str:
        """A hint for a key that users expect but that does not exist; empty for any other key."""
        *before, key = path
        if key == "<<":
            return "YAML 1.2 has no merge keys: repeat the keys; an alias stands for a whole value, as in `env: *env`"
        if before[-1:] == ["body"]:
            return "write JSON by its own key: `json: {name: pen}` in place of `body`"
        if key == "status" and "expect" in keys_at(self.root, path[:-1]):
            return f"write `expect: {{status: {describe(self.document.at(path)).strip('`')}}}`"
        return ""

    def _in_file(self, location: Path) -> Path:
        """A location without the steps that pydantic adds and that files do not have."""
        path: Path = ()
        for step in location:
            container = self.document.at(path)
            if not _is_added(step) or (isinstance(container, dict) and step in container):
                path = (*path, step)
        return path


@dataclass(frozen=True)
class Mistake:
    """A mistake in a value: its path in the schema, a message, and a hint, which may be empty."""

    path: Path
    message: str
    hint: str


def first_mistake(error: ValidationError, root: type[BaseModel], at: Path = ()) -> Mistake:
    """The first error of values passed to a schema, or to its field `at`, without a file."""
    detail = error.errors(include_url=False)[0]
    return explain(detail, (*at, *(step for step in detail["loc"] if not _is_added(step))), root)


def explain(detail: ErrorDetails, path: Path, root: type[BaseModel]) -> Mistake:
    """Explain a pydantic error in plain words, with a hint from the declaration of its field."""
    cause = detail.get("ctx", {}).get("error")
    while isinstance(cause, ValidationError):  # raised by a model that the schema created
        cause = cause.errors()[0].get("ctx", {}).get("error")
    if isinstance(cause, WrongValueError):
        is_inside = cause.field is not None and path[-1:] != (cause.field,)
        return Mistake((*path, cause.field or "") if is_inside else path, cause.message, cause.hint)
    return Mistake(path, _message(detail), _hint(detail, path, root))


def _is_added(step: str | int) -> bool:
    return step == _KEY_MARK or str(step).startswith(_TAG_MARK)


def _hint(detail: ErrorDetails, path: Path, root: type[BaseModel]) -> str:
    value = detail["input"]
    if detail["type"] == "string_type" and isinstance(value, (int, float)):
        return f'quote it to make it text: "{str(value).lower()}"'
    if detail["type"] == "literal_error":
        known = (part.strip("' ") for part in detail["ctx"]["expected"].replace(" or ", ",").split(","))
        return suggest(str(value), known, "choose one of")
    # The declaration of the key at the path, or else of the key that holds it.
    fields = (field_at(root, path[:length]) for length in range(len(path), 0, -1))
    declared = next(filter(None, fields), None)
    return f"{declared.description}{_example(declared)}" if declared and declared.description else ""


def suggest(name: str, known: Iterable[str], lead: str) -> str:
    """A hint for an unknown name: the most similar name, or, after `lead`, all known names."""
    names = tuple(known)
    return did_you_mean(name, names) or f"{lead}: {', '.join(names) or 'none'}"


def raise_all(problems: list[Problem]) -> None:
    """Raise UsageError with all problems, sorted by place, when there are any."""
    if problems:
        ordered = sorted(
            problems, key=lambda p: (p.place.file, p.place.line or 0, p.place.column or 0) if p.place else ("", 0, 0)
        )
        raise UsageError.of_problems(tuple(ordered))


def keys_at(root: type[BaseModel], path: Path) -> dict[str, FieldInfo]:
    """The keys that the mapping at `path` may have, with their declarations; empty if no mapping is declared there."""
    annotation: Any = root
    for step in path:
        model = _model(annotation)
        declared = _keys(model).get(str(step)) if model else None
        annotation = declared.annotation if declared else None if model else _element(annotation)
    model = _model(annotation)
    return _keys(model) if model else {}


def field_at(root: type[BaseModel], path: Path) -> FieldInfo | None:
    """The declaration of the key at `path`."""
    return keys_at(root, path[:-1]).get(str(path[-1])) if path else None


def _keys(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {info.alias or name: info for name, info in model.model_fields.items()}


def _model(annotation: Any) -> type[BaseModel] | None:
    """The file model that an annotation allows, if any."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return next((model for part in get_args(annotation) if (model := _model(part))), None)
    return None


def _element(annotation: Any) -> Any:
    """The element type of a list or a mapping."""
    origin = get_origin(annotation)
    if origin in (list, dict):
        return get_args(annotation)[-1]
    if origin in (Annotated, Union, UnionType):
        return next((element for part in get_args(annotation) if (element := _element(part))), None)
    return None


_MESSAGES: Mapping[str, str] = {
    "string_type": "must be text, not {input}",
    "int_type": "must be a whole number, not {input}",
    "int_from_float": "must be a whole number, not {input}",
    "bool_type": "must be true or false, not {input}",
    "list_type": "must be a list, not {input}",
    "dict_type": "must be a mapping of keys, not {input}",
    "model_type": "must be a mapping of keys, not {input}",
    "greater_than_equal": "must be at least {ge}, not {input}",
    "less_than_equal": "must be at most {le}, not {input}",
    "too_short": "must have at least {min_length}, not {actual_length}",
    "too_long": "must have at most {max_length}",
    "string_too_short": "must not be an empty text",
    "literal_error": "must be {expected}, not {input}",
    "string_pattern_mismatch": "{input} does not have the required form",
}


def _message(detail: ErrorDetails) -> str:
    template = _MESSAGES.get(detail["type"])
    if template is None:
        return detail["msg"]
    return template.format(**{**detail.get("ctx", {}), "input": describe(detail["input"])}).replace("'", "`")


def describe(value: Any) -> str:
    """Describe a value for an error message."""
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    return f"`{clip(str(value).lower() if isinstance(value, bool) else str(value))}`"


def _example(declared: FieldInfo | None, before: str = "") -> str:
    if not declared or not declared.examples:
        return ""
    return f", such as `{before}{as_yaml(declared.examples[0])}`"


def as_yaml(value: Any) -> str:
    """A value in YAML's flow style, quoted if YAML would read the bare word as another value."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {as_yaml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_yaml, value)) + "]"
    text = str(value)
    return f'"{text}"' if any(char in text for char in "{}[],:#") else text
