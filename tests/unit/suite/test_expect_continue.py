"""Bodies that wait for an answer 100: how suites ask for them, what the engine is told, and who cannot wait."""

from pathlib import Path

import pytest

from redline.errors import UsageError
from redline.model import Body, Request
from redline.suite import Catalogue, load_suite
from tests.unit.driving.test_job import job_of

SUITE = """\
servers: [{name: own, url: "http://127.0.0.1:8099"}]
scenarios: [{name: send, post: /, body: hello, expect_continue: 1s}]
loads: {users: {closed: {users: 2}, for: 2s}}
"""


def read(folder: Path, text: str) -> Request:
    (folder / "suite.yaml").write_text(text)
    return load_suite(folder / "suite.yaml", Catalogue()).scenarios[0].requests[-1]


def test_a_body_waits_for_a_time(tmp_path: Path) -> None:
    request = read(tmp_path, SUITE)
    assert request.expect_continue_ns == 1_000_000_000
    assert Request.model_validate_json(request.model_dump_json()) == request
    steps = "journey: {steps: [{post: /, body: '{seq}', expect_continue: 20ms}]}"
    step = read(tmp_path, SUITE.replace("post: /, body: hello, expect_continue: 1s", steps))
    assert step.expect_continue_ns == 20_000_000


def test_the_engine_is_told() -> None:
    made = Request(method="POST", body=Body(text="a"), expect_continue_ns=5)
    assert job_of(request=made)["requests"][0]["expect_continue_ns"] == 5
    assert "expect_continue_ns" not in job_of()["requests"][0]
    assert "expect_continue_ns" not in Request().model_dump()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (SUITE.replace("body: hello, ", ""), "expect_continue: this request has no body to wait with"),
        (SUITE.replace("1s}", "0s}"), "expect_continue: must be at least 1ns"),
        (SUITE.replace("1s}", "2h}"), "expect_continue: must be at most 1h"),
        (SUITE.replace('8099"', '8099", http: 2'), "servers: POST / waits with its body for an answer 100, which is"),
        (SUITE.replace("users: 2}", "users: 2, depth: 4}"), "users.closed.depth: POST / waits with its body, and"),
        (
            SUITE.replace("closed: {users: 2", "open: {rate: 9, depth: 4"),
            "users.open.depth: POST / waits with its body, and",
        ),
        (f"{SUITE}driver: loop\n", "driver: POST / waits with its body, which only redline-engine does"),
        (
            SUITE.replace("expect_continue: 1s", "headers: {expect: 100-continue}"),
            "`expect_continue: 1s` beside a body asks by `Expect: 100-continue`",
        ),
    ],
)
def test_what_cannot_wait_is_refused_by_name(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert says in str(refused.value)
