"""What watches a duet: the machine and the engine once, and of each server what disturbs it and grows."""

from typing import Any

from redline.model import Series
from redline.running.duet import _Monitors
from tests.fakes.plugins import FakeDriver, FakeServer
from tests.unit.running.test_record_failures import tools_of


class Monitor:
    """Keeps what it follows, and gives these series."""

    def __init__(self, *named: tuple[str, str]) -> None:
        self.named, self.followed = named, list[tuple[str, int]]()

    def follow(self, subject: str, pid: int) -> None:
        self.followed.append((subject, pid))

    def finish(self) -> tuple[Series, ...]:
        kind: dict[str, Any] = {"unit": "1", "kind": "counter", "times_unix_ns": (1,), "values": (1.0,)}
        return tuple(Series.model_validate({"name": name, "subject": subject, **kind}) for subject, name in self.named)


def watching(*monitors: tuple[Monitor, ...]) -> _Monitors:
    servers = [FakeServer()] * len(monitors)
    return _Monitors(servers, tools_of(FakeDriver([]), duet_monitors=lambda _servers: monitors))


def test_the_first_servers_monitors_follow_the_engine() -> None:
    first, second = Monitor(), Monitor()
    made = watching((first,), (second,))
    made.begin([(7,), (8,)])
    made.started(99)
    assert first.followed == [("server", 4321), ("engine", 99)]
    assert second.followed == [("server", 4321)]
    watching().started(99)
    assert watching().finish() == ((), ())


def test_series_are_divided_into_those_around_and_those_of_each_server() -> None:
    first = Monitor(("machine", "busy_ns"), ("engine", "cpu_ns"), ("server", "cpu_ns"), ("server", "preemptions"))
    second = Monitor(("machine", "steal_ns"), ("server", "rss_bytes"), ("hop-1", "cpu_ns"))
    around, own = watching((first,), (second,)).finish()
    assert [(line.subject, line.name) for line in around] == [("machine", "busy_ns"), ("engine", "cpu_ns")]
    assert [[(line.subject, line.name) for line in of_one] for of_one in own] == [
        [("server", "cpu_ns")],
        [("server", "rss_bytes"), ("hop-1", "cpu_ns")],
    ]
