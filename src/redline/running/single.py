"""The session of `redline load`: a single trial, with requests beside its load while the server runs."""

from collections.abc import Callable, Sequence
from dataclasses import field
from pathlib import Path
from typing import Literal

from redline.driving.engine import EngineDriver
from redline.errors import DriveError, LaunchError
from redline.lazily import dataclass
from redline.model import Cell, Interval, PlannedTrial, Recording, Suite
from redline.ports import Driver, Endpoint
from redline.running.assembly import Workbench
from redline.running.manifests import Source, new_manifest
from redline.running.record import Tools
from redline.running.trial import TrialOptions, run_trial
from redline.running.views_ahead import OF_RESULTS, OF_VIEWS
from redline.storage.runs import RunStore
from redline.suite import make_plan


@dataclass(frozen=True)
class LoadFollower:
    """What follows a load: `on_interval` gets what is measured, `on_cookies` the names of cookies that answers set."""

    on_interval: Callable[[Interval], None]
    on_cookies: Callable[[tuple[str, ...]], None]


@dataclass(frozen=True)
class SingleTrial:
    """A session of one trial in a directory of its own. It is made once: nothing is repeated or resumed.

    The directory has logs alone unless `is_stored`.
    """

    store: RunStore
    tools: Tools
    cell: Cell
    seed: int
    is_stored: bool

    @classmethod
    def create(cls, suite: Suite, source: Source, store: RunStore, bench: Workbench) -> "SingleTrial":
        """Plan a suite of a single cell and trial, and write the manifest. Raises StoreError."""
        plan = make_plan(suite)
        store.create(new_manifest(store.folder.resolve().name, source, plan, bench), source.kept)
        (cell,) = plan.cells.values()
        return cls(store, bench.tools, cell, suite.seed, is_stored=True)

    @classmethod
    def passing(cls, suite: Suite, store: RunStore, tools: Tools) -> "SingleTrial":
        """Plan a suite of a single cell and trial of which nothing is stored."""
        (cell,) = make_plan(suite).cells.values()
        return cls(store, tools, cell, suite.seed, is_stored=False)

    def execute(
        self,
        workers: int,
        follower: LoadFollower,
        *,
        is_kept: bool,
        request_log: Path | None = None,
        later: Sequence[str] = (),
    ) -> Recording:
        """Make the trial, and store its recording; Ctrl-C ends the load early. `request_log` is a folder for requests.

        `later` names what the caller needs afterwards besides what judges the load, and makes its views if it is kept.

        Raises LaunchError if the server does not start, and DriveError, with the recording stored, if nothing was sent.
        """
        sent = _AroundLoad(self.cell, self.tools.driver, follower)
        options = TrialOptions(
            on_interval=follower.on_interval,
            workers=workers,
            keep_interrupted=True,
            log_is_kept=is_kept,
            has_fixed_work=False,
            on_verified=sent.verified,
            on_recorded=sent.recorded,
            request_log=request_log,
            later=(*(OF_VIEWS if is_kept else OF_RESULTS), *later),
        )
        planned = PlannedTrial(cell_id=self.cell.id, round=0, position=0, seed=self.seed)
        recording = run_trial(planned, self.cell, self.tools, self.store.create_folder("logs"), options)
        failure = recording.failure
        if failure is not None and failure.stage == "launch":
            kind: Literal["start", "not_ready"] = "not_ready" if failure.kind == "not_ready" else "start"
            raise LaunchError(failure.message, hint=failure.hint, kind=kind, log_tail=failure.log_tail)
        recording = recording.checked(sent.before, sent.still_wrong)
        if self.is_stored:
            self.store.save(recording, self.cell)
        if recording.traffic is None and failure is not None:
            raise DriveError(failure.message, hint=failure.hint)
        return recording


@dataclass
class _AroundLoad:
    """Counts the requests before a load, and sends some once more after it, while the server runs."""

    cell: Cell
    driver: Driver
    follower: LoadFollower
    before: int = field(default=0, init=False)
    still_wrong: str = field(default="", init=False)

    def verified(self) -> None:
        if isinstance(self.driver, EngineDriver):
            self.before = self.driver.asked
            if self.driver.cookies:
                self.follower.on_cookies(self.driver.cookies)

    def recorded(self, recording: Recording, endpoint: Endpoint) -> None:
        self.still_wrong = still_wrong(self.cell, recording, self.driver, endpoint)


def still_wrong(cell: Cell, recording: Recording, driver: Driver, endpoint: Endpoint) -> str:
    """Send each of several requests once more after wrong answers: the load counts them without their requests.

    Returns the first request with a wrong answer, and how it is wrong; empty if all are answered right by now, and
    after an interrupt.
    """
    traffic = recording.traffic
    if traffic is None or traffic.ended == "interrupted" or len(cell.scenario.requests) == 1:
        return ""
    outcomes = traffic.counts.outcomes
    if not outcomes.unexpected_status + outcomes.unexpected_body:
        return ""
    try:
        return driver.verify(cell, endpoint) or ""
    except (DriveError, KeyboardInterrupt):  # the load was measured all the same
        return ""
