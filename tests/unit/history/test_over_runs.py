"""Many runs as a history: their order, their eras, what is compared, and how that is reported."""

from dataclasses import replace

import pytest

from redline.document.blocks import Medium
from redline.history import sections as lines
from redline.history.over_runs import SeenRun, build_history, regressions, see, silent, unreported, with_reported
from redline.model import Environment, Metric, Run, Skipped, Verdict
from redline.model.history import History, LeftOut, Reported, ReportedRegression
from redline.render import markdown
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.compared import Cost, compared_run
from tests.fakes.histories import CELL, comparison, level_series, seen
from tests.fakes.plugins import FACTS
from tests.fakes.recordings import SATURATE, STEADY, simulated_environment, simulated_run

HERE = simulated_environment()
THERE = HERE.model_copy(update={"cpu_model": "Another CPU"})
TUNED = HERE.model_copy(update={"governor": "performance"})


def rendered(made: History) -> str:
    return markdown.render(lines.OUTLINE.text(made, Medium.MARKDOWN)).decode()


def nightly(speeds: list[float], environments: dict[int, Environment] | None = None) -> list[SeenRun]:
    """A run a night; an environment stays until the next."""
    series, machine, runs = level_series(speeds, 7, between=0.003, trial_effect=0.003), HERE, []
    for place, level in enumerate(series):
        machine = (environments or {}).get(place, machine)
        runs.append(seen(place, level, machine))
    return runs


def history(runs: list[SeenRun]) -> History:
    return build_history("runs", runs)


SLOWER = nightly([1000.0] * 8 + [900.0] * 4)


def test_runs_are_in_the_order_of_their_start() -> None:
    made = history(SLOWER[::-1])
    assert [run.name for run in made.runs] == [f"run-{place:02}" for place in range(12)]
    assert made == history(SLOWER)
    (cell,) = made.cells
    assert [point.run for point in cell.points] == list(range(12))
    assert [(change.run, change.verdict, change.runs) for change in cell.changes] == [(8, Verdict.SLOWER, 4)]
    assert (cell.regressed, cell.current) == (True, True)
    assert (cell.changes[0].before.n, cell.changes[0].after.n) == (40, 20)


def test_a_regression_stands_until_it_is_mended_or_accepted() -> None:
    assert [one.slug for one in regressions(history(SLOWER))] == ["rust.hyper.SimpleGet.saturate"]
    assert len(regressions(history(SLOWER), recent=4)) == 1
    assert regressions(history(SLOWER), recent=3) == ()
    mended = nightly([1000.0] * 8 + [900.0] * 4 + [1000.0] * 4)
    assert [change.verdict for change in history(mended).cells[0].changes] == [Verdict.SLOWER, Verdict.FASTER]
    assert regressions(history(mended)) == ()


def test_a_regression_is_new_until_it_is_reported_and_where_it_grows_later() -> None:
    begun = history(nightly([1000.0] * 8 + [900.0]))
    worse = regressions(begun)
    assert unreported(worse, begun, Reported()) == worse
    known = with_reported(worse, begun, Reported())
    assert unreported(worse, begun, known) == (), "it began in the newest run of the report"
    later = history(SLOWER)
    assert unreported(regressions(later), later, known) == ()
    grown = history(nightly([1000.0] * 8 + [900.0] * 4 + [800.0] * 4))
    assert unreported(regressions(grown), grown, known) == regressions(grown)
    faster = history(nightly([1000.0] * 8 + [900.0] * 4 + [940.0] * 4))
    assert unreported(regressions(faster), faster, known) == (), "a change for the better is none for the worse"


def test_what_was_reported_of_others_stays() -> None:
    made = history(SLOWER)
    other = ReportedRegression(cell_id="other", metric=Metric.P99, newest_unix_ns=5)
    kept = with_reported(regressions(made), made, Reported(regressions=(other,)))
    assert kept.regressions[0] == other
    assert [(each.cell_id, each.newest_unix_ns) for each in kept.regressions[1:]] == [
        (made.cells[0].cell_id, made.runs[-1].started_unix_ns)
    ]


