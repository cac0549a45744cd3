"""Findings about one trial, from what the monitors saw of engine, machine and network."""

from collections.abc import Iterable, Sequence

from redline.findings.failed import instead_of_cores
from redline.findings.rules import (
    BUSY_SERVER,
    FULL_SERVER,
    HOLDS,
    OTHERS_BUSY,
    SLOWED,
    TICK_NS,
    TOO_LITTLE_LOAD,
    Observation,
    Rule,
)
from redline.model import OTHER_LOAD, OTHERS, Cell, Closed, Grade, Recording, Series, Subject, Traffic
from redline.quantities import duration, percent, significant
from redline.stats import Trial

SETS_THE_PACE = 0.5
"""From this share of its periods on, a quota that is used up is what limits the rate."""

_SEEN = 1e-6
"""The least value of what was seen at all."""


@Rule(
    "client-saturated",
    when="requests",
    warn=0.90,
    invalid=0.95,
    biases="throughput is too low and differences are too small",
    blames="client",
    touches=TOO_LITTLE_LOAD,
)
def client_saturated(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """Time for which the engine's workers ran or waited for a core. **invalid** only for closed loads whose server has
    capacity to spare; **note** if the server's cores are full.

    A client without idle time sets the pace itself.

    Advice: Give the engine more cores or workers, or lower the load, until the server is the limit.
    """
    if cell.role == "ceiling":  # it shows the limit of client and machine
        return None
    busy = engine_share(trial, traffic)
    if client_saturated.grade(busy) is None:
        return None
    server = server_share(trial)
    of_server = f", the server used {percent(server)} of its cores" if server is not None else ""
    gravest, meaning = _meaning(cell, server)
    message = f"The engine ran or waited for a core {percent(min(busy, 1.0))} of the time{of_server}: {meaning}."
    advice = instead_of_cores(cell, traffic)
    return Observation(busy, message, at_most=gravest, advice=advice)


def engine_share(trial: Trial, traffic: Traffic) -> float:
    """Share of the window for which the engine's workers ran or waited for a core."""
    # A worker that waits for a core cannot send, as if it were busy.
    held_ns = trial.increase("run_delay_ns", "engine") or 0.0
    if traffic.engine.cpus:
        on_each = interrupts_ns(trial, "engine") / len(traffic.engine.cpus)
        held_ns += on_each * min(traffic.engine.workers, len(traffic.engine.cpus))
    return (traffic.engine_cpu_ns + held_ns) / (traffic.engine.workers * traffic.seconds * 1e9)


def server_share(trial: Trial) -> float | None:
    """Used share of the server's own cores; None if it shares them or no monitor ran."""
    server, traffic = trial.recording.server, trial.traffic
    if server is None or traffic is None or not server.cpus:
        return None
    cpu, alone = _on_servers_host_ns(trial), bool(trial.recording.hosts)  # on several hosts nothing is shared
    if cpu is None or not (alone or (traffic.engine.cpus and not set(server.cpus) & set(traffic.engine.cpus))):
        return None
    return (cpu + interrupts_ns(trial, "server")) / (len(server.cpus) * traffic.seconds * 1e9)


def held_share(trial: Trial) -> float:
    """Share of the server's cores in which its threads waited for a core, or were preempted by the host."""
    server, traffic = trial.recording.server, trial.traffic
    if server is None or traffic is None or not server.cpus:
        return 0.0
    held_ns = (trial.increase("run_delay_ns", "server") or 0.0) + (trial.increase("steal_ns", "machine") or 0.0)
    return held_ns / (len(server.cpus) * traffic.seconds * 1e9)


def _on_servers_host_ns(trial: Trial) -> float | None:
    """CPU time of the server, and of its proxies unless these have a host of their own."""
    apart = any(host.role == "proxy" for host in trial.recording.hosts)
    return trial.recording.sampled_increase("cpu_ns", "server") if apart else trial.server_cpu_ns


def interrupts_ns(trial: Trial, subject: Subject) -> float:
    """Time of interrupts on the cores of a side, if the kernel does not count it for processes.

    On reserved cores they belong to the load: the kernel delivers packets in them.
    """
    return trial.increase("cores_interrupts_ns", subject) or 0.0


@Rule(
    "engine-paused",
    when="requests",
    probes="all",
    note=0.0,
    warn=0.001,
    invalid=0.01,
    biases=SLOWED,
    touches=TOO_LITTLE_LOAD,
    scatters=True,
    passes=True,
)
def engine_paused(traffic: Traffic) -> Observation | None:
    """Time for which the engine stood still. At most **note** in a warm-up, and in duets, which leave out the block.

    In a closed load the server looks slower, in an open load it seems to stall.

    Advice: Find what stopped the engine (a suspended machine, a frozen cgroup, a stopped process, a quota), and measure
    again.
    """
    warm_up = [interval for interval in traffic.intervals if interval.phase == "warmup"]
    paused_ns, workers = traffic.paused_ns or sum(interval.paused_ns for interval in warm_up), traffic.engine.workers
    on_average = f" (the mean of its {workers} workers)" if workers > 1 else ""
    stood_still = f"The engine stood still for {duration(paused_ns / workers)}{on_average} of"
    if traffic.paused_ns:
        message = f"{stood_still} the {duration(traffic.seconds * 1e9)} that it measured."
        return Observation(traffic.paused_share, message)
    length_ns = sum(interval.lasts_ns for interval in warm_up)
    message = f"{stood_still} its warm-up of {duration(length_ns)}: the server had less of it."
    return Observation(paused_ns / max(length_ns, 1), message, at_most=Grade.NOTE)


@Rule("cpu-steal", when="requests", probes="all", note=0.02, warn=0.10, biases=SLOWED, scatters=True, passes=True)
def cpu_steal(trial: Trial) -> Observation | None:
    """CPU time that the host took away, less a tick, of what the machine needed; in duets, of what servers and engine
    needed. Trials and duets that steal disturbed are [repeated](statistics.md#starts-that-steal-disturbed).

    Stolen time looks like the server's. Below 2% it is less than differences worth acting on.

    Advice: Use a machine with dedicated cores, or more trials.
    """
    share = _stolen_share(trial)
    taken = f"at least {percent(share)} of the CPU time that this machine needed ({_stolen_ns(trial) / 1e6:,.0f} ms)"
    return Observation(share, f"The host took away {taken}.")


def much_stolen(recording: Recording) -> bool:
    """Whether the host took so much CPU time that a trial gets a warning."""
    return cpu_steal.grade(_stolen_share(recording)) not in (None, Grade.NOTE)


def _stolen_share(seen: Trial | Recording) -> float:
    """Stolen share of the CPU time that the machine needed within the window, at least; 0 if unknown."""
    stolen, busy = _stolen_ns(seen), seen.increase("busy_ns", "machine")
    return stolen / (stolen + busy) if stolen and busy is not None else 0.0


def _stolen_ns(seen: Trial | Recording) -> float:
    """The time that was surely stolen: the kernel counts whole ticks, so one may be next to nothing."""
    return max(0.0, (seen.increase("steal_ns", "machine") or 0.0) - TICK_NS)


@Rule("cpu-sampled", when="requests", note=0.0, scatters=True)
def cpu_sampled(trial: Trial, traffic: Traffic) -> Observation | None:
    """Processes of the server began or ended during the load, so its CPU time comes from samples.

    Samples may be some ticks off, and miss short-lived processes.

    Advice: Let the server start its processes before the load.
    """
    clocks, sampled = traffic.clocks, trial.recording.find("cpu_ns", "server") is not None
    if clocks is None or clocks.server_cpu_ns is not None or not sampled:
        return None
    message = "Processes of the server began or ended during the load, so its CPU time comes from samples."
    return Observation(HOLDS, message)


@Rule("cpu-unknown", when="requests", warn=0.0, biases="what a request costs is not known")
def cpu_unknown(trial: Trial, traffic: Traffic) -> Observation | None:
    """The processes taken for the server used no CPU time while requests were answered. In duets: for most slices it is
    not known.

    Others answered, and the cost is unknown, not 0.

    Advice: Start what answers itself, not a command that has it started or passes requests on.
    """
    used, answers = trial.recording.increase("cpu_ns", "server"), traffic.counts.completed
    if used is None or used > 0 or not answers:
        return None
    message = f"The server's processes used no CPU time, and {answers:,} requests were answered: others answered."
    return Observation(HOLDS, message)


@Rule("cpu-beside", when="requests", note=0.0)
def cpu_beside(cell: Cell, trial: Trial) -> Observation | None:
    """Services of the same compose file ran beside the server, such as its database.

    CPU time and memory are those of the server's own containers.

    Advice: Add what the others use, if it is to be paid for too; response times and rates include them.
    """
    server = trial.recording.server
    return observe_beside(cell.variant.entry.name, server.beside) if server is not None and server.beside else None


def observe_beside(name: str, services: tuple[str, ...]) -> Observation:
    """An observation that these services ran beside a server."""
    ran = f"{', '.join(services)} {'run' if len(services) > 1 else 'runs'} beside it, and"
    are = "are" if len(services) > 1 else "is"
    return Observation(HOLDS, f"CPU time and memory of {name} are its own alone: {ran} {are} not counted.")


@Rule("cpu-pressure", when="requests", probes="all", note=0.20, warn=0.40, biases=SLOWED, scatters=True, passes=True)
def cpu_pressure(trial: Trial, traffic: Traffic) -> Observation | None:
    """Time for which tasks waited for a core, if processes other than server and engine used 10% of the CPU time or
    more.

    Where tasks waited 40% of the time, throughput was seen to halve.

    Advice: Stop other work on this machine, or pin it away from the server's and the engine's cores.
    """
    waiting, others = trial.increase("cpu_pressure_ns", "machine"), _others(trial, traffic)
    if waiting is None or others is None or others < OTHERS_BUSY:
        return None
    return observe_pressure(waiting / (traffic.seconds * 1e9), others, named(trial.recording.series))


def observe_pressure(waited: float, others: float, names: str) -> Observation:
    """An observation of the share of the time for which tasks waited, and of the CPU time that others used."""
    message = (
        f"Tasks waited for a core {percent(round(min(waited, 1.0), 3))} of the time, and processes other than server "
        f"and engine used {percent(others)} of the CPU time{names}."
    )
    return Observation(waited, message)


def _others(trial: Trial, traffic: Traffic) -> float | None:
    """The share of the machine's CPU time that processes other than server and engine used; None if not known."""
    busy, server = trial.increase("busy_ns", "machine"), _on_servers_host_ns(trial)
    if busy is None or server is None or busy <= 0:
        return None
    interrupts = trial.increase("interrupts_ns", "machine") or 0.0
    return (busy - interrupts - server - traffic.engine_cpu_ns) / busy


@Rule("noisy-neighbour", when="requests", probes="all", note=0.05, warn=0.10, biases=SLOWED, scatters=True, passes=True)
def noisy_neighbour(trial: Trial, traffic: Traffic) -> Observation | None:
    """Time for which server or engine waited for the cores that they have to themselves.

    The kernel and the lab cause at most 4% in quiet runs; 10% takes as much as steal with a warning.

    Advice: Find what else ran on these cores (`top`, then `1`), and stop it or pin it elsewhere.
    """
    server = trial.recording.server
    if server is None or not server.cpus or not traffic.engine.cpus or set(server.cpus) & set(traffic.engine.cpus):
        return None
    engine, of_server = _engine_held_up(trial, traffic), _server_held_up(trial, traffic)
    preempted = trial.increase("preemptions", "engine")
    often = None if preempted is None else preempted / traffic.seconds
    looked = trial.recording.find("cores_busy_ns", "server") is not None
    return observe_neighbour(engine, of_server if looked else None, often, named(trial.recording.series))


def observe_neighbour(engine: float, server: float | None, often_per_s: float | None, names: str) -> Observation:
    """An observation of the shares of the time for which the engine's workers and the server were held up."""
    interrupted = "" if often_per_s is None else f" and were interrupted {often_per_s:,.0f} times a second"
    held_up = "" if server is None else f", the server waited {percent(min(server, 1.0))}"
    waited = f"the engine's workers waited {percent(min(engine, 1.0))} of the time{interrupted}{held_up}"
    return Observation(max(engine, server or 0.0), f"Other work ran on reserved cores: {waited}{names}.")


@Rule("other-load", when="traffic", probes="all", note=0.0, warn=OTHERS_BUSY, biases=SLOWED, passes=True)
def other_load(trial: Trial, traffic: Traffic) -> Observation | None:
    """CPU time of processes other than server and engine, where Redline measured something else on this machine at the
    same time: each names the other, whichever began or ended first, also of other users.

    Where others use less than 10% of the CPU time, the numbers are hardly those of both.

    Advice: Measure one after the other: `--wait` waits for what measures, and `--alone` keeps others away. Of tests
    that run in parallel, keep those that load in one process: `pytest -n 4 --dist loadgroup`, and
    `@pytest.mark.xdist_group("load")`.
    """
    labs = labs_in(trial.recording.series)
    busy_ns = trial.increase("busy_ns", "machine")
    at_least = engines_share(trial.recording.series, busy_ns, traffic.window_unix_ns)
    return observe_labs(labs, _others(trial, traffic), at_least) if labs else None


def labs_in(series: Iterable[Series]) -> tuple[str, ...]:
    """What other labs measured meanwhile, as they say it."""
    return tuple(line.name.removeprefix(OTHER_LOAD) for line in series if line.name.startswith(OTHER_LOAD))


def engines_share(series: Iterable[Series], busy_ns: float | None, window_unix_ns: tuple[int, int]) -> float:
    """The share of the machine's CPU time that the engines of other labs used at least; 0 if not known."""
    used_ns = 0.0
    for line in series:
        if line.name.startswith(OTHER_LOAD):
            first, last = line.times_unix_ns[0], line.times_unix_ns[-1]
            within_ns = max(min(last, window_unix_ns[1]) - max(first, window_unix_ns[0]), 0)
            used_ns += (line.values[-1] - line.values[0]) * within_ns / max(last - first, 1)
    return min(used_ns / busy_ns, 1.0) if busy_ns else 0.0


def observe_labs(labs: Sequence[str], others: float | None, at_least: float) -> Observation:
    """An observation that these labs measured something, and the share of the CPU time that others used.

    Where that is not known, the engines of those labs used `at_least` that much.
    """
    more = f" and {len(labs) - 3} more" if len(labs) > 3 else ""
    kind = "Another measurement" if len(labs) == 1 else f"{len(labs)} other measurements"
    message = f"{kind} of Redline ran on this machine meanwhile: {', '.join(labs[:3])}{more}"
    used = "" if others is None else f"; processes other than server and engine used {percent(others)} of the CPU time"
    if others is None and at_least > 0:
        used = f"; their engines alone used {percent(at_least)} of the CPU time"
    return Observation(max(at_least if others is None else others, _SEEN), f"{message}{used}.")


def named(of_recording: Iterable[Series]) -> str:
    """`: of one core, rustc used 83%, python 12%`: the processes that used most, where a monitor saw them."""
    used: list[str] = []
    for series in of_recording:
        if series.name.startswith(OTHERS):
            share = (series.values[-1] - series.values[0]) / max(series.times_unix_ns[-1] - series.times_unix_ns[0], 1)
            used.append(f"{series.name.removeprefix(OTHERS)} {'' if used else 'used '}{percent(round(share, 2))}")
    return f": of one core, {', '.join(used)}" if used else ""


def _engine_held_up(trial: Trial, traffic: Traffic) -> float:
    """Share of their time for which workers waited for a core; 0 if there are more workers than cores."""
    waited = trial.increase("run_delay_ns", "engine")
    if waited is None or traffic.engine.workers > len(traffic.engine.cpus):
        return 0.0
    # A thread that waits for the next period of a quota may count as waiting for a core; `throttled` reports that.
    by_others = max(waited - (trial.increase("throttled_ns", "engine") or 0.0), 0.0)
    return by_others / (traffic.engine.workers * traffic.seconds * 1e9)


def _server_held_up(trial: Trial, traffic: Traffic) -> float:
    """Share of its cores' time for which the server waited while others ran there.

    A server's threads also wait for each other, so its run-queue delay counts only as far as others used its cores.
    """
    waited, used = trial.increase("run_delay_ns", "server"), trial.server_cpu_ns
    busy = trial.increase("cores_busy_ns", "server")
    if waited is None or used is None or busy is None or trial.recording.server is None:
        return 0.0
    cores = len(trial.recording.server.cpus)
    others = max(busy - interrupts_ns(trial, "server") - used - 2 * cores * TICK_NS, 0.0)
    return min(waited, others) / (cores * traffic.seconds * 1e9)


@Rule(
    "throttled",
    when="requests",
    probes="all",
    note=0.0,
    warn=0.01,
    biases="throughput is too low and response times are too high",
)
def throttled(trial: Trial) -> Observation | None:
    """Periods of a CPU quota in which the server, a proxy or the engine had used it up.

    Requests stand still until the period ends, for up to 100 ms. The quota may be intended.

    Advice: Raise the quota (`cpu.max`, `--cpus` of a container), or read the number as that of the quota.
    """
    names: dict[Subject, str] = {"server": "server", "engine": "engine"}
    names |= {subject: f"proxy {name}" for subject, name in trial.recording.parts.items() if subject not in names}
    shares = {subject: throttled_share(trial, subject) for subject in names}
    subject = max(names, key=lambda name: shares[name])
    if not shares[subject]:
        return Observation(0.0, "")
    cores = trial.recording.most("quota_millicores", subject)
    lost_ns = trial.increase("throttled_ns", subject) or 0.0
    return observe_throttled(f"The {names[subject]}", shares[subject], lost_ns, cores)


def observe_throttled(name: str, share: float, lost_ns: float, millicores: float | None) -> Observation:
    """An observation of the share of a quota's periods in which it was used up, and of the CPU time lost to it."""
    of = f" of {significant(millicores / 1000, 2)} cores" if millicores else ""
    message = (
        f"{name} had used up its CPU quota{of} in {percent(share)} of the quota's periods, and lost "
        f"{lost_ns / 1e6:,.0f} ms of CPU time to it{': the quota sets the pace' if share > SETS_THE_PACE else ''}."
    )
    return Observation(share, message)


def throttled_share(trial: Trial, subject: Subject) -> float:
    """The share of the periods of a quota in which it was used up; 0 without a quota."""
    periods, often = (trial.increase(name, subject) for name in ("quota_periods", "throttled_periods"))
    return min(often / periods, 1.0) if periods and often is not None else 0.0


def _meaning(cell: Cell, server: float | None) -> tuple[Grade, str]:
    """The highest grade for a busy engine, by the server's use of its cores, and its meaning."""
    full = server is not None and server >= FULL_SERVER
    if not isinstance(cell.load.shape, Closed):
        return Grade.NOTE if full else Grade.WARN, "requests may have queued in the client"
    if server is None:
        return Grade.WARN, "the two share cores, or it is not known what each used, so the rate is of both together"
    if full:
        return Grade.NOTE, "both are at their limit, and a faster server will need a stronger client"
    if server >= BUSY_SERVER:
        return Grade.WARN, "both are near their limit, and the rate is of the two together"
    return Grade.INVALID, "the rate is the client's limit, not the server's"
