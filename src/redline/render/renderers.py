"""The built-in renderers by format name, and the summary on a terminal."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import TypeAlias, TypeVar

from redline.document.blocks import Medium, Page, Section
from redline.document.outline import Outline
from redline.model import Report
from redline.model.history import History
from redline.model.limits import AnyReport, LimitReport
from redline.model.side_by_side import SideBySide
from redline.ports import Renderer
from redline.render import ci, csvfile, html, markdown
from redline.render.formats import FORMATS, Needs, ResultFormat
from redline.report import run
from redline.report.headline import headline
from redline.report.load import load_section
from redline.report.outcomes import outcomes
from redline.report.single import has_facts, is_single

R = TypeVar("R")

Beside: TypeAlias = Callable[[Callable[[], bytes]], AbstractContextManager[Callable[[], bytes]]]
"""Makes something while a block runs, which calls what it gets to take it."""


def summary(report: AnyReport) -> Iterable[Section]:
    """The summary of a report for a terminal."""
    return _text(report, Medium.TERMINAL)


def own_view(report: AnyReport) -> Iterable[Section]:
    """What the command that measured it prints: of a load its numbers, of others the summary."""
    if isinstance(report, LimitReport) or not any(map(has_facts, report.cells)):
        return summary(report)
    return [load_section(report.cells[0])]


def brief(report: AnyReport) -> Iterable[Section] | None:
    """The answer and its caveats, for a terminal; None of what is brief as a whole, or has no answer."""
    if (
        isinstance(report, LimitReport)
        or report.run.kind != "run"
        or not any(cell.shows_numbers for cell in report.cells)
    ):
        return None
    return None if is_single(report) else run.OUTLINE.brief(report)


def page(report: AnyReport) -> Page:
    """The report as a page, before it is drawn."""
    return _of_search().page(report) if isinstance(report, LimitReport) else run.OUTLINE.page(report)


def _of_search() -> Outline[LimitReport]:
    from redline.report.limit import OUTLINE  # noqa: PLC0415 - runs need nothing of searches

    return OUTLINE


def _text(report: AnyReport, medium: Medium) -> Iterable[Section]:
    if isinstance(report, LimitReport):
        return _of_search().text(report, medium)
    return run.OUTLINE.text(report, medium)


def _headline(report: AnyReport) -> Iterable[Section]:
    """The verdict of a comparison, with which a comment on a pull request begins."""
    return () if isinstance(report, LimitReport) else headline(report)


def as_html(report: AnyReport, beside: Beside = nullcontext) -> bytes:
    """The page, in one file. `beside` makes the data of its figures: it may share the work."""
    if isinstance(report, LimitReport):
        return _as_html(_of_search(), report, beside)
    return _as_html(run.OUTLINE, report, beside)


def _as_html(outline: Outline[R], report: R, beside: Beside) -> bytes:
    figures = outline.figures(report)
    with beside(partial(html.figures_data, figures)) as data:
        return html.render(outline.page(report, figures), data)


def as_csv(report: AnyReport) -> bytes:
    """A sheet with a row for each cell and metric."""
    return csvfile.render_search(report) if isinstance(report, LimitReport) else csvfile.render(report)


def as_markdown(report: AnyReport) -> bytes:
    """The summary as Markdown, with the verdict first."""
    return markdown.render((*_headline(report), *_text(report, Medium.MARKDOWN)))


def as_junit(report: AnyReport) -> bytes:
    """A test case for each outcome."""
    name = report.suite if isinstance(report, LimitReport) else report.run.suite
    return ci.junit(name, outcomes(report))


def as_json(report: AnyReport) -> bytes:
    """The report itself, indented by two, with a final newline. `visible` leaves the data unchanged."""
    return b"".join(json_pieces(report))


def json_pieces(report: AnyReport) -> Iterator[bytes]:
    """Yield the same in pieces, which need not be in memory together."""
    yield from report.json_pieces() if isinstance(report, Report) else (report.json_bytes(indent=2),)
    yield b"\n"


def as_annotations(report: AnyReport) -> bytes:
    """A notice or warning for each outcome."""
    return ci.annotations(outcomes(report))


def _rendered(form: ResultFormat, report: AnyReport) -> bytes:
    content: bytes = form.load()(report)
    return content


RENDERERS: Mapping[str, Renderer] = {
    form.name: partial(_rendered, form)
    for form in FORMATS.values()
    if form.needs is Needs.REPORT and not form.holds and not form.is_binary
}
"""What makes a text of a report, by the name of the format. What writes it is loaded when it is called."""


def history_page(history: History) -> bytes:
    """The page of a history, which has courses and no plots."""
    from redline.history import page as history_sections  # noqa: PLC0415 - no other report needs it

    return html.render(history_sections.page(history))


def _sides_page(result: SideBySide) -> bytes:
    from redline.report.side_by_side import OUTLINE  # noqa: PLC0415 - no other report needs it

    return html.render(OUTLINE.page(result))


def _sides_markdown(result: SideBySide) -> bytes:
    from redline.report.side_by_side import OUTLINE  # noqa: PLC0415 - no other report needs it

    return markdown.render(OUTLINE.text(result, Medium.MARKDOWN))


SIDES: Mapping[str, Callable[[SideBySide], bytes]] = {
    "html": _sides_page,
    "md": _sides_markdown,
    "json": lambda result: result.json_bytes(indent=2) + b"\n",
}
"""What makes a document of several runs side by side, by the name of its format."""
