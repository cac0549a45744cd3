"""A duet: several servers alive at once, loaded in short slices in turn. See docs/reference/engine-protocol.md."""

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import Field, model_validator

from redline.model.base import Frozen, omitted_if_default
from redline.model.connections import REACH, AgreedTls, Reach
from redline.model.failures import FirstErrors, FirstFailure, with_labels
from redline.model.histogram import Histogram
from redline.model.hosts import HostFacts, host_of
from redline.model.journey_traffic import JourneyTraffic
from redline.model.kept import KEPT, KeptRequests
from redline.model.plan import PLACES
from redline.model.profile import ProfileFacts
from redline.model.recording import SETUP, CpuOwner, Failure, Series, ServerFacts
from redline.model.streams import STREAMS, StreamTraffic
from redline.model.traffic import (
    BY_REQUEST,
    ENCODED,
    FIRST_BYTE,
    UPGRADE,
    Counts,
    Ended,
    Engine,
    OneWay,
    Requests,
    nothing_is_lost_by_request,
)

DUET_FORMAT: Literal["redline.duet/1"] = "redline.duet/1"


class DuetSlice(Frozen):
    """One slice of one target. Times are in nanoseconds since the epoch; counts are of all workers."""

    target: int = Field(ge=0, description="0 is the first server of the start")
    start_ns: int
    end_ns: int = Field(description="when all requests were answered")
    measured_ns: int = Field(description="from the end of the guard until the engine noticed the end")
    measured: int = Field(description="right answers in that time")
    completed: int = Field(description="right answers in the entire slice")
    failed: int
    bytes_received: int | None = omitted_if_default(
        None, "in the whole slice, heads and bodies; null in old recordings"
    )
    cpu_ns: tuple[int | None, ...] = Field(
        description="by target, null for others that are loaded at the same time; empty if not read"
    )
    engine_cpu_ns: int
    steal_ns: int | None = None

    def taking(self, cpu: float, wall: float) -> "DuetSlice":
        """The slice as if its server had taken so many times the CPU time and the measured time."""
        cpu_ns = tuple(
            round(used * cpu) if target == self.target and used is not None else used
            for target, used in enumerate(self.cpu_ns)
        )
        return self.model_copy(update={"cpu_ns": cpu_ns, "measured_ns": round(self.measured_ns * wall)})


class DuetBlock(Frozen):
    """Two slices of each server, in the order in which they ran.

    The control of a server that was already running is the same server: the two have a slice each. Older recordings
    have two slices of either.
    """

    index: int
    phase: Literal["warmup", "measure"]
    slices: tuple[DuetSlice, ...]

    def with_slices(self, slices: Iterable[DuetSlice]) -> "DuetBlock":
        """The same block with other slices."""
        return self.model_copy(update={"slices": tuple(slices)})


class TargetTraffic(Frozen):
    """A target's traffic in all of its measured slices."""

    counts: Counts
    response: Histogram
    service: Histogram
    lateness: Histogram
    first_byte: Histogram | None = omitted_if_default(None, FIRST_BYTE)
    handshake: Histogram | None = omitted_if_default(None)
    upgrade: Histogram | None = omitted_if_default(None, UPGRADE)
    one_way: OneWay | None = omitted_if_default(None, "only if answers contain the server's clock")
    streams: StreamTraffic | None = omitted_if_default(None, STREAMS)
    encoded: tuple[str, ...] = omitted_if_default((), ENCODED)
    engine_cpu_ns: int
    paused_ns: int = omitted_if_default(0, "always 0: what was measured while the engine was paused is left out")
    failures: tuple[FirstFailure, ...] = omitted_if_default((), "the first of each outcome, from the warm-up on")
    first_errors: FirstErrors | None = omitted_if_default(None, "of `counts.with_errors`")
    requests: Requests = omitted_if_default((), BY_REQUEST)
    journeys: JourneyTraffic | None = omitted_if_default(None, "of a scenario that is a journey")
    reach: Reach | None = omitted_if_default(None, REACH)
    kept: KeptRequests | None = omitted_if_default(None, KEPT)

    @model_validator(mode="after")
    def _nothing_is_lost(self) -> "TargetTraffic":
        """Check that what was counted by request is all that was counted."""
        nothing_is_lost_by_request(self.counts, self.requests)
        return self


