"""Journeys against the oracle's logins: what the engine says of steps, users and due times, and what the server saw."""

from pathlib import Path

import pytest

from bench.rig import AskedOf, SeenByOracle, drive, running
from redline.model import Closed, Expected, Load, Open, Request, Scenario, Traffic
from redline.model.catalogue import HttpVersion
from redline.model.exchange import Body
from redline.model.journey import Journey, JourneyStep, Rows, TakenValue, columns_of, read_table, sha256_of_rows
from redline.model.journey_traffic import JourneyTraffic
from redline.model.load import Think

pytestmark = [pytest.mark.e2e, pytest.mark.truth]

MS = 1_000_000
USERS, JOURNEYS, STEPS = 3, 200, ("a", "b", "c")
VERSIONS: tuple[HttpVersion, ...] = ("1.1", "2")
CLOSED = Load(name="closed", shape=Closed(users=USERS), duration_ns=20_000 * MS, count=JOURNEYS)


def scenario(folder: Path, think_ms: int = 0, again_at: tuple[int, ...] = ()) -> Scenario:
    """A login by `once`, and three pages that are right with the user's cookie and the token of its login alone."""
    file = folder / "users.csv"
    file.write_text("name\n" + "".join(f"user{number}\n" for number in range(64)))
    table = read_table(file.read_text())
    digest = sha256_of_rows(columns_of(table, ("name",)))
    rows = Rows(file=str(file), columns=("name",), count=len(table.values), use="user", sha256=digest)
    think = Think(mean_ns=think_ms * MS, distribution="fixed") if think_ms else None
    login = Request(
        name="login", method="POST", path="/login", body=Body(text="{row:name}"), expect=Expected(under_load="status")
    )
    pages = (
        Request(name=name, path=f"/{name}", headers={"X-Token": "{take:token}"}, expect=Expected(body=name))
        for name in STEPS
    )
    journey = Journey(
        once=(JourneyStep(take=(TakenValue(name="token", from_json="/token"),)),),
        again_at=again_at,
        steps=(JourneyStep(), JourneyStep(think=think), JourneyStep(think=think)),
        rows=rows,
    )
    return Scenario(name="Journey", request=login, others=tuple(pages), journey=journey)


def observe(
    binary: Path, arguments: tuple[str, ...], load: Load, asked: Scenario, http: HttpVersion
) -> tuple[Traffic, JourneyTraffic, SeenByOracle]:
    """A load without a warm-up. Both sides count the same, by step too, but for the logins beforehand."""
    with running(binary, *arguments, "--sessions", "--report") as oracle:
        traffic = drive(oracle, load, AskedOf(asked, http), warmup_ns=0)
    seen, made, counts = oracle.seen, traffic.journeys, traffic.counts
    assert seen is not None
    assert made is not None
    users = load.shape.users if isinstance(load.shape, Closed) else load.shape.connections
    assert made.due == made.completed + sum(made.abandoned) + made.unfinished
    assert seen.requests + seen.passed_over == counts.sent + counts.retried + counts.resent + users
    assert seen.connections == users + counts.reconnects
    by_step = {step.name: part.outcomes.total for step, part in zip(asked.requests, traffic.requests, strict=True)}
    assert seen.targets == {**by_step, "login": by_step["login"] + users}
    return traffic, made, seen


@pytest.mark.parametrize("http", VERSIONS)
def test_every_step_of_every_user_is_counted_on_both_sides(oracle: Path, tmp_path: Path, http: HttpVersion) -> None:
    traffic, made, seen = observe(oracle, ("null",), CLOSED, scenario(tmp_path), http)
    assert (made.due, made.completed, made.again, made.response.count) == (JOURNEYS, JOURNEYS, 0, JOURNEYS)
    assert seen.statuses == {"200": JOURNEYS * len(STEPS) + USERS}
    assert traffic.counts.outcomes.ok == JOURNEYS * len(STEPS)
    # Each user logs in as its own row says, and walks whole journeys.
    assert {*seen.users} == {f"user{number}" for number in range(USERS)}
    assert sum(seen.users.values()) == JOURNEYS * len(STEPS) + USERS


@pytest.mark.parametrize("http", VERSIONS)
def test_sessions_that_end_are_refreshed(oracle: Path, tmp_path: Path, http: HttpVersion) -> None:
    arguments = ("null", "--session-requests", "7")
    traffic, made, seen = observe(oracle, arguments, CLOSED, scenario(tmp_path, again_at=(401,)), http)
    assert made.completed == JOURNEYS
    assert made.again == seen.statuses["401"] > 0
    assert traffic.requests[0].outcomes.ok == made.again
    # The step that was refused is sent again: so often more than journeys.
    assert sum(seen.targets[name] for name in STEPS) == JOURNEYS * len(STEPS) + made.again


@pytest.mark.parametrize("http", VERSIONS)
def test_sessions_that_end_abandon_journeys(oracle: Path, tmp_path: Path, http: HttpVersion) -> None:
    _, made, seen = observe(oracle, ("null", "--session-requests", "7"), CLOSED, scenario(tmp_path), http)
    # Seven answers of each user are two journeys and a step.
    assert made.completed == 2 * USERS
    assert sum(made.abandoned) == JOURNEYS - 2 * USERS == seen.statuses["401"]
    assert made.abandoned == (0, JOURNEYS - 3 * USERS, USERS, 0)


@pytest.mark.parametrize("http", VERSIONS)
def test_journeys_begin_at_their_rate_and_steps_are_due_after_their_think_times(
    oracle: Path, tmp_path: Path, http: HttpVersion
) -> None:
    load = Load(name="open", shape=Open(rate_per_s=50, arrivals="uniform", connections=32), duration_ns=2_000 * MS)
    asked = scenario(tmp_path, think_ms=100)
    traffic, made, _ = observe(oracle, ("fixed", "--delay", "5ms"), load, asked, http)
    assert made.due == 100
    assert made.completed > 0
    # The delay is in the response time of every step, and think times are in none of them.
    for part in traffic.requests[1:]:
        assert part.response.quantile_ns(0) >= 5 * MS
        assert part.response.quantile_ns(0.5) < 100 * MS
    assert made.response.quantile_ns(0) >= 15 * MS
    assert made.response.quantile_ns(0.5) < 200 * MS
