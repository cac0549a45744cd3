"""The profiles of two servers whose true shares are known."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.errors import StoreError
from redline.model import Estimate, FlameGraph, Metric, ProfileReport, Recording, Run, RuntimeFacts, Stacks
from redline.profiles.libraries import OTHER, Libraries
from redline.profiles.profiles import profile_reports
from redline.suite import load_libraries
from tests.fakes.behaviour import GOOD
from tests.fakes.profiles import TAPIR, VANILLA, Mix, profiled, stack_of, stacks_of
from tests.fakes.recordings import SATURATE, STEADY, simulated_recording, simulated_run

TABLE = load_libraries(Path("/nonexistent"))
LIBRARIES = Libraries(TABLE, "jvm")
COST = 1.24
SERVERS = {"http4s.vanilla": GOOD, "http4s.tapir": replace(GOOD, rate_per_s=GOOD.rate_per_s / COST)}
MIXES: dict[str, Mix] = {"http4s.vanilla": VANILLA, "http4s.tapir": TAPIR}


def run_of_two() -> Run:
    return simulated_run(SERVERS, loads=(SATURATE,), ceiling=None, baseline="http4s.vanilla", trial_effect=0.002)


def made(
    *, slices: int = 50, starts: int = 1, stacks: bool = True, ratio: Estimate | None = None
) -> tuple[ProfileReport, ...]:
    """The reports of both servers, each profiled on this many starts; `ratio` in place of the CPU times' ratio."""
    run, mixes = run_of_two(), dict[str, tuple[Mix, Recording]]()
    recordings = []
    for position, cell in enumerate(list(run.manifest.plan.cells.values()) * starts, 100):
        server = cell.variant.slug
        one = profiled(simulated_recording(cell, SERVERS[server], position=position, seed=position), stacks=stacks)
        recordings.append(one)
        mixes[f"profiles/{position:04d}.cpu.stacks.gz"] = MIXES[server], one

    def read(name: str) -> Stacks:
        mix, recording = mixes[name]
        assert recording.traffic is not None
        return stacks_of(mix, recording.traffic.window_unix_ns, slices=slices, seed=recording.position)

    report = build_report(run)
    comparisons = report.comparisons
    if ratio is not None:
        comparisons = tuple(one.model_copy(update={"ratio": ratio}) for one in comparisons)
    return profile_reports(recordings, read, TABLE, report.cells, comparisons)


def without_graph(one: ProfileReport) -> ProfileReport:
    return one.model_copy(update={"graph": FlameGraph()})


def shares(one: ProfileReport) -> dict[str, float]:
    return {library.name: library.share.value for library in one.libraries}


def true_share(mix: Mix, library: str) -> float:
    return sum(mix[text] for text in mix if LIBRARIES.of_stack(stack_of(text)) == library) / sum(mix.values())


@pytest.mark.parametrize(("slices", "starts"), [(50, 1), (0, 1), (50, 3)])
def test_shares_are_the_true_ones_within_their_intervals(slices: int, starts: int) -> None:
    for one, mix in zip(made(slices=slices, starts=starts), (VANILLA, TAPIR), strict=True):
        assert sum(shares(one).values()) == pytest.approx(1)
        for library in one.libraries:
            truth, found = true_share(mix, library.name), library.share
            assert found.low is not None
            assert found.high is not None
            slack = 0.5 * (found.high - found.low) + 0.002  # one interval in twenty may miss
            assert found.low - slack <= truth <= found.high + slack
            assert library.total.value >= found.value - 1e-9


def test_a_library_is_named_with_its_known_share() -> None:
    _, tapir = made()
    found = next(library.share for library in tapir.libraries if library.name == "tapir's interpreter")
    assert found.value == pytest.approx(0.2 / 1.24, abs=0.01)
    assert found.high is not None
    assert found.high - found.value < 0.01


def test_the_difference_is_explained_by_what_was_added() -> None:
    vanilla, tapir = made()
    assert vanilla.change is None
    change = tapir.change
    assert change is not None
    assert change.against == vanilla.cell_id
    assert change.ratio is not None
    points = {one.name: one.points for one in change.libraries}
    assert next(iter(points)) == "tapir's interpreter"
    assert points["tapir's interpreter"].value == pytest.approx(0.20, abs=0.02)
    assert points["tapir"].value == pytest.approx(0.04, abs=0.02)
    low, high = points["tapir's interpreter"].low, points["tapir's interpreter"].high
    assert low is not None
    assert high is not None
    assert low < 0.20 < high
    assert sum(one.value for one in points.values()) == pytest.approx(change.ratio.value - 1, abs=0.005)


