"""Progress on stderr while limits are searched, and the plan before it."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from redline.cli.load_panel import load_line
from redline.cli.panel import ENDS_EARLY, Panel, Part, fitted
from redline.cli.recent import RecentLoad, left_text
from redline.cli.show import show
from redline.cli.telemetry import Meter, MeteredTrial
from redline.document.blocks import Column, Prose, Section, Table
from redline.document.format import NO_ANSWERS, count, duration, rate
from redline.limits.probe_loads import load_text, longest_ns
from redline.model import Cell, Grade, Interval, Plan
from redline.model.limits import LimitStart
from redline.model.search import ProbeRecording, SearchTerms
from redline.quantities import paced, significant, speed, users
from redline.report.limit import warm_up_text
from redline.search import Evidence, Limit
from redline.search.curve import CURVE_SHARES


def probe_line(evidence: Evidence, why: str, number: int) -> str:
    """`3  1.77 k/s  p50 2.1 ms  p99 18 ms  (near where the model sees the limit)`."""
    p50, p99 = evidence.response.quantiles_ns((0.5, 0.99))
    result = f"p50 {duration(p50)}  p99 {duration(p99)}" if evidence.response.count else NO_ANSWERS
    if evidence.aborted:
        result = f"aborted after {significant(evidence.seconds, 2)} s by {evidence.aborted}"
    elif evidence.hopeless:
        result = f"hopeless after {significant(evidence.seconds, 2)} s: answered {rate(evidence.answered_per_s)}"
    errors = sum(slice_.errors for slice_ in evidence.slices)
    notes = "".join(
        (f"  errors {errors:,}" if errors else "", f"  not the server: {evidence.client}" if evidence.client else "")
    )
    pace = users(evidence.rate_per_s) if evidence.by_users else paced(rate(evidence.rate_per_s), evidence.speed)
    return f"{number:>3}  {pace:>10}  {result}{notes}  ({why})"


@dataclass
class SearchedSoFar:
    """What is known of the search on a cell: its limits, and how many probes it made."""

    cell: Cell
    limits: Sequence[Limit] = ()
    probes: int = 0
    course: RecentLoad = field(default_factory=RecentLoad)


class SearchView(Panel):
    """A SearchListener: a panel with the load, what passed and what was missed; and a line for each probe.

    Each line begins with the `name`. `left_ns` is the longest that the rest takes, `beside` what is known of all cells
    that take turns.
    """

    def __init__(
        self,
        known: SearchedSoFar,
        console: Console,
        name: str = "",
        meter: Meter | None = None,
        *,
        alive: bool = True,
        left_ns: int = 0,
        beside: Sequence[SearchedSoFar] = (),
    ) -> None:
        super().__init__(console, alive=alive, on_interrupt=ENDS_EARLY)
        self._known, self._beside = known, beside or (known,)
        self._name = name
        self._meter = meter
        self._left_ns, self._begun = left_ns, time.monotonic()
        self._now = ""

    @property
    def has_answer(self) -> bool:
        """Whether any probe has been made."""
        return any(known.probes for known in self._beside)

    def started(self, number: int) -> None:
        """Show that a server is being started."""
        self._now = f"start {number + 1}: starting the server"
        self.show(self._lines, now=True)

    def seen(self, interval: Interval) -> None:
        """Show the latest interval."""
        if self.is_shown:
            self._now = interval.phase
            self._known.course.add(interval)
            self.show(self._lines)
        if self._meter is not None:
            self._meter.interval(MeteredTrial.of(self._known.cell, "search"), interval)

    def warmed(self, start: LimitStart) -> None:
        """Print how a start was warmed up."""
        self._say(f"     {warm_up_text(start)}", "dim")

    def probed(self, made: ProbeRecording, evidence: Evidence, number: int) -> None:
        """Print a probe."""
        self._known.probes = number
        if self._meter is not None:
            self._meter.trial(MeteredTrial.of(self._known.cell, "search"), self._known.cell, made.recording)
        self._say(probe_line(evidence, made.why, number))

    def narrowed(self, limits: Sequence[Limit]) -> None:
        """Show what passed and what was missed."""
        self._known.limits = limits
        self.show(self._lines)

    def waits(self, seconds: float) -> None:
        """Print that the last probe is made again, and when."""
        self._now = "waiting"
        self._say(f"     once more in {seconds:g} s, when the host may have given the CPU time back", "dim")

    def _say(self, text: str, style: str = "") -> None:
        self.print(Text(self._name + text, style=style))

    def _lines(self, console: Console) -> Iterator[Text]:
        left_ns = self._left_ns - (time.monotonic() - self._begun) * 1e9
        known = self._known
        yield fitted(
            console, (f"probe {known.probes + 1}", "bold"), (left_text(left_ns, at_most=True), ""), rest=known.cell.slug
        )
        yield load_line(console, self._now, known.course, has_bars=self.is_live)
        several = len(self._beside) > 1
        for searched in self._beside:
            for limit in searched.limits:
                name = f"{searched.cell.variant.slug}: {limit.name}" if several else limit.name
                yield fitted(console, *_bracket(limit), rest=name)


def _bracket(limit: Limit) -> Iterator[Part]:
    """`passed at 1.72 k/s`, `missed at 1.82 k/s`."""
    if limit.low_per_s is not None:
        yield f"passed at {_paced(limit.low_per_s, limit)}", "green"
    if limit.high_per_s is not None:
        yield f"missed at {_paced(limit.high_per_s, limit)}", "yellow"
    if limit.low_per_s is None and limit.high_per_s is None:
        yield "nothing is known yet", ""


def _paced(rate_per_s: float, limit: Limit) -> str:
    if limit.by_users:
        return users(rate_per_s)
    return paced(rate(rate_per_s), None if limit.recorded_per_s is None else rate_per_s / limit.recorded_per_s)


def _begins(cell: Cell, terms: SearchTerms) -> str:
    """Where the search on a cell begins."""
    if cell.load.by_users:
        return users(cell.load.connections)
    if terms.by_warm_up:
        return "what the warm-up shows"
    shape = cell.load.open_shape
    return speed(shape.speed) if shape.is_replay else rate(shape.rate_per_s or 0.0)


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
        kind = "open" if all(cell.load.by_users for cell in plan.cells.values()) else "closed"
        console.print(f"not searched, since it is {kind}: {', '.join(ignored)}", style="dim", highlight=False)
    if unprofiled:
        kinds = ", ".join(unprofiled)
        console.print(f"not profiled, since `redline run` alone profiles: {kinds}", style="dim", highlight=False)
    rows = (
        (
            cell.variant.slug,
            cell.scenario.name,
            cell.load.name,
            _begins(cell, terms),
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
