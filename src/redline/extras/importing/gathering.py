"""Collect the requests of a file with their counts and omissions, as the list that the commands measure. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import gcd
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from pydantic import TypeAdapter, ValidationError

from redline.extras.importing.form_parts import FormPartOfFile, secret_in_parts, written_parts
from redline.extras.importing.hosts import split_port, without_default_port
from redline.extras.importing.times import spread
from redline.model.template import as_literal
from redline.quantities import LONGEST_DURATION_NS, clip, duration
from redline.schema.bodies import BODIES
from redline.schema.document import Plain
from redline.schema.request import EXPECT_CONTINUE, METHODS, OneRequestSchema
from redline.suite.imported import Arrival, Imported, ImportNote, Kind, Wanted
from redline.suite.request_source import RequestSource
from redline.suite.secret_names import is_secret_header, secret_in_body, secret_in_path, without_secrets
from redline.suite.validate.checking import first_mistake

MOST_WEIGHT = 1_000_000
_HALF = "half of a character stands in it"
_NAME_LENGTH = 40
_SAFE = "!#$%&'()*+,/:;=?@[]~{}|^`\\\"<>"
_OF_THE_CONNECTION = frozenset({
    "connection", "content-length", "expect", "forwarded", "host", "http2-settings", "keep-alive", "proxy-connection",
    "te", "trailer", "transfer-encoding", "upgrade", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto",
    "x-real-ip",
})  # fmt: skip
_OF_THE_BROWSER = frozenset({
    "cache-control", "dnt", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since",
    "pragma", "priority", "referer", "upgrade-insecure-requests",
})  # fmt: skip
"""Conditional headers: with them the answer depends on the browser's cache. Redline has no cache."""
_OF_A_REQUEST = frozenset({
    "b3", "baggage", "newrelic", "request-id", "sentry-trace", "traceparent", "tracestate", "uber-trace-id",
    "x-amzn-trace-id", "x-b3-flags", "x-b3-parentspanid", "x-b3-sampled", "x-b3-spanid", "x-b3-traceid",
    "x-client-trace-id", "x-cloud-trace-context", "x-correlation-id", "x-datadog-origin", "x-datadog-parent-id",
    "x-datadog-sampling-priority", "x-datadog-trace-id", "x-request-id", "x-request-start", "x-trace-id",
})  # fmt: skip
"""Each request has a value of its own for these: with them, no two requests of a recording would be the same."""
NOT_SENT = _OF_THE_CONNECTION | _OF_THE_BROWSER | _OF_A_REQUEST
_ONE_REQUEST: TypeAdapter[OneRequestSchema] = TypeAdapter(OneRequestSchema)
_SCHEMES = ("http", "https")


class Sent(NamedTuple):
    """When a recorded request was sent, in nanoseconds since 1970, and its place in the file among equal times."""

    at_ns: int
    place: int = 0


class ImportedRequest(NamedTuple):
    """A request of a file: `host` with its port, where the file says it, and `target`, the path with its query.

    `body` is text, `body_file` the name of a file, and `parts` and `form` are those of a form; `status` is the answer's
    status, if the file has it. `chunked`: the body is sent in chunks; `waits`: it waits for an answer 100.
    """

    method: str
    target: str
    host: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: str | None = None
    body_file: str | None = None
    status: int | None = None
    name: str = ""
    parts: tuple[FormPartOfFile, ...] = ()
    form: tuple[tuple[str, tuple[str, ...]], ...] = ()
    chunked: bool = False
    waits: bool = False

    @property
    def has_body(self) -> bool:
        """Whether it has a body, which may be empty."""
        return self.body is not None or self.body_file is not None or bool(self.parts or self.form)


