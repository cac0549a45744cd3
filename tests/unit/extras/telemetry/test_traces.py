"""Traces of a load: what a collector of OpenTelemetry gets, and what is said where it gets nothing."""

import pytest
from rich.console import Console

from redline.cli.command_line import AbFlags, LoadFlags
from redline.cli.telemetry import Meter, MeteredTrial, metered
from redline.errors import UsageError
from redline.extras.telemetry import otlp_traces
from redline.extras.telemetry.meter import TracedTraffic
from redline.extras.telemetry.otlp_traces import TraceSender, spans
from redline.extras.telemetry.otlp_traces import traced as traced_by
from redline.model import Cell, Request, Scenario, Traffic
from redline.model.kept import KeptRequest, KeptRequests
from tests.fakes.behaviour import GOOD
from tests.fakes.collectors import collecting, read
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import simulated_cell, simulated_recording, simulated_run
from tests.fakes.targets import unused_port

QUIET = Console(quiet=True)
TRACED = {"traceparent": "{traceparent:1%}"}
CELL = simulated_cell().model_copy(
    update={
        "scenario": Scenario(
            name="M",
            request=Request(path="/a", headers=TRACED),
            others=(Request(method="POST", path="/b/{seq}", headers=TRACED),),
        )
    }
)
TRIAL = MeteredTrial.of(CELL, "trial-1")


def kept(number: int, request: int = 0, **changes: object) -> KeptRequest:
    """A request whose ids are its number, and which began so many milliseconds after the epoch."""
    due_ns = number * 1_000_000
    made = KeptRequest(
        request=request,
        due_ns=due_ns,
        written_ns=due_ns + 10,
        first_ns=due_ns + 20,
        end_ns=due_ns + 30,
        outcome="ok",
        status=200,
        traceparent=f"00-{number:032x}-{number:016x}-01",
    )
    return made.model_copy(update=changes)


def trial(*slowest: KeptRequest, sampled: tuple[KeptRequest, ...] = ()) -> Traffic:
    traffic = simulated_recording(CELL, GOOD).traffic
    assert traffic is not None
    update = {"kept": KeptRequests(slowest=slowest, sampled=sampled), "addresses": ("127.0.0.1:8080",)}
    return traffic.model_copy(update=update)


def traced(traffic: Traffic) -> TracedTraffic:
    return TracedTraffic(traffic.kept, traffic.epoch_unix_ns, traffic.addresses)


def sent(meter: Meter, traffic: Traffic) -> None:
    meter.trial(TRIAL, CELL, simulated_recording(CELL, GOOD).model_copy(update={"traffic": traffic}))


def test_requests_are_spans_of_the_traces_that_were_sent() -> None:
    timeout = kept(2, 1, first_ns=None, status=None, outcome="timeout", traceparent=f"00-{2:032x}-{2:016x}-00")
    wrong = kept(3, status=503, outcome="unexpected_status")
    never_written = kept(5, written_ns=None, first_ns=None, status=None, outcome="unsent", traceparent="")
    traffic = trial(timeout, wrong, never_written, sampled=(wrong, kept(4)))
    with collecting() as collector:
        with metered(LoadFlags(otlp_traces=collector.url), QUIET) as meter:
            assert meter is not None
            sent(meter, traffic)
        assert collector.paths == ["/v1/traces"]
    resource = read(collector.taken[0].resource_spans[0].resource.attributes)
    assert resource["service.name"] == "redline"
    made = {span.trace_id.hex(): span for span in collector.spans}
    assert list(made) == [f"{number:032x}" for number in (2, 3, 4)], "each once, those that were written"
    assert len(collector.spans) == 3
    slow, failed, ok = made.values()
    assert (slow.span_id.hex(), slow.parent_span_id, slow.name) == (f"{2:016x}", b"", "POST /b/{seq}")
    assert slow.kind == slow.SPAN_KIND_CLIENT
    began_ns = traffic.epoch_unix_ns + 2_000_000
    assert (slow.start_time_unix_nano, slow.end_time_unix_nano) == (began_ns, began_ns + 30)
    assert [(event.name, event.time_unix_nano) for event in slow.events] == [("request written", began_ns + 10)]
    assert [event.name for event in ok.events] == ["request written", "first byte"]
    assert [span.status.code for span in (slow, failed, ok)] == [2, 2, 0]
    common = {"server.address": "127.0.0.1", "server.port": 8080, "network.protocol.version": "1.1"}
    common |= {"redline.cell": CELL.slug, "redline.trial": "trial-1", "redline.server": CELL.variant.slug}
    common |= {"redline.phase": "measure"}
    url = {"url.full": "http://127.0.0.1:8080/a", "http.request.method": "GET"}
    assert read(slow.attributes) == {
        **common,
        "http.request.method": "POST",
        "url.template": "/b/{seq}",
        "error.type": "timeout",
    }
    assert read(failed.attributes) == common | url | {"http.response.status_code": 503, "error.type": "503"}
    assert read(ok.attributes) == common | url | {"http.response.status_code": 200}


