"""Doubts about what the engine asked and was answered. `docs/concepts/findings.md` teaches them in this order."""

from redline.findings.rules.rule import Rule
from redline.model import FindingKind

TRAFFIC = (
    Rule(
        FindingKind.RATE_MISSED,
        "open loads: share of the requests due that were not answered rightly within the window",
        note=None,
        warn=0.01,
        invalid=0.05,
        reason="A queue that is not drained grows as long as the load lasts, so its percentiles measure the length of "
        "the trial. 1% of requests can be the whole tail beyond p99; at 5% the load was another than the one named.",
        advice="Lower the rate until it is met, or search for the highest rate that meets the objective.",
    ),
    Rule(
        FindingKind.SEND_LATENESS,
        "open loads, and closed ones with think time or pace: the engine's own lateness over the response time, at p50 "
        "or at p99, whichever is larger",
        note=0.20,
        warn=0.33,
        invalid=0.50,
        reason="Response time counts from the due time, so what the engine was late is in it: some microseconds "
        "always, a sixth of the median of a fast idle server. Past one half, most of the time was not the server's.",
        advice="Give the engine a core of its own, lower the rate, or read the service time, which has no lateness.",
    ),
    Rule(
        FindingKind.CLIENT_QUEUEING,
        "open loads: share of the requests due that found no connection with room, and waited for one in the client",
        note=0.01,
        warn=0.10,
        invalid=None,
        reason="The wait is in the response time, and where it is depends on the number of connections: with more, "
        "these requests would have queued in the server, or not at all. 1% of them can be all that is beyond p99.",
        advice="Allow more `connections`; if the server is overloaded, lower the rate. The service time has no such "
        "wait.",
    ),
    Rule(
        FindingKind.ARRIVALS,
        "whether what fell due does not follow the schedule: in all, or from interval to interval beyond what lateness "
        "explains; for Poisson arrivals by chance less than once in 100,000 trials",
        note=None,
        warn=None,
        invalid=0.0,
        reason="The number of requests due is known: exactly, or for Poisson arrivals its distribution and that of the "
        "intervals' (index of dispersion, chi-square). Another load than the one that was named answers another "
        "question.",
        advice="Do not use these numbers, and report it as a fault of the engine, with the recording.",
    ),
    Rule(
        FindingKind.BUNCHED_SENDS,
        "open loads: requests that fall due within the engine's lateness, from its p10 to its p90",
        note=10.0,
        warn=100.0,
        invalid=None,
        reason="What falls due while the engine is late goes out at once, and the server meets bunches in place of the "
        "arrivals that were asked for: the last of ten waits nine service times that are not in the load.",
        advice="Give the engine a core of its own or more workers, or lower the rate.",
    ),
    Rule(
        FindingKind.ERRORS,
        "share of the requests due that got no answer: not connected, no TLS, reset, closed, a stream refused, timed "
        "out, left unanswered",
        note=0.0,
        warn=0.001,
        invalid=0.01,
        reason="A failed request has a response time too, of the failure. 0.1% of them can be all that is beyond "
        "p99.9, 1% all that is beyond p99.",
        advice="Look at the end of the server's output, its limits on connections and files, and its backlog.",
    ),
    Rule(
        FindingKind.EXHAUSTED,
        "share of the requests due for which the engine's own side had no port, descriptor or memory for a connection",
        note=0.0,
        warn=0.001,
        invalid=0.01,
        reason="These failed before the server could hear of them. As with `errors`, 0.1% can be all that is beyond "
        "p99.9 and 1% all that is beyond p99; the server had that much less to do.",
        advice="Use fewer connections or longer-lived ones (`requests_per_connection`), widen the ports "
        "(`sysctl net.ipv4.ip_local_port_range`), raise the descriptors (`ulimit -n`); `redline doctor` tells limits.",
    ),
    Rule(
        FindingKind.WRONG_ANSWERS,
        "share of the requests due whose answer was not the expected one",
        note=None,
        warn=0.0,
        invalid=0.01,
        reason="A server that sheds load with 503 answers fast: from 1% on it may own the percentiles. A wrong body or "
        "bytes that are not HTTP are invalid from the first on: the work was not the work that is compared.",
        advice="Ask the server by hand and compare its answer with the scenario's `expect`; if it sheds, load less.",
    ),
    Rule(
        FindingKind.SHRINKING_ANSWERS,
        "where the length of answers is not compared under load: relative change of the bytes for each right answer, "
        "over the intervals of a trial or the trials of a cell, as a trend or as two groups, that is no chance",
        note=0.01,
        warn=0.05,
        invalid=None,
        reason="A server that answers less under load does less work, with the right status. 1% is what a longer "
        "number in a header can do; where the body's length is compared, another one is a wrong answer.",
        advice="Compare the body under load too (`under_load: length`), and look at what the short answers leave out.",
    ),
    Rule(
        FindingKind.UNSTEADY,
        "relative change over the measurement along its Theil-Sen line: of the rate (closed) or of p50 (open), where "
        "Kendall's test rules out chance",
        note=None,
        warn=0.10,
        invalid=0.50,
        reason="The mean of a number that is still moving depends on when one looked. 10% is what a reader would take "
        "for a difference between servers; past 50% there is no one state that it describes. An open load is invalid "
        "by `rate-missed`, never by this.",
        advice="Warm up longer, measure longer, and look for other work on the machine.",
    ),
    Rule(
        FindingKind.STEADINESS_UNKNOWN,
        "intervals in which steadiness can be judged, short of 7",
        note=0.0,
        warn=None,
        invalid=None,
        reason="With six intervals even a perfect trend has a chance of 2 / 6! = 0.003 under Kendall's test, so none "
        "can be told from noise. Silence of `unsteady` then says nothing.",
        advice="Measure for half a second or longer; under an open load, with 20 requests or more in each tenth of it.",
    ),
    Rule(
        FindingKind.NEVER_STEADY,
        "detected warm-ups: whether the level changed after the measurement had begun, or moved all the time",
        note=None,
        warn=0.0,
        invalid=None,
        reason="Then there is no one speed that the numbers describe, and a later look would find others. What a "
        "measurement of it is worth is for the reader to say, so it is shown and not taken away.",
        advice="Give it more time (`warmup: {detect: {at_most: 3m}}`), more cores to compile on, a machine without "
        "other work; if nothing helps, that it is never steady is the result.",
    ),
    Rule(
        FindingKind.SLOWING_DOWN,
        "detected warm-ups: by what share the steady level is slower than the best one before it",
        note=None,
        warn=0.05,
        invalid=None,
        reason="It was faster once and is not any more: a heap that fills, code that was compiled for the worse, a "
        "clock that is lowered. Levels within 5% of each other are one.",
        advice="Look at its collector, its memory and the machine's clock; a longer trial tells whether it goes on.",
    ),
    Rule(
        FindingKind.LITTLES_LAW,
        "closed loads without pace: how far throughput x (mean response time + think time) is from the requests that "
        "the users keep in flight, relatively, less what requests that reach over the window's ends explain",
        note=None,
        warn=0.05,
        invalid=0.10,
        reason="L = lambda W (Little, 1961) holds for any server. Where it fails, requests or time were lost in the "
        "counting; histograms and the window's edges explain less than the allowance.",
        advice="Do not use these numbers; check that all users could connect, then report it as a fault of the engine.",
    ),
    Rule(
        FindingKind.CUT_SHORT,
        "share of the planned measurement that was not made",
        note=None,
        warn=0.0,
        invalid=0.5,
        reason="Half a measurement is still one, of less weight than it seems. At the engine's deadline something "
        "hung, so that is always invalid.",
        advice="Run it again, in full.",
    ),
    Rule(
        FindingKind.TLS_INSECURE,
        "whether the server's certificate was not checked",
        note=0.0,
        warn=None,
        invalid=None,
        reason="Any server could have answered, and checking a certificate is a part of the handshake's time.",
        advice="Name who signed the certificate (`ca` in a suite, `--cacert` on the command line) and check it.",
    ),
)
