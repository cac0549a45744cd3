"""`--like`: translate the command line of another load generator into flags of `redline load`.

The options and defaults are as the tools document them. None of the tools is run; a script of wrk is read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from redline.asking.like import Like
from redline.errors import UsageError
from redline.extras.peers.generators import GENERATORS, Generator
from redline.extras.peers.lua_values import FileText
from redline.extras.peers.wrk_script import Script, ScriptRequest, Target, read_script
from redline.model.template import as_literal
from redline.quantities import clip
from redline.schema.document import Plain
from redline.schema.request import METHODS
from redline.suite.pasted import Pasted, read_pasted, unescaped
from redline.suite.urls import as_url, base_of, is_like_a_url, is_secure, is_url, read_url

_FLAG = "--like"
_SETS = re.compile(r"([A-Za-z_]\w*)=.*", re.DOTALL)
_PLATFORM = re.compile(r"[-_](?:linux|darwin|macos|windows)[-_].*|\.exe$")
_BEFORE = frozenset({"docker", "env", "nice", "nohup", "numactl", "podman", "sudo", "taskset", "time"})
"""Programs that run the load generator after them, and do not change its load."""
_CLOSE = "Connection: close"
_TARGETS = "write the targets as a list: redline load --requests FILE"


def read_like(text: str) -> Like:
    """Return the flags of `redline load` that make the load of this command line. Raises UsageError."""
    name, words, pasted = _generator(text)
    tool = GENERATORS[name]
    read = tool.options.read(name, words)
    flags = dict(tool.read(read.values))
    says = [*tool.says, *_texts(flags.pop("says", ()))]
    script = flags.pop("script", None)
    rest, arguments = (read.rest, ()) if script is None else (read.rest[:1], read.rest[1:])
    flags |= _url(name, tool, rest)
    requests: tuple[Plain, ...] = ()
    if script is not None:
        scripted = _scripted(Path(str(script)), flags, arguments)
        flags, requests, says = flags | scripted.flags, scripted.requests, [*says, *scripted.says]
    if name == "vegeta":
        flags = _targeted(flags, pasted)
        if is_url(str(flags.get("url"))) and is_secure(str(flags["url"])) and flags["http2"] is None:
            flags["http2"] = True
    flags = _closing(flags if script is not None else _literal(flags))
    known = {key: value for key, value in flags.items() if value is not None}
    return Like(name, known, tuple(says), read.unneeded, requests, bool(read.values.get("latency")))


@dataclass(frozen=True)
class _Scripted:
    """What a script of wrk adds: flags, several requests as a list has them, and what there is to say of it."""

    flags: dict[str, object]
    requests: tuple[Plain, ...]
    says: tuple[str, ...]


def _scripted(file: Path, flags: dict[str, object], arguments: Sequence[str]) -> _Scripted:
    """Read a script of wrk. Raises UsageError."""
    url, headers = str(flags.get("url") or ""), flags["headers"]
    assert isinstance(headers, list), "its generator gives a list"
    if not is_url(url):
        raise UsageError(f"{_FLAG}: a script needs the URL of the server", hint="write it before `--`")
    given = tuple((name.strip(), value.strip()) for name, _, value in (line.partition(":") for line in headers))
    script = read_script(_content(file), str(file), Target(read_url(url)[1], given), arguments)
    if script.think_ms is not None and flags.get("rate"):
        raise UsageError(f"{_FLAG}: {file} has a `delay`, and -R a rate", hint="leave out either")
    first, depth = script.requests[0], len(script.requests)
    batch: dict[str, object] = {
        "depth": depth,
        "think": None if script.think_ms is None else f"{script.think_ms:.12g}ms",
    }
    says = _of_script(file, script)
    if all(request == first for request in script.requests):
        single: dict[str, object] = {
            "url": base_of(url) + as_literal(first.path),
            "method": first.method,
            "headers": [f"{name}: {as_literal(value)}" for name, value in first.headers],
            "body": _body(file, first.body),
        }
        return _Scripted(single | batch, (), says)
    listed = tuple({"name": f"request-{at}", **_listed(it)} for at, it in enumerate(script.requests, 1))
    return _Scripted(batch | {"url": base_of(url), "headers": []}, listed, says)


def _content(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{_FLAG}: -s {file}: {error.strerror}", hint="give the script that wrk would run") from None
    except UnicodeDecodeError:
        raise UsageError(f"{_FLAG}: -s {file} is not UTF-8 text", hint="save it as UTF-8") from None


def _of_script(file: Path, script: Script) -> tuple[str, ...]:
    """What there is to say of a load by a script."""
    depth, texts = len(script.requests), []
    if depth > 1:
        texts.append(
            f"that it writes {depth} requests at once, the next ones when all are answered, and records one time for "
            "all of them; here each request has its own time, and another follows each answer"
        )
    if any(request != script.requests[0] for request in script.requests):
        texts.append("the order of its requests is that of the script; here it is random, with equal shares")
    if script.ignored:
        texts.append(f"{' and '.join(script.ignored)} of {file} change no request, and are left out")
    return tuple(texts)


def _body(file: Path, body: str | FileText | None) -> str | None:
    """The body as `--body` takes it. Raises UsageError for a text that begins with `@`."""
    if isinstance(body, FileText):
        return f"@{body.path}"
    if body is not None and body.startswith("@"):
        hint = "save the body in a file, and read it: io.open(FILE):read('*all')"
        raise UsageError(f"{_FLAG}: {file} sends a body that begins with @", hint=hint)
    return None if body is None else as_literal(body)


def _listed(request: ScriptRequest) -> dict[str, Plain]:
    """A request as a list has it."""
    path, known = as_literal(request.path), request.method.lower() in METHODS
    asked: dict[str, Plain] = {request.method.lower(): path} if known else {"method": request.method, "path": path}
    asked["headers"] = {name: as_literal(value) for name, value in request.headers}
    if isinstance(request.body, FileText):
        return asked | {"body": {"file": request.body.path}}
    return asked if request.body is None else asked | {"body": as_literal(request.body)}


def _texts(value: object) -> Sequence[str]:
    assert isinstance(value, tuple)
    return value


def _generator(text: str) -> tuple[str, tuple[str, ...], Pasted]:
    """Return the load generator of a pipeline, the words after it, and the pipeline. Raises UsageError."""
    pasted = read_pasted(text, _FLAG)
    for at, command in enumerate(pasted.commands):
        words = _bare(command)
        name = _name(words[0]) if words else ""
        options = words[: words.index("--")] if "--" in words else words
        if name == "wrk" and any(word.startswith(("-R", "--rate")) for word in options):
            name = "wrk2"
        if name not in GENERATORS:
            continue
        if name == "k6":
            _check_set(command)
            if words[1:2] and words[1] != "run" and not words[1].startswith("-"):
                raise UsageError(
                    f"{_FLAG}: k6 {clip(words[1])} makes no load here", hint="give the command with `k6 run`"
                )
            words = [words[0], *words[2:]] if words[1:2] == ["run"] else words
        if name == "vegeta":
            if "attack" not in words:
                hint = "give the command with `vegeta attack`"
                raise UsageError(f"{_FLAG}: vegeta {' '.join(words[1:2])} makes no load", hint=hint)
            return name, tuple(words[words.index("attack") + 1 :]), _before(pasted, at)
        if (at or pasted.reads is not None) and name != "k6":
            raise UsageError(f"{_FLAG}: {name} reads no input", hint=f"begin with {name}")
        return name, tuple(words[1:]), pasted
    known = ", ".join(GENERATORS)
    raise UsageError(f"{_FLAG} {clip(text)}: this is no command of a load generator", hint=f"known are {known}")


def _before(pasted: Pasted, at: int) -> Pasted:
    return Pasted(pasted.commands[:at], pasted.reads)


def _bare(command: Sequence[str]) -> list[str]:
    """Return the words from the load generator on, without variables and programs such as `taskset` before it."""
    words = list(command)
    while words and _SETS.fullmatch(words[0]):
        words.pop(0)
    if words and _name(words[0]) in _BEFORE:
        at = next((at for at, word in enumerate(words) if _name(word) in GENERATORS), 0)
        words = words[at:]
    return words


def _name(word: str) -> str:
    """Return the program of a path, of a container's image, or of a released file, such as `hey_linux_amd64`."""
    return _PLATFORM.sub("", word.rpartition("/")[2].partition(":")[0])


