"""Loads: closed or open, constant or in stages."""

from collections.abc import Iterable
from typing import Annotated, Literal, NamedTuple

from pydantic import Field, model_validator

from redline.errors import WrongValueError
from redline.model.base import Frozen, omitted_if_default
from redline.model.estimate import Metric

Backend = Literal["auto", "epoll", "io_uring"]


class EngineMode(Frozen):
    """How the engine waits for its sockets: `auto` prefers io_uring to epoll; with `spin`, workers poll."""

    backend: Backend = omitted_if_default("auto")
    spin: bool = omitted_if_default(default=False)


class Think(Frozen):
    """The time from an answer to the user's next request: always `mean_ns`, or exponential with that mean."""

    distribution: Literal["fixed", "exponential"] = "fixed"
    mean_ns: int = Field(gt=0)


class LoadStage(Frozen):
    """A linear change of the users, or of the rate per second, from their value before the stage to `to`."""

    to: float = Field(ge=0)
    over_ns: int = Field(ge=0)


def check_sends_something(field: str, first: float, stages: Iterable[LoadStage]) -> None:
    """Raise WrongValueError for `users` or a `rate` of 0 without a stage to a higher value."""
    if first > 0 or any(stage.to > 0 for stage in stages):
        return
    if field == "users":
        raise WrongValueError("a load without users sends nothing", "give at least 1, or a stage to more", field=field)
    hint = "give a rate above 0, such as 5000/s, or a stage to a rate"
    raise WrongValueError("a rate of 0 sends nothing", hint, field=field)


class Closed(Frozen):
    """Users with a connection each, and `depth` requests in flight on it.

    They send the next request after an answer: at once, after a think time, or at their own pace. `stages` change
    their number from the beginning of the measurement on.
    """

    kind: Literal["closed"] = "closed"
    users: int = Field(ge=0)
    depth: int = omitted_if_default(1, "requests in flight of each user", ge=1)
    think: Think | None = omitted_if_default(None)
    pace_per_s: float | None = omitted_if_default(None, "requests per second of each user", gt=0)
    requests_per_connection: int | None = omitted_if_default(None, ge=1)
    stages: tuple[LoadStage, ...] = omitted_if_default(())
    ramps_up: bool = omitted_if_default(default=False, description="they join evenly over the warm-up")

    @model_validator(mode="after")
    def _possible(self) -> "Closed":
        if self.think is not None and self.pace_per_s is not None:
            hint = "leave out the think time or the pace"
            raise WrongValueError("users have a think time or a pace, not both", hint, field="pace")
        if self.pace_per_s is not None and self.depth > 1:
            hint = "leave out the depth or the pace"
            raise WrongValueError("users with a pace have one request in flight", hint, field="depth")
        check_sends_something("users", self.users, self.stages)
        return self

    def with_users(self, users: int) -> "Closed":
        """The same load shape with another number of users before its stages."""
        return self.model_copy(update={"users": users})

    def at_most(self, users: int) -> "Closed":
        """The same load shape with at most this many users, in its stages too."""
        stages = tuple(LoadStage(to=min(stage.to, users), over_ns=stage.over_ns) for stage in self.stages)
        return self.model_copy(update={"users": min(self.users, users), "stages": stages})

    @property
    def most_users(self) -> int:
        """The largest number of users."""
        return int(max(self.users, *(stage.to for stage in self.stages))) if self.stages else self.users

    def mean_users(self, over_ns: int) -> float:
        """The mean number of users over this time, from the beginning of the measurement."""
        return _mean(self.users, self.stages, over_ns)


class Share(Frozen):
    """A rate as a share of a capacity: the lowest throughput in a cell's group under the load `of`."""

    share: float = Field(gt=0, description="0.8 is 80%; above 1 is overload")
    of: str = Field(description="a closed load of the same suite")

    @property
    def text(self) -> str:
        """`50% of saturate`."""
        return f"{self.share * 100:.10g}% of {self.of}"


class Replay(NamedTuple):
    """Recorded arrivals: due times in nanoseconds, and the scenario's request at each, if recorded; counted from 0."""

    times_ns: tuple[int, ...] = ()
    requests: tuple[int, ...] = ()


class SentStretch(Frozen):
    """The beginning of a recording, which all probes of a search send: requests, and the time that they took."""

    requests: int = Field(ge=1)
    recorded_ns: int = Field(gt=0, description="at the speed of the recording")
    peak: float = Field(ge=0, description="requests in the busiest tenth of this time, over those of a mean tenth")

    @property
    def per_s(self) -> float:
        """Its requests per second as it was recorded."""
        return self.requests / self.recorded_ns * 1e9


