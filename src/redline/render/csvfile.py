"""The report as CSV (RFC 4180): rows of cells and metrics, or for a search rows of limits and probes.

docs/reference/results.md is the contract.
"""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain

from redline.document.format import PERCENTILES, quantile_name
from redline.model import (
    CellReport,
    Comparison,
    Estimate,
    Finding,
    JourneyReport,
    MemoryReport,
    Metric,
    Percentile,
    Report,
    RequestReport,
)
from redline.model.limits import LimitProbe, LimitReport
from redline.model.streams import StreamReport
from redline.quantities import duration
from redline.report.views import comparisons_by_cell, counts_are_known, weighed_findings
from redline.visible import visible

_CELL = (
    *("cell_id", "slug", "server", "scenario", "load", "load_text", "role", "is_baseline", "valid"),
    *("build", "runtime_version"),
)
_ESTIMATE = ("value", "low", "high", "confidence", "unit", "n", "method")
_JUDGED = ("matters", "p", "p_adjusted", "family", "family_name", "p_equivalent", "caveat")
_BOUND = ("at_least", "at_most", "hidden_by")
"""What is known in place of a value, and the finding that hides it."""
COLUMNS = (
    *("run", *_CELL[:9], "metric", *_ESTIMATE, "baseline_id", "ratio", "ratio_low", "ratio_high", "verdict", "refused"),
    *("findings", *_CELL[9:], *_JUDGED, "design", *_BOUND),
)

_PROBE = (
    *("phase", "fresh", "start", "rate_per_s", "seconds", "offered_per_s", "answered_per_s", "errors"),
    *("p50_ns", "p90_ns", "p99_ns", "p999_ns", "overloaded", "client"),
)
_ADDED_LATER = ("p75_ns", "p95_ns", "max_ns", "aborted_by")
_TIMES = {0.5: "p50_ns", 0.75: "p75_ns", 0.9: "p90_ns", 0.95: "p95_ns", 0.99: "p99_ns", 0.999: "p999_ns", 1.0: "max_ns"}
_OF_MESSAGES = {
    f"{name}_{_TIMES[q]}": (times, q)
    for name, times in {"first_message": "first_event", "gap": "gaps"}.items()
    for q in (0.5, 0.95, 0.99)
}
_OF_REQUEST = ("request", "requests", "body_bytes", *(f"first_byte_{name}" for name in _TIMES.values()))
_SPEEDS = ("passed_speed", "failed_speed")
_LIMIT = ("passed_per_s", "failed_per_s", "confidence", "decided", "method", "binding", "reason")
_AGAINST = ("met_at_per_s", "missed_at_per_s", "doubts")
_CHANGED = ("changed_until_s", "changed_since_s", "changed")
_OF_USERS = ("passed_users", "failed_users", "met_at_users", "missed_at_users")
_RATIO = ("baseline", "ratio", "ratio_low", "ratio_high", "verdict", "matters")
SEARCH_COLUMNS = (
    *("row", "slug", "server", "target", "scenario", "load", "build", "runtime_version", "ended", "objectives"),
    *_LIMIT,
    *_RATIO,
    *_PROBE,
    *_ADDED_LATER,
    *_OF_REQUEST,
    "speed",
    *_SPEEDS,
    *_AGAINST,
    "bounds",
    "began_s",
    *_CHANGED,
    "users",
    *_OF_USERS,
    "messages_per_s",
    *_OF_MESSAGES,
    "goodput",
)
"""The columns of a search: `row` gives the kind of a row."""

