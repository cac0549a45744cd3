"""Findings about right answers whose JSON carries `errors` under load, where the answers before it had none."""

from collections.abc import Iterator

from redline.findings.duet import SeenDuet
from redline.findings.rules import TOO_CHEAP, Observation, Rule, judges
from redline.model import Counts, Traffic
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
