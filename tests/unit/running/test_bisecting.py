"""A search for a commit, measured by a fake: what it stores, says and skips, and how it goes on."""

import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.document.blocks import Prose, Table, words
from redline.errors import BuildError, DriveError, LaunchError, NotStoredError, RedlineError, StoreError, UsageError
from redline.history.bisecting import Bisecting
from redline.history.bisection_sections import answer, sections
from redline.model import Metric
from redline.model.bisection import BisectedCommit, Bisection, CommitDuet, PrintedNumber
from redline.running import bisecting
from redline.running.bisecting import BisectStore, DuetOfCommit, _duet_of, search
from tests.fakes.bisections import begun, name

SCATTER = (-0.004, 0.001, 0.003)


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
    text, why = answer(told)
    assert why == "why: redline ab --git 000000000..000000000 --why, with the same requests"
    printed = PrintedNumber(command="./count", build=None, below=".", budget_ns=10**9)
    assert answer(told.by_number(printed)) == [text]
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
    assert answer(ended)[1].endswith(f"redline bisect {told.bad.name} {told.good.name}, with the same flags")
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
    assert all("redline bisect 000000" in text and text.endswith(", with the same flags") for text in others)


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
    assert (told.ending, told.order) == ("none", (name(4),) * 6)
    assert len(told.commits[-1].duets) == 1
    assert not told.commits[-1].broken
    assert told.commits[-1].failed == "no port is free"


class Failing(Lab):
    """A lab whose measurements of these numbers fail: a server of either commit does not start."""

    fails_at: Sequence[int] = ()

    def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
        if number in self.fails_at:
            raise LaunchError("A did not start:\nits output", hint="", log_tail="")
        return super().__call__(commit, number)


def test_a_server_that_fails_once_has_failed_by_chance(tmp_path: Path) -> None:
    lab = Failing(levels_from(5, 8, 0.05))
    lab.fails_at = (2,)
    told = searched(tmp_path, begun(8), lab)
    assert told.culprits == (name(5),)
    assert told.order[1] == told.order[2], "it is measured again at once"
    assert not any(commit.broken or commit.failed for commit in told.commits)


def test_a_commit_that_fails_twice_is_skipped(tmp_path: Path) -> None:
    lab = Failing(levels_from(5, 8, 0.05))
    lab.fails_at = (2, 3)
    told = searched(tmp_path, begun(8), lab)
    assert [commit.broken for commit in told.commits if commit.broken] == ["A did not start:"]
    assert len({*told.order}) == len(told.order) - 1


def test_why_a_measurement_failed_stays_with_its_commit(tmp_path: Path) -> None:
    lab = Failing(levels_from(5, 8, 0.05), stops_at=3)
    lab.fails_at = (2,)
    told = searched(tmp_path, begun(8), lab)
    (failed,) = (commit for commit in told.commits if commit.failed)
    assert not failed.broken
    assert f"git bisect skip {failed.commit}" not in told.log
    assert f"git bisect good {failed.commit}" not in told.log, "it was not measured"
    (table, *_), _ = (section.blocks for section in sections(told))
    assert isinstance(table, Table)
    assert words("not measured: A did not start:", look="dim") in {row[3] for row in table.rows}


def test_a_commit_without_the_oldest_says_so_in_its_row(tmp_path: Path) -> None:
    told = begun(8)
    apart = told.commits[3].model_copy(update={"comparable": False})
    told = told.model_copy(update={"commits": (*told.commits[:3], apart, *told.commits[4:])})
    told = searched(tmp_path, told, Lab(levels_from(5, 8, 0.05)))
    assert apart.commit not in told.order
    assert told.culprits == (name(4), name(5))
    assert "one of 2 commits, of which 1 cannot be measured, made" in answer(told)[0]
    (table, *_), _ = (section.blocks for section in sections(told))
    assert isinstance(table, Table)
    assert words("does not contain the oldest commit: not measured", look="dim") in {row[3] for row in table.rows}


def test_a_subject_in_another_encoding_is_logged_as_git_has_it(tmp_path: Path) -> None:
    told = begun(4)
    odd = [one.model_copy(update={"subject": b"caf\xe9".decode(errors="surrogateescape")}) for one in told.commits]
    searched(tmp_path, told.model_copy(update={"commits": tuple(odd)}), Lab(levels_from(2, 4, 0.05)))
    assert b"] caf\xe9\n" in (tmp_path / "kept" / "bisect.log").read_bytes()


def test_the_log_follows_first_parents_as_the_search_did(tmp_path: Path) -> None:
    told = begun(4).model_copy(update={"first_parent": True})
    told = searched(tmp_path, told, Lab(levels_from(2, 4, 0.05)))
    assert told.log.startswith("git bisect start --first-parent\n")


def test_a_commit_whose_comparison_says_too_little_is_tried_again(tmp_path: Path) -> None:
    class Noisy(Lab):
        def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
            if number == 2:
                return duet_of(compared(ratio=None))
            return super().__call__(commit, number)

    told = searched(tmp_path, begun(8), Noisy(levels_from(5, 8, 0.05)))
    assert told.culprits == (name(5),)
    assert told.order[1] in told.order[2:]
    assert not any(commit.broken for commit in told.commits)


