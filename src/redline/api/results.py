"""What the functions return: a report with the numbers that people ask for, in the words of the terminal."""

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from html import escape
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from rich.console import Console

from redline.analysis.compare import lacks_verdict, unwanted
from redline.analysis.load_result import own_findings
from redline.api.amounts import Amount
from redline.api.levels import counts_of, level_of
from redline.entry_points import extra
from redline.errors import NotKnownError, StoreError, UsageError
from redline.model import CellReport, Comparison, Finding, Metric, Report, Verdict
from redline.model.limits import AnyReport, CellLimit, LimitAnswer, LimitComparison, LimitReport
from redline.quantities import did_you_mean
from redline.render import terminal
from redline.render.formats import FILE_ENDINGS, FORMATS, Needs, ResultFormat
from redline.render.renderers import as_html, own_view
from redline.report.outcomes import outcomes
from redline.report.single import has_facts
from redline.running.formats import RecordedIn, Rendered, renderer_of, write_rendered
from redline.storage.runs import RunStore

_COLUMNS = 100
_ABOUT = {
    Metric.THROUGHPUT: "right answers per second",
    Metric.CPU_PER_REQUEST: "the server's CPU time per request",
    Metric.MEMORY: "the resident memory of the server's processes",
}
_FRAME = "width: 100%; height: 640px; border: 0; resize: vertical"
R = TypeVar("R", bound=AnyReport)
C = TypeVar("C", CellReport, CellLimit)


