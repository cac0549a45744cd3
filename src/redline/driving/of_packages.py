"""Drivers of other packages: programs that speak the engine's protocol, in place of the engine while it loads.

A package brings a driver by an entry point of the group `redline.drivers`: docs/guide/own-drivers.md.
"""

from pathlib import Path

from redline.driving.engine import EngineDriver
from redline.entry_points import Extension, extension
from redline.errors import DriveError, UsageError
from redline.model import Cell, DuetTraffic, Traffic
from redline.ports import Drive, Driver, DuetDrive, Endpoint, NoResultError

GROUP = "redline.drivers"
PAGE = "docs/guide/own-drivers.md"


class OwnDriver:
    """Loads servers by a program of another package; the engine verifies answers and compares them."""

    def __init__(self, brought: Extension, engine: Driver) -> None:
        self._brought, self._engine = brought, engine
        self._loads_by = EngineDriver(*_command(brought))

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        """Have the engine compare the whole answer. Raises DriveError."""
        return self._engine.verify(cell, endpoint)

    def differ(self, cell: Cell, names: tuple[str, str], endpoints: tuple[Endpoint, Endpoint]) -> str | None:
        """Have the engine compare the answers of two servers. Raises DriveError."""
        return self._engine.differ(cell, names, endpoints)

    def drive(self, drive: Drive) -> Traffic:
        """Have the program load the server. Raises DriveError if it gives no result, or one that cannot be."""
        try:
            traffic = self._loads_by.drive(drive)
        except NoResultError as error:
            message = f"{self._brought} gave no result: {error.message}"
            raise NoResultError(message, hint=self._brought.hint, traffic=error.traffic) from error
        except DriveError as error:
            raise DriveError(f"{self._brought}: {error.message}", hint=error.hint) from error
        measured = [interval.counts for interval in traffic.intervals if interval.phase != "warmup"]
        due = sum(counts.due for counts in measured)
        if due != traffic.counts.due:
            message = (
                f"{self._brought}: {due} requests fell due in its intervals, and {traffic.counts.due} in its result"
            )
            raise DriveError(message, hint=self._brought.hint)
        # Whatever it calls itself; and CPU time is what Redline's own monitors see.
        return traffic.driven_by(self._brought.point.name, self._brought.version)

    def duet(self, drive: DuetDrive) -> DuetTraffic:
        """Raise DriveError: no suite with a driver has duets."""
        del drive
        raise DriveError(f"{self._brought} loads one server at a time", hint="write `design: interleaved`")


def own_driver(name: str, engine: Driver) -> OwnDriver:
    """Return the driver of this name. Raises UsageError where it is missing, brought twice, or cannot be had."""
    return OwnDriver(extension(GROUP, name, "driver", PAGE), engine)


def _command(brought: Extension) -> tuple[Path, *tuple[str, ...]]:
    """Return the program and its arguments. Raises UsageError."""
    make = brought.load()
    try:
        words = make()
    except Exception as error:
        raise UsageError(f"{brought} gave no command: {brought.reason(error)}", hint=brought.hint) from error
    if not isinstance(words, list | tuple) or not words or not all(isinstance(word, str) for word in words):
        raise UsageError(f"{brought} gave no command: it is {words!r:.100}, not a list of texts", hint=brought.hint)
    return Path(words[0]), *words[1:]
