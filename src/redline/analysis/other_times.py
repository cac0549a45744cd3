"""Times beside response and service time: handshakes, and one-way times where answers tell the server's clock."""

from collections.abc import Iterator, Sequence
from typing import Literal

from redline.model import Histogram, OneWay, OtherTime, Signed, Traffic
from redline.stats import enough_beyond

_SHARES = (0.5, 0.99, 1.0)


def other_times(used: Sequence[Traffic], resolution_ns: int | None) -> tuple[OtherTime, ...]:
    """Those of trials that may be used, together; `resolution_ns` is how finely the server tells its clock."""
    return (*_handshakes(used), *_one_way(used, resolution_ns))


def _handshakes(used: Sequence[Traffic]) -> Iterator[OtherTime]:
    told = [traffic.all_handshakes for traffic in used]
    merged = Histogram.merged(handshakes for handshakes in told if handshakes is not None)
    if merged.count:
        yield _time("handshake", merged, None)


def _one_way(used: Sequence[Traffic], resolution_ns: int | None) -> Iterator[OtherTime]:
    told = [traffic.measured_one_way for traffic in used]
    merged = OneWay.merged(times for times in told if times is not None)
    if merged is not None and merged.to_server.count:
        yield _time("to server", merged.to_server, resolution_ns)
        yield _time("from server", merged.from_server, resolution_ns)


def _time(
    name: Literal["handshake", "to server", "from server"], times: Histogram | Signed, resolution_ns: int | None
) -> OtherTime:
    p50, p99, most = times.quantiles_ns(_SHARES)
    return OtherTime(
        name=name,
        count=times.count,
        p50_ns=p50,
        p99_ns=p99 if enough_beyond(times.count, 0.99) else None,
        max_ns=most,
        resolution_ns=resolution_ns,
    )
