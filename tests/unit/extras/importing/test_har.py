"""Recordings as HAR: bodies that a recorder left out, one reader of lists and journeys, and counts that add up."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.errors import UsageError
from redline.extras.importing import named, read_requests
from redline.extras.importing.journeys import ImportedJourney, read_journey
from redline.suite.imported import ImportNote, Wanted
from tests.unit.extras.importing.test_importing import source

TIME = "2026-11-26T12:00:01.000Z"
FORM = "multipart/form-data; boundary=x"


def entry(url: str = "http://h.example/a", method: str = "GET", **more: Any) -> dict[str, Any]:
    """An entry; `sent` are headers, `posted` and `size` describe the body, `got` and `content` the answer."""
    headers = [{"name": name, "value": value} for name, value in more.get("sent", {}).items()]
    request = {"method": method, "url": url, "headers": headers}
    if "posted" in more:
        request["postData"] = more["posted"]
    if "size" in more:
        request["bodySize"] = more["size"]
    got = [{"name": name, "value": value} for name, value in more.get("got", {}).items()]
    response = {"status": more.get("status", 200), "headers": got, "content": more.get("content", {"size": 0})}
    entry: dict[str, Any] = {"startedDateTime": TIME, "time": 3, "request": request, "response": response}
    entry.update(more.get("over", {}))
    return entry


def listed(*entries: Any, times: bool = False) -> tuple[list[dict[str, Any]], dict[str, int]]:
    made = read_requests(source(json.dumps({"log": {"entries": entries}})), named("har"), Wanted(times=times))
    return [*made.requests], counts(made.left_out)


def journey(*entries: Any) -> ImportedJourney:
    return read_journey(source(json.dumps({"log": {"entries": entries}})))


def counts(notes: list[ImportNote], kind: str = "request") -> dict[str, int]:
    return {note.why: note.count for note in notes if note.kind == kind}


PLAIN = entry()
JSON = {"mimeType": "application/json"}
NOT_RECORDED, IN_PART = (
    "whose body was not recorded",
    "whose body was recorded only in part, or otherwise than it was sent",
)


@pytest.mark.parametrize(
    ("request_", "why"),
    [
        ({"sent": {"Content-Length": "60", "Content-Type": "application/json"}}, NOT_RECORDED),
        ({"sent": {"Content-Length": "60"}, "posted": {**JSON, "text": ""}}, NOT_RECORDED),
        ({"sent": {"Content-Length": "60"}, "posted": {**JSON, "text": '{"a": 1'}}, IN_PART),
        ({"size": 60, "posted": {**JSON, "text": '{"a": 1'}}, IN_PART),
        ({"size": 60}, NOT_RECORDED),
        ({"posted": {**JSON, "text": ""}}, NOT_RECORDED),
        ({"sent": {"Transfer-Encoding": "chunked"}}, NOT_RECORDED),
        ({"sent": {"Content-Type": FORM}}, NOT_RECORDED),
        ({"sent": {"Content-Type": FORM, "Content-Length": "900"}, "size": 900}, NOT_RECORDED),
        ({"posted": {"mimeType": FORM}}, NOT_RECORDED),
        ({"posted": {"mimeType": "image/png", "encoding": "base64", "text": "iVBORw=="}}, "whose body is not text"),
        ({"posted": {"mimeType": "text/plain", "encoding": "base64", "text": "%"}}, "whose body is not text"),
        ({"sent": {"Content-Length": "2"}, "posted": {"mimeType": "text/plain", "text": "é!"}}, IN_PART),
    ],
)
def test_a_body_that_is_not_recorded_leaves_its_request_out_by_name(request_: dict[str, Any], why: str) -> None:
    posted = entry(method="POST", **request_)
    assert listed(PLAIN, posted)[1] == {why: 1}
    assert counts(journey(PLAIN, posted).left_out) == {why: 1}


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        ({}, None),
        ({"sent": {"Content-Length": "0", "Content-Type": "text/plain"}}, None),
        ({"size": 0, "posted": {"mimeType": "text/plain", "text": ""}}, None),
        ({"sent": {"Content-Length": "3"}, "posted": {"mimeType": "text/plain", "text": "é!"}}, "é!"),
        ({"posted": {"mimeType": "text/plain", "encoding": "base64", "text": "w6kh"}}, "é!"),
        (
            {
                "sent": {"Content-Length": "3"},
                "posted": {"mimeType": "text/plain", "text": "Content-Type: text/plain\r\nContent-Length: 3\r\n\r\né!"},
            },
            "é!",
        ),
    ],
)
def test_a_body_that_is_recorded_is_sent_as_it_was(request_: dict[str, Any], body: str | None) -> None:
    posted = entry(method="POST", **request_)
    (request,), left = listed(posted)
    (step,) = journey(posted).steps
    assert (request.get("body"), step.get("body"), left) == (body, body, {})


def test_an_upload_is_a_step_too() -> None:
    text = '--x\r\nContent-Disposition: form-data; name="note"\r\n\r\nit is {seq}\r\n--x--\r\n'
    upload = entry(method="POST", posted={"mimeType": FORM, "text": text}, sent={"Content-Length": str(len(text))})
    (step,) = journey(upload).steps
    assert step["multipart"] == [{"name": "note", "text": "it is {{seq}}"}]
    assert listed(upload)[0][0]["multipart"] == step["multipart"]
    cut = entry(method="POST", posted={"mimeType": FORM, "text": text}, sent={"Content-Length": "4000"})
    assert listed(PLAIN, cut)[1] == counts(journey(PLAIN, cut).left_out) == {IN_PART: 1}


def test_a_token_in_base64_is_taken_and_an_answer_that_lacks_is_named() -> None:
    answer = base64.b64encode(b'{"ticket": "t-123456"}').decode()
    content = {"size": 22, "mimeType": "application/json", "encoding": "base64", "text": answer}
    made = journey(entry(content=content), entry("http://h.example/b?ticket=t-123456"))
    assert made.steps[0]["take"] == {"ticket": {"json": "/ticket"}}
    assert made.steps[1]["get"] == "/b?ticket={take:ticket}"
    assert counts(made.left_out, "value") == {}
    made = journey(entry(content={"size": 22, "mimeType": "application/json"}), entry("http://h.example/b?t=t-123456"))
    assert counts(made.left_out, "value") == {
        "the recording lacks the content of an answer: values of it stay as they are": 1
    }


def test_values_that_another_host_issued_are_named() -> None:
    made = journey(
        entry("http://h.example/login", status=302, got={"Location": "https://id.example/auth?state=s-987654"}),
        entry("https://id.example/auth?state=s-987654", status=302, got={"Location": "http://h.example/cb?code=c-123456&state=s-987654"}),
        entry("http://h.example/cb?code=c-123456&state=s-987654"),
    )  # fmt: skip
    assert made.steps[-1]["get"] == "/cb?code=c-123456&state=s-987654"
    assert counts(made.left_out) == {"to https://id.example": 1}
    named = [(note.why.partition(",")[0].partition(" in a part")[0], note.example) for note in made.left_out[1:]]
    assert named == [
        ("`code` was issued by https://id.example", "step 2"),
        ("`state` was issued by http://h.example", "step 2"),
    ]


def test_an_entry_with_a_date_in_words_is_counted_in_a_replay() -> None:
    entries = [entry(), entry("http://h.example/b", over={"startedDateTime": "yesterday"})]
    assert listed(*entries)[1] == {}
    assert listed(*entries, times=True)[1] == {"without a time that can be read": 1}
    with pytest.raises(UsageError, match="does not say when"):
        listed(entries[1], times=True)
    assert [step["get"] for step in journey(*entries, PLAIN).steps] == ["/a", "/b", "/a"]


TEXTS = st.sampled_from(["", "a=1", '{"a": 1}', "é", "\ufffd", "iVBORw==", f"--x\r\nContent-Disposition: {'x' * 9}"])
TYPES = st.sampled_from(["", "application/json", "application/x-www-form-urlencoded", FORM, "image/png"])
POSTED = st.none() | st.fixed_dictionaries(
    {},
    optional={
        "mimeType": TYPES,
        "text": TEXTS | st.none(),
        "encoding": st.just("base64"),
        "params": st.lists(st.fixed_dictionaries({"name": st.just("n"), "value": TEXTS})),
    },
)
HEADERS = st.dictionaries(st.sampled_from(["Content-Length", "Content-Type", "Host", "Accept"]), TYPES | st.just("3"))
ENTRIES = st.one_of(
    st.builds(
        lambda url, method, posted, size, sent, status, over: entry(
            url, method, posted=posted, size=size, sent=sent, status=status, over=over
        ),
        st.sampled_from(
            ["http://h.example/a", "https://h.example/?token=1", "ws://h.example/", "data:,x", "http://[/", "http:///"]
        ),
        st.sampled_from(["GET", "POST", "post", "BAD METHOD", ""]),
        POSTED,
        st.sampled_from([-1, 0, 3, None]),
        HEADERS,
        st.sampled_from([200, 302, 304, 404, 101, 0, None, True]),
        st.sampled_from(
            [{}, {"response": None}, {"startedDateTime": "x"}, {"startedDateTime": None}, {"_fromCache": "disk"}]
        ),
    ),
    st.sampled_from([None, 1, "x", {}, [], {"request": None}, {"request": {}, "response": []}]),
)  # fmt: skip


@given(entries=st.lists(ENTRIES, max_size=8), times=st.booleans())
def test_what_is_read_and_what_is_left_out_add_up(entries: list[Any], times: bool) -> None:
    text = json.dumps({"log": {"entries": [PLAIN, *entries]}})
    made = read_requests(source(text), named("har"), Wanted(times=times))
    assert made.total == len(entries) + 1
    if times:
        assert len(made.arrivals) == sum(made.counts)
    walked = read_journey(source(text), whole=True)
    left = counts(walked.left_out)
    assert len(walked.once) + len(walked.steps) + sum(left.values()) == len(entries) + 1
    # What has no body, no answer or no URL is left out of both, for the same reason.
    shared = {"without", "whose", "of", "answered", "that"}
    of_both = {why: count for why, count in left.items() if why.split()[0] in shared and "cannot be sent" not in why}
    listed_too = read_requests(source(text), named("har"), Wanted()).left_out
    assert of_both.items() <= counts(listed_too).items()


def test_a_file_of_an_upload_is_named_for_a_journey(tmp_path: Path) -> None:
    (tmp_path / "cat.png").write_bytes(b"\x89PNG\0")
    posted = {"mimeType": FORM, "params": [{"name": "photo", "fileName": "cat.png", "contentType": "image/png"}]}
    text = json.dumps({"log": {"entries": [entry(method="POST", posted=posted)]}})
    made = read_journey(source(text, tmp_path))
    assert made.files == ("cat.png",)
    assert made.steps[0]["multipart"] == [{"name": "photo", "file": "cat.png", "type": "image/png"}]
