"""What the flags of `redline load` and `redline limit URL` say: the server, its requests, and how hard it is loaded.

The values are those of a suite, and the suite's schemas check them.
"""

import re
from pathlib import Path
from typing import Any

from redline.cli.command_line import LoadFlags, RequestFlags
from redline.cli.flags import DETECTED, naming, read_flag, read_schema
from redline.cli.request_flags import Placed, path_of, scenarios, servers
from redline.cli.targets import check_target
from redline.cli.written import Given
from redline.errors import UsageError
from redline.model import AttachedServer, Body, Closed, Load, Objective, Request, Scenario, Tls, Variant
from redline.model.catalogue import certificates
from redline.model.template import picked
from redline.suite import parse_objectives, read_body, read_data, read_entries, read_times
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.scenario import (
    ExpectedSchema,
    check_header_name,
    check_header_text,
    check_placeholders,
    http2_forbids,
)
from redline.suite.urls import base_of, is_secure, read_url
from redline.suite.validate.referenced_files import wrong_entry

_METHOD = re.compile(r"[A-Z]+")


def read_objectives(texts: list[str], load: Load) -> tuple[Objective, ...]:
    """What a load has to meet. Raises UsageError, also for `achieved` where users wait and no rate is asked for."""
    if not texts:
        return ()
    with naming("--objective"):
        found = parse_objectives(", ".join(texts))
    if isinstance(load.shape, Closed) and any(one.metric == "achieved" for one in found):
        raise UsageError("--objective: `achieved` is a share of a rate, and this load has none", hint="give -R")
    return found


def load_document(flags: LoadFlags, placed: Placed) -> dict[str, object]:
    """The suite of one load that the flags ask for: one server, one scenario, one trial. Raises UsageError."""
    target = {"server": base_of(flags.url)}
    *_, asked = scenarios(flags, path_of({"server": flags.url}, None), placed)
    if flags.warmup == DETECTED and (flags.stages or flags.replay):
        hint = "give a time, such as --warmup 10s"
        raise UsageError("--warmup auto needs a load that does not change by design", hint=hint)
    written = flags.written()
    document: dict[str, object] = {
        "servers": [{key: value for key, value in servers(target, flags, placed)[0].items() if key != "name"}],
        "scenarios": [asked],
        "loads": {"load": _load(flags, placed)},
        "warmup": Given(written["warmup"], {"detect": {}} if flags.warmup == DETECTED else flags.warmup),
        "trials": 1,
        "seed": Given(written["seed"], flags.seed),
        "engine": {"backend": flags.backend, "spin": flags.spin},
    }
    if flags.timeout is not None:
        document["timeout"] = Given(written["timeout"], flags.timeout)
    if flags.objective:
        document["objective"] = Given("--objective", flags.objective)
    return document


def _load(flags: LoadFlags, placed: Placed) -> dict[str, object]:
    """The load: open with a rate or a file to replay, else closed. Raises UsageError."""
    is_open = flags.rate is not None or flags.replay is not None
    _check_combination(flags, is_open=is_open)
    written = flags.written()
    if is_open:
        replay = flags.replay and Given(written["replay"], {"replay": placed(str(flags.replay))})
        shape: dict[str, object] = {
            "rate": flags.rate and Given(written["rate"], flags.rate),
            "arrivals": replay or flags.arrivals,
            "connections": Given(written["connections"], flags.connections),
        }
    else:
        kind, colon, mean = (flags.think or "").partition(":")
        think = {"exponential": mean} if colon and kind == "exp" else flags.think
        shape = {
            "users": Given(written["connections"], flags.connections),
            "think": think and Given(written["think"], think),
            "pace": flags.pace and Given(written["pace"], flags.pace),
        }
    if flags.depth != 1:
        shape["depth"] = Given(written["depth"], flags.depth)
    if flags.requests_per_connection is not None:
        shape["requests_per_connection"] = Given(written["requests_per_connection"], flags.requests_per_connection)
    if flags.stages:
        stages = [Given(f"--stage {text}", _stage(text, in_users=not is_open)) for text in flags.stages]
        shape["stages"] = Given(f"--stage {' --stage '.join(flags.stages)}", stages)
    load: dict[str, object] = {
        "open" if is_open else "closed": {key: value for key, value in shape.items() if value is not None},
        "for": Given(written["duration"], flags.duration),
    }
    if flags.count is not None:
        load["count"] = Given(written["count"], flags.count)
    return load


def read_load(flags: LoadFlags) -> Load:
    """The load: open with a rate or a file to replay, else closed. Raises UsageError, which names the flag."""
    is_open = flags.rate is not None or flags.replay is not None
    _check_combination(flags, is_open=is_open)
    shape: dict[str, object] = {
        "depth": flags.depth,
        "requests_per_connection": flags.requests_per_connection,
        "stages": [_stage(text, in_users=not is_open) for text in flags.stages],
    }
    if is_open:
        arrivals = flags.arrivals or "poisson"
        shape |= {
            "rate": flags.rate,
            "connections": flags.connections,
            "arrivals": arrivals if flags.replay is None else {"replay": str(flags.replay)},
        }
    else:
        kind, colon, mean = (flags.think or "").partition(":")
        think = {"exponential": mean} if colon and kind == "exp" else flags.think
        shape |= {"users": flags.connections, "think": think, "pace": flags.pace}
    written = flags.written()
    given: dict[Any, str] = {
        **written,
        "users": written["connections"],
        "for": written["duration"],
        "arrivals": written["replay"],
        "stages": f"--stage {' --stage '.join(flags.stages)}",
        **{index: f"--stage {text}" for index, text in enumerate(flags.stages)},
    }
    values = {"open" if is_open else "closed": shape, "for": flags.duration, "count": flags.count}
    schema = read_schema(LoadSchema, given, values)
    replayed_ns = () if flags.replay is None else read_times(read_data(flags.replay), str(flags.replay))
    return schema.load("load", replayed_ns)


