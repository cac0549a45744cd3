"""Findings that only several servers under the same load show."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redline.analysis import build_report
from redline.analysis.across import findings_across
from redline.analysis.results import judge_run
from redline.findings.across import SeenAmong, SeenServer, _body_sizes, _comparable, _most_alike, _sign, _usual
from redline.model import (
    Closed,
    Counts,
    Estimate,
    Finding,
    Grade,
    Histogram,
    Load,
    Metric,
    Outcomes,
    Recording,
    Request,
    RequestTraffic,
    Run,
    Scenario,
    Series,
    Tls,
)
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.recordings import MEASURE_NS, SATURATE, STEADY, simulated_cell, simulated_run

IDLE = replace(GOOD, server_busy=0.4)
PACED = Load(name="paced", shape=Closed(users=64, pace_per_s=100.0), duration_ns=MEASURE_NS)
NEW_CONNECTIONS = Load(name="new", shape=Closed(users=64, requests_per_connection=1), duration_ns=MEASURE_NS)


def run_of(
    behaviours: dict[str, Behaviour], load: Load = SATURATE, *, ceiling: str | None = None, effect: float = 0.002
) -> Run:
    """Five trials of these servers, which differ little from trial to trial; the ceiling answers 60,000/s."""
    return simulated_run(behaviours, loads=(load,), ceiling=ceiling, baseline="rust.s0", trial_effect=effect)


def said(run: Run, kind: str) -> dict[str, Finding]:
    """The findings of a kind by server."""
    found = [
        (cell.server, finding) for cell in build_report(run).cells for finding in cell.findings if finding.kind == kind
    ]
    assert len(dict(found)) == len(found)
    return dict(found)


def with_changed(run: Run, server: str, change: Callable[[Recording], Recording]) -> Run:
    """The run with changed recordings of a server."""
    cells = run.manifest.plan.cells
    recordings = tuple(
        change(recording) if cells[recording.cell_id].variant.slug == server else recording
        for recording in run.recordings
    )
    return run.model_copy(update={"recordings": recordings})


def counting(**changed: Callable[[Counts], int]) -> Callable[[Recording], Recording]:
    """Change counts of a recording by functions of its counts."""

    def change(recording: Recording) -> Recording:
        assert recording.traffic is not None
        counts = recording.traffic.counts
        update = {name: made(counts) for name, made in changed.items()}
        traffic = recording.traffic.model_copy(update={"counts": counts.model_copy(update=update)})
        return recording.model_copy(update={"traffic": traffic})

    return change


def adding(**per_s: float) -> Callable[[Recording], Recording]:
    """Add counters of the server that grow by so much a second."""

    def change(recording: Recording) -> Recording:
        times = recording.series[0].times_unix_ns
        more = [
            Series(
                name=name,
                unit="1",
                subject="server",
                kind="counter",
                times_unix_ns=times,
                values=tuple(rate * (at - times[0]) / 1e9 for at in times),
            )
            for name, rate in per_s.items()
        ]
        return recording.model_copy(update={"series": (*recording.series, *more)})

    return change


def servers(*rates: float, base: Behaviour = IDLE) -> dict[str, Behaviour]:
    return {f"rust.s{place}": replace(base, rate_per_s=rate) for place, rate in enumerate(rates)}


# --- servers-alike


def test_servers_with_idle_cores_and_the_same_throughput_are_a_note() -> None:
    found = said(run_of(servers(20_000, 20_050, 20_100, 26_000)), "servers-alike")
    assert list(found) == ["rust.s0", "rust.s1", "rust.s2"]
    assert {finding.grade for finding in found.values()} == {Grade.NOTE}
    (message,) = {finding.message for finding in found.values()}
    assert message.startswith("3 of 4 servers have the same throughput, ")
    assert "used at most 40% of their cores: what they share is probably measured" in message


def test_a_server_that_does_nothing_and_is_hardly_faster_makes_it_a_warning() -> None:
    found = said(run_of(servers(55_000, 55_100, 55_200), ceiling="oracle.null"), "servers-alike")
    assert {finding.grade for finding in found.values()} == {Grade.WARN}
    assert "and reached more than 80% of what a server that does nothing reaches: " in found["rust.s0"].message
    far = said(run_of(servers(20_000, 20_050, 20_100), ceiling="oracle.null"), "servers-alike")
    assert {finding.grade for finding in far.values()} == {Grade.NOTE}
    assert set(far) == {"rust.s0", "rust.s1", "rust.s2"}, "the ceiling is not among them"


def test_a_busy_engine_makes_it_a_warning() -> None:
    busy = replace(IDLE, engine_busy=0.93)
    found = said(run_of(servers(20_000, 20_050, 20_100, base=busy)), "servers-alike")
    assert {finding.grade for finding in found.values()} == {Grade.WARN}
    assert "the engine was busy at least 93% of the time" in found["rust.s0"].message


def test_where_the_use_of_cores_is_not_known_only_a_sign_makes_it_a_note() -> None:
    apart = replace(IDLE, pinned=False)
    assert said(run_of(servers(20_000, 20_050, 20_100, base=apart)), "servers-alike") == {}
    busy = replace(apart, engine_busy=0.93)
    found = said(run_of(servers(20_000, 20_050, 20_100, base=busy)), "servers-alike")
    assert {finding.grade for finding in found.values()} == {Grade.NOTE}
    assert "of their cores" not in found["rust.s0"].message


@pytest.mark.parametrize(
    ("behaviours", "effect"),
    [
        (servers(20_000, 20_050, 20_100, base=GOOD), 0.002),
        (servers(20_000, 20_050), 0.002),
        (servers(20_000, 20_500, 21_000), 0.002),
        (servers(20_000, 20_050, 20_100), 0.1),
        (servers(20_000, 20_050, 20_100, 25_000, 28_000, 32_000), 0.002),
    ],
    ids=["full cores", "two", "3% apart", "not known to 2%", "three of six"],
)
def test_what_is_no_reason_to_call_servers_alike(behaviours: dict[str, Behaviour], effect: float) -> None:
    assert said(run_of(behaviours, effect=effect), "servers-alike") == {}


@pytest.mark.parametrize("number", [3, 5, 8])
def test_servers_spread_over_a_factor_of_two_are_seldom_alike_by_chance(number: int) -> None:
    rng, cell = np.random.default_rng(1), simulated_cell()

    def drawn() -> SeenServer:
        rate = 20_000 * 2 ** float(rng.random())
        known = Estimate(value=rate, low=rate * 0.99, high=rate * 1.01, unit="1/s", n=5, method="drawn")
        return SeenServer(cell, {Metric.THROUGHPUT: known}, Counts(due=1), (), (), 5, 0.4, 0.5, ())

    groups = [SeenAmong(tuple(drawn() for _ in range(number)), 0) for _ in range(1000)]
    assert sum(bool(group.alike[1]) for group in groups) <= 40


def test_servers_of_other_rates_with_the_same_p50_are_alike_in_it() -> None:
    narrow = replace(IDLE, spread=0.05)
    paced = run_of(servers(20_000, 20_050, 20_100, base=narrow), PACED)
    assert "have the same p50, " in said(paced, "servers-alike")["rust.s0"].message
    assert said(run_of(servers(20_000, 20_050, 20_100), STEADY), "servers-alike") == {}, "an open load"


# --- connections-differ


@pytest.mark.parametrize(("share", "grade"), [(0.001, None), (0.05, Grade.NOTE), (0.99, Grade.WARN)])
def test_a_server_that_closes_connections_where_another_does_not_is_reported(share: float, grade: Grade | None) -> None:
    closes = counting(reconnects=lambda counts: round(share * counts.due))
    run = with_changed(run_of(servers(20_000, 30_000, base=GOOD)), "rust.s1", closes)
    found = said(run, "connections-differ")
    assert {name: finding.grade for name, finding in found.items()} == ({"rust.s1": grade} if grade else {})
    if share > 0.5:
        assert found["rust.s1"].message == (
            "rust.s1 was connected to again for 99% of its requests, rust.s0 for none: their work is not the same."
        )
        both = with_changed(run, "rust.s0", closes)
        assert said(both, "connections-differ") == {}


def test_new_connections_that_the_load_asks_for_are_none_of_a_server() -> None:
    closes = counting(reconnects=lambda counts: counts.due)
    run = with_changed(run_of(servers(20_000, 30_000, base=GOOD), NEW_CONNECTIONS), "rust.s1", closes)
    assert said(run, "connections-differ") == {}


# --- answer-sizes


def test_a_server_whose_answers_have_another_length_is_reported_beside_the_median() -> None:
    run = run_of(servers(20_000, 25_000, 30_000, base=GOOD))
    assert said(run, "answer-sizes") == {}
    found = said(with_changed(run, "rust.s2", counting(bytes_received=lambda c: c.completed * 210)), "answer-sizes")
    assert {name: finding.grade for name, finding in found.items()} == {"rust.s2": Grade.NOTE}
    assert found["rust.s2"].message == (
        "An answer of rust.s0 has 120 bytes, an answer of rust.s2 210: do both do the same work?"
    )


def test_lengths_that_overlap_from_trial_to_trial_are_no_difference() -> None:
    def varied(counts: Counts) -> int:
        return counts.completed * (210 if counts.due % 2 else 119)

    run = run_of(servers(20_000, 25_000, base=GOOD))
    changed = with_changed(run, "rust.s1", counting(bytes_received=varied))
    sizes = {recording.traffic.counts.due % 2 for recording in changed.recordings if recording.traffic}
    assert sizes == {0, 1}
    assert said(changed, "answer-sizes") == {}


def test_answers_over_other_protocols_are_not_compared() -> None:
    run = with_changed(
        run_of(servers(20_000, 25_000, base=GOOD)), "rust.s1", counting(bytes_received=lambda c: c.completed * 210)
    )
    results, report = judge_run(run), build_report(run)
    assert list(said(run, "answer-sizes")) == ["rust.s1"]
    second = report.cells[1].cell_id
    cell = results[second].cell
    encrypted = cell.model_copy(update={"variant": cell.variant.over(Tls())})
    results[second] = replace(results[second], cell=encrypted)
    found = findings_across(results, {cell.cell_id: cell for cell in report.cells})
    assert "answer-sizes" not in {finding.kind for alike in found.values() for finding in alike}


def with_bodies(*sizes: int) -> Callable[[Recording], Recording]:
    """Halves of the traffic are of two requests, whose answers have bodies of these sizes."""

    def change(recording: Recording) -> Recording:
        traffic = recording.traffic
        assert traffic is not None
        ok = traffic.counts.outcomes.ok
        parts = (ok // 2, ok - ok // 2)
        requests = tuple(
            RequestTraffic(
                completed=part,
                body_bytes=size * part,
                status={"2xx": part},
                outcomes=Outcomes(ok=part),
                response=Histogram.of([1e6] * part),
            )
            for part, size in zip(parts, sizes, strict=True)
        )
        return recording.model_copy(update={"traffic": traffic.model_copy(update={"requests": requests})})

    return change


def test_bodies_of_a_mix_are_compared_request_by_request() -> None:
    """Lengths that add up to the same are not the same answers."""
    mix = Scenario(name="Mix", request=Request(name="item"), others=(Request(name="list", path="/list"),))
    run = simulated_run(servers(2_000, 2_500, 3_000, base=GOOD), loads=(SATURATE,), scenarios=(mix,))
    for server in ("rust.s0", "rust.s1", "rust.s2"):
        run = with_changed(run, server, with_bodies(100, 500))
    assert said(run, "answer-sizes") == {}
    found = said(with_changed(run, "rust.s1", with_bodies(500, 100)), "answer-sizes")
    assert list(found) == ["rust.s1"]
    assert found["rust.s1"].message == (
        "The body of an answer to item has 100 bytes from rust.s0, 500 from rust.s1: do both do the same work? "
        "So is it with 1 more of its requests."
    )
    # A date in a body changes it by less.
    assert said(with_changed(run, "rust.s1", with_bodies(100, 502)), "answer-sizes") == {}


# --- one-sided


THROTTLED = adding(quota_periods=10.0, throttled_periods=5.0, throttled_ns=5e7)
COMPILING = adding(compiler_cpu_ns=9e8, compiler_wait_ns=1e8)


@pytest.mark.parametrize(
    ("slowed", "what"),
    [(THROTTLED, "A CPU quota was used up"), (COMPILING, "Compilers were still busy")],
    ids=["quota", "compilers"],
)
def test_what_slows_one_server_and_spares_another_is_in_their_ratio(
    slowed: Callable[[Recording], Recording], what: str
) -> None:
    run = with_changed(run_of(servers(20_000, 30_000, 40_000, base=GOOD)), "rust.s1", slowed)
    found = said(run, "one-sided")
    assert {name: finding.grade for name, finding in found.items()} == {"rust.s1": Grade.WARN}
    assert found["rust.s1"].message == (f"{what} in 5 of 5 trials of rust.s1, and in none of rust.s0.")
    for server in ("rust.s0", "rust.s2"):
        run = with_changed(run, server, slowed)
    assert said(run, "one-sided") == {}


def test_what_slows_a_server_in_few_trials_is_a_note() -> None:
    def once(recording: Recording) -> Recording:
        return THROTTLED(recording) if recording.round == 0 else recording

    (found,) = said(with_changed(run_of(servers(20_000, 30_000, base=GOOD)), "rust.s1", once), "one-sided").values()
    assert found.grade is Grade.NOTE
    assert found.message == "A CPU quota was used up in 1 of 5 trials of rust.s1, and in none of rust.s0."


@pytest.mark.parametrize(
    ("own", "apart"),
    [
        ((2.0, 3.0), False),
        ((2.1, 3.0), True),
        ((0.0, 1.0), False),
        ((0.0, 0.9), True),
        ((1.5,), False),
        ((), False),
    ],
)
def test_lengths_that_touch_those_of_the_median_server_are_not_apart(own: tuple[float, ...], *, apart: bool) -> None:
    """The median server of the three has 1 to 2 in its trials; of an even number the lower one counts."""
    known: Any = [("long", (5.0, 6.0)), ("usual", (1.0, 2.0)), ("short", (0.1, 0.2))]
    assert str(_usual(known, own)) == ("usual" if apart else "None")
    assert str(_usual(known[:2], own)) == ("usual" if apart else "None")


# --- the rules by themselves


class _Server(SimpleNamespace):
    """One server is no other, however alike."""

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


def server(**changed: Any) -> Any:
    """A server as `SeenServer` shows it: idle, over HTTP/1.1 without TLS, whose answers have 100 bytes."""
    facts: dict[str, Any] = {
        "server_share": 0.4,
        "engine_share": 0.5,
        "protocol": {"http": "1.1"},
        "cell": SimpleNamespace(variant=SimpleNamespace(tls=None)),
        "reconnects": 0.0,
        "sizes": (100.0, 100.0),
        "bodies": (),
        "name": "s",
        "rate": 100.0,
    } | changed
    return _Server(**facts, known=lambda _metric: facts["rate"])


@pytest.mark.parametrize(
    ("low", "high", "known"),
    [(99.0, 102.0, True), (99.0, 102.1, False), (98.1, 101.0, True), (98.0, 101.0, False), (0.0, 101.0, False)],
)
def test_a_value_that_is_known_to_two_percent_may_be_equal_to_another(low: float, high: float, *, known: bool) -> None:
    estimate = Estimate(value=100.0, low=low, high=high, unit="1/s", n=5, method="m")
    cell = simulated_cell(load=SATURATE)
    seen = SeenServer(cell, {Metric.THROUGHPUT: estimate}, Counts(due=1), (), (), 5, 0.4, 0.5, ())
    assert seen.known(Metric.THROUGHPUT) == (100.0 if known else 0.0)
    assert seen.known(Metric.P50) == 0


@pytest.mark.parametrize(
    ("rates", "shares", "alike"),
    [
        ([100.0, 101.0, 102.0], [0.4] * 3, [0, 1, 2]),
        ([100.0, 101.0, 102.1], [0.4] * 3, [0, 1]),
        ([100.0, 110.0, 120.0], [0.4] * 3, [0]),
        ([100.0, 101.0, 110.0, 111.0], [0.4] * 4, [0, 1]),
        ([100.0, 101.0, 102.0], [0.84, 0.85, None], [0, 2]),
        ([0.0, 101.0, 102.0], [0.4] * 3, [1, 2]),
    ],
)
def test_idle_servers_are_alike_if_they_differ_by_two_percent_at_most(
    rates: list[float], shares: list[float | None], alike: list[int]
) -> None:
    """The slowest of groups of one size counts; who uses 85% of its cores sets its own rate."""
    pairs = zip(rates, shares, strict=True)
    servers_ = [server(rate=rate, server_share=share, place=at) for at, (rate, share) in enumerate(pairs)]
    assert [servers_.index(one) for one in _most_alike(servers_, Metric.THROUGHPUT)] == alike


@pytest.mark.parametrize(
    ("shares", "sign"), [([0.91, 0.92], True), ([0.90, 0.92], False), ([0.91, None], False), ([None, None], False)]
)
def test_an_engine_that_was_busy_for_all_of_them_is_a_sign(shares: list[float | None], *, sign: bool) -> None:
    alike = [server(engine_share=share, trials_with=None) for share in shares]
    for one in alike:
        one.trials_with = lambda _rule: 0
    assert bool(_sign(alike)) is sign


@pytest.mark.parametrize(
    ("changed", "comparable"),
    [
        ({}, True),
        ({"protocol": {"http": "2"}}, False),
        ({"sizes": ()}, False),
        ({"reconnects": 0.5}, True),
        ({"tls": True, "reconnects": 0.01}, True),
        ({"tls": True, "reconnects": 0.011}, False),
    ],
)
def test_bytes_are_compared_of_one_protocol_and_without_many_handshakes(
    changed: dict[str, Any], *, comparable: bool
) -> None:
    cell = SimpleNamespace(variant=SimpleNamespace(tls=changed.pop("tls", None)))
    assert _comparable(server(cell=cell, **changed), server()) is comparable


def test_bodies_of_a_request_are_compared_with_those_of_the_median_server() -> None:
    """0 bytes have a ratio too, so one is added to both."""
    cell = SimpleNamespace(scenario=SimpleNamespace(labels=("get", "put")))
    own = server(cell=cell, name="own", bodies=((9.0,), (99.0,)))
    usual = [server(name=f"usual{at}", bodies=((9.0,), (0.0,))) for at in range(2)]
    without = server(name="without", bodies=((), ()))
    among: Any = SimpleNamespace(servers=(own, *usual, without, server()), own=own)
    assert _body_sizes(among, 0) is None
    said = _body_sizes(among, 1)
    assert said is not None
    assert said.value == pytest.approx(np.log(100))
    assert said.message.startswith("The body of an answer to put has 0 bytes from usual0, 99 from own:")
    near: Any = SimpleNamespace(servers=(own, server(name="near", bodies=((9.0,), (98.5,)))), own=own)
    assert _body_sizes(near, 1) is None, "half a percent"
