"""How long a search takes for a probe and all around it, and whether that fits into the time that is left."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from redline.limits.probe_loads import SETTLE_NS
from redline.limits.search_state import search_state
from redline.running import cell_search
from redline.running.cell_search import CellSearch
from redline.running.probing import Prober
from redline.search import Evidence, Proposal
from redline.search.search import LOOKS_AGAIN
from tests.fakes.cliffs import probe
from tests.fakes.searched import bench_in

AROUND_S = cell_search.AROUND_NS / 1e9
SETTLE_S = SETTLE_NS / 1e9


def made(tmp_path: Path, left_s: float = 0.0, **changed: Any) -> CellSearch:
    search = replace(bench_in(tmp_path).made, left_s=lambda: left_s)
    for name, value in changed.items():
        setattr(search, name, value)
    return search


def test_a_probe_takes_its_own_time_and_its_settling(tmp_path: Path) -> None:
    assert made(tmp_path)._probe_s(1000.0) == pytest.approx(1.0 + SETTLE_S)


def around(factor: float = 1.0) -> float:
    return (1 + cell_search._REPORT) * AROUND_S * factor


@pytest.mark.parametrize(
    ("state", "starts", "needs_s"),
    [
        ({"_prober": "one", "_cold": False}, False, 5.0),
        ({"_prober": "one", "_cold": False, "_judging_s": 3.0}, False, 8.0),
        ({"_prober": "one", "_cold": True}, False, 5.0 + 21.0),
        ({"_prober": "one", "_cold": False, "_start_s": 2.0}, False, 5.0),
        ({"_prober": "one", "_cold": False, "_start_s": 2.0}, True, 5.0 + 2.0 + 21.0),
        ({"_prober": None, "_cold": False, "_start_s": 2.0}, False, 5.0 + 2.0 + 21.0),
    ],
)
def test_a_load_fits_with_the_start_and_the_warm_up_that_it_takes(
    state: dict[str, Any], needs_s: float, tmp_path: Path, *, starts: bool
) -> None:
    """The warm-up is one of 20 s by users, and one as long as a probe."""
    whole_s = needs_s + around()
    assert made(tmp_path / "enough", whole_s + 1e-6, **state)._fits(5.0, starts=starts)
    assert not made(tmp_path / "less", whole_s - 1e-6, **state)._fits(5.0, starts=starts)


def test_what_is_around_a_probe_is_the_last_or_halves(tmp_path: Path) -> None:
    search = made(tmp_path)
    search._around_s = 1.0
    five: Evidence = probe(1000.0)
    own_s = SETTLE_S + five.seconds
    search._saw_around(own_s + 3.0, 1000.0, five)
    assert search._around_s == pytest.approx(3.0)
    search._saw_around(own_s + 1.0, 1000.0, five)
    assert search._around_s == pytest.approx(2.0)
    search._saw_around(0.0, 1000.0, five)
    assert search._around_s == pytest.approx(1.0), "it took no less than no time"


def test_pauses_end_with_the_search(tmp_path: Path) -> None:
    paused = list[float]()
    search = replace(made(tmp_path, 3.0), pause=paused.append)
    search._pause(2.0)
    search._pause(5.0)
    replace(search, left_s=lambda: -1.0)._pause(5.0)
    assert paused == [2.0, 3.0, 0.0]


def test_judging_is_timed(tmp_path: Path) -> None:
    times = iter([1.0, 4.0, 10.0, 12.0])
    search = replace(made(tmp_path), now=lambda: next(times))
    with search._judging():
        pass
    with search._judging():
        pass
    assert search._judging_s == 5.0


def test_a_search_without_time_for_its_first_probe_says_how_long_a_start_takes(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.made = replace(bench.made, left_s=lambda: 1.0)
    assert bench.made.turn() is False
    assert bench.driver.events == ["start", "verify", "stop"]
    assert bench.state.ended
    (stored,) = bench.made.store.probes(bench.made.cell)
    assert stored.phase == "over"
    assert stored.why.startswith("its first probe: it took ")
    assert (stored.recording.round, stored.retries_left) == (0, 0)


def test_a_search_without_any_time_starts_nothing(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.made = replace(bench.made, left_s=lambda: 0.0)
    assert bench.made.turn() is False
    assert bench.driver.events == []
    (stored,) = bench.made.store.probes(bench.made.cell)
    assert (stored.phase, stored.why) == ("over", "both ends of the answer were known and confirmed")


def test_a_start_that_was_not_seen_takes_no_time(tmp_path: Path) -> None:
    whole_s = 5.0 + 21.0 + around()
    assert made(tmp_path / "enough", whole_s + 1e-6)._fits(5.0)
    assert not made(tmp_path / "less", whole_s - 1e-6)._fits(5.0)


def test_probes_are_timed_from_their_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each load takes 7 s by the clock; warm-ups are no part of a probe's time."""
    bench, clock, took = bench_in(tmp_path), [100.0], list[float]()

    def drives(_number: int) -> None:
        clock[0] += 7.0

    monkeypatch.setattr(CellSearch, "_saw_around", lambda _self, took_s, _rate, _evidence: took.append(took_s))
    bench.driver.on_drive = drives
    bench.made = replace(bench.made, now=lambda: clock[0])
    bench.run()
    assert took == [7.0] * len(bench.state.probes)


@pytest.mark.parametrize("starts", [0, 1, 3])
def test_the_end_of_the_time_is_stored_with_the_last_start(tmp_path: Path, starts: int) -> None:
    bench = bench_in(tmp_path)

    def interrupt(_number: int) -> None:
        if len(bench.launcher.launches) == starts:
            raise KeyboardInterrupt

    bench.driver.on_drive = interrupt
    if starts:
        with pytest.raises(KeyboardInterrupt):
            bench.run()
    left = bench.state.next_start
    assert bench.again(left_s=lambda: 0.0).made.turn() is False
    stored = bench.made.store.probes(bench.made.cell)[-1]
    assert (stored.phase, stored.recording.round) == ("over", max(left - 1, 0))