def _stage(text: str, *, in_users: bool) -> dict[str, object]:
    to, colon, over = text.rpartition(":")
    if not colon or not to or (in_users and not to.isdecimal()):
        what = "users" if in_users else "requests per second"
        raise UsageError(f"--stage {text} is not a stage", hint=f"write {what} and how long: --stage 1000:10s")
    return {"to": int(to) if in_users else to, "over": over}


def _check_combination(flags: LoadFlags, *, is_open: bool) -> None:
    """Raises UsageError for a flag of closed loads with an open one, and the other way round."""
    if flags.arrivals is not None and flags.replay is not None:
        raise UsageError(
            f"--arrivals {flags.arrivals}: --replay says when requests are due", hint="leave out --arrivals or --replay"
        )
    if flags.arrivals is not None and flags.rate is None:
        message = f"--arrivals {flags.arrivals}: in a closed load, requests follow the answers"
        raise UsageError(message, hint="add a rate, such as -R 5000, or leave out --arrivals")
    for flag, value in (("--think", flags.think), ("--pace", flags.pace)):
        if value is not None and is_open:
            opens = "--replay" if flags.rate is None else "-R"
            raise UsageError(
                f"{flag} {value}: only users of a closed load have that", hint=f"leave out {opens} or {flag}"
            )


def read_target(url: str, flags: RequestFlags, scenario: str) -> tuple[Variant, Scenario]:
    """The server that is already running behind a URL, and what it is asked, by that name. Raises UsageError."""
    endpoint, path = read_url(url)
    check_target(endpoint.host, flags.mine)
    tls = read_tls(url, flags.cacert, insecure=flags.insecure)
    expected = 200 if flags.status is None else flags.status
    request = read_request(path, flags.method, flags.headers, flags.body, expected, http2=flags.http2)
    server = AttachedServer(host=endpoint.host, port=endpoint.port)
    variant = Variant(entry=server, http="2" if flags.http2 else "1.1", tls=tls)
    return variant, Scenario(name=scenario, request=request, picks=read_picks(request))


def read_tls(url: str, cacert: Path | None, *, insecure: bool) -> Tls | None:
    """The TLS of an https URL, None for another. Raises UsageError for flags that mean nothing there."""
    if not is_secure(url):
        if insecure or cacert is not None:
            flag = "--insecure" if insecure else "--cacert"
            raise UsageError(f"{flag} means nothing without TLS", hint=f"leave it out, or use https:// in {url}")
        return None
    if cacert is None:
        return Tls(insecure=insecure)
    if insecure:
        raise UsageError("--cacert checks a certificate and --insecure takes any", hint="give one of the two")
    ca_pem = certificates(read_data(cacert))
    if not ca_pem:
        raise UsageError(f"--cacert {cacert} holds no certificate", hint="name a PEM file")
    return Tls(ca_pem=ca_pem)


def read_request(
    path: str, method: str | None, headers: list[str], body: str | None, status: int, *, http2: bool = False
) -> Request:
    """The request and its expected status. Raises UsageError, which names the flag."""
    with naming("the URL's path"):
        check_placeholders(path)
    return Request(
        method=_method(("GET" if body is None else "POST") if method is None else method),
        path=path,
        headers=_headers(headers, http2=http2),
        body=None if body is None else _body(body),
        expect=ExpectedSchema(status=read_flag("--status", status, "status", ExpectedSchema)).expected(),
    )


def read_picks(request: Request) -> dict[str, tuple[str, ...]]:
    """The entries of the files that the request picks from. Raises UsageError."""
    named = {name for text in request.texts for name in picked(text)}
    picks = {name: read_entries(read_data(Path(name)), name) for name in sorted(named)}
    if (wrong := wrong_entry(request, picks)) is not None:
        raise UsageError(wrong.message, hint=wrong.hint)
    return picks


def _method(text: str) -> str:
    method = text.upper()
    if not _METHOD.fullmatch(method):
        raise UsageError(f"-X {text!r}: is not a method", hint="write letters alone, such as -X PUT")
    if method == "CONNECT":
        hint = "use another, such as GET or POST"
        raise UsageError(f"-X {text}: CONNECT opens a tunnel, which the engine does not do", hint=hint)
    return method


def _headers(lines: list[str], *, http2: bool) -> dict[str, str | tuple[str, ...]]:
    """By name; one that is given several times is sent as often, under the name that it was first given."""
    found: dict[str, tuple[str, list[str]]] = {}
    for line in lines:
        name, colon, value = (part.strip(" \t") for part in line.partition(":"))
        if not colon or not name:
            raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
        with naming(f"-H {line!r}"):
            check_header_name(name)
            check_header_text(value)
        if http2 and http2_forbids(name, value):
            message = f"-H {line!r}: HTTP/2 forbids `{name}` (RFC 9113, section 8.2.2)"
            raise UsageError(message, hint="leave out -H or --http2")
        found.setdefault(name.lower(), (name, []))[1].append(value)
    return {name: values[0] if len(values) == 1 else tuple(values) for name, values in found.values()}


def _is_text(text: str) -> bool:
    """Whether it came as UTF-8: Python keeps other bytes of a command line as halves of characters."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _body(text: str) -> Body:
    if text.startswith("@"):
        with naming(f"--body {text}"):
            return Body(raw=read_body(Path(text[1:])))
    if not _is_text(text):
        raise UsageError("--body: it is not UTF-8", hint="save it in a file, and give --body @FILE")
    with naming("--body"):
        return Body(text=check_placeholders(text))
