"""The finding `shrinking-answers`: answers that change their length, by cause, and none on a clean trial."""

from dataclasses import replace

import numpy as np
import pytest

from redline.findings import judge, judge_cell
from redline.findings.steadiness import from_end_to_end
from redline.model import (
    Cell,
    Expected,
    FindingKind,
    Grade,
    Outcomes,
    Request,
    RequestTraffic,
    Scenario,
)
from redline.model.journey import Journey, JourneyStep
from redline.stats import Trial
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import SATURATE, SIMPLE_GET, simulated_cell, simulated_recording

Raised = dict[FindingKind, Grade]


CLOSED = simulated_cell(load=SATURATE)


STATUS_ONLY = simulated_cell(scenario=Scenario(name="Status", request=Request(path="/")))


def raised(cell: Cell, behaviour: Behaviour = GOOD, seed: int = 1) -> Raised:
    return {finding.kind: finding.grade for finding in judge(cell, simulated_recording(cell, behaviour, seed=seed))}


@pytest.mark.parametrize(
    ("shrinks", "grade"), [(0.0, None), (0.005, None), (0.03, Grade.NOTE), (0.5, Grade.WARN), (-0.5, Grade.WARN)]
)
def test_answers_that_change_their_length_are_reported(shrinks: float, grade: Grade | None) -> None:
    found = raised(STATUS_ONLY, replace(GOOD, shrinks=shrinks))
    assert found == ({"shrinking-answers": grade} if grade else {})


def test_steps_that_come_in_turn_change_no_answer() -> None:
    """Users who begin together and think alike are all at the same step."""
    steps = (Request(path="/long"), Request(path="/short"))
    plain = Scenario(name="Shop", request=steps[0], others=steps[1:])
    journey = plain.model_copy(update={"journey": Journey(steps=(JourneyStep(), JourneyStep()))})
    shrinks = replace(GOOD, shrinks=0.5)
    assert "shrinking-answers" in raised(simulated_cell(scenario=plain), shrinks)
    assert "shrinking-answers" not in raised(simulated_cell(scenario=journey), shrinks)


@pytest.mark.parametrize("at", range(3, 7))
@pytest.mark.parametrize("mixed", [0.0, 0.3, 0.7])
def test_a_change_in_the_middle_of_an_interval_is_seen(at: int, mixed: float) -> None:
    sizes = [1100.0] * at + [1100 - 900 * mixed] + [200.0] * (9 - at)
    assert from_end_to_end(sizes) == pytest.approx(200 / 1100 - 1)


@pytest.mark.parametrize(
    ("from_interval", "says"), [(0, "400 unexpected status; 4xx."), (2, "400 unexpected status; 4xx, the first after ")]
)
def test_wrong_answers_say_their_status_and_when_they_began(from_interval: int, says: str) -> None:
    recording = simulated_recording(CLOSED, replace(GOOD, outcomes={"unexpected_status": 400}))
    assert recording.traffic is not None
    measured = [interval for interval in recording.traffic.intervals if interval.phase == "measure"]
    changed = [
        interval.model_copy(
            update={
                "counts": interval.counts.model_copy(
                    update={
                        "outcomes": Outcomes(
                            ok=int(index < from_interval), unexpected_status=int(index >= from_interval)
                        )
                    }
                )
            }
        )
        for index, interval in enumerate(measured)
    ]
    counts = recording.traffic.counts.model_copy(update={"status": {"2xx": 9, "4xx": 400}})
    traffic = recording.traffic.model_copy(update={"intervals": tuple(changed), "counts": counts})
    found = judge(CLOSED, recording.model_copy(update={"traffic": traffic}))
    (message,) = (finding.message for finding in found if finding.kind == "wrong-answers")
    assert says in message


def test_of_a_mix_wrong_answers_have_only_wrong_statuses_and_their_request() -> None:
    moved = Request(name="old", path="/old", expect=Expected(status=302))
    mix = Scenario(name="mix", request=moved, others=(Request(name="checkout", path="/checkout"),))
    cell = simulated_cell(scenario=mix, load=SATURATE)
    recording = simulated_recording(cell, replace(GOOD, outcomes={"unexpected_status": 40}))
    traffic = recording.traffic
    assert traffic is not None
    ok = traffic.counts.outcomes.ok
    each = ok // 2
    requests = (
        RequestTraffic(status={"3xx": each}, outcomes=Outcomes(ok=each), response=traffic.response),
        RequestTraffic(
            status={"2xx": ok - each, "5xx": 40},
            outcomes=Outcomes(ok=ok - each, unexpected_status=40),
            response=traffic.response,
        ),
    )
    counts = traffic.counts.model_copy(update={"status": {"2xx": ok - each, "3xx": each, "5xx": 40}})

    def message(known: tuple[RequestTraffic, ...]) -> str:
        changed = traffic.model_copy(update={"counts": counts, "requests": known})
        found = judge(cell, recording.model_copy(update={"traffic": changed}))
        return next(finding.message for finding in found if finding.kind == "wrong-answers")

    assert ") were answered wrongly, all of them checkout: 40 unexpected status; 5xx." in message(requests)
    assert ") were answered wrongly: 40 unexpected status; 5xx." in message(())
    both = requests[0].model_copy(
        update={"status": {"2xx": 5, "3xx": each}, "outcomes": Outcomes(ok=each, unexpected_status=5)}
    )
    assert "answered wrongly: 40 unexpected status; 2xx, 5xx." in message((both, requests[1]))


def test_lengths_that_vary_by_chance_are_left_alone() -> None:
    rng = np.random.default_rng(5)
    alarms = sum(from_end_to_end(list(rng.lognormal(5, 0.1, 10))) != 0 for _ in range(2_000))
    assert alarms <= 9  # 0.001 of them are two


def test_where_the_length_is_compared_or_answers_were_wrong_it_has_another_name() -> None:
    assert raised(CLOSED, replace(GOOD, shrinks=0.5)) == {}
    by_status = SIMPLE_GET.request.model_copy(update={"expect": Expected(body="path0", under_load="status")})
    loose = simulated_cell(scenario=SIMPLE_GET.model_copy(update={"request": by_status}))
    assert raised(loose, replace(GOOD, shrinks=0.5)) == {"shrinking-answers": Grade.WARN}
    shed = raised(STATUS_ONLY, replace(GOOD, shrinks=0.5, outcomes={"unexpected_status": 10}))
    assert shed == {"wrong-answers": Grade.WARN}


def test_answers_that_are_shorter_in_some_trials_are_a_finding_of_the_cell() -> None:
    trials = [Trial(simulated_recording(STATUS_ONLY, position=i, seed=i)) for i in range(6)]
    assert "shrinking-answers" not in {one.kind for one in judge_cell(STATUS_ONLY, trials, planned=6)}
    for index in (1, 4):
        traffic = trials[index].traffic
        assert traffic is not None
        counts = traffic.counts.model_copy(update={"bytes_received": traffic.counts.bytes_received // 2})
        halved = {"traffic": traffic.model_copy(update={"counts": counts})}
        trials[index] = Trial(trials[index].recording.model_copy(update=halved))
    found = [one for one in judge_cell(STATUS_ONLY, trials, planned=6) if one.kind == "shrinking-answers"]
    assert [(one.grade, one.position) for one in found] == [(Grade.WARN, None)]
    assert "in 4 trials" in found[0].message
