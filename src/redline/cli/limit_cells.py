"""One cell's search as the command line has it: shown as it goes, and kept after each probe."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from rich.console import Console
from rich.text import Text

from redline.analysis.limits import Subject, cell_limit
from redline.cli.building import Built
from redline.cli.limit_asked import load_told, lowest_per_s
from redline.cli.limit_view import Broken, Ended, answers, ending, probe_line, wait_line, warm_line
from redline.cli.load_view import live_line
from redline.cli.one_line import OneLine
from redline.errors import DriveError, LaunchError
from redline.model import Cell, Interval, Open
from redline.model.limit_plan import LimitPlan
from redline.model.limits import CellLimit, LimitReport, LimitStart
from redline.running.cell_search import CellSearch
from redline.running.probing import template
from redline.running.record import Tools
from redline.search import Evidence, Search, Settings
from redline.storage.searches import LimitStore


def report_of(plan: LimitPlan, cells: Iterable[CellLimit]) -> LimitReport:
    """What was found so far, in the plan's order of cells."""
    manifest = plan.manifest
    slugs = [cell.slug for cell in manifest.plan.cells.values()]
    return LimitReport(
        suite=manifest.plan.suite.name,
        about=manifest.plan.suite.about,
        started_unix_ns=manifest.created_unix_ns,
        command=manifest.command,
        seed=manifest.plan.suite.seed,
        precision=plan.precision,
        environment=manifest.environment,
        cells=tuple(sorted(cells, key=lambda cell: slugs.index(cell.slug))),
        skipped=manifest.plan.skipped,
        suite_text=manifest.suite_text,
    )


@dataclass
class CellSearcher:
    """Searches one cell of a plan beside those that have their end; it is the watcher of its own search."""

    plan: LimitPlan
    tools: Tools
    store: LimitStore
    built: Built
    cell: Cell
    others: tuple[CellLimit, ...]
    _line: OneLine | None = None
    _console: Console = field(default_factory=lambda: Console(stderr=True))
    _made: CellSearch = field(init=False)

    def __post_init__(self) -> None:
        self._made = self._search()

    def run(self, console: Console) -> CellLimit:
        """To its end, which may be that it could not go on, or that it was interrupted. Raises StoreError."""
        self._console = console
        with OneLine(console) as self._line:
            end = self._end()
        if isinstance(end, Broken):
            console.print(f"    {end.error.problems[0]}", style="red", markup=False, highlight=False, soft_wrap=True)
        return self._told(end)

    def started(self, number: int) -> None:
        """Show that a server is being started."""
        if self._line is not None:
            self._line.show(Text(f"start {number + 1}: starting the server"))

    def seen(self, interval: Interval) -> None:
        """Show how it goes."""
        if self._line is not None:
            self._line.show(Text(live_line(self.cell, interval)))

    def warmed(self, start: LimitStart) -> None:
        """Show how a start was warmed up."""
        self._console.print(Text(warm_line(start), style="dim"), soft_wrap=True)

    def probed(self, evidence: Evidence, why: str) -> None:
        """Show a probe, and keep it."""
        self._console.print(Text(probe_line(evidence, why, len(self._made.probes))), soft_wrap=True)
        self.store.save(report_of(self.plan, (*self.others, self._told(None))))

    def waits(self, seconds: float) -> None:
        """Show that the last probe is made again, and when."""
        self._console.print(Text(wait_line(seconds), style="dim"), soft_wrap=True)

    def _search(self) -> CellSearch:
        load, plan = self.cell.load, self.plan
        shape = load.shape
        assert isinstance(shape, Open), "only open loads are searched"
        settings = Settings(
            lowest_per_s=lowest_per_s(load.duration_ns),
            start_per_s=plan.start_per_s or shape.rate_per_s or 1000.0,
            probes=plan.probes,
            precision=plan.precision,
            trials=plan.trials,
        )
        seed = next(trial.seed for trial in plan.manifest.plan.trials if trial.round == 0)
        logs = self.store.logs(self.cell.slug)
        return CellSearch(self.cell, self.tools, Search(plan.sets, settings), logs, seed, self, plan.beyond)

    def _end(self) -> Ended:
        try:
            return self._made.run()
        except KeyboardInterrupt:
            return None
        except (DriveError, LaunchError) as error:
            return Broken(error)

    def _told(self, end: Ended) -> CellLimit:
        variant, made = self.cell.variant, self._made
        subject = Subject(
            slug=self.cell.slug,
            server=variant.slug,
            scenario=self.cell.scenario.name,
            load=load_told(template(self.cell)),
            build=self.built.hashes.get(variant.slug, ""),
            runtime_version=self.built.runtimes.get(variant.slug, ""),
        )
        told = cell_limit(subject, ending(end), answers(made.search, end), made.probes, made.beyond)
        return told.model_copy(update={"findings": tuple(made.findings), "starts": tuple(made.warm_ups)})
