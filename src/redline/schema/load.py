"""Loads of a suite: closed or open, constant or in stages, and when they end."""

from abc import abstractmethod
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, ValidationInfo, field_validator, model_validator

from redline.errors import WrongValueError
from redline.model import Closed, Load, LoadStage, Open, Share, Think
from redline.model.load import Replay, check_sends_something
from redline.schema.types import (
    BY_FORM,
    MAPPING,
    PLAIN,
    AnyRate,
    Duration,
    LoadLength,
    Rate,
    RateOrShare,
    Schema,
    Speed,
    ThinkTime,
)

MOST_CONNECTIONS = 1_000_000
DEFAULT_CONNECTIONS = 64
MOST_DEPTH = 1_000
MOST_COUNT = 2**53 - 1

Depth = Annotated[int, Field(ge=1, le=MOST_DEPTH)]
PerConnection = Annotated[int, Field(ge=1)]


class UserStageSchema(Schema):
    """A linear change of the number of users."""

    to: int = Field(ge=0, le=MOST_CONNECTIONS, description="users at the end", examples=[1000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class RateStageSchema(Schema):
    """A linear change of the rate."""

    to: AnyRate = Field(description="the rate at the end", examples=[20000])
    over: Duration = Field(description="how long it takes; 0s for at once", examples=["10s"])


class ThinkSchema(Schema):
    """A random think time."""

    exponential: ThinkTime = Field(description="its mean", examples=["100ms"])


class ReplaySchema(Schema):
    """Recorded arrivals."""

    replay: str = Field(
        min_length=1, description="a file of due times, relative to the suite", examples=["arrivals.txt"]
    )
    speed: Speed = Field(default=1.0, description="how much faster than recorded, from 0.001 to 1000", examples=["2x"])


ThinkItem = Annotated[Annotated[ThinkTime, PLAIN] | Annotated[ThinkSchema, MAPPING], BY_FORM]


def think_of(written: int | ThinkSchema | None) -> Think | None:
    """The think time in the model."""
    if isinstance(written, ThinkSchema):
        return Think(distribution="exponential", mean_ns=written.exponential)
    return None if written is None else Think(mean_ns=written)


ArrivalsItem = Annotated[Annotated[Literal["poisson", "uniform"], PLAIN] | Annotated[ReplaySchema, MAPPING], BY_FORM]


class ShapeSchema(Schema):
    """The common keys of closed and open loads: a ramp or stages. The model checks the other rules."""

    ramp: Any
    stages: Any

    @field_validator("users", "rate", check_fields=False)
    @classmethod
    def _sends_something(cls, first: object, info: ValidationInfo) -> object:
        if isinstance(first, (int, float)) and {"ramp", "stages"} <= info.data.keys():
            steps = _model_stages(info.data["ramp"], info.data["stages"])
            check_sends_something(info.field_name or "", first, steps)
        return first

    @model_validator(mode="after")
    def _possible(self) -> Self:
        if self.ramp and self.stages:
            hint = "write the ramp as the first stage"
            raise WrongValueError("a load has a ramp or stages, not both", hint, field="stages")
        self.shape(Replay((0,)))  # the times are read later
        return self

    @property
    def steps(self) -> tuple[LoadStage, ...]:
        """The ramp or the stages."""
        return _model_stages(self.ramp, self.stages)

    @abstractmethod
    def shape(self, replay: Replay) -> Closed | Open:
        """The load's shape in the model, with what its replay file has, if any."""


def _model_stages(ramp: Any, stages: Any) -> tuple[LoadStage, ...]:
    return tuple(LoadStage(to=stage.to, over_ns=stage.over) for stage in ([ramp] if ramp else stages))


class ClosedSchema(ShapeSchema):
    """Users with a connection each: the next request follows the answer."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"properties": {"users": {"minimum": 1}}}, {"required": ["ramp"]}, {"required": ["stages"]}]
        }
    )

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

    def shape(self, replay: Replay) -> Closed:  # noqa: ARG002 - for open loads
        """The load's shape in the model."""
        return Closed(
            users=self.users,
            depth=self.depth,
            think=think_of(self.think),
            pace_per_s=self.pace,
            requests_per_connection=self.requests_per_connection,
            stages=self.steps,
        )


class OpenSchema(ShapeSchema):
    """Requests that fall due whatever the server does."""

    ramp: RateStageSchema | None = Field(
        default=None, description="the only stage", examples=[{"to": 20000, "over": "30s"}]
    )
    stages: list[RateStageSchema] = Field(
        default=[], description="how the rate changes during the measurement", examples=[[{"to": 20000, "over": "10s"}]]
    )
    rate: RateOrShare | None = Field(
        default=None,
        description="requests per second, or a share of a closed load's capacity; 0 before a ramp; absent for a replay",
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
        description=f"the most connections at once, 1 to {MOST_CONNECTIONS}; beyond them a due request waits",
        examples=[64],
    )
    connections_at_start: int | None = Field(
        default=None, ge=1, description="connections open at the start; all by default", examples=[8]
    )
    depth: Depth = Field(default=1, description="the most requests in flight on one connection", examples=[4])
    requests_per_connection: PerConnection | None = Field(
        default=None, description="replace a connection after this many requests", examples=[100]
    )

    @property
    def replayed(self) -> str | None:
        """The file of due times to replay."""
        return self.arrivals.replay if isinstance(self.arrivals, ReplaySchema) else None

    def shape(self, replay: Replay) -> Open:
        """The load's shape in the model, with what its replay file has."""
        recorded = replay if isinstance(self.arrivals, ReplaySchema) else Replay()
        speed = self.arrivals.speed if isinstance(self.arrivals, ReplaySchema) else 1.0
        return Open(
            rate_per_s=None if isinstance(self.rate, Share) else self.rate,
            arrivals="replayed" if isinstance(self.arrivals, ReplaySchema) else self.arrivals,
            connections=self.connections,
            replayed_ns=tuple(round(due_ns / speed) for due_ns in recorded.times_ns),
            replayed_requests=recorded.requests,
            speed=speed,
            connections_at_start=self.connections_at_start,
            depth=self.depth,
            requests_per_connection=self.requests_per_connection,
            stages=self.steps,
            share=self.rate if isinstance(self.rate, Share) else None,
        )


class LoadSchema(Schema):
    """A load: closed or open, and how long to measure."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["closed"]}, {"required": ["open"]}]})

    closed: ClosedSchema | None = Field(default=None, description="a closed loop", examples=[{"users": 64}])
    open: OpenSchema | None = Field(default=None, description="an open loop", examples=[{"rate": 5000}])
    duration: LoadLength | None = Field(
        default=None, alias="for", description="how long to measure; with `budget` it may be left out", examples=["1s"]
    )
    count: int | None = Field(
        default=None,
        ge=1,
        le=MOST_COUNT,
        description="stop once this many requests were due",
        examples=[100000],
    )

    @model_validator(mode="after")
    def _one_kind(self) -> "LoadSchema":
        if (self.closed is None) == (self.open is None):
            kind = "neither closed nor open" if self.closed is None else "both closed and open"
            raise WrongValueError(f"this load is {kind}", "write `closed: {users: 64}` or `open: {rate: 5000}`")
        stages_ns = sum(stage.over_ns for stage in self.written.steps)
        if self.duration is not None and stages_ns > self.duration:
            message = f"the stages take {stages_ns / 1e9:g}s, longer than the measurement"
            raise WrongValueError(message, f"measure for {stages_ns / 1e9:g}s or longer", field="for")
        return self

    @property
    def written(self) -> ClosedSchema | OpenSchema:
        """The closed or the open schema."""
        kind = self.closed or self.open
        assert kind, "validated"
        return kind

    def load(self, name: str, replay: Replay = Replay(), measure_ns: int = 1) -> Load:  # noqa: B008 - a tuple
        """The load in the model, measured for `measure_ns` if it has no `for`."""
        duration_ns = self.duration or measure_ns
        return Load(name=name, shape=self.written.shape(replay), duration_ns=duration_ns, count=self.count)
