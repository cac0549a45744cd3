"""The engine's protocol: turn a Drive into its job, and its events into Traffic.

See docs/reference/engine-protocol.md. Engine and lab are built together, so any deviation of an event from the format
is an error, never a guess.
"""

import base64
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from redline.driving.engine_process import INSTALL
from redline.driving.headers import headers_of
from redline.driving.intervals import KeptIntervals
from redline.driving.journeys import journey_keys, think_keys, with_values
from redline.driving.secrets import with_secrets
from redline.errors import DriveError
from redline.model import (
    Cell,
    Closed,
    Counts,
    DuetBlock,
    DuetTraffic,
    Expected,
    Histogram,
    Interval,
    Load,
    Open,
    Request,
    StreamTraffic,
    Tls,
    Traffic,
    Variant,
)
from redline.model.catalogue import sha256_of
from redline.model.sign_in import AwsSignIn, authority, outlives_signature
from redline.model.template import for_engine, has_placeholders, has_texts
from redline.model.way import Proxy
from redline.ports import Drive, DuetDrive, Endpoint
from redline.wording import part

M = TypeVar("M", bound=BaseModel)

JOB_FORMAT = "redline.job/1"
CHECK_FORMAT = "redline.check/1"
MOST_ROWS = 250_000
"""How many requests a log keeps, 12 MB of them; of more it is a sample, halved as often as needed."""
MOST_SAMPLED = 100
"""How many requests of a trial are kept because their traces are sampled."""
MOST_KEPT = 64 << 20
"""The most bytes of a body that a check may keep."""
LONGEST_JSON = 1 << 20
"""The bytes of a body that are searched for a value or a timestamp."""
CONNECT_ALLOWANCE_NS = 20_000_000_000
OF_EACH_CONNECTION_NS = 100_000
OF_EACH_LOGIN_NS = 500_000_000
"""The time that a step of `once` may take for each user: hashing passwords is slow by design, and one at a time."""
THINKS_AT_MOST = 20
"""The longest of many exponential think times, as a multiple of their mean."""
SLACK_NS = 5_000_000_000
LONGEST_INTERVAL_NS = 1_000_000_000
MOST_WORKERS = 1024
"""The most workers of one load, in all engines: see `workers` in docs/reference/engine-protocol.md."""
EVENTS_FORMAT = "redline.engine/1"


def job(drive: Drive) -> dict[str, Any]:
    """Return the job of a drive, ready for JSON. The engine's defaults hold where the drive says nothing."""
    cell = drive.cell
    for request in cell.scenario.requests:
        _check_grpc(cell.variant, request)
    _check_signed(cell)
    return with_values(
        format=JOB_FORMAT,
        target=_target(cell.variant, drive.endpoint),
        requests=[_request(request, cell.variant, drive.endpoint) for request in cell.scenario.requests],
        picks={name: list(entries) for name, entries in cell.scenario.picks.items()} or None,
        journey=journey_keys(cell.scenario, cell.load),
        load=_load(cell.load),
        warmup_ns=cell.warmup_ns,
        measure_ns=cell.load.duration_ns,
        count=cell.load.count,
        drain_ns=_drain_ns(cell),
        timeout_ns=cell.timeout_ns,
        interval_ns=drive.interval_ns or interval_ns(cell.load.duration_ns, watched=drive.is_warm is not None),
        deadline_ns=deadline_ns(drive),
        seed=drive.seed,
        workers=drive.workers,
        cpus=list(drive.cpus),
        commands=True if drive.is_warm else None,
        pids=list(drive.pids) or None,
        log={"folder": str(drive.request_log.resolve()), "at_most": MOST_ROWS} if drive.request_log else None,
        traces={"seed": _trace_seed(), "at_most": MOST_SAMPLED} if cell.scenario.is_traced else None,
        **cell.engine.model_dump(mode="json"),
    )


def _trace_seed() -> int:
    """Return a seed of trace ids, which no other load may share: what collects traces joins those of one id."""
    return secrets.randbits(63)


