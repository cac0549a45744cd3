"""Turn a report into outcomes of checks, as CI servers show them. Pure."""

from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from redline.analysis.compare import was_not_judged
from redline.document.blocks import Line
from redline.model import CellReport, Comparison, Report, Verdict
from redline.model.limits import AnyReport, LimitComparison, LimitReport
from redline.model.run import SameBuilds
from redline.report.answer import ComparedSentence, level, limit_sentence, sentences
from redline.report.limit_ratios import ratio_sentence
from redline.report.objectives import objective_line
from redline.report.parts import lost_name
from redline.report.views import has_result, invalid_reason

State = Literal["passed", "failed", "undecided", "unknown"]
"""Undecided: measured, without a sure verdict. Unknown: not measured, or nothing is known of the ratio."""

_STATES: dict[str, State] = {"met": "passed", "missed": "failed", "not known": "unknown"}


class Outcome(NamedTuple):
    """A check: its subject, its name, its state, and a sentence about it."""

    subject: str
    name: str
    state: State
    text: str


def outcomes(report: AnyReport) -> tuple[Outcome, ...]:
    """Yield a check for every compared pair, every objective, and every cell without a result or a pair."""
    return tuple(_of_search(report) if isinstance(report, LimitReport) else _of_run(report))


def _of_run(report: Report) -> Iterator[Outcome]:
    if (same := report.run.same) is not None:
        yield _same(same)
    for said in sentences(report):
        cell = said.cell
        yield Outcome(f"{cell.server} over {said.against}", f"{cell.scenario} · {cell.load}", _state(said), _text(said))
    for cell in report.cells:
        if cell.role == "subject" and not has_result(cell):
            yield Outcome(cell.slug, "result", "unknown", invalid_reason(cell))
        elif cell.role == "subject" and not report.comparisons:
            yield Outcome(cell.slug, "result", "passed", level(cell))
        yield from _of_conditions(cell)
    if report.run.aborted_by:
        yield Outcome(report.run.suite, "abort_when", "failed", f"aborted by {report.run.aborted_by}")
    for skipped in report.skipped:
        yield Outcome(skipped.slug, "result", "undecided", f"skipped: {skipped.reason}")
    for lost in report.lost_starts if report.run.alone else ():  # without trials, its comparisons say so
        known: State = "unknown" if lost.all else "passed"
        yield Outcome(lost_name(lost), "starts", known, f"{lost.lost} of {lost.made} starts are lost: {lost.reason}")


def _of_conditions(cell: CellReport) -> Iterator[Outcome]:
    """Yield the conditions that ended trials, and the objectives."""
    for rule in dict.fromkeys(trial.aborted_by for trial in cell.trials if trial.aborted_by):
        if cell.role == "subject":
            yield Outcome(cell.slug, "abort_when", "failed", f"a trial was aborted by {rule}")
    for result in cell.objectives:
        state = _STATES[result.state]
        yield Outcome(cell.slug, result.objective.text, state, _plain(objective_line(result)))


def _same(same: SameBuilds) -> Outcome:
    return Outcome(f"{same.servers[1]} over {same.servers[0]}", "builds", "passed", f"{same.text}: {same.evidence}")


def _of_search(report: LimitReport) -> Iterator[Outcome]:
    if report.same is not None:
        yield _same(report.same)
    cells = {cell.slug: cell for cell in report.cells}
    for cell in report.cells:
        ended: State = "passed" if cell.ended == "converged" else "unknown"
        for answer in cell.limits:
            yield Outcome(cell.slug, answer.name, ended, limit_sentence(cell, answer))
        if not cell.limits:
            yield Outcome(cell.slug, "limit", ended, cell.reason or f"the search ended: {cell.ended}")
    for comparison in report.comparisons:
        cell, base = cells[comparison.slug], cells[comparison.baseline]
        state: State = "unknown" if comparison.ratio is None else _verdict([comparison])
        text = ratio_sentence(comparison, cell.server, base.server, by_users=cell.by_users)
        yield Outcome(f"{cell.server} over {base.server}", f"{cell.slug} · {comparison.objective}", state, text)
    for skipped in report.skipped:
        yield Outcome(skipped.slug, "limit", "undecided", f"skipped: {skipped.reason}")


def _state(said: ComparedSentence) -> State:
    """Return unknown if a verdict could not be given, unless another comparison is slower."""
    judged = _verdict(said.judged)
    if judged == "failed":
        return judged
    return "unknown" if not said.judged or any(map(was_not_judged, said.known)) else judged


def _verdict(comparisons: Iterable[Comparison | LimitComparison]) -> State:
    verdicts = {comparison.verdict for comparison in comparisons if comparison.matters is not False}
    if Verdict.SLOWER in verdicts:
        return "failed"
    return "undecided" if Verdict.INCONCLUSIVE in verdicts else "passed"


def _text(said: ComparedSentence) -> str:
    return f"{said.where}{_plain(said.sentence)}"


def _plain(texts: Line) -> str:
    return "".join(span.text for span in texts)
