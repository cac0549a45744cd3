"""Rules: the limits of a note, a warning or an invalid finding, the reasons for them, and advice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, field, replace
from functools import cached_property
from inspect import signature
from operator import attrgetter
from typing import Literal, get_args

from redline.lazily import dataclass
from redline.model import Finding, FindingKind, Grade, Numbers
from redline.model.percentile import Effect as Leaves

BUSY_SERVER = 0.85
"""From this share of its cores on, the server is near its limit: an M/M/1 queue then waits for 5.7 service times."""

FULL_SERVER = 0.95
"""From this share on, the server's cores are full: the rate is the server's own, however busy the client."""

OTHERS_BUSY = 0.10
"""A smaller share of the machine's CPU time, used by neither server nor engine, is the kernel's housekeeping."""

TICK_NS = 10_000_000
"""The kernel counts a core's busy time in ticks of 10 ms, so a window is off by one tick at either end."""

TREND_P = 0.001
"""The chance of reporting noise as a trend, per trial: at most one false alarm in 13 runs of 75 good trials."""

ARRIVALS_P = 1e-5
"""Chance of blaming a correct schedule, for each of three tests: one false alarm in 30,000 trials."""

AUTOCORRELATION_P = 0.001
"""The chance of mistaking independent trials for dependent: once in 1,000 cells."""

WANTED_TRIALS = 5
"""With fewer trials, the t distribution alone makes an interval more than 2.78 / 1.96 = 1.4 times as wide."""

WANTED_BEYOND = 100
"""Requests beyond p99 that determine it to about 2% for an exponential tail: 1 / (sqrt(100) ln 100)."""

HOLDS = 1.0
"""The value of what holds or does not: above every limit of a share."""

When = Literal["trial", "traffic", "requests", "runtime", "answers", "cell", "among", "duet", "search"]
"""What a judge needs: a trial; its traffic; due requests; also the runtime's facts; right answers; a cell; a server
among others; a duet; all probes of a search."""
Probes = Literal["", "all", "first"]
"""The probes of a search that a rule also judges."""


EVERYTHING: Mapping[Numbers, Leaves] = dict.fromkeys(get_args(Numbers), "unknown")
"""For a fault of the engine, or nothing measured: not even the counts are known."""
ALL_BUT_COUNTS: Mapping[Numbers, Leaves] = {
    numbers: leaves for numbers, leaves in EVERYTHING.items() if numbers != "counts"
}
"""How requests ended is a fact, but it shows no level of a server that works."""
TOO_LITTLE_LOAD: Mapping[Numbers, Leaves] = {
    "throughput": "at least",
    "response times": "unknown",
    "service times": "unknown",
    "message times": "unknown",
}
"""The server had less to do than the load asks for: it answers at least as much."""
LENGTHENED: Mapping[Numbers, Leaves] = {"response times": "at most"}
"""Response times only became longer, where requests fall due by a schedule."""


@dataclass(frozen=True)
class Observation:
    """An observation of a judge: the `value` that its rule grades, and a message for readers.

    The grade is no higher than `at_most`. `advice` and `rule` replace those of the judge.
    """

    value: float
    message: str
    _: KW_ONLY
    at_most: Grade = Grade.INVALID
    advice: str | None = None
    rule: "Rule | None" = None


Judging = Callable[..., Observation | Iterable[Observation] | None]
"""A function that judges. The names of its parameters say what it needs: `cell`, `trial`, `traffic`, …"""


