"""Progress on stderr while servers are built, trials are run and limits are searched."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from redline.analysis.search_state import load_text, longest_ns
from redline.cli.build_view import BuildView, print_failures
from redline.cli.load_view import live_line, speed_text
from redline.cli.show import OneLine, show
from redline.errors import RedlineError
from redline.findings import RULES, judge
from redline.findings.load import perturbed
from redline.model import (
    Cell,
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
    ServerEntry,
    Skipped,
)
from redline.model.limits import LimitStart
from redline.model.search import SearchTerms
from redline.plugins.telemetry.meter import Meter, MeteredTrial
from redline.ports import BuildOutcome
from redline.quantities import significant
from redline.report.document import Column, Prose, Section, Table
from redline.report.format import GRADE_MARKS, NO_ANSWERS, count, duration, rate
from redline.report.render.terminal import COLOURS
from redline.report.sections.limit import warm_up_text
from redline.report.sections.trials import precision_text
from redline.search import Evidence
from redline.search.curve import CURVE_SHARES
from redline.storage.runs import RunStore
from redline.suite import expected_length_ns


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

    def calibrating(self, pairs: int) -> None:
        """Print that pairs of hosts are compared."""
        self._console.print(f"comparing {pairs} pairs of hosts by a duet of one server on each …", style="dim")

    def skipped(self, skipped: Skipped) -> None:
        """Print a cell that is not run after all."""
        self._console.print(f"skipped: {skipped.slug}: {skipped.reason}", style="yellow", markup=False)

    def trials(self, plan: Plan, done: int) -> "TrialsView":
        """Show the trials of a plan."""
        return TrialsView(plan, done, self._console, self._meter)

    def cell(self, cell: Cell, number: int, cells: int, *, alone: bool = True) -> "SearchView":
        """Show the search on a cell: with a live line, or with its name on each line if other searches run too."""
        if not alone:
            return SearchView(cell, self._console, f"[{number}/{cells}] {cell.slug}  ", self._meter, alive=False)
        if self.by_probe:
            return SearchView(cell, self._console, f"{cell.variant.slug} ", self._meter)
        if not cell.variant.is_attached:
            self._console.print(f"[{number}/{cells}] {cell.slug}", style="bold", markup=False, highlight=False)
        return SearchView(cell, self._console, meter=self._meter)

    def broken(self, error: RedlineError) -> None:
        """Print why a search could not go on, unless the command does."""
        self.error = error
        if not self.keeps_errors:
            self.print_error(error)

    def print_error(self, error: RedlineError) -> None:
        """Print an error among the lines of its search."""
        self._console.print(f"    {error}", style="red", markup=False, highlight=False, soft_wrap=True)


def pace(rate_per_s: float, response: Histogram) -> str:
    """`1.77 k/s  p99 18 ms`; without answers there is no percentile."""
    return f"{rate(rate_per_s)}  p99 {duration(response.quantile_ns(0.99))}" if response.count else NO_ANSWERS


def probe_line(evidence: Evidence, why: str, number: int) -> str:
    """`3  1.77 k/s  p50 2.1 ms  p99 18 ms  (near where the model sees the limit)`."""
    p50, p99 = evidence.response.quantiles_ns((0.5, 0.99))
    result = f"p50 {duration(p50)}  p99 {duration(p99)}" if evidence.response.count else NO_ANSWERS
    if evidence.hopeless:
        result = f"hopeless after {significant(evidence.seconds, 2)} s: answered {rate(evidence.answered_per_s)}"
    errors = sum(slice_.errors for slice_ in evidence.slices)
    notes = "".join(
        (f"  errors {errors:,}" if errors else "", f"  not the server: {evidence.client}" if evidence.client else "")
    )
    return f"{number:>3}  {rate(evidence.rate_per_s):>10}  {result}{notes}  ({why})"


class SearchView(OneLine):
    """A SearchListener that shows the load on a live line, and each probe on its own line, after `name`."""

    def __init__(
        self, cell: Cell, console: Console, name: str = "", meter: Meter | None = None, *, alive: bool = True
    ) -> None:
        super().__init__(console, alive=alive)
        self._cell = cell
        self._console = console
        self._name = name
        self._meter = meter

    def started(self, number: int) -> None:
        """Show that a server is being started."""
        self.show(Text(f"{self._name}start {number + 1}: starting the server"))

    def seen(self, interval: Interval) -> None:
        """Show the latest interval."""
        self.show(Text(self._name + live_line(self._cell, interval)))
        if self._meter is not None:
            self._meter.interval(MeteredTrial.of(self._cell, "search"), interval)

    def warmed(self, start: LimitStart) -> None:
        """Print how a start was warmed up."""
        self._print(f"     {warm_up_text(start)}", "dim")

    def probed(self, evidence: Evidence, why: str, number: int) -> None:
        """Print a probe."""
        self._print(probe_line(evidence, why, number))

    def waits(self, seconds: float) -> None:
        """Print that the last probe is made again, and when."""
        self._print(f"     once more in {seconds:g} s, when the host may have given the CPU time back", "dim")

    def _print(self, text: str, style: str = "") -> None:
        self._console.print(Text(self._name + text, style=style), soft_wrap=True)


class TrialsView(OneLine):
    """A TrialListener that shows cell, trial, rate, p99, findings so far and the time left."""

    def __init__(self, plan: Plan, done: int, console: Console, meter: Meter | None = None) -> None:
        super().__init__(console)
        self._plan = plan
        self._meter = meter
        self._done = done
        self._begun_with = done
        self._console = console
        self._begun = time.monotonic()
        self._grades: Counter[Grade] = Counter()
        self._told = set[tuple[FindingKind, str]]()

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """Show the trial that begins."""
        if self._meter is not None:
            self._meter.begin(_metered(planned, cell))
        self._show_trial(f"{cell.slug}  {_which(planned)}  {_starting([cell])}the server")

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """Show the latest interval."""
        cell = self._plan.cells[planned.cell_id]
        if self._meter is not None:
            self._meter.interval(_metered(planned, cell), interval)
        if interval.lasts_ns <= 0:
            return
        self._show_trial(f"{cell.slug}  {_which(planned)}  {interval.phase}  {speed_text(interval, 0.99)}")

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """Count the trial, and print its findings."""
        self._done += 1
        findings = judge(cell, recording)
        if recording.profile is not None:  # no news: a profiled trial is not counted, since the profiler perturbs it
            findings = tuple(finding for finding in findings if finding.kind != perturbed.kind)
        self._grades.update(finding.grade for finding in findings)
        serious = [finding for finding in findings if finding.grade is not Grade.NOTE]
        news = any(_subject(finding) not in self._told for finding in serious)
        if news or (recording.profile and recording.profile.problem) or not self._console.is_terminal:
            self._console.print(self._ended(recording, cell, serious), highlight=False)

    def rounds_judged(self, precision: Precision) -> None:
        """Print how far the main comparisons are from their precision, and the expected number of rounds."""
        self._console.print(Text(precision_text(precision), style="dim"), soft_wrap=True)

    def repeated(self, steps: Sequence[PlannedTrial | PlannedDuet]) -> None:
        """Print the trials and duets that are repeated, and no longer count them."""
        self._done -= len(steps)
        names = ", ".join(map(self._name, steps))
        self._console.print(Text(f"     repeated, because of steal: {names}", style="dim"))

    def moved(self, planned: PlannedTrial | PlannedDuet, cells: tuple[Cell, ...], failure: Failure) -> None:
        """Print the trial or duet that is repeated on other hosts, and why."""
        name = duet_name(cells) if isinstance(planned, PlannedDuet) else cells[0].slug
        text = f"     repeated on other hosts: {name}: {failure.message}"
        self._console.print(Text(text, style=COLOURS[Grade.WARN]), soft_wrap=True)

    def duet_started(self, planned: PlannedDuet, cells: tuple[Cell, ...]) -> None:
        """Show the duet that begins."""
        if self._meter is not None:
            self._meter.begin(*_metered_start(planned.round, cells))
        self._show_trial(f"{duet_name(cells)}  round {planned.round + 1}  {_starting(cells)}the servers")

    def block_seen(self, planned: PlannedDuet, block: DuetBlock) -> None:
        """Show the latest interval."""
        if self._meter is not None:
            cells = tuple(self._plan.cells[cell_id] for cell_id in planned.cell_ids)
            self._meter.block(_metered_start(planned.round, cells), block)
        self._show_trial(f"{self._name(planned)}  round {planned.round + 1}  {block.phase}  block {block.index + 1}")

    def duet_ended(self, recording: DuetRecording, cells: tuple[Cell, ...]) -> None:
        """Count the start, and print its failure."""
        self._done += 1
        if self._meter is not None:
            self._meter.ended(_metered_start(recording.round, cells), recording)
        if recording.failure is not None or not self._console.is_terminal:
            text = Text(f"[{self._done}/{self._plan.length}] {duet_name(cells)}{_set_up(recording.setup_ns)}")
            if recording.failure is not None:
                text.append(f"\n    {GRADE_MARKS[Grade.WARN]} {recording.failure.message}", style=COLOURS[Grade.WARN])
            self._console.print(text, highlight=False)

    def _name(self, step: PlannedTrial | PlannedDuet) -> str:
        if isinstance(step, PlannedTrial):
            return self._plan.cells[step.cell_id].slug
        return duet_name(tuple(self._plan.cells[cell_id] for cell_id in step.cell_ids))

    def _ended(self, recording: Recording, cell: Cell, findings: list[Finding]) -> Text:
        text = Text(f"[{self._done}/{self._plan.length}] {cell.slug}")
        if recording.traffic:
            text.append(f"  {pace(recording.traffic.rate_per_s, recording.traffic.response)}")
        text.append(_set_up(recording.setup_ns))
        if recording.profile is not None:
            text.append(f"  profiled: {'engine' if recording.profile.subject == 'engine' else recording.profile.kind}")
            if problem := recording.profile.problem:
                text.append(
                    f"\n    {GRADE_MARKS[Grade.WARN]} there is no profile: {problem}", style=COLOURS[Grade.WARN]
                )
        for finding in findings:
            told = _subject(finding) in self._told
            said = f"{finding.kind}, as before" if told else finding.message
            text.append(f"\n    {GRADE_MARKS[finding.grade]} {said}", style=COLOURS[finding.grade])
        self._told.update(map(_subject, findings))
        return text

    def _show_trial(self, current: str) -> None:
        line = Text(f"[{self._done + 1}/{self._plan.length}] ", style="bold")
        line.append(current)
        for grade in reversed(Grade):
            if self._grades[grade]:
                line.append(f"  {self._grades[grade]} {GRADE_MARKS[grade]}", style=COLOURS[grade])
        line.append(f"  {duration(self._left_ns())} left", style="dim")
        self.show(line)

    def _left_ns(self) -> int:
        """The remaining time, from the pace so far, or from the plan before the first trial ends."""
        done_here = self._done - self._begun_with
        remaining = self._plan.length - self._done
        if done_here == 0:
            return expected_length_ns(self._plan) * remaining // max(1, self._plan.length)
        return int((time.monotonic() - self._begun) * 1e9 / done_here * remaining)


def _subject(finding: Finding) -> tuple[FindingKind, str]:
    """Return the subject of a finding, which is printed once per subject: a cell, or the machine."""
    return finding.kind, "" if RULES[finding.kind].passes else finding.cell_id


def _starting(cells: Iterable[Cell]) -> str:
    """Describe what starts first; some of it takes long and shows nothing."""
    starts = [cell.variant.entry.start for cell in cells if isinstance(cell.variant.entry, ServerEntry)]
    return "`before`, and starting " if any(start.before for start in starts) else "starting "


def _set_up(setup_ns: int) -> str:
    return f"  set up in {duration(setup_ns)}" if setup_ns else ""


def _which(planned: PlannedTrial) -> str:
    return f"profile of {planned.profile}" if planned.profile else f"round {planned.round + 1}"


def _metered(planned: PlannedTrial, cell: Cell) -> MeteredTrial:
    profile = f"profile-{planned.profile}-" if planned.profile else "trial-"
    return MeteredTrial.of(cell, f"{profile}{planned.round + 1}")


def _metered_start(round_: int, cells: tuple[Cell, ...]) -> tuple[MeteredTrial, ...]:
    """The targets of a duet of these cells: each, and the baseline's again as a control."""
    start = f"start-{round_ + 1}"
    return (*(MeteredTrial.of(cell, start) for cell in cells), MeteredTrial.of(cells[0], f"{start}.control"))


