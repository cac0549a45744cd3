"""Turn the flags of `load`, `limit` and `ab` about servers and requests into parts of a suite document."""

import base64
import fnmatch
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from redline.cli.command_line import AbFlags, LimitFlags, LoadFlags, RequestFlags
from redline.cli.flags import check_is_no_file, naming, split
from redline.cli.imported import TIMES_FILE, as_document, read_file, read_recording, summary, times_of, times_summary
from redline.cli.project_document import (
    first_of,
    folder_of,
    journey_at,
    routes_of,
    scenarios_at,
    scenarios_of,
    servers_of,
    variants_of,
)
from redline.cli.show import Terminal
from redline.cli.way_flags import Placed, check_way_values, check_ways_are_used, check_without_url, tls_of, way_to
from redline.cli.written import Given
from redline.errors import UsageError
from redline.model.catalogue import WORK_TREE, passed_names
from redline.plugins import secrets
from redline.suite import read_body, read_data, referenced_files
from redline.suite.project import Project, has_journey
from redline.suite.schema.document import Document, Plain
from redline.suite.schema.document import Path as Steps
from redline.suite.schema.project import JOURNEY, MIX
from redline.suite.schema.request import EXPECT_CONTINUE, METHODS
from redline.suite.schema.stream import read_stream
from redline.suite.urls import as_url, base_of, check_is_reachable, is_like_a_url, is_url, read_url
from redline.suite.validate.checking import suggest
from redline.suite.validate.referenced_files import Files, with_files

REQUEST = "requests"
"""The name of the request that the flags describe."""
OF_HEADERS = {"user_agent": "User-Agent", "cookie": "Cookie", "referer": "Referer"}
"""The flags for a header, and its name."""
OF_REQUEST = frozenset(
    {
        *OF_HEADERS,
        *("method", "head", "body", "headers", "user", "oauth2_bearer", "aws_sigv4", "compressed", "status", "events"),
    }
)
"""The flags that describe a request."""
_SCOPE = re.compile(r"aws:amz:([A-Za-z0-9-]+):([A-Za-z0-9-]+)")
_COMMAND = re.compile(r"[./~]|.*[\s{]", re.DOTALL)
_IN_CHUNKS = re.compile(r"\s*transfer-encoding\s*:\s*chunked\s*", re.IGNORECASE)
"""The header with which curl sends a body in chunks."""
_WAITS = re.compile(r"\s*expect\s*:\s*100-continue\s*", re.IGNORECASE)
"""The header with which curl lets a body wait for an answer 100."""
_LIST_HINT = "write one such as `- {name: items, get: /items, weight: 3}` for each request"


def servers(targets: Mapping[str, str], flags: RequestFlags, placed: Placed) -> list[dict[str, object]]:
    """Return the servers of a document: URLs, commands of the current folder, or revisions. Raises UsageError.

    A command has spaces or braces, or begins with `.`, `/` or `~`; anything else that is not a URL is a revision.
    Several servers have names; a single server is shown by its address, program or revision.
    """
    check_way_values(flags)
    urls = [target for target in targets.values() if is_url(target)]
    if not urls:
        check_without_url(flags)
    check_ways_are_used(urls, flags)
    entries = {name: _server(name, target, flags, placed) for name, target in targets.items()}
    return [{"name": name, **entry} for name, entry in entries.items()] if len(entries) > 1 else [*entries.values()]


def compared(targets: Mapping[str, str], flags: AbFlags | LimitFlags, placed: Placed) -> dict[str, object]:
    """Return servers by name, the first as baseline, and their requests. Raises UsageError."""
    urls = {name: target for name, target in targets.items() if is_url(target)}
    has_project = any(not is_url(target) and not is_command(target) for target in targets.values())
    path = path_of(urls, flags.path)
    if urls and has_project and path and path.value == "/":
        path = None  # the URL names only the server, and redline.yaml the requests
    asked = scenarios(flags, path or (None if has_project else Given("--path /", "/")), placed)
    document: dict[str, object] = {"servers": servers(targets, flags, placed)}
    if len(targets) > 1:
        document["baseline"] = next(iter(targets))
    return document | ({"scenarios": asked} if asked else {})


def aborted_when(conditions: list[str]) -> dict[str, object]:
    """Return what ends loads early, if the flags say so."""
    return {"abort_when": Given("--abort-when", conditions)} if conditions else {}