@dataclass(frozen=True)
class Rule:
    """A kind of finding, and the values above which it is a note, a warning or invalid.

    Its `text` has three paragraphs: what it measures, the reason for its limits, and `Advice: …`. As a decorator, it
    takes them from the docstring of the function that judges by it.

    Its grade is the highest whose limit the value exceeds. `unit` is that of the limits on the page, by default a share
    in percent; if empty, the text states the limits. `biases` is the direction in which it moves a number; `scatters`:
    it widens intervals, or makes them wrong. `passes`: it comes and goes on the machine, so interleaved trials average
    it, and it counts for a cell if most trials have it. `reassures`: good news, which is reported once and marks no
    number. `blames` is the cause of an invalid finding, and `touches` says what an invalid finding leaves of which
    numbers: those that it does not name stay known. `ends`: an invalid finding says that the trial was not measured to
    its end, so that a cell's numbers rest on its other trials. `without_service_times` is the advice of duets and
    searches, which show none, if the advice names them.
    """

    kind: FindingKind
    _: KW_ONLY
    when: When | None = None
    probes: Probes = ""
    text: str = ""
    note: float | None = None
    warn: float | None = None
    invalid: float | None = None
    unit: str = "%"
    biases: str = ""
    scatters: bool = False
    passes: bool = False
    reassures: bool = False
    blames: Literal["server", "client", ""] = ""
    touches: Mapping[Numbers, Leaves] = field(default_factory=lambda: EVERYTHING, hash=False)
    ends: bool = False
    without_service_times: str = ""
    function: Judging | None = None

    def __call__(self, function: Judging) -> "Rule":
        """The rule with the function that judges by it."""
        return replace(self, text=function.__doc__ or "", function=function)

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The meaning of its value, the reason for its limits, and its advice."""
        return tuple(" ".join(text.split()).removeprefix("Advice: ") for text in self.text.split("\n\n"))

    @property
    def advice(self) -> str:
        """The advice to users."""
        return self.paragraphs[2]

    @property
    def advice_without_service_times(self) -> str:
        """The advice to users of what shows no service times."""
        return self.without_service_times or self.advice

    def also(self, when: When) -> Callable[[Judging], "Judge"]:
        """Have another function judge by this rule."""
        return lambda function: Judge(function, when, "", self)

    def grade(self, value: float) -> Grade | None:
        """The grade for a value; None if there is no finding."""
        for grade, limit in ((Grade.INVALID, self.invalid), (Grade.WARN, self.warn), (Grade.NOTE, self.note)):
            if limit is not None and value > limit:
                return grade
        return None

    def findings(self, observation: Observation, cell_id: str, position: int | None = None) -> tuple[Finding, ...]:
        """The finding from an observation; none if its value exceeds no limit."""
        grade = self.grade(observation.value)
        if grade is None:
            return ()
        finding = Finding(
            kind=self.kind,
            grade=min(grade, observation.at_most, key=attrgetter("weight")),
            message=observation.message,
            advice=observation.advice or self.advice,
            cell_id=cell_id,
            position=position,
        )
        return (finding,)


@dataclass(frozen=True)
class Judge:
    """A function that judges, and what it needs. Without a `rule`, its observations name rules."""

    function: Judging
    when: When | None
    probes: Probes = ""
    rule: Rule | None = None

    def findings(self, seen: Mapping[str, object], cell_id: str, position: int | None) -> Sequence[Finding]:
        """Its findings about a cell, or the trial at this position, from the arguments that its parameters name."""
        said = self.function(*[seen[name] for name in self._takes])
        if said is None:  # most of the time
            return ()
        found: list[Finding] = []
        for observation in (said,) if isinstance(said, Observation) else said:
            rule = observation.rule or self.rule
            assert rule is not None, "a judge without a rule names it with its observation"
            found += rule.findings(observation, cell_id, position)
        return found

    @cached_property
    def _takes(self) -> tuple[str, ...]:
        return tuple(signature(self.function).parameters)


def judges(when: When, *, probes: Probes = "") -> Callable[[Judging], Judge]:
    """Register a function that judges by several rules."""
    return lambda function: Judge(function, when, probes)


TOO_SLOW, LONG_TAILS, TOO_CHEAP = "response times are too high", "tails are too high", "costs are too low"
SLOWED = "throughput is too low and response times are too high, of all servers alike"
TIME_DEPENDENT, TOO_ALIKE = "levels depend on when they were measured", "differences are too small"
"""The directions in which several rules move a number."""
