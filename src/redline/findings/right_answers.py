"""Findings about right answers that may be wrong: JSON with `errors`, and conversations that ended early."""

from collections.abc import Iterator

from redline.findings.duet import SeenDuet
from redline.findings.rules import TOO_CHEAP, Observation, Rule, judges
from redline.model import Counts, StreamTraffic, Traffic
from redline.model.failures import FirstErrors


@Rule("errors-in-answers", when="requests", probes="all", warn=0.0, biases=TOO_CHEAP)
def errors_in_answers(traffic: Traffic) -> Observation | None:
    """Right answers that are JSON with `errors` at its top, where the answers before the load had none.

    Whether `errors` are wrong is for you to say. Answers of more than 64 KiB and encoded answers are not looked into.

    Advice: If they are wrong, say so, and they count as wrong: `expect: {json: {/errors: {absent: true}}}`.
    """
    return _errors_observed("Under load", traffic.counts, traffic.first_errors)


@judges("duet")
def errors_in_answers_of_duets(duet: SeenDuet) -> Iterator[Observation]:
    """Find `errors` in the right answers of each side of a duet."""
    for name, places in duet.sides:
        targets = [traffic.targets[at] for traffic in duet.traffics for at in places]
        first = next((target.first_errors for target in targets if target.first_errors is not None), None)
        counts = Counts.merged(target.counts for target in targets)
        if (said := _errors_observed(f"Under load of {name}", counts, first, rule=errors_in_answers)) is not None:
            yield said


def _errors_observed(
    when: str, counts: Counts, first: FirstErrors | None, rule: Rule | None = None
) -> Observation | None:
    if not counts.with_errors:
        return None
    example = f"; {first.text}" if first is not None else ""
    message = (
        f"{when} {counts.with_errors:,} of {counts.outcomes.ok:,} right answers carry `errors` in their JSON, and none "
        f"did before it{example}."
    )
    return Observation(counts.with_errors / counts.outcomes.ok, message, rule=rule)


@Rule("ended-early", when="requests", probes="all", note=0.0, warn=0.01, biases=TOO_CHEAP)
def ended_early(traffic: Traffic) -> Observation | None:
    """Conversations that were answered and ended before the message that ends them, such as `[DONE]`.

    They count as right, and a server that cuts them short looks faster than it is.

    Advice: See the server's log. If it never sends that message, write `stream` with what its messages are (`sse`) in
    place of the name of a format.
    """
    return _ended_early("Under load", traffic.counts, traffic.streams)


@judges("duet")
def ended_early_in_duets(duet: SeenDuet) -> Iterator[Observation]:
    """Find conversations of each side of a duet that ended early."""
    for name, places in duet.sides:
        targets = [traffic.targets[at] for traffic in duet.traffics for at in places]
        counts = Counts.merged(target.counts for target in targets)
        streams = StreamTraffic.merged(target.streams for target in targets)
        if (said := _ended_early(f"Under load of {name}", counts, streams, rule=ended_early)) is not None:
            yield said


def _ended_early(
    when: str, counts: Counts, streams: StreamTraffic | None, rule: Rule | None = None
) -> Observation | None:
    """Those that failed ended early too, and are errors."""
    early = streams.early - counts.outcomes.errors if streams else 0
    if streams is None or early <= 0:
        return None
    message = f"{when} {early:,} of {streams.begun:,} conversations count as right and ended before their last message."
    return Observation(early / streams.begun, message, rule=rule)
