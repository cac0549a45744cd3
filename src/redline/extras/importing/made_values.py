"""Make values that a JSON Schema allows: its example, default or first choice, else a simple value of its type. Pure.

The same schema always gives the same value. `jsonschema` checks every value, so a wrong value is never returned.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any

from redline.extras.importing.allowed import (
    CHARACTERS_A_STEP,
    AllowedValues,
    NoValueError,
    StepsOfAFile,
    TooManyStepsError,
)
from redline.suite.request_source import member, text_at

_DEEPEST = 12
_OPTIONAL_DEPTH = 1
_MOST_ITEMS = 100
_LONGEST = 10_000
_STRINGS = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "user@example.com",
    "idn-email": "user@example.com",
    "hostname": "example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "/",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "byte": "c3RyaW5n",
}
_FOR_PATTERNS = (
    "string", "a", "A", "1", "0", "abc", "ABC", "Abc", "aBC", "12", "123", "1234", "12345", "123456", "1234567890",
    "a1", "A1", "AB", "ABCD", "AB123", "AB-123", "a-b", "a_b", "a.b", "1.0", "1.0.0", "v1", "12:00", "#000000",
    "+10000000000", "/a", *_STRINGS.values(),
)  # fmt: skip


@dataclass(frozen=True)
class SchemaValues:
    """Makes values for the schemas of a document. `resolve` follows a `$ref`, and `version` is that of OpenAPI."""

    document: Mapping[str, Any]
    resolve: Callable[[object], Any]
    version: str
    steps: StepsOfAFile = field(default_factory=StepsOfAFile)

    @cached_property
    def _allowed(self) -> AllowedValues:
        return AllowedValues(self.document, self.version, self.steps)

    def value(self, schema: object) -> Any:
        """A value that a schema allows. Raises NoValueError, and AllStepsError if the document takes too many steps."""
        self.steps.begin()
        self._allowed.omitted.clear()
        try:
            made = self._value(schema, 0)
            self.steps.take(self.steps.size(made))
            if not self._allowed.is_allowed(made, schema):
                raise NoValueError
        except TooManyStepsError:
            raise NoValueError("whose schema takes too many steps to make a value") from None
        return made

    def _value(self, schema: object, depth: int) -> Any:
        schema = self.resolve(schema)
        self.steps.take(1 + (len(schema) if isinstance(schema, dict) else 0))
        if depth > _DEEPEST:
            raise NoValueError
        if not isinstance(schema, dict):
            return "string"
        if given := given_of(schema):
            return self._without_read_only(given[0], schema)
        if isinstance(parts := schema.get("allOf"), list) and parts:
            return self._joined([*parts, {key: part for key, part in schema.items() if key != "allOf"}], depth)
        for key in ("oneOf", "anyOf"):
            if isinstance(parts := schema.get(key), list) and parts:
                return self._joined([self._first(parts, depth), schema | {key: None}], depth)
        return self._of_type(schema, depth)

    def _of_type(self, schema: Mapping[str, Any], depth: int) -> Any:
        """The simplest value of a type."""
        match _type_of(schema):
            case "object":
                return self._object(schema, depth)
            case "array":
                return self._array(schema, depth)
            case "integer" | "number" as kind:
                try:
                    return _number(schema, whole=kind == "integer")
                except (ArithmeticError, ValueError):  # bounds near the end of what a number holds
                    raise NoValueError from None
            case "boolean":
                return True
            case "null":
                return None
        return self._string(schema)

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        """A tuple's items, and as many others as there have to be at least; different ones where they have to be."""
        written, others = schema.get("prefixItems"), schema.get("items", {})
        if isinstance(others, list):  # a tuple, as it was written before `prefixItems`
            written, others = others, schema.get("additionalItems", {})
        places = written[:_MOST_ITEMS] if isinstance(written, list) else []
        made = [self._value(place, depth + 1) for place in places[: _whole(schema.get("maxItems"), _MOST_ITEMS)]]
        least = min(_whole(schema.get("minItems"), 1), _MOST_ITEMS)
        missing = max(least, 0 if written or others is False else 1) - len(made)
        if missing <= 0 or others is False:
            return made
        item = self._value(others, depth + 1)
        if schema.get("uniqueItems") is not True:
            return made + [item] * missing
        return made + self._different(item, others, made, missing)

    def _different(self, item: Any, schema: object, before: list[Any], count: int) -> list[Any]:
        """So many values that a schema allows, none of them twice. Raises NoValueError if there are too few."""
        made, seen = list[Any](), [json.dumps(value, sort_keys=True, default=str) for value in before]
        for value in self._variants(item, self.resolve(schema)):
            text = json.dumps(value, sort_keys=True, default=str)
            self.steps.take(1 + len(text) // CHARACTERS_A_STEP)
            if text not in seen and self._allowed.is_allowed(value, schema):
                made.append(value)
                seen.append(text)
                if len(made) == count:
                    return made
        raise NoValueError

    def _variants(self, item: Any, schema: object) -> Iterator[Any]:
        """A value, and others like it: the choices of a schema, the next numbers, texts with a number."""
        yield item
        for key in ("enum", "examples"):
            yield from choices if isinstance(choices := member(schema, key), list) else ()
        most = member(schema, "maxLength")
        for at in range(1, 2 * _MOST_ITEMS):
            if isinstance(item, bool):
                yield item is (at % 2 == 0)
            elif isinstance(item, (int, float)):
                step = member(schema, "multipleOf") or 1
                yield from (item + at * step, item - at * step) if isinstance(step, (int, float)) else ()
            elif isinstance(item, str):
                room = _whole(most, len(item) + len(str(at))) - len(str(at))
                yield f"{item[: max(0, room)]}{at}"
            elif isinstance(item, list):
                yield [*item, *item[-1:] * at]
            elif isinstance(item, dict):
                yield from self._changed(item, schema, at)

    def _changed(self, item: dict[str, Any], schema: object, at: int) -> Iterator[dict[str, Any]]:
        """An object with another value of one of its members."""
        for name, value in item.items():
            others = self._variants(value, self.resolve(member(schema, "properties", name)))
            if not isinstance(value, (dict, list)):
                yield from ({**item, name: other} for other in islice(others, at, at + 1))

    def _without_read_only(self, value: Any, schema: Mapping[str, Any]) -> Any:
        """A value that a schema provides, for answers too, without what stands in answers alone."""
        properties = schema.get("properties")
        if not isinstance(value, dict) or not isinstance(properties, dict):
            return value
        self.steps.take(len(value))
        left_out = {name for name in value if self._is_read_only(properties.get(name))}
        self._allowed.omitted.update(left_out)
        return {name: inner for name, inner in value.items() if name not in left_out} if left_out else value

    def _is_read_only(self, schema: object) -> bool:
        """Whether a property stands in answers alone; beside a `$ref`, or where that leads."""
        return member(schema, "readOnly") is True or member(self.resolve(schema), "readOnly") is True

    def _first(self, parts: list[Any], depth: int) -> Any:
        """The first choice for which a value can be made."""
        for part in parts:
            try:
                self._value(part, depth + 1)
            except NoValueError:
                continue
            return part
        raise NoValueError

    def _joined(self, parts: list[Any], depth: int) -> Any:
        """A value for schemas that all apply: their merged objects, or the value of the first schema with a type."""
        typed = [part for part in map(self.resolve, parts) if isinstance(part, dict) and _is_telling(part)]
        values = [self._value(part, depth + 1) for part in typed]
        objects = [value for value in values if isinstance(value, dict)]
        if objects:
            return {name: value for made in objects for name, value in made.items()}
        return values[0] if values else "string"

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        properties, written = schema.get("properties"), schema.get("required")
        required = {name for name in written if isinstance(name, str)} if isinstance(written, list) else set[str]()
        self.steps.take(len(required))
        made = dict[str, Any]()
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if self._is_read_only(inner):
                self._allowed.omitted.add(name)
                continue
            if name not in required and depth > _OPTIONAL_DEPTH:
                continue
            try:
                made[name] = self._value(inner, depth + 1)
            except NoValueError:
                if name in required:
                    raise
        return made

    def _string(self, schema: Mapping[str, Any]) -> str:
        text = _STRINGS.get(text_at(schema, "format"), "string")
        least, most = _whole(schema.get("minLength"), 0), _whole(schema.get("maxLength"), _LONGEST)
        if least > _LONGEST:
            raise NoValueError
        choices = (text, *_FOR_PATTERNS) if "pattern" in schema else (text,)
        sized = ((choice * max(1, -(-least // len(choice))))[: max(most, 0)] for choice in choices)
        allowed = next((choice for choice in sized if self._allowed.is_allowed(choice, schema)), None)
        if allowed is None:
            raise NoValueError
        return allowed


def given_of(schema: object) -> list[Any]:
    """The value that a schema itself provides, in a list; empty if it provides none."""
    if not isinstance(schema, dict):
        return []
    given = [schema[key] for key in ("example", "const", "default") if key in schema]
    lists = (schema.get(key) for key in ("examples", "enum"))
    return [*given, *(choices[0] for choices in lists if isinstance(choices, list) and choices)][:1]


def _type_of(schema: Mapping[str, Any]) -> str:
    written = schema.get("type")
    if isinstance(written, list):
        written = next((kind for kind in written if kind != "null"), "null")
    if isinstance(written, str):
        return written
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _is_telling(schema: Mapping[str, Any]) -> bool:
    """Whether a schema determines a value, and does not only describe it."""
    keys = ("example", "examples", "const", "default", "enum", "type", "properties", "items", "prefixItems",
            "allOf", "oneOf", "anyOf")  # fmt: skip
    return any(schema.get(key) is not None for key in keys)


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else otherwise


def _number(schema: Mapping[str, Any], *, whole: bool) -> int | float:
    """1, or the nearest number to it within the bounds."""
    step = 1 if whole else 0.5
    least, most = (
        _bound(schema, "minimum", "exclusiveMinimum", step),
        _bound(schema, "maximum", "exclusiveMaximum", -step),
    )
    value: float = 1
    if least is not None:
        value = max(value, math.ceil(least) if whole else least)
    if most is not None:
        value = min(value, math.floor(most) if whole else most)
    multiple = schema.get("multipleOf")
    if isinstance(multiple, (int, float)) and not isinstance(multiple, bool) and multiple > 0:
        value = math.ceil(value / multiple) * multiple
    return int(value) if whole or value == int(value) else value


def _bound(schema: Mapping[str, Any], inclusive: str, exclusive: str, step: float) -> float | None:
    """A bound of a number; in OpenAPI 3.0 an exclusive bound is a flag."""
    bound, excluded = schema.get(inclusive), schema.get(exclusive)
    if excluded is True and isinstance(bound, (int, float)):
        bound += step
    if isinstance(excluded, (int, float)) and not isinstance(excluded, bool):
        bound = excluded + step
    is_number = isinstance(bound, (int, float)) and not isinstance(bound, bool) and math.isfinite(bound)
    return bound if is_number else None
