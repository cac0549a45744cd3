"""The answer of a duet: its interval holds the truth, whatever the machine does, and its doubts are stated."""

import math
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from redline.analysis import build_report
from redline.analysis.unanswered import nothing_due
from redline.findings.starts import failing, is_whole
from redline.model import DuetRecording, DuetSlice, Grade, Load, Metric, Open, Outcomes, Verdict
from redline.model.failures import FirstFailure
from redline.model.hdr import PRECISION
from redline.stats.distributions import t_quantile
from redline.stats.duets import Slices, StartRatio, over_starts
from tests.fakes.compared import ComparedStarts, compared_run, compared_starts
from tests.fakes.duets import simulated_duet
from tests.fakes.plugins import FACTS
from tests.unit.report.test_metrics_of_duets import with_suite


def duet(start: int, *, cost: float, **kind: Any) -> DuetRecording:
    return simulated_duet(start, (1.0, cost), **kind)


def judged(starts: int = 8, **kind: Any) -> ComparedStarts:
    return compared_starts([duet(number, **kind) for number in range(starts)])


def test_a_planted_difference_is_found() -> None:
    report = judged(cost=1.05)
    assert report.verdict is Verdict.SLOWER
    assert report.ratio.low is not None
    assert report.ratio.high is not None
    assert 1 < report.ratio.low < 1.05 < report.ratio.high < 1.1
    throughput = report.in_metric(Metric.THROUGHPUT)
    assert throughput.verdict is Verdict.SLOWER
    assert throughput.ratio is not None
    assert throughput.ratio.value == pytest.approx(1 / 1.05, rel=0.01)


def test_equal_servers_are_alike() -> None:
    report = judged(cost=1.0)
    assert report.verdict is Verdict.EQUIVALENT
    assert report.findings == ()


def test_a_percentile_is_known_no_better_than_its_histogram_holds_it() -> None:
    """It lies anywhere in a slot of a thousandth, in each of three copies, however much starts agree."""
    alike = [duet(0, cost=1.0).model_copy(update={"round": number}) for number in range(4)]
    ratio = compared_starts(alike).duet.ratio(Metric.P50)
    assert ratio is not None
    low, high = ratio.interval
    reach = t_quantile(0.975, 3) * PRECISION * math.sqrt(1.5 / 12)
    assert high - low == pytest.approx(2 * (reach + ratio.bias))


def with_rare_costs(recording: DuetRecording, share: float, times: float) -> DuetRecording:
    """The same, but B needs this many times its CPU time in a share of its slices."""
    rng = np.random.default_rng(recording.round)

    def costly(each: DuetSlice) -> DuetSlice:
        if each.target != 1 or rng.random() >= share:
            return each
        used = [int((time or 0) * (times if target == 1 else 1)) for target, time in enumerate(each.cpu_ns)]
        return each.model_copy(update={"cpu_ns": tuple(used)})

    return with_slices(recording, costly)


def with_slices(recording: DuetRecording, change: Callable[[DuetSlice], DuetSlice]) -> DuetRecording:
    """The same with every slice changed by this function."""
    assert recording.traffic is not None
    blocks = [
        block.model_copy(update={"slices": tuple(map(change, block.slices))}) for block in recording.traffic.blocks
    ]
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"blocks": tuple(blocks)})})


def test_what_a_server_does_in_few_slices_is_reported() -> None:
    starts = [with_rare_costs(duet(number, cost=1.0), 0.2, 2.0) for number in range(8)]
    found = compared_starts(starts)
    assert found.ratio.value < 1.1
    rare = next(each for each in found.findings if each.kind == "rare-costs")
    assert rare.message.startswith("By all its CPU time, B takes ")


