"""OpenAPI documents as requests: given values, made ones, and what is refused."""

import json
from typing import Any

import pytest

from redline.errors import UsageError
from redline.extras.importing import named, read_requests
from redline.extras.importing.allowed import NoValueError
from redline.extras.importing.made_values import SchemaValues
from redline.suite.imported import Imported, Wanted
from tests.unit.extras.importing.test_importing import imported, left, source


def api(paths: dict[str, Any], version: str = "3.1.0", **more: Any) -> Imported:
    return imported(json.dumps({"openapi": version, "info": {}, "paths": paths, **more}))


def get(*parameters: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"get": {"parameters": list(parameters), "responses": {"200": {}}, **more}}


def parameter(name: str, where: str, schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": name, "in": where, "required": True, "schema": schema, **more}


YAML = """\
openapi: 3.0.3
info: {title: shop, version: '1'}
servers: [{url: 'https://{place}.example/v1/', variables: {place: {default: shop}}}]
paths:
  /items/{id}:
    parameters: [{$ref: '#/components/parameters/Id'}]
    get:
      operationId: getItem
      parameters: [{name: limit, in: query, example: 5, schema: {type: integer}}, {name: x, in: query, schema: {}}]
      responses: {'200': {description: ok}, default: {description: wrong}}
    put:
      requestBody: {content: {application/json: {schema: {$ref: '#/components/schemas/Item'}}}}
      responses: {'204': {description: ok}, '404': {description: none}}
    delete: {responses: {'204': {description: ok}}}
components:
  parameters:
    Id: {name: id, in: path, required: true, schema: {type: string, enum: [a/b, c]}}
  schemas:
    Item:
      type: object
      required: [name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, minLength: 8, maxLength: 9}
        price: {type: number, minimum: 3, exclusiveMinimum: true}
        parent: {$ref: '#/components/schemas/Item'}
"""


def test_each_operation_becomes_a_request() -> None:
    made = imported(YAML)
    body = {
        "name": "stringstr",
        "price": 3.5,
        "parent": {"name": "stringstr", "price": 3.5, "parent": {"name": "stringstr"}},
    }
    first, second = made.requests
    assert first == {"name": "getItem", "get": "/v1/items/a%2Fb?limit=5"}
    assert (second["put"], second["expect"]) == ("/v1/items/a%2Fb", {"status": 204})
    assert json.loads(str(second["body"])) == body
    assert second["headers"] == {"Content-Type": "application/json"}
    assert made.host == "https://shop.example"
    assert left(made) == {"DELETE: the second time there is nothing left": 1}
    assert list(left(made, "made").values()) == [1]


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "array", "items": {"enum": ["a", "b"]}}, "/?x=a"),
        ({"type": "object", "properties": {"a": {"default": 1}, "b": {"const": "c d"}}}, "/?a=1&b=c%20d"),
        ({"type": ["null", "integer"], "minimum": 4, "multipleOf": 3}, "/?x=6"),
        ({"type": "boolean"}, "/?x=true"),
        ({"examples": ["é"]}, "/?x=%C3%A9"),
    ],
)
def test_parameters_stand_in_the_query_as_the_style_form_says(schema: dict[str, Any], path: str) -> None:
    assert api({"/": get(parameter("x", "query", schema))}).requests[0]["get"] == path


@pytest.mark.parametrize(
    ("value", "path"),
    [(["a", "b"], "/o/a,b"), (["a,b"], "/o/a%2Cb"), ({"x": "1/2"}, "/o/x,1%2F2"), ("a,b", "/o/a%2Cb")],
)
def test_the_items_of_a_path_stand_between_commas(value: object, path: str) -> None:
    paths = {"/o/{x}": get(parameter("x", "path", {}, example=value))}
    assert api(paths).requests[0]["get"] == path


