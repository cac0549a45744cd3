"""The probes of a search as a table: what they showed, how they count, and why they were made."""

from collections.abc import Iterable, Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Column, Span, Table, TableCell, TextCell
from redline.model.limits import PROBE_QUANTILES, LimitProbe
from redline.model.streams import StreamReport
from redline.quantities import percent, speed
from redline.report.streams import messages_text

_FEW = ("p50", "p90", "p99", "p99.9")
"""The percentiles that a terminal has room for."""


def probes_table(probes: Sequence[LimitProbe], *, brief: bool = False) -> Table:
    """Probes by ascending rate, or number of users, with when they began; unless `brief`, with length and purpose.

    Probes that show nothing are muted.
    """
    ordered = sorted(probes, key=lambda probe: probe.tried)
    muted = frozenset(at for at, probe in enumerate(ordered) if probe.is_void)
    times = _FEW if brief else tuple(PROBE_QUANTILES)
    speeds = ("speed",) if any(probe.speed is not None for probe in probes) else ()
    begins = ("at",) if any(probe.began_s is not None for probe in probes) else ()
    tried = "users" if any(probe.users is not None for probe in probes) else "rate"
    messages = ("messages",) if any(probe.streams is not None for probe in probes) else ()
    heads = (*begins, *speeds, tried, "answered", *times, *messages, "errors", *(() if brief else ("length",)))
    rows = [
        (
            *("—" if probe.began_s is None else f"{probe.began_s:.0f} s" for _ in begins),
            *("—" if probe.speed is None else speed(probe.speed) for _ in speeds),
            *_numbers(probe, times, has_messages=bool(messages)),
            *((counts_text(probe),) if brief else (f"{probe.seconds:.1f} s", counts_text(probe), probe_note(probe))),
        )
        for probe in ordered
    ]
    texts = (Column("counts as"), *(() if brief else (Column(""),)))
    return Table((*(Column(head, "right") for head in heads), *texts), tuple(rows), muted=muted)


def _numbers(probe: LimitProbe, times: Iterable[str], *, has_messages: bool) -> Iterator[TableCell]:
    tried = rate_text(probe.rate_per_s) if probe.users is None else fmt.integer(probe.users)
    yield TextCell(((Span(tried, "", probe.recording),),))
    yield rate_text(probe.answered_per_s)
    yield from ("—" if (time := probe.time(name)) is None else fmt.point_sign(time) for name in times)
    if has_messages:
        yield "" if probe.streams is None else _messages(probe.streams)
    yield fmt.integer(probe.errors)


def _messages(streams: StreamReport) -> str:
    good = () if streams.goodput is None else (f"{percent(streams.goodput)} good",)
    return ", ".join((messages_text(streams), *good))


def counts_text(probe: LimitProbe) -> str:
    """How a probe counts, and why: `met`, `missed: its backlog only grew`, `good: missed; acceptable: met`."""
    if not probe.counts:
        return "not the server" if probe.client else "hopeless" if probe.hopeless else ""
    first, *others = probe.counts
    if all((verdict.state, verdict.why) == (first.state, first.why) for verdict in others):
        return first.state + (f": {first.why}" if first.why else "")
    return "; ".join(
        f"{verdict.name}: {verdict.state}" + (f" ({verdict.why})" if verdict.why else "") for verdict in probe.counts
    )


def probe_note(probe: LimitProbe) -> str:
    """Remarks on a probe beside its numbers and how it counts."""
    phase = {"search": "", "curve": "for the curve", "confirm": "to confirm"}[probe.phase]
    ends = "aborted" if probe.aborted_by else "hopeless" if probe.hopeless else ""
    state = f"{ends}: ended early" if ends else "did not keep up" if probe.overloaded else ""
    client = f"not the server: {probe.client}" if probe.client and not probe.counts else ""
    start = f"start {probe.start + 1}" if probe.fresh or probe.start else ""
    return "; ".join(part for part in (state, client, phase or probe.why, start) if part)


def failures_lines(probes: Sequence[LimitProbe]) -> Iterable[str]:
    """Why requests failed, by the lowest rate at which they did so: `from 100/s on, malformed: …`."""
    texts: dict[str, str] = {}
    for probe in sorted(probes, key=lambda probe: probe.tried):
        for failure in probe.failures:
            texts.setdefault(failure.outcome, f"from {probe.said} on, {failure.text}")
    return texts.values()


def rate_text(per_s: float | None) -> str:
    """`1,769/s`: with as many digits as an answer; a dash if unknown."""
    return "—" if per_s is None else f"{per_s:,.0f}/s"
