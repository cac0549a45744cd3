"""A search for a commit, measured by a fake: what it stores, says and skips, and how it goes on."""

import math
from collections.abc import Sequence
from pathlib import Path

import pytest

from redline.analysis.bisecting import Bisecting
from redline.document.blocks import Prose, Table, words
from redline.errors import BuildError, NotStoredError, RedlineError, StoreError
from redline.model.bisection import BisectedCommit, Bisection, CommitDuet
from redline.model.catalogue import Revision
from redline.report.bisection import answer, chances, change, sections
from redline.running.bisecting import BisectStore, search

SCATTER = (-0.004, 0.001, 0.003)


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


class Lab:
    """Measures commits, whose levels are given; commits that are `broken` do not build. Follows the search."""

    def __init__(self, levels: Sequence[float], broken: Sequence[int] = (), stops_at: int = 0) -> None:
        self._levels, self._broken, self._stops_at = levels, broken, stops_at
        self.numbers: list[int] = []
        self.seen: list[str] = []

    def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
        self.numbers.append(number)
        if number == self._stops_at:
            raise KeyboardInterrupt
        at = int(commit.commit, 16)
        if at in self._broken:
            raise BuildError(f"commit {at} does not build:\nits output", hint="build it by hand")
        return CommitDuet(logs=tuple(math.log1p(self._levels[at - 1]) + each for each in SCATTER))

    def measuring(self, commit: BisectedCommit, told: Bisection) -> None:
        self.seen.append(f"{len(told.order)} {commit.subject}")

    def measured(self, commit: BisectedCommit, told: Bisection) -> None:
        assert told.order[-1] == commit.commit


def searched(tmp_path: Path, told: Bisection, lab: Lab) -> Bisection:
    return search(BisectStore(tmp_path / "kept"), told, lab, lab)


def levels_from(culprit: int, count: int, size: float) -> list[float]:
    return [size * (at >= culprit) for at in range(1, count + 1)]


def test_a_commit_is_found_and_everything_is_stored(tmp_path: Path) -> None:
    lab = Lab(levels_from(5, 8, 0.05))
    told = searched(tmp_path, begun(8), lab)
    assert (told.ending, told.culprits) == ("found", (name(5),))
    assert told.change is not None
    assert told.change[1] < 0.05 < told.change[2]
    assert lab.seen[0] == "0 commit 8"
    assert lab.numbers == [1, 2, 3, 4]
    assert BisectStore(tmp_path / "kept").read() == told
    log = (tmp_path / "kept" / "bisect.log").read_text()
    assert log.splitlines()[:3] == ["git bisect start", f"git bisect bad {name(8)}", f"git bisect good {name(0)}"]
    assert log.splitlines()[-1] == f"# first bad commit: [{name(5)}] commit 5"
    (text,) = answer(told)
    assert text.startswith("000000000 commit 5 made CPU per request 5.")
    assert "5 commits built" in text


def test_an_interrupt_keeps_what_was_measured_and_a_resumed_search_goes_on(tmp_path: Path) -> None:
    levels = levels_from(3, 8, 0.05)
    stopped = searched(tmp_path, begun(8), Lab(levels, stops_at=3))
    assert (stopped.ending, len(stopped.order)) == ("interrupted", 2)
    assert answer(stopped)[0].startswith("not finished; so far the most likely")
    stored = BisectStore(tmp_path / "kept").read()
    assert (stored.ending, stored.order) == (None, stopped.order)
    lab = Lab(levels)
    told = searched(tmp_path, stored, lab)
    assert (told.ending, told.culprits, lab.numbers[0]) == ("found", (name(3),), 3)
    again = Lab(levels)
    assert searched(tmp_path, told, again) == told
    assert again.numbers == []


def test_an_interrupt_before_anything_was_measured(tmp_path: Path) -> None:
    told = searched(tmp_path, begun(8), Lab([], stops_at=1))
    assert told.ending == "interrupted"
    assert not BisectStore(tmp_path / "kept").exists
    assert answer(told) == ["not finished; 0 commits built, 0 ns"]


def test_commits_that_do_not_build_are_skipped_and_named(tmp_path: Path) -> None:
    told = searched(tmp_path, begun(8), Lab(levels_from(5, 8, 0.05), broken=(4, 5)))
    assert (told.ending, told.culprits) == ("found", (name(4), name(5), name(6)))
    broken = [commit.broken for commit in told.commits if commit.broken]
    assert broken == ["commit 4 does not build:", "commit 5 does not build:"]
    assert answer(told)[0].startswith("one of 3 commits, of which 2 cannot be measured, made CPU per request")
    assert f"git bisect skip {name(4)}" in told.log


def test_a_newest_commit_that_does_not_build_ends_it(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="commit 8 does not build"):
        searched(tmp_path, begun(8), Lab([], broken=(8,)))


def test_no_difference_is_said_after_three_measurements(tmp_path: Path) -> None:
    told = searched(tmp_path, begun(8), Lab([0.0005] * 8))
    assert (told.ending, len(told.order)) == ("none", 3)
    assert answer(told)[0].startswith("no difference in CPU per request: HEAD against v1 +")


