"""The schema of the suite file: defaults, types and descriptions. Its JSON Schema is generated from it."""

from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from redline.defaults import DuetMetric
from redline.errors import WrongValueError
from redline.model import Backend, Closed, Design, Load, Open, Profile
from redline.model.variant import DIRECT
from redline.schema.abort_when import AbortRules
from redline.schema.claims import ClaimSchema
from redline.schema.container import ContainedSchema, PlacedSchema
from redline.schema.load import DEFAULT_CONNECTIONS, MOST_CONNECTIONS, LoadSchema
from redline.schema.objectives import ObjectiveSets
from redline.schema.request import NAME
from redline.schema.scenario import ScenarioSchema
from redline.schema.server import OPTION_NAME, RUNTIME, ReadySchema, StopSchema
from redline.schema.setup import COMMANDS, SetupSchema
from redline.schema.shell import CommandLine
from redline.schema.types import (
    BY_FORM,
    CHOICES,
    FLAG_SETS,
    LIST,
    MAPPING,
    PLAIN,
    Budget,
    Choices,
    DetectionBudget,
    Duration,
    FlagSets,
    Http,
    LoadLength,
    Rate,
    Scalar,
    Schema,
    Threshold,
    Timeout,
    as_list,
    one_or_several,
)
from redline.schema.way import TlsSchema, WaySchema

OWN_NAME = r"^[A-Za-z0-9][A-Za-z0-9._~-]*( [A-Za-z0-9._~-]+)*$"
PROFILES: tuple[Profile, ...] = ("cpu", "wall", "alloc", "lock", "engine")
MOST_TRIALS = 1_000
MOST_BUILDS = 100
MOST_LOAD_HOSTS = 1_000
MOST_REST_NS = 3_600_000_000_000
MOST_RETRIES = 10
DETECTION_NS = 60_000_000_000
HIGHEST_SEED = 2**53 - 1  # the largest whole number that every JSON reader keeps exact


class HopSchema(PlacedSchema):
    """A proxy of a route, by name or with its options."""

    use: str = Field(description="a proxy of the catalogue, as family.name", examples=["proxy.nginx"])
    options: dict[str, Scalar] = Field(
        default={}, alias="with", description="options by name, with one value per option", examples=[{"workers": 1}]
    )


RouteItem = Annotated[Annotated[str, PLAIN] | Annotated[HopSchema, MAPPING], BY_FORM]
"""A leg, a proxy by its name, or a proxy with its options."""


RouteNames = Annotated[
    list[str], BeforeValidator(as_list), Field(min_length=1), one_or_several({"type": "string"}, minItems=1)
]
Routes = dict[Annotated[str, Field(pattern=NAME)], Annotated[list[RouteItem], Field(min_length=1)]]
Profiles = Annotated[list[Profile], BeforeValidator(as_list), one_or_several({"enum": [*PROFILES]})]

_KINDS = ("use", "command", "image", "compose", "url", "revision", "launcher")
_ONE_KIND = (
    "write one of `use: rust.hyper`, `command: ./server --port {port}`, `image: shop:1`, `compose: compose.yaml`, "
    "`url: http://…`, `revision: HEAD` and `launcher: NAME`"
)
_FIT = {
    "use": {"options", "http", "tls", "route", "places", "container"},
    "command": {"name", "folder", "ready", "stop", "runtime", "http", "tls", "route", *SetupSchema.model_fields},
    "image": {
        *("name", "folder", "port", "cpus", "memory", "ready", "stop", "runtime", "http", "tls", "route"),
        *SetupSchema.model_fields,
    },
    "compose": {
        *("name", "folder", "service", "port", "fresh", "ready", "stop", "runtime", "http", "tls", "route"),
        *COMMANDS,
    },
    "url": {"name", "http", "tls", "route", *WaySchema.model_fields},
    "revision": {"name", "http", "tls", "route"},
    "launcher": {"name", "folder", "options", "ready", "runtime", "http", "tls", "route"},
}
"""The further keys of a server, by its kind."""


