"""Create, resume and execute runs, with their directories; shared code for searches. Listeners show them.

The remaining work is read from the directory, so a session can be resumed from any point. A run has one part or two:
capacities that rates are shares of are measured first, as a run in RUN/capacity.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from redline import analysis, running
from redline.errors import RedlineError, UsageError
from redline.lazily import LateModule, late
from redline.model import (
    Cell,
    Manifest,
    Plan,
    Profile,
    ServerFacts,
    Skipped,
    Suite,
    UsedHost,
    Variant,
)
from redline.ports import Building, BuildOutcome, Launcher
from redline.quantities import duration
from redline.running.assembly import Workbench, hosts_by_name
from redline.running.manifests import Source, new_manifest
from redline.running.quiet import Quiet
from redline.running.rounds import decide_by, run_trials
from redline.running.same_builds import same_builds
from redline.running.trial import TrialListener
from redline.storage.runs import RunStore, capacity_store
from redline.suite import (
    Capacities,
    affordable,
    capacity_loads,
    expected_starts_ns,
    make_capacity_plan,
    make_plan,
    with_budget,
    with_further_starts,
    with_rounds,
    without_profiles,
)
from redline.wording import as_argument, part

if TYPE_CHECKING:
    from redline.analysis import results, unanswered, undecided
    from redline.analysis.undecided import Undecided
    from redline.launching import touched
    from redline.model import Enough, Environment, Report, Run
else:  # what judges, and what only comparisons of revisions need: the first load begins without it
    results, unanswered, undecided = late("redline.analysis", "results", "unanswered", "undecided")
    touched = LateModule("redline.launching.touched")

_MUST_BE_THE_SAME = ("engine_sha256", "hostname", "cores", "server_cpus", "engine_cpus")

Bench = Callable[[Manifest], Workbench]
"""Assembles the tools to resume a stored session."""


class SessionListener(Protocol):
    """Follows a session, to show it."""

    def building(self) -> AbstractContextManager[Callable[[Building], None]]:
        """Servers are about to be built."""

    def built(self, outcome: BuildOutcome) -> None:
        """All servers that can be built have been."""

    def part(self, number: int, store: RunStore) -> None:
        """Part 1 or 2 of a run begins: 1 is the capacity, 2 the rest."""

    def lacks(self, first: RunStore) -> None:
        """The capacity lacks recordings that were planned, and is not measured: the second part has its rates."""

    def calibrating(self, pairs: int) -> None:
        """This many pairs of hosts are about to be compared."""

    def skipped(self, skipped: Skipped) -> None:
        """A cell will not be run after all."""

    def trials(self, plan: Plan, done: int) -> AbstractContextManager[TrialListener]:
        """The trials of a plan are about to be run; `done` trials were run before."""

    def known(self, known: Undecided, left_ns: int) -> None:
        """What is known before further starts, for which there is so much time, or after the last."""

    def cell(
        self, cell: Cell, number: int, cells: int, *, alone: bool, left_ns: int
    ) -> AbstractContextManager[running.SearchListener]:
        """A turn of the search on a cell is about to begin: the `number`-th of `cells`.

        Unless `alone`, other cells are searched on other hosts at the same time. `left_ns` is about the longest that
        this turn and all that follow take, in nanoseconds.
        """

    def broken(self, error: RedlineError) -> None:
        """The search on a cell could not go on."""


@dataclass(frozen=True)
class SessionEnd:
    """How far a run came: the parts that have something to show, in order, and what of the last is undecided."""

    parts: tuple[tuple[RunStore, Report], ...]
    interrupted: bool
    undecided: Undecided | None = None


@dataclass(frozen=True)
class RunSession:
    """A run that can be executed; `unavailable` maps slugs to the reason why a server cannot be run."""

    store: RunStore
    bench: Workbench
    unavailable: Mapping[str, str]
    listener: SessionListener

    @classmethod
    def create(
        cls, suite: Suite, source: Source, folder: Path, bench: Workbench, listener: SessionListener
    ) -> RunSession:
        """Build the servers, and write the manifest of the run's first part. Raises RedlineError."""
        store, first = RunStore(folder), capacity_store(folder)
        store.check_free()
        built = build_all(suite, bench.tools.launcher, listener, tells=False)
        unavailable = built.unavailable
        if capacity_loads(suite):
            plan, place = make_capacity_plan(suite, unavailable), first
        else:
            plan, place = _profilable(make_plan(suite, unavailable, Capacities()), bench, listener), store
        is_own = all(variant.is_own for variant in suite.variants)  # `redline list` does not know them
        if not plan.steps and built.failures and (is_own or not suite.alone):
            shown, *others = built.failures
            listener.built(built.failing(others))
            raise built.failures[shown]
        listener.built(built)
        check_left(plan, "run", "`redline list` says what can be built here")
        name = folder.resolve().name if place is store else f"{folder.resolve().name}/{first.folder.name}"
        manifest = new_manifest(name, source, plan, bench)
        if source.kind == "comparison" and not bench.pairs:
            manifest = manifest.of_same_builds(same_builds(plan, built, bench.tools))
        if plan.suite.why:
            manifest = manifest.of_range(touched.touched_in(plan))
        place.create(manifest, source.kept)
        return cls(store, bench, unavailable, listener)

    @classmethod
    def resume(
        cls,
        folder: Path,
        bench_for: Bench,
        listener: SessionListener,
        trials: int | None = None,
        budget_ns: int | None = None,
    ) -> RunSession:
        """Open a stored run, and make sure that its measured servers have not changed.

        With `trials` it gets further rounds, until each cell has this many; with a budget, until it is spent. Raises
        UsageError if that adds no round.
        """
        store = RunStore(folder)
        runs = [part.run() for part in (capacity_store(folder), store) if part.exists]
        manifest = runs[0].manifest if runs else store.manifest()
        bench = bench_for(manifest)
        refuse_other_hosts(manifest.hosts, bench.hosts)
        planned = {cell.variant.slug for run in runs for cell in run.manifest.plan.cells.values()}
        only = planned if store.exists else None  # an unplanned second part may need the others too
        built = build_all(manifest.plan.suite, bench.tools.launcher, listener, only)
        for run in runs:
            refuse_changed(built, run, bench.environment)
        if trials is not None:
            extend(store, trials)
        if budget_ns is not None:
            extend_budget(store, budget_ns)
        return cls(store, bench, built.unavailable, listener)

    def execute(self, *, is_kept: bool = True, more_ns: int = 0, quiet: Quiet | None = None) -> SessionEnd:
        """Run the rest of the session, and write the views. Messages name no log unless the directory `is_kept`.

        Then make further starts of what is not sure for `more_ns`, of what is undecided first. With `quiet`, each
        start waits for a quiet machine, which takes none of that time.

        Raises DriveError if a comparison within a budget ends without an answer: a start failed, or too little
        was measured.
        """
        self.store.is_kept, first = is_kept, capacity_store(self.store.folder)
        shown: list[tuple[RunStore, Report]] = []
        if first.exists:
            planned = self.store.exists
            if not planned:
                self.listener.part(1, first)
            elif not first.run().complete:
                self.listener.lacks(first)
            interrupted = not planned and self._measure(first, quiet)
            shown.append((first, running.write_run_views(first)))
            if interrupted:
                return SessionEnd(tuple(shown), interrupted)
            if not planned:
                self._plan_second(first)
            self.listener.part(2, self.store)
        if self.store.manifest().same is not None:
            return SessionEnd(((self.store, running.write_run_views(self.store, is_kept=is_kept)),), interrupted=False)
        interrupted = self._measure(self.store, quiet)
        report, run = running.write_run_views(self.store, is_kept=is_kept), self.store.run()
        if not run.manifest.plan.suite.alone and not interrupted and (error := unanswered.unanswered(run, report)):
            raise error
        known = undecided.what_is_undecided(run.manifest.plan, report)
        if more_ns and not interrupted:
            report, interrupted, known = self._go_on(report, more_ns, quiet)
        return SessionEnd((*shown, (self.store, report)), interrupted, known)

    def _go_on(self, report: Report, more_ns: int, quiet: Quiet | None) -> tuple[Report, bool, Undecided]:
        """Make rounds of what is not sure until the time is over. Returns whether that was interrupted.

        Each round is planned when it begins and stored at once, so a session that is cut off can be resumed. `pace` is
        how much longer than expected the last round took.
        """
        left_ns, grown_ns, interrupted, pace = more_ns, more_ns, False, 1.0
        while True:
            plan = self.store.manifest().plan
            known = undecided.what_is_undecided(plan, report, pace)
            self.listener.known(known, left_ns)
            groups = affordable(plan, known.units, left_ns / pace)
            if interrupted or report.run.aborted_by or not groups:
                return report, interrupted, known
            began_ns = time.monotonic_ns() - _waited_ns(quiet)
            with self.store.locked():
                self.store.forget_enough()
                self.store.extend(with_further_starts(plan, self.store.positions(), groups, grown_ns))
            grown_ns, interrupted = 0, self._measure(self.store, quiet, decides=False)
            report = running.write_run_views(self.store, is_kept=self.store.is_kept)
            took_ns = time.monotonic_ns() - _waited_ns(quiet) - began_ns
            left_ns, pace = left_ns - took_ns, max(1.0, took_ns / expected_starts_ns(plan, groups))

    def _plan_second(self, first: RunStore) -> None:
        """Give the other loads their rates, and write the manifest of the run."""
        run = first.run()
        suite = run.manifest.plan.suite
        plan = _profilable(make_plan(suite, self.unavailable, analysis.capacities(run)), self.bench, self.listener)
        known = {skipped.slug for skipped in make_plan(suite, self.unavailable).skipped}
        for skipped in plan.skipped:
            if skipped.slug not in known:
                self.listener.skipped(skipped)
        capacity = as_argument(first.folder)
        hint = f"see why: redline report {capacity}"
        if suite.auto is None:
            hint += f"; add trials to it: redline run --resume {capacity} {part('trials', 2 * suite.trials)}"
        check_left(plan, "run", hint)
        begun = run.manifest
        source = Source(begun.command, begun.suite_file, begun.suite_text, begun.kind)
        manifest = new_manifest(self.store.folder.resolve().name, source, plan, self.bench)
        self.store.create(manifest.of_range(begun.touched))

    def _calibrate(self, store: RunStore, plan: Plan) -> None:
        """Compare pairs of hosts, if there are several and they were not compared before."""
        if len(self.bench.pairs) > 1 and not store.positions() and not store.calibration():
            self.listener.calibrating(len(self.bench.pairs))
            store.save_calibration(
                hosts_by_name().calibrate(self.bench.pairs, plan, store.folder / "logs" / "calibration")
            )

    def _measure(self, store: RunStore, quiet: Quiet | None, *, decides: bool = True) -> bool:
        """Run the rest of the plan, which may end early if it `decides`. Returns whether it was interrupted."""
        leave_cores(self.bench)
        with store.locked():
            plan = store.manifest().plan
            growing = cache(lambda: results.GrowingRun())  # noqa: PLW0108 - nothing of the module is used before
            with self.listener.trials(plan, len(store.positions())) as listener:

                def decide(run: Run) -> Enough | None:
                    """The first round is made in any case, and all that were planned because something is undecided."""
                    is_begun = run.recordings or run.duets
                    return decide_by(growing, listener, run) if decides and is_begun else None

                before: Callable[[], None] = (
                    _at_once if quiet is None else partial(quiet.wait, listener.waiting, listener.waited)
                )
                executor = self.bench.executor(plan, store, listener, log_is_kept=store.is_kept, before=before)
                try:
                    self._calibrate(store, plan)
                    run_trials(plan, store, executor, listener, decide)
                except KeyboardInterrupt:
                    return True
        return False