def test_half_of_what_was_lost_mends_nothing() -> None:
    half = history(nightly([1000.0] * 8 + [900.0] * 4 + [940.0] * 4))
    (cell,) = half.cells
    assert [change.verdict for change in cell.changes] == [Verdict.SLOWER, Verdict.FASTER]
    assert (cell.regressed, cell.regressed_since) == (True, 8)
    assert len(regressions(half, recent=8)) == 1
    assert regressions(half, recent=7) == ()
    assert ": 1 changed for the worse, 0 for the better" in lines.counted(half)
    assert "since run 9 of 16" in rendered(half)
    twice = history(nightly([1000.0] * 6 + [950.0] * 5 + [900.0] * 5 + [955.0] * 5)).cells[0]
    assert (len(twice.changes), twice.regressed_since) == (3, 6), "the first loss stands, the second is mended"


def test_another_world_begins_an_era() -> None:
    made = history(nightly([1000.0] * 8 + [900.0] * 4, {8: THERE}))
    assert [run.era for run in made.runs] == [0] * 8 + [1] * 4
    assert [era.first_run for era in made.eras] == [0, 8]
    assert made.eras[1].differs == ("cpu model: Simulated CPU @ 3.00GHz -> Another CPU",)
    assert made.cells[0].changes == ()
    assert "│" in lines.sparkline(made.cells[0], made)
    assert any("a new era, not compared with earlier runs, from run-08 on" in line for line in lines.overview(made))


def test_runs_of_two_machines_in_turn_are_two_eras() -> None:
    turns = {place: (HERE, THERE)[place % 2] for place in range(20)}
    speeds = [1000.0 if place % 2 == 0 else 2000.0 for place in range(14)] + [900.0, 2000.0] * 3
    made = history(nightly(speeds, turns))
    assert len(made.eras) == 2
    assert [(change.run, change.verdict) for change in made.cells[0].changes] == [(14, Verdict.SLOWER)]
    assert not made.cells[0].regressed, "the last run is of the other machine, where nothing changed"


def test_lesser_differences_stand_beside_a_change() -> None:
    made = history(nightly([1000.0] * 8 + [1100.0] * 4, {8: TUNED}))
    (change,) = made.cells[0].changes
    assert made.runs[8].environment_differs == ("governor: not known -> performance",)
    assert lines.other_changes(made.cells[0], change, made) == ("governor: not known -> performance",)
    assert lines.since(change, made) == "since run 9 of 12, run-08"
    assert lines.change_text(change).startswith("▲ faster +")


def test_another_build_stands_beside_a_change() -> None:
    series = level_series([1000.0] * 8 + [900.0] * 4, 7, between=0.003, trial_effect=0.003)
    made = history([seen(place, one, build="old" if place < 8 else "new") for place, one in enumerate(series)])
    assert lines.other_changes(made.cells[0], made.cells[0].changes[0], made) == ("build: old -> new",)


@pytest.mark.parametrize(
    ("factor", "searched"), [(0.9, "aaaaaaaaaaaa bbbbbbbbbbbb"), (1.1, "bbbbbbbbbbbb aaaaaaaaaaaa")]
)
def test_the_search_for_the_commit_stands_beside_a_change_of_revisions(factor: float, searched: str) -> None:
    series = level_series([1000.0] * 8 + [factor * 1000] * 4, 7, between=0.003, trial_effect=0.003)
    made = history([seen(place, one, build=("a" if place < 8 else "b") * 40) for place, one in enumerate(series)])
    built, commit = lines.other_changes(made.cells[0], made.cells[0].changes[0], made)
    assert built == "build: aaaaaaaaaaaa -> bbbbbbbbbbbb"
    assert commit == f"the commit: redline bisect {searched} --metric throughput, with the same flags"


@pytest.mark.parametrize(
    ("metric", "request_name", "flags"),
    [
        (Metric.CPU_PER_REQUEST, "", "--metric cpu"),
        (Metric.GAP_P99, "search items", "--metric 'gap p99' -m 'search items'"),
        (Metric.MEMORY, "", None),
    ],
)
def test_the_search_is_about_the_metric_and_the_request_that_changed(
    metric: Metric, request_name: str, flags: str | None
) -> None:
    series = level_series([1000.0] * 8 + [900.0] * 4, 7, between=0.003, trial_effect=0.003)
    made = history([seen(place, one, build=("a" if place < 8 else "b") * 40) for place, one in enumerate(series)])
    cell = made.cells[0].model_copy(update={"metric": metric, "request": request_name})
    searched = [text for text in lines.other_changes(cell, cell.changes[0], made) if "bisect" in text]
    expected = f"the commit: redline bisect aaaaaaaaaaaa bbbbbbbbbbbb {flags}, with the same flags"
    assert searched == ([] if flags is None else [expected])


