"""A commit measured by a number that a command prints, beside the same of the oldest commit."""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from redline.errors import BuildError, RedlineError
from redline.launching import revision
from redline.model.bisection import BisectedCommit, PrintedNumber
from redline.model.catalogue import Revision
from redline.running import measuring_commands
from redline.running.measuring_commands import FEWEST_PAIRS, MOST_PAIRS, NumberOfCommit

OLDEST, COMMIT = Revision(name="v1", commit="a" * 40), "b" * 40
PRINTED = PrintedNumber(command="echo 1", build=None, below="", budget_ns=0)


@dataclass(frozen=True)
class Checkouts:
    """Folders of revisions, as a repository checks them out."""

    root: Path

    @contextmanager
    def checked_out(self, revision: Revision) -> Iterator[Path]:
        folder = self.root / revision.commit[:9] / "inner"
        (folder / "sub").mkdir(parents=True)
        yield folder


class Clock:
    """A clock that tests pass on, in nanoseconds."""

    now = 100

    def monotonic_ns(self) -> int:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(measuring_commands, "time", made)
    return made


def measured(folder: Path, stack: ExitStack, **printed: Any) -> NumberOfCommit:
    asked = PRINTED.model_copy(update=printed)
    return NumberOfCommit(Checkouts(folder), OLDEST, asked, stack, lambda: nullcontext(lambda _building: None))  # type: ignore[arg-type]


def numbers(monkeypatch: pytest.MonkeyPatch, number: Callable[[str], float]) -> list[str]:
    """Give commits these numbers, and return whose were read, in order."""
    read = list[str]()

    def of(_self: object, _folder: Path, commit: str) -> float:
        read.append(commit[0])
        return number(commit[0])

    monkeypatch.setattr(NumberOfCommit, "_number", of)
    return read


def test_the_two_take_turns_and_three_pairs_are_the_fewest(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = numbers(monkeypatch, lambda commit: 3.0 if commit == "b" else 2.0)
    with ExitStack() as stack:
        duet = measured(tmp_path, stack)(BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0), 1)
    assert FEWEST_PAIRS == 3
    assert "".join(read) == "abbaab", "who is measured first alternates"
    assert duet.logs == pytest.approx([math.log(3 / 2)] * 3)
    assert duet.build_ns == 0


@pytest.mark.parametrize(("takes_ns", "pairs"), [(10, 5), (13, 4), (50, 3), (0, 100)])
def test_pairs_are_measured_until_the_time_is_over_and_a_hundred_at_most(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, takes_ns: int, pairs: int
) -> None:
    """Within 100 ns: a pair takes twice what a number does."""

    def number(_commit: str) -> float:
        clock.now += takes_ns
        return 1.0

    numbers(monkeypatch, number)
    with ExitStack() as stack:
        found = measured(tmp_path, stack, budget_ns=100)
        assert len(found(BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0), 1).logs) == pairs
    assert MOST_PAIRS == 100


def test_each_commit_is_built_once_and_builds_take_none_of_the_time(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[tuple[str, Path, str]]()

    def build(command: str, folder: Path, name: str, log: Path, _progress: object) -> None:
        clock.now += 500
        assert log.name == "inner.log"
        built.append((command, folder.relative_to(tmp_path), name))

    def number(_commit: str) -> float:
        clock.now += 10
        return 1.0

    monkeypatch.setattr(revision, "build", build)
    numbers(monkeypatch, number)
    with ExitStack() as stack:
        found = measured(tmp_path, stack, build="make", below="sub", budget_ns=100)
        one = BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0)
        first, second = found(one, 1), found(one, 2)
    assert [(command, str(folder)) for command, folder, _ in built] == [
        ("make", f"{'a' * 9}/inner/sub"),
        ("make", f"{'b' * 9}/inner/sub"),
    ]
    assert built[1][2] == str(Revision(name="b" * 9, commit=COMMIT))
    assert (first.build_ns, second.build_ns) == (1000, 0)
    assert len(first.logs) == len(second.logs) == 5


def number_of(tmp_path: Path, command: str) -> float:
    with ExitStack() as stack:
        return measured(tmp_path, stack, command=command)._number(tmp_path, COMMIT)


@pytest.mark.parametrize(
    ("command", "number"),
    [("printf '7\\n1 of -2.5e1, then 3.25 ms\\n'", 3.25), ("echo .5", 0.5), ("echo 2 >&2", 2.0)],
)
def test_the_last_number_of_the_last_line_counts(tmp_path: Path, command: str, number: float) -> None:
    assert number_of(tmp_path, command) == number


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("echo 0", "printed no number above 0: 0"),
        ("echo -1", "printed no number above 0: -1"),
        ("echo 1e999", "printed no number above 0: 1e999"),
        ("printf '5\\nnone\\n'", "printed no number above 0: 5"),
        ("true", "printed no number above 0: nothing"),
        ("echo 5; exit 3", "ended with code 3: 5"),
    ],
)
def test_what_prints_no_number_above_0_or_fails_is_an_error_of_the_commit(
    tmp_path: Path, command: str, said: str
) -> None:
    with pytest.raises(BuildError) as raised:
        number_of(tmp_path, command)
    assert raised.value.message.startswith(f"{'b' * 9}: `{command}` {said}")


def test_a_message_has_the_last_200_characters(tmp_path: Path) -> None:
    with pytest.raises(BuildError) as raised:
        number_of(tmp_path, "printf 'x%.0s' $(seq 300); echo y")
    assert raised.value.message.endswith(": " + "x" * 199 + "y")


def test_without_a_number_of_the_oldest_commit_nothing_can_be_compared(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def number(commit: str) -> float:
        raise BuildError(f"of {commit}", hint="run it by hand")

    numbers(monkeypatch, number)
    one = BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0)
    with ExitStack() as stack, pytest.raises(RedlineError) as raised:
        measured(tmp_path, stack)(one, 1)
    assert not isinstance(raised.value, BuildError)
    assert (raised.value.message, raised.value.hint) == ("of a", "run it by hand")


def test_without_a_build_of_the_oldest_commit_nothing_can_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(_command: str, _folder: Path, name: str, *_: object) -> None:
        raise BuildError(f"of {name[0]}", hint="build it by hand")

    monkeypatch.setattr(revision, "build", build)
    one = BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0)
    with ExitStack() as stack, pytest.raises(RedlineError) as raised:
        measured(tmp_path, stack, build="make")(one, 1)
    assert not isinstance(raised.value, BuildError)
    assert (raised.value.message, raised.value.hint) == ("of v", "build it by hand")


def test_a_commit_without_the_folder_is_not_measured(tmp_path: Path) -> None:
    with ExitStack() as stack:
        measure = measured(tmp_path, stack, below="bench")
        (tmp_path / "bbbbbbbbb" / "inner" / "bench").mkdir(parents=True)
        with pytest.raises(RedlineError, match=r"v1 \(aaaaaaaaa\) has no folder bench") as raised:
            measure(BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0), 1)
    assert not isinstance(raised.value, BuildError), "it is the oldest commit's"


def test_a_commit_that_cannot_be_checked_out_is_not_measured(tmp_path: Path) -> None:
    (tmp_path / "bbbbbbbbb").write_text("in the way")
    with ExitStack() as stack, pytest.raises(BuildError, match="cannot be checked out: Not a directory"):
        measured(tmp_path, stack)(BisectedCommit(commit=COMMIT, subject="", parents=(), weight=1.0), 1)
