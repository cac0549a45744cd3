"""A launcher of servers and proxies on other hosts, from builds that it makes here and sends there."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redline.errors import BuildError, LaunchError
from redline.files import as_store_error
from redline.model import Failure, ServerFacts, Variant
from redline.plugins.hosts.agent import RemoteStart
from redline.plugins.hosts.remote import HostLostError, RemoteHost, call
from redline.plugins.hosts.shipping import Parcel, packed, parcel_of
from redline.plugins.launchers.attached import AttachedLauncher
from redline.plugins.launchers.builds import StandingBuild
from redline.ports import Building, BuildOutcome, Endpoint, Launch, Launcher, RunningServer

BEYOND_READY_S = 60.0


@dataclass(frozen=True)
class RemoteServer:
    """A server on another host."""

    host: RemoteHost
    number: int
    endpoint: Endpoint
    facts: ServerFacts

    @property
    def runtimes(self) -> frozenset[str]:
        """What its processes were seen to run on."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Why and how it died, or that its host is gone; None while it runs."""
        return _death(self.host, self.number)


@dataclass(frozen=True)
class RemoteRoute:
    """A server on one host behind proxies on another: its endpoint is that of the first proxy."""

    server: RemoteServer
    proxy: RemoteHost
    number: int
    endpoint: Endpoint
    facts: ServerFacts

    @property
    def runtimes(self) -> frozenset[str]:
        """What its processes, and those of its proxies, were seen to run on."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Why and how the server or a proxy died, or that a host is gone; None while all run."""
        return self.server.death() or _death(self.proxy, self.number)


def _death(host: RemoteHost, number: int) -> Failure | None:
    try:
        found: Failure | None = call(host, "death", number)
    except HostLostError as error:
        return Failure(stage="load", kind="died", message=error.message, hint=error.hint)
    return found


@dataclass(frozen=True)
class Sender:
    """Sends builds to hosts, each once. `find` gives the build of an entry, which stands."""

    find: Callable[[Any], StandingBuild]
    project: Path

    def provide(
        self, variants: Sequence[Variant], hosts: Sequence[RemoteHost], progress: Callable[[Building], None]
    ) -> dict[str, dict[str, str | BuildError]]:
        """The runtime of each variant on each host, or why that host cannot run it; by host and slug."""
        entries = {each.catalogued.name: each.catalogued for variant in variants for each in (variant, *variant.hops)}
        builds = {name: self.find(entry) for name, entry in entries.items()}
        parcels = {name: parcel_of(build, self.project) for name, build in builds.items()}
        found: dict[str, dict[str, str | BuildError]] = {}
        for host in hosts:
            self._send(host, parcels, builds, progress)
            progress(Building(tuple(entries), f"preparing {host.report.name}"))
            wanted = call(host, "provide", tuple(parcels.values()), tuple(variants), within_s=600.0)
            found[host.report.name] = wanted
        return found

    def _send(
        self,
        host: RemoteHost,
        parcels: Mapping[str, Parcel],
        builds: Mapping[str, StandingBuild],
        progress: Callable[[Building], None],
    ) -> None:
        by_key = {parcel.key: name for name, parcel in parcels.items()}
        for key in call(host, "lacking", tuple(by_key)):
            name = by_key[key]
            progress(Building((name,), f"sending it to {host.report.name}"))
            chunks = itertools.chain(packed(builds[name], self.project), (None,))
            for chunk, following in itertools.pairwise(chunks):
                call(host, "take", key, chunk, following is None)


