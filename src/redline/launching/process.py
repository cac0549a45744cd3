"""Servers as processes of this machine: built, started on a free port, watched, and stopped entirely."""

import logging
import os
import random
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from redline.driving.engine_process import find_engine, installed_folder
from redline.errors import BuildError, DriveError, LaunchError, UsageError
from redline.files import mend, open_within
from redline.launching import failures, observed
from redline.launching.around import Around
from redline.launching.builds import Availability, Builds, StandingBuild
from redline.launching.commands import hint_of
from redline.launching.containers import EVERYWHERE, BoxedStart, Containers, Image, cores_of
from redline.launching.failures import OF_CATALOGUE, FailedStart, LaunchAdvice, NotIts, tail
from redline.launching.guard import Guard, LaunchOrder, NotStarted, Started
from redline.launching.jdks import Jdk, Jdks, runtime_version
from redline.launching.observed import Whereabouts, listens
from redline.launching.readiness import wait_until_ready
from redline.launching.temporary import temporary_folder
from redline.launching.variables import variables_of
from redline.linux import cgroup
from redline.linux.cgroup import started_by
from redline.linux.runtimes import runtimes_of
from redline.model import Container, Failure, Ready, ServerEntry, ServerFacts, Variant
from redline.model.catalogue import UPSTREAM, certificates, filled, has_tls, option_text
from redline.model.jvm import jvm_words
from redline.ports import Building, BuildOutcome, Endpoint, Launch
from redline.watching.jvm import log_flag

_log = logging.getLogger(__name__)
_LOWEST = 10_000
_ENOUGH = 1_000
_TRIES = 200
HOST = "127.0.0.1"
PORTS_TRIED = 4
_MOST_OF_AUTHORITIES = 4 * 1024 * 1024
PADDING = "REDLINE_PADDING"
"""The variable that makes a server's environment larger, by less than a page: more repeats positions of the stack."""
MOST_PADDING_BYTES = 4096


