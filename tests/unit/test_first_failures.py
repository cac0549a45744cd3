"""Why requests failed, as the engine says it: read, merged over parts, and as a line of text."""

from base64 import b64encode

import pytest

from redline.model import Recording
from redline.model.failures import FirstFailure, earliest
from redline.plugins.hosts.parts import merged
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

ANSWER = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"
ANSWER_TEXT = r"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5 \r\nhello\r\n0\r\n\r\n"


def failure(outcome: str = "malformed", reason: str = "it was wrong", time_ns: int = 1, **more: object) -> FirstFailure:
    return FirstFailure.model_validate({"outcome": outcome, "reason": reason, "time_ns": time_ns, **more})


def answered(answer: bytes, at: int | None, begins: int = 0) -> FirstFailure:
    return failure(bytes_base64=b64encode(answer).decode(), at=at, begins=begins)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (failure("timeout", "no answer within 5 s"), "timeout: no answer within 5 s"),
        (failure("unexpected_status", "status 503"), "unexpected status: status 503"),
        (failure(at=9), "malformed: it was wrong, at byte 9"),
        (answered(b"SSH-2.0\r\n", 0), r'malformed: it was wrong, at byte 0 of "SSH-2.0\r\n"'),
        (answered(b"<h1>\t\xff\x1b[2J", None), r'malformed: it was wrong: "<h1>\t\xff\u001b[2J"'),
        (
            answered(ANSWER, 48),
            f'malformed: it was wrong, at byte 48 of "{ANSWER_TEXT}"',
        ),
        (answered(ANSWER, 49), f'malformed: it was wrong, at byte 49 of "{ANSWER_TEXT}"'),
        (answered(b"y" * 128, 1_300, 1_236), f'malformed: it was wrong, at byte 1,300 of "…{"y" * 64}…"'),
    ],
)
def test_its_text_has_reason_place_and_bytes(given: FirstFailure, text: str) -> None:
    assert given.text == text
    assert "\n" not in given.text


def test_the_earliest_of_each_outcome_is_kept_in_the_order_of_outcomes() -> None:
    given = [failure("timeout", "b", 9), failure("timeout", "a", 3), failure("tls", "c", 5), failure("reset", "d", 4)]
    assert [each.reason for each in earliest(given)] == ["c", "d", "a"]


def test_hosts_give_the_earliest_failure_of_all() -> None:
    traffic = simulated_recording(simulated_cell(), GOOD).traffic
    assert traffic is not None
    first, second = (traffic.model_copy(update={"failures": (failure(time_ns=ns),)}) for ns in (7, 5))
    assert merged([first, second], 100_000_000).failures == second.failures
    assert merged([first], 100_000_000).failures == first.failures


def test_a_recording_without_failures_has_no_key_for_them() -> None:
    recording = simulated_recording(simulated_cell(), GOOD)
    assert recording.traffic is not None
    assert '"failures"' not in recording.model_dump_json()
    traffic = recording.traffic.model_copy(update={"failures": (answered(ANSWER, 48, 3),)})
    failing = recording.model_copy(update={"traffic": traffic})
    assert '"from":3' in failing.model_dump_json()
    assert Recording.model_validate_json(failing.model_dump_json()) == failing
