"""What stands in answers of JSON: values, nothing, anything, and the errors of GraphQL."""

from typing import Any

import pytest

from redline.driving.protocol import _expect
from redline.driving.verifying import _json_of
from redline.errors import UsageError
from redline.model import Expected, Request
from redline.suite.project import read_project


def request_of(text: str) -> Request:
    return read_project(f"start: ./x {{port}}\nrequests: [{{name: a, {text}}}]\n", "redline.yaml").scenarios[0].request


def expected(written: str) -> Expected:
    return request_of(f"get: /, expect: {{json: {written}}}").expect


def test_values_and_what_stands_there_are_told_apart() -> None:
    expect = expected("{/a: {equals: absent}, /b: {empty: true}, /c: null, /d: {x: 1}, /e: {equals: {absent: true}}}")
    assert expect.json_values == {"/a": "absent", "/c": None, "/d": {"x": 1}, "/e": {"absent": True}}
    assert expect.json_stands == {"/b": "empty"}
    assert _expect(expected("{/a: 1, /b: {absent: true}}")) == {
        "status": 200,
        "json": [{"pointer": "/a", "equals": 1}, {"pointer": "/b", "stands": "absent"}],
    }


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("{/errors: absent}", "write `{absent: true}`, or for the text `{equals: absent}`"),
        ("{/errors: present}", "write `{present: true}`, or for the text `{equals: present}`"),
        ("{/errors: {absent: false}}", "write `{present: true}`"),
        ("{/errors: {present: false}}", "write `{absent: true}`"),
        ("{/errors: {empty: 1}}", "write `{present: true}`"),
        ("{/errors: {absent: true, present: true}}", "write one of them; an object to compare with is `{equals: {…}}`"),
        ("{/errors: {absent: true, x: 1}}", "write one of them; an object to compare with is `{equals: {…}}`"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_refused(written: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        expected(written)
    assert hint in str(refused.value)
    assert "/errors" in str(refused.value)


@pytest.mark.parametrize(
    ("written", "body", "wrong"),
    [
        ("{/e: {absent: true}}", "{}", None),
        ("{/e: {absent: true}}", '{"e": null}', "null in place of nothing stands at /e"),
        ("{/e: {absent: true}}", "no", "its body is not JSON but 'no'"),
        ("{/e: {empty: true}}", '{"e": []}', None),
        ("{/e: {empty: true}}", '{"e": 0}', "0 in place of nothing, null or an empty value stands at /e"),
        ("{/e: {present: true}}", '{"e": null}', None),
        ("{/e: {present: true}}", "{}", "nothing stands at /e of '{}'"),
        ("{/e: null}", '{"e": null}', None),
        ("{/e: null}", "{}", "nothing stands at /e of '{}'"),
    ],
)
def test_a_body_is_compared_with_what_stands_there(written: str, body: str, wrong: str | None) -> None:
    assert _json_of(expected(written), body.encode()) == wrong


@pytest.mark.parametrize(
    "text",
    [
        'post: /graphql, json: {query: "{ items { id } }", variables: {n: 1}}',
        'post: /api, body: \'{"query": "query A($n: Int) { a(n: $n) }\\n"}\'',
        'post: /api, json: {query: "{ items(id: {seq}) }"}',
        'post: /api, json: [{query: "{a}"}, {query: "{b}"}]',
        "post: /api, json: {operationName: A, extensions: {persistedQuery: {version: 1}}}",
        'get: "/graphql?query=%7Ba%7D"',
        'post: /graphql, json: {query: "{a}"}, expect: {json: {/data/a: 1}}',
        'post: /graphql, json: {query: "{a}"}, accept: gzip',
    ],
)
def test_an_answer_to_graphql_has_no_errors(text: str) -> None:
    expect = request_of(text).expect
    assert expect.no_errors
    assert _json_of(expect, b'{"errors": [{"message": "no"}], "data": {"a": 1}}') == (
        '`errors` in the body: [{"message": "no"}]'
    )
    assert _json_of(expect, b'{"data": {"a": 1}, "errors": []}') is None
    sent = _expect(expect)
    assert sent.get("no_errors") is (None if expect.under_load == "status" else True)


@pytest.mark.parametrize(
    "text",
    [
        "post: /search, json: {query: shoes}",
        "post: /_search, json: {query: {match: {a: b}}}",
        "post: /, body: 'query'",
        "post: /, json: []",
        "get: /?query=shoes",
        'post: /graphql, json: {query: "{a}"}, expect: {json: {/errors: {present: true}}}',
        'post: /graphql, json: {query: "{a}"}, expect: {json: {/errors/0/message: "no"}}',
        "post: /graphql, json: {query: '{a}'}, expect: {body: '{\"errors\": [1]}'}",
        'post: /graphql, json: {query: "{a}"}, stream: sse',
    ],
)
def test_of_other_requests_and_of_errors_that_are_expected_nothing_is_assumed(text: str) -> None:
    assert not request_of(text).expect.no_errors


def test_a_list_of_answers_has_no_errors() -> None:
    expect = request_of('post: /api, json: [{query: "{a}"}, {query: "{b}"}]').expect
    assert _json_of(expect, b'[{"data": 1}, {"errors": [1]}]') == "`errors` in the body: [1]"
    assert _json_of(expect, b"<h1>no</h1>") is None


def body_of(text: str) -> Any:
    body = request_of(text).body
    return body and body.text


def test_numbers_of_bodies_are_sent_as_they_are_written() -> None:
    json = "{a: 1.10, b: -0, c: 1E400, d: 0.1000000000000000055511151231257827, e: 0x1F, f: 1.5}"
    written = '{"a":1.10,"b":-0,"c":1E400,"d":0.1000000000000000055511151231257827,"e":31,"f":1.5}'
    assert body_of(f"post: /, json: {json}") == written
    assert body_of("post: /, form: {a: 1.10, b: [-0, 1E400]}") == "a=1.10&b=-0&b=1E400"
    for number in (".inf", ".nan"):
        with pytest.raises(UsageError, match="JSON has no number for infinity"):
            request_of(f"post: /, json: {{a: {number}}}")


def test_numbers_stay_as_they_are_written_in_the_suite_that_a_command_writes() -> None:
    from redline.asking.written import as_yaml  # noqa: PLC0415 - the shell around the suite
    from redline.schema.document import parse_document  # noqa: PLC0415

    text = "a: [1.10, -0, 1E400, 0.1000000000000000055511151231257827, 1.5]\n"
    again = parse_document(as_yaml(parse_document(text, "f").value), "f").value
    assert isinstance(again, dict)
    assert isinstance(again["a"], list)
    assert [getattr(number, "text", str(number)) for number in again["a"]] == [
        "1.10", "-0", "1E400", "0.1000000000000000055511151231257827", "1.5"
    ]  # fmt: skip
