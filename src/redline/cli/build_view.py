"""Shows what is being built: in one living line on a terminal, else with a line for each command."""

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from redline.ports import Building

_NAMED = 3


class BuildView:
    """What a launcher tells of its builds, on a console."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._servers: tuple[str, ...] = ()
        self._bar = Progress(
            SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn(), console=console, transient=True
        )
        self._task = self._bar.add_task("", visible=False)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._bar.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._console.is_terminal:
            self._bar.stop()

    def __call__(self, building: Building) -> None:
        """Show it; the time counts from the beginning of each command."""
        begins = building.servers != self._servers
        self._servers = building.servers
        if begins and self._console.is_terminal:
            self._bar.reset(self._task, visible=True)
        elif begins:
            self._console.print(f"building {', '.join(building.servers)}", markup=False, highlight=False)
        self._bar.update(self._task, description=escape(self._line(building)))

    def _line(self, building: Building) -> str:
        named = ", ".join(building.servers[:_NAMED])
        more = len(building.servers) - _NAMED
        text = f"building {named}{f' and {more} more' if more > 0 else ''}: {building.line}"
        return "".join(filter(str.isprintable, text))[: max(20, self._console.width - 15)]
