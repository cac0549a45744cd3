"""The profilers of this machine, and their use in a trial."""

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from redline.errors import StoreError
from redline.extras.profiling import commands
from redline.extras.profiling.async_profiler import AsyncProfiler, provide
from redline.extras.profiling.commands import PERF, PY_SPY, Perf, PySpy
from redline.extras.profiling.sampler import ProfilerError, Sampled, Sampler
from redline.extras.profiling.syscalls import SystemCalls, uncounted
from redline.extras.profiling.texts import slices_of, speedscope
from redline.files import write_atomically
from redline.model import (
    Cell,
    PlannedDuet,
    PlannedTrial,
    Profile,
    ProfileFacts,
    ProfileFile,
    ProfileKind,
    Series,
    Slice,
    Subject,
    Traffic,
    Variant,
)


class MachineProfilers:
    """Chooses async-profiler, fetched into the cache, for JVMs, and installed profilers for everything else."""

    def __init__(self, cache: Path) -> None:
        self._cache = cache
        self._failed: str | None = None

    def missing(self, variant: Variant, profile: Profile, progress: Callable[[str], None]) -> str:
        """Provide the profiler. Returns why the variant cannot be profiled here, with a hint; empty if it can."""
        if profile == "engine" or variant.runtime not in ("jvm", "python"):
            return commands.missing(PERF)
        if variant.runtime == "python":
            no_py_spy = commands.missing(PY_SPY)
            return no_py_spy and (no_py_spy if profile == "wall" else commands.missing(PERF))
        if self._failed is None:
            try:
                provide(self._cache, progress)
                self._failed = ""
            except ProfilerError as error:
                self._failed = str(error)
        return self._failed

    def profiler(self, planned: PlannedTrial | PlannedDuet, cell: Cell, folder: Path) -> "TrialProfiler":
        """The profiler of a trial, which writes to the folder."""
        profile = planned.profile or "cpu"
        kind: ProfileKind = "cpu" if profile == "engine" else profile
        sampler = self._sampler(cell.variant, profile, kind)
        calls = SystemCalls() if isinstance(planned, PlannedDuet) and not uncounted() else None
        return TrialProfiler(kind, "engine" if profile == "engine" else "server", sampler, folder, calls)

    def _sampler(self, variant: Variant, profile: Profile, kind: ProfileKind) -> Sampler:
        if profile == "engine" or variant.runtime not in ("jvm", "python"):
            return Perf()
        if variant.runtime == "python":
            return Perf() if commands.missing(PY_SPY) else PySpy(kind)
        return AsyncProfiler(kind, self._cache)


