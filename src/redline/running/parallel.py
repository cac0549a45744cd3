"""Assign cores in a parallel duet: each server runs on its own cores, and its load on others."""

from redline.errors import UsageError
from redline.model import Plan
from redline.ports import Placement
from redline.wording import part


def sides(cores: tuple[tuple[int, ...], ...], servers: int) -> tuple[Placement, ...]:
    """Divide cores among servers; a server gets half of its share, rounded up, and its load the rest.

    `cores` lists the usable CPUs of each physical core. The first core, and a remainder, are left to the lab and the
    kernel. Raises UsageError if there are too few cores.
    """
    needed, size = 1 + 2 * servers, (len(cores) - 1) // servers
    if size < 2:
        raise UsageError(
            f"a parallel duet of {servers} servers needs {needed} cores: one for each server, one for each load,"
            f" and one for the lab; this machine has {len(cores) or 'too few'}",
            hint=f"load them in turn: `design: duet`, or `redline ab` without {part('parallel')}",
        )
    starts, middle = range(1, 1 + servers * size, size), (size + 1) // 2
    return tuple(
        Placement(_cpus(cores[start : start + middle]), _cpus(cores[start + middle : start + size]), cores[0])
        for start in starts
    )


def check_cores(plan: Plan, cores: tuple[tuple[int, ...], ...]) -> None:
    """Raise UsageError if a parallel duet of the plan needs more cores than this machine has."""
    sizes = [len(duet.places) for duet in plan.duets if duet.places]
    if sizes:
        sides(cores, max(sizes))


def _cpus(cores: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return tuple(sorted(cpu for core in cores for cpu in core))
