"""The hosts of a trial on several machines: raw facts about their clocks and their parts of the load."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.environment import Environment
from redline.model.histogram import Histogram
from redline.model.traffic import Counts

Role = Literal["server", "load", "proxy"]
ROLES: tuple[Role, ...] = ("server", "load", "proxy")


class ClockReading(Frozen):
    """Chrony's reading of a host's clock. Source: RFC 5905, section 4, and chronyc(1), `tracking`."""

    reference: str = Field(description="the server that the clock follows; empty if it follows none")
    stratum: int
    offset_ns: int = Field(description="how far the clock is ahead of the reference's")
    root_delay_ns: int = Field(ge=0, description="round trip to the clock at the root")
    root_dispersion_ns: int = Field(ge=0, description="error that has accumulated on the way to it")

    @property
    def bound_ns(self) -> int:
        """The clock's largest distance from true time: |offset| + root dispersion + root delay / 2."""
        return abs(self.offset_ns) + self.root_dispersion_ns + -(-self.root_delay_ns // 2)


class UsedHost(Frozen):
    """A host that a run may use."""

    name: str
    role: Role
    address: str
    environment: Environment


class LoadShare(Frozen):
    """A load host's part of a load. The sums over all hosts are the traffic's totals."""

    workers: int
    connections: int
    epoch_unix_ns: int = Field(description="by the clock of that host")
    counts: Counts
    response: Histogram
    service: Histogram
    lateness: Histogram
    engine_cpu_ns: int


class HostFacts(Frozen):
    """A host of a trial."""

    name: str
    role: Role
    address: str
    clock_before: ClockReading | None = Field(default=None, description="null if no chrony runs there")
    clock_after: ClockReading | None = None
    clock_step_ns: int | None = omitted_if_default(None, "how far its clock was set during the trial; null if not read")
    share: LoadShare | None = Field(default=None, description="of a load host, if its engine wrote a result")
    cluster_cpu_ns: int | None = Field(default=None, description="CPU time of the cluster's software in the trial")
    cluster_rss_bytes: int | None = Field(default=None, description="memory of the cluster's software at the end")

    @property
    def clock_bound_ns(self) -> int | None:
        """The larger bound of its clock before and after; None if not known."""
        if self.clock_before is None or self.clock_after is None:
            return None
        return max(self.clock_before.bound_ns, self.clock_after.bound_ns) + abs(self.clock_step_ns or 0)


def host_of(hosts: tuple[HostFacts, ...]) -> str:
    """The name of the host of a trial's server; empty if nothing ran on another host."""
    return next((host.name for host in hosts if host.role == "server"), "")


MOST_CLOCK_ERROR = 0.1
"""The largest error of a median one-way time that is still shown."""


def one_way_bound_ns(hosts: tuple[HostFacts, ...]) -> int | None:
    """The error between the clocks of server and load hosts; None if not known, 0 if all ran on this machine."""
    if not hosts:
        return 0
    bounds = [[host.clock_bound_ns for host in hosts if host.role == role] for role in ("server", "load")]
    known = [[bound for bound in of_role if bound is not None] for of_role in bounds]
    return sum(map(max, known)) if known == bounds and all(known) else None
