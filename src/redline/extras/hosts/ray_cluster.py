"""The hosts of a Ray cluster: Ray places agents on them, and carries the lab's calls. No other module knows Ray.

No byte of a load goes through Ray, and it carries nothing while a load is measured.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlsplit

import psutil

from redline.errors import UsageError
from redline.extras.hosts.agent import AgentUsage, HostAgent, HostReport
from redline.extras.hosts.remote import CALL_S, HostLostError, Pair, RemoteHost, call
from redline.model import ROLES, Role

ANSWERED_WITHIN_S = 5.0
PLACED_WITHIN_S = 60.0
_CALLS_AT_ONCE = 8
_OF_RAY = ("raylet", "gcs_server", "log_monitor", "plasma_store", "ray::", "/ray/")
"""Names or parts of the command lines of Ray's processes on a host."""
_MOST_PAIRS = 1000
_TOKEN = "token"  # noqa: S105 - the name of a mode
_START = (
    "start Ray on each host with RAY_AUTH_MODE=token and its role, such as"
    " `ray start --address=HEAD:6379 --resources='{\"load\": 1}'`; docs/guide/many-machines.md has all of it"
)
_TOKENS = (
    "make a token on one host with `ray get-auth-token --generate`, copy ~/.ray/auth_token to the others and to this"
    " machine, and start Ray on each host with RAY_AUTH_MODE=token; docs/guide/many-machines.md has all of it"
)
_WRONG_TOKEN = b"InvalidAuthToken"


class RayAgent(HostAgent):
    """An agent in a Ray actor."""

    def __init__(self, address: str, role: Role) -> None:
        # Processes that run here for the lab get neither Ray's token nor its settings for numerical libraries.
        for name in [name for name in os.environ if name.startswith("RAY_") or name == "OMP_NUM_THREADS"]:
            if name == "RAY_AUTH_MODE":
                self.auth_mode = os.environ[name]
            del os.environ[name]
        with suppress(OSError):  # Ray starts its workers with a low priority
            os.setpriority(os.PRIO_PROCESS, 0, 0)
        super().__init__(address, role)

    auth_mode = ""

    def cluster(self) -> tuple[str, int]:
        """Return how the cluster authenticates, and the niceness of processes that Ray starts here."""
        return self.auth_mode, os.getpriority(os.PRIO_PROCESS, 0)

    def usage(self) -> AgentUsage:
        """CPU time and memory of Ray's own processes on this host, with this process."""
        cpu_s, rss_bytes = 0.0, 0
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = " ".join((process.name(), *process.cmdline()[:3]))
                if any(mark in words for mark in _OF_RAY):
                    times = process.cpu_times()
                    cpu_s, rss_bytes = cpu_s + times.user + times.system, rss_bytes + process.memory_info().rss
        return AgentUsage(round(cpu_s * 1e9), rss_bytes)


class _Actor:
    """The actor around an agent: a single method, because our errors travel as values."""

    def __init__(self, role: Role) -> None:
        import ray  # noqa: PLC0415 - only where Ray is

        self._agent = RayAgent(ray.util.get_node_ip_address(), role)

    def call(self, method: str, arguments: tuple[Any, ...]) -> tuple[bool, Any]:
        return self._agent.call(method, arguments)


@dataclass(frozen=True)
class _RayCall:
    ref: Any
    host: "RayHost"

    def result(self, within_s: float) -> Any:
        import ray  # noqa: PLC0415
        from ray.exceptions import GetTimeoutError, RayError  # noqa: PLC0415

        try:
            succeeded, result = ray.get(self.ref, timeout=within_s)
        except GetTimeoutError:
            raise self.host.lost(f"it has not answered for {within_s:.0f} s") from None
        except RayError as error:
            raise self.host.lost(str(error).strip().splitlines()[0]) from error
        if not succeeded:
            raise result
        return result


