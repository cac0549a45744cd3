"""What a rule is: from which value on a finding is a note, a warning or invalid, why there, and what to do.

Rules stand in the modules of this package, each beside the function that judges by it. `table` collects both.
"""

from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from inspect import signature
from typing import Literal

from redline.model import Cell, Finding, FindingKind, Grade
from redline.stats import Trial

BUSY_SERVER = 0.85
"""From this share of its cores on, the server is near its limit: an M/M/1 queue then waits for 5.7 service times."""

FULL_SERVER = 0.95
"""From this share on, the server's cores are full: the rate is the server's own, however busy the client."""

OTHERS_BUSY = 0.10
"""A smaller share of the machine's CPU time, used by neither server nor engine, is the kernel's housekeeping."""

TICK_NS = 10_000_000
"""The kernel counts a core's busy time in ticks of 10 ms, so a window is off by one tick at either end."""

TREND_P = 0.001
"""Chance of reporting noise as a trend, per trial: at most one false alarm in 13 runs of 75 good trials each."""

ARRIVALS_P = 1e-5
"""Chance of blaming a correct schedule, for each of three tests: one false alarm in 30,000 trials."""

AUTOCORRELATION_P = 0.001
"""Chance of taking independent trials for dependent ones: once in 1,000 cells."""

WANTED_TRIALS = 5
"""With fewer, the t distribution alone makes an interval more than 2.78 / 1.96 = 1.4 times as wide."""

WANTED_BEYOND = 100
"""Requests beyond p99 that fix it to about 2% if response times fall off exponentially: 1 / (sqrt(100) ln 100)."""

When = Literal["trial", "traffic", "requests", "answers", "cell", "duet"]
"""What there has to be for a judge: a trial, its traffic, requests due in it, right answers; a cell; a duet."""
Probes = Literal["", "all", "first"]


@dataclass(frozen=True)
class Rule:
    """A kind of finding: what it `measures`, and from which value on it is a note, a warning or invalid.

    Its grade is the highest whose limit the value exceeds; None is never exceeded. `unit` is that of limits on the
    page: a share in percent unless it says otherwise. `biases` is which way it moves a number; `scatters` whether it
    widens intervals, or makes them untrue. `passes`: it comes and goes on the machine, so interleaved trials average
    it, and it weighs on a cell as far as it met most of its trials. `reassures`: good to know and no reason to doubt,
    so it is said once and marks no number. `blames` says whose doing an invalid finding is. `lengthens`: it only ever
    adds to response times, where requests fall due by a schedule, so what is met is met in spite of it.
    """

    kind: FindingKind
    _: KW_ONLY
    measures: str
    note: float | None = None
    warn: float | None = None
    invalid: float | None = None
    unit: str = "%"
    reason: str
    advice: str
    biases: str = ""
    scatters: bool = False
    passes: bool = False
    reassures: bool = False
    blames: Literal["server", "client", ""] = ""
    lengthens: bool = False

    def grade(self, value: float) -> Grade | None:
        """The grade for this value; None if there is no finding."""
        for grade, limit in ((Grade.INVALID, self.invalid), (Grade.WARN, self.warn), (Grade.NOTE, self.note)):
            if limit is not None and value > limit:
                return grade
        return None

    def found(
        self,
        value: float,
        message: str,
        about: Cell | Trial | str,
        *,
        at_most: Grade = Grade.INVALID,
        advice: str | None = None,
    ) -> tuple[Finding, ...]:
        """The finding that this value makes, graded no higher than `at_most`; empty for none.

        `about` may be the id of a cell. `advice` replaces that of the rule.
        """
        grade = self.grade(value)
        if grade is None:
            return ()
        cell_id = about if isinstance(about, str) else about.id if isinstance(about, Cell) else about.recording.cell_id
        return (
            Finding(
                kind=self.kind,
                grade=min(grade, at_most, key=lambda one: one.weight),
                message=message,
                advice=advice or self.advice,
                cell_id=cell_id,
                position=about.recording.position if isinstance(about, Trial) else None,
            ),
        )


@dataclass(frozen=True)
class Judge:
    """A function that makes findings, and when it can be asked; see `judges`."""

    function: Callable[..., Iterable[Finding]]
    when: When
    probes: Probes

    def __call__(self, *seen: object, **named: object) -> tuple[Finding, ...]:
        """Its findings."""
        return tuple(self.function(*seen, **named))

    def of(self, seen: object) -> tuple[Finding, ...]:
        """Its findings, from the attributes of `seen` that its parameters name."""
        return self(*(getattr(seen, name) for name in self._takes))

    @cached_property
    def _takes(self) -> tuple[str, ...]:
        return tuple(signature(self.function).parameters)


def judges(when: When, *, probes: Probes = "") -> Callable[[Callable[..., Iterable[Finding]]], Judge]:
    """Put a function into the table: it is asked wherever it can be, and needs to be named nowhere else.

    Its parameters are attributes of `SeenTrial`, of `SeenCell`, or a `duet`. `probes` says which ones of a search are
    judged by it too.
    """
    return lambda function: Judge(function, when, probes)


TOO_SLOW, LONG_TAILS, TOO_CHEAP = "response times are too high", "tails are too high", "costs are too low"
SLOWED = "throughput is too low and response times are too high, of all servers alike"
TIME_DEPENDENT, TOO_ALIKE = "levels depend on when they were measured", "differences are too small"
"""Which way several rules move a number."""