class RemoteLauncher:
    """Launcher of servers on one host, of builds that were made here; its proxies run there, or on one of their own.

    `servers` and `proxies` are all hosts that may run either: builds are sent to all of them.
    """

    def __init__(
        self, local: Launcher, sender: Sender, servers: Sequence[RemoteHost], proxies: Sequence[RemoteHost]
    ) -> None:
        self._local, self._sender, self._servers, self._proxies = local, sender, servers, proxies
        self._host, self._proxy = servers[0], proxies[0] if proxies else None
        self._running_already = AttachedLauncher()

    def on(self, host: RemoteHost, proxy: RemoteHost | None = None) -> "RemoteLauncher":
        """The same launcher for one host for servers, and perhaps one for proxies."""
        other = RemoteLauncher(self._local, self._sender, self._servers, self._proxies)
        other._host, other._proxy = host, proxy
        return other

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants need here, and send it to the hosts. What a host cannot run is a failure."""
        wanted = {variant.slug: variant for variant in variants}
        attached = [variant for variant in wanted.values() if variant.is_attached]
        built = [variant for variant in wanted.values() if not variant.is_attached]
        outcome = self._local.build(built, progress, builds)
        standing = [variant for variant in built if variant.slug in outcome.hashes]
        hops = {hop.slug: hop for variant in standing for hop in variant.hops}
        of_servers = self._misfits(standing, self._servers, outcome, progress)
        of_proxies = self._misfits(list(hops.values()), self._proxies, outcome, progress)
        for variant in standing:
            errors = (of_servers.get(variant.slug), *(of_proxies.get(hop.slug) for hop in variant.hops))
            if (error := next(filter(None, errors), None)) is not None:
                outcome.failures[variant.slug] = error
                del outcome.hashes[variant.slug]
                outcome.runtimes.pop(variant.slug, None)
        return outcome.joined(self._running_already.build(attached, progress))

    def _misfits(
        self,
        variants: Sequence[Variant],
        hosts: Sequence[RemoteHost],
        outcome: BuildOutcome,
        progress: Callable[[Building], None],
    ) -> dict[str, BuildError]:
        """Why one of the hosts cannot run what was built here, by slug."""
        found: dict[str, BuildError] = {}
        if not variants:
            return found
        for name, runtimes in self._sender.provide(variants, hosts, progress).items():
            for slug in (variant.slug for variant in variants):
                error = _misfit(slug, name, outcome.runtimes.get(slug, ""), runtimes.get(slug, ""))
                if error is not None:
                    found.setdefault(slug, error)
        return found

    @contextmanager
    def running(self, launch: Launch) -> Iterator[RunningServer]:
        """Start a server on its host, fetch its output at the end, and stop it whatever happens. Raises LaunchError.

        A server behind a URL runs already.
        """
        variant, log = launch.variant, launch.log
        if variant.is_attached:
            with self._running_already.running(launch) as attached:
                yield attached
            return
        apart = self._proxy if variant.hops else None
        alone = variant.without_hops if apart else variant
        with ExitStack() as stack:
            # The placement is left out: the agent knows the cores of its host.
            asked = alone, launch.seed, launch.build_number, dict(launch.env)
            start = stack.enter_context(_started(self._host, (alone, *alone.hops), log, "start", *asked))
            assert start.facts is not None, "a server has facts"
            server = RemoteServer(self._host, start.number, start.endpoint, start.facts)
            if apart is None:
                yield server
                return
            in_front = variant, start.endpoint, launch.build_number
            hops = stack.enter_context(_started(apart, variant.hops, log, "start_hops", *in_front))
            facts = start.facts.behind(hops.hops)
            yield RemoteRoute(server, apart, hops.number, hops.endpoint, facts)


@contextmanager
def _started(
    host: RemoteHost, parts: Sequence[Variant], log: Path, method: str, *arguments: Any
) -> Iterator[RemoteStart]:
    """Start something by a method of the agent, and fetch its output when the block ends. Raises LaunchError."""
    within_s = BEYOND_READY_S + sum(part.catalogued.ready.within_ns for part in parts) / 1e9
    try:
        start = call(host, method, *arguments, within_s=within_s)
    except HostLostError as error:
        raise LaunchError.of(error) from error
    try:
        yield start
    finally:
        stop_s = BEYOND_READY_S + sum(part.catalogued.stop.within_ns for part in parts) / 1e9
        with contextlib.suppress(HostLostError):  # it ends by itself what runs there
            _write_logs(log, call(host, "stop", start.number, within_s=stop_s))


def _misfit(slug: str, host: str, here: str, there: str | BuildError) -> BuildError | None:
    """Why a host cannot run what was built here, if it cannot."""
    if isinstance(there, BuildError):
        return BuildError(f"{host}: {there.message}", hint=there.hint)
    if here == there:
        return None
    return BuildError(
        f"{slug} would run on {there or 'nothing known'} on {host}, and on {here or 'nothing known'} here",
        hint="install the same runtime on all hosts",
    )


def _write_logs(log: Path, texts: Mapping[str, bytes]) -> None:
    with as_store_error(log):
        log.parent.mkdir(parents=True, exist_ok=True)
        for end, text in texts.items():
            (log.parent / f"{log.stem}{end}").write_bytes(text)
