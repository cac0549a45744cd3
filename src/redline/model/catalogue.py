"""An entry of the catalogue: a server that can be built, started, checked and stopped. Read from `server.yaml`."""

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field

from redline.model.base import Frozen, omitted_if_default
from redline.model.way import Access, ClientCertificate

OptionValue = str | int | bool
HttpVersion = Literal["1.1", "2"]
TlsVersion = Literal["1.2", "1.3"]
Leg = Literal["h1", "h1+tls", "h2c", "h2+tls"]
"""The protocol between two neighbours of a route: HTTP/1.1 or HTTP/2, plain or over TLS."""

UPSTREAM = ("upstream_host", "upstream_port", "upstream_protocol", "upstream_ca")  # the server behind a proxy
FILLED_BY_THE_LAB = ("port", "host", "folder", "bin", "cpus", "scratch", "java", "protocol", *UPSTREAM)
JDK = "jdk"  # the option that decides what `{java}` is
ON_PATH = "path"  # the value of that option that means the java on the PATH
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PASSED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_IN_BRACES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_-]*)\}")


def names_in_braces(text: str) -> tuple[str, ...]:
    """The names in braces in a server's command or environment, in order. Other braces are left alone."""
    return tuple(_IN_BRACES.findall(text))


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with names in braces replaced by their values. All names must be known, as the catalogue checks."""
    return _IN_BRACES.sub(lambda match: values[match[1]], text)


def passed_names(text: str) -> tuple[str, ...]:
    """The names in `${NAME}`: variables of the lab's own environment."""
    return tuple(_PASSED.findall(text))


def filled_names(text: str) -> tuple[str, ...]:
    """The names in braces that are not passed."""
    return names_in_braces(_PASSED.sub("", text))


def with_passed(text: str, values: Mapping[str, str], passed: Mapping[str, str]) -> str:
    """The text with `{name}` replaced by values and `${NAME}` by passed variables, whose braces stay."""
    parts = _PASSED.split(text)
    return "".join(passed[part] if at % 2 else filled(part, values) for at, part in enumerate(parts))


def leg_of(http: HttpVersion, *, tls: bool) -> Leg:
    """The leg for a version of HTTP, over TLS or plain."""
    if http == "2":
        return "h2+tls" if tls else "h2c"
    return "h1+tls" if tls else "h1"


def http_of(leg: Leg) -> HttpVersion:
    """A leg's version of HTTP."""
    return "1.1" if leg.startswith("h1") else "2"


def has_tls(leg: Leg) -> bool:
    """Whether a leg uses TLS."""
    return leg.endswith("+tls")


def option_text(value: OptionValue) -> str:
    """An option's value as text for slugs and servers: `on` and `off` for booleans."""
    return ("on" if value else "off") if isinstance(value, bool) else str(value)


def as_written(value: OptionValue) -> str:
    """An option's value in YAML: `true` and `false` for booleans."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_among(value: OptionValue, values: Iterable[OptionValue]) -> bool:
    """Whether a value is among others; unlike Python's `in`, it distinguishes `true` from 1."""
    return any(type(value) is type(other) and value == other for other in values)


def slug_text(value: OptionValue) -> str:
    """A value as a part of a file name; a path becomes its last component and a hash of all of it."""
    text = option_text(value)
    if "/" not in text:
        return text
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", PurePosixPath(text).name).strip("-.") or "root"
    return f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def _with_target(texts: Iterable[str], target: str) -> Iterator[str]:
    return (text.replace("{target}", target) for text in texts)


class Tool(Frozen):
    """A tool that a build or a start needs on the PATH, and a hint for its installation."""

    command: str
    version: tuple[str, ...] = ()
    hint: str


class Build(Frozen):
    """How a server is built, again if the content of `inputs` (globs) has changed.

    Paths are relative to `folder`, and `folder` to the family's folder. A `target` is appended to `run`; builds that
    differ only in their target share a command.
    """

    run: tuple[str, ...] = Field(min_length=1)
    folder: str = "."
    inputs: tuple[str, ...] = Field(min_length=1)
    outputs: tuple[str, ...] = Field(min_length=1)
    needs: tuple[Tool, ...] = ()
    target: str | None = omitted_if_default(None)


class Start(Frozen):
    """How a built server is started.

    A user's container has no `command`: its image has one.

    `command` and `env` may hold `{port}`, `{folder}` (of the build), `{NAME}` (an option's value), `{cpus}` (the number
    of its cores), `{scratch}` (an empty folder for the trial), `{java}` (of the JDK that the option `jdk` names) and
    `{protocol}` (the leg to serve); those of a proxy also `{upstream_host}`, `{upstream_port}`, `{upstream_protocol}`
    and `{upstream_ca}` (a PEM file, or empty). In the `env` of a server of the user's, `${NAME}` is a variable of the
    lab's environment; it and what `env_file` holds are read at every start, and never stored.
    """

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    needs: tuple[Tool, ...] = ()
    env_file: str | None = omitted_if_default(None, "a file of further variables; `env` takes precedence")
    before: str | None = omitted_if_default(None, "commands for `sh`, before each start")
    prepare: str | None = omitted_if_default(None, "commands for `sh`, once it is ready, before it gets other requests")
    after: str | None = omitted_if_default(None, "commands for `sh`, once it has stopped")


