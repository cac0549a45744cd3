"""A recording of a browser as a journey: its requests in order, with think times and values of answers. Pure.

Values that a user typed and that are secrets become columns of rows, which the user has to write.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from pydantic import TypeAdapter, ValidationError

from redline.extras.importing.form_parts import FormPartOfFile, written_part
from redline.extras.importing.gathering import NOT_SENT, add_header, unused_name
from redline.extras.importing.har import HarEntry, HarLeftOut, read_entries
from redline.model.template import as_literal
from redline.quantities import clip
from redline.schema.bodies import BODIES, CONTENT_TYPES
from redline.schema.document import Plain
from redline.schema.journey import StepSchema
from redline.schema.json_text import json_text
from redline.schema.request import METHODS
from redline.suite.imported import ImportNote, Kind
from redline.suite.request_source import RequestSource, read_json
from redline.suite.secret_names import has_token, is_secret_header, is_secret_name, secret_in_body, secret_in_path
from redline.suite.validate.checking import first_mistake

FEWEST_CHARACTERS = 6
"""Shorter values reappear by chance."""
ROWS_FILE = "users.csv"
_STEP_NS = 100_000_000
_LONGEST_MS = 86_400_000
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FORM = "application/x-www-form-urlencoded"
_USER = re.compile(r"(.*[\[.])?(user|login|e?mail|account)([_-]?(name|id))?\]?", re.IGNORECASE)
"""The name of a field for a user, which may stand in another: `session[email]`."""
_PASSWORD = re.compile(r"passw|passphrase|(^|[^a-z])(pass|passcode|pwd?|pin|otp)($|[^a-z])", re.IGNORECASE)
_COUNTED = re.compile("tokens$", re.IGNORECASE)
"""What numbers of such a name count, as `max_tokens` does, is no secret."""
_PARTS_OF_PAGES = frozenset(
    {"image", "stylesheet", "script", "font", "media", "texttrack", "manifest", "ping", "preflight"}
)
_PART_CONTENT = re.compile(
    r"(image|font|video|audio)/|text/css|[a-z]+/(x-)?javascript|application/(x-)?font", re.IGNORECASE
)
_LEFT_TO_REDLINE = frozenset({"accept-encoding", "accept-language", "cookie", "origin", "user-agent"}) | NOT_SENT
_INPUT = re.compile(r"<(?:input|meta)\b[^>]{0,500}>", re.IGNORECASE)
_OWN_TYPES = {"json": CONTENT_TYPES["json_body"], "form": CONTENT_TYPES["form"]}
_SCHEME = re.compile(r"(Bearer|Token)\s+(\S+)$", re.IGNORECASE)
_LOCATION: dict[str, Plain] = {"header": "Location"}
_WITHOUT_CONTENT = frozenset({None, 204, 205, 304, *range(300, 400)})
_NOT_LOADED = (
    "which is not loaded: let the server take this value, or begin behind the sign-in with {row:token}, "
    "a token of each user"
)
_IN_LOCATION = "in a part of its header Location, which no step takes: let the server take this value"
_STEP: TypeAdapter[StepSchema] = TypeAdapter(StepSchema)


class Found(NamedTuple):
    """A value in an answer: the step that takes it, what it is called there, and its source, as a step writes it."""

    step: int
    name: str
    source: dict[str, Plain]


@dataclass(frozen=True)
class ImportedJourney:
    """A journey as `--requests` reads it, and notes on what is left out. `columns` are those that its rows need."""

    once: list[dict[str, Plain]]
    steps: list[dict[str, Plain]]
    columns: tuple[str, ...]
    left_out: list[ImportNote]
    host: str
    files: tuple[str, ...] = ()

    @property
    def document(self) -> dict[str, Plain]:
        """The file."""
        journey: dict[str, Plain] = {}
        if self.columns:
            journey["rows"] = {"file": ROWS_FILE, "use": "user"} if self.once else ROWS_FILE
        if self.once:
            journey |= {"once": [*self.once], "again_at": 401}
        return {"journey": {**journey, "steps": [*self.steps]}}


@dataclass
class _Walk:
    """The recording while it is read."""

    keep: frozenset[str]
    requests: list[dict[str, Plain]] = field(default_factory=list)
    known: dict[str, Found] = field(default_factory=dict)
    typed: set[str] = field(default_factory=set)
    taken: dict[int, dict[str, Plain]] = field(default_factory=dict)
    of_rows: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)
    logs_in: int = -1
    elsewhere: dict[str, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    left_out: dict[tuple[Kind, str], tuple[int, str]] = field(default_factory=dict)

    def leave_out(self, why: str, example: str, kind: Kind = "request") -> None:
        count, first = self.left_out.get((kind, why), (0, clip(example)))
        self.left_out[kind, why] = count + 1, first

    def placed(self, value: str) -> str | None:
        """The placeholder of a value that an earlier answer, or a row, had; None for any other value."""
        if value in self.of_rows:
            return self.of_rows[value]
        found = self.known.get(value)
        if found is None:
            return None
        name = self.names.get(value)
        if name is None:
            base = re.sub(r"^[^A-Za-z]+", "", found.name) or "value"
            name = self.names[value] = unused_name(base, set(self.names.values()))
        self.taken.setdefault(found.step, {})[name] = found.source
        return f"{{take:{name}}}"

    def miss(self, value: str) -> None:
        """Note that a value stays as it was recorded, if it came from where no step can take it."""
        if value in self.elsewhere and value not in self.typed:
            self.leave_out(self.elsewhere[value], f"step {len(self.requests) + 1}", "value")

    def row(self, name: str, value: str) -> str:
        """The placeholder of a value that the user typed, or that is a secret."""
        column = base = re.sub(r"[^A-Za-z0-9_.-]", "-", name).lstrip("-.0123456789").rstrip("-.") or "secret"
        # Another value under the same name, as of a password that is changed, is another cell.
        for number in count(2):
            if self.columns.setdefault(column, value) == value:
                break
            column = f"{base}-{number}"
        if len(value) >= FEWEST_CHARACTERS:
            self.of_rows[value] = f"{{row:{column}}}"
        return f"{{row:{column}}}"

    def filled(self, name: str, value: str) -> str:
        """The template of a named value of a request."""
        placed = self.placed(value)
        if placed is None and name.lower() not in self.keep and (_is_secret(name) or has_token(value)):
            placed = self.row(name, value)
        if placed is None:
            self.miss(value)
            self.typed.add(value)
        return as_literal(value) if placed is None else placed


def read_journey(
    source: RequestSource, *, host: str | None = None, keep: frozenset[str] = frozenset(), whole: bool = False
) -> ImportedJourney:
    """The journey of a recording. `whole`: with what pages load, such as pictures. Raises UsageError."""
    walk, ended_ns = _Walk(keep), None
    entries = _in_time(_answered(source, walk))
    base = _base(source, entries, host)
    thinks = list[int]()
    for entry, began_ns in entries:
        example = f"{entry.method} {urlsplit(entry.url).path}"
        if why := _unfit(entry, base, whole=whole):
            walk.leave_out(why, example)
            if entry.base != base:
                _learn_elsewhere(walk, entry)
            continue
        step, why = _step(walk, entry, source)
        if why:
            walk.leave_out(why, example)
            continue
        thinks.append(0 if ended_ns is None else max(began_ns - ended_ns, 0))
        took_ms = min(max(entry.took_ms, 0), _LONGEST_MS)
        ended_ns = max(ended_ns or 0, began_ns + round(took_ms * 1e6))
        walk.requests.append(step)
        walk.paths.append(urlsplit(entry.url).path)
        walk.files += [part.file for part in entry.parts if part.file]
        _learn(walk, entry, len(walk.requests) - 1)
        if entry.lacks_answer and entry.method.upper() != "HEAD" and entry.status not in _WITHOUT_CONTENT:
            walk.leave_out(
                "the recording lacks the content of an answer: values of it stay as they are", example, "value"
            )
    if not walk.requests:
        raise source.wrong("this recording has no request for a journey", "record the pages again, as HAR")
    return _journey_of(walk, thinks, base)


def _answered(source: RequestSource, walk: "_Walk") -> Iterator[HarEntry]:
    """The entries that were answered; the others are left out."""
    for read in read_entries(source):
        if isinstance(read, HarLeftOut):
            walk.leave_out(read.why, read.example)
        else:
            yield read


def _in_time(entries: Iterator[HarEntry]) -> list[tuple[HarEntry, int]]:
    """The entries in the order of their times. Without a time, an entry stays behind that before it."""
    timed, last_ns = list[tuple[HarEntry, int]](), 0
    for entry in entries:
        last_ns = last_ns if entry.at_ns is None else entry.at_ns
        timed.append((entry, last_ns))
    return sorted(timed, key=lambda pair: pair[1])


def _base(source: RequestSource, entries: list[tuple[HarEntry, int]], host: str | None) -> str:
    """The scheme and the host of the journey: the wanted host, or that of the first request."""
    bases = list(dict.fromkeys(entry.base for entry, _ in entries))
    if host is None:
        return bases[0] if bases else ""
    match = [base for base in bases if host.lower() in {base, base.rpartition("/")[2]}]
    if not match:
        raise source.wrong(f"there is no request to {host}", f"this file names {', '.join(bases[:10]) or 'no host'}")
    return match[0]


def _unfit(entry: HarEntry, base: str, *, whole: bool) -> str:
    """Why a request is no step; empty if it is one."""
    is_part = entry.resource in _PARTS_OF_PAGES or (
        not entry.resource and _PART_CONTENT.match(entry.answer_type) is not None
    )
    for holds, why in (
        (entry.base != base, f"to {entry.base}"),
        (is_part and not whole, "that a page loads, such as pictures and scripts (`--all` takes them)"),
        (secret_in_path(urlsplit(entry.url).path), "with a token in the path"),
    ):
        if holds:
            return why
    return ""


def _step(walk: _Walk, entry: HarEntry, source: RequestSource) -> tuple[dict[str, Plain], str]:
    """A step without its name and its think time, and why it is left out."""
    method, fields = entry.method.upper(), _fields(entry.body or "", entry.body_type)
    if entry.body and fields is None and (secret := secret_in_body(entry.body, walk.keep, _is_secret)) is not None:
        return {}, f"whose body holds a secret (`{clip(secret)}`)"
    path: Plain = _path(walk, entry.url)
    step: dict[str, Plain] = {method.lower(): path} if method.lower() in METHODS else {"method": method, "path": path}
    if entry.parts:
        step["multipart"] = _form_parts(walk, entry.parts)
    elif entry.body is not None:
        step |= {"body": as_literal(entry.body)} if fields is None else _body(walk, entry.body, fields)
    headers = _headers(walk, entry, step)
    if headers:
        step["headers"] = headers
    if entry.status not in {None, 200, 304}:
        step["expect"] = {"status": entry.status}
    if _SURROGATE.search(json.dumps(step, ensure_ascii=False)):
        return {}, "that cannot be sent: half of a character stands in it"
    try:
        _STEP.validate_python(step, context={BODIES: source.body})
    except ValidationError as error:
        return {}, f"that cannot be sent: {first_mistake(error, StepSchema).message}"
    return step, ""


def _headers(walk: _Walk, entry: HarEntry, step: dict[str, Plain]) -> dict[str, Plain]:
    """The headers of a step, without those that Redline sends itself."""
    headers = dict[str, Plain]()
    own_type = next((kind for key, kind in _OWN_TYPES.items() if key in step), None)
    for name, text in entry.headers:
        lower, value = name.lower(), text.strip()
        is_own = lower == "content-type" and (own_type == value.lower() or "multipart" in step)
        takes_any = lower == "accept" and "*/*" in value
        is_left = lower in _LEFT_TO_REDLINE or lower.startswith((":", "sec-"))
        if value and not (is_own or takes_any or is_left):
            add_header(headers, name, _header(walk, name, value))
    return headers


def _form_parts(walk: _Walk, parts: tuple[FormPartOfFile, ...]) -> list[Plain]:
    """The parts of an upload, with templates in place of its texts."""
    names = [part.name for part in parts]
    _note_login(walk, names)
    return [written_part(part, _typed(walk, part.name, part.text or "", names)) for part in parts]


def _path(walk: _Walk, url: str) -> str:
    parts = urlsplit(url)
    target = f"{parts.path or '/'}{f'?{parts.query}' if parts.query else ''}"
    if (whole := walk.placed(target)) is not None:
        return whole
    segments = list[str]()
    for segment in (parts.path or "/").split("/"):
        placed = walk.placed(unquote(segment))
        if placed is None:
            walk.miss(unquote(segment))
        segments.append(placed or as_literal(segment))
    pairs = list[str]()
    for pair in parts.query.split("&") if parts.query else ():
        name, equals, value = pair.partition("=")
        known, plain = unquote(name), unquote(value)
        filled = walk.filled(known, plain) if equals else ""
        # What stays as it is keeps its escapes: a value may have `&` or `+` in it.
        kept = as_literal(value) if filled == as_literal(plain) else filled
        pairs.append(f"{as_literal(name)}{equals}{kept}")
    path = "/".join(segments) + (f"?{'&'.join(pairs)}" if pairs else "")
    return quote(path, safe="!#$%&'()*+,/:;=?@[]~{}|^`\\\"<>")


def _header(walk: _Walk, name: str, value: str) -> str:
    """The template of a header, whose value may be a token after the name of a scheme."""
    if (whole := walk.placed(value)) is not None:
        return whole
    match = _SCHEME.fullmatch(value)
    if match and (token := walk.placed(match[2])) is not None:
        return f"{match[1]} {token}"
    if is_secret_header(name, value) and name.lower() not in walk.keep:
        return walk.row(name, value)
    walk.miss(match[2] if match else value)
    return as_literal(value)


class _Fields(NamedTuple):
    """The texts in a body, and the key of a step that writes them. `is_same`: that key sends the same bytes."""

    key: str
    value: Plain
    is_same: bool


def _fields(body: str, kind: str) -> _Fields | None:
    """The fields of a form, or JSON whatever its kind; None if no key can send all of it in its order."""
    try:
        if kind == _FORM:
            form = _form(body)
            return None if form is None else _Fields("form", form, urlencode(form, doseq=True) == body)
        value = read_json(body, _unique)
        again = json_text(value, spaces=False) if isinstance(value, (dict, list, str)) else None
    except (ValueError, RecursionError):
        return None
    return None if again is None else _Fields("json", value, kind.endswith("json") and again == body)


def _form(body: str) -> dict[str, Plain] | None:
    """The fields of a form; None if fields of one name do not stand together. Raises ValueError."""
    pairs = parse_qsl(body, keep_blank_values=True, errors="strict")
    fields = dict[str, list[Plain]]()
    for name, text in pairs:
        fields.setdefault(name, []).append(text)
    if [(name, text) for name, texts in fields.items() for text in texts] != pairs:
        return None
    return {name: texts[0] if len(texts) == 1 else texts for name, texts in fields.items()}


def _unique(pairs: list[tuple[str, Plain]]) -> dict[str, Plain]:
    """The object of these pairs. Raises ValueError if two have one name."""
    if len(made := dict(pairs)) < len(pairs):
        raise ValueError
    return made


def _body(walk: _Walk, body: str, fields: _Fields) -> dict[str, Plain]:
    """The body with templates in place of its texts; as it was sent, if all of them stay."""
    names = [*_names(fields.value)]
    _note_login(walk, names)
    made = _in_json(fields.value, lambda name, text: _typed(walk, name, text, names), "")
    stays = made == _in_json(fields.value, lambda _, text: as_literal(text), "")
    return {"body": as_literal(body)} if stays and not fields.is_same else {fields.key: made}


def _note_login(walk: _Walk, names: list[str]) -> None:
    """Note that the request which is read logs in: it has a password."""
    if any(map(_PASSWORD.search, names)):
        walk.logs_in = len(walk.requests)


def _is_secret(name: str) -> bool:
    return is_secret_name(name) or _PASSWORD.search(name) is not None


def _typed(walk: _Walk, name: str, value: str, beside: list[str]) -> str:
    """The template of a field; the name of the user beside a password belongs to the same row."""
    if _USER.fullmatch(name) and any(map(_PASSWORD.search, beside)) and name.lower() not in walk.keep:
        return walk.row(name, value)
    return walk.filled(name, value)


def _names(value: Plain) -> Iterator[str]:
    """The names in JSON, at every level."""
    if isinstance(value, dict):
        yield from value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _names(inner)


def _in_json(value: Plain, fill: Callable[[str, str], str], name: str) -> Plain:
    """JSON with templates in place of its texts, and of numbers that are secrets, which become texts.

    Other numbers stay: a value of an answer would become a text.
    """
    if isinstance(value, dict):
        # All that a secret consists of is secret, unless it names its secrets itself.
        is_whole = _is_secret(name) and not any(map(_is_secret, value))
        return {as_literal(key): _in_json(inner, fill, name if is_whole else key) for key, inner in value.items()}
    if isinstance(value, list):
        return [_in_json(inner, fill, name) for inner in value]
    if isinstance(value, str):
        return fill(name, value)
    if value is None or isinstance(value, bool) or not _is_secret(name) or _COUNTED.search(name):
        return value
    text = json_text(value)
    return value if (made := fill(name, text)) == text else made


def _learn_elsewhere(walk: _Walk, entry: HarEntry) -> None:
    """Remember the values that a host issued which is not loaded, to name those that the journey needs."""
    values = ((value, name) for value, name, source in _values(entry) if source != _LOCATION)
    for value, name in (*values, *_in_location(entry)):
        if len(value) >= FEWEST_CHARACTERS:
            walk.elsewhere.setdefault(value, f"`{clip(name)}` was issued by {entry.base}, {_NOT_LOADED}")


def _in_location(entry: HarEntry) -> Iterator[tuple[str, str]]:
    """The parameters of the query and the fragment of where an answer leads, with their names."""
    for name, target in entry.answer_headers:
        if name.lower() == "location":
            with suppress(ValueError):
                parts = urlsplit(target)
                yield from ((value, known) for known, value in parse_qsl(parts.query) + parse_qsl(parts.fragment))


def _learn(walk: _Walk, entry: HarEntry, step: int) -> None:
    """Remember the values of an answer that later requests may have. What the user typed is not the server's."""
    for value, name in _in_location(entry):
        if len(value) >= FEWEST_CHARACTERS and value not in walk.typed:
            walk.elsewhere.setdefault(value, f"`{clip(name)}` was issued by {entry.base} {_IN_LOCATION}")
    for value, name, source in _values(entry):
        if _SURROGATE.search(json.dumps([value, name, source], ensure_ascii=False)):
            continue
        if (len(value) >= FEWEST_CHARACTERS or source == _LOCATION) and value not in walk.typed:
            walk.known[value] = Found(step, name, source)


