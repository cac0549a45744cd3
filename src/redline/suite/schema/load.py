"""Loads of a suite: closed or open, constant or in stages, and when they end."""

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
from redline.suite.schema.types import AnyRate, Duration, LoadLength, Rate, RateOrShare, Schema, ThinkTime
from redline.suite.schema.units import WrongValueError

MOST_CONNECTIONS = 1_000_000
DEFAULT_CONNECTIONS = 64
MOST_DEPTH = 1_000
MOST_COUNT = 2**53 - 1

Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH)]
PerConnection = Annotated[int, Field(ge=1)]


class UserStageSchema(Schema):
    """The number of users changes linearly."""

    to: int = Field(ge=0, le=MOST_CONNECTIONS, description="users at the end", examples=[1000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class RateStageSchema(Schema):
    """The rate changes linearly."""

    to: AnyRate = Field(description="the rate at the end", examples=[20000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class ThinkSchema(Schema):
    """A random think time."""

    exponential: ThinkTime = Field(description="its mean", examples=["100ms"])


class ReplaySchema(Schema):
    """Arrivals that were recorded."""

    replay: str = Field(
        min_length=1, description="a file of due times, relative to the suite", examples=["arrivals.txt"]
    )


def _think_kind(value: Any) -> str:
    return "<exponential>" if isinstance(value, (dict, ThinkSchema)) else "<fixed>"


def _arrivals_kind(value: Any) -> str:
    return "<replay>" if isinstance(value, (dict, ReplaySchema)) else "<random>"


ThinkItem = Annotated[
    Annotated[ThinkTime, Tag("<fixed>")] | Annotated[ThinkSchema, Tag("<exponential>")], Discriminator(_think_kind)
]
ArrivalsItem = Annotated[
    Annotated[Literal["poisson", "uniform"], Tag("<random>")] | Annotated[ReplaySchema, Tag("<replay>")],
    Discriminator(_arrivals_kind),
]


def _one_way_to_change(ramp: object, stages: list[Any]) -> None:
    if ramp and stages:
        hint = "write the ramp as the first of the stages"
        raise WrongValueError("a load has a ramp or stages, not both", hint, field="stages")


def _sends_something(first: float, validated: dict[str, Any]) -> bool:
    """Whether the load starts above 0, or a ramp or a stage leads away from 0."""
    if first > 0 or "ramp" not in validated or "stages" not in validated:  # a wrong ramp is a problem of its own
        return True
    return any(stage.to > 0 for stage in (validated["ramp"], *validated["stages"]) if stage)


class ClosedSchema(Schema):
    """Users, each with a connection: the next request follows the answer."""

    ramp: UserStageSchema | None = Field(
        default=None, description="the only stage", examples=[{"to": 1000, "over": "30s"}]
    )
    stages: list[UserStageSchema] = Field(
        default=[],
        description="how the number of users changes during the measurement",
        examples=[[{"to": 1000, "over": "10s"}]],
    )
    users: int = Field(
        ge=0, le=MOST_CONNECTIONS, description=f"1 to {MOST_CONNECTIONS}; 0 before a ramp", examples=[64]
    )
    depth: Depth = Field(
        default=1, description="requests in flight of each user: pipelined, or streams of HTTP/2", examples=[16]
    )
    think: ThinkItem | None = Field(
        default=None, description="think time: how long after an answer the next request is due", examples=["100ms"]
    )
    pace: Rate | None = Field(
        default=None, description="requests per second of each user, answered or not", examples=["2/s"]
    )
    requests_per_connection: PerConnection | None = Field(
        default=None, description="replace a connection after this many requests", examples=[100]
    )

    @field_validator("users")
    @classmethod
    def _some_users(cls, users: int, info: ValidationInfo) -> int:
        if not _sends_something(users, info.data):
            raise WrongValueError("a load without users sends nothing", "give at least 1, or a stage to more")
        return users

    @model_validator(mode="after")
    def _possible(self) -> "ClosedSchema":
        _one_way_to_change(self.ramp, self.stages)
        if self.think is not None and self.pace is not None:
            hint = "leave out the think time or the pace"
            raise WrongValueError("users have a think time or a pace, not both", hint, field="pace")
        if self.pace is not None and self.depth > 1:
            hint = "leave out the depth or the pace"
            raise WrongValueError("users with a pace have one request in flight", hint, field="depth")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        some = {"properties": {"users": {"minimum": 1}}}
        return json_schema | {"anyOf": [some, {"required": ["ramp"]}, {"required": ["stages"]}]}

    @property
    def steps(self) -> list[UserStageSchema]:
        """The ramp or the stages."""
        return [self.ramp] if self.ramp else self.stages

    def shape(self) -> Closed:
        """The load's shape in the model."""
        think = self.think
        return Closed(
            users=self.users,
            depth=self.depth,
            think=Think(distribution="exponential", mean_ns=think.exponential)
            if isinstance(think, ThinkSchema)
            else think and Think(mean_ns=think),
            pace_per_s=self.pace,
            requests_per_connection=self.requests_per_connection,
            stages=tuple(LoadStage(to=stage.to, over_ns=stage.over) for stage in self.steps),
        )


class OpenSchema(Schema):
    """Requests that are due whatever the server does."""

    ramp: RateStageSchema | None = Field(
        default=None, description="the only stage", examples=[{"to": 20000, "over": "30s"}]
    )
    stages: list[RateStageSchema] = Field(
        default=[], description="how the rate changes during the measurement", examples=[[{"to": 20000, "over": "10s"}]]
    )
    rate: RateOrShare | None = Field(
        default=None,
        description="requests per second, or a share of a closed load's capacity; 0 before a ramp; none when replayed",
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
        description=f"the most connections at once, 1 to {MOST_CONNECTIONS}; beyond it a due request waits",
        examples=[64],
    )
    connections_at_start: int | None = Field(
        default=None, ge=1, description="connections open at the start; all by default", examples=[8]
    )
    depth: Depth = Field(default=1, description="the most requests in flight on one connection", examples=[4])
    requests_per_connection: PerConnection | None = Field(
        default=None, description="replace a connection after this many requests", examples=[100]
    )

    @field_validator("rate")
    @classmethod
    def _some_rate(cls, rate: float | Share | None, info: ValidationInfo) -> float | Share | None:
        if isinstance(rate, float) and not _sends_something(rate, info.data):
            hint = "give a rate above 0, such as 5000/s, or a stage to one"
            raise WrongValueError("a rate of 0 sends nothing", hint)
        return rate

    @model_validator(mode="after")
    def _possible(self) -> "OpenSchema":
        _one_way_to_change(self.ramp, self.stages)
        if self.connections_at_start is not None and self.connections_at_start > self.connections:
            message = f"must be at most the number of connections, {self.connections}"
            raise WrongValueError(message, "give fewer, or leave it out", field="connections_at_start")
        if isinstance(self.arrivals, ReplaySchema):
            if self.rate is not None or self.steps:
                field = "stages" if self.rate is None else "rate"
                hint = "leave out the rate and its stages"
                raise WrongValueError("replayed arrivals have times, and no rate", hint, field=field)
        elif self.rate is None:
            raise WrongValueError("`rate` is missing", "add it, such as `rate: 5000`")
        elif isinstance(self.rate, Share) and self.steps:
            hint = "leave out what changes it, or write the rate as a number"
            raise WrongValueError("a share of a capacity is a constant rate", hint, field="rate")
        return self

    @property
    def steps(self) -> list[RateStageSchema]:
        """The ramp or the stages."""
        return [self.ramp] if self.ramp else self.stages

    @property
    def replayed(self) -> str | None:
        """The file of due times to replay."""
        return self.arrivals.replay if isinstance(self.arrivals, ReplaySchema) else None

    def shape(self, replayed_ns: tuple[int, ...]) -> Open:
        """The load's shape in the model, with the due times of its replay file."""
        return Open(
            rate_per_s=None if isinstance(self.rate, Share) else self.rate,
            arrivals="replayed" if isinstance(self.arrivals, ReplaySchema) else self.arrivals,
            connections=self.connections,
            replayed_ns=replayed_ns,
            connections_at_start=self.connections_at_start,
            depth=self.depth,
            requests_per_connection=self.requests_per_connection,
            stages=tuple(LoadStage(to=stage.to, over_ns=stage.over) for stage in self.steps),
            share=self.rate if isinstance(self.rate, Share) else None,
        )


class LoadSchema(Schema):
    """A load: closed or open, and how long to measure."""

    closed: ClosedSchema | None = Field(default=None, description="a closed loop", examples=[{"users": 64}])
    open: OpenSchema | None = Field(default=None, description="an open loop", examples=[{"rate": 5000}])
    duration: LoadLength = Field(alias="for", description="how long to measure", examples=["1s"])
    count: int | None = Field(
        default=None,
        ge=1,
        le=MOST_COUNT,
        description="stop when this many requests were due",
        examples=[100000],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "LoadSchema":
        if (self.closed is None) == (self.open is None):
            kind = "neither closed nor open" if self.closed is None else "both closed and open"
            raise WrongValueError(f"this load is {kind}", "write `closed: {users: 64}` or `open: {rate: 5000}`")
        steps = self.closed.steps if self.closed else self.open.steps if self.open else []
        stages_ns = sum(stage.over for stage in steps)
        if stages_ns > self.duration:
            message = f"the stages take {stages_ns / 1e9:g}s, longer than the measurement"
            raise WrongValueError(message, f"measure for {stages_ns / 1e9:g}s or longer", field="for")
        return self

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        json_schema = handler.resolve_ref_schema(handler(schema))
        return json_schema | {"oneOf": [{"required": ["closed"]}, {"required": ["open"]}]}

    def load(self, name: str, replayed_ns: tuple[int, ...] = ()) -> Load:
        """The load in the model."""
        assert self.closed or self.open, "validated"
        shape = self.closed.shape() if self.closed else self.open.shape(replayed_ns) if self.open else None
        return Load.model_validate({"name": name, "shape": shape, "duration_ns": self.duration, "count": self.count})