def loggable_job(wanted: dict[str, Any]) -> dict[str, Any]:
    """A job as it may be logged: without the values of headers, bodies, picked values, certificates and proxies.

    Of a replay it has the number of its times.
    """
    requests = [_loggable_request(request) for request in wanted["requests"]]
    shown = {**wanted, "requests": requests, "load": _loggable_load(wanted["load"])}
    if "picks" in wanted:
        shown["picks"] = {name: len(values) for name, values in wanted["picks"].items()}
    if "journey" in wanted and wanted["journey"].get("rows"):
        rows = wanted["journey"]["rows"]
        shown["journey"] = {**wanted["journey"], "rows": {**rows, "values": len(rows["values"])}}
    targets = [wanted["target"], *wanted.get("duet", {}).get("targets", ())]
    left_out = {"tls", "proxy"}
    shown["target"], *others = (
        {key: value for key, value in target.items() if key not in left_out} for target in targets
    )
    return shown | ({"duet": wanted["duet"] | {"targets": others}} if "duet" in wanted else {})


def _loggable_load(load: dict[str, Any]) -> dict[str, Any]:
    """A load with the number of its due times: there may be 200 000 of them."""
    match load:
        case {"open": {"arrivals": {"replayed_ns": due} | {"replayed": {"due_ns": due}}} as shape}:
            return {**load, "open": {**shape, "arrivals": {"replayed": len(due)}}}
    return load


def _loggable_request(request: dict[str, Any]) -> dict[str, Any]:
    left_out = {"headers", "body_text", "body_base64", "expect"}
    shown = {key: value for key, value in request.items() if key not in left_out}
    return shown | {"headers": [name for name, _ in request["headers"]]}


def duet_job(duet: DuetDrive) -> dict[str, Any]:
    """Return the job of a duet, ready for JSON."""
    return job(duet.drive) | {
        "duet": {
            "targets": [_target(variant, endpoint) for variant, endpoint in duet.other_servers],
            "slice_ns": duet.slice_ns,
            "longest_slice_ns": duet.longest_slice_ns,
            "guard_ns": duet.guard_ns,
            "pids": [list(pids) for pids in duet.pids],
            **({"fewest_blocks": duet.fewest_blocks} if duet.fewest_blocks else {}),
            **({"longest_ns": duet.longest_ns} if duet.longest_ns else {}),
            **({"parallel": True} if duet.parallel else {}),
            **({"last_is_first": True} if duet.last_is_first else {}),
        }
    }


def check(  # noqa: PLR0913 - of whom, what, and how much of the answer
    variant: Variant,
    endpoint: Endpoint,
    request: Request,
    picks: Mapping[str, Sequence[str]],
    *,
    timeout_ns: int,
    keep_bytes: int,
) -> dict[str, Any]:
    """Return a check of a single request, ready for JSON: the engine sends and judges it as in a load."""
    _check_grpc(variant, request)
    return with_values(
        format=CHECK_FORMAT,
        target=_target(variant, endpoint),
        request=_request(request, variant, endpoint),
        picks={name: list(entries) for name, entries in picks.items()},
        timeout_ns=timeout_ns,
        keep_bytes=keep_bytes,
        trace_seed=_trace_seed() if request.is_traced else None,
    )


