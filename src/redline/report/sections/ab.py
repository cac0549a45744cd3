"""The answer of `redline ab`: reasons to doubt it, a table of all metrics, and last one sentence."""

from redline.model import Metric, Verdict
from redline.model.duet import AbMetric, AbReport, Ratio
from redline.quantities import duration
from redline.report import format as fmt
from redline.report.document import Column, Prose, Section, Table, TableCell, line, words

_COLUMNS = (Column("B over A"), Column("change", "right"), Column("95% interval", "right"), Column("A over A", "right"))
_MORE = {Metric.CPU_PER_REQUEST: "takes {} CPU per request than A", Metric.THROUGHPUT: "answers {} requests than A"}


def ab_sections(report: AbReport) -> tuple[Section, ...]:
    """For the terminal and for Markdown. The sentence stands last, where a reader's eyes are."""
    chosen = AbMetric(metric=report.metric, ratio=report.ratio, verdict=report.verdict, self_ratio=report.self_ratio)
    doubts = Prose(
        tuple(line((f"{fmt.GRADE_MARKS[each.grade]} {each.message}", each.grade)) for each in report.findings)
    )
    table = Table(_COLUMNS, tuple(_row(each) for each in (chosen, *report.also)))
    return (Section("", (doubts, table, Prose((line((sentence(report), "strong")),)))),)


def _row(each: AbMetric) -> tuple[TableCell, ...]:
    bounds = _bounds(each.ratio)
    control = "" if each.self_ratio is None else f"{_change(each.self_ratio)} {_bounds(each.self_ratio)}"
    return (
        words(f"{fmt.MARKS[each.verdict]} {fmt.label(each.metric)}", look=each.verdict),
        words(_change(each.ratio)),
        words(bounds),
        words(control, look="dim"),
    )


def sentence(report: AbReport) -> str:
    """`B takes 3.1% more CPU per request than A (95% interval 2.4 to 3.9%); A against itself: 0.1% [-0.5, 0.7]; …`."""
    ratio = report.ratio
    size = abs(ratio.value - 1) * 100
    more = f"{size:.1f}% {'more' if ratio.value > 1 else 'less'}"
    if report.verdict is Verdict.INCONCLUSIVE:
        answer = f"A and B cannot be distinguished in {fmt.label(report.metric)}: {_change(ratio)} {_bounds(ratio)}"
    elif report.verdict is Verdict.EQUIVALENT:
        answer = f"A and B are alike in {fmt.label(report.metric)}: {_change(ratio)} {_bounds(ratio)}"
    elif report.metric in _MORE:
        answer = f"B {_MORE[report.metric].format(more)} (95% interval {_bounds(ratio)})"
    else:
        answer = f"B's {fmt.label(report.metric)} is {size:.1f}% {'higher' if ratio.value > 1 else 'lower'} than A's"
        answer += f" (95% interval {_bounds(ratio)})"
    parts = [answer]
    if report.self_ratio is not None:
        parts.append(f"A against itself: {_change(report.self_ratio)} {_bounds(report.self_ratio)}")
    parts.append(f"{duration(report.seconds * 1e9)}, {fmt.count(report.starts, 'start')}")
    return "; ".join(parts)


def _change(ratio: Ratio) -> str:
    return f"{fmt.signed((ratio.value - 1) * 100, 1)}%"


def _bounds(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return "not known"
    return f"[{fmt.signed((ratio.low - 1) * 100, 1)}, {fmt.signed((ratio.high - 1) * 100, 1)}]"