def test_a_directory_that_holds_another_or_a_damaged_search(tmp_path: Path) -> None:
    store = BisectStore(tmp_path / "kept")
    with pytest.raises(NotStoredError, match="holds no bisection"):
        store.read()
    searched(tmp_path, begun(2), Lab([0.0, 0.05]))
    with pytest.raises(StoreError, match="already holds a bisection"):
        store.check_free()
    for content, says in (("", " is empty"), ("{", " is cut off: "), ("{}", ": command: Field required")):
        (tmp_path / "kept" / "bisect.json").write_text(content)
        with pytest.raises(StoreError) as raised:
            store.read()
        assert raised.value.message.partition("bisect.json")[2].startswith(says)
        assert "begin again with another -o DIR" in raised.value.hint


def test_the_table_leaves_out_what_is_not_likely(tmp_path: Path) -> None:
    told = searched(tmp_path, begun(64), Lab(levels_from(20, 64, 0.05)))
    table, words = sections(told)
    assert (table.title, words.title) == ("Commits, the oldest first", "The answer, in words")
    assert Bisecting(told).next() is None


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
    with pytest.raises(StoreError, match=r"bisect\.json: commits"):
        store.read()


def compared(metric: Metric = Metric.CPU_PER_REQUEST, cell: str = "one", **changed: Any) -> Any:
    """A comparison by a duet of three starts."""
    duet = SimpleNamespace(of_starts=(1.1, 1.2, 1.3), blocks_se=0.02, unsettled="", bias=0.0)
    known = {"metric": metric, "cell_id": cell, "duet": duet, "ratio": 1.2, "refused": "", **changed}
    return SimpleNamespace(**known)


def duet_of(*comparisons: Any, metric: Metric | None = None) -> CommitDuet:
    cells = {name: SimpleNamespace(scenario=name) for name in ("one", "two", "mix")}
    plan = SimpleNamespace(suite=SimpleNamespace(metric=metric, scenarios=()), cells=cells)
    return _duet_of(SimpleNamespace(comparisons=comparisons), plan, 7)  # type: ignore[arg-type]


def test_a_commit_has_the_ratios_of_the_metric_that_is_asked_for() -> None:
    found = duet_of(compared(Metric.P99, duet=None), compared())
    assert found.logs == pytest.approx([math.log(ratio) for ratio in (1.1, 1.2, 1.3)])
    assert (found.within_se, found.build_ns, found.is_same) == (0.02, 7, False)
    without = SimpleNamespace(of_starts=(2.0,), blocks_se=None, unsettled="", bias=0.0)
    assert duet_of(compared(Metric.P99, duet=without), compared(), metric=Metric.P99).within_se == 0


def test_of_several_requests_their_mix_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bisecting, "is_mix", lambda scenario, _all: scenario == "mix")
    mix = SimpleNamespace(of_starts=(2.0,), blocks_se=0.1, unsettled="", bias=0.0)
    assert duet_of(compared(), compared(cell="mix", duet=mix), compared(cell="two")).logs == (math.log(2),)
    for asked in ((), (compared(), compared(cell="two"))):
        with pytest.raises(UsageError, match="one request, or a mix of several"):
            duet_of(*asked)


@pytest.mark.parametrize(
    "lacks", [{"duet": None}, {"ratio": None}, {"duet": SimpleNamespace(of_starts=(), blocks_se=None)}]
)
@pytest.mark.parametrize("refused", ["", "too many requests failed"])
def test_a_commit_without_a_ratio_cannot_be_measured(lacks: dict[str, Any], refused: str) -> None:
    with pytest.raises(DriveError) as raised:
        duet_of(compared(refused=refused, **lacks))
    assert raised.value.message == (refused or "not enough data to compare CPU per request")


def test_servers_that_were_not_warm_tell_too_little() -> None:
    cold = SimpleNamespace(of_starts=(1.1, 1.2, 1.3), blocks_se=0.02, unsettled="the servers were not warm", bias=None)
    with pytest.raises(DriveError, match="the servers were not warm"):
        duet_of(compared(duet=cold))
    cold.bias = 0.3
    assert duet_of(compared(duet=cold)).bias == 0.3


def test_an_account_that_is_interrupted_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = searched(tmp_path, begun(4), Lab(levels_from(2, 4, 0.05)))
    ended = SimpleNamespace(interrupted=True, parts=((None, "a part of it"),))
    session = SimpleNamespace(execute=lambda: ended)
    monkeypatch.setattr(bisecting, "RunSession", SimpleNamespace(create=lambda *_: session))
    suite: Any = SimpleNamespace(accounting=lambda *_: None)
    nothing: Any = None
    with pytest.raises(KeyboardInterrupt):
        DuetOfCommit(BisectStore(tmp_path), suite, nothing, nothing, nothing).account(told)