def check_journey(
    cell: Cell, endpoint: Endpoint, *, timeout_ns: int, keep_bytes: int, rows: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return a check of a scenario's journey, ready for JSON: a user takes its steps once, without think times.

    `rows` are read here unless they are given.
    """
    requests = [request.checked_entirely for request in cell.scenario.requests]
    for request in requests:
        _check_grpc(cell.variant, request)
    return with_values(
        format=CHECK_FORMAT,
        target=_target(cell.variant, endpoint),
        requests=[_request(request, cell.variant, endpoint) for request in requests],
        picks={name: list(entries) for name, entries in cell.scenario.picks.items()},
        journey=journey_keys(cell.scenario, rows=rows),
        timeout_ns=timeout_ns,
        keep_bytes=keep_bytes,
        trace_seed=_trace_seed() if cell.scenario.is_traced else None,
    )


def deadline_ns(drive: Drive) -> int:
    """Return the engine's deadline. Connecting may take as long as a request."""
    cell = drive.cell
    connect_ns = max(CONNECT_ALLOWANCE_NS, cell.timeout_ns) + cell.load.connections * OF_EACH_CONNECTION_NS
    if (journey := cell.scenario.journey) is not None:
        thinks_ns = sum(step.think.mean_ns for step in journey.once if step.think)
        users = max(cell.load.connections, journey.users or 0)
        of_each_ns = cell.timeout_ns + users * OF_EACH_LOGIN_NS
        connect_ns += len(journey.once) * of_each_ns + THINKS_AT_MOST * thinks_ns
    return connect_ns + cell.warmup_ns + cell.load.duration_ns + drive.overrun_ns + _drain_ns(cell) + SLACK_NS


def _drain_ns(cell: Cell) -> int:
    """Return how long the engine waits for the last answers: streams that began before the end may go on.

    Those that do not end by the clock may take as long as the load.
    """
    open_ns = cell.load.duration_ns if cell.scenario.has_open_streams else 0
    return cell.timeout_ns + max(cell.scenario.longest_stream_ns, open_ns)


def interval_ns(duration_ns: int, *, watched: bool = False) -> int:
    """Return a tenth of the measurement, so that its course can be judged, but at least 50 ms and at most 1 s.

    At most half a second where a warm-up is `watched`: each interval decides whether it is over.
    """
    return min(max(duration_ns // 10, 50_000_000), 500_000_000 if watched else LONGEST_INTERVAL_NS)


def _check_grpc(variant: Variant, request: Request) -> None:
    """Raise DriveError for a gRPC call whose status could not be read: over HTTP/1.1, and for gRPC-Web."""
    kinds = [value for name, value in request.header_lines if name.lower() == "content-type"]
    if any(kind.startswith("application/grpc-web") for kind in kinds):
        raise DriveError(
            f"{request.method} {request.path} is a call of gRPC-Web, whose status stands in the body",
            hint="call the server by gRPC: content-type application/grpc over HTTP/2",
        )
    if variant.http == "1.1" and any(kind.startswith("application/grpc") for kind in kinds):
        raise DriveError(
            f"{request.method} {request.path} is a call of gRPC, which HTTP/1.1 does not carry",
            hint=f"load it over HTTP/2: {part('http2')}, or `http: 2` of the server",
        )


def _check_signed(cell: Cell) -> None:
    """Raise DriveError for a load that is longer than its signatures are taken."""
    is_signed = any(isinstance(request.auth, AwsSignIn) for request in cell.scenario.requests)
    if is_signed and (problem := outlives_signature(cell.warmup_ns + cell.load.duration_ns)):
        raise DriveError(problem, hint="measure for less, or more often")


def _target(variant: Variant, endpoint: Endpoint) -> dict[str, Any]:
    way, tls = endpoint.way, None
    if variant.tls is not None:
        given = variant.tls.model_dump(mode="json", exclude={"cert"})
        tls = given | {"ca_pem": variant.tls.ca_pem or endpoint.ca_pem} | certificate_of(variant.tls)
    return with_values(
        host=endpoint.host,
        port=endpoint.port,
        http=variant.http,
        tls=tls,
        connect=[
            {"unix": place.socket} if place.socket else {"tcp": {"host": place.host, "port": place.port}}
            for place in way.connect
        ]
        or None,
        addresses=None if way.addresses == "first" else way.addresses,
        sources=[*way.sources] or None,
        proxy=None if way.proxy is None else _proxy(way.proxy),
    )


def _proxy(proxy: Proxy) -> dict[str, Any]:
    """The proxy, with its password, which no recording holds. Raises UsageError for a variable that is not set."""
    return with_values(host=proxy.host, port=proxy.port, authorization=authorization_of(proxy))


def authorization_of(proxy: Proxy) -> str | None:
    """The proxy's `Proxy-Authorization`; None without a user. Raises UsageError for a variable that is not set."""
    if not proxy.user and not proxy.password:
        return None
    user, password = (with_secrets(text, f"the proxy {proxy.text}") for text in (proxy.user, proxy.password))
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode(errors='surrogateescape')).decode()}"


def certificate_of(tls: Tls) -> dict[str, str]:
    """Read the client's certificate and its key, which no recording holds. Raises DriveError."""
    if tls.cert is None:
        return {}
    try:
        texts = [Path(file).read_text() for file in (tls.cert.file, tls.cert.key_file)]
    except (OSError, UnicodeDecodeError) as error:
        hint = f"see {part('cert')} and {part('key')}"
        raise DriveError(f"the client's certificate cannot be read: {error}", hint=hint) from error
    if sha256_of(texts[0]) != tls.cert.sha256:
        hint = "begin anew: what is measured belongs to one certificate"
        raise DriveError(f"{tls.cert.file} is another certificate than when this was planned", hint=hint)
    return {"cert_pem": texts[0], "key_pem": texts[1]}


def _request(request: Request, variant: Variant, endpoint: Endpoint) -> dict[str, Any]:
    return with_values(
        weight=request.weight,
        method=request.method,
        path=for_engine(request.path),
        headers=headers_of(request, authority(endpoint.host, endpoint.port, tls=variant.tls is not None)),
        **_body(request),
        expect=_expect(request.expect),
        timestamp=request.timestamp and request.timestamp.model_dump(),
        stream=request.stream and request.stream.for_engine(),
        websocket=request.websocket and request.websocket.model_dump(mode="json"),
        expect_continue_ns=request.expect_continue_ns,
    )


def _body(request: Request) -> dict[str, Any]:
    """Only templates are sent as text: bytes are sent as they are, and braces in them mean nothing."""
    body = request.body
    if body is None:
        return {}
    chunked = {"chunked": body.chunked} if body.chunked else {}
    if body.text is not None and has_placeholders(body.text):
        escape = {} if body.escape is None or not has_texts(body.text) else {"body_escape": body.escape}
        return {"body_text": for_engine(body.text), **escape, **chunked}
    return {"body_base64": base64.b64encode(body.content()).decode(), **chunked}


def _expect(expect: Expected) -> dict[str, Any]:
    if expect.under_load == "status":
        return {"status": _status(expect)}
    return with_values(
        status=_status(expect),
        body_length=expect.body_length,
        body_sha256=expect.body_sha256 if expect.under_load == "hash" else None,
        json=[
            *({"pointer": pointer, "equals": value} for pointer, value in expect.json_values.items()),
            *({"pointer": pointer, "stands": stands} for pointer, stands in expect.json_stands.items()),
        ]
        or None,
        no_errors=expect.no_errors or None,
    )


def _status(expect: Expected) -> int | list[int]:
    return list(expect.status) if isinstance(expect.status, tuple) else expect.status


_OF_SHAPE = {"users", "pace_per_s", "rate_per_s", "connections", "connections_at_start", "requests_per_connection"}


def _load(load: Load) -> dict[str, Any]:
    shape = load.shape
    keys = {**shape.model_dump(include=_OF_SHAPE, exclude_none=True), "depth": shape.depth}
    if shape.stages:
        number = int if isinstance(shape, Closed) else float
        keys["stages"] = [{"to": number(stage.to), "over_ns": stage.over_ns} for stage in shape.stages]
    if isinstance(shape, Open):
        return {"open": {**keys, "arrivals": _replay(shape) if shape.arrivals == "replayed" else shape.arrivals}}
    if shape.ramps_up:
        keys["ramps_up"] = True
    if shape.think:
        keys["think"] = think_keys(shape.think)
    return {"closed": keys}


def _replay(shape: Open) -> dict[str, Any]:
    if not shape.replayed_requests:
        return {"replayed_ns": list(shape.replayed_ns)}
    return {"replayed": {"due_ns": list(shape.replayed_ns), "requests": list(shape.replayed_requests)}}


class Transcript:
    """Collects the engine's events, line by line, into Traffic."""

    def __init__(
        self,
        on_interval: Callable[[Interval], None] = lambda _interval: None,
        on_block: Callable[[DuetBlock], None] = lambda _block: None,
        interval_ns: int = LONGEST_INTERVAL_NS,
    ) -> None:
        self._on_interval, self._on_block = on_interval, on_block
        self._started: dict[str, Any] = {}
        self._result: dict[str, Any] = {}
        self._intervals = KeptIntervals(interval_ns)
        self._blocks: list[DuetBlock] = []

    def read(self, line: str) -> Interval | DuetBlock | None:
        """Read a line; return its interval or block, if it has any. Raises DriveError for errors and bad lines."""
        try:
            event = json.loads(line)
            match event.pop("event"):
                case "started":
                    self._started = _of_our_format(event)
                case "interval":
                    interval = Interval.model_validate(event)
                    self._intervals.add(interval)
                    self._on_interval(interval)
                    interval.pack()  # whoever looked at it decoded it
                    return interval
                case "block":
                    self._blocks.append(DuetBlock.model_validate(event))
                    self._on_block(self._blocks[-1])
                    return self._blocks[-1]
                case "result":
                    self._result = _with_first_errors(event)
                case "duet":
                    self._result = event | {"targets": [_with_first_errors(target) for target in event["targets"]]}
                case "error":
                    raise DriveError(event["message"], hint=event["hint"])
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise not_of_the_format(line, error) from None
        return None

    def traffic(self) -> Traffic | None:
        """Return the whole traffic, or None if the engine wrote no result."""
        return self._all_as(Traffic, intervals=self._intervals.all())

    def traffic_so_far(self) -> Traffic | None:
        """Return the traffic of a load without a result, from its intervals; None if nothing was measured.

        Requests without an outcome were in flight. Nobody knows which: they count as those that fell due last.
        """
        measured = [interval for interval in self._intervals.all() if interval.phase != "warmup"]
        if not self._started or not measured:
            return None
        counts = Counts.merged(interval.counts for interval in measured)
        left, waited = counts.due - counts.outcomes.total, _waited_ns(measured)
        if left < 0 or left != len(waited):
            return None
        window = [interval for interval in measured if interval.phase == "measure"] or measured
        self._result = {
            "ended": "deadline",
            "measure_start_ns": window[0].start_ns,
            "measure_end_ns": window[-1].end_ns,
            "counts": counts.with_in_flight(left),
            "response": Histogram.merged([*(interval.response for interval in measured), Histogram.of(waited)]),
            "service": Histogram.merged(interval.service for interval in measured),
            "lateness": Histogram.merged(interval.lateness for interval in measured),
            "engine_cpu_ns": sum(interval.engine_cpu_ns for interval in measured),
            "paused_ns": sum(interval.paused_ns for interval in measured),
            "streams": _streams_of(measured),
        }
        return self.traffic()

    def duet_traffic(self) -> DuetTraffic | None:
        """Return the whole traffic of a duet, or None if the engine wrote no result."""
        return self._all_as(DuetTraffic, blocks=tuple(self._blocks))

    def _all_as(self, kind: type[M], **parts: Any) -> M | None:
        if not self._started or not self._result:
            return None
        try:
            return kind.model_validate({**self._started, **self._result, **parts})
        except ValidationError as error:
            raise not_of_the_format(str(self._result), error) from None


def _with_first_errors(event: dict[str, Any]) -> dict[str, Any]:
    """A result whose first right answer with `errors`, which the engine lists as a failure of `ok`, stands apart."""
    failures = event.get("failures", [])
    failed = [failure for failure in failures if failure["outcome"] != "ok"]
    if len(failed) == len(failures):
        return event
    first = next(failure for failure in failures if failure["outcome"] == "ok")
    return event | {
        "failures": failed,
        "first_errors": with_values(errors=first["reason"], request=first.get("request")),
    }


def _streams_of(measured: Sequence[Interval]) -> StreamTraffic | None:
    """Return the streams of all intervals, with the events of the window alone."""
    streams = StreamTraffic.merged(interval.streams for interval in measured)
    window = StreamTraffic.merged(interval.streams for interval in measured if interval.phase == "measure")
    return streams and streams.with_events_of(window)


def _waited_ns(measured: Sequence[Interval]) -> list[float]:
    """Return how long the requests without a response time had waited by the end of the last interval."""
    left = sum(interval.counts.due - interval.response.count for interval in measured)
    end_ns, waited = measured[-1].end_ns, list[float]()
    for interval in reversed(measured):
        here = min(max(left, 0), interval.counts.due)
        waited += [float(end_ns - (interval.start_ns + interval.end_ns) // 2)] * here
        left -= here
    return waited


def _of_our_format(event: dict[str, Any]) -> dict[str, Any]:
    received = event.pop("format")
    if received != EVENTS_FORMAT:
        raise ValueError(f"its format is {received}, ours {EVENTS_FORMAT}")
    return event


def not_of_the_format(line: str, error: Exception) -> DriveError:
    """Return the error for a line that is not of the engine's format."""
    why = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        why = ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)
    return DriveError(
        f"the engine wrote what cannot be: {why}; in {line[:200]!r}",
        hint=f"engine and lab may be of different versions: {INSTALL}",
    )
