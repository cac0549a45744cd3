"""How many requests a server gets: as many as were asked for, and all others are named."""

import shlex

import pytest

import redline as api
from bench.rig import Oracle, SeenByOracle, build_oracle, running
from tests.e2e.conftest import Redline

pytestmark = pytest.mark.e2e

ONE_MORE = {"check": 1, "warm_up": 0, "warm_up_ns": 0}


def seen_by(oracle: Oracle) -> SeenByOracle:
    assert oracle.seen is not None, "it has ended"
    return oracle.seen


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        ("--count 500", 500),
        ("--count 500 -X POST --body row", 500),
        ("--count 37 -R 1000", 37),
        ("--count 501 -c 4 --depth 4 -t 2", 501),
        ("--count 300 --http2", 300),
        ("--like 'ab -n 500 -c 10 {url}'", 500),
        ("--like 'hey -n 200 -c 10 {url}'", 200),
    ],
)
def test_a_load_of_so_many_requests_sends_no_others(redline: Redline, arguments: str, count: int) -> None:
    with running(build_oracle(), "null", "--report") as oracle:
        given = shlex.split(arguments.format(url=oracle.url))
        target = [] if "--like" in given else [oracle.url]
        done = redline("load", *target, "--json", *given)
    assert done.json["sent"] == ONE_MORE | {"measured": count}, done.err
    assert seen_by(oracle).requests == 1 + count


def test_in_python_a_count_sends_no_others_either() -> None:
    with running(build_oracle(), "null", "--report") as oracle:
        api.load(oracle.url, count=500)
    assert seen_by(oracle).requests == 501


@pytest.mark.parametrize(("written", "warms"), [("", False), ("warmup: 300ms\n", True), ("warmup: 0s\n", False)])
def test_a_suite_warms_such_a_load_up_only_when_it_says_so(redline: Redline, written: str, warms: bool) -> None:
    with running(build_oracle(), "null", "--report") as oracle:
        suite = f"""{written}trials: 1
servers: [{{url: "{oracle.url.removesuffix("/path0")}"}}]
scenarios: [{{name: asked, get: /path0}}]
loads: {{few: {{closed: {{users: 8}}, for: 10s, count: 200}}}}
"""
        (redline.folder / "suite.yaml").write_text(suite)
        done = redline("run", "suite.yaml", "-o", "made", "--quiet")
        assert done.code in (0, 1), done.err
    assert (seen_by(oracle).requests > 201) == warms


def test_what_a_warm_up_sends_is_said(redline: Redline) -> None:
    with running(build_oracle(), "null", "--report") as oracle:
        done = redline("load", oracle.url, "--json", "-c", "4", "--count", "100", "--warmup", "300ms")
    sent = done.json["sent"]
    assert sent["measured"] == 100
    assert sent["warm_up"] > 0
    assert sent["warm_up_ns"] == 300_000_000
    assert seen_by(oracle).requests == sent["check"] + sent["warm_up"] + sent["measured"]


def test_the_terminal_counts_all_that_were_sent(redline: Redline) -> None:
    program = build_oracle()
    done = redline("load", f"{program} null --port {{port}}", "--path", "/path0", "--count", "50", "-c", "5")
    assert "requests  1 to check the answer, 50 measured" in done.out, (done.out, done.err)
