"""LimitReport -> bytes: the built-in renderers, by the name of their format."""

from collections.abc import Mapping
from typing import Protocol

from redline.model.limits import LimitReport
from redline.report.render.html.limit import LimitHtmlRenderer
from redline.report.render.limit_markdown import LimitMarkdownRenderer


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


LIMIT_RENDERERS: Mapping[str, LimitRenderer] = {
    "html": LimitHtmlRenderer(),
    "json": LimitJsonRenderer(),
    "md": LimitMarkdownRenderer(),
}
