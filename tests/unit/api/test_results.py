"""The results of the functions: a number is there, or an error says why not."""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import get_args

import pytest

from redline.analysis import build_report
from redline.api.results import Changes, RunResult, SearchResult
from redline.defaults import DuetMetric
from redline.errors import NotKnownError, RedlineError, StoreError, UsageError
from redline.limits.ratios import limit_comparisons
from redline.model import Estimate, Metric, ObjectiveResult, Report, Skipped, Verdict
from redline.model.estimate import DuetComparison
from redline.model.limits import LimitReport
from redline.render.renderers import as_html
from tests.fakes import limits, reports
from tests.fakes.compared import Cost, compared_run
from tests.fakes.published import published
from tests.fakes.stored import kept


def of(report: Report) -> RunResult:
    return RunResult(report, None)


def compared(**costs: float) -> RunResult:
    return of(build_report(compared_run({name: Cost(factor) for name, factor in costs.items()}), ""))


def test_a_level_is_that_of_the_report() -> None:
    result = of(reports.healthy()).select("rust.axum", "SimpleGet", "saturate")
    (cell,) = result.cells
    for metric, amount in ((Metric.P99, result.p99), (Metric.P50, result.p50), (Metric.THROUGHPUT, result.throughput)):
        estimate = cell.estimates[metric]
        assert (amount.value, amount.low, amount.high) == (estimate.value, estimate.low, estimate.high)
    assert result.cpu_per_request.unit == "ns"


def test_a_number_of_several_cells_is_refused_with_their_names() -> None:
    with pytest.raises(NotKnownError, match=r"p99 is of \d+ cells: .*rust\.hyper"):
        _ = of(reports.healthy()).p99
    with pytest.raises(UsageError, match=r"nothing is called 'rust\.axam'") as refused:
        of(reports.healthy()).select("rust.axam")
    assert "did you mean `rust.axum`?" in refused.value.hint


def test_an_invalid_cell_has_no_number_and_says_why() -> None:
    result = of(reports.doubtful())
    assert not result.valid
    invalid = next(cell for cell in result.cells if not cell.valid)
    chosen = result.select(invalid.slug)
    assert chosen.findings[0].grade == "invalid"
    for name in ("p99", "throughput", "errors", "cpu_per_request"):
        with pytest.raises(NotKnownError, match="is not known: ") as refused:
            getattr(chosen, name)
        assert refused.value.hint


def test_a_percentile_of_too_few_requests_is_refused() -> None:
    result = of(reports.healthy()).select("rust.axum", "SimpleGet", "saturate")
    (cell,) = result.cells
    few = {metric: value for metric, value in cell.estimates.items() if metric is not Metric.P9999}
    vars(result).update(cells=(cell.model_copy(update={"estimates": few}),))
    with pytest.raises(NotKnownError, match=r"p99\.99 (needs|was not measured)"):
        _ = result.p9999


def test_a_comparison_has_verdict_changes_and_levels() -> None:
    result = compared(home=1.2)
    assert result.verdict == "slower"
    assert result.slower
    assert "19%" < result.change.cpu_per_request < "21%"
    assert result.change.cpu_per_request.at_least > "15%"
    with pytest.raises(NotKnownError, match="is of 2 cells"):
        _ = result.p99
    assert result.select("A").throughput > 0


def test_a_result_does_not_change() -> None:
    result = compared(home=1.0)
    for name in ("report", "cells", "p99", "other"):
        with pytest.raises(AttributeError, match="a result does not change"):
            setattr(result, name, 5)
    assert result.select("A").cells != result.cells


def test_several_verdicts_have_to_be_chosen_among() -> None:
    result = compared(home=1.2, items=1.0)
    with pytest.raises(NotKnownError, match="there are several verdicts"):
        _ = result.verdict
    assert result.slower
    with pytest.raises(NotKnownError, match=r"is of 2 pairs: B\.home\.load, B\.items\.load") as several:
        _ = result.change.p50
    for slug in several.value.message.partition(": ")[2].split(", "):
        assert result.select(slug).change.p50
    assert result.select("home").verdict is Verdict.SLOWER
    assert not result.select("items").slower