def duet_name(cells: tuple[Cell, ...]) -> str:
    """`rust.hyper | rust.axum SimpleGet.saturate`."""
    first = cells[0]
    servers = " | ".join(cell.variant.slug for cell in cells)
    return f"{servers} {first.scenario.name}.{first.load.name}"


def show_search_plan(
    plan: Plan,
    most_probes: int,
    ignored: Sequence[str],
    unprofiled: Sequence[str],
    terms: SearchTerms,
    console: Console,
) -> None:
    """Print the cells, the loads that cannot be searched, the profiles that are not made, and the longest time."""
    if ignored:
        console.print(f"not searched, since it is closed: {', '.join(ignored)}", style="dim", highlight=False)
    if unprofiled:
        kinds = ", ".join(unprofiled)
        console.print(f"not profiled, since `redline run` alone profiles: {kinds}", style="dim", highlight=False)
    rows = (
        (
            cell.variant.slug,
            cell.scenario.name,
            cell.load.name,
            "what the warm-up shows" if terms.by_warm_up else rate(cell.load.open_shape.rate_per_s or 0.0),
            load_text(cell),
            f"{'≤ ' if cell.warmup_detect else ''}{duration(cell.warmup_ns)}",
        )
        for cell in plan.cells.values()
    )
    heads = ("server", "scenario", "load", "begins at", "probes", "warm-up")
    skipped = (f"skipped: {skipped.slug}: {skipped.reason}" for skipped in plan.skipped)
    show([Section("", (Table(tuple(map(Column, heads)), tuple(rows)), Prose.of(skipped, Grade.WARN)))], console)
    starts, most = 1 + plan.suite.trials, duration(longest_ns(plan, most_probes, beyond=terms.beyond))
    console.print(
        f"\n{count(len(plan.cells), 'cell')}, at most {most_probes + len(CURVE_SHARES)} probes per cell"
        f" on {starts} starts of its server: at most about {most},"
        " neither building counted nor waiting for a host that takes CPU time",
        highlight=False,
    )
