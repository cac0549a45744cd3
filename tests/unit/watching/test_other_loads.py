"""Other loads on the machine: engines of other labs are seen, and nothing of the own lab."""

import os

from redline.linux.procfs import Stat
from redline.watching.other_loads import OtherLoads

OWN_ENGINE, OTHER_ENGINE, OTHER_LAB = 50, 60, 61
CHECKING = 70


def process(name: bytes, parent: int, cpu_ns: int = 0) -> Stat:
    return Stat(name=name, state="S", parent=parent, threads=1, rss_bytes=0, cpu_ns=cpu_ns)


def seen(*looks: dict[int, Stat], ours: frozenset[int] = frozenset({OWN_ENGINE})) -> dict[str, tuple[float, ...]]:
    """The other labs that were seen in these looks at the processes of a machine."""
    now: dict[int, Stat] = {}
    loads = OtherLoads(lambda: tuple(now), now.get, lambda pid: pid == CHECKING)
    for running in looks:
        now.clear()
        now.update(running)
        loads.look()
    return {series.name: series.values for series in loads.series(ours)}


LAB = {OTHER_LAB: process(b"redline", 1), OTHER_ENGINE: process(b"redline-engine", OTHER_LAB)}


def test_an_engine_of_another_lab_is_seen_whenever_it_ran() -> None:
    named = {f"other_load:redline ({OTHER_LAB})": (0.0, 0.0)}
    assert seen(LAB) == named, "it ran at the only look"
    assert seen({}, LAB, {}) == named, "it ran in between"
    assert seen(LAB, LAB, LAB) == named, "however often: a long load keeps no more of it"


def test_a_lab_that_is_hidden_is_named_by_its_number() -> None:
    assert seen({OTHER_ENGINE: process(b"redline-engine", 7)}) == {"other_load:process (7)": (0.0, 0.0)}


def test_nothing_of_the_own_lab_is_another_load() -> None:
    own = {
        OWN_ENGINE: process(b"redline-engine", 1),
        52: process(b"redline-engine", OWN_ENGINE),
    }
    assert seen(own) == {}


def test_another_load_of_the_own_process_is_one_too() -> None:
    """Two threads that load at once."""
    own = {OWN_ENGINE: process(b"redline-engine", os.getpid()), 51: process(b"redline-engine", os.getpid())}
    assert seen(own) == {f"other_load:another thread ({os.getpid()})": (0.0, 0.0)}


def test_the_loads_of_another_lab_are_one_lab() -> None:
    """Such as the probes of a search."""
    probes = [{OTHER_LAB: LAB[OTHER_LAB], number: process(b"redline-engine", OTHER_LAB)} for number in (80, 81, 82)]
    assert seen(*probes) == {f"other_load:redline ({OTHER_LAB})": (0.0, 0.0)}


def test_the_cpu_time_of_other_engines_is_theirs_while_they_were_seen() -> None:
    looks = [
        {80: process(b"redline-engine", OTHER_LAB, ns), 81: process(b"redline-engine", OTHER_LAB, 5)}
        for ns in (70, 100)
    ]
    assert seen(*looks) == {f"other_load:process ({OTHER_LAB})": (0.0, 30.0)}


def test_a_process_that_becomes_an_engine_is_seen() -> None:
    """It begins as a copy of the process that starts it."""
    assert seen({62: process(b"redline", OTHER_LAB)}, {62: process(b"redline-engine", OTHER_LAB)}) != {}


def test_what_is_no_engine_is_not_read_again() -> None:
    read: list[int] = []

    def stat_of(pid: int) -> Stat:
        read.append(pid)
        return process(b"cargo", 1)

    loads = OtherLoads(lambda: range(2, 500), stat_of)
    for _ in range(10):
        loads.look()
    assert len(read) == 2 * 498


def test_the_processes_of_another_load_are_one() -> None:
    shards = {number: process(b"redline-engine", OTHER_ENGINE) for number in range(100, 104)}
    assert len(seen(LAB | shards)) == 1


def test_what_only_checks_answers_is_no_load() -> None:
    assert seen({CHECKING: process(b"redline-engine", OTHER_LAB), 5: process(b"cargo", 1)}) == {}
