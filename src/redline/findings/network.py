"""Doubts about one trial, from what the probes saw of the network between client and server."""

from redline.findings.doubt import doubt
from redline.model import Finding, FindingKind, Recording, Traffic
from redline.quantities import percent


def retransmits(recording: Recording) -> tuple[Finding, ...]:
    """Whether segments were lost, and what was in them came late."""
    again = recording.increase("tcp_segments_retransmitted", "machine")
    sent = recording.increase("tcp_segments_sent", "machine")
    if again is None or not sent:
        return ()
    message = f"{again:,.0f} TCP segments were sent again, of {sent:,.0f} sent ({percent(again / sent)})."
    return doubt(FindingKind.RETRANSMITS, again / sent, message, recording)


def listen_overflow(recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether a listener turned attempts to connect away."""
    dropped, full, cookies = (
        round(recording.increase(name, "machine") or 0.0)
        for name in ("listen_drops", "listen_overflows", "syn_cookies")
    )
    share = (dropped + cookies) / traffic.counts.due
    message = (
        f"Listeners dropped {dropped:,} attempts to connect, {full:,} of them because their queue was full, and "
        f"answered {cookies:,} by a SYN cookie: {percent(share)} of {traffic.counts.due:,} requests."
    )
    return doubt(FindingKind.LISTEN_OVERFLOW, share, message, recording)


def port_pressure(recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the ports of closed connections, which rest for a minute, leave few to connect from."""
    resting, ports = recording.find("time_wait", "machine"), recording.find("local_ports", "machine")
    if resting is None or ports is None:
        return ()
    end = traffic.window_unix_ns[1]
    own = _rise([count for at, count in zip(resting.times_unix_ns, resting.values, strict=True) if at <= end])
    share = own / ports.values[-1]
    message = (
        f"{own:,.0f} sockets came to rest in TIME_WAIT in this trial, and there are {ports.values[-1]:,.0f} local "
        f"ports ({percent(share)})."
    )
    return doubt(FindingKind.PORT_PRESSURE, share, message, recording)


def _rise(counts: list[float]) -> float:
    """The most that a count rose above an earlier one: what rested before may be over, and hides what is new."""
    lowest, rise = float("inf"), 0.0
    for count in counts:
        lowest = min(lowest, count)
        rise = max(rise, count - lowest)
    return rise


def network_limited(recording: Recording, traffic: Traffic) -> tuple[Finding, ...]:
    """Whether the link to the server was full."""
    speed = recording.find("link_bits_per_s", "machine")
    sent = recording.increase("link_sent_bytes", "machine")
    received = recording.increase("link_received_bytes", "machine")
    if speed is None or sent is None or received is None:
        return ()
    per_s = 8 * max(sent, received) / traffic.seconds
    share = per_s / speed.values[-1]
    message = (
        f"{per_s / 1e6:,.0f} Mbit/s {'went out' if sent > received else 'came in'} over the link to the server, which "
        f"carries {speed.values[-1] / 1e6:,.0f} Mbit/s ({percent(share)})."
    )
    return doubt(FindingKind.NETWORK_LIMITED, share, message, recording)
