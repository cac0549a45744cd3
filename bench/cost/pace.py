"""An open load of 20,000 per second: what it costs, and how far the reported times are from the round trip."""

from bench.cost.engine import BACKENDS, Exchange, Work, closed, engine, uniform
from bench.cost.pairs import Sample, Samples, difference, in_rounds, progress
from bench.cost.peers import client
from bench.cost.place import Place
from bench.cost.table import Outcome, heads, interval, line, number, order, row
from bench.rig import running
from redline.extras.peers import PeerLoad

RATE_PER_S = 20_000
CONNECTIONS = 64
P50_GOAL_US, P99_GOAL_US = 10.0, 30.0
_CALIBRATED_S = 14
_LONG_S = 4
_ROUND_TRIP_S = 1.0


def steady(place: Place) -> Outcome:
    """Engine and wrk2 at that rate; in each round also one user in a closed loop, which is the round trip."""
    with running(place.oracle, "null", cpu=place.server_core) as oracle:
        exchange = Exchange(oracle.endpoint.port)
        load = Work(exchange, uniform(RATE_PER_S, CONNECTIONS), seconds(place), (place.client_core,))
        alone = Work(exchange, closed(1), _ROUND_TRIP_S, (place.client_core,))
        subjects = [engine(load, backend) for backend in BACKENDS]
        trips = [engine(alone, backend, _trip(backend)) for backend in BACKENDS]
        cpus = (place.client_core,)
        rated = PeerLoad(oracle.url, CONNECTIONS, seconds(place), place.scratch, rate_per_s=RATE_PER_S, cpus=cpus)
        wrk2 = client("wrk2", rated)
        clients = [*order(subjects, [wrk2] if wrk2 else []), *trips]
        samples = in_rounds(clients, place.pairs, progress)
    if wrk2 is None:
        samples.failed["wrk2"] = "not installed"
    rows = [row("open, 20,000/s", each.name, "wrk2", 1.0, samples) for each in subjects]
    return Outcome(rows, _below(samples))


def seconds(place: Place) -> int:
    """wrk2 calibrates for ten seconds and forgets what it saw in them: so longer, unless this is but a try."""
    return max(place.seconds, _CALIBRATED_S) if place.seconds >= _LONG_S else place.seconds


def _trip(backend: str) -> str:
    return f"1 user ({backend})"


def _below(samples: Samples) -> list[str]:
    """The reported times, and those of the engine less the round trip of the same backend in the same round."""
    lines = [
        "Reported response times in us; the excess is over the median round trip of one user in the same round.",
        "",
    ]
    lines += heads(("at 20,000/s", "p50", "p99", "p50 excess [95%]", "goal", "", "p99 excess [95%]", "goal", ""))
    for name, runs in samples.of.items():
        p50, p99 = (number(samples.mean(name, value), ".1f") for value in (_p50, _p99))
        cells = [name, p50, p99]
        backend = next((each for each in BACKENDS if name == f"redline ({each})"), None)
        trips = samples.of.get(_trip(backend), []) if backend else []
        together = min(len(runs), len(trips))
        for value, goal_us in ((_p50, P50_GOAL_US), (_p99, P99_GOAL_US)):
            if not together:
                cells += ["-", "-", "-"]
                continue
            excess = difference([value(run) for run in runs[:together]], [_p50(trip) for trip in trips[:together]])
            cells += [interval(excess, ".1f"), f"≤ {goal_us:.0f}", excess.verdict(goal_us)]
        lines.append(line(cells))
    return ["\n".join(lines)]


def _p50(sample: Sample) -> float:
    return sample.ran.p50_us


def _p99(sample: Sample) -> float:
    return sample.ran.p99_us
