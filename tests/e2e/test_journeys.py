"""Journeys on a shop with a login: closed and open, in comparisons and searches, and what is said of them."""

import csv
import io
from pathlib import Path

import pytest

from redline.suite.urls import base_of
from tests.e2e.compared import compared
from tests.e2e.conftest import Redline
from tests.fakes import targets
from tests.fakes.shops import Shop

pytestmark = pytest.mark.e2e

JOURNEY = """\
journey:
  rows: {file: users.csv, use: user}
  once:
    - {name: log in, post: /login, json: {user: "{row:name}", password: "{row:password}"},
       take: {token: {json: /token}}}
  again_at: 401
  steps:
    - {name: items, get: /items, headers: {X-Token: "{take:token}"}, take: {first: {json: /items/0/id}}}
    - {name: item, think: 5ms, get: "/items/{take:first}", headers: {X-Token: "{take:token}"}}
    - {name: never, when: {item: 404}, get: /never}
    - {name: buy, think: {exponential: 5ms}, post: /orders, headers: {X-Token: "{take:token}"},
       json: {item: "{take:first}"}, expect: {status: 201}}
"""
SEARCH = ("-d", "1s", "--warmup", "100ms", "--probes", "2", "-c", "16", "--objective", "p99 < 1s")
SHORT = ("-d", "500ms", "--warmup", "100ms", "-c", "4", "--json")


def write_files(folder: Path, journey: str = JOURNEY) -> None:
    (folder / "users.csv").write_text("name,password\n" + "".join(f"u{at},pw-u{at}\n" for at in range(64)))
    (folder / "checkout.yaml").write_text(journey)


@pytest.mark.parametrize("how", [(), ("-R", "30")])
def test_users_take_a_journey(how: tuple[str, ...], redline: Redline, tmp_path: Path) -> None:
    write_files(tmp_path)
    shop = Shop()
    with targets.target(shop) as url:
        done = redline("load", base_of(url), "--requests", "checkout.yaml", *SHORT, *how, "-o", "run")
    done.measured()
    assert {outcome for outcome, count in done.json["counts"]["outcomes"].items() if count} <= {
        "ok",
        "in_flight",
        "unsent",
    }
    made = done.json["journeys"]
    assert made["completed"] > 0
    assert made["begun"] == made["completed"] + made["unfinished"]
    assert made["abandoned"] == {}
    assert made["skipped"].keys() == {"never"}
    assert [request["request"] for request in done.json["requests"]] == ["items", "item", "never", "buy"]
    assert {status for _, status in shop.asked} == {200, 201}
    assert shop.asked["/orders", 201] > 0
    assert shop.asked["/items/i%2F7%20%C3%BC", 200] + shop.asked["/items/i/7%20%C3%BC", 200] > 0
    assert shop.users.keys() == {"u0", "u1", "u2", "u3"}
    stored = [file.read_bytes() for file in tmp_path.joinpath("run").rglob("*") if file.is_file()]
    assert stored
    assert not any(b"pw-u" in content for content in stored)
    assert "pw-u" not in done.err + done.out
    # Counts are sure whether or not the times are.
    assert "journeys" in redline("report", "run", "--format", "md").out.lower()
    sheet = io.StringIO(redline("report", "run", "--format", "csv").out)
    rows = {row["metric"]: row["value"] for row in csv.DictReader(sheet)}
    assert int(rows["journeys-completed"]) == made["completed"]
    assert int(rows["skipped:never"]) > 0


def test_a_session_that_ends_is_begun_again(redline: Redline, tmp_path: Path) -> None:
    write_files(tmp_path)
    shop = Shop(uses=10)
    with targets.target(shop) as url:
        done = redline("load", base_of(url), "--requests", "checkout.yaml", *SHORT).measured()
    assert done.json["journeys"]["again"] > 0
    assert done.json["requests"][0]["request"] == "log in"
    assert done.json["counts"]["outcomes"].get("unexpected_status", 0) == 0


def test_an_abandoned_journey_is_named_by_its_step(redline: Redline, tmp_path: Path) -> None:
    write_files(tmp_path, JOURNEY.replace("  again_at: 401\n", ""))
    with targets.target(Shop(uses=8)) as url:
        done = redline("load", base_of(url), "--requests", "checkout.yaml", *SHORT)
    made = done.json["journeys"]
    assert sum(made["abandoned"].values()) > 0
    assert made["begun"] == made["completed"] + sum(made["abandoned"].values()) + made["unfinished"]


@pytest.mark.parametrize(
    ("written", "instead", "says"),
    [
        ("status: 201", "status: 200", "step `buy`, POST /orders: status 201 in place of 200"),
        (
            "/items/0/id",
            "/items/1/id",
            'step `items`, GET /items: unexpected body: no value at "/items/1/id"',
        ),
        ("{row:password}", "wrong", "step `log in`, POST /login: status 403 in place of 200"),
    ],
)
def test_a_wrong_step_is_named_before_the_load(
    written: str, instead: str, says: str, redline: Redline, tmp_path: Path
) -> None:
    write_files(tmp_path, JOURNEY.replace(written, instead))
    shop = Shop()
    with targets.target(shop) as url:
        done = redline("load", base_of(url), "--requests", "checkout.yaml", *SHORT)
        searched = redline("limit", base_of(url), "--requests", "checkout.yaml", *SEARCH)
    assert done.code == searched.code == 1
    assert says in done.err
    assert says in f"{searched.out}{searched.err}"
    assert shop.asked.total() < 20


@pytest.mark.long
def test_journeys_are_compared_and_searched(redline: Redline, tmp_path: Path) -> None:
    write_files(tmp_path)
    with targets.target(Shop()) as a, targets.target(Shop()) as b:
        sides = (base_of(a), base_of(b))
        done = compared(redline, *sides, "--requests", "checkout.yaml", "--load", "closed:4", lengths=("6s", "24s"))
        searched = redline("limit", sides[0], "--requests", "checkout.yaml", *SEARCH, "--json")
    assert done.code == 0, f"{done.err}{done.out}"
    made = [cell["journeys"] for cell in done.json["cells"]]
    assert len(made) == 2
    assert all(journeys["begun_per_s"] is None and journeys["completed"] > 0 for journeys in made)
    assert not any(journeys["abandoned"] for journeys in made)
    assert searched.code in {0, 1}, searched.err
    assert searched.json["cells"][0]["probes"]
