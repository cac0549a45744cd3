"""What a trial can measure a duet can: a new field of the one cannot be forgotten in the other."""

import json
from typing import Any

import pytest

from redline.analysis import build_report
from redline.analysis.distributions import distributions
from redline.driving.protocol import Transcript
from redline.model import DuetRecording, Histogram, Interval, OneWay, Run, Signed, TargetTraffic, Traffic
from redline.model.duet import DuetTraffic
from redline.model.hosts import ClockReading, HostFacts
from redline.render import RENDERERS
from tests.fakes.compared import compared_run
from tests.fakes.duets import ENGINE

OF_INTERVALS = {"phase", "index", "start_ns", "end_ns", "ticks", "workers"}
"""When an interval was, and its course, for which slices are too short; the rest is what the engine counted in it."""
OF_TRIALS = {
    "measure_start_ns": "a duet measures in many slices, which have their own times",
    "measure_end_ns": "the same",
    "clocks": "slices have their own readings",
    "addresses": "a duet loads one address of each server",
    "own_driver": "drivers of other packages have no duets",
    "intervals": "a duet has blocks",
}
"""What only a trial has, and why."""
TIMES = Histogram.of([2_000_000, 3_000_000, 4_000_000] * 400)
NOTHING = Histogram.of([])


def one_way(ms: float) -> OneWay:
    times = Signed(negative=NOTHING, positive=Histogram.of([int(ms * 1e6)] * 1200))
    return OneWay(to_server=times, from_server=times)


def test_a_target_of_a_duet_has_every_field_of_an_interval() -> None:
    """The engine writes both from the same counts: a field that the model lacks would lose every start."""
    assert set(Interval.model_fields) - OF_INTERVALS <= set(TargetTraffic.model_fields)


def test_a_duet_has_every_field_of_a_trial_or_says_why_not() -> None:
    missing = set(Traffic.model_fields) - set(TargetTraffic.model_fields) - set(DuetTraffic.model_fields)
    assert missing == set(OF_TRIALS)


def test_every_field_that_the_engine_may_write_of_an_interval_is_read_in_a_duet() -> None:
    whole: dict[str, Any] = {
        "phase": "measure",
        "index": 0,
        "start_ns": 0,
        "end_ns": 1,
        "counts": {},
        **dict.fromkeys(("response", "service", "lateness", "first_byte", "handshake"), TIMES),
        "one_way": one_way(1.0),
        "engine_cpu_ns": 5,
        "paused_ns": 3,
    }
    counted = Interval.model_validate(whole).model_dump(mode="json", exclude=OF_INTERVALS)
    assert {"one_way", "handshake", "paused_ns", "first_byte"} <= set(counted)
    transcript = Transcript()
    started = {"format": "redline.engine/1", "engine": ENGINE.model_dump(mode="json"), "connections": 2}
    transcript.read(json.dumps({"event": "started", **started, "connect_ns": 1, "epoch_unix_ns": 1}))
    targets = [counted | {"failures": []}] * 2
    transcript.read(json.dumps({"event": "duet", "ended": "complete", "paused_blocks": 0, "targets": targets}))
    traffic = transcript.duet_traffic()
    assert traffic is not None
    assert traffic.targets[1].one_way == one_way(1.0)


def timed(ms: float = 3.0, hosts: tuple[HostFacts, ...] = ()) -> Run:
    """A comparison whose answers carry the server's clock, over TLS."""

    def changed(made: DuetRecording) -> DuetRecording:
        assert made.traffic is not None
        new = {"one_way": one_way(ms), "handshake": TIMES}
        targets = tuple(target.model_copy(update=new) for target in made.traffic.targets)
        return made.model_copy(update={"traffic": made.traffic.model_copy(update={"targets": targets}), "hosts": hosts})

    run = compared_run()
    return run.model_copy(update={"duets": tuple(map(changed, run.duets))})


def apart(bound_ns: int) -> tuple[HostFacts, ...]:
    """A server's host and a load host whose clocks may be this far apart, together."""
    read = ClockReading(reference="", stratum=1, offset_ns=bound_ns // 2, root_delay_ns=0, root_dispersion_ns=0)
    return tuple(
        HostFacts(role=role, name=role, address="127.0.0.1", clock_before=read, clock_after=read)
        for role in ("server", "load")
    )


def test_one_way_times_and_handshakes_are_shown_in_every_format() -> None:
    report = build_report(timed())
    for cell in report.cells:
        assert [time.name for time in cell.other_times] == ["handshake", "to server", "from server"]
    names = ("handshake-p50", "to-server-p50", "from-server-p50")
    text = RENDERERS["csv"](report).decode()
    assert all(name in text for name in names)
    for form in ("md", "html", "json"):
        assert "to server" in RENDERERS[form](report).decode(), form
    kinds = {times.kind for times in distributions(timed())}
    assert {"response", "service", "to-server", "from-server"} == kinds
    assert {"response", "service"} == {times.kind for times in distributions(compared_run())}


@pytest.mark.parametrize(
    ("bound_ns", "known", "graded"), [(1_000, True, []), (200_000, True, ["note"]), (10**6, False, ["warn"])]
)
def test_the_clocks_of_two_hosts_are_judged_as_in_trials(bound_ns: int, known: bool, graded: list[str]) -> None:
    report = build_report(timed(hosts=apart(bound_ns)))
    (duet,) = {one.duet for one in report.comparisons if one.duet and one.primary}
    assert [found.grade for found in duet.findings if found.kind == "clock-bound"] == graded
    assert any(time.is_one_way for cell in report.cells for time in cell.other_times) == known
