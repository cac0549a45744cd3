"""Findings about response times in which TCP waits: for an acknowledgement, or to send a segment again."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from redline.findings.duet import SeenDuet
from redline.findings.rules import Observation, Rule
from redline.findings.starts import BASELINE
from redline.model import Cell, Histogram, TargetTraffic, Traffic
from redline.quantities import duration, percent
from redline.stats import Trial

MS = 1_000_000
_ACK = (38 * MS, 50 * MS)
"""How long Linux and Windows hold back an acknowledgement at least, with the kernel's ticks and its timers' slack."""
_LARGEST = 16_384
"""The most bytes of an answer: larger ones may take that long to arrive."""
_QUANTILES = np.arange(1, 100) / 100

_AGAIN = {200 * MS: "a lost segment", 1_000 * MS: "a SYN without an answer", 3_000 * MS: "a SYN without an answer"}
"""When Linux sends again: data after at least 200 ms; a SYN after a second, and after two more."""
_WIDTH = 0.2
"""The width of what comes with it, as a share of that time: of the request itself."""
_FEWEST = 10
_BESIDE = 0.1
"""The most requests in as wide a band on either side, relative to those within."""


@Rule("delayed-ack", when="answers", note=0.05)
def delayed_ack(traffic: Traffic) -> Observation | None:
    """Answers whose last byte came 38 to 50 ms after their first, by percentile: of short answers, not of streams.

    A server that writes an answer in two parts sends the second only when the first is acknowledged (Nagle's
    algorithm), and the client's kernel holds that back for 40 ms (RFC 1122, delayed acknowledgements).

    Advice: Write an answer at once, or set `TCP_NODELAY` on the server's connections: Java's own server does with
    `-Dsun.net.httpserver.nodelay=true`, Python's with `disable_nagle_algorithm = True`.
    """
    return _observe([traffic], "the answers")


@delayed_ack.also("duet")
def delayed_acks(duet: SeenDuet) -> Iterator[Observation]:
    """The same of each server of a duet."""
    for name, places in zip(duet.names, ((BASELINE, -1), (duet.target,)), strict=True):
        parts = [traffic.targets[place] for traffic in duet.traffics for place in places]
        if said := _observe(parts, f"the answers of {name}"):
            yield said


def _observe(parts: Sequence[Traffic | TargetTraffic], what: str) -> Observation | None:
    first = [part.first_byte for part in parts if part.first_byte is not None and part.first_byte.count]
    if len(first) < len(parts) or any(part.streams is not None for part in parts):
        return None
    received, completed = (
        sum(getattr(part.counts, name) for part in parts) for name in ("bytes_received", "completed")
    )
    if received > _LARGEST * completed:
        return None
    response, first_byte = Histogram.merged(part.response for part in parts), Histogram.merged(first)
    share = share_waiting(response, first_byte)
    p50, p50_first = (duration(times.quantile_ns(0.5)) for times in (response, first_byte))
    message = (
        f"In {percent(share)} of {what} the last byte came 38 to 50 ms after the first (p50 {p50}, of the first "
        f"byte {p50_first}): Nagle's algorithm waited for a delayed acknowledgement."
    )
    return Observation(share, message)


def share_waiting(response: Histogram, first_byte: Histogram) -> float:
    """The share of percentiles between which and those of the first byte an acknowledgement was held back."""
    whole, first = (np.array(times.quantiles_ns(_QUANTILES.tolist())) for times in (response, first_byte))
    waited = whole - first
    return float(np.mean((waited >= _ACK[0]) & (waited <= _ACK[1])))


@Rule("sent-again", when="answers", note=0.0)
def sent_again(cell: Cell, trial: Trial, traffic: Traffic) -> Iterator[Observation]:
    """Requests that took 200 ms, 1 s or 3 s, or up to a fifth longer, and hardly any took a little less or more: ten or
    more, while the machine sent at least half as many segments again. Requests that timed out are not among them.

    Linux sends lost data again after 200 ms, and a SYN that got no answer after 1 s and after 3 s.

    Advice: Find what loses packets: a listen queue that overflows (`nstat -az TcpExtListenDrops`), a full link or
    queue (`ip -s link`, `tc -s qdisc`).
    """
    again = trial.increase("tcp_segments_retransmitted", "machine") or 0.0
    for at_ns, what in _AGAIN.items() if again >= _FEWEST / 2 else ():
        timed_out = traffic.counts.outcomes.timeout if at_ns <= cell.timeout_ns < at_ns * (1 + _WIDTH) else 0
        requests = alone_at(traffic.response, at_ns) - timed_out
        if requests >= _FEWEST and again >= requests / 2:
            message = (
                f"{requests:,} requests took {duration(at_ns)} to {duration(round(at_ns * (1 + _WIDTH)))}, and this "
                f"machine sent {again:,.0f} TCP segments again, those of other programs included: {what} is sent again "
                f"after {duration(at_ns)}."
            )
            yield Observation(requests / traffic.counts.due, message)


def alone_at(times: Histogram, at_ns: int) -> int:
    """The number of times from `at_ns` up to a fifth longer; 0 if they are few, or not apart from others."""
    values, counts = times.buckets()
    width = _WIDTH * at_ns
    edges = np.searchsorted(values, [at_ns - width, at_ns, at_ns + width, at_ns + 2 * width])
    before, within, after = (int(counts[low:high].sum()) for low, high in pairwise(edges.tolist()))
    return within if within >= _FEWEST and before + after <= _BESIDE * within else 0
