"""Servers behind proxies: the server is started first, then the hops from back to front."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from redline import launching
from redline.driving.checks import checking
from redline.driving.engine_process import find_engine
from redline.driving.protocol import check
from redline.errors import DriveError, LaunchError
from redline.launching.readiness import reached, request_of
from redline.lazily import dataclass
from redline.model import Failure, HopFacts, Leg, ServerFacts, Variant
from redline.model.catalogue import has_tls
from redline.ports import Building, BuildOutcome, Endpoint, Launch, Launcher, RunningServer, Upstream

_WITHIN_NS = 5_000_000_000


@dataclass(frozen=True)
class RunningHops:
    """The proxies in front of a server, the client's first."""

    running: tuple[RunningServer, ...]
    facts: tuple[HopFacts, ...]

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the first proxy."""
        return self.running[0].endpoint

    def death(self) -> Failure | None:
        """Return why and how a proxy died, the nearest to the server if several did; None while all run."""
        return next((death for proxy in reversed(self.running) if (death := proxy.death()) is not None), None)


@dataclass(frozen=True)
class RoutedServer:
    """A server behind proxies: its endpoint is the first proxy's."""

    server: RunningServer
    hops: RunningHops

    @property
    def endpoint(self) -> Endpoint:
        """The endpoint of the first proxy."""
        return self.hops.endpoint

    @property
    def facts(self) -> ServerFacts | None:
        """The facts of the server and of the proxies in front of it."""
        return self.server.facts and self.server.facts.behind(self.hops.facts)

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of the server and the proxies."""
        return self.facts.all_runtimes if self.facts else self.server.runtimes

    def death(self) -> Failure | None:
        """Return why and how the server died, or else the nearest proxy that did; None while all run."""
        return self.server.death() or self.hops.death()


class RouteLauncher:
    """Launcher of servers and of the proxies in front of them, by a launcher of single processes.

    The protocol that a proxy really speaks is observed once per pair of legs and server behind it, in its own start.
    """

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        self._seen: dict[tuple[str, Leg, Leg, str, int], Leg | None] = {}

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants and their proxies need. A variant without its proxies counts as not built."""
        wanted = tuple(variants)
        hops = {hop.slug: hop for variant in wanted for hop in variant.hops}
        done = self._launcher.build((*wanted, *hops.values()), progress, builds)
        for variant in wanted:
            missing = next((hop.slug for hop in variant.hops if hop.slug in done.failures), None)
            if missing is not None and variant.slug not in done.failures:
                done.failures[variant.slug] = done.failures[missing]
                del done.hashes[variant.slug]
        return done

    @contextmanager
    def running(self, launch: Launch) -> Iterator[RunningServer]:
        """Start a server, then its proxies from back to front, and stop them whatever happens. Raises LaunchError.

        The output of the `n`-th proxy goes to `LOG-hop-n`.
        """
        with ExitStack() as stack:
            server = stack.enter_context(self._launcher.running(launch))
            if not launch.variant.hops:
                yield server
                return
            if (dead := server.death()) is not None:  # nobody has asked a server that is not started here
                raise LaunchError(dead.message, hint=dead.hint, log_tail=dead.log_tail)
            yield RoutedServer(server, stack.enter_context(self.hops(launch, server.endpoint)))

    @contextmanager
    def hops(self, launch: Launch, server: Endpoint) -> Iterator[RunningHops]:
        """Start the proxies of a variant whose server listens there, and stop them whatever happens."""
        variant, log = launch.variant, launch.log
        assert variant.route is not None, "a variant without a route has no proxies"
        behind, started = server, list[tuple[RunningServer, HopFacts]]()
        ready = variant.entry.ready
        assert ready is not None, "a running server that has a route has it too"
        with ExitStack() as stack:
            for number in reversed(range(len(variant.hops))):
                upstream = Upstream(behind, variant.route.legs[number + 1], ready)
                own_log = log.with_name(f"{log.stem}-hop-{number + 1}{log.suffix}")
                own = Launch(
                    variant.hops[number],
                    launch.placement,
                    own_log,
                    build_number=launch.build_number,
                    upstream=upstream,
                    log_is_kept=launch.log_is_kept,
                )
                started.insert(0, stack.enter_context(self._in_front(_Hop(variant, number, upstream, own))))
                behind = started[0][0].endpoint
            yield RunningHops(tuple(running for running, _ in started), tuple(facts for _, facts in started))

    @contextmanager
    def _in_front(self, hop: "_Hop") -> Iterator[tuple[RunningServer, HopFacts]]:
        """Start a proxy; yields its facts."""
        certificate = hop.certificate_problem()
        with ExitStack() as stack:
            try:
                seen = self._upstream_seen(hop)
                running = stack.enter_context(self._launcher.running(hop.launch))
            except LaunchError as error:
                raise hop.explained(error, certificate) from error
            assert running.facts is not None, "the launcher has started its process"
            facts = HopFacts(
                name=hop.proxy.slug,
                process=running.facts,
                upstream=hop.upstream.leg,
                upstream_seen=seen,
                certificate=certificate,
            )
            yield running, facts

    def _upstream_seen(self, hop: "_Hop") -> Leg | None:
        """Return the protocol between the proxy and its upstream, observed by a relay during its readiness request."""
        key = hop.proxy.slug, hop.proxy.serves, hop.upstream.leg, hop.behind.entry.name, hop.launch.build_number
        if key not in self._seen:
            with launching.tapped(hop.upstream.endpoint) as tap:
                relayed = replace(hop.launch, upstream=replace(hop.upstream, endpoint=tap.endpoint))
                with self._launcher.running(relayed):
                    pass
                self._seen[key] = tap.leg()
        return self._seen[key]


@dataclass(frozen=True)
class _Hop:
    """The proxy of this number on the way to a variant's server, from 0, and its upstream."""

    variant: Variant
    number: int
    upstream: Upstream
    launch: Launch

    @property
    def proxy(self) -> Variant:
        return self.launch.variant

    @property
    def behind(self) -> Variant:
        """The upstream: the next proxy, or the server."""
        return (*self.variant.hops, self.variant)[self.number + 1]

    def certificate_problem(self) -> str:
        """Say what is wrong with the upstream's certificate; empty if nothing. Raises LaunchError."""
        if not has_tls(self.upstream.leg):
            return ""
        loosely, request = reached(self.behind), request_of(self.upstream.ready)
        assert loosely.tls is not None, "its leg is over TLS"
        strictly = loosely.over(loosely.tls.accepting(anybody=False))
        try:
            with checking(find_engine()) as checks:
                strict, loose = (
                    checks.ask(check(reach, self.upstream.endpoint, request, {}, timeout_ns=_WITHIN_NS, keep_bytes=0))
                    for reach in (strictly, loosely)
                )
        except DriveError as error:
            raise LaunchError.of(error) from error
        # If TLS fails with any certificate, the certificate is not at fault.
        return strict.failure.reason if strict.failure and strict.outcome == "tls" != loose.outcome else ""

    def explained(self, error: LaunchError, certificate: str) -> LaunchError:
        """An error of the proxy, with a possible cause in its upstream."""
        if not certificate or error.kind != "not_ready":
            return error
        message = f"{error.message}; the certificate of {self.behind.entry.name} is not valid: {certificate}"
        hint = f"build {self.behind.entry.name} again, or fix `tls` in its server.yaml"
        return LaunchError(message, hint=hint, kind=error.kind, log_tail=error.log_tail)