def _at_once() -> None:
    """A start waits for nothing."""


def _waited_ns(quiet: Quiet | None) -> int:
    """How long this session has waited for the machine to be quiet."""
    return 0 if quiet is None else round(quiet.waited_s * 1e9)


def _profilable(plan: Plan, bench: Workbench, listener: SessionListener) -> Plan:
    """Return the plan without profiles that cannot be made on this machine; the listener gets these."""
    profilers, missing = bench.tools.profilers, dict[tuple[str, Profile], str]()
    if profilers is None or not (plan.profiled or plan.sampled):
        return plan
    wanted = [(trial.cell_id, trial.profile) for trial in plan.profiled]
    wanted += [(cell_id, duet.profile) for duet in plan.sampled for cell_id in duet.cell_ids]
    with listener.building() as progress:
        for cell_id, profile in wanted:
            variant = plan.cells[cell_id].variant
            if profile is not None and (variant.slug, profile) not in missing:
                missing[variant.slug, profile] = profilers.missing(
                    variant, profile, lambda line: progress(Building(("the profiler",), line))
                )
    made = without_profiles(plan, missing)
    for skipped in made.unprofiled:
        if skipped.cause == "machine":
            listener.skipped(skipped)
    return made


def build_all(
    suite: Suite,
    launcher: Launcher,
    listener: SessionListener,
    only: AbstractSet[str] | None = None,
    *,
    tells: bool = True,
) -> BuildOutcome:
    """Build every variant of the suite, or `only` those slugs. Failures are in the outcome, by slug.

    Unless it `tells` the listener the outcome, the caller does.
    """
    variants: tuple[Variant, ...] = suite.variants if suite.ceiling is None else (*suite.variants, suite.ceiling)
    wanted = [variant for variant in variants if only is None or variant.slug in only]
    # A ceiling is not compared, so one build of it is enough.
    once = [variant for variant in wanted if suite.builds > 1 and variant not in suite.variants]
    with listener.building() as progress:
        outcome = launcher.build([variant for variant in wanted if variant not in once], progress, suite.builds)
        outcome = outcome.joined(launcher.build(once, progress)) if once else outcome
    if tells:
        listener.built(outcome)
    return outcome


