"""Launch servers and proxies on other hosts, from builds that are made here and sent there."""

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redline.errors import BuildError, LaunchError
from redline.extras.hosts.agent import RemoteStart
from redline.extras.hosts.remote import HostLostError, RemoteHost, call
from redline.extras.hosts.shipping import Parcel, packed, parcel_of
from redline.files import as_store_error
from redline.launching.attached import AttachedLauncher
from redline.launching.builds import StandingBuild, holder_of
from redline.model import Failure, HopFacts, ServerEntry, ServerFacts, Variant
from redline.ports import Building, BuildOutcome, Endpoint, Launch, Launcher, RunningServer

BEYOND_READY_S = 60.0


@dataclass(frozen=True)
class RemoteServer:
    """A server on another host; its endpoint is that of its first proxy, if any.

    `parts` are the hosts of the server and of its proxies, with their numbers there. `started` has the facts
    of processes on the server's own host, `hops` those of proxies on another.
    """

    parts: tuple[tuple[RemoteHost, int], ...]
    endpoint: Endpoint
    started: ServerFacts
    hops: tuple[HopFacts, ...] = ()

    @property
    def facts(self) -> ServerFacts:
        """The facts of the server and of all its proxies."""
        return self.started.behind((*self.started.hops, *self.hops))

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes that its processes, and those of its proxies, were seen to run on."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Return why and how the server or a proxy died, or that a host is lost; None while all run."""
        return next(filter(None, (_death(host, number) for host, number in self.parts)), None)


def _death(host: RemoteHost, number: int) -> Failure | None:
    try:
        death: Failure | None = call(host, "death", number)
    except HostLostError as error:
        return Failure(stage="load", kind="died", message=error.message, hint=error.hint)
    return death


class RemoteLauncher:
    """Launcher of servers on a host, from builds that were made here; proxies run there, or on their own host.

    Builds of `catalogue`, and of others that are merged with it, are sent to all `servers` and `proxies`, the hosts
    that may run either. `find` maps entries to builds.
    """

    def __init__(
        self,
        local: Launcher,
        find: Callable[[ServerEntry], StandingBuild],
        catalogue: Path,
        servers: Sequence[RemoteHost],
        proxies: Sequence[RemoteHost],
    ) -> None:
        self._local, self._find, self._catalogue = local, find, catalogue.absolute()
        self._servers, self._proxies = servers, proxies
        self._host, self._proxy = servers[0], proxies[0] if proxies else None
        self._running_already = AttachedLauncher()

    def on(self, host: RemoteHost, proxy: RemoteHost | None = None) -> "RemoteLauncher":
        """Return the same launcher for this host, and perhaps another for proxies."""
        other = RemoteLauncher(self._local, self._find, self._catalogue, self._servers, self._proxies)
        other._host, other._proxy = host, proxy
        return other

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants need here, and send it to the hosts. A build that a host cannot run is a failure."""
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
        """Send builds to hosts. Returns why a host cannot run a build from here, by slug."""
        parts = [part for variant in variants for part in (variant, *variant.hops)]
        entries = {part.catalogued.name: part.catalogued for part in parts}
        builds = {name: self._find(entry) for name, entry in entries.items()}
        parcels = {name: parcel_of(build, holder_of(build.entry, self._catalogue)) for name, build in builds.items()}
        misfits: dict[str, BuildError] = {}
        for host in hosts if variants else ():
            self._send(host, parcels, builds, progress)
            progress(Building(tuple(entries), f"preparing {host.report.name}"))
            there = call(host, "provide", tuple(parcels.values()), tuple(variants), within_s=600.0)
            for slug in (variant.slug for variant in variants):
                error = _misfit(slug, host.report.name, outcome.runtimes.get(slug, ""), there.get(slug, ""))
                if error is not None:
                    misfits.setdefault(slug, error)
        return misfits

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
            chunks = itertools.chain(packed(builds[name], holder_of(builds[name].entry, self._catalogue)), (None,))
            for chunk, following in itertools.pairwise(chunks):
                call(host, "take", key, chunk, following is None)

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
            server = RemoteServer(((self._host, start.number),), start.endpoint, start.facts)
            if apart is None:
                yield server
                return
            in_front = variant, start.endpoint, launch.build_number
            hops = stack.enter_context(_started(apart, variant.hops, log, "start_hops", *in_front))
            parts = (*server.parts, (apart, hops.number))
            yield RemoteServer(parts, hops.endpoint, start.facts, hops.hops)


@contextmanager
def _started(
    host: RemoteHost, parts: Sequence[Variant], log: Path, method: str, *arguments: Any
) -> Iterator[RemoteStart]:
    """Start processes by a method of the agent, and fetch their output when the block ends. Raises LaunchError."""
    within_s = BEYOND_READY_S + sum(part.catalogued.ready.within_ns for part in parts) / 1e9
    try:
        start = call(host, method, *arguments, within_s=within_s)
    except HostLostError as error:
        raise LaunchError.of(error) from error
    try:
        yield start
    finally:
        stop_s = BEYOND_READY_S + sum(part.catalogued.stop.within_ns for part in parts) / 1e9
        with contextlib.suppress(HostLostError):  # a lost host ends its processes by itself
            texts: dict[str, bytes] = call(host, "stop", start.number, within_s=stop_s)
            with as_store_error(log):
                log.parent.mkdir(parents=True, exist_ok=True)
                for end, text in texts.items():
                    (log.parent / f"{log.stem}{end}").write_bytes(text)


def _misfit(slug: str, host: str, here: str, there: str | BuildError) -> BuildError | None:
    """Say why a host cannot run a build from here, if it cannot."""
    if isinstance(there, BuildError):
        return BuildError(f"{host}: {there.message}", hint=there.hint)
    if here == there:
        return None
    return BuildError(
        f"{slug} would run on {there or 'nothing known'} on {host}, and on {here or 'nothing known'} here",
        hint="install the same runtime on all hosts",
    )
