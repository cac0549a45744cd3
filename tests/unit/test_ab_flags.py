"""What the flags of `redline ab` mean, and what is said of those that mean nothing."""

from typing import Any

import pytest

from redline.cli.command_line import AbFlags
from redline.cli.commands.ab import read_plan
from redline.errors import UsageError
from redline.model import AttachedServer, Closed, Open
from redline.model.duet import DuetPlan
from redline.suite.project import Project, read_project

S = 1_000_000_000
A, B = "./old --port {port}", "./new --port={port} '--name=a b'"
URL_A, URL_B = "http://127.0.0.1:1/x", "http://127.0.0.1:2/x"


PROJECT = read_project("start: java -jar app.jar {port}\ncheck: {post: /items, body: x}\n", "redline.yaml")


def plan(
    a: str | None = A, b: str | None = B, lasts_ns: int = 60 * S, project: Project | None = None, **given: Any
) -> DuetPlan:
    return read_plan(AbFlags(a=a, b=b, **given), lasts_ns, project)


def test_each_command_is_a_server() -> None:
    made = plan(path="/items")
    assert [cell.variant.catalogued.start.command for cell in made.cells] == [
        ("./old", "--port", "{port}"),
        ("./new", "--port={port}", "--name=a b"),
    ]
    assert {cell.scenario.requests[0].path for cell in made.cells} == {"/items"}
    assert {cell.load.shape for cell in made.cells} == {Closed(users=64)}
    assert not made.once


def test_revisions_are_started_and_asked_as_their_project_says() -> None:
    made = plan(None, None, project=PROJECT)
    assert [cell.variant.catalogued.name for cell in made.cells] == ["A", "B"]
    assert {cell.variant.catalogued.start.command for cell in made.cells} == {("java", "-jar", "app.jar", "{port}")}
    assert {cell.variant.runtime for cell in made.cells} == {"jvm"}
    assert {cell.scenario.requests[0].method for cell in made.cells} == {"POST"}


@pytest.mark.parametrize(("lasts_s", "start_s"), [(1, 3), (5, 3), (30, 10), (60, 20), (120, 30), (300, 60), (900, 60)])
@pytest.mark.parametrize("command", [A, "java -jar app.jar {port}"])
def test_whatever_is_started_is_warmed_up_until_it_is_warm_and_then_measured(
    lasts_s: int, start_s: int, command: str
) -> None:
    """Nobody knows what a command runs, so its start may be long; what is warm soon has more of them."""
    for cell in plan(command, lasts_ns=lasts_s * S).cells:
        assert cell.warmup_detect
        assert 3 * (cell.warmup_ns + cell.load.duration_ns) == pytest.approx(start_s * S, rel=0.01)
        assert cell.warmup_ns == pytest.approx(5 * cell.load.duration_ns, rel=0.02)


def test_servers_that_run_have_one_start_for_all_of_the_time() -> None:
    made = plan(URL_A, URL_B, load="open:2000/s")
    assert [cell.variant.entry for cell in made.cells] == [
        AttachedServer(host="127.0.0.1", port=port) for port in (1, 2)
    ]
    assert made.once
    with_control = 3
    assert with_control * (made.cells[0].load.duration_ns + made.cells[0].warmup_ns) == pytest.approx(60 * S, rel=1e-3)
    assert made.cells[0].load.duration_ns == pytest.approx(3 * made.cells[0].warmup_ns, rel=1e-3)
    assert made.cells[0].load.shape == Open(rate_per_s=2000, connections=64)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"a": "./old"}, "A: './old' has no {port}"),
        ({"b": "./new {prot} {port}"}, "B: {prot} means nothing"),
        ({"b": "'./new {port}"}, "is not a command"),
        ({"b": URL_B}, "a URL and the other a command"),
        ({"a": URL_A, "b": "http://127.0.0.1:2/y"}, "A is asked for /x and B for /y"),
        ({"a": URL_A, "b": URL_B, "path": "/x"}, "--path /x: the URLs name their paths"),
        ({"load": "closed"}, "--load closed is not a load"),
        ({"load": "closed:0"}, "--load closed:0: a load without users"),
        ({"load": "open:fast"}, "--load open:fast: `fast` is not a rate"),
        ({"seed": -1}, "--seed -1: must be at least 0"),
        ({"status": 99}, "--status 99: "),
        ({"a": None, "b": None}, "there are no two servers to compare"),
        ({"b": None}, "there are no two servers to compare"),
        ({"project": PROJECT}, "--git names both sides, and so does ./old"),
        ({"project": PROJECT, "a": None, "path": "/x"}, "`check` in redline.yaml says what is requested"),
        ({"project": PROJECT, "a": None, "status": 200}, "`check` in redline.yaml says what is requested"),
    ],
)
def test_what_means_nothing_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError) as refused:
        plan(**given)
    assert says in str(refused.value)
