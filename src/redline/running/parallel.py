"""Where the servers of a parallel duet run: each on cores of its own, and its load on further ones."""

from redline.errors import UsageError
from redline.model import Plan
from redline.ports import Placement


def sides(cores: tuple[tuple[int, ...], ...], servers: int) -> tuple[Placement, ...]:
    """As many sides as servers, each with as many cores; the server's are no fewer than those of its load.

    `cores` are physical cores, each the CPUs that may be used of it. The first one is left to the lab and the kernel,
    and so are the last ones where the others cannot be divided. Raises UsageError where there are too few.
    """
    needed, each = 1 + 2 * servers, (len(cores) - 1) // servers
    if each < 2:
        raise UsageError(
            f"a parallel duet of {servers} servers needs {needed} cores, one for each server, one for the load of each,"
            f" and one for the lab; this machine has {len(cores) or 'too few'}",
            hint="load them in turn: `design: duet`, or `redline ab` without --parallel",
        )
    found = []
    for number in range(servers):
        mine = cores[1 + number * each : 1 + (number + 1) * each]
        middle = (each + 1) // 2
        found.append(Placement(_cpus(mine[:middle]), _cpus(mine[middle:]), cores[0]))
    return tuple(found)


def check_cores(plan: Plan, cores: tuple[tuple[int, ...], ...]) -> None:
    """Raise UsageError if a parallel duet of the plan needs more cores than there are."""
    sizes = [len(duet.places) for duet in plan.duets if duet.places]
    if sizes:
        sides(cores, max(sizes))


def _cpus(cores: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))
