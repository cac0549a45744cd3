"""The headline of a run: how two servers compare over all of its workloads, by its verdicts alone."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from redline.document import format as fmt
from redline.document.blocks import Line, line
from redline.model import Comparison, Metric, Report, Verdict
from redline.quantities import significant
from redline.report.boards import Workload, cost_boards
from redline.report.views import comparisons_by_cell


class _Wording(NamedTuple):
    """A verb and its noun, the words for a higher and a lower value, and that of `as much … as`."""

    verb: str
    noun: str
    more: str
    less: str
    as_much: str


_WORDS = {
    Metric.CPU_PER_REQUEST: _Wording("needs", "CPU per request", "more", "less", "as much"),
    Metric.THROUGHPUT: _Wording("answers", "requests", "more", "fewer", "as many"),
}
_MOST_PAIRS = 3
"""With more servers, the fastest one is the headline."""


def headline_lines(report: Report) -> Iterator[Line]:
    """Yield a sentence for each server that is compared with its baseline in several workloads.

    A workload is a scenario under a load. Percentiles are left out: their ranges over workloads say little.
    """
    names, compared = {cell.cell_id: cell.server for cell in report.cells}, comparisons_by_cell(report)
    pairs: dict[tuple[str, str], list[dict[Metric, Comparison]]] = {}
    for cell in report.cells:
        known = compared.get(cell.cell_id, {})
        judged = {metric: known[metric] for metric in _WORDS if metric in known and known[metric].verdict is not None}
        if cell.role == "subject" and known:
            baseline = next(iter(known.values())).baseline_id
            pairs.setdefault((cell.server, names.get(baseline, baseline)), []).append(judged)
    several = {pair: workloads for pair, workloads in pairs.items() if len(workloads) > 1}
    if len(several) <= _MOST_PAIRS:
        yield from _lines(several)


def study_lines(report: Report, most: int) -> tuple[Line, ...]:
    """An announcement, and a sentence for each of many pairs over its workloads in all settings, in the report's order.

    Of more pairs than `most`, those with the largest differences have one. Empty without a difference.
    """
    pairs: dict[tuple[str, str], dict[tuple[str, Workload], dict[Metric, Comparison]]] = {}
    for board in cost_boards(report):
        for (pair, workload), comparison in board.comparisons.items() if board.metric in _WORDS else ():
            judged = pairs.setdefault((pair.server, pair.against), {}).setdefault((pair.setting, workload), {})
            if comparison.verdict is not None:
                judged[board.metric] = comparison
    sizes = {pair: max(map(_size, workloads.values())) for pair, workloads in pairs.items()}
    if not any(sizes.values()):
        return ()
    largest = sorted(sizes, key=lambda pair: -sizes[pair])[:most]
    lines = tuple(
        sentence
        for pair, workloads in pairs.items()
        if pair in largest
        for sentence in _lines({pair: [*workloads.values()]}) or _mixed(pair, [*workloads.values()])
    )
    some = f"The {len(largest)} of {len(sizes)} pairs that differ most" if len(largest) < len(sizes) else "Each pair"
    return (line(f"{some}, over all workloads:"), *lines) if lines else ()


def _size(known: dict[Metric, Comparison]) -> float:
    """The largest difference that is sure, as a logarithm."""
    return max(
        (abs(math.log(one.ratio.value)) for one in known.values() if _is_decided(one) and one.ratio), default=0.0
    )


def _lines(pairs: Mapping[tuple[str, str], Sequence[dict[Metric, Comparison]]]) -> list[Line]:
    lines = []
    for (server, against), workloads in pairs.items():
        if texts := [text for metric in _WORDS for text in _over_all(metric, workloads, against)]:
            lines.append(line(f"{server} ", (texts[0], "strong"), *(f", and {text}" for text in texts[1:])))
    return lines


def _mixed(pair: tuple[str, str], workloads: Sequence[dict[Metric, Comparison]]) -> list[Line]:
    """`a differs from b in 3 of 36 workloads, in no direction that most of them share`; that no difference is known."""
    server, against = pair
    differing = sum(any(map(_is_decided, known.values())) for known in workloads)
    if not differing:
        return [line(f"{server} ", ("is not known to differ", "strong"), f" from {against} in any workload")]
    told = f"differs from {against} in {differing} of {len(workloads)} workloads"
    return [line(f"{server} ", (told, "strong"), ", in no direction that most of them share")]


def _over_all(metric: Metric, workloads: Sequence[dict[Metric, Comparison]], against: str) -> Iterator[str]:
    """`needs 12 to 17% more CPU per request than hyper [11, 18] in all 4 workloads`, or in most of them."""
    judged = [workload[metric] for workload in workloads if metric in workload]
    for rises in (True, False):
        some = [one for one in judged if _differs(one, rises=rises)]
        if 2 * len(some) > len(judged):
            yield f"{_by_how_much(metric, some, against, rises=rises)} {_where(some, judged, workloads)}"
    if judged and all(one.verdict is Verdict.EQUIVALENT for one in judged):
        words, within = _WORDS[metric], fmt.percent(judged[0].threshold)
        where = _where(judged, judged, workloads)
        yield f"{words.verb} {words.as_much} {words.noun} as {against}, within {within}, {where}"


def _differs(comparison: Comparison, *, rises: bool) -> bool:
    return _is_decided(comparison) and comparison.ratio is not None and (comparison.ratio.value > 1) is rises


def _is_decided(comparison: Comparison) -> bool:
    return comparison.verdict in {Verdict.FASTER, Verdict.SLOWER}


def _by_how_much(metric: Metric, some: Sequence[Comparison], against: str, *, rises: bool) -> str:
    """`needs 12 to 17% more CPU per request than hyper [11, 18]`: from the least to the most, intervals together."""
    words = _WORDS[metric]
    values = [one.ratio.value for one in some if one.ratio]
    ends = [end for one in some if one.ratio for end in one.ratio.interval or ()]
    in_times = any(fmt.factor_in_times(value) is not None for value in values)
    sizes, bounds = (_written(of, in_times=in_times, rises=rises) for of in (values, ends))
    size = " to ".join(dict.fromkeys((sizes[0], sizes[-1])))
    word = words.more if rises else words.less
    if in_times:
        what = f"{size} times {words.as_much} {words.noun} as" if rises else f"{size} times {word} {words.noun} than"
    else:
        what = f"{size}% {word} {words.noun} than"
    hull = f" [{bounds[0]}, {bounds[-1]}]" if bounds else ""
    return f"{words.verb} {what} {against}{hull}"


def _where(some: Sequence[Comparison], judged: Sequence[Comparison], all_: Sequence[object]) -> str:
    """`in all 4 workloads`, `in 3 of 4 workloads`, `in both workloads with a verdict on it`."""
    which = " with a verdict on it" if len(judged) < len(all_) else ""
    if len(some) < len(judged):
        return f"in {len(some)} of {len(judged)} workloads{which}"
    if len(some) == 1:
        return f"in the only workload{which}"
    return f"in {'both' if len(some) == 2 else f'all {len(some)}'} workloads{which}"


def _written(ratios: Iterable[float], *, in_times: bool, rises: bool) -> list[str]:
    """Ratios as factors or in percent, the smallest difference first: `12`, `17`."""
    if in_times:
        return [significant(factor, 2) for factor in sorted(ratio if rises else 1 / ratio for ratio in ratios)]
    sizes = sorted(abs(ratio - 1) for ratio in ratios)
    return [f"{size * 100:.{int(round(size, 3) < 0.1)}f}" for size in sizes]
