"""Monitors of other packages: what they see is kept apart, and where they fail they harm nothing."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from threading import Event

import pytest

from redline import entry_points
from redline.analysis.watched import watched_series
from redline.errors import UsageError
from redline.findings import judge
from redline.model import Recording, Series
from redline.render import RENDERERS, summary
from redline.running import own_monitors
from redline.running.own_monitors import OwnMonitor, failures_of
from redline.stats import Trial
from tests.fakes import reports
from tests.fakes.plugins import FakeServer
from tests.fakes.recordings import SATURATE, simulated_cell, simulated_recording

POINT = EntryPoint("queue", f"{__name__}:Queue", own_monitors.GROUP)


def series(name: str = "waiting", *values: float, times: tuple[int, ...] = ()) -> Series:
    given = values or (1.0, 2.0)
    return Series(
        name=name,
        unit="requests",
        subject="server",
        kind="gauge",
        times_unix_ns=times or tuple(range(len(given))),
        values=given,
    )


class Queue:
    """A monitor that does what the test tells it."""

    perturbs = False
    gives: Callable[[], object] = staticmethod(lambda: (series(),))

    def __init__(self, server: object) -> None:
        self.server = server

    def follow(self, subject: str, pid: int) -> None:
        assert (subject, pid) == ("server", 7), "told of another process"

    def finish(self) -> object:
        return type(self).gives()


def made(kind: Callable[[object], object]) -> OwnMonitor:
    return OwnMonitor(entry_points.Extension(POINT, "monitor", "page"), kind, FakeServer())


def test_its_series_are_named_after_it() -> None:
    monitor = made(Queue)
    monitor.follow("server", 7)
    assert [it.name for it in monitor.finish()] == ["queue.waiting"]
    assert (monitor.failure, monitor.runtime((0, 1), None)) == ("", None)
    assert failures_of((monitor,)) == {}


@pytest.mark.parametrize(
    ("gives", "words"),
    [
        (lambda: 1 / 0, "ZeroDivisionError: division by zero (test_own_monitors.py:"),
        (lambda: None, "'NoneType' object is not iterable"),
        (lambda: ["a"], "gave str in place of redline.model.Series"),
        (lambda: (series("cpu.ns"),), "'cpu.ns' is not named in lower-case letters"),
        (lambda: (series(), series()), "it gave 2 series queue.waiting of the server"),
        (lambda: (series("waiting", 1.0, float("nan")),), "Input should be a finite number"),
        (lambda: (series("waiting", 1.0, 2.0, times=(2, 1)),), "do not ascend"),
    ],
)
def test_where_finish_fails_there_are_no_series_and_a_reason(gives: Callable[[], object], words: str) -> None:
    monitor = made(type("Failing", (Queue,), {"gives": staticmethod(gives)}))
    assert monitor.finish() == ()
    assert words in failures_of((monitor,))["queue"]


def test_the_first_failure_is_kept_and_costs_all_series() -> None:
    monitor = made(Queue)
    monitor.follow("engine", 8)
    assert monitor.finish() == ()
    assert "told of another process" in monitor.failure


def test_what_cannot_be_made_watches_nothing() -> None:
    def refusing(_server: object) -> object:
        raise OSError("no queue")

    monitor = made(refusing)
    monitor.follow("server", 7)
    assert monitor.finish() == ()
    assert monitor.failure.startswith("OSError: no queue")
    assert "is str, not bool" in made(type("Odd", (Queue,), {"perturbs": "no"})).failure
    assert made(type("Slowing", (Queue,), {"perturbs": True})).perturbs


def test_a_monitor_that_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_monitors, "FINISHED_WITHIN_S", 0.01)
    ended = Event()
    hanging = type("Hanging", (Queue,), {"gives": staticmethod(lambda: ended.wait(10) and (series(),))})
    monitor = made(hanging)
    assert monitor.finish() == ()
    assert "had not returned after 0.01 s" in monitor.failure
    ended.set()


@pytest.mark.parametrize(
    ("points", "words", "hint"),
    [
        ((), "there is no monitor queue", "install the package that brings it: docs/guide/own-monitors.md"),
        ((("queues", "json:loads"),), "there is no monitor queue", "did you mean `queues`?"),
        ((("queue", "json:loads"), ("queue", "json:dumps")), "several packages bring a monitor queue", "uninstall all"),
        ((("queue", "no_such_module:x"),), "cannot be loaded: ModuleNotFoundError", "tell the authors"),
        ((("queue", "json:nothing"),), "cannot be loaded: AttributeError", "tell the authors"),
        ((("queue", "json:__name__"),), "cannot be called: `json:__name__` is str", "tell the authors"),
    ],
)
def test_what_cannot_be_had_is_said_before_anything_starts(
    points: tuple[tuple[str, str], ...], words: str, hint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = EntryPoints(EntryPoint(name, value, own_monitors.GROUP) for name, value in points)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda *, group: known.select(group=group))
    with pytest.raises(UsageError) as refused:
        own_monitors.own_monitors(("queue",))
    assert words in refused.value.message
    assert hint in refused.value.hint


def watched(*values: float, failed: dict[str, str] | None = None) -> Recording:
    recording = simulated_recording(simulated_cell(load=SATURATE))
    assert recording.traffic is not None
    start, end = recording.traffic.window_unix_ns
    step = (end - start) // (len(values) + 1)
    times = tuple(start + step * (place + 1) for place in range(len(values)))
    own = [series("queue.waiting", *values, times=times)] if values else []
    before = series("queue.early", 99.0, times=(start - 1,))
    return recording.model_copy(update={"series": (*recording.series, *own, before), "failed_monitors": failed or {}})


def test_reports_say_what_lies_within_the_measurement() -> None:
    waiting, early = watched_series([Trial(watched(1.0, 3.0)), Trial(watched(6.0)), Trial(watched(10.0, 30.0))])
    assert (waiting.name, waiting.trials) == ("queue.waiting", 3)
    assert (waiting.middle, waiting.lowest, waiting.highest, waiting.most) == (6.0, 2.0, 20.0, 30.0)
    assert (early.name, early.trials, early.middle, early.most) == ("queue.early", 0, None, None)


def test_a_failure_is_a_note() -> None:
    cell = simulated_cell(load=SATURATE)
    (finding,) = [it for it in judge(cell, watched(failed={"queue": "OSError: gone"})) if it.kind == "monitor-failed"]
    assert (finding.grade.value, "queue: OSError: gone." in finding.message) == ("note", True)
    assert not [it for it in judge(cell, watched(1.0)) if it.kind == "monitor-failed"]


def test_every_format_shows_it() -> None:
    report = reports.healthy()
    seen = watched_series([Trial(watched(1.0, 3.0))])
    cells = (report.cells[0].model_copy(update={"watched": seen}), *report.cells[1:])
    shown = report.model_copy(update={"cells": cells})
    assert "What monitors saw" in {section.title for section in summary(shown)}
    for form in ("md", "html"):
        text = RENDERERS[form](shown).decode()
        assert "What monitors saw" in text
        assert "queue.waiting" in text
    memory = seen[0].model_copy(update={"unit": "B", "middle": 3.5 * 2**20})
    of_bytes = cells[0].model_copy(update={"watched": (memory,)})
    assert "3.50 MiB" in RENDERERS["md"](shown.model_copy(update={"cells": (of_bytes,)})).decode()
    assert "queue.waiting:server,2.0,,," in RENDERERS["csv"](shown).decode()
