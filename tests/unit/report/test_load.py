"""The section of a load: its answer first, and what findings leave of it, within the terminal's width."""

import io
import json
from dataclasses import replace

import pytest
from rich.console import Console

from redline.analysis import evaluate_all
from redline.analysis.load_facts import rate_deviation, response_deviation
from redline.cli.show import show
from redline.document.blocks import Section
from redline.model import CellReport, Counts, Engine, Estimate, Finding, Grade, Histogram, Metric, Outcomes, Percentile
from redline.model.judged import WarmUp
from redline.model.load_result import LoadDeviations, LoadFacts
from redline.model.percentile import OtherTime, TimeName
from redline.report.load import load_section
from redline.stats.objectives import LoadTotals
from redline.suite import parse_objectives
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.loads import load_of, result_of
from tests.fakes.recordings import simulated_cell, simulated_recording

WRONG = replace(GOOD, outcomes={"malformed": 1})
URL = "http://127.0.0.1:8080/"
ALL_TIMES = ("response", "service", "engine", "lateness")


def shown(*sections: Section, width: int = 80) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    show(sections, console)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def changed(cell: CellReport, **facts: object) -> CellReport:
    """The load with other facts."""
    assert cell.load_facts is not None
    return cell.model_copy(update={"load_facts": cell.load_facts.model_copy(update=facts)})


def warmed(cell: CellReport, warm_up: WarmUp) -> CellReport:
    (trial,) = cell.trials
    return cell.model_copy(update={"trials": (trial.model_copy(update={"warm_up": warm_up}),)})


def loaded(*, valid: bool) -> CellReport:
    found = Finding(
        kind="errors",
        grade=Grade.WARN if valid else Grade.INVALID,
        cell_id="load",
        position=0,
        message="12 of 1,012 requests failed.",
        advice="Read the server's log.",
    )
    points = (Percentile(q=0.5, ns=1_240_000), Percentile(q=1.0, ns=9_000_000))
    cell = simulated_cell()
    throughput = Estimate(value=100.0, low=None, high=None, unit="1/s", n=1, method="one trial: no interval")
    facts = LoadFacts(
        url=URL,
        seed=1,
        ended="complete",
        measured_ns=10**10,
        engine_cpu_per_request=None,
        lateness=points,
        engine=Engine(name="redline-engine", version="0.1.0", backend="epoll", workers=1),
    )
    judged = load_of(cell, simulated_recording(cell, GOOD))
    return judged.model_copy(
        update={
            "load_facts": facts,
            "load_text": "closed, 64 users, 10s",
            "valid": valid,
            "estimates": {Metric.THROUGHPUT: throughput},
            "response_percentiles": points,
            "service_percentiles": points[:1],
            "counts": Counts(late=3, resent=2, outcomes=Outcomes(ok=1_000, timeout=12)),
            "findings": (found,),
            "answers": {},
        }
    )


def test_a_load_has_its_numbers_and_its_findings() -> None:
    lines = shown(load_section(loaded(valid=True)))
    assert lines == [
        "http://127.0.0.1:8080/  closed, 64 users, 10s",
        "throughput  100 /s, p50 1.24 ms",
        "     response  service  engine lateness",
        "p50   1.24 ms  1.24 ms          1.24 ms",
        "max   9.00 ms                   9.00 ms",
        "outcomes  1,000 ok, 12 timeout; 2 sent again",
        "warn: 12 of 1,012 requests failed.",
        "  → Read the server's log.",
    ]


@pytest.mark.parametrize(
    ("load", "late_ns", "service_ns", "alike"),
    [
        ("closed, 64 users, 10s", 1, 1_240_000, True),
        ("closed, 64 users, 10s", 1_001, 1_240_000, False),
        ("closed, 64 users, 10s", 1, 1_239_000, True),
        ("closed, 64 users, 10s", 1, 1_230_000, False),
        ("open, 100/s, 10s", 1, 1_240_000, False),
    ],
)
def test_a_closed_load_whose_users_are_never_late_has_one_column_of_times(
    load: str, late_ns: int, service_ns: int, alike: bool
) -> None:
    p50, end = Percentile(q=0.5, ns=1_240_000), Percentile(q=1.0, ns=9_000_000)
    service = (replace(p50, ns=service_ns), end)
    changes = {"load_text": load, "response_percentiles": (p50, end), "service_percentiles": service}
    cell = changed(loaded(valid=True).model_copy(update=changes), lateness=(Percentile(q=1.0, ns=late_ns),))
    assert shown(load_section(cell))[2].split() == (["response"] if alike else [*ALL_TIMES])
    assert [line for line in shown(load_section(cell, whole=True)) if line.split() == [*ALL_TIMES]]


