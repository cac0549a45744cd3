"""Doubts about the network between client and server. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

NETWORK = (
    Rule(
        FindingKind.RETRANSMITS,
        "TCP segments sent again within the window, over those sent, in the server's network namespace",
        note=0.001,
        warn=0.01,
        invalid=None,
        reason="Who asks and waits has nothing more to send, so what is lost is sent again only after a timeout, "
        "200 ms or more. As with `errors`, 0.1% can be all that is beyond p99.9, and 1% all that is beyond p99.",
        advice="Look for what loses packets: a full link or queue (`ip -s link`, `tc -s qdisc`), or a listen queue "
        "that overflows.",
    ),
    Rule(
        FindingKind.LISTEN_OVERFLOW,
        "attempts to connect that a full listen queue dropped or answered by a SYN cookie within the window, over the "
        "requests due",
        note=0.0,
        warn=0.001,
        invalid=None,
        reason="A client whose SYN is dropped tries again after a second, and whoever waits for that connection waits "
        "with it. 0.1% of the requests can be all that is beyond p99.9.",
        advice="Raise the server's backlog and `net.core.somaxconn`, give it more threads that accept, or keep "
        "connections for longer.",
    ),
    Rule(
        FindingKind.PORT_PRESSURE,
        "sockets that came to rest in TIME_WAIT during the trial, over the local ports that there are to connect from",
        note=0.50,
        warn=0.80,
        invalid=None,
        reason="To connect, the kernel tries every other port of the range first. More than half at rest means that "
        "these were used up, and each attempt searches through them in vain; from 80% on little is missing until "
        "connecting fails, which `exhausted` counts for the engine.",
        advice="Keep the connections of proxies and clients for longer, or widen the ports "
        "(`sysctl net.ipv4.ip_local_port_range`).",
    ),
    Rule(
        FindingKind.NETWORK_LIMITED,
        "bits per second that went over the link to the server, in the busier direction, over its speed",
        note=0.70,
        warn=0.90,
        invalid=None,
        reason="The counters leave out 24 bytes between two frames, so that a link is full at 71% with the shortest "
        "frames, at 98% with the longest. Requests then queue before it, and its speed is what is measured.",
        advice="Use a faster link or smaller bodies, or read the rate as that of the link.",
    ),
)
