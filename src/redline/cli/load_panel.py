"""The panel of `redline load`: the rate, the response times, and their histogram so far."""

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from redline import render, report
from redline.cli.panel import Panel, fitted
from redline.cli.recent import RecentLoad, left_text
from redline.document.format import quantile_name, rate
from redline.driving.ahead import time_for_imports_ns
from redline.model import Cell, Histogram, Interval
from redline.quantities import duration, integer
from redline.report.bars import sparkline


class LoadPanel(Panel):
    """What a load on a server shows while it runs. Its histogram holds what was measured, without the warm-up."""

    def __init__(self, cell: Cell, console: Console, *, alive: bool = True) -> None:
        super().__init__(
            console, alive=alive, on_interrupt="ending the load early; Ctrl-C again stops without a result"
        )
        self._cell = cell
        self._course = RecentLoad()
        self._times = Histogram()
        self._more: list[Histogram] = []
        self._latest: Interval | None = None
        self._measured_from_ns: int | None = None
        self._due = 0
        if self.is_live and time_for_imports_ns(cell) <= 0:  # else what shows times is imported then
            render.as_text([report.histogram_section(self._times)], console)

    @property
    def has_answer(self) -> bool:
        """Whether anything has been measured."""
        return self._measured_from_ns is not None

    def seen(self, interval: Interval) -> None:
        """Show another interval."""
        if not self.is_shown:
            return
        self._latest = interval
        self._course.add(interval)
        if interval.phase != "warmup":
            if self._measured_from_ns is None:
                self._measured_from_ns = interval.start_ns
            self._more.append(interval.response)
            self._due += interval.counts.due
        self.show(self._lines)

    def _lines(self, console: Console) -> Iterator[Text]:
        interval = self._latest
        if interval is None:
            return
        yield self._progress(console, interval)
        yield load_line(console, "", self._course, has_bars=self.is_live)
        more, self._more = self._more, []  # before they are merged: another thread may add to them meanwhile
        self._times = Histogram.merged((self._times, *more))
        if self._times.count and self.is_live:
            table = render.as_text([report.histogram_section(self._times)], console)
            yield from table.split("\n")

    def _progress(self, console: Console, interval: Interval) -> Text:
        if interval.phase == "drain":
            return fitted(console, ("waiting for the last answers", "bold"))
        cell, begun_ns = self._cell, self._measured_from_ns
        detects = cell.warmup_detect and begun_ns is None
        ends_ns = (cell.warmup_ns if begun_ns is None else begun_ns) + cell.load.duration_ns
        seconds = f"{interval.end_ns / 1e9:.1f} s of {duration(ends_ns)}"
        if cell.load.count is not None:
            seconds = f"{integer(self._due)} of {integer(cell.load.count)} requests"
        left = left_text(ends_ns - interval.end_ns, at_most=detects or cell.load.count is not None)
        return fitted(console, (interval.phase, "bold"), (left, ""), (seconds, "dim"))


def load_line(console: Console, what: str, course: RecentLoad, *, has_bars: bool = True) -> Text:
    """What is done, and the latest rate and response times, with a bar for each rate before if it `has_bars`."""
    if course.last is None:
        return fitted(console, (what, ""))
    speed = [(text, "") for text in speed_text(course.last, 0.5, 0.99, waiting=course.waiting).split("  ")]
    errors = course.last.counts.outcomes.errors
    failed = (f"errors {integer(errors)}", "red") if errors else None
    return fitted(console, (what, ""), *speed, failed, (sparkline(course.rates), "cyan") if has_bars else None)


def speed_text(interval: Interval, *quantiles: float, waiting: int = 0) -> str:
    """`20.1 k/s  p99 1.20 ms`: the rate, and the response times that are known.

    `waiting`: the requests that were due before its end and have not ended. Without any, nothing can be answered.
    """
    if not interval.counts.completed:
        if interval.counts.outcomes.total:
            return "no right answers"
        return "no answers yet" if waiting else "nothing is due"
    times = zip(quantiles, interval.response.quantiles_ns(quantiles), strict=True) if interval.response.count else ()
    per_s = rate(interval.counts.completed / max(interval.lasts_ns, 1) * 1e9)
    return "  ".join([per_s, *(f"{quantile_name(q)} {duration(ns)}" for q, ns in times)])
