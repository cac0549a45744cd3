"""Search for the commit that made a metric worse: measure one commit after another, and store what is known.

The directory holds `bisect.json`, which is written after each measurement, and a comparison for each in `steps/`. What
a killed search was measuring is measured again.
"""

import math
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from redline.errors import (
    BuildError,
    DriveError,
    LaunchError,
    NotStoredError,
    RedlineError,
    UsageError,
)
from redline.files import as_store_error, write_atomically
from redline.history.bisecting import Bisecting
from redline.model import Manifest, Metric, Plan, Report, Suite
from redline.model.bisection import BisectedCommit, Bisection, CommitDuet
from redline.model.catalogue import Revision
from redline.running.assembly import Workbench
from redline.running.manifests import Source
from redline.running.session import RunSession, SessionListener, build_all
from redline.storage.reading import read_stored
from redline.storage.runs import BISECTION, RunStore
from redline.suite.planning import is_mix
from redline.wording import part


class CommitMeasurement(Protocol):
    """Measures a commit against the oldest one."""

    def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
        """Measure it, as the `number`-th. Raises RedlineError if it cannot be, and KeyboardInterrupt."""


class BisectListener(Protocol):
    """Follows a search, to show it."""

    def measuring(self, commit: BisectedCommit, told: Bisection) -> None:
        """A commit is about to be measured."""

    def measured(self, commit: BisectedCommit, told: Bisection) -> None:
        """A commit was measured, or could not be."""


