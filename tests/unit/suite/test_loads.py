"""Loads as they are written: users and rates, stages, pace, replayed arrivals; and every mistake in them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from redline.model import Closed, Load, LoadStage, Open, Think
from redline.suite import Overrides, make_plan
from redline.suite.load_text import load_text
from tests.fakes.catalogues import SUITE, problems_of, suite_of

S = 1_000_000_000
LOAD = "{closed: {users: 64}, for: 1s}"


def load_of(folder: Path, written: str) -> Load:
    return suite_of(folder, SUITE.replace(LOAD, written)).loads[0]


@pytest.mark.parametrize(
    ("written", "shape"),
    [
        ("closed: {users: 64, depth: 16}", Closed(users=64, depth=16)),
        ("closed: {users: 6, think: 100ms}", Closed(users=6, think=Think(mean_ns=S // 10))),
        (
            "closed: {users: 6, think: {exponential: 1s}}",
            Closed(users=6, think=Think(distribution="exponential", mean_ns=S)),
        ),
        ("closed: {users: 6, pace: 2/s}", Closed(users=6, pace_per_s=2)),
        ("closed: {users: 6, requests_per_connection: 100}", Closed(users=6, requests_per_connection=100)),
        (
            "closed: {users: 0, ramp: {to: 250000, over: 30s}}",
            Closed(users=0, stages=(LoadStage(to=250_000, over_ns=30 * S),)),
        ),
        (
            "closed: {users: 1, stages: [{to: 10, over: 10s}, {to: 10, over: 60s}, {to: 0, over: 0s}]}",
            Closed(
                users=1,
                stages=(LoadStage(to=10, over_ns=10 * S), LoadStage(to=10, over_ns=60 * S), LoadStage(to=0, over_ns=0)),
            ),
        ),
        (
            "open: {rate: 0, ramp: {to: 300/min, over: 1m}}",
            Open(rate_per_s=0, connections=64, stages=(LoadStage(to=5, over_ns=60 * S),)),
        ),
        (
            "open: {rate: 5, arrivals: uniform, connections: 9, connections_at_start: 8, depth: 4}",
            Open(
                rate_per_s=5,
                arrivals="uniform",
                connections=9,
                connections_at_start=8,
                depth=4,
            ),
        ),
        (
            "open: {rate: 5, requests_per_connection: 7}",
            Open(rate_per_s=5, connections=64, requests_per_connection=7),
        ),
        ("open: {rate: 5, connections: 1000000}", Open(rate_per_s=5, connections=1_000_000)),
    ],
)
def test_what_can_be_written(tmp_path: Path, written: str, shape: Closed | Open) -> None:
    load = load_of(tmp_path, f"{{{written}, for: 2m}}")
    assert load.shape == shape
    assert load.count is None
    assert Load.model_validate_json(load.model_dump_json()) == load


def test_a_count_stops_it_too(tmp_path: Path) -> None:
    assert load_of(tmp_path, "{closed: {users: 1}, for: 1s, count: 100000}").count == 100_000


def test_arrivals_are_replayed_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("# recorded\n0\n0.25  # s\n250ms\n1s\n\n1.5\n")
    load = load_of(tmp_path, "{open: {arrivals: {replay: times.txt}, connections: 3}, for: 2s}")
    times = (0, S // 4, S // 4, S, 3 * S // 2)
    assert load.shape == Open(arrivals="replayed", replayed_ns=times, connections=3)


def test_requests_are_replayed_from_a_file_at_a_speed(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("0 1\n1s 1 # again\n")
    for speed, factor in (("2x", 2), ("0.5", 0.5)):
        load = load_of(tmp_path, f"{{open: {{arrivals: {{replay: times.txt, speed: {speed}}}}}, for: 2s}}")
        assert load.open_shape.replayed_ns == (0, S / factor)
        assert load.open_shape.replayed_requests == (0, 0)


def test_other_arrivals_make_another_cell(tmp_path: Path) -> None:
    def cell_load() -> Load:
        return load_of(tmp_path, "{open: {arrivals: {replay: times.txt}}, for: 2s}")

    (tmp_path / "times.txt").write_text("0\n1\n")
    before = cell_load()
    (tmp_path / "times.txt").write_text("0\n1.000000001\n")
    assert cell_load() != before


@pytest.mark.parametrize(
    ("content", "says", "hint"),
    [
        ("1\n0.5\n", "times.txt:2:1: this time is before the previous time", "sort the file"),
        ("soon\n", "times.txt:1:1: this is not a time", "unit"),
        ("-1\n", "times.txt:1:1: this time is not between 0 and a day", "one time per line"),
        ("1;2\n", "times.txt:1:1: this is not a time", "one time per line"),
        ("1e999999\n", "times.txt:1:1: this is not a time", ""),
        ("25h\n", "times.txt:1:1: this is not a time of at most a day", ""),
        ("nan\n", "times.txt:1:1: this is not a time", ""),
        ("# nothing\n", "has no times", "one time per line"),
        ("0 0\n", "times.txt:1:1: this is not the number of a request", "from 1 on"),
        ("0 a\n", "times.txt:1:1: this is not the number of a request", "from 1 on"),
        ("0 1\n1\n", "times.txt:2:1: this line has other columns", "one time per line"),
        ("0\n1 1\n", "times.txt:2:1: this line has other columns", "one time per line"),
        ("0 1 1\n", "times.txt:1:1: this line has other columns", "one time per line"),
        ("0 2\n", "times.txt has request 2, and the scenario", "the list of requests that was written with it"),
        ("0\n" * 200_001, "has 200001 times; at most 200000", "a part of it"),
    ],
)
def test_what_is_wrong_with_a_file_of_times(tmp_path: Path, content: str, says: str, hint: str) -> None:
    (tmp_path / "times.txt").write_text(content)
    (problem,) = problems_of(tmp_path, SUITE.replace(LOAD, "{open: {arrivals: {replay: times.txt}}, for: 2s}"))
    assert says in problem.message
    assert hint in problem.hint
    assert problem.place is not None
    assert problem.place.field == "loads.saturate.open.arrivals.replay"


def test_a_file_of_times_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "times.txt").write_text("0")
    (problem,) = problems_of(tmp_path, SUITE.replace(LOAD, "{open: {arrivals: {replay: tines.txt}}, for: 2s}"))
    assert "there is no file" in problem.message
    assert problem.hint == "did you mean `times.txt`?"


@pytest.mark.parametrize(
    ("written", "says", "hint", "field"),
    [
        ("closed: {users: 1, think: 1s, pace: 2/s}", "a think time or a pace, not both", "leave out", "closed.pace"),
        (
            "closed: {users: 1, depth: 2, pace: 2/s}",
            "have one request in flight",
            "leave out the depth or the pace",
            "closed.depth",
        ),
        ("closed: {users: 1, depth: 0}", "at least 1", "in flight", "closed.depth"),
        ("closed: {users: 1, think: 0s}", "at least 1ns", "do not think", "closed.think"),
        ("closed: {users: 1, think: {exponential: 5}}", "`5` has no unit", "write `5s`", "closed.think.exponential"),
        (
            "closed: {users: 1, think: {exponental: 5s}}",
            "unknown key `exponental`",
            "did you mean `exponential`?",
            "closed.think.exponental",
        ),
        ("closed: {users: 1, pace: 0}", "a rate of 0", "5000/s", "closed.pace"),
        ("closed: {users: 0, ramp: {to: 0, over: 1s}}", "without users", "a stage to more", "closed.users"),
        ("closed: {users: 1, ramp: {to: 2}}", "`over` is missing", "`over: 10s`", "closed.ramp.over"),
        ("closed: {users: 1, ramp: {to: 1.5, over: 1s}}", "a whole number", "users at the end", "closed.ramp.to"),
        (
            "closed: {users: 1, ramp: {to: 2, over: 1s}, stages: [{to: 2, over: 1s}]}",
            "not both",
            "first stage",
            "closed.stages",
        ),
        (
            "closed: {users: 1, ramp: {to: 2, over: 3m}}",
            "the stages take 180s, longer than the",
            "180s or longer",
            "for",
        ),
        ("closed: {users: 1}, count: 0", "at least 1", "were due", "count"),
        ("open: {}", "`rate` is missing", "`rate: 5000`", "open"),
        ("open: {rate: 0}", "a rate of 0", "or a stage to a rate", "open.rate"),
        ("open: {rate: 0, stages: [{to: 0, over: 1s}]}", "a rate of 0", "or a stage to a rate", "open.rate"),
        ("open: {rate: 1, ramp: {to: x, over: 1s}}", "`x` is not a rate", "5000/s", "open.ramp.to"),
        ("open: {rate: 1, arrivals: {replay: f}}", "have times, not a rate", "leave out the rate", "open.rate"),
        (
            "open: {rate: 1, arrivals: {repaly: f}}",
            "unknown key `repaly`",
            "did you mean `replay`?",
            "open.arrivals.repaly",
        ),
        (
            "open: {rate: 1, connections: 2, connections_at_start: 3}",
            "at most the number of connections, 2",
            "fewer",
            "open.connections_at_start",
        ),
        ("open: {rate: 1, requests_per_connection: 0}", "at least 1", "replace", "open.requests_per_connection"),
    ],
)
def test_what_cannot_be_written(tmp_path: Path, written: str, says: str, hint: str, field: str) -> None:
    text = SUITE.replace(LOAD, f"{{{written}, for: 2m}}")
    problems = problems_of(tmp_path, text)
    found = [problem for problem in problems if says in problem.message and hint in problem.hint]
    assert [one.place and one.place.field for one in found] == [f"loads.saturate.{field}"], problems


def test_overrides_leave_stages_alone(tmp_path: Path) -> None:
    text = SUITE.replace(LOAD, "{closed: {users: 1, ramp: {to: 9, over: 10s}}, for: 20s}")
    (users,) = problems_of(tmp_path, text, Overrides(users=4))
    assert "change in stages" in users.message
    (short,) = problems_of(tmp_path, text, Overrides(duration_ns=S))
    assert "take 10s" in short.message
    assert suite_of(tmp_path, text, Overrides(duration_ns=30 * S)).loads[0].duration_ns == 30 * S


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Closed(users=1), "closed, 1 user, 60s"),
        (Closed(users=1, requests_per_connection=1), "closed, 1 user, 1 request a connection, 60s"),
        (
            Closed(users=64, depth=16, requests_per_connection=1000),
            "closed, 64 users, 16 deep, 1,000 requests a connection, 60s",
        ),
        (
            Closed(users=2, think=Think(distribution="exponential", mean_ns=S)),
            "closed, 2 users, thinking 1.00 s (exponential), 60s",
        ),
        (Closed(users=2, pace_per_s=0.5), "closed, 2 users, 0.5/s each, 60s"),
        (Closed(users=0, stages=(LoadStage(to=1000, over_ns=S),)), "closed, 0 users to 1,000 over 1s, 60s"),
        (Open(rate_per_s=5000, connections=64), "open, 5,000/s poisson, 64 connections, 60s"),
        (
            Open(rate_per_s=1, connections=4, connections_at_start=2, depth=3, stages=(LoadStage(to=9, over_ns=0),)),
            "open, 1/s to 9/s at once poisson, 4 connections (2 at the start), 3 deep, 60s",
        ),
        (Open(arrivals="replayed", replayed_ns=(0, 1), connections=4), "open, 2 replayed arrivals, 4 connections, 60s"),
    ],
)
def test_loads_in_words(shape: Closed | Open, text: str) -> None:
    assert load_text(Load(name="a", shape=shape, duration_ns=60 * S)) == text


def test_many_stages_and_a_count_in_words() -> None:
    shape = Closed(users=1, stages=tuple(LoadStage(to=n, over_ns=S) for n in range(5)))
    text = load_text(Load(name="a", shape=shape, duration_ns=S, count=1000))
    assert text == "closed, 1 user to 0 over 1s, to 1 over 1s, and 2 stages more, to 4 over 1s, 1s or 1,000 requests"


def test_users_on_average() -> None:
    ramp = Closed(users=0, stages=(LoadStage(to=100, over_ns=10 * S),))
    assert ramp.mean_users(10 * S) == 50
    assert ramp.mean_users(20 * S) == 75
    assert ramp.mean_users(5 * S) == 25
    step = Closed(users=10, stages=(LoadStage(to=10, over_ns=S), LoadStage(to=30, over_ns=0)))
    assert step.mean_users(2 * S) == 20
    assert Closed(users=7).mean_users(S) == 7


stages = st.lists(st.builds(LoadStage, to=st.integers(0, 1000), over_ns=st.integers(0, 10**12)), max_size=5)


@given(st.integers(1, 1000), stages, st.integers(1, 10**13))
def test_the_average_is_between_the_least_and_the_most(users: int, steps: list[LoadStage], over_ns: int) -> None:
    shape = Closed(users=users, stages=tuple(steps))
    levels = [users, *(stage.to for stage in steps)]
    assert min(levels) - 1e-6 <= shape.mean_users(over_ns) <= shape.most_users * (1 + 1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"connections": 1},
        {"rate_per_s": 5, "connections": 1, "arrivals": "replayed", "replayed_ns": [1]},
        {"connections": 1, "arrivals": "replayed"},
        {"connections": 1, "arrivals": "replayed", "replayed_ns": [2, 1]},
        {"connections": 1, "arrivals": "replayed", "replayed_ns": [2], "stages": [{"to": 1, "over_ns": 1}]},
        {"connections": 1, "rate_per_s": 0},
    ],
)
def test_an_open_load_that_cannot_be_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Open.model_validate(wrong)


@pytest.mark.parametrize(
    ("written", "warmups_s"),
    [
        ("", {"few": 0.0, "long": 1.0}),
        ("warmup: 2s", {"few": 2.0, "long": 2.0}),
        ("warmup_by: {users: 2}", {"few": 1.0, "long": 1.0}),
    ],
)
def test_loads_of_so_many_requests_are_warmed_up_only_when_the_suite_says_so(
    tmp_path: Path, written: str, warmups_s: dict[str, float]
) -> None:
    loads = "few: {closed: {users: 8}, for: 10s, count: 200}\n  long: {closed: {users: 8}, for: 10s}"
    suite = suite_of(tmp_path, f"{SUITE.replace(f'saturate: {LOAD}', loads)}\n{written}\n")
    cells = make_plan(suite).cells.values()
    assert {cell.load.name: cell.warmup_ns / S for cell in cells} == warmups_s


def test_a_warm_up_that_a_flag_asks_for_is_one_of_counted_loads_too(tmp_path: Path) -> None:
    text = SUITE.replace(LOAD, "{closed: {users: 8}, for: 10s, count: 200}")
    cells = make_plan(suite_of(tmp_path, text, Overrides(warmup_ns=3 * S))).cells.values()
    assert {cell.warmup_ns for cell in cells} == {3 * S}