@pytest.mark.parametrize(
    ("beyond", "loads", "why"), [(False, "curve", "the curve was complete"), (True, "overload", "the overload test")]
)
def test_what_comes_after_the_answer_is_left_out_without_time(
    tmp_path: Path, beyond: bool, loads: str, why: str
) -> None:
    bench = bench_in(tmp_path / "whole", beyond=beyond)
    bench.run()
    phases = [stored.phase for stored in bench.made.store.probes(bench.made.cell)]
    before = phases.index(loads)  # type: ignore[arg-type]
    other, left = bench_in(tmp_path / "cut", beyond=beyond), [1e9]

    def drives(number: int) -> None:
        left[0] = 0.0 if number == before else 1e9

    other.driver.on_drive = drives
    other.made = replace(other.made, left_s=lambda: left[0])
    other.run()
    last = other.made.store.probes(other.made.cell)[-1]
    assert (last.phase, last.why) == ("over", why)
    assert other.state.ended


def test_servers_that_take_turns_by_probe_live_on_and_are_drained(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    terms = bench.state.terms.model_copy(update={"by_probe": True})
    manifest = bench.state.manifest.model_copy(update={"search": terms})
    bench.made.state = search_state(manifest, bench.state.cell, ())
    drained = list[int]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Prober, "let_drain", lambda _self: drained.append(len(bench.driver.drives)))
        assert bench.made.turn() is True
    assert bench.driver.events == ["start", "verify", "warm", "warm", "probe"], "its server is still alive"
    assert drained.count(3) == 1
    assert drained[-1] == 3, "so that its backlog disturbs no other"
    assert bench.made.turn() is True
    assert bench.driver.events[5:] == ["probe"]
    bench.made.stop()
    assert bench.driver.events[-1] == "stop"


def test_logs_can_be_read_afterwards_unless_it_is_said_otherwise(tmp_path: Path) -> None:
    bench = bench_in(tmp_path)
    bench.made.check()
    assert [launch.log_is_kept for launch in bench.launcher.launches] == [True]
    bench.made = replace(bench.made, log_is_kept=False)
    bench.made.check()
    assert [launch.log_is_kept for launch in bench.launcher.launches] == [True, False]
    assert [launch.seed for launch in bench.launcher.launches] == [7, 7]


PROBE_S = 1.0 + SETTLE_S


def searching(tmp_path: Path, left_s: float, looks: list[Proposal]) -> tuple[Any, list[str]]:
    """A search with a warm server and these early rates to look at again, and what it does."""
    did = list[str]()
    search = made(tmp_path, left_s, _prober=SimpleNamespace(let_drain=lambda: did.append("drain")), _cold=False)
    state = search.state
    search.state = SimpleNamespace(  # type: ignore[assignment]
        cell=state.cell,
        load_at=state.load_at,
        loads=(1,),
        next=lambda: did.append("next"),
        search=SimpleNamespace(last_look=lambda later=0: looks[0] if looks else None),
    )
    return search, did


@pytest.mark.parametrize(
    ("why", "looks", "needs_s"),
    [
        ("narrows", 0, PROBE_S + around()),
        ("narrows", 1, 2 * PROBE_S + AROUND_S + around()),
        (LOOKS_AGAIN, 1, PROBE_S + around()),
    ],
)
def test_a_probe_leaves_the_time_of_another_look_at_an_early_rate(
    tmp_path: Path, why: str, looks: int, needs_s: float
) -> None:
    for left_s, fits in ((needs_s + 1e-6, True), (needs_s - 1e-6, False)):
        search, did = searching(tmp_path / str(fits), left_s, [Proposal(500.0, LOOKS_AGAIN)] * looks)
        search._look_again, search._ends = lambda did=did: did.append("look"), did.append
        assert search._has_time_for(Proposal(1000.0, why)) is fits
        ended = ["look", "both ends of the answer were known and confirmed"]
        assert did == ["drain", *([] if fits else ended)]


@pytest.mark.parametrize(("fresh", "more_s"), [(0, 0.0), (1, 0.0), (2, 2.0 + 21.0)])
def test_a_probe_on_another_fresh_start_takes_that_start_too(tmp_path: Path, fresh: int, more_s: float) -> None:
    needs_s = PROBE_S + around() + more_s
    for left_s, fits in ((needs_s + 1e-6, True), (needs_s - 1e-6, False)):
        search, _ = searching(tmp_path / str(fits), left_s, [])
        search._start_s, search._confirmed_on, search._ends = 2.0, 1, lambda _: None
        assert search._has_time_for(Proposal(1000.0, "confirms", fresh_start=fresh)) is fits


@pytest.mark.parametrize(("short_s", "probes"), [(-1e-6, 2), (1e-6, 0)])
def test_early_rates_are_looked_at_again_as_long_as_there_is_time(tmp_path: Path, short_s: float, probes: int) -> None:
    looks = [Proposal(500.0, LOOKS_AGAIN), Proposal(600.0, LOOKS_AGAIN)]
    search, did = searching(tmp_path, PROBE_S + around() - short_s, looks)
    search._probe = lambda look, phase: did.append(f"{looks.pop(0).rate_per_s:.0f} {phase}")
    search._look_again()
    expected = ["drain", "500 search", "next", "drain", "600 search", "next"]
    assert did == (expected if probes else ["drain"])
    search._prober = None
    search._look_again()
    assert len(did) == (6 if probes else 1), "no server runs"
