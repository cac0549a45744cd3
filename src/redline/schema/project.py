"""The schema of `redline.yaml`: the servers of a project, and how its revisions are built, started and tested."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from redline.errors import WrongValueError
from redline.model.variant import DIRECT
from redline.schema.container import ContainedSchema
from redline.schema.journey import JourneySchema
from redline.schema.load import LoadSchema
from redline.schema.objectives import ObjectiveSets
from redline.schema.request import NAME, OneRequestSchema, WeightedSchema
from redline.schema.server import RUNTIME, ReadySchema, StopSchema
from redline.schema.setup import COMMANDS, SetupSchema
from redline.schema.shell import CommandLine
from redline.schema.suite import OWN_NAME, RouteNames, Routes
from redline.schema.types import Budget, Http
from redline.schema.way import TlsSchema, WaySchema

MIX = "mix"
"""The scenario of all requests by their weights."""
CHECK = "check"
"""The scenario of the only request."""
JOURNEY = "journey"
"""The scenario of a journey, and its key."""


class NamedSchema(WeightedSchema):
    """A request with a name: a scenario of its own."""

    name: Annotated[str, Field(pattern=NAME)] = Field(
        description="a letter, then letters, digits, - and _", examples=["items"]
    )


def check_names(requests: list[NamedSchema]) -> list[NamedSchema]:
    """Raise WrongValueError for a name that is given twice, or that is the mix's name."""
    names = [request.name for request in requests]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise WrongValueError(f"the request `{name}` is given twice", "rename one of the two")
        if name == MIX and len(names) > 1:
            raise WrongValueError(f"`{MIX}` is the name of all requests by weight", "give it another name")
    return requests


Requests = Annotated[list[NamedSchema], Field(min_length=1)]


class _OrFile:
    """In the JSON schema, what may stand in place of the list: its file, which is read before the rest is checked.

    That file may also have a `journey`, which then stands beside the key.
    """

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        file = {
            "type": "string",
            "minLength": 1,
            "description": "a file of such a list, or of a journey, relative to this one",
        }
        named = {"type": "object", "properties": {"file": file}, "required": ["file"], "additionalProperties": False}
        return {"anyOf": [handler(schema), named]}


class StartedSchema(SetupSchema):
    """How a server is built, started, made ready and stopped."""

    build: str | None = Field(
        default=None,
        min_length=1,
        description="commands for `sh` that build the server; the build ends at the first failure",
        examples=["cargo build --release --locked"],
    )
    start: CommandLine | None = Field(
        default=None,
        description="the command that starts the server, without a shell; {port}, {cpus} and {scratch} are filled in",
        examples=["target/release/server --port {port}"],
    )
    runtime: Annotated[str, Field(pattern=RUNTIME)] | None = Field(
        default=None,
        description="its runtime, such as native or jvm; default: jvm if the command is java, else detected once "
        "it runs",
        examples=["jvm"],
    )
    ready: ReadySchema | None = Field(
        default=None, description="the request that a ready server answers; default: the first request, if it is a GET"
    )
    stop: StopSchema | None = Field(default=None, description="how it is stopped")


_KINDS = ("start", "image", "compose", "url")
_FIT = {
    "start": {"build", "runtime", "ready", "stop", *SetupSchema.model_fields},
    "image": {"build", "runtime", "ready", "stop", "port", "cpus", "memory", *SetupSchema.model_fields},
    "compose": {"build", "runtime", "ready", "stop", "service", "port", "fresh", *COMMANDS},
    "url": {"http", "tls", *WaySchema.model_fields},
}
"""The further keys of an item of `servers`, by its kind."""
_ONE_KIND = "write one of `start: ./server --port {port}`, `image: shop:1`, `compose: compose.yaml` and `url: http://…`"


