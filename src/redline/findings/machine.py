"""Doubts about one trial, from what the probes saw of server, engine and machine."""

from redline.findings.doubt import doubt
from redline.findings.rules import BUSY_SERVER, FULL_SERVER, OTHERS_BUSY, TICK_NS
from redline.model import Cell, Closed, Finding, FindingKind, Grade, Recording, Subject, Traffic
from redline.quantities import percent


def client_saturated(cell: Cell, recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the engine had no time to spare, and whether that made the number the client's."""
    busy = engine_share(recording, traffic)
    server = server_share(recording)
    told = f", the server {percent(server)} of its cores" if server is not None else ""
    message = (
        f"The engine ran or waited for a core {percent(min(busy, 1.0))} of the time{told}: {_meaning(cell, server)}."
    )
    return doubt(FindingKind.CLIENT_SATURATED, busy, message, recording, at_most=_gravest(cell, server))


def engine_share(recording: Recording, traffic: Traffic) -> float:
    """Share of the window for which the engine's workers ran or waited for a core."""
    # Time for which a worker wanted a core and had none is time in which it could not send, as if it had been busy.
    held_ns = recording.increase("run_delay_ns", "engine") or 0.0
    if traffic.engine.cpus:
        on_each = interrupts_ns(recording, "engine") / len(traffic.engine.cpus)
        held_ns += on_each * min(traffic.engine.workers, len(traffic.engine.cpus))
    return (traffic.engine_cpu_ns + held_ns) / (traffic.engine.workers * traffic.seconds * 1e9)


def server_share(recording: Recording) -> float | None:
    """Used share of the cores that the server has to itself; None when it shares them or no probe looked."""
    server, traffic = recording.server, recording.traffic
    if server is None or traffic is None or not server.cpus or not traffic.engine.cpus:
        return None
    cpu = recording.increase("cpu_ns", "server")
    if cpu is None or set(server.cpus) & set(traffic.engine.cpus):
        return None
    return (cpu + interrupts_ns(recording, "server")) / (len(server.cpus) * traffic.seconds * 1e9)


def interrupts_ns(recording: Recording, subject: Subject) -> float:
    """Time that interrupts took on the cores of one side, where the kernel leaves it out of that of processes.

    On cores of one's own they are the load's: the kernel delivers packets in them.
    """
    return recording.increase("cores_interrupts_ns", subject) or 0.0


def cpu_steal(recording: Recording) -> tuple[Finding, ...]:
    """Whether the host took CPU time away while it was wanted."""
    stolen = recording.increase("steal_ns", "machine")
    busy = recording.increase("busy_ns", "machine")
    if stolen is None or busy is None or stolen + busy <= 0:
        return ()
    share = stolen / (stolen + busy)
    message = f"The host took {percent(share)} of the CPU time that this machine wanted ({stolen / 1e6:,.0f} ms)."
    return doubt(FindingKind.CPU_STEAL, share, message, recording)


def cpu_pressure(recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether other work was in the way of server and engine."""
    waiting = recording.increase("cpu_pressure_ns", "machine")
    busy = recording.increase("busy_ns", "machine")
    server = recording.increase("cpu_ns", "server")
    if waiting is None or busy is None or server is None or busy <= 0:
        return ()
    interrupts = recording.increase("interrupts_ns", "machine") or 0.0
    others = (busy - interrupts - server - traffic.engine_cpu_ns) / busy
    if others < OTHERS_BUSY:
        return ()
    share = waiting / (traffic.seconds * 1e9)
    message = (
        f"Tasks waited for a core {percent(min(share, 1.0))} of the time, and {percent(others)} of the CPU time "
        f"was used by neither server nor engine."
    )
    return doubt(FindingKind.CPU_PRESSURE, share, message, recording)


def noisy_neighbour(recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether others were on the cores that server and engine have to themselves."""
    server = recording.server
    if server is None or not server.cpus or not traffic.engine.cpus or set(server.cpus) & set(traffic.engine.cpus):
        return ()
    engine, of_server = _engine_held_up(recording, traffic), _server_held_up(recording, traffic)
    preempted = recording.increase("preemptions", "engine")
    often = "" if preempted is None else f" and were interrupted {preempted / traffic.seconds:,.0f} times a second"
    looked = recording.find("cores_busy_ns", "server") is not None
    held_up = f", the server was held up {percent(min(of_server, 1.0))}" if looked else ""
    message = (
        f"Others were on cores of their own: the engine's workers waited {percent(min(engine, 1.0))} of the time"
        f"{often}{held_up}."
    )
    return doubt(FindingKind.NOISY_NEIGHBOUR, max(engine, of_server), message, recording)


def _engine_held_up(recording: Recording, traffic: Traffic) -> float:
    """Share of their time for which workers wanted a core; 0 where there are more of them than cores to run on."""
    waited = recording.increase("run_delay_ns", "engine")
    if waited is None or traffic.engine.workers > len(traffic.engine.cpus):
        return 0.0
    # Who waits for the next period of a quota may count as waiting for a core; that is told by itself.
    by_others = max(waited - (recording.increase("throttled_ns", "engine") or 0.0), 0.0)
    return by_others / (traffic.engine.workers * traffic.seconds * 1e9)


def _server_held_up(recording: Recording, traffic: Traffic) -> float:
    """Share of the time of its cores for which the server waited while others ran there.

    A server's threads wait for each other as well, so its run-queue delay counts only as far as others used its cores.
    """
    waited, used = recording.increase("run_delay_ns", "server"), recording.increase("cpu_ns", "server")
    busy = recording.increase("cores_busy_ns", "server")
    if waited is None or used is None or busy is None or recording.server is None:
        return 0.0
    cores = len(recording.server.cpus)
    others = max(busy - interrupts_ns(recording, "server") - used - 2 * cores * TICK_NS, 0.0)
    return min(waited, others) / (cores * traffic.seconds * 1e9)


def throttled(recording: Recording) -> tuple[Finding, ...]:
    """Whether a quota of CPU time ran out, of the server or of the engine; the worse of the two is told."""
    subjects: tuple[Subject, ...] = ("server", "engine")
    shares = {subject: _throttled_share(recording, subject) for subject in subjects}
    subject = max(subjects, key=lambda one: shares[one])
    lost_ms = (recording.increase("throttled_ns", subject) or 0.0) / 1e6
    message = (
        f"The {subject} had used up its CPU quota in {percent(shares[subject])} of the quota's periods, and lost "
        f"{lost_ms:,.0f} ms of CPU time by that."
    )
    return doubt(FindingKind.THROTTLED, shares[subject], message, recording)


def _throttled_share(recording: Recording, subject: Subject) -> float:
    periods = recording.increase("quota_periods", subject)
    often = recording.increase("throttled_periods", subject)
    return min(often / periods, 1.0) if periods and often is not None else 0.0


def _gravest(cell: Cell, server: float | None) -> Grade:
    if cell.role == "ceiling" or (server is not None and server >= FULL_SERVER):
        return Grade.NOTE
    if not isinstance(cell.load.shape, Closed) or server is None or server >= BUSY_SERVER:
        return Grade.WARN
    return Grade.INVALID


def _meaning(cell: Cell, server: float | None) -> str:
    if cell.role == "ceiling":
        return "the ceiling of this machine is that of the client"
    if not isinstance(cell.load.shape, Closed):
        return "requests may have queued in the client"
    if server is None:
        return "the two share their cores, or nothing tells them apart, so the rate is of both together"
    if server >= FULL_SERVER:
        return "both are at their limit, and a faster server will want a stronger client"
    if server >= BUSY_SERVER:
        return "both are near their limit, and the rate is of the two together"
    return "the rate is the client's limit, not the server's"