class ServerSchema(SetupSchema, PlacedSchema, ContainedSchema, WaySchema):
    """A server: a catalogue entry, a command, an image, a service, a URL, or a revision; a list of values is an axis.

    A name alone names a server of the catalogue.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": [kind]} for kind in _KINDS]})

    use: str | None = Field(default=None, description="a server of the catalogue", examples=["rust.hyper"])
    command: CommandLine | None = Field(
        default=None,
        description="a command that starts a server, without a shell; {port}, {cpus} and {scratch} are filled in",
        examples=["./server --port {port}"],
    )
    url: str | None = Field(
        default=None,
        description="a server that is running: its scheme, host and port; or `http+unix://` and the path of a socket",
        examples=["http://127.0.0.1:8080", "http+unix://%2Frun%2Fapp.sock"],
    )
    revision: Annotated[str, Field(min_length=1)] | None = Field(
        default=None,
        description="a revision of the git repository; its redline.yaml says how to build and start it",
        examples=["HEAD"],
    )
    launcher: Annotated[str, Field(pattern=OPTION_NAME)] | None = Field(
        default=None,
        description="a launcher of an installed package that starts it, by name; `with` has its settings",
        examples=["wsgi"],
    )
    name: Annotated[str, Field(pattern=OWN_NAME)] | None = Field(
        default=None,
        description="its name in reports; default: its program, image, service, address, revision or launcher",
        examples=["A"],
    )
    folder: str | None = Field(
        default=None,
        min_length=1,
        description="the folder in which its commands run, relative to the suite; default: the suite's folder",
    )
    ready: ReadySchema | None = Field(
        default=None,
        description="the request that a ready server answers; default: the first scenario's, if it is a GET",
        examples=[{"path": "/health"}],
    )
    stop: StopSchema | None = Field(default=None, description="how it is stopped")
    runtime: Annotated[str, Field(pattern=RUNTIME)] | None = Field(
        default=None,
        description="the runtime of the command, such as native or jvm; default: jvm if it is java, else detected once "
        "it runs",
        examples=["jvm"],
    )
    options: dict[str, Choices] = Field(
        default={},
        alias="with",
        description="options by name; a list of values is an axis",
        examples=[{"routes": [1, 128]}],
    )
    http: Http = Field(default="1.1", description="the version of HTTP, 1.1 or 2", examples=[2])
    tls: TlsSchema | None = Field(
        default=None, description="the TLS settings, if the server serves TLS", examples=[{"versions": [1.3]}]
    )
    route: RouteNames = Field(
        default=[DIRECT],
        description="how the load reaches it: the name of a route, or of a proxy; a list is an axis; default: direct",
        examples=["nginx", ["direct", "nginx"]],
        json_schema_extra={"default": DIRECT},
    )

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        kinds = [kind for kind in _KINDS if getattr(self, kind) is not None]
        if len(kinds) != 1:
            has = f"both `{kinds[0]}` and `{kinds[1]}`" if kinds else f"none of {', '.join(_KINDS)}"
            raise WrongValueError(f"this server has {has}", _ONE_KIND)
        (kind,) = kinds
        for key, info in type(self).model_fields.items():
            if key in self.model_fields_set and key != kind and key not in _FIT[kind]:
                written = info.alias or key
                raise WrongValueError(f"a server with `{kind}` cannot have `{written}`", "remove it", field=written)
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "examples": ["rust.hyper"]}, handler.resolve_ref_schema(handler(schema))]}


class EngineSchema(Schema):
    """How the engine waits for its sockets."""

    backend: Backend = Field(
        default="auto", description="auto: io_uring if the kernel supports it, else epoll", examples=["epoll"]
    )
    spin: bool = Field(
        default=False,
        description="workers poll instead of sleeping, for machines where every worker has its own core",
        examples=[True],
    )


class QuickSchema(Schema):
    """The values for `--quick`; shorter values of the suite stay."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    warmup: Duration | None = Field(default=None, description="the warm-up", examples=["1s"])
    duration: LoadLength | None = Field(
        default=None, alias="for", description="the length of each measurement", examples=["2s"]
    )
    trials: int | None = Field(
        default=None, ge=1, le=MOST_TRIALS, description="how often each cell is measured", examples=[2]
    )

    @model_validator(mode="after")
    def _something_shorter(self) -> "QuickSchema":
        if not self.model_fields_set:
            raise WrongValueError("`quick` is empty", "write at least one of `warmup`, `for` and `trials`")
        return self


