"""Runs of a suite side by side: a table of what each says, and what held."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from redline.document import format as fmt
from redline.document.blocks import Column, Head, Line, Look, Medium, Prose, Section, Table, TextCell, line, words
from redline.document.outline import Chapter, Outline
from redline.model import Estimate, Grade, Verdict
from redline.model.side_by_side import AnswerRow, Outcome, ShownAnswer, ShownRun, SideBySide
from redline.report.claims import outcome, published

_LOOKS: dict[str, Look] = {"held": "met", "differs": Verdict.SLOWER, "open": "unknown", "only one": "dim"}
_COUNTED: tuple[tuple[Outcome, str], ...] = (
    ("held", "held"),
    ("differs", "surely different"),
    ("open", "not decided"),
    ("only one", "known of one run at most"),
)


def _head(result: SideBySide) -> Head:
    suites = " and ".join(dict.fromkeys(run.suite for run in result.runs))
    return Head(
        f"{suites}: {fmt.count(len(result.runs), 'run')} side by side",
        facts=(
            "ratios of a server to its baseline, with 95% intervals",
            f"shown by Redline {result.redline}",
        ),
        servers=tuple(map(_run, result.runs)),
        notices=tuple(line(("! ", Grade.WARN), text) for text in result.notices),
        footer="Made by redline report. Levels of two machines say little of each other: ratios to a baseline that ran "
        "beside the server are what can hold.",
    )


def _run(run: ShownRun) -> Line:
    machine = ", ".join(filter(None, (run.hostname, run.cpu_model, f"{fmt.count(run.cores, 'core')}")))
    about = f": {machine} · {fmt.instant(run.started_unix_ns)} · Redline {run.redline or fmt.NOT_KNOWN} · {run.source}"
    return line((run.label, "strong"), about)


def _answer(result: SideBySide) -> Iterator[Section]:
    """Count what became of the judged comparisons, and of the described ones."""
    lines = []
    for primary, name in ((True, "judged"), (False, "described")):
        counts = Counter(row.outcome for row in result.rows if row.primary is primary)
        if counts:
            parts = [f"{counts[outcome]} {text}" for outcome, text in _COUNTED if counts[outcome]]
            lines.append(f"Of {fmt.count(counts.total(), f'{name} comparison')}, {', '.join(parts)}.")
    yield Section("What held", (Prose.of(lines, "strong"),), anchor="held")


def _tables(result: SideBySide) -> Iterator[Section]:
    """A table for each cell and its baseline."""
    columns = (
        Column("metric"),
        *(Column(_heading(run, result), "right") for run in result.runs),
        Column("what held"),
    )
    by_pair: dict[tuple[str, str], list[AnswerRow]] = {}
    for row in result.rows:
        by_pair.setdefault((row.cell, row.baseline), []).append(row)
    for number, ((cell, baseline), rows) in enumerate(by_pair.items()):
        table = Table(columns, tuple(map(_row, rows)), on=Medium.WRITTEN)
        narrow = replace(table, columns=(*columns[:-1], replace(columns[-1], place="below")), on=Medium.TERMINAL)
        yield Section(cell, (narrow, table), f"against {baseline}", anchor=f"cell-{number}")


def _claims(result: SideBySide) -> Iterator[Section]:
    """A row per published claim, with what each run says to it."""
    if result.claims:
        columns = (*map(Column, ("", "published", "expected")), *(Column(_heading(run, result)) for run in result.runs))
        rows = tuple((*published(row.claim), *map(outcome, row.results)) for row in result.claims)
        yield Section("Published claims", (Table(columns, rows),), anchor="claims")


def _heading(run: ShownRun, result: SideBySide) -> str:
    """`run 1 box-1`, or `run 1 2026-11-21` where all runs are of one machine."""
    hosts = {each.hostname for each in result.runs}
    return f"{run.label} {run.hostname if len(hosts) == len(result.runs) else fmt.instant(run.started_unix_ns)[:10]}"


def _row(row: AnswerRow) -> tuple[TextCell, ...]:
    return (
        words(row.measure, look="strong" if row.primary else ""),
        *map(_cell, row.answers),
        words(row.sentence, look=_LOOKS[row.outcome]),
    )


def _cell(answer: ShownAnswer) -> TextCell:
    if answer.ratio is None:
        return words("no ratio", look="dim")
    mark = fmt.VerdictSign.of(answer)
    value = " ".join(filter(None, (fmt.ratio(answer.ratio.value), mark.mark if mark else "")))
    return TextCell((line((value, mark or "")), line((_bounds(answer.ratio), "dim"))))


def _bounds(ratio: Estimate) -> str:
    return f"[{fmt.interval(ratio)}]" if ratio.interval else "no interval"


OUTLINE: Outline[SideBySide] = Outline(_head, (Chapter(_answer, leads=True), Chapter(_claims), Chapter(_tables)))
"""Runs side by side, on every medium."""