@dataclass
class RayHost:
    """An agent on a host of the cluster."""

    actor: Any
    role: Role
    _report: HostReport | None = field(default=None, repr=False)

    @property
    def report(self) -> HostReport:
        """The host's report, fetched once."""
        if self._report is None:
            self._report = call(self, "report")
        return self._report

    def submit(self, method: str, *arguments: Any) -> _RayCall:
        """Call a method of the agent."""
        return _RayCall(self.actor.call.remote(method, arguments), self)

    def lost(self, why: str) -> HostLostError:
        """The error of a host that no longer answers."""
        name = self._report.name if self._report else "a host"
        return HostLostError(f"{name} ({self.role}) is lost: {why}", hint="see whether it runs, and its network")


@contextmanager
def connected(address: str, loads: int, *, proxies: bool) -> Iterator[tuple[Pair, ...]]:
    """Yield as many pairs of hosts as the cluster has; their agents end with the block.

    If there are `proxies`, every pair gets a host for them too, if the cluster has such hosts. Raises UsageError
    if there is no such cluster, if it has too few hosts, or does not authenticate.
    """
    with _cluster(address) as ray:
        groups: list[Any] = []
        try:
            resources = ray.cluster_resources()
            apart = proxies and int(resources.get("proxy", 0)) > 0
            number = _number_of_pairs(resources, loads, apart=apart)
            groups = [_group(ray, loads, apart=apart) for _ in range(number)]
            pairs = [_pair(ray, group, loads, apart=apart) for group in groups]
            check([host for pair in pairs for host in pair.hosts])
            yield tuple(sorted(pairs, key=lambda pair: pair.server.report.name))
        finally:
            for group in groups:
                with suppress(Exception):  # the cluster may be gone
                    ray.util.remove_placement_group(group)


@contextmanager
def everyone(address: str) -> Iterator[tuple[RemoteHost, ...]]:
    """Yield an agent on every host of the cluster with a role, in use or not. Raises UsageError as `connected` does."""
    with _cluster(address) as ray:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # noqa: PLC0415

        placed = [
            (role, NodeAffinitySchedulingStrategy(node["NodeID"], soft=False))
            for node in ray.nodes()
            for role in ROLES
            if node["Alive"] and role in node["Resources"]
        ]
        kind = ray.remote(_Actor)
        yield tuple(
            RayHost(kind.options(num_cpus=0, max_concurrency=_CALLS_AT_ONCE, scheduling_strategy=on).remote(role), role)
            for role, on in placed
        )


@contextmanager
def _cluster(address: str) -> Iterator[Any]:
    """Yield Ray, connected with a cluster. Raises UsageError, also for a cluster without authentication."""
    # Ray reads both when it is imported.
    os.environ["RAY_AUTH_MODE"] = _TOKEN
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise UsageError("Ray is not installed", hint="install it with Redline: uv sync --extra ray") from None
    _refuse_silent(address)
    _connect(ray, address)
    try:
        _refuse_open(ray)
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str) -> None:
    from ray.exceptions import AuthenticationError  # noqa: PLC0415

    with TemporaryFile() as said:
        try:
            with _stderr_into(said.fileno()):
                ray.init(address=address, namespace="redline", log_to_driver=False, logging_level="ERROR")
        except AuthenticationError as error:
            raise UsageError(
                "this machine has no token for Ray, and Redline uses no cluster without: whoever reaches it could run"
                " commands on it",
                hint=_TOKENS,
            ) from error
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            said.seek(0)
            if _WRONG_TOKEN in said.read():
                raise UsageError(
                    f"the cluster at {address} has another token than this machine", hint=_TOKENS
                ) from error
            raise UsageError(
                f"no Ray cluster could be reached at {address}: {str(error).strip().splitlines()[0]}", hint=_START
            ) from error


@contextmanager
def _stderr_into(file: int) -> Iterator[None]:
    """Redirect stderr to a file: Ray's libraries print all of their attempts there."""
    own = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(own, 2)
        os.close(own)


