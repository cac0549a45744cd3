"""Traffic that has lost or invented requests is not accepted, wherever it comes from."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redline.driving.protocol import Transcript
from redline.errors import DriveError, StoreError
from redline.model import Counts, Histogram, Outcomes, Traffic
from redline.model.traffic import merged_requests
from redline.storage.runs import RunStore
from tests.fakes.recordings import simulated_run

RUN = simulated_run(trials=1)
TRAFFIC = RUN.recordings[0].traffic
assert TRAFFIC is not None
DOCUMENT = json.loads(TRAFFIC.model_dump_json())
DUE = DOCUMENT["counts"]["due"]


def wrong() -> dict[str, dict[str, Any]]:
    """Traffic JSON by what is wrong with it."""
    due, lost, short = (json.loads(json.dumps(DOCUMENT)) for _ in range(3))
    due["counts"]["due"] += 1
    lost["counts"]["outcomes"]["ok"] -= 1
    short["response"] = Histogram.of([1e6] * (DUE - 3)).encode()
    return {"due": due, "lost": lost, "short": short}


@pytest.mark.parametrize("which", sorted(wrong()))
def test_due_outcomes_and_responses_are_of_one_number(which: str) -> None:
    with pytest.raises(ValidationError, match="that fell due") as caught:
        Traffic.model_validate(wrong()[which])
    assert str(DUE) in str(caught.value)


def test_a_histogram_that_cannot_be_decoded_is_a_validation_error() -> None:
    encoded = bytearray(base64.b64decode(DOCUMENT["response"]))
    encoded[len(encoded) // 2] ^= 0xFF
    with pytest.raises(ValidationError):
        Traffic.model_validate({**DOCUMENT, "response": base64.b64encode(encoded).decode()})


def by_request(*ok: int) -> dict[str, Any]:
    """Traffic JSON of a mix, with so many right answers to each of its requests."""
    times = [Histogram.of([1e6] * of_one).encode() for of_one in ok]
    requests = [
        {"completed": of_one, "status": {"2xx": of_one}, "outcomes": {"ok": of_one}, "response": encoded}
        for of_one, encoded in zip(ok, times, strict=True)
    ]
    due = sum(ok)
    counts = {"due": due, "completed": due, "outcomes": {"ok": due}}
    return {**DOCUMENT, "counts": counts, "response": Histogram.of([1e6] * due).encode(), "requests": requests}


def test_what_was_counted_by_request_adds_up() -> None:
    traffic = Traffic.model_validate(by_request(30, 10))
    assert [request.outcomes.total for request in traffic.requests] == [30, 10]
    assert traffic.requests[0].by_status([200]) == {"200": 30}
    lost = by_request(30, 10)
    lost["requests"][1]["outcomes"]["ok"] = 9
    with pytest.raises(ValidationError, match="by request do not add up"):
        Traffic.model_validate(lost)


def counted(warm: int, in_window: int, after: int, end_ms: int = 9) -> Traffic:
    """Traffic whose last request was due at 5 ms: right answers to the warm-up, in the window and after it."""
    due, none, ms = in_window + after, Histogram().encode(), 1_000_000
    shared = {"response": none, "service": none, "lateness": none, "engine_cpu_ns": 3}
    measured = {"due": due, "completed": warm + in_window, "outcomes": {"ok": in_window}, "bytes_received": 10}
    drained = {"completed": after, "late": after, "outcomes": {"ok": after}, "bytes_received": 7}
    totals = {**measured, "late": after, "outcomes": {"ok": due}}
    measure = {"phase": "measure", "index": 0, "start_ns": 0, "end_ns": 5 * ms, "counts": measured}
    drain = {"phase": "drain", "index": 1, "start_ns": 5 * ms, "end_ns": end_ms * ms, "counts": drained}
    silent = {"phase": "drain", "index": 2, "start_ns": end_ms * ms, "end_ns": 900 * ms, "counts": {}}
    intervals = [{**shared, **part} for part in (measure, drain, silent)]
    made = {**DOCUMENT, "counts": totals, "response": Histogram.of([1e6] * due).encode(), "intervals": intervals}
    made |= {"measure_start_ns": 0, "measure_end_ns": 5 * ms, "engine_cpu_ns": 3}
    return Traffic.model_validate(made)


@pytest.mark.parametrize(("warm", "in_window", "after"), [(0, 19, 1), (0, 0, 10), (8, 14, 6)])
def test_a_load_may_be_measured_until_its_last_answer(warm: int, in_window: int, after: int) -> None:
    whole = counted(warm, in_window, after).until_last_answer()
    assert whole.answered == whole.counts.completed == whole.counts.due == in_window + after
    assert (whole.counts.late, whole.counts.bytes_received, whole.engine_cpu_ns) == (0, 17, 6)
    assert whole.seconds == 0.009
    assert whole.rate_per_s == (in_window + after) / 0.009


def test_without_an_answer_after_it_a_measurement_stays_as_it_is() -> None:
    traffic = counted(0, 20, 0)
    assert traffic.until_last_answer() is traffic


def test_parts_that_do_not_all_know_the_requests_have_no_sum() -> None:
    known = Traffic.model_validate(by_request(30, 10)).requests
    assert [request.response.count for request in merged_requests([known, known])] == [60, 20]
    assert merged_requests([known, ()]) == ()


def test_the_driver_reports_it_in_one_line() -> None:
    traffic = wrong()["due"]
    started = {"event": "started", "format": "redline.engine/1"}
    result: dict[str, Any] = {"event": "result"}
    for key in ("engine", "connections", "connect_ns", "epoch_unix_ns"):
        started[key] = traffic.pop(key)
    transcript = Transcript()
    transcript.read(json.dumps(started))
    for interval in traffic.pop("intervals"):
        transcript.read(json.dumps({"event": "interval", **interval}))
    transcript.read(json.dumps({**result, **traffic}))
    with pytest.raises(DriveError, match="that fell due") as caught:
        transcript.traffic()
    message = caught.value.problems[0].message
    assert f"{DUE + 1} requests" in message
    assert "\n" not in message


def test_a_stored_recording_that_breaks_it_is_named(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "run")
    store.create(RUN.manifest)
    recording = RUN.recordings[0]
    store.save(recording, RUN.manifest.plan.cells[recording.cell_id])
    (file,) = (tmp_path / "run/recordings").iterdir()
    document = json.loads(file.read_text())
    document["traffic"]["counts"]["due"] += 1
    file.write_text(json.dumps(document))
    with pytest.raises(StoreError, match="that fell due") as caught:
        store.recordings()
    assert file.name in str(caught.value)


@pytest.mark.parametrize(
    ("counts", "expected", "answers"),
    [
        (Counts(status={"2xx": 90}, outcomes=Outcomes(ok=90)), {200}, {"200": 90}),
        (
            Counts(status={"2xx": 92, "5xx": 8}, outcomes=Outcomes(ok=90, unexpected_status=9, unexpected_body=1)),
            {200},
            {"200": 91, "2xx": 1, "5xx": 8},
        ),
        (Counts(status={"2xx": 90, "4xx": 5}, outcomes=Outcomes(ok=95)), {200, 404}, {"2xx": 90, "4xx": 5}),
        (Counts(status={"5xx": 7}, outcomes=Outcomes(unexpected_status=7)), {200}, {"5xx": 7}),
        (
            Counts(status={"2xx": 9}, grpc_status={"13": 2}, outcomes=Outcomes(ok=7, unexpected_status=2)),
            {200},
            {"2xx": 9},
        ),
        (Counts(status={"2xx": 3}, outcomes=Outcomes(ok=4)), {200}, {"2xx": 3}),
        (Counts(), {200}, {}),
    ],
)
def test_answers_are_known_by_number_where_all_requests_expect_it(
    counts: Counts, expected: set[int], answers: dict[str, int]
) -> None:
    assert counts.by_status(expected) == answers
