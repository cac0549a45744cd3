"""The one table of findings: from which value on each is a note, a warning or invalid, why there, and what to do.

`docs/concepts/findings.md` explains each rule under an anchor of its kind, in the same order; a test compares the two.
"""

from dataclasses import KW_ONLY, dataclass

from redline.model import Cell, Finding, FindingKind, Grade
from redline.model.hosts import MOST_CLOCK_ERROR
from redline.stats import Trial

BUSY_SERVER = 0.85
"""From this share of its cores on, the server is near its limit: an M/M/1 queue then waits for 5.7 service times."""

FULL_SERVER = 0.95
"""From this share on, the server's cores are full: the rate is the server's own, however busy the client."""

OTHERS_BUSY = 0.10
"""A smaller share of the machine's CPU time, used by neither server nor engine, is the kernel's housekeeping."""

TICK_NS = 10_000_000
"""The kernel counts a core's busy time in ticks of 10 ms, so a window is off by one tick at either end."""

TREND_P = 0.001
"""Chance of reporting noise as a trend, per trial: at most one false alarm in 13 runs of 75 good trials each."""

ARRIVALS_P = 1e-5
"""Chance of blaming a correct schedule, for each of three tests: one false alarm in 30,000 trials."""

AUTOCORRELATION_P = 0.001
"""Chance of taking independent trials for dependent ones: once in 1,000 cells."""

WANTED_TRIALS = 5
"""With fewer, the t distribution alone makes an interval more than 2.78 / 1.96 = 1.4 times as wide."""

WANTED_BEYOND = 100
"""Requests beyond p99 that fix it to about 2% if response times fall off exponentially: 1 / (sqrt(100) ln 100)."""

REASSURING = frozenset({FindingKind.SERVER_LIMITED, FindingKind.PAUSES_IN_TAIL})
"""Good to know and no reason to doubt: reported once, and marks no number."""

OF_THE_MACHINE = frozenset(
    {FindingKind.ENGINE_PAUSED, FindingKind.CPU_STEAL, FindingKind.CPU_PRESSURE, FindingKind.NOISY_NEIGHBOUR}
)
"""What passes by: interleaved trials average it, so it weighs on a cell as far as it met most of its trials."""

SERVERS_DOING = frozenset(
    {
        FindingKind.ERRORS,
        FindingKind.WRONG_ANSWERS,
        FindingKind.RATE_MISSED,
        FindingKind.SERVER_DIED,
        FindingKind.TRIAL_FAILED,
    }
)
"""Findings about what the server did. A trial lost to one has no numbers, but it happened: no objective is met."""

LENGTHENING = frozenset({FindingKind.SEND_LATENESS})
"""What only ever adds to a response time, where requests fall due by a schedule: what is met is met in spite of it."""

CLIENTS_DOING = LENGTHENING | {FindingKind.CLIENT_SATURATED, FindingKind.EXHAUSTED}
"""Findings about what the load generator lacked. Beside one that is invalid, a missed rate may be its doing too."""


@dataclass(frozen=True)
class Rule:
    """One kind of finding. Its grade is the highest whose limit the value exceeds; None is never exceeded.

    `biases` is which way it moves a number; `scatters` whether it widens intervals, or makes them untrue.
    """

    kind: FindingKind
    _: KW_ONLY
    note: float | None = None
    warn: float | None = None
    invalid: float | None = None
    reason: str
    advice: str
    biases: str = ""
    scatters: bool = False

    def grade(self, value: float) -> Grade | None:
        """The grade for this value; None if there is no finding."""
        for grade, limit in ((Grade.INVALID, self.invalid), (Grade.WARN, self.warn), (Grade.NOTE, self.note)):
            if limit is not None and value > limit:
                return grade
        return None


