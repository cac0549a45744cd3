"""Screens: the chosen variants, the axes that are said to matter, and how often an axis does not."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from rich.console import Console

from redline.analysis import build_report
from redline.errors import UsageError
from redline.model import Option, OptionValue, Report, Run, Suite, Variant
from redline.model.jvm import FlagSet
from redline.render import summary
from redline.render.terminal import render
from redline.stats import ALPHA, holm_adjust
from redline.stats.factorial import aliases, coded, main_effects, resolution
from redline.suite import make_plan
from redline.suite.screening import axes_of_server, by_server, runs_needed, screened
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, SIMPLE_GET, STEADY, simulated_recording, simulated_run, simulated_variant

COMPACT = FlagSet(name="compact", flags=("-XX:+UseCompactObjectHeaders",))


def suite_of(axes: dict[str, tuple[OptionValue, ...]], flags: tuple[FlagSet | None, ...] = (None,)) -> Suite:
    plain = simulated_variant("rust.hyper")
    options = {name: Option(values=values, default=values[0]) for name, values in axes.items()}
    start = plain.catalogued.start.model_copy(update={"command": ("{java}", "{port}")})
    entry = plain.catalogued.model_copy(update={"options": options, "runtime": "jvm", "start": start})
    variants = tuple(
        plain.model_copy(
            update={"entry": entry, "options": dict(zip(axes, values, strict=True)), "flags": one_of_flags}
        )
        for values in product(*axes.values())
        for one_of_flags in flags
    )
    made = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), scenarios=(SIMPLE_GET,), ceiling=None)
    return made.manifest.plan.suite.model_copy(update={"variants": variants, "baseline": None, "trials": 4})


FOUR: dict[str, tuple[OptionValue, ...]] = {
    "jdk": (17, 21, 24, 25),
    "gc": ("Parallel", "G1", "Shenandoah", "Z"),
    "heap": ("512m", "2g"),
    "log": ("off", "on"),
}


def factors_of(variants: tuple[Variant, ...]) -> tuple[list[str], list[np.ndarray]]:
    axes = axes_of_server(variants)
    return list(axes.values), coded(axes.runs, axes.levels)


def test_a_quarter_of_four_axes_separates_their_main_effects() -> None:
    screen = screened(suite_of(FOUR))
    assert (len(screen.variants), screen.screened) == (16, {"rust.hyper": 64})
    _, factors = factors_of(screen.variants)
    columns = np.column_stack([np.ones(16), *factors])
    assert np.allclose(columns.T @ columns, 16 * np.eye(columns.shape[1]), atol=1e-6)
    assert resolution(factors) == "III"


def test_the_order_of_a_suite_stays_and_a_seed_draws_the_same() -> None:
    suite = suite_of(FOUR)
    slugs = [variant.slug for variant in suite.variants]
    taken = [variant.slug for variant in screened(suite).variants]
    assert taken == sorted(taken, key=slugs.index) == [variant.slug for variant in screened(suite).variants]


@pytest.mark.parametrize(("axes", "runs", "said"), [(3, 4, "III"), (4, 8, "IV"), (5, 8, "III")])
def test_axes_of_two_values_take_a_regular_fraction(axes: int, runs: int, said: str) -> None:
    screen = screened(suite_of({f"a{at}": ("x", "y") for at in range(axes)}))
    names, factors = factors_of(screen.variants)
    assert (len(names), len(screen.variants), resolution(factors)) == (axes, runs, said)
    assert all(bool(pairs) == (said == "III") for pairs in aliases(factors))


def test_half_a_cube_mixes_each_axis_with_the_interaction_of_the_others() -> None:
    _, factors = factors_of(screened(suite_of({"a": ("x", "y"), "b": ("x", "y"), "c": ("x", "y")})).variants)
    assert aliases(factors) == [[(1, 2)], [(0, 2)], [(0, 1)]]


def test_without_its_package_a_screen_is_refused_with_what_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydoe", None)
    with pytest.raises(UsageError) as refused:
        screened(suite_of(FOUR))
    assert refused.value.message.endswith("needs the package pydoe, which is not installed")
    assert refused.value.hint == "pip install 'redline[screen]'; in a checkout: uv sync --extra screen"


def test_combinations_that_cannot_be_are_none_of_the_fraction() -> None:
    suite = suite_of(
        {"jdk": (21, 25), "gc": ("Parallel", "G1", "Shenandoah", "Z"), "heap": ("512m", "2g")}, (None, COMPACT)
    )
    screen = screened(suite)
    assert screen.screened == {"rust.hyper": 24}
    assert all(not variant.misfit for variant in screen.variants)
    names, factors = factors_of(screen.variants)
    assert names == ["jdk", "gc", "heap", "flags"]
    columns = np.column_stack([np.ones(len(screen.variants)), *factors])
    assert np.linalg.matrix_rank(columns) == columns.shape[1]


@pytest.mark.parametrize("axes", [{"a": (1, 2)}, {"a": (1, 2, 3, 4), "b": (1, 2, 3, 4)}, {}])
def test_a_screen_that_would_leave_nothing_out_is_refused(axes: dict[str, tuple[OptionValue, ...]]) -> None:
    with pytest.raises(UsageError, match="would leave nothing out") as caught:
        screened(suite_of(axes))
    assert "leave out --screen" in caught.value.hint


def test_a_baseline_that_is_left_out_is_none() -> None:
    suite = suite_of(FOUR)
    taken = [variant.slug for variant in screened(suite).variants]
    left_out = next(variant.slug for variant in suite.variants if variant.slug not in taken)
    for slug, baseline in ((taken[0], taken[0]), (left_out, None)):
        screen = screened(suite.model_copy(update={"baseline": slug}))
        assert screen.baseline == baseline
        make_plan(screen)


def test_more_runs_than_half_are_no_fraction() -> None:
    assert runs_needed([4, 4, 2, 2], 64) == 16
    assert runs_needed([3, 3, 2, 2], 36) == 12
    assert runs_needed([2, 2], 4) is None
    assert runs_needed([4, 2, 3], 17) is None


def run_of(
    suite: Suite,
    rates: dict[tuple[str, str], float],
    trials: int = 4,
    like: Behaviour = GOOD,
    unavailable: Sequence[Variant] = (),
) -> Run:
    """A run of the suite's variants, all alike. `rates` are factors of the rate by an axis and its value."""
    reasons = {variant.slug: "no JDK" for variant in unavailable}
    plan = make_plan(suite.model_copy(update={"trials": trials}), reasons)
    rng = np.random.default_rng(7)
    recordings = []
    for trial in plan.trials:
        cell = plan.cells[trial.cell_id]
        factor = float(np.prod([rates.get(each, 1.0) for each in cell.variant.settings.items()]))
        rate = like.rate_per_s * factor * float(np.exp(rng.normal(0, 0.01)))
        behaviour = replace(like, rate_per_s=rate)
        recordings.append(
            simulated_recording(cell, behaviour, round_=trial.round, position=trial.position, seed=trial.seed)
        )
    made = simulated_run({"rust.hyper": GOOD}, loads=(SATURATE,), scenarios=(SIMPLE_GET,), ceiling=None)
    command = "redline run suites/clojure.yaml --screen -o runs/screen --trials 4"
    manifest = made.manifest.model_copy(update={"plan": plan, "command": command})
    return Run(manifest=manifest, recordings=tuple(recordings))


