"""`redline judge`: the recordings of a run, judged by today's rules, beside what its stored views say."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from redline.analysis import build_report
from redline.analysis.rejudged import Rejudged, rejudged, rejudged_answers, rejudged_endings, validity_changes
from redline.cli.ab_view import print_report, read_report, write_views
from redline.cli.command_line import JudgeFlags
from redline.cli.commands.report import read_run
from redline.cli.contracts import JudgeResult, SearchJudgeResult
from redline.cli.show import Terminal, show
from redline.model import CellReport, Finding, FindingKind, Grade, Report
from redline.model.limits import LimitReport
from redline.report.document import Line, Prose, Section, line
from redline.report.format import GRADE_MARKS, slug_of
from redline.report.sections.ab import sentence
from redline.report.sections.limit import answer_text, limit_summary
from redline.running.searching import search_report, write_search_views
from redline.running.session import write_run_views
from redline.storage.comparisons import ComparisonStore
from redline.storage.runs import VIEW, RunStore


def execute(flags: JudgeFlags) -> None:
    """Judge a stored run by today's rules: its findings, and which are not those of its stored results."""
    if (store := RunStore(flags.run)).kind == "search":
        _judge_search(store, write=flags.write, json=flags.json)
        return
    if (compared := ComparisonStore(flags.run)).exists:
        _judge_comparison(compared, write=flags.write, json=flags.json)
        return
    now = build_report(read_run(flags.run), str(flags.run))
    before, reason = _stored_view(flags.run)
    if flags.write:
        with store.locked():
            write_run_views(store)
    result = JudgeResult(
        run=now.run.name,
        not_compared=reason,
        findings=tuple(finding for cell in now.cells for finding in cell.findings),
        invalid=tuple(cell.cell_id for cell in now.cells if not cell.valid),
        changes=rejudged(before, now) if before else (),
        turned=validity_changes(before, now) if before else (),
        written=flags.write,
    )
    if flags.json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    else:
        show(_sections(result, now))


def _judge_search(store: RunStore, *, write: bool, json: bool) -> None:
    """The same of a search: its answers, and which are not those of its stored report."""
    before, now = store.written(LimitReport), search_report(store)
    if write:
        with store.locked():
            write_search_views(store)
    result = SearchJudgeResult(
        search=store.folder.resolve().name,
        not_compared="" if before else f"it has no {VIEW}",
        answers={cell.slug: cell.limits for cell in now.cells},
        findings=tuple(finding for cell in now.cells for finding in cell.findings),
        answers_changed=rejudged_answers(before, now) if before else (),
        endings_changed=rejudged_endings(before, now) if before else (),
        written=write,
    )
    if json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
        return
    lines = tuple(_search_changes(result))
    show([*limit_summary(now), Section("", (Prose.of(lines, "strong"),))])


def _judge_comparison(store: ComparisonStore, *, write: bool, json: bool) -> None:
    """The same of a comparison: its answer, and on stderr whether that is the one of its stored results."""
    before, now = store.written_report(), read_report(store)
    if write:
        with store.locked():
            write_views(store, now)
    print_report(now, "json" if json else None)
    said = f"not compared with how it was judged: it has no {VIEW}"
    if before is not None:
        said = f"{VIEW} has the same answer" if before == now else f"{VIEW} said: {sentence(before)}"
    for each in (said, *(["results.json and results.md are renewed"] if write else [])):
        Terminal(stderr=True).print(each, style="dim", soft_wrap=True, highlight=False, markup=False)


def _search_changes(result: SearchJudgeResult) -> Iterator[str]:
    """What differs from the stored report, and whether that was written again."""
    if result.not_compared:
        yield f"not compared with how it was judged: {result.not_compared}"
    elif not result.answers_changed and not result.endings_changed:
        yield f"{VIEW} has the same answers"
    for ending in result.endings_changed:
        yield f"{ending.slug}: was {ending.before or 'not there'}; now {ending.after or 'not there'}"
    for changed in result.answers_changed:
        was, now = (answer_text(one) if one else "not known" for one in (changed.before, changed.after))
        yield f"{changed.slug}: {changed.name}: was {was}; now {now}"
    if result.written:
        yield "report.html and results.json are renewed"


def _stored_view(folder: Path) -> tuple[Report | None, str]:
    """What was made of the run when its views were written, or why that is not known."""
    file = folder / VIEW
    try:
        return Report.model_validate_json(file.read_bytes()), ""
    except FileNotFoundError:
        return None, f"it has no {VIEW}"
    except OSError as error:
        return None, f"{file}: {error.strerror or error}"
    except ValidationError:
        return None, f"{file} is damaged or of a later version"


def _sections(result: JudgeResult, now: Report) -> Iterator[Section]:
    """The findings of each cell, what differs from the stored results, and whether these were written again."""
    yield Section(result.run, (), f"{now.run.trials_done} of {now.run.trials_planned} trials")
    for cell in now.cells:
        lines = tuple(_findings(cell)) or (line(("nothing to doubt", "dim")),)
        yield Section(cell.slug, (Prose(lines, listed=True),), "" if cell.valid else "invalid")
    turns = (
        line(f"{slug_of(one.cell_id)} {'can be used again' if one.valid_after else 'is invalid now'}")
        for one in result.turned
    )
    written = ["report.html, results.csv and results.json are renewed"] if result.written else []
    changes = Prose((*turns, *map(_changed, result.changes)), listed=True)
    yield Section("", (Prose.of([_summary(result)], "strong"), changes, Prose.of(written, "dim")))


def _findings(cell: CellReport) -> Iterator[Line]:
    """The gravest first, each kind once with how many trials it is about."""
    alike: dict[tuple[FindingKind, Grade], list[Finding]] = {}
    for one in sorted(cell.findings, key=lambda one: -one.grade.weight):
        alike.setdefault((one.kind, one.grade), []).append(one)
    for (kind, grade), (first, *more) in alike.items():
        times = f" in {len(more) + 1} trials" if more and first.position is not None else ""
        yield line((f"{GRADE_MARKS[grade]} {grade}", grade), f"  {kind}{times}: {first.message}")


def _summary(result: JudgeResult) -> str:
    if result.not_compared:
        return f"not compared with how it was judged: {result.not_compared}"
    if not result.changes and not result.turned:
        return f"{VIEW} has the same findings"
    counts = Counter(one.change for one in result.changes)
    changes = ", ".join(f"{counts[each]} {each}" for each in ("new", "gone", "graded otherwise") if counts[each])
    return f"against {VIEW}: {changes or 'no other findings'}"


def _changed(change: Rejudged) -> Line:
    grades = f"{change.before} -> {change.after}" if change.before and change.after else change.before or change.after
    where = "" if change.position is None else f", trial {change.position}"
    said = f"{change.change}: {grades} {change.kind}, {slug_of(change.cell_id)}{where}: "
    return line(said, (change.message, "dim"))