@pytest.mark.parametrize("low", [0.1, 0.89])
def test_what_only_one_of_both_has_is_named_however_uncertain_the_ratio_is(low: float) -> None:
    wild = Estimate(value=1.24, low=low, high=1.24**2 / low, unit="ratio", n=5, method="given")
    _, tapir = made(ratio=wild)
    assert tapir.change is not None
    assert tapir.change.ratio == wild
    named = [one.name for one in tapir.change.libraries if (one.p_adjusted or 0.0) < 0.05]
    assert named == ["tapir's interpreter", "tapir"]
    assert all(one.points.low is not None and one.points.low > 0 for one in tapir.change.libraries[:1])
    assert {one.name for one in tapir.change.shares if (one.p_adjusted or 0.0) < 0.05} >= set(named)


def test_a_ratio_without_an_interval_leaves_the_shares() -> None:
    _, tapir = made(ratio=Estimate(value=1.24, low=None, high=None, unit="ratio", n=1, method="given"))
    assert tapir.change is not None
    assert tapir.change.ratio is None
    assert tapir.change.shares == ()
    named = {one.name for one in tapir.change.libraries if (one.p_adjusted or 0.0) < 0.05}
    assert named >= {"tapir's interpreter", "tapir"}


def test_the_highest_rate_is_compared_with_the_lowest() -> None:
    run = simulated_run({"http4s.vanilla": GOOD}, loads=(STEADY, SATURATE), ceiling=None, trial_effect=0.002)
    mixes = {STEADY.name: VANILLA, SATURATE.name: TAPIR}
    recordings, stacks = [], dict[str, Stacks]()
    for position, cell in enumerate(run.manifest.plan.cells.values(), 100):
        one = profiled(simulated_recording(cell, GOOD, position=position, seed=position))
        assert one.traffic is not None
        recordings.append(one)
        stacks[f"profiles/{position:04d}.cpu.stacks.gz"] = stacks_of(
            mixes[cell.load.name], one.traffic.window_unix_ns, seed=position
        )
    report = build_report(run)
    found = profile_reports(recordings, stacks.__getitem__, TABLE, report.cells, report.comparisons)
    by_load = {one.load: one for one in found}
    assert by_load[STEADY.name].by_rate is None
    by_rate = by_load[SATURATE.name].by_rate
    assert by_rate is not None
    assert by_rate.against == by_load[STEADY.name].cell_id
    assert by_rate.ratio is not None
    costs = [by_load[load.name].cpu_per_request_ns for load in (SATURATE, STEADY)]
    assert by_rate.ratio.value == pytest.approx((costs[0] or 0) / (costs[1] or 1))
    assert by_rate.ratio.low is not None
    assert by_rate.ratio.high is not None
    assert by_rate.ratio.low < by_rate.ratio.value < by_rate.ratio.high
    points = {one.name: one.points.value for one in by_rate.libraries}
    interpreter = "tapir's interpreter"
    assert points[interpreter] == pytest.approx(by_rate.ratio.value * true_share(TAPIR, interpreter), abs=0.01)
    assert all(one.by_rate is None for one in made())


def test_without_cpu_times_shares_are_compared() -> None:
    run = run_of_two()
    report = build_report(run)
    others = [one for one in report.comparisons if one.metric is not Metric.CPU_PER_REQUEST]
    cells = list(run.manifest.plan.cells.values())
    recordings = [
        profiled(simulated_recording(cell, GOOD, position=position)) for position, cell in enumerate(cells, 100)
    ]
    traffics = {f"profiles/{each.position:04d}.cpu.stacks.gz": each.traffic for each in recordings}
    mixes = {recording.cell_id: MIXES[cell.variant.slug] for recording, cell in zip(recordings, cells, strict=True)}

    def read(name: str) -> Stacks:
        recording = next(each for each in recordings if f"{each.position:04d}" in name)
        traffic = traffics[name]
        assert traffic is not None
        return stacks_of(mixes[recording.cell_id], traffic.window_unix_ns)

    for comparisons in (others, [one.model_copy(update={"ratio": None}) for one in report.comparisons]):
        _, tapir = profile_reports(recordings, read, TABLE, report.cells, comparisons)
        assert tapir.change is not None
        assert tapir.change.ratio is None
        points = {one.name: one.points.value for one in tapir.change.libraries}
        assert points["tapir's interpreter"] == pytest.approx(0.2 / 1.24, abs=0.01)
        assert sum(points.values()) == pytest.approx(0, abs=0.01)


def test_threads_and_functions_have_their_shares() -> None:
    vanilla, _ = made()
    assert vanilla.threads[0].name == "io-compute"
    assert vanilla.threads[0].threads == 4
    assert sum(thread.share for thread in vanilla.threads) == pytest.approx(1)
    top = vanilla.frames[0]
    assert (top.frame, top.library) == ("java.lang.String.<init>", "http4s")
    assert top.self_share == pytest.approx(0.22, abs=0.01)
    run = next(frame for frame in vanilla.frames if frame.frame == "cats.effect.IOFiber.runLoop")
    assert run.total_share > 0.85


