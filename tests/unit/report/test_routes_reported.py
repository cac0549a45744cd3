"""The cost of proxies: part of CPU time and memory, and separately in recordings and reports."""

import csv
import io
from pathlib import Path

import pytest

from redline.analysis import build_report
from redline.model import HOPS, CellReport, Clocks, HopFacts, Metric, PlannedTrial, Recording, Report, Route, Variant
from redline.ports import LoadOptions, Placement, RunningServer
from redline.render import RENDERERS
from redline.report.measured import built
from redline.running.record import Tools, record_load
from redline.stats import Trial
from tests.fakes.plugins import FACTS, FakeDriver, FakeLauncher, FakeMonitor, FakeServer
from tests.fakes.published import published
from tests.fakes.recordings import simulated_cell, simulated_recording, simulated_variant
from tests.unit.analysis.test_effects import run_of, steps

NGINX = simulated_variant("proxy.nginx")
PROXY = FACTS.model_copy(update={"pid": 77, "build": "def", "runtime_version": "nginx/1.22.1"})
HOP = HopFacts(name="proxy.nginx", process=PROXY, upstream="h1", upstream_seen="h1")


def routed(recording: Recording, *, cpu: float = 0.5, clocks: bool = False) -> Recording:
    """The recording with a proxy that used this share of the server's CPU time, and half of its memory."""
    assert recording.server is not None
    assert recording.traffic is not None
    series = []
    for name, share in (("cpu_ns", cpu), ("run_delay_ns", 1.0), ("rss_bytes", 0.5)):
        own = recording.find(name, "server")
        assert own is not None
        values = tuple(value * share for value in own.values)
        series.append(own.model_copy(update={"subject": HOPS[0], "values": values}))
    traffic = recording.traffic
    if clocks:
        start_ns, end_ns = traffic.measure_start_ns, traffic.measure_end_ns
        read = Clocks(start_ns=start_ns, end_ns=end_ns, server_cpu_ns=123_000_000, steal_ns=0)
        traffic = traffic.model_copy(update={"clocks": read})
    server = recording.server.model_copy(update={"hops": (HOP,)})
    changed = {"server": server, "series": (*recording.series, *series), "traffic": traffic}
    return recording.model_copy(update=changed)


def test_cpu_time_and_memory_cover_server_and_proxies() -> None:
    alone = Trial(simulated_recording(simulated_cell()))
    both = Trial(routed(simulated_recording(simulated_cell())))
    assert alone.numbers.parts == ()
    assert alone.server_cpu_ns is not None
    assert both.server_cpu_ns == pytest.approx(1.5 * alone.server_cpu_ns)
    assert alone.numbers.most_memory_bytes is not None
    assert both.numbers.most_memory_bytes == pytest.approx(1.5 * alone.numbers.most_memory_bytes)
    server, proxy = both.numbers.parts
    assert (server.name, proxy.name) == ("server", "proxy.nginx")
    assert server.cpu_ns == pytest.approx(alone.server_cpu_ns)
    assert proxy.cpu_ns == pytest.approx(0.5 * alone.server_cpu_ns)


@pytest.mark.parametrize("lost", [HOPS[0], "server"])
def test_what_is_not_known_of_one_process_is_not_known_of_all(lost: str) -> None:
    """The sum of the others would be too small, and look like a result."""
    recording = routed(simulated_recording(simulated_cell()))
    trial = Trial(recording.model_copy(update={"series": tuple(s for s in recording.series if s.subject != lost)}))
    assert trial.server_cpu_ns is None
    assert trial.increase("run_delay_ns", "server") is None
    assert trial.numbers.most_memory_bytes is None


def test_the_engines_clock_reads_all_of_them() -> None:
    """It gets the processes of all: the use of each comes from samples."""
    trial = Trial(routed(simulated_recording(simulated_cell()), clocks=True))
    assert trial.server_cpu_ns == 123_000_000
    assert sum(part.cpu_ns or 0.0 for part in trial.numbers.parts) > 0


