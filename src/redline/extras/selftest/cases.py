"""The known cases: a server, the load on it, and the law of its response times."""

from dataclasses import dataclass, field

from redline.extras.selftest.results import QUANTILES
from redline.extras.selftest.truth import (
    Law,
    ManyServers,
    OneServer,
    PeriodicStop,
    bimodal,
    deterministic,
    exponential,
    log_normal,
)
from redline.model import Open

ARRIVALS = "arrivals"
STOPPED_SHARE = 0.05
_IDLES_BELOW_PER_S = 5000
_PARALLEL = ("--servers", "4096")


@dataclass(frozen=True)
class Case:
    """A case with a known answer.

    `law` is None if the response time is the round trip alone. `spreads` is the factor by which lost time grows until a
    queue has caught up: 1 / (1 - rho). `stop_s` is the length of the server's single stop. `goals` override the general
    goals.
    """

    name: str
    about: str
    oracle: tuple[str, ...]
    load: Open
    seconds: float
    law: Law | None
    spreads: float = 1.0
    stop_s: float = 0.0
    goals: dict[float, float] = field(default_factory=dict)
    late_p99_goal_ns: float | None = None
    quantiles: tuple[float, ...] = QUANTILES

    @property
    def requests(self) -> int:
        """The approximate number of due requests."""
        return max(1, round(self.rate_per_s * self.seconds))

    @property
    def idles(self) -> bool:
        """Whether the cores sleep between requests, so that the round trip is that of a machine at rest."""
        return self.rate_per_s < _IDLES_BELOW_PER_S

    @property
    def rate_per_s(self) -> float:
        """The rate of its open load."""
        return self.load.rate_per_s or 0.0


def even(rate_per_s: float, connections: int = 256) -> Open:
    """An open load with evenly spaced arrivals."""
    return Open(rate_per_s=rate_per_s, arrivals="uniform", connections=connections)


def poisson(rate_per_s: float, connections: int = 512) -> Open:
    """An open load with Poisson arrivals."""
    return Open(rate_per_s=rate_per_s, arrivals="poisson", connections=connections)


def known_cases(seconds: float | None = None) -> tuple[Case, ...]:
    """All cases, of this length in seconds or as long as they need."""
    stalls_every_ms = 1000 if seconds is None or seconds >= 2 else round(seconds * 500)
    stopped_of_s = seconds or 20
    stop_s = STOPPED_SHARE * stopped_of_s
    return (
        Case(
            "null",
            "answers at once: what constant rate adds to the round trip",
            ("null",),
            even(20_000, 64),
            seconds or 4,
            None,
            goals={0.5: 10_000, 0.9: 30_000, 0.99: 30_000, 0.999: 30_000},
            late_p99_goal_ns=50_000,
        ),
        Case("fixed", "5 ms, always", ("fixed", "--delay", "5ms"), even(10_000), seconds or 4, deterministic(0.005)),
        _exponential("mm1-50", 5000, 10_000, seconds or 7),
        _exponential("mm1-80", 8000, 10_000, seconds or 8),
        Case(
            "md1",
            "M/D/1 at 80%: one worker, 100 us each",
            ("deterministic", "--service", "100us"),
            poisson(8000),
            seconds or 8,
            OneServer(8000, deterministic(100e-6)),
            spreads=1 / (1 - 0.8),
        ),
        Case(
            "bimodal",
            "2 ms, but 20 ms for one in 20; nobody waits for another",
            ("bimodal", "--fast", "2ms", "--slow", "20ms", "--share", "0.05", "--seed", "12", *_PARALLEL),
            even(10_000),
            seconds or 4,
            bimodal(0.002, 0.020, 0.05),
        ),
        Case(
            "lognormal",
            "log-normal, median 3 ms, sigma 0.8; nobody waits for another",
            ("lognormal", "--median", "3ms", "--sigma", "0.8", "--seed", "13", *_PARALLEL),
            even(10_000),
            seconds or 4,
            log_normal(0.003, 0.8),
        ),
        _exponential("mm4", 8000, 2500, seconds or 8, servers=4),
        Case(
            "stall",
            f"holds everything for {stalls_every_ms // 10} ms of every {stalls_every_ms} ms",
            ("stall", "--every", f"{stalls_every_ms}ms", "--for", f"{stalls_every_ms // 10}ms"),
            even(1000),
            seconds or 9,
            PeriodicStop(stalls_every_ms / 1000, stalls_every_ms / 10_000),
        ),
        Case(
            "stop",
            f"answers at once, but is stopped once (SIGSTOP), for {stop_s:g} s of {stopped_of_s:g} s",
            ("null",),
            even(500, 1024),
            stopped_of_s,
            PeriodicStop(stopped_of_s, stop_s),
            stop_s=stop_s,
            quantiles=(0.5, 0.9, 0.95, 0.99, 0.999, 1.0),
        ),
    )


def _exponential(name: str, arrivals: float, rate: float, seconds: float, servers: int = 1) -> Case:
    load = arrivals / rate / servers
    workers = ("--servers", str(servers)) if servers > 1 else ()
    return Case(
        name,
        f"M/M/{servers} at {load:.0%}: {servers} worker{'s'[: servers - 1]}, {rate:,.0f}/s each",
        ("exponential", "--rate", f"{rate:.0f}", "--seed", "11", *workers),
        poisson(arrivals),
        seconds,
        ManyServers(arrivals, exponential(rate), servers),
        spreads=1 / (1 - load),
    )
