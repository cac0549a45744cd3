"""The one table of doubts: what is measured, from where on it is a note, a warning or invalid, and why there.

`docs/concepts/findings.md` teaches each rule under an anchor of its kind; a test keeps the two alike.
"""

from dataclasses import dataclass

from redline.model import FindingKind, Grade

BUSY_SERVER = 0.85
"""From this share of its cores on, the server is at its limit: the wait in an M/M/1 queue is then 5.7 service times."""

FULL_SERVER = 0.95
"""From this share on its cores have no more to give: the rate is the server's own, however busy the client."""

OTHERS_BUSY = 0.10
"""Less of the machine's CPU time than this, used by neither server nor engine, is the kernel's own housekeeping."""

TREND_P = 0.001
"""Chance of calling noise a trend, per trial: a run of 75 good trials raises a false alarm once in 13 runs at most."""

WANTED_TRIALS = 5
"""With fewer, the t distribution alone widens an interval by more than 2.78 / 1.96 = 1.4 times."""

WANTED_BEYOND = 100
"""Requests beyond p99 that fix it to about 2% when response times fall off exponentially: 1 / (sqrt(100) ln 100)."""

SERVERS_DOING = frozenset(
    {
        FindingKind.ERRORS,
        FindingKind.WRONG_ANSWERS,
        FindingKind.RATE_MISSED,
        FindingKind.SERVER_DIED,
        FindingKind.TRIAL_FAILED,
    }
)
"""Doubts that tell how the server did. A trial lost to one has no numbers, but it happened: no objective is met."""


@dataclass(frozen=True)
class Rule:
    """One kind of doubt. The grade is the highest whose limit the measured value is above; None is never reached."""

    kind: FindingKind
    measures: str
    note: float | None
    warn: float | None
    invalid: float | None
    reason: str
    advice: str

    def grade(self, value: float) -> Grade | None:
        """The grade that this value deserves, or None when there is nothing to doubt."""
        for grade, limit in ((Grade.INVALID, self.invalid), (Grade.WARN, self.warn), (Grade.NOTE, self.note)):
            if limit is not None and value > limit:
                return grade
        return None


_ALL = (
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
        FindingKind.CLIENT_SATURATED,
        "share of the window for which the engine's workers ran or waited for a core",
        note=None,
        warn=0.90,
        invalid=0.95,
        reason="A client without idle time sets the pace itself. Invalid only where that is certain: a closed load, "
        "cores of its own for each side, and a server with capacity to spare; a note where the server's cores are full "
        "as well. For open loads `send-lateness` judges.",
        advice="Give the engine more cores or workers, or load less, until the server is what limits the rate.",
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
        FindingKind.NEAR_CEILING,
        "closed loads without think time or pace: throughput over that of the do-nothing server in the same scenario "
        "and load",
        note=0.80,
        warn=0.95,
        invalid=None,
        reason="From 80% on most of each exchange is the kernel's and the client's work, which all servers share, so "
        "throughput ratios are pressed towards 1.",
        advice="Compare CPU per request instead, or give the scenario more work.",
    ),
    Rule(
        FindingKind.CPU_STEAL,
        "share of the CPU time wanted by this machine that its host gave to others",
        note=0.02,
        warn=0.10,
        invalid=None,
        reason="Stolen time is added to whatever runs, and looks like the server's. Below 2% it is less than the "
        "differences worth acting on; interleaved trials average what is above.",
        advice="Use a machine with dedicated cores, or more trials.",
    ),
    Rule(
        FindingKind.CPU_PRESSURE,
        "share of the window in which some task waited for a core (PSI), where others than server and engine used more "
        "than 10% of the CPU time",
        note=0.20,
        warn=0.40,
        invalid=None,
        reason="A saturated server makes pressure by itself; together with other work it says that they were in each "
        "other's way. Where tasks waited 40% of the time, throughput was seen to halve.",
        advice="Stop other work on this machine, or pin it away from the server's and the engine's cores.",
    ),
    Rule(
        FindingKind.TOO_FEW_TRIALS,
        "usable trials short of 5",
        note=0.0,
        warn=3.0,
        invalid=4.0,
        reason="An interval over n trials has n - 1 degrees of freedom: with 4 it is 1.4 times as wide as with many, "
        "with 1 it is 6.5 times, with a single trial there is none.",
        advice="Run more trials: --trials 5 or more.",
    ),
    Rule(
        FindingKind.TOO_FEW_SAMPLES,
        "requests beyond p99, short of 100",
        note=0.0,
        warn=90.0,
        invalid=None,
        reason="p99 rests on the slowest hundredth alone. 100 requests there fix it to about 2% when response times "
        "fall off exponentially, 10 to about 7%; with fewer than 10 it is not reported.",
        advice="Measure longer: p99 wants 10,000 requests in all, p99.9 wants 100,000.",
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
        FindingKind.PERTURBED,
        "whether a probe changed what it measured",
        note=None,
        warn=0.0,
        invalid=None,
        reason="A profiler takes time from what it watches.",
        advice="Take comparisons from a run without profilers.",
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

RULES: dict[FindingKind, Rule] = {rule.kind: rule for rule in _ALL}