def settings(flags: RequestFlags, *keys: str) -> dict[str, object]:
    """Return the values of flags with these names that differ from their defaults, by key."""
    given = [key for key in keys if flags.given(among={key})]
    return {key: Given(flags.written()[key], getattr(flags, key)) for key in given}


def check_targets_are_whole(targets: Sequence[str]) -> None:
    """Raise UsageError for a malformed URL, and for a target that is no server."""
    for target in targets:
        check_is_reachable(target)
        check_is_no_file(target)
        if is_like_a_url(target):
            message = f"{target} is neither a command nor a URL of http:// or https://"
            raise UsageError(message, hint=f"try {as_url(target)}")


def of_project(project: Project, flags: RequestFlags, placed: Placed) -> dict[str, object]:
    """Return a redline.yaml's servers, the first as baseline, reached as flags say, and the flags' requests, if any.

    Without flags, the requests are those of the file. Raises UsageError.
    """
    written, path = project.written.servers or (), getattr(flags, "path", None)
    described = flags.given(among=OF_REQUEST)
    if described and path is None and flags.requests is None and flags.listed is None:
        other = "--path" if hasattr(flags, "path") else "the URL of a server"
        message = f"{described[0]}: {project.document.file} says what is requested"
        raise UsageError(message, hint=f"write it there, or give {other}")
    check_way_values(flags)
    urls = [server.url or "" for server in written] or [""]
    if not any(urls):
        check_without_url(flags)
    check_ways_are_used([*filter(None, urls)], flags)
    document: dict[str, object] = {
        "servers": [
            _with_ways(server, reached(url, flags, placed))
            for server, url in zip(servers_of(project, placed(folder_of(project))), urls, strict=True)
        ],
        **routes_of(project),
        "scenarios": scenarios(flags, path_of({}, path), placed) or scenarios_of(project),
    }
    return document | ({"baseline": first_of(project)} if variants_of(project) > 1 else {})


def _with_ways(server: dict[str, object], given: dict[str, object]) -> dict[str, object]:
    """A server of redline.yaml, reached as flags say; settings of TLS that no flag names stay."""
    tls = {**_entries(server.get("tls")), **_entries(given.get("tls"))}
    return server | given | ({"tls": tls} if tls else {})


def _entries(written: object) -> Mapping[str, object]:
    inner = written.value if isinstance(written, Given) else written
    return inner if isinstance(inner, Mapping) else {}


def describes_requests(flags: RequestFlags) -> bool:
    """Whether flags describe the requests, rather than a redline.yaml."""
    given = flags.given(among=OF_REQUEST | {"requests", "path"})
    return flags.listed is not None or bool(given)


def _server(name: str, target: str, flags: RequestFlags, placed: Placed) -> dict[str, object]:
    if is_url(target):
        return {"url": Given(target, base_of(target)), **reached(target, flags, placed)}
    way = reached("", flags, placed)
    if is_command(target):
        return {"command": Given(name, target), "folder": placed("."), **way}
    return {"revision": Given(name, target), **way}


def reached(url: str, flags: RequestFlags, placed: Placed) -> dict[str, object]:
    """Return how to reach a server; `url` is empty unless it runs already. Raises UsageError."""
    http: dict[str, object] = {"http": Given("--http2", 2)} if flags.http2 else {}
    return {**http, **way_to(url, flags), **tls_of(url, flags, placed)} if url else http


def is_command(target: str) -> bool:
    """Whether a target is a command, rather than a revision."""
    return target != WORK_TREE and _COMMAND.match(target) is not None


