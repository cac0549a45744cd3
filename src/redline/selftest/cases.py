"""The known cases: a server, the load on it, and the law of its response times."""

from dataclasses import dataclass, field

from redline.model import Open
from redline.selftest.results import QUANTILES
from redline.selftest.truth import (
    Alone,
    Bimodal,
    Deterministic,
    Exponential,
    Held,
    Law,
    LogNormal,
    ManyServers,
    OneServer,
)

ARRIVALS = "arrivals"
STOPPED_SHARE = 0.05
_IDLES_BELOW_PER_S = 5000
_PARALLEL = ("--servers", "4096")


@dataclass(frozen=True)
class Case:
    """One known case.

    `law` is None where the round trip is all there is. `spreads` is by how much lost time grows before it is caught
    up: 1 / (1 - rho) in a queue. `stop_s` is for how long the server is stopped, once. Of a case with `whole_periods`
    the slices are not compared: they hold different shares of a period. `goals` are those that differ from the general
    ones.
    """

    name: str
    about: str
    oracle: tuple[str, ...]
    load: Open
    seconds: float
    law: Law | None
    spreads: float = 1.0
    stop_s: float = 0.0
    whole_periods: bool = False
    goals: dict[float, float] = field(default_factory=dict)
    late_p99_goal_ns: float | None = None
    quantiles: tuple[float, ...] = QUANTILES

    @property
    def requests(self) -> int:
        """How many fall due, about."""
        return max(1, round(self.rate_per_s * self.seconds))

    @property
    def idles(self) -> bool:
        """Whether the cores go to sleep between two requests: then its round trip is that of a machine at rest."""
        return self.rate_per_s < _IDLES_BELOW_PER_S

    @property
    def rate_per_s(self) -> float:
        """Of its load, which has one."""
        return self.load.rate_per_s or 0.0


def known_cases(seconds: float | None = None) -> tuple[Case, ...]:
    """All of them, each as long as it needs, or that long."""
    return (
        _null(seconds or 4),
        _fixed(seconds or 4),
        _exponential("mm1-50", 5000, 10_000, seconds or 7),
        _exponential("mm1-80", 8000, 10_000, seconds or 8),
        _deterministic(8000, 100, seconds or 8),
        _bimodal(seconds or 4),
        _lognormal(seconds or 4),
        _exponential("mm4", 8000, 2500, seconds or 8, servers=4),
        _stall(seconds or 9),
        _stop(seconds or 20),
    )


def even(rate_per_s: float, connections: int = 256) -> Open:
    """Arrivals at even distances."""
    return Open(rate_per_s=rate_per_s, arrivals="uniform", connections=connections)


def poisson(rate_per_s: float, connections: int = 512) -> Open:
    """Arrivals by chance."""
    return Open(rate_per_s=rate_per_s, arrivals="poisson", connections=connections)


def _null(seconds: float) -> Case:
    return Case(
        "null",
        "answers at once: what constant rate adds to the round trip",
        ("null",),
        even(20_000, 64),
        seconds,
        None,
        goals={0.5: 10_000, 0.9: 30_000, 0.99: 30_000, 0.999: 30_000},
        late_p99_goal_ns=50_000,
    )


def _fixed(seconds: float) -> Case:
    law = Alone(Deterministic(0.005))
    return Case("fixed", "5 ms, always", ("fixed", "--delay", "5ms"), even(10_000), seconds, law)


def _exponential(name: str, arrivals: float, rate: float, seconds: float, servers: int = 1) -> Case:
    load = arrivals / rate / servers
    return Case(
        name,
        f"M/M/{servers} at {load:.0%}: {servers} worker{'s'[: servers - 1]}, {rate:,.0f}/s each",
        ("exponential", "--rate", f"{rate:.0f}", "--seed", "11", *_workers(servers)),
        poisson(arrivals),
        seconds,
        ManyServers(arrivals, Exponential(rate), servers),
        spreads=1 / (1 - load),
    )


def _workers(servers: int) -> tuple[str, ...]:
    return ("--servers", str(servers)) if servers > 1 else ()


def _deterministic(arrivals: float, service_us: int, seconds: float) -> Case:
    load = arrivals * service_us / 1e6
    return Case(
        "md1",
        f"M/D/1 at {load:.0%}: one worker, {service_us} us each",
        ("deterministic", "--service", f"{service_us}us"),
        poisson(arrivals),
        seconds,
        OneServer(arrivals, Deterministic(service_us / 1e6)),
        spreads=1 / (1 - load),
    )


def _bimodal(seconds: float) -> Case:
    return Case(
        "bimodal",
        "2 ms, but 20 ms for one in 20; nobody waits for another",
        ("bimodal", "--fast", "2ms", "--slow", "20ms", "--share", "0.05", "--seed", "12", *_PARALLEL),
        even(10_000),
        seconds,
        Alone(Bimodal(0.002, 0.020, 0.05)),
    )


def _lognormal(seconds: float) -> Case:
    return Case(
        "lognormal",
        "log-normal, median 3 ms, sigma 0.8; nobody waits for another",
        ("lognormal", "--median", "3ms", "--sigma", "0.8", "--seed", "13", *_PARALLEL),
        even(10_000),
        seconds,
        Alone(LogNormal(0.003, 0.8)),
    )


def _stall(seconds: float) -> Case:
    every_ms = 1000 if seconds >= 2 else round(seconds * 500)
    return Case(
        "stall",
        f"holds everything for {every_ms // 10} ms of every {every_ms} ms",
        ("stall", "--every", f"{every_ms}ms", "--for", f"{every_ms // 10}ms"),
        even(1000),
        seconds,
        Held(every_ms / 1000, every_ms / 10_000),
        whole_periods=True,
    )


def _stop(seconds: float) -> Case:
    stop_s = STOPPED_SHARE * seconds
    return Case(
        "stop",
        f"answers at once, but is stopped once (SIGSTOP), for {stop_s:g} s of {seconds:g} s",
        ("null",),
        even(500, 1024),
        seconds,
        Held(seconds, stop_s),
        stop_s=stop_s,
        quantiles=(0.5, 0.9, 0.95, 0.99, 0.999, 1.0),
        whole_periods=True,
    )