def test_a_load_has_its_answer_first_and_all_that_was_measured_if_asked() -> None:
    recording = simulated_recording(simulated_cell(), GOOD)
    warm_up = WarmUp(kind="flat", steady_from_ns=0, measured_from_ns=10**9)
    result = warmed(load_of(simulated_cell(), recording), warm_up)
    for width in (60, 80, 120):
        lines = shown(load_section(result, URL, whole=True), width=width)
        assert max(map(len, lines)) <= width
        heads = [
            "throughput  ",
            "response up to",
            "response  service",
            "p50",
            "p75",
            "p90",
            "p95",
            "p99",
            "p99.9",
            "max",
        ]
        heads += ["mean response time", "status codes  200 ", "outcomes  ", "warm-up  "]
        places = [next(at for at, line in enumerate(lines) if line.lstrip().startswith(head)) for head in heads]
        assert places == sorted(places)
        assert places[0] == 1
        brief = shown(load_section(result, URL), width=width)
        assert [line for line in lines if line in brief] == brief
        assert not [line for line in brief if line.lstrip().startswith(("response up to", "mean", "status", "warm-up"))]
    bounds = tuple(replace(point, bound="at most") for point in result.response_percentiles)
    for points in (bounds, ()):
        lines = shown(load_section(result.model_copy(update={"response_percentiles": points}), whole=True))
        assert not any(line.startswith("response up to") for line in lines)


NAMES: tuple[TimeName, ...] = ("handshake", "upgrade", "first byte")


def test_times_with_a_column_are_said_once_and_those_of_connections_in_a_line() -> None:
    points = (Percentile(q=0.5, ns=300_000), Percentile(q=1.0, ns=900_000))
    times = [
        OtherTime(name=name, count=7, p50_ns=300_000, p99_ns=None, max_ns=900_000, percentiles=points) for name in NAMES
    ]
    cell = load_of(simulated_cell(), simulated_recording(simulated_cell(), GOOD))
    text = "\n".join(shown(load_section(cell.model_copy(update={"other_times": tuple(times)}), URL)))
    assert "handshake: p50 300 µs, max 900 µs (7 of them)" in text
    assert text.count("upgrade: p50 300 µs") == 1
    assert "first byte:" not in text
    assert "first byte" in text


def test_status_codes_and_warm_up_are_shown_where_they_say_something() -> None:
    recording = simulated_recording(simulated_cell(), GOOD)
    result = load_of(simulated_cell(), recording)
    warm_up = WarmUp(kind="never steady", measured_from_ns=10**9)
    several = warmed(result, warm_up).model_copy(update={"answers": {"200": 990, "5xx": 10}})
    lines = shown(load_section(several))
    assert "status codes  200 990, 5xx 10" in lines
    assert lines[-1].startswith("warm-up  never steady, measured from ")
    wrong = Counts(outcomes=Outcomes(unexpected_status=990))
    assert "status codes  5xx 990" in shown(
        load_section(result.model_copy(update={"answers": {"5xx": 990}, "counts": wrong}))
    )


def test_a_met_objective_is_shown_as_plainly_as_a_missed_one() -> None:
    counts, response = Counts(due=2_000, outcomes=Outcomes(ok=1_980, timeout=20)), Histogram.of([435_000.0] * 2_000)
    objectives = parse_objectives("p99 < 50ms, p50 < 400us, errors < 2%, p99.9 < 1s")
    results = evaluate_all(objectives, LoadTotals(counts, counts.completed, response, Histogram(), Histogram(), 0, 1.0))
    lines = shown(load_section(loaded(valid=True).model_copy(update={"objectives": results})))
    assert lines[1:6] == [
        "throughput  100 /s, p50 1.24 ms",
        "✓ p99 435 µs < 50 ms",
        "✗ p50 435 µs, not < 400 us",
        "✓ errors 1% < 2%",
        "? p99.9 < 1 s is not known to be met: 2,000 requests are too few for p99.9",
    ]


def test_an_invalid_load_has_no_numbers() -> None:
    cell = simulated_cell()
    lines = shown(load_section(load_of(cell, simulated_recording(cell, WRONG)), URL))
    assert not [line for line in lines if line.startswith(("p50", "transfer rate", "mean"))]
    assert lines[1] == "throughput  not known, p50 not known, p99 not known"
    assert any(line.startswith("invalid: 1 of ") for line in lines)


