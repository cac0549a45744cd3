"""What a search proposes or concludes: a rate to try next, an answer for each set, or why there is none."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Where the search begins, and when it is content.

    `precision` is the half width of an interval relative to its middle, `confidence` that of its two sides together.
    `trials`: with more than 0, both ends of every answer are probed on so many fresh starts of the server, which are
    not counted in `probes`; with 0, once more on the server that is running.
    """

    start_per_s: float = 1000.0
    lowest_per_s: float = 1.0
    highest_per_s: float = 10_000_000.0
    probes: int = 12
    precision: float = 0.03
    confidence: float = 0.95
    repeats: int = 3
    trials: int = 0

    def most_probes(self, sets: int) -> int:
        """Of a search for so many sets of objectives, with those at the ends of its answers."""
        return self.probes + 2 * self.trials * sets


@dataclass(frozen=True)
class Proposal:
    """Try this rate next; `why` is for people. `whole`: to its end, even when it is hopeless.

    `fresh_start`: the number of the fresh start that it is on, from 1; with 0, on whichever server is running.
    """

    rate_per_s: float
    why: str
    whole: bool = False
    fresh_start: int = 0


@dataclass(frozen=True)
class Limit:
    """Of one set of objectives: [highest rate that passed, lowest that failed], and how that is known.

    `confidence` is None where the interval comes from single rates: nobody has studied how often those hold the truth.
    `decided` when it is as narrow as was wanted. `binding` is the condition that fails first. `reason` says why the set
    has no better answer, where more probes would not give one. `starts_differ`: by more than chance; the interval is by
    how they do, and they are few.
    """

    name: str
    low_per_s: float | None
    high_per_s: float | None
    confidence: float | None
    decided: bool
    modelled: bool
    binding: str
    reason: str = ""
    starts_differ: bool = False


@dataclass(frozen=True)
class Converged:
    """The search is over; a limit that is not `decided` is as narrow as the probes allowed, or has its reason.

    `confirmed`: all are decided, and fresh probes at their ends did not contradict them.
    """

    limits: tuple[Limit, ...]
    confirmed: bool


@dataclass(frozen=True)
class Exhausted:
    """The probes are used up while a side of some set is not known; `limits` hold what is."""

    limits: tuple[Limit, ...]


@dataclass(frozen=True)
class Doomed:
    """No set has an answer, and why; `limits` hold what is known all the same."""

    reason: str
    limits: tuple[Limit, ...]
