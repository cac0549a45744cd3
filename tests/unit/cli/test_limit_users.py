"""`redline limit --by-users`: from flags or a suite to reports that speak of users, with fakes behind the ports."""

import csv
import io
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from redline.api.results import SearchResult
from redline.asking.search import search_document
from redline.asking.written import plain
from redline.cli.command_line import app
from redline.errors import UsageError
from redline.extras.exports.benchmarks import bmf
from redline.limits.probe_loads import under_probe, with_users
from redline.model import Cell, Closed, Load, Traffic
from redline.model.limits import LimitReport
from redline.ports import Drive, Endpoint, Placement
from redline.render import RENDERERS
from redline.report.outcomes import outcomes
from redline.running import assembly
from redline.running.assembly import Workbench
from redline.running.record import Tools
from tests.e2e.lab import Lab
from tests.fakes import asks
from tests.fakes.behaviour import GOOD
from tests.fakes.plugins import FakeLauncher, FakeServer, WithoutDuets
from tests.fakes.recordings import simulated_cell, simulated_environment, simulated_recording

A, B = "./old --port {port}", "./new --port {port}"
SECOND = 1_000_000_000
HELD = {"A": 40, "B": 90, "old": 40, "good.one": 40}
"""With how many users each server still answers at once, in a few milliseconds."""


@dataclass
class Servers(WithoutDuets):
    """Servers that answer at once up to so many users, and few of them with more; each load has users alone."""

    users: list[int] = field(default_factory=list)

    def verify(self, cell: Cell, endpoint: Endpoint) -> str | None:
        return None

    def drive(self, drive: Drive) -> Traffic:
        shape = drive.cell.load.shape
        assert isinstance(shape, Closed)
        self.users.append(shape.users)
        slow = replace(GOOD, rate_per_s=400.0) if shape.users > HELD[drive.cell.variant.slug] else GOOD
        short = drive.cell.load.lasting(SECOND)
        traffic = simulated_recording(drive.cell.under(short), slow, seed=drive.seed).traffic
        assert traffic is not None
        return traffic


Run = Callable[..., Result]


@pytest.fixture
def redline(monkeypatch: pytest.MonkeyPatch) -> Run:
    def run(*args: str | Path) -> Result:
        tools = Tools(FakeLauncher([], FakeServer(facts=None)), Servers(), lambda _server: (), Placement())
        bench = Workbench(tools, simulated_environment())
        monkeypatch.setattr(assembly, "workbench", lambda *_: bench)
        return CliRunner(env={"COLUMNS": "200"}).invoke(app, ["limit", *map(str, args)])

    return run


ASKED = ("--by-users", "--objective", "p99 < 20ms", "--probes", "20", "-d", "1s", "--warmup", "1s")


@pytest.fixture
def found(redline: Run, tmp_path: Path) -> LimitReport:
    done = redline(A, B, *ASKED, "-o", tmp_path / "found", "--json")
    assert done.exit_code == 0, (done.stderr, done.exception)
    return LimitReport.model_validate_json(done.stdout)


def test_the_most_users_of_each_server_are_found_and_compared(found: LimitReport) -> None:
    for cell, held in zip(found.cells, (40, 90), strict=True):
        (limit,) = cell.limits
        assert limit.by_users
        assert (limit.passed_per_s, limit.failed_per_s, limit.met_at_per_s, limit.missed_at_per_s) == (None,) * 4
        assert limit.passed_users is not None
        assert limit.failed_users is not None
        assert limit.passed_users <= held < limit.failed_users
        assert limit.decided
        assert limit.method == "single users"
        assert {probe.tried for probe in cell.probes} >= {limit.passed_users, limit.failed_users}
        assert all(probe.users and probe.rate_per_s == pytest.approx(probe.offered_per_s) for probe in cell.probes)
    (compared,) = found.comparisons
    assert compared.ratio is not None
    assert 1.9 < compared.ratio.value < 2.6