@dataclass
class Gathering:
    """The requests of a file while it is read. Requests that become equal are counted together."""

    source: RequestSource
    wanted: Wanted
    counted: dict[ImportedRequest, "Counter[int | None]"] = field(default_factory=dict)
    hosts: "Counter[str]" = field(default_factory=Counter)
    left_out: dict[tuple[Kind, str], tuple[int, str]] = field(default_factory=dict)
    asked_once: set[ImportedRequest] = field(default_factory=set)
    """What the operations of a description ask, without their names."""
    first_host: str = ""
    times: list[tuple[Sent, ImportedRequest]] = field(default_factory=list)
    untimed: int = 0

    def leave_out(self, why: str, example: str = "", count: int = 1, kind: Kind = "request") -> None:
        """Note that requests, or secrets in them, are left out."""
        known, first = self.left_out.get((kind, why), (0, clip(example)))
        self.left_out[kind, why] = known + count, first

    def add(self, asked: ImportedRequest, count: int = 1, times: Iterable[Sent] = (), *, once: bool = False) -> None:
        """Add `count` occurrences of a request, unless it cannot be sent again; at these times, if wanted.

        `once`: a request that asks the same as an earlier one, perhaps by another name, is left out.
        """
        target, example = asked.target, f"{asked.method} {asked.target.partition('?')[0]}"
        times = tuple(times)
        if self.wanted.times and len(times) < count:  # a replay sends what has a time
            self.untimed += count - len(times)
            self.leave_out("without a time that can be read", example, count - len(times))
            count = len(times)
        if not count:
            return
        if asked.status == 101:
            self.leave_out("of a WebSocket", example, count)
        elif asked.status is not None and not 200 <= asked.status < 400:
            said = f"answered with status {asked.status}" if asked.status >= 400 else "without an answer"
            self.leave_out(said, example, count)
        elif secret_in_path(target.partition("?")[0]):
            self.leave_out("with a token in the path", asked.method, count)
        elif (secret := self._secret_in_body(asked)) is not None:
            self.leave_out(f"whose body holds a secret (`{clip(secret)}`)", example, count)
        elif coding := _unknown_coding(asked):
            self.leave_out(f"whose body is sent with Transfer-Encoding: {clip(coding)}", example, count)
        else:
            clean = self._clean(asked, example, count)
            unnamed = clean._replace(name="")
            if once and unnamed in self.asked_once:
                self.leave_out("that ask the same as another of them", example, count)
                return
            if once:
                self.asked_once.add(unnamed)
            self.hosts[clean.host] += count
            # A browser that had cached the file got 304; a request without a condition gets 200.
            status = 200 if asked.status == 304 else asked.status
            self.counted.setdefault(clean, Counter())[status] += count
            self.times += [(sent, clean) for sent in times]

    def add_url(self, asked: ImportedRequest, url: str, times: Iterable[Sent] = ()) -> None:
        """Add a request whose host and target are in a URL."""
        try:
            parts = urlsplit(url)
        except ValueError:
            self.leave_out("whose URL cannot be read", url.partition("?")[0])
            return
        if parts.scheme not in _SCHEMES:
            self.leave_out("that are not of http:// or https://", url.partition(":")[0])
            return
        _, at, host = parts.netloc.rpartition("@")
        target = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
        if at:
            self.leave_out("a user in the URL", host, kind="secret")
        host = f"{parts.scheme}://{without_default_port(parts.scheme, host.lower())}"
        self.first_host = self.first_host or host
        self.add(asked._replace(host=host, target=target), times=times)

    def made(self, form: str, *, of_a_page: bool = False) -> Imported:
        """The list of all added requests. Raises UsageError if none is left.

        The first request of a page names its host, even if requests to other hosts outnumber it.
        """
        if self.untimed and not self.times:
            raise self.source.timeless()
        host = self._host(of_a_page=of_a_page)
        by_request = list[tuple[int, ImportedRequest, int | None]]()
        for asked, statuses in self.counted.items():
            if asked.host not in {host, ""}:
                self.leave_out(f"to {asked.host}", asked.target, statuses.total())
                continue
            ((status, _),) = statuses.most_common(1)
            by_request.append((statuses.total(), asked, status))
        by_request.sort(key=lambda entry: -entry[0])
        requests, counts, files = list[dict[str, Plain]](), list[int](), list[str]()
        places = dict[ImportedRequest, int]()
        for at, (count, asked, status) in enumerate(by_request):
            if len(requests) == self.wanted.most:
                rest = sum(other for other, *_ in by_request[at:])
                different = len(by_request) - at
                why = f"not among the {len(requests)} most frequent ({different:,} different requests)"
                self.leave_out(why, asked.target, rest)
                break
            request, wrong = _written(asked, status, self.source)
            if wrong:
                self.leave_out(f"that cannot be sent: {wrong}", f"{asked.method} {asked.target}", count)
                continue
            places[asked] = len(requests)
            requests.append({"name": asked.name, **request})
            counts.append(count)
            files += [file for file in (asked.body_file, *(part.file for part in asked.parts)) if file]
        left = [ImportNote(count, why, example, kind) for (kind, why), (count, example) in self.left_out.items()]
        if not requests:
            whys = "; ".join(f"{entry.count:,} {entry.why}" for entry in left if entry.kind == "request")
            hint = f"left out: {whys}" if whys else "see whether this is the right file"
            raise self.source.wrong(f"this {form} has no request that can be sent", hint)
        return Imported(form, _with_names(requests, counts), counts, left, host, tuple(files), *self._arrivals(places))

    def _arrivals(self, places: Mapping[ImportedRequest, int]) -> tuple[tuple[Arrival, ...], bool]:
        """The arrivals of the requests in the list, and whether they are spread over seconds.

        Raises UsageError if the file lacks the wanted times, or spans more than a day.
        """
        known = [(sent, places[asked]) for sent, asked in self.times if asked in places]
        if self.wanted.times and not known:
            raise self.source.timeless()
        known.sort(key=lambda entry: entry[0])
        written = [sent.at_ns for sent, _ in known]
        times = spread(written)
        if times and (lasts_ns := times[-1] - times[0]) > LONGEST_DURATION_NS:
            message = f"the requests of this file were sent in {duration(lasts_ns)}; a replay lasts a day at most"
            raise self.source.wrong(message, "cut a part of it, such as: grep '26/Nov/2026:12:' access.log > noon.log")
        arrivals = (Arrival(at_ns - times[0], request) for at_ns, (_, request) in zip(times, known, strict=True))
        return tuple(arrivals), times != written

    def _secret_in_body(self, asked: ImportedRequest) -> str | None:
        """The name of the first secret in a body; None if there is none."""
        keep = self.wanted.keep
        if asked.parts or asked.form:
            fields = (FormPartOfFile(name, text) for name, texts in asked.form for text in texts)
            return secret_in_parts((*asked.parts, *fields), keep)
        return secret_in_body(asked.body, keep) if asked.body else None

    def _host(self, *, of_a_page: bool) -> str:
        """The host whose requests are kept: the wanted host, the page's host, or the most frequent host."""
        if (wanted := self.wanted.host) is None:
            if of_a_page and self.hosts[self.first_host]:
                return self.first_host
            named = {host: count for host, count in self.hosts.items() if host}
            return max(named, key=lambda host: named[host], default="")
        wanted = wanted.lower()
        match = [host for host in self.hosts if wanted in {host, host.rpartition("/")[2]}]
        named_so = split_port(wanted.rpartition("/")[2])[0]
        match = match or [host for host in self.hosts if split_port(host.rpartition("/")[2])[0] == named_so]
        if not match:
            known = ", ".join(sorted(filter(None, self.hosts))[:10]) or "no host"
            raise self.source.wrong(f"there is no request to {self.wanted.host}", f"this file names {known}")
        return match[0]

    def _clean(self, asked: ImportedRequest, example: str, count: int) -> ImportedRequest:
        """The request without secrets, and without headers of the connection and of the browser's cache."""
        keep = self.wanted.keep
        target, names = without_secrets(asked.target.partition("#")[0], keep)
        secrets = {f"the parameter `{clip(name)}`" for name in names}
        chunked = asked.chunked or (asked.has_body and bool(_values(asked, "transfer-encoding")))
        waits = asked.waits or (asked.has_body and "100-continue" in _values(asked, "expect"))
        headers = list[tuple[str, str]]()
        for name, value in asked.headers:
            lower = name.lower()
            if (asked.parts or asked.form) and lower == "content-type":
                continue
            if lower in NOT_SENT or lower.startswith((":", "sec-")) or not value.strip():
                continue
            if is_secret_header(name, value) and lower not in keep:
                secrets.add(f"the header {name.title()}")
            else:
                headers.append((name, value.strip()))
        for secret in sorted(secrets):
            self.leave_out(secret, example, count, kind="secret")
        return asked._replace(target=target, headers=tuple(headers), status=None, chunked=chunked, waits=waits)


