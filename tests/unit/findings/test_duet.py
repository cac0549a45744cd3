"""What is doubtful about a duet: each finding on both sides of its limits, and what it says."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from redline.findings.duet import SeenDuet, much_stolen
from redline.findings.served import Growths
from redline.findings.trial import judge_duet
from redline.model import (
    ClockReading,
    Counts,
    CpuOwner,
    DuetBlock,
    DuetRecording,
    DuetSlice,
    DuetTraffic,
    Grade,
    Histogram,
    HostFacts,
    OneWay,
    Outcomes,
    ServerFacts,
    Signed,
    TargetTraffic,
)
from redline.model.failures import FirstFailure
from redline.quantities import duration
from redline.stats.duets import LogRatio, StartRatio
from tests.fakes.duets import ENGINE

MS = 1_000_000
FACTS = ServerFacts(pid=1, command=("a",), port=1, cpus=(0,), build="", ready_ns=1)
NAMES = ("A", "B")


def slice_of(target: int, **changed: Any) -> DuetSlice:
    own = {at: (90 * MS if at == target else 0) for at in range(3)}
    facts: dict[str, Any] = {
        "target": target,
        "start_ns": 0,
        "end_ns": 100 * MS,
        "measured_ns": 100 * MS,
        "measured": 100,
        "completed": 100,
        "failed": 0,
        "bytes_received": 10_000,
        "cpu_ns": tuple(own.values()),
        "engine_cpu_ns": 10 * MS,
    }
    return DuetSlice.model_validate({**facts, **changed})


def target_of(**changed: Any) -> TargetTraffic:
    times = Histogram.of([MS] * 100)
    facts: dict[str, Any] = {
        "counts": Counts(due=1000, completed=1000, outcomes=Outcomes(ok=1000)),
        "response": times,
        "service": times,
        "lateness": Histogram.of([1] * 100),
        "engine_cpu_ns": 1,
    }
    return TargetTraffic.model_validate({**facts, **changed})


TARGETS = (target_of(),) * 3


def traffic_of(slices: Sequence[DuetSlice] | None = None, **changed: Any) -> DuetTraffic:
    if slices is None:
        slices = [slice_of(target) for target in (0, 1, 2, 2, 1, 0)]
    facts: dict[str, Any] = {
        "engine": ENGINE,
        "connections": 3,
        "connect_ns": 1,
        "epoch_unix_ns": 0,
        "ended": "complete",
        "blocks": (DuetBlock(index=0, phase="measure", slices=tuple(slices)),),
        "targets": TARGETS,
    }
    return DuetTraffic.model_validate({**facts, **changed})


def start(**changed: Any) -> DuetRecording:
    facts: dict[str, Any] = {
        "cell_ids": ("a", "b", "a"),
        "round": 0,
        "position": 0,
        "seed": 0,
        "started_unix_ns": 0,
        "took_ns": 10**9,
        "servers": (FACTS, FACTS, FACTS),
        "traffic": traffic_of(),
    }
    return DuetRecording.model_validate({**facts, **changed})


def ratio(value: float, sd: float = 0.001) -> LogRatio:
    return LogRatio(value, 5, sd, sd)


def seen(*starts: DuetRecording, **changed: Any) -> SeenDuet:
    made = starts or (start(),) * 5
    facts: dict[str, Any] = {
        "starts": made,
        "names": NAMES,
        "target": 1,
        "failed": (),
        "saturates": True,
        "cores": 1,
        "keeps": True,
        "insecure": False,
        "contrast": np.array([-0.5, 1.0, -0.5]),
        "control": ratio(0.0),
        "ratios": (ratio(0.1), ratio(-0.1)),
        "cpu": [StartRatio(0.0, None)] * len(made),
        "unsettled": "",
        "left_out": 0,
        "to_come": 0.0,
        "growths": (Growths(None, None), Growths(None, None)),
        "served": (0.0, 0.0),
        "writes": (),
        "inherited": None,
    }
    return SeenDuet(**{**facts, **changed})


def said(duet: SeenDuet) -> dict[str, list[str]]:
    """The messages by kind."""
    messages: dict[str, list[str]] = {}
    for finding in judge_duet(duet):
        messages.setdefault(finding.kind, []).append(finding.message)
    return messages


def grades(duet: SeenDuet) -> dict[str, Grade]:
    return {finding.kind: finding.grade for finding in judge_duet(duet)}


def advice(duet: SeenDuet, kind: str) -> str:
    return next(finding.advice for finding in judge_duet(duet) if finding.kind == kind)


def with_slices(*slices: DuetSlice, number: int = 5, **changed: Any) -> SeenDuet:
    return seen(*[start(traffic=traffic_of(slices))] * number, **changed)


def with_targets(*targets: TargetTraffic, **changed: Any) -> SeenDuet:
    return seen(*[start(traffic=traffic_of(targets=targets))] * 5, **changed)


def test_a_clean_duet_has_no_findings() -> None:
    duet = seen()
    assert said(duet) == {}
    assert duet.cell_id == "b"
    assert duet.servers == 3
    assert list(duet.sides) == [("A", (0, 2)), ("B", (1,))]
    assert len(duet.slices) == 30


@pytest.mark.parametrize(
    ("starts", "left_out", "grade", "text"),
    [
        (1, 0, Grade.WARN, "There was one start: how"),
        (2, 0, Grade.NOTE, "There were only 2 starts"),
        (4, 0, Grade.NOTE, "There were only 4 starts"),
        (5, 0, None, ""),
        (5, 1, Grade.NOTE, "There were only 4 starts"),
        (5, 4, Grade.WARN, "There was one start"),
        (6, 1, None, ""),
    ],
)
def test_starts_missing_to_five_are_reported(starts: int, left_out: int, grade: Grade | None, text: str) -> None:
    duet = seen(*[start()] * starts, left_out=left_out)
    assert grades(duet).get("few-starts") == grade
    assert [message[: len(text)] for message in said(duet).get("few-starts", [])] == ([text] if grade else [])


def test_servers_that_ran_already_are_not_blamed_on_few_starts() -> None:
    first = seen(*[start(servers=(None, FACTS, None))] * 3)
    assert said(first)["few-starts"][0].startswith("A was running already, with cores, settings and an age of its own")
    both = seen(*[start(servers=(None, None, None))] * 9)
    assert grades(both)["few-starts"] is Grade.WARN
    assert said(both)["few-starts"][0].startswith("A and B were running already, with cores, settings and an age of th")
    assert advice(both, "few-starts") == "Let Redline start both, if you can."
    assert said(seen(start(servers=(None, FACTS, None))))["few-starts"][0].startswith("There was one start")
    assert "running" not in said(seen(*[start(servers=())] * 3))["few-starts"][0]


def test_failed_starts_are_counted_with_the_first_reason() -> None:
    duet = seen(failed=("B ended.", "A ended."))
    assert grades(duet)["failed-starts"] is Grade.WARN
    assert said(duet)["failed-starts"] == ["2 of 7 starts failed: B ended."]
    (observed,) = (each for each in judge_duet(duet) if each.kind == "failed-starts")
    assert observed.cell_id == "b"


@pytest.mark.parametrize(
    ("control", "unsettled", "differs"),
    [
        (ratio(0.1), "", True),
        (ratio(-0.1), "", True),
        (ratio(0.0), "", False),
        (ratio(0.1), "not warm", False),
        (None, "", False),
        (LogRatio(0.1, 1, None, None), "", False),
    ],
)
def test_a_baseline_that_differs_from_itself_is_reported(
    control: LogRatio | None, unsettled: str, *, differs: bool
) -> None:
    assert ("control" in said(seen(control=control, unsettled=unsettled))) is differs


def test_of_unknown_cpu_time_the_first_server_is_named_with_reason_and_hint() -> None:
    known, hidden = CpuOwner(processes=("a",)), CpuOwner(unknown="no rights.", hint="run it as root")
    duet = seen(*[start(owners=(known, hidden, hidden))] * 4, start(owners=(known, known, known)))
    assert said(duet)["cpu-unknown"] == ["In 4 of 5 starts, the CPU time of B is not known: no rights."]
    assert advice(duet, "cpu-unknown") == "To have it watched, run it as root."
    second = seen(*[start(owners=(known, known, CpuOwner(unknown="gone")))] * 5)
    assert said(second)["cpu-unknown"] == ["The CPU time of the second A is not known: gone."]
    assert "watched" not in advice(second, "cpu-unknown")
    others = seen(*[start(owners=(known, CpuOwner(unknown="gone"), known))] * 5, target=2)
    assert said(others)["cpu-unknown"] == ["The CPU time of another server of the duet is not known: gone."]


def test_cpu_time_that_slices_do_not_have_is_unknown_too() -> None:
    blind = [slice_of(0), slice_of(1, cpu_ns=()), slice_of(2)]
    assert said(with_slices(*blind))["cpu-unknown"][0].startswith("The CPU time of B is not known: some of its process")


def test_processes_behind_a_server_are_not_counted() -> None:
    known, front = CpuOwner(processes=("a",)), CpuOwner(processes=("nginx (7)", "w (8)"), behind="php (9)")
    duet = seen(*[start(owners=(known, front, front))] * 5)
    message = (
        "The CPU time of B is that of nginx (7), w (8) alone: what was used at php (9), which it asks to answer, is "
        "not counted."
    )
    assert said(duet)["cpu-behind"] == [message], "the control is the baseline once more"
    assert grades(duet)["cpu-behind"] is Grade.WARN
    assert len(said(seen(*[start(owners=(front, front, front))] * 5))["cpu-behind"]) == 2


def test_services_beside_a_server_are_named_for_each_side() -> None:
    beside = FACTS.model_copy(update={"beside": ("db",)})
    assert said(seen(*[start(servers=(FACTS, beside, FACTS))] * 5))["cpu-beside"][0].count("B") == 1
    assert len(said(seen(*[start(servers=(beside, beside, beside))] * 5))["cpu-beside"]) == 2
    assert "cpu-beside" not in said(seen(*[start(servers=(None, FACTS, None))] * 5))
    assert "cpu-beside" not in said(seen(*[start(servers=(FACTS, FACTS, beside))] * 5)), "the control is the baseline"


def test_services_that_ran_through_several_starts_are_named() -> None:
    kept = FACTS.model_copy(update={"beside": ("db",), "kept": ("db",)})
    duet = seen(*[start()], *[start(servers=(FACTS, kept, FACTS))] * 4)
    assert said(duet)["kept-services"][0].startswith("db of B started once for 5 starts")
    assert "kept-services" not in said(seen(*[start(servers=())] * 5))


@pytest.mark.parametrize(("launch_s", "found"), [(0.5, False), (0.51, True)])
def test_starts_that_take_half_the_time_are_slow(launch_s: float, *, found: bool) -> None:
    beside = FACTS.model_copy(update={"beside": ("db",)})
    slow = start(servers=(FACTS, beside, FACTS), launch_ns=int(launch_s * 1e9))
    messages = said(seen(*[slow] * 5)).get("slow-starts", [])
    assert bool(messages) is found
    if found:
        assert messages[0].startswith(
            "It took 510 ms on average until the servers of a start were ready, and 490 ms to"
        )
    assert "slow-starts" not in said(seen(*[start(launch_ns=900 * MS)] * 5))
    assert "slow-starts" not in said(seen(*[slow.model_copy(update={"launch_ns": 0})] * 5))


def test_services_that_are_kept_already_are_no_advice_for_slow_starts() -> None:
    for kept, text in ((("db",), "Give it more time."), ((), "With `fresh: service`")):
        beside = FACTS.model_copy(update={"beside": ("db",), "kept": kept})
        duet = seen(*[start(servers=(None, beside, FACTS), launch_ns=900 * MS)] * 5)
        assert advice(duet, "slow-starts").startswith(text)
        assert (advice(duet, "slow-starts") == "Give it more time.") is bool(kept)


def test_blocks_in_which_the_engine_stood_still_are_a_note() -> None:
    duet = seen(*[start(traffic=traffic_of(paused_blocks=300))] * 5)
    assert said(duet)["engine-paused"] == [
        "1,500 blocks were left out, because the engine stood still while they were measured."
    ]
    assert grades(duet)["engine-paused"] is Grade.NOTE


def test_servers_whose_warmth_is_unknown_are_cold() -> None:
    blind = traffic_of([slice_of(at, cpu_ns=()) for at in (0, 1, 2)])
    duet = seen(*[start(traffic=blind)] * 5, saturates=False, cpu=[None] * 5)
    assert said(duet)["cold"] == [
        "Whether the servers were warm is not known: the load sets their rates, and their CPU time is unknown."
    ]
    assert "cold" not in said(replace(duet, saturates=True))
    assert "cold" not in said(seen(*[start(traffic=blind)] * 4, start(), saturates=False, cpu=[None] * 5))


def test_cold_starts_that_are_left_out_are_counted() -> None:
    assert said(seen(*[start()] * 7, left_out=2))["cold"] == [
        "In 2 of 7 starts the servers were not warm: the ratio is that of the others."
    ]


def test_of_cold_servers_it_says_how_far_their_ratio_may_move() -> None:
    duet = seen(unsettled="the servers got faster", to_come=math.log(1.1))
    assert said(duet)["cold"] == [
        "The servers got faster: the ratio may yet move by 10%, which the interval allows for."
    ]
    assert grades(duet)["cold"] is Grade.WARN


@pytest.mark.parametrize(
    ("usual", "starts", "text"),
    [
        (-0.05, 5, "B takes 5.1% more than"),
        (0.05, 5, "B takes 4.9% less than"),
        (-0.009, 5, None),
        (-0.05, 1, None),
        (0.0, 5, None),
    ],
)
def test_costs_in_few_slices_are_the_distance_of_two_ratios(usual: float, starts: int, text: str | None) -> None:
    cpu = [StartRatio(usual + at * 1e-5, None) for at in range(starts)]
    messages = said(seen(*[start()] * starts, cpu=cpu)).get("rare-costs", [])
    assert len(messages) == (text is not None)
    assert all(text in message for message in messages if text)


def test_rare_costs_that_scatter_are_left_alone() -> None:
    cpu = [StartRatio(value, None) for value in (-0.3, 0.2, -0.4, 0.3, -0.1)]
    assert "rare-costs" not in said(seen(cpu=cpu))
    known: list[StartRatio | None] = [StartRatio(-0.05, None), StartRatio(-0.0501, None), None, None, None]
    assert ("rare-costs" in said(seen(cpu=known))) is False, "two starts do not tell what they have in common"


@pytest.mark.parametrize(
    ("ratios", "disagree"),
    [
        ((ratio(0.1), ratio(0.2)), True),
        ((ratio(-0.1), ratio(-0.2)), True),
        ((ratio(0.1), ratio(-0.2)), False),
        ((ratio(0.1), ratio(0.0)), False),
        ((ratio(0.1), ratio(0.1, 1.0)), False),
        ((ratio(0.1),), False),
        ((), False),
    ],
)
def test_cost_and_throughput_that_disagree_are_reported(ratios: tuple[LogRatio, ...], *, disagree: bool) -> None:
    messages = said(seen(ratios=ratios)).get("disagreement", [])
    assert messages == (
        ["CPU per request and throughput disagree: one is better for A, the other for B."] if disagree else []
    )


def test_failed_requests_are_counted_by_side_with_the_first_reason() -> None:
    failure = FirstFailure(outcome="timeout", reason="no answer within 5 s", time_ns=7)
    targets = (TARGETS[0], target_of(failures=(failure,)), TARGETS[0])
    slices = [slice_of(0), slice_of(1, failed=25), slice_of(2)]
    duet = seen(*[start(traffic=traffic_of(slices, targets=targets))] * 5)
    assert said(duet)["errors"] == [
        "125 of 625 requests to B failed: first timeout: no answer within 5 s.",
    ]
    assert grades(duet)["errors"] is Grade.INVALID
    control = with_slices(slice_of(0), slice_of(1), slice_of(2, failed=1))
    assert said(control)["errors"] == ["5 of 1,005 requests to A failed."]
    assert grades(control)["errors"] is Grade.WARN


@pytest.mark.parametrize(
    ("steal_ns", "grade", "stolen"), [(0, None, False), (3 * MS, Grade.NOTE, False), (30 * MS, Grade.NOTE, True)]
)
def test_stolen_time_is_a_note_and_much_of_it_counts(steal_ns: int, grade: Grade | None, *, stolen: bool) -> None:
    slices = [slice_of(at, steal_ns=steal_ns) for at in (0, 1, 2)]
    unknown = slice_of(0, steal_ns=None, engine_cpu_ns=10**12)
    duet = with_slices(*slices, unknown)
    assert grades(duet).get("cpu-steal") == grade
    assert much_stolen(duet.starts[0]) is stolen
    if stolen:
        share = f"{30 / 130:.0%}"
        assert said(duet)["cpu-steal"][0].startswith(f"The host took away {share} of the CPU time that servers and eng")
        assert "(450 ms)" in said(duet)["cpu-steal"][0]
        warming = DuetBlock(index=0, phase="warmup", slices=tuple(slices))
        assert not much_stolen(start(traffic=traffic_of(blocks=(warming,)))), "it has no measured block"


def test_starts_that_were_cut_short_are_a_warning() -> None:
    cut = start(traffic=traffic_of(ended="interrupted"))
    duet = seen(*[start()] * 4, cut)
    assert said(duet)["cut-short"] == ["1 of 5 starts were cut short: they count as far as they were measured."]
    assert grades(seen(*[cut] * 5))["cut-short"] is Grade.WARN
    aborted = start(traffic=traffic_of(ended="aborted", aborted_by="p99 > 1s"))
    assert said(seen(*[start()] * 4, aborted))["cut-short"] == [
        "1 of 5 starts were cut short: they count as far as they were measured. They were aborted by p99 > 1s."
    ]


@pytest.mark.parametrize(("late_ms", "grade"), [(0.19, None), (0.3, Grade.NOTE), (0.4, Grade.WARN), (0.9, Grade.WARN)])
def test_lateness_counts_where_the_load_sets_the_rate(late_ms: float, grade: Grade | None) -> None:
    late = target_of(lateness=Histogram.of([late_ms * MS] * 100))
    duet = with_targets(late, TARGETS[0], late, saturates=False)
    assert grades(duet).get("send-lateness") == grade
    assert all(message.endswith(", of requests to A.") for message in said(duet).get("send-lateness", []))
    if grade:
        assert "service time" not in advice(duet, "send-lateness")
    assert "send-lateness" not in said(replace(duet, saturates=True))


def test_the_clocks_of_the_start_where_they_matter_most_are_reported() -> None:
    def hosts(bound_ns: int) -> tuple[HostFacts, ...]:
        clock = ClockReading(reference="x", stratum=2, offset_ns=-bound_ns, root_delay_ns=0, root_dispersion_ns=0)
        read = {"clock_before": clock, "clock_after": clock}
        return (
            HostFacts(name="one", role="server", address="10.0.0.7", **read),
            HostFacts(name="two", role="load", address="10.0.0.8", **read),
        )

    times = Signed(negative=Histogram(), positive=Histogram.of([MS] * 100))
    way = OneWay(to_server=times, from_server=times)
    targets = (target_of(one_way=way),) * 3
    bounds = (0, 40_000, 30_000)
    starts = [start(traffic=traffic_of(targets=targets), hosts=hosts(bound)) for bound in bounds]
    messages = said(seen(*starts, start(), start()))["clock-bound"]
    assert len(messages) == 1
    assert messages[0].startswith(f"The clocks of the hosts may be {duration(2 * bounds[1])} apart")
    assert "clock-bound" not in said(seen())


def test_certificates_that_were_not_checked_are_a_note() -> None:
    assert said(seen(insecure=True))["tls-insecure"] == [
        "A server's certificate was not checked: any server could have answered."
    ]


@pytest.mark.parametrize(("idle_ms", "found"), [(0.49, False), (0.51, True)])
def test_a_hundredth_of_a_core_while_others_are_loaded_is_idle_work(idle_ms: float, *, found: bool) -> None:
    idle = int(idle_ms * MS)
    slices = [slice_of(at, cpu_ns=tuple(90 * MS if own == at else idle for own in range(3))) for at in range(3)]
    assert ("idle-work" in said(with_slices(*slices))) is found
    if found:
        assert said(with_slices(*slices))["idle-work"] == [
            "Servers that were not loaded used 1% of a core in the slices of others."
        ]
        ran = [start(servers=(None, FACTS, None), traffic=traffic_of(slices))] * 5
        assert "idle-work" not in said(seen(*ran)), "its control is the same process"
    instant = [slice_.model_copy(update={"end_ns": 0}) for slice_ in slices]
    assert "idle-work" not in said(with_slices(*instant, cores=0))


@pytest.mark.parametrize(("idle_ms", "found"), [(4, False), (6, True)])
def test_a_server_that_needs_more_without_load_than_its_requests_add(idle_ms: int, *, found: bool) -> None:
    slices = [slice_of(at, cpu_ns=tuple(10 * MS if own == at else idle_ms * MS for own in range(3))) for at in range(3)]
    duet = with_slices(*slices, slice_of(0, cpu_ns=()))
    assert grades(duet).get("standing-cost") == (Grade.NOTE if found else None)
    if found:
        before, after = said(duet)["standing-cost"]
        assert before.startswith(
            f"Without load, {duet.names[0]} used 6% of a core. At this rate that is 60.0 µs of its 100 µs"
        )
        assert after.startswith(f"Without load, {duet.names[1]} used 6% of a core.")
        ran = [start(servers=(None, FACTS, None), traffic=traffic_of(slices))] * 5
        assert "standing-cost" not in said(seen(*ran)), "its control is the same process"
    unread = [slice_of(at, cpu_ns=tuple(None if own == at else 6 * MS for own in range(3))) for at in range(3)]
    assert grades(with_slices(*slices, *unread)).get("standing-cost") == (Grade.NOTE if found else None)
    known = said(with_slices(*slices, *unread)).get("standing-cost", ["of its 100 µs of CPU time"])
    assert all("of its 100 µs of CPU time" in message for message in known), "what was not read is no time without work"
    unused = [slice_of(at, cpu_ns=tuple(0 if own == at else 6 * MS for own in range(3))) for at in range(3)]
    assert "standing-cost" not in said(with_slices(*unused))
    unanswered = [slice_.model_copy(update={"completed": 0}) for slice_ in slices]
    assert "standing-cost" not in said(with_slices(*unanswered))


@pytest.mark.parametrize(("busy_ms", "found"), [(81, False), (79, True)])
def test_a_fifth_of_the_cores_idle_limits_a_comparison_of_rates(busy_ms: int, *, found: bool) -> None:
    slices = [slice_of(at, cpu_ns=tuple(busy_ms * MS if own == at else 0 for own in range(3))) for at in range(3)]
    unknown = slice_of(0, cpu_ns=(None, 0, 0), end_ns=10**12)
    unread = slice_of(0, cpu_ns=(), end_ns=10**12)
    duet = with_slices(*slices, unknown, unread)
    assert ("client-limited" in said(duet)) is found
    assert grades(duet).get("client-limited") == (Grade.NOTE if found else None)
    if found:
        assert said(duet)["client-limited"][0].startswith("The servers used 79% of their cores: the client limits")
        assert "client-limited" not in said(replace(duet, saturates=False))
        assert "client-limited" not in said(replace(duet, cores=0))
    halved = replace(with_slices(*slices), cores=2)
    assert said(halved)["client-limited"][0].startswith(f"The servers used {busy_ms / 2 / 100:.0%}")


def test_servers_beside_each_other_have_the_cores_of_their_set() -> None:
    two = FACTS.model_copy(update={"cpus": (0, 1)})
    beside = start(servers=(two, two, two), places=(0, 1, 2))
    assert said(seen(*[beside] * 5))["client-limited"][0].startswith("The servers used 45% of their cores")
    unknown = start(servers=(None, two, None), places=(0, 1, 2))
    assert "client-limited" not in said(seen(*[unknown] * 5)), "the cores of the duet are known otherwise"
    nothing = [slice_of(at, cpu_ns=(0, 0, 0)) for at in range(3)]
    assert "client-limited" not in said(with_slices(*nothing))


@pytest.mark.parametrize(("reconnects", "found"), [(500, False), (501, True)])
def test_connections_that_would_be_kept_are_reported(reconnects: int, *, found: bool) -> None:
    counts = Counts(due=1000, completed=1000, reconnects=reconnects, outcomes=Outcomes(ok=1000))
    duet = with_targets(TARGETS[0], target_of(counts=counts), TARGETS[0])
    messages = said(duet).get("reconnecting", [])
    assert messages == (["Connections to B were opened again for most of its requests."] if found else [])
    assert "reconnecting" not in said(replace(duet, keeps=False))
    if found:
        assert grades(duet)["reconnecting"] is Grade.WARN


@pytest.mark.parametrize(
    ("due", "surplus", "grade"), [(1000, 0, None), (1000, 10, Grade.NOTE), (1000, 11, Grade.WARN), (0, 1, Grade.WARN)]
)
def test_bytes_that_nobody_requested_are_counted(due: int, surplus: int, grade: Grade | None) -> None:
    counts = Counts(due=due, completed=due, surplus=surplus, outcomes=Outcomes(ok=due))
    duet = with_targets(TARGETS[0], target_of(counts=counts), TARGETS[0])
    assert grades(duet).get("surplus-bytes") == grade
    if grade:
        assert said(duet)["surplus-bytes"] == [f"After {5 * surplus} answers B sent bytes that nobody had requested."]


@pytest.mark.parametrize(("length", "found"), [(101, False), (102, True), (98, True), (99.5, False)])
def test_answers_of_other_lengths_are_a_note(length: float, *, found: bool) -> None:
    ours = slice_of(1, bytes_received=int(length * 100))
    ignored = (slice_of(1, bytes_received=10**9, failed=1), slice_of(1, bytes_received=None))
    duet = with_slices(slice_of(0), ours, slice_of(2), *ignored)
    messages = said(duet).get("answer-sizes", [])
    assert messages == (
        [f"An answer of A has 100 bytes, an answer of B {length:.0f}: do both do the same work?"] if found else []
    )


def test_answers_whose_length_is_not_known_are_not_compared() -> None:
    unknown = [slice_of(0), slice_of(1, bytes_received=None), slice_of(2)]
    assert "answer-sizes" not in said(with_slices(*unknown))
    empty = [slice_of(0), slice_of(1, bytes_received=0), slice_of(2)]
    assert "answer-sizes" not in said(with_slices(*empty))


def test_sets_of_cores_are_counted_by_server() -> None:
    starts = [start(places=places) for places in ((0, 1, 2), (1, 0, 2), (0, 1, 2))]
    assert said(seen(*starts, start(), start()))["parallel"] == [
        (
            "Servers were loaded at the same time, each on cores of its own, which were drawn for each start: "
            "A had set 1 in 2, set 2 in 1, B set 1 in 1, set 2 in 2."
        )
    ]


def built(number: int, outputs: str) -> ServerFacts:
    return FACTS.model_copy(update={"build_number": number, "outputs": outputs})


def test_builds_that_are_the_same_bytes_add_nothing() -> None:
    starts = [start(servers=(FACTS, built(at % 2, "x"), FACTS)) for at in range(5)]
    assert said(seen(*starts))["builds-alike"] == ["All 2 builds of B are identical, so they add nothing."]
    apart = [start(servers=(FACTS, built(at % 2, f"x{at % 2}"), FACTS)) for at in range(5)]
    assert "builds-alike" not in said(seen(*apart))
    assert "builds-alike" not in said(seen(*[start(servers=())] * 5))


def test_builds_that_differ_are_those_of_the_baseline() -> None:
    servers = [built(at // 4, f"x{at // 4}") for at in range(12)]
    starts = [start(servers=(server, FACTS, FACTS)) for server in servers]
    cpu: list[StartRatio | None] = [StartRatio(0.1 * (at // 4) + 0.001 * (at % 4), None) for at in range(12)]
    (message,) = said(seen(*starts, cpu=cpu))["builds-differ"]
    assert message.startswith("The 3 builds differ by 10%")
    assert message.endswith(", in their ratio: the interval allows for it, by so few builds.")
    assert "builds-differ" not in said(seen(*starts, cpu=[None] * 12))
    alike: list[StartRatio | None] = [StartRatio(0.001 * (at % 4), None) for at in range(12)]
    assert "builds-differ" not in said(seen(*starts, cpu=alike))


def test_users_who_were_fewer_than_asked_are_said_by_their_fewest() -> None:
    duet = seen(*[start(users=users) for users in (100, 64, None, 128, 100)])
    assert said(duet)["short-queue"][0].startswith("64 users loaded each server:")
    assert grades(duet)["short-queue"] is Grade.WARN
    assert "short-queue" not in said(seen())
