"""Cut the users of a suite with `fit` to the number that the hosts can hold, and say why. Pure."""

from collections.abc import Sequence

from redline.errors import UsageError
from redline.lazily import dataclass
from redline.model import Closed, Environment, Load, Suite
from redline.quantities import percent

SPARE_FILES = 300
"""Files that a server opens besides its connections, such as jars, logs and listening sockets."""
KERNEL_BYTES = 5_000
"""The memory of an idle connection, in bytes, on each of its hosts: measured on Linux 6.18."""
MEMORY_SHARE = 0.5
"""The share of a host's memory for the kernel's part of connections: servers and engines take more."""
PORTS_SHARE = 0.9
"""The share of the ports of an address that is used: the kernel finds the last free ports slowly."""
MESSAGES_PER_CORE_S = 10_000
"""Messages a second that a core of a server's host pushes: 100 µs each for the server and, on its host, the client."""


@dataclass(frozen=True)
class Hosts:
    """A server's host and its load hosts. `loads` is empty if the server's own host loads it over loopback."""

    server: Environment
    loads: tuple[Environment, ...] = ()


def fitted(suite: Suite, pairs: Sequence[Hosts]) -> tuple[Suite, tuple[str, ...]]:
    """The suite with at most the users that every pair can hold, if it has `fit`, and the reasons for every cut.

    Raises UsageError for a suite with proxies: their capacity is not known.
    """
    if not suite.fit:
        return suite, ()
    if any(variant.hops for variant in suite.variants):
        raise UsageError("`fit` does not know how many users a proxy can hold", hint="leave out `fit`, or the proxies")
    streams = (request.stream for scenario in suite.scenarios for request in scenario.requests)
    every_ns = min((stream.every_ns for stream in streams if stream and stream.every_ns), default=None)
    most, why = min(_most(hosts, every_ns) for hosts in pairs)
    cut = {load.name: _cut(load, most) for load in suite.loads}
    reasons = tuple(
        f"{load.name} has {cut[load.name].connections:,} of {load.connections:,} users: {why}"
        for load in suite.loads
        if cut[load.name] != load
    )
    about = "; ".join((suite.about, *reasons)) if suite.about else "; ".join(reasons)
    by = suite.warmup_by and _cut(suite.warmup_by, most)
    return suite.under(tuple(cut.values()), by).fitted(about), reasons


def _most(hosts: Hosts, every_ns: int | None) -> tuple[int, str]:
    """The number of connections that fit, and the limiting resource. A server sends each a message every `every_ns`."""
    server, loads = hosts.server, hosts.loads
    files = f"a server on {server.hostname} may open {server.open_files_hard:,} files"
    limits = [(server.open_files_hard - SPARE_FILES, files)]
    limits.append(_of_memory(server, KERNEL_BYTES if loads else 2 * KERNEL_BYTES))
    if every_ns is not None:
        cores = min(server.cores, server.cgroup_cpu_limit or server.cores)
        users = max(1, int(cores * MESSAGES_PER_CORE_S * every_ns / 10**9))
        why = f"a core may push {MESSAGES_PER_CORE_S:,} messages a second, and {server.hostname} has {cores:g}"
        limits.append((users, why))
    if loads:
        ports = sum(int(PORTS_SHARE * _ports(host)) for host in loads)
        limits.append((ports, f"{len(loads)} load hosts have {sum(map(_ports, loads)):,} ports to connect from"))
        most, why = min(_of_memory(host, KERNEL_BYTES) for host in loads)
        limits.append((most * len(loads), why))
    return min(limits)


def _of_memory(host: Environment, connection_bytes: int) -> tuple[int, str]:
    has = min(host.memory_bytes, host.cgroup_memory_limit_bytes or host.memory_bytes)
    why = f"connections may take {percent(MEMORY_SHARE)} of the {has / 2**30:.1f} GiB of {host.hostname}"
    return int(MEMORY_SHARE * has / connection_bytes), why


def _ports(host: Environment) -> int:
    first, last = host.port_range or (32768, 60999)
    return last - first + 1


def _cut(load: Load, most: int) -> Load:
    """The load with at most this many users, in its stages too. Open loads stay as they are."""
    shape = load.shape
    if not isinstance(shape, Closed) or shape.most_users <= most:
        return load
    return load.shaped(shape.at_most(most))
