"""The engine's format: a Drive becomes a job, event lines become Traffic. See docs/reference/engine-protocol.md.

Engine and lab are built together, so an event that is not exactly of the format is an error, never a guess.
"""

import base64
import json
from typing import Any

from pydantic import ValidationError

from redline.errors import DriveError
from redline.model import Closed, Interval, Load, Request, Traffic
from redline.ports import Drive

JOB_FORMAT = "redline.job/1"
EVENTS_FORMAT = "redline.engine/1"
CONNECT_ALLOWANCE_NS = 20_000_000_000
SLACK_NS = 5_000_000_000


def job(drive: Drive) -> dict[str, Any]:
    """The job of a drive, ready for JSON."""
    cell = drive.cell
    return {
        "format": JOB_FORMAT,
        "target": {"host": drive.endpoint.host, "port": drive.endpoint.port},
        "request": _request(cell.scenario.request),
        "expect": _expect(cell.scenario.request),
        "load": _load(cell.load),
        "warmup_ns": cell.warmup_ns,
        "measure_ns": cell.load.duration_ns,
        "drain_ns": cell.timeout_ns,
        "timeout_ns": cell.timeout_ns,
        "interval_ns": interval_ns(cell.load.duration_ns),
        "deadline_ns": deadline_ns(drive),
        "seed": drive.seed,
        "workers": drive.workers,
        "cpus": list(drive.cpus),
    }


def deadline_ns(drive: Drive) -> int:
    """When the engine has to have ended, whatever happened."""
    cell = drive.cell
    return CONNECT_ALLOWANCE_NS + cell.warmup_ns + cell.load.duration_ns + cell.timeout_ns + SLACK_NS


def interval_ns(duration_ns: int) -> int:
    """A tenth of the measurement, so that its course can be judged, but at least 50 ms and at most 1 s."""
    return min(max(duration_ns // 10, 50_000_000), 1_000_000_000)


def _request(request: Request) -> dict[str, Any]:
    body = base64.b64encode(request.body.content()).decode() if request.body else None
    return {
        "method": request.method,
        "path": request.path,
        "headers": [[name, value] for name, value in request.headers.items()],
        "body_base64": body,
    }


def _expect(request: Request) -> dict[str, Any]:
    expect = request.expect
    return {
        "status": expect.status,
        "body_length": expect.body_length if expect.under_load != "status" else None,
        "body_sha256": expect.body_sha256 if expect.under_load == "hash" else None,
    }


def _load(load: Load) -> dict[str, Any]:
    shape = load.shape
    if isinstance(shape, Closed):
        return {"closed": {"users": shape.users}}
    open_load = {"rate_per_s": shape.rate_per_s, "arrivals": shape.arrivals, "connections": shape.connections}
    return {"open": open_load}


class Transcript:
    """Collects the engine's events, line by line, into Traffic."""

    def __init__(self) -> None:
        self._started: dict[str, Any] = {}
        self._result: dict[str, Any] = {}
        self._intervals: list[Interval] = []

    def read(self, line: str) -> Interval | None:
        """Take in one line; gives the interval when it was one. Raises DriveError for an error event or nonsense."""
        try:
            event = json.loads(line)
            match event.pop("event"):
                case "started":
                    self._started = _of_our_format(event)
                case "interval":
                    self._intervals.append(Interval.model_validate(event))
                    return self._intervals[-1]
                case "result":
                    self._result = event
                case "error":
                    raise DriveError(event["message"], hint=event["hint"])
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise _nonsense(line, error) from None
        return None

    def traffic(self) -> Traffic | None:
        """All of it, or None when the engine wrote no result."""
        if not self._started or not self._result:
            return None
        try:
            return Traffic.model_validate({**self._started, **self._result, "intervals": tuple(self._intervals)})
        except ValidationError as error:
            raise _nonsense(str(self._result), error) from None


def _of_our_format(event: dict[str, Any]) -> dict[str, Any]:
    found = event.pop("format")
    if found != EVENTS_FORMAT:
        raise ValueError(f"its format is {found}, ours {EVENTS_FORMAT}")
    return event


def _nonsense(line: str, error: Exception) -> DriveError:
    why = str(error)
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        why = ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)
    return DriveError(
        f"the engine wrote what cannot be: {why}; in {line[:200]!r}",
        hint="engine and lab may be of different versions: run `make build`",
    )
