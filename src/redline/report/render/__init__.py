"""Reports -> bytes: the built-in renderers of runs and of searches, by the name of their format."""

from collections.abc import Mapping
from typing import Protocol

from redline.model import Report
from redline.model.limits import LimitReport
from redline.ports import Renderer
from redline.report.render import html, markdown
from redline.report.render.csvfile import CsvRenderer
from redline.report.sections.limit import limit_comment, limit_page
from redline.report.sections.run import run_comment, run_page


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


class HtmlRenderer:
    """Report -> one self-contained page."""

    def render(self, report: Report) -> bytes:
        """The whole page."""
        return html.render(run_page(report))


class LimitHtmlRenderer:
    """LimitReport -> one self-contained page."""

    def render(self, report: LimitReport) -> bytes:
        """The whole page."""
        return html.render(limit_page(report))


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
