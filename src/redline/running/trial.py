"""A trial, in the order that is the method: start, verify, warm up, measure, stop."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from redline.errors import LaunchError
from redline.lazily import dataclass
from redline.model import (
    Cell,
    DuetBlock,
    DuetRecording,
    Failure,
    FixedWork,
    Interval,
    PlannedDuet,
    PlannedTrial,
    Precision,
    Recording,
    Run,
    Stage,
)
from redline.ports import Endpoint, Launch, LoadOptions, Profiler
from redline.running.record import Tools, failure_of, new_recording, record_load, verify

if TYPE_CHECKING:  # few runs wait for a quiet machine
    from redline.running.quiet import Look

Step = PlannedTrial | PlannedDuet
AnyRecording = Recording | DuetRecording


class TrialListener(Protocol):
    """Follows the trials of a run, to show them."""

    def trial_started(self, planned: PlannedTrial, cell: Cell) -> None:
        """A trial is about to start its server."""

    def interval_seen(self, planned: PlannedTrial, interval: Interval) -> None:
        """The engine reported another interval."""

    def trial_ended(self, recording: Recording, cell: Cell) -> None:
        """The trial's recording is stored."""

    def rounds_judged(self, precision: Precision) -> None:
        """The rounds so far are not precise enough."""

    def repeated(self, steps: Sequence[Step]) -> None:
        """Trials and duets of the round that just ended are repeated: steal disturbed them or their partners."""

    def moved(self, planned: Step, cells: tuple[Cell, ...], failure: Failure) -> None:
        """Other hosts repeat a trial or duet whose host was lost."""

    def duet_started(self, planned: PlannedDuet, cells: tuple[Cell, ...]) -> None:
        """A duet is about to start its servers, the baseline first."""

    def block_seen(self, planned: PlannedDuet, block: DuetBlock) -> None:
        """The engine reported another block."""

    def duet_ended(self, recording: DuetRecording, cells: tuple[Cell, ...]) -> None:
        """The duet's recording is stored."""

    def waiting(self, look: "Look", at_most_s: float) -> None:
        """A start waits until the machine is quiet, for so long at most."""

    def waited(self, last: "Look | None", waited_s: float) -> None:
        """A start has waited; the machine is not quiet yet if there is a last look."""

    def compared(self, run: Run) -> None:
        """These are all starts so far of servers that are compared in duets alone, within a budget."""


@dataclass(frozen=True)
class TrialOptions:
    """Options of a trial that its caller chooses, besides its cell.

    `on_interval` gets what the engine reports. A `profiler` profiles the load, which is then longer. Without `workers`
    there is an engine worker for each core. With `keep_interrupted`, the first Ctrl-C ends the load early, and what was
    measured is recorded. `log_is_kept` says whether users can read the logs afterwards. `has_fixed_work` says whether
    the speed of the cores is measured before and after. `on_verified` is called before the load if the answers are
    right, and `on_recorded` gets the recording while the server still runs. `request_log` is a folder for single
    requests. `later` names what is imported while the server warms up, `on_stopped` is called for a Ctrl-C after the
    load: see `LoadOptions`.
    """

    on_interval: Callable[[Interval], None] = lambda _interval: None
    profiler: Profiler | None = None
    workers: int | None = None
    keep_interrupted: bool = False
    log_is_kept: bool = True
    has_fixed_work: bool = True
    on_verified: Callable[[], None] = lambda: None
    on_recorded: Callable[[Recording, Endpoint], None] = lambda _recording, _endpoint: None
    request_log: Path | None = None
    later: Sequence[str] = ()
    on_stopped: Callable[[], None] = lambda: None


