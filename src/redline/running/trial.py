"""One trial: start, verify, warm up, measure, stop. One page, because its order is the method."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from redline.errors import LaunchError
from redline.model import Cell, Failure, Interval, PlannedTrial, Recording, Stage
from redline.ports import RunningServer
from redline.running.record import LoadOptions, Tools, failure_of, new_recording, record_load, verify


class TrialListener(Protocol):
    """Follows the trials of a run, to show them."""

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """A trial begins: its server is about to be started."""
        ...

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """The engine reported one more interval."""
        ...

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """The trial's recording is stored."""
        ...


@dataclass
class TrialExecution:
    """One execution of a cell on a freshly started server."""

    planned: PlannedTrial
    cell: Cell
    tools: Tools
    logs: Path
    on_interval: Callable[[Interval], None]
    _stages_ns: dict[Stage, int] = field(default_factory=dict)

    def run(self) -> Recording:
        """Run it. What goes wrong with the server or the load is in the recording.

        Raises KeyboardInterrupt, and StoreError when a log cannot be written: the next trial's could not be either.
        """
        empty, started_ns = new_recording(self.planned), time.monotonic_ns()
        try:
            found = self._measured(empty)
        except LaunchError as error:
            found = _failed(empty, failure_of("launch", error.kind, error, error.log_tail))
        if found.failure is not None:  # the budget of a suite counts the time of a stage that failed too
            spent_ns = time.monotonic_ns() - started_ns - sum(self._stages_ns.values())
            self._stages_ns.setdefault(found.failure.stage, spent_ns)
        return found.model_copy(
            update={"started_unix_ns": empty.started_unix_ns, "stages_ns": self._stages_ns},
        )

    def _measured(self, empty: Recording) -> Recording:
        lap = _laps(self._stages_ns)
        log = self.logs / "server.log"
        with self.tools.launcher.running(self.cell.variant, self.tools.placement, log) as server:
            lap("launch")
            wrong = verify(self.cell, server, self.tools.driver)
            lap("verify")
            if wrong is None:
                found = self._loaded(server, log)
                lap("load")
            else:
                found = _failed(empty, wrong, server)
        lap("stop")
        return found

    def _loaded(self, server: RunningServer, log: Path) -> Recording:
        options = LoadOptions(log=self.logs / "engine.log", server_log=log, on_interval=self.on_interval)
        return record_load(self.cell, self.planned, server, self.tools, options)


def _failed(empty: Recording, failure: Failure, server: RunningServer | None = None) -> Recording:
    """The recording of a trial that came to no load."""
    return empty.model_copy(update={"failure": failure, "server": server and server.facts})


def _laps(stages_ns: dict[Stage, int]) -> Callable[[Stage], None]:
    """Note, at the end of each stage, how long it took."""
    last = time.monotonic_ns()

    def lap(stage: Stage) -> None:
        nonlocal last
        now = time.monotonic_ns()
        stages_ns[stage], last = now - last, now

    return lap