class PrecisionSchema(Schema):
    """Rounds of trials until the main comparisons are as narrow as requested."""

    precision: Threshold = Field(
        description="relative half width of an interval: of each comparison with a baseline, or of each server "
        "without a baseline, in throughput with zero think time and in p99 otherwise",
        examples=["2%"],
    )
    at_least: int = Field(default=5, ge=2, le=MOST_TRIALS, description="rounds before the first decision", examples=[5])
    at_most: int = Field(default=30, ge=2, le=MOST_TRIALS, description="the maximum number of rounds", examples=[15])
    budget: LoadLength | None = Field(
        default=None, description="no further round begins once the trials have taken this long", examples=["30m"]
    )

    @model_validator(mode="after")
    def _possible(self) -> "PrecisionSchema":
        if self.at_least > self.at_most:
            message = f"at least {self.at_least} and at most {self.at_most} rounds is impossible"
            raise WrongValueError(message, "raise `at_most`, or lower `at_least`")
        return self


class AutoSchema(Schema):
    """Trials until the comparisons are precise enough."""

    auto: PrecisionSchema = Field(
        description="rounds until the main comparisons are narrow enough", examples=[{"precision": "2%"}]
    )


TrialsItem = Annotated[Annotated[int, Field(ge=1, le=MOST_TRIALS), PLAIN] | Annotated[AutoSchema, MAPPING], BY_FORM]


class HostsSchema(Schema):
    """The hosts of a cluster that the suite needs, besides the server's."""

    load: int = Field(default=1, ge=1, le=MOST_LOAD_HOSTS, description="load hosts per server", examples=[2])
    retries: int = Field(
        default=0, ge=0, le=MOST_RETRIES, description="how often trials of a lost host are repeated on others"
    )


class OwnScenarioSchema(ScenarioSchema):
    """A scenario that is defined in the suite."""

    name: str = Field(pattern=NAME, description="a letter, then letters, digits, - and _", examples=["Mine"])


ScenarioItem = Annotated[Annotated[str, PLAIN] | Annotated[OwnScenarioSchema, MAPPING], BY_FORM]
JvmItem = Annotated[
    Annotated[Choices, PLAIN] | Annotated[Choices, LIST] | Annotated[FlagSets, MAPPING],
    BY_FORM,
    WithJsonSchema({"anyOf": [*(CHOICES.json_schema or {})["anyOf"], FLAG_SETS]}),
]
Baselines = Annotated[dict[str, str], Field(min_length=1)]
BaselineItem = Annotated[Annotated[str, PLAIN] | Annotated[Baselines, MAPPING], BY_FORM]


class DetectionSchema(Schema):
    """How the end of a warm-up is detected."""

    at_most: DetectionBudget = Field(
        default=DETECTION_NS,
        description="when the measurement begins even if the server is not steady; default: 60s",
        examples=["60s"],
        json_schema_extra={"default": "60s"},
    )


class WarmUpSchema(Schema):
    """A warm-up that lasts until the server is steady."""

    detect: DetectionSchema = Field(
        description="the measurement begins as soon as the server is steady", examples=[{"at_most": "60s"}]
    )


