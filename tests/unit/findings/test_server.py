"""Findings about the server and the client's queue: each by its cause, none on a clean trial."""

from dataclasses import replace

import pytest

from redline.findings import judge, judge_cell, judge_probe
from redline.model import (
    HOPS,
    Cell,
    Closed,
    Counts,
    FindingKind,
    Grade,
    HopFacts,
    Leg,
    Load,
    Open,
    Option,
    Recording,
)
from redline.stats import Trial
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import MEASURE_NS, SATURATE, simulated_cell, simulated_recording

Raised = dict[FindingKind, Grade]

CLOSED = simulated_cell(load=SATURATE)


def opened(**fields: object) -> Cell:
    shape = Open.model_validate({"rate_per_s": 5000, "connections": 64, **fields})
    return simulated_cell(load=Load(name="open", shape=shape, duration_ns=MEASURE_NS))


def users(count: int, **fields: object) -> Cell:
    shape = Closed.model_validate({"users": count, **fields})
    return simulated_cell(load=Load(name="closed", shape=shape, duration_ns=MEASURE_NS))


def with_option(name: str, value: str) -> Cell:
    entry = CLOSED.variant.entry.model_copy(update={"options": {name: Option(values=("off", value), default="off")}})
    return CLOSED.model_copy(
        update={"variant": CLOSED.variant.model_copy(update={"entry": entry, "options": {name: value}})}
    )


UNIFORM = opened(arrivals="uniform")


def raised(cell: Cell, behaviour: Behaviour = GOOD, seed: int = 1) -> Raised:
    return {finding.kind: finding.grade for finding in judge(cell, simulated_recording(cell, behaviour, seed=seed))}


@pytest.mark.parametrize(("waited", "grade"), [(0.005, None), (0.03, Grade.NOTE), (0.3, Grade.WARN)])
def test_requests_that_wait_for_a_connection_are_a_queue_in_the_client(waited: float, grade: Grade | None) -> None:
    assert raised(UNIFORM, replace(GOOD, waited=waited)) == ({"client-queueing": grade} if grade else {})
    assert raised(users(64, pace_per_s=100), replace(GOOD, waited=waited)) == {}


@pytest.mark.parametrize(
    ("waited", "reconnects", "kind"),
    [
        (0.5, 0.5, "idle-closed"),
        (0.5, 0.3, "idle-closed"),
        (0.5, 0.2, "client-queueing"),
        (0.5, 0.0, "client-queueing"),
        (0.0, 0.0, None),
    ],
)
def test_connections_that_the_server_closes_while_idle_are_no_queue(
    waited: float, reconnects: float, kind: str | None
) -> None:
    recording = simulated_recording(UNIFORM, replace(GOOD, waited=waited))
    assert recording.traffic is not None
    counts = recording.traffic.counts
    counts = counts.model_copy(update={"reconnects": int(reconnects * counts.due)})
    found = {finding.kind for finding in judge(UNIFORM, with_counts(recording, counts))}
    assert found & {"idle-closed", "client-queueing"} == ({kind} if kind else set())


def test_a_full_pool_is_a_queue_even_where_connections_end() -> None:
    """Two connections of a rate that keeps more than one of them busy: they end because they are used up."""
    few = opened(arrivals="uniform", connections=1)
    recording = simulated_recording(few, replace(GOOD, waited=0.5))
    assert recording.traffic is not None
    traffic = recording.traffic
    busy = traffic.rate_per_s * traffic.response.mean_ns / 1e9
    assert busy > 0.5, "or the test shows nothing"
    counts = traffic.counts.model_copy(update={"reconnects": traffic.counts.due})
    assert "client-queueing" in {finding.kind for finding in judge(few, with_counts(recording, counts))}


def with_counts(recording: Recording, counts: Counts) -> Recording:
    assert recording.traffic is not None
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"counts": counts})})


IDLE = replace(GOOD, server_busy=0.3, engine_busy=0.2)


@pytest.mark.parametrize(
    ("cell", "behaviour", "grade"),
    [
        (CLOSED, IDLE, Grade.WARN),
        (CLOSED, replace(GOOD, server_busy=0.6, engine_busy=0.3), Grade.NOTE),
        (CLOSED, replace(GOOD, server_busy=0.8, engine_busy=0.3), None),
        (CLOSED, replace(GOOD, server_busy=0.3, engine_busy=0.8), None),
        (CLOSED, replace(IDLE, server_run_delay=0.6), None),
        (CLOSED, replace(IDLE, steal=0.6), None),
        (CLOSED, replace(IDLE, others_busy=0.6), None),
        (CLOSED, replace(IDLE, pinned=False), None),
        (CLOSED, replace(IDLE, outcomes={"timeout": 400}), None),
        (users(8), IDLE, None),
        (users(4, depth=8), IDLE, Grade.WARN),
        (users(64, think={"mean_ns": 1_000}), IDLE, None),
        (UNIFORM, IDLE, None),
    ],
)
def test_users_who_wait_for_a_server_that_waits(cell: Cell, behaviour: Behaviour, grade: Grade | None) -> None:
    assert raised(cell, behaviour).get("lock-limited") is grade


