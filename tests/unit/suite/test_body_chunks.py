"""Bodies in chunks: how suites ask for them, what the engine is told, and which requests cannot have them."""

import base64
from pathlib import Path

import pytest

from redline.asking.requests import scenarios
from redline.asking.written import Sourced
from redline.errors import UsageError
from redline.model import Body, Request
from redline.suite import Catalogue, load_suite
from tests.fakes import asks
from tests.unit.driving.test_job import job_of

SUITE = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios: [{name: send, post: /, body: hello, chunked: 8KiB}]
loads: {users: {closed: {users: 2}, for: 2s}}
"""


def read(folder: Path, text: str) -> Request:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml", Catalogue()).scenarios[0].requests[-1]


@pytest.mark.parametrize(
    ("written", "chunked"), [("true", True), ("8KiB", 8192), ("100", 100), ("false", False), ("64MiB", 64 * 1024**2)]
)
def test_a_body_is_sent_in_chunks(tmp_path: Path, written: str, chunked: bool | int) -> None:
    body = read(tmp_path, SUITE.replace("8KiB", written)).body
    assert body == Body(text="hello", chunked=chunked)
    assert body is not None
    assert Body.model_validate_json(body.model_dump_json()) == body
    assert ("chunked" in body.model_dump()) is bool(chunked)


@pytest.mark.parametrize("body", ["json: {a: 1}", "form: {a: 1}", "multipart: [{name: a, text: b}]", "body: {size: 9}"])
def test_all_bodies_may_be(tmp_path: Path, body: str) -> None:
    made = read(tmp_path, SUITE.replace("body: hello", body)).body
    assert made is not None
    assert made.chunked == 8192


def test_steps_may_be(tmp_path: Path) -> None:
    steps = "journey: {steps: [{post: /, body: '{seq}', chunked: true}]}"
    made = read(tmp_path, SUITE.replace("post: /, body: hello, chunked: 8KiB", steps)).body
    assert made == Body(text="{seq}", chunked=True)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SUITE.replace("body: hello, ", ""), r"chunked: this request has no body to send in chunks"),
        (SUITE.replace("8KiB", "0"), "chunked: a chunk has at least 1 byte"),
        (SUITE.replace("8KiB", "65MiB"), "chunked: a chunk has at least 1 byte and at most 64 MiB"),
        (SUITE.replace("8KiB", "[1]"), "chunked: this has the wrong type"),
        (SUITE.replace("8KiB", "many"), "chunked: `many` is not a size"),
        (f"{SUITE}driver: loop\n", "driver: POST / has a body in chunks, which only redline-engine sends"),
        (
            SUITE.replace("body: hello, chunked: 8KiB", "body: hello, headers: {Transfer-Encoding: chunked}"),
            "`chunked: true` beside a body sends that in chunks",
        ),
    ],
)
def test_what_cannot_be_sent_in_chunks_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert says in str(refused.value) + refused.value.hint


def test_the_engine_is_told() -> None:
    for body in (Body(text="hello", chunked=4), Body(text="{seq}", chunked=True), Body(text="hello")):
        (told,) = job_of(request=Request(method="POST", body=body))["requests"]
        assert told.get("chunked", False) == body.chunked
    assert base64.b64decode(told["body_base64"]) == b"hello"


def test_the_headers_of_curl_mean_the_same() -> None:
    def asked(body: str | None) -> dict[str, object]:
        headers = ["transfer-encoding:Chunked", "A: b", "expect: 100-continue"]
        flags = asks.load(url="http://127.0.0.1:1/", headers=headers, body=body)
        (made,) = scenarios(flags, Sourced("the URL's path", "/"), str)
        assert isinstance(made, dict)
        return made

    made = asked("hello")
    assert isinstance(made["chunked"], Sourced)
    assert made["chunked"].value is True
    assert isinstance(made["expect_continue"], Sourced)
    assert made["expect_continue"].value == "1s"
    assert isinstance(made["headers"], dict)
    assert [*made["headers"]] == ["A"]
    without = asked(None)
    assert "chunked" not in without
    assert isinstance(without["headers"], dict)
    assert {"transfer-encoding", "expect"} < {*without["headers"]}
