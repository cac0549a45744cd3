"""Judge a search for the commit that made a metric worse: what is known by its measurements, and what comes next."""

import math
from dataclasses import dataclass
from functools import cached_property
from statistics import median

from redline.model.bisection import BisectedCommit, Bisection, ChangedRange, Ending, Interval95
from redline.search import bisection as search

LITTLE = 0.05
"""The weight of a commit that touches nothing of the server: it starts with little, never with none."""
_FIRST, _MOST_TRIED = 3, 6
"""The measurements of the newest commit before it is said to be no different, and the most attempts at them."""
_ENDINGS: dict[str, Ending] = {
    search.FOUND: "found",
    search.SEVERAL_CHANGES: "several",
    search.NO_DIFFERENCE: "none",
    search.UNDECIDED: "undecided",
}


@dataclass(frozen=True)
class Bisecting:
    """What is known of a search, by all that it has measured so far."""

    told: Bisection

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {commit.commit: number for number, commit in enumerate(self.told.commits)}

    @cached_property
    def _commits(self) -> search.CommitGraph:
        numbers = self._numbers
        parents = [[numbers[up] for up in commit.parents if up in numbers] for commit in self.told.commits]
        incomparable = [number for number, commit in enumerate(self.told.commits) if not commit.comparable]
        return search.CommitGraph.of_parents(parents, [commit.weight for commit in self.told.commits], incomparable)

    @cached_property
    def _measured(self) -> list[search.MeasuredCommit]:
        return [
            search.MeasuredCommit(number, duet.logs, duet.within_se, duet.is_same, duet.bias)
            for number, commit in enumerate(self.told.commits)
            for duet in commit.duets
        ]

    @cached_property
    def _broken(self) -> set[int]:
        return {number for number, commit in enumerate(self.told.commits) if commit.broken}

    @cached_property
    def _posterior(self) -> search.Posterior:
        return search.posterior(self._commits, self._measured)

    @cached_property
    def _spans(self) -> dict[int, search.Span]:
        return search.spans(self._measured)

    @property
    def _newest(self) -> search.Span | None:
        """The newest commit's level, if it is measured."""
        return self._spans.get(self._commits.last)

    @property
    def _is_first(self) -> bool:
        """Whether nothing but the newest commit has been measured."""
        return {*self.told.order} <= {self.told.newest.commit}

    @property
    def _is_worse_above(self) -> bool:
        """Whether the change that is sought makes the metric higher."""
        return self.told.higher_is_better == self.told.is_fix

    @cached_property
    def ending(self) -> search.BisectAnswer | Ending | None:
        """The answer, if there is one; or why there will be none; None to go on."""
        if self._newest is None:
            return None
        value, low, high = self._newest
        if self._is_first and low <= 0 <= high:
            is_tried = len(self._measured) >= _FIRST or len(self.told.order) >= _MOST_TRIED
            return "none" if is_tried or self._measured[0].is_same else None
        if self._is_first and (value > 0) != self._is_worse_above:
            return "opposite"
        return search.answer(self._commits, self._posterior, self._broken, len(self.told.order))

    def next(self) -> BisectedCommit | None:
        """The commit to measure next; None if the search has ended."""
        if self.ending is not None:
            return None
        if self._newest is None or (self._is_first and self._newest[1] <= 0 <= self._newest[2]):
            return self.told.commits[-1]
        at = search.next_commit(self._commits, self._measured, self._broken, self._posterior, self._costs)
        return self.told.commits[at]

    @property
    def _costs(self) -> search.BisectCosts:
        duets = [duet for commit in self.told.commits for duet in commit.duets if not duet.is_same]
        builds = [duet.build_ns for duet in duets if duet.build_ns]
        measured = median(duet.took_ns - duet.build_ns for duet in duets) or 1
        starts = round(median(len(duet.logs) for duet in duets))
        return search.BisectCosts(1.0, (median(builds) if builds else 0) / measured, max(1, starts))

    def judged(self) -> Bisection:
        """The same with what is known by now."""
        if self._newest is None:
            return self.told
        known, ended, numbers = self._posterior, self.ending, range(len(self.told.commits))
        levels = {number: _ratios(span) for number, span in self._spans.items()}
        told = self.told.known_by(levels, [float(known.commits[at]) for at in numbers], known.several, known.none)
        if isinstance(ended, search.BisectAnswer):
            culprits = tuple(told.commits[number].commit for number in ended.commits)
            span = known.size_at(ended.commits) if culprits else self._newest
            told = told.answered(_ENDINGS[ended.ending], culprits, ended.probability, _ratios(span))
        else:
            told = told.answered(ended, (), 0.0, _ratios(self._newest))
        return told.written(tuple(self._ranges()) if told.ending in ("several", "undecided") else (), self._log(told))

    def _ranges(self) -> list[ChangedRange]:
        """The ranges in which the level surely changes."""
        commits = self.told.commits
        found = []
        for rise in search.rises(self._commits, self._measured):
            _, low, high = rise.span
            if low > 0 or high < 0:
                before = self.told.oldest.commit if rise.before is None else commits[rise.before].commit
                until = commits[rise.after].commit
                found.append(ChangedRange(after=before, until=until, commits=rise.commits, change=_ratios(rise.span)))
        return found

    def _log(self, told: Bisection) -> str:
        """The search as a log of `git bisect`: which commits probably have the change."""
        new, old = ("fixed", "unfixed") if told.is_fix else ("bad", "good")
        start = "git bisect start" + (f" --term-new={new} --term-old={old}" if told.is_fix else "")
        start += " --first-parent" if told.first_parent else ""
        lines = [start, f"git bisect {new} {told.newest.commit}", f"git bisect {old} {told.oldest.commit}"]
        chances = self._commits.contains @ self._posterior.commits
        for name in dict.fromkeys(told.order):
            number = self._numbers[name]
            commit = told.commits[number]
            if number == self._commits.last or not (commit.duets or commit.broken):
                continue
            term = new if chances[number] > chances[-1] / 2 else old
            term = "skip" if commit.broken else term
            lines += [f"# {term}: [{name}] {commit.subject}", f"git bisect {term} {name}"]
        if told.ending == "found" and len(told.culprits) == 1:
            subject = told.commits[self._numbers[told.culprits[0]]].subject
            lines.append(f"# first {new} commit: [{told.culprits[0]}] {subject}")
        return "\n".join(lines) + "\n"


def _ratios(span: search.Span) -> Interval95:
    return math.expm1(span[0]), math.expm1(span[1]), math.expm1(span[2])