@pytest.mark.parametrize(("is_fix", "higher_is_better"), [(False, False), (True, False), (False, True), (True, True)])
def test_the_other_direction_is_offered(tmp_path: Path, *, is_fix: bool, higher_is_better: bool) -> None:
    wrong = 0.05 if is_fix != higher_is_better else -0.05
    told = begun(8, is_fix=is_fix, higher_is_better=higher_is_better)
    ended = searched(tmp_path, told, Lab(levels_from(3, 8, wrong)))
    assert ended.ending == "opposite"
    assert answer(ended)[1].endswith(f"redline bisect {told.bad.name} {told.good.name}")
    right = searched(tmp_path / "right", told, Lab(levels_from(3, 8, -wrong)))
    assert right.culprits == (name(3),)
    if is_fix:
        assert right.log.startswith("git bisect start --term-new=fixed --term-old=unfixed\ngit bisect fixed ")


def test_several_changes_name_the_ranges_and_how_to_search_in_them(tmp_path: Path) -> None:
    levels = [0.05 * (at >= 12) + 0.05 * (at >= 50) for at in range(1, 65)]
    told = searched(tmp_path, begun(64), Lab(levels))
    assert (told.ending, told.culprits) == ("several", ())
    assert len(told.ranges) == 2
    first, *others = answer(told)
    assert first.startswith("no single commit made CPU per request worse: it changed in several steps")
    assert all("redline bisect 000000" in text for text in others)


def test_the_same_bytes_as_the_oldest_are_no_difference(tmp_path: Path) -> None:
    class Same(Lab):
        def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
            return CommitDuet(logs=(0.0,), is_same=True)

    told = searched(tmp_path, begun(4), Same([]))
    assert (told.ending, len(told.order)) == ("none", 1)


def test_a_commit_that_was_measured_and_fails_later_is_not_broken(tmp_path: Path) -> None:
    class Flaky(Lab):
        def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
            if commit.duets:
                raise BuildError("no port is free", hint="try again")
            return super().__call__(commit, number)

    told = searched(tmp_path, begun(4), Flaky([0.0] * 4))
    assert (told.ending, told.order) == ("none", (name(4),) * 3)
    assert len(told.commits[-1].duets) == 1
    assert not told.commits[-1].broken


def test_a_directory_that_holds_another_or_a_damaged_search(tmp_path: Path) -> None:
    store = BisectStore(tmp_path / "kept")
    with pytest.raises(NotStoredError, match="holds no bisection"):
        store.read()
    searched(tmp_path, begun(2), Lab([0.0, 0.05]))
    with pytest.raises(StoreError, match="already holds a bisection"):
        store.check_free()
    (tmp_path / "kept" / "bisect.json").write_text("{}")
    with pytest.raises(RedlineError, match="cannot be read"):
        store.read()


def test_the_table_leaves_out_what_is_not_likely(tmp_path: Path) -> None:
    told = searched(tmp_path, begun(64), Lab(levels_from(20, 64, 0.05)))
    table, words = sections(told)
    assert (table.title, words.title) == ("Commits, the oldest first", "The answer, in words")
    assert Bisecting(told).next() is None


def test_texts_of_changes_and_chances() -> None:
    assert change((0.032, 0.026, 0.039)) == "+3.2% [+2.6, +3.9]"
    assert change((-0.032, -0.039, 0.001)) == "\N{MINUS SIGN}3.2% [\N{MINUS SIGN}3.9, +0.1]"
    assert [chances(each) for each in (0.001, 0.5, 0.991, 0.9999)] == ["<1%", "50%", "99%", ">99%"]


def test_the_most_probable_commits_have_rows_and_the_others_a_sum() -> None:
    told = begun(60)
    chance = dict.fromkeys(range(58), 0.001) | {58: 0.442, 59: 0.5}
    commits = tuple(one.model_copy(update={"probability": chance[at]}) for at, one in enumerate(told.commits))
    (table, rest), _ = (section.blocks for section in sections(told.model_copy(update={"commits": commits})))
    assert isinstance(table, Table)
    assert isinstance(rest, Prose)
    assert len(table.rows) == 40
    assert [row[0] for row in table.rows[-2:]] == [words(one.name) for one in commits[-2:]]
    assert rest == Prose.of(["20 other commits, 2% in all"], "dim")


@pytest.mark.parametrize(("old", "new"), [('"commits":', '"commits": [], "was":'), ('"logs": [', '"logs": [NaN, ')])
def test_a_damaged_search_is_one_message(tmp_path: Path, old: str, new: str) -> None:
    store = BisectStore(tmp_path / "kept")
    searched(tmp_path, begun(4), Lab([0.0, 0.1, 0.1, 0.1]))
    file = tmp_path / "kept" / "bisect.json"
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(StoreError, match=r"bisect\.json cannot be read"):
        store.read()
