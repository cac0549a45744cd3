"""Arguments of calls from Python: their types, and what is said of a wrong one."""

from collections.abc import Callable
from datetime import timedelta
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import redline
from redline.api.arguments import call_text, fits, words
from redline.api.calls import RequestOptions
from redline.errors import UsageError

URL = "http://127.0.0.1:9/"
WRONG: tuple[tuple[str, object, str], ...] = (
    ("server", URL.encode(), "a text"),
    ("server", 123, "a text"),
    ("server", Path("x"), "a text"),
    ("rate", b"5", "a number or a text"),
    ("rate", True, "a number or a text"),
    ("users", "4", "a whole number"),
    ("users", 4.5, "a whole number"),
    ("users", True, "a whole number"),
    ("duration", 5, 'a text such as "10s" or a timedelta'),
    ("objective", 5, "a text or a list of texts"),
    ("objective", ["p99 < 5ms", 5], "a text or a list of texts"),
    ("stages", 5, "a text or a list of texts"),
    ("depth", None, "a whole number"),
    ("keep", b"x", "a text or a path"),
    ("arrivals", "x", "'poisson' or 'uniform'"),
    ("progress", "yes", "True or False"),
    ("headers", ["a: b"], "a mapping of names to a text or a list of texts"),
    ("headers", {"a": 5}, "a mapping of names to a text or a list of texts"),
    ("headers", {b"a": "b"}, "a mapping of names to a text or a list of texts"),
    ("body", 5, "a text or bytes or a path"),
    ("requests", 5, "a text or a path or a list of mappings"),
    ("requests", [b"GET /"], "a text or a path or a list of mappings"),
    ("status", "200", "a whole number"),
    ("http2", "yes", "True or False"),
    ("cacert", 5, "a text or a path"),
    ("tls_min", "1.1", "'1.2' or '1.3'"),
)


@pytest.mark.parametrize(("name", "value", "expected"), WRONG)
def test_an_argument_of_another_type_is_named_with_what_was_expected(name: str, value: object, expected: str) -> None:
    given: dict[str, Any] = {"server": URL, name: value}
    with pytest.raises(UsageError) as raised:
        redline.load(**given)
    assert f"{name} is {value!r}: {expected} was expected" in str(raised.value)


@pytest.mark.parametrize("name", ["keep", "log", "replay", "requests", "cacert"])
def test_an_empty_path_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given: dict[str, Any] = {"server": URL, "body": "", name: ""}
    with pytest.raises(UsageError, match=f"{name} is an empty path"):
        redline.load(**given)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: redline.ab(URL, 5), "b is 5: a text"),  # type: ignore[arg-type]
        (lambda: redline.ab(b"a", "b"), "a is b'a': a text"),  # type: ignore[arg-type]
        (lambda: redline.limit(b"x"), "targets is (b'x',): a list of texts"),  # type: ignore[arg-type]
        (lambda: redline.run({"servers": []}), "suite is {'servers': []}: a redline.Suite or a text or a path"),  # type: ignore[arg-type]
        (lambda: redline.run("x.yaml", trials="x"), "trials is 'x': a whole number"),  # type: ignore[arg-type]
    ],
)
def test_every_function_names_the_argument(call: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as raised:
        call()
    assert said in str(raised.value)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(UsageError) as raised:
        redline.load(b"x" * 1000)  # type: ignore[arg-type]
    assert len(str(raised.value).splitlines()[0]) < 120


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (np.int64(4), int),
        (np.float64(4.5), float),
        (4, float),
        (Fraction(1, 2), float),
        (("a", "b"), get_type_hints(RequestOptions)["sources"]),
        ("a", str | None),
        (None, str | None),
        (timedelta(seconds=1), str | timedelta),
        (Path("x"), str | Path),
        ([{"name": "x", "get": "/"}], get_type_hints(RequestOptions)["requests"]),
        ({"a": ["b", "c"]}, get_type_hints(RequestOptions)["headers"]),
    ],
)
def test_values_of_the_declared_type_fit(value: object, hint: Any) -> None:
    assert fits(value, hint)


def test_every_declared_type_has_words() -> None:
    functions = (redline.load, redline.ab, redline.limit, redline.run)
    hints = [get_type_hints(function) for function in functions] + [get_type_hints(RequestOptions)]
    said = {words(hint) for declared in hints for name, hint in declared.items() if name not in ("return", "request")}
    assert not [text for text in said if "[" in text or "<" in text]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"a": "x", "b": "y"}, "redline.ab('x', 'y')"),
        ({"b": "y"}, "redline.ab(b='y')"),
        ({"a": "x", "seed": 2}, "redline.ab('x', seed=2)"),
        ({"request": {"http2": True}}, "redline.ab(http2=True)"),
    ],
)
def test_a_call_is_written_as_it_was_made(given: dict[str, Any], text: str) -> None:
    defaults = {name: one.default for name, one in signature(redline.ab).parameters.items()} | {"request": {}}
    assert call_text(redline.ab, defaults | given) == text