def scenarios(flags: RequestFlags, path: Given | None, placed: Placed) -> list[object]:
    """Return the requests; empty if no flag describes any and `redline.yaml` does. Raises UsageError.

    `path` is the requested path, from a URL or a flag.
    """
    described = list(flags.given(among=OF_REQUEST))
    if flags.requests is None and flags.listed is None:
        if not described and not path:
            return []
        if flags.scenarios:
            message = f"-m {','.join(flags.scenarios)}: there is a single request, without a name"
            hint = "leave out -m: it selects requests of --requests or redline.yaml"
            method = next((name for name in flags.scenarios if name.lower() in METHODS), None)
            raise UsageError(message, hint=f"the method is -X {method}" if method else hint)
        return [_request(flags, path or Given("/", "/"), placed)]
    if path is not None and path.value != "/":
        described.append(path.source)
    if described:
        raise UsageError(
            f"{described[0]}: --requests says what is requested", hint=f"leave out {described[0]} or --requests"
        )
    if flags.listed is not None:
        return _listed(flags.listed, split(flags.scenarios) or ((MIX,) if flags.recorded else ()))
    assert flags.requests is not None, "they are in one of the two"
    read = read_file(flags.requests)
    is_list = isinstance(read, Document)
    document = read if isinstance(read, Document) else as_document(read, flags.requests)
    if not isinstance(read, Document) and not flags.called and not flags.quiet:
        Terminal(stderr=True).print(summary(read, flags.requests, _targets(flags)), highlight=False, soft_wrap=True)
    if isinstance(flags, AbFlags) and flags.write_suite is not None:
        folder = flags.requests.parent
        document = with_files(document, lambda name: placed(str(folder / name)))
    globs = split(flags.scenarios)
    # Recorded traffic is measured as a whole; the requests of a list have names that somebody gave them.
    return _listed(document, globs or (() if is_list else (MIX,)))


def take_recording(flags: LoadFlags | AbFlags | LimitFlags) -> None:
    """Read the requests and their times if --replay names a log or a recording. Raises UsageError."""
    if not isinstance(flags, LimitFlags) and flags.speed is not None and flags.replay is None:
        raise UsageError(f"--speed {flags.speed}: only a recording has a speed", hint="add --replay FILE")
    if flags.replay is None or flags.recorded is not None or not flags.replay.is_file():
        return
    made = read_recording(flags.replay)
    if made is None:
        return
    source = f"--replay {flags.replay}"
    if flags.requests is not None or flags.listed is not None:
        hint = f"leave out --requests; or take its times alone: redline import {flags.replay} -o LIST --times FILE"
        raise UsageError(f"{source}: it has its own requests", hint=hint)
    if flags.scenarios:
        raise UsageError(f"-m {','.join(flags.scenarios)}: a replay sends all of its requests", hint="leave out -m")
    if isinstance(flags, AbFlags) and flags.write_suite is not None:
        hint = f"write its list and times first: redline import {flags.replay} -o requests.yaml --times times.txt"
        raise UsageError(f"{source}: a suite names files of due times", hint=hint)
    flags.listed, flags.recorded = as_document(made, flags.replay), times_of(made)
    if not flags.called and not flags.quiet:
        said = summary(made, flags.replay, _targets(flags))
        Terminal(stderr=True).print(f"{said}\n{times_summary(made)}", highlight=False, soft_wrap=True)


def replayed(flags: LoadFlags | AbFlags | LimitFlags, placed: Placed) -> Given | None:
    """Return the arrivals of --replay; None without it."""
    if flags.replay is None:
        return None
    file = placed(str(flags.replay)) if flags.recorded is None else TIMES_FILE
    speed = {} if isinstance(flags, LimitFlags) else settings(flags, "speed")
    arrivals = {"replay": file, **speed}
    return Given(flags.written()["replay"], arrivals)


def _targets(flags: RequestFlags) -> list[str]:
    """The servers that the flags name."""
    targets = [*getattr(flags, "targets", ()), *(getattr(flags, name, None) for name in ("url", "a", "b"))]
    return [target for target in targets if target]


def _listed(document: Document, globs: Sequence[str]) -> list[object]:
    """A scenario for every selected request, and a mix of several by weight; or only `mix`, of all; or a journey.

    Raises UsageError.
    """
    if has_journey(document):
        if wrong := next((glob for glob in globs if not fnmatch.fnmatchcase(JOURNEY, glob)), None):
            hint = f"leave out -m: {document.file} has a journey"
            raise UsageError(f"-m {wrong}: there is no such request", hint=hint)
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
            raise UsageError(f"-m {glob}: there is no such request", hint=suggest(glob, names, f"{document.file} has"))
    paths: list[Steps] = [
        (index,)
        for index in range(len(document.value))
        if not globs or any(fnmatch.fnmatchcase(str(document.at((index, "name"))), glob) for glob in globs)
    ]
    return scenarios_at(document, paths)


