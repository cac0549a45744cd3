"""Progress on stderr while servers are built, trials are run and limits are searched."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from redline.asking import places
from redline.cli.build_view import BuildView, print_failures
from redline.cli.load_panel import load_line
from redline.cli.panel import ENDS_EARLY, Panel, Part, fitted
from redline.cli.quiet import waited_text, waiting_text
from redline.cli.recent import RecentDuet, RecentLoad, left_text
from redline.cli.show import insist
from redline.cli.telemetry import Meter, MeteredTrial
from redline.document.format import GRADE_MARKS, NO_ANSWERS, count, duration, rate, with_bounds
from redline.errors import RedlineError
from redline.lazily import LateModule, late
from redline.model import (
    Cell,
    Comparison,
    DuetBlock,
    DuetRecording,
    Failure,
    Finding,
    FindingKind,
    Grade,
    Histogram,
    Interval,
    Plan,
    PlannedDuet,
    PlannedTrial,
    Precision,
    Recording,
    Run,
    ServerEntry,
    Skipped,
    Suite,
)
from redline.ports import BuildOutcome
from redline.report.bars import sparkline
from redline.running.quiet import Look
from redline.running.trial import Step
from redline.storage.runs import RunStore
from redline.suite import expected_length_ns
from redline.wording import as_argument

if TYPE_CHECKING:
    from redline.analysis import compare, distributions, so_far
    from redline.analysis.undecided import Undecided
    from redline.cli.search_view import SearchedSoFar, SearchView
    from redline.findings import load as of_loads
    from redline.findings import table
    from redline.render import terminal
    from redline.report import trials
else:  # what judges and shows: the first load begins without it
    compare, distributions, so_far = late("redline.analysis", "compare", "distributions", "so_far")
    of_loads, table = LateModule("redline.findings.load"), LateModule("redline.findings.table")
    terminal, trials = LateModule("redline.render.terminal"), LateModule("redline.report.trials")

_JUDGING_SHARE = 0.05
"""The largest share of the time that is spent on judging what is only shown on the way."""
_MOST_COMPARED = 3
"""The most servers whose comparisons after their latest trials are shown."""


class SessionView:
    """A SessionListener on a console. `error` is why the last search could not go on.

    With `by_probe`, searches take turns by probe: each line begins with the server. A `meter` follows the loads.
    """

    def __init__(self, console: Console, meter: Meter | None = None) -> None:
        self._console = console
        self._meter = meter
        self.error: RedlineError | None = None
        self.keeps_errors = False
        self.by_probe = False
        self._known: dict[str, SearchedSoFar] = {}

    def check(self, suite: Suite) -> None:
        """Raise UsageError for a suite of which what other tools should get cannot be shown."""
        if self._meter is not None:
            self._meter.check(suite)

    def building(self) -> BuildView:
        """Show the progress of builds."""
        return BuildView(self._console)

    def built(self, outcome: BuildOutcome) -> None:
        """Print the failures."""
        print_failures(outcome, self._console)

    def part(self, number: int, store: RunStore) -> None:
        """Print the part that begins."""
        what = f"the capacity, kept in {store.folder}" if number == 1 else "rates as shares of the capacity"
        line = f"part {number} of 2: {what}"
        self._console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)

    def lacks(self, first: RunStore) -> None:
        """Print that the capacity is not complete, and the command that completes it."""
        command = f"{places.own_name()} run --resume {as_argument(first.folder)}"
        line = f"the capacity lacks recordings, and the rates stay as they were planned; complete it with: {command}"
        self._console.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)

    def calibrating(self, pairs: int) -> None:
        """Print that pairs of hosts are compared."""
        self._console.print(f"comparing {pairs} pairs of hosts by a duet of one server on each …", style="dim")

    def skipped(self, skipped: Skipped) -> None:
        """Print a cell that is not run after all."""
        self._console.print(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow", markup=False)

    def trials(self, plan: Plan, done: int) -> TrialsView:
        """Show the trials of a plan."""
        return TrialsView(plan, done, self._console, self._meter)

    def known(self, known: Undecided, left_ns: int) -> None:
        """Print what is known so far, what is not sure yet, and the time that this takes and that is left."""
        self._console.print(known_text(known, left_ns), style="bold", highlight=False, soft_wrap=True)

    def cell(self, cell: Cell, number: int, cells: int, *, alone: bool = True, left_ns: int = 0) -> SearchView:
        """Show the search on a cell: with a panel, or, if others are searched meanwhile, its name on each line."""
        from redline.cli.search_view import SearchedSoFar, SearchView  # noqa: PLC0415 - few commands search

        known = self._known.setdefault(cell.slug, SearchedSoFar(cell))
        if not alone:
            return SearchView(known, self._console, f"[{number}/{cells}] {cell.slug}  ", self._meter, alive=False)
        if self.by_probe:
            name, beside = f"{cell.variant.slug} ", tuple(self._known.values())
            return SearchView(known, self._console, name, self._meter, left_ns=left_ns, beside=beside)
        if not cell.variant.is_attached:
            self._console.print(f"[{number}/{cells}] {cell.slug}", style="bold", markup=False, highlight=False)
        return SearchView(known, self._console, meter=self._meter, left_ns=left_ns)

    def broken(self, error: RedlineError) -> None:
        """Print why a search could not go on, unless the command does."""
        self.error = error
        if not self.keeps_errors:
            self.print_error(error)

    def print_error(self, error: RedlineError) -> None:
        """Print an error among the lines of its search."""
        insist(self._console, f"    {error}", "red")


def known_text(known: Undecided, left_ns: int) -> str:
    """`so far 3 comparisons sure, 1 decided, 2 undecided (…); a start of each … takes about 4 min, and 1 h is left`."""
    named, many = ", ".join(known.names[:_MOST_COMPARED]), len(known.names) - _MOST_COMPARED
    who = f" ({named}{f' and {many} more' if many > 0 else ''})" if named else ""
    text = f"so far {count(known.sure, 'comparison')} sure, {known.decided} decided, "
    text += f"{len(known.names)} undecided{who}"
    if known.impossible:
        text += f", {known.impossible} impossible"
    if not known.groups:
        return f"{text}; nothing is left to decide"
    text += f"; a start of each that is not sure takes about {duration(known.round_ns)}"
    return f"{text}, and {duration(left_ns)} is left" if left_ns > 0 else text


def pace(rate_per_s: float, response: Histogram) -> str:
    """`1.77 k/s  p99 18 ms`; without answers there is no percentile."""
    return f"{rate(rate_per_s)}  p99 {duration(response.quantile_ns(0.99))}" if response.count else NO_ANSWERS


class TrialsView(Panel):
    """A TrialListener: a panel with progress, the current load, and what is known so far; and lines of news."""

    def __init__(self, plan: Plan, done: int, console: Console, meter: Meter | None = None) -> None:
        super().__init__(console, on_interrupt=ENDS_EARLY)
        self._plan = plan
        self._meter = meter
        self._done = done
        self._begun_with = done
        self._begun = self._ended_last = time.monotonic()
        self._grades: Counter[Grade] = Counter()
        self._told = set[tuple[FindingKind, str]]()
        self._launch_ns = 0
        self._failures = set[str]()
        self._step: Step | None = None
        self._now = ""
        self._recent_loads = dict[str, RecentLoad]()  # on several hosts, some steps run at the same time
        self._recent_duets = dict[Sequence[str], RecentDuet]()
        self._spent_ns = 0
        self._comparisons: Sequence[Comparison] = ()
        self._judge_after = -math.inf

    @cached_property
    def _so_far(self) -> so_far.TrialsSoFar:
        return so_far.TrialsSoFar(self._plan)

    @property
    def has_answer(self) -> bool:
        """Whether anything has been measured: a trial, a start of a duet, or so far a part of one."""
        measures = isinstance(self._step, PlannedDuet) and self._now == "measure"
        return self._done > 0 or measures

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """Show the trial that begins."""
        if self._meter is not None:
            self._meter.begin(_metered(planned, cell))
        self._recent_loads[planned.cell_id] = RecentLoad()
        self._begins(planned, (cell,), "the server")

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """Show the latest interval."""
        if self._meter is not None:
            self._meter.interval(_metered(planned, self._plan.cells[planned.cell_id]), interval)
        if self.is_shown:
            self._step, self._now = planned, interval.phase
            self._recent_loads[planned.cell_id].add(interval)
            self.show(self._lines)

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """Count the trial, and print its findings."""
        self._done, self._ended_last = self._done + 1, time.monotonic()
        if self._meter is not None:
            self._meter.trial(MeteredTrial.of(cell, f"trial-{recording.round + 1}"), cell, recording)
        findings = self._so_far.add(cell, recording)
        if recording.profile is not None:  # no news: a profiled trial is not counted, since the profiler perturbs it
            findings = tuple(finding for finding in findings if finding.kind != of_loads.perturbed.kind)
        self._grades.update(finding.grade for finding in findings)
        serious = [finding for finding in findings if finding.grade is not Grade.NOTE]
        compared = self._compare(recording.cell_id)
        news = any(_subject(finding) not in self._told for finding in serious)
        if news or (recording.profile and recording.profile.problem) or not self.is_live:
            self.print(self._ended(recording, cell, serious, compared))

    def rounds_judged(self, precision: Precision) -> None:
        """Print how far the main comparisons are from their precision, and the expected number of rounds."""
        self.print(Text(trials.precision_text(precision), style="dim"))

    def repeated(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> None:
        """Print the trials and duets that are repeated, and no longer count them."""
        self._done -= len(steps)
        self._so_far.forget(steps)
        names = ", ".join(map(self._name, steps))
        self.print(Text(f"     repeated, because of steal: {names}", style="dim"))

    def moved(self, planned: PlannedTrial | PlannedDuet, cells: tuple[Cell, ...], failure: Failure) -> None:
        """Print the trial or duet that is repeated on other hosts, and why."""
        name = duet_name(cells) if isinstance(planned, PlannedDuet) else cells[0].slug
        text = f"     repeated on other hosts: {name}: {failure.message}"
        self.print(Text(text, style=terminal.COLOURS[Grade.WARN]))

    def duet_started(self, planned: PlannedDuet, cells: tuple[Cell, ...]) -> None:
        """Show the duet that begins."""
        before = f", which took {duration(self._launch_ns)} before" if self._launch_ns else ""
        if self._meter is not None:
            self._meter.begin(*self._metered_start(planned.round, cells))
        self._recent_duets.setdefault(planned.cell_ids, RecentDuet(len(cells))).start()
        self._begins(planned, cells, f"the servers{before}")

    def block_seen(self, planned: PlannedDuet, block: DuetBlock) -> None:
        """Show the latest block."""
        if self._meter is not None:
            cells = tuple(self._plan.cells[cell_id] for cell_id in planned.cell_ids)
            self._meter.block(self._metered_start(planned.round, cells), block)
        if self.is_shown:
            self._step, self._now = planned, block.phase
            self._recent_duets[planned.cell_ids].add(block)
            self.show(self._lines)

    def duet_ended(self, recording: DuetRecording, cells: tuple[Cell, ...]) -> None:
        """Count the start, and print its failure."""
        self._done, self._ended_last = self._done + 1, time.monotonic()
        launch_ns = recording.launch_ns if _wait_for_containers(cells) else 0
        self._launch_ns = launch_ns or self._launch_ns
        if self._meter is not None:
            self._meter.ended(self._metered_start(recording.round, cells), cells, recording)
        if recording.failure is not None or not self.is_live:
            text = Text(f"[{self._done}/{self._plan.length}] {duet_name(cells)}")
            text.append(_started(launch_ns) + _set_up(recording.setup_ns))
            if recording.failure is not None:
                failed = recording.failure.message
                said = "failed as before" if failed in self._failures else failed
                self._failures.add(failed)
                text.append(f"\n    {GRADE_MARKS[Grade.WARN]} {said}", style=terminal.COLOURS[Grade.WARN])
            self.print(text)

    def waiting(self, look: Look, at_most_s: float) -> None:
        """Show what a start waits for."""
        text = Text(waiting_text(look, at_most_s))
        self.show(lambda _console: (text,), now=True)

    def waited(self, last: Look | None, waited_s: float) -> None:
        """Print how long a start has waited."""
        self.print(Text(waited_text(last, waited_s), style="dim" if last is None else terminal.COLOURS[Grade.WARN]))

    def compared(self, run: Run) -> None:
        """Show how servers compare by all starts so far, as the report would say."""
        # Judging takes ever longer, the more starts there are.
        self._spent_ns, began = sum(duet.took_ns for duet in run.duets), time.monotonic()
        if self.is_shown and began >= self._judge_after:
            self._comparisons = compare.comparisons_so_far(run)
            self._judge_after = began + (time.monotonic() - began) / _JUDGING_SHARE
            self.show(self._lines, now=True)
        self._ended_last = time.monotonic()

    def _compare(self, cell_id: str) -> Sequence[Comparison]:
        """Show what the latest trial of a server says of it, above what trials before say of others."""
        known = [comparison for comparison in self._so_far.compared(cell_id) if _is_known(comparison)]
        servers = {comparison.cell_id for comparison in known}
        others = (other for other in self._comparisons if other.cell_id not in servers)
        self._comparisons = (*known, *others)[:_MOST_COMPARED]
        return known

    def _metered_start(self, round_: int, cells: tuple[Cell, ...]) -> tuple[MeteredTrial, ...]:
        """The targets of a duet of these cells: each, and the baseline's again as a control."""
        start = distributions.start_name(self._plan, round_, [cell.id for cell in cells])
        return (*(MeteredTrial.of(cell, start) for cell in cells), MeteredTrial.of(cells[0], f"{start}.control"))

    def _name(self, step: PlannedTrial | PlannedDuet) -> str:
        if isinstance(step, PlannedTrial):
            return self._plan.cells[step.cell_id].slug
        return duet_name(tuple(self._plan.cells[cell_id] for cell_id in step.cell_ids))

    def _ended(self, recording: Recording, cell: Cell, findings: list[Finding], compared: Sequence[Comparison]) -> Text:
        text = Text(f"[{self._done}/{self._plan.length}] {cell.slug}")
        if recording.traffic:
            text.append(f"  {pace(recording.traffic.rate_per_s, recording.traffic.response)}")
        if len(compared) == 1:
            change, by = _so_far(compared[0])
            text.append(f"  {change} {self._in_what(compared[0])} {by}", style="dim")
        launch_ns = recording.stages_ns.get("launch", 0) if _wait_for_containers([cell]) else 0
        text.append(_started(launch_ns) + _set_up(recording.setup_ns))
        if recording.profile is not None:
            text.append(f"  profiled: {'engine' if recording.profile.subject == 'engine' else recording.profile.kind}")
            if problem := recording.profile.problem:
                text.append(
                    f"\n    {GRADE_MARKS[Grade.WARN]} there is no profile: {problem}",
                    style=terminal.COLOURS[Grade.WARN],
                )
        for finding in findings:
            told = _subject(finding) in self._told
            said = f"{finding.kind}, as before" if told else finding.message
            text.append(f"\n    {GRADE_MARKS[finding.grade]} {said}", style=terminal.COLOURS[finding.grade])
        self._told.update(map(_subject, findings))
        return text

    def _begins(self, step: Step, cells: Sequence[Cell], servers: str) -> None:
        self._step, self._now = step, f"{_starting(cells)}{servers}"
        self.show(self._lines, now=True)

    def _lines(self, console: Console) -> Iterator[Text]:
        marks = [(f"{self._grades[grade]} {GRADE_MARKS[grade]}", terminal.COLOURS[grade]) for grade in reversed(Grade)]
        seen = [mark for mark, grade in zip(marks, reversed(Grade), strict=True) if self._grades[grade]]
        yield fitted(console, (self._progress(), "bold"), (left_text(self._left_ns()), ""), *seen)
        match self._step:
            case PlannedTrial(cell_id=cell_id):
                yield fitted(console, rest=f"{self._name(self._step)}  {_which(self._step)}")
                yield load_line(console, self._now, self._recent_loads[cell_id], has_bars=self.is_live)
            case PlannedDuet(cell_ids=cell_ids):
                yield fitted(console, rest=self._name(self._step))
                yield fitted(console, (self._now, ""), *self._rates(cell_ids))
        for comparison in self._comparisons:
            if comparison.primary:
                yield self._compared(console, comparison)
        yield from self._doubts(console)

    def _rates(self, cell_ids: Sequence[str]) -> Iterator[Part]:
        """The latest rate of each server of a duet, and a bar for each rate of all before."""
        course = self._recent_duets[cell_ids]
        for cell_id, per_s in zip(cell_ids, course.last, strict=False):
            if per_s is not None:
                yield f"{rate(per_s)} {self._plan.cells[cell_id].variant.slug}", ""
        if self.is_live:
            yield sparkline(course.rates), "cyan"

    def _in_what(self, comparison: Comparison) -> str:
        """`throughput of rust.axum against rust.hyper`."""
        cell, baseline = (self._plan.cells[id_] for id_ in (comparison.cell_id, comparison.baseline_id))
        return f"{comparison.metric.words} of {cell.variant.slug} against {baseline.variant.slug}"

    def _compared(self, console: Console, comparison: Comparison) -> Text:
        cell = self._plan.cells[comparison.cell_id]
        cells = self._plan.cells.values()
        names = [cell.scenario.name] if len({other.scenario.name for other in cells}) > 1 else []
        names += [cell.load.name] if len({other.load.name for other in cells}) > 1 else []
        where = f"{'.'.join(names)}: " if names else ""
        who = f"{where}{self._in_what(comparison)}"
        if not _is_known(comparison):
            return fitted(console, ("not known yet", "dim"), rest=who)
        change, by = _so_far(comparison)
        return fitted(console, (change, "bold"), (by, "dim"), rest=who)

    def _doubts(self, console: Console) -> Iterator[Text]:
        """What the comparisons so far are doubted for."""
        duets = [comparison.duet for comparison in self._comparisons if comparison.primary and comparison.duet]
        grades = {finding.kind: finding.grade for duet in duets for finding in duet.findings}
        doubts = [
            (f"{GRADE_MARKS[grade]} {kind}", terminal.COLOURS[grade])
            for kind, grade in grades.items()
            if grade is not Grade.NOTE
        ]
        if doubts:
            yield fitted(console, ("so far:", "dim"), *doubts)

    def _progress(self) -> str:
        """`3 of 10`; where a budget says how many starts there are, only which this is."""
        if isinstance(self._step, PlannedDuet) and self._step.profile is not None:
            return f"sampled start {self._step.round + 1} of {self._sampled_starts}"
        if self._budget_ns is not None:
            return f"start {self._step.round + 1 if self._step else 1}"
        return f"{min(self._done + 1, self._plan.length)} of {self._plan.length}"

    @property
    def _budget_ns(self) -> int | None:
        """The time that is filled with starts, whatever their number."""
        auto = self._plan.suite.auto
        is_filled = auto is not None and not self._plan.suite.alone and auto.precision is None
        return auto.budget_ns if auto is not None and is_filled else None

    @property
    def _sampled_starts(self) -> int:
        return 1 + max((duet.round for duet in self._plan.sampled), default=-1)

    @cached_property
    def _sampled_ns(self) -> int:
        """The expected time of the sampled starts."""
        without = self._plan.sampling((), self._plan.unprofiled)
        return expected_length_ns(self._plan) - expected_length_ns(without)

    def _left_ns(self) -> float:
        """The remaining time: of the budget, or from the pace so far, or from the plan before the first trial ends."""
        since_ns = (time.monotonic() - self._ended_last) * 1e9
        if self._sampled_ns and isinstance(self._step, PlannedDuet) and self._step.profile is not None:
            return self._sampled_ns * (1 - self._step.round / self._sampled_starts) - since_ns
        if self._budget_ns is not None:
            return self._budget_ns - self._spent_ns - since_ns + self._sampled_ns
        done_here = self._done - self._begun_with
        each_ns = expected_length_ns(self._plan) / max(1, self._plan.length)
        if done_here > 0:
            each_ns = (self._ended_last - self._begun) * 1e9 / done_here
        return each_ns * (self._plan.length - self._done) - since_ns


