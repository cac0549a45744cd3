"""The slowest requests of a load: merged, judged, in results and in each medium."""

from dataclasses import replace

import pytest

from redline.analysis import build_report
from redline.analysis.load_result import load_result
from redline.model import Cell, CellReport, DuetRecording, Open, Recording, Request, Scenario, Traffic
from redline.model.kept import MOST_SLOWEST, KeptRequest, KeptRequests, SlowRequest
from redline.render import RENDERERS
from redline.report.load import load_section
from tests.fakes import reports
from tests.fakes.behaviour import GOOD, Behaviour
from tests.fakes.compared import compared_run
from tests.fakes.loads import load_of
from tests.fakes.recordings import simulated_cell, simulated_recording
from tests.unit.report.test_load import shown

CELL = simulated_cell().model_copy(
    update={"scenario": Scenario(name="M", request=Request(path="/a"), others=(Request(path="/b", name="buy"),))}
)
MS = 1_000_000
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def kept(at_ms: int, lasts_ms: int, request: int = 0, **changes: object) -> KeptRequest:
    """A request that was due so long after the epoch."""
    due_ns = at_ms * MS
    made = KeptRequest(
        request=request,
        due_ns=due_ns,
        written_ns=due_ns,
        first_ns=due_ns + 1,
        end_ns=due_ns + lasts_ms * MS,
        outcome="ok",
        status=200,
        traceparent=f"00-{TRACE}-00f067aa0ba902b7-01",
    )
    return made.model_copy(update=changes)


def recorded(*slowest: KeptRequest, cell: Cell = CELL, behaviour: Behaviour = GOOD) -> Recording:
    made = simulated_recording(cell, behaviour)
    assert made.traffic is not None
    begins = [request.model_copy(update=since(made.traffic, request)) for request in slowest]
    return made.model_copy(
        update={"traffic": made.traffic.model_copy(update={"kept": KeptRequests(slowest=tuple(begins))})}
    )


def since(traffic: Traffic, request: KeptRequest) -> dict[str, int]:
    """The times of a request whose own times count from the start of the measurement."""
    return {name: getattr(request, name) + traffic.measure_start_ns for name in ("due_ns", "end_ns")}


def slow_load() -> CellReport:
    timeout = kept(40, 900, 1, status=None, first_ns=None, outcome="timeout")
    wrong = kept(20, 300, status=503, outcome="unexpected_status", traceparent="")
    return load_of(CELL, recorded(timeout, wrong, kept(1500, 200)))


def test_what_became_of_them_is_said() -> None:
    common = {"trial": 0, "request": "GET /a"}
    assert slow_load().slowest == (
        SlowRequest(request="buy", at_ns=40 * MS, response_ns=900 * MS, outcome="timeout", status=None, trace_id=TRACE),
        SlowRequest(at_ns=20 * MS, response_ns=300 * MS, outcome="unexpected_status", status=503, **common),
        SlowRequest(at_ns=1500 * MS, response_ns=200 * MS, outcome="ok", status=200, trace_id=TRACE, **common),
    )


def test_the_terminal_shows_them_in_a_whole_view() -> None:
    load = slow_load()
    lines = shown(load_section(load, whole=True), width=120)
    at = lines.index("Slowest requests")
    assert lines[at + 1 : at + 5] == [
        " due at  response  answer                 request  trace id",
        f"0.040 s    900 ms  timeout                buy      {TRACE}",
        "0.020 s    300 ms  503 unexpected status  GET /a",
        f"1.500 s    200 ms  200                    GET /a   {TRACE}",
    ]
    assert "Slowest requests" not in shown(load_section(load), width=120)


def test_results_and_pages_list_them() -> None:
    load = slow_load()
    assert load_result(load).slowest == load.slowest
    report = reports.healthy()
    alone = report.model_copy(update={"cells": (load,), "comparisons": (), "rankings": ()})
    for name in ("md", "html", "json"):
        text = RENDERERS[name](alone).decode()
        assert (TRACE in text and "0.040" in text) or name == "json", name
    several = report.model_copy(update={"cells": (load, *report.cells)})
    assert TRACE not in RENDERERS["md"](several).decode(), "a table for each of many cells would be long"


def test_both_servers_of_a_comparison_have_those_of_their_starts() -> None:
    run = compared_run(starts=2)

    def with_kept(start: DuetRecording) -> DuetRecording:
        assert start.traffic is not None
        targets = tuple(
            target.model_copy(update={"kept": KeptRequests(slowest=(kept(7, 100 * (number + 1) + start.round),))})
            for number, target in enumerate(start.traffic.targets)
        )
        return start.model_copy(update={"traffic": start.traffic.model_copy(update={"targets": targets})})

    report = build_report(run.model_copy(update={"duets": tuple(map(with_kept, run.duets))}))
    assert [[(slow.trial, slow.response_ns // MS, slow.at_ns) for slow in cell.slowest] for cell in report.cells] == [
        [(2, times + 1, 7 * MS), (1, times, 7 * MS)] for times in (100, 200)
    ], "not those of the control"
    text = RENDERERS["md"](report).decode()
    assert text.index("Slowest requests") < text.index("101 ms") < text.index("201 ms")
    assert "start" in text.split("Slowest requests")[1].splitlines()[4]
    assert TRACE in RENDERERS["html"](report).decode()
    assert "Slowest requests" not in RENDERERS["md"](build_report(run)).decode(), "of an earlier recording"


def test_times_that_are_not_known_are_not_listed() -> None:
    shape = Open(rate_per_s=1000, connections=8)
    cell = CELL.model_copy(update={"load": CELL.load.model_copy(update={"shape": shape})})
    late = replace(GOOD, lateness_ns=150_000_000.0)
    assert load_of(cell, recorded(kept(0, 900), cell=cell)).slowest
    assert not load_of(cell, recorded(kept(0, 900), cell=cell, behaviour=late)).slowest


def test_engines_of_several_hosts_have_the_slowest_of_all() -> None:
    one, other = (KeptRequests(slowest=tuple(kept(0, ms) for ms in range(first, 0, -2))) for first in (19, 20))
    merged = KeptRequests.merged([one, None, other])
    assert merged is not None
    assert [request.response_ns // MS for request in merged.slowest] == [*range(20, 20 - MOST_SLOWEST, -1)]
    assert KeptRequests.merged([None]) is None


@pytest.mark.parametrize("sampled", ["00", "01"])
def test_a_trace_context_is_read(sampled: str) -> None:
    request = kept(0, 1, traceparent=f"00-{TRACE}-00f067aa0ba902b7-{sampled}")
    assert (request.trace_id, request.parent_id, request.is_sampled) == (TRACE, "00f067aa0ba902b7", sampled == "01")
    assert (kept(0, 1, traceparent="").trace_id, kept(0, 1, traceparent="").is_sampled) == ("", False)
