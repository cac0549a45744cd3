"""Hostile documents are read or refused within bounds of memory and time, and never end in a stack trace."""

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.extras.importing.allowed import expanded_size

_ROOM = 400 * 1024 * 1024
"""More than is used for a plain document, and far less than a repeat takes that is written out."""
_READ = f"""
import io, json, resource, sys
from redline.errors import UsageError
from redline.suite.imported import Wanted
from redline.extras.importing import named, read_requests
from redline.suite.request_source import RequestSource
import redline.extras.importing.openapi
resource.setrlimit(resource.RLIMIT_AS, ({_ROOM}, {_ROOM}))
resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
for text in json.load(sys.stdin):
    source = RequestSource("f", io.BytesIO(text.encode()), lambda name: b"")
    try:
        made = read_requests(source, named("openapi"), Wanted())
    except UsageError as error:
        print("refused:", error.message[:200])
    else:
        print("read", made.total, sorted(note.why for note in made.left_out if note.kind == "request"))
"""


def read_in_bounds(texts: list[str]) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _READ], input=json.dumps(texts).encode(), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return done.stdout.decode().splitlines()


def document(keys: dict[str, Any]) -> str:
    return json.dumps({"openapi": "3.1.0", **keys})


def with_schema(schema: Any, **more: Any) -> str:
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    return document({"paths": {"/ok": {"get": {}}, "/": {"post": body}}, **more})


TOO_MUCH = "with a pattern that repeats too much"
NO_VALUE = "for which no value could be made from the schema"


TOO_LARGE = [
    "^(a+)+$b{1000000000}",
    "b{1000000}",
    "(?:(?:(?:a{1000}){1000}){1000}){1000}",
    "((a{300}b?){300}){300}",
    "(a{1000}[(]b){1000}",
    "(a{1000}[)]b){1000}",
    "(?x)(a{1000}#(\n){1000}",
    "a{5000}{5000}",
    "[[:alpha:](]{9}(a{1000}){1000}",
    "a{0000000001000000}",
    f"a{{1{'0' * 1900}}}",
]


def test_a_pattern_that_repeats_too_much_is_named() -> None:
    texts = [
        with_schema(schema)
        for pattern in TOO_LARGE
        for schema in (
            {"type": "string", "pattern": pattern},
            {"const": {"a": 1}, "propertyNames": {"pattern": pattern}},
            {"const": {"a": 1}, "patternProperties": {pattern: {}}},
        )
    ]
    assert read_in_bounds(texts) == [f"read 2 ['{TOO_MUCH}']"] * len(texts)


@pytest.mark.parametrize(
    "pattern",
    [
        "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
        r"^.{0,65535}$",
        r"^[\s\S]{1,1000000000}$",
        r"^(?:[a-z]{1,63}\.){0,20}[a-z]{2,63}$",
        "^a{1,}$",
    ],
)
def test_patterns_of_usual_documents_are_small(pattern: str) -> None:
    assert expanded_size(pattern) < 100


@given(
    st.recursive(
        st.sampled_from(["a", ".", r"\d", "[a-z]", "[)]", "[(]", r"\(", r"\)", "[]a]"]),
        lambda inner: (
            st.tuples(inner, inner).map("".join)
            | st.tuples(inner, st.integers(0, 9)).map(lambda part: f"(?:{part[0]}){{{part[1]}}}")
            | st.tuples(inner, st.integers(0, 9)).map(lambda part: f"({part[0]}){{{part[1]},}}")
        ),
        max_leaves=12,
    )
)
def test_the_size_of_a_pattern_is_no_less_than_what_it_demands(pattern: str) -> None:
    assert expanded_size(pattern * 3 + "a{300}") >= shortest(pattern * 3) + 300


def shortest(pattern: str) -> int:
    """The length of the shortest text that a pattern fits, as the standard library knows it."""
    import re._parser as parser  # type: ignore[import-not-found]  # noqa: PLC0415 - only here

    return int(parser.parse(pattern).getwidth()[0])


NESTED = 3_000


HOSTILE = [
    (with_schema({"type": "string", "minLength": 10**9}), f"read 2 ['{NO_VALUE}']"),
    (with_schema({"type": "array", "minItems": 10**9}), f"read 2 ['{NO_VALUE}']"),
    (with_schema({"type": "array", "minItems": 10**9, "uniqueItems": True}), f"read 2 ['{NO_VALUE}']"),
    (with_schema({"type": "array", "items": {"type": "string"}, "uniqueItems": True, "minItems": 99}), "read 2"),
    (with_schema({"type": "object", "minProperties": 10**9}), f"read 2 ['{NO_VALUE}']"),
    (with_schema({"type": "number", "minimum": 1e308, "multipleOf": 1e-308}), f"read 2 ['{NO_VALUE}']"),
    (with_schema({"example": 1}).replace('"example": 1', '"example": 1e999999999'), "read 2"),
    (with_schema({"type": "number", "minimum": 0}).replace('"minimum": 0', '"minimum": 1e999999999'), "read 2"),
    (with_schema({"multipleOf": 0}).replace(": 0", ": 1e-999999999"), "read 2"),
    (with_schema({"example": 1}).replace('"example": 1', f'"example": {"9" * 5000}'), "refused"),
    (with_schema({"example": 1}).replace('"example": 1', f'"example": {"[" * NESTED}{"]" * NESTED}'), "refused"),
    (with_schema({"example": 1}).replace('"example": 1', f'"example": {"[" * 400}{"]" * 400}'), "read 2"),
    (
        with_schema(
            {"$ref": "#/components/schemas/a"},
            components={"schemas": {"a": {"items": {"$ref": "#/components/schemas/a"}}}},
        ),
        f"read 2 ['{NO_VALUE}']",
    ),
    (with_schema({"type": "string", "format": "byte", "minLength": 10_000}), "read 2"),
    (
        document(
            {
                "servers": [
                    {"url": "/{v0}", "variables": {f"v{at}": {"default": f"{{v{at + 1}}}" * 2} for at in range(40)}}
                ],
                "paths": {"/": {"get": {}}},
            }
        ),
        "refused",
    ),
    (
        document(
            {
                "paths": {
                    "/ok": {"get": {}},
                    "/" + "{id}" * 200_000: {
                        "get": {"parameters": [{"name": "id", "in": "path", "example": "x" * 100_000}]}
                    },
                }
            }
        ),
        "read 2 ['whose path and query are longer than 64 KiB']",
    ),
    (
        document(
            {
                "paths": {
                    "/ok": {"get": {}},
                    "/": {"get": {"parameters": [{"name": "n" * 100_000, "in": "query", "example": [1] * 100_000}]}},
                }
            }
        ),
        "read 2 ['whose path and query are longer than 64 KiB']",
    ),
    (
        document({"servers": [{"url": "/" + "a" * 60_000}], "paths": {f"/{at}": {"get": {}} for at in range(20_000)}}),
        "refused",
    ),
    (
        "openapi: 3.1.0\npaths: {/: {get: {}}}\na0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        + "".join(f"a{at}: &a{at} [{', '.join([f'*a{at - 1}'] * 9)}]\n" for at in range(1, 12)),
        "refused",
    ),
]


def test_hostile_documents_are_read_or_refused_within_bounds() -> None:
    said = read_in_bounds([text for text, _ in HOSTILE])
    assert [line for line, (_, begins) in zip(said, HOSTILE, strict=True) if not line.startswith(begins)] == []