def test_each_measurement_has_an_empty_folder_by_its_number(tmp_path: Path) -> None:
    store = BisectStore(tmp_path / "kept")
    commit = BisectedCommit(commit="c" * 40, subject="", parents=(), weight=1.0)
    folder = store.step(7, commit)
    assert folder == tmp_path / "kept" / "steps" / f"0007-{'c' * 9}"
    assert folder.parent.is_dir()
    assert not folder.exists()
    (folder / "inner").mkdir(parents=True)
    assert not store.step(7, commit).exists(), "what a killed one left is removed"
    with pytest.raises(NotStoredError, match="has no first comparison"):
        store.first()


@pytest.mark.parametrize("ending", ["measured", "the same", "interrupted", "not built", "oldest not built"])
def test_a_commit_is_built_and_compared_by_a_session_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    asked, times = list[object](), iter([100, 130])
    error = BuildError("no compiler", hint="")

    def build(suite: object, *_: object, tells: bool) -> object:
        asked.append(suite)
        assert not tells
        of_newer = {"B": error} if ending.endswith("not built") else {}
        return SimpleNamespace(failures=of_newer | ({"A": error} if ending.startswith("oldest") else {}))

    def create(suite: object, _source: object, folder: Path, *_: object) -> object:
        asked.append(folder.name)
        report = SimpleNamespace(
            run=SimpleNamespace(same="same" if ending == "the same" else None), comparisons=(compared(),)
        )
        plan = SimpleNamespace(suite=SimpleNamespace(metric=None, scenarios=()), cells={})
        return SimpleNamespace(
            execute=lambda: SimpleNamespace(interrupted=ending == "interrupted", parts=((None, report),)),
            store=SimpleNamespace(manifest=lambda: SimpleNamespace(plan=plan)),
        )

    monkeypatch.setattr(bisecting, "build_all", build)
    monkeypatch.setattr(bisecting, "time", SimpleNamespace(monotonic_ns=lambda: next(times)))
    monkeypatch.setattr(bisecting, "RunSession", SimpleNamespace(create=create))
    variants = [SimpleNamespace(slug="A"), SimpleNamespace(slug="B")]
    suite = SimpleNamespace(
        of_second_revision=lambda revision: SimpleNamespace(variants=variants, second=(revision.name, revision.commit))
    )
    bench = SimpleNamespace(tools=SimpleNamespace(launcher=None))
    measure = DuetOfCommit(BisectStore(tmp_path), suite, bench, None, None)  # type: ignore[arg-type]
    commit = BisectedCommit(commit="c" * 40, subject="", parents=(), weight=1.0)
    if ending == "interrupted" or ending.endswith("not built"):
        with pytest.raises(KeyboardInterrupt if ending == "interrupted" else RedlineError) as raised:
            measure(commit, 3)
        assert isinstance(raised.value, BuildError) == (ending == "not built"), "the commit's own failure"
    else:
        found = measure(commit, 3)
        assert (found.is_same, found.build_ns) == (ending == "the same", 30)
        assert found.logs == ((0.0,) if found.is_same else tuple(map(math.log, (1.1, 1.2, 1.3))))
    named = SimpleNamespace(variants=variants, second=("c" * 9, "c" * 40))
    assert asked == ([named] if ending.endswith("not built") else [named, f"0003-{'c' * 9}"])


def test_what_a_measurement_took_is_kept_whether_it_worked_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock begins at 100 ns; each measurement takes as long as its number."""
    clock = [100]

    class Timed(Lab):
        def __call__(self, commit: BisectedCommit, number: int) -> CommitDuet:
            clock[0] += number
            return super().__call__(commit, number)

    monkeypatch.setattr(bisecting, "time", SimpleNamespace(monotonic_ns=lambda: clock[0]))
    told = searched(tmp_path, begun(8), Timed(levels_from(5, 8, 0.05), broken=[4]))
    of_duets = [duet.took_ns for one in told.commits for duet in one.duets]
    of_broken = [one.broken_ns for one in told.commits if one.broken_ns]
    assert sorted(of_duets + of_broken) == list(range(1, len(told.order) + 1))
    assert len(of_broken) == 1


def test_of_two_requests_without_a_mix_none_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    one = SimpleNamespace(metric=Metric.CPU_PER_REQUEST, cell_id="a", duet=None, ratio=None, refused="")
    mixed = SimpleNamespace(**{**vars(one), "cell_id": "m", "refused": "the mix"})
    cells = {name: SimpleNamespace(scenario=name) for name in "am"}
    plan: Any = SimpleNamespace(suite=SimpleNamespace(metric=None, scenarios=()), cells=cells)
    monkeypatch.setattr(bisecting, "is_mix", lambda scenario, _all: scenario == "m")
    both: Any = SimpleNamespace(comparisons=(one, mixed))
    with pytest.raises(DriveError, match="the mix"):
        _duet_of(both, plan, 0)
    alone: Any = SimpleNamespace(comparisons=(one, one))
    with pytest.raises(UsageError, match="one request, or a mix"):
        _duet_of(alone, plan, 0)