PLANTED = {("gc", "Parallel"): 1.2, ("gc", "Z"): 0.9, ("heap", "512m"): 0.93}


@pytest.fixture(scope="module")
def planted() -> Report:
    return build_report(run_of(screened(suite_of(FOUR)), PLANTED))


def test_what_was_planted_is_found_and_measured(planted: Report) -> None:
    (one,) = (each for each in planted.main_effects if each.metric == "throughput")
    assert (one.server, one.variants, one.possible, one.resolution) == ("rust.hyper", 16, 64, "III")
    found = {effect.axis: effect for effect in one.effects}
    assert {axis: effect.verdict == "matters" for axis, effect in found.items()} == {
        "jdk": False,
        "gc": True,
        "heap": True,
        "log": False,
    }
    truths = {"G1": 1 / 1.2, "Shenandoah": 1 / 1.2, "Z": 0.9 / 1.2}
    for level in found["gc"].levels:
        assert level.ratio.low is not None
        assert level.ratio.high is not None
        assert level.ratio.low < truths[level.value] < level.ratio.high
    assert found["heap"].resolution is not None
    assert found["heap"].resolution < 0.02


def test_the_report_says_it_in_words_with_the_command_of_the_full_matrix(planted: Report) -> None:
    said = render(summary(planted), Console(width=200)).plain
    assert "gc and heap matter; " in said
    command = "redline run suites/clojure.yaml --trials 4 -w jdk=17 -w log=off"
    assert planted.next_command == command
    assert command in said
    assert "gc: Z against Parallel" in said
    assert "Resolution III" in said
    assert planted.effects == ()


def test_one_trial_of_each_is_no_measure_of_their_scatter() -> None:
    suite = screened(suite_of({"a": ("x", "y"), "b": ("x", "y"), "c": ("x", "y")}))
    report = build_report(run_of(suite, {}, trials=1))
    assert {one.refused for one in report.main_effects} == {
        "one trial of each variant does not show how trials scatter"
    }


def test_a_single_axis_without_a_screen_has_none() -> None:
    report = build_report(run_of(suite_of({"a": ("x", "y")}), {}))
    assert (report.main_effects, report.next_command) == ((), "")


def test_a_server_of_which_one_variant_can_run_has_none() -> None:
    suite = suite_of({"jdk": (17, 21), "gc": ("G1", "Z")})
    assert build_report(run_of(suite, {}, unavailable=suite.variants[2:])).main_effects
    assert build_report(run_of(suite, {}, unavailable=suite.variants[1:])).main_effects == ()


