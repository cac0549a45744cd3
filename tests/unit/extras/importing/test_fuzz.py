"""Whatever a file of requests contains, the result is a list that can be sent, or a UsageError; never a stack trace."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.extras.importing import FORMATS, detect, read_requests
from redline.schema.document import parse_document
from redline.suite.imported import Wanted
from redline.suite.project import read_project
from redline.suite.request_source import RequestSource
from tests.unit.extras.importing.test_importing import HAR, TEXTS, source
from tests.unit.extras.importing.test_openapi import YAML

VALID = {**TEXTS, "openapi": YAML}
KEYS = [
    "log", "entries", "request", "response", "url", "method", "headers", "name", "value", "postData", "params", "text",
    "mimeType", "status", "openapi", "paths", "get", "post", "parameters", "schema", "type", "properties", "items",
    "allOf", "oneOf", "enum", "example", "examples", "default", "$ref", "in", "required", "content", "requestBody",
    "application/json", "servers", "variables", "security", "responses", "/a/{id}", "minimum", "maximum", "multipleOf",
    "pattern", "minLength", "maxLength", "minItems", "format", "header", "body", "components",
]  # fmt: skip
WORDS = [
    *KEYS,
    "path",
    "query",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "3.1.0",
    "#/paths",
    "http://h/a",
    "GET",
]
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=25,
)


def read(content: str | bytes, name: str) -> None:
    """What is read in a format can be written into a redline.yaml, and is read again."""
    form = next(form for form in FORMATS if form.name == name)
    try:
        made = read_requests(source(content), form, Wanted())
    except UsageError:
        return
    assert made.requests
    assert all(count > 0 for count in made.counts)
    text = json.dumps({"start": "./x {port}", "requests": [{**request, "body": "x"} for request in made.requests]})
    names = [scenario.name for scenario in read_project(text, "redline.yaml").scenarios]
    assert len(names) == len(made.requests) + (len(made.requests) > 1)


@pytest.mark.parametrize("name", sorted(VALID))
@given(content=st.binary(max_size=200) | st.text(max_size=200))
def test_any_content_is_read_or_refused(name: str, content: str | bytes) -> None:
    read(content.encode(errors="surrogatepass") if isinstance(content, str) else content, name)


@pytest.mark.parametrize("name", sorted(VALID))
@given(data=st.data())
def test_a_changed_file_is_read_or_refused(name: str, data: st.DataObject) -> None:
    content = bytearray(VALID[name].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        upto = data.draw(st.integers(at, min(len(content), at + 20)))
        content[at:upto] = data.draw(st.binary(max_size=4) | st.sampled_from([b'"', b"'", b"{", b"\n", b"\0", b"\\"]))
        content = content or bytearray(b"x")
    read(bytes(content), name)


@given(value=PLAIN, name=st.sampled_from(["har", "openapi", "json-log", "vegeta-json"]))
def test_any_json_is_read_or_refused(value: Any, name: str) -> None:
    read(json.dumps(value), name)


def mutated(value: Any, data: st.DataObject) -> Any:
    """The value with another in the place of a part of it."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 5)):
        key = data.draw(st.sampled_from(sorted(value)))
        return {**value, key: mutated(value[key], data)}
    if isinstance(value, list) and value and data.draw(st.integers(0, 5)):
        at = data.draw(st.integers(0, len(value) - 1))
        return [*value[:at], mutated(value[at], data), *value[at + 1 :]]
    return data.draw(PLAIN)


def documents() -> dict[str, Callable[[], Any]]:
    return {"har": lambda: json.loads(HAR), "openapi": lambda: parse_document(YAML, "f").value}


@pytest.mark.parametrize("name", ["har", "openapi"])
@given(data=st.data())
def test_a_document_with_other_values_is_read_or_refused(name: str, data: st.DataObject) -> None:
    read(json.dumps(mutated(documents()[name](), data)), name)


@given(content=st.binary(max_size=300))
def test_the_format_of_any_content_is_seen_or_refused(content: bytes) -> None:
    try:
        detect(source(content))
    except UsageError:
        return


@given(content=st.binary(max_size=60), cut=st.integers(1, 9))
def test_lines_are_those_of_the_content(content: bytes, cut: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("redline.suite.request_source.HEAD_BYTES", max(cut, 4))  # a mark of 3 bytes is whole
        patched.setattr("redline.suite.request_source._BLOCK_BYTES", cut)
        try:
            read = source(content)
            lines = [line for _, line in read.lines()]
        except UsageError:  # it begins as gzip does
            return
    assert isinstance(read, RequestSource)
    plain = content.removeprefix(b"\xef\xbb\xbf")
    expected = [line.decode(errors="backslashreplace") for line in re.split(rb"\r\n|\r|\n", plain)]
    assert lines == (expected if expected[-1] else expected[:-1])
