"""What loads show of themselves while they run goes to a meter, where `--openmetrics` and the like ask for one."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol

from rich.console import Console

from redline.cli.command_line import TelemetryFlags
from redline.model import Cell, DuetBlock, DuetRecording, Interval, Recording, Suite
from redline.model.traffic import Phase
from redline.ports import ServerUsage


class MeteredTrial(NamedTuple):
    """What is loaded: the slug of its cell, the trial, such as `trial-1`, and the slug of its server."""

    cell: str
    trial: str
    server: str

    @classmethod
    def of(cls, cell: Cell, trial: str) -> "MeteredTrial":
        """The trial of this name of a cell."""
        return cls(cell.slug, trial, cell.variant.slug)


class Meter(Protocol):
    """What follows the loads of a command."""

    def begin(self, *trials: MeteredTrial) -> None:
        """Note that trials begin."""

    def interval(self, trial: MeteredTrial, interval: Interval) -> None:
        """Take in an interval of a trial."""

    def usage(self, cell: Cell, phase: Phase, usage: ServerUsage) -> None:
        """Take in what a server used."""

    def block(self, trials: tuple[MeteredTrial, ...], block: DuetBlock) -> None:
        """Take in a block of a duet."""

    def check(self, suite: Suite) -> None:
        """Raise UsageError for a suite of which what is asked for cannot be shown."""

    def trial(self, trial: MeteredTrial, cell: Cell, recording: Recording) -> None:
        """Take in what was recorded of a trial that has ended."""

    def ended(self, trials: tuple[MeteredTrial, ...], cells: tuple[Cell, ...], duet: DuetRecording) -> None:
        """Take in how a duet of these cells ended; its last trial is the control."""


@contextmanager
def metered(flags: TelemetryFlags, console: Console) -> Iterator[Meter | None]:
    """The meter of a command, until it ends; None where nobody asks for it. Raises UsageError."""
    asked: dict[str, str | int | None] = {
        "--openmetrics": flags.openmetrics,
        "--otlp": flags.otlp,
        "--remote-write": flags.remote_write,
    }
    asked["--otlp-traces"] = getattr(flags, "otlp_traces", None)  # not of a bisection
    named = next((flag for flag, value in asked.items() if value is not None), None)
    if named is None:
        yield None
        return
    from redline.entry_points import extra  # noqa: PLC0415 - reading what is installed takes long

    with extra("telemetry", named)(flags, console) as meter:
        yield meter