class Ready(Frozen):
    """A server is ready when `GET path` with `headers` is answered with `status`, within `within_ns` of its start."""

    path: str = "/"
    headers: dict[str, str | tuple[str, ...]] = omitted_if_default({})
    status: int = 200
    within_ns: int = 10_000_000_000
    any_status: bool = omitted_if_default(
        default=False,
        description="a status below 500 that stays is enough too: a server may lack the first of several requests",
    )

    def within(self, ns: int) -> "Ready":
        """The same request with another time limit."""
        return self.model_copy(update={"within_ns": ns})


class Stop(Frozen):
    """SIGTERM, and SIGKILL after `within_ns`."""

    within_ns: int = 5_000_000_000


class Option(Frozen):
    """An option of a server: its possible values and its default."""

    about: str = ""
    values: tuple[OptionValue, ...] = Field(min_length=1)
    default: OptionValue


class ServedTls(Frozen):
    """The certificate of a server on its legs with TLS: its authority (`ca`, in the build's folder) and its name."""

    ca: str | None = Field(default=None, description="a PEM file; default: the system's authorities")
    server_name: str | None = None


def certificates(pem: str) -> str:
    """The certificates in a PEM file (RFC 7468), without anything else, such as a key; empty without any."""
    return "".join(f"{certificate}\n" for certificate in _CERTIFICATE.findall(pem))


def sha256_of(pem: str) -> str | None:
    """The SHA-256 in hex of the first certificate of a PEM file, as `openssl x509 -fingerprint`; None without any."""
    first = _CERTIFICATE.search(pem)
    if first is None:
        return None
    lines = [line for line in first[0].splitlines() if line and not line.startswith("-----")]
    try:
        return hashlib.sha256(base64.b64decode("".join(lines), validate=True)).hexdigest()
    except ValueError:
        return None


class Tls(Frozen):
    """A load's TLS settings. `ca_pem` is trusted in place of the authority in the server's entry, or the system's."""

    ca_pem: str | None = None
    insecure: bool = Field(default=False, description="any certificate is accepted, so any server may have answered")
    server_name: str | None = None
    versions: tuple[TlsVersion, ...] = Field(default=("1.2", "1.3"), min_length=1)
    resumption: bool = True
    ciphers: tuple[str, ...] = omitted_if_default((), "suites that may be negotiated, by name; empty: all")
    cert: ClientCertificate | None = omitted_if_default(None, "what is shown to servers that ask for a certificate")

    def accepting(self, *, anybody: bool) -> "Tls":
        """The same settings, which accept any certificate or only valid certificates."""
        return self.model_copy(update={"insecure": anybody})

    def named(self, server_name: str | None) -> "Tls":
        """The same settings with this name in the certificate."""
        return self.model_copy(update={"server_name": server_name})

    @property
    def slug(self) -> str:
        """Settings other than the defaults, as a part of a variant's slug; empty without any."""
        parts = ["insecure"] if self.insecure else []
        parts += [f"tls{self.versions[0]}"] if len(self.versions) == 1 else []
        parts += [] if self.resumption else ["no-resumption"]
        parts += [f"ciphers={'-'.join(self.ciphers)}"] if self.ciphers else []
        return "+".join(parts)


WORK_TREE = "the work tree"
"""The name of the revision that the current tracked files are."""


class Revision(Frozen):
    """A commit and the user's name for it."""

    name: str
    commit: str

    def __str__(self) -> str:
        return f"{self.name} ({self.commit[:9]})"


class Checkout(Frozen):
    """A revision of a git repository, and its build in the folder `below` the repository's top folder."""

    repository: str = Field(description="its topmost folder")
    revision: Revision
    build: str | None = Field(description="commands for `sh`")
    below: str


class OwnImage(Frozen):
    """A user's image, which runs as it is."""

    name: str
    port: int | None = omitted_if_default(None, "its port in the container; absent: the port that the image exposes")
    cpus: float | None = omitted_if_default(None, "cores' worth of CPU time, a quota", gt=0)
    memory_bytes: int | None = omitted_if_default(None, "memory, without swap", gt=0)


Fresh = Literal["all", "service"]
"""What of a compose file starts for each start: all services, or the measured one and what depends on it."""


class ComposeService(Frozen):
    """The measured service of a compose file, which starts with all other services of the file."""

    file: str
    service: str
    port: int = Field(description="its port in the container")
    fresh: Fresh = omitted_if_default("all", "what starts for each start; other services do once, for all of them")


