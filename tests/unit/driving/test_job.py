"""A drive becomes a job exactly as in the engine's protocol."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from redline.driving.protocol import deadline_ns, job, loggable_job
from redline.model import (
    Body,
    Cell,
    Closed,
    EngineMode,
    Expected,
    Load,
    LoadStage,
    Open,
    Request,
    Scenario,
    Stream,
    Think,
    Timestamp,
    Tls,
    Variant,
)
from redline.model.way import ClientCertificate
from redline.ports import Drive, Endpoint
from tests.fakes.recordings import simulated_cell, simulated_variant

S = 1_000_000_000
USERS = Closed(users=64)
GET = Request()
PROTOCOL = (Path(__file__).parents[3] / "docs" / "reference" / "engine-protocol.md").read_text()
EXAMPLE: dict[str, Any] = json.loads(PROTOCOL.split("```json\n")[1].split("```")[0])


def drive_of(cell: Cell, ca_pem: str | None = None) -> Drive:
    return Drive(
        cell=cell, endpoint=Endpoint("127.0.0.1", 8443, ca_pem), seed=42, cpus=(1,), workers=1, log=Path("unused")
    )


def job_of(load: Closed | Open = USERS, request: Request = GET, *others: Request, **variant: Any) -> dict[str, Any]:
    cell = simulated_cell(load=Load(name="a", shape=load, duration_ns=S)).model_copy(
        update={
            "scenario": Scenario(name="M", request=request, others=others, picks={"ids.txt": ("1", "2")}),
            "variant": Variant(entry=simulated_variant().entry, **variant),
        }
    )
    made = job(drive_of(cell))
    assert json.loads(json.dumps(made)) == made
    return made


def keys_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(keys_of, value.values()))
    return set().union(*map(keys_of, value)) if isinstance(value, list) else set()


def test_every_key_is_one_of_the_protocols() -> None:
    everything = job_of(
        Open(rate_per_s=1, connections=4, connections_at_start=1, depth=2, requests_per_connection=3),
        Request(
            weight=3,
            headers={"A": ("b", "c")},
            body=Body(text="{seq}"),
            expect=Expected(sha256="0" * 64, json_values={"/a": 1}, under_load="hash"),
            timestamp=Timestamp(unit="ms"),
        ),
        http="2",
        tls=Tls(),
    )
    known = keys_of(EXAMPLE) | {"open", "closed", "rate_per_s", "arrivals", "connections", "connections_at_start"}
    assert keys_of(everything) <= known | {"depth", "requests_per_connection"}
    required = {"format", "target", "requests", "load", "warmup_ns", "measure_ns", "drain_ns", "timeout_ns"}
    assert required | {"interval_ns", "deadline_ns", "seed", "workers"} <= set(job_of())


def test_a_plain_job_says_no_more_than_it_must() -> None:
    made = job_of(request=Request(path="/path0", expect=Expected(body="path0")))
    assert made["target"] == {"host": "127.0.0.1", "port": 8443, "http": "1.1"}
    assert made["requests"] == [
        {"weight": 1, "method": "GET", "path": "/path0", "headers": [], "expect": {"status": 200, "body_length": 5}}
    ]
    assert made["load"] == {"closed": {"users": 64, "depth": 1}}
    assert "count" not in made


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (Closed(users=1, depth=16), {"closed": {"users": 1, "depth": 16}}),
        (Closed(users=1, think=Think(mean_ns=5)), {"closed": {"users": 1, "depth": 1, "think": {"fixed_ns": 5}}}),
        (
            Closed(users=1, think=Think(distribution="exponential", mean_ns=5)),
            {"closed": {"users": 1, "depth": 1, "think": {"exponential_ns": 5}}},
        ),
        (Closed(users=1, ramps_up=True), {"closed": {"users": 1, "depth": 1, "ramps_up": True}}),
        (Closed(users=1, pace_per_s=2.5), {"closed": {"users": 1, "depth": 1, "pace_per_s": 2.5}}),
        (
            Closed(users=0, requests_per_connection=9, stages=(LoadStage(to=250_000, over_ns=S),)),
            {
                "closed": {
                    "users": 0,
                    "depth": 1,
                    "requests_per_connection": 9,
                    "stages": [{"to": 250_000, "over_ns": S}],
                }
            },
        ),
        (
            Open(rate_per_s=0, connections=2, stages=(LoadStage(to=2.5, over_ns=0),)),
            {
                "open": {
                    "rate_per_s": 0,
                    "arrivals": "poisson",
                    "connections": 2,
                    "depth": 1,
                    "stages": [{"to": 2.5, "over_ns": 0}],
                }
            },
        ),
        (
            Open(arrivals="replayed", replayed_ns=(0, 1500), connections=2, connections_at_start=1),
            {
                "open": {
                    "arrivals": {"replayed_ns": [0, 1500]},
                    "connections": 2,
                    "connections_at_start": 1,
                    "depth": 1,
                }
            },
        ),
        (
            Open(arrivals="replayed", replayed_ns=(0, 1500), replayed_requests=(2, 0), connections=2),
            {
                "open": {
                    "arrivals": {"replayed": {"due_ns": [0, 1500], "requests": [2, 0]}},
                    "connections": 2,
                    "depth": 1,
                }
            },
        ),
    ],
)
def test_loads(load: Closed | Open, expected: dict[str, Any]) -> None:
    assert job_of(load)["load"] == expected
    users = [stage["to"] for stage in expected.get("closed", {}).get("stages", [])]
    assert all(isinstance(to, int) for to in users)


@pytest.mark.parametrize("requests", [(), (0, 0)])
def test_a_job_is_told_without_secrets_and_due_times(requests: tuple[int, ...]) -> None:
    shape = Open(arrivals="replayed", replayed_ns=(0, 1500), replayed_requests=requests, connections=2)
    wanted = job_of(shape)
    wanted["requests"][0] |= {"headers": [["Authorization", "Bearer abc"]], "body_base64": "c2VjcmV0"}
    wanted["target"]["tls"] = {"key_pem": "a key"}
    wanted["picks"] = {"tokens.txt": ["abc"]}
    shown = loggable_job(wanted)
    assert shown["load"] == {"open": {"arrivals": {"replayed": 2}, "connections": 2, "depth": 1}}
    assert shown["requests"][0]["headers"] == ["Authorization"]
    assert shown["picks"] == {"tokens.txt": 1}
    assert not any(secret in json.dumps(shown) for secret in ("abc", "c2VjcmV0", "a key"))
    assert loggable_job(job_of(USERS))["load"] == job_of(USERS)["load"]


def test_only_text_with_placeholders_goes_as_text() -> None:
    literal = job_of(request=Request(method="POST", body=Body(text='{"a": {"b": 1}}')))["requests"][0]
    assert base64.b64decode(literal["body_base64"]) == b'{"a": {"b": 1}}'
    filled = job_of(request=Request(method="POST", body=Body(text='{"a": {"b": {seq}}}')))["requests"][0]
    assert "body_base64" not in filled
    assert filled["body_text"] == '{{"a": {{"b": {seq}}}}}'
    made = Body(size=256, fill="text", seed=7)
    encoded = job_of(request=Request(method="POST", body=made))["requests"][0]["body_base64"]
    assert base64.b64decode(encoded) == made.content()


def test_the_ids_of_traces_are_those_of_one_load() -> None:
    traced = Request(headers={"traceparent": "{traceparent:1%}"})
    one, other = (job_of(USERS, traced)["traces"]["seed"] for _ in range(2))
    assert one != other
    assert "traces" not in job_of()


def test_picks_and_headers_are_reported() -> None:
    made = job_of(request=Request(path="/{pick:ids.txt}", headers={"A": ("1", "{seq}"), "B": "{x}"}))
    assert made["picks"] == {"ids.txt": ["1", "2"]}
    assert made["requests"][0]["headers"] == [["A", "1"], ["A", "{seq}"], ["B", "{{x}}"]]


@pytest.mark.parametrize(
    ("expect", "document"),
    [
        (Expected(status=204, body="x", json_values={"/a": 1}, under_load="status"), {"status": 204}),
        (Expected(json_values={"/a": [1]}), {"status": 200, "json": [{"pointer": "/a", "equals": [1]}]}),
        (Expected(sha256="0" * 64, under_load="hash"), {"status": 200, "body_sha256": "0" * 64}),
        (Expected(sha256="0" * 64, length=3), {"status": 200, "body_length": 3}),
    ],
)
def test_what_is_checked_under_load(expect: Expected, document: dict[str, Any]) -> None:
    assert job_of(request=Request(expect=expect))["requests"][0]["expect"] == document


def test_a_job_is_shown_without_secrets_and_times() -> None:
    secret = Request(method="POST", headers={"Cookie": "sid=secret"}, body=Body(text="secret"))
    times = Open(arrivals="replayed", replayed_ns=tuple(range(9)), connections=2)
    for load in (times, times.model_copy(update={"replayed_requests": (0,) * 9})):
        made = job_of(load, secret, tls=Tls(ca_pem="secret"))
        shown = loggable_job(made)
        assert "secret" not in json.dumps(shown)
        assert shown["load"]["open"]["arrivals"] == {"replayed": 9}
        assert shown["requests"][0]["headers"] == ["Cookie"]
    assert loggable_job(job_of())["load"] == {"closed": {"users": 64, "depth": 1}}


def test_a_cell_is_the_same_wherever_the_clients_certificate_is_kept() -> None:
    def cell_id(folder: str, sha256: str) -> str:
        cert = ClientCertificate(file=f"{folder}/c.pem", key_file=f"{folder}/c.key", sha256=sha256)
        variant = simulated_variant().over(Tls(cert=cert))
        return simulated_cell().model_copy(update={"variant": variant}).id

    assert cell_id("/a", "1") == cell_id("/b", "1") != cell_id("/a", "2")


def test_how_the_engine_waits_is_passed_on_only_when_given() -> None:
    assert {"backend", "spin"}.isdisjoint(job_of())
    cell = simulated_cell().model_copy(update={"engine": EngineMode(backend="epoll", spin=True)})
    made = job(drive_of(cell))
    assert (made["backend"], made["spin"]) == ("epoll", True)
    assert set(made) <= set(EXAMPLE)
    assert cell.id != simulated_cell().id


def test_timestamps_and_weights() -> None:
    made = job_of(Closed(users=1), Request(weight=3, timestamp=Timestamp(pointer="/now", unit="us")), Request())
    assert [one["weight"] for one in made["requests"]] == [3, 1]
    assert made["requests"][0]["timestamp"] == {"pointer": "/now", "unit": "us"}


def test_tls_trusts_what_the_suite_says_or_else_what_the_catalogue_says() -> None:
    entry = simulated_variant().entry
    for asked, trusted in ((Tls(ca_pem="suite"), "suite"), (Tls(), "catalogue")):
        cell = simulated_cell().model_copy(update={"variant": Variant(entry=entry, tls=asked)})
        assert job(drive_of(cell, "catalogue"))["target"]["tls"]["ca_pem"] == trusted
    assert job_of(tls=Tls(insecure=True, server_name="me", versions=("1.3",), resumption=False))["target"]["tls"] == {
        "ca_pem": None,
        "insecure": True,
        "server_name": "me",
        "versions": ["1.3"],
        "resumption": False,
    }


def test_the_deadline_leaves_time_to_connect() -> None:
    def deadline_s(users: int, timeout_s: int) -> float:
        cell = simulated_cell(load=Load(name="a", shape=Closed(users=users), duration_ns=S))
        return deadline_ns(drive_of(cell.model_copy(update={"timeout_ns": timeout_s * S, "warmup_ns": 0}))) / S

    assert deadline_s(1, 5) == pytest.approx(20 + 1 + 5 + 5, abs=0.01)
    assert deadline_s(250_000, 60) == 60 + 25 + 1 + 60 + 5


@pytest.mark.parametrize(
    ("stream", "more_s"),
    [
        (Stream(events="messages", until=600), 1),
        (Stream(events="messages", until=600, for_ns=90_000_000_000), 90),
        (Stream(events="sse"), 1),
        (Stream(events="sse", for_ns=2_000_000_000), 2),
    ],
)
def test_conversations_that_no_clock_ends_are_waited_for_as_long_as_the_load(stream: Stream, more_s: int) -> None:
    plain, followed = job_of(), job_of(USERS, Request(stream=stream))
    for key in ("drain_ns", "deadline_ns"):
        assert followed[key] - plain[key] == more_s * S
