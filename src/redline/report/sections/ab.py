"""The answer of `redline ab`: reasons to doubt it, a table of all metrics, and last one sentence."""

from redline.model import Metric, Verdict
from redline.model.duet import AbMetric, AbReport, Ratio
from redline.quantities import duration
from redline.report import format as fmt
from redline.report.document import Column, Prose, Section, Table, TableCell, line, words

_COLUMNS = (Column("B over A"), Column("change", "right"), Column("95% interval", "right"), Column("A over A", "right"))
_NO_DIFFERENCE = {Verdict.INCONCLUSIVE: "cannot be distinguished", Verdict.EQUIVALENT: "are alike"}
"""What is said where the interval holds 1, and nothing but chance makes it as wide as it is."""


def ab_sections(report: AbReport) -> tuple[Section, ...]:
    """For the terminal and for Markdown. The sentence stands last, where a reader's eyes are."""
    chosen = AbMetric(metric=report.metric, ratio=report.ratio, verdict=report.verdict, self_ratio=report.self_ratio)
    doubts = Prose(
        tuple(line((f"{fmt.GRADE_MARKS[each.grade]} {each.message}", each.grade)) for each in report.findings)
    )
    table = Table(_COLUMNS, tuple(_row(each) for each in (chosen, *report.also)))
    names = Prose((line((f"A: {report.a}", "dim")), line((f"B: {report.b}", "dim"))))
    return (Section("", (names, doubts, table, Prose((line((sentence(report), "strong")),)))),)


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
    """The answer in one sentence, which ends with the control, the time and the starts.

    `B takes 3.1% more CPU per request than A (95% interval 2.4 to 3.9%), its rate is 2.9% lower [1.6, 4.1]; A against
    itself: 0.1% [-0.5, 0.7]; 60 s, 14 starts`.
    """
    name, verdict = fmt.label(report.metric), report.verdict
    if _lacks_verdict(verdict, report):
        answer, owner = f"no verdict on {name}: {report.unsettled}, so B may differ by {_plain(report.ratio)}", "B's"
    elif verdict in _NO_DIFFERENCE:
        answer, owner = f"A and B {_NO_DIFFERENCE[verdict]} in {name}: {_plain(report.ratio)}", "B's"
    elif report.metric is Metric.CPU_PER_REQUEST:
        answer, owner = f"B takes {_size(report.ratio)} {_more(report.ratio, 'more', 'less')} {name} than A", "its"
    else:
        answer = f"B's {name} is {_size(report.ratio)} {_more(report.ratio, 'higher', 'lower')} than A's"
        owner = "its"
    if verdict not in _NO_DIFFERENCE:
        answer += " (95% interval {:.1f} to {:.1f}%)".format(*_distances(report.ratio))
    rate = next((each for each in report.also if each.metric is Metric.THROUGHPUT), None)
    parts = [f"{answer}, {_rate(rate, owner, report)}" if rate and report.metric is Metric.CPU_PER_REQUEST else answer]
    if report.self_ratio is not None:
        parts.append(f"A against itself: {_plain(report.self_ratio)}")
    parts.append(f"{duration(report.seconds * 1e9)}, {fmt.count(report.starts, 'start')}")
    return "; ".join([*parts, "interrupted"] if report.interrupted else parts)


def _lacks_verdict(verdict: Verdict, report: AbReport) -> bool:
    """Whether warm servers might have had one: then it is not chance alone that makes the interval too wide."""
    return verdict is Verdict.INCONCLUSIVE and bool(report.unsettled)


def _rate(rate: AbMetric, owner: str, report: AbReport) -> str:
    if _lacks_verdict(rate.verdict, report):
        return f"no verdict on their rates: {_plain(rate.ratio)}"
    if rate.verdict in _NO_DIFFERENCE:
        return f"their rates {_NO_DIFFERENCE[rate.verdict]}: {_plain(rate.ratio)}"
    bounds = "[{:.1f}, {:.1f}]".format(*_distances(rate.ratio))
    return f"{owner} rate is {_size(rate.ratio)} {_more(rate.ratio, 'higher', 'lower')} {bounds}"


def _more(ratio: Ratio, above: str, below: str) -> str:
    return above if ratio.value > 1 else below


def _size(ratio: Ratio) -> str:
    return f"{abs(ratio.value - 1) * 100:.1f}%"


def _distances(ratio: Ratio) -> tuple[float, float]:
    """The bounds of an interval that lies on one side of 1, as what they are away from it, in percent."""
    low, high = sorted(abs((bound or 1) - 1) * 100 for bound in (ratio.low, ratio.high))
    return low, high


def _plain(ratio: Ratio) -> str:
    """`0.1% [-0.5, 0.7]`: without a plus, which is for tables."""
    bounds = _bounds(ratio) if ratio.low else "(interval not known)"
    return f"{_change(ratio)} {bounds}".replace("+", "")


def _change(ratio: Ratio) -> str:
    return f"{fmt.signed((ratio.value - 1) * 100, 1)}%"


def _bounds(ratio: Ratio) -> str:
    if ratio.low is None or ratio.high is None:
        return "not known"
    return f"[{fmt.signed((ratio.low - 1) * 100, 1)}, {fmt.signed((ratio.high - 1) * 100, 1)}]"
