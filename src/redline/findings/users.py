"""Findings about users, or connections, that a server never answered: few requests may be most of the users."""

from collections.abc import Iterable
from statistics import median

from redline.findings.duet import SeenDuet
from redline.findings.failed import never_answered
from redline.findings.rules import Observation, Rule
from redline.findings.starts import traffic_of
from redline.model import Cell, Reach, Recording, Series, Traffic
from redline.stats import Trial

MOSTLY, HARDLY = 0.5, 0.1
"""The shares of those without an answer from which on they wait in the listen queue, and up to which they do not."""


@Rule(
    "users-unanswered",
    when="requests",
    probes="all",
    note=0.0,
    warn=0.001,
    invalid=0.01,
    biases="the server had fewer users than the load asks for",
    blames="server",
    touches={
        "response times": "at least",
        "service times": "unknown",
        "message times": "unknown",
        "CPU and memory": "unknown",
    },
)
def users_unanswered(cell: Cell, trial: Trial, traffic: Traffic) -> Observation | None:
    """Users who sent a request and never got an answer, from the warm-up on; in open loads: connections. Not judged for
    streams, or a load that was cut short.

    Who waits sends nothing more: 97% of the users may be 3% of the requests.

    Advice: Let it take more connections at a time (threads, workers, an event loop), or load it by as many users as it
    answers; a dump of its threads says what they wait for.
    """
    reach = traffic.reach
    if reach is None or traffic.ended != "complete" or any(request.stream for request in cell.scenario.requests):
        return None
    message = (
        f"The server left {never_answered(reach, cell)}{_where(trial.recording, reach)}. "
        f"What is shown is of the other {reach.answered:,}."
    )
    return Observation(reach.stuck / max(reach.asked, 1), message) if reach.stuck else None


def _where(recording: Recording, reach: Reach) -> str:
    """Whether the connections without an answer were accepted, as far as the listen queue says."""
    line = recording.find("listen_queue", "server")
    waiting = _usually(line, recording.traffic.window_unix_ns) if line and recording.traffic else None
    if waiting is None:
        return ": whether it accepted their connections is not known"
    if waiting >= MOSTLY * reach.stuck:
        return f": it did not accept them, and {waiting:,.0f} connections wait in its listen queue"
    if waiting <= HARDLY * reach.stuck:
        return ": it accepted their connections, and did not answer on them"
    return f": {waiting:,.0f} connections wait in its listen queue, and it accepted the others"


def _usually(line: Series, window_unix_ns: tuple[int, int]) -> float:
    """The median of a gauge in the window; without samples in it, the nearest."""
    start, end = window_unix_ns
    within = [value for at, value in zip(line.times_unix_ns, line.values, strict=True) if start <= at < end]
    return median(within) if within else line.most(start, end)


@users_unanswered.also("duet")
def unanswered_in_duet(duet: SeenDuet) -> Iterable[Observation]:
    """Connections of a duet that a server never answered, over all starts."""
    for name, places in duet.sides:
        known = Reach.merged(traffic_of(start).targets[place].reach for start in duet.starts for place in places)
        if known is not None and known.stuck:
            message = f"{name} left {never_answered(known)}."
            yield Observation(known.stuck / max(known.asked, 1), message)