class ProjectServerSchema(StartedSchema, ContainedSchema, WaySchema):
    """An item of `servers`: a command that starts it, its image, a service, or the URL of a running server."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]})

    name: Annotated[str, Field(pattern=OWN_NAME)] = Field(
        description="its name in reports, of letters, digits, `.`, `_`, `~` and `-`", examples=["go"]
    )
    url: str | None = Field(
        default=None,
        description="a running server: its scheme, host and port",
        examples=["http://127.0.0.1:8080"],
    )
    http: Http = Field(default="1.1", description="the version of HTTP of a `url`, 1.1 or 2", examples=[2])
    tls: TlsSchema | None = Field(
        default=None, description="the TLS settings of a `url` of https://", examples=[{"ca": "ca.pem"}]
    )

    route: RouteNames = Field(
        default=[DIRECT],
        description="how the load reaches it: `direct`, a proxy such as `nginx`, or a route; a list compares them",
        examples=[["direct", "nginx"]],
        json_schema_extra={"default": DIRECT},
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            has = f"both `{kinds[0]}` and `{kinds[1]}`" if kinds else f"none of {', '.join(_KINDS)}"
            raise WrongValueError(f"this server has {has}", _ONE_KIND)
        (kind,) = kinds
        if other := sorted(self.model_fields_set - {"name", "route", kind} - _FIT[kind]):
            message = f"a server with `{kind}` cannot have `{other[0]}`"
            if kind == "url":
                message = f"a running server is not started, so it cannot have `{other[0]}`"
            raise WrongValueError(message, _advice_on(kind, other[0]), field=other[0])
        return self


_OF_SERVICE = {"cpus": "cpus", "memory": "mem_limit"}
"""What the limits of a container are called in a compose file."""


def _advice_on(kind: str, key: str) -> str:
    """A hint for a key that this kind of server does not have."""
    if kind == "compose" and key in ("env", "env_file"):
        other = "environment" if key == "env" else key
        return f"write it as `{other}` of the service, in the compose file"
    if kind == "start" and key == "port":
        return "remove it: Redline chooses the port, and fills in {port}"
    if kind == "compose" and key in ("cpus", "memory"):
        return f"write it as `{_OF_SERVICE[key]}` of the service, in the compose file"
    return "remove it"


Servers = Annotated[list[ProjectServerSchema], Field(min_length=1)]
Loads = Annotated[dict[Annotated[str, Field(pattern=NAME)], LoadSchema], Field(min_length=1)]


class ProjectSchema(StartedSchema):
    """`redline.yaml`: the servers of a project, their requests, and how its revisions are built and started."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["start"]}, {"required": ["servers"]}]})

    servers: Servers | None = Field(
        default=None,
        description="the servers that `redline run` compares, the first with all others; a `start` beside them is for "
        "revisions",
        examples=[[{"name": "go", "start": "./shop --port {port}"}, {"name": "old", "url": "http://127.0.0.1:8080"}]],
    )
    check: OneRequestSchema | None = Field(
        default=None,
        description="the request of the load and its expected answer; default: `get: /` with status 200",
        examples=[{"get": "/items", "expect": {"status": 200}}],
    )
    requests: Annotated[Requests, _OrFile()] | None = Field(
        default=None,
        description="instead of `check`: several requests by name, or the file that lists them; compared one by one, "
        "and as a mix by weight",
        examples=[[{"name": "items", "get": "/items", "weight": 3}]],
    )
    journey: JourneySchema | None = Field(
        default=None,
        description="instead of `check`: steps that every user takes in order, as in a suite",
        examples=[{"steps": [{"get": "/items"}, {"get": "/orders"}]}],
    )
    routes: Routes | None = Field(
        default=None,
        description="routes by name, as in a suite",
        examples=[{"https": ["h2+tls", "proxy.nginx", "h1"]}],
    )
    loads: Loads | None = Field(
        default=None,
        description="loads by name, as in a suite; default: 64 users",
        examples=[{"users": {"closed": {"users": 16}}}],
    )
    objective: ObjectiveSets | None = Field(
        default=None,
        description="conditions for the rate that `redline limit` finds, and for a server alone in `redline run`",
        examples=["p99 < 200ms, errors < 0.1%"],
    )
    budget: Budget | None = Field(
        default=None,
        description="how long servers are compared; default: a minute for each request and load, 20 at most",
        examples=["5m"],
    )

    @model_validator(mode="after")
    def _names_a_server(self) -> Self:
        if self.start is None and self.servers is None:
            hint = "add it, such as `start: ./server --port {port}`; or `servers`, a list of several"
            raise WrongValueError("`start` is missing", hint, field="start")
        if self.start is None:
            for key in StartedSchema.model_fields:
                if key in self.model_fields_set:
                    message = f"`{key}` here is for revisions, and there is no `start` beside it"
                    raise WrongValueError(message, "move it to the servers", field=key)
        names = [server.name for server in self.servers or ()]
        if twice := next((name for at, name in enumerate(names) if name in names[:at]), None):
            raise WrongValueError(f"the server `{twice}` is given twice", "give it another name", field="servers")
        return self

    @model_validator(mode="after")
    def _asks_in_one_way(self) -> Self:
        asked = [key for key in (CHECK, "requests", JOURNEY) if getattr(self, key) is not None]
        if asked == [CHECK, "requests"]:
            raise WrongValueError("`check` is the only request, and there are `requests`", "remove one of the two")
        if len(asked) > 1:
            message = f"what is requested is in `{asked[0]}` and in `{asked[1]}`"
            raise WrongValueError(message, "remove one of the two", field=asked[1])
        check_names(self.requests or [])
        return self
