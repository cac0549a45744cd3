"""gRPC calls: their status is reported beside the HTTP status, and is read or the call is refused by name."""

import pytest

from redline.driving.protocol import job
from redline.errors import DriveError
from redline.findings import judge
from redline.model import Cell, Counts, Grade, Outcomes, Request, Scenario
from redline.ports import Drive, Endpoint, LoadOptions
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import simulated_cell, simulated_recording

ENDPOINT = Endpoint("127.0.0.1", 1)
FAILED = Counts(due=3, status={"2xx": 3}, grpc_status={"13": 2, "4": 1}, outcomes=Outcomes(unexpected_status=3))


def calls(content_type: str, http: str) -> Cell:
    cell = simulated_cell()
    request = Request(method="POST", path="/hello.Greeter/SayHello", headers={"Content-Type": content_type})
    update = {
        "scenario": Scenario(name="call", request=request),
        "variant": cell.variant.model_copy(update={"http": http}),
    }
    return cell.model_copy(update=update)


def written(cell: Cell) -> dict[str, object]:
    return job(Drive.of(LoadOptions(log=None), cell, ENDPOINT, seed=1, cpus=()))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("content_type", "http", "why"),
    [
        ("application/grpc", "1.1", "which HTTP/1.1 does not carry"),
        ("application/grpc+proto", "1.1", "which HTTP/1.1 does not carry"),
        ("application/grpc-web+proto", "2", "gRPC-Web"),
        ("application/grpc-web", "1.1", "gRPC-Web"),
    ],
)
def test_a_call_whose_status_cannot_be_read_is_refused_before_the_load(content_type: str, http: str, why: str) -> None:
    with pytest.raises(DriveError, match=why) as refused:
        written(calls(content_type, http))
    assert refused.value.hint


@pytest.mark.parametrize(("content_type", "http"), [("application/grpc", "2"), ("application/json", "1.1")])
def test_other_calls_are_made(content_type: str, http: str) -> None:
    assert written(calls(content_type, http))["format"] == "redline.job/1"


def test_failed_calls_are_wrong_answers_and_are_named_by_their_status() -> None:
    recording = simulated_recording(simulated_cell(), GOOD)
    assert recording.traffic is not None
    counts = recording.traffic.counts
    update = {
        "grpc_status": {"13": counts.due, "4": 1},
        "outcomes": Outcomes(unexpected_status=counts.due),
        "completed": 0,
    }
    traffic = recording.traffic.model_copy(update={"counts": counts.model_copy(update=update)})
    found = judge(simulated_cell(), recording.model_copy(update={"traffic": traffic}))
    (wrong,) = [each for each in found if each.kind == "wrong-answers"]
    assert wrong.grade is Grade.INVALID
    assert "grpc-status 4 and 13" in wrong.message


def test_statuses_of_calls_add_up() -> None:
    whole = Counts.merged([FAILED, Counts(), FAILED])
    assert whole.grpc_status == {"13": 4, "4": 2}
    assert "grpc" not in Counts().model_dump_json()