def test_every_report_speaks_of_users(found: LimitReport, tmp_path: Path) -> None:
    """No text says requests per second of what is a number of users; answered rates are such."""
    written = {name: RENDERERS[name](found).decode() for name in ("md", "csv", "json", "html")}
    markdown = written["md"]
    assert re.search(r"A meets p99 &lt; 20ms up to \d+ users and misses it from \d+ users on", markdown)
    assert re.search(r"B holds 2\.\d to 2\.\d times as many users within p99 &lt; 20ms as A", markdown)
    answer = markdown[markdown.index("The answer, in words") : markdown.index("Around the limit")]
    assert "/s" not in answer, answer
    assert "it is a rate, and this search is by users" in markdown
    rows = list(csv.DictReader(io.StringIO(written["csv"])))
    limits = [row for row in rows if row["row"] == "limit"]
    assert [(row["passed_per_s"], float(row["passed_users"]) <= 90) for row in limits] == [("", True)] * 2
    assert all(row["users"] for row in rows if row["row"] == "probe")
    assert '"by_users":true' in written["html"].replace(" ", "")
    assert "Response time against users" in written["html"]
    assert "Users of each load: 64 users" in (tmp_path / "found" / "report.html").read_text()
    assert "highest rate" not in written["html"]
    assert all("/s" not in outcome.text for outcome in outcomes(found)), [*outcomes(found)]
    assert b'"limit"' in bmf(found)


def test_python_compares_users(found: LimitReport) -> None:
    result = SearchResult(found, None).select("A")
    assert "38 users" < result.passed < 41
    assert str(result.failed).endswith(" users")
    assert result.failed > "40"


def test_the_terminal_speaks_of_users(redline: Run) -> None:
    done = redline(A, *ASKED)
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert re.search(r"1 +64 users +p50", done.stderr)
    assert re.search(r"closed, 1.00 s after 1.00 s", done.stderr)
    assert re.search(r"meets p99 < 20ms up to \d+ users and misses it from \d+ users on", " ".join(done.stdout.split()))


SUITE = """\
servers: [good.one]
scenarios: [SimpleGet]
loads:
  steady: {open: {rate: 1000, connections: 64}, for: 1s}
  crowd: {closed: {users: 16}, for: 1s}
objective: p99 < 20ms
warmup: 2s
"""


@pytest.mark.parametrize("flags", [("--by-users",), ("-l", "crowd")])
def test_a_closed_load_of_a_suite_is_searched_by_its_users(
    redline: Run, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    Lab(tmp_path, Path("no-oracle"))
    (tmp_path / "it.yaml").write_text(SUITE)
    done = redline(tmp_path / "it.yaml", "--probes", "20", "--trials", "2", "-o", tmp_path / "found", *flags)
    assert done.exit_code == 0, (done.stderr, done.exception)
    assert re.search(r"1 +16 users +p50", done.stderr)
    assert "meets p99 < 20ms up to 39 users and misses it from 41 users on" in " ".join(done.stdout.split())
    assert ("not searched, since it is open: steady" in done.stderr) == (flags == ("--by-users",))


def document(**given: Any) -> dict[str, Any]:
    asked = search_document(replace(asks.search(targets=[A], by_users=True), **given), lambda _: ("", ""), str)
    made: dict[str, Any] = plain(asked)
    return made


def test_a_suite_says_the_same_by_a_closed_load() -> None:
    assert document()["loads"] == {"probe": {"closed": {"users": 64}, "for": "5s"}}
    assert document(start=100)["loads"]["probe"]["closed"] == {"users": 100}


@pytest.mark.parametrize(
    ("given", "says"),
    [({"arrivals": "uniform"}, "--arrivals"), ({"connections": 8}, "-c"), ({"replay": Path("x")}, "--replay")],
)
def test_what_is_of_rates_is_refused_by_name(given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=f"--by-users varies users, with a connection each, and takes no {says}"):
        document(**given)


def test_a_search_by_users_needs_an_objective(redline: Run) -> None:
    done = redline(A, "--by-users")
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("nothing says what is to be met")


def test_users_who_hold_on_to_conversations_join_one_by_one() -> None:
    cell = simulated_cell(load=Load(name="probe", shape=Closed(users=1), duration_ns=SECOND))
    assert with_users(cell, 5000).shape == Closed(users=5000)
    talking = cell.model_copy(update={"scenario": _talking(cell)})
    load = with_users(talking, 5000)
    assert load.shape == Closed(users=5000, ramps_up=True)
    assert under_probe(talking, load).warmup_ns == 5 * SECOND


def _talking(cell: Cell) -> Any:
    from redline.model.streams import Stream  # noqa: PLC0415

    request = cell.scenario.request.model_copy(update={"stream": Stream(events="sse")})
    return cell.scenario.model_copy(update={"request": request})