def test_blocks_that_were_left_out_because_the_engine_stood_still_are_counted() -> None:
    starts = [duet(number, cost=1.0) for number in range(3)]
    assert starts[0].traffic is not None
    stopped = starts[0].model_copy(update={"traffic": starts[0].traffic.model_copy(update={"paused_blocks": 4})})
    for made, expected in (([stopped, *starts[1:]], ["4 blocks were left out"]), (starts, [])):
        said = compared_starts(made).said("engine-paused")
        assert [message[: len("4 blocks were left out")] for message in said] == expected


def test_the_throughput_of_an_open_load_is_no_comparison() -> None:
    run = compared_run(load=Load(name="load", shape=Open(rate_per_s=100, connections=8), duration_ns=10**9))
    asked = {each.metric: each for each in build_report(with_suite(run, metric=Metric.THROUGHPUT)).comparisons}
    assert asked[Metric.CPU_PER_REQUEST].ratio is not None
    rate = asked[Metric.THROUGHPUT]
    assert (rate.primary, rate.ratio, rate.verdict, rate.refused) == (True, None, None, "not known in a duet")
    assert {each.metric for each in build_report(run).comparisons if each.primary} == {
        Metric.CPU_PER_REQUEST,
        Metric.P50,
        Metric.P95,
        Metric.P99,
    }


@pytest.mark.parametrize(
    ("kind", "starts", "expected"),
    [
        ({}, 1, "few-starts"),
        ({}, 3, "few-starts"),
        ({"idle": 0.05}, 8, "idle-work"),
        ({"failed": 1}, 8, "errors"),
        ({"busy": 0.5}, 8, "client-limited"),
    ],
)
def test_doubts_are_stated(kind: dict[str, Any], starts: int, expected: str) -> None:
    assert expected in {each.kind for each in judged(starts, cost=1.0, **kind).findings}


def test_the_time_is_that_of_all_starts_without_pauses_between_them() -> None:
    run = build_report(compared_run(starts=2)).run
    assert run.starts == 2
    assert run.seconds == pytest.approx(2 * 5)


def test_a_control_that_is_the_same_process_is_not_idle_work() -> None:
    same = duet(0, cost=1.0, idle=0.5).model_copy(update={"servers": (None, None, None)})
    assert "idle-work" not in {each.kind for each in compared_starts([same]).findings}


@pytest.mark.parametrize(("running", "said"), [((1,), ("B", "its")), ((0, 1, 2), ("A and B", "their"))])
def test_a_server_that_runs_already_has_one_start(running: tuple[int, ...], said: tuple[str, str]) -> None:
    starts = [with_servers(duet(number, cost=1.0, idle=0.5), running) for number in range(8)]
    findings = compared_starts(starts).findings
    (few,) = (finding for finding in findings if finding.kind == "few-starts")
    name, own = said
    assert few.grade is Grade.WARN
    assert few.message.startswith(f"{name} w")
    assert f"an age of {own} own" in few.message
    assert ("idle-work" in {finding.kind for finding in findings}) is (0 not in running)


def with_servers(recording: DuetRecording, running: Collection[int]) -> DuetRecording:
    """The same, but servers at these places were already running."""
    servers = tuple(None if at in running else FACTS for at in range(3))
    return recording.model_copy(update={"servers": servers})


def with_outcomes(recording: DuetRecording, *targets: Outcomes) -> DuetRecording:
    """The same with these outcomes of A, B and A again."""
    assert recording.traffic is not None
    counted = [
        target.model_copy(update={"counts": target.counts.model_copy(update={"outcomes": outcomes})})
        for target, outcomes in zip(recording.traffic.targets, targets, strict=True)
    ]
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"targets": tuple(counted)})})


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ((Outcomes(ok=1000),) * 3, None),
        ((Outcomes(ok=1000), Outcomes(ok=990, timeout=10), Outcomes(ok=1000)), None),
        (
            (Outcomes(ok=1000), Outcomes(ok=900, unexpected_status=98, reset=2), Outcomes(ok=1000)),
            "200 of 2,000 requests to B failed: unexpected status 196, reset 4",
        ),
        (
            (Outcomes(ok=1000), Outcomes(ok=1), Outcomes(refused=1000)),
            "2,000 of 4,000 requests to A failed: refused 2,000",
        ),
    ],
)
def test_a_server_that_fails_is_not_compared(targets: tuple[Outcomes, ...], says: str | None) -> None:
    assert failing([with_outcomes(duet(number, cost=1.0), *targets) for number in range(2)], ("A", "B")) == says