def test_a_cell_has_the_name_of_its_request_where_there_are_several() -> None:
    run = compared_run({"home": Cost(), "search": Cost(), "mix": Cost()})
    requests = {sight.slug: sight.request for sight in see(run, "runs/one", lambda _: True).cells.values()}
    assert requests == {"B.home.load": "home", "B.search.load": "search", "B.mix.load": ""}
    (only,) = see(comparison(0), "runs/one", lambda _: True).cells.values()
    assert only.request == ""


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ("c", ("the commit: redline bisect bbbbbbbbbbbb aaaaaaaaaaaa --metric throughput, with the same flags",)),
        ("d", ()),
    ],
)
def test_another_build_of_the_baseline_stands_beside_a_change(own: str, said: tuple[str, ...]) -> None:
    """A server may be slower only beside its baseline, which became faster: its own commits are not searched."""
    series = level_series([1000.0] * 8 + [900.0] * 4, 7, between=0.003, trial_effect=0.003)
    builds = [("c" * 40, "a" * 40)] * 8 + [(own * 40, "b" * 40)] * 4
    runs = [
        seen(place, one, build=build, baseline_build=baseline_build)
        for place, (one, (build, baseline_build)) in enumerate(zip(series, builds, strict=True))
    ]
    made = history(runs)
    (change,) = made.cells[0].changes
    changed = ("build: cccccccccccc -> dddddddddddd",) if own == "d" else ()
    baseline = "baseline: aaaaaaaaaaaa -> bbbbbbbbbbbb"
    assert lines.other_changes(made.cells[0], change, made) == (*changed, baseline, *said)
    assert made.cells[0].points[-1].baseline_build == "b" * 40


def test_a_history_knows_the_builds_of_both_servers_of_a_comparison() -> None:
    run = comparison(0)
    a, b = (FACTS.model_copy(update={"build": build}) for build in ("a", "b"))
    duets = tuple(duet.model_copy(update={"servers": (a, b, a)}) for duet in run.duets)
    seen_run = see(run.model_copy(update={"duets": duets}), "runs/one", lambda _: True)
    (sight,) = seen_run.cells.values()
    assert (sight.build, sight.baseline_build) == ("b", "a")


def test_a_cell_that_its_suite_no_longer_has_does_not_fail() -> None:
    gone = replace(seen(12, "unused"), cells={}, suite_text="without it")
    assert not history([*SLOWER, gone]).cells[0].current
    assert regressions(history([*SLOWER, gone])) == ()
    assert len(regressions(history([*SLOWER, replace(gone, suite="another")]))) == 1


def test_a_run_of_a_part_of_the_suite_mends_nothing() -> None:
    """`-s`, `-d` or `--quick`: the suite is the same, so the cell is no further from it than before."""
    assert len(regressions(history([*SLOWER, replace(seen(12, "unused"), cells={})]))) == 1


def test_a_cell_that_the_last_run_skipped_is_silent_and_not_gone() -> None:
    """A server that can no longer be built has not passed."""
    slug = "rust.hyper.SimpleGet.saturate"
    broken = replace(seen(12, "unused"), cells={}, skipped={slug: "cargo failed"})
    made = history([*SLOWER, broken])
    assert [one.points[-1].missing for one in silent(made)] == ["skipped: cargo failed"]
    assert len(regressions(made)) == 1
    mended = replace(seen(13, "unused"), cells={}, suite_text="without it")
    assert not history([*SLOWER, broken, mended]).cells[0].current, "then the suite dropped it"
    instead = {"another": replace(seen(13, "unused").cells[CELL], levels={})}
    assert not history([*SLOWER, broken, replace(mended, cells=instead)]).cells[0].current