def _request(flags: RequestFlags, path: Given, placed: Placed) -> dict[str, object]:
    """Return the request that the flags describe, with the required keys."""
    method = _method(flags)
    asked: dict[str, object] = {method.lower(): path}
    if method.lower() not in METHODS:
        asked = {"method": Given(f"-X {flags.method}", method), "path": path}
    in_chunks = [line for line in flags.headers if _IN_CHUNKS.fullmatch(line)] if flags.body is not None else []
    waits = [line for line in flags.headers if _WAITS.fullmatch(line)] if flags.body is not None else []
    headers = _headers([line for line in flags.headers if line not in (*in_chunks, *waits)])
    if headers := headers | _named_headers(flags) | _sign_in(flags):
        asked["headers"] = headers
    if flags.aws_sigv4 is not None:
        asked["auth"] = _signature(flags, flags.aws_sigv4)
    if flags.compressed:
        asked["accept"] = Given("--compressed", ["gzip", "br", "zstd"])
    if flags.body is not None:
        asked["body"] = _body(flags.body, placed)
    if in_chunks:
        asked["chunked"] = Given(f"-H {in_chunks[0]!r}", True)
    if waits:
        asked["expect_continue"] = Given(f"-H {waits[0]!r}", EXPECT_CONTINUE)
    if flags.status is not None:
        asked["expect"] = {"status": Given(f"--status {flags.status}", flags.status)}
    if flags.events is not None:
        source = f"--events {flags.events!r}"
        asked["stream"] = Given(source, _stream(flags.events, source))
    return {"name": REQUEST, **asked}


def _stream(text: str, source: str) -> dict[str, object]:
    with naming(source):
        return {key: Given(source, value) for key, value in read_stream(text).items()}


def _method(flags: RequestFlags) -> str:
    if flags.head:
        if other := flags.given(among={"method", "body"}):
            raise UsageError(f"--head is the method HEAD, and {other[0]} asks for another", hint="give either flag")
        return "HEAD"
    text = ("GET" if flags.body is None else "POST") if flags.method is None else flags.method
    method = text.upper()
    if not re.fullmatch(r"[A-Z]+", method):
        raise UsageError(f"-X {text!r}: is not a method", hint="write letters alone, such as -X PUT")
    if method == "CONNECT":
        hint = "use another, such as GET or POST"
        raise UsageError(f"-X {text}: CONNECT opens a tunnel, which the engine does not do", hint=hint)
    return method


def _headers(lines: list[str]) -> dict[str, Given]:
    """Return headers by name; a repeated header is sent as often, with the spelling of its first name."""
    read: dict[str, tuple[str, list[Plain], list[str]]] = {}
    for line in lines:
        name, colon, value = (part.strip(" \t") for part in line.partition(":"))
        if not colon or not name:
            raise UsageError(f"-H {line!r} is not a header", hint="write it like -H 'Accept: text/plain'")
        _, values, sources = read.setdefault(name.lower(), (name, [], []))
        values.append(value)
        sources.append(f"-H {line!r}")
    return {
        name: Given(" ".join(sources), values[0] if len(values) == 1 else values)
        for name, values, sources in read.values()
    }


def _named_headers(flags: RequestFlags) -> dict[str, Given]:
    """Return the headers that have flags of their own. Raises UsageError."""
    read: dict[str, Given] = {}
    lines = {line.partition(":")[0].strip().lower() for line in flags.headers}
    for flag, (field, name) in zip(("-A", "-b", "-e"), OF_HEADERS.items(), strict=True):
        value = getattr(flags, field)
        if value is None or value == []:
            continue
        if name.lower() in lines:
            raise UsageError(f"{flag} and -H '{name}: …' are the same header", hint="leave one of them out")
        values = [value] if isinstance(value, str) else value
        if field == "cookie" and (files := [text for text in values if "=" not in text]):
            hint = "write -b 'NAME=VALUE'; a journey keeps the cookies of each user"
            raise UsageError(f"-b {files[0]}: a file of cookies is not read", hint=hint)
        read[name] = Given(f"{flag} {value!r}", "; ".join(values))
    return read


