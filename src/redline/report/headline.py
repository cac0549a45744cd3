"""The verdict of a comparison in one line, with which its Markdown begins: the worst change first. It is never long."""

import math
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from redline.analysis.compare import lacks_verdict
from redline.document import format as fmt
from redline.document.blocks import Line, Prose, Section, Span
from redline.model import CellReport, Comparison, Metric, Report, Verdict

State = Literal["slower", "faster", "slightly slower", "slightly faster", "equivalent", "inconclusive", "unknown"]

_MOST = 6
"""The most requests that are named with one verdict."""
_LONGEST_NAME, _LONGEST_REASON = 60, 200
"""In characters. GitHub cuts a comment, and never its first line."""


class _Judged(NamedTuple):
    """A request under a load, its comparison, and what that says."""

    name: str
    comparison: Comparison
    state: State


def headline(report: Report) -> Iterator[Section]:
    """The verdict of a comparison; nothing for other runs."""
    if report.run.kind == "comparison":
        yield Section("", (Prose((_headline(report),)),))


def _headline(report: Report) -> Line:
    if report.run.same is not None:
        return (Span(report.run.same.text, "strong"),)
    cells = {cell.cell_id: cell for cell in report.cells}
    several = len({cell.load for cell in report.cells}) > 1
    primary = [each for each in report.comparisons if each.primary and each.cell_id in cells]
    many = len({comparison.metric for comparison in primary}) > 1
    judged = [
        _Judged(
            _name(cells[comparison.cell_id], comparison, several=several, many=many), comparison, _state(comparison)
        )
        for comparison in primary
    ]
    parts = [*_before(report), *_changes(judged), *_alike(judged), *_unknown(judged)]
    if not judged:
        parts.append((Span("unknown: nothing was compared", "strong"),))
    of = {(one.comparison.metric, one.comparison.cell_id, one.comparison.baseline_id) for one in judged}
    said = {_about(metric, cells[cell], cells.get(base)) for metric, cell, base in of}
    about = f" ({said.pop()})" if len(said) == 1 else ""
    joined = [span for part in parts for span in (Span("; "), *part)][1:]
    return (*joined, Span(about))


def _name(cell: CellReport, comparison: Comparison, *, several: bool, many: bool) -> str:
    """`list`, `list · steady` of several loads, `p99 of list` of several metrics."""
    request = _short(f"{cell.scenario} · {cell.load}" if several else cell.scenario, _LONGEST_NAME)
    return f"{comparison.metric.words} of {request}" if many else request


def _about(metric: Metric, cell: CellReport, base: CellReport | None) -> str:
    over = f" over {_short(base.server, _LONGEST_NAME)}" if base is not None else ""
    return f"{metric.words}, {_short(cell.server, _LONGEST_NAME)}{over}"


def _state(comparison: Comparison) -> State:
    if lacks_verdict(comparison) or comparison.verdict is None:
        return "unknown"
    match comparison.verdict:
        case Verdict.SLOWER:
            return "slightly slower" if comparison.matters is False else "slower"
        case Verdict.FASTER:
            return "slightly faster" if comparison.matters is False else "faster"
        case Verdict.EQUIVALENT:
            return "equivalent"
        case Verdict.INCONCLUSIVE:
            return "inconclusive"


def _before(report: Report) -> Iterator[Line]:
    """Yield why the comparison is not whole."""
    if report.run.aborted_by:
        yield (Span(f"aborted by {_short(report.run.aborted_by, _LONGEST_REASON)}", "strong"),)
    elif report.run.interrupted:
        yield (Span("not complete", "strong"),)


def _changes(judged: Sequence[_Judged]) -> Iterator[Line]:
    """Yield the requests that changed, those that became slower first, and of these the worst."""
    changes: tuple[tuple[State, str], ...] = (
        ("slower", "slower"),
        ("faster", "faster"),
        ("slightly slower", "slower by less than matters"),
        ("slightly faster", "faster by less than matters"),
    )
    for state, words in changes:
        if some := sorted((one for one in judged if one.state == state), key=_size, reverse=True):
            yield (Span(f"{words}: "), *_listed(some)) if state.startswith("slightly") else _strong(words, some)


def _strong(words: str, some: Sequence[_Judged]) -> Line:
    """`**slower: list +22%** [19, 25], add +7.1% [4.0, 10.3]`."""
    first, *others = _listed(some)
    return (Span(f"{words}: {first.text}", "strong"), *others)


def _listed(some: Sequence[_Judged]) -> Iterator[Span]:
    for place, one in enumerate(some[:_MOST]):
        ratio = one.comparison.ratio
        assert ratio is not None, "a verdict has a ratio"
        yield Span(f"{', ' if place else ''}{one.name} {fmt.change(ratio, whole_from=0.1)}")
        if bounds := _bounds(one.comparison):
            yield Span(f" {bounds}")
    if len(some) > _MOST:
        yield Span(f" and {len(some) - _MOST} more")


def _bounds(comparison: Comparison) -> str:
    ratio = comparison.ratio
    if ratio is None or ratio.says_nothing:
        return ""
    return fmt.change_bounds(ratio, whole_from=0.1).replace("+", "")


def _alike(judged: Sequence[_Judged]) -> Iterator[Line]:
    """Yield how many requests are alike, and of how many nothing is known but that no difference was found."""
    decides = not any(one.state in {"slower", "faster"} for one in judged)
    alike = [one for one in judged if one.state == "equivalent"]
    if alike:
        least = fmt.percent(alike[0].comparison.threshold)
        yield (Span(f"no difference of {least} in {_counted(alike)}", "strong" if decides else ""),)
    if undecided := [one for one in judged if one.state == "inconclusive"]:
        yield (Span(f"no difference found in {_counted(undecided)}", "strong" if decides and not alike else ""),)


def _unknown(judged: Sequence[_Judged]) -> Iterator[Line]:
    """Yield the requests that could not be judged, with the reason of the first."""
    if unknown := [one for one in judged if one.state == "unknown"]:
        names = ", ".join(one.name for one in unknown[:_MOST])
        more = f" and {len(unknown) - _MOST} more" if len(unknown) > _MOST else ""
        look: Literal["strong", ""] = "strong" if len(unknown) == len(judged) else ""
        why = _short(unknown[0].comparison.why_no_verdict, _LONGEST_REASON)
        yield (Span(f"unknown: {names}{more}", look), Span(f" ({why})" if why else ""))


def _counted(some: Sequence[_Judged]) -> str:
    if len(some) == 1:
        return some[0].name
    metrics = len({one.comparison.metric for one in some})
    return fmt.count(len(some), "request") if metrics == 1 else f"{len(some)} numbers"


def _size(one: _Judged) -> float:
    """How large a change is, upwards or downwards."""
    ratio = one.comparison.ratio
    return abs(math.log(ratio.value)) if ratio is not None and ratio.value > 0 else math.inf


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