def _values(asked: ImportedRequest, header: str) -> list[str]:
    """The values of a header, in lower case."""
    return [value.strip().lower() for name, value in asked.headers if name.lower() == header and value.strip()]


def _unknown_coding(asked: ImportedRequest) -> str:
    """The Transfer-Encoding of a body, if it is more than chunks; else empty."""
    return next((coding for coding in _values(asked, "transfer-encoding") if coding != "chunked"), "") * asked.has_body


def _written(asked: ImportedRequest, status: int | None, source: RequestSource) -> tuple[dict[str, Plain], str]:
    """The request as an item of a list of requests, and an error message if it cannot be sent."""
    if _has_surrogate(asked.target):  # which UTF-8 cannot encode, so percent-encoding fails
        return {}, _HALF
    path: Plain = as_literal(quote(asked.target, safe=_SAFE))
    method = asked.method.upper()
    request: dict[str, Plain] = (
        {method.lower(): path} if method.lower() in METHODS else {"method": method, "path": path}
    )
    headers: dict[str, Plain] = {}
    for name, value in asked.headers:
        add_header(headers, name, as_literal(value))
    if headers:
        request["headers"] = headers
    request |= _written_body(asked)
    if status not in {None, 200}:
        request["expect"] = {"status": status}
    return request, _mistake(request, source)


