"""When the requests of a log or a recording were sent."""

import io
import json
from typing import Any

import pytest

from redline.errors import UsageError
from redline.extras.importing import RequestSource, detect, read_requests
from redline.suite.imported import Imported, Wanted
from tests.unit.extras.importing.test_importing import LOG


def timed(text: str) -> Imported:
    source = RequestSource("file", io.BytesIO(text.encode()), lambda _name: b"")
    form = detect(source)
    assert form is not None
    return read_requests(source, form, Wanted(times=True))


def test_requests_of_whole_seconds_are_spread_over_them() -> None:
    made = timed(LOG)
    # Three are sent in the first second, and one in the next; what is left out has no time.
    assert [arrival.at_ns for arrival in made.arrivals] == [0, 333_333_333, 666_666_666, 1_000_000_000]
    sent = [made.requests[arrival.request] for arrival in made.arrivals]
    assert [request["get"] for request in sent] == ["/items?page=2", "/items?page=2", "/old", "/caf%C3%A9/{{seq}}"]
    assert made.spread


def test_times_in_any_order_and_form() -> None:
    lines = (
        {"request": "GET /end HTTP/1.1", "status": 200, "msec": "1646861403.500", "request_time": "2.500"},
        {"method": "GET", "path": "/start", "status": 200, "start_time": "2022-03-09T21:30:00.500Z", "duration": 900},
        {"request": {"method": "GET", "uri": "/caddy"}, "status": 200, "ts": 1646861402.25, "duration": 0.25},
        {"request": "GET /unknown HTTP/1.1", "status": 200, "time": "noon"},
    )
    made = timed("".join(f"{json.dumps(line)}\n" for line in lines))
    sent = [(made.requests[arrival.request]["get"], arrival.at_ns) for arrival in made.arrivals]
    assert sent == [("/start", 0), ("/end", 500_000_000), ("/caddy", 1_500_000_000)]
    assert not made.spread


def test_times_of_whole_seconds_stay_whole_and_in_order() -> None:
    """nginx writes `request_time` in milliseconds beside a time in seconds; others a `duration` in milliseconds."""
    paths = ["/a", "/b", "/a", "/b"]
    at = {"time_iso8601": "2026-11-26T12:00:05+01:00", "request_time": "1.250", "duration": 150}
    lines = [{"request": f"GET {path} HTTP/1.1", "status": 200, **at} for path in paths]
    lines.append({"request": "GET /c HTTP/1.1", "status": 200, "time": "2026-11-26T12:00:05+01:00", "duration": 150})
    made = timed("".join(f"{json.dumps(line)}\n" for line in lines))
    sent = [(made.requests[arrival.request]["get"], arrival.at_ns) for arrival in made.arrivals]
    assert sent == [*zip(paths, range(0, 1_000_000_000, 250_000_000), strict=True), ("/c", 1_000_000_000)]
    assert made.spread


def test_a_recording_of_several_days_is_to_be_cut() -> None:
    days = ("2026-11-24", "2026-11-26")
    lines = [{"request": "GET /a HTTP/1.1", "status": 200, "time": f"{day}T12:00:00Z"} for day in days]
    with pytest.raises(UsageError, match="a replay lasts a day at most"):
        timed("".join(f"{json.dumps(line)}\n" for line in lines))


def test_a_recording_of_a_browser_has_times() -> None:
    def entry(url: str, at: str) -> dict[str, Any]:
        return {"startedDateTime": at, "request": {"method": "GET", "url": url}, "response": {"status": 200}}

    entries = [entry("http://h/b", "2026-11-26T12:00:00.250+01:00"), entry("http://h/a", "2026-11-26T11:00:00.125Z")]
    made = timed(json.dumps({"log": {"entries": entries}}))
    sent = [(made.requests[arrival.request]["get"], arrival.at_ns) for arrival in made.arrivals]
    assert sent == [("/a", 0), ("/b", 125_000_000)]


def test_a_file_without_times_is_no_recording() -> None:
    with pytest.raises(UsageError, match="does not say when its requests were sent"):
        timed('{"request": "GET /a HTTP/1.1", "status": 200}\n')