def stored_suite(folder: Path) -> Suite:
    """The suite of a stored run, of which only the capacity may have been planned. Raises StoreError."""
    store, first = RunStore(folder), capacity_store(folder)
    return (first if first.exists and not store.exists else store).manifest().plan.suite


def extend(store: RunStore, trials: int) -> None:
    """Plan further rounds of a stored run, until each cell has `trials` trials.

    Raises UsageError if a run already has that many, ends by itself, or has rates that are not known yet.
    """
    _check_planned(store, "trials")
    with store.locked():
        plan = store.manifest().plan
        if plan.suite.auto is not None and plan.suite.auto.precision is None:
            longer = f"redline ab --resume {as_argument(store.folder)} {part('budget', 'TIME')}"
            raise UsageError(f"{store.folder} ends by itself when its time is over", hint=f"give it more: {longer}")
        if plan.suite.auto is not None:
            raise UsageError(
                f"{store.folder} ends by itself when its comparisons are precise enough",
                hint="run its suite again with a finer `precision`",
            )
        if trials <= plan.suite.trials:
            raise UsageError(
                part("trials", trials)
                + f" adds nothing: {store.folder} already plans that many or more for every cell",
                hint=f"give more, such as {part('trials', 2 * plan.suite.trials)}",
            )
        store.extend(with_rounds(plan, trials))


