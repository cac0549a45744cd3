"""Files of other tools whose requests are not read: what they are, and what to do with them. Pure."""

import json
import re
import shlex
from collections.abc import Callable, Sequence

from redline.extras.importing.access_logs import is_json_log
from redline.extras.importing.log_forms import HAPROXY_CONNECTION
from redline.extras.importing.vegeta import is_json_target
from redline.schema.request import METHOD_KEYS
from redline.suite.imported import Foreign
from redline.suite.request_source import member, text_at

_SCRIPT = (
    "nothing in a file is executed: record what it sends, such as with `mitmdump --set hardump=traffic.har` as its "
    "proxy, and give the recording"
)
_BASH = "in the browser, choose `Copy as cURL (bash)`, and save that"
_CURL = "write its requests as commands of curl, which are read"
_POSTMAN = "its `Code` shows each request as a command of curl: save these in a file"
_URLS = "write them as targets of Vegeta, with URLs: `GET http://127.0.0.1:8080/items`"
_WRONG = "see whether this is the right file"
_SERVERS = "it has no requests: take the log of the servers behind it"
_FIELDS = "log the fields cs-method, cs-uri-stem and sc-status"
_LIST = "write its requests as a list: `- {name: items, get: /items}`"


_KNOWN = (
    ((r"schema\.getpostman\.com|\"_postman_id\"",), "a collection of Postman", _POSTMAN),
    ((r"\"__export_format\"",), "an export of Insomnia", "export it as HAR"),
    ((r"\bfrom ['\"]k6\b|\brequire\(['\"]k6",), "a script of k6", _SCRIPT),
    ((r"<jmeterTestPlan\b",), "a test plan of JMeter", _SCRIPT),
    ((r"\bio\.gatling\.",), "a simulation of Gatling", _SCRIPT),
    ((r"^(?:from locust import|import locust)\b",), "a script of Locust", _SCRIPT),
    ((r"^\s*wrk\.\w+\s*=|^\s*function (?:request|response|init|setup)\s*\(",), "a script of wrk", _LIST),
    ((r"^config:", r"^scenarios:"), "a script of Artillery", _LIST),
    ((r"^http:", r"^(?:phases|scenario|usersPerSec):"), "a benchmark of Hyperfoil", _LIST),
    ((r"^asyncapi:|^\s*\"asyncapi\"\s*:",), "an AsyncAPI document", _LIST),
    ((r"\bInvoke-(?:WebRequest|RestMethod)\b|\bNew-Object Microsoft\.PowerShell\b",), "a PowerShell command", _BASH),
    ((r"\A\s*(?:await\s+)?fetch\(",), "a call of fetch()", _BASH),
    ((r"^\s*(?:\$ )?wget\s",), "a command of wget", _CURL),
    ((r"^\s*(?:\$ )?https?\s+(?:[A-Z]+\s+)?(?:https?://|:)\S",), "a command of HTTPie", _CURL),
    ((r"^###", r"^[A-Z]+ \S+"), "a file of requests of an editor", _CURL),
    ((r"^(?:GET|POST|PUT|PATCH|DELETE|HEAD) /\S*\r?$",), "a list of paths with methods", _URLS),
    ((r"\A\s*<",), "a document of XML or HTML", _WRONG),
    ((r"\A\s*-----BEGIN ",), "a certificate or a key", _WRONG),
    ((r"^\[\w{3} \w{3} .*?\] \[[\w:]+\] ",), "an error log of Apache", "give its access log"),
    ((r"^(?:diff --git |--- \S+\n\+\+\+ \S)",), "a patch", _WRONG),
    ((r"^#Fields: ",), "a log in the W3C format without requests", _FIELDS),
    ((HAPROXY_CONNECTION,), "a log of HAProxy without requests", "let it log them: `option httplog`"),
    ((r"^tls \d\.\d \d{4}-\d\d-\d\dT\S+ net/",), "a log of an AWS load balancer of connections", _SERVERS),
)


def name_foreign(text: str) -> Foreign | None:
    """The tool that a file belongs to, by its beginning; None if it is not known."""
    for patterns, what, hint in _KNOWN:
        if all(re.search(pattern, text, re.MULTILINE) for pattern in patterns):
            return Foreign(what, hint)
    if "\0" in text or text.count("\\x") * 10 > len(text):
        return Foreign("a binary file", _WRONG)
    return None


_LINES = "write an object a line: jq -c '.[]' FILE > lines.json"
_ITEMS: tuple[tuple[Callable[[object], bool], str, str], ...] = (
    (lambda item: isinstance(item, str) and item.startswith(("http://", "https://", "/")), "a list of URLs",
     "write a URL a line: jq -r '.[]' FILE > urls.txt"),
    (lambda item: isinstance(item, dict) and is_json_target(json.dumps(item)), "a list of Vegeta's targets", _LINES),
    (lambda item: bool(text_at(item, "request", "url") and text_at(item, "request", "method")),
     "the entries of a recording (HAR)", "put them into a recording: jq '{log: {entries: .}}' FILE > traffic.har"),
    (lambda item: isinstance(member(item, "request", "url"), dict) or isinstance(member(item, "item"), list),
     "a part of a collection of Postman", _POSTMAN),
    (lambda item: isinstance(item, dict) and is_json_log(json.dumps(item)), "an access log in a list", _LINES),
    (lambda item: bool({"openapi", "swagger"} & {*(item if isinstance(item, dict) else ())}),
     "a list of OpenAPI documents", "give a file with a single document"),
    (lambda item: bool(text_at(item, "url")), "a list of requests of another tool", _LIST),
)  # fmt: skip
"""Items of lists that are no requests of Redline, tried in this order."""


def name_foreign_list(items: Sequence[object], file: str) -> Foreign | None:
    """What the list in a file is, by its first items; None if it has requests, or nothing that is known."""
    first = items[:20]
    if any(isinstance(item, dict) and not {*METHOD_KEYS}.isdisjoint(item) and "url" not in item for item in first):
        return None
    named = shlex.quote(file)
    known = (Foreign(what, hint.replace("FILE", named)) for is_kind, what, hint in _ITEMS if any(map(is_kind, first)))
    return next(known, None)


def has_requests(items: Sequence[object]) -> bool:
    """Whether a list has an item with a method, as requests have."""
    return any(isinstance(item, dict) and not {*METHOD_KEYS}.isdisjoint(item) for item in items)