def _sign_in(flags: RequestFlags) -> dict[str, Given]:
    """Return the header of --user or --oauth2-bearer, with a reference to what is secret. Raises UsageError."""
    if flags.user is None and flags.oauth2_bearer is None and flags.aws_sigv4 is None:
        return {}
    if flags.oauth2_bearer is not None and (flags.user is not None or flags.aws_sigv4 is not None):
        other = "--user" if flags.aws_sigv4 is None else "--aws-sigv4"
        raise UsageError(f"{other} and --oauth2-bearer are two sign-ins", hint="give either flag")
    if any(line.partition(":")[0].strip().lower() == "authorization" for line in flags.headers):
        raise UsageError("-H 'Authorization: …' is a sign-in of its own", hint="leave it out, or the flag")
    if flags.oauth2_bearer is not None:
        token = flags.oauth2_bearer
        if not token.strip():
            raise UsageError("--oauth2-bearer has no token", hint="give the token, or '${NAME}' for a variable with it")
        if not passed_names(token):
            secrets.hide(token, "***")
            token = secrets.hold("REDLINE_TOKEN", token)
        return {"Authorization": Given("--oauth2-bearer", f"Bearer {token}")}
    if flags.aws_sigv4 is not None:
        return {}
    name, colon, password = (flags.user or "").partition(":")
    if not colon:
        raise UsageError("--user has no password", hint="write it like --user 'ann:${PASSWORD}', or 'ann:' for none")
    secrets.hide(flags.user or "", f"{name}:***")
    pair = secrets.with_secrets(f"{name}:{password}", "--user").encode(errors="surrogateescape")
    reference = secrets.hold("REDLINE_BASIC", base64.b64encode(pair).decode())
    return {"Authorization": Given(f"--user {name}:***", f"Basic {reference}")}


def _signature(flags: RequestFlags, text: str) -> Given:
    """Return the `auth` of --aws-sigv4 and --user, with a reference to the secret. Raises UsageError."""
    source = f"--aws-sigv4 {text}"
    scope = _SCOPE.fullmatch(text)
    if scope is None:
        hint = "write it like --aws-sigv4 aws:amz:eu-central-1:execute-api"
        raise UsageError(f"{source} does not name AWS, a region and a service", hint=hint)
    key, colon, secret = (flags.user or "").partition(":")
    if not key or not colon or not secret:
        hint = "add --user 'KEY:SECRET', such as --user '${AWS_ACCESS_KEY_ID}:${AWS_SECRET_ACCESS_KEY}'"
        raise UsageError(f"{source}: the key and its secret are missing", hint=hint)
    if not passed_names(secret):
        secrets.hide(flags.user or "", f"{key}:***")
        secret = secrets.hold("REDLINE_AWS_SECRET", secret)
    region, service = scope.groups()
    return Given(source, {"aws": {"region": region, "service": service, "key": key, "secret": secret}})


def _body(text: str, placed: Placed) -> object:
    if text.startswith("@"):
        return {"file": Given(f"--body {text}", placed(text[1:]))}
    if any("\ud800" <= char <= "\udfff" for char in text):  # Python keeps other bytes of a command line like that
        raise UsageError("--body: it is not UTF-8", hint="save it in a file, and give --body @FILE")
    return Given("--body", text)


def path_of(urls: Mapping[str, str], written: str | None) -> Given | None:
    """Return the requested path, from the URLs or `--path`; None if neither names any. Raises UsageError.

    `urls` maps the names of servers to their URLs.
    """
    paths = {name: read_url(url)[1] for name, url in urls.items()}
    if written is not None and urls:
        raise UsageError(f"--path {written}: the URLs name their paths", hint="leave out --path")
    if written is not None:
        return Given(f"--path {written}", written)
    (first, path), *others = paths.items() if paths else [("", "")]
    for name, other in others:
        if other != path:
            raise UsageError(f"{first} is asked for {path} and {name} for {other}", hint="give URLs of the same path")
    return Given("the URL's path", path) if paths else None


def placed_here(flags: RequestFlags) -> Placed:
    """Return the names of files in an unwritten suite: relative names are for the folder of `--requests`, if any."""
    return os.path.abspath if flags.requests is not None else str


def referenced(flags: RequestFlags, project: Project | None = None) -> Files:
    """Read the files that flags name from anywhere, and those of `--requests` or a project from its folder."""
    anywhere = Files(lambda name: read_data(Path(name)), lambda name: read_body(Path(name)))
    names_files = flags.requests
    if project is not None and not describes_requests(flags):
        names_files = Path(project.document.file)
    beside = anywhere if names_files is None else referenced_files(names_files)
    placed = placed_here(flags)
    named = {placed(str(file)) for flag in ("cacert", "cert", "key", "replay") if (file := getattr(flags, flag, None))}

    def files(name: str) -> Files:
        return anywhere if name in named else beside

    def text(name: str) -> str:
        recorded = flags.recorded if name == TIMES_FILE else None
        return files(name).text(name) if recorded is None else recorded.times

    return Files(text, lambda name: files(name).body(name), lambda name: files(name).place(name))
