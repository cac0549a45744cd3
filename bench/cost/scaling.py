"""From one worker to eight: whether throughput grows with them. It needs four cores at least."""

from bench.cost.engine import BACKENDS, Exchange, Work, closed, engine
from bench.cost.pairs import Client, Interval, Sample, Samples, in_rounds, progress, ratio
from bench.cost.place import Place
from bench.cost.table import Outcome, heads, interval, line, number
from bench.rig import running

WORKERS = (1, 2, 4, 8)
LINEAR_GOAL = 0.9
_LEAST_CORES = 4
_CONNECTIONS_EACH = 64


def scaling(place: Place) -> Outcome:
    """1, 2, 4 and 8 workers on half of the cores at most; the server has as many threads as there are others."""
    if len(place.cores) < _LEAST_CORES:
        return Outcome(below=[f"One to eight workers: not run, it needs {_LEAST_CORES} cores, and there are fewer."])
    half = len(place.cores) // 2
    mine, theirs = place.cores[:half], place.cores[half:]
    steps = [each for each in WORKERS if each <= half]
    with running(
        place.oracle, "null", "--threads", str(len(theirs)), cpu=",".join(str(core) for core in theirs)
    ) as oracle:
        exchange = Exchange(oracle.endpoint.port)
        clients = [_step(exchange, place, mine[:each], backend) for backend in BACKENDS for each in steps]
        samples = in_rounds(clients, place.pairs, progress)
    return Outcome(below=[_told(samples, steps, len(theirs))])


def _step(exchange: Exchange, place: Place, cores: tuple[int, ...], backend: str) -> Client:
    """As many workers as cores, with 64 connections each."""
    workers = len(cores)
    load = closed(_CONNECTIONS_EACH * workers)
    work = Work(exchange, load, place.seconds, cores, workers=workers)
    return engine(work, backend, _name(workers, backend))


def _name(workers: int, backend: str) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''} ({backend})"


def _told(samples: Samples, steps: list[int], threads: int) -> str:
    lines = [f"Throughput by workers, one core each, against `null` with {threads} threads on as many other cores.", ""]
    lines += heads(("", "requests/s", "CPU us/request", "of linear [95%]", "goal", ""))
    for backend in BACKENDS:
        single = samples.of.get(_name(1, backend), [])
        for workers in steps:
            name = _name(workers, backend)
            cells = [name, number(samples.mean(name, _rate), ",.0f"), number(samples.mean(name, _cpu))]
            if workers == 1:
                lines.append(line([*cells, "1", "", ""]))
                continue
            found = linear(samples.of.get(name, []), single, workers)
            lines.append(line([*cells, interval(found), f"≥ {LINEAR_GOAL}", _verdict(found)]))
    return "\n".join(lines)


def linear(runs: list[Sample], single: list[Sample], workers: int) -> Interval | None:
    """Throughput over that of so many times one worker, by pairs of the same round."""
    together = min(len(runs), len(single))
    if not together:
        return None
    return ratio([_rate(run) for run in runs[:together]], [_rate(run) * workers for run in single[:together]])


def _verdict(found: Interval | None) -> str:
    """The goal is a least value here."""
    if found is None:
        return "not run"
    if found.low >= LINEAR_GOAL:
        return "met"
    return "missed" if found.high < LINEAR_GOAL else "unclear"


def _rate(sample: Sample) -> float:
    return sample.ran.rate_per_s


def _cpu(sample: Sample) -> float:
    return sample.cpu_us_per_request