@pytest.mark.parametrize(("busy", "grade"), [(0.4, Grade.WARN), (0.6, Grade.NOTE), (0.9, None)])
def test_where_single_cores_are_known_theirs_counts(busy: float, grade: Grade | None) -> None:
    recording = simulated_recording(CLOSED, replace(IDLE, others_busy=0.6))
    ran = recording.find("cpu_ns", "server")
    assert ran is not None
    series = tuple(
        ran.model_copy(
            update={"name": "cores_busy_ns", "subject": side, "values": tuple(one / 0.3 * share for one in ran.values)}
        )
        for side, share in (("server", busy), ("engine", 0.25))
    )
    known = recording.model_copy(update={"series": (*recording.series, *series)})
    found = {one.kind: one.grade for one in judge(CLOSED, known)}
    assert found.get("lock-limited") is grade


@pytest.mark.parametrize(
    ("cell", "behaviour", "said"),
    [
        (CLOSED, GOOD, True),
        (CLOSED, replace(GOOD, server_busy=0.9), False),
        (CLOSED, replace(GOOD, engine_busy=0.97), False),
        (CLOSED, replace(GOOD, pinned=False), False),
        (UNIFORM, GOOD, False),
        (simulated_cell("oracle.null", ceiling=True), GOOD, False),
    ],
)
def test_a_server_that_fills_its_cores_is_reported_once_a_cell(cell: Cell, behaviour: Behaviour, said: bool) -> None:
    trials = [simulated_recording(cell, behaviour, position=i, seed=i) for i in range(5)]
    found = [one for one in judge_cell(cell, [Trial(one) for one in trials], planned=5) if one.kind == "server-limited"]
    assert [(one.grade, one.position) for one in found] == ([(Grade.NOTE, None)] if said else [])


@pytest.mark.parametrize(
    ("cell", "log_bytes", "grade"),
    [
        (CLOSED, 9_000, None),
        (CLOSED, 20_000, None),
        (CLOSED, 100_000, Grade.NOTE),
        (CLOSED, 3_000_000, Grade.WARN),
        (with_option("interceptor", "server-log"), 3_000_000, Grade.NOTE),
        (with_option("access_log", "on"), 3_000_000, Grade.NOTE),
        (with_option("catalog", "big"), 3_000_000, Grade.WARN),
    ],
)
def test_a_server_that_writes_with_the_requests(cell: Cell, log_bytes: int, grade: Grade | None) -> None:
    found = raised(cell, replace(GOOD, log_bytes=log_bytes))
    assert found == ({"debug-logging": grade} if grade else {})


def test_an_older_recording_says_nothing_of_logs_and_processes() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, log_bytes=3_000_000, replaced=1))
    old = recording.model_copy(
        update={"log_bytes": None, "series": tuple(one for one in recording.series if "processes" not in one.name)}
    )
    assert judge(CLOSED, old) == ()
    assert "log_bytes" not in old.model_dump(mode="json")
    assert Recording.model_validate_json(recording.model_dump_json()) == recording


def test_processes_that_are_replaced_are_reported() -> None:
    (found,) = judge(CLOSED, simulated_recording(CLOSED, replace(GOOD, replaced=2)))
    assert (found.kind, found.grade) == ("server-restarted", Grade.WARN)
    assert "2 of the server's processes ended during the load and others took their place" in found.message


def test_processes_of_a_proxy_that_are_replaced_are_reported_too() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, replaced=2))
    assert recording.server is not None
    names = ("processes_started", "processes_ended", "processes_replaced")
    of_the_proxy = [
        series.model_copy(update={"subject": HOPS[0]}) if series.name in names else series
        for series in recording.series
    ]
    server = recording.server.model_copy(update={"hops": (hop(),)})
    (found,) = judge(CLOSED, recording.model_copy(update={"series": tuple(of_the_proxy), "server": server}))
    assert found.kind == "server-restarted"
    assert "2 of the processes of the proxy proxy.front ended during the load" in found.message


def test_a_quota_of_a_proxy_that_runs_out_is_reported_too() -> None:
    recording = simulated_recording(CLOSED)
    assert recording.server is not None
    cpu = recording.find("cpu_ns", "server")
    assert cpu is not None
    quota = [
        cpu.model_copy(
            update={"subject": HOPS[0], "name": name, "values": tuple(value * share for value in cpu.values)}
        )
        for name, share in (("quota_periods", 1.0), ("throttled_periods", 0.5), ("throttled_ns", 0.1))
    ]
    server = recording.server.model_copy(update={"hops": (hop(),)})
    (found,) = judge(CLOSED, recording.model_copy(update={"series": (*recording.series, *quota), "server": server}))
    assert found.kind == "throttled"
    assert found.message.startswith("The proxy proxy.front had used up its CPU quota in 50% of the quota's periods")