def add_header(headers: dict[str, Plain], name: str, text: str) -> None:
    """Add a header; one that is there already gets a list of its texts."""
    known = next((other for other in headers if other.lower() == name.lower()), name)
    before = headers.get(known)
    headers[known] = text if before is None else [*(before if isinstance(before, list) else [before]), text]


def _written_body(asked: ImportedRequest) -> dict[str, Plain]:
    """The keys of a request that describe its body."""
    written: dict[str, Plain] = {}
    if asked.body_file is not None:
        written["body"] = {"file": asked.body_file}
    elif asked.parts:
        written["multipart"] = written_parts(asked.parts)
    elif asked.form:
        written["form"] = {as_literal(name): [*map(as_literal, texts)] for name, texts in asked.form}
    elif asked.body is not None:
        written["body"] = as_literal(asked.body)
    if asked.chunked:
        written["chunked"] = True
    if asked.waits:
        written["expect_continue"] = EXPECT_CONTINUE
    return written


def _mistake(request: Mapping[str, Any], source: RequestSource) -> str:
    """The reason why a request cannot be sent; empty if it can."""
    try:
        _ONE_REQUEST.validate_python(request, context={BODIES: source.body})
    except ValidationError as error:
        return first_mistake(error, OneRequestSchema).message
    return _HALF if any(map(_has_surrogate, _texts(request))) else ""


def _texts(value: object) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (key, *_texts(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _has_surrogate(text: str) -> bool:
    return re.search("[\ud800-\udfff]", text) is not None


def _with_names(requests: list[dict[str, Plain]], counts: list[int]) -> list[dict[str, Plain]]:
    """The requests with unique names, and with weights if these differ."""
    weights, used = _weights(counts), set[str]()
    named = list[dict[str, Plain]]()
    for request, weight in zip(requests, weights, strict=True):
        method = next(key for key in (*METHODS, "method") if key in request)
        path = str(request.get("path", request[method]))
        name = unused_name(
            str(request["name"]) or f"{'' if method == 'get' else method} {path.partition('?')[0]}", used
        )
        used.add(name)
        weighted: dict[str, Plain] = {} if weight == 1 else {"weight": weight}
        named.append(request | {"name": name} | weighted)
    return named


def unused_name(text: str, used: set[str]) -> str:
    """A unique name of letters, digits, - and _ that begins with a letter."""
    base = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-_")[:_NAME_LENGTH].strip("-_") or "root"
    base = base if base[0].isalpha() else f"r-{base}"
    at, name = 1, base
    while name in used or name == "mix":
        at += 1
        name = f"{base}-{at}"
    return name


def _weights(counts: list[int]) -> list[int]:
    """Whole weights from 1 to a million in the ratio of the counts, as nearly as that allows."""
    shared = gcd(*counts)
    most = max(counts) // shared
    if most <= MOST_WEIGHT:
        return [count // shared for count in counts]
    return [max(1, round(count / max(counts) * MOST_WEIGHT)) for count in counts]
