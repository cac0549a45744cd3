"""Results of other tools as a section: their numbers from file to file, and what these files do not report."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from redline.document import format as fmt
from redline.document.blocks import Column, Prose, Section, Table, TableCell, line
from redline.model.history import OtherLine, OtherResult
from redline.report.bars import bars

_THRESHOLD = 0.02
_MOST = 40
_SHOWN = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)
_NO_VERDICT = "Every file is a single run: there is no interval, and nothing here is called faster or slower."
_COLUMNS = (
    Column("result", place="above"),
    Column("metric"),
    Column("files"),
    Column("last", align="right"),
    Column("before", align="right"),
)
"""The columns; `before` is the file before the last."""


def other_sections(lines: Sequence[OtherLine]) -> Iterator[Section]:
    """A table with a row for each metric that any file has, and a line for each kind of file; empty without files."""
    if not lines:
        return
    unsaid: dict[str, tuple[str, ...]] = {}
    for own in lines:
        for result in own.results:
            unsaid.setdefault(result.tool, result.unsaid)
    does_not = (f"{tool} does not say {'; nor '.join(texts)}" for tool, texts in unsaid.items() if texts)
    yield Section(
        "Single results",
        blocks=(
            Table(_COLUMNS, tuple(row for own in lines for row in _rows(own))),
            Prose((line((_NO_VERDICT, "dim")), *(line((f"{text}.", "dim")) for text in does_not))),
        ),
        anchor="single-results",
    )


def _rows(own: OtherLine) -> Iterator[tuple[TableCell, ...]]:
    where = own.url or f"files in {own.folder}"
    order = (
        f"{len(own.results)} files in the order of {'their start' if own.dated else 'their names on the command line'}"
    )
    about = "  ".join(filter(None, (own.load, order if len(own.results) > 1 else own.results[0].file)))
    name = f"{own.tool} {where}  {about}"
    for metric, value_of, text_of in _metrics():
        values = [value_of(result) for result in own.results]
        if any(value is not None for value in values):
            last, before = (_text(values[at], text_of) if len(values) >= -at else "" for at in (-1, -2))
            yield name, metric, bars(values[-_MOST:], _THRESHOLD) if len(values) > 1 else "", last, before


def _metrics() -> Iterator[tuple[str, Callable[[OtherResult], float | None], Callable[[float], str]]]:
    yield "rate", lambda result: result.rate_per_s, fmt.rate
    for q in _SHOWN:
        yield fmt.quantile_name(q), partial(_quantile, q), fmt.duration
    yield "failed", lambda result: result.failed, lambda failed: fmt.integer(round(failed))


def _quantile(q: float, result: OtherResult) -> float | None:
    return next((float(point.ns) for point in result.response if point.q == q), None)


def _text(value: float | None, text_of: Callable[[float], str]) -> str:
    return "not said" if value is None else text_of(value)
