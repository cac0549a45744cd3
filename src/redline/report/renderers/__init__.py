"""Report -> bytes: the built-in renderers, by the name of their format."""

from collections.abc import Mapping

from redline.ports import Renderer
from redline.report.renderers.csvfile import CsvRenderer
from redline.report.renderers.html import HtmlRenderer
from redline.report.renderers.jsonfile import JsonRenderer
from redline.report.renderers.markdown import MarkdownRenderer

RENDERERS: Mapping[str, Renderer] = {
    "html": HtmlRenderer(),
    "csv": CsvRenderer(),
    "json": JsonRenderer(),
    "md": MarkdownRenderer(),
}

__all__ = ["RENDERERS"]