def test_a_load_through_a_proxy_is_watched_at_each_process() -> None:
    events: list[str] = []
    driver, monitor = FakeDriver(events), FakeMonitor(events)
    server = FakeServer(facts=FACTS.model_copy(update={"hops": (HOP,)}))

    def processes(started: RunningServer) -> tuple[int, ...]:
        return tuple(each for pid in (started.facts or FACTS).pids for each in (pid, pid + 1))

    tools = Tools(FakeLauncher(events), driver, lambda _server: (monitor,), Placement(), processes)
    cell = simulated_cell()
    planned = PlannedTrial(cell_id=cell.id, round=0, position=0, seed=1)
    made = record_load(cell, planned, server, tools, LoadOptions(log=Path("unused")))
    assert events == [f"follow server {FACTS.pid}", "follow hop-1 77", "drive", "follow engine 99", "finish"]
    assert driver.drives[0].pids == (77, 78, FACTS.pid, FACTS.pid + 1)
    assert Recording.model_validate_json(made.model_dump_json()) == made


def through(variant: Variant, name: str = "nginx") -> Variant:
    return variant.model_copy(update={"route": Route(name=name, legs=("h1", "h1"), hops=(NGINX,))})


def report_of(*variants: Variant) -> Report:
    run = run_of({}, list(variants))
    ids = {cell_id for cell_id, cell in run.manifest.plan.cells.items() if cell.variant.route}
    recordings = tuple(routed(each) if each.cell_id in ids else each for each in run.recordings)
    return build_report(run.model_copy(update={"recordings": recordings}))


def cells(report: Report) -> tuple[CellReport, CellReport]:
    one, other = report.cells
    return one, other


def test_a_route_is_an_axis_whose_effect_is_shown() -> None:
    direct = simulated_variant("a.one")
    assert steps(report_of(direct, through(direct))) == [
        ("a.one+via=nginx.SimpleGet.saturate", "route", "nginx", "direct")
    ]
    other = simulated_variant("a.two")
    assert steps(report_of(direct, through(other))) == []


def test_the_only_step_between_two_servers_is_their_comparison() -> None:
    direct, other = simulated_variant("a.one"), simulated_variant("a.two")
    only = report_of(direct, through(direct))
    assert "Steps by server" in RENDERERS["md"](only).decode()  # it has no baseline, so nothing is compared
    compared = only.model_copy(update={"comparisons": tuple(effect.comparison for effect in only.effects)})
    assert "Steps by server" not in RENDERERS["md"](compared).decode()
    three = report_of(direct, through(direct), other, through(other))
    assert "Steps by server" in RENDERERS["md"](three).decode()


def test_a_report_has_the_route_in_words_and_each_part_by_itself() -> None:
    direct = simulated_variant("a.one")
    report = report_of(direct, through(direct))
    alone, behind = cells(report)
    assert (alone.route, alone.parts) == ("", ())
    assert behind.route == "h1 → proxy.nginx → h1"
    assert [(part.name, part.runtime_version) for part in behind.parts] == [
        ("server", ""),
        ("proxy.nginx", "nginx/1.22.1"),
    ]
    assert [line for line in built(report) if line[0] == "proxy.nginx"] == [("proxy.nginx", "nginx/1.22.1", "def")]
    whole = behind.estimates[Metric.CPU_PER_REQUEST].value
    of_parts = [part.estimates[Metric.CPU_PER_REQUEST].value for part in behind.parts]
    assert sum(of_parts) == pytest.approx(whole)
    assert of_parts[1] == pytest.approx(whole / 3)
    assert Report.model_validate_json(report.model_dump_json()) == published(report)
    markdown = RENDERERS["md"](report).decode()
    assert "a.one+via=nginx: h1 → proxy.nginx → h1; of all CPU per request: server " in markdown
    assert "Server and proxies, each by itself" in RENDERERS["html"](report).decode()
    metrics = [row["metric"] for row in csv.DictReader(io.StringIO(RENDERERS["csv"](report).decode()))]
    assert metrics.count("cpu-per-request:proxy.nginx") == 1
    assert metrics.count("memory:server") == 1
