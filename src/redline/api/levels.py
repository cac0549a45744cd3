"""The levels of a cell as amounts: a number, a bound, or why neither is known."""

from redline.api.amounts import Amount, BoundedAmount, Unit
from redline.errors import NotKnownError
from redline.findings import RULES
from redline.model import CellReport, Counts, Finding, FindingKind, Grade, Metric, Numbers, numbers_of
from redline.report.views import counts_are_known, invalid_reason
from redline.stats import QUANTILE_OF

_UNITS: dict[str, Unit] = {"ns": "ns", "1/s": "1/s", "B": "B"}


def level_of(cell: CellReport, metric: Metric) -> Amount:
    """A metric of a cell, or its bound. Raises NotKnownError."""
    if estimate := cell.known.get(metric):
        return Amount(metric.words, estimate.value, _UNITS[estimate.unit], estimate.low, estimate.high)
    bound = cell.bounds.get(metric)
    if bound and bound.says_something:
        ends, why = (bound.at_least, bound.at_most), (bound.reason, _advice(cell, bound.finding))
        return BoundedAmount(metric.words, _UNITS[bound.unit], ends, why)
    if cell.hides(metric):
        raise _hidden(cell, metric.words, numbers_of(metric))
    raise _not_measured(cell, metric)


def counts_of(cell: CellReport) -> Counts:
    """How the requests of a cell ended. Raises NotKnownError where the engine itself failed."""
    if not counts_are_known(cell):
        raise _hidden(cell, "errors", "counts")
    return cell.counts


def _hidden(cell: CellReport, name: str, numbers: Numbers) -> NotKnownError:
    hiding = _hiding(cell, numbers) or [finding for finding in cell.findings if finding.grade is Grade.INVALID]
    hint = hiding[0].advice if hiding else "its trials say why: print the result"
    return NotKnownError(f"{name} is not known: {invalid_reason(cell)}", hint=hint)


def _hiding(cell: CellReport, numbers: Numbers) -> list[Finding]:
    invalid = (finding for finding in cell.findings if finding.grade is Grade.INVALID)
    return [finding for finding in invalid if numbers in RULES[finding.kind].touches]


def _advice(cell: CellReport, kind: FindingKind) -> str:
    return next((finding.advice for finding in cell.findings if finding.kind == kind), "print the result")


def _not_measured(cell: CellReport, metric: Metric) -> NotKnownError:
    for few in cell.too_few:
        if few.metric is metric:
            message = f"{metric.words} needs {few.needs:,} requests, and {few.missing:,} are missing"
            return NotKnownError(message, hint="load it for longer, or at a higher rate")
    hint = "it is read of servers that Redline starts: give `load` the command, or use `ab`"
    if metric.is_of_messages:
        hint = "only streams of messages and WebSockets have it: load one, such as by `events`"
    if metric in QUANTILE_OF or metric is Metric.THROUGHPUT:
        if _hiding(cell, numbers_of(metric)):
            return _hidden(cell, metric.words, numbers_of(metric))
        hint = "print the result: its outcomes say how requests ended"
    return NotKnownError(f"{metric.words} was not measured", hint=hint)