def test_slow_moments_are_set_against_the_rest() -> None:
    run = run_of_two()
    cell = next(iter(run.manifest.plan.cells.values()))
    one = profiled(simulated_recording(cell, GOOD, position=100))
    assert one.traffic is not None
    measured = [each for each in one.traffic.intervals if each.phase == "measure"]
    slowest = max(measured, key=lambda each: each.response.quantile_ns(0.99))
    plain = stacks_of(VANILLA, one.traffic.window_unix_ns, samples=50_000, slices=10 * len(measured))
    collecting = "[GC Thread#1 tid=21];start_thread;G1ParEvacuateFollowersClosure::do_void"
    pause = Stacks.from_text(
        "".join(
            f"# slice {each.start} {each.end} ns\n{collecting} 200\n"
            for each in plain.slices
            if slowest.start_ns <= (each.start + each.end) / 2 - one.traffic.epoch_unix_ns < slowest.end_ns
        )
    )
    report = build_report(run)
    (found,) = profile_reports([one], lambda _: Stacks.merged([plain, pause]), TABLE, report.cells, ())
    assert found.slow is not None
    assert found.slow.libraries[0].name == "collector"
    assert found.slow.libraries[0].points.value > 0.1
    assert found.heat is not None
    assert sum(found.heat.totals) == plain.total + pause.total
    assert sum(sum(row.weights) for row in found.heat.rows) == sum(found.heat.totals)
    assert any(found.heat.slow)
    assert found.graph.slow >= pause.total


def test_a_heat_map_is_of_a_trial_in_which_something_was_sampled() -> None:
    run = run_of_two()
    cell = next(iter(run.manifest.plan.cells.values()))
    first, second = (profiled(simulated_recording(cell, GOOD, position=100 + at, seed=at)) for at in range(2))
    assert second.traffic is not None
    whole = stacks_of(VANILLA, second.traffic.window_unix_ns)
    empty = Stacks({}, whole.slices)
    report = build_report(run)

    def read(of_first: Stacks, of_second: Stacks) -> ProfileReport:
        by_name = {"profiles/0100.cpu.stacks.gz": of_first, "profiles/0101.cpu.stacks.gz": of_second}
        (found,) = profile_reports([first, second], by_name.__getitem__, TABLE, report.cells, ())
        return found

    assert read(empty, empty).heat is None
    heat = read(empty, whole).heat
    assert heat is not None
    assert sum(heat.totals) == whole.total


def _gone(_: str) -> Stacks:
    raise StoreError("profiles/x.stacks.gz is gone", hint="profile again")


@pytest.mark.parametrize(
    ("read", "why"),
    [(_gone, "is gone"), (lambda _: Stacks(), "nothing was sampled")],
)
def test_a_profile_without_stacks_says_why(read: Callable[[str], Stacks], why: str) -> None:
    run = run_of_two()
    cell = next(iter(run.manifest.plan.cells.values()))
    report = build_report(run)
    one = profiled(simulated_recording(cell, GOOD, position=100))
    (found,) = profile_reports([one], read, TABLE, report.cells, report.comparisons)
    assert why in found.problem
    assert found.libraries == ()
    assert found.graph.nodes == ()
    assert ProfileReport.model_validate_json(found.model_dump_json()) == without_graph(found)


@pytest.mark.parametrize(
    ("profiler", "subject", "runtime", "library"),
    [
        ("async-profiler 4.6", "server", None, "JVM runtime"),
        ("perf 6.1", "server", "jvm", "JVM runtime"),
        ("perf 6.1", "server", "node", OTHER),
        ("perf 6.1", "server", None, OTHER),
        ("perf 6.1", "engine", "jvm", OTHER),
    ],
)
def test_functions_named_as_those_of_a_jvm_are_its_own_in_profiles_of_jvms(
    profiler: str, subject: str, runtime: str | None, library: str
) -> None:
    run = run_of_two()
    one = profiled(simulated_recording(next(iter(run.manifest.plan.cells.values())), GOOD, position=100))
    assert one.profile is not None
    facts = one.profile.model_copy(update={"profiler": profiler, "subject": subject})
    said = RuntimeFacts.model_validate({"runtime": runtime}) if runtime else None
    one = one.model_copy(update={"profile": facts, "runtime": said})
    stacks = Stacks.from_text("start_thread;ObjectPool::get 100\n")
    (found,) = profile_reports([one], lambda _: stacks, TABLE, build_report(run).cells, ())
    assert found.libraries[0].name == library


def test_the_view_survives_json_without_its_tree() -> None:
    for one in made():
        assert ProfileReport.model_validate_json(one.model_dump_json()) == without_graph(one)
        assert "nodes" not in one.model_dump_json()
