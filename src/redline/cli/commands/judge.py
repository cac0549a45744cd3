"""`redline judge`: judge the recordings of a run by today's rules, and compare with its stored results."""

from collections import Counter
from collections.abc import Iterator, Sequence

from redline.analysis.rejudged import Rejudged, rejudged, rejudged_answers, rejudged_endings, validity_changes
from redline.cli.command_line import JudgeFlags
from redline.cli.commands.report import report_in
from redline.cli.contracts import JudgeResult, SearchJudgeResult
from redline.cli.show import show, write_json
from redline.document.blocks import Line, Prose, Section, line
from redline.document.format import GRADE_MARKS, slug_of
from redline.errors import StoreError
from redline.findings import gathered
from redline.model import Finding, Report
from redline.model.limits import AnyReport, LimitReport
from redline.render import summary
from redline.report.limit import answer_text
from redline.report.parts import lost_section
from redline.running.views import write_views
from redline.storage.reports import read_report
from redline.storage.runs import VIEW, RunStore


def execute(flags: JudgeFlags) -> None:
    """Judge a stored run by today's rules: show its findings, and which differ from its stored results."""
    store, now = RunStore(flags.run), report_in(flags.run)
    before, reason = _stored_view(store)
    if flags.write:
        with store.locked():
            write_views(store, now)
    if isinstance(now, LimitReport):
        _show_search(store, before, now, reason, flags)
    else:
        _show_run(before, now, reason, flags)


def _show_run(before: AnyReport | None, now: Report, reason: str, flags: JudgeFlags) -> None:
    before = before if isinstance(before, Report) else None
    result = JudgeResult(
        run=now.run.name,
        not_compared=reason,
        findings=tuple(finding for findings in now.findings.values() for finding in findings),
        lost_starts=now.lost_starts,
        invalid=tuple(cell.cell_id for cell in now.cells if not cell.valid),
        changes=rejudged(before, now) if before else (),
        turned=validity_changes(before, now) if before else (),
        written=flags.write,
    )
    if flags.json:
        write_json(result)
    else:
        show(_sections(result, now))


def _show_search(store: RunStore, before: AnyReport | None, now: LimitReport, reason: str, flags: JudgeFlags) -> None:
    """Show the answers of a search, and which differ from its stored report."""
    before = before if isinstance(before, LimitReport) else None
    result = SearchJudgeResult(
        search=store.folder.resolve().name,
        not_compared=reason,
        answers={cell.slug: cell.limits for cell in now.cells},
        findings=tuple(finding for cell in now.cells for finding in cell.findings),
        answers_changed=rejudged_answers(before, now) if before else (),
        endings_changed=rejudged_endings(before, now) if before else (),
        written=flags.write,
    )
    if flags.json:
        write_json(result)
        return
    lines = tuple(_search_changes(result))
    show([*summary(now), Section("", (Prose.of(lines, "strong"),))])


def _search_changes(result: SearchJudgeResult) -> Iterator[str]:
    """Yield the differences from the stored report, and whether it was written again."""
    if result.not_compared:
        yield f"not compared with how it was judged: {result.not_compared}"
    elif not result.answers_changed and not result.endings_changed:
        yield f"{VIEW} has the same answers"
    for ending in result.endings_changed:
        yield f"{ending.slug}: was {ending.before or 'not there'}; now {ending.after or 'not there'}"
    for changed in result.answers_changed:
        was, now = (answer_text(answer) if answer else "not known" for answer in (changed.before, changed.after))
        yield f"{changed.slug}: {changed.name}: was {was}; now {now}"
    if result.written:
        yield "report.html, results.csv and results.json are renewed"


def _stored_view(store: RunStore) -> tuple[AnyReport | None, str]:
    """Return the report as stored with the views, or why there is none."""
    file = store.folder / VIEW
    try:
        return (read_report(file), "") if file.exists() else (None, f"it has no {VIEW}")
    except StoreError as error:
        return None, error.message


def _sections(result: JudgeResult, now: Report) -> Iterator[Section]:
    """The findings of each cell, the differences from the stored results, and whether these were written again."""
    yield Section(result.run, (), f"{now.run.trials_done} of {now.run.trials_planned} trials")
    findings = now.findings
    for cell in now.cells:
        lines = tuple(_findings(findings[cell.cell_id])) or (line(("nothing to doubt", "dim")),)
        yield Section(cell.slug, (Prose(lines, listed=True),), "" if cell.valid else "invalid")
    yield from lost_section(now.lost_starts)
    turns = (
        line(f"{slug_of(change.cell_id)} {'can be used again' if change.valid_after else 'is invalid now'}")
        for change in result.turned
    )
    written = ["report.html, results.csv and results.json are renewed"] if result.written else []
    changes = Prose((*turns, *map(_changed, result.changes)), listed=True)
    yield Section("", (Prose.of([_summary(result)], "strong"), changes, Prose.of(written, "dim")))


def _findings(findings: Sequence[Finding]) -> Iterator[Line]:
    """Yield the gravest findings first, with all trials of a kind together."""
    for group in gathered(findings):
        yield line((f"{GRADE_MARKS[group.first.grade]} {group.first.grade}", group.first.grade), f"  {group.text}")


def _summary(result: JudgeResult) -> str:
    if result.not_compared:
        return f"not compared with how it was judged: {result.not_compared}"
    if not result.changes and not result.turned:
        return f"{VIEW} has the same findings"
    counts = Counter(change.change for change in result.changes)
    changes = ", ".join(f"{counts[kind]} {kind}" for kind in ("new", "gone", "graded otherwise") if counts[kind])
    return f"against {VIEW}: {changes or 'no other findings'}"


def _changed(change: Rejudged) -> Line:
    grades = f"{change.before} -> {change.after}" if change.before and change.after else change.before or change.after
    where = "" if change.position is None else f", trial {change.position}"
    said = f"{change.change}: {grades} {change.kind}, {slug_of(change.cell_id)}{where}: "
    return line(said, (change.message, "dim"))
