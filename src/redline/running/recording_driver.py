"""A driver whose loads are watched, as those of trials are: what engine and machine did to each can be judged."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from redline.findings import judge_probe
from redline.model import Cell, Finding, Recording, ServerFacts, Traffic
from redline.ports import Drive, Driver, Endpoint, Probe


@dataclass
class WatchedDriver:
    """Another driver, and `probes` that are made anew for each load. `server` is whom the load is for, if known."""

    driver: Driver
    probes: Callable[[], tuple[Probe, ...]]
    server: ServerFacts | None = None
    _recording: Recording | None = None
    _cell: Cell | None = None

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """What the other driver says."""
        return self.driver.verify(cell, endpoint)

    def drive(self, drive: Drive) -> Traffic:
        """Watched from before its start to its end. Raises what the other driver does."""
        probes, started_unix_ns, tell = self.probes(), time.time_ns(), drive.on_start
        self._recording, self._cell = None, drive.cell

        def follow(pid: int) -> None:
            tell(pid)
            for probe in probes:
                probe.follow("engine", pid)

        if self.server is not None:
            for probe in probes:
                probe.follow("server", self.server.pid)
        try:
            traffic = self.driver.drive(replace(drive, on_start=follow))
        finally:
            series = tuple(each for probe in probes for each in probe.finish())
        self._recording = Recording(
            cell_id=drive.cell.id,
            round=0,
            position=0,
            seed=drive.seed,
            started_unix_ns=started_unix_ns,
            server=self.server,
            traffic=traffic,
            series=series,
        )
        return traffic

    def findings(self, cell_id: str, position: int) -> tuple[Finding, ...]:
        """About the last load, as of the probe of that position of a cell."""
        if self._recording is None or self._cell is None:
            return ()
        found = judge_probe(self._cell, self._recording)
        return tuple(each.model_copy(update={"cell_id": cell_id, "position": position}) for each in found)
