"""Trials over time: steps hold what was recorded, nothing lies between them, and what is unknown is a gap."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from redline.analysis import build_report
from redline.analysis.timelines import (
    FEWEST_STEPS,
    MOST_STEPS,
    MOST_STEPS_OF_RUN,
    detail_for,
    trial_timeline,
)
from redline.model import Durations, Failure, Finding, Grade, Histogram, Recording, Report, Series
from redline.model.failures import FirstFailure
from redline.model.runtime import Collection, CollectionSum, Pause, RuntimeFacts
from redline.model.timeline import ROWS_PER_DECADE, TimedSteps, TrialTimeline
from redline.render import RENDERERS
from redline.report.timelines import panels, trial_items
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, WARMUP_NS, simulated_cell, simulated_recording, simulated_run

CELL = simulated_cell("rust.hyper", load=STEADY)
RECORDING = simulated_recording(CELL)
SECOND = 1_000_000_000


def timeline(recording: Recording = RECORDING, steps: int = MOST_STEPS, *findings: Finding) -> TrialTimeline:
    made = trial_timeline(CELL, Trial(recording), findings, steps)
    assert made is not None
    return made


def sampled(name: str, subject: str, rate: float, period_ms: int, *, gap: tuple[float, float] = (0.0, 0.0)) -> Series:
    """A counter of `rate` cores, or a gauge of that value; without samples in the gap, in seconds of the load."""
    traffic = RECORDING.traffic
    assert traffic is not None
    every = range(0, traffic.measure_end_ns + 1, period_ms * 1_000_000)
    times = [ns for ns in every if not gap[0] * SECOND < ns < gap[1] * SECOND]
    counter = name.endswith("_ns")
    return Series.model_validate(
        {
            "name": name,
            "unit": "ns",
            "subject": subject,
            "kind": "counter" if counter else "gauge",
            "times_unix_ns": tuple(traffic.epoch_unix_ns + ns for ns in times),
            "values": tuple(ns * rate if counter else rate for ns in times),
        }
    )


def having(*series: Series) -> Recording:
    return RECORDING.model_copy(update={"series": series})


def finding(kind: str, grade: Grade = Grade.WARN) -> Finding:
    return Finding(kind=kind, grade=grade, message="said", advice="do", cell_id=CELL.id, position=0)


def total(edges: Sequence[float], rates: Sequence[float | None]) -> float:
    return math.fsum((rate or 0.0) * lasts for rate, lasts in zip(rates, np.diff(edges).tolist(), strict=True))


@pytest.mark.parametrize("steps", [MOST_STEPS, 7, 3])
def test_merged_steps_lose_no_request_and_cross_no_phase(steps: int) -> None:
    made, traffic = timeline(steps=steps), RECORDING.traffic
    assert traffic is not None
    kept = [interval for interval in traffic.intervals if interval.phase != "drain"]
    assert len(made.heat) <= min(steps + 1, len(kept))
    assert made.measured_from_s in made.load.edges_s
    for name, count in (("offered", "due"), ("answered", "completed")):
        expected = sum(getattr(interval.counts, count) for interval in kept)
        assert total(made.load.edges_s, made.load.values[name]) == pytest.approx(expected)
    assert sum(sum(column.counts) for column in made.heat) == sum(interval.response.count for interval in kept)


def ticking(seconds: int) -> Recording:
    """A load of so many intervals of a second, of 100 answers in each tick of 50 ms, but none in the fourth."""
    traffic = RECORDING.traffic
    assert traffic is not None
    start = traffic.measure_start_ns
    interval = next(interval for interval in traffic.intervals if interval.phase == "measure")
    counts = tuple(0 if tick == 3 else 100 for tick in range(20))
    intervals = [
        interval.model_copy(
            update={
                "index": i,
                "start_ns": start + i * SECOND,
                "end_ns": start + (i + 1) * SECOND,
                "counts": interval.counts.model_copy(update={"completed": sum(counts)}),
                "ticks": counts,
            }
        )
        for i in range(seconds)
    ]
    changed = traffic.model_copy(update={"intervals": tuple(intervals), "measure_end_ns": start + seconds * SECOND})
    return RECORDING.model_copy(update={"traffic": changed})


@pytest.mark.parametrize(("seconds", "wide"), [(4, 1), (60, 1), (61, 2), (150, 3)])
def test_a_trial_that_stalled_has_its_rate_by_ticks(seconds: int, wide: int) -> None:
    recording = ticking(seconds)
    assert timeline(recording, MOST_STEPS, finding("transient")).ticks == TimedSteps.none()
    made = timeline(recording, MOST_STEPS, finding("stalled")).ticks
    first, *_, last = np.diff(made.edges_s)
    assert (first, last) == pytest.approx((wide * 0.05, wide * 0.05))
    assert made.edges_s[0] == RECORDING.traffic.measure_start_ns / 1e9  # type: ignore[union-attr]
    assert total(made.edges_s, made.values["answered"]) == pytest.approx(1900 * seconds, rel=0.01)
    answered = made.values["answered"]
    if wide == 1:
        assert answered[:5] == pytest.approx((2000.0, 2000.0, 2000.0, 0.0, 2000.0))


def test_ticks_that_are_not_known_are_not_drawn() -> None:
    assert timeline(RECORDING, MOST_STEPS, finding("stalled")).ticks == TimedSteps.none()


def test_the_rate_by_ticks_is_a_line_of_the_first_panel() -> None:
    made = timeline(ticking(4), MOST_STEPS, finding("stalled"))
    rate, *_ = panels(made)
    assert [line["name"] for line in rate["lines"]] == ["answered, by 50.0 ms", "offered", "answered"]
    assert rate["lines"][0]["y"][3] == 0.0


def test_a_row_of_the_heat_map_holds_the_times_that_its_edges_say() -> None:
    histogram = Histogram.of([1_050_000, 1_200_000, 1_300_000, 9_900_000])
    interval = next(i for i in RECORDING.traffic.intervals if i.phase == "measure")  # type: ignore[union-attr]
    changed = interval.model_copy(update={"response": histogram, "index": 0})
    traffic = RECORDING.traffic.model_copy(update={"intervals": (changed,)})  # type: ignore[union-attr]
    (column,) = timeline(RECORDING.model_copy(update={"traffic": traffic})).heat
    assert column.first == 6 * ROWS_PER_DECADE  # a millisecond
    assert column.counts == (2, 1, 0, 0, 0, 0, 0, 0, 0, 1)


def test_a_percentile_needs_requests_beyond_it_in_its_step() -> None:
    short, long = timeline(), timeline(steps=4)
    assert max(sum(column.counts) for column in short.heat) < 1000
    assert short.load.known("p90")
    assert not short.load.known("p99")
    enough = [sum(column.counts) >= 1000 for column in long.heat]
    assert any(enough)
    assert [value is not None for value in long.load.values["p99"]] == enough


def test_cpu_is_the_increase_within_a_step_and_a_gap_stays_a_gap() -> None:
    gap = (0.5, 0.95)
    made = timeline(having(sampled("cpu_ns", "server", 1.5, 10, gap=gap)))
    cores = made.cpu.values["server"]
    edges = made.cpu.edges_s
    assert {round(value, 6) for value in cores if value is not None} == {1.5}
    for start, end, value in zip(edges, edges[1:], cores, strict=False):
        assert (value is None) == (gap[0] - 0.01 <= start and end <= gap[1] + 0.01), (start, end, value)


def test_rarely_sampled_values_have_longer_steps_that_still_end_with_the_warm_up() -> None:
    made = timeline(having(sampled("cpu_ns", "server", 1.0, 10), sampled("rss_bytes", "server", 5e6, 100)))
    assert len(made.cpu.edges_s) > len(made.memory.edges_s) > 2
    assert WARMUP_NS / 1e9 in made.memory.edges_s
    assert made.memory.edges_s[-1] == made.load.edges_s[-1]
    assert set(made.memory.values["resident"]) == {5e6}


def test_a_server_on_another_host_has_no_values_by_its_clock() -> None:
    host = {"name": "far", "role": "server"}
    made = timeline(having(sampled("cpu_ns", "server", 1.0, 10)))
    assert made.cpu.values
    apart = timeline(having(sampled("cpu_ns", "server", 1.0, 10)).model_copy(update={"hosts": (host,)}))
    assert not apart.cpu.values
    assert apart.apart


def test_findings_have_their_stretches_and_failures_their_instant() -> None:
    traffic = RECORDING.traffic
    assert traffic is not None
    intervals = tuple(
        interval.model_copy(update={"paused_ns": 5_000_000 if interval.index in {4, 5, 8} else 0})
        for interval in traffic.intervals
    )
    failure = FirstFailure(outcome="timeout", reason="no answer within 5 s", time_ns=700_000_000)
    traffic = traffic.model_copy(update={"intervals": intervals, "failures": (failure,)})
    recording = RECORDING.model_copy(update={"traffic": traffic})
    made = timeline(recording, MOST_STEPS, finding("engine-paused"), finding("rate-missed"))
    paused = [event for event in made.events if event.name == "engine-paused"]
    ends = [end for event in paused for end in (event.at_s, event.end_s)]
    expected = (intervals[4].start_ns, intervals[5].end_ns, intervals[8].start_ns, intervals[8].end_ns)
    assert ends == pytest.approx([ns / 1e9 for ns in expected])
    assert {event.grade for event in paused} == {Grade.WARN}
    assert [(event.name, event.at_s) for event in made.events if event.grade is None] == [("first timeout", 0.7)]
    assert not [event for event in timeline(recording).events if event.name == "engine-paused"]


def test_steal_is_marked_where_the_host_took_more_than_the_rule_says() -> None:
    recording = having(sampled("steal_ns", "machine", 0.1, 10), sampled("busy_ns", "machine", 1.0, 10))
    (event,) = timeline(recording, MOST_STEPS, finding("cpu-steal")).events
    assert (event.name, event.at_s) == ("cpu-steal", 0.0)
    assert event.end_s == pytest.approx(timeline().ends_s)
    little = having(sampled("steal_ns", "machine", 0.01, 10), sampled("busy_ns", "machine", 1.0, 10))
    assert timeline(little, MOST_STEPS, finding("cpu-steal")).events == ()


def test_pauses_and_collections_stand_at_their_time_with_how_many_there_were() -> None:
    epoch = RECORDING.traffic.epoch_unix_ns  # type: ignore[union-attr]
    facts = RuntimeFacts(
        runtime="jvm",
        pauses=Durations(count=90, total_ns=10**8),
        longest_pauses=tuple(
            Pause(start_unix_ns=epoch + n * 10**7, duration_ns=n * 10**4, cause="G1") for n in range(1, 81)
        ),
        collections=(CollectionSum(kind="young", cause="", count=12, total_ns=10**8),),
        longest_collections=(Collection(start_unix_ns=epoch + 5 * 10**8, duration_ns=10**6, kind="young"),),
        live_unix_ns=(epoch + 10**9,),
        live_bytes=(1234,),
    )
    made = timeline(RECORDING.model_copy(update={"runtime": facts}))
    assert [event.at_s for event in made.pauses] == pytest.approx([n / 100 for n in range(21, 81)])
    assert (made.pauses_in_all, made.collections_in_all) == (90, 12)
    assert made.live == ((1.0, 1234),)


@pytest.mark.parametrize(("trials", "cells"), [(1, 1), (10, 2), (500, 100), (5000, 1000), (20_000, 4000)])
def test_a_study_of_any_size_stays_small_and_leaves_out_no_cell(trials: int, cells: int) -> None:
    detail = detail_for(trials, cells)
    made = cells if detail.middle_only else trials
    assert FEWEST_STEPS <= detail.steps <= MOST_STEPS
    assert made * detail.steps <= max(MOST_STEPS_OF_RUN, made * FEWEST_STEPS)


def report(failure: Failure | None = None) -> Report:
    behaviour = replace(GOOD, failure=failure)
    return build_report(simulated_run({"rust.hyper": behaviour}, trials=3, loads=(STEADY,), ceiling=None))


def test_every_trial_is_an_item_in_words_with_panels_of_what_is_known() -> None:
    items = trial_items(report())
    assert [item["name"] for item in items] == ["trial 1", "trial 2", "trial 3"]
    for item in items:
        titles = [panel["title"] for panel in item["panels"]]
        assert titles[:4] == ["Rate", "Response time", "Response times of all requests", "CPU, in cores"]
        assert not [title for title in titles if "Pauses" in title or "taken away" in title]
        assert "measured after a warm-up of 250 ms, in steps of about" in item["says"]
        assert "offered, " in item["says"]
        assert "cores" in item["says"]
        for line in (line for panel in item["panels"] for line in panel["lines"] if line["kind"] == "steps"):
            assert len(line["x"]) == len(line["y"]) + 1
            assert line["x"] == sorted(set(line["x"]))


def test_what_is_no_result_says_so() -> None:
    failure = Failure(stage="load", kind="died", message="it was killed by SIGKILL", hint="")
    made = report(failure)
    for item in trial_items(made):
        assert item["name"].endswith("(left out)")
        assert item["says"].startswith("This trial is left out of all results: load: it was killed by SIGKILL.")


def test_many_cores_are_said_without_an_exponent() -> None:
    busy = having(sampled("cpu_ns", "server", 123.4, 5))
    cell = report().cells[0].model_copy(update={"trial_timelines": (timeline(busy),)})
    (item,) = trial_items(report().model_copy(update={"cells": (cell,)}))
    assert "The server used at most 120 cores" in item["says"]


def test_timelines_are_on_the_page_and_in_no_published_format() -> None:
    made = report()
    assert b'data-view="trials"' in RENDERERS["html"](made)
    stored = RENDERERS["json"](made)
    assert b"trial_timelines" not in stored
    assert b'data-view="trials"' not in RENDERERS["html"](Report.model_validate_json(stored))
    assert "trial_timelines" not in str(Report.model_json_schema())
