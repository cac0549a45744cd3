"""Findings about one trial, from what the probes saw of engine, machine and network."""

from redline.findings.failed import instead_of_cores
from redline.findings.rules import BUSY_SERVER, FULL_SERVER, OTHERS_BUSY, RULES, TICK_NS, graded
from redline.model import OTHERS, Cell, Closed, Finding, FindingKind, Grade, Recording, Subject, Traffic
from redline.quantities import duration, percent
from redline.stats import Trial


def client_saturated(cell: Cell, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the engine was busy all the time, and whether the result is therefore the client's.

    A ceiling shows the most that client and machine can do, so it is never doubted for this.
    """
    if cell.role == "ceiling":
        return ()
    busy = engine_share(trial, traffic)
    server = server_share(trial)
    of_server = f", the server used {percent(server)} of its cores" if server is not None else ""
    message = (
        f"The engine ran or waited for a core {percent(min(busy, 1.0))} of the time{of_server}: "
        f"{_meaning(cell, server)}."
    )
    advice = instead_of_cores(cell, traffic)
    return graded(FindingKind.CLIENT_SATURATED, busy, message, trial, at_most=_gravest(cell, server), advice=advice)


def engine_share(trial: Trial, traffic: Traffic) -> float:
    """Share of the window for which the engine's workers ran or waited for a core."""
    # Time for which a worker wanted a core and had none is time in which it could not send, as if it had been busy.
    held_ns = trial.increase("run_delay_ns", "engine") or 0.0
    if traffic.engine.cpus:
        on_each = interrupts_ns(trial, "engine") / len(traffic.engine.cpus)
        held_ns += on_each * min(traffic.engine.workers, len(traffic.engine.cpus))
    return (traffic.engine_cpu_ns + held_ns) / (traffic.engine.workers * traffic.seconds * 1e9)


def server_share(trial: Trial) -> float | None:
    """Used share of the cores that the server has to itself; None when it shares them or no probe looked."""
    server, traffic = trial.recording.server, trial.traffic
    if server is None or traffic is None or not server.cpus:
        return None
    cpu, alone = _on_servers_host_ns(trial), bool(trial.recording.hosts)  # on several hosts nothing is shared
    if cpu is None or not (alone or (traffic.engine.cpus and not set(server.cpus) & set(traffic.engine.cpus))):
        return None
    return (cpu + interrupts_ns(trial, "server")) / (len(server.cpus) * traffic.seconds * 1e9)


def _on_servers_host_ns(trial: Trial) -> float | None:
    """CPU time of the server, and of its proxies unless these have a host of their own."""
    apart = any(host.role == "proxy" for host in trial.recording.hosts)
    return trial.recording.sampled_increase("cpu_ns", "server") if apart else trial.server_cpu_ns


def interrupts_ns(trial: Trial, subject: Subject) -> float:
    """Time that interrupts took on the cores of one side, where the kernel leaves it out of that of processes.

    On cores of one's own they are the load's: the kernel delivers packets in them.
    """
    return trial.increase("cores_interrupts_ns", subject) or 0.0


def engine_paused(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the engine stood still while it measured; of its warm-up that is a note, since that gives no result."""
    if traffic.paused_ns:
        message = (
            f"{_stood_still(traffic, traffic.paused_ns)} of the {duration(traffic.seconds * 1e9)} that it measured."
        )
        return graded(FindingKind.ENGINE_PAUSED, traffic.paused_share, message, trial)
    warm_up = [each for each in traffic.intervals if each.phase == "warmup"]
    paused_ns, length_ns = sum(each.paused_ns for each in warm_up), sum(each.lasts_ns for each in warm_up)
    message = f"{_stood_still(traffic, paused_ns)} of its warm-up of {duration(length_ns)}: the server had less of it."
    return graded(FindingKind.ENGINE_PAUSED, paused_ns / max(length_ns, 1), message, trial, at_most=Grade.NOTE)


def _stood_still(traffic: Traffic, paused_ns: int) -> str:
    workers = traffic.engine.workers
    on_average = f" (the mean of its {workers} workers)" if workers > 1 else ""
    return f"The engine stood still for {duration(paused_ns / workers)}{on_average}"


def cpu_steal(trial: Trial) -> tuple[Finding, ...]:
    """Whether the host took CPU time away while it was needed."""
    share, stolen = _stolen_share(trial), trial.increase("steal_ns", "machine") or 0.0
    message = f"The host took away {percent(share)} of the CPU time that this machine needed ({stolen / 1e6:,.0f} ms)."
    return graded(FindingKind.CPU_STEAL, share, message, trial)


def much_stolen(recording: Recording) -> bool:
    """Whether the host took so much that a trial is warned of."""
    return RULES[FindingKind.CPU_STEAL].grade(_stolen_share(recording)) not in (None, Grade.NOTE)


def _stolen_share(seen: Trial | Recording) -> float:
    """Of the CPU time that the machine needed within the window; 0 where that is not known."""
    stolen, busy = seen.increase("steal_ns", "machine"), seen.increase("busy_ns", "machine")
    return stolen / (stolen + busy) if stolen and busy is not None else 0.0


def cpu_sampled(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the server's CPU time comes from samples, though the engine was to read it."""
    clocks, sampled = traffic.clocks, trial.recording.find("cpu_ns", "server") is not None
    if clocks is None or clocks.server_cpu_ns is not None or not sampled:
        return ()
    message = "Processes of the server began or ended during the load, so its CPU time comes from samples."
    return graded(FindingKind.CPU_SAMPLED, 1.0, message, trial)


def cpu_unknown(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the processes that were read cannot be those that answered."""
    used, answers = trial.recording.increase("cpu_ns", "server"), traffic.counts.completed
    if used is None or used > 0 or not answers:
        return ()
    message = f"The server's processes used no CPU time, and {answers:,} requests were answered: others answered."
    return graded(FindingKind.CPU_UNKNOWN, 1.0, message, trial)


def cpu_pressure(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether other work competed with server and engine."""
    waiting = trial.increase("cpu_pressure_ns", "machine")
    busy = trial.increase("busy_ns", "machine")
    server = _on_servers_host_ns(trial)
    if waiting is None or busy is None or server is None or busy <= 0:
        return ()
    interrupts = trial.increase("interrupts_ns", "machine") or 0.0
    others = (busy - interrupts - server - traffic.engine_cpu_ns) / busy
    if others < OTHERS_BUSY:
        return ()
    share = waiting / (traffic.seconds * 1e9)
    message = (
        f"Tasks waited for a core {percent(round(min(share, 1.0), 3))} of the time, and processes other than server "
        f"and engine used {percent(others)} of the CPU time{_named(trial)}."
    )
    return graded(FindingKind.CPU_PRESSURE, share, message, trial)


def noisy_neighbour(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether other work ran on the cores that server and engine have to themselves."""
    server = trial.recording.server
    if server is None or not server.cpus or not traffic.engine.cpus or set(server.cpus) & set(traffic.engine.cpus):
        return ()
    engine, of_server = _engine_held_up(trial, traffic), _server_held_up(trial, traffic)
    preempted = trial.increase("preemptions", "engine")
    often = "" if preempted is None else f" and were interrupted {preempted / traffic.seconds:,.0f} times a second"
    looked = trial.recording.find("cores_busy_ns", "server") is not None
    held_up = f", the server waited {percent(min(of_server, 1.0))}" if looked else ""
    message = (
        f"Other work ran on reserved cores: the engine's workers waited "
        f"{percent(min(engine, 1.0))} of the time"
        f"{often}{held_up}{_named(trial)}."
    )
    return graded(FindingKind.NOISY_NEIGHBOUR, max(engine, of_server), message, trial)


def _named(trial: Trial) -> str:
    """`: of one core, rustc used 83%, python 12%`: the processes that used most, where a probe saw them."""
    used: list[str] = []
    for series in trial.recording.series:
        if series.name.startswith(OTHERS):
            share = (series.values[-1] - series.values[0]) / max(series.times_unix_ns[-1] - series.times_unix_ns[0], 1)
            used.append(f"{series.name.removeprefix(OTHERS)} {'' if used else 'used '}{percent(round(share, 2))}")
    return f": of one core, {', '.join(used)}" if used else ""


def _engine_held_up(trial: Trial, traffic: Traffic) -> float:
    """Share of their time for which workers wanted a core; 0 where there are more of them than cores to run on."""
    waited = trial.increase("run_delay_ns", "engine")
    if waited is None or traffic.engine.workers > len(traffic.engine.cpus):
        return 0.0
    # A thread that waits for the next period of a quota may count as waiting for a core; `throttled` reports that.
    by_others = max(waited - (trial.increase("throttled_ns", "engine") or 0.0), 0.0)
    return by_others / (traffic.engine.workers * traffic.seconds * 1e9)


def _server_held_up(trial: Trial, traffic: Traffic) -> float:
    """Share of the time of its cores for which the server waited while others ran there.

    A server's threads wait for each other as well, so its run-queue delay counts only as far as others used its cores.
    """
    waited, used = trial.increase("run_delay_ns", "server"), trial.server_cpu_ns
    busy = trial.increase("cores_busy_ns", "server")
    if waited is None or used is None or busy is None or trial.recording.server is None:
        return 0.0
    cores = len(trial.recording.server.cpus)
    others = max(busy - interrupts_ns(trial, "server") - used - 2 * cores * TICK_NS, 0.0)
    return min(waited, others) / (cores * traffic.seconds * 1e9)


def throttled(trial: Trial) -> tuple[Finding, ...]:
    """Whether a quota of CPU time ran out, of the server, a proxy or the engine; the worst of them is reported."""
    names: dict[Subject, str] = {"server": "server", "engine": "engine"}
    names |= {subject: f"proxy {name}" for subject, name in trial.recording.parts.items() if subject not in names}
    shares = {subject: _throttled_share(trial, subject) for subject in names}
    subject = max(names, key=lambda one: shares[one])
    lost_ms = (trial.increase("throttled_ns", subject) or 0.0) / 1e6
    message = (
        f"The {names[subject]} had used up its CPU quota in {percent(shares[subject])} of the quota's periods, and "
        f"lost {lost_ms:,.0f} ms of CPU time to it."
    )
    return graded(FindingKind.THROTTLED, shares[subject], message, trial)


def _throttled_share(trial: Trial, subject: Subject) -> float:
    periods = trial.increase("quota_periods", subject)
    often = trial.increase("throttled_periods", subject)
    return min(often / periods, 1.0) if periods and often is not None else 0.0


def _gravest(cell: Cell, server: float | None) -> Grade:
    if server is not None and server >= FULL_SERVER:
        return Grade.NOTE
    if not isinstance(cell.load.shape, Closed) or server is None or server >= BUSY_SERVER:
        return Grade.WARN
    return Grade.INVALID


def _meaning(cell: Cell, server: float | None) -> str:
    if not isinstance(cell.load.shape, Closed):
        return "requests may have queued in the client"
    if server is None:
        return "the two share cores, or it is not known what each used, so the rate is of both together"
    if server >= FULL_SERVER:
        return "both are at their limit, and a faster server will need a stronger client"
    if server >= BUSY_SERVER:
        return "both are near their limit, and the rate is of the two together"
    return "the rate is the client's limit, not the server's"


def retransmits(trial: Trial) -> tuple[Finding, ...]:
    """Whether segments were lost, so that their data came late."""
    again = trial.increase("tcp_segments_retransmitted", "machine")
    sent = trial.increase("tcp_segments_sent", "machine")
    if again is None or not sent:
        return ()
    message = (
        f"On this machine {again:,.0f} TCP segments were sent again, of {sent:,.0f} sent ({percent(again / sent)}), "
        "those of other programs included."
    )
    return graded(FindingKind.RETRANSMITS, again / sent, message, trial)


def listen_overflow(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether listeners dropped attempts to connect: the server's or a proxy's, where the kernel counts them alone."""
    own = [
        ("server" if part == "server" else f"proxy {name}", drops)
        for part, name in trial.recording.parts.items()
        if (drops := trial.increase("listen_drops", part)) is not None
    ]
    if any(drops for _, drops in own) or (own and not trial.increase("syn_cookies", "machine")):
        return tuple(found for name, drops in own for found in _dropped(name, drops, trial, traffic))
    dropped, full, cookies = (
        round(trial.increase(name, "machine") or 0.0) for name in ("listen_drops", "listen_overflows", "syn_cookies")
    )
    share = (dropped + cookies) / traffic.counts.due
    message = (
        f"On this machine listeners dropped {dropped:,} attempts to connect, {full:,} of them because their queue was "
        f"full, and answered {cookies:,} by a SYN cookie, those of other programs included; there were "
        f"{traffic.counts.due:,} requests."
    )
    return graded(FindingKind.LISTEN_OVERFLOW, share, message, trial, at_most=Grade.NOTE)


def _dropped(name: str, drops: float, trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    share = drops / traffic.counts.due
    message = (
        f"The listener of the {name} dropped {drops:,.0f} attempts to connect: {percent(share)} of "
        f"{traffic.counts.due:,} requests."
    )
    return graded(FindingKind.LISTEN_OVERFLOW, share, message, trial)


def port_pressure(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the ports of closed connections, which are blocked for a minute, leave few to connect from."""
    resting, ports = trial.recording.find("time_wait", "machine"), trial.recording.find("local_ports", "machine")
    if resting is None or ports is None:
        return ()
    end = traffic.window_unix_ns[1]
    own = _rise([count for at, count in zip(resting.times_unix_ns, resting.values, strict=True) if at <= end])
    share = own / ports.values[-1]
    message = (
        f"{own:,.0f} sockets entered TIME_WAIT in this trial, and there are {ports.values[-1]:,.0f} local ports "
        f"({percent(share)})."
    )
    return graded(FindingKind.PORT_PRESSURE, share, message, trial)


def _rise(counts: list[float]) -> float:
    """The most that a count rose above an earlier one: older sockets may leave meanwhile, which hides new ones."""
    lowest, rise = float("inf"), 0.0
    for count in counts:
        lowest = min(lowest, count)
        rise = max(rise, count - lowest)
    return rise


def network_limited(trial: Trial, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the link to the server was full."""
    speed = trial.recording.find("link_bits_per_s", "machine")
    sent = trial.increase("link_sent_bytes", "machine")
    received = trial.increase("link_received_bytes", "machine")
    if speed is None or sent is None or received is None:
        return ()
    per_s = 8 * max(sent, received) / traffic.seconds
    share = per_s / speed.values[-1]
    message = (
        f"{per_s / 1e6:,.0f} Mbit/s {'went out' if sent > received else 'came in'} over the link to the server, which "
        f"carries {speed.values[-1] / 1e6:,.0f} Mbit/s ({percent(share)})."
    )
    return graded(FindingKind.NETWORK_LIMITED, share, message, trial)