def _check_set(command: Sequence[str]) -> None:
    """Raise UsageError for a variable that changes the load of k6."""
    for word in command:
        match = _SETS.fullmatch(word)
        if match and match[1].startswith("K6_"):
            raise UsageError(f"{_FLAG}: {match[1]} has no counterpart", hint="give its flag, such as --vus 10")


def _url(name: str, tool: Generator, rest: Sequence[str]) -> dict[str, object]:
    """Return the URL among the words that are no options. Raises UsageError for several, and for any other word."""
    if name == "k6":
        return {}
    late = [word for word in rest if word.startswith("-")]
    if late:
        hint = f"{name} reads no options after the URL: write {late[0]} before it"
        raise UsageError(f"{_FLAG}: {late[0]} stands after the URL", hint=hint)
    if len([word for word in rest if is_url(word)]) > 1:
        raise UsageError(f"{_FLAG}: {name} is given {len(rest)} URLs", hint="a load takes a single URL; see --requests")
    urls = []
    for word in rest:
        if is_url(word):
            urls.append(word)
        elif is_like_a_url(word) and tool.adds_scheme:
            urls.append(as_url(word))
        else:
            hint = f"try {as_url(word)}" if is_like_a_url(word) else "quote what has spaces, and leave out the rest"
            raise UsageError(f"{_FLAG}: `{clip(word)}` is neither an option of {name} nor a URL", hint=hint)
    return {"url": urls[0]} if urls else {}


