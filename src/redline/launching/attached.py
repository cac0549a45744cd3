"""Servers that are already running: nothing is built, started or stopped."""

import errno
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from redline.errors import LaunchError
from redline.launching import observed
from redline.lazily import dataclass
from redline.linux.cgroup import started_by
from redline.linux.owners import Owner, owner_of
from redline.linux.runtimes import runtimes_of
from redline.model import AttachedServer, Failure, ServerFacts, Variant
from redline.ports import Building, BuildOutcome, Endpoint, Launch, RunningServer

_ASKED_WITHIN_S = 1.0


@dataclass(frozen=True)
class RunningElsewhere:
    """A running server, known only by its address."""

    endpoint: Endpoint
    facts: ServerFacts | None = None

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its processes, if they run on this machine."""
        return runtimes_of(owner_at(self.endpoint).pids)

    def death(self) -> Failure | None:
        """A message if nothing listens at its address any more: nothing else can be observed."""
        if (address := self.endpoint.address) is None:
            return self._death_of_proxy() or self._death_of_socket()
        try:
            socket.create_connection(address, timeout=_ASKED_WITHIN_S).close()
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                where = observed.listens_elsewhere(*address)
                return Failure(
                    stage="load",
                    kind="died",
                    message=f"nothing listens at {self.endpoint}: connection refused{where and f'; {where}'}",
                    hint="see whether the server still runs, and what it printed",
                )
        return None

    def _death_of_proxy(self) -> Failure | None:
        """A message if nothing listens at the proxy any more: what is behind it cannot be observed."""
        proxy = self.endpoint.way.proxy
        if proxy is None:
            return None
        try:
            socket.create_connection((proxy.host, proxy.port), timeout=_ASKED_WITHIN_S).close()
        except ConnectionRefusedError:
            return Failure(
                stage="load",
                kind="died",
                message=f"nothing listens at the proxy {proxy.text}: connection refused",
                hint="see whether the proxy still runs, and what it printed",
            )
        except OSError:
            return None
        return None

    def _death_of_socket(self) -> Failure | None:
        """A message if nobody accepts connections to its Unix socket; None where it is reached otherwise."""
        path = self.endpoint.way.socket
        if not path:
            return None
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(_ASKED_WITHIN_S)
            try:
                asked.connect(path)
            except (ConnectionRefusedError, FileNotFoundError, PermissionError) as error:
                return Failure(
                    stage="load",
                    kind="died",
                    message=f"nothing can be reached at {path}: {(error.strerror or '').lower()}",
                    hint="see whether the server still runs, listens on that socket, and lets you write to it",
                )
            except OSError:
                return None
        return None


def owner_at(endpoint: Endpoint) -> Owner:
    """Return the processes that provably answer at an endpoint, or why they are unknown."""
    if endpoint.address is None:
        if endpoint.way.proxy is not None:
            why = "behind a proxy"
        else:
            why = "of a Unix socket" if endpoint.way.socket else "of several addresses"
        return Owner(unknown=f"the processes {why} are not known", hint="load an address of TCP of the server itself")
    return owner_of(*endpoint.address)


def processes_of(server: RunningServer) -> tuple[int, ...]:
    """Return the processes of a server that was started here, and of its hops; empty for others: see `watching`."""
    if server.facts is None:
        return ()
    return tuple(child for pid in server.facts.pids for child in started_by(pid))


class AttachedLauncher:
    """Launcher of servers that are already running."""

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Builds nothing, and knows nothing about the server's build."""
        del progress, builds
        return BuildOutcome(hashes={variant.slug: "" for variant in variants})

    @contextmanager
    def running(self, launch: Launch) -> Iterator[RunningElsewhere]:
        """Yield the server at its address, before any request. Raises LaunchError for another kind."""
        entry = launch.variant.entry
        if not isinstance(entry, AttachedServer):
            hint = "this is an error in Redline"
            raise LaunchError(f"{launch.variant.slug} is to be started, and is not running", hint=hint)
        yield RunningElsewhere(Endpoint(entry.host, entry.port, way=entry.way))