class TrialProfiler:
    """Samples during a part of a trial. The driver's reader begins it, and may end it."""

    perturbs = True

    def __init__(
        self, kind: ProfileKind, subject: Subject, sampler: Sampler, folder: Path, calls: SystemCalls | None = None
    ) -> None:
        """`calls`: what counts the server's system calls until it is warm, if anything."""
        self._calls, self._uncounted = calls, "" if calls else uncounted()
        self._kind, self._subject, self._sampler, self._folder = kind, subject, sampler, folder
        self._pid: int | None = None
        self._problem = ""
        self._began = self._ended = False
        self._started: Slice | None = None
        self._stopped: Slice | None = None
        self._lock = threading.Lock()

    @property
    def env(self) -> Mapping[str, str]:
        """Environment variables that a server needs to be sampled."""
        return self._sampler.env if self._subject == "server" else {}

    def follow(self, subject: Subject, pid: int) -> None:
        """Prepare to sample the process, if it is the profiled subject."""
        if subject == self._subject:
            self._pid = pid
            if subject == "server":
                if self._calls is not None:
                    self._count(lambda calls: calls.start(pid, self._folder))
                self._try(lambda: self._sampler.prepare(pid, self._folder))

    def warm(self) -> None:
        """Count no more system calls: the measurement begins."""
        self._count(lambda calls: calls.stop())

    def _count(self, step: Callable[[SystemCalls], None]) -> None:
        """Do a step of counting. A failure is noted, and fails no trial."""
        try:
            if self._calls is not None:
                step(self._calls)
        except (OSError, ValueError, ProfilerError) as error:
            self._calls, self._uncounted = None, str(error)

    def begin(self) -> None:
        """Sample the process, unless that has begun before."""
        with self._lock:
            pid = self._pid
            if self._began or self._ended or self._problem or pid is None:
                return
            self._began = True
            self._started = self._try(lambda: self._sampler.start(pid, self._folder))

    def end(self) -> None:
        """Stop sampling."""
        with self._lock:
            if not self._ended:
                self._stopped = self._try(self._sampler.stop)
            self._ended = True

    def finish(self) -> tuple[Series, ...]:
        """Stop sampling. Returns the series of system calls, if they were counted; a profile has none."""
        self.end()
        self.warm()
        counted = list[Series]()
        self._count(lambda calls: counted.extend(calls.series()))
        return tuple(counted)

    def runtime(self, window_unix_ns: tuple[int, int], server_log: Path | None) -> None:
        """None: a profiler knows nothing about the runtime."""

    def facts(self, traffic: Traffic | None) -> ProfileFacts:
        """Read the samples, in slices that are the engine's intervals, and store them."""
        sampled: list[Sampled] = []
        if not self._began:
            self._problem = self._problem or "the measurement did not begin"
        if not self._problem:
            during = Slice(self._started.end, self._stopped.start) if self._started and self._stopped else None
            self._try(lambda: sampled.append(self._sampler.read(self._folder, _slices(traffic, during))))
        files = list[ProfileFile]()
        if sampled:
            self._try(lambda: files.extend(self._write_stacks(sampled[0])))
        if sampled and not self._problem and not sampled[0].samples:
            self._problem = "it took no sample during the measurement"
        return ProfileFacts(
            kind=self._kind,
            subject=self._subject,
            profiler=self._sampler.name,
            event=self._sampler.event,
            interval=self._sampler.interval,
            unit=self._sampler.unit,
            samples=sampled[0].samples if sampled else 0,
            lost=sampled[0].lost if sampled else 0,
            deepest=sampled[0].deepest if sampled else 0,
            native=sampled[0].native if sampled else (),
            started=self._started,
            stopped=self._stopped,
            files=tuple(ProfileFile(name=self._relative(file.name), form=file.form) for file in files),
            problem=self._problem,
            uncounted=self._uncounted,
        )

    def _write_stacks(self, sampled: Sampled) -> tuple[ProfileFile, ...]:
        """Write the stacks, and list the files by their names in the folder."""
        name = f"{self._folder.name}, {self._sampler.name}"
        write_atomically(self._folder / "stacks.gz", sampled.stacks.to_bytes())
        write_atomically(self._folder / "speedscope.json", speedscope(sampled.stacks, name, self._sampler.unit))
        own = (ProfileFile(name="stacks.gz", form="stacks"), ProfileFile(name="speedscope.json", form="speedscope"))
        return (*own, *sampled.files)

    def _relative(self, name: str) -> str:
        """A path relative to the run's directory."""
        return f"{self._folder.parent.name}/{self._folder.name}/{name}"

    def _try(self, step: Callable[[], object]) -> Slice | None:
        """Do a step and return its time. A failure is noted in the profile, and fails no trial."""
        began_ns = time.time_ns()
        try:
            step()
            return Slice(began_ns, time.time_ns())
        except OSError as error:
            self._problem = self._problem or f"{error.filename or self._sampler.name}: {error.strerror or error}"
        except (ProfilerError, StoreError) as error:
            self._problem = self._problem or str(error)
        return None


def _slices(traffic: Traffic | None, during: Slice | None) -> tuple[Slice, ...]:
    """The engine's measured intervals whose middle lies in `during`, in Unix time."""
    if traffic is None or during is None:
        return ()
    epoch = traffic.epoch_unix_ns
    measured = (interval for interval in traffic.intervals if interval.phase == "measure")
    slices = (Slice(epoch + interval.start_ns, epoch + interval.end_ns) for interval in measured)
    return slices_of(slice_ for slice_ in slices if during.start <= (slice_.start + slice_.end) / 2 < during.end)
