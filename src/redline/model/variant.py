"""Variant: a server with its options, flags, protocol, route and place fixed."""

from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import (
    JDK,
    AttachedServer,
    HttpVersion,
    Leg,
    OptionValue,
    Revision,
    ServerEntry,
    Tls,
    leg_of,
    option_text,
    slug_text,
)
from redline.model.jvm import NO_FLAGS, FlagSet, jvm_words, without_effect

Network = Literal["host", "published"]

DIRECT = "direct"
GC = "gc"
FLAGS, ROUTE, PLACE = "flags", "route", "in"  # axes that are not options
MOST_HOPS = 4


class Route(Frozen):
    """How the load reaches a server: legs and the proxies between them, from the client on.

    The `http` and `tls` of a hop describe the leg in front of it.
    """

    name: str
    legs: tuple[Leg, ...] = Field(min_length=1)
    hops: tuple["Variant", ...] = omitted_if_default((), max_length=MOST_HOPS)

    @property
    def text(self) -> str:
        """`h2+tls → proxy.nginx+workers=1 → h1`."""
        between = [part for hop, leg in zip(self.hops, self.legs[1:], strict=True) for part in (hop.slug, leg)]
        return " → ".join([self.legs[0], *between])


class Container(Frozen):
    """A container that a server runs in. None means no limit of its own; `memory_bytes` is in bytes."""

    network: Network = omitted_if_default("host", "host: the machine's; published: its own, with a port of the host")
    cpus: float | None = omitted_if_default(None, "CPU time as a number of cores, a quota", gt=0)
    memory_bytes: int | None = omitted_if_default(None, "memory, without swap", gt=0)
    pids: int | None = omitted_if_default(None, "processes and threads", gt=0)
    image: str | None = omitted_if_default(None, "a user's image to mount the build into; absent: the build alone")

    @property
    def slug(self) -> str:
        """`container`, or `container-published-cpus=0.5` with values that differ from the defaults."""
        cpus = None if self.cpus is None else f"{self.cpus:g}"
        memory = None if self.memory_bytes is None else _size(self.memory_bytes)
        limits = {"cpus": cpus, "memory": memory, "pids": self.pids}
        parts = [f"{name}={value}" for name, value in limits.items() if value is not None]
        if self.image is not None:
            # slug_text makes a name and a hash of a path, which keeps images of the same name distinct.
            parts.append(f"image={slug_text('/' + self.image)}")
        network = [self.network] if self.network != "host" else []
        return "-".join(["container", *network, *parts])


def _size(count: int) -> str:
    """An exact size, in the largest binary unit that divides it: `64MiB`."""
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if count % (1 << power) == 0:
            return f"{count >> power}{unit}"
    return f"{count}B"