def with_failures(recording: DuetRecording, *targets: tuple[FirstFailure, ...]) -> DuetRecording:
    assert recording.traffic is not None
    pairs = zip(recording.traffic.targets, targets, strict=True)
    failing_targets = tuple(target.model_copy(update={"failures": failures}) for target, failures in pairs)
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"targets": failing_targets})})


def failed(time_ns: int) -> FirstFailure:
    return FirstFailure(outcome="malformed", reason=f"reason {time_ns}", time_ns=time_ns)


def test_a_start_that_came_no_farther_than_its_warm_up_says_why_it_failed() -> None:
    cold = duet(0, cost=1.0, warmup=20, failed=10**6)
    assert cold.traffic is not None
    blocks = tuple(block for block in cold.traffic.blocks if block.phase == "warmup")
    cold = cold.model_copy(update={"traffic": cold.traffic.model_copy(update={"blocks": blocks})})
    assert not is_whole(cold)
    said = failing([with_failures(cold, (), (failed(5),), ())], ("A", "B"))
    assert said is not None
    assert said.startswith("80,000,000 of ")
    assert "requests to A failed" in said
    only_b = with_failures(
        with_outcomes(cold, Outcomes(ok=9), Outcomes(malformed=9), Outcomes(ok=9)), (), (failed(5),), ()
    )
    assert failing([only_b, with_failures(only_b, (), (failed(3),), ())], ("A", "B")) == (
        "18 of 18 requests to B failed: malformed 18; first malformed: reason 3"
    )


def test_the_finding_about_errors_names_the_first() -> None:
    starts = [with_failures(duet(number, cost=1.0, failed=1), (), (failed(7 - number),), ()) for number in range(3)]
    messages = of_starts(starts).said("errors")
    assert [message.partition(" failed")[2] for message in messages] == [".", ": first malformed: reason 5."]


def counted(recording: DuetRecording, **counts: int) -> DuetRecording:
    """With these counts of B."""
    assert recording.traffic is not None
    a, b, control = recording.traffic.targets
    b = b.model_copy(update={"counts": b.counts.model_copy(update=counts)})
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update={"targets": (a, b, control)})})


@pytest.mark.parametrize(
    ("counts", "kinds"),
    [
        ({"due": 100, "reconnects": 50}, []),
        ({"due": 100, "reconnects": 99}, ["reconnecting"]),
        ({"due": 100, "surplus": 1}, ["surplus-bytes"]),
    ],
)
def test_connections_that_do_not_last_are_a_finding_of_duets_too(counts: dict[str, int], kinds: list[str]) -> None:
    found = of_starts([counted(duet(number, cost=1.0), **counts) for number in range(3)]).findings
    assert [each.kind for each in found if each.kind in ("reconnecting", "surplus-bytes")] == kinds


def of_starts(recordings: list[DuetRecording], *, detects: bool = True) -> ComparedStarts:
    return compared_starts(recordings, detects=detects)


def falling(by: float, tau: float, *, of: tuple[int, ...] = (0, 1, 2)) -> Callable[[int, int], float]:
    """Servers that cost more by this logarithm in the first block, and ever less."""
    return lambda block, server: by * math.exp(-block / tau) if server in of else 0.0


WARM = 30
"""Blocks of a warm-up in which steady servers are called warm."""


def test_servers_that_were_warm_have_no_doubt() -> None:
    found = of_starts([duet(number, cost=1.05, warmup=WARM) for number in range(5)])
    assert (found.verdict, found.unsettled, found.said("cold")) == (Verdict.SLOWER, "", [])


