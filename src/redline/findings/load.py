"""Findings about how a trial was loaded: requests that were late, queued or missed, and windows that were cut."""

import math
from dataclasses import replace

from redline.findings.failed import instead_of_cores
from redline.findings.rules import EVERYTHING, HOLDS, LENGTHENED, TOO_SLOW, Observation, Rule
from redline.model import Cell, Closed, Histogram, Open, StreamTraffic, Traffic
from redline.quantities import duration, percent, significant
from redline.stats import Trial
from redline.stats.late_reads import MOST_BLURRED, is_sure
from redline.stats.trials import BY_CHANCE, MESSAGE_QUANTILES


@Rule("perturbed", when="trial", warn=0.0, biases="costs are too high")
def perturbed(trial: Trial) -> Observation | None:
    """A profiler or another monitor ran that slows what it watches.

    The trial is never compared.

    Advice: Take comparisons from a run without profilers.
    """
    message = "A profiler or monitor ran that slows down what it watches; this trial is not compared."
    return Observation(float(trial.recording.perturbed), message)


@Rule("cut-short", when="traffic", warn=0.0, invalid=0.5, scatters=True, touches=EVERYTHING, ends=True)
def cut_short(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """Missing part of a measurement that was interrupted, or ran into the engine's deadline (always **invalid**).

    Half a measurement has less weight than it seems. At the deadline something hung. A condition of `--abort-when` that
    ended it is named.

    Advice: Run it again, in full.
    """
    if traffic.ended in ("complete", "failing"):  # a failure has its own reason
        return None
    planned = cell.load.duration_ns / 1e9
    measured = f"{duration(traffic.seconds * 1e9)} of the planned {duration(cell.load.duration_ns)} were measured."
    if traffic.aborted_by:
        return Observation(HOLDS, f"The load was aborted by {traffic.aborted_by}; {measured}")
    missing = 1.0 if traffic.ended == "deadline" else max(1.0 - traffic.seconds / planned, 0.0)
    failed = trial.recording.failure is not None  # which says why; then the engine gave no ending of its own
    deadline = "The load was cut off" if failed else "The engine ran into its deadline"
    why = deadline if traffic.ended == "deadline" else "The measurement was interrupted"
    return Observation(missing, f"{why}: {measured}")


@Rule(
    "rate-missed",
    when="answers",
    warn=0.01,
    invalid=0.05,
    biases=TOO_SLOW,
    blames="server",
    touches={"response times": "at least", "service times": "at least", "message times": "at least"},
)
def rate_missed(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads, and users with a pace.* Requests due in the window without a right answer within it, beyond chance
    (four standard deviations).

    Percentiles of a queue that never drains measure the length of the trial.

    Advice: Lower the rate, or search for the highest that meets the objective.
    """
    if not cell.load.is_scheduled:
        return None
    # Relative to due requests, not rate x time: the number of Poisson arrivals varies, which is no fault.
    answered = traffic.answered
    missed = 1.0 - answered / traffic.counts.due
    message = (
        f"{answered / traffic.seconds:,.0f} right answers/s of {traffic.counts.due / traffic.seconds:,.0f} requests/s "
        f"due: {percent(max(missed, 0.0))} of the rate was missed."
    )
    ended = traffic.counts.outcomes
    failed = ended.errors - (ended.timeout + ended.in_flight + ended.unsent)
    advice = _FAILED if 2 * failed > traffic.counts.due - answered else None
    chance = BY_CHANCE * math.sqrt(traffic.carried_in + traffic.carried_out)
    return Observation(missed - chance / traffic.counts.due, message, advice=advice)


_FAILED = "Most of what was missed failed, rather than came late: see `errors` and `wrong-answers` first."


@Rule(
    "backlog",
    when="answers",
    warn=0.01,
    invalid=0.05,
    biases=TOO_SLOW,
    touches={
        "response times": "unknown",
        "service times": "unknown",
        "message times": "unknown",
        "CPU and memory": "unknown",
    },
)
def backlog(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads, and users with a pace.* Requests due in the warm-up and answered in the measurement, beyond those
    left at its end and chance (four standard deviations).

    Response times are those of a server that catches up.

    Advice: Warm up for longer, or by few users (`warmup_by: {users: 2}`).
    """
    if not cell.load.is_scheduled:
        return None
    before, left = traffic.carried_in, traffic.carried_out  # two counts: the variance of their difference is their sum
    beyond = before - left - BY_CHANCE * math.sqrt(before + left)
    message = (
        f"{before:,} requests that were due before the measurement were answered in it, and {left:,} were left at its "
        f"end: when it began, the server had not caught up."
    )
    return Observation(beyond / traffic.counts.due, message)


@Rule(
    "send-lateness",
    when="requests",
    probes="all",
    note=0.20,
    warn=0.33,
    invalid=0.50,
    biases=TOO_SLOW,
    blames="client",
    touches=LENGTHENED,
    without_service_times="Give the engine a core of its own, or lower the rate.",
)
def send_lateness(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Loads with due times.* Time from a request's due time until the engine took it up, over the response time: at
    p50 or p99, whichever is larger.

    Response times include the engine's lateness. Past one half, most is not the server's.

    Advice: Give the engine a core of its own, lower the rate, or read the service time, which has no lateness.
    """
    shape = cell.load.shape
    if not cell.load.is_scheduled and not (isinstance(shape, Closed) and shape.think):
        return None  # with zero think time requests are due upon the last answer
    share, message = late_share(traffic.lateness, traffic.response)
    return Observation(share, f"{message}.", advice=instead_of_cores(cell, traffic))


def late_share(lateness: Histogram, times: Histogram) -> tuple[float, str]:
    """The engine's lateness over the response time, at p50 or p99, whichever is larger; and a sentence that says so."""
    late, response = (histogram.quantiles_ns((0.5, 0.99)) for histogram in (lateness, times))
    shares = [own / whole if whole > 0 else 0.0 for own, whole in zip(late, response, strict=True)]
    worst = 0 if shares[0] >= shares[1] else 1
    return shares[worst], (
        f"At {('p50', 'p99')[worst]} the engine took up requests {duration(late[worst])} after they were due, which is "
        f"{percent(shares[worst])} of the response time of {duration(response[worst])}"
    )


FEW_BLURRED = 0.001
"""Such a share of messages in doubt is not worth a note, if nothing is hidden for it."""


@Rule(
    "late-reads",
    when="answers",
    probes="all",
    note=0.0,
    warn=MOST_BLURRED / 2,
    invalid=MOST_BLURRED,
    scatters=True,
    blames="client",
    touches={},
)
def late_reads(traffic: Traffic) -> Observation | None:
    """*Conversations.* Messages that were read together, so late that they may have come one by one.

    The kernel says when the last arrived: the gap before is too long, and others are 0. Percentiles that as many ranks
    more or less change by over 2% are hidden.

    Advice: Give the engine a core of its own.
    """
    if traffic.streams is None:
        return None
    said = read_late(traffic.streams)
    hidden = [metric for metric, (of, q) in MESSAGE_QUANTILES.items() if not is_sure(traffic.streams, of, q)]
    if hidden:
        return replace(said, message=f"{said.message} So these are not known: {', '.join(hidden)}.")
    return said if said.value > FEW_BLURRED else None


def read_late(streams: StreamTraffic) -> Observation:
    """How many messages were read together and late, and may have come one by one."""
    late = streams.read_lateness or Histogram()
    message = (
        f"{streams.blurred:,} of {streams.events_of_begun:,} messages were read together and late, and may have come "
        f"one by one: messages waited up to {duration(late.max_ns)} for the engine."
    )
    return Observation(streams.blurred_share, message)


@Rule("client-queueing", when="answers", note=0.01, warn=0.10, biases=TOO_SLOW)
def client_queueing(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads.* Requests due that waited in the client for a connection with room.

    The wait is in the response time. With more connections they would have queued in the server, or not at all.

    Advice: Allow more `connections`; if the server is overloaded, lower the rate. The service time does not include
    this wait.
    """
    if not isinstance(cell.load.shape, Open) or _closes_idle(cell, traffic):
        return None
    waited, due = traffic.counts.waited, traffic.counts.due
    message = (
        f"{waited:,} of {due:,} requests ({percent(waited / due)}) found none of {cell.load.shape.connections} "
        f"connections free when they were due: part of their response time is a queue in the client."
    )
    return Observation(waited / due, message, advice=instead_of_cores(cell, traffic))


@Rule("idle-closed", when="answers", note=0.01, warn=0.10, biases=TOO_SLOW)
def idle_closed(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Open loads.* Requests due for which a connection was opened, because the server had closed those that were idle.

    Connecting is in their response time, with TLS a whole handshake.

    Advice: Have the server keep idle connections for longer, or allow fewer `connections` (`-c`), so that each is used
    more often. If its clients come as rarely, this is what they get.
    """
    if not _closes_idle(cell, traffic):
        return None
    waited, due = traffic.counts.waited, traffic.counts.due
    message = (
        f"The server closed connections while they were idle: {waited:,} of {due:,} requests ({percent(waited / due)}) "
        f"found none open, and {traffic.counts.reconnects:,} were opened again."
    )
    return Observation(waited / due, message)


def _closes_idle(cell: Cell, traffic: Traffic) -> bool:
    """Whether requests found no connection because the server had closed the idle ones, rather than in use.

    Then about each of them opened one, and so few are under way (Little) that most connections would have been idle.
    """
    counts, shape = traffic.counts, cell.load.shape
    if not isinstance(shape, Open) or not counts.waited or 2 * counts.reconnects < counts.waited:
        return False
    under_way = traffic.rate_per_s * traffic.response.mean_ns / 1e9
    return 2 * under_way < shape.connections * shape.depth


@Rule("tls-insecure", when="traffic", note=0.0)
def tls_insecure(cell: Cell) -> Observation | None:
    """The server's certificate was not checked (`insecure: true`).

    Any server could have answered.

    Advice: Name the certificate's issuer (`ca` in a suite, `--cacert` on the command line) and check it.
    """
    insecure = cell.variant.tls is not None and cell.variant.tls.insecure
    message = "The server's certificate was not checked: any server could have answered."
    return Observation(float(insecure), message)


@Rule("carried-over", when="answers", note=0.05, warn=0.10, biases="response times are too low")
def carried_over(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Users who always wait.* Their time in the measurement for which requests from before it held them.

    Such a request is in no measured response time.

    Advice: Measure for longer, or warm up until no connection waits; see which connections the server leaves waiting.
    """
    late = _from_before(traffic)
    if not late or not _in_flight(cell, traffic):
        return None
    share, number = carried_over_share(cell, traffic), sum(number for number, _ in late)
    message = (
        f"{number:,} requests that were due before the measurement were answered in it, the last ones after more than "
        f"{duration(late[-1][1])}: they took {percent(share)} of the users' time or more."
    )
    return Observation(share, message)


def carried_over_share(cell: Cell, traffic: Traffic) -> float:
    """Share of the users' time in the measurement for which they waited for requests due before it.

    A lower bound: it counts only right answers, up to the begin of their interval. 0 if users do not always wait.
    """
    kept = _in_flight(cell, traffic)
    if not kept:
        return 0.0
    waited_ns = sum(number * after_ns for number, after_ns in _from_before(traffic))
    return waited_ns / 1e9 / (kept * traffic.seconds)


def _from_before(traffic: Traffic) -> list[tuple[int, int]]:
    """Right answers to requests that were due before the measurement, with the begin of their interval in ns."""
    return [
        (interval.counts.completed - interval.counts.outcomes.ok, interval.start_ns - traffic.measure_start_ns)
        for interval in traffic.intervals
        if interval.phase == "measure" and interval.counts.completed > interval.counts.outcomes.ok
    ]


def _in_flight(cell: Cell, traffic: Traffic) -> float:
    """The number of requests that users keep in flight, or think about; 0 if it is not fixed, or nothing was due."""
    shape = cell.load.shape
    if not isinstance(shape, Closed) or shape.pace_per_s is not None or traffic.seconds <= 0:
        return 0.0
    return shape.mean_users(traffic.measure_end_ns - traffic.measure_start_ns) * shape.depth


@Rule("littles-law", when="answers", warn=0.05, invalid=0.10, touches=EVERYTHING)
def littles_law(cell: Cell, traffic: Traffic) -> Observation | None:
    """*Users without a pace or a journey.* Share by which rate x (response time + think time) is not the number of
    users, beyond what the ends of the window explain.

    L = lambda W (Little, 1961) holds for any server: the counting lost requests or time.

    Advice: Do not use these numbers: requests or time are missing from them. Keep the recording (`-o`), and report it.
    """
    shape = cell.load.shape
    if not isinstance(shape, Closed) or shape.pace_per_s is not None or traffic.ended != "complete":
        return None
    if cell.scenario.journey is not None:
        return None  # how long users thought between its steps is not counted
    mean_s = traffic.response.mean_ns / 1e9
    think_s = shape.think.mean_ns / 1e9 if shape.think else 0.0
    rate_per_s = traffic.counts.due / traffic.seconds
    busy = rate_per_s * (mean_s + think_s)
    kept = _in_flight(cell, traffic)
    if kept <= 0:
        return None
    ends_s = (
        max(_missing_s(traffic), carried_over_share(cell, traffic) * traffic.seconds) + traffic.response.max_ns / 1e9
    )
    free = max(kept - _held(traffic), 0.0)
    off = max(free - busy, busy - kept, 0.0) / kept - (ends_s + think_s) / traffic.seconds
    if littles_law.grade(off) is None:
        return None
    time = f"({duration(mean_s * 1e9)} mean response time + {duration(think_s * 1e9)} think time)"
    kind = "users busy" if shape.depth == 1 else "requests in flight"
    message = (
        f"{rate_per_s:,.0f} requests/s x {time if think_s else f'{duration(mean_s * 1e9)} mean response time'} make "
        f"{significant(busy)} {kind}, but the load has {kept:.10g}."
    )
    return Observation(off, message)


def _held(traffic: Traffic) -> int:
    """Requests from before the window that had no right answer by its end: some failed meanwhile, others still wait.

    The users who sent them did nothing else until then, and their waiting is in no measured response time.
    """
    before = [interval.counts for interval in traffic.intervals if interval.phase == "warmup"]
    waiting = sum(counts.due - counts.outcomes.total for counts in before)
    return max(waiting - sum(number for number, _ in _from_before(traffic)), 0)


def _missing_s(traffic: Traffic) -> float:
    """The seconds at the begin of the window without requests, because users still wait for earlier answers."""
    missing_s = 0.0
    for interval in traffic.intervals:
        seconds = interval.lasts_ns / 1e9
        if interval.phase == "measure" and seconds > 0:
            share = min(interval.counts.due / seconds / (traffic.counts.due / traffic.seconds), 1.0)
            missing_s += seconds * (1.0 - share)
            if share > 0.5:
                break
    return missing_s
