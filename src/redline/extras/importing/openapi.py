"""OpenAPI 3: a request for each operation, with the document's examples, defaults and choices. Pure."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from redline.errors import UsageError
from redline.extras.importing.allowed import CHARACTERS_A_STEP, AllStepsError, NoValueError, StepsOfAFile
from redline.extras.importing.gathering import Gathering, ImportedRequest
from redline.extras.importing.made_values import SchemaValues, given_of
from redline.extras.importing.openapi_forms import form_fields, form_parts
from redline.quantities import clip
from redline.schema.bodies import form_template
from redline.schema.document import parse_document
from redline.schema.json_text import json_text
from redline.schema.multipart import MULTIPART
from redline.suite.request_source import RequestSource, member, read_json, text_at

_METHODS = ("get", "head", "options", "post", "put", "patch", "delete", "trace", "query")
_VERSION = re.compile(r"3\.[012](?:\.\d+.*)?", re.ASCII)
_LONGEST_TARGET = 64 * 1024
_CHARACTERS_A_STEP = CHARACTERS_A_STEP // 10
_FORM = "application/x-www-form-urlencoded"
_MOST_REFERENCES = 20
_LONGEST_YAML = 4 * 1024 * 1024
_STEPS_OF_A_PARAMETER = 3
_JOINTS = {"pipeDelimited": "%7C", "spaceDelimited": "%20"}
_TOO_LONG = f"whose path and query are longer than {_LONGEST_TARGET // 1024} KiB"
_EXAMPLE_VALUES = ("value", "dataValue")
_MADE = "values that were made from schemas: see whether the server knows them"


def read_openapi(source: RequestSource, into: Gathering) -> None:
    """Read the operations of a document. Raises UsageError, also for OpenAPI 2."""
    document = _document(source)
    if not isinstance(document, dict):
        raise source.wrong("this is not an OpenAPI document", "its top has the key `openapi`")
    if "openapi" not in document and "swagger" in document:
        hint = "convert it to OpenAPI 3, such as with `npx swagger2openapi`"
        raise source.wrong("this is OpenAPI 2 (Swagger)", hint, field="swagger")
    version = str(document.get("openapi"))
    if not _VERSION.fullmatch(version):
        if version.startswith("3."):
            hint = "known are 3.0, 3.1 and 3.2: write one of these, if nothing in the document is newer"
            raise source.wrong(f"OpenAPI {clip(version)} is not known", hint, field="openapi")
        hint = "its top has the key `openapi`, with 3.0, 3.1 or 3.2"
        raise source.wrong("this is not an OpenAPI 3 document", hint, field="openapi")
    paths = document.get("paths")
    if not isinstance(paths, dict):
        raise source.wrong("`paths` is missing", "an OpenAPI document has its operations there", field="paths")
    _Operations(source, into, document, version).read(paths)


def _document(source: RequestSource) -> Any:
    if source.head.lstrip()[:1] == b"{":
        return source.json()
    text = source.text()
    if len(text) > _LONGEST_YAML:
        hint = f"write it as JSON, which is read much faster: yq -o=json {shlex.quote(source.name)} > openapi.json"
        raise source.wrong("this YAML is longer than 4 MiB", hint)
    document = parse_document(text, source.name)
    if (merged := next((path for path in document.keys if path[-1] == "<<"), None)) is not None:
        hint = "write out what it merges, or as JSON: yq -o=json 'explode(.)' FILE > openapi.json"
        raise UsageError("the merge key `<<` is not of YAML 1.2", hint=hint, place=document.place(merged, key=True))
    return document.value


@dataclass(frozen=True)
class _Operations:
    """Reads the operations of a document."""

    source: RequestSource
    into: Gathering
    document: Mapping[str, Any]
    version: str
    steps: StepsOfAFile = field(default_factory=StepsOfAFile)

    @cached_property
    def _values(self) -> SchemaValues:
        return SchemaValues(self.document, self._resolved, self.version, self.steps)

    def read(self, paths: Mapping[str, Any]) -> None:
        for path, item in paths.items():
            if path.startswith("x-"):  # an extension
                continue
            shared = self._resolved(item)
            for method, operation in _operations(shared):
                try:
                    self._read_operation(method, str(path), shared, operation)
                except AllStepsError:
                    message = f"values for this document take too many steps; the import stopped at {method} {path}"
                    hint = "keep the operations that you want to load, or give them examples"
                    raise self.source.wrong(message, hint, field="paths") from None

    def _read_operation(self, method: str, path: str, shared: object, operation: object) -> None:
        example = f"{method} {path}"
        if not isinstance(operation, dict):
            self.into.leave_out("that are not described", example)
            return
        if why := self._why_not(method, operation):
            self.into.leave_out(why, example)
            return
        try:
            asked, made = self._request_of(method, path, shared, operation)
        except NoValueError as error:
            pattern = f"`{clip(error.pattern)}` of " if error.pattern else ""
            self.into.leave_out(error.why, f"{pattern}{example}")
            return
        except RecursionError:
            self.into.leave_out("whose values are nested too deeply", example)
            return
        if asked is None:
            return
        if made:
            self.into.leave_out(_MADE, example, kind="made")
        self.into.add(asked._replace(name=text_at(operation, "operationId")), once=True)

    def _why_not(self, method: str, operation: Mapping[str, Any]) -> str:
        """The reason why an operation is not asked for, whatever its values; empty if it is."""
        if not re.fullmatch("[A-Z]+", method):
            return "whose method is not of the letters A to Z"
        if method == "DELETE":
            return "DELETE: the second time there is nothing left"
        scheme = self._scheme(operation)
        return f"that need a sign-in (`{scheme}`)" if scheme else ""

    def _request_of(
        self, method: str, path: str, shared: object, operation: Mapping[str, Any]
    ) -> tuple[ImportedRequest | None, bool]:
        """The request of an operation, and whether it has generated values; None if its content type cannot be sent."""
        host, target = self._server(shared, operation)
        target += path
        query, cookies, headers, made = list[str](), list[str](), list[tuple[str, str]](), False
        for parameter in self._parameters(shared, operation):
            name, where = text_at(parameter, "name"), text_at(parameter, "in")
            is_needed = where == "path" or parameter.get("required") is True or self._has_example(parameter)
            if not is_needed or (not name and where != "querystring"):
                continue
            value, is_made = self._value(parameter)
            made |= is_made
            match where:
                case "path":
                    target = _filled(target, f"{{{name}}}", _in_path(name, value, parameter))
                case "query":
                    query += _pairs(name, value, parameter)
                case "querystring":
                    query.append(_whole_query(value, parameter))
                case "header":
                    headers.append((name, _plain(value, exploded=parameter.get("explode") is True)))
                case "cookie":
                    cookies.append(f"{name}={_plain(value)}")
                case _:
                    raise NoValueError(f"with a parameter in `{clip(where)}`, where OpenAPI 3 has none")
        if "{" in target:
            self.into.leave_out("with a parameter in the path that is not described", f"{method} {path}")
            return None, False
        target += f"?{'&'.join(query)}" if query else ""
        headers += [("Cookie", "; ".join(cookies))] if cookies else []
        _check_length(target)
        # They are copied a few times, and a document may name a long one for each operation.
        self.steps.take_of_file((len(host) + len(target) + sum(map(len, chain(*headers)))) // _CHARACTERS_A_STEP)
        asked = ImportedRequest(method, target, host, tuple(headers), status=self._status(operation))
        content = member(self._resolved(operation.get("requestBody")), "content")
        if not isinstance(content, dict) or not content:
            return asked, made
        whole, is_made = self._with_body(asked, content, path)
        return whole, made or is_made

    def _with_body(
        self, asked: ImportedRequest, content: Mapping[str, Any], path: str
    ) -> tuple[ImportedRequest | None, bool]:
        """The request with a body of these content types, and whether that was generated; None if none can be sent."""
        kind = _preferred(content)
        if kind is None:
            self.into.leave_out(f"whose body is of {next(iter(content))}", f"{asked.method} {path}")
            return None, False
        described = self._resolved(content[kind])
        body, made = self._value(described)
        self.steps.take_of_file(self.steps.size(body))
        if kind.startswith((_FORM, MULTIPART)):
            return self._with_form(asked, kind, body, described, path), made
        text = self._body_text(kind, body, described)
        self.steps.take_of_file(len(text) // CHARACTERS_A_STEP)
        return asked._replace(headers=(*asked.headers, ("Content-Type", kind)), body=text), made

    def _body_text(self, kind: str, body: object, described: object) -> str:
        """A body as a text: JSON with its numbers as they are written, or what the document has already written so."""
        if isinstance(body, str) and ("json" not in kind or self._is_written_json(body, described)):
            return body
        return _json(body)

    def _is_written_json(self, text: str, described: object) -> bool:
        """Whether an example is the text of JSON, for a schema of an object or of a list."""
        wanted = {"object": dict, "array": list}.get(str(member(self._resolved(member(described, "schema")), "type")))
        return wanted is not None and isinstance(read_json(text), wanted)

    def _with_form(
        self, asked: ImportedRequest, kind: str, body: object, described: object, path: str
    ) -> ImportedRequest | None:
        """The request with a form as its body; None if it has no field."""
        if not isinstance(body, dict) or not body:
            self.into.leave_out("whose form has no fields", f"{asked.method} {path}")
            return None
        encoding = member(described, "encoding")
        if kind.startswith(MULTIPART):
            parts = tuple(form_parts(body, member(described, "schema"), encoding, self._resolved))
            return asked._replace(parts=parts)
        return asked._replace(form=form_fields(body, encoding))

    def _parameters(self, shared: object, operation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """The parameters of an operation, and the parameters of its path that it does not override."""
        parameters = dict[tuple[str, str], Mapping[str, Any]]()
        for holder in (shared, operation):
            written = member(holder, "parameters")
            self.steps.take_of_file(_STEPS_OF_A_PARAMETER * len(written) if isinstance(written, list) else 0)
            for parameter in map(self._resolved, written if isinstance(written, list) else ()):
                if isinstance(parameter, dict):
                    parameters[text_at(parameter, "name"), text_at(parameter, "in")] = parameter
        yield from parameters.values()

    def _has_example(self, parameter: Mapping[str, Any]) -> bool:
        schema = self._resolved(parameter.get("schema"))
        return not {"example", "examples"}.isdisjoint({*parameter, *(schema if isinstance(schema, dict) else ())})

    def _value(self, holder: object) -> tuple[Any, bool]:
        """The value of a parameter or of a body, and whether it was generated. Raises NoValueError."""
        if isinstance(holder, dict) and "example" in holder:
            return holder["example"], False
        examples = member(holder, "examples")
        for example in examples.values() if isinstance(examples, dict) else ():
            written = self._resolved(example)
            known = next((key for key in _EXAMPLE_VALUES if isinstance(written, dict) and key in written), None)
            if known is not None:
                return written[known], False
        schema = member(holder, "schema")
        where = text_at(holder, "in")
        if schema is None and isinstance(content := member(holder, "content"), dict) and content:
            value, made = self._value(self._resolved(next(iter(content.values()))))
            return value if where == "querystring" else _json(value), made
        made = self._values.value(schema)
        return made, not given_of(self._resolved(schema))

    def _server(self, shared: object, operation: Mapping[str, Any]) -> tuple[str, str]:
        """The scheme and host of the first server, empty if unknown, and the path prefix of all operations."""
        holders = (operation, shared, self.document)
        written = next((servers for holder in holders if (servers := member(holder, "servers"))), None)
        url = text_at(written, 0, "url")
        variables = member(written, 0, "variables")
        self.steps.take_of_file(len(variables) if isinstance(variables, dict) else 0)
        for name, variable in variables.items() if isinstance(variables, dict) else ():
            url = _filled(url, f"{{{name}}}", text_at(variable, "default"))
        try:
            parts = urlsplit(url)
        except ValueError:
            hint = "write it like http://127.0.0.1:8080"
            raise self.source.wrong("this URL cannot be read", hint, field="servers[0].url") from None
        host = f"{parts.scheme}://{parts.netloc.rpartition('@')[2].lower()}" if parts.netloc else ""
        prefix = parts.path.rstrip("/")
        return host, prefix if prefix.startswith("/") or not prefix else f"/{prefix}"

    def _scheme(self, operation: Mapping[str, Any]) -> str | None:
        """The sign-in that an operation needs, unless the user keeps that secret."""
        written = operation.get("security", self.document.get("security"))
        choices = [choice for choice in written if isinstance(choice, dict)] if isinstance(written, list) else []
        if not choices or not all(choices):
            return None
        names = [str(name) for choice in choices for name in choice]
        return None if any(name.lower() in self.into.wanted.keep for name in names) else names[0]

    def _status(self, operation: Mapping[str, Any]) -> int | None:
        """The status of a right answer, if the document gives it."""
        responses = operation.get("responses")
        written = [str(status) for status in responses] if isinstance(responses, dict) else []
        self.steps.take_of_file(len(written))
        return min((int(status) for status in written if re.fullmatch(r"[23]\d\d", status, re.ASCII)), default=None)

    def _resolved(self, value: object) -> Any:
        """The target of a `$ref`, or else the value itself. Raises UsageError for a `$ref` out of the document."""
        reference = ""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(value, dict) or not isinstance(value.get("$ref"), str):
                return value
            reference = value["$ref"]
            if not reference.startswith("#"):
                hint = (
                    "nothing outside of the file is read: bundle it into a single file, such as with `redocly bundle`"
                )
                raise self.source.wrong(f"`$ref: {reference}` leads out of this document", hint, field="$ref")
            steps = [unquote(step).replace("~1", "/").replace("~0", "~") for step in reference[1:].split("/")[1:]]
            value = member(self.document, *steps)
            if value is None:
                raise self.source.wrong(f"`$ref: {reference}` leads nowhere", "see how it is spelled", field="$ref")
        raise self.source.wrong(f"`$ref: {reference}` leads to itself", "write out what it stands for", field="$ref")


def _operations(item: object) -> Iterator[tuple[str, object]]:
    """The methods and operations of a path, also those of methods that OpenAPI has no key for."""
    for method in _METHODS:
        if isinstance(item, dict) and method in item:
            yield method.upper(), item[method]
    others = member(item, "additionalOperations")
    yield from ((str(method), operation) for method, operation in (others if isinstance(others, dict) else {}).items())


def _json(value: object) -> str:
    """A value as JSON. Raises NoValueError for what JSON cannot express."""
    try:
        return json_text(value)
    except ValueError:
        raise NoValueError("with a number that JSON cannot express") from None


def _filled(text: str, name: str, value: str) -> str:
    """The text with a value in place of a name. Raises NoValueError if it becomes too long."""
    count = text.count(name)
    if count and len(text) + count * len(value) > _LONGEST_TARGET:
        raise NoValueError(_TOO_LONG)
    return text.replace(name, value)


def _check_length(target: str) -> None:
    if len(target) > _LONGEST_TARGET:
        raise NoValueError(_TOO_LONG)


def _whole_query(value: object, parameter: Mapping[str, Any]) -> str:
    """The value of a parameter that is the whole query: a form, or a text of another kind."""
    content = member(parameter, "content")
    kind = next(iter(content), "") if isinstance(content, dict) else ""
    if kind.startswith(_FORM) and isinstance(value, dict):
        return form_template(dict(form_fields(value, None)))
    return quote(_plain(value) if not isinstance(value, (dict, list)) else _json(value), safe="")


def _preferred(content: Mapping[str, Any]) -> str | None:
    """The content type to send: JSON, a form, its parts, or text."""
    kinds = [kind for kind in content if isinstance(content[kind], dict)]
    wanted = (r"application/json", r"[\w.+-]+/[\w.+-]+\+json", _FORM, MULTIPART, r"text/[\w.+-]+")
    return next((kind for form in wanted for kind in kinds if re.match(rf"{form}(?:;|$)", kind)), None)


def _plain(value: object, *, exploded: bool = False) -> str:
    """A value in a header, or an item of a path or a query, in the style `simple`."""
    if isinstance(value, list):
        return ",".join(map(_plain, value))
    if isinstance(value, dict):
        return ",".join(f"{name}{'=' if exploded else ','}{_plain(inner)}" for name, inner in value.items())
    return value if isinstance(value, str) else _json(value)


def _joined(value: object, joint: str = ",") -> str:
    """A value in a path or a query, with its items encoded, and what stands between them as it is."""
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    return joint.join(quote(_plain(item), safe="") for item in (value if isinstance(value, list) else [value]))


def _in_path(name: str, value: object, parameter: Mapping[str, Any]) -> str:
    """A value in the path, in the style `simple`, `label` or `matrix`: `{x}`, `{.x}`, `{;x}` of RFC 6570."""
    begin = {"label": ".", "matrix": ";"}.get(text_at(parameter, "style"), "")
    named = f"{quote(name, safe='')}=" if begin == ";" else ""
    is_exploded = parameter.get("explode") is True
    if isinstance(value, (list, dict)) and len(named) * len(value) > _LONGEST_TARGET:
        raise NoValueError(_TOO_LONG)
    if isinstance(value, dict) and is_exploded:
        parts = [f"{quote(str(key), safe='')}={quote(_plain(inner), safe='')}" for key, inner in value.items()]
    else:
        parts = [named + _joined(part) for part in (value if isinstance(value, list) and is_exploded else [value])]
    return begin + (begin or ",").join(parts)


def _pairs(name: str, value: object, parameter: Mapping[str, Any]) -> list[str]:
    """A query parameter in the style `form`, `pipeDelimited`, `spaceDelimited` or `deepObject`, as pairs."""
    if isinstance(value, (list, dict)) and len(name) * len(value) > _LONGEST_TARGET:
        raise NoValueError(_TOO_LONG)
    style = text_at(parameter, "style") or "form"
    is_deep, is_joined = style == "deepObject", parameter.get("explode", style == "form") is False
    if is_joined and not is_deep and isinstance(value, (list, dict)):
        return [f"{quote(name)}={_joined(value, _JOINTS.get(style, ','))}"]
    if isinstance(value, list):
        return [f"{quote(name)}={quote(_plain(item), safe='')}" for item in value]
    if isinstance(value, dict):
        return [
            f"{quote(f'{name}[{key}]' if is_deep else str(key))}={quote(_plain(inner), safe='')}"
            for key, inner in value.items()
        ]
    return [f"{quote(name)}={quote(_plain(value), safe='')}"]
