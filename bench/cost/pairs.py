"""Runs of several clients in alternating order, and the ratios of pairs of the same round."""

import math
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.stats import t as student

from redline.errors import RedlineError

Verdict = Literal["met", "missed", "unclear", "no goal"]


@dataclass(frozen=True)
class Ran:
    """What a client says of one run: all the requests that it made, its rate, what went wrong, and what it adds."""

    requests: int
    rate_per_s: float
    faults: str = ""
    p50_us: float = math.nan
    p99_us: float = math.nan
    note: str = ""


@dataclass(frozen=True)
class Sample:
    """One run, with the CPU time of the client's whole process in microseconds, and its share in user space."""

    ran: Ran
    cpu_us_per_request: float
    user_share: float


@dataclass(frozen=True)
class Client:
    """A program that can make one run."""

    name: str
    run: Callable[[], Ran]


@dataclass
class Samples:
    """The runs of each client, in order of the rounds; a client that failed runs no more; `failed` says why."""

    of: dict[str, list[Sample]] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def mean(self, name: str, value: Callable[[Sample], float]) -> float:
        """Mean over a client's runs; NaN without any."""
        runs = self.of.get(name, [])
        return float(np.mean([value(run) for run in runs])) if runs else math.nan


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95% interval, which is infinite for a single pair."""

    value: float
    low: float
    high: float

    def verdict(self, goal: float | None) -> Verdict:
        """Whether it is at most the goal: unclear where the interval holds the goal."""
        if goal is None:
            return "no goal"
        if self.high <= goal:
            return "met"
        return "missed" if self.low > goal else "unclear"


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Mean difference of pairs, with Student's interval."""
    gaps = np.asarray(ours) - np.asarray(theirs)
    mean = float(gaps.mean())
    if len(gaps) < 2:
        return Interval(mean, -math.inf, math.inf)
    half = float(student.ppf(0.975, len(gaps) - 1)) * float(gaps.std(ddof=1)) / len(gaps) ** 0.5
    return Interval(mean, mean - half, mean + half)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> Interval:
    """Geometric mean of the ratios of pairs, with Student's interval on their logarithms."""
    logs = difference([math.log(each) for each in ours], [math.log(each) for each in theirs])
    high = math.exp(logs.high) if math.isfinite(logs.high) else math.inf
    return Interval(math.exp(logs.value), math.exp(logs.low), high)


def sample(client: Client) -> Sample:
    """One run, with the CPU time of the client's whole process, its start and end included (rusage of children).

    Raises ValueError when it made no request, and what the client raises.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ran = client.run()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    if ran.requests <= 0 or user + system <= 0:
        raise ValueError(f"no request was answered as it should be: {ran.faults or 'and nothing is said of why'}")
    return Sample(ran, (user + system) * 1e6 / ran.requests, user / (user + system))


def in_rounds(
    clients: Sequence[Client],
    rounds: int,
    say: Callable[[str], None],
    measure: Callable[[Client], Sample] = sample,
) -> Samples:
    """Each client once a round, every second round in the opposite order, so that drift favours nobody.

    A client that cannot run is left out from then on, and why is kept.
    """
    samples = Samples(of={client.name: [] for client in clients})
    for number in range(rounds):
        for client in clients if number % 2 == 0 else list(reversed(clients)):
            if client.name in samples.failed:
                continue
            try:
                one = measure(client)
            except (RedlineError, OSError, ValueError, LookupError) as error:
                samples.failed[client.name] = " ".join(str(error).split())[:400]
                say(f"  {client.name}: not run: {samples.failed[client.name]}")
                continue
            samples.of[client.name].append(one)
            say(f"  round {number + 1}/{rounds}: {progress_line(client.name, one)}")
    return samples


def progress_line(name: str, one: Sample) -> str:
    """A line of progress."""
    faults = f", {one.ran.faults}" if one.ran.faults else ""
    return f"{name}: {one.cpu_us_per_request:.2f} us/request, {one.ran.rate_per_s:,.0f}/s{faults}"


def progress(line: str) -> None:
    """To standard error: what is printed on standard output is the result."""
    print(line, file=sys.stderr, flush=True)
