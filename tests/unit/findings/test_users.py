"""Users that a server never answered are counted as users, and nobody blames the engine for them."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from redline.extras.hosts.parts import merged
from redline.findings import judge, users
from redline.findings.starts import failing, why_lost
from redline.findings.table import RULES
from redline.model import Cell, Closed, Counts, Grade, Load, Reach, Recording, Series
from tests.fakes.behaviour import GOOD
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import MEASURE_NS, STEADY, simulated_cell, simulated_recording

CELL = simulated_cell(load=Load(name="many", shape=Closed(users=512), duration_ns=MEASURE_NS))
OPEN = simulated_cell(load=STEADY)
STUCK = Reach(opened=512, asked=512, answered=16)


def recorded(cell: Cell, reach: Reach | None, waiting: float | None = None) -> Recording:
    """A good trial whose connections came so far, while so many waited in the listen queue."""
    recording = simulated_recording(cell, GOOD)
    assert recording.traffic is not None
    traffic = recording.traffic.model_copy(update={"reach": reach})
    start, end = traffic.window_unix_ns
    queue = Series(
        name="listen_queue",
        unit="1",
        subject="server",
        kind="gauge",
        times_unix_ns=(start, (start + end) // 2),
        values=(waiting or 0.0, waiting or 0.0),
    )
    series = recording.series if waiting is None else (*recording.series, queue)
    return recording.model_copy(update={"traffic": traffic, "series": series})


def said(cell: Cell, recording: Recording) -> tuple[Grade, str] | None:
    found = (one for one in judge(cell, recording) if one.kind == "users-unanswered")
    return next(((one.grade, one.message) for one in found), None)


@pytest.mark.parametrize(
    ("waiting", "where"),
    [
        (None, "whether it accepted their connections is not known"),
        (480.0, "it did not accept them, and 480 connections wait in its listen queue"),
        (0.0, "it accepted their connections, and did not answer on them"),
        (128.0, "128 connections wait in its listen queue, and it accepted the others"),
    ],
)
def test_how_many_users_got_no_answer_is_said_and_where_they_wait(waiting: float | None, where: str) -> None:
    assert said(CELL, recorded(CELL, STUCK, waiting)) == (
        Grade.INVALID,
        f"The server left 496 of 512 users (96.9%) without any answer: {where}. What is shown is of the other 16.",
    )


@pytest.mark.parametrize(
    ("reach", "grade"),
    [
        (None, None),
        (Reach(opened=512, asked=512, answered=512), None),
        (Reach(opened=5120, asked=5120, answered=5119), Grade.NOTE),
        (Reach(opened=512, asked=512, answered=510), Grade.WARN),
    ],
)
def test_its_grade_is_the_share_of_the_users(reach: Reach | None, grade: Grade | None) -> None:
    found = said(CELL, recorded(CELL, reach))
    assert (found and found[0]) == grade


def test_in_an_open_load_they_are_connections() -> None:
    found = said(OPEN, recorded(OPEN, STUCK))
    assert found is not None
    assert "496 of 512 connections (96.9%)" in found[1]


def test_few_failed_requests_name_the_users_behind_them() -> None:
    recording = simulated_recording(CELL, replace(GOOD, outcomes={"timeout": 30}))
    assert recording.traffic is not None
    traffic = recording.traffic.model_copy(update={"reach": STUCK})
    (errors,) = (one for one in judge(CELL, recording.model_copy(update={"traffic": traffic})) if one.kind == "errors")
    assert errors.message.endswith("They left 496 of 512 users (96.9%) without any answer.")


def test_users_who_wait_since_before_the_measurement_break_no_law() -> None:
    """Their requests are in no histogram, so that 64 users look like 512 who are hardly busy."""
    recording = simulated_recording(CELL, GOOD)
    assert recording.traffic is not None
    kinds = {one.kind for one in judge(CELL, recording)}
    assert "littles-law" not in kinds
    few = simulated_recording(
        simulated_cell(load=Load(name="few", shape=Closed(users=16), duration_ns=MEASURE_NS)), GOOD
    )
    assert few.traffic is not None
    assert "littles-law" in {one.kind for one in judge(CELL, few)}
    first, *others = few.traffic.intervals
    counts = Counts.merged([first.counts, Counts(due=496)])
    held = few.traffic.model_copy(update={"intervals": (first.model_copy(update={"counts": counts}), *others)})
    assert first.phase == "warmup"
    assert "littles-law" not in {one.kind for one in judge(CELL, few.model_copy(update={"traffic": held}))}


def test_no_rule_blames_the_engine_for_what_a_server_may_have_done() -> None:
    blaming = {kind for kind, rule in RULES.items() if "fault of the engine" in rule.advice}
    assert blaming == {"arrivals"}, "what falls due is the engine's own"


def test_engines_on_several_hosts_count_together() -> None:
    recording = recorded(CELL, STUCK)
    assert recording.traffic is not None
    assert merged([recording.traffic] * 2, 10**8).reach == Reach(opened=1024, asked=1024, answered=32)
    older = recording.traffic.model_copy(update={"reach": None})
    assert merged([recording.traffic, older], 10**8).reach is None


def test_a_start_of_a_duet_that_left_users_unanswered_says_so() -> None:
    start = simulated_duet(0)
    assert start.traffic is not None
    first, second, *others = start.traffic.targets
    deaf = second.model_copy(update={"reach": STUCK})
    traffic = start.traffic.model_copy(update={"targets": (first, deaf, *others), "blocks": ()})
    lost = start.model_copy(update={"traffic": traffic})
    assert why_lost(lost, ("a", "b")) == "b left 496 of 512 connections (96.9%) without any answer"
    failed = deaf.counts.model_copy(update={"outcomes": deaf.counts.outcomes.model_copy(update={"timeout": 9999})})
    targets = (first, deaf.model_copy(update={"counts": failed}), *others)
    lost = lost.model_copy(update={"traffic": traffic.model_copy(update={"targets": targets})})
    message = failing([lost], ("a", "b"))
    assert message is not None
    assert "496 of 512 connections (96.9%) without any answer" in message


@pytest.mark.parametrize(
    ("waiting", "where"),
    [
        (248.0, "it did not accept them"),
        (247.0, ": 247 connections wait"),
        (50.0, ": 50 connections wait"),
        (49.0, "it accepted their"),
    ],
)
def test_half_of_them_in_the_queue_wait_there_and_a_tenth_does_not(waiting: float, where: str) -> None:
    """496 users have no answer."""
    found = said(CELL, recorded(CELL, STUCK, waiting))
    assert found is not None
    assert where in found[1]


def test_the_queue_is_that_of_the_measurement_or_else_the_nearest() -> None:
    times = {"unit": "1", "subject": "server", "kind": "gauge", "times_unix_ns": (0, 10, 15, 19, 20)}
    line = Series.model_validate({"name": "listen_queue", "values": (99.0, 4.0, 8.0, 6.0, 99.0), **times})
    assert users._usually(line, (10, 20)) == 6
    assert users._usually(line, (1, 9)) == line.most(1, 9)


def test_connections_of_a_duet_are_those_of_both_of_its_places() -> None:
    reaches = {0: Reach(opened=8, asked=8, answered=6), 2: Reach(opened=8, asked=8, answered=8)}
    targets = [SimpleNamespace(reach=reaches.get(place)) for place in range(3)]
    start = SimpleNamespace(traffic=SimpleNamespace(targets=targets))
    duet = SimpleNamespace(sides=(("A", (0, 2)), ("B", (1,))), starts=(start,))
    judged: Any = users.unanswered_in_duet.function
    (found,) = judged(duet)
    assert found.value == 2 / 16
    assert found.message.startswith("A left 2 of 16 ")