def _refuse_open(ray: Any) -> None:
    """Raise UsageError for a cluster without authentication, according to how its processes were started."""
    from ray.exceptions import GetTimeoutError, RayError  # noqa: PLC0415

    try:
        mode, host = ray.get(ray.remote(_authentication).options(num_cpus=0).remote(), timeout=PLACED_WITHIN_S)
    except GetTimeoutError:
        message = f"no host of the cluster started a process within {PLACED_WITHIN_S:.0f} s"
        raise UsageError(message, hint="see `ray status`") from None
    except RayError as error:
        raise UsageError(
            f"a host of the cluster cannot run Redline: {str(error).strip().splitlines()[-1]}",
            hint="install the same Redline on each host, with its extra: uv sync --extra ray",
        ) from error
    if mode != _TOKEN:
        raise UsageError(_open(host), hint=_TOKENS)


def _authentication() -> tuple[str, str]:
    return os.environ.get("RAY_AUTH_MODE", ""), socket.gethostname()


def _open(host: str) -> str:
    return f"{host} runs Ray without authentication: whoever reaches it can run commands on it"


def _refuse_silent(address: str) -> None:
    """Raise UsageError if nothing listens: Ray would try for minutes, and print all attempts."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    if address in ("auto", "local") or parts.hostname is None:
        return
    try:
        socket.create_connection((parts.hostname, parts.port or 6379), ANSWERED_WITHIN_S).close()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"no Ray cluster could be reached at {address}: {why}", hint=_START) from error


def _number_of_pairs(resources: dict[str, float], loads: int, *, apart: bool) -> int:
    """Return the number of pairs that the cluster has hosts for. Raises UsageError if there is none."""
    servers, of_load = int(resources.get("server", 0)), int(resources.get("load", 0))
    number = min(servers, of_load // loads, int(resources["proxy"]) if apart else _MOST_PAIRS)
    if number < 1:
        raise UsageError(
            f"the cluster has {servers} hosts with the role `server` and {of_load} with `load`;"
            f" one and {loads} are needed",
            hint=_START,
        )
    return number


def _group(ray: Any, loads: int, *, apart: bool) -> Any:
    """Reserve the hosts of a pair, all different. Raises UsageError if they are not free in time."""
    bundles = [{"server": 1}, *({"load": 1} for _ in range(loads)), *([{"proxy": 1}] if apart else [])]
    group = ray.util.placement_group(bundles, strategy="STRICT_SPREAD")
    if not group.wait(PLACED_WITHIN_S):
        ray.util.remove_placement_group(group)
        raise UsageError(
            f"the hosts of the cluster were not free within {PLACED_WITHIN_S:.0f} s",
            hint="each role must be on a host of its own, and no other lab may hold it: see `ray status`",
        )
    return group


def _pair(ray: Any, group: Any, loads: int, *, apart: bool) -> Pair:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy  # noqa: PLC0415

    def agent(role: Role, bundle: int) -> RayHost:
        placed = PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=bundle)
        kind = ray.remote(_Actor).options(
            num_cpus=0, resources={role: 1}, max_concurrency=_CALLS_AT_ONCE, scheduling_strategy=placed
        )
        return RayHost(kind.remote(role), role)

    of_load = tuple(agent("load", 1 + number) for number in range(loads))
    return Pair(agent("server", 0), of_load, agent("proxy", 1 + loads) if apart else None)


def check(hosts: Sequence[RemoteHost]) -> None:
    """Raise UsageError for unfit hosts: another version of Redline, or no authentication."""
    first = hosts[0].report
    for host in hosts:
        report = host.report
        mode, niceness = call(host, "cluster", within_s=CALL_S)
        if mode != _TOKEN:
            raise UsageError(_open(report.name), hint=_TOKENS)
        if niceness > 0:
            raise UsageError(
                f"{report.name} would run servers and engines with low priority (nice {niceness})",
                hint="start Ray there with RAY_worker_niceness=0",
            )
        wanted = _build_of(first)
        for what, actual in _build_of(report).items():
            if actual != wanted[what]:
                raise UsageError(
                    f"{report.name} has another {what} than {first.name}: {actual}, not {wanted[what]}",
                    hint="install the same Redline on hosts of one kind",
                )


def _build_of(report: HostReport) -> dict[str, object]:
    own = report.environment
    return {"redline": own.redline, "engine sha256": own.engine_sha256, "machine": report.machine, "libc": report.libc}
