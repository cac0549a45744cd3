"""The servers and requests that are asked for, as parts of a suite."""

import base64
import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from redline.asking.asks import ComparisonAsk, LoadAsk, RequestAsk, SearchAsk
from redline.asking.catalogues import options_in
from redline.asking.imported import TIMES_FILE
from redline.asking.naming import naming
from redline.asking.project import (
    first_of,
    folder_of,
    journey_at,
    routes_of,
    scenarios_at,
    scenarios_of,
    servers_of,
    variants_of,
)
from redline.asking.suites import check_is_no_file
from redline.asking.ways import Placed, check_way_values, check_ways_are_used, check_without_url, tls_of, way_to
from redline.asking.written import NO_CATALOGUE, Sourced
from redline.defaults import ALONE
from redline.driving import secrets
from redline.errors import UsageError
from redline.model import ServerEntry
from redline.model.catalogue import WORK_TREE, passed_names, slug_text
from redline.schema.document import Document, Plain
from redline.schema.document import Path as Steps
from redline.schema.project import JOURNEY, MIX
from redline.schema.request import EXPECT_CONTINUE, METHODS
from redline.schema.stream import read_stream
from redline.suite import Catalogue, read_body, read_data, referenced_files
from redline.suite.project import Project, has_journey
from redline.suite.urls import (
    as_url,
    base_of,
    check_has_a_host,
    check_is_reachable,
    is_like_a_url,
    is_url,
    is_websocket,
    read_url,
)
from redline.suite.validate.checking import suggest
from redline.suite.validate.referenced_files import Files, with_server_files
from redline.wording import part

ANY_MESSAGE = "message {seq}"
"""The message where none is given, with its number."""
BODY_FILE = "body.bin"
"""The bytes of a body, in the directory of a run."""
OF_HEADERS = {"user_agent": "User-Agent", "cookie": "Cookie", "referer": "Referer"}
"""What is asked for instead of a header, and its name."""
OF_REQUEST = frozenset(
    {
        *OF_HEADERS,
        *("method", "head", "body", "headers", "user", "oauth2_bearer", "aws_sigv4", "compressed", "status", "events"),
    }
)
"""What describes a single request."""
_SCOPE = re.compile(r"aws:amz:([A-Za-z0-9-]+):([A-Za-z0-9-]+)")
_COMMAND = re.compile(r"[./~]|.*[\s{]", re.DOTALL)
_IN_CHUNKS = ("transfer-encoding", "chunked")
"""The header with which curl sends a body in chunks."""
_WAITS = ("expect", "100-continue")
"""The header with which curl lets a body wait for an answer 100."""
_LIST_HINT = "write one such as `- {name: items, get: /items, weight: 3}` for each request"


def servers(
    targets: Mapping[str, str], ask: RequestAsk, placed: Placed, known: Catalogue = NO_CATALOGUE
) -> list[dict[str, object]]:
    """Return the servers of a suite: URLs, commands of the current folder, servers `known`, or revisions.

    A command has spaces or braces, or begins with `.`, `/` or `~`; anything else that is neither a URL nor known is a
    revision. Raises UsageError.
    Several servers have names; a single server is shown by its address, program or revision.
    """
    check_way_values(ask)
    urls = [target for target in targets.values() if is_url(target)]
    if not urls:
        check_without_url(ask)
    check_ways_are_used(urls, ask)
    entries = {name: _server(name, target, ask, placed, known) for name, target in targets.items()}
    if len(entries) == 1:
        return [*entries.values()]
    return [entry if "use" in entry else {"name": name, **entry} for name, entry in entries.items()]


def compared(
    targets: Mapping[str, str], ask: ComparisonAsk | SearchAsk, placed: Placed, known: Catalogue = NO_CATALOGUE
) -> dict[str, object]:
    """Return servers by name, the first as baseline, and their requests. Raises UsageError.

    Servers of the catalogue `known` are asked, unless a path is given, what a ready one answers.
    """
    urls = {name: target for name, target in targets.items() if is_url(target)}
    has_project = any(not is_url(it) and not is_command(it) and it not in known.servers for it in targets.values())
    ready = next((known.servers[target].ready.path for target in targets.values() if target in known.servers), None)
    path = path_of(urls, ask.path)
    if path is None and ready is not None and ask.listed is None:
        path = Sourced("the readiness request", ready)
    if urls and has_project and path and path.value == "/":
        path = None  # the URL names only the server, and redline.yaml the requests
    path = path or (None if has_project else Sourced(part("path", "/"), "/"))
    asked = scenarios_named(targets, ask, known) or scenarios(ask, path, placed, opens=opened_by(urls))
    document: dict[str, object] = {"servers": servers(targets, ask, placed, known)}
    if len(targets) > 1:
        document["baseline"] = _baseline(targets, ask, known)
    return document | ({"scenarios": asked} if asked else {})


