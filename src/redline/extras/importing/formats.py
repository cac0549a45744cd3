"""The table of formats, and the detection of a file's format by its content. Pure."""

import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from shlex import quote

from redline.errors import UsageError
from redline.extras.importing import curl, har, url_list, vegeta
from redline.extras.importing.access_logs import FIELDS_OF_W3C, form_of, read_log
from redline.extras.importing.foreign import name_foreign
from redline.extras.importing.gathering import Gathering
from redline.quantities import did_you_mean
from redline.suite.imported import Foreign, Imported, Wanted
from redline.suite.pasted import begins_curl
from redline.suite.request_source import HEAD_BYTES, Broken, RequestSource, member, read_json

_LOOKED_AT = 20
_LIST = re.compile(r"\s*(?:-(?:\s|$|--\s*$)|\[\s*(?:$|[\[\]{\"'#/h]))")
"""The beginning of a list in YAML or JSON."""
_W3C = re.compile(rf"^{FIELDS_OF_W3C}.*\bcs-uri", re.MULTILINE)
_JOURNEY = re.compile(r'\s*\{\s*"?journey"?\s*:')


@dataclass(frozen=True)
class Format:
    """A format: its name for `--format`, its name in texts, its reader, and the test for a line of it.

    `has_times`: whether it says when requests were sent.
    """

    name: str
    about: str
    read: Callable[[RequestSource, Gathering], None]
    has_line: Callable[[str], bool] | None = None
    has_times: bool = False

    @property
    def a_file(self) -> str:
        """Its name in texts, with its article: `an access log`."""
        return f"{'an' if self.about[0] in 'aAeEiIoO' else 'a'} {self.about}"


def _read_openapi(source: RequestSource, into: Gathering) -> None:
    from redline.extras.importing.openapi import read_openapi  # noqa: PLC0415 - jsonschema takes long to import

    read_openapi(source, into)


FORMATS = (
    Format("log", "access log", read_log, has_times=True),
    Format("envoy", "access log of Envoy", read_log, has_times=True),
    Format("json-log", "access log in JSON", read_log, has_times=True),
    Format("elb", "access log of a load balancer of AWS", read_log, has_times=True),
    Format("haproxy", "access log of HAProxy", read_log, has_times=True),
    Format("w3c", "access log in the W3C format", read_log, has_times=True),
    Format("har", "recording of a browser (HAR)", har.read_har, has_times=True),
    Format("openapi", "OpenAPI document", _read_openapi),
    Format("curl", "file of curl commands", curl.read_commands, begins_curl),
    Format("vegeta", "file of Vegeta targets", vegeta.read_targets, vegeta.is_target),
    Format("vegeta-json", "file of Vegeta targets in JSON", vegeta.read_json_targets, vegeta.is_json_target),
    Format("urls", "list of URLs", url_list.read_urls, url_list.is_url_line),
)
"""All formats except Redline's own list of requests, which needs no reader. Vegeta's JSON is never taken for a log."""


def named(name: str) -> Format:
    """The format with a name. Raises UsageError if there is none."""
    names = [known.name for known in FORMATS]
    if name not in names:
        hint = did_you_mean(name, tuple(names)) or f"known are {', '.join(names)}"
        raise UsageError(f"--format {name}: there is no such format", hint=hint)
    return FORMATS[names.index(name)]


def detect(source: RequestSource) -> Format | None:
    """The format of a file, by its beginning; None for a list of requests, or a journey.

    Raises UsageError for any other file.
    """
    text = source.head.decode(errors="backslashreplace")
    lines = [line for line in _whole_lines(source, text) if not line.lstrip().startswith("#")]
    known = named("w3c") if _W3C.search(text) else _by_lines(lines[:_LOOKED_AT])
    if known is not None:
        return known
    if _is_document(lines) and not _JOURNEY.match(text):
        return _by_keys(source)
    keys = [line.partition(":")[0].strip("\"' ") for line in lines if not line[:1].isspace() and ":" in line]
    if not {"openapi", "swagger"}.isdisjoint(keys):
        return named("openapi")
    is_list = not lines or _JOURNEY.match(text) or "journey" in keys or _LIST.match(lines[0])
    return None if is_list and not _log_in(lines) else _later(source, text, lines)


