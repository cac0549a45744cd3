"""Findings about the network between client and server, from what the monitors saw of it."""

from collections.abc import Sequence

from redline.findings.rules import LONG_TAILS, TOO_ALIKE, Observation, Rule
from redline.model import Grade, Series, Traffic
from redline.quantities import percent
from redline.stats import Trial


@Rule("retransmits", when="requests", note=0.001, biases=LONG_TAILS)
def retransmits(trial: Trial) -> Observation | None:
    """TCP segments that the machine sent again, of all that it sent.

    Lost segments are sent again after 200 ms or more. The kernel counts all programs of a network namespace together.

    Advice: Find what loses packets: a full link or queue (`ip -s link`, `tc -s qdisc`), or a listen queue that
    overflows.
    """
    again = trial.increase("tcp_segments_retransmitted", "machine")
    sent = trial.increase("tcp_segments_sent", "machine")
    return observe_retransmits(again, sent) if again is not None and sent else None


def observe_retransmits(again: float, sent: float) -> Observation:
    """An observation of the segments that were sent again, of those sent."""
    message = (
        f"On this machine {again:,.0f} TCP segments were sent again, of {sent:,.0f} sent ({percent(again / sent)}), "
        "those of other programs included."
    )
    return Observation(again / sent, message)


@Rule("listen-overflow", when="requests", note=0.0, warn=0.001, biases=LONG_TAILS)
def listen_overflow(trial: Trial, traffic: Traffic) -> Observation | Sequence[Observation]:
    """Attempts to connect that listeners dropped, per request due. At most **note** where the kernel counts all
    programs together.

    The client tries again after a second, and its requests wait.

    Advice: Raise the server's backlog and `net.core.somaxconn`, give it more threads that accept, or keep connections
    for longer.
    """
    own = [
        ("server" if part == "server" else f"proxy {name}", drops)
        for part, name in trial.recording.parts.items()
        if (drops := trial.increase("listen_drops", part)) is not None
    ]
    if any(drops for _, drops in own) or (own and not trial.increase("syn_cookies", "machine")):
        return tuple(observe_dropped(f"the {name}", drops, traffic.counts.due) for name, drops in own)
    dropped, full, cookies = (
        round(trial.increase(name, "machine") or 0.0) for name in ("listen_drops", "listen_overflows", "syn_cookies")
    )
    share = (dropped + cookies) / traffic.counts.due
    message = (
        f"On this machine listeners dropped {dropped:,} attempts to connect, {full:,} of them because their queue was "
        f"full, and answered {cookies:,} by a SYN cookie, those of other programs included; there were "
        f"{traffic.counts.due:,} requests."
    )
    return Observation(share, message, at_most=Grade.NOTE)


def observe_dropped(name: str, drops: float, due: int) -> Observation:
    """An observation of attempts to connect that a listener dropped, beside the requests due."""
    message = (
        f"The listener of {name} dropped {drops:,.0f} attempts to connect: {percent(drops / due)} of {due:,} requests."
    )
    return Observation(drops / due, message)


@Rule("port-pressure", when="requests", note=0.50, warn=0.80)
def port_pressure(trial: Trial, traffic: Traffic) -> Observation | None:
    """Sockets that entered `TIME_WAIT` in the trial, of the local ports.

    Above one half the search for a free port takes time; from 80% on connecting soon fails.

    Advice: Keep the connections of proxies and clients for longer, or widen the port range (`sysctl
    net.ipv4.ip_local_port_range`).
    """
    resting, ports = trial.recording.find("time_wait", "machine"), trial.recording.find("local_ports", "machine")
    return said_ports(resting, ports, traffic.window_unix_ns[1], "trial") if resting and ports else None


def said_ports(resting: Series, ports: Series, until_unix_ns: int, where: str) -> Observation:
    """An observation of the sockets that entered TIME_WAIT in a trial or a start, and of the local ports."""
    counts = zip(resting.times_unix_ns, resting.values, strict=True)
    own = _rise([count for at, count in counts if at <= until_unix_ns])
    share = own / ports.values[-1]
    message = (
        f"{own:,.0f} sockets entered TIME_WAIT in this {where}, and there are {ports.values[-1]:,.0f} local ports "
        f"({percent(share)})."
    )
    return Observation(share, message)


def _rise(counts: list[float]) -> float:
    """The largest rise of a count above an earlier value: older sockets that leave hide new sockets."""
    lowest, rise = float("inf"), 0.0
    for count in counts:
        lowest = min(lowest, count)
        rise = max(rise, count - lowest)
    return rise


@Rule("network-limited", when="requests", note=0.70, warn=0.90, biases=TOO_ALIKE)
def network_limited(trial: Trial, traffic: Traffic) -> Observation | None:
    """Use of the link's speed, in the busier direction.

    The counters leave out 24 bytes between frames: a link is full at 71% with the shortest frames, at 98% with the
    longest.

    Advice: Use a faster link or smaller bodies, or read the rate as that of the link.
    """
    speed = trial.recording.find("link_bits_per_s", "machine")
    sent = trial.increase("link_sent_bytes", "machine")
    received = trial.increase("link_received_bytes", "machine")
    if speed is None or sent is None or received is None:
        return None
    return said_link(sent / traffic.seconds, received / traffic.seconds, speed.values[-1])


def said_link(sent_per_s: float, received_per_s: float, bits_per_s: float) -> Observation:
    """An observation of the bytes that went over the link to the server, and of its speed."""
    per_s = 8 * max(sent_per_s, received_per_s)
    share = per_s / bits_per_s
    way = "went out" if sent_per_s > received_per_s else "came in"
    message = (
        f"{per_s / 1e6:,.0f} Mbit/s {way} over the link to the server, which carries "
        f"{bits_per_s / 1e6:,.0f} Mbit/s ({percent(share)})."
    )
    return Observation(share, message)
