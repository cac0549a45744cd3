"""Check values by the JSON Schemas of a file that may be hostile: patterns and branches have bounds. Pure."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import regex
from jsonschema import Draft4Validator, Draft202012Validator
from jsonschema.exceptions import SchemaError, UndefinedTypeCheck, UnknownType, ValidationError
from jsonschema.validators import extend
from referencing import Registry
from referencing.exceptions import Unresolvable

MOST_STEPS = 3_000_000
MOST_STEPS_OF_A_VALUE = 300_000
"""A step is a keyword of a schema that is applied, or a part of a value that is looked at: some microseconds."""
_STEPS_OF_A_PATTERN = 300
_STEPS_OF_A_SLOW_PATTERN = 30_000
_PATTERN_SECONDS = 0.01
"""The CPU time in which a pattern has to say whether it fits a text; nearly all take microseconds."""
_LONGEST_PATTERN = 2_000
_LARGEST_PATTERN = 20_000
"""The parts of a pattern, each as often as it is repeated at least: `regex` compiles it so, in 300 bytes a part."""
_MOST_COMPILED = 5 * _LARGEST_PATTERN
_REPEAT = re.compile(r"\{(\d+)(?:,\d*)?\}", re.ASCII)
CHARACTERS_A_STEP = 100
_NOT_CHECKED = ("unevaluatedProperties", "unevaluatedItems")
"""A made value has only parts that its schema describes. `jsonschema` follows these without bounds."""
_SCHEMA_ERRORS = (
    ArithmeticError, AttributeError, KeyError, IndexError, RecursionError, SchemaError, TypeError, UndefinedTypeCheck,
    UnknownType, Unresolvable, ValueError, regex.error,
)  # fmt: skip
"""Errors other than its own that `jsonschema` raises for an invalid schema."""


class NoValueError(Exception):
    """No value could be made that the schema allows: `why` completes `requests …`, and `pattern` is the culprit."""

    def __init__(self, why: str = "for which no value could be made from the schema", pattern: str = "") -> None:
        super().__init__(why)
        self.why = why
        self.pattern = pattern


class TooManyStepsError(Exception):
    """A value takes more steps than its share."""


class AllStepsError(Exception):
    """The values of the whole file take too many steps."""


@dataclass
class StepsOfAFile:
    """Counts the steps of a file. `left` are those of the whole file, and `left_of_value` those of a single value."""

    left: int = field(default_factory=lambda: MOST_STEPS)
    left_of_value: int = 0
    _sizes: dict[int, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Begin with a value."""
        self.left_of_value = MOST_STEPS_OF_A_VALUE
        self._sizes.clear()

    def take(self, count: int) -> None:
        """Count steps. Raises TooManyStepsError and AllStepsError."""
        count = min(count, MOST_STEPS_OF_A_VALUE + 1)
        self.left -= count
        self.left_of_value -= count
        if self.left < 0:
            raise AllStepsError
        if self.left_of_value < 0:
            raise TooManyStepsError

    def take_of_file(self, count: int) -> None:
        """Count steps of the whole file, which are not those of a value. Raises AllStepsError."""
        self.left -= count
        if self.left < 0:
            raise AllStepsError

    def size(self, value: object) -> int:
        """The steps of looking at all of a value, written out: what stands in it twice counts twice."""
        if isinstance(value, str):
            return 1 + len(value) // CHARACTERS_A_STEP
        if not isinstance(value, (dict, list)):
            return 1
        # The values of a document and of its checks live until the next `begin`, so their ids are theirs alone.
        known = self._sizes.get(id(value))
        if known is None:
            inner = value.values() if isinstance(value, dict) else value
            keys = sum(map(len, value)) // CHARACTERS_A_STEP if isinstance(value, dict) else 0
            known = self._sizes[id(value)] = 1 + keys + sum(map(self.size, inner))
        return known


