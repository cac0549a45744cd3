"""A recording of a browser as a journey: steps, think times, values of answers, and what the user has to write."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.asking.written import as_yaml
from redline.errors import UsageError
from redline.extras.importing.journeys import ImportedJourney, read_journey
from redline.model import Request
from redline.suite import referenced_files
from redline.suite.project import read_project
from tests.unit.extras.importing.test_fuzz import PLAIN, mutated
from tests.unit.extras.importing.test_importing import source


def entry(at_ms: int, url: str, method: str = "GET", status: int = 200, **more: Any) -> dict[str, Any]:
    headers = [{"name": name, "value": value} for name, value in more.get("sent", {}).items()]
    got = [{"name": name, "value": value} for name, value in more.get("got", {}).items()]
    content = {"mimeType": more.get("kind", "application/json"), "text": more.get("answer", "")}
    request: dict[str, Any] = {"method": method, "url": f"http://shop.example{url}", "headers": headers}
    if "form" in more:
        request["postData"] = {"mimeType": "application/x-www-form-urlencoded", "text": more["form"]}
    if "json" in more:
        request["postData"] = {"mimeType": "application/json", "text": json.dumps(more["json"])}
    if "body" in more:
        request["postData"] = {"mimeType": more.get("sent", {}).get("Content-Type", ""), "text": more["body"]}
    return {
        "startedDateTime": f"2026-11-26T12:00:{at_ms // 1000:02}.{at_ms % 1000:03}Z",
        "time": 20,
        "request": request,
        "response": {"status": status, "headers": got, "content": content},
    }


FIELD = '<input type=hidden name="csrf" value="([^"]+)'
SHOP = [
    entry(0, "/login", kind="text/html", answer='<input type=hidden name="csrf" value="c1b2a3f4">'),
    entry(900, "/login", "POST", 302, form="csrf=c1b2a3f4&user=annabel&password=geheim", got={"Location": "/shop"}),
    entry(940, "/shop", kind="text/html"),
    entry(950, "/logo.png", kind="image/png"),
    entry(1000, "/api/me", sent={"Cookie": "sid=1", "Accept": "*/*"}, answer='{"token": "t0ken-1", "user": "annabel"}'),
    entry(1500, "/api/items", answer='{"items": [{"id": "item-77"}]}'),
    entry(1530, "/api/items/item-77?by=annabel"),
    entry(1800, "/api/orders", "POST", 201, json={"item": "item-77", "n": 2}, sent={"Authorization": "Bearer t0ken-1"}),
    entry(1900, "/gone", status=404),
]


def made_of(entries: list[Any], **wanted: Any) -> ImportedJourney:
    return read_journey(source(json.dumps({"log": {"entries": entries}})), **wanted)


def test_a_recording_becomes_a_journey(tmp_path: Path) -> None:
    made = made_of(SHOP)
    assert made.once == [
        {
            "name": "login",
            "get": "/login",
            "take": {"csrf": {"regex": '<input type=hidden name="csrf" value="([^"]+)'}},
        },
        {
            "name": "post-login",
            "post": "/login",
            "form": {"csrf": "{take:csrf}", "user": "{row:user}", "password": "{row:password}"},
            "expect": {"status": 302},
            "take": {"next": {"header": "Location"}},
        },
    ]
    assert made.steps == [
        {"name": "shop", "get": "{take:next}"},
        {"name": "api-me", "get": "/api/me", "take": {"token": {"json": "/token"}}},
        {"name": "api-items", "think": "500ms", "get": "/api/items", "take": {"id": {"json": "/items/0/id"}}},
        {"name": "api-items-2", "get": "/api/items/{take:id}?by={row:user}"},
        {
            "name": "post-api-orders",
            "think": "300ms",
            "post": "/api/orders",
            "json": {"item": "{take:id}", "n": 2},
            "headers": {"Authorization": "Bearer {take:token}"},
            "expect": {"status": 201},
        },
    ]
    assert made.columns == ("user", "password")
    assert "geheim" not in json.dumps(made.document)
    left = {note.why.partition(" (")[0]: note.count for note in made.left_out}
    assert left == {"that a page loads, such as pictures and scripts": 1, "answered with status 404": 1}
    assert len(made_of(SHOP, whole=True).steps) == len(made.steps) + 1
    check_is_read(made, tmp_path)


def check_is_read(made: ImportedJourney, folder: Path) -> tuple[Request, ...]:
    """What is written can be read again, beside a file of rows."""
    columns = made.columns or ("a",)
    (folder / "users.csv").write_text("\n".join([",".join(columns), ",".join("x" for _ in columns), ""]))
    text = as_yaml({"start": "./x {port}", **made.document})
    (scenario,) = read_project(text, "redline.yaml", referenced_files(folder / "redline.yaml")).scenarios
    assert len(scenario.requests) == len(made.once) + len(made.steps)
    return scenario.requests


def test_without_a_login_all_is_repeated_and_secrets_are_rows() -> None:
    made = made_of([entry(0, "/a?token=abcdef", sent={"X-Api-Key": "k"}), entry(10, "/b")])
    assert made.once == []
    assert made.document["journey"] == {
        "rows": "users.csv",
        "steps": [
            {"name": "a", "get": "/a?token={row:token}", "headers": {"X-Api-Key": "{row:X-Api-Key}"}},
            {"name": "b", "get": "/b"},
        ],
    }
    assert made_of([entry(0, "/a?token=abcdef")], keep=frozenset({"token"})).columns == ()


def test_a_query_keeps_its_escapes(tmp_path: Path) -> None:
    query = "filter=%7B%22q%22%3A%22a%26b%2Bc%22%7D&{a}=1&{seq}=%7Bseq%7D"
    made = made_of([entry(0, f"/a?{query}")])
    check_is_read(made, tmp_path)
    (step,) = made.steps
    assert step["get"] == f"/a?{query.replace('{seq}', '{{seq}}')}"


@pytest.mark.parametrize(
    ("page", "regex"),
    [
        ("<input name='q' value='abcdef'><input name='t' value='c1b2a3f4'>", "<input name='t' value='([^']+)"),
        ("<input value='abcdef' name='q'><input value='c1b2a3f4' name='t'>", "<input value='([^']+)' name='t'>"),
        ("<input value='abcdef' name='t'><input value='c1b2a3f4' name='t'>", None),
        ("<input name='t' value='c1b2a3&#102;4'>", None),
    ],
)
def test_a_value_of_a_page_is_taken_from_its_own_field(page: str, regex: str | None) -> None:
    made = made_of([entry(0, "/", kind="text/html", answer=page), entry(1, "/t/c1b2a3f4")])
    assert made.steps[0].get("take") == (regex and {"t": {"regex": regex}})


@pytest.mark.parametrize("name", ["pass", "passcode", "pw", "user_pass", "pin"])
def test_a_password_is_one_whatever_its_field_is_called(name: str) -> None:
    made = made_of([entry(0, "/login", "POST", 302, form=f"user=annabel&{name}=hunter2hunter2"), entry(900, "/shop")])
    assert "hunter2" not in str(made.document)
    assert made.columns == ("user", name)


def test_a_changed_password_is_another_cell() -> None:
    change = entry(900, "/change", "POST", 302, form="old=geheim123&password=hunter2hunter2")
    made = made_of([entry(0, "/login", "POST", 302, form="user=annabel&password=geheim123"), change])
    assert "hunter2" not in str(made.document)
    assert made.columns == ("user", "password", "password-2")
    assert [*made.once, *made.steps][-1]["form"] == {"old": "{row:password}", "password": "{row:password-2}"}


def test_a_field_whose_name_has_pin_in_it_is_no_password() -> None:
    made = made_of([entry(0, "/shop"), entry(900, "/orders", "POST", 201, form="shipping=fast&compass=north")])
    assert not made.columns
    assert "fast" in str(made.document)


FORM = "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("kind", "body", "written"),
    [
        (FORM, "user=ann&password=hunter*2", {"form": {"user": "{row:user}", "password": "{row:password}"}}),
        (FORM, "user=a%40x&pass=hunter%202", {"form": {"user": "{row:user}", "pass": "{row:pass}"}}),
        (FORM, "o=a&o=b&password=hunter2", {"form": {"o": ["a", "b"], "password": "{row:password}"}}),
        (FORM, "o=a&password=hunter2&o=b", None),
        (FORM, "o=%ff&user_pass=hunter2", None),
        ("text/plain", '{"user": "ann", "pwd": "hunter2"}', {"json": {"user": "{row:user}", "pwd": "{row:pwd}"}}),
        ("text/plain", "user=ann&password=hunter2", None),
        ("application/json", '{"pin":1234,"n":1.10,"b":true}', {"json": {"pin": "{row:pin}", "n": 1.10, "b": True}}),
        ("application/json", '{"pin":"hunter2","a":1,"a":2}', None),
        ("application/json", '{"max_tokens":256,"n":1}', {"json": {"max_tokens": 256, "n": 1}}),
        ("application/json", '{"password":{"value":"hunter2"}}', {"json": {"password": {"value": "{row:password}"}}}),
    ],
)
def test_no_secret_of_a_body_is_written(kind: str, body: str, written: dict[str, Any] | None, tmp_path: Path) -> None:
    """Where no template can take its place, the request is left out."""
    made = made_of([entry(0, "/"), entry(9, "/in", "POST", body=body, sent={"Content-Type": kind})])
    check_is_read(made, tmp_path)
    assert "hunter" not in json.dumps(made.document)
    assert "1234" not in json.dumps(made.document)
    steps = [*made.once, *made.steps][1:]
    assert [{key: step[key] for key in step if key in {"body", "form", "json"}} for step in steps] == [written] * bool(
        written
    )
    assert [note.why.partition(" (")[0] for note in made.left_out] == ["whose body holds a secret"] * (not written)


def test_a_login_within_an_object_is_one(tmp_path: Path) -> None:
    """Both as in JSON, and as a form writes it."""
    login = {"user": {"email": "ann@example.org", "password": "geheim", "remember": True}}
    fields = "user%5Bemail%5D=ann%40example.org&user%5Bpassword%5D=geheim"
    for body, columns in (
        ({"json": login}, ("email", "password")),
        ({"form": fields}, ("user-email", "user-password")),
    ):
        made = made_of([entry(0, "/login", "POST", **body), entry(900, "/shop")])
        check_is_read(made, tmp_path)
        assert made.columns == columns
        assert [step["name"] for step in made.once] == ["post-login"]


@pytest.mark.parametrize("body", ['{"a":1.10,"b":1E400,"c":-0}', '{"d":1,"d":2}', '{"a": 1}', "[1e2]"])
def test_a_body_without_values_of_others_is_sent_as_it_was(body: str, tmp_path: Path) -> None:
    made = made_of([entry(0, "/a", "POST", body=body, sent={"Content-Type": "application/json"})])
    (request,) = check_is_read(made, tmp_path)
    assert request.body is not None
    assert request.body.content().decode() == body
    assert request.header_lines == (("Content-Type", "application/json"),)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json-patch+json", '[{"op":"remove","path":"/a"}]'),
        ("application/json; charset=UTF-8", '{"a":1}'),
        ("text/plain", '{"a":1,"password":"geheim"}'),
        (f"{FORM};charset=UTF-8", "a=1"),
    ],
)
def test_a_body_keeps_its_content_type(kind: str, body: str, tmp_path: Path) -> None:
    made = made_of([entry(0, "/a", "POST", body=body, sent={"Content-Type": kind})])
    (request,) = check_is_read(made, tmp_path)
    assert request.header_lines == (("Content-Type", kind),)


def test_a_repeated_header_is_a_list(tmp_path: Path) -> None:
    asked = entry(0, "/a")
    asked["request"]["headers"] = [{"name": name, "value": "1"} for name in ("X-A", "X-B", "x-a")]
    (request,) = check_is_read(made_of([asked]), tmp_path)
    assert request.header_lines == (("X-A", "1"), ("X-A", "1"), ("X-B", "1"))


def test_what_is_no_journey_is_refused() -> None:
    with pytest.raises(UsageError, match="has no request for a journey"):
        made_of([entry(0, "/a", status=500)])
    with pytest.raises(UsageError, match=r"there is no request to cdn\.example"):
        made_of(SHOP, host="cdn.example")
    with pytest.raises(UsageError, match=r"`log.entries` is missing"):
        read_journey(source("{}"))


@given(data=st.data())
def test_a_recording_with_other_values_is_read_or_refused(data: st.DataObject, tmp_path_factory: Any) -> None:
    entries = data.draw(st.just(mutated(SHOP, data)) | st.lists(PLAIN, max_size=3))
    try:
        made = made_of(entries)
    except UsageError:
        return
    check_is_read(made, tmp_path_factory.getbasetemp())
