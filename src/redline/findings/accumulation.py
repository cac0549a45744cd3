"""Findings about what a server keeps of requests: memory, descriptors, threads, connections that others closed."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from redline.findings.duet import SeenDuet, observe_behind
from redline.findings.duet_machine import WatchedStart
from redline.findings.rules import HOLDS, TIME_DEPENDENT, TREND_P, Observation, Rule, judges
from redline.findings.starts import measured, traffic_of
from redline.lazily import dataclass
from redline.model import Cell, Closed, Counts, CpuOwner, Grade, Reach, Series, ServerFacts, Traffic
from redline.quantities import duration, significant, size
from redline.stats import Trial
from redline.stats.accumulation import Accumulation, accumulation
from redline.stats.samples import Floats

LEAST_BYTES = 1 << 20
"""Smaller growth of memory is not said, however even: a page here and there is not worth a look."""

LEAST_COUNT = 16
"""Fewer new descriptors or threads may be a pool that grows."""

SHORTEST_S = 5.0
"""What begins to be used grows for the first seconds of every load."""

_COLLECTED = frozenset({"jvm", "node", "deno", "bun", "ruby", "php", "dotnet", "beam", "luajit", "pypy"})
"""Runtimes whose heap is filled before it is collected: their memory grows evenly for a while without a leak."""

_FILLS = " What fills up, such as a heap before it is collected, grows as evenly, and then ends."

MEMORY_GROWS = Rule(
    "memory-grows",
    note=0.02,
    warn=0.20,
    biases=TIME_DEPENDENT,
    text="""*From 5 s on.* Growth of the resident memory with the answers: evenly (Kendall's test at p < 0.001), by 1
    MiB or more, and in the second half of the measurement at least three quarters as fast as in the first. At most
    **note** where a runtime collects garbage, which may only fill its heap.

    What was kept of each request is said in bytes. Heaps and caches that fill up within one and a half measurements are
    not said: [how often](memory.md#what-grows-with-the-requests).

    Advice: Measure twice as long: what fills up ends, and what is kept of each request goes on. Look for a list, a
    cache without a bound or a session for each request.
    """,
)

DESCRIPTORS_GROW = Rule(
    "descriptors-grow",
    note=0.02,
    warn=0.20,
    biases=TIME_DEPENDENT,
    text="""*From 5 s on.* Growth of the number of open files and sockets with the answers, told as that of memory, of
    16 or more, and of more than the load opened connections.

    At its limit a server accepts no connection and opens no file.

    Advice: Find what is not closed: `ls -l /proc/PID/fd`. Raise the limit (`ulimit -n`) only if it ends somewhere.
    """,
)

THREADS_GROW = Rule(
    "threads-grow",
    note=0.02,
    warn=0.20,
    biases=TIME_DEPENDENT,
    text="""*From 5 s on.* Growth of the number of threads with the answers, told as that of descriptors.

    Each has a stack, and a limit of threads is reached in the end (`pids.max`, `ulimit -u`).

    Advice: Let a pool answer, or end what is started for a request; a dump of its threads says what they wait for.
    """,
)

HALF_CLOSED = Rule(
    "half-closed",
    unit=" connections",
    note=3.0,
    warn=15.0,
    text="""Connections to the server in CLOSE-WAIT a quarter of a second after the load: the other end closed them, and
    the server did not. Requests that were left unanswered are taken off, since the server may still work on them.

    Each keeps a descriptor until the server ends.

    Advice: Close a connection when reading from it returns nothing; see them by `ss -t state close-wait`.
    """,
)

SERVER_UNWATCHED = Rule(
    "server-unwatched",
    note=0.0,
    unit="",
    text="""*Servers that run already.* Their processes are not known, so CPU time, memory, descriptors, threads and
    quotas are not watched (**note**).

    What they would say, such as a quota that was used up, is in no finding.

    Advice: Run Redline where the server runs, as its user.
    """,
)


Worded = Callable[[float], str]


@dataclass(frozen=True)
class WatchedServer:
    """What was seen of a server while it answered: its name, and the number of answers by time, in Unix ns.

    `collects`: its runtime collects garbage. `opened`: as many connections as the load may have opened meanwhile.
    """

    name: str
    series: Sequence[Series]
    window_unix_ns: tuple[int, int]
    at_unix_ns: Floats
    answers: Floats
    collects: bool
    opened: int

    def find(self, name: str) -> Series | None:
        """That series; None if it was not watched."""
        return next((line for line in self.series if line.name == name), None)

    def accumulation(self, name: str) -> Accumulation | None:
        """How a gauge grew with the answers; None if it did not, or was not watched."""
        line = self.find(name)
        start, end = self.window_unix_ns
        if line is None or len(self.answers) < 2 or end - start < SHORTEST_S * 1e9:
            return None
        within = [
            (at - start, value) for at, value in zip(line.times_unix_ns, line.values, strict=True) if start <= at < end
        ]
        if not within:
            return None
        at, values = np.array(within, dtype=np.float64).T
        return accumulation(np.interp(at, self.at_unix_ns - start, self.answers), values, TREND_P)

    def findings(self) -> Iterator[Observation]:
        """What it keeps of each request."""
        if (memory := self.accumulation("rss_bytes")) is not None and memory.last - memory.first >= LEAST_BYTES:
            at_most = Grade.NOTE if self.collects else Grade.INVALID
            said = f"{self._grew('memory', memory, size)}{_FILLS if self.collects else ''}"
            yield Observation(memory.share, said, rule=MEMORY_GROWS, at_most=at_most)
        if (files := self._counted("descriptors")) is not None:
            said = f"{self._grew('number of open files and sockets', files, _whole)}{self._until(files)}"
            yield Observation(files.share, said, rule=DESCRIPTORS_GROW)
        if (threads := self._counted("threads")) is not None:
            yield Observation(threads.share, self._grew("number of threads", threads, _whole), rule=THREADS_GROW)

    def _counted(self, name: str) -> Accumulation | None:
        seen = self.accumulation(name)
        return seen if seen is not None and seen.last - seen.first >= max(LEAST_COUNT, self.opened + 1) else None

    def _grew(self, what: str, seen: Accumulation, said: Worded) -> str:
        return (
            f"The {what} of {self.name} grew from {said(seen.first)} to {said(seen.last)}, by {said(seen.by_request)} "
            "an answer, as fast at the end as at the beginning."
        )

    def _until(self, seen: Accumulation) -> str:
        limits = self.find("descriptors_limit")
        limit, answers = limits.values[-1] if limits else 0.0, float(self.answers[-1] - self.answers[0])
        if not limit or not answers:
            return ""
        per_ns = answers / float(self.at_unix_ns[-1] - self.at_unix_ns[0])
        left = (limit - seen.last) / seen.by_request
        return (
            f" Its limit of {limit:,.0f} is reached after {left:,.0f} more, in {duration(left / per_ns)}."
            if left > 0
            else ""
        )


def _whole(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else significant(number, 2)


@judges("requests", probes="all")
def kept(cell: Cell, trial: Trial, traffic: Traffic) -> Iterator[Observation]:
    """What a server, or a proxy in front of it, keeps of each request; nothing of loads that change by design."""
    if cell.load.changes:
        return
    recording, intervals = trial.recording, trial.intervals
    ends = np.array([traffic.epoch_unix_ns, *(traffic.epoch_unix_ns + one.end_ns for one in intervals)], np.float64)
    answers = np.cumsum([0.0, *map(float, trial.totals)])
    facts = recording.server
    runtimes = [facts.runtimes, *(hop.process.runtimes for hop in facts.hops)] if facts else [recording.runtimes]
    for (part, name), own in zip(recording.parts.items(), runtimes, strict=False):
        yield from WatchedServer(
            name="the server" if part == "server" else f"the proxy {name}",
            series=[line for line in recording.series if line.subject == part],
            window_unix_ns=traffic.window_unix_ns,
            at_unix_ns=ends,
            answers=answers,
            collects=not _COLLECTED.isdisjoint(own),
            opened=_opened(cell, traffic.reach),
        ).findings()


def _opened(cell: Cell, reach: Reach | None) -> int:
    """How many connections an open load may have opened on the way; users of a closed load have theirs before it."""
    if isinstance(cell.load.shape, Closed):
        return 0
    return reach.opened if reach is not None else cell.load.connections


@judges("duet")
def kept_in_duet(duet: SeenDuet) -> Iterator[Observation]:
    """What servers keep of each request in most of their starts: the start with the median of what is said."""
    for name, places in duet.sides:
        said: dict[str, list[Observation]] = {}
        starts = WatchedStart.all(duet.starts)
        for one in starts:
            for observation in _of_place(one, name, places).findings():
                assert observation.rule is not None
                said.setdefault(observation.rule.kind, []).append(observation)
        for alike in said.values():
            if 2 * len(alike) > len(starts):
                yield sorted(alike, key=lambda one: one.value)[len(alike) // 2]


def _of_place(one: WatchedStart, name: str, places: tuple[int, ...]) -> WatchedServer:
    """A server in a start. If it was running already, the baseline and its control are one process."""
    traffic, place = traffic_of(one.start), places[0]
    own = places if one.start.servers[place : place + 1] == (None,) else (place,)
    slices = [slice_ for block in measured(traffic) for slice_ in block.slices if slice_.target in own]
    runtimes = {runtime for known in (one.start.servers, one.start.owners) for runtime in _runtimes(known, place)}
    at = [one.window_unix_ns[0], *(traffic.epoch_unix_ns + slice_.end_ns for slice_ in slices)]
    return WatchedServer(
        name=name,
        series=one.start.server_series[place] if place < len(one.start.server_series) else (),
        window_unix_ns=one.window_unix_ns,
        at_unix_ns=np.array(at, np.float64),
        answers=np.cumsum([0.0, *(float(slice_.completed + slice_.failed) for slice_ in slices)]),
        collects=bool(_COLLECTED & runtimes),
        opened=0,
    )


def _runtimes(known: Sequence[ServerFacts | CpuOwner | None], place: int) -> tuple[str, ...]:
    own = known[place] if place < len(known) else None
    return own.runtimes if own is not None else ()


@judges("requests", probes="all")
def half_closed(trial: Trial, traffic: Traffic) -> Iterator[Observation]:
    """Connections that a server, or a proxy, does not close."""
    for part, name in trial.recording.parts.items():
        whose = "the server" if part == "server" else f"the proxy {name}"
        yield from _half_closed(trial.recording.find("close_wait", part), whose, traffic.counts)


@judges("duet")
def half_closed_in_duet(duet: SeenDuet) -> Iterator[Observation]:
    """Connections that servers of a duet do not close, in the start with most."""
    for name, places in duet.sides:
        said = [
            observation
            for one in WatchedStart.all(duet.starts)
            for observation in _half_closed(
                one.find("close_wait", "server", places[0]),
                name,
                Counts.merged(traffic_of(one.start).targets[place].counts for place in places),
            )
        ]
        yield from sorted(said, key=lambda one: one.value)[-1:]


def _half_closed(line: Series | None, whose: str, counts: Counts) -> Iterator[Observation]:
    """Say how many connections are half closed in the last sample, without those whose request was left unanswered."""
    left = counts.outcomes.timeout + counts.outcomes.in_flight
    if line is not None:
        number = line.values[-1] - left
        message = f"{number:,.0f} connections to {whose} stay in CLOSE-WAIT: their other end closed them, it did not."
        yield Observation(number, message, rule=HALF_CLOSED)


@judges("traffic", probes="first")
def owner(trial: Trial) -> Iterator[Observation]:
    """Why a server that runs already is not watched, with what would help; and whom it asked in turn."""
    known = trial.recording.owner
    if known is None or trial.recording.failure is not None:  # what failed has a cause of its own
        return
    if known.unknown:
        message = f"What the server itself uses is not watched: {known.unknown.rstrip('.')}."
        advice = f"To have it watched, {known.hint}." if known.hint else None
        yield Observation(HOLDS, message, advice=advice, rule=SERVER_UNWATCHED)
    elif known.behind:
        yield observe_behind("the server", known)
