"""How a simulated server, its engine and the machine behave in one trial.

The defaults are a good trial without doubts: server and engine on cores of their own, the server the limit,
Little's law kept, no errors. A test changes one field of `Behaviour` to provoke one doubt.
"""

from dataclasses import dataclass, field
from typing import Literal

from redline.model import Failure


@dataclass(frozen=True)
class Behaviour:
    """How the simulated server, engine and machine behave in one trial; shares are 0 to 1."""

    rate_per_s: float = 20_000.0
    """Throughput under a closed load; an open load has its own rate."""
    response_ns: float = 200_000.0
    """Mean response time under an open load; in a closed load it follows from Little's law."""
    spread: float = 0.4
    """Sigma of the lognormal response time."""
    trend: float = 0.0
    """Relative growth of the rate (closed) or of the response time (open) over the measurement."""
    course: tuple[float, ...] = ()
    """The speed in equal parts of the measurement, relative to that of a steady server."""
    cold_s: float = 0.0
    """Until this long after its first request the server has another speed, `cold_share` of the later speed."""
    cold_share: float = 1.0
    pauses_s: dict[int, float] = field(default_factory=dict)
    """How long it stops, by interval: requests that fall due meanwhile wait."""
    noise: float = 0.01
    """Sigma of the rate from interval to interval."""
    achieved: float = 1.0
    """Share of the due requests that an open load answers within the window."""
    offered: float = 1.0
    """Share of an open load's schedule that falls due."""
    clumps: float = 0.0
    """Relative excess and lack of due requests in every other interval of an open load."""
    even: bool = False
    """Poisson arrivals that are no more uneven than uniform arrivals."""
    waited: float = 0.0
    """Share of an open load's requests that find no connection free."""
    shrinks: float = 0.0
    """Relative loss of bytes of an answer in the second half of the measurement."""
    littles_law: float = 1.0
    """The error of the response times."""
    outcomes: dict[str, int] = field(default_factory=dict)
    """Requests that failed, by kind, placed in the first measured interval."""
    server_busy: float = 0.98
    engine_busy: float = 0.55
    run_delay: float = 0.0
    """Share of the time for which the engine's threads waited for a core."""
    server_run_delay: float = 0.0
    """Time for which the server's threads waited for a core, over the time of one core."""
    replaced: int = 0
    """Processes of the server that end halfway and are replaced."""
    helpers: int = 0
    """Processes of the server that begin under load and end halfway."""
    log_bytes: int = 200
    lateness_ns: float = 3_000.0
    steal: float = 0.0
    others_busy: float = 0.01
    pressure: float = 0.02
    rss_bytes: int = 20_000_000
    pinned: bool = True
    perturbed: bool = False
    ended: Literal["complete", "interrupted", "deadline"] = "complete"
    measured: float = 1.0
    """Share of the planned measurement that was made."""
    exhausted: int = 0
    """The part of the outcomes `connect` for which the engine lacked a resource."""
    handshake_ns: float | None = None
    """Mean time of a TLS handshake, on every connection before the load; without TLS when None."""
    clock_ahead_ns: float | None = None
    """The server's clock minus ours; None if answers do not contain it."""
    failure: Failure | None = None


GOOD = Behaviour()