def _is_known(comparison: Comparison) -> bool:
    """Whether a comparison has an interval that says something."""
    ratio = comparison.ratio
    return ratio is not None and ratio.interval is not None and not ratio.says_nothing


def _so_far(comparison: Comparison) -> tuple[str, str]:
    """`+3.1% [+1.2, +5.0]` and `by 4 starts`."""
    ratio = comparison.ratio
    assert ratio is not None, "only what is known is shown"
    return with_bounds(ratio), f"by {count(ratio.n, 'start' if comparison.duet else 'round')}"


def _subject(finding: Finding) -> tuple[FindingKind, str]:
    """Return the subject of a finding, which is printed once per subject: a cell, or the machine."""
    return finding.kind, "" if table.RULES[finding.kind].passes else finding.cell_id


def _starting(cells: Iterable[Cell]) -> str:
    """Describe what starts first; some of it takes long and shows nothing."""
    starts = [cell.variant.entry.start for cell in cells if isinstance(cell.variant.entry, ServerEntry)]
    return "`before`, and starting " if any(start.before for start in starts) else "starting "


def _wait_for_containers(cells: Iterable[Cell]) -> bool:
    """Whether servers are containers of the user's, whose starts may take long."""
    entries = (cell.variant.entry for cell in cells)
    return any(isinstance(entry, ServerEntry) and entry.is_of_containers for entry in entries)


def _started(launch_ns: int) -> str:
    return f"  started in {duration(launch_ns)}" if launch_ns else ""


def _set_up(setup_ns: int) -> str:
    return f"  set up in {duration(setup_ns)}" if setup_ns else ""


def _which(planned: PlannedTrial) -> str:
    return f"profile of {planned.profile}" if planned.profile else f"round {planned.round + 1}"


def _metered(planned: PlannedTrial, cell: Cell) -> MeteredTrial:
    profile = f"profile-{planned.profile}-" if planned.profile else "trial-"
    return MeteredTrial.of(cell, f"{profile}{planned.round + 1}")


def duet_name(cells: tuple[Cell, ...]) -> str:
    """`rust.hyper | rust.axum SimpleGet.saturate`."""
    first = cells[0]
    servers = " | ".join(cell.variant.slug for cell in cells)
    return f"{servers} {first.scenario.name}.{first.load.name}"