@pytest.mark.parametrize(
    ("achieved", "shown"), [(1.0, {"p50", "p99", "cpu-per-request"}), (0.97, {"cpu-per-request"}), (1.04, set())]
)
def test_what_strayed_from_its_schedule_has_no_main_effects(achieved: float, shown: set[str]) -> None:
    """A server that falls behind still shows its cost per request; a server that works off a backlog does not."""
    suite = suite_of({"jdk": (17, 21), "gc": ("G1", "Z")}).model_copy(update={"loads": (STEADY,)})
    report = build_report(run_of(suite, {}, trials=3, like=replace(GOOD, achieved=achieved)))
    assert {one.metric.value for one in report.main_effects if one.effects} == shown
    assert {"due" in one.refused for one in report.main_effects if not one.effects} <= {True}


def test_combinations_that_cannot_be_are_none_of_a_full_matrix() -> None:
    report = build_report(run_of(suite_of({"jdk": (21, 25), "heap": ("512m", "2g")}, (None, COMPACT)), {}, trials=2))
    assert {(one.variants, one.possible) for one in report.main_effects} == {(6, 6)}


def test_one_trial_of_each_variant_of_a_full_matrix_finds_what_was_planted() -> None:
    suite = suite_of({"jdk": (17, 21, 25), "gc": ("Parallel", "G1", "Shenandoah", "Z")})
    report = build_report(run_of(suite, PLANTED, trials=1))
    (one,) = (each for each in report.main_effects if each.metric == "throughput")
    assert (one.variants, one.possible, one.resolution, report.next_command) == (12, 12, "V", "")
    jdk, gc = one.effects
    assert (jdk.axis, jdk.verdict, gc.axis, gc.verdict) == ("jdk", "not shown", "gc", "matters")
    assert {level.value: level.ratio.value for level in gc.levels} == pytest.approx(
        {"G1": 1 / 1.2, "Shenandoah": 1 / 1.2, "Z": 0.9 / 1.2}, rel=0.03
    )
    said = render(summary(report), Console(width=200)).plain
    assert "gc matters; jdk does not show" in said
    assert "12 of 12 variants" in said
    assert "Resolution" not in said, "nothing is mixed"


def simulated(rng: np.random.Generator, planted: float, rounds: int = 3) -> list[float]:
    """Holm's p-values of four axes of which only the first matters, by `planted`; trials scatter by 5%."""
    screen = screened(suite_of(FOUR))
    axes = axes_of_server(screen.variants)
    runs = [(block, run) for block in range(rounds) for run in axes.runs]
    values = [planted * (run[0] == 0) + 0.1 * block + rng.normal(0, 0.05) for block, run in runs]
    found = main_effects(values, [block for block, _ in runs], coded([run for _, run in runs], axes.levels))
    assert found is not None
    return list(holm_adjust([effect.p for effect in found if effect]))


@pytest.mark.long
def test_what_does_not_matter_is_called_so_as_often_as_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = screened(suite_of(FOUR))
    monkeypatch.setattr("tests.unit.suite.test_screening.screened", lambda _suite: screen)
    rng = np.random.default_rng(3)
    times = 100
    wrong = sum(min(simulated(rng, 0.0)) < ALPHA for _ in range(times))
    assert wrong <= times * ALPHA + 3 * (times * ALPHA * (1 - ALPHA)) ** 0.5
    with_one = [simulated(rng, 0.1) for _ in range(times)]
    assert sum(ps[0] < ALPHA for ps in with_one) > 0.9 * times
    wrong = sum(min(ps[1:]) < ALPHA for ps in with_one)
    assert wrong <= times * ALPHA + 3 * (times * ALPHA * (1 - ALPHA)) ** 0.5


def test_servers_are_screened_each_for_themselves() -> None:
    suite = suite_of(FOUR)
    alone = simulated_variant("rust.axum")
    screen = screened(suite.model_copy(update={"variants": (*suite.variants, alone)}))
    assert {name: len(variants) for name, variants in by_server(screen.variants).items()} == {
        "rust.hyper": 16,
        "rust.axum": 1,
    }


def test_one_server_over_two_protocols_is_two_servers_of_a_screen() -> None:
    suite = suite_of({"a": ("x", "y"), "b": ("x", "y"), "c": ("x", "y")})
    second = tuple(variant.model_copy(update={"http": "2"}) for variant in suite.variants)
    screen = screened(suite.model_copy(update={"variants": (*suite.variants, *second)}))
    assert {name: len(variants) for name, variants in by_server(screen.variants).items()} == {
        "rust.hyper": 4,
        "rust.hyper+http2": 4,
    }


def test_axes_that_the_trials_do_not_separate_have_no_effect() -> None:
    runs = [(0, 0), (1, 1)] * 3
    found = main_effects([1.0, 2.0, 1.1, 2.1, 0.9, 1.9], [0] * 6, coded(runs, [2, 2]))
    assert found == (None, None)