def test_what_a_run_skipped_is_seen_with_it() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=1, loads=(SATURATE,))
    skipped = (Skipped(slug="rust.axum.SimpleGet.saturate", reason="cargo failed"),)
    plan = run.manifest.plan.model_copy(update={"skipped": skipped})
    broken = run.model_copy(update={"manifest": run.manifest.model_copy(update={"plan": plan})})
    assert see(broken, "there", lambda _cell: True).skipped == {"rust.axum.SimpleGet.saturate": "cargo failed"}


def test_only_a_recent_change_of_its_own_era_is_recent() -> None:
    """Two machines in turn: a recent change of the other machine does not make an old regression a new one."""
    turns = {place: (HERE, THERE)[place % 2] for place in range(24)}
    here = [1000.0] * 6 + [900.0] * 6
    there = [2000.0] * 10 + [2300.0] * 2
    made = history(nightly([each for pair in zip(there, here, strict=True) for each in pair], turns))
    assert made.cells[0].regressed
    assert [change.run for change in made.cells[0].changes] == [13, 20]
    assert len(regressions(made, recent=6)) == 1
    assert regressions(made, recent=3) == ()


def test_what_the_last_run_lacks_is_silent() -> None:
    made = history([*SLOWER, seen(12, "the cell is invalid")])
    assert [one.points[-1].missing for one in silent(made)] == ["the cell is invalid"]
    assert lines.last_value(made.cells[0]) == "the cell is invalid"
    assert lines.sparkline(made.cells[0], made).endswith("·")


def test_a_run_is_seen_in_its_telling_metrics() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=2, loads=(SATURATE, STEADY))
    found = see(run, "there", lambda _cell: True)
    assert {one.slug: list(one.levels) for one in found.cells.values()} == {
        "rust.hyper.SimpleGet.saturate": [Metric.THROUGHPUT, Metric.CPU_PER_REQUEST],
        "rust.hyper.SimpleGet.steady": [Metric.P99, Metric.CPU_PER_REQUEST],
        "oracle.null.SimpleGet.saturate": [Metric.THROUGHPUT, Metric.CPU_PER_REQUEST],
        "oracle.null.SimpleGet.steady": [Metric.P99, Metric.CPU_PER_REQUEST],
    }
    assert all(not isinstance(says, str) for one in found.cells.values() for says in one.levels.values())
    assert see(run, "there", lambda cell: cell.role == "ceiling").cells.keys() < found.cells.keys()


@pytest.mark.parametrize(
    ("behaviour", "said"),
    [
        (replace(GOOD, outcomes={"timeout": 8000}), "the cell is invalid"),
        (replace(GOOD, perturbed=True), "measured with a monitor that perturbs"),
    ],
)
def test_what_is_not_compared_says_why(behaviour: Behaviour, said: str) -> None:
    run = simulated_run({"rust.hyper": behaviour}, trials=2, loads=(SATURATE,), ceiling=None)
    (sight,) = see(run, "there", lambda _cell: True).cells.values()
    assert set(sight.levels.values()) == {said}


def test_a_sparkline_has_a_bar_for_each_run() -> None:
    made = history(SLOWER)
    drawn = lines.sparkline(made.cells[0], made)
    assert len(drawn) == 12
    assert max(drawn[8:]) < min(drawn[:8])
    assert len(lines.sparkline(made.cells[0], made, most=5)) == 5
    flat = history(nightly([1000.0] * 12))
    assert len(set(lines.sparkline(flat.cells[0], flat))) <= 3, "noise is no mountain"


def test_none_and_one_say_so() -> None:
    assert lines.overview(history([])) == ("no run below runs",)
    (line,) = lines.overview(history(SLOWER[:1]))
    assert "one run below runs, run-00: there is nothing to compare it with yet" in line
    assert lines.single_run(history(SLOWER[:1])) == ("rust.hyper.SimpleGet.saturate",)


def test_what_has_too_few_runs_is_not_called_unchanged() -> None:
    assert lines.counted(history(SLOWER)).endswith(": 1 changed for the worse, 0 for the better, 0 did not change")
    early = lines.counted(history(SLOWER[:3]))
    assert early.endswith("0 for the better, 0 did not change, 1 with too few runs to tell (4 of an era)")
    begun = history(nightly([1000.0] * 8 + [900.0] * 4 + [1000.0], {12: THERE}))
    assert lines.counted(begun).endswith("0 did not change, 1 with too few runs to tell (4 of an era)")