def test_helpers_that_live_for_a_request_are_no_restart() -> None:
    assert judge(CLOSED, simulated_recording(CLOSED, replace(GOOD, helpers=500))) == ()


def test_a_recording_that_only_counts_processes_is_judged_by_their_numbers() -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, helpers=3))
    old = tuple(one for one in recording.series if one.name != "processes_replaced")
    (found,) = judge(CLOSED, recording.model_copy(update={"series": old}))
    assert (found.kind, found.message[:2]) == ("server-restarted", "3 ")


def through(*hops: HopFacts) -> list[tuple[FindingKind, Grade, str]]:
    """The findings of a good trial through these proxies."""
    recording = simulated_recording(CLOSED)
    assert recording.server is not None
    server = recording.server.model_copy(update={"hops": hops})
    found = judge(CLOSED, recording.model_copy(update={"server": server}))
    return [(finding.kind, finding.grade, finding.message) for finding in found]


def hop(upstream: Leg = "h2+tls", seen: Leg | None = "h2+tls", certificate: str = "") -> HopFacts:
    server = simulated_recording(CLOSED).server
    assert server is not None
    return HopFacts(name="proxy.front", process=server, upstream=upstream, upstream_seen=seen, certificate=certificate)


def test_a_proxy_that_does_what_its_route_says_is_left_alone() -> None:
    assert through(hop(), hop("h1", "h1")) == []


def test_another_protocol_behind_a_proxy_is_a_warning() -> None:
    message = "The proxy proxy.front did not speak h2+tls to what is behind it, as the route says, but h1+tls."
    assert through(hop(seen="h1+tls")) == [("upstream-protocol", Grade.WARN, message)]


def test_a_probe_of_a_search_warns_of_it_too() -> None:
    recording = simulated_recording(CLOSED)
    assert recording.server is not None
    server = recording.server.model_copy(update={"hops": (hop(seen="h1+tls"),)})
    assert [finding.kind for finding in judge_probe(CLOSED, recording)] == []
    found = judge_probe(CLOSED, recording.model_copy(update={"server": server}))
    assert [finding.kind for finding in found] == ["upstream-protocol"]


def test_a_protocol_that_could_not_be_seen_is_a_note() -> None:
    message = "It could not be seen whether the proxy proxy.front speaks h2+tls to what is behind it."
    assert through(hop(seen=None)) == [("upstream-protocol", Grade.NOTE, message)]


def test_a_certificate_that_a_proxy_should_not_accept_is_a_warning() -> None:
    message = "The proxy proxy.front accepted a certificate that is not valid: certificate has expired."
    assert through(hop(certificate="certificate has expired")) == [("upstream-certificate", Grade.WARN, message)]


def unloaded(share: float, *, busy: float = 0.1) -> list[str]:
    """What is said of a server that used that share of a core in the second after the load, and `busy` under it."""
    recording = simulated_recording(UNIFORM, replace(GOOD, server_busy=busy))
    assert recording.traffic is not None
    began = recording.traffic.window_unix_ns[1] + 10**9
    cpu = recording.find("cpu_ns", "server")
    assert cpu is not None
    later = tuple(range(began, began + 10**9 + 1, 10**8))
    values = tuple(cpu.values[-1] + share * (at - began) for at in later)
    longer = {"times_unix_ns": (*cpu.times_unix_ns, *later), "values": (*cpu.values, *values)}
    series = (cpu.model_copy(update=longer), *(line for line in recording.series if line is not cpu))
    watched = {"series": series, "unloaded_unix_ns": (began, began + 10**9)}
    seen = judge(UNIFORM, recording.model_copy(update=watched))
    return [finding.message for finding in seen if finding.kind == "standing-cost"]


def test_a_server_that_works_without_load_is_told_from_what_requests_add() -> None:
    assert unloaded(0.049) == []
    assert unloaded(0.06) == [
        (
            "Without load, the server used 6% of a core. At this rate that is 12.0 µs of its 20.0 µs of CPU time per "
            "request: a request adds 8.00 µs."
        )
    ]
    assert "20.0 µs of its 20.0 µs" in unloaded(0.3)[0], "requests cost no less than nothing"
    assert unloaded(0.0009, busy=0.001) == [], "that is nothing"
    assert len(unloaded(0.0011, busy=0.001)) == 1
    assert "standing-cost" not in raised(UNIFORM), "nobody looked"


def test_what_a_server_uses_without_load_is_known_where_it_was_sampled() -> None:
    recording = simulated_recording(UNIFORM, GOOD)
    assert recording.traffic is not None
    ended = recording.traffic.window_unix_ns[1] + 10**12
    late = recording.model_copy(update={"unloaded_unix_ns": (ended, ended + 10**9)})
    assert late.unloaded_cores() is None
    assert late.model_copy(update={"series": ()}).unloaded_cores() is None
    assert recording.unloaded_cores() is None
    began = recording.traffic.window_unix_ns[0]
    assert recording.model_copy(update={"unloaded_unix_ns": (began, began)}).unloaded_cores() is None