def scenarios_named(targets: Mapping[str, str], ask: RequestAsk, known: Catalogue) -> list[object]:
    """The scenarios of the catalogue that are selected, if all servers are of it; empty where a request is described.

    Raises UsageError.
    """
    if not ask.scenarios or describes_requests(ask) or not known.servers.keys() >= {*targets.values()}:
        return []
    if other := next((glob for glob in ask.scenarios if not fnmatch.filter(known.scenarios, glob)), None):
        hint = suggest(other, known.scenarios, "the catalogue has")
        raise UsageError(part("scenarios", other) + ": there is no such scenario", hint=hint)
    names = [name for name in known.scenarios if any(fnmatch.fnmatchcase(name, glob) for glob in ask.scenarios)]
    return [Sourced(part("scenarios", ",".join(ask.scenarios)), name) for name in names]


def _baseline(targets: Mapping[str, str], ask: RequestAsk, known: Catalogue) -> str | dict[str, str]:
    """The first server, as a suite names it; for each other if a server of the catalogue has options.

    A single name would compare variants of equal options.
    """
    if not any("+" in target for target in targets.values() if target in known.servers):
        name, target = next(iter(targets.items()))
        return target if target in known.servers else name
    first, *others = (
        _slug(target, known.servers[target], ask) if target in known.servers else name
        for name, target in targets.items()
    )
    return dict.fromkeys(others, first)


def _slug(target: str, entry: ServerEntry, ask: RequestAsk) -> str:
    options = sorted(options_in(target, entry).items())
    http = ["http2"] if ask.http2 else []
    return "+".join([entry.name, *(f"{name}={slug_text(value)}" for name, value in options), *http])


def aborted_when(conditions: Sequence[str]) -> dict[str, object]:
    """Return what ends loads early, if that is asked for."""
    return {"abort_when": Sourced(part("abort_when"), [*conditions])} if conditions else {}


def settings(ask: RequestAsk, *keys: str) -> dict[str, object]:
    """Return what is asked for under these keys of a suite."""
    return {key: Sourced(part(key, getattr(ask, key)), getattr(ask, key)) for key in ask.differing(keys)}


def check_targets_are_whole(targets: Sequence[str]) -> None:
    """Raise UsageError for a malformed URL, and for a target that is no server."""
    for target in targets:
        check_is_reachable(target)
        check_is_no_file(target)
        if target.startswith(":"):
            check_has_a_host(target)
        if is_like_a_url(target):
            message = f"{target} is neither a command nor a URL of http:// or https://"
            raise UsageError(message, hint=f"try {as_url(target)}")


def of_project(project: Project, ask: LoadAsk | ComparisonAsk | SearchAsk, placed: Placed) -> dict[str, object]:
    """Return a redline.yaml's servers, the first as baseline, reached as is asked, and the requests asked for.

    Without any, the requests are those of the file. Raises UsageError.
    """
    written, path = project.written.servers or (), ask.path
    described = ask.given(OF_REQUEST)
    if described and path is None and ask.listed is None:
        message = described[0] + f": {project.document.file} says what is requested"
        raise UsageError(message, hint=f"write it there, or give {part('path')}")
    check_way_values(ask)
    urls = [server.url or "" for server in written] or [""]
    if not any(urls):
        check_without_url(ask)
    check_ways_are_used([*filter(None, urls)], ask)
    document: dict[str, object] = {
        "servers": [
            _with_ways(server, reached(url, ask, placed))
            for server, url in zip(servers_of(project, placed(folder_of(project))), urls, strict=True)
        ],
        **routes_of(project),
        "scenarios": scenarios(ask, path_of({}, path), placed) or scenarios_of(project),
    }
    return document | ({"baseline": first_of(project)} if variants_of(project) > 1 else {})


def _with_ways(server: dict[str, object], given: dict[str, object]) -> dict[str, object]:
    """A server of redline.yaml, reached as is asked; settings of TLS that are not asked for stay."""
    tls = {**_entries(server.get("tls")), **_entries(given.get("tls"))}
    return server | given | ({"tls": tls} if tls else {})


