"""Reports -> bytes: the built-in renderers of runs and of searches, by the name of their format."""

from collections.abc import Mapping
from typing import Protocol

from redline.model import Report
from redline.model.limits import LimitReport
from redline.ports import Renderer
from redline.report.render import markdown
from redline.report.render.csvfile import CsvRenderer
from redline.report.render.html import HtmlRenderer
from redline.report.render.html.limit_page import LimitHtmlRenderer
from redline.report.sections.limit import limit_comment
from redline.report.sections.run import run_comment


class LimitRenderer(Protocol):
    """LimitReport -> bytes."""

    def render(self, report: LimitReport) -> bytes:
        """The whole report in this format."""
        ...


class JsonRenderer:
    """The report itself as JSON, indented by two, UTF-8, a newline at the end: the published schema is the contract."""

    def render(self, report: Report | LimitReport) -> bytes:
        """The whole report; docs/reference/ has the schemas. The same report gives the same bytes."""
        return report.model_dump_json(indent=2).encode() + b"\n"


class MarkdownRenderer:
    """Report -> Markdown, fit for a comment on a pull request."""

    def render(self, report: Report) -> bytes:
        """Costs, effects, rankings, results, findings, and how to repeat the run."""
        return markdown.render(run_comment(report))


class LimitMarkdownRenderer:
    """LimitReport -> Markdown, fit for a comment on a pull request."""

    def render(self, report: LimitReport) -> bytes:
        """The answers, what is known around each, and how to repeat the search."""
        return markdown.render(limit_comment(report))


RENDERERS: Mapping[str, Renderer] = {
    "html": HtmlRenderer(),
    "csv": CsvRenderer(),
    "json": JsonRenderer(),
    "md": MarkdownRenderer(),
}
LIMIT_RENDERERS: Mapping[str, LimitRenderer] = {
    "html": LimitHtmlRenderer(),
    "json": JsonRenderer(),
    "md": LimitMarkdownRenderer(),
}
