"""What the measurements say to published claims: a table, and a sentence."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

from redline.document import format as fmt
from redline.document.blocks import Column, Line, Look, Prose, Section, Table, TextCell, filled, key, line, words
from redline.model import Estimate, Report
from redline.model.claim import Claim, ClaimResult, ClaimState
from redline.quantities import ratio

_LOOKS: dict[ClaimState, Look] = {"agrees": "met", "differs": "missed", "not known": "unknown", "not measured": "dim"}
_KEY = key(
    "**Agrees**: the whole 95% interval lies within what was published, a number ±10%; **differs**: all of it lies "
    "outside; **not known**: neither."
)


def claims_summary(report: Report) -> Iterator[Section]:
    """`Of 31 published claims 5 agree, 3 differ, 8 are not known and 15 are not measured.`, if there are any."""
    if report.claims:
        yield Section("Published claims", (Prose((line(_claims_text(report.claims)),)),))


def claims_section(report: Report) -> Iterator[Section]:
    """A row per claim, with what was measured."""
    if report.claims:
        columns = map(Column, ("", "published", "expected", "measured", ""))
        reasons = [*dict.fromkeys(_reason(result) for result in report.claims if result.reason)]
        table = Table(tuple(columns), tuple(tuple(_row(result, reasons)) for result in report.claims))
        notes = Prose(tuple(line((f"{at}. {reason}", "dim")) for at, reason in enumerate(reasons, 1)))
        blocks = filled(Prose((line(_claims_text(report.claims)),)), Prose((_KEY,)), table, notes)
        yield Section("Published claims", tuple(blocks), anchor="claims")


def _claims_text(results: tuple[ClaimResult, ...]) -> str:
    numbers = Counter(result.state for result in results)
    said = [f"{numbers[state]} {_verb(state, numbers[state])}" for state in get_args(ClaimState) if numbers[state]]
    *others, last = said
    said_first = f"{', '.join(others)} and " if others else ""
    return f"Of {fmt.count(len(results), 'published claim')} {said_first}{last}."


def _verb(state: ClaimState, number: int) -> str:
    if state == "agrees":
        return "agrees" if number == 1 else "agree"
    if state == "differs":
        return "differs" if number == 1 else "differ"
    return f"{'is' if number == 1 else 'are'} {state}"


def _row(result: ClaimResult, reasons: Sequence[str]) -> Iterator[TextCell]:
    """The cells of a claim; its state has the number of its reason."""
    yield from published(result.claim)
    yield words(_measured(result.measured) if result.measured else "")
    number: list[tuple[str, Look]] = [(f" ({reasons.index(_reason(result)) + 1})", "dim")] if result.reason else []
    yield TextCell((line((result.state, _LOOKS[result.state]), *number),))


def _reason(result: ClaimResult) -> str:
    """Why a claim has no answer, without the cell that it is of: many claims have the same reason."""
    return result.reason.removeprefix(f"{result.claim.of}: ").removeprefix(f"{result.claim.to}: ")


def published(claim: Claim) -> tuple[TextCell, TextCell, TextCell]:
    """Its number, its words, and what it expects, as cells of a row."""
    return words(claim.id), words(claim.text), words(_expected(claim), look="dim")


def outcome(result: ClaimResult | None) -> TextCell:
    """What a run among several says to a claim."""
    if result is None:
        return words("no such claim", look="dim")
    measured = [line(_measured(result.measured))] if result.measured else []
    return TextCell((_state(result), *measured))


def _state(result: ClaimResult) -> Line:
    return line((result.state, _LOOKS[result.state]))


def _expected(claim: Claim) -> str:
    """`throughput ratio 0.8`, `p99 < 1ms`; empty without a number."""
    if not claim.expected:
        return ""
    return f"{claim.metric.words} {'ratio ' if claim.to else ''}{claim.expected}"


def _measured(estimate: Estimate) -> str:
    """A ratio with its interval, or a level as `435 µs [420-450 µs]`."""
    if estimate.unit != "ratio":
        interval = fmt.interval(estimate)
        return f"{fmt.amount(estimate.value, estimate.unit)}{interval and f' [{interval}]'}"
    said = f"\u00d7 {ratio(estimate.value)}"
    if estimate.interval is None:
        return said
    return f"{said} [{fmt.NOT_KNOWN if estimate.says_nothing else ', '.join(map(ratio, estimate.interval))}]"