_POOLED = "all used trials together: no interval"
_MEDIAN = "median of the trials: no interval"
_TOUCHED = {True: "touched", False: "not touched"}
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""The last four are full-width forms of the first four, which a spreadsheet may treat alike."""
_FORMULA_WITHIN = re.compile(r"""([;\t\r\n][\s"]*)([=+\-@\uff1d\uff0b\uff0d\uff20])""")
"""A spreadsheet whose separator is a semicolon or tab splits the text there, quoted or not."""
Field = str | int | float | bool | None


def render(report: Report) -> bytes:
    """Rows per cell: for its metrics, proxies, profiles and other times; then a row per skipped cell.

    Header, UTF-8, CRLF. An apostrophe precedes text that a spreadsheet would run as a formula.
    """
    return _sheet(COLUMNS, rows(report))


def render_search(report: LimitReport) -> bytes:
    """Rows for cells: a row per limit, per probe and per request of a probe; then per comparison and skipped cell."""
    return _sheet(SEARCH_COLUMNS, search_rows(report))


def _sheet(columns: Sequence[str], written: Iterable[dict[str, Field]]) -> bytes:
    sheet = io.StringIO(newline="")
    writer = csv.writer(sheet, lineterminator="\r\n")
    writer.writerow(columns)
    for row in written:
        writer.writerow([field_text(row.get(column)) for column in columns])
    return sheet.getvalue().encode(errors="replace")


def search_rows(report: LimitReport) -> Iterator[dict[str, Field]]:
    """Yield the rows of a search, with the columns that a row fills."""
    for cell in report.cells:
        names = ("slug", "server", "target", "scenario", "load", "build", "runtime_version", "ended")
        about: dict[str, Field] = {name: getattr(cell, name) for name in names}
        for limit in cell.limits:
            known = {name: getattr(limit, name) for name in (*_LIMIT, *_SPEEDS, *_AGAINST, *_OF_USERS)}
            known["doubts"] = "; ".join(limit.doubts)
            if (changed := limit.changed) is not None:
                known |= dict(zip(_CHANGED, (changed.until_s, changed.since_s, changed.text), strict=True))
            yield about | {"row": "limit", "objectives": limit.name} | known
        for probe in cell.probes:
            made: dict[str, Field] = {
                name: getattr(probe, name) for name in (*_PROBE, *_ADDED_LATER, "speed", "began_s", "users")
            }
            made["bounds"] = "; ".join(f"{name}: {left}" for name, left in probe.bounds.items())
            made |= _of_messages(probe.streams)
            yield about | {"row": "probe"} | made
            loaded = {
                name: made[name] for name in ("phase", "fresh", "start", "rate_per_s", "seconds", "speed", "users")
            }
            for request in probe.requests:
                yield about | {"row": "request"} | loaded | _of_request(probe, request)
        if not cell.limits:
            yield about | {"row": "limit", "reason": cell.reason}
    for comparison in report.comparisons:
        ends = comparison.ratio and {
            "ratio": comparison.ratio.value,
            "ratio_low": comparison.ratio.low,
            "ratio_high": comparison.ratio.high,
        }
        yield {
            "row": "comparison",
            "slug": comparison.slug,
            "objectives": comparison.objective,
            "confidence": comparison.confidence,
            "baseline": comparison.baseline,
            "verdict": comparison.verdict,
            "matters": comparison.matters,
            **(ends or {}),
        }
    for skipped in report.skipped:
        yield {"row": "skipped", "slug": skipped.slug, "reason": skipped.reason}


def _of_request(probe: LimitProbe, request: RequestReport) -> dict[str, Field]:
    """What a probe counted of one of several requests; as in its own row, what ended with it early is no error."""
    ended_by_us = request.outcomes.in_flight + request.outcomes.unsent if probe.hopeless or probe.aborted_by else 0
    known, first = ({point.q: point.ns for point in times} for times in (request.response, request.first_byte))
    bounds = (f"{quantile_name(point.q)}: {point.bound}" for point in request.response if point.bound)
    return {
        "request": request.request,
        "bounds": "; ".join(bounds),
        "answered_per_s": request.rate_per_s,
        "requests": request.outcomes.total,
        "errors": request.outcomes.errors - ended_by_us,
        "body_bytes": request.body_bytes,
        **{name: known.get(q) for q, name in _TIMES.items()},
        **{f"first_byte_{name}": first.get(q) for q, name in _TIMES.items()},
    }


def rows(report: Report) -> Iterator[dict[str, Field]]:
    """Yield the rows of a report, with the columns that a row fills."""
    comparisons, findings = comparisons_by_cell(report), report.findings
    shares, cpu, code = _shares(report), _cpu_by_request(report), _cpu_by_function(report)
    for cell in report.cells:
        about = {"run": report.run.name, **_identity(cell, findings[cell.cell_id])}
        compared = comparisons.get(cell.cell_id, {})
        for metric in (metric for metric in Metric if cell.streams is not None or not metric.is_of_messages):
            yield (about | _numbers(cell, metric) | _judgement(compared.get(metric), shown=cell.shows_numbers))
        for part in cell.parts if cell.shows_numbers else ():
            for metric, estimate in part.estimates.items():
                yield about | _estimated(estimate) | {"metric": f"{metric.value}:{part.name}", "unit": metric.unit}
        divided = cpu.get(cell.cell_id, []) if cell.shows_numbers else []
        for metric_name, estimate in (*shares.get(cell.cell_id, []), *divided):
            yield about | _estimated(estimate) | {"metric": metric_name}
        yield from (about | row for row in code.get(cell.cell_id, []))
        for name, points in _further_times(cell):
            known = {point.q: point for point in points}
            for q in PERCENTILES:
                metric_name = f"{name}-{quantile_name(q)}"
                yield about | {"metric": metric_name, "unit": "ns", "method": _POOLED} | _value(known.get(q))
        streams = _streams(cell) if cell.shows_numbers else ()
        costs = () if cell.hides(Metric.MEMORY) else chain(_memory(cell.memory), _watched(cell))
        for numbers in chain(_deviations(cell), _counted(cell), streams, costs):
            yield about | numbers
    for skipped in report.skipped:
        yield {
            "run": report.run.name,
            "slug": skipped.slug,
            "valid": False,
            "findings": f"skipped: {skipped.reason}",
        }
    yield from _lost(report)
    yield from _claimed(report)


def _claimed(report: Report) -> Iterator[dict[str, Field]]:
    """Yield a row for every published claim: what was measured, and whether it agrees."""
    ids = {cell.slug: cell.cell_id for cell in report.cells}
    for result in report.claims:
        claim, measured = result.claim, result.measured
        numbers: dict[str, Field] = {}
        if measured is not None and claim.to:
            numbers = {"ratio": measured.value, "ratio_low": measured.low, "ratio_high": measured.high}
        elif measured is not None:
            numbers = _estimated(measured)
        yield {
            "run": report.run.name,
            "slug": claim.of,
            "cell_id": ids.get(claim.of),
            "metric": f"{claim.metric.value}:claim {claim.id or claim.text}",
            "baseline_id": ids.get(claim.to),
            **numbers,
            "verdict": result.state,
            "findings": result.reason,
        }


def _lost(report: Report) -> Iterator[dict[str, Field]]:
    """Yield a row for every duet that lost starts: how many, and why the first of them."""
    for lost in report.lost_starts:
        yield {
            "run": report.run.name,
            "slug": " | ".join(lost.servers),
            "scenario": lost.scenario,
            "load": lost.load,
            "design": "duet",
            "valid": False,
            "n": lost.lost,
            "findings": f"lost: {lost.lost} of {lost.made} starts: {lost.reason}",
        }


def _value(number: Field | Percentile) -> dict[str, Field]:
    """A number, or the bounds of a percentile."""
    if not isinstance(number, Percentile):
        return {"value": number}
    if number.bound == "at most":
        return {"at_most": number.ns, "at_least": number.at_least_ns}
    return {"at_least" if number.bound else "value": number.ns}


def _further_times(cell: CellReport) -> Iterator[tuple[str, Sequence[Percentile]]]:
    """Yield other times, and service times where findings hide response times."""
    if cell.shows_numbers:
        yield from ((time.name.replace(" ", "-"), time.points) for time in cell.other_times)
    if not cell.valid and cell.shows_numbers and cell.service_percentiles:
        yield "service", cell.service_percentiles


def _by_request(cell: CellReport) -> Iterator[dict[str, Field]]:
    """Yield what was counted by request: `throughput:GET /items`, `p99:GET /items`."""
    for request in cell.requests:
        known, first = ({point.q: point for point in times} for times in (request.response, request.first_byte))
        numbers: list[tuple[str, str, Field | Percentile]] = [
            (Metric.THROUGHPUT.value, Metric.THROUGHPUT.unit, request.rate_per_s),
            *((quantile_name(q), "ns", known.get(q)) for q in PERCENTILES),
            *((f"first-byte-{quantile_name(q)}", "ns", first.get(q)) for q in PERCENTILES if first),
            ("requests", "1", request.outcomes.total),
            ("errors", "1", request.outcomes.errors),
            ("body", "B", request.body_bytes),
            *((f"answers-{status}", "1", count) for status, count in request.answers.items()),
            *((kind.replace("_", "-"), "1", count) for kind, count in request.outcomes if count and kind != "ok"),
        ]
        for name, unit, number in numbers:
            yield {"metric": f"{name}:{request.request}", "unit": unit, "method": _POOLED, **_value(number)}


def _deviations(cell: CellReport) -> Iterator[dict[str, Field]]:
    """Yield the columns of wrk for a load that was measured by itself: `response-stdev`, `rate-within-stdev`."""
    known = cell.load_facts.deviations if cell.load_facts else None
    if known is None:
        return
    kinds = (
        ("response", "ns", known.response),
        ("rate", "1/s", known.rate),
        ("worker-rate", "1/s", known.worker_rate),
    )
    for name, unit, deviation in kinds:
        if deviation is None:
            continue
        method = _POOLED if name == "response" else f"by interval of {duration(known.interval_ns)}: no interval"
        numbers = (
            ("mean", unit, deviation.mean),
            ("stdev", unit, deviation.stdev),
            ("max", unit, deviation.max),
            ("within-stdev", "ratio", deviation.within),
        )
        for column, own_unit, value in numbers:
            yield {"metric": f"{name}-{column}", "unit": own_unit, "value": value, "method": method}


def _of_messages(streams: StreamReport | None) -> dict[str, Field]:
    """What a probe measured of messages, without bounds."""
    if streams is None:
        return {}
    times: dict[str, Field] = {
        name: point.ns
        for name, (kind, q) in _OF_MESSAGES.items()
        for point in getattr(streams, kind)
        if point.q == q and not point.bound
    }
    return {"messages_per_s": streams.events_per_s, "goodput": streams.goodput} | times


def _streams(cell: CellReport) -> Iterator[dict[str, Field]]:
    """Yield what was measured of streams of events: `events-per-second`, `first-event-p99`; of a mix by request."""
    own = [(f":{request.request}", request.streams) for request in cell.requests]
    for of, streams in [("", cell.streams), *own]:
        if streams is None:
            continue
        numbers: list[tuple[str, str, Field | Percentile]] = [
            ("streams", "1", streams.begun),
            ("events", "1", streams.events),
            ("events-per-second", "1/s", streams.events_per_s),
            ("stalls", "1", streams.stalls),
            ("other-messages", "1", streams.aside),
            ("amount", "1", streams.amount),
            ("amount-per-second", "1/s", streams.amount_per_s),
            ("ended-early", "1", streams.early),
            ("goodput", "1", streams.goodput),
        ]
        for name, points in (
            ("first-event", streams.first_event),
            ("between-events", streams.gaps),
            ("slowest-gap", streams.slowest_gap),
            ("per-message", streams.per_message),
            ("push", streams.push),
            ("jitter", streams.jitter),
        ):
            known = {point.q: point for point in points}
            numbers += [(f"{name}-{quantile_name(q)}", "ns", known.get(q)) for q in PERCENTILES]
        for name, unit, number in numbers:
            yield {"metric": f"{name}{of}", "unit": unit, "method": _POOLED, **_value(number)}


def _counted(cell: CellReport) -> Iterator[dict[str, Field]]:
    """Yield what was counted of journeys and by request; where no level is known, the counts alone, if they are."""
    for numbers in chain(_journeys(cell.journeys), _by_request(cell)):
        if cell.shows_numbers or (numbers["unit"] == "1" and counts_are_known(cell)):
            yield numbers


def _journeys(journeys: JourneyReport | None) -> Iterator[dict[str, Field]]:
    """Yield what became of journeys: `journeys`, `abandoned:buy`, `journey-p99`."""
    if journeys is None:
        return
    known = {point.q: point for point in journeys.response}
    numbers: list[tuple[str, str, Field | Percentile]] = [
        ("journeys-per-second", "1/s", journeys.begun_per_s),
        ("journeys", "1", journeys.begun),
        ("journeys-completed", "1", journeys.completed),
        ("journeys-unfinished", "1", journeys.unfinished),
        *((f"abandoned:{step}", "1", count) for step, count in journeys.abandoned.items()),
        *((f"skipped:{step}", "1", count) for step, count in journeys.skipped.items()),
        *((f"journey-{quantile_name(q)}", "ns", known.get(q)) for q in PERCENTILES),
    ]
    for name, unit, number in numbers:
        yield {"metric": name, "unit": unit, "method": _POOLED, **_value(number)}


def _watched(cell: CellReport) -> Iterator[dict[str, Field]]:
    """Yield what monitors of other packages saw."""
    for seen in cell.watched:
        unit = f"{seen.unit}/s" if seen.kind == "counter" else seen.unit
        about: dict[str, Field] = {"metric": f"{seen.name}:{seen.subject}", "unit": unit}
        yield about | {"value": seen.middle, "n": seen.trials, "method": _MEDIAN}


def _memory(memory: MemoryReport | None) -> Iterator[dict[str, Field]]:
    """Yield the numbers that the runtime reported."""
    if memory is None:
        return
    pauses = memory.pauses.histogram
    numbers: tuple[tuple[str, str, Field], ...] = (
        ("allocated-per-request", "B", memory.allocated_per_request),
        ("live-set", "B", memory.live_bytes),
        ("time-paused", "ratio", memory.paused_share),
        ("pause-p50", "ns", pauses.quantile_ns(0.5) if pauses.count else None),
        ("pause-p99", "ns", pauses.quantile_ns(0.99) if pauses.count else None),
        ("pause-max", "ns", pauses.max_ns if pauses.count else None),
    )
    for name, unit, number in numbers:
        if number is not None:
            yield {"metric": name, "unit": unit, "value": number, "method": _POOLED}


def _cpu_by_function(report: Report) -> dict[str, list[dict[str, Field]]]:
    """The differences of CPU time that are surely there, as `cpu-difference:FUNCTION`, by cell id."""
    return {
        why.cell_id: [
            {
                **_estimated(cost.difference_ns),
                "metric": f"cpu-difference:{cost.name}",
                "baseline_id": why.baseline_id,
                "p_adjusted": cost.p_adjusted,
                "family_name": "all functions"
                if cost.touched is None
                else f"functions {_TOUCHED[cost.touched]} in this range",
            }
            for cost in why.functions
        ]
        + [
            {**_estimated(left), "metric": f"cpu-difference:{name}", "baseline_id": why.baseline_id}
            for name, left in (("others", why.others_ns), ("not-accounted-for", why.rest_ns))
            if left is not None
        ]
        for why in report.why
    }


def _shares(report: Report) -> dict[str, list[tuple[str, Estimate]]]:
    """The metrics of profiles, such as `cpu-share:netty`, by cell id."""
    shares: dict[str, list[tuple[str, Estimate]]] = {}
    for profile in report.profiles:
        of = f"{profile.kind}-share" if profile.subject == "server" else f"{profile.subject}-{profile.kind}-share"
        shares.setdefault(profile.cell_id, []).extend(
            (f"{of}:{library.name}", library.share) for library in profile.libraries
        )
    return shares


def _cpu_by_request(report: Report) -> dict[str, list[tuple[str, Estimate]]]:
    """How CPU time in a mix divides, such as `cpu-of-mix:checkout`, and the sum of the parts over it, by cell id."""
    return {
        divided.cell_id: [
            *((f"cpu-of-mix:{request.request}", request.share) for request in divided.requests),
            ("cpu-parts-over-mix", divided.parts_over_mix),
        ]
        for divided in report.cpu_by_request
        if divided.parts_over_mix is not None
    }


def _identity(cell: CellReport, findings: Sequence[Finding]) -> dict[str, Field]:
    of_duets = [finding for finding in findings if finding not in cell.findings]
    weighed = sorted([*weighed_findings(cell), *of_duets], key=lambda finding: -finding.grade.weight)
    texts = dict.fromkeys(f"{finding.grade}:{finding.kind}" for finding in weighed)
    return {name: getattr(cell, name) for name in _CELL} | {"findings": ";".join(texts)}


def _numbers(cell: CellReport, metric: Metric) -> dict[str, Field]:
    """The estimate, or what is known in its place; only the metric and its unit if nothing is."""
    about: dict[str, Field] = {"metric": metric.value, "unit": metric.unit}
    if bound := cell.bounds.get(metric):
        return about | {"at_least": bound.at_least, "at_most": bound.at_most, "hidden_by": bound.finding}
    estimate = cell.known.get(metric)
    if estimate is None:
        return about
    return about | _estimated(estimate)


def _estimated(estimate: Estimate) -> dict[str, Field]:
    return {name: getattr(estimate, name) for name in _ESTIMATE}


def _judgement(comparison: Comparison | None, *, shown: bool) -> dict[str, Field]:
    if comparison is None:
        return {}
    about: dict[str, Field] = {"baseline_id": comparison.baseline_id, "refused": comparison.refused}
    if not shown:
        return about
    if ratio := comparison.ratio:
        about |= {"ratio": ratio.value, "ratio_low": ratio.low, "ratio_high": ratio.high}
    about["design"] = "alone"
    if duet := comparison.duet:
        about["design"] = "parallel-duet" if duet.parallel else "duet"
    return about | {name: getattr(comparison, name) for name in ("verdict", *_JUDGED)}


def field_text(field: Field) -> str:
    """Numbers in the shortest form that reads back the same; text defused (OWASP, CSV injection)."""
    if field is None:
        return ""
    if isinstance(field, bool):
        return "true" if field else "false"
    return _defused(field) if isinstance(field, str) else repr(field)


@lru_cache(1024)
def _defused(text: str) -> str:
    shown = _FORMULA_WITHIN.sub(r"\1'\2", visible(text))
    return f"'{shown}" if text.startswith(_FORMULA_STARTS) else shown