def test_a_difference_far_beyond_what_cold_servers_may_yet_move_is_decided() -> None:
    """It may yet move by some 10%, and it is 70%."""
    cold = falling(0.4, 40)
    found = of_starts([duet(number, cost=1.7, warmup=WARM, cold=cold) for number in range(3)])
    assert found.verdict is Verdict.SLOWER
    assert found.ratio.low is not None
    assert 1.1 < found.ratio.low < 1.65
    assert found.unsettled == "in 3 of 3 starts the servers were not warm"
    (said,) = found.said("cold")
    assert said.startswith("In 3 of 3 starts the servers were not warm: the ratio may yet move by ")


def test_a_difference_that_cold_servers_may_lose_has_no_verdict() -> None:
    cold = falling(0.9, 25, of=(1,))
    found = of_starts([duet(number, cost=1.0, warmup=WARM, cold=cold) for number in range(3)])
    assert found.ratio.value > 1.1
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.unsettled == "in 3 of 3 starts the servers were not warm"


def test_cold_servers_are_not_alike() -> None:
    """Both get faster together, so their ratio is flat, but where it will end is unknown."""
    found = of_starts([duet(number, cost=1.0, warmup=WARM, cold=falling(1.5, 40)) for number in range(5)])
    assert found.verdict is Verdict.INCONCLUSIVE


def test_cold_starts_are_left_out_where_enough_others_were_warm() -> None:
    def made(starts: range, cold: range) -> ComparedStarts:
        moving = {"cold": falling(0.9, 25, of=(1,))}
        return of_starts([duet(i, cost=1.05, warmup=WARM, **(moving if i in cold else {})) for i in starts])

    some, warm = made(range(7), range(3)), made(range(3, 7), range(0))
    assert (some.ratio, some.verdict, some.unsettled) == (warm.ratio, Verdict.SLOWER, "")
    assert some.said("cold") == ["In 3 of 7 starts the servers were not warm: the ratio is that of the others."]
    assert some.comparison.duet is not None
    assert (some.comparison.duet.starts, some.comparison.duet.left_out) == (4, 3)
    assert some.said("few-starts") == ["There were only 4 starts: with more, intervals are narrower."]
    for starts, cold in ((range(6), range(3)), (range(3), range(1))):  # not most of them, and too few
        (said,) = made(starts, cold).said("cold")
        assert said.startswith(f"In {len(cold)} of {len(starts)} starts the servers were not warm: the ratio may yet ")


def test_the_end_of_a_detected_warm_up_counts() -> None:
    """In its last ten blocks, B costs 5% more, and 3% more afterwards."""

    def start(number: int) -> DuetRecording:
        return duet(
            number, cost=1.0, warmup=WARM, cold=lambda block, server: (0.05, 0.03)[block >= WARM] * (server == 1)
        )

    detected, fixed = (of_starts([start(number) for number in range(8)], detects=each) for each in (True, False))
    assert fixed.ratio.value == pytest.approx(1.03, abs=0.004)
    assert detected.ratio.value == pytest.approx(1.037, abs=0.004)


