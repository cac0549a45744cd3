"""Why requests failed, as the engine reports it: read, merged over parts, and as a line of text."""

from base64 import b64encode

import pytest

from redline.extras.hosts.parts import merged
from redline.limits.search_state import SearchState
from redline.model import Recording
from redline.model.failures import FirstFailure, earliest, labelled
from redline.model.search import ProbeRecording
from redline.render import RENDERERS
from redline.report.answer import limit_answer
from redline.report.limit_probes import failures_lines, rate_text
from tests.fakes import limits
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording
from tests.fakes.searched import plan_of

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


def test_it_names_its_request_where_there_are_several() -> None:
    given = [failure("timeout", "no answer", request=1), failure("connect", "refused"), failure(request=7)]
    named = labelled(given, ("items", "GET /item/{rand:1..9}"))
    assert [each.text for each in named] == [
        "timeout of GET /item/{rand:1..9}: no answer",
        "connect: refused",
        "malformed: it was wrong",
    ]
    assert labelled(given, ()) == (*given,)


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


def test_a_limit_says_from_which_rate_on_requests_failed_and_why() -> None:
    report = limits.by_hand()
    cell = report.cells[0]
    low, high = failure("timeout", "no answer within 5 s"), failure("reset", "Connection reset by peer")
    by_rate = sorted(cell.probes, key=lambda each: each.rate_per_s)
    failing = {by_rate[-1].rate_per_s: (high, low), by_rate[-2].rate_per_s: (low,)}
    probes = [each.model_copy(update={"failures": failing.get(each.rate_per_s, ())}) for each in cell.probes]
    lines = list(failures_lines(probes))
    assert lines == [
        f"from {rate_text(by_rate[-2].rate_per_s)} on, {low.text}",
        f"from {rate_text(by_rate[-1].rate_per_s)} on, {high.text}",
    ]
    changed = report.model_copy(update={"cells": (cell.model_copy(update={"probes": tuple(probes)}),)})
    for form in ("html", "md", "json"):
        said = RENDERERS[form](changed).decode()
        assert "no answer within 5 s" in said, form


@pytest.mark.parametrize(("errors", "passed_per_s", "named"), [(500, None, True), (1, None, False), (500, 10.0, False)])
def test_the_answer_names_the_failures_of_a_server_that_meets_nothing(
    errors: int, passed_per_s: float | None, named: bool
) -> None:
    report = limits.by_hand()
    cell = report.cells[0]
    changed = {"errors": errors, "offered_per_s": 100.0, "seconds": 5.0, "failures": (failure("malformed"),)}
    probe = cell.probes[0].model_copy(update=changed)
    limit = cell.limits[0].model_copy(update={"passed_per_s": passed_per_s, "failed_per_s": 100.0})
    cell = cell.model_copy(update={"probes": (probe,), "limits": (limit,)})
    (section,) = limit_answer(report.model_copy(update={"cells": (cell,)}))
    assert ("requests failed, first malformed: it was wrong" in str(section)) == named


@pytest.mark.parametrize(("cut", "outcomes"), [(True, ["timeout"]), (False, ["timeout", "unsent"])])
def test_what_was_left_over_when_we_cut_a_probe_is_no_failure(cut: bool, outcomes: list[str]) -> None:
    recording = simulated_recording(simulated_cell(load=STEADY))
    assert recording.traffic is not None
    traffic = recording.traffic.model_copy(update={"failures": (failure("timeout"), failure("unsent"))})
    cell = simulated_cell(load=STEADY)
    made = ProbeRecording(
        phase="search",
        load=cell.load,
        workers=1,
        retries_left=0,
        cut=cut,
        recording=recording.model_copy(update={"traffic": traffic}),
    )
    state = SearchState(plan_of(cell), cell)
    state.add(made)
    assert [each.outcome for each in state.probes[0].failures] == outcomes