def test_a_server_at_several_addresses_has_none() -> None:
    traffic = trial(kept(1)).model_copy(update={"addresses": ("127.0.0.1:1", "127.0.0.1:2")})
    (span,) = spans(TRIAL, CELL, traced(traffic))
    assert span.attributes is not None
    assert span.attributes["url.template"] == "/a"
    assert "server.address" not in span.attributes


def test_each_server_of_a_duet_has_spans_and_its_control_too() -> None:
    duet = simulated_duet(0)
    traffic = duet.traffic
    assert traffic is not None
    targets = tuple(
        target.model_copy(update={"kept": KeptRequests(slowest=(kept(number),))})
        for number, target in enumerate(traffic.targets, 1)
    )
    duet = duet.model_copy(update={"traffic": traffic.model_copy(update={"targets": targets})})
    trials = tuple(MeteredTrial(name, "start-1", name) for name in ("A", "B", "control"))
    with collecting() as collector, metered(AbFlags(otlp_traces=collector.url), QUIET) as meter:
        assert meter is not None
        meter.ended(trials, (CELL, CELL), duet)
        meter.ended(trials, (CELL, CELL), duet.model_copy(update={"traffic": None}))
        seen = {span.trace_id.hex(): read(span.attributes)["redline.cell"] for span in collector.spans}
    assert seen == {f"{number:032x}": name for number, name in enumerate(("A", "B", "control"), 1)}
    assert collector.spans[0].start_time_unix_nano == traffic.epoch_unix_ns + 1_000_000


@pytest.mark.parametrize(("headers", "is_traced"), [({}, False), (TRACED, True)])
def test_requests_that_begin_no_trace_are_refused(headers: dict[str, str], is_traced: bool) -> None:
    scenario = Scenario(name="M", request=Request(headers=headers))
    suite = simulated_run({}, ceiling=None).manifest.plan.suite.model_copy(update={"scenarios": (scenario,)})
    sender = TraceSender("http://127.0.0.1:4318")
    if is_traced:
        sender.check(suite)
        return
    with pytest.raises(UsageError, match="no request has a trace context") as refused:
        sender.check(suite)
    assert "{traceparent}" in refused.value.hint


def said_of(url: str, traffic: Traffic) -> str:
    said: list[str] = []
    with otlp_traces.traced(url, said.append) as sender:
        sender.send(TRIAL, CELL, traced(traffic))
    (text,) = said
    return text


def test_what_became_of_them_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_traces, "TIMEOUT_S", 0.5)
    with collecting() as collector:
        endpoint = f"{collector.url}/v1/traces"
        assert said_of(collector.url, trial(kept(1), kept(2))) == f"2 spans were sent to {endpoint}"
        nothing = "--otlp-traces: no request of a trial had a trace, so nothing was sent"
        assert said_of(collector.url, trial(kept(1, traceparent=""))) == nothing
        collector.status = 401
        assert said_of(collector.url, trial(kept(1))) == f"spans could not be sent to {endpoint}: status 401"
    port = unused_port()
    nobody = f"spans could not be sent to http://127.0.0.1:{port}/own: does a collector listen there?"
    assert said_of(f"http://127.0.0.1:{port}/own", trial(kept(1))) == nobody


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(UsageError, match="--otlp-traces x: this is no URL"), metered(LoadFlags(otlp_traces="x"), QUIET):
        pass


def test_a_cell_without_traffic_has_no_spans() -> None:
    cell: Cell = CELL
    recording = simulated_recording(cell, GOOD).model_copy(update={"traffic": None})
    with collecting() as collector:
        with metered(LoadFlags(otlp_traces=collector.url), QUIET) as meter:
            assert meter is not None
            meter.trial(TRIAL, cell, recording)
        assert not collector.taken


def test_what_became_of_the_spans_is_said_although_the_command_fails() -> None:
    said: list[str] = []
    with pytest.raises(SystemExit), traced_by("http://127.0.0.1:4318", said.append):
        raise SystemExit(3)
    assert said == ["--otlp-traces: no request of a trial had a trace, so nothing was sent"]