def test_markdown_shows_what_changed_first() -> None:
    left_out = LeftOut(folder="runs/*bad*", reason="@someone <b>did</b> it")
    text = rendered(build_history("runs", SLOWER, [left_out]))
    rows = [line for line in text.splitlines() if line.startswith("| **")]
    assert len(rows) == 1
    assert "▼ slower" in rows[0]
    assert "since run 9 of 12, run-08" in rows[0]
    assert "**1 metric followed: 1 changed for the worse, 0 for the better, 0 did not change.**" in text
    assert "<b>" not in text
    assert "@someone" not in text
    assert r"runs/\*bad\*" in text


def test_markdown_of_nothing_is_short() -> None:
    assert rendered(history([])) == "## History\n\n- no run below runs\n"


def test_json_is_read_back() -> None:
    made = history(SLOWER)
    assert History.model_validate_json(made.model_dump_json()) == made
    assert made.cells[0].cell_id == CELL


def compared(*runs: Run) -> History:
    return history([see(run, "there", lambda _cell: True) for run in runs])


def cpu_ratios(*runs: Run) -> list[tuple[str, tuple[int, ...]]]:
    """The comparisons by name, and the runs that have them."""
    cells = [cell for cell in compared(*runs).cells if cell.metric is Metric.CPU_PER_REQUEST]
    return [(cell.name, tuple(point.run for point in cell.points)) for cell in cells]


def test_a_ratio_has_a_value_for_each_run_and_change_points() -> None:
    made = compared(*(comparison(place, 1.05 if place > 3 else 1.0) for place in range(7)))
    assert {cell.metric for cell in made.cells} == {Metric.CPU_PER_REQUEST, Metric.THROUGHPUT}
    cell = next(cell for cell in made.cells if cell.metric is Metric.CPU_PER_REQUEST)
    (change,) = cell.changes
    assert (change.run, change.verdict, change.before.unit) == (4, Verdict.SLOWER, "ratio")
    assert (change.before.n, change.after.n) == (24, 18), "fresh starts"
    assert change.ratio.value == pytest.approx(1.05, abs=0.005)
    assert change.before.value == pytest.approx(1.0, abs=0.005)
    assert regressions(made)
    assert lines.last_value(cell).startswith("+5."), "not a level"
    assert "B.home.load against A" in rendered(made)


def test_a_ratio_that_stays_has_no_change() -> None:
    assert not any(cell.changes for cell in compared(*(comparison(place, 1.05) for place in range(8))).cells)


def test_a_comparison_of_other_commands_is_another_one() -> None:
    """Flags call any two servers A and B."""
    runs = [comparison(0), comparison(1), comparison(2, b="./c --port {port}"), comparison(3)]
    assert sorted(cpu_ratios(*runs)) == [("B.home.load against A", (0, 1, 3)), ("B.home.load against A", (2,))]
    assert all(cell.current for cell in compared(*runs, comparison(4, b="./c --port {port}")).cells)


def test_servers_that_a_suite_names_are_known_by_their_names() -> None:
    runs = [comparison(0, kind="run"), comparison(1, kind="run", b="./c --port {port}")]
    assert cpu_ratios(*runs) == [("B.home.load against A", (0, 1))]


def test_a_comparison_is_the_same_however_long_it_is_measured() -> None:
    run = comparison(1)
    longer = {
        cell_id: cell.under(cell.load.model_copy(update={"duration_ns": 2 * cell.load.duration_ns}))
        for cell_id, cell in run.manifest.plan.cells.items()
    }
    plan = run.manifest.plan.model_copy(update={"cells": longer})
    changed = run.model_copy(update={"manifest": run.manifest.with_plan(plan)})
    assert cpu_ratios(comparison(0), changed) == [("B.home.load against A", (0, 1))]


def test_a_comparison_without_a_whole_start_says_so() -> None:
    made = compared(comparison(0), comparison(1).model_copy(update={"duets": ()}))
    assert [cell.points[-1].missing for cell in made.cells if cell.metric is Metric.CPU_PER_REQUEST] == [
        "no start with both was measured"
    ]
    assert silent(made)