class Variant(Frozen):
    """A server with its options (defaults included), protocol, route and place fixed.

    `http` and `tls` are the load's, on the first leg of the route.
    """

    entry: ServerEntry | AttachedServer
    options: dict[str, OptionValue] = {}
    http: HttpVersion = omitted_if_default("1.1")
    tls: Tls | None = omitted_if_default(None)
    route: Route | None = omitted_if_default(None, "absent if the load goes to the server directly")
    container: Container | None = omitted_if_default(None, "absent if it is a process of the machine")
    flags: FlagSet | None = omitted_if_default(None, "of its JVM, besides the flags from its options")

    def without(self, axis: str) -> "Variant":
        """The variant with the default on an axis that is not an option: `flags`, `route` or `in`."""
        nothing: dict[str, dict[str, object]] = {
            ROUTE: {"route": None, "http": "1.1", "tls": None},
            PLACE: {"container": None},
            FLAGS: {"flags": None},
        }
        return self.model_copy(update=nothing[axis])

    @property
    def catalogued(self) -> ServerEntry:
        """Its entry in the catalogue. Raises TypeError for a server that was already running."""
        if isinstance(self.entry, AttachedServer):
            raise TypeError(f"{self.entry.name} was already running: no catalogue says how it is built or started")
        return self.entry

    @property
    def is_attached(self) -> bool:
        """Whether its server was already running."""
        return isinstance(self.entry, AttachedServer)

    @property
    def is_of_containers(self) -> bool:
        """Whether it is a user's image or service."""
        return isinstance(self.entry, ServerEntry) and self.entry.is_of_containers

    @property
    def is_in_container(self) -> bool:
        """Whether it runs in a container."""
        return self.container is not None or self.is_of_containers

    @property
    def memory_limit_bytes(self) -> int | None:
        """The memory that its container may use; None for no limit, and for a process."""
        if isinstance(self.entry, ServerEntry) and self.entry.image is not None:
            return self.entry.image.memory_bytes
        return self.container.memory_bytes if self.container else None

    @property
    def runtime(self) -> str:
        """The runtime of its server, such as `jvm`; empty if not known."""
        return "" if isinstance(self.entry, AttachedServer) else self.entry.runtime

    @property
    def runtimes(self) -> tuple[str, ...]:
        """Runtimes of its server and the proxies in front of it."""
        return (self.runtime, *(hop.runtime for hop in self.hops))

    @property
    def slug(self) -> str:
        """`rust.axum`, or `rust.axum+routes=1` if an option differs; `+flags=…`, `+http2`, `+container`, `+via=…`."""
        added = [
            f"{name}={slug_text(value)}" for name, value in sorted(self.options.items()) if not self._default(name)
        ]
        added += [f"{FLAGS}={self.flags.name}"] if self.flags else []
        added += [] if self.is_own else self._protocol_slug
        added += [self.container.slug] if self.container else []
        added += [f"via={self.route.name}"] if self.route else []
        return "+".join([self.entry.name, *added])

    @property
    def full_slug(self) -> str:
        """`rust.axum+http=1.1+in=process+route=direct+routes=128+tls=off`: its values on all axes, by name."""
        tls = (self.tls.slug or "on") if self.tls else "off"
        options = {name: slug_text(value) for name, value in self.options.items()}
        axes = {**self.settings, **options, "http": self.http, "tls": tls}
        return "+".join([self.entry.name, *(f"{name}={axes[name]}" for name in sorted(axes))])

    @property
    def is_own(self) -> bool:
        """Whether it is a user's server, with its own name."""
        return bool(self.entry.label) if isinstance(self.entry, AttachedServer) else self.entry.build is None

    @property
    def is_revision(self) -> bool:
        """Whether it is built from a commit of the user's repository."""
        return not isinstance(self.entry, AttachedServer) and self.entry.checkout is not None

    @property
    def _protocol_slug(self) -> list[str]:
        says_http = self.route is None and (isinstance(self.entry, AttachedServer) or self.entry.kind == "server")
        http = ["http2"] if self.http == "2" and says_http else []
        return [*http, *([self.tls.slug] if self.tls and self.tls.slug else [])]

    @property
    def protocol(self) -> dict[str, object]:
        """Its version of HTTP and its TLS, if it is not plain HTTP/1.1; wherever the client's certificate is kept."""
        return self.model_dump(mode="json", include={"http", "tls"}, exclude={"tls": {"cert": {"file", "key_file"}}})

    @property
    def server(self) -> str:
        """The server that settings belong to: `rust.axum`; `rust.axum+http2` where it is loaded directly."""
        if self.route is not None:
            return self.entry.name
        http = ["http2"] if self.http == "2" else []
        return "+".join([self.entry.name, *http, *([self.tls.slug] if self.tls and self.tls.slug else [])])

    @property
    def settings(self) -> dict[str, str]:
        """Its values on all axes: options, flags of a JVM, route, and place."""
        flags = {FLAGS: self.flags.name if self.flags else NO_FLAGS} if self.runtime == "jvm" else {}
        options = {name: option_text(value) for name, value in self.options.items()}
        return {**options, **flags, ROUTE: self.route_name, PLACE: self.place}

    @property
    def route_name(self) -> str:
        """`direct` without a route."""
        return self.route.name if self.route else DIRECT

    @property
    def place(self) -> str:
        """`process`, or its container with values that differ from the defaults."""
        if self.container is None:
            return "container" if self.is_of_containers else "process"
        return self.container.slug

    @property
    def hops(self) -> tuple["Variant", ...]:
        """The proxies in front of the server, the client's first."""
        return self.route.hops if self.route else ()

    def at_revision(self, revision: Revision) -> "Variant":
        """The same variant, built from another revision of its repository."""
        return self.model_copy(update={"entry": self.catalogued.at_revision(revision)})

    def over(self, tls: Tls | None) -> "Variant":
        """The same variant with other TLS settings."""
        return self.model_copy(update={"tls": tls})

    def directly(self, http: HttpVersion, tls: Tls | None) -> "Variant":
        """The same variant without a route, loaded with this protocol."""
        return self.model_copy(update={"http": http, "tls": tls, "route": None})

    @property
    def without_hops(self) -> "Variant":
        """The same variant without proxies; clients use the protocol of the last proxy."""
        alone = self.route and self.route.model_copy(update={"legs": self.route.legs[-1:], "hops": ()})
        return self.model_copy(update={"route": alone})

    @property
    def serves(self) -> Leg:
        """The leg that the server itself serves, to clients or to the last proxy."""
        return self.route.legs[-1] if self.route else leg_of(self.http, tls=self.tls is not None)

    @property
    def content(self) -> dict[str, object]:
        """Everything that affects a measurement, ready for JSON."""
        routed = {"legs": self.route.legs, "hops": [hop.content for hop in self.route.hops]} if self.route else DIRECT
        placed = self.model_dump(mode="json", include={"container", "flags"})
        return {"server": self.entry.name, "options": self.options, **self.protocol, **placed, "route": routed}

    @property
    def misfit(self) -> str:
        """The reason why its server cannot have these options; empty if it can."""
        for name, value in self.options.items():
            if name in self.catalogued.options and not self.catalogued.takes(name, value):
                return self.catalogued.refusal(name, value)
        if self.flags is None:
            return ""
        if not jvm_words(self.catalogued.start.command):
            return f"{self.entry.name} takes no flags: its command does not start with {{java}}"
        return without_effect(self.flags.flags, self.options.get(JDK), self.options.get(GC))

    def _default(self, name: str) -> bool:
        option = self.catalogued.options.get(name)
        return option is not None and option.default == self.options[name]
