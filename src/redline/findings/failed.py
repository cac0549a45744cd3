"""Findings about failed requests, with the first reasons that the engine saw, and about loads without requests."""

from collections.abc import Iterable, Sequence

from redline.findings.rules import (
    ALL_BUT_COUNTS,
    EVERYTHING,
    HOLDS,
    TOO_CHEAP,
    TOO_LITTLE_LOAD,
    TOO_SLOW,
    Observation,
    Rule,
)
from redline.model import Cell, Closed, Counts, Outcomes, Reach, RequestTraffic, Traffic
from redline.model.failures import FirstFailure
from redline.quantities import duration, percent
from redline.stats import Trial

UNANSWERED = ("connect", "tls", "reset", "closed", "refused", "timeout")
LEFT_OVER = ("in_flight", "unsent")
"""Outcomes at the end of a load; an interrupt always leaves some."""
WRONG = ("unexpected_status", "unexpected_body", "malformed")
"""Outcomes of requests with another answer than expected."""
_MOSTLY = 0.5
"""From this share of requests with a new connection on, reconnecting is the rule."""


def failures_text(failures: Iterable[FirstFailure], outcomes: Iterable[str] | None = None) -> str:
    """The first failures of these outcomes, or of all: `connect: Connection refused; timeout: no answer …`."""
    wanted = None if outcomes is None else set(outcomes)
    failures = telling(failures)
    return "; ".join(failure.text for failure in failures if wanted is None or failure.outcome in wanted)


def telling(failures: Iterable[FirstFailure]) -> Sequence[FirstFailure]:
    """The failures without requests left over at the end of a load, unless there are no others."""
    known = tuple(failures)
    return [failure for failure in known if failure.outcome not in LEFT_OVER] or known


def all_failed(traffic: Traffic) -> str:
    """Why every request of a load failed, warm-up included; empty if any succeeded, or none was made."""
    counts = Counts.merged(interval.counts for interval in traffic.intervals)
    if counts.outcomes.ok or counts.completed or traffic.counts.completed or not counts.outcomes.errors:
        return ""
    return failures_text(traffic.failures) or listed(counts.outcomes)


SERVER_DIED = Rule(
    "server-died",
    invalid=0.0,
    blames="server",
    touches=EVERYTHING,
    ends=True,
    text="""The server ended during the trial.

    It measured a server about to fail.

    Advice: Read the end of its output in the run directory; the kernel's log shows if it ran out of memory.
    """,
)


UNREAD = Rule(
    "recording-unread",
    invalid=0.0,
    touches=EVERYTHING,
    ends=True,
    text="""The recording of the trial cannot be read, or not be used.

    The file is cut short, empty, damaged, or of another trial. The others count.

    Advice: Move the file away, and resume: the trial is measured again.
    """,
)


def _sentence(hint: str) -> str | None:
    return f"{hint[0].upper()}{hint[1:].rstrip('.')}." if hint else None


@Rule("trial-failed", when="trial", invalid=0.0, blames="server", touches=EVERYTHING, ends=True)
def trial_failed(cell: Cell, trial: Trial) -> Observation | None:
    """The server could not be started, or gave no right answer.

    There is nothing to estimate from.

    Advice: See the server's output for why.
    """
    failure, traffic = trial.recording.failure, trial.traffic
    if failure is not None:
        is_unread = failure.kind == "unread"
        said = failure.message.rstrip(".")
        message = f"{said}." if is_unread else f"Failed in stage {failure.stage}: {said}."
        rule = UNREAD if is_unread else SERVER_DIED if failure.kind == "died" else None
        return Observation(HOLDS, message, advice=_sentence(failure.hint), rule=rule)
    if traffic is None:
        return Observation(HOLDS, "The trial has no traffic and gives no reason.")
    if traffic.counts.due == 0 and traffic.seconds > 0:
        return _nothing_due(cell, traffic)
    if traffic.counts.completed == 0:
        due = traffic.counts.due
        message = f"No right answer arrived within the measurement; {due:,} requests were due.{_first(traffic)}"
        if late := traffic.counts.outcomes.ok:
            return Observation(HOLDS, f"{message} {late:,} were answered after it.", rule=ANSWERED_LATE)
        return Observation(HOLDS, message, advice=_of_endless_streams(cell, traffic.counts.outcomes))
    return None