@dataclass(frozen=True)
class AllowedValues:
    """Says whether the schemas of a document allow values. `version` is that of OpenAPI."""

    document: Mapping[str, Any]
    version: str
    steps: StepsOfAFile
    _fits: dict[tuple[str, str], bool] = field(default_factory=dict)
    _compiled: dict[str, tuple[int, Any]] = field(default_factory=dict)
    omitted: set[str] = field(default_factory=set)
    """Names that are required in answers alone (`readOnly`), so that a value without them is right."""

    def is_allowed(self, value: object, schema: object) -> bool:
        """Whether a schema allows a value; an invalid schema allows none.

        Raises NoValueError for a pattern that takes too long, TooManyStepsError and AllStepsError.
        """
        # The parts that `$ref` refers to are at the root. An empty registry keeps jsonschema from fetching others.
        named = {key: part for key, part in self.document.items() if key in {"components", "paths"}}
        root = {**named, "allOf": [schema]}
        try:
            return bool(self._validator(root, registry=Registry()).is_valid(value))
        except _SCHEMA_ERRORS:
            return False

    @cached_property
    def _validator(self) -> Any:
        kind: Any = Draft4Validator if self.version.startswith("3.0") else Draft202012Validator
        checks: dict[str, Callable[..., Any]] = {
            **kind.VALIDATORS,
            "pattern": self._pattern,
            "required": self._required,
            "patternProperties": self._pattern_properties,
            "additionalProperties": self._additional_properties,
            **dict.fromkeys(_NOT_CHECKED, _allow),
        }
        extended: Callable[..., Any] = extend
        made = extended(kind, {key: self._counted(key, check) for key, check in checks.items()})
        evolve = made.evolve

        def evolve_of_this_kind(validator: Any, **changes: Any) -> Any:
            # `$schema` inside of a schema would bring back the checks without bounds.
            if isinstance(schema := changes.get("schema"), dict) and "$schema" in schema:
                changes["schema"] = {key: part for key, part in schema.items() if key != "$schema"}
            return evolve(validator, **changes)

        made.evolve = evolve_of_this_kind
        return made

    def _counted(self, key: str, check: Callable[..., Any]) -> Callable[..., Any]:
        def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Any:
            seen = self.steps.size(instance)
            # A wrong value is written out into the message; and two of its items are compared with each other.
            self.steps.take(1 + seen // 10 + (seen * seen // 10 if key == "uniqueItems" else 0))
            if isinstance(value, (list, dict)):
                self.steps.take(self.steps.size(value) if key in {"enum", "const"} else len(value))
            return check(validator, value, instance, schema)

        return counted

    def _required(self, _validator: Any, required: Any, instance: Any, _schema: Any) -> Any:
        for name in required if isinstance(instance, dict) else ():
            if name not in instance and name not in self.omitted:
                yield ValidationError("a name is missing")

    def _pattern(self, _validator: Any, pattern: Any, instance: Any, _schema: Any) -> Any:
        if isinstance(instance, str) and not self._is_found(pattern, instance):
            yield ValidationError("another pattern")

    def _pattern_properties(self, validator: Any, patterns: Any, instance: Any, _schema: Any) -> Any:
        for pattern, schema in patterns.items() if isinstance(instance, dict) else ():
            for name, inner in instance.items():
                if self._is_found(pattern, name):
                    yield from validator.descend(inner, schema, path=name, schema_path=pattern)

    def _additional_properties(self, validator: Any, additional: Any, instance: Any, schema: Any) -> Any:
        described, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, inner in instance.items() if isinstance(instance, dict) else ():
            if name not in described and not any(self._is_found(pattern, name) for pattern in patterns):
                yield from validator.descend(inner, additional, path=name)

    def _is_found(self, pattern: object, text: str) -> bool:
        """Whether a pattern is found in a text. Raises NoValueError where that takes too long."""
        if not isinstance(pattern, str):
            raise TypeError("a pattern is a text")
        if len(pattern) > _LONGEST_PATTERN:
            raise NoValueError(f"with a pattern of more than {_LONGEST_PATTERN:,} characters", pattern)
        if (known := self._fits.get((pattern, text))) is not None:
            return known
        self.steps.take_of_file(_STEPS_OF_A_PATTERN)
        compiled = self._pattern_of(pattern)
        try:
            found = compiled.search(text, timeout=_PATTERN_SECONDS) is not None
        except TimeoutError:
            self.steps.take_of_file(_STEPS_OF_A_SLOW_PATTERN)
            raise NoValueError("with a pattern that takes too long", pattern) from None
        self._fits[pattern, text] = found
        return found

    def _pattern_of(self, pattern: str) -> Any:
        """The compiled pattern. Raises NoValueError where that would take much memory or time."""
        if pattern not in self._compiled:
            size = expanded_size(pattern)
            if size > _LARGEST_PATTERN:
                raise NoValueError("with a pattern that repeats too much", pattern)
            self.steps.take_of_file(size)
            if size + sum(other for other, _ in self._compiled.values()) > _MOST_COMPILED:
                self._compiled.clear()
            self._compiled[pattern] = size, regex.compile(pattern, cache_pattern=False)
        return self._compiled[pattern][1]


def expanded_size(pattern: str) -> int:
    """The parts of a pattern, each as often as its repeats demand at least; never less than that."""
    counts = [_count(digits) for digits in _REPEAT.findall(pattern)]
    at_most = len(pattern) * prod(counts)
    # What these mean for parentheses depends on flags, so the bound without regard to these holds.
    is_odd = re.search(r"\(\?[a-zA-Z#-]|\[\[|\[:", pattern)
    return at_most if at_most <= _LARGEST_PATTERN or is_odd else min(at_most, _nested_size(pattern))


def _nested_size(pattern: str) -> int:
    """The same bound, where a repeat counts for the part before it alone, which may be in parentheses."""
    sizes, last, at = [0], 1, 0
    while at < len(pattern):
        if repeat := _REPEAT.match(pattern, at):
            sizes[-1] += last * (_count(repeat[1]) - 1)
            last *= _count(repeat[1])
            at = repeat.end()
            continue
        character, length = pattern[at], 1
        if character == "(":
            sizes.append(0)
        elif character == ")" and len(sizes) > 1:
            last = sizes.pop() + 1
            sizes[-1] += last
        else:
            length = _length_of_part(pattern, at)
            last = 1
            sizes[-1] += 1
        at += length
    return sum(sizes)


def _length_of_part(pattern: str, at: int) -> int:
    """The characters of an escape, of a class in brackets, or of a plain character."""
    if pattern[at] == "\\":
        return 2
    if pattern[at] != "[":
        return 1
    known = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]", re.DOTALL).match(pattern, at)
    return known.end() - at if known else 1


def _count(digits: str) -> int:
    """How often a part is repeated, at least once; of a number without end a bound of it."""
    return max(1, int(digits.lstrip("0")[:9] or 0))


def _allow(*_: object) -> tuple[()]:
    return ()