class BisectStore:
    """The directory of a search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def exists(self) -> bool:
        """Whether it holds a search."""
        return (self.folder / BISECTION).is_file()

    def check_free(self) -> None:
        """Raise StoreError unless a new search can be kept here."""
        RunStore(self.folder).check_free()

    def read(self) -> Bisection:
        """Return what is stored. Raises StoreError."""
        if not os.path.lexists(file := self.folder / BISECTION):
            message, hint = f"{self.folder} holds no bisection", "name a directory that `redline bisect` made"
            raise NotStoredError(message, hint=hint)
        return read_stored(file, Bisection, f"begin again with another {part('keep', 'DIR')}")

    def write(self, told: Bisection) -> None:
        """Store what is known, at once or not at all. Raises StoreError."""
        with as_store_error(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self.folder / BISECTION, told.json_bytes(indent=2) + b"\n")
            write_atomically(self.folder / "bisect.log", told.log.encode(errors="surrogateescape"))

    def step(self, number: int, commit: BisectedCommit) -> Path:
        """An empty folder for a measurement; what a killed one left there is removed. Raises StoreError."""
        folder = self.folder / "steps" / f"{number:04}-{commit.commit[:9]}"
        with as_store_error(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.parent.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def why(self) -> Path:
        """The page of the account of the commit."""
        return self.folder / "why" / "report.html"

    def account(self) -> Path:
        """An empty folder for the account of the commit. Raises StoreError."""
        folder = self.why.parent
        with as_store_error(folder):
            shutil.rmtree(folder, ignore_errors=True)
        return folder

    def first(self) -> Manifest:
        """The manifest of the comparison of the ends, which says how all commits are measured. Raises StoreError."""
        for folder in sorted((self.folder / "steps").glob("0001-*")):
            return RunStore(folder).manifest()
        raise NotStoredError(f"{self.folder} has no first comparison", hint="begin again: nothing was measured yet")


def search(store: BisectStore, told: Bisection, measure: CommitMeasurement, listener: BisectListener) -> Bisection:
    """Measure commits until the search ends, and return all that is known.

    Raises RedlineError if the newest commit cannot be measured: nothing could be compared then.
    """
    try:
        while (commit := Bisecting(told).next()) is not None:
            listener.measuring(commit, told)
            told = Bisecting(_with_next(told, commit, measure)).judged()
            store.write(told)
            listener.measured(next(one for one in told.commits if one.commit == commit.commit), told)
    except KeyboardInterrupt:
        return told.stopped()
    return told


def _with_next(told: Bisection, commit: BisectedCommit, measure: CommitMeasurement) -> Bisection:
    """A search with one more measurement, or with a commit that cannot be measured. Raises RedlineError."""
    began = time.monotonic_ns()
    try:
        duet = measure(commit, len(told.order) + 1)
    except (BuildError, LaunchError, DriveError) as error:
        if commit.commit == told.newest.commit and not commit.duets:
            raise
        # The oldest commit, or the engine, may have failed; a build is the commit's own, as is what fails twice.
        is_own = isinstance(error, BuildError) or commit.commit in told.order
        by_chance = isinstance(error, _TooLittleError) or not is_own
        why = error.message.partition("\n")[0]
        return told.with_failure(commit, why, time.monotonic_ns() - began, by_chance=by_chance)
    return told.with_duet(commit, duet, time.monotonic_ns() - began)


@dataclass(frozen=True)
class DuetOfCommit:
    """Measures a commit by a duet with the oldest one, as `redline ab` does; builds stay until the bench ends."""

    store: BisectStore
    suite: Suite
    bench: Workbench
    source: Source
    listener: SessionListener

    def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
        """Measure it. Raises RedlineError and KeyboardInterrupt."""
        suite = self.suite.of_second_revision(Revision(name=commit.commit[:9], commit=commit.commit))
        began = time.monotonic_ns()
        built = build_all(suite, self.bench.tools.launcher, self.listener, tells=False)
        for slug, failure in sorted(built.failures.items(), key=lambda item: item[0] != suite.variants[0].slug):
            if slug == suite.variants[0].slug:  # the oldest, without which no other is measured
                raise RedlineError(failure.message, hint=failure.hint)
            raise failure
        build_ns = time.monotonic_ns() - began
        folder = self.store.step(number, commit)
        session = RunSession.create(suite, self.source, folder, self.bench, self.listener)
        end = session.execute()
        if end.interrupted:
            raise KeyboardInterrupt
        report = end.parts[-1][1]
        if report.run.same is not None:
            return CommitDuet(logs=(0.0,), is_same=True, build_ns=build_ns)
        return _duet_of(report, session.store.manifest().plan, build_ns)

    def account(self, told: Bisection) -> Report:
        """Compare the commit with its parent, and account for the difference.

        Raises RedlineError and KeyboardInterrupt.
        """
        commit, parent = told.culprits[0], told.parent
        assert parent is not None, "the first of the commits is never the culprit"
        revisions = (Revision(name=one[:9], commit=one) for one in (parent, commit))
        suite = self.suite.accounting(*revisions)
        session = RunSession.create(suite, self.source, self.store.account(), self.bench, self.listener)
        end = session.execute()
        if end.interrupted:
            raise KeyboardInterrupt
        return end.parts[-1][1]


class _TooLittleError(DriveError):
    """A comparison has no ratio that counts, although both commits answered: another one may have."""


def _duet_of(report: Report, plan: Plan, build_ns: int) -> CommitDuet:
    """The ratios in the metric of the suite: those of the mix if there are several requests. Raises DriveError."""
    suite = plan.suite
    metric = suite.metric or Metric.CPU_PER_REQUEST
    judged = [one for one in report.comparisons if one.metric is metric]
    if len(judged) > 1:
        judged = [one for one in judged if is_mix(plan.cells[one.cell_id].scenario, suite.scenarios)]
    if len(judged) != 1:
        hint = f"select one by {part('scenarios', 'NAME')}"
        raise UsageError("a bisection is about one request, or a mix of several", hint=hint)
    (one,) = judged
    if one.duet is None or one.ratio is None or not one.duet.of_starts:
        raise _TooLittleError(one.refused or f"not enough data to compare {metric.words}", hint="measure for longer")
    if one.duet.bias is None:
        message = one.duet.unsettled or f"{metric.words}: too much was read late to compare it"
        raise _TooLittleError(message, hint="measure for longer")
    return CommitDuet(
        logs=tuple(map(math.log, one.duet.of_starts)),
        within_se=one.duet.blocks_se or 0.0,
        bias=one.duet.bias,
        build_ns=build_ns,
    )