class _MetricAmount:
    """The amount of the metric that it is named after, as a property."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._metric = Metric[name.upper()]
        of_responses = "" if self._metric.is_of_messages else " of response times"
        self.__doc__ = _ABOUT.get(self._metric, f"{self._metric.words}{of_responses}")

    def __get__(self, owner: "_Amounts | None", kind: type) -> Amount:
        if owner is None:
            return self  # type: ignore[return-value] # for `help`
        return owner._of(self._metric)  # noqa: SLF001 - its owner's own

    def __set__(self, owner: "_Amounts", value: Amount) -> None:
        raise AttributeError("a result does not change")


class _Amounts(ABC):
    """The amounts of metrics that are known of one server, and of the difference of two."""

    throughput, cpu_per_request, memory = _MetricAmount(), _MetricAmount(), _MetricAmount()
    p50, p75, p90 = _MetricAmount(), _MetricAmount(), _MetricAmount()
    p95, p99, p999 = _MetricAmount(), _MetricAmount(), _MetricAmount()
    first_message_p50, first_message_p95, per_message_p50 = _MetricAmount(), _MetricAmount(), _MetricAmount()
    gap_p50, gap_p99, jitter_p99 = _MetricAmount(), _MetricAmount(), _MetricAmount()
    push_p50, push_p99 = _MetricAmount(), _MetricAmount()

    @abstractmethod
    def _of(self, metric: Metric) -> Amount:
        """The amount of a metric. Raises NotKnownError."""


class BaseResult(ABC, Generic[R]):
    """A report, and how it reads in a terminal (`str`), in a notebook, and in a file (`save`). It does not change.

    `report` has all of it, as `--json` prints it. `folder` is where the recordings are kept; None where they are not.
    """

    report: R
    folder: Path | None

    _not_run: Mapping[str, str]

    def __init__(self, report: R, folder: Path | None, **own: object) -> None:
        vars(self).update(report=report, folder=folder, _not_run=_not_run_here(report), **own)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a result does not change")

    def select(self, *names: str) -> Self:
        """The same result with what has these names alone: servers, requests (scenarios), loads, objectives, or cells.

        What is printed and saved stays whole. Raises UsageError for a name that nothing has.
        """
        if not names:
            return self
        chosen = copy(self)
        vars(chosen).update(self._named(names[0]))
        return chosen.select(*names[1:])

    def __str__(self) -> str:
        console = Console(file=io.StringIO(), width=_COLUMNS)
        return terminal.render(own_view(self.report), console).plain

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._answer_text}>"

    @property
    def _answer_text(self) -> str:
        return "; ".join(outcome.text for outcome in outcomes(self.report)) or "nothing was measured"

    def _repr_html_(self) -> str:
        """The page in a frame, whose styles are its own; above it the text, for viewers that show no frames."""
        console = Console(file=io.StringIO(), width=_COLUMNS, record=True)
        console.print(terminal.render(own_view(self.report), console), soft_wrap=True)
        text = console.export_html(inline_styles=True, code_format='<pre style="line-height: 1.3">{code}</pre>')
        page = as_html(self.report).decode()
        return (
            f"<details><summary>{escape(self._answer_text)}</summary>{text}</details>"
            f'<iframe sandbox="allow-scripts allow-popups" style="{_FRAME}" srcdoc="{escape(page)}"></iframe>'
        )

    def to_arrow(self) -> Any:
        """The rows of `results.csv` as a `pyarrow.Table`, with types. Raises UsageError without pyarrow."""
        return extra("exports", "to_arrow()").arrow_table(self.report)

    def to_pandas(self) -> Any:
        """The same as a `pandas.DataFrame`. Raises UsageError without pandas."""
        return extra("exports", "to_pandas()").pandas_frame(self.report)

    def to_polars(self) -> Any:
        """The same as a `polars.DataFrame`. Raises UsageError without polars."""
        return extra("exports", "to_polars()").polars_frame(self.report)

    def save(self, file: str | Path, form: str | None = None) -> Path:
        """Write the result, by its ending: .html, .json, .csv, .parquet, .md, .hlog, .ndjson, or .xml (JUnit).

        `form` names another format of `redline report`, also one of another package. Formats with several files go into
        a directory of that name. Gives the path. Raises UsageError, also where a format needs recordings that were not
        kept, StoreError, and RedlineError where a package's format fails.
        """
        path = Path(file)
        known = FORMATS.get(form) if form else FILE_ENDINGS.get(path.suffix.lower())
        if form is None and known is None:
            hint = f"end it with one of {', '.join(FILE_ENDINGS)}, or give form=…, one of {', '.join(FORMATS)}"
            raise UsageError(f"{path}: its ending names no format", hint=hint)
        write_rendered(self._rendered(known) if known else renderer_of(form or "")(self.report), path)
        return path

    def _rendered(self, form: ResultFormat) -> Rendered:
        source: object = self.report
        if form.needs is Needs.RECORDINGS:
            if self.folder is None:
                message = f"{form.name} is made of recordings, which were not kept"
                raise UsageError(message, hint="keep them: give the call keep=DIR")
            store = RunStore(self.folder)
            source = RecordedIn(store, store.run)
        made: Rendered = form.load()(source)
        if isinstance(made, Mapping) and not made:
            raise StoreError("there is no valid result to draw", hint="see `findings` of the result")
        return made

    @property
    def slower(self) -> bool:
        """Whether any server is slower than its baseline, by a difference that may matter: as `--fail-on slower`.

        Raises NotKnownError where nothing is, and something could not be judged.
        """
        if unwanted(self._comparisons, (Verdict.SLOWER,)):
            return True
        self._check_judged()
        return False

    @property
    @abstractmethod
    def _comparisons(self) -> Sequence[Comparison | LimitComparison]: ...

    @abstractmethod
    def _check_judged(self) -> None:
        """Raises NotKnownError where nothing is compared, or something could not be judged."""

    @abstractmethod
    def _named(self, name: str) -> dict[str, object]:
        """The own attributes with what has the name alone. Raises UsageError."""


class RunResult(BaseResult[Report], _Amounts):
    """The result of `load`, `ab` and `run`: levels of each server, and changes where servers are compared.

    A level is `throughput`, `mean`, `p50` to `p9999`, `cpu_per_request`, `memory`, `errors`, or one of messages such as
    `first_message_p95`. It is that of a single server under a single load: `select` chooses where there are several.
    Response times count from when a request was due. All raise NotKnownError where there is no such number, or where a
    finding hides it. Where it leaves a bound, the level compares by that: `p99 < "20ms"` is true if p99 is at most 12
    ms.
    """

    cells: tuple[CellReport, ...]
    _not_compared: Mapping[str, str]
    mean, p9999 = _MetricAmount(), _MetricAmount()

    def __init__(self, report: Report, folder: Path | None, not_compared: Mapping[str, str] = {}) -> None:
        """`not_compared` has the reasons of cells that should have been compared and were not run, by slug."""
        cells = tuple(cell for cell in report.cells if cell.role == "subject")
        super().__init__(report, folder, cells=cells, _not_compared=dict(not_compared))

    def _named(self, name: str) -> dict[str, object]:
        cells = _cells_named(name, self.cells, lambda cell: (cell.server, cell.scenario, cell.load, cell.slug))
        not_run, not_compared = _within(name, self._not_run), _within(name, self._not_compared)
        return {"cells": cells, "_not_run": not_run, "_not_compared": not_compared}

    @property
    def valid(self) -> bool:
        """Whether all of it was run, and all of its numbers are known.

        `findings` say why some are not, and `report.skipped` why it was not run.
        """
        if self.report.run.same is not None:
            return True
        return bool(self.cells) and not self._not_run and all(cell.valid for cell in self.cells)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The reasons to doubt the numbers, the gravest first."""
        compared = (comparison.duet for comparison in self._comparisons if comparison.duet)
        known = [own_findings(cell) if has_facts(cell) else cell.findings for cell in self.cells]
        of_cells = [finding for findings in known for finding in findings]
        of_duets = [finding for duet in compared for finding in duet.findings]
        return _gravest_first([*of_cells, *of_duets])

    @property
    def errors(self) -> Amount:
        """The share of the requests that failed, without connections that the engine's own side could not open."""
        counts = counts_of(_only(self.cells, "errors"))
        if not counts.due:
            raise NotKnownError("errors: no request was due", hint="load it for longer")
        return Amount("errors", (counts.outcomes.errors - counts.exhausted) / counts.due, "share")

    @property
    def change(self) -> "Changes":
        """How a server differs from its baseline, as B from A: `result.change.p99`."""
        return Changes(self._change)

    @property
    def met(self) -> bool:
        """Whether all objectives are met, and no condition of `abort_when` ended a load.

        Raises NotKnownError where there are none, one is not known to be met, or a server was not run.
        """
        results = [result for cell in self.cells for result in cell.objectives]
        aborted = any(trial.aborted_by for cell in self.cells for trial in cell.trials)
        if aborted or self.report.run.aborted_by or any(result.state == "missed" for result in results):
            return False
        if not results:
            raise NotKnownError("there is no objective", hint="give one, such as objective='p99 < 50ms'")
        for unknown in (result for result in results if result.state == "not known"):
            raise NotKnownError(
                f"{unknown.objective.text} is not known to be met: {unknown.reason}",
                hint="load it for longer, or see its findings",
            )
        for slug, reason in self._not_run.items():
            raise _skipped(slug, reason)
        return True

    @property
    def verdict(self) -> Verdict:
        """What the comparison showed, B against A: `equivalent` also where both build the same bytes.

        Raises NotKnownError where there is none, or not one alone.
        """
        if self.report.run.same is not None:
            return Verdict.EQUIVALENT
        return _the_only([comparison.verdict for comparison in self._judged if comparison.verdict])

    def _check_judged(self) -> None:
        if self.report.run.same is None:
            _ = self._judged

    @property
    def _judged(self) -> list[Comparison]:
        """The comparisons that have verdicts. Raises NotKnownError where there are none, or any lacks its verdict."""
        for slug, reason in self._not_compared.items():
            raise _skipped(slug, reason)
        primary = [comparison for comparison in self._comparisons if comparison.primary]
        if not primary:
            raise NotKnownError("nothing is compared here", hint="use `ab`, or a suite with a baseline")
        for comparison in primary:
            if comparison.verdict is None or lacks_verdict(comparison):
                raise self._not_judged(comparison)
        return primary

    def _not_judged(self, comparison: Comparison) -> NotKnownError:
        unsettled = comparison.duet.unsettled if comparison.duet else ""
        lacking = comparison.why_no_verdict if comparison.primary else ""
        reason = comparison.refused or unsettled or lacking or "too little was measured"
        message = f"{comparison.metric.words} of {self._slug(comparison.cell_id)} has no verdict: {reason}"
        invalid = {cell.cell_id for cell in self.report.cells if not cell.valid}
        failed = not invalid.isdisjoint((comparison.cell_id, comparison.baseline_id))
        return NotKnownError(message, hint="see `findings` of the result" if failed else "give it more time")

    def _slug(self, cell_id: str) -> str:
        return next((cell.slug for cell in self.report.cells if cell.cell_id == cell_id), cell_id)

    @property
    def _comparisons(self) -> tuple[Comparison, ...]:
        chosen = {cell.cell_id for cell in self.cells}
        return tuple(comparison for comparison in self.report.comparisons if comparison.cell_id in chosen)

    def _of(self, metric: Metric) -> Amount:
        return level_of(_only(self.cells, metric.words), metric)

    def _change(self, metric: Metric) -> Amount:
        name = f"the change of {metric.words}"
        pairs = [pair for pair in self._comparisons if pair.metric is metric]
        if not pairs:
            raise NotKnownError(f"{name} was not measured", hint="use `ab`, or a suite with a baseline")
        if len(pairs) > 1:
            names = ", ".join(self._slug(pair.cell_id) for pair in pairs)
            raise NotKnownError(f"{name} is of {len(pairs)} pairs: {names}", hint="choose by result.select(…)")
        (pair,) = pairs
        ratio, is_decided = pair.ratio, pair.verdict not in (None, Verdict.INCONCLUSIVE)
        is_cold = pair.duet is not None and bool(pair.duet.unsettled) and not is_decided
        if ratio is None or ratio.says_nothing or is_cold:
            raise self._not_judged(pair)
        ends = (None, None) if ratio.interval is None else (ratio.interval[0] - 1, ratio.interval[1] - 1)
        return Amount(name, ratio.value - 1, "change", *ends)


