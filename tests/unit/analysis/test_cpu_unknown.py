"""CPU time that is not proved to be a server's is unknown; a comparison says why and uses what is known."""

import pytest

from redline.model import CpuOwner, DuetRecording, Metric, ServerFacts, Verdict
from tests.fakes.compared import ComparedStarts, compared_starts
from tests.fakes.duets import simulated_duet


def compared(recordings: list[DuetRecording], *, closed: bool = True) -> ComparedStarts:
    return compared_starts(recordings, closed=closed, detects=True)


def using(recording: DuetRecording, target: int, cpu_ns: int | None) -> DuetRecording:
    """The same start, in which a server used this much in each of its slices."""
    assert recording.traffic is not None
    blocks = [
        block.model_copy(
            update={
                "slices": tuple(
                    each.model_copy(
                        update={"cpu_ns": tuple(cpu_ns if at == target else ns for at, ns in enumerate(each.cpu_ns))}
                    )
                    for each in block.slices
                )
            }
        )
        for block in recording.traffic.blocks
    ]
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"blocks": tuple(blocks)})})


@pytest.mark.parametrize(
    ("cpu_ns", "why"), [(0, "used none while it answered"), (None, "came or went while it was loaded")]
)
@pytest.mark.parametrize(("target", "name"), [(0, "A"), (1, "B"), (2, "the second A")])
def test_no_cpu_time_beside_answers_is_unknown(cpu_ns: int | None, why: str, target: int, name: str) -> None:
    """Warm servers are then known by their rates, so the rates are compared."""
    made = [simulated_duet(start, (1.0, 1.2), warmup=30) for start in range(5)]
    report = compared([using(each, target, cpu_ns) for each in made])
    assert (report.metric, report.verdict, report.unsettled) == (Metric.THROUGHPUT, Verdict.SLOWER, "")
    assert report.in_metric(Metric.CPU_PER_REQUEST).ratio is None
    (said,) = report.said("cpu-unknown")
    assert said.startswith(f"The CPU time of {name} is not known: ")
    assert why in said


def test_one_start_of_many_without_cpu_time_is_left_out_and_counted() -> None:
    made = [simulated_duet(start, (1.0, 1.2), warmup=30) for start in range(5)]
    report = compared([using(made[0], 1, 0), *made[1:]])
    assert report.metric is Metric.CPU_PER_REQUEST
    (said,) = report.said("cpu-unknown")
    assert said.startswith("In 1 of 5 starts, the CPU time of B is not known: ")


def test_nobody_knows_whether_servers_are_warm_that_are_asked_at_a_rate_and_have_no_cpu_time() -> None:
    made = [using(simulated_duet(start, warmup=30), 1, None) for start in range(5)]
    report = compared(made, closed=False)
    assert report.metric is Metric.P50
    assert "Whether the servers were warm is not known" in "".join(each.message for each in report.findings)


def test_slices_of_which_a_few_are_unknown_are_left_out() -> None:
    recording = simulated_duet(0, (1.0, 1.2), warmup=30)
    assert recording.traffic is not None
    first, *rest = recording.traffic.blocks
    gaps = recording.traffic.model_copy(update={"blocks": (first,)}).without_cpu(frozenset({1})).blocks
    traffic = recording.traffic.model_copy(update={"blocks": (*gaps, *rest)})
    report = compared([recording.model_copy(update={"traffic": traffic})])
    assert report.metric is Metric.CPU_PER_REQUEST
    assert report.ratio.value == pytest.approx(1.2, rel=0.03)


@pytest.mark.parametrize(("closed", "metric"), [(True, Metric.THROUGHPUT), (False, Metric.P50)])
def test_the_reason_is_said_once_and_another_metric_compared(closed: bool, metric: Metric) -> None:
    owner, known = CpuOwner(unknown="127.0.0.1:80 is answered by socat (7), which passes on what it gets"), CpuOwner()
    recordings = []
    for start in range(5):
        made = simulated_duet(start)
        assert made.traffic is not None
        traffic = made.traffic.without_cpu(frozenset({1}))
        recordings.append(made.model_copy(update={"traffic": traffic, "owners": (known, owner, known)}))
    report = compared(recordings, closed=closed)
    assert report.metric is metric
    said = report.said("cpu-unknown")
    assert said == [f"The CPU time of B is not known: {owner.unknown}."]
    assert DuetRecording.model_validate_json(recordings[0].model_dump_json()) == recordings[0]


def test_who_is_asked_behind_a_server_is_named() -> None:
    owner, known = CpuOwner(processes=("nginx (7)",), behind="127.0.0.1:9000"), CpuOwner()
    recordings = [simulated_duet(start).model_copy(update={"owners": (known, owner, known)}) for start in range(5)]
    report = compared(recordings)
    assert report.metric is Metric.CPU_PER_REQUEST
    (said,) = report.said("cpu-behind")
    assert "The CPU time of B is that of nginx (7) alone: what was used at 127.0.0.1:9000" in said


def test_services_that_ran_beside_a_server_are_named() -> None:
    facts = ServerFacts(pid=1, command=(), port=1, build="", ready_ns=0)
    servers = (facts, facts.model_copy(update={"beside": ("db",)}), facts)
    recordings = [simulated_duet(start).model_copy(update={"servers": servers}) for start in range(5)]
    assert compared(recordings).said("cpu-beside") == [
        "CPU time and memory of B are its own alone: db runs beside it, and is not counted."
    ]


KEPT = "db of B started once for 5 starts of it: how starts of what it needs would differ is not part of the intervals."
SLOW = (
    "It took 1 min 2 s on average until the servers of a start were ready, and 10.0 s to warm them up, to measure and "
    "to stop them."
)


def beside_itself(start: int, *, kept: bool) -> tuple[ServerFacts, ...]:
    """A baseline that needs nothing, and a server with a database, in each start but the first the same one."""
    facts = ServerFacts(pid=1, command=(), port=1, build="", ready_ns=0)
    of_b = {"beside": ("db",), "kept": ("db",) if kept and start else ()}
    return facts, facts.model_copy(update=of_b), facts


@pytest.mark.parametrize("kept", [True, False])
def test_services_that_ran_through_all_starts_are_not_in_the_interval(kept: bool) -> None:
    recordings = [
        simulated_duet(start).model_copy(update={"servers": beside_itself(start, kept=kept)}) for start in range(5)
    ]
    assert compared(recordings).said("kept-services") == kept * [KEPT]


@pytest.mark.parametrize(("launch_s", "kept"), [(62, False), (62, True), (1, False)])
def test_starts_that_take_longer_than_what_is_measured_are_said(launch_s: int, kept: bool) -> None:
    recordings = [
        simulated_duet(start).model_copy(
            update={
                "servers": beside_itself(start, kept=kept),
                "launch_ns": launch_s * 10**9,
                "took_ns": (launch_s + 10) * 10**9,
            }
        )
        for start in range(5)
    ]
    said = [each for each in compared(recordings).findings if each.kind == "slow-starts"]
    if launch_s == 1:
        assert not said
        return
    assert [each.message for each in said] == [SLOW]
    assert ("`fresh: service`" in said[0].advice) is not kept
