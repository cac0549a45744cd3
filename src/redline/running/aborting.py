"""End loads early if more time would tell nothing more; the engine reports what it has, as after Ctrl-C."""

import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from redline import findings, stats
from redline.model import AbortRule, Counts, DuetBlock, DuetSlice, DuetTraffic, Failure, Interval, Outcomes, Traffic
from redline.quantities import duration
from redline.wording import part

Seen = TypeVar("Seen")

PATIENCE_NS = 2_000_000_000
"""The shortest load without right answers: a server may refuse its very first requests."""
FEWEST_FAILED = 5


class LoadAbort(Generic[Seen]):
    """Interrupts an engine once its reports are enough; this base class never does."""

    def __init__(self) -> None:
        self._interrupt: Callable[[], None] | None = None
        self.done = False

    def started(self, pid: int) -> None:
        """Note the engine's process."""
        self._interrupt = partial(_interrupt, pid)

    def started_on_hosts(self, interrupt: Callable[[], None]) -> None:
        """Note what interrupts the engines of other hosts."""
        self._interrupt = interrupt

    def seen(self, reported: Seen) -> None:
        """Note another interval or block; interrupt the engine if it is enough."""
        if self._interrupt is None or self.done or not self._is_enough(reported):
            return
        self.done = True
        self._interrupt()

    def _is_enough(self, reported: Seen) -> bool:
        del reported
        return False


class FailingAbort(LoadAbort[Interval]):
    """Ends a load if every request so far has failed."""

    def __init__(self) -> None:
        super().__init__()
        self._outcomes = Outcomes()

    def _is_enough(self, interval: Interval) -> bool:
        if interval.phase == "drain":
            return False
        counts = [Counts(outcomes=self._outcomes), interval.counts]
        self._outcomes = Counts.merged(counts).outcomes
        right = self._outcomes.ok + interval.counts.completed
        return right == 0 and self._outcomes.errors >= FEWEST_FAILED and interval.end_ns >= PATIENCE_NS

    def ended(self, traffic: Traffic) -> tuple[Traffic, Failure | None]:
        """Return the traffic, and why the load failed if this ended it."""
        if not self.done:
            return traffic, None
        text = findings.failures_text(traffic.failures) or findings.listed_outcomes(self._outcomes)
        seconds = duration(max(interval.end_ns for interval in traffic.intervals)) if traffic.intervals else "moments"
        return traffic.ended_failing(), _failed(f"all {self._outcomes.errors:,} requests of the first {seconds}", text)


class RequestedAbort(FailingAbort):
    """Ends a load if a condition holds that the user gave, or if every request has failed."""

    def __init__(self, rules: Sequence[AbortRule]) -> None:
        super().__init__()
        self._judge, self._why = stats.AbortJudge(rules), ""

    def _is_enough(self, interval: Interval) -> bool:
        self._why = self._judge.seen(interval)
        return bool(self._why) or super()._is_enough(interval)

    def ended(self, traffic: Traffic) -> tuple[Traffic, Failure | None]:
        """Return the traffic, which says what aborted it, or why the load failed if every request had."""
        if self.done and self._why:
            return traffic.ended_as_asked(self._why), None
        return super().ended(traffic)


class RequestedDuetAbort(LoadAbort[DuetBlock]):
    """Ends a duet if a condition holds for one of its servers that the user gave, or if only failures come from one.

    `names` are the names of its servers.
    """

    def __init__(self, rules: Sequence[AbortRule], names: Sequence[str]) -> None:
        super().__init__()
        self._names, self._why = names, ""
        self._judge = stats.DuetAbortJudge(rules, names) if rules else None  # importing it takes long
        self._courses = [_Failing() for _ in names]

    def _is_enough(self, reported: DuetBlock) -> bool:
        self._why = self._judge.seen(reported) if self._judge else ""
        for slice_ in reported.slices:
            self._courses[slice_.target].add(slice_)
        return bool(self._why) or self._gone is not None

    @property
    def _gone(self) -> int | None:
        """The first server from which only failures come."""
        return next((at for at, course in enumerate(self._courses) if course.is_long), None)

    def ended(self, traffic: DuetTraffic) -> tuple[DuetTraffic, Failure | None]:
        """Return the traffic, which says what aborted it, and why the duet failed if it did."""
        if self.done and self._why:
            return traffic.ended_as_asked(self._why), None
        if self.done and (target := self._gone) is not None:
            text = findings.failures_text(traffic.targets[target].failures) or "the engine gives no reason"
            return traffic.ended_failing(), _failed(self._courses[target].said(self._names[target]), text)
        return traffic, self._overdue(traffic) if traffic.ended == "deadline" else None

    def _overdue(self, traffic: DuetTraffic) -> Failure:
        """The failure of a duet whose slices waited for answers for too long."""
        by_server: dict[str, None] = {}
        for name, target in zip(self._names, traffic.targets, strict=True):
            if text := findings.failures_text(target.failures):
                by_server[f"{name}: {text}"] = None
        why = "; ".join(by_server) or "no request failed, but all of them took too long"
        return Failure(
            stage="load",
            kind="wrong_answer",
            message=f"a slice ended with requests that had no answer, so the next would begin under their load: {why}",
            hint=f"give fewer users ({part('load', 'closed:8')}), or a longer listen queue to a server at which "
            "connections wait",
        )


class _Failing:
    """The requests to a server since its last right answer."""

    def __init__(self) -> None:
        self._right = self._failed = self._since_ns = self._lasts_ns = 0

    def add(self, slice_: DuetSlice) -> None:
        """Take in a slice of it."""
        self._right += slice_.completed
        if slice_.completed:
            self._failed = 0
        elif slice_.failed:
            self._since_ns = self._since_ns if self._failed else slice_.start_ns
            self._failed += slice_.failed
            self._lasts_ns = slice_.end_ns - self._since_ns

    @property
    def is_long(self) -> bool:
        """Whether they are many, over a long time."""
        return self._failed >= FEWEST_FAILED and self._lasts_ns >= PATIENCE_NS

    def said(self, name: str) -> str:
        """`all 1,234 requests to B`, or `the last 1,234 requests to B, over 2.1 s after 567 right answers,`."""
        if not self._right:
            return f"all {self._failed:,} requests to {name}"
        lasts, right = duration(self._lasts_ns), f"{self._right:,} right answers"
        return f"the last {self._failed:,} requests to {name}, over {lasts} after {right},"


def _interrupt(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGINT)


def _failed(requests: str, why: str) -> Failure:
    hint = "fix what the failure names; the load ended early, because a longer measurement would tell no more"
    return Failure(stage="load", kind="wrong_answer", message=f"{requests} failed: {why}", hint=hint)
