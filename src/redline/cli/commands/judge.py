"""`redline judge`: the recordings of a run, judged by today's rules, beside what its stored views say."""

import sys
from collections import Counter
from pathlib import Path

from pydantic import ValidationError
from rich.console import Console
from rich.text import Text

from redline.analysis import build_report
from redline.analysis.rejudged import Rejudged, rejudged, turned
from redline.cli.commands.report import read_run
from redline.cli.contracts import JudgeResult
from redline.model import CellReport, FindingKind, Grade, Report
from redline.report.format import GRADE_MARKS, one_line
from redline.report.render.terminal import COLOURS
from redline.running.session import write_run_views
from redline.storage.runs import RunStore

_VIEW = "results.json"
_HASH = 9  # a cell's id is its slug, a dash and eight hex digits


def judge(run: Path, write: bool, json: bool) -> None:
    """Judge a stored run by today's rules: its findings, and which are not those of its stored results."""
    now = build_report(read_run(run))
    before, reason = _stored_view(run)
    if write:
        store = RunStore(run)
        with store.locked():
            write_run_views(store)
    result = JudgeResult(
        run=now.run.name,
        not_compared=reason,
        findings=tuple(finding for cell in now.cells for finding in cell.findings),
        invalid=tuple(cell.cell_id for cell in now.cells if not cell.valid),
        changes=rejudged(before, now) if before else (),
        turned=turned(before, now) if before else (),
        written=write,
    )
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        _print(result, now, Console())


def _stored_view(folder: Path) -> tuple[Report | None, str]:
    """What was made of the run when its views were written, or why that is not known."""
    file = folder / _VIEW
    try:
        return Report.model_validate_json(file.read_bytes()), ""
    except FileNotFoundError:
        return None, f"it has no {_VIEW}"
    except OSError as error:
        return None, f"{file}: {error.strerror or error}"
    except ValidationError:
        return None, f"{file} is damaged or of a later version"


def _print(result: JudgeResult, now: Report, console: Console) -> None:
    done = f"{now.run.trials_done} of {now.run.trials_planned} trials"
    console.print(Text.assemble((one_line(result.run), "bold"), f"  {done}"))
    for cell in now.cells:
        _print_cell(cell, console)
    console.print()
    console.print(Text(_summary(result), "bold"), soft_wrap=True)
    for one in result.turned:
        said = "can be used again" if one.valid_after else "is invalid now"
        console.print(Text(f"  {one_line(one.cell_id[:-_HASH])} {said}"), soft_wrap=True)
    for change in result.changes:
        console.print(_changed(change), soft_wrap=True)
    if result.written:
        console.print(Text("report.html, results.csv and results.json are renewed", "dim"))


def _print_cell(cell: CellReport, console: Console) -> None:
    """Its findings, gravest first, each kind once with how many trials it is about."""
    console.print()
    state = "" if cell.valid else "  invalid"
    console.print(Text.assemble(one_line(cell.slug), (state, COLOURS[Grade.INVALID])))
    if not cell.findings:
        console.print(Text("  nothing to doubt", "dim"))
    ordered = sorted(cell.findings, key=lambda one: -one.grade.weight)
    counts = Counter((one.kind, one.grade) for one in ordered)
    shown: set[tuple[FindingKind, Grade]] = set()
    for one in ordered:
        if (one.kind, one.grade) in shown:
            continue
        shown.add((one.kind, one.grade))
        many = counts[one.kind, one.grade]
        times = f" in {many} trials" if many > 1 and one.position is not None else ""
        sign = (f"  {GRADE_MARKS[one.grade]} {one.grade}", COLOURS[one.grade])
        console.print(Text.assemble(sign, f"  {one.kind}{times}: {one_line(one.message)}"), soft_wrap=True)


def _summary(result: JudgeResult) -> str:
    if result.not_compared:
        return f"not compared with how it was judged: {result.not_compared}"
    if not result.changes and not result.turned:
        return f"{_VIEW} has the same findings"
    counts = Counter(one.change for one in result.changes)
    told = ", ".join(f"{counts[each]} {each}" for each in ("new", "gone", "graded otherwise") if counts[each])
    return f"against {_VIEW}: {told or 'no other findings'}"


def _changed(change: Rejudged) -> Text:
    grades = f"{change.before} -> {change.after}" if change.before and change.after else change.before or change.after
    where = "" if change.position is None else f", trial {change.position}"
    said = f"  {change.change}: {grades} {change.kind}, {one_line(change.cell_id[:-_HASH])}{where}: "
    return Text.assemble(said, (one_line(change.message), "dim"))
