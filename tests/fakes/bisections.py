"""Searches for a commit of which nothing is measured."""

from redline.model.bisection import BisectedCommit, Bisection
from redline.model.catalogue import Revision


def name(number: int) -> str:
    return f"{number:040x}"


def begun(count: int, *, is_fix: bool = False, higher_is_better: bool = False) -> Bisection:
    """A search of which nothing is measured: commits 1 to `count` after commit 0."""
    oldest, newest = Revision(name="v1", commit=name(0)), Revision(name="HEAD", commit=name(count))
    return Bisection(
        command="redline bisect v1 HEAD",
        repository="/work",
        good=newest if is_fix else oldest,
        bad=oldest if is_fix else newest,
        is_fix=is_fix,
        metric="CPU per request",
        higher_is_better=higher_is_better,
        commits=tuple(
            BisectedCommit(commit=name(at), subject=f"commit {at}", parents=(name(at - 1),), weight=1.0)
            for at in range(1, count + 1)
        ),
    )
