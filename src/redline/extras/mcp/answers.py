"""What a tool answers: the sentences of the report, what makes them doubtful, and the whole text."""

from pathlib import Path

from pydantic import BaseModel, Field

from redline.api.results import RunResult, SearchResult
from redline.cli.commands.report import report_in
from redline.model import Finding
from redline.model.limits import LimitReport
from redline.report.outcomes import outcomes
from redline.storage.reports import read_report
from redline.storage.runs import RunStore

NO_DOUBT = "no rule found a reason to doubt these numbers"


class Doubt(BaseModel):
    """A reason to doubt some numbers."""

    grade: str = Field(description="note, warn, or invalid: then the numbers that it touches are not shown")
    about: str = Field(description="the cell: server, request and load")
    message: str
    advice: str


class ToolAnswer(BaseModel):
    """What was measured, and how far it can be trusted."""

    answer: list[str] = Field(description="a sentence for each comparison, objective, limit or level")
    doubt: str = Field(description="how many reasons there are to doubt it; repeat this beside the answer")
    doubts: list[Doubt] = Field(description="these reasons, the gravest first")
    text: str = Field(description="the summary with intervals, as a terminal shows it")
    kept: str | None = Field(description="the folder of the recordings and of report.html, for `explain`")


def answer_of(result: RunResult | SearchResult) -> ToolAnswer:
    """The answer of a result, with every finding about it."""
    return ToolAnswer(
        answer=[outcome.text for outcome in outcomes(result.report)] or ["nothing was measured"],
        doubt=_counted(result.findings),
        doubts=[
            Doubt(grade=it.grade.value, about=it.cell_id, message=it.message, advice=it.advice)
            for it in result.findings
        ],
        text=str(result),
        kept=None if result.folder is None else str(result.folder.resolve()),
    )


def stored_result(path: Path) -> RunResult | SearchResult:
    """A stored result, of a folder or a results.json. Raises StoreError."""
    is_document = path.is_file() and path.name != RunStore.manifest_file
    report = read_report(path) if is_document else report_in(path)
    folder = None if is_document else path
    return SearchResult(report, folder) if isinstance(report, LimitReport) else RunResult(report, folder)


def _counted(findings: tuple[Finding, ...]) -> str:
    if not findings:
        return NO_DOUBT
    grades = [finding.grade for finding in findings]
    counts = ", ".join(f"{grades.count(grade)} {grade.value}" for grade in dict.fromkeys(grades))
    return f"reasons to doubt these numbers: {counts}"
