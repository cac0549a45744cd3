"""Doubts about one trial, from what the probes saw of server, engine and machine."""

from redline.findings.doubt import doubt
from redline.findings.rules import BUSY_SERVER, FULL_SERVER, OTHERS_BUSY
from redline.model import Cell, Closed, Finding, FindingKind, Grade, Recording, Traffic
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
    waited = recording.increase("run_delay_ns", "engine") or 0.0
    return (traffic.engine_cpu_ns + waited) / (traffic.engine.workers * traffic.seconds * 1e9)


def server_share(recording: Recording) -> float | None:
    """Used share of the cores that the server has to itself; None when it shares them or no probe looked."""
    server, traffic = recording.server, recording.traffic
    if server is None or traffic is None or not server.cpus or not traffic.engine.cpus:
        return None
    cpu = recording.increase("cpu_ns", "server")
    if cpu is None or set(server.cpus) & set(traffic.engine.cpus):
        return None
    return cpu / (len(server.cpus) * traffic.seconds * 1e9)


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
    others = (busy - server - traffic.engine_cpu_ns) / busy
    if others < OTHERS_BUSY:
        return ()
    share = waiting / (traffic.seconds * 1e9)
    message = (
        f"Tasks waited for a core {percent(min(share, 1.0))} of the time, and {percent(others)} of the CPU time "
        f"was used by neither server nor engine."
    )
    return doubt(FindingKind.CPU_PRESSURE, share, message, recording)


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