class ServerEntry(Frozen):
    """A server to start: a catalogue server with its full name `family.name` and a `build`; or a user's server.

    The user's command is started in `family_folder`, or, with a `checkout`, where that revision was built. Instead of
    a command, the user may give an `image`, or a service of `compose`.
    """

    name: str
    about: str
    runtime: str
    family_folder: str
    build: Build | None = omitted_if_default(None, "absent for a user's server")
    checkout: Checkout | None = omitted_if_default(None, "the revision that it is built from, if any")
    image: OwnImage | None = omitted_if_default(None, "the image that it runs in, if the user names one")
    compose: ComposeService | None = omitted_if_default(None, "the service that it is, if the user names one")
    launcher: str | None = omitted_if_default(None, "the launcher of another package that starts it, if any")
    start: Start
    ready: Ready = Ready()
    stop: Stop = Stop()
    options: dict[str, Option] = {}
    http: tuple[HttpVersion, ...] = omitted_if_default(("1.1",), "the versions of HTTP that it supports", min_length=1)
    tls: ServedTls | None = omitted_if_default(None, "its certificate; without `protocols`: if it serves TLS only")
    kind: Literal["server", "proxy"] = omitted_if_default("server")
    protocols: tuple[Leg, ...] = omitted_if_default((), "the legs that it can serve; empty: as `http` and `tls` say")
    upstream: tuple[Leg, ...] = omitted_if_default((), "the legs that a proxy can use to the server behind it")

    def at_revision(self, revision: Revision) -> "ServerEntry":
        """The same server, built from another revision of its repository."""
        assert self.checkout is not None, "it is a revision"
        return self.model_copy(update={"checkout": self.checkout.model_copy(update={"revision": revision})})

    def at_version(self, label: str, version: str, own: str) -> "ServerEntry":
        """The server `family.name@label`, in the exact version that the label stands for; `about` has its `own`."""
        about = self.about if version == own else f"{self.about}; here {version} in place of {own}"
        return self.model_copy(update={"name": f"{self.name}@{label}", "about": about})

    def built_as(self, target: str) -> "ServerEntry":
        """The same server, built as this target, whose name stands in the place of `{target}`."""
        build, start, tls = self.catalogue_build, self.start, self.tls
        outputs = tuple(_with_target(build.outputs, target))
        command = tuple(_with_target(start.command, target))
        env = dict(zip(start.env, _with_target(start.env.values(), target), strict=True))
        if tls is not None and tls.ca is not None:
            tls = tls.model_copy(update={"ca": tls.ca.replace("{target}", target)})
        return self.model_copy(
            update={
                "build": build.model_copy(update={"target": target, "outputs": outputs}),
                "start": start.model_copy(update={"command": command, "env": env}),
                "tls": tls,
            }
        )

    def started_by(self, command: tuple[str, ...]) -> "ServerEntry":
        """The same server, started by another command."""
        start = self.start.model_copy(update={"command": command})
        return self.model_copy(update={"start": start})

    @property
    def is_of_containers(self) -> bool:
        """Whether it is a user's image or service, and not a command."""
        return self.image is not None or self.compose is not None

    @property
    def serves(self) -> tuple[Leg, ...]:
        """The legs that it can serve to clients."""
        return self.protocols or tuple(leg_of(version, tls=self.tls is not None) for version in self.http)

    @property
    def needs_protocol(self) -> bool:
        """Whether its command needs the leg to serve: it cannot serve all of its legs at the same time."""
        return len({(has_tls(leg), "both" if "2" in self.http else http_of(leg)) for leg in self.protocols}) > 1

    @property
    def catalogue_build(self) -> Build:
        """The catalogue's build. Raises TypeError for a user's server."""
        if self.build is None:
            raise TypeError(f"{self.name} is a user's server, which no catalogue builds")
        return self.build

    @property
    def build_folder(self) -> str:
        """The folder in which the build runs."""
        return str(PurePosixPath(self.family_folder) / self.catalogue_build.folder)

    def takes(self, name: str, value: OptionValue) -> bool:
        """Whether the option can have the value; for a JDK also `path`, and the absolute path of any JDK's home."""
        if name == JDK and name in self.options and isinstance(value, str):
            return value == ON_PATH or value.startswith("/")
        return name in self.options and is_among(value, self.options[name].values)

    def refusal(self, name: str, value: OptionValue) -> str:
        """The error message for a value that an option does not have."""
        known = ", ".join(option_text(other) for other in self.options[name].values)
        return f"{self.name} does not take {name} {option_text(value)}, only {known}"

    @property
    def releases(self) -> tuple[int, ...]:
        """Feature releases of JDKs that it runs on; empty if any will do."""
        known = self.options[JDK].values if JDK in self.options else ()
        return tuple(value for value in known if isinstance(value, int) and not isinstance(value, bool))


class AttachedServer(Frozen):
    """A running server, known by its address alone. `label` is its name in a suite."""

    host: str
    port: int
    label: str = omitted_if_default("")
    ready: Ready | None = omitted_if_default(None, "the readiness request of proxies in front of it")
    way: Access = omitted_if_default(Access(), "how connections reach it, if its address does not say it")

    @property
    def name(self) -> str:
        """Its label, or its address: `127.0.0.1:8080`; of a Unix socket its file."""
        return self.label or PurePosixPath(self.way.socket).name or f"{self.host}:{self.port}"