def _literal(flags: dict[str, object]) -> dict[str, object]:
    """Let braces be sent as the tools send them, which know no placeholders."""
    url, body, headers = str(flags.get("url") or ""), str(flags.get("body") or ""), flags.get("headers")
    return flags | {
        "url": as_literal(url) or None,
        "body": flags.get("body") if body.startswith("@") else as_literal(body) or None,
        "headers": [*map(as_literal, headers)] if isinstance(headers, list) else None,
    }


def _closing(flags: dict[str, object]) -> dict[str, object]:
    """Let the engine close connections where a header asks the server to; HTTP/2 has no such header."""
    headers = flags.get("headers")
    if not isinstance(headers, list):
        return flags
    asked = [
        text for name, _, text in (line.partition(":") for line in headers) if name.strip().lower() == "connection"
    ]
    if any(text.strip().lower() not in {"close", "keep-alive"} for text in asked):
        return flags
    others = [line for line in headers if line.partition(":")[0].strip().lower() != "connection"]
    closes = any(text.strip().lower() == "close" for text in asked)
    kept = [_CLOSE] if closes and not flags.get("http2") else []
    return flags | {"headers": [*others, *kept]} | ({"requests_per_connection": 1} if closes else {})


def _targeted(flags: dict[str, object], before: Pasted) -> dict[str, object]:
    """Add the target that is piped to vegeta: method and URL, headers, `@` and a file."""
    if before.reads is not None:
        raise UsageError(f"{_FLAG}: vegeta reads its targets from {before.reads}", hint=_TARGETS)
    if not before.commands:
        return flags
    (first, *words), *more = before.commands if before.commands[0] else (("",),)
    if more or first not in {"echo", "printf"}:
        raise UsageError(f"{_FLAG}: vegeta reads its targets from `{first}`", hint=_TARGETS)
    options = [word for word in words if re.fullmatch("-[neE]+", word)] if first == "echo" else []
    text = " ".join(words[len(options) :])
    if first == "printf" or any("e" in option for option in options):
        text = unescaped(text)
    request, *lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")] or [""]
    method, _, url = request.partition(" ")
    if not (method.isalpha() and method.isupper() and is_url(url.strip()) and len(url.split()) == 1):
        hint = "write it as `GET http://127.0.0.1:8080/`"
        raise UsageError(f"{_FLAG}: `{clip(request)}` is not a target of vegeta", hint=hint)
    headers = []
    for line in lines:
        if line.startswith("@"):
            flags = flags | {"body": line}
        elif ":" in line and not is_url(line.partition(" ")[2].strip()):
            headers.append(line)
        else:
            raise UsageError(f"{_FLAG}: vegeta is given several targets", hint=_TARGETS)
    named = {line.partition(":")[0].strip().lower() for line in headers}
    given = flags.get("headers")
    assert isinstance(given, list), "its generator gives a list"
    headers += [line for line in given if line.partition(":")[0].strip().lower() not in named]
    return flags | {"method": method, "url": url.strip(), "headers": headers}
