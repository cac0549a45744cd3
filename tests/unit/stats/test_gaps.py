"""Percentiles between quick and slow requests have no level; those of a single kind of requests have."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from redline.analysis import build_report
from redline.analysis.bounds import Times
from redline.findings import judge
from redline.findings.two_modes import gap_text, gaps_of
from redline.model import CellReport, Comparison, Histogram, Metric, Recording, Report, Run
from redline.report.curves import distribution
from redline.stats.gaps import FEWEST_BESIDE, SLACK, Gap, gap_at
from redline.stats.samples import Floats
from tests.fakes.behaviour import GOOD
from tests.fakes.recordings import STEADY, simulated_cell, simulated_recording, simulated_run
from tests.unit.report.test_verdicts_on_times import OPEN, answered, by_metric

MS = 1_000_000


def two_kinds(slow: int, n: int = 10_000, apart: float = 100.0) -> Histogram:
    """So many slow requests of n, which take 20 ms; the others take 20 ms / apart."""
    return Histogram.of([20 * MS / apart] * (n - slow) + [20.0 * MS] * slow)


@pytest.mark.parametrize("slow", [1_000, 960, 1_049])
def test_a_percentile_at_the_edge_of_the_slow_requests_lies_in_the_gap(slow: int) -> None:
    gap = gap_at(two_kinds(slow), 0.9)
    assert gap is not None
    assert gap.above == slow / 10_000
    assert gap.low_ns == pytest.approx(0.2 * MS, rel=0.001)
    assert gap.high_ns == pytest.approx(20 * MS, rel=0.001)


def test_the_ends_hold_the_quantile_and_what_it_may_be_by_chance() -> None:
    times = Histogram.of([*np.linspace(0.1, 8, 9_880) * MS, *np.linspace(20, 100, 120) * MS])
    gap = gap_at(times, 0.99)
    assert gap is not None
    assert gap.high_ns == pytest.approx(20 * MS, rel=0.01)
    assert times.quantile_ns(0.99) == pytest.approx(33 * MS, rel=0.05)
    assert (gap.least_ns, gap.most_ns) == times.quantiles_ns((0.99 - 0.002985, 0.99 + 0.002985))
    assert gap.least_ns < gap.low_ns
    assert gap.most_ns > 40 * MS


@pytest.mark.parametrize("slow", [800, 900, 1_100, 2_000])
def test_a_percentile_clear_of_the_edge_has_a_level(slow: int) -> None:
    assert gap_at(two_kinds(slow), 0.9) is None


def test_chance_and_another_measurement_move_the_edge() -> None:
    assert gap_at(two_kinds(500_000 - 24_900, 1_000_000), 0.5) is not None
    assert gap_at(two_kinds(500_000 - 25_100, 1_000_000), 0.5) is None
    by_chance = round(3 * (0.1 * 0.9 / 400) ** 0.5 * 400)
    assert gap_at(two_kinds(40 + by_chance - 1, 400), 0.9) is not None
    assert gap_at(two_kinds(40 + by_chance + 1, 400), 0.9) is None
    assert SLACK == 0.05


@pytest.mark.parametrize(("apart", "is_gap"), [(1.9, False), (2.1, True)])
def test_a_gap_is_a_factor_of_two(apart: float, is_gap: bool) -> None:
    assert (gap_at(two_kinds(1_000, apart=apart), 0.9) is not None) == is_gap


@pytest.mark.parametrize(("slow", "is_gap"), [(FEWEST_BESIDE - 1, False), (FEWEST_BESIDE, True)])
def test_a_few_slow_requests_are_a_tail(slow: int, is_gap: bool) -> None:
    assert (gap_at(two_kinds(slow, 2_000), 0.99) is not None) == is_gap


@pytest.mark.parametrize(("between", "is_gap"), [(95, True), (900, False)])
def test_a_gap_is_nearly_empty(between: int, is_gap: bool) -> None:
    times = Histogram.of([0.2 * MS] * 9_000 + (MS * np.geomspace(0.25, 19.9, between)).tolist() + [20.0 * MS] * 1_000)
    assert (gap_at(times, 0.9) is not None) == is_gap


def drawn(kind: str, n: int, rng: np.random.Generator) -> Floats:
    match kind:
        case "exponential":
            return np.asarray(rng.exponential(1.0, n))
        case "lognormal":
            return np.asarray(rng.lognormal(0.0, 1.0, n))
        case "pareto":
            return np.asarray(1 + rng.pareto(1.0, n))
        case _:
            return np.asarray(rng.normal(1.0, 0.05, n))


@pytest.mark.long
@pytest.mark.parametrize("n", [200, 1_000, 20_000])
@pytest.mark.parametrize("kind", ["exponential", "lognormal", "pareto", "normal"])
def test_a_thousand_distributions_of_a_single_kind_have_no_gap(kind: str, n: int) -> None:
    rng = np.random.default_rng(8)
    assert sum(bool(gaps_of(Histogram.of((drawn(kind, n, rng) * MS).tolist()))) for _ in range(1_000)) <= 1


@given(st.lists(st.integers(1, 10**10), max_size=80), st.floats(0.01, 0.9999))
def test_a_gap_has_times_on_both_sides(times: list[int], q: float) -> None:
    gap = gap_at(Histogram.of([float(ns) for ns in times]), q)
    if gap is not None:
        assert gap.least_ns <= Histogram.of([float(ns) for ns in times]).quantile_ns(q) <= gap.most_ns
        assert gap.high_ns > 1.99 * gap.low_ns
        assert round(gap.above * len(times)) == sum(ns > 1.5 * gap.low_ns for ns in times) or gap.above > 0


def test_it_is_said_in_words() -> None:
    text = gap_text(Metric.P90, Gap(240_000, 19_600_000, 0.098, 240_000, 19_600_000))
    assert text == "No stable p90: 9.8% of the requests took 19.6 ms or longer, the others at most 240 µs."


def between(recording: Recording) -> Recording:
    """The recording with a tenth of its requests slow."""
    assert recording.traffic is not None
    n = recording.traffic.response.count
    changed = {"response": two_kinds(n // 10, n)}
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=changed)})


def test_a_load_says_its_bounds_in_place_of_the_percentile() -> None:
    cell = simulated_cell()
    recording = between(simulated_recording(cell, GOOD))
    assert "unstable-percentile" in {finding.kind for finding in judge(cell, recording)}
    assert recording.traffic is not None
    times = Times.of([recording.traffic])
    bound = times.bound(Metric.P90, None)
    assert bound is not None
    assert bound.words == "at most 20.0 ms (at least 200 µs)"
    assert times.bound(Metric.P50, None) is None
    assert times.bound(Metric.MEAN, None) is None
    points = {point.q: point for point in times.points(None)}
    assert (points[0.9].bound, points[0.5].bound, points[0.99].bound) == ("at most", "", "")


def run_between(run: Run, slug: str) -> Run:
    cells = run.manifest.plan.cells
    made = [between(each) if cells[each.cell_id].variant.slug == slug else each for each in run.recordings]
    return run.model_copy(update={"recordings": tuple(made)})


def cell_of(report: Report, slug: str) -> CellReport:
    return next(cell for cell in report.cells if cell.server == slug)


def test_a_cell_has_no_such_level_and_is_not_compared_in_it() -> None:
    run = simulated_run(loads=(STEADY,), ceiling=None)
    report = build_report(run_between(run, "rust.axum"))
    cell = cell_of(report, "rust.axum")
    assert cell.valid
    assert cell.bounds[Metric.P90].words == "at most 20.0 ms (at least 200 µs)"
    assert Metric.P90 not in cell.known
    assert Metric.P50 in cell.known
    drawn = {point.q for point in cell.response_curve}
    assert 0.9 not in drawn
    assert {0.5, 0.99} <= drawn
    assert not cell_of(report, "rust.hyper").bounds
    (refused,) = (each for each in report.comparisons if each.metric is Metric.P90)
    assert refused.ratio is None
    assert refused.refused.startswith(
        "p90 of the cell is not known: it is at most 20.0 ms (at least 200 µs). No stable"
    )
    (kept,) = (each for each in report.comparisons if each.metric is Metric.CPU_PER_REQUEST)
    assert kept.ratio is not None


def test_service_times_have_bounds_as_response_times_have() -> None:
    def both(recording: Recording) -> Recording:
        traffic = between(recording).traffic
        assert traffic is not None
        return recording.model_copy(update={"traffic": traffic.model_copy(update={"service": traffic.response})})

    run = simulated_run(loads=(STEADY,), ceiling=None)
    report = build_report(run.model_copy(update={"recordings": tuple(map(both, run.recordings))}))
    for cell in report.cells:
        assert any(point.bound for point in cell.response_percentiles)
        assert cell.service_percentiles == cell.response_percentiles
        assert "service" not in distribution(0, cell)


def test_a_duet_does_not_compare_it_either() -> None:
    """B has a tenth of slow requests, by chance a little more or less in each start."""
    compared: dict[Metric, Comparison] = by_metric(build_report(answered(OPEN, late_share=0.05, late_ms=200)))
    assert compared[Metric.P95].ratio is None
    assert compared[Metric.P95].refused.startswith("B: No stable p95: 5")
    assert not compared[Metric.P95].primary
    assert compared[Metric.P99].ratio is not None


def test_levels_of_a_duet_leave_it_out() -> None:
    report = build_report(answered(OPEN, late_share=0.05, late_ms=200))
    assert Metric.P95 not in cell_of(report, "B").known
    assert Metric.P99 in cell_of(report, "B").known


def test_recordings_of_a_few_requests_have_no_gap() -> None:
    assert gap_at(Histogram.of([]), 0.9) is None
    assert gap_at(Histogram.of([1.0, 1e9]), 0.5) is None
