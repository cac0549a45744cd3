"""The built-in renderers by format name, and the summary on a terminal."""

from collections.abc import Iterable, Mapping

from redline.model.history import History
from redline.model.limits import AnyReport, LimitReport
from redline.ports import Renderer
from redline.report.document import Medium, Page, Section
from redline.report.outcomes import outcomes
from redline.report.render import benchmarks, ci, csvfile, html, markdown
from redline.report.sections import history_page as history_sections
from redline.report.sections import limit, run
from redline.report.sections.headline import headline
from redline.visible import visible


def summary(report: AnyReport) -> Iterable[Section]:
    """The summary of a report for a terminal."""
    return _text(report, Medium.TERMINAL)


def page(report: AnyReport) -> Page:
    """The report as a page, before it is drawn."""
    return limit.OUTLINE.page(report) if isinstance(report, LimitReport) else run.OUTLINE.page(report)


def _text(report: AnyReport, medium: Medium) -> Iterable[Section]:
    if isinstance(report, LimitReport):
        return limit.OUTLINE.text(report, medium)
    return run.OUTLINE.text(report, medium)


def _headline(report: AnyReport) -> Iterable[Section]:
    """The verdict of a comparison, with which a comment on a pull request begins."""
    return () if isinstance(report, LimitReport) else headline(report)


def _csv(report: AnyReport) -> bytes:
    return csvfile.render_search(report) if isinstance(report, LimitReport) else csvfile.render(report)


def _junit(report: AnyReport) -> bytes:
    name = report.suite if isinstance(report, LimitReport) else report.run.suite
    return ci.junit(name, outcomes(report))


def _json(report: AnyReport) -> bytes:
    """The report itself, indented by two, with a final newline. `visible` leaves the data unchanged."""
    return visible(report.model_dump_json(indent=2)).encode() + b"\n"


RENDERERS: Mapping[str, Renderer] = {
    "html": lambda report: html.render(page(report)),
    "csv": _csv,
    "json": _json,
    "md": lambda report: markdown.render((*_headline(report), *_text(report, Medium.MARKDOWN))),
    "junit": _junit,
    "bmf": benchmarks.bmf,
    "benchmark": benchmarks.smaller_is_better,
    "annotations": lambda report: ci.annotations(outcomes(report)),
}


def history_page(history: History) -> bytes:
    """The page of a history, which has courses and no plots."""
    return html.render(history_sections.page(history))
