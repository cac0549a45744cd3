"""A cell's builds, its services, its trials and requests, and the speed of its cores: limits from both sides."""

from typing import Any

import pytest

from redline.findings import cell as rules
from redline.findings.cell import host_mode, identical_builds, in_modes, observe_kept, undecided
from redline.findings.rules import Observation, Rule
from redline.model import Grade, Metric, ServerFacts
from redline.stats import Trial
from tests.fakes.behaviour import GOOD
from tests.fakes.plugins import FACTS
from tests.fakes.recordings import SATURATE, STEADY, simulated_cell, simulated_recording

CLOSED, OPEN = simulated_cell(load=SATURATE), simulated_cell(load=STEADY)
ONE = simulated_recording(CLOSED, GOOD)


def trial(server: ServerFacts | None = None, **counts: Any) -> Trial:
    assert ONE.traffic is not None
    changed = {"counts": ONE.traffic.counts.model_copy(update=counts)}
    return Trial(ONE.model_copy(update={"server": server, "traffic": ONE.traffic.model_copy(update=changed)}))


def observed(rule: Rule, *arguments: object) -> Observation | None:
    assert rule.function is not None
    found = rule.function(*arguments)
    assert found is None or isinstance(found, Observation)
    return found


def built(number: int, outputs: str = "x") -> ServerFacts:
    return FACTS.model_copy(update={"build_number": number, "outputs": outputs})


@pytest.mark.parametrize(
    ("servers", "alike"),
    [
        ([built(0), built(1)], 2),
        ([built(0), built(1), built(2), None], 3),
        ([built(0), built(0)], 0),
        ([built(0), built(1, "y")], 0),
        ([built(0), built(1, "")], 0),
        ([None], 0),
        ([], 0),
    ],
)
def test_builds_are_alike_if_all_are_the_same_bytes(servers: list[ServerFacts | None], alike: int) -> None:
    assert identical_builds(servers) == alike
    found = observed(rules.builds_alike, [trial(server) for server in servers])
    assert (found is not None) is bool(alike)
    if found is not None:
        assert found.message == f"All {alike} builds are identical."
        assert rules.builds_alike.grade(found.value) is Grade.NOTE
        assert rules.builds_alike.grade(found.value) is Grade.NOTE


def speeds(*shares: float, builds: tuple[int, ...]) -> list[Trial]:
    rate = 20_000
    return [
        trial(built(build, str(build)), completed=round(rate * speed), due=round(rate * speed))
        for speed, build in zip(shares, builds, strict=True)
    ]


