"""LimitReport -> bytes: the built-in renderers, by the name of their format."""

from collections.abc import Mapping
from typing import Protocol

from redline.model.limits import LimitReport
from redline.report.render import markdown
from redline.report.render.html.limit import LimitHtmlRenderer
from redline.report.sections.limit import limit_comment


class LimitRenderer(Protocol):
    """LimitReport -> bytes."""

    def render(self, report: LimitReport) -> bytes:
        """The whole report in this format."""
        ...


class LimitJsonRenderer:
    """LimitReport -> JSON, indented by two, UTF-8, a newline at the end. The same report gives the same bytes."""

    def render(self, report: LimitReport) -> bytes:
        """The whole report; docs/reference/cli.schema.json describes it."""
        return report.model_dump_json(indent=2).encode() + b"\n"


class LimitMarkdownRenderer:
    """LimitReport -> Markdown, fit for a comment on a pull request."""

    def render(self, report: LimitReport) -> bytes:
        """The answers, what is known around each, and how to repeat the search."""
        return markdown.render(limit_comment(report))


LIMIT_RENDERERS: Mapping[str, LimitRenderer] = {
    "html": LimitHtmlRenderer(),
    "json": LimitJsonRenderer(),
    "md": LimitMarkdownRenderer(),
}