def extend_budget(store: RunStore, budget_ns: int) -> None:
    """Give a stored comparison a longer budget. Raises UsageError if it has no budget, or this adds no round."""
    _check_planned(store, "budget")
    with store.locked():
        plan = store.manifest().plan
        auto, asked = plan.suite.auto, part("budget")
        if auto is None:
            more = f"redline run --resume {as_argument(store.folder)} {part('trials', 2 * plan.suite.trials)}"
            raise UsageError(asked + f": {store.folder} has no time to fill", hint=f"add rounds with: {more}")
        if auto.budget_ns is None or auto.precision is not None:
            hint = f"leave out {asked}: it ends by itself when its comparisons are precise enough"
            raise UsageError(asked + f": {store.folder} has no time to fill", hint=hint)
        if len({step.round for step in plan.steps}) == 1 == auto.at_least:
            hint = f"leave out {asked}, or compare them anew"
            raise UsageError(asked + ": servers behind URLs have one start, whose length is planned", hint=hint)
        if budget_ns <= auto.budget_ns:
            began = duration(auto.budget_ns)
            given = part("budget", duration(budget_ns))
            message = given + f" adds nothing to the {began} that {store.folder} began with"
            more = part("budget", f"{2 * auto.budget_ns // 10**9}s")
            raise UsageError(message, hint=f"leave out {asked}, or give more: {more}")
        store.forget_enough()
        store.extend(with_budget(plan, budget_ns))


