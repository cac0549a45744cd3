"""Show what the processes of a loaded server used, or why that is not known."""

from redline.cli.contracts import LoadedServer
from redline.model import Recording
from redline.report.format import duration, integer, size
from redline.stats import Trial

_GAUGES = {"rss_bytes": "rss_bytes", "threads": "threads", "descriptors": "descriptors"}


def loaded_server(recording: Recording) -> LoadedServer | None:
    """What was watched of the server and of proxies in front of it; None where nobody looked."""
    trial, owner = Trial(recording), recording.owner
    if recording.server is None and owner is None:
        return None
    most = {name: recording.most(series, "server") for name, series in _GAUGES.items()}
    left = recording.find("close_wait", "server")
    return LoadedServer(
        processes=owner.processes if owner is not None else (),
        cpu_per_request_ns=trial.cpu_per_request_ns,
        **{name: None if value is None else round(value) for name, value in most.items()},
        half_closed=None if left is None else round(left.values[-1]),
        unknown=owner.unknown if owner is not None else "",
    )


def server_text(server: LoadedServer | None) -> str:
    """`server  python3 (4711): 12.3 µs of CPU a request, up to 20.1 MiB, 19 threads, 22 descriptors`; or empty."""
    if server is None or server.unknown:
        return ""
    cpu, memory = server.cpu_per_request_ns, server.rss_bytes
    used = [f"{duration(cpu)} of CPU a request"] if cpu is not None else []
    used += [f"up to {size(memory)}"] if memory is not None else []
    counted = {"threads": server.threads, "open files and sockets": server.descriptors}
    used += [f"{integer(number)} {name}" for name, number in counted.items() if number is not None]
    who = f"{', '.join(server.processes)}: " if server.processes else ""
    return f"server  {who}{', '.join(used)}" if used else ""