NOTHING_DUE = Rule(
    "nothing-due",
    invalid=0.0,
    touches=EVERYTHING,
    ends=True,
    text="""No request fell due within the measurement.

    The rate, or the users' think time, leaves no request for so short a time.

    Advice: Measure longer, at a higher rate, or with more users.
    """,
)


ANSWERED_LATE = Rule(
    "answered-late",
    invalid=0.0,
    touches={"throughput": "unknown", "CPU and memory": "unknown"},
    text="""Right answers arrived only after the measurement had ended.

    No rate is known from them. How long they took is: a request that was due is waited for, and counts in full.

    Advice: Measure longer than an answer takes, best many times as long.
    """,
)


def _of_endless_streams(cell: Cell, outcomes: Outcomes) -> str | None:
    """Advice for conversations that nothing ends; None if there are none, or any failed otherwise."""
    if outcomes.errors > outcomes.timeout + outcomes.in_flight + outcomes.unsent:
        return None
    if any(request.stream and not request.stream.is_bounded for request in cell.scenario.requests):
        return "Say how far conversations are followed: `until` so many messages, or `for` so long."
    if cell.scenario.counts_messages:
        return "Load for longer than a conversation takes, or end it after fewer messages (`until`) or a time (`for`)."
    return None


def _nothing_due(cell: Cell, traffic: Traffic) -> Observation | None:
    """A load without due requests: all users waited for the server, or the load was too short."""
    shape, lasted = cell.load.shape, duration(traffic.seconds * 1e9)
    before = [interval.counts for interval in traffic.intervals if interval.phase == "warmup"]
    waiting = sum(counts.due - counts.outcomes.total for counts in before)
    if isinstance(shape, Closed):
        # Users who do not think send at once after an answer, also where a busy machine cut the warm-up's counts short.
        plain = shape.think is None and shape.pace_per_s is None and not shape.stages
        never_pause = plain and cell.scenario.journey is None
        if never_pause or waiting >= max(1.0, shape.mean_users(cell.load.duration_ns)):
            which = f"{waiting:,} requests that were" if waiting > 1 else "what was"
            message = f"Nothing fell due in {lasted}: all users waited for answers to {which} due before."
            return Observation(
                HOLDS,
                f"{message}{_first(traffic)}",
                rule=trial_failed,
                advice=_of_endless_streams(cell, Counts.merged(before).outcomes),
            )
    message = f"Nothing fell due in {lasted}: the load asked for nothing in that time."
    return Observation(HOLDS, message, rule=NOTHING_DUE)


@Rule(
    "errors",
    when="requests",
    note=0.0,
    warn=0.001,
    invalid=0.01,
    biases="percentiles count how fast requests failed",
    blames="server",
    touches={
        "response times": "at least",
        "service times": "unknown",
        "message times": "unknown",
        "CPU and memory": "unknown",
    },
)
def errors(cell: Cell, traffic: Traffic) -> Observation | None:
    """Requests due that got no answer: connection refused, handshake failed, reset, closed, timed out, or unsent at the
    end.

    A failed request's response time is the time until it failed.

    Advice: See the server's output at the time of the first failures.
    """
    outcomes = traffic.counts.outcomes_on_the_way
    kinds = (*UNANSWERED, *LEFT_OVER) if traffic.ended == "complete" else UNANSWERED
    lost = sum(getattr(outcomes, kind) for kind in kinds)
    if not lost:
        return Observation(0.0, "")
    message = (
        f"{lost:,} of {traffic.counts.due:,} requests ({percent(lost / traffic.counts.due)}) got no answer"
        f"{_all_of_one(cell, traffic, kinds)}: {listed(outcomes, kinds)}.{_first(traffic, _occurred(outcomes, kinds))}"
    )
    if traffic.reach is not None and traffic.reach.stuck:
        message += f" They left {never_answered(traffic.reach, cell)}."
    return Observation(lost / traffic.counts.due, message)


def never_answered(reach: Reach, cell: Cell | None = None) -> str:
    """`496 of 512 users (97%) without any answer`; connections, where a user has none of its own."""
    of_users = cell is not None and isinstance(cell.load.shape, Closed)
    who = "users" if of_users else "connections"
    return f"{reach.stuck:,} of {reach.asked:,} {who} ({percent(reach.stuck / max(reach.asked, 1))}) without any answer"


