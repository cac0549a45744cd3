"""The sums of a meter, written to a server of Prometheus while a command runs.

Importing this needs the extra `remote-write`: protocol buffers and Snappy. Source: the Prometheus Remote-Write
Specification 1.0, https://prometheus.io/docs/specs/prw/remote_write_spec/.
"""

import math
import os
import struct
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import unquote

import cramjam
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from redline.errors import UsageError
from redline.extras.telemetry.families import CREATED, families
from redline.extras.telemetry.meter import SummingMeter
from redline.extras.telemetry.pushing import pushed_to, pushing
from redline.version import VERSION

HEADERS = "REDLINE_REMOTE_WRITE_HEADERS"
"""The variable with further headers, as OTEL_EXPORTER_OTLP_HEADERS has them: name=value, with commas between."""
_TIMEOUT_S = 5.0
_PATH = "/api/v1/write"
_STALE = struct.unpack("<d", struct.pack("<Q", 0x7FF0_0000_0000_0002))[0]
"""The NaN that says that a series has ended (specification, "Stale Markers")."""
_MOST_SAID = 200

SeriesLabels = tuple[tuple[str, str], ...]
"""The labels of a series, among them its name, in their order."""
Values = Mapping[SeriesLabels, float]


def _message_of_requests() -> Any:
    """The class of `prometheus.WriteRequest`, as far as it is written here."""
    kinds = descriptor_pb2.FieldDescriptorProto
    fields: dict[str, tuple[tuple[str, int, int, str], ...]] = {
        "Label": (("name", 1, kinds.TYPE_STRING, ""), ("value", 2, kinds.TYPE_STRING, "")),
        "Sample": (("value", 1, kinds.TYPE_DOUBLE, ""), ("timestamp", 2, kinds.TYPE_INT64, "")),
        "TimeSeries": (("labels", 1, kinds.TYPE_MESSAGE, "Label"), ("samples", 2, kinds.TYPE_MESSAGE, "Sample")),
        "WriteRequest": (("timeseries", 1, kinds.TYPE_MESSAGE, "TimeSeries"),),
    }
    file = descriptor_pb2.FileDescriptorProto(name="redline/remote_write.proto", package="prometheus", syntax="proto3")
    for message, its in fields.items():
        made = file.message_type.add(name=message)
        for name, number, kind, of in its:
            label = kinds.LABEL_REPEATED if of else kinds.LABEL_OPTIONAL
            type_name = f".prometheus.{of}" if of else None
            made.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("prometheus.WriteRequest"))


WRITE_REQUEST = _message_of_requests()


@contextmanager
def written(meter: SummingMeter, url: str, say: Callable[[str], object]) -> Iterator[None]:
    """Write the meter to this URL every few seconds, and once more at the end, when its series end.

    A write that fails ends no load: in the end `say` gets a line about it. Raises UsageError for a URL that is none,
    and for headers that are none.
    """
    endpoint, headers = pushed_to("--remote-write", url, _PATH, "http://127.0.0.1:9090/api/v1/write"), _headers()
    writer = _Writer(meter, endpoint, headers)
    try:
        with pushing(writer.write, f"metrics to {endpoint}", 3 * _TIMEOUT_S, say):
            yield
    finally:
        writer.end()


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for the answer that it is: a write does not arrive by it, and headers are for one server."""

    def redirect_request(self, *_: object) -> None:
        """Ask nothing further."""


_OPENER = urllib.request.build_opener(_NoRedirects)


class _Writer:
    """Writes the values of all series, and the end of those that are no longer there."""

    def __init__(self, meter: SummingMeter, endpoint: str, headers: Mapping[str, str]) -> None:
        self._meter, self._endpoint, self._headers = meter, endpoint, headers
        self._known: frozenset[SeriesLabels] = frozenset()
        self._is_reached = True
        self._last_ms = 0

    def write(self) -> str:
        """Write everything that the meter has. Returns why that failed, or nothing."""
        values = values_of(self._meter)
        ended = self._known - values.keys()
        why = self._post({**values, **dict.fromkeys(ended, _STALE)})
        self._is_reached = not why
        if not why:
            self._known = frozenset(values)
        return why

    def end(self) -> None:
        """Say that all series have ended, to a server that took the last of them."""
        if self._known and self._is_reached:
            with suppress(Exception):  # Prometheus ends them by itself, five minutes later
                self._post(dict.fromkeys(self._known, _STALE))

    def _post(self, values: Values) -> str:
        if not values:
            return ""
        self._last_ms = max(time.time_ns() // 1_000_000, self._last_ms + 1)  # samples of a series stand in order
        content = bytes(cramjam.snappy.compress_raw(message(values, self._last_ms)))
        request = urllib.request.Request(self._endpoint, content, self._headers, method="POST")  # noqa: S310 - checked
        try:
            with _OPENER.open(request, timeout=_TIMEOUT_S):
                return ""
        except urllib.error.HTTPError as error:
            said = error.read(_MOST_SAID).decode(errors="replace").strip()
            return f"status {error.code}{f', {said}' if said else ''}"
        except urllib.error.URLError as error:
            return str(getattr(error.reason, "strerror", None) or error.reason)


def values_of(meter: SummingMeter) -> Values:
    """The present value of every series; the times at which sums began are no series of Prometheus."""
    return {
        tuple(sorted({"__name__": f"{family.name}{sample.suffix}", **sample.labels}.items())): float(sample.value)
        for family in families(meter)
        for sample in family.samples
        if sample.suffix != CREATED
    }


def message(values: Values, at_ms: int) -> bytes:
    """A write of these values, all at the same time, in milliseconds since the epoch."""
    made = WRITE_REQUEST()
    for labels, value in values.items():
        series = made.timeseries.add()
        for name, text in labels:
            series.labels.add(name=name, value=text)
        series.samples.add(value=value, timestamp=at_ms)
    return bytes(made.SerializeToString())


def is_stale(value: float) -> bool:
    """Whether a value says that its series has ended."""
    return math.isnan(value) and struct.pack("<d", value) == struct.pack("<d", _STALE)


def _headers() -> dict[str, str]:
    """The headers of a write. Raises UsageError that quotes no value."""
    own = {
        "Content-Type": "application/x-protobuf",
        "Content-Encoding": "snappy",
        "X-Prometheus-Remote-Write-Version": "0.1.0",
        "User-Agent": f"redline/{VERSION}",
    }
    return own | dict(_headers_of(filter(str.strip, os.environ.get(HEADERS, "").split(","))))


def _headers_of(pairs: Iterable[str]) -> Iterator[tuple[str, str]]:
    for pair in pairs:
        name, equals, value = (unquote(part.strip()) for part in pair.partition("="))
        if not equals or not name.replace("-", "").isalnum() or not (value.isascii() and value.isprintable()):
            raise UsageError(
                f"{HEADERS} has a part that is no header",
                hint=f"write {HEADERS}='Authorization=Bearer%20…', with commas between several",
            )
        yield name, value
