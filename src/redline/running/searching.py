"""Create, resume and execute searches, with their directories. A listener shows them.

The rest of a search is read from the directory, so it can be resumed from any point.
"""

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from math import inf
from pathlib import Path

from redline.errors import DriveError, LaunchError, StoreError, UsageError
from redline.limits.judged_search import judged_search
from redline.limits.report import search_order
from redline.limits.search_state import SearchState
from redline.model import Cell, Manifest, Plan, Run, Suite
from redline.model.limits import LimitReport
from redline.model.search import ProbeRecording, SearchTerms
from redline.running.assembly import Workbench
from redline.running.cell_search import CellSearch, SearchListener
from redline.running.host_pair import HostPair
from redline.running.record import Tools
from redline.running.same_builds import same_builds
from redline.running.session import (
    Bench,
    RunSession,
    SessionListener,
    Source,
    build_all,
    check_left,
    leave_cores,
    new_manifest,
    refuse_changed,
    refuse_other_hosts,
)
from redline.running.views import search_report, write_views
from redline.storage.runs import RunStore
from redline.suite import ALL_AVAILABLE, make_search_plan
from redline.wording import part

_NumberedState = tuple[int, SearchState]
"""The number of a cell, from 1, and the state of its search."""


@dataclass(frozen=True)
class SearchRequest:
    """A suite of open loads, and the questions about its cells. `parts` are the suites that it joins, if any."""

    suite: Suite
    terms: SearchTerms
    parts: tuple[Suite, ...] = ()

    def plan(self, unavailable: Mapping[str, str] = ALL_AVAILABLE) -> Plan:
        """Return the plan, without unavailable servers; `unavailable` maps their slugs to reasons."""
        return make_search_plan(self.suite, self.parts or (self.suite,), unavailable)


