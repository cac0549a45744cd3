"""Forms of an OpenAPI document: the fields and parts of a value, as its schema and `encoding` say. Pure."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from redline.extras.importing.form_parts import FormPartOfFile
from redline.schema.json_text import json_text
from redline.schema.multipart import OTHER_TYPE
from redline.suite.request_source import member, text_at

_JSON = "application/json"


def form_fields(value: Mapping[str, Any], encoding: object) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The fields of `application/x-www-form-urlencoded`: a list is several fields, unless `explode` is false."""
    return tuple(
        (str(name), tuple(map(_text, _items(inner))))
        if member(encoding, name, "explode") is not False
        else (str(name), (",".join(map(_text, _items(inner))),))
        for name, inner in value.items()
    )


def form_parts(
    value: Mapping[str, Any], schema: object, encoding: object, resolve: Callable[[object], Any]
) -> Iterator[FormPartOfFile]:
    """The parts of `multipart/form-data`: a list is several parts, objects are JSON, and binary texts are files."""
    described = dict[str, Any]()
    for part in (resolve(schema), *map(resolve, _items(member(resolve(schema), "allOf") or []))):
        described |= properties if isinstance(properties := member(part, "properties"), dict) else {}
    for name, inner in value.items():
        kinds = text_at(encoding, name, "contentType").split(",")
        kind = next((kind.strip() for kind in kinds if kind.strip() and "*" not in kind), None)
        is_file = _is_binary(described.get(name), resolve)
        for item in _items(inner):
            of_value = _JSON if isinstance(item, (dict, list)) else OTHER_TYPE if is_file else None
            yield FormPartOfFile(str(name), _text(item), None, str(name) if is_file else None, kind or of_value)


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _is_binary(schema: object, resolve: Callable[[object], Any]) -> bool:
    """Whether a schema is that of a file, or of a list of files."""
    known = resolve(schema)
    if member(known, "type") == "array":
        known = resolve(member(known, "items"))
    is_media = bool(text_at(known, "contentMediaType")) and "json" not in text_at(known, "contentMediaType")
    return text_at(known, "format") == "binary" or (is_media and not text_at(known, "contentEncoding"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else json_text(value)
