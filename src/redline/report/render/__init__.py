"""Reports -> bytes: the built-in renderers, by the name of their format; and what a terminal shows."""

from collections.abc import Iterable, Mapping

from redline.model.limits import AnyReport, LimitReport
from redline.ports import Renderer
from redline.report.document import Section
from redline.report.render import csvfile, html, markdown
from redline.report.sections.limit import limit_comment, limit_page, limit_summary
from redline.report.sections.run import run_comment, run_page, run_summary
from redline.visible import visible


def summary(report: AnyReport) -> Iterable[Section]:
    """What a terminal shows of a report."""
    return limit_summary(report) if isinstance(report, LimitReport) else run_summary(report)


def _html(report: AnyReport) -> bytes:
    return html.render(limit_page(report) if isinstance(report, LimitReport) else run_page(report))


def _csv(report: AnyReport) -> bytes:
    return csvfile.render_search(report) if isinstance(report, LimitReport) else csvfile.render(report)


def _json(report: AnyReport) -> bytes:
    """The report itself, indented by two, a newline at the end. `visible` leaves the data as it is."""
    return visible(report.model_dump_json(indent=2)).encode() + b"\n"


def _markdown(report: AnyReport) -> bytes:
    return markdown.render(limit_comment(report) if isinstance(report, LimitReport) else run_comment(report))


RENDERERS: Mapping[str, Renderer] = {"html": _html, "csv": _csv, "json": _json, "md": _markdown}
