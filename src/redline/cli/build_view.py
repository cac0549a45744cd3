"""Show the progress of builds: a line for each command; on a terminal also its last output and elapsed time."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from redline.cli.panel import is_live
from redline.cli.show import insist
from redline.ports import Building, BuildOutcome

_SPINNER_COLUMNS = 15
"""Columns that the spinner and the time take."""


class BuildView:
    """Shows the progress of builds on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._is_live = is_live(console)
        self._servers: tuple[str, ...] = ()
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._task = self._bar.add_task("", visible=False)

    def __enter__(self) -> Self:
        if self._is_live:
            self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._is_live:
            self._bar.stop()

    def __call__(self, building: Building) -> None:
        """Show the build; its time counts from the start of its command."""
        begins = building.servers != self._servers
        self._servers = building.servers
        if begins and (len(building.servers) > 1 or not self._is_live):
            self._console.print(
                f"building {', '.join(building.servers)}", markup=False, highlight=False, soft_wrap=True
            )
        if begins:
            self._bar.reset(self._task, visible=True)
        self._bar.update(self._task, description=self._line(building))

    def _line(self, building: Building) -> str:
        more = len(building.servers) - 1
        text = f"building {building.servers[0]}{f' and {more} more' if more else ''}: {building.line}"
        return "".join(filter(str.isprintable, text))[: max(20, self._console.width - _SPINNER_COLUMNS)]


def print_failures(outcome: BuildOutcome, console: Console) -> None:
    """Print why builds failed: once for all servers that failed with the same error."""
    by_error: dict[str, list[str]] = {}
    for name, error in outcome.failures.items():
        by_error.setdefault(str(error), []).append(name)
    for message, names in by_error.items():
        insist(console, f"cannot build {', '.join(names)}: {message}", "yellow")