@pytest.mark.parametrize(
    ("style", "explode", "paths"),
    [
        ("simple", False, ("5", "3,4%2F", "R,1,G,2")),
        ("simple", True, ("5", "3,4%2F", "R=1,G=2")),
        ("label", False, (".5", ".3,4%2F", ".R,1,G,2")),
        ("label", True, (".5", ".3.4%2F", ".R=1.G=2")),
        ("matrix", False, (";x=5", ";x=3,4%2F", ";x=R,1,G,2")),
        ("matrix", True, (";x=5", ";x=3;x=4%2F", ";R=1;G=2")),
    ],
)
def test_a_value_stands_in_the_path_as_its_style_says(style: str, explode: bool, paths: tuple[str, ...]) -> None:
    for value, path in zip((5, [3, "4/"], {"R": 1, "G": 2}), paths, strict=True):
        described = parameter("x", "path", {}, example=value, style=style, explode=explode)
        assert api({"/o{x}": get(described)}).requests[0]["get"] == f"/o{path}"


def test_an_optional_parameter_with_an_example_is_sent_wherever_that_stands() -> None:
    components = {"schemas": {"Page": {"type": "integer", "example": 7}}}
    optional = [
        parameter("a", "query", {"$ref": "#/components/schemas/Page"}),
        parameter("b", "query", {"example": 2}),
        parameter("c", "query", {"type": "integer"}),
        {"name": "d", "in": "query", "schema": True},
        {"name": "e", "in": "querystring", "schema": {"example": "x"}, "content": 5},
    ]
    paths = {"/": get(*({**one, "required": False} for one in optional))}
    assert api(paths, components=components).requests[0]["get"] == "/?a=7&b=2&x"


def test_headers_and_cookies_stand_as_http_has_them() -> None:
    given = (
        parameter("X", "header", {}, example={"R": 1, "G": 2}, explode=True),
        parameter("a", "cookie", {}, example=1),
        parameter("b", "cookie", {}, example=2),
    )
    document = {"openapi": "3.1.0", "info": {}, "paths": {"/": get(*given)}}
    (request,) = imported(json.dumps(document), wanted=Wanted(keep=frozenset({"cookie"}))).requests
    assert request["headers"] == {"X": "R=1,G=2", "Cookie": "a=1; b=2"}


@pytest.mark.parametrize(
    ("how", "value", "path"),
    [
        ({"style": "pipeDelimited"}, [1, 2], "/?x=1%7C2"),
        ({"style": "spaceDelimited", "explode": False}, ["a", "b"], "/?x=a%20b"),
        ({"style": "pipeDelimited", "explode": True}, [1, 2], "/?x=1&x=2"),
        ({"explode": False}, ["a,b", "c"], "/?x=a%2Cb,c"),
        ({"explode": False}, {"a": 1, "b": 2}, "/?x=a,1,b,2"),
        ({"style": "deepObject"}, {"a": 1}, "/?x%5Ba%5D=1"),
    ],
)
def test_lists_stand_in_the_query_as_their_style_says(how: dict[str, Any], value: object, path: str) -> None:
    assert api({"/": get(parameter("x", "query", {}, example=value, **how))}).requests[0]["get"] == path


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "format": "uuid"}, "00000000-0000-4000-8000-000000000000"),
        ({"type": "string", "pattern": "^[A-Z]{2}$"}, "AB"),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": "number", "exclusiveMinimum": 1}, 1.5),
        (
            {"allOf": [{"properties": {"a": {"type": "boolean"}}}, {"properties": {"b": {"example": 2}}}]},
            {"a": True, "b": 2},
        ),
        ({"oneOf": [{"type": "string", "pattern": "^é{9}$"}, {"type": "null"}]}, None),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2}, ["string", "string"]),
        ({"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}, ["string", "string1"]),
        ({"items": {"type": "string", "maxLength": 6}, "minItems": 2, "uniqueItems": True}, ["string", "strin1"]),
        ({"items": {"enum": [3, 5, 7]}, "minItems": 3, "uniqueItems": True}, [3, 5, 7]),
        ({"items": {"type": "integer", "maximum": 1}, "minItems": 3, "uniqueItems": True}, [1, 0, -1]),
        ({"items": {"type": "boolean"}, "minItems": 2, "uniqueItems": True}, [True, False]),
        (
            {"items": {"properties": {"a": {"type": "integer"}}}, "minItems": 2, "uniqueItems": True},
            [{"a": 1}, {"a": 2}],
        ),
        ({"type": "array", "prefixItems": [{"type": "integer"}, {"const": "b"}]}, [1, "b"]),
        ({"prefixItems": [{"type": "integer"}, {"const": "b"}], "items": False}, [1, "b"]),
        ({"prefixItems": [{"type": "integer"}], "items": {"type": "null"}, "minItems": 3}, [1, None, None]),
        ({"prefixItems": [{"type": "integer"}, {"const": "b"}], "maxItems": 1}, [1]),
        ({"prefixItems": [{"const": 1}], "items": {"type": "integer"}, "minItems": 2, "uniqueItems": True}, [1, 2]),
        (True, "string"),
    ],
)
def test_a_made_value_is_allowed_by_its_schema(schema: object, value: object) -> None:
    made = SchemaValues({}, lambda part: part, "3.1.0")
    assert made.value(schema) == value
    assert made.value(schema) == value


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^é{9}$"},
        {"type": "array", "items": {"type": "boolean"}, "minItems": 3, "uniqueItems": True},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "number", "minimum": 1e308, "multipleOf": 1e-308},
        {"type": "integer", "minimum": 10**400},
        {"type": "number", "exclusiveMinimum": 10**400},
        {"type": "integer", "multipleOf": 10**400, "minimum": 0.5},
        {"type": "number", "multipleOf": 0},
        {"not": {}},
        {"type": "wrong"},
        {"type": "string", "pattern": "("},
        False,
    ],
)
def test_where_no_value_can_be_made_there_is_none(schema: object) -> None:
    with pytest.raises(NoValueError):
        SchemaValues({}, lambda part: part, "3.1.0").value(schema)


