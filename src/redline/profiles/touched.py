"""Which sampled functions are those that a range of commits touches, by their names. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from redline.model import TouchedFunction
from redline.stats.stacks import KERNEL_MARK

_WORD = re.compile(r"[A-Za-z_$~][\w$~]*")
_OF_CLOSURE = re.compile(r"func\d+|(?:go|defer)wrap\d+")
"""Words after the name of a function in that of a closure in it: Go's."""
_LAMBDA = re.compile(r"(?:lambda|\$?\$anonfun)\$(\w+?)\$\d+(?:\.apply)?")
_RUNTIME = re.compile(r"^(?:JS|LazyCompile|Function|Script|py)::?")
_BEFORE_PLACE = re.compile(r"[ (]|(?<!:):(?!:)")
"""What stands between a function and its file, as these runtimes write them."""
_RECEIVER = re.compile(r"\(\*(\w+)\)")
_BRACKETS = re.compile(r"<[^<>]*>|\[[^\[\]]*\]|\{[^{}]*\}")
"""Types, closures and libraries: `<int>`, `[go.shape.int]`, `{{closure}}`, `[libc.so]`."""
_NO_NAME = re.compile(r"\(anonymous namespace\)::|->|-(?:fm|range\d+)\b|decltype\(auto\)|\S*\$\$Lambda\S*")


class _NameParts(NamedTuple):
    function: str
    others: frozenset[str]


def touched_among(names: Iterable[str], touched: Sequence[TouchedFunction]) -> frozenset[str]:
    """The frames of functions that are touched.

    Where several functions have such a name, those with the same class, or else with the file's name, are meant.
    """
    frames = {name: _frame(name) for name in names if not name.endswith(KERNEL_MARK)}
    found = set[str]()
    for one in touched:
        named = [name for name, frame in frames.items() if frame.function == one.name]
        for narrower in (one.within, PurePosixPath(one.file).stem):
            if within := [name for name in named if narrower and narrower in frames[name].others]:
                named = within
                break
        found.update(named)
    return frozenset(found)


@lru_cache(maxsize=1 << 14)
def _frame(name: str) -> _NameParts:
    """The function of a frame, and the other words of its name: `Foo` and `main` in `main.(*Foo).serve.func1`."""
    plain = _LAMBDA.sub(r".\1", _RUNTIME.sub("", name))
    head = _RECEIVER.sub(r"\1", _without_brackets(_NO_NAME.sub("", plain)))
    if _RUNTIME.match(name):
        head = _BEFORE_PLACE.split(head, maxsplit=1)[0]
    else:  # the type that it returns stands before it
        head = (head.partition("(")[0].split() or [""])[-1]
    words = _WORD.findall(head)
    while len(words) > 1 and _OF_CLOSURE.fullmatch(words[-1]):
        words.pop()
    return _NameParts(words[-1] if words else "", frozenset(_WORD.findall(plain)) if words else frozenset())


def _without_brackets(name: str) -> str:
    """The name without what stands in brackets; of Rust's `<Foo as Bar>::baz`, only what follows remains."""
    while (shorter := _BRACKETS.sub("", name)) != name:
        name = shorter
    return name
