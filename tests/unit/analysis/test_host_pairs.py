"""Pairs of hosts: their assignment, their comparison, and the effect on intervals."""

import threading

import numpy as np
import pytest
from scipy import stats

from redline.analysis import build_report
from redline.analysis.speeds import pair_speeds
from redline.errors import UsageError
from redline.extras.hosts.executor import Shares, assigned_steps, check_for_hosts
from redline.extras.hosts.pairs import reference
from redline.model import Closed, DuetRecording, Estimate, Grade, Metric, PlannedTrial, ServerEntry, Suite
from redline.model.hosts import HostFacts
from redline.model.journey import Journey, JourneyStep, Rows, RowUse
from redline.stats.duets import StartRatio, over_starts
from redline.stats.estimate import METHOD_HOSTS, estimate, over_groups, paired, scatter_of
from redline.stats.samples import Ratios
from redline.suite import Catalogue, Overrides, read_suite
from tests.fakes.behaviour import GOOD
from tests.fakes.duets import NS_PER_REQUEST, simulated_duet
from tests.fakes.recordings import SATURATE, simulated_run


def suite_of(server: str, more: str = "") -> Suite:
    text = f"servers: [{server}]\nscenarios: [{{name: root, get: /}}]\n"
    return read_suite(
        f"{text}loads: {{full: {{closed: {{users: 1}}, for: 1s}}}}\n{more}", "mine.yaml", Catalogue(), Overrides()
    )


@pytest.mark.parametrize("host", ["10.0.0.1", "name.example", "[2001:db8::1]"])
def test_a_server_behind_a_url_may_be_loaded_by_other_hosts(host: str) -> None:
    check_for_hosts(suite_of(f"{{url: 'http://{host}:80'}}"))


