"""Counters per request of compared servers: what surely changed, what surely did not."""

from collections.abc import Sequence

import numpy as np
import pytest

from redline.analysis import build_report
from redline.model import CounterChange, DuetRecording, Series
from redline.profiles.counters import counter_changes
from redline.render.renderers import as_markdown
from tests.fakes.duets import simulated_duet
from tests.unit.profiles.test_why import sampled_run

WAITS, PREEMPTIONS = "context_switches_voluntary", "context_switches_involuntary"
THRESHOLD = 0.02


def start(
    number: int,
    waits: Sequence[float],
    *,
    noise: float = 0.001,
    threads: Sequence[int] = (4, 4, 4),
    counted: str = WAITS,
) -> DuetRecording:
    """A start whose servers wait so many times per request, or do so often what else is counted."""
    made, rng = simulated_duet(number), np.random.default_rng(number)
    assert made.traffic is not None
    slices = [one for block in made.traffic.blocks for one in block.slices]
    own = []
    for place, per_request in enumerate(waits):
        rate = per_request * float(np.exp(rng.normal(0, noise)))
        times, values, total = [made.traffic.epoch_unix_ns + slices[0].start_ns - 10**9], [5.0], 5.0
        for one in slices:
            total += one.completed * rate if one.target == place else 0
            times.append(made.traffic.epoch_unix_ns + one.end_ns)
            values.append(total)
        own.append(
            (
                Series(
                    subject="server",
                    name=counted,
                    unit="1",
                    kind="counter",
                    times_unix_ns=tuple(times),
                    values=tuple(values),
                ),
                Series(
                    subject="server",
                    name="threads",
                    unit="1",
                    kind="gauge",
                    times_unix_ns=tuple(times[:2]),
                    values=(1.0, float(threads[place])),
                ),
            )
        )
    return made.model_copy(update={"server_series": tuple(own)})


def changes(starts: Sequence[DuetRecording]) -> dict[str, CounterChange]:
    return {change.name.partition(" ")[0]: change for change in counter_changes(starts, (), 1, THRESHOLD)}


def test_a_wait_more_per_request_surely_changed() -> None:
    found = changes([start(number, (2.0, 3.0, 2.0)) for number in range(6)])["waits"]
    assert found.changed == "surely"
    assert found.before == pytest.approx(2, rel=0.02)
    assert found.after == pytest.approx(3, rel=0.02)
    assert found.difference.low is not None
    assert found.difference.high is not None
    assert found.difference.low < 1 < found.difference.high
    assert found.difference.n == 6


@pytest.mark.parametrize(
    ("series", "name"),
    [
        ("minor_faults", "page faults without a disk (minor)"),
        ("major_faults", "page faults from a disk (major)"),
        ("compiler_cpu_ns", "compiling by the JVM, CPU time"),
        ("collector_cpu_ns", "collecting by the JVM, CPU time"),
        ("safepoints", "pauses of the JVM (safepoints)"),
        ("safepoint_ns", "time in pauses of the JVM"),
    ],
)
def test_faults_and_what_a_jvm_does_beside_are_counted_per_request(series: str, name: str) -> None:
    starts = [start(number, (2.0, 3.0, 2.0), counted=series) for number in range(6)]
    (found,) = (change for change in counter_changes(starts, (), 1, THRESHOLD) if change.name == name)
    assert (found.changed, found.per_request) == ("surely", True)
    assert found.difference.value == pytest.approx(1, rel=0.05)


def test_system_calls_are_those_of_sampled_starts_and_rare_ones_have_no_row() -> None:
    plain = [start(number, (9.0, 1.0, 9.0), counted="syscalls:read") for number in range(6)]
    sampled = [start(number, (2.0, 3.0, 2.0), counted="syscalls:read") for number in range(6)]
    rare = [start(number, (0.001, 0.002, 0.001), counted="syscalls:brk") for number in range(6)]
    found = [one for one in counter_changes(plain, sampled, 1, THRESHOLD) if one.name.startswith("system")]
    assert [(one.name, one.changed, one.per_request) for one in found] == [("system calls: read", "surely", True)]
    assert found[0].difference.value == pytest.approx(1, rel=0.05)
    assert not [one for one in counter_changes(plain, rare, 1, THRESHOLD) if one.name.startswith("system")]


def test_connections_that_are_opened_again_are_counted_of_the_measurement() -> None:
    def reopened(made: DuetRecording) -> DuetRecording:
        assert made.traffic is not None
        targets = list(made.traffic.targets)
        blocks = [block for block in made.traffic.blocks if block.phase == "measure"]
        completed = sum(one.completed for block in blocks for one in block.slices if one.target == 1)
        counts = targets[1].counts.model_copy(update={"reconnects": completed // 2})
        targets[1] = targets[1].model_copy(update={"counts": counts})
        return made.model_copy(update={"traffic": made.traffic.model_copy(update={"targets": tuple(targets)})})

    starts = [start(number, (2.0, 2.0, 2.0)) for number in range(4)]
    equal, closing = changes(starts)["connections"], changes([reopened(one) for one in starts])["connections"]
    assert (equal.before, equal.after, equal.changed) == (0.0, 0.0, "surely not")
    assert closing.changed == "surely"
    assert closing.after == pytest.approx(0.5, rel=0.01)


def test_equal_servers_surely_did_not_change() -> None:
    found = changes([start(number, (2.0, 2.0, 2.0)) for number in range(6)])
    assert (found["waits"].changed, found["threads"].changed) == ("surely not", "surely not")


def test_what_scatters_is_not_decided() -> None:
    assert changes([start(number, (2.0, 2.0, 2.0), noise=0.2) for number in range(6)])["waits"].changed == "not decided"


def test_a_sure_difference_below_the_threshold_surely_did_not_change() -> None:
    found = changes([start(number, (2.0, 2.01, 2.0), noise=0.0) for number in range(6)])["waits"]
    assert found.p_adjusted < 0.05
    assert found.changed == "surely not"


def test_equal_servers_are_called_different_in_one_of_twenty_at_most() -> None:
    rounds = [
        changes([start(10 * number + one, (2.0, 2.0, 2.0), noise=0.05) for one in range(5)]) for number in range(60)
    ]
    assert sum(found["waits"].changed == "surely" for found in rounds) <= 3


def test_levels_at_the_end_are_not_per_request() -> None:
    found = changes([start(number, (2.0, 2.0, 2.0), threads=(4, 9, 4)) for number in range(3)])["threads"]
    assert (found.changed, found.before, found.after, found.per_request) == ("surely", 4.0, 9.0, False)


def test_two_starts_or_servers_without_series_say_nothing() -> None:
    starts = [start(number, (2.0, 3.0, 2.0)) for number in range(3)]
    assert changes(starts[:2]) == {}
    assert "waits" not in changes([one.model_copy(update={"server_series": ()}) for one in starts])


def test_the_report_has_them_in_one_table_with_what_changed_first() -> None:
    run = sampled_run()
    series = [start(number, (2.0, 3.0, 2.0)).server_series for number in range(len(run.duets))]
    duets = tuple(duet.model_copy(update={"server_series": own}) for duet, own in zip(run.duets, series, strict=True))
    text = as_markdown(build_report(run.model_copy(update={"duets": duets}))).decode()
    rows = [line for line in text.splitlines() if line.startswith("| threads at the end")]
    assert len(rows) == 1
    assert rows[0].endswith("| surely not |")
    assert "what else differs" in text
    note = "Other counts than bytes received and connections opened again are those of whole starts, warm-up included."
    assert note in text
    assert note not in as_markdown(build_report(run)).decode()
