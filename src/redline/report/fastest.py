"""Name the fastest of three or more servers, in a sentence for each load, or as counts if there are many."""

from collections import Counter
from collections.abc import Iterable, Iterator

from redline.analysis.fastest import Lead, leads
from redline.document import format as fmt
from redline.document.blocks import Line, Look, line
from redline.model import CellReport, Metric, Report
from redline.quantities import percent, significant
from redline.report.views import groups, only_judged

_MOST = 4
"""The most sentences; with more workloads, each server's wins are counted."""


def _without_verdict(report: Report, metric: Metric) -> str:
    """`throughput, which has no verdict, as only CPU per request is judged`."""
    only = only_judged(report.comparisons)
    return f"{fmt.label(metric)}, which has no verdict{f', as {only}' if only else ''}"


def fastest_lines(report: Report) -> Iterator[Line]:
    """Name the fastest servers; empty if fewer than three servers share a baseline."""
    leading = tuple(leads(report))
    if len(leading) > _MOST:
        judged = all(lead.judged for lead in leading)
        wins = Counter(lead.first.server for lead in leading if lead.is_sure)
        texts = [f"{server} in {number:,}" for server, number in wins.most_common()]
        unknown = sum(1 for lead in leading if not lead.is_sure and lead.unknown)
        alike = len(leading) - wins.total() - unknown
        texts += [f"several alike in {alike:,}"] if alike else []
        texts += [f"not known in {unknown:,}"] if unknown else []
        said = "Fastest" if judged else f"First in {_without_verdict(report, leading[0].metric)}"
        heading: tuple[str, Look] = f"{said}, of {fmt.count(len(leading), 'workload')}", "strong" if judged else "dim"
        yield line(heading, (f": {', '.join(texts)}", "" if judged else "dim"))
        return
    where = {(group.scenario, group.load): group.where(report.cells) for group in groups(report)}
    for lead in leading:
        said, why = _headline(lead, report)
        place = where[lead.first.scenario, lead.first.load]
        if lead.judged:
            yield line((place, "dim"), (said, "strong"), why, _without(lead.without))
        else:
            yield line((f"{place}{said}{why}{_without(lead.without)}{_control(lead)}", "dim"))


def _headline(lead: Lead, report: Report) -> tuple[str, str]:
    """`go is fastest`, and by how much; or that no server is, or is known to be, and which are not distinguished."""
    if lead.is_sure and not lead.judged:
        first = f"{lead.first.server} is first in {_without_verdict(report, lead.metric)}"
        return first, f": {_by_how_much(lead)} ({lead.first.load_text})"
    if lead.is_sure:
        among = " of those compared" if lead.without else ""
        return f"{lead.first.server} is fastest{among}", f": {_by_how_much(lead)} ({lead.first.load_text})"
    parts = []
    if lead.unknown:
        parts.append(f"{_names((lead.first, *lead.unknown))} cannot be distinguished in {fmt.label(lead.metric)}")
    if lead.same:
        alike = f"are the same within {percent(lead.threshold)} in {fmt.label(lead.metric)}"
        parts.append(f"{_names((lead.first, *lead.same))} {alike}")
    if lead.apart:
        parts.append(f"{_names(lead.apart)} {'is' if len(lead.apart) == 1 else 'are'} behind")
    said = "which server is fastest is not known" if lead.unknown else "no server is fastest"
    return said, f": {', and '.join(parts)} ({lead.first.load_text})"


def _by_how_much(lead: Lead) -> str:
    """`it answers 28.1 k/s, 2.1 times node [1.9, 2.3]`; or `its p99 is 1.2 ms, node's is 2.1 times as high …`.

    A level that is not known is left out: the ratio does not rest on it.
    """
    more, name = lead.metric.higher_is_better, fmt.label(lead.metric)
    level = lead.first.known.get(lead.metric)
    known = f" {fmt.amount(level.value, level.unit)}," if level else ""
    value, low, high = lead.ratio if more else (1 / lead.ratio[0], 1 / lead.ratio[2], 1 / lead.ratio[1])
    in_times = fmt.factor_in_times(value) is not None
    if in_times:
        text, ends = f"{significant(value, 2)} times", (significant(low, 2), significant(high, 2))
    else:
        text, ends = f"{(value - 1) * 100:.1f}%", (f"{(low - 1) * 100:.1f}", f"{(high - 1) * 100:.1f}")
    if more:
        said = f"it answers{known} {text} {'' if in_times else 'more than '}{lead.second.server}"
    else:
        whose = f"its {name} is{known} {lead.second.server}'s" if level else f"the {name} of {lead.second.server}"
        said = f"{whose} is {text} {'as high' if in_times else 'higher'}"
    slight = f", within the {percent(lead.threshold)} that do not matter" if high <= 1 + lead.threshold else ""
    return f"{said} [{', '.join(ends)}]{slight}"


def _control(lead: Lead) -> str:
    """`; node against itself: 31.9% [2.6, 106.0]`: what no difference looks like in this metric."""
    if lead.control is None:
        return ""
    return f"; {lead.baseline} against itself: {fmt.unsigned_bounds(lead.control)}"


def _names(cells: Iterable[CellReport]) -> str:
    *others, last = [cell.server for cell in cells]
    if len(others) >= _MOST:
        return f"{others[0]} and {len(others)} others"
    return f"{', '.join(others)} and {last}" if others else last


def _without(cells: tuple[CellReport, ...]) -> str:
    """`; python cannot be compared`: servers that might be faster yet."""
    return f"; {_names(cells)} cannot be compared" if cells else ""
