"""Loads that a condition may end early, on several hosts: what is judged is what all of them report of a time."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from redline.errors import DriveError
from redline.extras.hosts import remote
from redline.extras.hosts.agent import HostReport
from redline.extras.hosts.remote import _FollowedLoad
from redline.model import Counts, Histogram, Interval, Outcomes, Role
from redline.ports import Drive, Endpoint
from redline.running.aborting import RequestedAbort
from redline.schema.abort_when import parse_abort_rule
from tests.fakes.recordings import simulated_cell, simulated_environment

LASTS_NS = 100_000_000


def line(index: int, *, ok: int = 0, failed: int = 0, lasts: int = 1, late_ns: int = 0, phase: str = "measure") -> str:
    """An engine's report of `lasts` intervals from this one on."""
    outcomes = Outcomes(ok=ok, unexpected_status=failed)
    times = Histogram.of([1e6] * outcomes.total)
    interval = Interval.model_validate(
        {
            "phase": phase,
            "index": index,
            "start_ns": index * LASTS_NS,
            "end_ns": (index + lasts) * LASTS_NS + late_ns,
            "counts": Counts(due=outcomes.total, outcomes=outcomes),
            "response": times,
            "service": times,
            "lateness": times,
            "engine_cpu_ns": 1,
        }
    )
    return json.dumps({"event": "interval", **interval.model_dump(mode="json")})


@dataclass(frozen=True)
class Answered:
    found: Any

    def result(self, within_s: float) -> Any:
        del within_s
        return self.found


@dataclass
class Told:
    """A load host whose lines are known beforehand: those of a turn are there when it is asked the next time."""

    name: str
    turns: Sequence[Sequence[str]]
    calls: list[str] = field(default_factory=list)
    role: Role = "load"
    _asked: int = 0

    @property
    def report(self) -> HostReport:
        return HostReport(self.name, "", "", ("", ""), simulated_environment(), None)

    def submit(self, method: str, *arguments: Any) -> Answered:
        self.calls.append(method)
        if method != "news_after":
            return Answered(None)
        self._asked += 1
        lines = [line for turn in self.turns[: self._asked] for line in turn]
        return Answered((tuple(lines[arguments[0] :]), self._asked >= len(self.turns)))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "FOLLOWED_S", 0)


def followed(rule: str, *hosts: Told) -> tuple[list[Interval], RequestedAbort]:
    """The intervals that these hosts reported, and the condition that read them."""
    abort = RequestedAbort([parse_abort_rule(rule)])
    told: list[Interval] = []

    def seen(interval: Interval) -> None:
        told.append(interval)
        abort.seen(interval)

    cell = simulated_cell().model_copy(update={"abort_when": (parse_abort_rule(rule),)})
    drive = Drive(
        log=Path("engine.log"),
        cell=cell,
        endpoint=Endpoint("10.0.0.1", 80),
        seed=1,
        cpus=(),
        workers=1,
        on_interval=seen,
        on_remote=abort.started_on_hosts,
    )
    _FollowedLoad(hosts, drive).until_it_ends()
    return told, abort


def shape(told: Sequence[Interval]) -> list[tuple[int, int, int]]:
    return [(part.start_ns // LASTS_NS, part.end_ns // LASTS_NS, part.counts.due) for part in told]


def test_requests_of_all_hosts_are_judged_together() -> None:
    turns = [[line(index, ok=2, failed=1)] for index in range(6)]
    hosts = Told("one", turns), Told("two", turns)
    told, abort = followed("errors > 30% for 200ms", *hosts)
    assert abort.done
    # Two intervals of both have the ten requests that show anything; those of one host had only six.
    assert [host.calls.count("interrupt") for host in hosts] == [1, 1]
    assert [host.calls.index("interrupt") for host in hosts] == [2, 2]
    assert shape(told)[:2] == [(0, 1, 6), (1, 2, 6)]


def test_a_host_that_fails_beside_others_is_a_part_of_all() -> None:
    failing = Told("one", [[line(index, failed=10)] for index in range(6)])
    right = Told("two", [[line(index, ok=90)] for index in range(6)])
    assert not followed("errors > 20% for 200ms", failing, right)[1].done


def test_a_time_is_told_once_all_hosts_have_reported_it() -> None:
    quick = Told("one", [[line(0, ok=1)], [line(1, ok=1)], [line(2, ok=1)], [], []])
    slow = Told("two", [[], [line(0, ok=1, lasts=2, late_ns=9)], [], [line(2, ok=1, late_ns=9)], []])
    told, _ = followed("errors > 5% for 10s", quick, slow)
    assert shape(told) == [(0, 2, 3), (2, 3, 2)]


def test_what_only_some_hosts_reported_is_told_at_the_end() -> None:
    told, _ = followed("errors > 5% for 10s", Told("one", [[line(0, ok=1)], []]), Told("two", [[], []]))
    assert shape(told) == [(0, 1, 1)]


def test_only_the_measurement_is_told() -> None:
    turns = [[line(0, ok=1, phase="warmup")], [line(1, ok=1)], [line(2, ok=1, phase="drain")]]
    assert shape(followed("errors > 5% for 10s", Told("one", turns))[0]) == [(1, 2, 1)]


def test_an_error_of_an_engine_names_its_host() -> None:
    error = json.dumps({"event": "error", "kind": "job", "message": "no files left", "hint": "raise the limit"})
    with pytest.raises(DriveError, match="two: no files left"):
        followed("errors > 5% for 1s", Told("one", [[]]), Told("two", [[error]]))


def test_a_load_without_a_condition_is_left_alone() -> None:
    host = Told("one", [[]])
    drive = Drive(
        log=Path("engine.log"),
        cell=simulated_cell(),
        endpoint=Endpoint("10.0.0.1", 80),
        seed=1,
        cpus=(),
        workers=1,
    )
    _FollowedLoad((host,), drive).until_it_ends()
    assert host.calls == []