def run_trial(
    planned: PlannedTrial,
    cell: Cell,
    tools: Tools,
    logs: Path,
    options: TrialOptions = TrialOptions(),  # noqa: B008 - frozen
) -> Recording:
    """Run a cell on a freshly started server. Failures of server and load are in the recording.

    Raises KeyboardInterrupt, and StoreError if a log cannot be written.
    """
    profiler = options.profiler
    started_unix_ns, log, hosts = time.time_ns(), logs / "server.log", tools.hosts()
    cell = cell.under_profiler if profiler else cell
    stages_ns: dict[Stage, int] = {}  # a suite's budget counts the time of a failed stage too
    setup_ns = list[int]()  # but does not count setup

    @contextmanager
    def timed(stage: Stage) -> Iterator[None]:
        began_ns = time.monotonic_ns() - sum(setup_ns)
        try:
            yield
        finally:
            stages_ns[stage] = time.monotonic_ns() - sum(setup_ns) - began_ns

    with ExitStack() as running:
        try:
            with timed("launch"):
                seed = planned.seed + planned.position  # compared servers have the same arrivals
                env = profiler.env if profiler else {}
                launch = Launch(
                    cell.variant,
                    tools.placement,
                    log,
                    seed,
                    planned.build_number,
                    env,
                    log_is_kept=options.log_is_kept,
                    on_setup=setup_ns.append,
                )
                server = running.enter_context(tools.launcher.running(launch))
        except LaunchError as error:
            failure = failure_of("launch", error.kind, error, error.log_tail)
            failed = new_recording(planned, started_unix_ns).failed(failure)
            return failed.in_trial(
                started_unix_ns=started_unix_ns, stages_ns=stages_ns, setup_ns=sum(setup_ns), hosts=hosts()
            )
        with timed("verify"):
            wrong = verify(cell, server, tools.driver)
        if wrong is None:
            options.on_verified()
            with timed("load"):
                load = LoadOptions(
                    log=logs / "engine.log",
                    server_log=log,
                    log_is_kept=options.log_is_kept,
                    workers=options.workers,
                    keep_interrupted=options.keep_interrupted,
                    interval_ns=_profiled_interval_ns(cell) if profiler else None,
                    on_interval=options.on_interval,
                    profiler=profiler,
                    request_log=options.request_log,
                    later=options.later,
                    looks_after=True,
                    on_stopped=options.on_stopped,
                )
                before_ns = _fixed_work_ns(tools) if options.has_fixed_work else {}
                recording = record_load(cell, planned, server, tools, load)
                fixed_work = _fixed_work(before_ns, _fixed_work_ns(tools) if before_ns else {})
        else:
            recording, fixed_work = new_recording(planned, started_unix_ns).failed(wrong, server.facts), ()
        options.on_recorded(recording, server.endpoint)
        try:
            with timed("stop"):
                running.close()
        except LaunchError as error:
            recording = recording.failed(recording.failure or failure_of("stop", error.kind, error, error.log_tail))
    return recording.in_trial(
        started_unix_ns=started_unix_ns,
        stages_ns=stages_ns,
        setup_ns=sum(setup_ns),
        hosts=hosts(),
        fixed_work=fixed_work,
        profile=profiler.facts(recording.traffic) if profiler else None,
    )


def _profiled_interval_ns(cell: Cell) -> int:
    """Return the length of an interval, 50 to 500 ms. 40 of 80 are profiled, to show slow moments and overhead."""
    return min(max(cell.load.duration_ns // 80, 50_000_000), 500_000_000)


def _fixed_work_ns(tools: Tools) -> Mapping[int, int]:
    cpus = tuple(sorted({*tools.placement.server_cpus, *tools.placement.engine_cpus}))
    return tools.fixed_work_ns(cpus) if cpus else {}


def _fixed_work(before_ns: Mapping[int, int], after_ns: Mapping[int, int]) -> tuple[FixedWork, ...]:
    """Return the fixed work of cores with both measurements."""
    both = [cpu for cpu in before_ns if cpu in after_ns]
    return tuple(FixedWork(cpu=cpu, before_ns=before_ns[cpu], after_ns=after_ns[cpu]) for cpu in both)
