"""Doubts about cores and quotas: a quiet machine raises none, and every doubt is raised by its cause."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from redline.findings import judge, machine
from redline.findings.machine import engine_share, engines_share, named, observe_labs, server_share
from redline.findings.rules import TICK_NS
from redline.model import OTHER_LOAD, Clocks, FindingKind, Grade, Metric, Recording, Series
from redline.stats import Trial
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording
from tests.fakes.series import counting, showing

CELL = simulated_cell(load=SATURATE)
NOISY, THROTTLED = "noisy-neighbour", "throttled"
CPU_SAMPLED = "cpu-sampled"


def on_cores(behaviour: Behaviour, *, others: float = 0.0, waited: float = 0.0, preempted: float = 0.0) -> Recording:
    """A trial whose server shares its core with others for a share of the time, and waits for it for another."""
    recording = simulated_recording(CELL, behaviour)
    busy = min(behaviour.server_busy + others, 1.0) * 1e9
    recording = counting(recording, "server", run_delay_ns=waited * 1e9, cores_busy_ns=busy)
    return counting(recording, "engine", preemptions=preempted)


def raised(recording: Recording) -> dict[FindingKind, Grade]:
    """Findings of these two kinds: a server that uses half of its core is another finding."""
    return {finding.kind: finding.grade for finding in judge(CELL, recording) if finding.kind in (NOISY, THROTTLED)}


def message(recording: Recording, kind: FindingKind) -> str:
    (finding,) = [one for one in judge(CELL, recording) if one.kind == kind]
    return finding.message


@pytest.mark.parametrize("seed", range(5))
def test_a_quiet_machine_is_left_alone(seed: int) -> None:
    quiet = replace(GOOD, run_delay=0.03)
    assert judge(CELL, simulated_recording(CELL, quiet, seed=seed)) == ()
    assert judge(CELL, on_cores(quiet, others=0.02, waited=0.02, preempted=100)) == ()


def test_another_load_on_the_machine_is_named() -> None:
    recording = simulated_recording(CELL, GOOD)
    (moments,) = {series.times_unix_ns for series in recording.series[:1]}
    other = Series(
        name=f"{OTHER_LOAD}redline (4711)",
        unit="1",
        subject="machine",
        kind="gauge",
        times_unix_ns=moments[:2],
        values=(1.0, 1.0),
    )
    (finding,) = judge(CELL, recording.model_copy(update={"series": (*recording.series, other)}))
    assert (finding.kind, finding.grade) == ("other-load", Grade.NOTE)
    said = (
        "Another measurement of Redline ran on this machine meanwhile: redline (4711); processes other than server and"
    )
    assert said in finding.message
    busy = simulated_recording(CELL, replace(GOOD, others_busy=0.5))
    found = judge(CELL, busy.model_copy(update={"series": (*busy.series, other)}))
    assert ("other-load", Grade.WARN) in {(finding.kind, finding.grade) for finding in found}


@pytest.mark.parametrize(("used", "grade"), [(0.0, Grade.NOTE), (0.05, Grade.NOTE), (0.5, Grade.WARN)])
def test_the_engines_of_other_loads_count_where_the_cpu_time_of_the_server_is_not_known(
    used: float, grade: Grade
) -> None:
    """A server behind a URL: what others used is not known, but for those engines."""
    recording = simulated_recording(CELL, GOOD)
    assert recording.traffic is not None
    start, end = recording.traffic.window_unix_ns
    busy_ns = recording.increase("busy_ns", "machine")
    assert busy_ns is not None
    other = Series(
        name=f"{OTHER_LOAD}redline (4711)",
        unit="ns",
        subject="machine",
        kind="counter",
        times_unix_ns=(start - (end - start), end),
        values=(0.0, 2 * used * busy_ns),
    )
    unknown = tuple(one for one in recording.series if (one.subject, one.name) != ("server", "cpu_ns"))
    traffic = recording.traffic.without_server_cpu()
    seen = recording.model_copy(update={"series": (*unknown, other), "traffic": traffic})
    (finding,) = [one for one in judge(CELL, seen) if one.kind == "other-load"]
    assert finding.grade is grade
    assert ("their engines alone used" in finding.message) is (used > 0)


@pytest.mark.parametrize(("share", "grade"), [(0.04, None), (0.07, Grade.NOTE), (0.2, Grade.WARN)])
def test_a_neighbour_of_the_engine_is_reported(share: float, grade: Grade | None) -> None:
    recording = on_cores(replace(GOOD, run_delay=share), preempted=300)
    assert raised(recording) == ({NOISY: grade} if grade else {})
    if grade:
        assert "interrupted 300 times a second" in message(recording, NOISY)


def test_what_an_older_recording_does_not_hold_is_not_said_to_be_none() -> None:
    text = message(simulated_recording(CELL, replace(GOOD, run_delay=0.2)), NOISY)
    assert "the engine's workers waited 20% of the time" in text
    assert "interrupted" not in text
    assert "server" not in text


@pytest.mark.parametrize(
    ("others", "waited", "grade"),
    [
        (0.4, 0.4, Grade.WARN),
        (0.1, 9.0, Grade.NOTE),
        (0.0, 9.0, None),  # its own threads wait for each other
        (0.4, 0.01, None),  # it left its core to others when it had nothing to do
        (0.06, 0.06, None),  # a core's busy time is known to a tick at either end
    ],
)
def test_a_neighbour_of_the_server_is_reported(others: float, waited: float, grade: Grade | None) -> None:
    recording = on_cores(replace(GOOD, server_busy=0.5), others=others, waited=waited)
    assert raised(recording) == ({NOISY: grade} if grade else {})


def with_interrupts(behaviour: Behaviour, share: float) -> Recording:
    """Where the kernel separates interrupts from the interrupted: a trial with this share of each core."""
    recording = on_cores(replace(behaviour, others_busy=behaviour.others_busy + 2 * share), others=share, waited=9.0)
    for side in ("server", "engine"):
        recording = counting(recording, "server" if side == "server" else "engine", cores_interrupts_ns=share * 1e9)
    return counting(recording, "machine", interrupts_ns=2 * share * 1e9)


def test_interrupts_are_the_work_of_the_load_and_no_neighbour() -> None:
    assert judge(CELL, with_interrupts(replace(GOOD, server_busy=0.8, pressure=0.9), 0.18)) == ()


@pytest.mark.parametrize(("server", "grade"), [(0.5, Grade.INVALID), (0.7, Grade.WARN), (0.8, Grade.NOTE)])
def test_a_core_that_interrupts_fill_is_full(server: float, grade: Grade) -> None:
    recording = with_interrupts(replace(GOOD, server_busy=server, engine_busy=0.8), 0.18)
    found = {finding.kind: finding.grade for finding in judge(CELL, recording)}
    assert found == {"client-saturated": grade}


def test_who_shares_cores_anyway_has_no_neighbour() -> None:
    assert NOISY not in raised(on_cores(replace(GOOD, run_delay=0.2, pinned=False), others=0.4, waited=0.4))


def test_more_workers_than_cores_wait_for_each_other() -> None:
    recording = on_cores(replace(GOOD, run_delay=0.3))
    assert recording.traffic is not None
    engine = recording.traffic.engine.model_copy(update={"workers": 2})
    traffic = recording.traffic.model_copy(update={"engine": engine})
    assert raised(recording.model_copy(update={"traffic": traffic})) == {}


def quota(recording: Recording, subject: str, throttled_per_s: float) -> Recording:
    assert subject in ("server", "engine")
    return counting(
        recording,
        "server" if subject == "server" else "engine",
        quota_periods=10.0,
        throttled_periods=throttled_per_s,
        throttled_ns=throttled_per_s * 5e7,
    )


@pytest.mark.parametrize(
    ("throttled_per_s", "grade"), [(0.0, None), (0.05, Grade.NOTE), (0.2, Grade.WARN), (10.0, Grade.WARN)]
)
@pytest.mark.parametrize("subject", ["server", "engine"])
def test_a_quota_that_ran_out_is_reported(subject: str, throttled_per_s: float, grade: Grade | None) -> None:
    recording = quota(simulated_recording(CELL), subject, throttled_per_s)
    assert raised(recording) == ({THROTTLED: grade} if grade else {})


@pytest.mark.parametrize(("lost_ms", "neighbour"), [(300, False), (100, True)])
def test_who_waits_for_its_quota_has_no_neighbour(lost_ms: float, *, neighbour: bool) -> None:
    recording = quota(on_cores(replace(GOOD, run_delay=0.3)), "engine", 5.0)
    recording = counting(recording, "engine", throttled_ns=lost_ms * 1e6)
    assert raised(recording) == {THROTTLED: Grade.WARN} | ({NOISY: Grade.WARN} if neighbour else {})


def test_of_two_quotas_the_one_that_ran_out_more_often_is_reported() -> None:
    both = quota(quota(simulated_recording(CELL), "server", 1.0), "engine", 5.0)
    assert message(both, THROTTLED).startswith("The engine had used up its CPU quota in 50% of")
    assert "250 ms" in message(both, THROTTLED)


def test_a_quota_with_no_period_in_the_window_did_not_run_out() -> None:
    recording = counting(
        simulated_recording(CELL), "server", quota_periods=0.0, throttled_periods=0.0, throttled_ns=0.0
    )
    assert raised(recording) == {}


def test_no_cpu_time_beside_answers_is_unknown_and_said() -> None:
    recording = with_clocks(0)
    assert Trial(recording).server_cpu_ns is None
    assert Trial(recording).cpu_per_request_ns is None
    assert not Trial(recording).numbers.has_metric(Metric.CPU_PER_REQUEST)
    (finding,) = [one for one in judge(CELL, recording) if one.kind == "cpu-unknown"]
    assert finding.grade is Grade.WARN
    assert "used no CPU time" in finding.message
    assert server_share(Trial(recording)) is None
    assert "cpu-unknown" not in {one.kind for one in judge(CELL, with_clocks(300_000_000))}


def with_clocks(server_cpu_ns: int | None, steal_ns: int | None = 0, late_ns: int = 0) -> Recording:
    """A trial with these readings of the engine; by samples the server used half of a core."""
    recording = simulated_recording(CELL, replace(GOOD, server_busy=0.5, steal=0.05))
    traffic = recording.traffic
    assert traffic is not None
    start_ns, end_ns = traffic.measure_start_ns + 1_000_000, traffic.measure_end_ns + late_ns
    clocks = Clocks(start_ns=start_ns, end_ns=end_ns, server_cpu_ns=server_cpu_ns, steal_ns=steal_ns)
    return recording.model_copy(update={"traffic": traffic.model_copy(update={"clocks": clocks})})


def test_what_the_engine_read_goes_before_samples() -> None:
    read = with_clocks(300_000_000, 40_000_000)
    assert read.traffic is not None
    longer = read.traffic.seconds / (read.traffic.seconds - 1e-3)  # than the time between the two readings
    assert read.increase("cpu_ns", "server") == pytest.approx(300e6 * longer)
    assert read.increase("steal_ns", "machine") == pytest.approx(40e6 * longer)
    assert CPU_SAMPLED not in {one.kind for one in judge(CELL, read)}


@pytest.mark.parametrize("late_s", [0.05, 0.5])
def test_a_reading_long_after_the_window_is_not_used(late_s: float) -> None:
    late = with_clocks(300_000_000, late_ns=int(late_s * 1e9))
    assert late.increase("cpu_ns", "server") == sampled().increase("cpu_ns", "server")


def test_processes_that_began_or_ended_during_the_load_are_reported() -> None:
    changed = with_clocks(None)
    assert changed.increase("cpu_ns", "server") == sampled().increase("cpu_ns", "server")
    (finding,) = [one for one in judge(CELL, changed) if one.kind == CPU_SAMPLED]
    assert finding.grade is Grade.NOTE
    assert CPU_SAMPLED not in {one.kind for one in judge(CELL, sampled())}


def sampled() -> Recording:
    """The same trial as recorded by an engine that reads no clocks."""
    made = with_clocks(None)
    assert made.traffic is not None
    return made.model_copy(update={"traffic": made.traffic.model_copy(update={"clocks": None})})


def test_a_neighbour_that_was_seen_is_named_with_its_share() -> None:
    recording = on_cores(replace(GOOD, run_delay=0.2), preempted=300)
    with_names = counting(recording, "machine", **{"other_cpu_ns:rustc": 8.3e8, "other_cpu_ns:ld": 1.2e8})
    assert message(with_names, NOISY).endswith(", the server waited 0%: of one core, rustc used 83%, ld 12%.")


def test_services_beside_the_server_are_not_counted_and_named() -> None:
    recording = simulated_recording(CELL)
    assert recording.server is not None
    assert "cpu-beside" not in {one.kind for one in judge(CELL, recording)}
    beside = recording.model_copy(update={"server": recording.server.model_copy(update={"beside": ("db", "cache")})})
    name = CELL.variant.entry.name
    assert message(beside, "cpu-beside") == (
        f"CPU time and memory of {name} are its own alone: db, cache run beside it, and are not counted."
    )


def grades(recording: Recording) -> dict[FindingKind, Grade]:
    return {finding.kind: finding.grade for finding in judge(CELL, recording)}


def stolen(share: float) -> Recording:
    return counting(simulated_recording(CELL), "machine", steal_ns=share * 1e9 + TICK_NS, busy_ns=(1 - share) * 1e9)


def test_a_tick_of_stolen_time_beside_a_light_load_may_be_next_to_nothing() -> None:
    light = simulated_recording(CELL)
    assert "cpu-steal" not in grades(counting(light, "machine", steal_ns=TICK_NS, busy_ns=50e6))
    (taken,) = [
        finding
        for finding in judge(CELL, counting(light, "machine", steal_ns=2 * TICK_NS, busy_ns=40e6))
        if finding.kind == "cpu-steal"
    ]
    assert taken.grade is Grade.WARN
    assert taken.message == "The host took away at least 20% of the CPU time that this machine needed (10 ms)."


def with_others(recording: Recording, share: float, **also: float) -> Recording:
    """On a machine where processes other than server and engine use this share of the CPU time."""
    traffic, server_ns = recording.traffic, Trial(recording).server_cpu_ns
    assert traffic is not None
    assert server_ns is not None
    interrupts_ns = 3e7
    own_ns = (server_ns + traffic.engine_cpu_ns) / traffic.seconds + interrupts_ns
    return counting(recording, "machine", busy_ns=own_ns / (1 - share), interrupts_ns=interrupts_ns, **also)


def under_pressure(share: float) -> Recording:
    return with_others(simulated_recording(CELL), 0.3, cpu_pressure_ns=share * 1e9)


def held_up_server(share: float) -> Recording:
    """A server that others kept from its core for a share of the time, beyond a tick at either end."""
    recording = simulated_recording(CELL, replace(GOOD, server_busy=0.5))
    used_ns = Trial(recording).server_cpu_ns
    assert recording.traffic is not None
    assert used_ns is not None
    seconds = recording.traffic.seconds
    busy_ns = (used_ns + 2 * 10e6) / seconds + share * 1e9
    return counting(recording, "server", run_delay_ns=9e9, cores_busy_ns=busy_ns)


def waiting_engine(share: float) -> Recording:
    return counting(simulated_recording(CELL, replace(GOOD, engine_busy=0.2)), "engine", run_delay_ns=share * 1e9)


def busy_engine(share: float) -> Recording:
    return simulated_recording(CELL, replace(GOOD, engine_busy=share, server_busy=0.5))


def throttled_server(share: float) -> Recording:
    return quota(simulated_recording(CELL), "server", 10 * share)


def beside_another_load(share: float) -> Recording:
    recording = with_others(simulated_recording(CELL), share)
    return counting(recording, "machine", **{f"{OTHER_LOAD}redline (4711)": 0.0})


def paused_engine(share: float) -> Recording:
    recording = simulated_recording(CELL)
    assert recording.traffic is not None
    paused_ns = round(share * recording.traffic.seconds * 1e9)
    traffic = recording.traffic.model_copy(update={"paused_ns": paused_ns})
    return recording.model_copy(update={"traffic": traffic})


LIMITS: list[tuple[FindingKind, Callable[[float], Recording], float, Grade | None, Grade]] = [
    ("client-saturated", busy_engine, 0.90, None, Grade.WARN),
    ("client-saturated", busy_engine, 0.95, Grade.WARN, Grade.INVALID),
    ("engine-paused", paused_engine, 0.001, Grade.NOTE, Grade.WARN),
    ("engine-paused", paused_engine, 0.01, Grade.WARN, Grade.INVALID),
    ("cpu-steal", stolen, 0.02, None, Grade.NOTE),
    ("cpu-steal", stolen, 0.10, Grade.NOTE, Grade.WARN),
    ("cpu-pressure", under_pressure, 0.20, None, Grade.NOTE),
    ("cpu-pressure", under_pressure, 0.40, Grade.NOTE, Grade.WARN),
    (NOISY, waiting_engine, 0.05, None, Grade.NOTE),
    (NOISY, waiting_engine, 0.10, Grade.NOTE, Grade.WARN),
    (NOISY, held_up_server, 0.05, None, Grade.NOTE),
    (NOISY, held_up_server, 0.10, Grade.NOTE, Grade.WARN),
    (THROTTLED, throttled_server, 0.01, Grade.NOTE, Grade.WARN),
    ("other-load", beside_another_load, 0.10, Grade.NOTE, Grade.WARN),
]


@pytest.mark.parametrize(("kind", "with_share", "limit", "below", "above"), LIMITS)
def test_a_grade_begins_just_above_its_limit(
    kind: FindingKind, with_share: Callable[[float], Recording], limit: float, below: Grade | None, above: Grade
) -> None:
    assert grades(with_share(limit * 0.99)).get(kind) is below
    assert grades(with_share(limit * 1.01)).get(kind) is above


@pytest.mark.parametrize("kind", ["engine-paused", "cpu-steal", "cpu-pressure", THROTTLED, "other-load", NOISY])
def test_what_did_not_happen_is_no_finding(kind: FindingKind) -> None:
    assert kind not in grades(simulated_recording(CELL))


@pytest.mark.parametrize(("kind", "smallest"), [("engine-paused", paused_engine), (THROTTLED, throttled_server)])
def test_what_happened_at_all_is_noted(kind: FindingKind, smallest: Callable[[float], Recording]) -> None:
    assert grades(smallest(1e-4)).get(kind) is Grade.NOTE


@pytest.mark.parametrize(("others", "grade"), [(0.099, None), (0.101, Grade.WARN)])
def test_pressure_counts_where_others_use_a_tenth_of_the_cpu_time(others: float, grade: Grade | None) -> None:
    recording = with_others(simulated_recording(CELL), others, cpu_pressure_ns=0.9e9)
    assert grades(recording).get("cpu-pressure") is grade


@pytest.mark.parametrize(
    ("server", "grade"),
    [(0.849, Grade.INVALID), (0.851, Grade.WARN), (0.949, Grade.WARN), (0.951, Grade.NOTE)],
)
def test_a_busy_engine_matters_less_the_fuller_the_server_is(server: float, grade: Grade) -> None:
    recording = simulated_recording(CELL, replace(GOOD, engine_busy=0.99, server_busy=server))
    assert grades(recording)["client-saturated"] is grade


def test_interrupts_count_once_for_each_worker_with_a_core() -> None:
    recording = counting(simulated_recording(CELL), "engine", run_delay_ns=1e8, cores_interrupts_ns=4e8)
    assert recording.traffic is not None
    engine = recording.traffic.engine.model_copy(update={"workers": 4, "cpus": (1, 2)})
    traffic = recording.traffic.model_copy(update={"engine": engine, "engine_cpu_ns": 0})
    # Two cores lose 0.2 s a second each, and workers wait 0.1 s: 0.5 s of the 4 s that four workers have.
    assert engine_share(Trial(recording), traffic) == pytest.approx(0.5 / 4)


def test_the_share_of_a_server_is_of_all_its_cores() -> None:
    recording = counting(simulated_recording(CELL), "server", cpu_ns=9e8, cores_interrupts_ns=3e8)
    assert recording.server is not None
    on_three = recording.server.model_copy(update={"cpus": (0, 8, 9)})
    assert server_share(Trial(recording.model_copy(update={"server": on_three}))) == pytest.approx(1.2 / 3)


@pytest.mark.parametrize(("share", "sets"), [(0.5, False), (0.51, True)])
def test_a_quota_sets_the_pace_if_most_periods_use_it_up(share: float, *, sets: bool) -> None:
    assert ("the quota sets the pace" in message(throttled_server(share), THROTTLED)) is sets


def test_a_quota_is_said_in_cores() -> None:
    recording = showing(throttled_server(0.2), "server", quota_millicores=(1500, 1500))
    assert "its CPU quota of 1.5 cores in 20% of" in message(recording, THROTTLED)


def test_three_other_loads_are_named_and_the_rest_counted() -> None:
    three = observe_labs(("a", "b", "c"), None, 0.0).message
    assert three == "3 other measurements of Redline ran on this machine meanwhile: a, b, c."
    assert observe_labs(("a", "b", "c", "d", "e"), None, 0.0).message.endswith(": a, b, c and 2 more.")


def line(first: float, last: float, times_unix_ns: tuple[int, int]) -> Series:
    name = f"{OTHER_LOAD}redline (4711)"
    return Series(
        name=name, unit="ns", subject="machine", kind="counter", times_unix_ns=times_unix_ns, values=(first, last)
    )


@pytest.mark.parametrize(
    ("times", "share"),
    [((100, 200), 0.4), ((0, 100), 0.0), ((50, 150), 0.2), ((150, 250), 0.2), ((200, 300), 0.0), ((0, 400), 0.1)],
)
def test_engines_of_others_count_for_the_time_that_they_share(times: tuple[int, int], share: float) -> None:
    assert engines_share([line(30.0, 70.0, times)], 100.0, (100, 200)) == pytest.approx(share)


def test_a_named_process_counts_from_its_first_reading() -> None:
    seen = Series(
        name="other_cpu_ns:rustc",
        unit="ns",
        subject="machine",
        kind="counter",
        times_unix_ns=(10, 110),
        values=(50.0, 90.0),
    )
    assert named([seen]) == ": of one core, rustc used 40%"


def test_an_engine_is_never_busy_for_more_than_all_of_the_time() -> None:
    assert "waited for a core 100% of the time" in message(busy_engine(1.08), "client-saturated")


@pytest.mark.parametrize(
    ("cpus", "share"),
    [
        ((), (6.0 + 2.0) / (2 * 10)),
        ((4, 5), (6.0 + 2.0 + 1.0) / (2 * 10)),
        ((4, 5, 6, 7), (6.0 + 2.0 + 0.5) / (2 * 10)),
    ],
)
def test_the_engine_is_busy_while_its_workers_run_or_wait_or_cores_serve_interrupts(
    monkeypatch: pytest.MonkeyPatch, cpus: tuple[int, ...], share: float
) -> None:
    """Two workers over 10 s: they ran for 6 s, waited for 2 s, and their cores served interrupts for 1 s."""
    monkeypatch.setattr(machine, "interrupts_ns", lambda _trial, _part: 1e9)
    trial: Any = SimpleNamespace(
        increase=lambda name, part: 2e9 if (name, part) == ("run_delay_ns", "engine") else None
    )
    engine = SimpleNamespace(cpus=cpus, workers=2)
    traffic: Any = SimpleNamespace(engine=engine, engine_cpu_ns=6e9, seconds=10.0)
    assert machine.engine_share(trial, traffic) == pytest.approx(share)
    trial.increase = lambda _name, _part: None
    traffic.engine = SimpleNamespace(cpus=(), workers=2)
    assert machine.engine_share(trial, traffic) == pytest.approx(6 / 20)
