"""Report -> bytes: the built-in renderers, by the name of their format."""

from collections.abc import Mapping

from redline.ports import Renderer
from redline.report.render.csvfile import CsvRenderer
from redline.report.render.html import HtmlRenderer
from redline.report.render.jsonfile import JsonRenderer
from redline.report.render.report_markdown import MarkdownRenderer

RENDERERS: Mapping[str, Renderer] = {
    "html": HtmlRenderer(),
    "csv": CsvRenderer(),
    "json": JsonRenderer(),
    "md": MarkdownRenderer(),
}

__all__ = ["RENDERERS"]
