"""The answer of `redline ab --limit`: what was odd, both limits, and last their ratio in one sentence."""

from collections.abc import Iterator
from math import floor, log10, sqrt

from redline.model import Grade, Verdict
from redline.model.ab_limit import AbLimitReport
from redline.model.limits import CellLimit, LimitAnswer
from redline.quantities import duration, scale_of, significant
from redline.report import format as fmt
from redline.report.document import Column, Line, Prose, Section, Table, TableCell, filled, line, words
from redline.report.sections.limit import (
    answer_text,
    client_text,
    confirmation,
    ending_text,
    half_width,
    method_text,
    starts_text,
)
from redline.report.sections.limit_probes import failures_lines, rate_text

_COLUMNS = (Column(""), Column("met up to", "right"), Column("missed from", "right"), Column(""))
_SIDES = ("A", "B")
_FROM_ON = 2.0
"""From this ratio on it is written as `2.5 times`, not in percent."""
_NO_DIFFERENCE = {Verdict.INCONCLUSIVE: "cannot be distinguished", Verdict.EQUIVALENT: "are alike"}


def ab_limit_sections(report: AbLimitReport) -> tuple[Section, ...]:
    """For the terminal and for Markdown. The sentence stands last, where a reader's eyes are."""
    names = Prose((line((f"A: {report.a}", "dim")), line((f"B: {report.b}", "dim"))))
    sides = tuple(zip(_SIDES, report.searches, strict=True))
    around = Prose((*_findings(report), *(each for name, cell in sides for each in _lines(name, cell))))
    rows = (row for name, cell in sides for row in _rows(name, cell))
    answer = Prose((line((sentence(report), "strong")),))
    return (Section("", tuple(filled(names, around, Table(_COLUMNS, tuple(rows)), answer))),)


def _findings(report: AbLimitReport) -> Iterator[Line]:
    """What engine and machine did to the probes of both: the worst of each kind, and in how many; no notes."""
    grave = [each for cell in report.searches for each in cell.findings if each.grade is not Grade.NOTE]
    probes = sum(len(cell.probes) for cell in report.searches)
    for kind in dict.fromkeys(each.kind for each in grave):
        alike = [each for each in grave if each.kind is kind]
        worst = max(alike, key=lambda each: each.grade.weight)
        text = f"{fmt.GRADE_MARKS[worst.grade]} {kind} in {len(alike)} of {probes} probes: {worst.message}"
        yield line((text, worst.grade))


def _lines(name: str, cell: CellLimit) -> Iterator[Line]:
    """What there is to say of a search besides its answer."""
    doubts = (client_text(cell), "" if cell.ended == "interrupted" else ending_text(cell))
    yield from (line((f"{fmt.GRADE_MARKS[Grade.WARN]} {name}: {text}", Grade.WARN)) for text in filter(None, doubts))
    yield from (line((f"{name}: requests failed {text}", "dim")) for text in failures_lines(cell.probes))
    facts = (fmt.count(len(cell.probes), "probe"), starts_text(cell), confirmation(cell))
    yield line((f"{name}: {'; '.join(filter(None, facts))}", "dim"))


def _rows(name: str, cell: CellLimit) -> Iterator[tuple[TableCell, ...]]:
    for answer in cell.limits:
        wide = "" if answer.decided or not half_width(answer) else "wider than the goal: give --for more time"
        known = (half_width(answer), method_text(answer), wide, _reason(answer))
        yield words(name), rate_text(answer.passed_per_s), rate_text(answer.failed_per_s), words(*known)


def sentence(report: AbLimitReport) -> str:
    """`B answers 12.1% more requests/s than A within p99 < 50ms (95% interval 8.0 to 16.3%): 21.3 k/s [20.9, 21.8] …`.

    It ends with both limits and the time.
    """
    ratio, what = report.ratio, f"requests/s within {report.objective}"
    one, other = (next(iter(cell.limits), None) for cell in report.searches)
    end = f"; {duration(report.seconds * 1e9)}{'; interrupted' if report.interrupted else ''}"
    if ratio is None or one is None or other is None:
        known = "; ".join(f"{name}: {_known(each)}" for name, each in zip(_SIDES, (one, other), strict=True))
        return f"The ratio of the limits within {report.objective} is not known. {known}{end}"
    limits = f"{_limit(other)} against {_limit(one)}"
    low, high = ratio.low or 0.0, ratio.high or 0.0
    if report.confidence is None:
        times = f"{significant(low)} to {significant(high)} times"
        return f"B answers {times} as many {what} as A, by single rates, which give no confidence: {limits}{end}"
    interval = f"{fmt.percent(report.confidence)} interval"
    if report.verdict in _NO_DIFFERENCE:
        change = f"{_percent(ratio.value)}% [{_percent(low)}, {_percent(high)}]"
        return f"A and B {_NO_DIFFERENCE[report.verdict]} in {what}: {change}; B {limits}{end}"
    if high >= _FROM_ON:
        times = f"{significant(ratio.value)} times as many {what} as A"
        return f"B answers {times} ({interval} {significant(low)} to {significant(high)}): {limits}{end}"
    more = "more" if ratio.value > 1 else "fewer"
    near, far = sorted(abs(bound - 1) * 100 for bound in (low, high))
    size = f"{abs(ratio.value - 1) * 100:.1f}% {more} requests/s than A within {report.objective}"
    return f"B answers {size} ({interval} {near:.1f} to {far:.1f}%): {limits}{end}"


def _percent(ratio: float) -> str:
    return fmt.signed((ratio - 1) * 100, 1).removeprefix("+")


def _known(answer: LimitAnswer | None) -> str:
    if answer is None:
        return "nothing is known"
    reason = _reason(answer)
    return f"{answer_text(answer)}{f' ({reason})' if reason else ''}"


def _reason(answer: LimitAnswer) -> str:
    """Why a limit is not known better. What would decide an interval of a model is said in flags of `redline limit`."""
    return "" if answer.confidence is not None else answer.reason


def _limit(answer: LimitAnswer) -> str:
    """`21.3 k/s [20.9, 21.8]`."""
    low, high = answer.passed_per_s or 0.0, answer.failed_per_s or 0.0
    middle = sqrt(low * high)
    scale, unit = scale_of(middle, "1/s")
    places = min(3, max(0, -floor(log10((high - low) / 2 / scale)))) if high > low else 0
    numbers = (f"{each / scale:,.{places}f}" for each in (middle, low, high))
    return "{} {unit} [{}, {}]".format(*numbers, unit=unit)
