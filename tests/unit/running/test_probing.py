"""How long a server may still work on requests that nobody waits for any more, before its next probe."""

from pathlib import Path
from typing import Any

import pytest

from redline.model import Closed, Counts, Outcomes, Traffic
from redline.running import probing
from redline.running.probing import ProbeAbort, Prober, unserved_s
from redline.search import Proposal
from tests.fakes.behaviour import GOOD
from tests.fakes.probed import interval
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording
from tests.fakes.searched import CELL, SECOND, bench_in


def after(answered: int, **outcomes: int) -> Traffic:
    """A load of some seconds with so many answers."""
    traffic = simulated_recording(simulated_cell(load=STEADY), GOOD).traffic
    assert traffic is not None
    counts = Counts(due=answered, completed=answered, outcomes=Outcomes(ok=answered, **outcomes))
    return traffic.model_copy(update={"counts": counts})


def test_what_timed_out_or_is_in_flight_takes_the_time_that_answers_took() -> None:
    seconds = after(100).seconds
    assert unserved_s(after(100), 64, 9.0) == 0
    assert unserved_s(after(100, timeout=50), 64, 9.0) == pytest.approx(0.5 * seconds)
    assert unserved_s(after(100, timeout=50, in_flight=30), 64, 9.0) == pytest.approx(0.8 * seconds)


def test_where_requests_were_never_sent_all_connections_were_in_use() -> None:
    seconds = after(100).seconds
    assert unserved_s(after(100, in_flight=30, unsent=1), 64, 9.0) == pytest.approx(0.64 * seconds)
    assert unserved_s(after(100, in_flight=80, unsent=1), 64, 9.0) == pytest.approx(0.8 * seconds)


def test_it_is_no_longer_than_the_timeout_and_all_of_it_without_an_answer() -> None:
    assert unserved_s(after(1, timeout=5000), 64, 2.5) == 2.5
    assert unserved_s(after(0, timeout=1), 64, 2.5) == 2.5
    assert unserved_s(after(0), 64, 2.5) == 0


def prober(tmp_path: Path, lasts_ns: int = SECOND, **changed: Any) -> tuple[Prober, list[Any]]:
    """A prober of a fake server, whose load lasts for this time, and what its driver is asked for."""
    bench = bench_in(tmp_path)
    cell = CELL.model_copy(update={"load": CELL.load.lasting(lasts_ns), **changed})
    made = Prober(cell, bench.made.tools, bench.server, tmp_path, seed=7, log_is_kept=True, loads=2)
    return made, bench.driver.drives


@pytest.mark.parametrize(("lasts_ms", "interval_ms"), [(500, 20), (1000, 20), (1050, 21), (5000, 100)])
def test_a_probe_has_fifty_intervals_of_20_ms_or_more(tmp_path: Path, lasts_ms: int, interval_ms: int) -> None:
    made, drives = prober(tmp_path, lasts_ms * 1_000_000)
    recorded = made.probe(Proposal(1000.0, "w"), "search", retries_left=2, again=True)
    assert drives[0].interval_ns == interval_ms * 1_000_000
    assert drives[0].keep_interrupted
    assert (recorded.retries_left, recorded.again, recorded.why, recorded.phase) == (2, True, "w", "search")
    assert (recorded.recording.position, recorded.recording.seed) == (2, 9)
    assert made.loads == 3, "no two loads have the same arrivals"


@pytest.mark.parametrize(("lasts_s", "calm_s"), [(1, 1), (20, 20), (30, 20)])
def test_after_its_users_an_open_load_below_the_first_rate_warms_up_no_longer_than_they(
    tmp_path: Path, lasts_s: int, calm_s: int
) -> None:
    made, drives = prober(tmp_path, lasts_s * SECOND)
    phases = [each.phase for each in made.warm(lambda: 1000.0)]
    assert phases == ["warmup", "approach"]
    assert [drive.cell.load.duration_ns for drive in drives] == [20 * SECOND, calm_s * SECOND]
    assert drives[0].cell.load.shape == Closed(users=64)
    assert drives[1].cell.load.shape.rate_per_s == pytest.approx(700.0)


def test_a_warm_up_that_is_watched_has_half_a_second_more_of_what_is_watched(tmp_path: Path) -> None:
    made, drives = prober(tmp_path, warmup_detect=True)
    assert next(made.warm(lambda: 1000.0)).phase == "warmup"
    assert drives[0].cell.load.duration_ns == drives[0].interval_ns == 500_000_000


def test_the_backlog_of_a_probe_is_waited_for_once(tmp_path: Path) -> None:
    made, _ = prober(tmp_path)
    waited = list[float]()
    made.pause, made._unserved_s = waited.append, 1.5
    made.let_drain()
    made.let_drain()
    assert waited == [1.5]


@pytest.mark.parametrize(
    ("is_hopeless", "patience_s", "phase", "ends"),
    [
        (True, 5.0, "measure", True),
        (True, 0.0, "measure", True),
        (True, None, "measure", False),
        (False, 5.0, "measure", False),
        (True, 5.0, "warmup", False),
        (True, 5.0, "drain", False),
    ],
)
def test_a_hopeless_probe_ends_unless_it_is_made_all_the_same(
    monkeypatch: pytest.MonkeyPatch, *, is_hopeless: bool, patience_s: float | None, phase: str, ends: bool
) -> None:
    seen = list[tuple[int, float]]()

    def judged(slices: Any, patience_s: float) -> bool:
        seen.append((len(slices), patience_s))
        return is_hopeless

    monkeypatch.setattr(probing, "hopeless", judged)
    abort = ProbeAbort((), patience_s)
    abort.started_on_hosts(lambda: None)
    abort.seen(interval(0, due=10, done=10, phase=phase))
    assert abort.done is ends
    assert abort.why == ""
    assert seen == ([(1, patience_s)] if phase == "measure" and patience_s is not None else [])