def _entries(written: object) -> Mapping[str, object]:
    inner = written.value if isinstance(written, Sourced) else written
    return inner if isinstance(inner, Mapping) else {}


def describes_requests(ask: RequestAsk) -> bool:
    """Whether it is asked what is requested, rather than written in a redline.yaml."""
    return ask.listed is not None or bool(ask.differing({*OF_REQUEST, "path"}))


def _server(name: str, target: str, ask: RequestAsk, placed: Placed, known: Catalogue) -> dict[str, object]:
    if is_url(target):
        return {"url": Sourced(target, base_of(target)), **reached(target, ask, placed)}
    way = reached("", ask, placed)
    if is_command(target):
        return {"command": Sourced(name, target), "folder": placed("."), **way}
    if (entry := known.servers.get(target)) is not None:
        options = options_in(target, entry)
        return {"use": Sourced(name, entry.name), **({"with": dict(options)} if options else {}), **way}
    return {"revision": Sourced(name, target), **way}


def reached(url: str, ask: RequestAsk, placed: Placed) -> dict[str, object]:
    """Return how to reach a server; `url` is empty unless it runs already. Raises UsageError."""
    http: dict[str, object] = {"http": Sourced(part("http2"), 2)} if ask.http2 else {}
    return {**http, **way_to(url, ask), **tls_of(url, ask, placed)} if url else http


def is_command(target: str) -> bool:
    """Whether a target is a command, rather than a revision."""
    return target != WORK_TREE and _COMMAND.match(target) is not None


def scenarios(ask: RequestAsk, path: Sourced | None, placed: Placed, *, opens: str | None = None) -> list[object]:
    """Return the requests; empty if none is asked for and `redline.yaml` has them. Raises UsageError.

    `path` is the requested path, which a URL has or which is asked for, and `opens` the URL of a WebSocket.
    """
    if opens is not None:
        return [_message(ask, opens, path or Sourced("/", "/"), placed)]
    if ask.listed is not None:
        check_is_not_described(ask, path)
        # Recorded traffic is measured as a whole; the requests of a list have names that somebody gave them.
        return _selected(ask.listed.document, ask.scenarios or ((MIX,) if ask.listed.is_traffic else ()))
    assert ask.requests is None, "`opened` reads that file"
    if not path and not ask.differing(OF_REQUEST):
        return []
    if ask.scenarios:
        asked = part("scenarios", ",".join(ask.scenarios))
        method = next((name for name in ask.scenarios if name.lower() in METHODS), None)
        hint = f"leave it out: it selects requests of {part('requests')} or redline.yaml"
        if method:
            hint = f"the method is {part('method', method)}"
        raise UsageError(asked + ": there is a single request, without a name", hint=hint)
    return [_request(ask, path or Sourced("/", "/"), placed)]


def check_is_not_described(ask: RequestAsk, path: Sourced | None = None) -> None:
    """Raise UsageError where requests are listed, and one is described too."""
    described = [*ask.given(OF_REQUEST), *([path.source_text] if path is not None and path.value != "/" else [])]
    if described:
        message = described[0] + ": " + part("requests") + " says what is requested"
        raise UsageError(message, hint=f"leave out {described[0]} or {part('requests')}")


def replayed(ask: LoadAsk | ComparisonAsk | SearchAsk, placed: Placed) -> Sourced | None:
    """Return the arrivals of a recording; None without it."""
    if ask.replay is None:
        return None
    file = placed(str(ask.replay)) if ask.recorded is None else TIMES_FILE
    speed = {} if isinstance(ask, SearchAsk) else settings(ask, "speed")
    return Sourced(part("replay", ask.replay), {"replay": file, **speed})


def _selected(document: Document, globs: Sequence[str]) -> list[object]:
    """A scenario for every selected request, and a mix of several by weight; or only `mix`, of all; or a journey.

    Raises UsageError.
    """
    if has_journey(document):
        if wrong := next((glob for glob in globs if not fnmatch.fnmatchcase(JOURNEY, glob)), None):
            hint = f"leave out {part('scenarios')}: {document.file} has a journey"
            raise UsageError(part("scenarios", wrong) + ": there is no such request", hint=hint)
        return [journey_at(document)]
    if not isinstance(document.value, list) or not all(isinstance(request, dict) for request in document.value):
        raise UsageError("this is not a list of requests", hint=_LIST_HINT, place=document.place(()))
    if not document.value:
        raise UsageError("this list has no request", hint=_LIST_HINT, place=document.place(()))
    if [*globs] == [MIX]:
        return scenarios_at(document, [(index,) for index in range(len(document.value))])[-1:]
    names = [str(entry["name"]) for entry in document.value if isinstance(entry, dict) and "name" in entry]
    for glob in globs:
        if not fnmatch.filter(names, glob):
            hint = suggest(glob, names, f"{document.file} has")
            raise UsageError(part("scenarios", glob) + ": there is no such request", hint=hint)
    paths: list[Steps] = [
        (index,)
        for index in range(len(document.value))
        if not globs or any(fnmatch.fnmatchcase(str(document.at((index, "name"))), glob) for glob in globs)
    ]
    return scenarios_at(document, paths)