EXPLODES = "^(a|a|aa)+$b"
LONG = "a" * 40


def schema_of(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def posted(schema: object, schemas: dict[str, Any] | None = None, count: int = 1) -> Imported:
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    paths = {"/ok": {"get": {}}, **{f"/{at}": {"post": body} for at in range(count)}}
    return api(paths, components={"schemas": schemas or {}})


def doubled(last: dict[str, Any]) -> dict[str, Any]:
    """Schemas that each name the next twice, so that the last is named 2^40 times."""
    return {**{f"s{at}": {"allOf": [schema_of(f"s{at + 1}")] * 2} for at in range(40)}, "s40": last}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": EXPLODES, "minLength": 40},
        {"enum": [LONG], "pattern": EXPLODES},
        {"properties": {LONG: {"const": 1}}, "patternProperties": {EXPLODES: {}}},
        {
            "properties": {LONG: {"const": 1}},
            "patternProperties": {"^$": {}, EXPLODES: {}},
            "unevaluatedProperties": {},
        },
        {"const": {LONG: 1}, "propertyNames": {"pattern": EXPLODES}},
        {"allOf": [{"$schema": "http://json-schema.org/draft-07/schema#", "const": LONG, "pattern": EXPLODES}]},
    ],
)
def test_a_pattern_that_takes_too_long_is_named(schema: dict[str, Any]) -> None:
    made = posted(schema)
    assert [request["name"] for request in made.requests] == ["ok"]
    (entry,) = made.left_out
    assert (entry.why, entry.example) == ("with a pattern that takes too long", f"`{EXPLODES}` of POST /0")


def test_a_field_that_may_be_left_out_is_left_out_where_its_pattern_takes_too_long() -> None:
    slow = {"type": "string", "pattern": EXPLODES, "minLength": 40}
    made = posted({"properties": {"a": {"type": "integer"}, "b": slow}})
    assert made.requests[1]["body"] == '{"a": 1}'


TOO_MANY = "whose schema takes too many steps to make a value"
LISTS = {f"s{at}": {"type": "array", "minItems": 100, "items": schema_of(f"s{at + 1}")} for at in range(9)}
WIDE = {
    f"s{at}": {"required": [*"abcdefghi"], "properties": dict.fromkeys("abcdefghi", schema_of(f"s{at + 1}"))}
    for at in range(9)
}