@dataclass(frozen=True)
class SearchSession:
    """A search that can be executed. `is_kept` says whether its directory outlives the command."""

    store: RunStore
    manifest: Manifest
    bench: Workbench
    listener: SessionListener
    is_kept: bool = True
    began_s: list[float] = field(default_factory=list)

    def left_s(self) -> float:
        """The seconds that are left of the time of the search, whose servers are built; infinite if it has no limit."""
        lasts_ns = self.manifest.terms.lasts_ns
        if not self.began_s:
            self.began_s.append(time.monotonic())
        return inf if lasts_ns is None else lasts_ns / 1e9 - (time.monotonic() - self.began_s[0])

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Leave what happens within it out of the time of the search."""
        begins_s = time.monotonic()
        yield
        self.began_s[:] = [began_s + time.monotonic() - begins_s for began_s in self.began_s]

    @classmethod
    def create(  # noqa: PLR0913
        cls,
        asked: SearchRequest,
        source: Source,
        folder: Path,
        bench: Workbench,
        listener: SessionListener,
        *,
        is_kept: bool,
        began_s: float | None = None,
    ) -> "SearchSession":
        """Build the servers, and store the request. Raises RedlineError.

        `began_s`: when the time of the search began, by the monotonic clock, if before; builds take none of it.
        """
        store = RunStore(folder, is_kept=is_kept)
        store.check_free()
        builds_s = time.monotonic()
        built = build_all(asked.suite, bench.tools.launcher, listener)
        plan = asked.plan(built.unavailable)
        check_left(plan, "search", "`redline list` says what can be built here")
        manifest = new_manifest(folder.resolve().name, source, plan, bench, asked.terms)
        if not bench.pairs and not source.file:
            manifest = manifest.of_same_builds(same_builds(plan, built, bench.tools))
        now_s = time.monotonic()
        began_s = now_s if began_s is None else began_s + now_s - builds_s
        store.create(manifest, source.kept)
        return cls(store, manifest, bench, listener, is_kept, [began_s])

    @classmethod
    def resume(cls, folder: Path, bench_for: Bench, listener: SessionListener) -> "SearchSession":
        """Open a stored search, and make sure that its servers and this machine have not changed."""
        store = RunStore(folder)
        store.check_parts()
        manifest = store.manifest()
        cells = manifest.plan.cells.values()
        bench = bench_for(manifest)
        refuse_other_hosts(manifest.hosts, bench.hosts)
        planned = {cell.variant.slug for cell in cells}
        built = build_all(manifest.plan.suite, bench.tools.launcher, listener, planned)
        recordings = tuple(made.recording for cell in cells for made in store.probes(cell))
        refuse_changed(built, Run(manifest=manifest, recordings=recordings), bench.environment)
        return cls(store, manifest, bench, listener)

    def execute(self) -> tuple[LimitReport, bool]:
        """Search the rest, and write the views if it is kept. Returns the report, and whether it was interrupted."""
        leave_cores(self.bench)
        self.left_s()  # it begins now
        with self.store.locked():
            interrupted = self.manifest.same is None and self._search()
            report = search_report(self.store)
            if self.is_kept:
                write_views(self.store, report)
            return report, interrupted

    def _search(self) -> bool:
        """Search all cells. Returns whether the search was interrupted."""
        cells = [self.manifest.plan.cells[cell_id] for cell_id in search_order(self.manifest.plan)]
        states = list[SearchState]()
        for cell in cells:
            states.append(_resumed(self.manifest, cell, self.store.probes(cell), states))
        left = [(number, state) for number, state in enumerate(states, 1) if not state.ended]
        sites = self._sites(left, len(cells))
        if len(sites) == 1:
            return sites[0].search()
        with ThreadPoolExecutor(len(sites)) as threads:
            searches = [threads.submit(copy_context().run, site.search) for site in sites]
            try:
                wait(searches)
            except KeyboardInterrupt:
                for site in sites:
                    site.is_over.set()
                while wait(searches, 1.0).not_done:
                    self.bench.interrupt()
            interrupted = [future.result() for future in searches]  # raises the exception of a search
            return any(interrupted)

    def _sites(self, left: Sequence[_NumberedState], cells: int) -> list["_SiteSearch"]:
        """Return the pairs of hosts, or this machine, with their searches: cells of a scenario and load share a pair.

        Pairs take them in the plan's order, so that a search is resumed on its pair.
        """
        planned = self.manifest.plan.cells
        names = dict.fromkeys(_side_by_side(planned[cell_id]) for cell_id in search_order(self.manifest.plan))
        numbers = {name: number for number, name in enumerate(names)}
        sites = [_SiteSearch(self, pair.tools, cells, pair) for pair in self.bench.pairs]
        sites = sites or [_SiteSearch(self, self.bench.tools, cells)]
        for number, state in left:
            sites[numbers[_side_by_side(state.cell)] % len(sites)].share.append((number, state))
        return sites


def _resumed(
    manifest: Manifest, cell: Cell, made: Sequence[ProbeRecording], before: Sequence[SearchState]
) -> SearchState:
    """The state from which the search on a cell goes on. Raises StoreError if its recordings hold what cannot be."""
    judged = judged_search(manifest, cell, made, before)
    if judged.unused or judged.state is None:
        raise StoreError(judged.unused[0], hint="it is damaged: move it away, and --resume makes it again")
    return judged.state


def _side_by_side(cell: Cell) -> tuple[str, str]:
    return cell.scenario.name, cell.load.name


@dataclass(frozen=True)
class _SiteSearch:
    """The `share` of a pair of hosts, or of this machine, in all `cells`; `is_over` interrupts the next load."""

    session: SearchSession
    tools: Tools
    cells: int
    pair: HostPair | None = None
    share: list[_NumberedState] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)

    def search(self) -> bool:
        """Search the cells, at the same time only those of a scenario and load. Returns whether it was interrupted."""
        if not self._are_right():
            return False
        if not self.session.manifest.terms.by_probe:
            return self._in_turns(self.share)
        groups: dict[tuple[str, str], list[_NumberedState]] = {}
        for number, state in self.share:
            groups.setdefault(_side_by_side(state.cell), []).append((number, state))
        return any(map(self._in_turns, groups.values()))  # an interrupt leaves the other groups for a resume

    def _are_right(self) -> bool:
        """Whether running servers answer all requests of a command right: minutes later is too late to say so.

        A suite with a wrong answer searches its other cells, as a run does. A single cell is asked by its own search.
        """
        asked = [(number, state) for number, state in self.share if state.cell.variant.is_attached and not state.loads]
        if self.session.manifest.suite_file or len(asked) < 2:
            return True
        for number, state in asked:
            with self.session.listener.cell(state.cell, number, self.cells, alone=True, left_ns=0) as listener:
                try:
                    self._search_on(state, listener).check()
                except (DriveError, LaunchError) as error:
                    self.session.listener.broken(error)
                    return False
        return True

    def _in_turns(self, share: Sequence[_NumberedState]) -> bool:
        """Search some cells in turns. Returns whether the search was interrupted."""
        left, searches = list(share), dict[int, CellSearch]()
        session, alone = self.session, len(self.session.bench.pairs) < 2
        with ExitStack() as running:
            while left:
                for number, state in tuple(left):
                    try:
                        left_ns = self._longest_left_ns()
                        turn = session.listener.cell(state.cell, number, self.cells, alone=alone, left_ns=left_ns)
                        with turn as listener:
                            if number not in searches:
                                searches[number] = self._search_on(state, listener)
                                running.callback(self._leave, searches[number])
                            searches[number].listener = listener
                            has_more = searches[number].turn()
                    except KeyboardInterrupt:
                        return True
                    except (DriveError, LaunchError) as error:
                        session.listener.broken(error)
                        has_more = False
                        if self.pair is not None and self.pair.is_lost:
                            return False  # the rest of its share can be resumed when the host is back
                        if session.manifest.terms.by_probe and not state.probes:
                            return False  # the other searches have nothing to be compared with
                    if not has_more:
                        left.remove((number, state))
        return False

    def _leave(self, search: CellSearch) -> None:
        """Stop the server of a search that ended early, and show an error of a command after it."""
        try:
            search.stop()
        except LaunchError as error:
            self.session.listener.broken(error)

    def _longest_left_ns(self) -> int:
        """The longest that the rest of its share takes, roughly, in nanoseconds."""
        return sum(state.longest_left_ns() for _, state in self.share if not state.ended)

    def _search_on(self, state: SearchState, listener: SearchListener) -> CellSearch:
        return CellSearch(
            self.tools,
            state,
            self.session.store,
            listener,
            log_is_kept=self.session.is_kept,
            pause=self.is_over.wait,
            is_over=self.is_over.is_set,
            left_s=self.session.left_s,
        )


def resume(
    folder: Path,
    bench_for: Bench,
    listener: SessionListener,
    trials: int | None = None,
    budget_ns: int | None = None,
) -> RunSession | SearchSession:
    """Open the session in a folder, and make sure that its servers and this machine have not changed.

    `trials` is the final number per cell, `budget_ns` the time of all starts together; a search takes neither. Raises
    RedlineError if it cannot go on.
    """
    if RunStore(folder).kind != "search":
        return RunSession.resume(folder, bench_for, listener, trials, budget_ns)
    asked = "trials" if trials is not None else "budget" if budget_ns is not None else ""
    if asked:
        raise not_of_searches(asked, folder)
    return SearchSession.resume(folder, bench_for, listener)


def not_of_searches(asked: str, folder: Path) -> UsageError:
    """The error of a part that is for runs, where a folder holds a search."""
    return UsageError(f"{folder} holds a search, which takes no " + part(asked), hint=f"leave out {part(asked)}")
