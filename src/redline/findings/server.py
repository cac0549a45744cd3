"""Findings about the server from the monitors' data, and the good news that the number is its own."""

import re
from collections.abc import Iterator, Sequence
from statistics import median

from redline.findings.machine import client_saturated, engine_share, held_share, server_share
from redline.findings.rules import HOLDS, TOO_SLOW, Observation, Rule
from redline.model import Cell, Grade, Subject, Traffic
from redline.model.runtime import NATIVE, RECOGNISED
from redline.quantities import duration, percent, significant, size
from redline.stats import Trial

USERS_FOR_EACH = 8
"""Requests in flight per core and worker that keep a core or worker full in a system without other limits.

If N requests circulate among K stations of equal speed, a station is busy N / (N + K - 1) of the time (Lazowska et al.,
Quantitative System Performance, 1984, section 5.4): with 8 per station that is 89% or more.
"""

FAILING = 0.01
"""From this share of requests without an answer on, a server may be idle because clients wait for timeouts."""

LEAST_LOG_BYTES = 10_000
"""Any server may write this much at its first requests."""

LEAST_STANDING = 0.001
"""Cores: a millisecond of CPU time per second without load is nothing that anybody pays for."""

_OFF = frozenset({"off", "no", "none", "false", "0", ""})
_NAMES_LOG = re.compile(r"(?<![a-z])[Ll]og|Log|LOG")