def test_the_end_of_a_warm_up_does_not_count_if_the_engine_measured_in_longer_slices() -> None:
    def start(number: int) -> DuetRecording:
        made = duet(number, cost=1.0, warmup=WARM, cold=lambda block, server: 0.05 * (block < WARM and server == 1))
        assert made.traffic is not None
        blocks = [
            block.model_copy(update={"slices": tuple(map(shortened, block.slices))})
            if block.phase == "warmup"
            else block
            for block in made.traffic.blocks
        ]
        return made.model_copy(update={"traffic": made.traffic.model_copy(update={"blocks": tuple(blocks)})})

    def shortened(slice_: DuetSlice) -> DuetSlice:
        return slice_.model_copy(update={"end_ns": slice_.end_ns - (slice_.end_ns - slice_.start_ns) // 2})

    assert of_starts([start(number) for number in range(8)]).ratio.value == pytest.approx(1.0, abs=0.004)


def test_too_few_blocks_to_know_anything_leave_no_interval() -> None:
    made = [duet(number, cost=1.05, warmup=2) for number in range(3)]
    short = [
        each.model_copy(update={"traffic": each.traffic.model_copy(update={"blocks": each.traffic.blocks[:4]})})
        for each in made
        if each.traffic is not None
    ]
    found = of_starts(short)
    assert (found.verdict, found.ratio.low, found.ratio.high) == (Verdict.INCONCLUSIVE, None, None)
    assert found.unsettled == "in 3 of 3 starts the servers were not warm"
    (said,) = found.said("cold")
    assert "not known, so it has no interval" in said


def test_what_chance_alone_leaves_open_is_not_blamed_on_a_cold_start() -> None:
    """One of three starts is hardly cold, and the servers are equal."""

    def start(number: int) -> DuetRecording:
        cold = {"cold": falling(0.06, 30, of=(0, 2))} if number == 2 else {}
        return duet(number, cost=1.0, warmup=12 if number == 2 else WARM, noise=0.2, **cold)

    found = of_starts([start(number) for number in range(3)])
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.said("cold")
    assert found.unsettled == ""


def test_a_warm_up_of_a_fixed_length_may_be_too_short() -> None:
    cold = falling(0.9, 25, of=(1,))
    found = of_starts([duet(number, cost=1.0, warmup=10, cold=cold) for number in range(3)], detects=False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.unsettled == "in 3 of 3 starts the servers were not warm"


def test_what_all_starts_have_in_common_is_no_chance() -> None:
    """Every start by itself is flat enough to be called warm."""
    moving = [duet(number, cost=1.0, cold=falling(0.04, 20, of=(1,))) for number in range(8)]
    found = of_starts(moving, detects=False)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.unsettled == "the servers were not warm: their ratio still moved while it was measured"


@given(st.integers(0, 10_000), st.integers(1, 8), st.floats(0, 0.03))
@example(85, 1, 1e-12)  # a nanosecond in a few blocks is rounding
def test_steady_servers_are_not_called_cold(seed: int, starts: int, noise: float) -> None:
    made = [duet(seed + number, cost=1.0, warmup=WARM, noise=noise) for number in range(starts)]
    assert of_starts(made).unsettled == ""


@pytest.mark.parametrize("truth", [0.7, 1.0, 1.3, 2.0])
@pytest.mark.parametrize("tau", [10, 20, 40, 80])
def test_the_interval_of_cold_servers_holds_the_ratio_of_warm_ones(truth: float, tau: float) -> None:
    """However late A or B is compiled, as long as an exponential course tells what is still to come."""
    for late in ((0, 2), (1,), (0, 1, 2)):
        made = [duet(number, cost=truth, warmup=WARM, cold=falling(1.5, tau, of=late)) for number in range(3)]
        ratio = of_starts(made).ratio
        assert ratio.low is None or ratio.high is None or ratio.low < truth < ratio.high, (late, ratio)


def test_answers_are_as_long_as_they_are() -> None:
    """However many requests are in flight at the end of a slice: servers of other speeds answer with as many bytes."""

    def answered(recording: DuetRecording, sizes: tuple[int, int, int]) -> DuetRecording:
        def sized(each: DuetSlice) -> DuetSlice:
            return each.model_copy(update={"bytes_received": each.completed * sizes[each.target]})

        return with_slices(recording, sized)

    slow = [answered(duet(number, cost=8.0), (210, 210, 210)) for number in range(3)]
    assert of_starts(slow).said("answer-sizes") == []
    other = [answered(duet(number, cost=1.0), (210, 138, 210)) for number in range(3)]
    assert of_starts(other).said("answer-sizes") == [
        "An answer of A has 210 bytes, an answer of B 138: do both do the same work?"
    ]
    assert of_starts([duet(number, cost=1.0) for number in range(3)]).said("answer-sizes") == []


def test_a_start_that_was_cut_before_its_first_block_was_interrupted() -> None:
    whole = compared_run(starts=4)
    *others, last = whole.duets
    assert last.traffic is not None
    cut = last.model_copy(update={"traffic": last.traffic.model_copy(update={"blocks": (), "ended": "interrupted"})})
    assert not build_report(whole).run.interrupted
    for recordings in (others, [*others, cut]):
        report = build_report(whole.model_copy(update={"duets": tuple(recordings)}))
        assert report.run.interrupted
        (cpu,) = (one.duet for one in report.comparisons if one.metric is Metric.CPU_PER_REQUEST)
        assert cpu is not None
        assert cpu.starts == 3


def test_nothing_measured_is_no_answer() -> None:
    run = compared_run(starts=1)
    empty = run.duets[0].model_copy(update={"traffic": None})
    comparisons = build_report(run.model_copy(update={"duets": (empty,)})).comparisons
    assert {(one.ratio, one.refused) for one in comparisons} == {(None, "no start with both was measured")}


CONTRAST = np.array([-0.5, 1, -0.5])


def slices(rng: np.random.Generator, blocks: int, ratio: float, scatter: float = 0.02) -> Slices:
    """Slices of A, B and A again, on a core whose speed wanders and sometimes jumps."""
    orders = [rng.permutation(3) for _ in range(blocks)]
    servers = np.concatenate([(*order, *order[::-1]) for order in orders])
    speed = np.zeros(len(servers))
    for at in range(1, len(speed)):
        speed[at] = 0.8 * speed[at - 1] + 0.04 * rng.standard_t(2)
    logs = np.where(servers == 1, ratio, 0) + speed + rng.normal(0, scatter, len(servers))
    return Slices(servers, logs, in_a_row(servers))


def in_a_row(servers: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.concatenate(([False], servers[1:] == servers[:-1]))


def known(measured: Slices) -> StartRatio:
    """The ratio of slices that can tell it."""
    ratio = measured.ratio(CONTRAST)
    assert ratio is not None
    return ratio


@given(st.floats(-1, 1), st.integers(20, 100), st.floats(1, 9), st.integers(0, 2**32))
def test_steal_in_a_tenth_of_the_slices_moves_little(value: float, blocks: int, factor: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quiet = slices(rng, blocks, value)
    stolen = quiet.logs.copy()
    stolen[rng.choice(len(stolen), len(stolen) // 10, replace=False)] += factor
    moved = known(Slices(quiet.servers, stolen, quiet.again)).value - known(quiet).value
    assert abs(moved) < 0.1  # the mean of the blocks would move by up to .6 times the factor


@given(st.integers(2, 6), st.sets(st.integers(0, 11)), st.integers(1, 2))
def test_slices_without_answers_leave_a_ratio_or_none(servers: int, lost: set[int], blocks: int) -> None:
    """So few may be left that two effects always come together, such as the last server and a second turn in a row."""
    order = np.tile([*range(servers), *reversed(range(servers))], blocks)
    again = in_a_row(order)
    left = np.array([at for at in range(len(order)) if at not in lost], dtype=np.int64)
    assume(set(order[left]) == set(range(servers)))
    contrast = np.zeros(servers)
    contrast[0], contrast[-1] = -1.0, 1.0
    truth = 0.1 * order + 0.05 * again
    found = Slices(order[left], truth[left], again[left]).ratio(contrast)
    # What is told is right: neighbours whose predecessor is gone count as if it had been of another server.
    assert found is None or math.isfinite(found.value)
    if not lost:
        assert found is not None
        assert found.value == pytest.approx(0.1 * (servers - 1), abs=1e-6)


def test_a_block_that_does_not_tell_servers_apart_gives_no_ratio() -> None:
    """The control ran only after itself: nobody knows whether it is another server, or has warm caches."""
    servers = np.array([0, 1, 2, 3, 4, 5, 4])
    again = np.array([False, False, False, False, False, True, False])
    contrast = np.array([-0.5, 1, 0, 0, 0, -0.5])
    assert Slices(servers, np.zeros(7), again).ratio(contrast) is None


def test_slices_that_agree_exactly_have_their_ratio() -> None:
    servers = np.tile([0, 1, 2, 2, 1, 0], 20)
    found = known(Slices(servers, np.where(servers == 1, 0.5, 0.0), in_a_row(servers)))
    assert found.value == pytest.approx(0.5)
    assert found.standard_error == pytest.approx(0, abs=1e-9)


@given(st.integers(0, 2**32), st.floats(-0.5, 0.5), st.floats(-0.3, 0.3))
def test_which_server_was_loaded_twice_in_a_row_does_not_matter(seed: int, ratio: float, again: float) -> None:
    """A server that was loaded just before has its code and data in the caches."""
    plain = slices(np.random.default_rng(seed), 20, ratio)
    cached = replace(plain, logs=plain.logs + again * plain.again)
    assert known(cached).value == pytest.approx(known(plain).value, abs=1e-5)


def test_neighbours_say_more_than_blocks() -> None:
    rng = np.random.default_rng(5)
    fitted, averaged = [], []
    for _ in range(200):
        start = slices(rng, 30, 0.0)
        fitted.append(known(start).value)
        by_block = start.logs.reshape(30, 6), start.servers.reshape(30, 6)
        averaged.append(
            np.mean([logs[of == 1].mean() - logs[of != 1].mean() for logs, of in zip(*by_block, strict=True)])
        )
    assert np.std(fitted) < 0.8 * np.std(averaged)


def test_the_standard_error_is_that_of_the_ratio() -> None:
    rng = np.random.default_rng(6)
    found = [known(slices(rng, 40, 0.1)) for _ in range(200)]
    errors = [each.standard_error for each in found]
    assert None not in errors
    assert np.std([each.value for each in found]) == pytest.approx(np.median(errors), rel=0.2)  # type: ignore[arg-type]


def test_one_start_without_enough_slices_has_no_interval() -> None:
    start = known(slices(np.random.default_rng(1), 8, 0.1))
    assert start.standard_error is None
    found = over_starts([start])
    assert found.interval == (-math.inf, math.inf)
    assert found.starts_sd is None


def test_scatter_is_split_only_where_that_within_starts_is_known() -> None:
    rng = np.random.default_rng(3)
    few, many = ([known(slices(rng, blocks, 0.0)) for _ in range(6)] for blocks in (5, 200))
    assert over_starts(few).starts_sd is not None
    assert over_starts(few).between_sd is None
    found = over_starts(many)
    assert found.starts_sd is not None
    assert found.between_sd is not None
    assert found.between_sd <= found.starts_sd


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    holds = 0
    for _ in range(400):
        found = over_starts([StartRatio(0.02 + rng.normal(0, 0.007), 0.0035) for _ in range(12)])
        low, high = found.interval
        holds += low <= 0.02 <= high
    assert 0.92 <= holds / 400 <= 0.98


@pytest.mark.parametrize(
    ("loaded", "says"),
    [
        ((0, 1, 2), ""),
        ((), "nothing fell due in 4.00 s of load"),
        ((0, 2), "nothing fell due to one of the servers in 4.00 s of load"),
    ],
)
def test_a_load_that_asks_for_nothing_is_said_to(loaded: tuple[int, ...], says: str) -> None:
    made = duet(0, cost=1.0, warmup=20)
    assert made.traffic is not None
    idle = {"completed": 0, "measured": 0, "cpu_ns": ()}
    blocks = tuple(
        block.model_copy(
            update={
                "slices": tuple(
                    each if each.target in loaded else each.model_copy(update=idle) for each in block.slices
                )
            }
        )
        for block in made.traffic.blocks
    )
    recording = made.model_copy(update={"traffic": made.traffic.model_copy(update={"blocks": blocks})})
    assert nothing_due([recording]) == says