def test_what_was_measured_of_an_interrupted_load_is_shown_however_short_it_is() -> None:
    cell = simulated_cell()

    def answer(behaviour: Behaviour) -> str:
        return shown(load_section(load_of(cell, simulated_recording(cell, behaviour)), URL))[1]

    cut = replace(GOOD, ended="interrupted", measured=0.2)
    assert answer(cut).startswith("throughput  20.0 k/s (interrupted), p50 2")
    assert answer(replace(WRONG, ended="interrupted", measured=0.2)).startswith(
        "throughput  not known (interrupted), p50 n"
    )
    assert answer(replace(cut, ended="deadline")) == "throughput  not known, p50 not known, p99 not known"


def test_a_load_without_a_right_answer_has_no_speed() -> None:
    recording = simulated_recording(simulated_cell(), replace(GOOD, achieved=0.0))
    assert json.loads(result_of(simulated_cell(), recording).model_dump_json())["throughput"] is None
    unanswered = load_of(simulated_cell(), recording)
    assert "throughput  not known: no right answers" in shown(load_section(unanswered))


def test_at_a_glance_a_table_has_eight_percentiles_at_most_and_as_a_whole_all() -> None:
    levels = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 0.99995, 1.0)
    times = tuple(Percentile(q=q, ns=round(1e6 * (1 + q))) for q in levels)
    changes = {"response_percentiles": times, "service_percentiles": times}
    result = changed(loaded(valid=True).model_copy(update=changes), lateness=())
    names = [line.split()[0] for line in shown(load_section(result)) if line.lstrip().startswith(("p", "max"))]
    assert names == ["p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max"]
    whole = shown(load_section(result, whole=True))
    assert len([line for line in whole if line.split()[0] in {"p0", "p25", "p99.5", "p99.95", "p99.995"}]) == 5


def test_the_columns_of_wrk_are_shown_if_asked() -> None:
    response = response_deviation(Histogram.of([1_000_000] * 3 + [5_000_000]))
    rates = rate_deviation([90.0, 100.0, 110.0, 100.0])
    known = LoadDeviations(response=response, rate=rates, interval_ns=10**8)
    result = changed(loaded(valid=True), deviations=known)
    assert (rates.mean, rates.max, rates.within, rates.values) == (100, 110, 0.5, 4)
    assert rates.stdev == pytest.approx(50**0.5)
    assert [line.split() for line in shown(load_section(result, as_wrk=True), width=120)[5:8]] == [
        ["mean", "stdev", "max", "±", "stdev"],
        ["response", "2.00", "ms", "1.73", "ms", "5.00", "ms", "75.0%"],
        ["right", "answers/s,", "by", "100", "ms", "100", "/s", "7.07", "/s", "110", "/s", "50.0%"],
    ]
    assert "± stdev" not in " ".join(shown(load_section(result)))


def test_the_rate_of_each_thread_is_shown_where_there_are_several() -> None:
    """As wrk prints it: `Req/Sec` of its `Thread Stats` is about one thread."""
    recording = simulated_recording(simulated_cell(), GOOD)
    assert recording.traffic is not None
    alone = result_of(simulated_cell(), recording).deviations
    assert alone is not None
    assert alone.worker_rate is None
    shared = tuple(
        each.with_steps(each.ticks, (each.counts.outcomes.ok - 2, 2) if each.phase == "measure" else ())
        for each in recording.traffic.intervals
    )
    traffic = recording.traffic.model_copy(update={"intervals": shared})
    deviations = result_of(simulated_cell(), recording.model_copy(update={"traffic": traffic})).deviations
    assert deviations is not None
    assert deviations.rate is not None
    assert deviations.worker_rate is not None
    assert deviations.worker_rate.mean == pytest.approx(deviations.rate.mean / 2)
    assert deviations.worker_rate.values == 2 * deviations.rate.values
    assert 0.4 < deviations.worker_rate.within <= 1
    known = changed(loaded(valid=True), deviations=deviations)
    assert "of each thread, by" in " ".join(shown(load_section(known, as_wrk=True), width=120))


def test_the_rate_by_interval_is_about_the_throughput() -> None:
    recording = simulated_recording(simulated_cell(), GOOD)
    result = result_of(simulated_cell(), recording)
    assert recording.traffic is not None
    assert result.deviations is not None
    assert result.deviations.rate is not None
    assert result.deviations.response == response_deviation(recording.traffic.response)
    assert result.throughput is not None
    assert result.deviations.rate.mean == pytest.approx(result.throughput.value, rel=0.05)
    assert result.deviations.rate.values == sum(it.phase == "measure" for it in recording.traffic.intervals)