@Rule(
    "exhausted",
    when="requests",
    probes="all",
    note=0.0,
    warn=0.001,
    invalid=0.01,
    biases="the load is too low",
    blames="client",
    touches=TOO_LITTLE_LOAD,
)
def exhausted(traffic: Traffic) -> Observation | None:
    """Requests due for which the engine's side had no port, descriptor or memory left. They are no `errors`, though
    objectives count them.

    They never reached the server, which had less to do.

    Advice: Use fewer connections or longer-lived ones (`requests_per_connection`), widen the port range (`sysctl
    net.ipv4.ip_local_port_range`), raise the descriptor limit (`ulimit -n`); `redline doctor` shows the limits.
    """
    lacked, due = traffic.counts.exhausted, traffic.counts.due
    if not lacked:
        return Observation(0.0, "")
    message = (
        f"For {lacked:,} of {due:,} requests ({percent(lacked / due)}) the engine's side had no port, descriptor or "
        f"memory left for a connection."
    )
    return Observation(lacked / due, message)


@Rule(
    "wrong-answers",
    when="requests",
    warn=0.0,
    invalid=0.01,
    biases=TOO_CHEAP,
    blames="server",
    touches=ALL_BUT_COUNTS,
)
def wrong_answers(cell: Cell, traffic: Traffic) -> Observation | None:
    """Requests due with another answer than expected. The first wrong body, or bytes that are not HTTP, make it
    **invalid**.

    Refusals by 503 are fast: from 1% on, they may set the percentiles.

    Advice: Compare an answer with the scenario's `expect`. If the server sheds load, lower the load.
    """
    outcomes = traffic.counts.outcomes
    wrong = sum(getattr(outcomes, kind) for kind in WRONG)
    if not wrong:
        return Observation(0.0, "")
    share = wrong / traffic.counts.due
    began_ns = _began_ns(traffic)
    message = (
        f"{wrong:,} of {traffic.counts.due:,} requests ({percent(share)}) were answered wrongly"
        f"{_all_of_one(cell, traffic, WRONG)}: {listed(outcomes, WRONG)}{_turned(cell, traffic, began_ns)}."
        f"{_first(traffic, _occurred(outcomes, WRONG))}"
    )
    never_right = outcomes.unexpected_body + outcomes.malformed > 0
    advice = _TURNED if began_ns else _MALFORMED if outcomes.malformed == wrong else None
    return Observation(1.0 if never_right else share, message, advice=advice)


_TURNED = (
    "It answered well at first, as before a token that expired, or a limit on requests: compare the first wrong answer "
    "with the scenario's `expect`, and see in the server's output what happened then. If it sheds load, lower the load."
)
_MALFORMED = "Fix what writes these bytes, in the server or in front of it; the message names the rule that it breaks."


def _began_ns(traffic: Traffic) -> int:
    """When wrong answers began, in ns of the measurement; 0 if at once, or without right answers before."""
    right = False
    for interval in traffic.intervals:
        if interval.phase == "measure":
            if _occurred(interval.counts.outcomes, WRONG):
                return interval.start_ns - traffic.measure_start_ns if right else 0
            right = right or interval.counts.outcomes.ok > 0
    return 0


def _all_of_one(cell: Cell, traffic: Traffic, kinds: Sequence[str]) -> str:
    """`, all of them checkout`, if these outcomes are of one of several requests; else empty."""
    labels = cell.scenario.several_labels
    having = [label for label, own in zip(labels, traffic.requests, strict=False) if _occurred(own.outcomes, kinds)]
    return f", all of them {having[0]}" if len(having) == 1 else ""


def _wrong_classes(cell: Cell, traffic: Traffic) -> set[str]:
    """The classes of wrong statuses; of several requests that were not counted apart, those that none expects."""
    requests = cell.scenario.requests
    parts: Sequence[Counts | RequestTraffic] = traffic.requests
    if len(parts) != len(requests):
        return _surely_wrong(traffic.counts, cell.scenario.statuses, told=not cell.scenario.others)
    pairs = zip(parts, requests, strict=True)
    return set[str]().union(*(_surely_wrong(own, request.expect.statuses) for own, request in pairs))


