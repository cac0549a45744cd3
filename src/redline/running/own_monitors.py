"""Monitors of other packages: named by a suite, made for each trial, and kept from harming what they watch.

A package brings a monitor by an entry point of the group `redline.monitors`: docs/guide/own-monitors.md.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

from redline.entry_points import Extension, extension
from redline.model import RuntimeFacts, Series, Subject
from redline.ports import Monitor, RunningServer

GROUP = "redline.monitors"
PAGE = "docs/guide/own-monitors.md"
FINISHED_WITHIN_S = 5.0
"""A monitor that takes longer to end is left behind: the recording must not wait for it."""
_NAME = re.compile(r"[a-z][a-z0-9_]*")


class OwnMonitor:
    """A monitor of another package. Where it fails it says so in `failure`, and never raises.

    Its series are named `MONITOR.SERIES`, so that none takes the place of one of Redline's own.
    """

    def __init__(self, brought: Extension, make: Callable[[RunningServer], Any], server: RunningServer) -> None:
        self.name = brought.point.name
        self.failure = ""
        self.perturbs = False
        self._brought = brought
        self._inner: Any = None
        self._tried(lambda: self._begin(make(server)))

    def follow(self, subject: Subject, pid: int) -> None:
        """Tell it of a process."""
        if self._inner is not None:
            self._tried(lambda: self._inner.follow(subject, pid))

    def finish(self) -> tuple[Series, ...]:
        """End it, and return its series; none if it failed at any time."""
        found: list[tuple[Series, ...]] = []
        if self._inner is not None:
            ending = Thread(target=self._tried, args=(lambda: found.append(self._ended()),), daemon=True)
            ending.start()
            ending.join(FINISHED_WITHIN_S)
            if ending.is_alive():
                self.failure = self.failure or f"its `finish` had not returned after {FINISHED_WITHIN_S:g} s"
        return found[0] if found and not self.failure else ()

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> RuntimeFacts | None:
        """Return None: what a runtime says of its collector is read by Redline's own monitors."""
        del window_unix_ns, server_log
        return None

    def _begin(self, inner: Any) -> None:
        self._inner = inner
        if not isinstance(inner.perturbs, bool):
            raise TypeError(f"`perturbs` is {type(inner.perturbs).__name__}, not bool")
        self.perturbs = inner.perturbs

    def _ended(self) -> tuple[Series, ...]:
        checked = tuple(self._checked(series) for series in self._inner.finish())
        for (name, subject), times in Counter((series.name, series.subject) for series in checked).items():
            if times > 1:
                raise ValueError(f"it gave {times} series {name} of the {subject}")
        return checked

    def _checked(self, series: object) -> Series:
        if not isinstance(series, Series):
            raise TypeError(f"`finish` gave {type(series).__name__} in place of redline.model.Series")
        if not _NAME.fullmatch(series.name):
            raise ValueError(f"the series {series.name!r} is not named in lower-case letters, digits and _")
        if any(later < sooner for sooner, later in pairwise(series.times_unix_ns)):
            raise ValueError(f"the times of the series {series.name} do not ascend")
        return series.of_monitor(self.name)

    def _tried(self, step: Callable[[], object]) -> None:
        """Do a step of it; the first error is kept."""
        try:
            step()
        except Exception as error:  # noqa: BLE001 - whatever it raises, the trial goes on
            self.failure = self.failure or self._brought.reason(error)


def own_monitors(names: Iterable[str]) -> Callable[[RunningServer], tuple[Monitor, ...]]:
    """Return a function that makes these monitors for a load on a server.

    Raises UsageError where a monitor is missing, brought by several packages, or cannot be loaded.
    """
    loaded = [(found, found.load()) for found in (extension(GROUP, name, "monitor", PAGE) for name in names)]
    return lambda server: tuple(OwnMonitor(found, make, server) for found, make in loaded)


def failures_of(monitors: Iterable[Monitor]) -> dict[str, str]:
    """Why monitors of other packages failed, by name."""
    return {it.name: it.failure for it in monitors if isinstance(it, OwnMonitor) and it.failure}