def _request(ask: RequestAsk, path: Sourced, placed: Placed) -> dict[str, object]:
    """Return the request that is described, with the required keys."""
    method = _method(ask)
    asked: dict[str, object] = {method.lower(): path}
    if method.lower() not in METHODS:
        asked = {"method": Sourced(part("method", ask.method), method), "path": path}
    of_body = {_IN_CHUNKS, _WAITS} if ask.body is not None else set()
    framing = {_lower(pair): pair for pair in ask.headers if _lower(pair) in of_body}
    headers = _headers([pair for pair in ask.headers if _lower(pair) not in of_body])
    auth = _auth(ask)
    if headers := headers | _named_headers(ask) | _sign_in(ask, by_auth=bool(auth)):
        asked["headers"] = headers
    asked |= auth
    if ask.compressed:
        asked["accept"] = Sourced(part("compressed"), ["gzip", "br", "zstd"])
    if ask.body is not None:
        asked["body"] = _body(ask.body, placed)
    if _IN_CHUNKS in framing:
        asked["chunked"] = Sourced(_header(framing[_IN_CHUNKS]), True)
    if _WAITS in framing:
        asked["expect_continue"] = Sourced(_header(framing[_WAITS]), EXPECT_CONTINUE)
    if ask.status is not None:
        asked["expect"] = {"status": Sourced(part("status", ask.status), ask.status)}
    if ask.events is not None:
        asked |= _conversation(ask.events, "")
    return {"name": ALONE, **asked}


def opened_by(urls: Mapping[str, str]) -> str | None:
    """The first URL of a WebSocket, if all of them are. Raises UsageError if some are."""
    of_websockets = [url for url in urls.values() if is_websocket(url)]
    if of_websockets and len(of_websockets) < len(urls):
        other = next(url for url in urls.values() if not is_websocket(url))
        message = f"{of_websockets[0]} is a WebSocket, and {other} is not"
        raise UsageError(message, hint="give URLs of ws:// or wss:// alone")
    return next(iter(of_websockets), None)


def _message(ask: RequestAsk, url: str, path: Sourced, placed: Placed) -> dict[str, object]:
    """Return the message on a WebSocket that is described. Raises UsageError for what only a request has."""
    taken = {"body", "headers", "user", "oauth2_bearer", "events", *OF_HEADERS}
    listed = [] if ask.listed is None else [part("requests")]
    if other := [*ask.given({*OF_REQUEST} - taken), *ask.given({"scenarios"}), *listed]:
        message = f"{other[0]}: {url} is a WebSocket, on which messages are sent"
        raise UsageError(message, hint=f"leave it out; {part('body', 'TEXT')} is the message, which its echo answers")
    asked: dict[str, object] = {"path": path}
    if ask.body is not None:
        asked["send"] = _body(ask.body, placed)
    elif ask.events is None:
        asked["send"] = Sourced("the default message", ANY_MESSAGE)
    if ask.events is not None:
        asked |= _conversation(ask.events, url)
    if headers := _headers(ask.headers) | _named_headers(ask) | _sign_in(ask):
        asked["headers"] = headers
    return {"name": ALONE, "websocket": asked}


def _lower(pair: tuple[str, str]) -> tuple[str, str]:
    return pair[0].lower(), pair[1].lower()


def _header(pair: tuple[str, str]) -> str:
    return part("headers", ": ".join(pair))


def _conversation(text: str, opens: str) -> dict[str, object]:
    """What is said of a conversation: of an answer, or of what comes on the WebSocket that the URL `opens` opens."""
    source = part("events", text)
    with naming(source):
        words = {key: Sourced(source, value) for key, value in read_stream(text).items()}
    if (words["events"].value == "messages") != bool(opens):
        message = f"{source}: {opens} is a WebSocket" if opens else f"{source}: messages are those of a WebSocket"
        hint = f"write {part('events', 'messages until 600')}" if opens else "load a URL of ws:// or wss://"
        raise UsageError(message, hint=hint)
    if opens:
        del words["events"]
        return {"receive": Sourced(source, words)}
    apart = {"timestamp": words.pop("timestamp")} if "timestamp" in words else {}
    return {"stream": Sourced(source, words), **apart}