def _surely_wrong(counts: Counts | RequestTraffic, expected: Iterable[int], *, told: bool = True) -> set[str]:
    """The classes of answers whose status is wrong. That of a right status is among them where the rest of it is known.

    `told`: all these requests expect the same statuses.
    """
    statuses = set(expected)
    known = counts.by_status(statuses)
    right_ones = counts.outcomes.ok + counts.outcomes.unexpected_body
    apart = told and len(statuses) == 1 and (not right_ones or any(name.isdigit() for name in known))
    right = set[str]() if apart else {f"{status // 100}xx" for status in statuses}
    return {name for name in known if name.endswith("xx")} - right - {"1xx"}


def _turned(cell: Cell, traffic: Traffic, began_ns: int) -> str:
    """The statuses that are wrong, and when wrong answers began if not at once: `; 4xx, the first after 1.20 s`."""
    calls = traffic.counts.grpc_statuses
    classes = sorted(_wrong_classes(cell, traffic) - ({"2xx"} if calls else set()))
    classes += [calls] if calls else []
    if began_ns:
        classes.append(f"the first after {duration(began_ns)}")
    return f"; {', '.join(classes)}" if classes else ""


@Rule("surplus-bytes", when="requests", probes="all", note=0.0, warn=0.01, biases=TOO_SLOW)
def surplus_bytes(cell: Cell, traffic: Traffic) -> Observation | None:
    """Answers followed by bytes that nobody requested, per request due. The engine closes such connections.

    A client reads bytes beyond an answer's end as the next answer, or closes the connection.
    On a WebSocket, messages that answer none, which are passed over: `answer: next` may take one for an answer.

    Advice: Fix what writes them: a body on an answer to HEAD or with 204, a second last chunk, or a wrong length.
    """
    surplus, due = traffic.counts.surplus, traffic.counts.due
    if cell.scenario.request.websocket is not None:
        message = f"{surplus:,} messages came that answer none of the {due:,} that were sent: they were passed over."
        advice = "Load a server that only answers; or let users listen to what it pushes: `receive` of a WebSocket."
        return Observation(surplus / due, message, advice=advice)
    message = (
        f"After {surplus:,} answers, for {due:,} requests, the server sent bytes that nobody had requested: the engine "
        f"closed these connections."
    )
    return Observation(surplus / due, message)


@Rule("reconnecting", when="requests", probes="all", note=0.1, warn=0.5, biases=TOO_SLOW)
def reconnecting(cell: Cell, traffic: Traffic) -> Observation | None:
    """Connections opened again per request due, where the load keeps connections and most requests succeed. In duets:
    for most requests.

    A new connection costs more than many an answer, and its handshake is part of the response time.

    Advice: Let the server keep connections (its keep-alive timeout and limit of requests), or ask for new ones from all
    servers by `requests_per_connection: 1`.
    """
    message = (
        f"{traffic.counts.reconnects:,} connections were opened again for {traffic.counts.due:,} requests: the load "
        f"keeps connections, and they ended all the same."
    )
    return Observation(reconnected_share(cell, traffic.counts), message)


def reconnected_share(cell: Cell, counts: Counts) -> float:
    """Reopened connections per request; 0 if the load asks for them or closes them itself, or most requests failed."""
    if cell.scenario.ends_connections(cell.variant.http):
        return 0.0
    if cell.load.shape.requests_per_connection is not None or counts.outcomes.errors > _MOSTLY * counts.due:
        return 0.0
    return counts.reconnects / counts.due


def instead_of_cores(cell: Cell, traffic: Traffic) -> str | None:
    """Advice for an engine that is busy or late because it keeps connecting; None if it does not."""
    if not traffic.counts.connects_often or not reconnected_share(cell, traffic.counts):
        return None
    return "The engine opens a connection for about every request, which takes its time: see `reconnecting` first."


def _first(traffic: Traffic, outcomes: Iterable[str] | None = None) -> str:
    """A sentence with the first failures of these outcomes; empty if none is known."""
    text = failures_text(traffic.failures, outcomes)
    return f" First {text}." if text else ""


def _occurred(outcomes: Outcomes, kinds: Sequence[str]) -> list[str]:
    return [kind for kind in kinds if getattr(outcomes, kind)]


def listed(outcomes: Outcomes, kinds: Sequence[str] = (*WRONG, *UNANSWERED, *LEFT_OVER)) -> str:
    """The numbers of these outcomes, without zeros: `12 malformed, 3 timeout`."""
    return ", ".join(f"{getattr(outcomes, kind):,} {kind.replace('_', ' ')}" for kind in _occurred(outcomes, kinds))
