"""Compare environments: what differs, and which runs' numbers are still comparable. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from redline.model import Environment
from redline.model.history import Era

_DIGITS = 12


@dataclass(frozen=True)
class Matter:
    """A field that may explain a difference between two runs.

    If it is grave, another value means another machine or instrument, and the numbers are not comparable; otherwise it
    is worth knowing. `of` extracts the compared part of the field, if it is not the whole.
    """

    field: str
    weight: Literal["grave", "lesser"]
    why: str
    of: Callable[[str], str] | None = None

    def value(self, environment: Environment) -> object:
        """The compared value."""
        value = getattr(environment, self.field)
        return self.of(value) if self.of else value


@dataclass(frozen=True)
class Difference:
    """A field that differs between two environments."""

    name: str
    before: str
    after: str
    grave: bool

    def __str__(self) -> str:
        """`kernel: 6.1.0 -> 6.2.0`."""
        return f"{self.name}: {self.before} -> {self.after}"


def kernel_series(release: str) -> str:
    """`6.1` of `6.1.0-31-amd64`: the Linux release, without its fixes and the distribution's."""
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
"""The fields that may explain a difference between two runs: gravest first, with the reason.

docs/guide/history.md has the same table.
"""


def differences(before: Environment, after: Environment) -> tuple[Difference, ...]:
    """The differences that matter, grave ones first.

    A field that is known of only one environment does not prove another machine: it is listed, but not grave.
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
    """The differences that make numbers from the two environments incomparable."""
    return tuple(difference for difference in differences(before, after) if difference.grave)


def eras_of(environments: Sequence[Environment]) -> tuple[tuple[Era, ...], list[int]]:
    """The eras of runs in these environments, and the index of every run's era.

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
"""The meaning of an empty value of these fields. For others it means not known."""


def _known(field: str, value: object) -> bool:
    return field in _NOTHING or value not in (None, "")


def _display(field: str, value: object) -> str:
    """The value as reports show it."""
    if value in (None, "", ()):
        return _NOTHING.get(field, "not known")
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value)[:_DIGITS] if field == "engine_sha256" else str(value)
