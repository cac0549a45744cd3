"""What a user sees while trials run: one live line on a terminal, one line a trial elsewhere. On stderr."""

import time
from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.text import Text

from redline.cli.one_line import OneLine
from redline.findings import judge
from redline.model import Cell, Finding, Grade, Interval, Plan, PlannedTrial, Recording
from redline.report.format import GRADE_MARKS, duration, rate
from redline.suite import expected_length_ns

_COLOURS = {Grade.INVALID: "red", Grade.WARN: "yellow", Grade.NOTE: "blue"}


class Progress:
    """A Watcher that shows cell, trial, rate, p99, findings so far and the time left."""

    def __init__(self, plan: Plan, done: int, console: Console) -> None:
        self._plan = plan
        self._done = done
        self._begun_with = done
        self._console = console
        self._begun = time.monotonic()
        self._grades: Counter[Grade] = Counter()
        self._line = OneLine(console)

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._line.__exit__(kind, error, trace)

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """Show which trial is on."""
        self._show(f"{cell.slug}  round {planned.round + 1}  starting the server")

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """Show how it goes."""
        seconds = (interval.end_ns - interval.start_ns) / 1e9
        if seconds <= 0:
            return
        cell = self._plan.cells[planned.cell_id]
        self._show(
            f"{cell.slug}  round {planned.round + 1}  {interval.phase}"
            f"  {rate(interval.counts.completed / seconds)}  p99 {duration(interval.response.quantile_ns(0.99))}"
        )

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """Count it, and say at once what is doubtful about it."""
        self._done += 1
        findings = judge(cell, recording)
        self._grades.update(finding.grade for finding in findings)
        serious = [finding for finding in findings if finding.grade is not Grade.NOTE]
        if serious or not self._console.is_terminal:
            self._console.print(self._ended(recording, cell, serious), highlight=False)

    def _ended(self, recording: Recording, cell: Cell, findings: list[Finding]) -> Text:
        text = Text(f"[{self._done}/{len(self._plan.trials)}] {cell.slug}")
        if recording.traffic:
            p99 = duration(recording.traffic.response.quantile_ns(0.99))
            text.append(f"  {rate(recording.traffic.rate_per_s)}  p99 {p99}")
        for finding in findings:
            text.append(f"\n    {GRADE_MARKS[finding.grade]} {finding.message}", style=_COLOURS[finding.grade])
        return text

    def _show(self, current: str) -> None:
        line = Text(f"[{self._done + 1}/{len(self._plan.trials)}] ", style="bold")
        line.append(current)
        for grade, colour in _COLOURS.items():
            if self._grades[grade]:
                line.append(f"  {self._grades[grade]} {GRADE_MARKS[grade]}", style=colour)
        line.append(f"  {duration(self._left_ns())} left", style="dim")
        self._line.show(line)

    def _left_ns(self) -> int:
        """From the pace so far, and from the plan as long as there is none."""
        done_here = self._done - self._begun_with
        remaining = len(self._plan.trials) - self._done
        if done_here == 0:
            return expected_length_ns(self._plan) * remaining // max(1, len(self._plan.trials))
        return int((time.monotonic() - self._begun) * 1e9 / done_here * remaining)
