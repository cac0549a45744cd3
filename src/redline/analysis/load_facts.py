"""What a load shows of its only trial besides the numbers that every judged cell has."""

from collections.abc import Sequence
from statistics import fmean, pstdev

from redline.analysis.own_servers import own_server
from redline.analysis.percentiles import percentiles
from redline.findings import Touched
from redline.model import AttachedServer, Cell, Closed, Counts, Estimate, Histogram, Traffic
from redline.model.load_result import Deviation, LoadDeviations, LoadedServer, LoadFacts, RequestsSent
from redline.stats import Trial


def load_facts(cell: Cell, trial: Trial, touched: Touched) -> LoadFacts | None:
    """The facts of a load, as far as its findings leave them; None if nothing was sent."""
    recording, traffic, users = trial.recording, trial.traffic, _users(cell)
    if traffic is None:
        return None
    is_known = users is not None and "service times" not in touched and traffic.seconds > 0
    completed, costs = traffic.counts.completed, "CPU and memory" not in touched
    return LoadFacts(
        url=own_server(
            cell.variant,
            cell.scenario.request.path,
            opens_websocket=cell.scenario.request.websocket is not None,
        ),
        seed=recording.seed,
        ended=traffic.ended,
        measured_ns=traffic.measure_end_ns - traffic.measure_start_ns,
        engine_cpu_per_request=_single(traffic.engine_cpu_ns / completed, "ns") if completed and costs else None,
        lateness=percentiles(traffic.lateness),
        addresses=traffic.addresses,
        proxy=_proxy(cell),
        users=users,
        users_waiting=_waiting(traffic, users) if is_known and users is not None else None,
        reach=traffic.reach,
        deviations=_deviations(
            traffic,
            times=bool(traffic.response.count) and "response times" not in touched,
            rate=bool(completed) and "throughput" not in touched,
        ),
        server=_loaded_server(trial, costs=costs),
        sent=None if recording.checks is None else _requests_sent(traffic, recording.checks),
        asked_again=recording.asked_again,
        engine=traffic.engine,
    )


def _deviations(traffic: Traffic, *, times: bool, rate: bool) -> LoadDeviations | None:
    """How far response times and the rate of intervals are from their means, as far as they are known."""
    measured = [interval for interval in traffic.intervals if interval.phase == "measure"]
    if not (times or rate) or not measured:
        return None
    longest_ns = max(interval.lasts_ns for interval in measured)
    whole = [it for it in measured if it.lasts_ns * 2 >= longest_ns > 0]
    rates = [it.counts.outcomes.ok / it.lasts_ns * 1e9 for it in whole]
    of_workers = [ok / it.lasts_ns * 1e9 for it in whole for ok in it.workers]
    has_workers = bool(whole) and all(it.workers for it in whole)
    return LoadDeviations(
        response=response_deviation(traffic.response) if times else None,
        rate=rate_deviation(rates) if rate and rates else None,
        worker_rate=rate_deviation(of_workers) if rate and has_workers else None,
        interval_ns=longest_ns,
    )


def response_deviation(response: Histogram) -> Deviation:
    """How far response times are from their mean."""
    return Deviation(
        mean=response.mean_ns,
        stdev=response.stdev_ns,
        max=response.max_ns,
        within=response.share_within(1),
        values=response.count,
    )


def rate_deviation(rates: Sequence[float]) -> Deviation:
    """How far the rates of intervals are from their mean."""
    mean, stdev = fmean(rates), pstdev(rates)
    near = sum(abs(rate - mean) <= stdev for rate in rates)
    return Deviation(mean=mean, stdev=stdev, max=max(rates), within=near / len(rates), values=len(rates))


def _loaded_server(trial: Trial, *, costs: bool) -> LoadedServer | None:
    """What was watched of the server and its proxies, CPU and memory if `costs`; None where nobody looked."""
    recording, owner = trial.recording, trial.recording.owner
    if recording.server is None and owner is None:
        return None
    most = {name: recording.most(name, "server") for name in ("rss_bytes", "threads", "descriptors")}
    most |= {} if costs else {"rss_bytes": None}
    left = recording.find("close_wait", "server")
    return LoadedServer(
        processes=owner.processes if owner is not None else (),
        cpu_per_request_ns=trial.cpu_per_request_ns if costs else None,
        **{name: None if value is None else round(value) for name, value in most.items()},
        half_closed=None if left is None else round(left.values[-1]),
        unknown=owner.unknown if owner is not None else "",
    )


def _requests_sent(traffic: Traffic, checked: int) -> RequestsSent:
    """How many requests the server got, and why."""
    warming = [interval for interval in traffic.intervals if interval.phase == "warmup"]
    return RequestsSent(
        check=checked,
        warm_up=sum(map(_written, (interval.counts for interval in warming))),
        measured=_written(traffic.counts),
        warm_up_ns=sum(interval.lasts_ns for interval in warming),
    )


def _written(counts: Counts) -> int:
    return counts.sent + counts.retried + counts.resent


def _users(cell: Cell) -> float | None:
    """How many users a load has who think or have a pace, each with a single request at a time; else None."""
    shape = cell.load.shape
    if not isinstance(shape, Closed) or cell.load.saturates or shape.depth > 1:
        return None
    return shape.mean_users(cell.load.duration_ns)


def _waiting(traffic: Traffic, users: float) -> float:
    """How many users waited for an answer, on average: the arrival rate times the mean service time (Little, 1961)."""
    return min(traffic.service.count * traffic.service.mean_ns / 1e9 / traffic.seconds, users)


def _proxy(cell: Cell) -> str:
    """The HTTP proxy in between; empty without any."""
    entry = cell.variant.entry
    return entry.way.proxy.text if isinstance(entry, AttachedServer) and entry.way.proxy else ""


def _single(value: float, unit: str) -> Estimate:
    return Estimate(value=value, low=None, high=None, unit=unit, n=1, method="one trial: no interval")