@pytest.mark.parametrize(
    ("server", "message", "hint"),
    [
        (
            "{command: './a {port}'}",
            "servers by their commands",
            "start them yourself, and give every server a `url: http://HOST",
        ),
        ("{name: B, url: 'http://127.0.0.1'}", "a URL that no other host can reach, B", "by which the load hosts"),
        ("{name: B, url: 'http://127.1'}", "a URL that no other host can reach, B", "by which the load hosts"),
        ("{name: B, url: 'http://0.0.0.0:80'}", "a URL that no other host can reach, B", "by which the load hosts"),
        ("{name: B, url: 'http://[::ffff:127.0.0.1]'}", "a URL that no other host can reach, B", "the load hosts"),
        ("{url: 'http://localhost.:8080'}", "a URL that no other host can reach, localhost.:8080", "the load hosts"),
        ("{url: 'http://[::1]:80'}", "a URL that no other host can reach, ::1:80", "the load hosts reach"),
    ],
)
def test_what_other_hosts_cannot_have_is_refused_with_what_to_do(server: str, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as refused:
        check_for_hosts(suite_of(server))
    assert message in refused.value.message
    assert hint in refused.value.hint


def starts(*positions: int) -> list[tuple[PlannedTrial]]:
    return [(PlannedTrial(cell_id="c", round=0, position=position, seed=1),) for position in positions]


def test_each_pair_has_its_share_and_no_more() -> None:
    shares = Shares([starts(0, 2), starts(1)], retries=1)
    assert [shares.take(0), shares.take(0)] == starts(0, 2)
    assert shares.take(1) == starts(1)[0]
    done = threading.Thread(target=shares.take, args=(0,))
    done.start()
    done.join(0.1)
    assert done.is_alive(), "the other pair may still be lost"
    assert shares.take(1) is None
    done.join(5)
    assert not done.is_alive()


def test_what_a_lost_pair_leaves_is_done_by_the_others() -> None:
    shares = Shares([starts(0, 2), starts(1)], retries=1)
    lost = shares.take(0)
    assert lost is not None
    assert shares.leave(0, lost)
    assert [shares.take(1) for _ in range(4)] == [*starts(1, 0, 2), None]


def test_a_pair_without_work_waits_for_what_another_has_not_begun() -> None:
    """Its thread may be the first, and the other pair may be lost in what it begins later."""
    shares, taken = Shares([starts(), starts(0)], retries=1), list[object]()
    waiting = threading.Thread(target=lambda: taken.append(shares.take(0)))
    waiting.start()
    waiting.join(0.1)
    lost = shares.take(1)
    assert lost is not None
    assert shares.leave(1, lost)
    waiting.join(5)
    assert taken == starts(0)


@pytest.mark.parametrize("retries", [0, 1])
def test_nothing_is_left_to_nobody(retries: int) -> None:
    shares = Shares([starts(0), starts(1)], retries)
    first, other = shares.take(0), shares.take(1)
    assert first is not None
    assert other is not None
    assert shares.leave(0, first) == (True if retries else None)
    if retries:
        assert shares.leave(1, other) is None, "no other pair is alive"


def test_a_step_is_made_again_so_many_times_and_its_pair_is_gone_all_the_same() -> None:
    shares = Shares([starts(0), starts(1), starts()], retries=1)
    first, other = shares.take(0), shares.take(1)
    assert first is not None
    assert shares.leave(0, first)
    assert shares.take(1) == first
    assert shares.leave(1, first) is False
    assert other is not None
    assert shares.take(2) is None


def test_a_part_of_a_round_goes_to_the_pair_that_had_the_rest() -> None:
    run = simulated_run({"rust.hyper": GOOD, "rust.axum": GOOD}, trials=2, ceiling=None)
    plan = run.manifest.plan
    whole = assigned_steps(plan.trials, plan, 2)
    pair_of = {step.position: number for number, share in enumerate(whole) for step in share}
    assert set(pair_of.values()) == {0, 1}
    for trial in plan.trials:
        alone = assigned_steps([trial], plan, 2)
        assert [len(share) for share in alone].index(1) == pair_of[trial.position]


def test_a_round_whose_trials_were_on_two_hosts_is_compared_by_nobody() -> None:
    run = simulated_run({"rust.hyper": GOOD, "rust.axum": GOOD}, trials=4, loads=(SATURATE,), ceiling=None)
    where = {0: ("a", "a"), 1: ("a", "b"), 2: ("b", "b"), 3: ("b", "b")}
    recordings = tuple(
        each.model_copy(update={"hosts": on_host(where[each.round][each.cell_id.startswith("rust.axum")])})
        for each in run.recordings
    )
    report = build_report(run.model_copy(update={"recordings": recordings}))
    compared = [each for each in report.comparisons if each.primary and each.ratio]
    assert compared
    assert {each.ratio.n for each in compared if each.ratio} == {3}
    assert {each.rounds for each in compared} == {4}


def test_further_rounds_are_not_said_to_narrow_what_hosts_differ_by() -> None:
    known = {"value": 1.0, "low": 0.9, "high": 1.1, "unit": "ratio", "n": 6}
    assert scatter_of(Estimate(**known, method="t interval"))
    assert scatter_of(Estimate(**known, method=METHOD_HOSTS)) is None


def test_the_end_ends_all_that_wait() -> None:
    shares = Shares([starts(0), starts()], retries=0)
    shares.take(0)
    waiting = threading.Thread(target=shares.take, args=(1,))
    waiting.start()
    shares.end()
    waiting.join(5)
    assert not waiting.is_alive()
    assert shares.take(0) is None


def test_the_spread_over_hosts_is_that_of_their_means_where_they_have_as_many_trials() -> None:
    rng = np.random.default_rng(1)
    means = rng.normal(0, 1, 4)
    logs = np.repeat(means, 3) + rng.normal(0, 0.1, 12)
    found = over_groups(logs, [host for host in "abcd" for _ in range(3)])
    assert found is not None
    of_hosts = logs.reshape(4, 3).mean(axis=1)
    assert found.variance == pytest.approx(of_hosts.var(ddof=1) / 4)
    assert found.freedom == pytest.approx(3)


def test_hosts_that_do_not_differ_widen_nothing() -> None:
    logs = np.tile([0.0, 1.0, 2.0], 2)
    assert over_groups(logs, list("aaabbb")) is None
    assert over_groups(logs, list("aaaaaa")) is None
    assert over_groups(logs, list("abcdef")) is None
    assert over_groups(logs, []) is None


def test_hosts_that_differ_widen_an_estimate_and_cancel_in_a_comparison() -> None:
    rng = np.random.default_rng(2)
    host_names = tuple("aaabbbcccddd")
    effect = np.repeat([0.0, 0.3, -0.3, 0.1], 3)
    ours, theirs = (Ratios(np.exp(effect + rng.normal(0, 0.01, 12)), np.ones(12)) for _ in range(2))
    without = estimate(ours, Metric.CPU_PER_REQUEST)
    ours.hosts = theirs.hosts = host_names
    widened = estimate(ours, Metric.CPU_PER_REQUEST)
    assert widened.method == METHOD_HOSTS
    assert widened.relative_half_width is not None
    assert without.relative_half_width is not None
    assert widened.relative_half_width > 1.5 * without.relative_half_width
    contrast = paired(ours, theirs)
    assert contrast is not None
    assert contrast.ratio.relative_half_width is not None
    assert contrast.ratio.relative_half_width < 0.03


def test_a_duet_on_hosts_that_differ_has_a_wider_interval() -> None:
    starts = [StartRatio(value, None) for value in (0.01, 0.011, 0.03, 0.031, 0.05, 0.051)]
    alone, hosts = over_starts(starts), over_starts(starts, list("aabbcc"))
    assert hosts.interval[0] < alone.interval[0]
    expected = stats.t.interval(0.95, 2, 0.0305, np.std([0.0105, 0.0305, 0.0505], ddof=1) / np.sqrt(3))
    assert hosts.interval == pytest.approx(expected)


def on_host(name: str) -> tuple[HostFacts, ...]:
    return (HostFacts(name=name, role="server", address="127.0.0.1"),)


def on(host: str, recording: DuetRecording) -> DuetRecording:
    return recording.model_copy(update={"hosts": on_host(host)})


def test_a_pair_that_is_slower_reads_as_slower() -> None:
    costs = {"fast": 1.0, "slow": 1.1}
    made = [on(host, simulated_duet(start, (cost,))) for host, cost in costs.items() for start in range(3)]
    failed = made[0].model_copy(update={"traffic": None})
    fast, slow, lost = pair_speeds([*made, failed, on("lost", failed)])
    assert (fast.host, fast.failed, slow.host, slow.failed) == ("fast", 1, "slow", 0)
    assert (lost.host, lost.failed, lost.cpu_per_request_ns, lost.ratio) == ("lost", 1, None, None)
    for pair, expected in ((fast, 1 / 1.1), (slow, 1.1)):
        assert pair.ratio is not None
        assert pair.ratio.low is not None
        assert pair.ratio.high is not None
        assert pair.ratio.low < expected < pair.ratio.high < pair.ratio.low * 1.03
    assert slow.cpu_per_request_ns == pytest.approx(1.1 * NS_PER_REQUEST, rel=0.01)


def test_one_start_of_each_pair_gives_no_interval() -> None:
    for pair in pair_speeds([on("a", simulated_duet(0, (1.0,))), on("b", simulated_duet(1, (1.0,)))]):
        assert pair.ratio is None
    assert pair_speeds([]) == ()


def test_a_cell_that_ran_on_pairs_that_differ_has_a_finding() -> None:
    run = simulated_run({"rust.hyper": GOOD}, trials=4, loads=(SATURATE,), ceiling=None)
    recordings = tuple(
        each.model_copy(update={"hosts": on_host("fast" if number % 2 else "slow")})
        for number, each in enumerate(run.recordings)
    )
    calibration = tuple(
        on(host, simulated_duet(start, (cost,))) for host, cost in (("fast", 1.0), ("slow", 1.2)) for start in range(3)
    )
    report = build_report(run.model_copy(update={"recordings": recordings, "calibration": calibration}))
    (found,) = [each for each in report.cells[0].findings if each.kind == "pairs-differ"]
    assert found.grade is Grade.WARN
    assert "more CPU time for a request on slow" in found.message
    assert {pair.host for pair in report.pairs} == {"fast", "slow"}
    alone = build_report(run.model_copy(update={"calibration": calibration}))
    assert "pairs-differ" not in {each.kind for each in alone.cells[0].findings}


def test_the_reference_is_the_first_server_that_is_warm_at_once() -> None:
    run = simulated_run({"jvm.slow": GOOD, "rust.hyper": GOOD}, trials=1)
    plan, first = run.manifest.plan, next(iter(run.manifest.plan.cells.values()))
    found = reference(plan)
    assert found is not None
    assert found.variant == first.variant
    assert found.load.duration_ns == 1_000_000_000
    assert isinstance(first.variant.entry, ServerEntry)
    jvm = first.variant.model_copy(update={"entry": first.variant.entry.model_copy(update={"runtime": "jvm"})})
    cells = {
        cell_id: cell.model_copy(update={"variant": jvm, "warmup_detect": True})
        if cell.variant == first.variant
        else cell
        for cell_id, cell in plan.cells.items()
    }
    found = reference(plan.model_copy(update={"cells": cells}))
    assert found is not None
    assert found.variant.slug == "rust.hyper"
    assert reference(plan.model_copy(update={"cells": {}})) is None


@pytest.mark.parametrize(
    ("use", "rows", "users"), [("user", 3, 3), ("user", 99, 16), ("turn", 3, 16), ("unique", 99, None)]
)
def test_a_reference_has_users_for_its_rows_and_takes_none_that_are_used_up(
    use: RowUse, rows: int, users: int | None
) -> None:
    plan = simulated_run({"rust.hyper": GOOD}, trials=1).manifest.plan
    given = Rows(file="users.csv", columns=("name",), count=rows, use=use, sha256="0" * 64)
    cells = {
        cell_id: cell.model_copy(
            update={
                "scenario": cell.scenario.model_copy(update={"journey": Journey(steps=(JourneyStep(),), rows=given)})
            }
        )
        for cell_id, cell in plan.cells.items()
    }
    found = reference(plan.model_copy(update={"cells": cells}))
    shape = found and found.load.shape
    assert (shape.users if isinstance(shape, Closed) else None) == users