def _method(ask: RequestAsk) -> str:
    if ask.head:
        if other := ask.given({"method", "body"}):
            message = part("head") + " is the method HEAD, and " + other[0] + " asks for another"
            raise UsageError(message, hint="give either")
        return "HEAD"
    text = ("GET" if ask.body is None else "POST") if ask.method is None else ask.method
    method = text.upper()
    if not re.fullmatch(r"[A-Z]+", method):
        hint = f"write letters alone, such as {part('method', 'PUT')}"
        raise UsageError(part("method", text) + ": is not a method", hint=hint)
    if method == "CONNECT":
        message = part("method", text) + ": CONNECT opens a tunnel, which the engine does not do"
        raise UsageError(message, hint="use another, such as GET or POST")
    return method


def _headers(pairs: Sequence[tuple[str, str]]) -> dict[str, Sourced]:
    """Return headers by name; a repeated header is sent as often, with the spelling of its first name."""
    read: dict[str, tuple[str, list[Plain], list[str]]] = {}
    for name, value in pairs:
        _, values, sources = read.setdefault(name.lower(), (name, [], []))
        values.append(value)
        sources.append(_header((name, value)))
    return {
        name: Sourced(" ".join(sources), values[0] if len(values) == 1 else values)
        for name, values, sources in read.values()
    }


def _named_headers(ask: RequestAsk) -> dict[str, Sourced]:
    """Return the headers that are asked for without their names. Raises UsageError."""
    read: dict[str, Sourced] = {}
    written = {name.lower() for name, _ in ask.headers}
    for field, name in OF_HEADERS.items():
        value = getattr(ask, field)
        if not value:
            continue
        if name.lower() in written:
            message = part(field) + " and " + part("headers", f"{name}: …") + " are the same header"
            raise UsageError(message, hint="leave one of them out")
        values = [value] if isinstance(value, str) else value
        if field == "cookie" and (files := [text for text in values if "=" not in text]):
            hint = f"write {part('cookie', 'NAME=VALUE')}; a journey keeps the cookies of each user"
            raise UsageError(part("cookie", files[0]) + ": a file of cookies is not read", hint=hint)
        read[name] = Sourced(part(field, value), "; ".join(values))
    return read


def _sign_in(ask: RequestAsk, *, by_auth: bool = False) -> dict[str, Sourced]:
    """Return the header of a sign-in by Basic or Bearer, with a reference to what is secret. Raises UsageError.

    Not of one that is `by_auth`.
    """
    if ask.user is None and ask.oauth2_bearer is None and ask.aws_sigv4 is None:
        return {}
    if ask.oauth2_bearer is not None and (ask.user is not None or ask.aws_sigv4 is not None):
        other = part("user" if ask.aws_sigv4 is None else "aws_sigv4")
        raise UsageError(other + " and " + part("oauth2_bearer") + " are two sign-ins", hint="give either")
    if any(name.lower() == "authorization" for name, _ in ask.headers):
        message = part("headers", "Authorization: …") + " is a sign-in of its own"
        raise UsageError(message, hint=f"leave it out, or {part('user' if ask.user else 'oauth2_bearer')}")
    if ask.oauth2_bearer is not None:
        return {"Authorization": _bearer(ask.oauth2_bearer)}
    if by_auth:
        return {}
    name, colon, password = (ask.user or "").partition(":")
    if not colon:
        hint = f"write it like {part('user', 'ann:${PASSWORD}')}, or 'ann:' for none"
        raise UsageError(part("user") + " has no password", hint=hint)
    secrets.hide(ask.user or "", f"{name}:***")
    pair = secrets.with_secrets(f"{name}:{password}", part("user")).encode(errors="surrogateescape")
    reference = secrets.hold("REDLINE_BASIC", base64.b64encode(pair).decode())
    return {"Authorization": Sourced(part("user", f"{name}:***"), f"Basic {reference}")}