class Changes(_Amounts):
    """How a server differs from its baseline: relative changes with their intervals, such as +5.2% [+4.7, +5.7].

    All raise NotKnownError where there is no such change, or not one alone.
    """

    def __init__(self, of: Callable[[Metric], Amount]) -> None:
        self._change = of

    def _of(self, metric: Metric) -> Amount:
        return self._change(metric)


class SearchResult(BaseResult[LimitReport]):
    """The result of `limit`: the most requests per second, or users, that meet the objective: `passed` to `failed`."""

    cells: tuple[CellLimit, ...]
    _objective: str

    def __init__(self, report: LimitReport, folder: Path | None) -> None:
        super().__init__(report, folder, cells=report.cells, _objective="")

    def _named(self, name: str) -> dict[str, object]:
        if name in {answer.name for cell in self.cells for answer in cell.limits}:
            return {"_objective": name}
        cells = _cells_named(name, self.cells, lambda cell: (cell.server, cell.scenario, cell.slug, cell.target))
        return {"cells": cells, "_not_run": _within(name, self._not_run)}

    @property
    def passed(self) -> Amount:
        """The highest rate, or the most users, that passed. Raises NotKnownError where that is not known."""
        return self._side("passed", self._answer.passed)

    @property
    def failed(self) -> Amount:
        """The lowest rate, or the fewest users, that failed. Raises NotKnownError where that is not known."""
        return self._side("failed", self._answer.failed)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The reasons to doubt the numbers, the gravest first."""
        return _gravest_first([finding for cell in self.cells for finding in cell.findings])

    @property
    def verdict(self) -> Verdict:
        """Whether the server has a lower limit than its baseline. Raises NotKnownError where nothing is compared."""
        return _the_only([comparison.verdict for comparison in self._all_compared])

    def _check_judged(self) -> None:
        compared = self._all_compared
        asked = {cell.slug for cell in self.cells} | {comparison.baseline for comparison in compared}
        for cell in self.report.cells:
            if cell.slug in asked and cell.ended != "converged":
                message = f"{cell.server} has no limit that could be compared: {cell.reason or cell.ended}"
                raise NotKnownError(message, hint="print the result: it says what was probed")

    @property
    def _all_compared(self) -> tuple[LimitComparison, ...]:
        """The comparisons. Raises NotKnownError where there are none, or any could not be made."""
        for slug, reason in self._not_run.items():
            raise _skipped(slug, reason)
        if not self._comparisons:
            raise NotKnownError("nothing is compared here", hint="give `limit` two servers")
        return self._comparisons

    @property
    def _comparisons(self) -> tuple[LimitComparison, ...]:
        chosen = {cell.slug for cell in self.cells}
        return tuple(
            comparison
            for comparison in self.report.comparisons
            if comparison.slug in chosen and self._objective in ("", comparison.objective)
        )

    @property
    def _answer(self) -> LimitAnswer:
        cell = _only(self.cells, "the limit")
        answers = [answer for answer in cell.limits if self._objective in ("", answer.name)]
        if not answers:
            hint = "print the result: it says what was probed"
            raise NotKnownError(f"there is no limit: {cell.reason or cell.ended}", hint=hint)
        if len(answers) > 1:
            names = ", ".join(repr(answer.name) for answer in answers)
            raise NotKnownError(f"there are limits for {names}", hint="choose by result.select(…)")
        return answers[0]

    def _side(self, name: str, tried: float | None) -> Amount:
        what = f"the {'number of users' if self._answer.by_users else 'rate'} that {name}"
        if tried is None:
            reason = self._answer.reason or "the search ended before"
            raise NotKnownError(f"{what} is not known: {reason}", hint="give it more probes, or more time")
        return Amount(what, tried, "users" if self._answer.by_users else "1/s")


class MeasurementInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a measurement early. `result` has what was measured by then."""

    def __init__(self, result: RunResult | SearchResult) -> None:
        super().__init__("the measurement was interrupted")
        self.result = result


