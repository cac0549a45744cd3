"""Environments against each other: what differs, and which runs' numbers can still be held against each other. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from redline.model import Environment
from redline.model.history import Era

_DIGITS = 12


@dataclass(frozen=True)
class Matter:
    """One thing that may explain a difference between two runs.

    When it is grave, another value is another machine or another instrument, and the numbers are of two worlds;
    else it is worth knowing. `of` reads from the environment what is compared, where that is not the whole field.
    """

    field: str
    weight: Literal["grave", "lesser"]
    why: str
    of: Callable[[str], str] | None = None

    def value(self, environment: Environment) -> object:
        """What is compared."""
        value = getattr(environment, self.field)
        return self.of(value) if self.of else value


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in two environments."""

    name: str
    before: str
    after: str
    grave: bool

    def __str__(self) -> str:
        """`kernel: 6.1.0 -> 6.2.0`."""
        return f"{self.name}: {self.before} -> {self.after}"


def kernel_series(release: str) -> str:
    """`6.1` of `6.1.0-31-amd64`: what Linux calls a release; what follows are its repairs and the distribution's."""
    return ".".join(release.split(".")[:2])


MATTERS = (
    Matter("cpu_model", "grave", "another processor"),
    Matter("cores", "grave", "more or fewer cores share the work"),
    Matter("cgroup_cpu_limit", "grave", "a quota stops all processes once it is used up"),
    Matter("virtual", "grave", "a hypervisor takes its share, and each its own"),
    Matter("smt", "grave", "two threads of one core take from each other"),
    Matter("server_cpus", "grave", "the server has other cores, or is free to roam"),
    Matter("engine_cpus", "grave", "the engine has other cores, or is free to roam"),
    Matter("engine", "grave", "another instrument"),
    Matter("engine_sha256", "grave", "another build of the instrument"),
    Matter("kernel", "grave", "another scheduler, another network stack", of=kernel_series),
    Matter("kernel", "lesser", "repairs; seldom, and then by much (mitigations of processor faults)"),
    Matter("governor", "lesser", "the frequency under light load"),
    Matter("turbo", "lesser", "the frequency while other cores rest"),
    Matter("frequency_mhz", "lesser", "the frequencies that cores may have"),
    Matter("numa_nodes", "lesser", "memory of another node is slower"),
    Matter("huge_pages", "lesser", "fewer misses of the address cache, and pauses to merge pages"),
    Matter("aslr", "lesser", "whether each start has another layout of memory"),
    Matter("mitigations", "lesser", "what a system call costs"),
    Matter("clock_source", "lesser", "what it costs to read the clock"),
    Matter("congestion_control", "lesser", "how large answers are sent"),
    Matter("memory_bytes", "lesser", "matters to a server that uses most of it"),
    Matter("os", "lesser", "other libraries"),
    Matter("hostname", "lesser", "perhaps another machine of the same kind"),
    Matter("redline", "lesser", "judges anew from the recordings, but may have measured otherwise"),
)
"""What, when it is not the same in two runs, may explain a difference between them: gravest first, with the reason.

docs/guide/history.md has the same table.
"""


def differences(before: Environment, after: Environment) -> tuple[Difference, ...]:
    """All that differs of what matters, grave ones first.

    What is known of only one of the two is no proof of another machine: it is listed, and not grave.
    """
    by_field: dict[str, Difference] = {}
    for matter in MATTERS:
        old, new = matter.value(before), matter.value(after)
        if old == new or matter.field in by_field:
            continue
        by_field[matter.field] = Difference(
            name=matter.field.replace("_", " "),
            before=_display(matter.field, getattr(before, matter.field)),
            after=_display(matter.field, getattr(after, matter.field)),
            grave=matter.weight == "grave" and _known(matter.field, old) and _known(matter.field, new),
        )
    return tuple(sorted(by_field.values(), key=lambda difference: not difference.grave))


def grave(before: Environment, after: Environment) -> tuple[Difference, ...]:
    """What differs so that numbers of the two may not be held against each other."""
    return tuple(difference for difference in differences(before, after) if difference.grave)


def eras_of(environments: Sequence[Environment]) -> tuple[tuple[Era, ...], list[int]]:
    """The eras of runs in these environments, and of each run in which it is.

    A run goes to the last era whose latest environment does not differ gravely from its own, or begins a new era.
    """
    eras: list[Era] = []
    latest: list[Environment] = []
    era_of: list[int] = []
    for place, environment in enumerate(environments):
        fits = [era for era, last in enumerate(latest) if not grave(last, environment)]
        if fits:
            latest[fits[-1]] = environment
        else:
            before = environments[place - 1] if place else environment
            eras.append(Era(first_run=place, differs=tuple(map(str, grave(before, environment)))))
            latest.append(environment)
        era_of.append(fits[-1] if fits else len(latest) - 1)
    return tuple(eras), era_of


_NOTHING = {"server_cpus": "not pinned", "engine_cpus": "not pinned", "cgroup_cpu_limit": "none", "virtual": "no"}
"""What an empty value says of these. Of others it says that it is not known."""


def _known(field: str, value: object) -> bool:
    return field in _NOTHING or value not in (None, "")


def _display(field: str, value: object) -> str:
    """The value as reports show it."""
    if value in (None, "", ()):
        return _NOTHING.get(field, "not known")
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)[:_DIGITS] if field == "engine_sha256" else str(value)