def test_what_is_not_compared_has_no_verdict() -> None:
    for name in ("verdict", "slower"):
        with pytest.raises(NotKnownError, match="nothing is compared"):
            getattr(of(reports.alone()), name)
    with pytest.raises(NotKnownError, match="was not measured"):
        _ = of(reports.alone()).change.p99


def test_a_comparison_that_could_not_be_judged_has_not_passed() -> None:
    result = compared(home=1.0)
    unjudged = tuple(
        comparison.model_copy(update={"verdict": None, "ratio": None, "refused": "the server was not warm"})
        for comparison in result.report.comparisons
    )
    result = of(result.report.model_copy(update={"comparisons": unjudged}))
    for read in (lambda: result.slower, lambda: result.verdict, lambda: result.change.cpu_per_request):
        with pytest.raises(NotKnownError, match="the server was not warm") as known:
            read()
        assert known.value.hint == "give it more time"
    cells = tuple(cell.model_copy(update={"valid": False}) for cell in result.report.cells)
    failed = of(result.report.model_copy(update={"cells": cells}))
    for read in (lambda: failed.verdict, lambda: failed.change.cpu_per_request):
        with pytest.raises(NotKnownError) as refused:
            read()
        assert refused.value.hint == "see `findings` of the result"


@pytest.mark.parametrize(
    ("verdict", "unsettled", "starts", "says"),
    [
        (Verdict.INCONCLUSIVE, "the servers were not warm", 3, "the servers were not warm"),
        (None, "", 2, "2 of the 3 starts that a verdict needs"),
    ],
)
def test_a_comparison_that_is_too_short_says_what_it_lacks(
    verdict: Verdict | None, unsettled: str, starts: int, says: str
) -> None:
    report = compared(home=1.0).report
    ratio = Estimate(value=1.0, low=0.9, high=1.1, unit="ratio", n=starts, method="t")
    duet = DuetComparison(
        starts=starts, between_sd=None, blocks_se=None, control=None, alone=None, unsettled=unsettled, findings=()
    )
    lacking = {"verdict": verdict, "ratio": ratio, "duet": duet}
    result = of(
        report.model_copy(
            update={"comparisons": tuple(one.model_copy(update=lacking) for one in report.comparisons if one.primary)}
        )
    )
    for name in ("verdict", "slower"):
        with pytest.raises(NotKnownError, match=f"has no verdict: {says}"):
            getattr(result, name)


def test_a_server_that_could_not_be_built_has_not_passed() -> None:
    report = compared(home=1.0, items=1.0).report
    slug = "C.home.few"
    missing = (Skipped(slug=slug, reason="cargo failed", cause="machine"),)
    result = RunResult(report.model_copy(update={"skipped": missing}), None, not_compared={slug: "cargo failed"})
    assert not result.valid
    for name in ("verdict", "slower"):
        with pytest.raises(NotKnownError, match=r"C\.home\.few was not run: cargo failed"):
            getattr(result, name)
    chosen = result.select("items")
    assert chosen.valid
    assert not chosen.slower
    ruled_out = (Skipped(slug=slug, reason="it needs routes: 128", cause="suite"),)
    assert of(report.model_copy(update={"skipped": ruled_out})).valid
    assert not of(report.model_copy(update={"cells": ()})).valid


