"""What a limit is asked: the sets of objectives, and the numbers of the search."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from redline.cli.flags import at_least_one, duration_ns
from redline.errors import UsageError
from redline.model import Cell, Objective, Open
from redline.quantities import duration
from redline.search import Settings
from redline.search.steps import QUANTILES
from redline.suite import SHORTEST_PROBE_NS, WrongValueError, parse_objectives, parse_rate, parse_share

FEWEST_REQUESTS = 100
"""In a probe of the lowest rate that is tried: fewer say next to nothing."""
FEW_ERRORS = "errors < 1%"
"""What a set of objectives asks for that says nothing of errors."""

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class Asked:
    """The flags that suites and URLs share, as they were written; None where one was left out."""

    target: str
    objectives: list[str]
    start: str | None
    probes: int
    precision: str
    duration: str | None
    warmup: str | None
    seed: int | None
    json: bool

    @property
    def start_per_s(self) -> float | None:
        """The first rate, where it was given. Raises UsageError."""
        return None if self.start is None else quantity("--start", self.start, parse_rate)

    def settings(self, probe_ns: int, start_per_s: float, trials: int = 0) -> Settings:
        """Of a search whose probes are so long. Raises UsageError."""
        return Settings(
            lowest_per_s=lowest_per_s(probe_ns),
            start_per_s=start_per_s,
            probes=at_least_one("--probes", self.probes),
            precision=quantity("--precision", self.precision, parse_share),
            trials=trials,
        )


def lowest_per_s(probe_ns: int) -> float:
    """The lowest rate that is worth a probe of that length."""
    return FEWEST_REQUESTS / (probe_ns / 1e9)


def read_sets(texts: list[str]) -> dict[str, tuple[Objective, ...]]:
    """Objectives by name; one without a name is its own. Raises UsageError."""
    sets: dict[str, tuple[Objective, ...]] = {}
    for text in texts:
        name, colon, conditions = text.partition(":")
        try:
            found = parse_objectives(conditions if colon else text)
        except WrongValueError as error:
            raise UsageError(f"--objective: {error.message}", hint=error.hint) from None
        name = (name if colon else text).strip()
        if name in sets:
            raise UsageError(f"--objective: `{name}` is given twice", hint="write both in one, with a comma")
        sets[name] = found
    return with_few_errors(sets)


def with_few_errors(sets: Sets) -> dict[str, tuple[Objective, ...]]:
    """Where nothing is said of errors, fewer than 1% are asked for: a server that only refuses is fast."""
    few = parse_objectives(FEW_ERRORS)
    return {
        name: found if any(each.metric == "errors" for each in found) else (*found, *few)
        for name, found in sets.items()
    }


def within_timeout(sets: Sets, timeout_ns: int, timeout: str) -> None:
    """Raises UsageError for a limit of latency that no request can exceed, since it is given up before.

    `timeout` is where the timeout is said, with its value.
    """
    for each in (one for conditions in sets.values() for one in conditions):
        if each.metric in (*QUANTILES, "max") and each.limit >= timeout_ns:
            raise UsageError(
                f"the objective `{each.text}` cannot be told from {timeout}, when a request is given up",
                hint=f"raise {timeout.split(maxsplit=1)[0]} well above the limit",
            )


def probe_ns(flag: str, text: str) -> int:
    """The length of a probe. Raises UsageError."""
    found_ns = duration_ns(flag, text)
    if found_ns < SHORTEST_PROBE_NS:
        raise UsageError(f"{flag} {text} is too short", hint=f"a probe takes 1 s at least: give {flag} 1s or more")
    return found_ns


def quantity(flag: str, text: str, parse: Callable[[str], float]) -> float:
    """A flag's number, more than 0. Raises UsageError."""
    try:
        found = parse(text)
    except WrongValueError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None
    if found <= 0:
        raise UsageError(f"{flag} {text} is not possible", hint=f"give {flag} more than 0")
    return found


def load_told(cell: Cell) -> str:
    """How probes are made: `open, poisson, 256 connections, 5.00 s after 1.00 s`."""
    shape = cell.load.shape
    assert isinstance(shape, Open), "probes are open loads"
    lengths = f"{duration(cell.load.duration_ns)} after {duration(cell.warmup_ns)}"
    return f"open, {shape.arrivals}, {shape.connections:,} connections, {lengths}"