def free_port(port_range: Path = Path("/proc/sys/net/ipv4/ip_local_port_range")) -> int:
    """Return a port on which nothing listens now. Raises LaunchError if there is none.

    It is below the kernel's range for outgoing connections if that leaves room. There no client can take it before the
    server binds it, and no connection to it can be answered by its own socket (TCP's simultaneous open).
    """
    try:
        lowest_outgoing = int(port_range.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        lowest_outgoing = 0
    chooser = random.SystemRandom()
    for _ in range(_TRIES):
        roomy = lowest_outgoing - _LOWEST >= _ENOUGH
        port = _bindable(chooser.randrange(_LOWEST, lowest_outgoing) if roomy else 0)
        if port:
            return port
    raise LaunchError(
        "there is no free TCP port for a server",
        hint="see what holds them with `ss -ltn`; earlier connections in TIME_WAIT end by themselves within a minute",
    )


def _bindable(port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        try:
            listener.bind(("", port))
        except OSError:
            return 0
        bound: int = listener.getsockname()[1]
        return bound


@dataclass(frozen=True)
class ProcessServer:
    """A server that has answered its readiness request."""

    endpoint: Endpoint
    facts: ServerFacts
    name: str
    guard: Guard
    log: Path
    scratch: Path
    log_is_kept: bool = True

    @property
    def runtimes(self) -> frozenset[str]:
        """The runtimes of its processes."""
        return self.facts.all_runtimes

    def death(self) -> Failure | None:
        """Return why and how it died, with the end of its output; None while it runs."""
        exited = self.guard.poll()
        return (
            None if exited is None else failures.died_under_load(self.name, exited, self.log, is_kept=self.log_is_kept)
        )


@dataclass(frozen=True)
class _Attempt:
    """A start of a server on a port."""

    launch: Launch
    prepared: "Prepared"
    port: int
    scratch: Path
    padding_bytes: int

    @property
    def variant(self) -> Variant:
        return self.launch.variant

    @property
    def ready(self) -> Ready:
        """The readiness request; a proxy has its server's."""
        own, upstream = self.variant.catalogued.ready, self.launch.upstream
        return upstream.ready.within(own.within_ns) if upstream else own

    def order(self) -> LaunchOrder:
        built, jdk = self.prepared.built, self.prepared.jdk
        entry, cpus = self.variant.catalogued, self.launch.placement.server_cpus
        # The catalogue makes sure that the port is among the names: a server on a port of its own choice could not be
        # distinguished from another server.
        values = {name: option_text(value) for name, value in self.variant.options.items()} | {
            "port": str(self.port),
            "folder": str(built.folder),
            "bin": str(installed_folder()),
            "cpus": str(cores_of(self._container, len(cpus) or len(os.sched_getaffinity(0)))),
            "host": self._listens_on,
            "scratch": str(self.scratch),
            "java": str(jdk.java) if jdk else "",
            "protocol": self.variant.serves,
            **self._upstream_values(),
        }
        command, flags = tuple(filled(part, values) for part in entry.start.command), self.variant.flags
        at = jvm_words(entry.start.command)
        jvm_log = log_flag(jdk.feature, self.scratch / "jvm.log") if jdk and at else ()
        variables = variables_of(entry, values)
        env = variables.env | ({PADDING: "x" * self.padding_bytes} if self.padding_bytes else {})
        return LaunchOrder(
            command=(*command[:at], *jvm_log, *(flags.flags if flags else ()), *command[at:]),
            folder=built.folder,
            env=env | {name: f"{env.get(name, '')} {text}".strip() for name, text in self.launch.env.items()},
            cpus=cpus,
            grace_ns=entry.stop.within_ns,
            cgroup_parent=cgroup.parent_for_servers(),
            log=self.launch.log,
            secrets=variables.secrets,
            own_variables=variables.own,
            private=variables.private,
        )

    def _upstream_values(self) -> dict[str, str]:
        """Placeholders that describe a proxy's upstream."""
        upstream = self.launch.upstream
        if upstream is None:
            return dict.fromkeys(UPSTREAM, "")
        endpoint, authority = upstream.endpoint, ""
        if has_tls(upstream.leg) and endpoint.ca_pem:
            file = self.scratch / "upstream-ca.pem"
            file.write_text(endpoint.ca_pem)
            authority = str(file)
        return dict(zip(UPSTREAM, (endpoint.host, str(endpoint.port), upstream.leg, authority), strict=True))

    @property
    def _container(self) -> Container | None:
        """The container; a user's image has the port of the server published."""
        if self.variant.container or not self._own_port:
            return self.variant.container
        own = self.variant.catalogued.image
        assert own is not None, "the port of an image is the user's"
        return Container(network="published", cpus=own.cpus, memory_bytes=own.memory_bytes)

    @property
    def _own_port(self) -> int | None:
        """The port on which a user's image listens in its container."""
        return self.prepared.image.port if self.prepared.image else None

    @property
    def _listens_on(self) -> str:
        container = self._container
        return EVERYWHERE if container and container.network == "published" else self.prepared.host

    def guard(self, order: LaunchOrder) -> Guard:
        """Start it, as a process or in its container. Raises LaunchError and OSError."""
        prepared, container = self.prepared, self._container
        if prepared.containers is None or prepared.image is None or container is None:
            return Guard(order)
        variables = (*order.own_variables, PADDING)
        start = BoxedStart(self.port, self.scratch, variables)
        return prepared.containers.guard(self.variant.slug, container, prepared.image, order, start)

    def bring_up(self, guard: Guard, order: LaunchOrder) -> ServerFacts | NotIts:
        """Return the facts of the server once it is ready, or the owner of its port. Raises LaunchError."""
        ready, host, inside = self.ready, self.prepared.host, self._own_port or self.port
        failed = FailedStart(self.variant.slug, host, self.port, order, self.prepared.advice, self.launch.log_is_kept)
        started = guard.started()
        if isinstance(started, NotStarted):
            guard.stop()
            raise failed.not_started(started)

        def alive(pause: float) -> bool:
            self.launch.check_wanted()
            return guard.poll(pause) is None

        endpoint = Endpoint(host, self.port)
        try:
            waited = wait_until_ready(
                find_engine(),
                self.variant,
                endpoint,
                ready,
                alive=alive,
                since_ns=started.at_ns,
                any_status=self.launch.any_status,
            )
        except DriveError as error:
            guard.stop()
            raise LaunchError.of(error) from error
        if waited.ended == "ready" and guard.poll() is None:
            took_s = (waited.at_ns - started.at_ns) / 1e9
            _log.debug("server: pid %d answers at %s after %.3f s", started.pid, endpoint, took_s)
            if listens(host, self.port, started.pid, inside):
                return self._facts(started, order, waited.at_ns)
            return NotIts(answered_by=observed.who_answers(host, self.port))
        exited = guard.poll()
        looked = Whereabouts.of if exited is None else Whereabouts.of_those_left
        seen = looked(started.pid, host, inside)
        if self._listens_on == EVERYWHERE:  # what listens on the port here passes it on to the container
            seen = replace(seen, holders=())
        guard.stop()
        if exited is None:
            raise failed.not_ready(ready, waited.last_answer, self._where(seen))
        if failures.says_port_is_taken(tail(order.log)):
            return failed.not_its(seen)
        raise failed.exited_early(exited, exited.at_ns - started.at_ns, seen)

    def _where(self, seen: Whereabouts) -> str:
        """Say where the server listens, if not where it should."""
        inside = self._own_port or self.port
        if self._listens_on != HOST and observed.is_out_of_reach(inside, seen.listening):
            if self._own_port:
                return f"it listens on 127.0.0.1 of its container alone, whose port {inside} no published port reaches"
            who = "no published port" if self._listens_on == EVERYWHERE else "no other host"
            return f"it listens on 127.0.0.1 alone, which {who} reaches: use {{host}} in its entry"
        return "" if seen.reached else observed.said(seen.listening)

    def _facts(self, started: Started, order: LaunchOrder, ready_at_ns: int) -> ServerFacts:
        built = self.prepared.built
        return ServerFacts(
            pid=started.pid,
            command=order.command,
            port=self.port,
            cpus=order.cpus,
            build=built.hash,
            runtime_version=_runtime(self.variant, self.prepared.jdk, built.runtime_version),
            cgroup=started.cgroup,
            ready_ns=ready_at_ns - started.at_ns,
            padding_bytes=self.padding_bytes,
            build_number=built.number,
            outputs=built.outputs,
            runtimes=tuple(sorted(runtimes_of(started_by(started.pid)))),
        )


@dataclass(frozen=True)
class Prepared:
    """What a server is started from: its build, its JDK, the parent of its scratch folder, and its image, if any.

    It listens on `host`. `advice` says where a user changes its start.
    """

    built: StandingBuild
    jdk: Jdk | None
    scratch: Path
    containers: Containers | None = None
    image: Image | None = None
    host: str = HOST
    advice: LaunchAdvice = OF_CATALOGUE


@contextmanager
def started(launch: Launch, prepared: Prepared) -> Iterator[ProcessServer]:
    """Start a server or a proxy, wait until it is ready, and stop it whatever happens.

    Raises LaunchError, and UsageError for a variable that is not set.
    """
    variant, built = launch.variant, prepared.built
    drawn = random.Random(launch.seed)  # noqa: S311 - not a secret
    padding_bytes = 0 if launch.seed is None else drawn.randrange(MOST_PADDING_BYTES)
    last = NotIts()
    for _ in range(PORTS_TRIED):
        with ExitStack() as stack:
            folder = _scratch_folder(variant, prepared.scratch, stack)
            attempt = _Attempt(launch, prepared, free_port(), folder, padding_bytes)
            try:
                order = attempt.order()
                around = Around(launch, order, attempt.port, attempt.scratch)
                stack.enter_context(around.set_up())
                guard = attempt.guard(order)
            except OSError as error:
                raise LaunchError(
                    f"{variant.slug} could not be started, for its warden could not be: {error.strerror}",
                    hint=hint_of(error),
                ) from error
            stack.callback(guard.stop)
            facts = attempt.bring_up(guard, order)
            if isinstance(facts, ServerFacts):
                around.prepare()
                endpoint = Endpoint(prepared.host, attempt.port, authorities(variant, built))
                yield ProcessServer(
                    endpoint, facts, variant.slug, guard, launch.log, attempt.scratch, launch.log_is_kept
                )
                return
            last = facts
    raise failures.port_taken(variant.slug, attempt.port, PORTS_TRIED, last, launch.log)


def _scratch_folder(variant: Variant, parent: Path, stack: ExitStack) -> Path:
    """Return a folder for a start, on the cache's disk: a run directory may be on a slow share."""
    try:
        return stack.enter_context(temporary_folder(parent))
    except OSError as error:
        raise LaunchError(
            f"{variant.slug} could not be given a scratch folder: {parent}: {error.strerror}",
            hint=mend(error),
        ) from error


class FindsBuilds(Protocol):
    """A source of builds: see `Builds`."""

    def build(
        self, entries: Iterable[ServerEntry], progress: Callable[[Building], None], *, hash_outputs: bool = False
    ) -> BuildOutcome:
        """Build the entries that need it; the outcome is by their names."""

    def find(self, entry: ServerEntry) -> StandingBuild:
        """Return the build to start. Raises LaunchError if it is missing."""


class ProcessLauncher:
    """Launcher of the servers in a catalogue; `cache` remembers its builds.

    Servers listen on the address `host`. `builds` are builds from elsewhere, in place of the catalogue's. Launchers of
    other kinds share `containers`, and so their janitor.
    """

    def __init__(
        self,
        catalogue: Path,
        cache: Path,
        jdks: Jdks | None = None,
        *,
        host: str = HOST,
        builds: FindsBuilds | None = None,
    ) -> None:
        self._of_catalogue = Builds(catalogue, cache)
        self._builds: dict[int, FindsBuilds] = {0: builds or self._of_catalogue}
        self._folders = catalogue, cache
        self._jdks = jdks or Jdks(cache)
        self._scratch = cache.absolute() / "scratch"
        self.containers = Containers(self._scratch)
        self._host = host

    def build(self, variants: Iterable[Variant], progress: Callable[[Building], None], builds: int = 1) -> BuildOutcome:
        """Build what the variants need, unless it is built; by variant slug. Variants of a server share its build.

        There are `builds` separate builds of a server, all of which have to succeed.
        """
        servers = {variant.slug: variant for variant in variants}
        entries = [variant.catalogued for variant in servers.values()]
        done = BuildOutcome()
        for number in range(builds):
            made = self._numbered(number).build(entries, progress, hash_outputs=builds > 1)
            done = done.joined(made) if number else made
        outcome = done.renamed({slug: variant.catalogued.name for slug, variant in servers.items()})
        return self._with_jdks(servers, outcome, progress)

    def availability(self, entry: ServerEntry) -> Availability:
        """Return whether the server is built or why it cannot be; build nothing."""
        return self._of_catalogue.availability(entry)

    def running(self, launch: Launch) -> AbstractContextManager[ProcessServer]:
        """Start a server or a proxy, wait until it is ready, and stop it whatever happens. Raises LaunchError."""
        return started(launch, self._prepared(launch))

    def _numbered(self, number: int) -> FindsBuilds:
        """The builds with this number."""
        return self._builds.setdefault(number, Builds(*self._folders, number))

    def _prepared(self, launch: Launch) -> Prepared:
        """Return what the variant is started from. Raises LaunchError."""
        variant = launch.variant
        built, jdk = self._numbered(launch.build_number).find(variant.catalogued), self._jdk(variant)
        if variant.container is None:
            return Prepared(built, jdk, self._scratch, host=self._host)
        try:
            image = self.containers.provide(variant, built, jdk, lambda _line: None)
        except BuildError as error:
            raise LaunchError.of(error) from error
        built = replace(built, runtime_version=self._with_engine(built.runtime_version))
        return Prepared(built, jdk, self._scratch, self.containers, image, self._host)

    def _with_engine(self, runtime: str) -> str:
        return "; ".join(filter(None, (runtime, self.containers.engine().version)))

    def _jdk(self, variant: Variant) -> Jdk | None:
        try:
            return self._jdks.find(variant)
        except BuildError as error:
            raise LaunchError(f"{variant.slug}: {error.message}", hint=error.hint) from error

    def _with_jdks(
        self, variants: dict[str, Variant], outcome: BuildOutcome, progress: Callable[[Building], None]
    ) -> BuildOutcome:
        """Add the JDKs of built variants to the outcome; they are fetched now, so that no run waits for them."""
        for slug in [slug for slug in outcome.hashes if not variants[slug].misfit]:
            variant = variants[slug]

            def show(line: str, name: str = variant.catalogued.name) -> None:
                progress(Building((name,), line))

            try:
                jdk = self._jdks.provide(variant, show)
                self._jdks.check_settings(variant)
                outcome.runtimes[slug] = _runtime(variant, jdk, outcome.runtimes[slug])
                if variant.container is not None:
                    for builds in self._builds.values():
                        self.containers.provide(variant, builds.find(variant.catalogued), jdk, show)
                    outcome.runtimes[slug] = self._with_engine(outcome.runtimes[slug])
            except BuildError as error:
                outcome.failures[slug] = error
                del outcome.hashes[slug], outcome.runtimes[slug]
        return outcome


def _runtime(variant: Variant, jdk: Jdk | None, tools: str) -> str:
    """The runtime of a variant: its JDK, and the versions of the tools that start it."""
    return "; ".join(filter(None, (runtime_version(variant, jdk) if jdk else "", tools)))


def authorities(variant: Variant, built: StandingBuild) -> str | None:
    """Return the CA certificates that a server's entry names. Raises LaunchError if the file is missing."""
    entry = variant.catalogued
    if entry.tls is None or entry.tls.ca is None or not has_tls(variant.serves):
        return None
    try:
        with open_within(built.folder, entry.tls.ca) as file:
            if authorities := certificates(file.read(_MOST_OF_AUTHORITIES).decode()):
                return authorities
        reason = "it holds no certificate"
    except UnicodeDecodeError:
        reason = "it is no text"
    except OSError as error:
        reason = str(error.strerror)
    except UsageError as error:
        reason = error.message
    raise LaunchError(
        f"{entry.name}: who signed its certificate cannot be read: {built.folder / entry.tls.ca}: {reason}",
        hint="the build leaves this file in its folder: see `tls.ca` in server.yaml",
    )