class Open(Frozen):
    """Requests fall due whatever the server does, over at most `connections` connections.

    They fall due at `rate_per_s`, which `stages` may change, or at `replayed_ns`, from the start of the measurement.
    A rate that is a `share` of a capacity is None until the capacity has been measured.
    """

    kind: Literal["open"] = "open"
    rate_per_s: float | None = Field(default=None, ge=0)
    arrivals: Literal["uniform", "poisson", "replayed"] = "poisson"
    connections: int = Field(ge=1)
    replayed_ns: tuple[int, ...] = omitted_if_default((), "due times, not decreasing")
    replayed_requests: tuple[int, ...] = omitted_if_default(
        (), "the scenario's request at each of these times, counted from 0; default: drawn by weight"
    )
    speed: float = omitted_if_default(1.0, "how much faster than recorded these times are", gt=0)
    stretch: SentStretch | None = omitted_if_default(
        None, "the beginning of a recording that a probe of a search sends; its times may be left out"
    )
    connections_at_start: int | None = omitted_if_default(None, "default: all of them", ge=1)
    depth: int = omitted_if_default(1, "maximum number of requests in flight on one connection", ge=1)
    requests_per_connection: int | None = omitted_if_default(None, ge=1)
    stages: tuple[LoadStage, ...] = omitted_if_default(())
    share: Share | None = omitted_if_default(None, "the origin of the rate, if it is a share of a capacity")

    @model_validator(mode="after")
    def _possible(self) -> "Open":
        if self.connections_at_start is not None and self.connections_at_start > self.connections:
            message = f"must be at most the number of connections, {self.connections}"
            raise WrongValueError(message, "give fewer, or leave it out", field="connections_at_start")
        if self.arrivals == "replayed":
            self._check_replayed()
        elif self.share is not None:
            if self.stages:
                hint = "leave out its stages, or write the rate as a number"
                raise WrongValueError("a share of a capacity is a constant rate", hint, field="rate")
        elif self.rate_per_s is None:
            raise WrongValueError("`rate` is missing", "add it, such as `rate: 5000`")
        else:
            check_sends_something("rate", self.rate_per_s, self.stages)
        return self

    def _check_replayed(self) -> None:
        if self.rate_per_s is not None or self.share is not None or self.stages:
            field = "stages" if self.stages and self.rate_per_s is None and self.share is None else "rate"
            hint = "leave out the rate and its stages"
            raise WrongValueError("replayed arrivals have times, not a rate", hint, field=field)
        if not self.replayed_ns and self.stretch is None:
            raise WrongValueError("there are no times to replay", "give at least one")
        if any(later < earlier for earlier, later in zip(self.replayed_ns, self.replayed_ns[1:], strict=False)):
            raise WrongValueError("the times to replay decrease", "sort them")
        if self.replayed_ns and self.replayed_requests and len(self.replayed_requests) != len(self.replayed_ns):
            hint = "give the number of a request for every time, or for none"
            raise WrongValueError("not all times to replay have a request", hint)

    def staged(self, rate_per_s: float, stages: tuple[LoadStage, ...]) -> "Open":
        """The same arrivals and connections at another rate, which these stages change."""
        return self.model_copy(update={"rate_per_s": rate_per_s, "stages": stages})

    def sharing(self, share: Share) -> "Open":
        """The same arrivals and connections at a rate that is another share of a capacity."""
        return self.model_copy(update={"share": share})

    def cut(self, stretch: SentStretch) -> "Open":
        """The beginning of the same recording."""
        first = {
            "replayed_ns": self.replayed_ns[: stretch.requests],
            "replayed_requests": self.replayed_requests[: stretch.requests],
            "stretch": stretch,
        }
        return self.model_copy(update=first)

    @property
    def without_times(self) -> "Open":
        """The same without the times of its stretch, which may be many."""
        return self.model_copy(update={"replayed_ns": (), "replayed_requests": ()})

    def sped(self, speed: float) -> "Open":
        """The same recording, sent so many times as fast as it was recorded."""
        slower = self.speed / speed
        times = tuple(round(due_ns * slower) for due_ns in self.replayed_ns)
        return self.model_copy(update={"replayed_ns": times, "speed": speed})

    @property
    def is_replay(self) -> bool:
        """Whether requests fall due at recorded times."""
        return self.arrivals == "replayed"

    @property
    def mean_per_s(self) -> float | None:
        """The rate, and of a stretch of a recording its mean; None where neither is known."""
        return self.rate_per_s if self.stretch is None else self.stretch.per_s * self.speed

    @property
    def most_per_s(self) -> float:
        """The maximum rate; 0 if arrivals are replayed."""
        return max(self.rate_per_s or 0.0, *(stage.to for stage in self.stages), 0.0)