def test_objectives_are_met_missed_or_not_known() -> None:
    result = of(reports.healthy())
    states = {objective.state for cell in result.cells for objective in cell.objectives}
    assert states == {"met", "missed"}
    assert not result.met
    met = next(cell for cell in result.cells if cell.objectives[0].met)
    assert result.select(met.slug).met
    skipped = (Skipped(slug=f"C.{met.scenario}.{met.load}", reason="cargo failed", cause="machine"),)
    lacking = of(reports.healthy().model_copy(update={"skipped": skipped}))
    assert not lacking.met
    assert lacking.select(met.slug).met
    vars(lacking).update(cells=(met,))
    with pytest.raises(NotKnownError, match="was not run: cargo failed"):
        _ = lacking.met
    unknown: ObjectiveResult = met.objectives[0].unmet("the cell is invalid", known=False)
    vars(result).update(cells=(met.model_copy(update={"objectives": (unknown,)}),))
    with pytest.raises(NotKnownError, match="is not known to be met: the cell is invalid"):
        _ = result.met
    with pytest.raises(NotKnownError, match="there is no objective"):
        _ = compared(home=1.0).met


def test_what_a_condition_of_the_user_ended_is_not_met_without_an_objective_either() -> None:
    report = compared(home=1.0).report
    why = "errors > 5%"
    assert not of(report.model_copy(update={"run": report.run.model_copy(update={"aborted_by": why})})).met
    alone = reports.alone()
    first, *others = alone.cells
    trials = tuple(trial.model_copy(update={"aborted_by": why}) for trial in first.trials)
    cells = (first.model_copy(update={"trials": trials, "objectives": ()}), *others)
    assert not of(alone.model_copy(update={"cells": cells})).met


def searched(report: LimitReport) -> SearchResult:
    return SearchResult(report, None)


def test_a_limit_is_an_interval() -> None:
    result = searched(limits.alone())
    (answer,) = result.report.cells[0].limits[:1]
    chosen = result.select(answer.name)
    assert chosen.passed == answer.passed_per_s
    assert chosen.failed == answer.failed_per_s
    assert "/s" in str(chosen.passed)
    for name in ("verdict", "slower"):
        with pytest.raises(NotKnownError, match="nothing is compared"):
            getattr(result, name)


def test_a_limit_is_not_lower_only_if_all_were_found() -> None:
    suite, cells, found = limits.rivals((limits.ends_at(100, 101),), (limits.ends_at(100, 101),))
    report = limits.report(*found.values(), comparisons=limit_comparisons(cells, found, suite))
    assert not searched(report).slower
    assert not searched(report).select("B").slower
    baseline, other = report.cells
    broken = baseline.model_copy(update={"ended": "broken"})
    with pytest.raises(NotKnownError, match="A has no limit that could be compared: broken"):
        _ = searched(report.model_copy(update={"cells": (broken, other)})).select("B").slower
    missing = (Skipped(slug="C.SimpleGet.open", reason="cargo failed", cause="machine"),)
    for read in ("verdict", "slower"):
        with pytest.raises(NotKnownError, match=r"C\.SimpleGet\.open was not run: cargo failed"):
            getattr(searched(report.model_copy(update={"skipped": missing})), read)


def test_a_side_that_is_not_known_is_refused() -> None:
    report = limits.alone()
    (cell, *_), unknown = report.cells, limits.ends_at(None, 100.0)
    result = searched(report.model_copy(update={"cells": (cell.model_copy(update={"limits": (unknown,)}),)}))
    assert result.failed == 100
    with pytest.raises(NotKnownError, match="the rate that passed is not known"):
        _ = result.passed


def test_a_result_reads_as_in_a_terminal_and_is_saved_by_its_ending(tmp_path: Path) -> None:
    result = compared(home=1.2)
    assert "B needs" in str(result)
    assert repr(result).startswith("<RunResult: B needs")
    for name, begins in (
        ("a.html", b"<!doctype html>"),
        ("a.json", b"{"),
        ("a.md", b"**slower: "),
        ("a.xml", b"<?xml"),
        ("a.parquet", b"par1"),
    ):
        assert result.save(tmp_path / name).read_bytes().lower().startswith(begins)
    assert Report.model_validate_json((tmp_path / "a.json").read_bytes()) == published(result.report)
    assert result.save(str(tmp_path / "bare"), form="csv").is_file()