def _auth(ask: RequestAsk) -> dict[str, object]:
    """Return the `auth` of a signature, or of a password that names a variable; empty for others. Raises UsageError."""
    if ask.aws_sigv4 is not None:
        return {"auth": _signature(ask, ask.aws_sigv4)}
    name, _, password = (ask.user or "").partition(":")
    basic = {"user": name, "password": password}
    return {"auth": Sourced(part("user", ask.user), {"basic": basic})} if passed_names(password) else {}


def _bearer(token: str) -> Sourced:
    if not token.strip():
        hint = "give the token, or '${NAME}' for a variable with it"
        raise UsageError(part("oauth2_bearer") + " has no token", hint=hint)
    if not passed_names(token):
        secrets.hide(token, "***")
        token = secrets.hold("REDLINE_TOKEN", token)
    return Sourced(part("oauth2_bearer"), f"Bearer {token}")


def _signature(ask: RequestAsk, text: str) -> Sourced:
    """Return the `auth` of a request to AWS, with a reference to the secret. Raises UsageError."""
    source = part("aws_sigv4", text)
    scope = _SCOPE.fullmatch(text)
    if scope is None:
        hint = f"write it like {part('aws_sigv4', 'aws:amz:eu-central-1:execute-api')}"
        raise UsageError(source + " does not name AWS, a region and a service", hint=hint)
    key, colon, secret = (ask.user or "").partition(":")
    if not key or not colon or not secret:
        example = part("user", "${AWS_ACCESS_KEY_ID}:${AWS_SECRET_ACCESS_KEY}")
        hint = f"add {part('user', 'KEY:SECRET')}, such as {example}"
        raise UsageError(source + ": the key and its secret are missing", hint=hint)
    if not passed_names(secret):
        secrets.hide(ask.user or "", f"{key}:***")
        secret = secrets.hold("REDLINE_AWS_SECRET", secret)
    region, service = scope.groups()
    return Sourced(source, {"aws": {"region": region, "service": service, "key": key, "secret": secret}})


def _body(body: str | bytes | Path, placed: Placed) -> object:
    """A text, in which placeholders are filled in; or a file or bytes, which are sent as they are."""
    if isinstance(body, str):
        return Sourced(part("body"), body)
    if isinstance(body, bytes):
        return {"file": Sourced(part("body"), BODY_FILE)}
    return {"file": Sourced(part("body", body), placed(str(body)))}


def path_of(urls: Mapping[str, str], written: str | None) -> Sourced | None:
    """Return the requested path, of the URLs or as it is asked for; None if neither. Raises UsageError.

    `urls` maps the names of servers to their URLs.
    """
    paths = {name: read_url(url)[1] for name, url in urls.items()}
    if written is not None and urls:
        raise UsageError(part("path", written) + ": the URLs name their paths", hint=f"leave out {part('path')}")
    if written is not None:
        return Sourced(part("path", written), written)
    (first, path), *others = paths.items() if paths else [("", "")]
    for name, other in others:
        if other != path:
            raise UsageError(f"{first} is asked for {path} and {name} for {other}", hint="give URLs of the same path")
    return Sourced("the URL's path", path) if paths else None


def placed_here(ask: RequestAsk) -> Placed:
    """Return the names of files in a suite without a file: relative to the folder of a file of requests, if any."""
    return os.path.abspath if ask.requests is not None else str


def referenced(ask: LoadAsk | ComparisonAsk | SearchAsk, project: Project | None = None) -> Files:
    """Read the files that are asked for from anywhere, and those of a list or a redline.yaml from its folder.

    Servers and loads are always of redline.yaml, whoever has the requests.
    """
    anywhere = Files(lambda name: read_data(Path(name)), lambda name: read_body(Path(name)))
    names_files = ask.requests
    if project is not None and not describes_requests(ask):
        names_files = Path(project.document.file)
    beside = anywhere if names_files is None else referenced_files(names_files)
    placed = placed_here(ask)
    named = {placed(str(file)) for file in (ask.cacert, ask.cert, ask.key, ask.replay) if file is not None}

    of_project, own = beside, list[str]()

    def seen(name: str) -> str:
        own.append(name)
        return name

    if project is not None:
        of_project = referenced_files(Path(project.document.file))
        with_server_files(project.document, seen)

    def files(name: str) -> Files:
        return anywhere if name in named else of_project if name in own else beside

    def text(name: str) -> str:
        recorded = ask.recorded if name == TIMES_FILE else None
        return files(name).text(name) if recorded is None else recorded.times

    def body(name: str) -> bytes:
        return ask.body if name == BODY_FILE and isinstance(ask.body, bytes) else files(name).body(name)

    return Files(text, body, lambda name: files(name).place(name))
