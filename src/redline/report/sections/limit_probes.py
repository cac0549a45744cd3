"""The probes of a search as a table: what each saw, what it counts for, and why it was made."""

from collections.abc import Iterator, Sequence

from redline.model.limits import LimitProbe
from redline.quantities import duration
from redline.report import format as fmt
from redline.report.document import Column, Span, Table, TableCell, TextCell

_PROBE_COLUMNS = tuple(Column(name, "right") for name in ("rate", "answered", "p50", "p90", "p99", "p99.9", "errors"))


def probes_summary(probes: Sequence[LimitProbe]) -> Table:
    """For a terminal, by ascending rate."""
    rows = ((*_numbers(each), counts_text(each)) for each in _by_rate(probes))
    return Table((*_PROBE_COLUMNS, Column("counts as")), tuple(rows))


def probes_table(probes: Sequence[LimitProbe]) -> Table:
    """For the page, with the length of each, and why it was made; those that show nothing are muted."""
    ordered = _by_rate(probes)
    rows = ((*_numbers(each), f"{each.seconds:.1f} s", counts_text(each), probe_note(each)) for each in ordered)
    columns = (*_PROBE_COLUMNS, Column("length", "right"), Column("counts as"), Column(""))
    return Table(columns, tuple(rows), muted=frozenset(at for at, each in enumerate(ordered) if each.is_void))


def _by_rate(probes: Sequence[LimitProbe]) -> list[LimitProbe]:
    return sorted(probes, key=lambda probe: probe.rate_per_s)


def _numbers(probe: LimitProbe) -> Iterator[TableCell]:
    yield TextCell(((Span(rate_text(probe.rate_per_s), "", probe.recording),),))
    yield rate_text(probe.answered_per_s)
    for ns in (probe.p50_ns, probe.p90_ns, probe.p99_ns, probe.p999_ns):
        yield time_text(ns)
    yield fmt.integer(probe.errors)


def counts_text(probe: LimitProbe) -> str:
    """What a probe counts for, and why: `met`, `missed: its backlog only grew`, `good: missed; acceptable: met`."""
    if not probe.counts:
        return "not the server" if probe.client else "hopeless" if probe.hopeless else ""
    several = len({(each.state, each.why) for each in probe.counts}) > 1
    texts = (
        f"{each.name}: {each.state}" + (f" ({each.why})" if each.why else "")
        if several
        else each.state + (f": {each.why}" if each.why else "")
        for each in (probe.counts if several else probe.counts[:1])
    )
    return "; ".join(texts)


def probe_note(probe: LimitProbe) -> str:
    """What there is to say of a probe beside its numbers, and beside what it counts for."""
    phase = {"search": "", "curve": "for the curve", "confirm": "to confirm"}[probe.phase]
    state = "hopeless: ended early" if probe.hopeless else "did not keep up" if probe.overloaded else ""
    client = f"not the server: {probe.client}" if probe.client and not probe.counts else ""
    start = f"start {probe.start + 1}" if probe.fresh or probe.start else ""
    return "; ".join(part for part in (state, client, phase or probe.why, start) if part)


def failures_lines(probes: Sequence[LimitProbe]) -> Iterator[str]:
    """Why requests failed, by the lowest rate at which they did so: `from 100/s on, malformed: …`."""
    told: set[str] = set()
    for probe in _by_rate(probes):
        for failure in probe.failures:
            if failure.outcome not in told:
                told.add(failure.outcome)
                yield f"from {rate_text(probe.rate_per_s)} on, {failure.text}"


def time_text(ns: int | None) -> str:
    """A percentile; a dash where too few responses lie beyond it."""
    return "—" if ns is None else duration(ns)


def rate_text(per_s: float | None) -> str:
    """`1,769/s`: as many digits as an answer has; a dash where it is not known."""
    return "—" if per_s is None else f"{per_s:,.0f}/s"