def _values(entry: HarEntry) -> Iterator[tuple[str, str, dict[str, Plain]]]:
    """The values of an answer, with a name and a source for each; those that are taken most surely come last."""
    for name, value in entry.answer_headers:
        lower = name.lower()
        if not _TOKEN.fullmatch(name):
            continue
        if lower == "location":
            target = ""
            with suppress(ValueError):
                target = urlsplit(value)._replace(scheme="", netloc="", fragment="").geturl()
            if target:
                yield target, "next", _LOCATION
        elif lower.startswith("x-") or (is_secret_name(lower) and lower != "set-cookie"):
            yield value, lower.removeprefix("x-"), {"header": name}
        elif lower == "set-cookie":
            cookie, _, rest = value.partition("=")
            if not _TOKEN.fullmatch(cookie.strip()):
                continue
            yield unquote(rest.partition(";")[0]), cookie.strip(), {"cookie": cookie.strip()}
    if entry.answer and "json" in entry.answer_type:
        with suppress(ValueError, RecursionError):
            yield from _of_json(json.loads(entry.answer), "", "")
    elif entry.answer:
        yield from _of_page(entry.answer)


def _of_json(value: Plain, pointer: str, name: str) -> Iterator[tuple[str, str, dict[str, Plain]]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _of_json(inner, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", key)
    elif isinstance(value, list):
        for at, inner in enumerate(value):
            yield from _of_json(inner, f"{pointer}/{at}", name)
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        yield str(value), name, {"json": pointer}


def _of_page(text: str) -> Iterator[tuple[str, str, dict[str, Plain]]]:
    """The fields of forms, and `meta` tags, which often hold a token against forged requests."""
    for match in _INPUT.finditer(text):
        tag = match[0]
        name = re.search(r"""\bname\s*=\s*(["'])(.*?)\1""", tag)
        value = re.search(r"""\b(?:value|content)\s*=\s*(["'])(.*?)\1""", tag)
        if name and value and value[2] and unescape(value[2]) == value[2]:
            before, behind = (_plain(re.escape(part)) for part in (tag[: value.start(2)], tag[value.end(2) :]))
            group = f"([^{value[1]}]+)"
            # Where other tags begin alike, the end of the tag tells it apart.
            for pattern in (before + group, before + group + behind):
                if (first := re.search(pattern, text)) and first[1] == value[2]:
                    yield value[2], name[2], {"regex": pattern}
                    break


def _plain(pattern: str) -> str:
    r"""A pattern without escapes that it does not need: `\ ` and `\-` are wrong in some dialects."""
    return re.sub(r"\\([ \-\"'<>=/#&~:;,@!%])", r"\1", pattern)


def _journey_of(walk: _Walk, thinks: list[int], host: str) -> ImportedJourney:
    steps, used, cut = list[dict[str, Plain]](), set[str](), walk.logs_in + 1
    cut = cut if cut < len(walk.requests) else 0
    for at, (request, think_ns) in enumerate(zip(walk.requests, thinks, strict=True)):
        method = next(key for key in (*METHODS, "method") if key in request)
        path = re.sub(r"[{][^}]*[}]", "", str(request.get("path", request[method]))).partition("?")[0]
        name = unused_name(f"{'' if method == 'get' else method} {path or walk.paths[at]}", used)
        used.add(name)
        step: dict[str, Plain] = {"name": name}
        rounded_ns = (think_ns + _STEP_NS // 2) // _STEP_NS * _STEP_NS
        if rounded_ns and at > cut:
            step["think"] = f"{rounded_ns // 1_000_000}ms"
        taken: dict[str, Plain] = {"take": walk.taken[at]} if at in walk.taken else {}
        steps.append(step | request | taken)
    left = [ImportNote(count, why, example, kind) for (kind, why), (count, example) in walk.left_out.items()]
    return ImportedJourney(steps[:cut], steps[cut:], tuple(walk.columns), left, host, tuple(walk.files))
