"""What a search for a commit knows by its measurements, and when it ends."""

from redline.history.bisecting import Bisecting
from redline.model.bisection import Bisection, CommitDuet
from tests.fakes.bisections import begun, name

SCATTER = (-0.004, 0.001, 0.003)


def with_level(told: Bisection, at: int, level: float, scatter: float = 1.0) -> Bisection:
    """The search with a measurement of commit `at`."""
    logs = tuple(level + scatter * each for each in SCATTER)
    return Bisecting(told.with_duet(told.commits[at - 1], CommitDuet(logs=logs), 10**9)).judged()


def test_a_search_that_cannot_decide_has_the_ranges_that_changed() -> None:
    told = with_level(with_level(begun(4), 4, 0.05), 2, 0.0)
    told = Bisecting(told.model_copy(update={"order": told.order * 20})).judged()
    assert (told.ending, told.culprits) == ("undecided", (name(3),))
    ((after, until, commits),) = [(one.after, one.until, one.commits) for one in told.ranges]
    assert (after, until, commits) == (name(2), name(4), 2)


def test_attempts_that_failed_are_no_measurements_of_the_newest_commit() -> None:
    told = with_level(begun(8), 8, 0.0)
    for _ in range(2):
        told = Bisecting(told.with_failure(told.commits[-1], "no answer in time", 10**9, by_chance=True)).judged()
    assert told.ending is None, "it is measured three times"
    for _ in range(2):
        told = with_level(told, 8, 0.0)
    assert (told.ending, len(told.order)) == ("none", 5)