def _after(due_ns: int) -> int:
    """The first whole millisecond after a request is due."""
    return (due_ns // 1_000_000 + 1) * 1_000_000


class Load(Frozen):
    """A named load and its measurement: for `duration_ns`, or until `count` requests have fallen due."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]*$")
    shape: Annotated[Closed | Open, Field(discriminator="kind")]
    duration_ns: int = Field(gt=0)
    count: int | None = omitted_if_default(None, ge=1)
    pauses: bool = omitted_if_default(default=False, description="its users think between the steps of a journey")

    def lasting(self, duration_ns: int) -> "Load":
        """The same load, measured for another time."""
        return self.model_copy(update={"duration_ns": duration_ns})

    def within_recording(self, least_ns: int = 0) -> "Load":
        """The same load, which ends with its recording: after the last request, nothing is due any more."""
        times = self.shape.replayed_ns if isinstance(self.shape, Open) else ()
        return self.lasting(min(self.duration_ns, max(_after(times[-1]), least_ns))) if times else self

    def pausing(self) -> "Load":
        """The same load, of users who think between the steps of a journey."""
        return self.model_copy(update={"pauses": True})

    def closing(self) -> "Load":
        """The same load with a connection for each request."""
        return self.shaped(self.shape.model_copy(update={"requests_per_connection": 1}))

    def named(self, name: str) -> "Load":
        """The same load under another name."""
        return self.model_copy(update={"name": name})

    def shaped(self, shape: Closed | Open) -> "Load":
        """A load of another shape under the same name."""
        return self.model_copy(update={"shape": shape})

    def of_users(self, users: int, *, ramps_up: bool = False) -> "Load":
        """The same closed load of another number of users, who may join evenly over the warm-up."""
        return self.shaped(self.shape.model_copy(update={"users": users, "ramps_up": ramps_up}))

    def at_rate(self, rate_per_s: float) -> "Load":
        """The same open load at another rate."""
        return self.shaped(self.open_shape.model_copy(update={"rate_per_s": rate_per_s}))

    @property
    def open_shape(self) -> Open:
        """The shape of an open load. Raises TypeError for a closed load."""
        if not isinstance(self.shape, Open):
            raise TypeError(f"{self.name} is a closed load")
        return self.shape

    @property
    def by_users(self) -> bool:
        """Whether it is of users, whose number a search varies in place of a rate."""
        return isinstance(self.shape, Closed)

    @property
    def is_replay(self) -> bool:
        """Whether its requests fall due at recorded times."""
        return isinstance(self.shape, Open) and self.shape.is_replay

    @property
    def most_in_flight(self) -> int:
        """The largest number of requests that can be in flight at once."""
        return self.connections * self.shape.depth

    @property
    def connections(self) -> int:
        """The maximum number of connections."""
        return self.shape.most_users if isinstance(self.shape, Closed) else self.shape.connections

    @property
    def share(self) -> Share | None:
        """The share that sets its rate; None where the rate is a number."""
        return self.shape.share if isinstance(self.shape, Open) else None

    @property
    def is_scheduled(self) -> bool:
        """Whether requests fall due whatever the server does: at a rate, or at the pace of users."""
        return isinstance(self.shape, Open) or self.shape.pace_per_s is not None

    @property
    def saturates(self) -> bool:
        """Whether its users have neither think time nor pace, so that server and client limit the rate."""
        shape = self.shape
        return isinstance(shape, Closed) and shape.think is None and shape.pace_per_s is None and not self.pauses

    def unloaded_ns(self, measured_ns: float) -> int:
        """How long a server is watched without load after it: a tenth of its time, 0.25 to 2 s, if it leaves it idle.

        Monitors read CPU times ten times a second.
        """
        return 0 if self.saturates else round(min(max(measured_ns / 10, 250_000_000), 2_000_000_000))

    @property
    def fits_duet(self) -> bool:
        """Whether it can be split into slices: stages would differ between slices; all servers get the same replay."""
        return not self.shape.stages and self.count is None

    @property
    def goes_on_alike(self) -> bool:
        """Whether its end is like its beginning, so that it may last longer."""
        return not self.changes and self.count is None

    def ran_out_within(self, measured_ns: int) -> bool:
        """Whether a measurement of this length ended because the last request of the count, or the replay, was due."""
        if self.count is not None and measured_ns < self.duration_ns:
            return True
        times = self.shape.replayed_ns if isinstance(self.shape, Open) and self.shape.stretch is None else ()
        return bool(times) and _after(times[-1]) == measured_ns

    @property
    def primary_metric(self) -> Metric:
        """The metric that a better server improves: p99 where a schedule or waiting users set the rate."""
        return Metric.THROUGHPUT if self.saturates else Metric.P99

    @property
    def primary_metrics(self) -> tuple[Metric, Metric]:
        """Metrics with verdicts: the primary metric, and CPU per request."""
        return self.primary_metric, Metric.CPU_PER_REQUEST

    @property
    def changes(self) -> bool:
        """Whether the load changes during the measurement by design."""
        return bool(self.shape.stages) or (isinstance(self.shape, Open) and self.shape.is_replay)


def _mean(first: float, stages: tuple[LoadStage, ...], over_ns: int) -> float:
    """The mean of a value that begins at `first`, follows the stages, and then stays."""
    level, at_ns, area = first, 0, 0.0
    for stage in stages:
        taken_ns = min(stage.over_ns, over_ns - at_ns)
        reached = level + (stage.to - level) * taken_ns / stage.over_ns if stage.over_ns else stage.to
        area += (level + reached) / 2 * taken_ns
        level, at_ns = reached, at_ns + taken_ns
        if at_ns >= over_ns:
            break
    return (area + level * (over_ns - at_ns)) / over_ns if over_ns > 0 else level
