"""Reports -> bytes: the built-in renderers of runs, searches and comparisons, by the name of their format."""

from collections.abc import Callable, Mapping

from redline.model import Report
from redline.model.duet import AbReport
from redline.model.limits import LimitReport
from redline.ports import Renderer
from redline.report.render import csvfile, html, markdown
from redline.report.sections.ab import ab_sections
from redline.report.sections.limit import limit_comment, limit_page
from redline.report.sections.run import run_comment, run_page
from redline.visible import visible


def _json(report: Report | LimitReport | AbReport) -> bytes:
    """The report itself, indented by two, a newline at the end. `visible` leaves the data as it is."""
    return visible(report.model_dump_json(indent=2)).encode() + b"\n"


RENDERERS: Mapping[str, Renderer] = {
    "html": lambda report: html.render(run_page(report)),
    "csv": csvfile.render,
    "json": _json,
    "md": lambda report: markdown.render(run_comment(report)),
}
LIMIT_RENDERERS: Mapping[str, Callable[[LimitReport], bytes]] = {
    "html": lambda report: html.render(limit_page(report)),
    "json": _json,
    "md": lambda report: markdown.render(limit_comment(report)),
}
AB_RENDERERS: Mapping[str, Callable[[AbReport], bytes]] = {
    "json": _json,
    "md": lambda report: markdown.render(ab_sections(report)),
}