def graded(  # noqa: PLR0913
    kind: FindingKind,
    value: float,
    message: str,
    about: Cell | Trial | str,
    *,
    at_most: Grade = Grade.INVALID,
    advice: str | None = None,
) -> tuple[Finding, ...]:
    """The finding that the rule of this kind makes of the value, graded no higher than `at_most`; empty for none.

    `about` may be the id of a cell. `advice` replaces that of the rule.
    """
    rule = RULES[kind]
    grade = rule.grade(value)
    if grade is None:
        return ()
    cell_id = about if isinstance(about, str) else about.id if isinstance(about, Cell) else about.recording.cell_id
    return (
        Finding(
            kind=kind,
            grade=min(grade, at_most, key=lambda one: one.weight),
            message=message,
            advice=advice or rule.advice,
            cell_id=cell_id,
            position=about.recording.position if isinstance(about, Trial) else None,
        ),
    )


_SLOW, _TAIL, _CHEAP = "response times are too high", "tails are too high", "costs are too low"
_HOST = "throughput is too low and response times are too high, of all servers alike"
_WHEN, _SMALL = "levels depend on when they were measured", "differences are too small"
"""Which way several rules move a number."""

_TABLE = (
    # What the engine sent and received.
    Rule(
        FindingKind.ERRORS,
        note=0.0,
        warn=0.001,
        invalid=0.01,
        reason="A failed request has a response time too: the time until it failed. 0.1% of requests can be "
        "everything beyond p99.9, and 1% everything beyond p99.",
        advice="Look in the server's output for what happened then, beginning with the first failure of each kind.",
        biases="percentiles count how fast requests failed",
    ),
    Rule(
        FindingKind.EXHAUSTED,
        note=0.0,
        warn=0.001,
        invalid=0.01,
        reason="These requests failed before they reached the server, which had that much less to do. Limits as for "
        "`errors`.",
        advice="Use fewer connections or longer-lived ones (`requests_per_connection`), widen the port range "
        "(`sysctl net.ipv4.ip_local_port_range`), raise the descriptor limit (`ulimit -n`); `redline doctor` shows the "
        "limits.",
        biases="the load is too low",
    ),
    Rule(
        FindingKind.WRONG_ANSWERS,
        warn=0.0,
        invalid=0.01,
        reason="A server that sheds load with 503 answers fast: from 1% on, such answers may set the percentiles. A "
        "wrong body, or bytes that are not HTTP, is invalid from the first one on: the work was not done.",
        advice="Send the request by hand and compare the answer with the scenario's `expect`. If the server sheds "
        "load, lower the load.",
        biases=_CHEAP,
    ),
    Rule(
        FindingKind.SURPLUS_BYTES,
        note=0.0,
        warn=0.01,
        reason="HTTP ends an answer where its head says. Bytes beyond that are read as the next answer by clients that "
        "trust the connection, and a cautious one closes it. 1% of new connections can be everything beyond p99.",
        advice="Fix what writes them: a body on an answer to HEAD or with 204, a second last chunk, or a wrong length.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.RECONNECTING,
        note=0.1,
        warn=0.5,
        reason="A new connection costs the server more than many an answer, and its handshake is part of the response "
        "time. The numbers are of a server that is used so, whatever the load asks for.",
        advice="Let the server keep connections (its keep-alive timeout, or how many requests it takes on one), or ask "
        "for new ones by `requests_per_connection: 1`, so that all servers are loaded alike.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.RATE_MISSED,
        warn=0.01,
        invalid=0.05,
        reason="A queue that never drains grows as long as the load lasts, so its percentiles measure the length of "
        "the trial. 1% of requests can be the entire tail beyond p99; at 5% the load was not the one specified.",
        advice="Lower the rate until the server keeps up, or search for the highest rate that meets the objective.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.BACKLOG,
        warn=0.01,
        invalid=0.05,
        reason="What waits from the warm-up is served first, so what is measured waits for it: response times are of a "
        "server that catches up, not of this load. 1% of requests can be the entire tail beyond p99.",
        advice="Warm up for longer, or by few users (`warmup_by: {users: 2}`), so that the server has caught up when "
        "the measurement begins.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.SEND_LATENESS,
        note=0.20,
        warn=0.33,
        invalid=0.50,
        reason="Response time counts from the due time, so it includes the engine's lateness: always some "
        "microseconds, a sixth of the median of a fast idle server. Past one half, most of it was not the server's.",
        advice="Give the engine a core of its own, lower the rate, or read the service time, which has no lateness.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.CLIENT_QUEUEING,
        note=0.01,
        warn=0.10,
        reason="The wait is in the response time. With more connections these requests would have queued in the "
        "server, or not at all. 1% of them can be everything beyond p99.",
        advice="Allow more `connections`; if the server is overloaded, lower the rate. The service time does not "
        "include this wait.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.ARRIVALS,
        invalid=0.0,
        reason="The number of requests due is known: exactly, or for Poisson arrivals by its distribution. Another "
        "load than the one specified answers another question.",
        advice="Do not use these numbers. Report a fault of the engine, with the recording.",
    ),
    Rule(
        FindingKind.BUNCHED_SENDS,
        note=10.0,
        warn=100.0,
        reason="What falls due while the engine is late goes out at once, so the server gets bunches instead of the "
        "arrivals of the load: the last of ten waits for nine service times that are not in the load.",
        advice="Give the engine a core of its own or more workers, or lower the rate.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.SHRINKING_ANSWERS,
        note=0.01,
        warn=0.05,
        reason="A server that answers less under load does less work, with the right status. A longer number in a "
        "header can change the length by 1%. Where lengths are compared, another length is a wrong answer.",
        advice="Compare the body under load too (`under_load: length`), and look at what the short answers leave out.",
        biases=_CHEAP,
    ),
    Rule(
        FindingKind.UNSTEADY,
        warn=0.10,
        invalid=0.50,
        reason="The mean of a number that still moves depends on when one looked. 10% would pass for a difference "
        "between servers; past 50% no single state is described. Open loads are invalid by `rate-missed` instead.",
        advice="Warm up longer, measure longer, and look for other work on the machine.",
        biases=_WHEN,
        scatters=True,
    ),
    Rule(
        FindingKind.STEADINESS_UNKNOWN,
        note=0.0,
        reason="With six intervals even a perfect trend has p = 2 / 6! = 0.003 in Kendall's test, so no trend can be "
        "told from noise.",
        advice="Measure for half a second or longer; under an open load, with 20 requests or more in each tenth of it.",
    ),
    Rule(
        FindingKind.NEVER_STEADY,
        warn=0.0,
        reason="The numbers do not describe one speed, and a later measurement would find others. That may be the "
        "answer, so it is shown.",
        advice="Give it more time (`warmup: {detect: {at_most: 3m}}`), more cores to compile on, or a machine without "
        "other work. If nothing helps, the result is that this server is never steady.",
        biases=_WHEN,
    ),
    Rule(
        FindingKind.SLOWING_DOWN,
        warn=0.05,
        reason="It was faster once: a heap that fills, code compiled for the worse, a lower clock rate. Levels within "
        "5% of each other count as one.",
        advice="Look at its collector, its memory and the machine's clock rate; a longer trial shows whether it "
        "continues.",
        biases=_WHEN,
    ),
    Rule(
        FindingKind.STILL_COMPILING,
        note=0.10,
        warn=0.50,
        reason="What a virtual machine has not compiled yet runs several times slower, and its compilers take CPU time "
        "from requests. Those of a warm server use some hundredths of a core.",
        advice="Warm up by few users (`warmup_by: {users: 2}`), who leave the compilers a core; for longer; or until "
        "the compilers rest (`warmup: {detect: {at_most: 3m}}`). Give the server more cores to compile on.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.NOT_WARMED_UP,
        note=0.0,
        reason="What such a runtime has not compiled yet runs several times slower. Compilers are quiet for seconds at "
        "a time, so less than five seconds of load show nothing of it.",
        advice="Warm up until the server is steady (`--warmup auto`), or for a time such as `--warmup 30s`. A server "
        "that earlier load has warmed up needs neither.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.CARRIED_OVER,
        note=0.05,
        warn=0.10,
        reason="A request that was due before the measurement is in none of its response times, however long it still "
        "holds its user. With that user on hold, the others are served faster than they would be.",
        advice="Measure for longer, or warm up until no connection waits any more; see which connections the server "
        "leaves waiting.",
        biases="response times are too low",
    ),
    Rule(
        FindingKind.LITTLES_LAW,
        warn=0.05,
        invalid=0.10,
        reason="L = lambda W (Little, 1961) holds for any server. Where it fails, requests or time were lost in "
        "counting; histograms and the ends of the window explain less than the allowance.",
        advice="Do not use these numbers. Check that all users could connect, then report a fault of the engine.",
    ),
    Rule(
        FindingKind.CUT_SHORT,
        warn=0.0,
        invalid=0.5,
        reason="Half a measurement is still one, of less weight than it seems. At the engine's deadline something "
        "hung, so that is always invalid.",
        advice="Run it again, in full.",
        scatters=True,
    ),
    Rule(
        FindingKind.TLS_INSECURE,
        note=0.0,
        reason="Any server could have answered, and checking a certificate is part of the handshake's time.",
        advice="Name the certificate's issuer (`ca` in a suite, `--cacert` on the command line) and check it.",
    ),
    # The server.
    Rule(
        FindingKind.SERVER_DIED,
        invalid=0.0,
        reason="The trial measured a server that was about to fail, and the errors after it.",
        advice="Read the end of its output in the run directory; the kernel's log shows if it ran out of memory.",
    ),
    Rule(
        FindingKind.TRIAL_FAILED,
        invalid=0.0,
        reason="There is nothing to estimate from.",
        advice="Look in the server's output for why no right answer came.",
    ),
    Rule(
        FindingKind.NOTHING_DUE,
        invalid=0.0,
        reason="The load's rate, or its users' time to think, leaves no request for a measurement this short. That is "
        "no fault of the server's, and says nothing of it.",
        advice="Measure for longer, at a higher rate, or with more users.",
    ),
    Rule(
        FindingKind.SERVER_RESTARTED,
        warn=0.0,
        reason="A worker that is replaced takes its connections with it, and the new one is cold: the numbers are of a "
        "server that fails and recovers.",
        advice="Read in the server's output why its processes end, and fix that, or raise its limit of requests per "
        "worker.",
        biases=_SLOW,
    ),
    Rule(
        FindingKind.UPSTREAM_PROTOCOL,
        note=0.0,
        warn=1.0,
        reason="Settings of a proxy do not always do what they say, and HTTP/2 to the server has another price than "
        "HTTP/1.1. The numbers stand, but for the protocol that was spoken.",
        advice="Name the leg in the route that the proxy really speaks, or change its configuration.",
    ),
    Rule(
        FindingKind.UPSTREAM_CERTIFICATE,
        warn=0.0,
        reason="A proxy that accepts any certificate does not check what others check, so its handshakes are cheaper, "
        "and any server could have answered it.",
        advice="Build the server's certificate again, and let the proxy check it (`{upstream_ca}`).",
    ),
    Rule(
        FindingKind.LOCK_LIMITED,
        note=0.25,
        warn=0.50,
        reason="When users always wait, something is full. If it is neither the server's cores nor the engine, the "
        "server waits: for a lock, its own limit on threads, a disk, another service. More cores will not raise the "
        "rate, and CPU per request does not explain it.",
        advice="Find out where its threads wait (a wall-clock profile, a thread dump), and check its limits on threads "
        "and CPU.",
    ),
    Rule(
        FindingKind.DEBUG_LOGGING,
        note=1.0,
        warn=10.0,
        reason="A line has about 100 bytes: 10 per request is a line for every tenth, and writing one costs as much as "
        "many a request. Servers that log by default are compared with servers that do not.",
        advice="Set its log level to errors, or make logging an option, so that the suite states it.",
        biases="CPU per request is too high",
    ),
    Rule(
        FindingKind.HEAP_PRESSURE,
        note=0.70,
        warn=0.85,
        reason="With a share s of the heap alive, a collector looks at s / (1 - s) bytes for each that it frees: 2.3 "
        "at 70%, 5.7 at 85%. A process at the limit of its container is killed.",
        advice="Give it a larger heap (`heap`), or a container with more memory; compare servers at heaps that all of "
        "them have room in.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.ALLOCATION_STALL,
        note=0.0,
        warn=0.01,
        reason="Threads that wait for memory do not answer. The collector began too late or had too few cores, so the "
        "numbers are those of a heap that is too small for this rate. 1% of the time is all of the tail beyond p99.",
        advice="Give it a larger heap or more cores, lower the rate, or use a collector that stops the application.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.LEAK_SUSPECTED,
        warn=0.10,
        reason="What lives after collections of the whole heap grows in the first seconds, as caches fill, and then "
        "stays. What grows on fills the heap in the end. Kendall's test takes noise for growth once in 1,000 trials.",
        advice="Measure for longer: growth that ends was a cache. Compare two heap dumps (`jcmd PID GC.heap_dump`).",
        biases=_WHEN,
    ),
    Rule(
        FindingKind.PAUSES_IN_TAIL,
        note=0.25,
        reason="No doubt, but the reason of the tail: its requests waited for pauses of the collector, or for other "
        "safepoints. A quarter more of them than by chance is more than a coincidence.",
        advice="Compare collectors and heap sizes; the section on memory and pauses has the causes of the pauses.",
    ),
    Rule(
        FindingKind.COLLECTOR_LOG,
        note=0.05,
        warn=0.20,
        reason="Pauses in reports come from the log. The JVM's own counters are written by other code, so that where "
        "the two agree, lines were neither lost nor misread.",
        advice="Do not use the pauses of this trial. Report a fault, with the recording and the version of the JDK.",
    ),
    Rule(
        FindingKind.RUNTIME_DIFFERS,
        note=0.0,
        reason="Some things are decided by the declared runtime, before the start: the options and flags of a suite's "
        "`jvm`, the log of the collector, which profiler is used.",
        advice="Declare what runs it, such as `runtime: jvm`. Let the command of a JVM begin with `{java}`: then the "
        "suite chooses its JDK, and the log of its collector is read.",
    ),
    Rule(
        FindingKind.SERVER_LIMITED,
        note=0.95,
        reason="Good news: the server's cores are full, so the rate is its own.",
        advice="Nothing needs to be done: a throughput should rest on this.",
    ),
    # The network between client and server.
    Rule(
        FindingKind.RETRANSMITS,
        note=0.001,
        reason="A request or answer has nothing after it, so a lost one is sent again only after a timeout of 200 ms "
        "or more. As with `errors`, 0.1% can be everything beyond p99.9. The kernel counts for all programs of a "
        "network namespace together, so it is never more than a note.",
        advice="Find what loses packets: a full link or queue (`ip -s link`, `tc -s qdisc`), or a listen queue "
        "that overflows.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.LISTEN_OVERFLOW,
        note=0.0,
        warn=0.001,
        reason="A client whose SYN is dropped tries again after a second, and its requests wait for that connection. "
        "0.1% of the requests can be everything beyond p99.9.",
        advice="Raise the server's backlog and `net.core.somaxconn`, give it more threads that accept, or keep "
        "connections for longer.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.PORT_PRESSURE,
        note=0.50,
        warn=0.80,
        reason="To connect, the kernel first tries every other port of the range. Above one half these are used up, "
        "and each attempt searches them in vain; from 80% on connecting soon fails, which `exhausted` counts.",
        advice="Keep the connections of proxies and clients for longer, or widen the port range "
        "(`sysctl net.ipv4.ip_local_port_range`).",
    ),
    Rule(
        FindingKind.NETWORK_LIMITED,
        note=0.70,
        warn=0.90,
        reason="The counters leave out 24 bytes between two frames, so a link is full at 71% with the shortest frames "
        "and at 98% with the longest. Requests then queue before it, and the link's speed is what is measured.",
        advice="Use a faster link or smaller bodies, or read the rate as that of the link.",
        biases=_SMALL,
    ),
    # Several hosts.
    Rule(
        FindingKind.CLOCK_BOUND,
        note=0.02,
        warn=MOST_CLOCK_ERROR,
        reason="A one-way time is the difference of two hosts' clocks, and off by as much as they are. Above a tenth "
        "the report does not show it. Response times are of one clock, and not affected.",
        advice="Let chrony follow a nearer source on both hosts, or the same one; see docs/guide/many-machines.md.",
        biases="one-way times are too long one way, and too short the other",
    ),
    Rule(
        FindingKind.LOAD_HOSTS_DIFFER,
        note=0.10,
        warn=0.25,
        reason="All load hosts put parts of one load on one server, drawn alike. What one of them sees differently is "
        "its own, or its way there; the sum is then of no host.",
        advice="See that host's clock rate, cores, network card and way; measure with the others alone.",
        biases=_TAIL,
    ),
    Rule(
        FindingKind.CLOCK_STEPPED,
        note=0.0001,
        warn=0.001,
        invalid=0.01,
        reason="What is seen on a server's host is put beside the load by the clocks of both. A clock that is set "
        "moves it by so much of the measurement: at 1% CPU time, memory and pauses are those of another time, and a "
        "load host may have begun by another clock than the others.",
        advice="Let chrony slew the clock (`makestep` only at its start), and keep other programs from setting it.",
        biases="CPU time and pauses are those of another time; one-way times are off by the step",
    ),
    Rule(
        FindingKind.PAIRS_DIFFER,
        note=0.02,
        warn=0.10,
        reason="A cell's trials are dealt to all pairs. Where these differ, its mean is one of different machines, and "
        "its interval is as wide as they are apart. Comparisons stay on one pair in each round, where that cancels.",
        advice="Use hosts of one kind and setting (clock rate, cores, kernel, `redline doctor --hosts`), or one pair.",
        scatters=True,
    ),
    # The client, and the machine that both run on.
    Rule(
        FindingKind.CLIENT_SATURATED,
        warn=0.90,
        invalid=0.95,
        reason="A client without idle time sets the pace itself. Invalid only where that is certain: a closed load, "
        "cores of its own for each side, and a server with capacity to spare. `send-lateness` judges open loads.",
        advice="Give the engine more cores or workers, or lower the load, until the server is the limit.",
        biases="throughput is too low and differences are too small",
    ),
    Rule(
        FindingKind.ENGINE_PAUSED,
        note=0.0,
        warn=0.001,
        invalid=0.01,
        reason="Meanwhile nothing is sent, and answers wait to be read: a closed load reads as a slower server, an "
        "open one as one that stalled. 0.1% of the time can be everything beyond p99.9, and 1% everything beyond p99.",
        advice="Find out what stopped the engine (a paused or suspended machine, a frozen cgroup, a stopped process, a "
        "quota), and measure again.",
        biases=_HOST,
        scatters=True,
    ),
    Rule(
        FindingKind.CPU_STEAL,
        note=0.02,
        warn=0.10,
        reason="Stolen time adds to whatever runs, and looks like the server's. Below 2% it is less than the "
        "differences worth acting on; interleaved trials average what is above.",
        advice="Use a machine with dedicated cores, or more trials.",
        biases=_HOST,
        scatters=True,
    ),
    Rule(
        FindingKind.CPU_PRESSURE,
        note=0.20,
        warn=0.40,
        reason="A saturated server causes pressure by itself; together with other work it means that they competed. "
        "Where tasks waited 40% of the time, throughput was seen to halve.",
        advice="Stop other work on this machine, or pin it away from the server's and the engine's cores.",
        biases=_HOST,
        scatters=True,
    ),
    Rule(
        FindingKind.NOISY_NEIGHBOUR,
        note=0.05,
        warn=0.10,
        reason="On cores of their own, server and engine wait only for work that does not belong there. The kernel and "
        "the lab cause at most 4% in quiet runs. From 10% on it takes as much as a host that earns a warning.",
        advice="Find what else ran on these cores (`top`, then `1`), and stop it or pin it elsewhere.",
        biases=_HOST,
        scatters=True,
    ),
    Rule(
        FindingKind.THROTTLED,
        note=0.0,
        warn=0.01,
        reason="A process that has used up its quota stands still until the period ends, usually for up to 100 ms, and "
        "so do its requests. 1% of the periods can be everything beyond p99. The quota may be intended, so this is "
        "never invalid.",
        advice="Raise the quota (`cpu.max`, `--cpus` of a container), or read the number as that of the quota.",
        biases="throughput is too low and response times are too high",
    ),
    Rule(
        FindingKind.CPU_SAMPLED,
        note=0.0,
        reason="Only clocks of processes that live through the whole window can be read at both ends of it. Samples "
        "may be some ticks off, and leave out processes that live shorter than the time between two of them.",
        advice="Read CPU per request with care, or let the server start its processes before the load.",
        scatters=True,
    ),
    Rule(
        FindingKind.CPU_UNKNOWN,
        warn=0.0,
        reason="Whoever answers a request uses CPU time. Where the processes that were read used none, others "
        "answered, so what the answers cost is not known, and is not 0.",
        advice="Start what answers itself, not a command that asks something else to start it or that only passes "
        "requests on.",
        biases="what a request costs is not known",
    ),
    Rule(
        FindingKind.PERTURBED,
        warn=0.0,
        reason="A profiler takes time from what it watches.",
        advice="Take comparisons from a run without profilers.",
        biases="costs are too high",
    ),
    # A cell, judged by all of its trials.
    Rule(
        FindingKind.NEAR_CEILING,
        note=0.80,
        warn=0.95,
        reason="From 80% on most of each exchange is work of the kernel and the client, which all servers share, so "
        "throughput ratios move towards 1.",
        advice="Compare CPU per request instead, or give the scenario more work.",
        biases=_SMALL,
    ),
    Rule(
        FindingKind.RUN_DRIFT,
        note=0.02,
        warn=0.10,
        reason="Trials are interleaved, so a drift affects all cells alike and spares the ratios; but the level "
        "depends on when one measured. 2% is worth acting on; past 10% the rounds are of different machines.",
        advice="Compare within this run only. Look for what changed: heat, clock rate, other work, a disk that fills.",
        scatters=True,
    ),
    Rule(
        FindingKind.AUTOCORRELATION,
        note=0.0,
        warn=0.5,
        reason="An interval over n trials takes them for independent. With a correlation r between neighbours it "
        "should be sqrt((1 + r) / (1 - r)) times as wide.",
        advice="Do not trust the interval. Run on another day as well, and look for what comes and goes on this "
        "machine.",
        scatters=True,
    ),
    Rule(
        FindingKind.BIMODAL,
        note=0.02,
        warn=0.05,
        reason="A mean between two modes is neither, and which one a start will draw is a lottery: of the JIT, of "
        "memory layout, of how connections are assigned to threads. 2% is worth acting on.",
        advice="Read the single trials, and compare modes with modes. Find what differs between starts of the server.",
        scatters=True,
    ),
    Rule(
        FindingKind.HOST_MODE,
        note=0.25,
        reason="A core slows down by a third or more while another hardware thread runs on it, and on a shared machine "
        "that thread belongs to another guest. Nothing else shows such a guest: it is no steal. Fixed work varies by "
        "15% within one mode.",
        advice="Compare by duets (`design: duet`), whose slices alternate faster than the host's modes; for levels, "
        "run more trials, or use a machine whose cores are not shared.",
        scatters=True,
    ),
    Rule(
        FindingKind.BUILDS_DIFFER,
        note=0.0,
        warn=0.02,
        reason="An interval over trials takes them for independent, and trials of one build share its layout of code. "
        "Only chance of 1 in 100 is taken for a difference; 2% is worth acting on.",
        advice="Take the scatter of the builds for the precision, and more builds (`builds`) for a better one.",
        scatters=True,
    ),
    Rule(
        FindingKind.BUILDS_ALIKE,
        note=0.0,
        reason="A build that is reproducible, wherever it is made, gives the same bytes again: then several builds are "
        "one build, and say nothing of what another layout of code would do.",
        advice="Leave out `builds`, which costs time here and adds nothing.",
    ),
    Rule(
        FindingKind.TOO_FEW_TRIALS,
        note=0.0,
        warn=2.0,
        invalid=4.0,
        reason="An interval over n trials has n - 1 degrees of freedom: with 4 it is 1.4 times as wide as with many, "
        "with 1 it is 6.5 times as wide, with a single trial there is none.",
        advice="Run more trials: --trials 5 or more.",
        scatters=True,
    ),
    Rule(
        FindingKind.TOO_FEW_SAMPLES,
        note=0.0,
        warn=90.0,
        reason="p99 rests on the slowest hundredth alone. 100 requests there fix it to about 2% if response times fall "
        "off exponentially, 10 to about 7%; with fewer than 10 it is not reported.",
        advice="Measure longer: p99 needs 10,000 requests in all, p99.9 needs 100,000.",
        scatters=True,
    ),
    Rule(
        FindingKind.RESOLUTION,
        note=0.05,
        reason="A comparison that cannot decide says nothing about differences smaller than its interval: 5% is what "
        "many a change is made for.",
        advice="Compare by duets, or add rounds; a quieter machine needs fewer.",
        scatters=True,
    ),
    # A duet.
    Rule(
        FindingKind.FEW_STARTS,
        note=0.0,
        warn=3.0,
        reason="How starts differ is part of the interval. Over 4 starts it is 1.6 times as wide as over many, and "
        "over one nobody knows how they differ.",
        advice="Give it more time, or more rounds.",
        scatters=True,
    ),
    Rule(
        FindingKind.FAILED_STARTS,
        warn=0.0,
        reason="The ratio rests on the starts in which all servers worked, and these may be the better ones.",
        advice="Look in the servers' output for why they failed.",
    ),
    Rule(
        FindingKind.CONTROL,
        warn=0.0,
        reason="The baseline runs twice in each start, as two processes. If they differ, so may any two servers by as "
        "much, whatever they are.",
        advice="Compare again. If it persists, look for what makes two processes of one server differ.",
        scatters=True,
    ),
    Rule(
        FindingKind.COLD,
        warn=0.0,
        reason="Servers that still get faster are compared by how far they are, not by how fast they will be. Their "
        "interval is wider by how far the ratio may yet move.",
        advice="Give it more time.",
        biases=_WHEN,
    ),
    Rule(
        FindingKind.DISAGREEMENT,
        warn=0.0,
        reason="Under users with zero think time a request that costs more CPU time lowers the rate. If a server needs "
        "less of it and is slower all the same, it waits for something else.",
        advice="See what the slower server waits for: a lock, a thread pool, another service.",
    ),
    Rule(
        FindingKind.ANSWER_SIZES,
        note=0.01,
        reason="Where nobody says what the right answer is, servers that do different work may be compared. A header "
        "with a date or a number changes the length by less than 1%.",
        advice="Compare the answers, or let Redline do so: `--same-answers`.",
    ),
    Rule(
        FindingKind.CPU_BEHIND,
        warn=0.0,
        reason="A proxy that passes requests on costs little itself. What answers costs the rest.",
        advice="Compare the addresses of the servers themselves, or read throughput and response times.",
        biases=_CHEAP,
    ),
    Rule(
        FindingKind.IDLE_WORK,
        warn=0.01,
        reason="The slices of a server are disturbed by what others do meanwhile: compilers, collectors, timers. From "
        "1% of a core on, that is as much as many a difference.",
        advice="Give the servers more time to warm up, or switch off what they do on their own.",
        scatters=True,
    ),
    Rule(
        FindingKind.CLIENT_LIMITED,
        note=0.20,
        reason="Under users with zero think time, a server with idle cores waits for the client.",
        advice="Read CPU per request, or load the servers by more users.",
        biases=_SMALL,
    ),
    Rule(
        FindingKind.RARE_COSTS,
        warn=0.01,
        reason="What is in few slices looks like a disturbance and moves the ratio little, but it is a cost.",
        advice="Compare CPU time over all slices, or measure levels by trials of each server alone.",
        biases="rare costs, such as those of a collector, count too little",
    ),
    Rule(
        FindingKind.PARALLEL,
        note=0.0,
        reason="Sets of cores are never quite alike; drawing them for each start makes that a part of the interval.",
        advice="Nothing needs to be done. Load the servers in turn for a narrower interval.",
    ),
)

RULES: dict[FindingKind, Rule] = {rule.kind: rule for rule in _TABLE}