@pytest.mark.parametrize(
    ("schema", "schemas", "why"),
    [
        (schema_of("s0"), doubled({"type": "string"}), "for which no value could be made from the schema"),
        ({"type": "string", "not": {"not": schema_of("s0")}}, doubled({"type": "string"}), TOO_MANY),
        (schema_of("s0"), {**WIDE, "s9": {"type": "string"}}, TOO_MANY),
        (schema_of("s0"), {**LISTS, "s9": {"type": "string"}}, TOO_MANY),
        ({"enum": list(range(30_000))}, {}, TOO_MANY),
        ({"enum": [[[at] for at in range(2000)]], "uniqueItems": True}, {}, TOO_MANY),
        ({"example": [1] * 1000, "anyOf": [{"type": "string"}] * 1000}, {}, TOO_MANY),
        ({"type": "string", "pattern": "(" * 3000}, {}, "with a pattern of more than 2,000 characters"),
    ],
)
def test_a_schema_without_end_is_left_out(
    schema: object, schemas: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redline.extras.importing.allowed.MOST_STEPS_OF_A_VALUE", 20_000)
    made = posted(schema, schemas)
    assert [request["name"] for request in made.requests] == ["ok"]
    assert left(made) == {why: 1}


@pytest.mark.parametrize(
    "schema",
    [{"enum": list(range(15_000))}, {"type": "string", "not": {"not": schema_of("s0")}}, {"example": "x" * 900_000}],
)
def test_a_document_that_takes_too_many_steps_is_refused(schema: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.extras.importing.allowed.MOST_STEPS_OF_A_VALUE", 20_000)
    monkeypatch.setattr("redline.extras.importing.allowed.MOST_STEPS", 60_000)
    with pytest.raises(UsageError) as refused:
        posted(schema_of("first"), {**doubled({"type": "string"}), "first": schema}, 10)
    said = "file: paths: values for this document take too many steps; the import stopped at POST /"
    assert said in str(refused.value)


def test_yaml_and_json_that_are_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redline.extras.importing.openapi._LONGEST_YAML", len(YAML) - 1)
    with pytest.raises(UsageError, match="this YAML is longer than 4 MiB"):
        imported(YAML)
    monkeypatch.setattr("redline.suite.request_source.MOST_VALUES", 5)
    with pytest.raises(UsageError, match="this JSON has more than 5 values"):
        api({"/": get()})


def test_patterns_of_javascript_are_known() -> None:
    made = SchemaValues({}, lambda part: part, "3.1.0")
    assert made.value({"type": "string", "pattern": r"^\p{Lu}\d+$"}) == "A1"


def test_what_cannot_be_asked_is_left_out_and_named() -> None:
    made = api(
        {
            "/ok": get(),
            "/mine": get(security=[{"bearerAuth": []}]),
            "/open": get(security=[{}, {"bearerAuth": []}]),
            "/none": get(parameter("x", "query", {"type": "string", "pattern": "^é{9}$"})),
            "/{unknown}": get(),
            "/up": {"post": {"requestBody": {"content": {"multipart/form-data": {"schema": {"type": "string"}}}}}},
            "/image": {"put": {"requestBody": {"content": {"image/png": {}}}}},
        }
    )
    assert [request["get"] for request in made.requests] == ["/ok", "/open"]
    assert left(made) == {
        "that need a sign-in (`bearerAuth`)": 1,
        "for which no value could be made from the schema": 1,
        "with a parameter in the path that is not described": 1,
        "whose form has no fields": 1,
        "whose body is of image/png": 1,
    }


def test_a_sign_in_that_is_kept_is_asked_for() -> None:
    text = json.dumps({"openapi": "3.0.0", "paths": {"/mine": get(security=[{"bearerAuth": []}])}})
    assert imported(text, wanted=Wanted(frozenset({"bearerauth"}))).requests == [{"name": "mine", "get": "/mine"}]


@pytest.mark.parametrize("reference", ["other.yaml#/x", "../secret.yaml", "http://127.0.0.1:1/x", "file:///etc/passwd"])
def test_a_reference_out_of_the_document_is_refused_by_name(reference: str) -> None:
    with pytest.raises(UsageError) as refused:
        api({"/": get({"$ref": reference})})
    assert f"`$ref: {reference}` leads out of this document" in str(refused.value)
    with pytest.raises(UsageError, match="leads out of this document"):
        api({"/": get(parameter("x", "query", {"type": "object", "properties": {"a": {"$ref": reference}}}))})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"swagger": "2.0", "paths": {}}', "swagger: this is OpenAPI 2"),
        ('{"openapi": "4.0.0", "paths": {}}', "openapi: this is not an OpenAPI 3 document"),
        ('{"openapi": "3.3.0", "paths": {}}', "openapi: OpenAPI 3.3.0 is not known"),
        ('{"openapi": "3.10.0", "paths": {}}', "openapi: OpenAPI 3.10.0 is not known"),
        ("openapi: 3.1.0\n", "paths: `paths` is missing"),
        ("openapi: 3.1.0\npaths: {/: {$ref: '#/paths/~1'}}\n", "`$ref: #/paths/~1` leads to itself"),
        ("openapi: 3.1.0\npaths: {/: {$ref: '#/none'}}\n", "`$ref: #/none` leads nowhere"),
        ("openapi: 3.1.0\npaths: {\n", "file:3:1: "),
        (
            "openapi: 3.1.0\nx: &x {}\npaths: {/: {<<: *x}}\n",
            "file:3:13: paths./.<<: the merge key `<<` is not of YAML",
        ),
    ],
)
def test_what_is_no_openapi_3_is_refused(text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        imported(text)
    assert says in str(refused.value)


def test_another_document_is_not_taken_for_version_2() -> None:
    with pytest.raises(UsageError, match="openapi: this is not an OpenAPI 3 document"):
        read_requests(source('{"log": {"entries": []}}'), named("openapi"), Wanted())


def bodies(made: Imported) -> list[object]:
    return [request.get("body") for request in made.requests]


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
@pytest.mark.parametrize(
    "schema",
    [
        {"required": ["id", "name"], "properties": {"id": {"type": "integer", "readOnly": True}, "name": {}}},
        {"allOf": [schema_of("read"), {"required": ["id", "name"], "properties": {"name": {"type": "string"}}}]},
        {"required": ["id"], "properties": {"id": {"$ref": "#/components/schemas/id"}, "name": {"type": "string"}}},
        {"required": ["id"], "properties": {"id": {"readOnly": True, **schema_of("plain")}, "name": {}}},
        {
            "required": ["id"],
            "properties": {"id": {"type": "integer", "readOnly": True}, "name": {}},
            "example": {"id": 7, "name": "string"},
        },
    ],
)
def test_what_stands_in_answers_alone_is_not_sent(schema: dict[str, Any], version: str) -> None:
    read = {"properties": {"id": {"type": "integer", "readOnly": True}}}
    schemas = {"read": read, "id": {"type": "integer", "readOnly": True}, "plain": {"type": "integer"}}
    body = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    made = api({"/": {"post": body}}, version, components={"schemas": schemas})
    assert bodies(made) == ['{"name": "string"}']


NUMBERS = (
    '{"a": 1E400, "b": -0, "c": 1.10, "d": 0.1000000000000000055511151231257827, "e": 12345678901234567890, "f": 1e3}'
)


def test_numbers_are_sent_as_they_are_written() -> None:
    in_json = (
        '{"openapi": "3.1.0", "paths": {"/": {"post": {"requestBody": {"content": {"application/json": {"example": '
    )
    assert bodies(imported(f"{in_json}{NUMBERS}}}}}}}}}}}}}}}")) == [NUMBERS]
    in_yaml = "openapi: 3.1.0\npaths: {/: {post: {requestBody: {content: {application/json: {schema: {example: "
    assert bodies(imported(f"{in_yaml}{NUMBERS}}}}}}}}}}}}}}}\n")) == [NUMBERS]
    query = "openapi: 3.1.0\npaths: {/: {get: {parameters: [{name: x, in: query, example: [1.10, -0, 1E400]}]}}}\n"
    assert imported(query).requests[0]["get"] == "/?x=1.10&x=-0&x=1E400"


def test_json_that_the_document_has_written_out_is_sent_so() -> None:
    written = '{"a":  1.10}'
    content = {"application/json": {"schema": {"type": "object"}, "example": written}}
    assert bodies(api({"/": {"post": {"requestBody": {"content": content}}}})) == [written]
    content["application/json"]["schema"] = {"type": "string"}
    assert bodies(api({"/": {"post": {"requestBody": {"content": content}}}})) == [json.dumps(written)]


def test_a_number_that_json_does_not_have_is_named() -> None:
    body = "{content: {application/json: {example: .nan}}}"
    text = f"openapi: 3.1.0\npaths: {{/ok: {{get: {{}}}}, /: {{post: {{requestBody: {body}}}}}}}"
    assert left(imported(text)) == {"with a number that JSON cannot express": 1}


def test_every_operation_is_counted() -> None:
    form = {"content": {"application/x-www-form-urlencoded": {"example": {"q": "a b", "n": [1, 2]}}}}
    made = api(
        {
            "/a": {
                "get": {},
                "trace": {},
                "query": {"requestBody": {"content": {"text/plain": {"example": "x"}}}},
                "additionalOperations": {"LINK": {}, "Weird": {}, "DELETE": {}},
                "post": None,
                "delete": {},
            },
            "/b": {"get": {"parameters": [{"name": "all", "in": "querystring", "required": True, **form}]}},
            "/c": {"get": {"parameters": [{"name": "x", "in": "body", "required": True, "example": 1}]}},
            "/items/{id}": get(parameter("id", "path", {"example": 1}), operationId="one"),
            "/items/1": get(operationId="same"),
            "x-more": {"get": {}},
        },
        "3.2.0",
    )
    asked = [(request.get("method", "GET"), request.get("path", request.get("get"))) for request in made.requests]
    assert asked == [
        ("GET", "/a"), ("TRACE", "/a"), ("QUERY", "/a"), ("LINK", "/a"), ("GET", "/b?q=a+b&n=1&n=2"),
        ("GET", "/items/1"),
    ]  # fmt: skip
    assert left(made) == {
        "that are not described": 1,
        "DELETE: the second time there is nothing left": 2,
        "whose method is not of the letters A to Z": 1,
        "with a parameter in `body`, where OpenAPI 3 has none": 1,
        "that ask the same as another of them": 1,
    }
    assert made.total == 12
    assert set(made.counts) == {1}


FORM = {
    "allOf": [{"$ref": "#/components/schemas/Named"}],
    "properties": {
        "photo": {"type": "string", "format": "binary"},
        "others": {"type": "array", "items": {"type": "string", "contentMediaType": "image/png"}},
        "tags": {"type": "array", "items": {"type": "string"}, "example": ["a {seq}", "b"]},
        "size": {"type": "object", "required": ["w"], "properties": {"w": {"type": "integer"}}},
    },
}
NAMED = {"properties": {"name": {"type": "string"}}}


def form_request(kind: str, **encoding: Any) -> dict[str, Any]:
    content = {kind: {"schema": FORM, "encoding": encoding}}
    made = api({"/up": {"post": {"requestBody": {"content": content}}}}, components={"schemas": {"Named": NAMED}})
    return dict(made.requests[0])


def test_parts_of_a_form_are_files_where_they_are_binary() -> None:
    assert form_request("multipart/form-data", photo={"contentType": "image/*, image/jpeg"}) == {
        "name": "post-up",
        "post": "/up",
        "multipart": [
            {"name": "name", "text": "string"},
            {"name": "photo", "text": "string", "type": "image/jpeg", "filename": "photo"},
            {"name": "others", "text": "string", "type": "application/octet-stream", "filename": "others"},
            {"name": "tags", "text": "a {{seq}}"},
            {"name": "tags", "text": "b"},
            {"name": "size", "text": '{"w": 1}', "type": "application/json"},
        ],
    }


def test_fields_of_a_form_are_those_of_the_value() -> None:
    form = form_request("application/x-www-form-urlencoded", others={"explode": False})["form"]
    assert form == {
        "name": ["string"],
        "photo": ["string"],
        "others": ["string"],
        "tags": ["a {{seq}}", "b"],
        "size": ['{"w": 1}'],
    }