BUILDS = tuple(at // 4 for at in range(12))


def test_builds_that_differ_say_by_how_much() -> None:
    scattered = [1 + 0.1 * (at // 4) + 0.001 * (at % 4) for at in range(12)]
    found = observed(rules.builds_differ, CLOSED, speeds(*scattered, builds=BUILDS))
    assert found is not None
    assert found.message.startswith("The 3 builds differ by 9.1% (standard deviation), and starts of one build by 0.1")
    assert found.message.endswith("% in their rate.")
    assert found.value == pytest.approx(0.091, abs=0.001)
    alike = [1 + 0.001 * (at % 4) for at in range(12)]
    assert observed(rules.builds_differ, CLOSED, speeds(*alike, builds=BUILDS)) is None
    lost = [*speeds(*scattered, builds=BUILDS)[:-1], trial(built(2, "2"), completed=0)]
    assert observed(rules.builds_differ, CLOSED, lost) is None


def test_services_that_ran_on_are_said_with_how_often_they_started() -> None:
    kept = FACTS.model_copy(update={"kept": ("db", "cache")})
    fresh = FACTS
    assert observe_kept("s", [fresh, fresh]) is None
    assert observe_kept("s", []) is None
    once = observe_kept("s", [fresh, kept, kept])
    assert once is not None
    assert once.message.startswith("db, cache of s started once for 3 starts of it:")
    never = observe_kept("s", [kept, kept, None])
    assert never is not None
    assert never.message.startswith("db, cache of s started once for 3 starts")
    twice = observe_kept("s", [fresh, kept, fresh, None])
    assert twice is not None
    assert twice.message.startswith("db, cache of s started 2 times for 4 starts")
    assert rules.kept_services.grade(once.value) is Grade.NOTE
    in_cell = observed(rules.kept_services, CLOSED, [trial(fresh), trial(kept)])
    assert in_cell is not None
    assert in_cell.message.startswith("db, cache of rust.hyper started once for 2 starts")


@pytest.mark.parametrize(
    ("used", "planned", "message"),
    [
        (0, 3, "0 usable trials are left of 3 planned: no number rests on all that was measured."),
        (1, 1, "A single trial was planned: there is no interval and no verdict."),
        (1, 2, "1 usable trial is left of 2 planned: there is no interval and no verdict."),
        (2, 2, "2 usable trials are left of 2 planned: there is no verdict."),
        (3, 5, "3 usable trials are left of 5 planned: the intervals are wide."),
    ],
)
def test_few_trials_are_said_with_what_is_lacking(used: int, planned: int, message: str) -> None:
    found = observed(rules.too_few_trials, [trial()] * used, planned)
    assert found is not None
    assert found.message == message
    assert found.value == 5 - used


@pytest.mark.parametrize(
    ("used", "planned", "advice"),
    [(0, 4, rules.UNUSABLE), (1, 4, None), (0, 5, rules.REPEAT), (4, 5, rules.REPEAT), (4, 4, None)],
)
def test_more_trials_are_advised_where_they_help(used: int, planned: int, advice: str | None) -> None:
    found = observed(rules.too_few_trials, [trial()] * used, planned)
    assert found is not None
    assert found.advice == advice


@pytest.mark.parametrize(
    ("due", "grade"), [(10_000, None), (9_900, Grade.NOTE), (1_001, Grade.NOTE), (980, Grade.WARN)]
)
def test_a_hundred_requests_beyond_p99_are_wanted(due: int, grade: Grade | None) -> None:
    found = observed(rules.too_few_samples, [trial(due=due // 2), trial(due=due - due // 2)])
    assert found is not None
    assert rules.too_few_samples.grade(round(found.value, 6)) is grade
    rests = "too few for a p99" if grade is Grade.WARN else f"so p99 rests on the slowest {due / 100:,.0f}"
    assert found.message == f"{due:,} requests were measured, {rests}."
    assert observed(rules.too_few_samples, []) is None


@pytest.mark.parametrize(
    ("of_cores", "text"),
    [
        ([1.0, 1.25, 0.8], ""),
        ([1.0, 1.26], "in 1 of 2 trials the server's cores were 26% faster"),
        ([1.0, 0.79], "in 1 of 2 trials the server's cores were 21% slower"),
        ([1.31, 1.0, 1.41], "in 2 of 3 trials the server's cores were 31 to 41% faster"),
        ([1.31, 0.7, 0.6], "in 1 of 3 trials the server's cores were 31% faster and in 2 30 to 40% slower"),
    ],
)
def test_trials_on_faster_or_slower_cores_are_counted(of_cores: list[float], text: str) -> None:
    assert in_modes(of_cores) == (f"{text} than in the run's median trial" if text else "")
    found = host_mode(CLOSED, of_cores)
    assert [finding.message for finding in found] == (
        [f"Just before and after the load, {text} than in the run's median trial."] if text else []
    )
    assert all((finding.grade, finding.cell_id) == (Grade.NOTE, CLOSED.id) for finding in found)
    assert host_mode(CLOSED, []) == ()


@pytest.mark.parametrize(("share", "found"), [(0.05, False), (0.051, True)])
def test_what_undecided_comparisons_could_have_shown_is_noted(share: float, *, found: bool) -> None:
    shown = undecided(CLOSED, [(Metric.THROUGHPUT, 0.01), (Metric.CPU_PER_REQUEST, share)], "9 rounds show 5%")
    rate = f"1% in {Metric.THROUGHPUT.value}"
    message = f"These rounds show differences from {rate} and 5% in CPU per request on; 9 rounds show 5%."
    assert [each.message for each in shown] == ([message] if found else [])


@pytest.mark.parametrize(("share", "text"), [(10.0, "from 1000% in"), (10.1, "from more than 1000% in")])
def test_a_resolution_beyond_tenfold_is_not_spelled_out(share: float, text: str) -> None:
    (found,) = undecided(CLOSED, [(Metric.CPU_PER_REQUEST, share)], "more")
    assert text in found.message


@pytest.mark.parametrize(("share", "grade"), [(0.79, None), (0.81, Grade.NOTE), (0.94, Grade.NOTE), (0.96, Grade.WARN)])
def test_a_rate_near_the_ceiling_is_a_share_of_it(share: float, grade: Grade | None) -> None:
    used = [trial(completed=15_000), trial(completed=25_000)]
    found = observed(rules.near_ceiling, CLOSED, used, 20_000 / share)
    assert found is not None
    assert rules.near_ceiling.grade(found.value) is grade
    assert found.message.startswith(f"20,000/s is {share:.0%} of the ")
    assert observed(rules.near_ceiling, OPEN, used, 20_000.0) is None
    assert observed(rules.near_ceiling, simulated_cell(ceiling=True), used, 20_000.0) is None
    assert observed(rules.near_ceiling, CLOSED, used, None) is None
    assert observed(rules.near_ceiling, CLOSED, [], 20_000.0) is None


def test_trials_without_a_rate_or_a_median_are_left_out_of_a_series() -> None:
    used = [trial(completed=0), *speeds(*(1 + at / 50 for at in range(7)), builds=(0,) * 7)]
    found = observed(rules.run_drift, CLOSED, used)
    assert found is not None
    assert found.message.startswith("From the first to the last of 7 trials the rate rose by 12%: something changed")
    falling = observed(rules.run_drift, CLOSED, used[::-1])
    assert falling is not None
    assert "the rate fell by 11%" in falling.message
    assert found.value == pytest.approx(0.12, abs=0.001)