def _later(source: RequestSource, text: str, lines: list[str]) -> Format:
    """The format of a file that begins with something else: a log, or a script. Raises UsageError."""
    if (log := _log_in(lines)) is not None:
        return log
    if text.lstrip()[:1] == "{":
        return _by_keys(source)
    if any(map(begins_curl, lines[:_LOOKED_AT])):  # a script, whose first lines are of another kind
        return named("curl")
    _refuse_foreign(source)
    whats = ", ".join(known.about for known in FORMATS)
    hint = f"write `- {{name: items, get: /items}}` for each request, or give another format: {whats}"
    raise source.wrong("this is not a list of requests, and no other format of them", hint, 1, 1)


def _by_lines(lines: list[str]) -> Format | None:
    """The format of most of the lines; for commands and targets, the first line decides."""
    for known in FORMATS:
        if known.has_line and known.name in {"curl", "vegeta", "vegeta-json"} and any(map(known.has_line, lines[:1])):
            return known
    counts = Counter({known.name: sum(map(known.has_line, lines)) for known in FORMATS if known.has_line})
    counts.update(filter(None, map(form_of, lines)))
    best = max(counts, key=lambda name: counts[name])
    return named(best) if counts[best] * 2 >= len(lines) > 0 else None


def _whole_lines(source: RequestSource, text: str) -> list[str]:
    """The lines of the beginning that are not blank, without one that may be cut."""
    lines = [line for line in re.split(r"[\r\n]+", text) if line.strip()]
    return lines[:-1] if len(source.head) == HEAD_BYTES and len(lines) > 1 else lines


def _is_document(lines: list[str]) -> bool:
    """Whether this is a JSON document, rather than an object a line."""
    first = lines[0] if lines else ""
    return first.lstrip()[:1] == "{" and (len(lines) == 1 or isinstance(read_json(first), Broken))


def _log_in(lines: list[str]) -> Format | None:
    """The format of a log that begins with other lines, such as those of a start."""
    forms = Counter(filter(None, map(form_of, lines)))
    return named(forms.most_common(1)[0][0]) if forms else None


def _by_keys(source: RequestSource) -> Format:
    """The format of a JSON document, by its top-level keys. Raises UsageError."""
    value = source.json()
    if isinstance(member(value, "log"), dict):
        return named("har")
    if not {"openapi", "swagger"}.isdisjoint(value):
        return named("openapi")
    _refuse_foreign(source)
    hint = "known JSON documents are recordings (HAR) and OpenAPI; a log has one object a line"
    raise source.wrong("this JSON has no requests that Redline knows", hint, 1)


def _refuse_foreign(source: RequestSource) -> None:
    """Raise UsageError for a file that is known as another tool's."""
    if foreign := name_foreign(source.head.decode(errors="backslashreplace")):
        raise source.wrong(f"this is {foreign.what}, which Redline does not read", foreign.hint)


def kind_of(source: RequestSource) -> Foreign | None:
    """What a file is that stands where a suite or a server belongs, and what to do with it; None if it is not known."""
    text = source.head.decode(errors="backslashreplace")
    if foreign := name_foreign(text):
        return foreign
    with suppress(UsageError):
        if known := detect(source):
            times = " or `--replay`" if known.has_times else ""
            hint = f"load a server with its requests: `redline load URL --requests {quote(source.name)}`{times}"
            return Foreign(known.a_file, hint)
    return None


def known_recording(source: RequestSource) -> Format | None:
    """The format of a log or a recording, by its beginning; None for any other file. Raises UsageError."""
    text = source.head.decode(errors="backslashreplace")
    lines = _whole_lines(source, text)
    known = named("w3c") if _W3C.search(text) else _by_lines(lines[:_LOOKED_AT])
    if known is None and not _is_document(lines):
        known = _log_in(lines)
    if known is None and text.lstrip()[:1] == "{":
        known = _by_keys(source)
    return known if known and known.has_times else None


def read_requests(source: RequestSource, form: Format, wanted: Wanted) -> Imported:
    """The requests of a file in a format. Raises UsageError, with the place in the file."""
    gathering = Gathering(source, wanted)
    form.read(source, gathering)
    return gathering.made(form.about, of_a_page=form.name == "har")