class WarmUpLoadSchema(Schema):
    """The load of the warm-up: users with zero think time, or a constant rate with Poisson arrivals."""

    users: int | None = Field(
        default=None, ge=1, le=MOST_CONNECTIONS, description="users, with a connection each", examples=[2]
    )
    rate: Rate | None = Field(default=None, description="requests per second", examples=[1000])
    connections: int | None = Field(
        default=None,
        ge=1,
        le=MOST_CONNECTIONS,
        description=f"the most connections at once, for a rate; default: {DEFAULT_CONNECTIONS}",
        examples=[64],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if (self.users is None) == (self.rate is None):
            kind = "neither users nor a rate" if self.users is None else "both users and a rate"
            raise WrongValueError(f"this load has {kind}", "write `{users: 2}` or `{rate: 1000}`")
        if self.rate is None and self.connections is not None:
            raise WrongValueError("each user has one connection", "leave it out", field="connections")
        return self

    @property
    def load(self) -> Load:
        """The load in the model, as long as the warm-up."""
        if self.rate is None:
            users = self.users or 1
            return Load(name=f"users{users}", shape=Closed(users=users), duration_ns=1)
        shape = Open(rate_per_s=self.rate, connections=self.connections or DEFAULT_CONNECTIONS)
        return Load(name="rate-of-the-warm-up", shape=shape, duration_ns=1)


WarmUpByItem = Annotated[Annotated[str, PLAIN] | Annotated[WarmUpLoadSchema, MAPPING], BY_FORM]
WarmUpItem = Annotated[Annotated[Duration, PLAIN] | Annotated[WarmUpSchema, MAPPING], BY_FORM]


def _no_default(schema: JsonDict) -> None:
    """Remove the default: a suite cannot write an empty objective."""
    schema.pop("default", None)


class SuiteSchema(Schema):
    """A Redline suite: which servers are measured, under which loads, with which requests."""

    about: str = Field(default="", description="one line for the reports")
    servers: list[ServerSchema] = Field(
        min_length=1,
        description="catalogue servers by name or with options, and other servers by command, URL or revision",
        examples=[["rust.hyper"], [{"name": "A", "command": "./old --port {port}"}]],
    )
    baseline: BaselineItem | None = Field(
        default=None,
        description="the server that all others are compared with, or a mapping from servers to their baselines; "
        "default with `budget`: the first server",
        examples=["rust.hyper", {"http4s.tapir": "http4s.vanilla", "vertx.tapir-*": "vertx.vanilla"}],
    )
    ceiling: ServerSchema | None = Field(
        default=None,
        description="a server that does no work, to show this machine's limit",
        examples=["oracle.null"],
    )
    jvm: dict[Annotated[str, Field(pattern=OPTION_NAME)], JvmItem] = Field(
        default={},
        description="options of every server on a JVM, where a list of values is an axis; and `flags`, a mapping of "
        "named sets of flags, which is an axis too; a server's own `with` takes precedence",
        examples=[
            {"jdk": [21, 25], "gc": ["G1", "Z"], "flags": {"none": "", "compact": "-XX:+UseCompactObjectHeaders"}}
        ],
    )
    routes: Routes = Field(
        default={},
        description="routes by name: legs (h1, h1+tls, h2c, h2+tls) and between them proxies of the catalogue, from "
        "the client on; `direct` is predefined",
        examples=[{"nginx": ["h2+tls", "proxy.nginx", "h1"], "https": ["h1+tls"]}],
    )
    scenarios: Annotated[list[ScenarioItem], Field(min_length=1)] | None = Field(
        default=None,
        description="names of scenarios in the catalogue, or scenarios defined here; default with a `revision`: the "
        "requests of redline.yaml",
        examples=[["SimpleGet"]],
    )
    loads: dict[Annotated[str, Field(pattern=NAME)], LoadSchema] = Field(
        min_length=1,
        description="loads by name: a letter, then letters, digits, - and _",
        examples=[{"saturate": {"closed": {"users": 64}, "for": "1s"}}],
    )
    warmup: WarmUpItem | None = Field(
        default=None,
        description="load before each measurement: for a time, or until the server is steady; default: 1s, with "
        "`budget` until it is steady, and none before a load with a `count`",
        examples=["250ms", {"detect": {"at_most": "60s"}}],
        json_schema_extra={"default": "1s"},
    )
    warmup_by: WarmUpByItem | None = Field(
        default=None,
        description="the load of the warm-up: a load of the suite, by name, a number of users, or a rate; default: "
        "the measured load",
        examples=["saturate", {"users": 2}, {"rate": 1000}],
    )
    trials: TrialsItem = Field(
        default=5,
        description="how often each cell is measured, each time on a fresh server",
        examples=[5, {"auto": {"precision": "2%", "at_most": 15}}],
    )
    budget: Budget | None = Field(
        default=None,
        description="instead of `trials`: how long servers are compared by duets; the time allows at least three "
        "starts",
        examples=["60s"],
    )
    metric: DuetMetric | None = Field(
        default=None,
        description="the metric of verdicts: CPU time per request, throughput, or a percentile of the response time; "
        "default: cpu with `budget`, else throughput with zero think time and p99 otherwise, and cpu",
        examples=["cpu"],
    )
    same_answers: bool = Field(
        default=False, description="servers of a duet whose answers differ fail before the load", examples=[True]
    )
    quick: QuickSchema | None = Field(
        default=None,
        description="shorter times for `--quick`; every cell is kept",
        examples=[{"warmup": "1s", "for": "2s", "trials": 2}],
    )
    design: Design | None = Field(
        default=None,
        description="how servers are compared: by trials of each alone, or also by duets, in which the servers of a "
        "comparison are alive at once and loaded in turn, or at the same time on cores of their own; default: duet "
        "where servers are compared, else interleaved",
        examples=["interleaved", "parallel-duet"],
    )
    profile: Profiles = Field(
        default=[],
        description="what to profile in a further trial of each cell: CPU time, wall time, allocations or "
        "locks of its server, or CPU time of the load engine; a profile, or a list of them",
        examples=["cpu", ["cpu", "alloc"]],
    )
    why: bool = Field(
        default=False,
        description="after the duets, further starts with a profiler on each server, which say in which functions "
        "the servers' CPU time differs",
        examples=[True],
    )
    driver: Annotated[str, Field(pattern=OPTION_NAME)] | None = Field(
        default=None,
        description="a driver of an installed package that makes the load, by name; default: redline-engine",
        examples=["loop"],
    )
    monitors: list[Annotated[str, Field(pattern=OPTION_NAME)]] = Field(
        default=[],
        description="monitors of installed packages that watch every trial, by name",
        examples=[["queue"]],
    )
    builds: int = Field(
        default=1,
        ge=1,
        le=MOST_BUILDS,
        description="how often each server is built, in separate folders; rounds take these builds in turn",
        examples=[3],
    )
    rest: Annotated[Duration, Field(le=MOST_REST_NS)] | None = Field(
        default=None,
        description="how long nothing runs before each start but the first: sockets close, and processors cool down",
        examples=["5s"],
    )
    seed: int = Field(
        default=1, ge=0, le=HIGHEST_SEED, description="determines the order of trials and all arrivals", examples=[1]
    )
    timeout: Timeout = Field(
        default=5_000_000_000,
        description="how long one request may take; default: 5s",
        examples=["5s"],
        json_schema_extra={"default": "5s"},
    )
    engine: EngineSchema = Field(
        default=EngineSchema(),
        description="how the engine waits for its sockets",
        examples=[{"backend": "epoll"}],
    )
    hosts: HostsSchema | None = Field(
        default=None,
        description="the suite is for hosts of their own for server and load: `redline run --on`",
        examples=[{"load": 2}],
    )
    fit: bool = Field(default=False, description="cut users to the number that the hosts can hold; the report says why")
    threshold: Threshold = Field(
        default=0.02,
        description="the smallest relative difference that matters; default: 2%",
        examples=["2%"],
        json_schema_extra={"default": "2%"},
    )
    abort_when: AbortRules = Field(
        default=(),
        description="conditions that end a load early once they have held for a time: errors, or, except in duets, a "
        "percentile of the response time",
        examples=["errors > 5% for 3s", ["p99 > 1s for 10s"]],
        json_schema_extra=_no_default,
    )
    claims: list[ClaimSchema] = Field(
        default=[],
        description="what somebody published about these cells; the report says what agrees, and what differs",
        examples=[[{"claim": "twice as fast", "of": "A.Root.users64", "to": "B.Root.users64", "ratio": 2}]],
    )
    objective: ObjectiveSets = Field(
        default={},
        description="conditions that every cell has to meet, or the cells of a load or scenario whose name and a colon "
        "stand before them; or named sets: `redline limit` finds the rate for every set",
        examples=["p99 < 200ms, errors < 0.1%", "items: p95 < 50ms", {"good": "p99 < 200ms", "acceptable": "p99 < 1s"}],
        json_schema_extra=_no_default,
    )