def _check_planned(store: RunStore, asked: str) -> None:
    """Raise UsageError for a run with nothing to add to, since only its capacity was planned."""
    if not store.exists:
        raise UsageError(
            f"{store.folder} has been measured no further than its capacity: it has no trials to add to",
            hint=f"resume it without {part(asked)} first",
        )


def refuse_changed(built: BuildOutcome, run: Run, environment: Environment) -> None:
    """Raise RedlineError if a resumed run would mix servers, JDKs or engines."""
    hint = "start a new run: trials of one run must be of one build"
    for slug in sorted({cell.variant.slug for cell in run.manifest.plan.cells.values()} & built.failures.keys()):
        raise RedlineError(f"{slug} cannot be built any more: {built.unavailable[slug]}", hint=hint)
    ran = [(recording.cell_id, recording.server) for recording in run.recordings]
    ran += [pair for duet in run.duets for pair in zip(duet.cell_ids, duet.servers, strict=False)]
    for cell_id, was in ran:
        if was is None:
            continue
        _refuse_changed_process(built, run.manifest.plan.cells[cell_id].variant.slug, was, hint)
        for hop in was.hops:
            _refuse_changed_process(built, hop.name, hop.process, hint)
    refuse_other_machine(run.manifest.environment, environment, "this run")


def _refuse_changed_process(built: BuildOutcome, name: str, was: ServerFacts, hint: str) -> None:
    if built.hashes.get(name) != was.build:
        raise RedlineError(f"{name} has changed since this run began", hint=hint)
    before, now = was.runtime_version or "nothing known", built.runtimes.get(name)
    # The hash of a build does not include the JDK that its server is started with.
    if now is not None and now != was.runtime_version:
        message = f"{name} ran on {before}; now it would run on {now or 'nothing known'}"
        raise RedlineError(message, hint=f"put {was.runtime_version or 'what it ran on'} back, or {hint}")


def refuse_other_machine(was: Environment, now: Environment, begun: str) -> None:
    """Raise RedlineError if a session would be resumed with another engine or machine."""
    for name in _MUST_BE_THE_SAME:
        before, after = getattr(was, name), getattr(now, name)
        if before != after:
            changed = f"another {name.replace('_', ' ')}: {before}, now {after}"
            hint = "start a new session: all of it must be measured with one engine on one machine"
            raise RedlineError(f"{begun} was begun with {changed}", hint=hint)


def refuse_other_hosts(were: tuple[UsedHost, ...], now: tuple[UsedHost, ...]) -> None:
    """Raise RedlineError if a run that was begun on some hosts would be resumed on others."""
    before, after = ({(host.role, host.name) for host in hosts} for hosts in (were, now))
    if before == after:
        return
    if not now:
        raise RedlineError("this run was begun on hosts of a cluster", hint=f"resume it there: {part('on', 'ADDRESS')}")
    names = ", ".join(sorted({name for _, name in before ^ after}))
    raise RedlineError(
        f"this run was begun on other hosts: {names} differ",
        hint="start a new run: its trials must be of the same hosts",
    )


def leave_cores(bench: Workbench) -> None:
    """Keep this process off the cores of server and engine."""
    if bench.tools.placement.lab_cpus:
        os.sched_setaffinity(0, bench.tools.placement.lab_cpus)


def check_left(plan: Plan, verb: str, hint: str) -> None:
    """Raise RedlineError if nothing in a plan can be run."""
    if not plan.steps:
        reasons = "; ".join(sorted({skipped.reason for skipped in plan.skipped}))
        raise RedlineError(f"nothing is left to {verb}: {reasons}", hint=hint)