@Rule("lock-limited", when="answers", note=0.25, warn=0.50)
def lock_limited(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """*Users who always wait.* Idle cores of the server, where enough requests were in flight to fill them and the
    engine was idle too.

    The server waits for a lock, its own limit on threads, a disk or another service. More cores will not raise the
    rate.

    Advice: Find out where its threads wait (a wall-clock profile, a thread dump), and check its limits on threads and
    CPU.
    """
    used = server_share(trial)
    if used is None or trial.recording.server is None or not _always_enough(cell, trial, traffic):
        return None
    cores = len(trial.recording.server.cpus)
    wanted = used + held_share(trial)
    engine = engine_share(trial, traffic)
    busiest = max(wanted, engine, *_cores_in_use(trial, traffic, used, engine))
    message = (
        f"The server used {significant(used * cores, 2)} of its {cores} core{'' if cores == 1 else 's'} and the engine "
        f"was busy {percent(min(engine, 1.0))} of the time, though users always waited: the server waits for "
        "something else."
    )
    return Observation(1.0 - busiest, message)


@Rule("standing-cost", when="answers", note=0.5)
def standing_cost(trial: Trial, traffic: Traffic) -> Observation | None:
    """*Loads with a rate, a pace or think times.* CPU time per second just after the load, when the server had no
    requests, as a share of that under load; 1 ms or more.

    Above half, timers and background work are more of the CPU time per request than the requests are.

    Advice: Compare CPU per request at a higher rate. A profile of the server without load shows what it does.
    """
    used_ns, unloaded = trial.server_cpu_ns, trial.recording.unloaded_cores()
    if not used_ns or unloaded is None:
        return None
    per_s = traffic.counts.completed / traffic.seconds
    return observe_standing_cost("the server", used_ns / traffic.seconds / 1e9, unloaded, per_s)


def observe_standing_cost(name: str, loaded: float, unloaded: float, rate_per_s: float) -> Observation | None:
    """An observation of the cores that a server used on average under load, and without; None below 0.001 cores."""
    if unloaded < LEAST_STANDING or not loaded:
        return None
    whole_ns, standing_ns = (1e9 * cores / rate_per_s for cores in (loaded, min(loaded, unloaded)))
    message = (
        f"Without load, {name} used {percent(unloaded)} of a core. At this rate that is {duration(standing_ns)} of its "
        f"{duration(whole_ns)} of CPU time per request: a request adds {duration(whole_ns - standing_ns)}."
    )
    return Observation(min(1.0, unloaded / loaded), message)


@Rule("server-limited", when="cell", note=0.95, reassures=True)
def server_limited(cell: Cell, used: Sequence[Trial]) -> Observation | None:
    """*Users with zero think time.* Used share of the server's cores, with an engine that had time to spare.

    Good news: the server's cores are full, so the rate is its own.

    Advice: Nothing needs to be done: a throughput should rest on this.
    """
    if cell.role == "ceiling" or not cell.load.saturates:
        return None
    shares = [share for trial in used if (share := _share_with_an_idle_engine(trial)) is not None]
    if 2 * len(shares) <= len(used):
        return None
    message = f"The server used {percent(min(median(shares), 1.0))} of its cores: the rate is the server's own."
    return Observation(median(shares), message)


@Rule("debug-logging", when="requests", unit=" bytes", note=1.0, warn=10.0, biases="CPU per request is too high")
def debug_logging(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """Bytes written to the server's output per request. At most **note** if an option of the server explains it.

    Writing a line, about 100 bytes, costs as much as many a request. Servers that log by default are compared with
    others.

    Advice: Set its log level to errors, or make logging an option, so that the suite states it.
    """
    written, requests = trial.recording.log_bytes, sum(interval.counts.due for interval in traffic.intervals)
    if written is not None and trial.recording.runtime is not None:
        written -= trial.recording.runtime.traced_bytes  # the lab asked for that
    if written is None or written < LEAST_LOG_BYTES or requests == 0:
        return None
    option = _logging_option(cell)
    message = (
        f"The server wrote {size(written)} to its output during the load, {written / requests:,.0f} bytes for each "
        f"request{f', which its option {option} may explain' if option else ''}."
    )
    return Observation(written / requests, message, at_most=Grade.NOTE if option else Grade.INVALID)


@Rule("server-restarted", when="requests", unit=" processes", warn=0.0, biases=TOO_SLOW)
def server_restarted(trial: Trial) -> Observation | None:
    """Processes of the server or a proxy that ended during the load and were replaced.

    A worker's connections end with it, and its replacement is cold.

    Advice: Read in the server's output why its processes end, and fix that, or raise its limit of requests per worker.
    """
    parts = trial.recording.parts
    subject = max(parts, key=lambda part: _replaced(trial, part))
    replaced = _replaced(trial, subject)
    whose = "the server's processes" if subject == "server" else f"the processes of the proxy {parts[subject]}"
    message = (
        f"{replaced:,.0f} of {whose} ended during the load and others took their place: it restarts them and continues."
    )
    return Observation(replaced, message)


def _replaced(trial: Trial, subject: Subject) -> float:
    if known := trial.recording.find("processes_replaced", subject):
        return max(known.values)
    series = [trial.recording.find(name, subject) for name in ("processes_ended", "processes_started")]
    return min(counter.values[-1] - counter.values[0] if counter else 0.0 for counter in series)


@Rule("upstream-protocol", when="traffic", probes="all", unit="", note=0.0, warn=1.0)
def upstream_protocol(trial: Trial) -> Iterator[Observation]:
    """A proxy spoke another protocol to what is behind it than its route says (**warn**), or it could not be seen
    (**note**).

    A proxy's settings do not always do what they say, and HTTP/2 has another price than HTTP/1.1.

    Advice: Name the leg in the route that the proxy really speaks, or change its configuration.
    """
    for hop in trial.recording.server.hops if trial.recording.server else ():
        leg = f"{hop.upstream} to what is behind it"
        if hop.upstream_seen is None:
            yield Observation(HOLDS, f"It could not be seen whether the proxy {hop.name} speaks {leg}.")
        elif hop.upstream_seen != hop.upstream:
            message = f"The proxy {hop.name} did not speak {leg}, as the route says, but {hop.upstream_seen}."
            yield Observation(2.0, message)


@Rule("upstream-certificate", when="traffic", probes="all", warn=0.0)
def upstream_certificate(trial: Trial) -> Iterator[Observation]:
    """A proxy accepted a certificate that is not valid.

    Its handshakes are cheaper, and any server could have answered.

    Advice: Build the server's certificate again, and let the proxy check it (`{upstream_ca}`).
    """
    for hop in trial.recording.server.hops if trial.recording.server else ():
        if hop.certificate:
            message = f"The proxy {hop.name} accepted a certificate that is not valid: {hop.certificate.rstrip('.')}."
            yield Observation(HOLDS, message)


@Rule("runtime-differs", when="requests", probes="first", note=0.0)
def runtime_differs(cell: Cell, trial: Trial) -> Iterator[Observation]:
    """A server or proxy runs on something else than `runtime` declares.

    The declared runtime decides on a suite's `jvm` options, the collector's log and the profiler.

    Advice: Declare what runs it, such as `runtime: jvm`. Let the command of a JVM begin with `{java}`: then the suite
    chooses its JDK, and the log of its collector is read.
    """
    server = trial.recording.server
    if server is None:
        return
    processes = (server, *(hop.process for hop in server.hops))
    for part, process in zip((cell.variant, *cell.variant.hops), processes, strict=False):
        seen, declared = set(process.runtimes), part.runtime
        if declared and seen and declared not in seen and (declared in RECOGNISED or seen != {NATIVE}):
            message = (
                f"{part.entry.name} is declared as `runtime: {declared}`, and its processes run on "
                f"{' and '.join(sorted(seen))}."
            )
            yield Observation(HOLDS, message)


def _always_enough(cell: Cell, trial: Trial, traffic: Traffic) -> bool:
    """Whether enough requests were always in flight to fill the cores of a side."""
    shape, errors = cell.load.shape, traffic.counts.outcomes.errors
    if shape.kind != "closed" or not cell.load.saturates or cell.load.changes or errors > FAILING * traffic.counts.due:
        return False
    stations = traffic.engine.workers + (len(trial.recording.server.cpus) if trial.recording.server else 0)
    return shape.users * shape.depth >= USERS_FOR_EACH * stations


def _cores_in_use(trial: Trial, traffic: Traffic, server: float, engine: float) -> tuple[float, float]:
    """Shares of both sides' cores in use by anyone; without a monitor of cores, all other use counts there."""
    window_ns, used = traffic.seconds * 1e9, trial.increase("cpu_ns", "server") or 0.0
    others_ns = max((trial.increase("busy_ns", "machine") or 0.0) - used - traffic.engine_cpu_ns, 0.0)
    cores = len(trial.recording.server.cpus) if trial.recording.server else 0

    def share(subject: Subject, count: int, own: float) -> float:
        busy_ns = trial.increase("cores_busy_ns", subject)
        if busy_ns is None or count == 0:
            return own + others_ns / (max(count, 1) * window_ns)
        return busy_ns / (count * window_ns)

    return share("server", cores, server), share("engine", len(traffic.engine.cpus), engine)


def _share_with_an_idle_engine(trial: Trial) -> float | None:
    """Used share of the server's cores; None if the engine had no time to spare."""
    traffic, busy = trial.traffic, client_saturated.warn
    if traffic is None or busy is None or traffic.seconds <= 0 or engine_share(trial, traffic) > busy:
        return None
    return server_share(trial)


def _logging_option(cell: Cell) -> str:
    """The option, with its value, that makes the server log; empty if there is none."""
    for name, value in sorted(cell.variant.options.items()):
        text = str(value)
        if text.lower() not in _OFF and (_NAMES_LOG.search(name) or _NAMES_LOG.search(text)):
            return f"{name}={text}"
    return ""