class DuetTraffic(Frozen):
    """The traffic of a duet."""

    engine: Engine
    connections: int
    connect_ns: int
    epoch_unix_ns: int
    tls: AgreedTls | None = omitted_if_default(None)
    ended: Ended
    aborted_by: str = omitted_if_default("", "if aborted: the condition, and what was measured of it")
    blocks: tuple[DuetBlock, ...]
    paused_blocks: int = omitted_if_default(0, "blocks left out because the engine was paused meanwhile")
    targets: tuple[TargetTraffic, ...]

    @model_validator(mode="after")
    def _of_its_targets(self) -> "DuetTraffic":
        """Check that every slice belongs to a target, and says of all targets what it says of any."""
        known = len(self.targets)
        for slice_ in (slice_ for block in self.blocks for slice_ in block.slices):
            if slice_.target >= known:
                raise ValueError(f"a slice of target {slice_.target}, and there are {known}")
            if len(slice_.cpu_ns) not in (0, known):
                raise ValueError(f"a slice has CPU times of {len(slice_.cpu_ns)} targets, and there are {known}")
        return self

    @property
    def window_unix_ns(self) -> tuple[int, int] | None:
        """Start and end of the measured slices in Unix time; None if no block was measured."""
        slices = [slice_ for block in self.blocks if block.phase == "measure" for slice_ in block.slices]
        if not slices:
            return None
        return self.epoch_unix_ns + slices[0].start_ns, self.epoch_unix_ns + max(slice_.end_ns for slice_ in slices)

    def with_encoded(self, encoded: Sequence[tuple[str, ...]]) -> "DuetTraffic":
        """The same traffic; `encoded` says by target how its answers came before the load."""
        targets = (
            target.model_copy(update={"encoded": said}) for target, said in zip(self.targets, encoded, strict=True)
        )
        return self.model_copy(update={"targets": tuple(targets)})

    def without_cpu(self, targets: frozenset[int]) -> "DuetTraffic":
        """The same traffic, without the CPU time of these targets."""

        def known(slice_: DuetSlice) -> DuetSlice:
            cpu_ns = tuple(None if target in targets else ns for target, ns in enumerate(slice_.cpu_ns))
            return slice_.model_copy(update={"cpu_ns": cpu_ns})

        blocks = (block.model_copy(update={"slices": tuple(map(known, block.slices))}) for block in self.blocks)
        return self.model_copy(update={"blocks": tuple(blocks)})

    def with_labels(self, labels: Sequence[str]) -> "DuetTraffic":
        """The same traffic; failures say by these labels which of several requests they were."""
        targets = (
            target.model_copy(update=with_labels(target.failures, target.first_errors, labels))
            for target in self.targets
        )
        return self.model_copy(update={"targets": tuple(targets)})

    def ended_failing(self) -> "DuetTraffic":
        """The same traffic, which the lab ended because every request to one of the servers failed."""
        return self.model_copy(update={"ended": "failing"})

    def ended_as_asked(self, why: str) -> "DuetTraffic":
        """The same traffic, which the lab ended because a condition of the user held."""
        return self.model_copy(update={"ended": "aborted", "aborted_by": why})


class DuetRecording(Frozen):
    """The raw facts of a start of all servers of a duet, without judgement.

    `cell_ids`, `servers` and the targets of `traffic` begin with the baseline; the last server is the control. The
    facts of a server are None if Redline did not start it.
    """

    format: Literal["redline.duet/1"] = DUET_FORMAT
    cell_ids: tuple[str, ...]
    round: int = Field(ge=0, description="the number of the start, from 0")
    position: int = Field(ge=0, description="in the order of the run")
    seed: int
    started_unix_ns: int
    took_ns: int = Field(
        default=0, ge=0, description="from the launch of the first server to the end of the last, without `setup_ns`"
    )
    setup_ns: int = omitted_if_default(0, SETUP, ge=0)
    launch_ns: int = omitted_if_default(
        0, "until all servers were ready, part of `took_ns`; 0 where they were ready already, or never", ge=0
    )
    places: tuple[int, ...] = omitted_if_default((), PLACES)
    after_mix: bool = omitted_if_default(default=False, description="a mix with its requests was warm in this start")
    servers: tuple[ServerFacts | None, ...] = ()
    owners: tuple[CpuOwner, ...] = omitted_if_default((), "whose CPU time was read; empty if all were started here")
    users: int | None = omitted_if_default(None, "as many as the servers take at once, if that is fewer than asked")
    traffic: DuetTraffic | None = None
    failure: Failure | None = None
    hosts: tuple[HostFacts, ...] = omitted_if_default((), "the hosts it ran on; empty if it was this machine")
    profiles: tuple[ProfileFacts, ...] = omitted_if_default((), "of each server, by target, if they were sampled")
    series: tuple[Series, ...] = omitted_if_default((), "of the machine and the engine, over the whole load")
    server_series: tuple[tuple[Series, ...], ...] = omitted_if_default(
        (), "of the processes of each server and of its proxies, by target; empty for one that was not started here"
    )

    def unusable(self, why: str) -> "DuetRecording":
        """The place of this start in its run, and why nothing else of it is used."""
        failure = Failure.of_unread(why)
        nothing = dict.fromkeys(("servers", "owners", "hosts", "profiles", "series", "server_series"), ())
        return self.model_copy(update={**nothing, "traffic": None, "failure": failure})

    def with_blocks(self, blocks: Iterable[DuetBlock]) -> "DuetRecording":
        """The same start with other blocks."""
        if self.traffic is None:
            return self
        return self.model_copy(update={"traffic": self.traffic.model_copy(update={"blocks": tuple(blocks)})})

    @property
    def is_complete(self) -> bool:
        """Whether it ended without a failure or an interrupt."""
        return self.failure is None and self.traffic is not None and self.traffic.ended == "complete"

    @property
    def aborted_by(self) -> str:
        """The condition of `abort_when` that ended it, and what was measured of it; empty if none did."""
        return self.traffic.aborted_by if self.traffic is not None else ""

    @property
    def is_interrupted(self) -> bool:
        """Whether an interrupt ended it, or the session before it had any traffic."""
        return self.failure is None and (self.traffic is None or self.traffic.ended == "interrupted")

    @property
    def control_is_apart(self) -> bool:
        """Whether the baseline and its control are two processes; a running server is its own control."""
        return None not in self.servers[:1]

    @property
    def host(self) -> str:
        """The host of its servers; empty for this machine."""
        return host_of(self.hosts)


class LostStarts(Frozen):
    """The starts of a duet that give no ratio: they failed, or nothing was measured in them."""

    cell_ids: tuple[str, ...] = Field(description="the baseline, and what is compared with it")
    servers: tuple[str, ...] = Field(description="their names, in the same order")
    scenario: str
    load: str
    lost: int = Field(ge=1)
    made: int = Field(ge=1, description="all starts, lost or not")
    reason: str = Field(description="of the first of them")
    hint: str = omitted_if_default("", "what to do about it")
    given_up: bool = omitted_if_default(
        default=False, description="answered wrongly before any load, which does not keep others from being compared"
    )

    @property
    def all(self) -> bool:
        """Whether nothing is compared: no other start was measured."""
        return self.lost == self.made
