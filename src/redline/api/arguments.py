"""The arguments of a call: whether they are of the types that the functions declare, and the call as a text."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cache
from inspect import Parameter, signature
from numbers import Integral, Real
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, Unpack, get_args, get_origin, get_type_hints, is_typeddict

from redline.api.suites import WrittenSuite
from redline.errors import UsageError

_WORDS: Mapping[Any, str] = {
    str: "a text",
    bytes: "bytes",
    Path: "a path",
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    timedelta: 'a text such as "10s" or a timedelta',
    object: "any value",
    WrittenSuite: "a redline.Suite",
}
_ACCEPTED: Mapping[Any, type] = {int: Integral, float: Real, Path: os.PathLike, None: NoneType}
"""Wider types than those that are declared."""
_LONGEST = 60


def checked_call(function: Callable[..., object], given: Mapping[str, Any]) -> str:
    """Return the call as it is written in Python; `given` are its arguments by name.

    Raises UsageError for an argument of another type than the function declares.
    """
    for name, hint in _hints(function).items():
        value = given.get(name)
        if is_typeddict(hint):
            for key, item in given[name].items():
                _check(function, key, item, get_type_hints(hint).get(key, Any))
        elif value != signature(function).parameters[name].default:
            _check(function, name, value, hint)
    return call_text(function, given)


def _check(function: Callable[..., object], name: str, value: object, hint: Any) -> None:
    if fits(value, hint):
        if value == "" and Path in get_args(hint) and bytes not in get_args(hint):  # it is the current folder
            raise UsageError(f"{name} is an empty path", hint="name a file or a folder, or leave it out")
        return
    shown = repr(value)
    shown = shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}…"
    advice = "decode it, as by `.decode()`" if isinstance(value, bytes) else f"see help(redline.{function.__name__})"
    raise UsageError(f"{name} is {shown}: {words(hint)} was expected", hint=advice)


@cache
def _hints(function: Callable[..., object]) -> dict[str, Any]:
    """The declared types of a function by parameter: of `*names` that of a tuple, of `**names` the TypedDict."""
    declared = dict[str, Any]()
    for name, parameter in signature(function).parameters.items():
        hint = parameter.annotation  # a value, unlike that of the result, whose import takes long
        if parameter.kind is Parameter.VAR_POSITIONAL:
            hint = Sequence[hint]  # type: ignore[valid-type] # made at run time
        declared[name] = get_args(hint)[0] if get_origin(hint) is Unpack else hint
    return declared


def fits(value: object, hint: Any) -> bool:
    """Whether a value is of a declared type. Whole numbers of any library are numbers, and True is none."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(fits(value, option) for option in inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if isinstance(origin, type) and issubclass(origin, Sequence):
        items = value if isinstance(value, Sequence) and not isinstance(value, str | bytes) else None
        return items is not None and all(fits(item, inner[0]) for item in items)
    if origin is Literal:
        return value in inner
    if hint in (int, float) and isinstance(value, bool):
        return False
    return hint is Any or isinstance(value, _ACCEPTED.get(hint, hint))


def words(hint: Any) -> str:
    """Return a declared type in words: `a text or a list of texts`."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        options = [option for option in inner if option is not NoneType]
        if timedelta in options:  # its words name the text
            options.remove(str)
        return " or ".join(dict.fromkeys(map(words, options)))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"a mapping of names to {words(inner[1])}"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return "a list of mappings" if get_origin(inner[0]) is Mapping else f"a list of {words(inner[0])[2:]}s"
    return _WORDS.get(hint, f"a {getattr(hint, '__name__', hint)}")


def call_text(function: Callable[..., object], given: Mapping[str, Any]) -> str:
    """The call as it is written in Python, without what has its default; `given` are its arguments by name."""
    shown, by_name = list[str](), False
    for name, parameter in signature(function).parameters.items():
        value = given[name]
        if parameter.kind is Parameter.VAR_POSITIONAL:
            shown += map(repr, value)
        elif parameter.kind is Parameter.VAR_KEYWORD:
            shown += [f"{key}={item!r}" for key, item in value.items()]
        elif value != parameter.default:
            named = by_name or parameter.kind is Parameter.KEYWORD_ONLY
            shown.append(f"{name}={value!r}" if named else repr(value))
        else:
            by_name = True
    return f"redline.{function.__name__}({', '.join(shown)})"
