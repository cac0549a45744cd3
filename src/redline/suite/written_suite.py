"""The suite file as it is written. Defaults, forms and help texts stand here; its JSON Schema is made from this."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, GetJsonSchemaHandler, Tag, model_validator
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from redline.model import Closed, Load, Open
from redline.suite.forms import Choices, Duration, LoadLength, Objectives, Rate, Threshold, Timeout, Written
from redline.suite.units import WrongValueError
from redline.suite.written_scenario import WrittenScenario

NAME = r"^[A-Za-z][A-Za-z0-9_-]*$"
MOST_CONNECTIONS = 65_535  # the ports of one client address to one server address
MOST_TRIALS = 1_000
HIGHEST_SEED = 2**53 - 1  # the largest whole number that every JSON reader keeps exact
DEFAULT_CONNECTIONS = 64


class WrittenServer(Written):
    """A server of the catalogue by name, or with its options; a list of values is an axis."""

    use: str = Field(description="a server of the catalogue, as family.name", examples=["rust.hyper"])
    options: dict[str, Choices] = Field(
        default={},
        alias="with",
        description="options by name; a list of values is an axis",
        examples=[{"routes": [1, 128]}],
    )

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"use": value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string", "examples": ["rust.hyper"]}, handler.resolve_ref_schema(handler(schema))]}


class WrittenOwnScenario(WrittenScenario):
    """A scenario that stands in the suite itself."""

    name: str = Field(pattern=NAME, description="a letter, then letters, digits, - and _", examples=["Mine"])


def _scenario_kind(value: Any) -> str:
    return "<name>" if isinstance(value, str) else "<own>"


ScenarioItem = Annotated[
    Annotated[str, Tag("<name>")] | Annotated[WrittenOwnScenario, Tag("<own>")], Discriminator(_scenario_kind)
]


class WrittenClosed(Written):
    """Users who ask again as soon as they are answered, each on a connection of its own."""

    users: int = Field(ge=1, le=MOST_CONNECTIONS, description=f"1 to {MOST_CONNECTIONS}", examples=[64])


class WrittenOpen(Written):
    """Requests that fall due at a rate, whatever the server does."""

    rate: Rate = Field(description="requests per second", examples=[5000])
    arrivals: Literal["poisson", "uniform"] = Field(
        default="poisson", description="poisson (independent, as from many users) or uniform (evenly spaced)"
    )
    connections: int = Field(
        default=DEFAULT_CONNECTIONS,
        ge=1,
        le=MOST_CONNECTIONS,
        description=f"the most connections at once, 1 to {MOST_CONNECTIONS}; past it a due request waits",
        examples=[64],
    )


class WrittenLoad(Written):
    """A load: closed or open, and how long it is measured."""

    closed: WrittenClosed | None = Field(default=None, description="a closed loop", examples=[{"users": 64}])
    open: WrittenOpen | None = Field(default=None, description="an open loop", examples=[{"rate": 5000}])
    duration: LoadLength = Field(alias="for", description="how long is measured", examples=["1s"])

    @model_validator(mode="after")
    def _one_kind(self) -> "WrittenLoad":
        if (self.closed is None) == (self.open is None):
            told = "is neither closed nor open" if self.closed is None else "is closed and open at once"
            raise WrongValueError(f"this load {told}", "write `closed: {users: 64}` or `open: {rate: 5000}`")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        return json_schema | {"oneOf": [{"required": ["closed"]}, {"required": ["open"]}]}

    def load(self, name: str) -> Load:
        """The model's word for it."""
        if self.closed is not None:
            return Load(name=name, shape=Closed(users=self.closed.users), duration_ns=self.duration)
        assert self.open is not None, "the validator saw to it"
        shape = Open(rate_per_s=self.open.rate, arrivals=self.open.arrivals, connections=self.open.connections)
        return Load(name=name, shape=shape, duration_ns=self.duration)


def _no_default(schema: JsonDict) -> None:
    """Nothing at all is not a form in which an objective can be written."""
    schema.pop("default", None)


class SuiteFile(Written):
    """A Redline suite: which servers are measured, under which loads, with which requests."""

    about: str = Field(default="", description="one line for the reports")
    servers: list[WrittenServer] = Field(
        min_length=1, description="servers of the catalogue, by name or with options", examples=[["rust.hyper"]]
    )
    baseline: str | None = Field(
        default=None, description="the server that the others are compared with", examples=["rust.hyper"]
    )
    ceiling: WrittenServer | None = Field(
        default=None,
        description="a server that does nothing, to show what this machine allows",
        examples=["oracle.null"],
    )
    scenarios: list[ScenarioItem] = Field(
        min_length=1, description="scenarios by name from the catalogue, or written in place", examples=[["SimpleGet"]]
    )
    loads: dict[Annotated[str, Field(pattern=NAME)], WrittenLoad] = Field(
        min_length=1,
        description="loads by name: a letter, then letters, digits, - and _",
        examples=[{"saturate": {"closed": {"users": 64}, "for": "1s"}}],
    )
    warmup: Duration = Field(
        default=1_000_000_000,
        description="loaded but not measured, before each measurement; 1s when not said",
        examples=["250ms"],
        json_schema_extra={"default": "1s"},
    )
    trials: int = Field(
        default=5,
        ge=1,
        le=MOST_TRIALS,
        description="how often each cell is measured, each time on a fresh server",
        examples=[5],
    )
    seed: int = Field(
        default=1, ge=0, le=HIGHEST_SEED, description="fixes the order of trials and all arrivals", examples=[1]
    )
    timeout: Timeout = Field(
        default=5_000_000_000,
        description="how long one request may take; 5s when not said",
        examples=["5s"],
        json_schema_extra={"default": "5s"},
    )
    threshold: Threshold = Field(
        default=0.02,
        description="the smallest relative difference worth acting on; 2% when not said",
        examples=["2%"],
        json_schema_extra={"default": "2%"},
    )
    objective: Objectives = Field(
        default=(),
        description="what every cell has to meet",
        examples=["p99 < 200ms, errors < 0.1%"],
        json_schema_extra=_no_default,
    )
