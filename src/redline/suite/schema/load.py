"""A load as it is written: closed or open, constant or in stages, and when it ends."""

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    GetJsonSchemaHandler,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from redline.model import Closed, Load, LoadStage, Open, Share, Think
from redline.suite.schema.types import AnyRate, Duration, LoadLength, Rate, RateOrShare, ThinkTime, Written
from redline.suite.schema.units import WrongValueError

MOST_CONNECTIONS = 1_000_000
DEFAULT_CONNECTIONS = 64
MOST_DEPTH = 1_000
MOST_COUNT = 2**53 - 1

Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH)]
PerConnection = Annotated[int, Field(ge=1)]


class WrittenUserStage(Written):
    """Users go to a number in a straight line."""

    to: int = Field(ge=0, le=MOST_CONNECTIONS, description="users in the end", examples=[1000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class WrittenRateStage(Written):
    """The rate goes to another in a straight line."""

    to: AnyRate = Field(description="the rate in the end", examples=[20000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class WrittenThink(Written):
    """A time to think that differs from one answer to the next."""

    exponential: ThinkTime = Field(description="its mean", examples=["100ms"])


class WrittenReplay(Written):
    """Arrivals that were recorded."""

    replay: str = Field(min_length=1, description="a file of due times, beside the suite", examples=["arrivals.txt"])


def _think_kind(value: Any) -> str:
    return "<exponential>" if isinstance(value, (dict, WrittenThink)) else "<fixed>"


def _arrivals_kind(value: Any) -> str:
    return "<replay>" if isinstance(value, (dict, WrittenReplay)) else "<random>"


ThinkItem = Annotated[
    Annotated[ThinkTime, Tag("<fixed>")] | Annotated[WrittenThink, Tag("<exponential>")], Discriminator(_think_kind)
]
ArrivalsItem = Annotated[
    Annotated[Literal["poisson", "uniform"], Tag("<random>")] | Annotated[WrittenReplay, Tag("<replay>")],
    Discriminator(_arrivals_kind),
]


def _one_way_to_change(ramp: object, stages: list[Any]) -> None:
    if ramp and stages:
        raise WrongValueError("a load has a `ramp` or `stages`: not both", "write the ramp as the first of the stages")


def _changes_from(first: float, told: dict[str, Any]) -> bool:
    """Whether something comes of it: it is more than 0, or a ramp or a stage leads away from 0."""
    if first > 0 or "ramp" not in told or "stages" not in told:  # of a wrong ramp its own problem is told
        return True
    return any(stage.to > 0 for stage in (told["ramp"], *told["stages"]) if stage)


class WrittenClosed(Written):
    """Users who ask again when they are answered, each on a connection of its own."""

    ramp: WrittenUserStage | None = Field(
        default=None, description="the only stage", examples=[{"to": 1000, "over": "30s"}]
    )
    stages: list[WrittenUserStage] = Field(
        default=[], description="how the users change while it is measured", examples=[[{"to": 1000, "over": "10s"}]]
    )
    users: int = Field(
        ge=0, le=MOST_CONNECTIONS, description=f"1 to {MOST_CONNECTIONS}; 0 before a ramp", examples=[64]
    )
    depth: Depth = Field(
        default=1, description="requests in flight of each user: pipelined, or streams of HTTP/2", examples=[16]
    )
    think: ThinkItem | None = Field(
        default=None, description="how long after an answer the next request is due", examples=["100ms"]
    )
    pace: Rate | None = Field(
        default=None, description="requests per second of each user, answered or not", examples=["2/s"]
    )
    requests_per_connection: PerConnection | None = Field(
        default=None, description="after so many requests a connection is replaced", examples=[100]
    )

    @field_validator("users")
    @classmethod
    def _some_users(cls, users: int, info: ValidationInfo) -> int:
        if not _changes_from(users, info.data):
            raise WrongValueError("a load without users asks for nothing", "write `users: 64`, or add a `ramp`")
        return users

    @model_validator(mode="after")
    def _possible(self) -> "WrittenClosed":
        _one_way_to_change(self.ramp, self.stages)
        if self.think is not None and self.pace is not None:
            raise WrongValueError("users think, or keep a pace: not both", "remove `think` or `pace`")
        if self.pace is not None and self.depth > 1:
            raise WrongValueError("users who keep a pace have one request in flight", "remove `depth` or `pace`")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        some = {"properties": {"users": {"minimum": 1}}}
        return json_schema | {"anyOf": [some, {"required": ["ramp"]}, {"required": ["stages"]}]}

    @property
    def steps(self) -> list[WrittenUserStage]:
        """The stages, however they were written."""
        return [self.ramp] if self.ramp else self.stages

    def shape(self) -> Closed:
        """The model's word for it."""
        think = self.think
        return Closed(
            users=self.users,
            depth=self.depth,
            think=Think(distribution="exponential", mean_ns=think.exponential)
            if isinstance(think, WrittenThink)
            else think and Think(mean_ns=think),
            pace_per_s=self.pace,
            requests_per_connection=self.requests_per_connection,
            stages=tuple(LoadStage(to=stage.to, over_ns=stage.over) for stage in self.steps),
        )


class WrittenOpen(Written):
    """Requests that fall due whatever the server does."""

    ramp: WrittenRateStage | None = Field(
        default=None, description="the only stage", examples=[{"to": 20000, "over": "30s"}]
    )
    stages: list[WrittenRateStage] = Field(
        default=[], description="how the rate changes while it is measured", examples=[[{"to": 20000, "over": "10s"}]]
    )
    rate: RateOrShare | None = Field(
        default=None,
        description="requests per second, or a share of what a closed load shows; 0 before a ramp; none when replayed",
        examples=[5000, "50% of saturate"],
    )
    arrivals: ArrivalsItem = Field(
        default="poisson",
        description="poisson (independent, as from many users), uniform (evenly spaced), or {replay: FILE}",
    )
    connections: int = Field(
        default=DEFAULT_CONNECTIONS,
        ge=1,
        le=MOST_CONNECTIONS,
        description=f"the most connections at once, 1 to {MOST_CONNECTIONS}; past it a due request waits",
        examples=[64],
    )
    connections_at_start: int | None = Field(
        default=None, ge=1, description="connections that are open at the start; all when not said", examples=[8]
    )
    depth: Depth = Field(default=1, description="the most requests in flight on one connection", examples=[4])
    requests_per_connection: PerConnection | None = Field(
        default=None, description="after so many requests a connection is replaced", examples=[100]
    )

    @field_validator("rate")
    @classmethod
    def _some_rate(cls, rate: float | Share | None, info: ValidationInfo) -> float | Share | None:
        if isinstance(rate, float) and not _changes_from(rate, info.data):
            raise WrongValueError(
                "a rate of 0 asks for nothing", "give a rate above 0, such as 5000/s, or add a `ramp`"
            )
        return rate

    @model_validator(mode="after")
    def _possible(self) -> "WrittenOpen":
        _one_way_to_change(self.ramp, self.stages)
        if self.connections_at_start is not None and self.connections_at_start > self.connections:
            raise WrongValueError("`connections_at_start` is more than `connections`", "write less, or leave it out")
        if isinstance(self.arrivals, WrittenReplay):
            if self.rate is not None or self.steps:
                raise WrongValueError("replayed arrivals have times, and no rate", "remove `rate` and what changes it")
        elif self.rate is None:
            raise WrongValueError("`rate` is missing", "add it, such as `rate: 5000`")
        elif isinstance(self.rate, Share) and self.steps:
            raise WrongValueError(
                "a share of a capacity is a constant rate", "remove what changes it, or write the rate as a number"
            )
        return self

    @property
    def steps(self) -> list[WrittenRateStage]:
        """The stages, however they were written."""
        return [self.ramp] if self.ramp else self.stages

    @property
    def replayed(self) -> str | None:
        """The file that arrivals are replayed from."""
        return self.arrivals.replay if isinstance(self.arrivals, WrittenReplay) else None

    def shape(self, replayed_ns: tuple[int, ...]) -> Open:
        """The model's word for it; the times are those of its replay file."""
        return Open(
            rate_per_s=None if isinstance(self.rate, Share) else self.rate,
            arrivals="replayed" if isinstance(self.arrivals, WrittenReplay) else self.arrivals,
            connections=self.connections,
            replayed_ns=replayed_ns,
            connections_at_start=self.connections_at_start,
            depth=self.depth,
            requests_per_connection=self.requests_per_connection,
            stages=tuple(LoadStage(to=stage.to, over_ns=stage.over) for stage in self.steps),
            share=self.rate if isinstance(self.rate, Share) else None,
        )


class WrittenLoad(Written):
    """A load: closed or open, and how long it is measured."""

    closed: WrittenClosed | None = Field(default=None, description="a closed loop", examples=[{"users": 64}])
    open: WrittenOpen | None = Field(default=None, description="an open loop", examples=[{"rate": 5000}])
    duration: LoadLength = Field(alias="for", description="how long is measured", examples=["1s"])
    count: int | None = Field(
        default=None,
        ge=1,
        le=MOST_COUNT,
        description="ends it when so many requests have fallen due",
        examples=[100000],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "WrittenLoad":
        if (self.closed is None) == (self.open is None):
            told = "is neither closed nor open" if self.closed is None else "is closed and open at once"
            raise WrongValueError(f"this load {told}", "write `closed: {users: 64}` or `open: {rate: 5000}`")
        steps = self.closed.steps if self.closed else self.open.steps if self.open else []
        if sum(stage.over for stage in steps) > self.duration:
            raise WrongValueError("its stages take longer than it is measured", "write a longer `for`")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        return json_schema | {"oneOf": [{"required": ["closed"]}, {"required": ["open"]}]}

    def load(self, name: str, replayed_ns: tuple[int, ...] = ()) -> Load:
        """The model's word for it."""
        assert self.closed or self.open, "the validator saw to it"
        shape = self.closed.shape() if self.closed else self.open.shape(replayed_ns) if self.open else None
        return Load.model_validate({"name": name, "shape": shape, "duration_ns": self.duration, "count": self.count})
