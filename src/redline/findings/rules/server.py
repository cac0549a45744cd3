"""Doubts about the server. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

SERVER = (
    Rule(
        FindingKind.SERVER_DIED,
        "whether the server ended before it was told to",
        note=None,
        warn=None,
        invalid=0.0,
        reason="What was measured is a server on its way out, and the errors after it.",
        advice="Read the end of its output in the run directory; out of memory shows in the kernel's log.",
    ),
    Rule(
        FindingKind.TRIAL_FAILED,
        "whether the trial ended without usable traffic",
        note=None,
        warn=None,
        invalid=0.0,
        reason="There is nothing to estimate from.",
        advice="Read the failure and the end of the server's output, mend it, and run the suite again.",
    ),
    Rule(
        FindingKind.SERVER_RESTARTED,
        "processes that the server had before the load and that ended during it, while others of the same name took "
        "their place",
        note=None,
        warn=0.0,
        invalid=None,
        reason="A worker that is replaced takes its connections with it, and the new one is cold: the numbers are of a "
        "server that fails and recovers.",
        advice="Read in the server's output why its processes end, and mend that, or raise its limit of requests a "
        "worker.",
    ),
    Rule(
        FindingKind.LOCK_LIMITED,
        "closed loads without think time or pace, and 8 requests under way or more for each core and worker: unused "
        "share of the server's cores or of the engine's workers, whichever is smaller",
        note=0.25,
        warn=0.50,
        invalid=None,
        reason="When users always wait, something is full. If it is neither the server's cores nor the engine, the "
        "server waits: for a lock, its own limit on threads, a disk, another service. The rate is still its own, but "
        "more cores will not raise it, and CPU per request does not explain it.",
        advice="Look where its threads wait (a wall-clock profile, a thread dump), and at its limits on threads and "
        "CPU.",
    ),
    Rule(
        FindingKind.DEBUG_LOGGING,
        "bytes that the server wrote to its output during the load, for each request; at most a note where one of its "
        "options says that it logs",
        note=1.0,
        warn=10.0,
        invalid=None,
        reason="A line has about 100 bytes: 10 for each request is a line for every tenth, and to write one costs as "
        "much as many a request. Servers that log because nobody told them otherwise are compared with ones that do "
        "not.",
        advice="Set its log level to errors, or make the logging an option, so that the suite says that it is meant.",
    ),
    Rule(
        FindingKind.SERVER_LIMITED,
        "closed loads without think time or pace: used share of the server's cores, where the engine had time to spare",
        note=0.95,
        warn=None,
        invalid=None,
        reason="Good news: the cores of the server have no more to give, so the rate is its own number.",
        advice="Nothing is to be done: this is what a throughput should rest on.",
    ),
)