def test_a_notebook_shows_the_page_in_a_frame_and_the_text_above_it() -> None:
    result = compared(home=1.2)
    text = ""
    frame: dict[str, str | None] = {}

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "iframe":
                frame.update(attrs)

        def handle_data(self, data: str) -> None:
            nonlocal text
            text += data

    Reader().feed(result._repr_html_())
    page = str(frame["srcdoc"])
    assert page.encode() == as_html(result.report)
    assert "allow-same-origin" not in str(frame["sandbox"]), "the page reads nothing of the notebook"
    assert "20% more CPU per request" in text


def test_the_numbers_of_a_result_are_data_frames() -> None:
    result = compared(home=1.2)
    table = result.to_arrow()
    assert table.to_pylist() == result.to_polars().to_dicts() != []
    assert list(result.to_pandas().columns) == table.column_names


def test_kept_recordings_are_saved_in_their_formats(tmp_path: Path) -> None:
    run = compared_run({"home": Cost(1.0)})
    store = kept(tmp_path / "run", run)
    result = RunResult(build_report(run), store.folder)
    assert result.save(tmp_path / "a.hlog").read_bytes().startswith(b"#")
    (line, *_) = result.save(tmp_path / "a.ndjson").read_text().splitlines()
    assert json.loads(line)["phase"] == "measure"
    folder = result.save(tmp_path / "files", form="hgrm")
    assert {file.suffix for file in folder.iterdir()} == {".hgrm"}
    assert all(b"#[Mean" in file.read_bytes() for file in folder.iterdir())
    plots = result.save(tmp_path / "plots", form="svg")
    assert all(file.read_bytes().rstrip().endswith(b"</svg>") for file in plots.iterdir())
    nothing = RunResult(result.report.model_copy(update={"cells": (), "comparisons": ()}), None)
    with pytest.raises(StoreError, match="there is no valid result to draw"):
        nothing.save(tmp_path / "none", form="svg")
    without = RunResult(result.report, None)
    with pytest.raises(UsageError, match="hlog is made of recordings, which were not kept"):
        without.save(tmp_path / "b.hlog")
    with pytest.raises(StoreError, match="has no profile"):
        result.save(tmp_path / "c", form="collapsed")


def test_a_result_that_cannot_be_saved_says_why(tmp_path: Path) -> None:
    result = compared(home=1.0)
    with pytest.raises(UsageError, match="its ending names no format"):
        result.save(tmp_path / "report.pdf")
    with pytest.raises(UsageError, match="there is no format htm") as refused:
        result.save(tmp_path / "report.pdf", form="htm")
    assert refused.value.hint == "did you mean `html`?"
    with pytest.raises(StoreError, match="there is no folder"):
        result.save(tmp_path / "gone" / "report.html")
    assert list(tmp_path.iterdir()) == []
    assert issubclass(NotKnownError, RedlineError)


def test_every_metric_that_decides_a_comparison_is_a_change_that_can_be_read() -> None:
    for metric in get_args(DuetMetric):
        name = {"cpu": "cpu_per_request"}.get(metric, metric.replace(" ", "_").replace("-", "_"))
        assert hasattr(Changes, name), metric
        assert hasattr(RunResult, name), metric


def test_a_level_of_messages_is_that_of_the_report() -> None:
    result = of(reports.healthy()).select("rust.axum", "SimpleGet", "saturate")
    (cell,) = result.cells
    first = {Metric.FIRST_MESSAGE_P95: cell.estimates[Metric.P95]}
    vars(result).update(cells=(cell.model_copy(update={"estimates": first}),))
    assert result.first_message_p95.value == cell.estimates[Metric.P95].value
    assert result.first_message_p95.unit == "ns"