def _only(cells: Sequence[C], what: str) -> C:
    """The only cell. Raises NotKnownError."""
    if len(cells) == 1:
        return cells[0]
    names = ", ".join(cell.slug for cell in cells)
    if not cells:
        raise NotKnownError(f"{what} was not measured", hint="print the result: it says why")
    raise NotKnownError(f"{what} is of {len(cells)} cells: {names}", hint="choose by result.select(…)")


def _cells_named(name: str, cells: tuple[C, ...], names_of: Callable[[C], tuple[str, ...]]) -> tuple[C, ...]:
    chosen = tuple(cell for cell in cells if name in names_of(cell))
    if not chosen:
        known = tuple(dict.fromkeys(known for cell in cells for known in names_of(cell) if known))
        raise UsageError(f"nothing is called {name!r} here", hint=did_you_mean(name, known) or f"{', '.join(known)}")
    return chosen


def _not_run_here(report: AnyReport) -> dict[str, str]:
    """The reasons why this machine could not run cells, by slug; without cells that the suite rules out."""
    return {skipped.slug: skipped.reason for skipped in report.skipped if skipped.cause != "suite"}


def _within(name: str, slugs: Mapping[str, str]) -> dict[str, str]:
    """Those of a name: a slug joins server, scenario and load by dots, without slashes."""
    part = name.replace("/", "_")
    return {slug: reason for slug, reason in slugs.items() if f".{part}." in f".{slug}."}


def _skipped(slug: str, reason: str) -> NotKnownError:
    return NotKnownError(f"{slug} was not run: {reason}", hint="mend that, or choose others by result.select(…)")


def _the_only(verdicts: Sequence[Verdict]) -> Verdict:
    distinct = list(dict.fromkeys(verdicts))
    if len(distinct) > 1:
        names = ", ".join(distinct)
        raise NotKnownError(f"there are several verdicts: {names}", hint="choose by result.select(…), or use .slower")
    return distinct[0]


def _gravest_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: -finding.grade.weight))
