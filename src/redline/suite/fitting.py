"""What hosts can hold: the users of a suite that asks for it are as many as fit, with the reason. Pure."""

from collections.abc import Sequence

from redline.model import Closed, Environment, Load, Suite
from redline.quantities import percent

SPARE_FILES = 300
"""What a server opens besides its connections: its jars, logs, sockets."""
KERNEL_BYTES = 5_000
"""Of a connection, on each of its hosts, while it has nothing to say: measured on Linux 6.18."""
MEMORY_SHARE = 0.5
"""Of a host's memory, for the kernel's part of connections: servers and engines take more."""
PORTS_SHARE = 0.9
"""Of the ports of an address: the last ones are slow to find."""


def fitted(suite: Suite, servers: Sequence[Environment], loads: Sequence[Environment]) -> tuple[Suite, tuple[str, ...]]:
    """The suite with no more users than its hosts hold, if it asks for that, and why each load has fewer.

    `loads` are the hosts that load one server; empty if that is the server's own, whose loopback has ports for all.
    """
    if not suite.fit:
        return suite, ()
    most, why = min((_most(host, loads) for host in servers), key=lambda found: found[0])
    cut = {load.name: _cut(load, most) for load in suite.loads}
    reasons = tuple(
        f"{load.name} has {cut[load.name].connections:,} of {load.connections:,} users: {why}"
        for load in suite.loads
        if cut[load.name] != load
    )
    about = "; ".join((suite.about, *reasons)) if suite.about else "; ".join(reasons)
    fits = {"loads": tuple(cut.values()), "about": about, "fit": False}
    return suite.model_copy(update=fits), reasons


def _most(server: Environment, loads: Sequence[Environment]) -> tuple[int, str]:
    """How many connections fit, and what the limit is."""
    kernel_bytes = KERNEL_BYTES if loads else 2 * KERNEL_BYTES
    found = [
        (
            server.open_files_hard - SPARE_FILES,
            f"a server on {server.hostname} may open {server.open_files_hard:,} files",
        ),
        _of_memory(server, kernel_bytes),
    ]
    if loads:
        found.append(
            (
                sum(int(PORTS_SHARE * _ports(host)) for host in loads),
                f"{len(loads)} load hosts have {sum(map(_ports, loads)):,} ports to connect from",
            )
        )
        most, why = min(_of_memory(host, KERNEL_BYTES) for host in loads)
        found.append((most * len(loads), why))
    return min(found)


def _of_memory(host: Environment, connection_bytes: int) -> tuple[int, str]:
    has = min(host.memory_bytes, host.cgroup_memory_limit_bytes or host.memory_bytes)
    why = f"connections may take {percent(MEMORY_SHARE)} of the {has / 2**30:.1f} GiB of {host.hostname}"
    return int(MEMORY_SHARE * has / connection_bytes), why


def _ports(host: Environment) -> int:
    first, last = host.port_range or (32768, 60999)
    return last - first + 1


def _cut(load: Load, most: int) -> Load:
    """The load with so many users at most, in its stages too; open loads stay, their connections are theirs to say."""
    shape = load.shape
    if not isinstance(shape, Closed) or shape.most_users <= most:
        return load
    stages = tuple(stage.model_copy(update={"to": min(stage.to, most)}) for stage in shape.stages)
    cut = shape.model_copy(update={"users": min(shape.users, most), "stages": stages})
    return load.model_copy(update={"shape": cut})
