"""What is asked for: a request, and a load, a comparison, a search or a suite of it. Frozen; None is not asked for.

Field names are the parts that `redline.wording` writes as flags or as parameters.
"""

from collections.abc import Container, Iterable
from dataclasses import fields
from pathlib import Path
from typing import Literal, NamedTuple

from redline import defaults
from redline.asking.imported import Recorded
from redline.lazily import dataclass
from redline.schema.document import Document
from redline.wording import part

Arrivals = Literal["poisson", "uniform"]
DETECTED = "auto"
"""The value of a warm-up that ends when the server is steady."""
_MOST_DIGITS = 15


def split(texts: Iterable[str] | None) -> tuple[str, ...]:
    """The names in texts, with commas between them; an empty name, which nothing has, for a text without any."""
    named = ([name.strip() for name in text.split(",") if name.strip()] for text in texts or ())
    return tuple(name for names in named for name in names or [""])


def whole(text: str) -> str | int:
    """A whole number as such, which a suite holds without quotes; another or a longer text as it is, to be refused."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else text


class Listed(NamedTuple):
    """A list of requests, or a journey, as it was read. `is_traffic`: it was recorded, and is sent as a whole."""

    document: Document
    is_traffic: bool = False


@dataclass(frozen=True, kw_only=True)
class RequestAsk:
    """A request, and how its server is reached.

    `requests` is a file of several, and `listed` is what it holds, or what a program lists. Bytes of a `body` are sent
    as they are, and so is the file of a path.
    """

    headers: tuple[tuple[str, str], ...] = ()
    user_agent: str | None = None
    cookie: tuple[str, ...] = ()
    referer: str | None = None
    user: str | None = None
    oauth2_bearer: str | None = None
    aws_sigv4: str | None = None
    method: str | None = None
    head: bool = False
    body: str | bytes | Path | None = None
    compressed: bool = False
    status: int | None = None
    events: str | None = None
    requests: Path | None = None
    listed: Listed | None = None
    scenarios: tuple[str, ...] = ()
    timeout: str | None = None
    http2: bool = False
    no_keepalive: bool = False
    insecure: bool = False
    cacert: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    sni: str | None = None
    tls_min: str | None = None
    tls_max: str | None = None
    ciphers: str | None = None
    no_session_resumption: bool = False
    unix_socket: Path | None = None
    connect_to: tuple[str, ...] = ()
    resolve: tuple[str, ...] = ()
    addresses: str | None = None
    sources: tuple[str, ...] = ()
    proxy: str | None = None
    target_is_mine: tuple[str, ...] = ()

    def differing(self, among: Container[str]) -> tuple[str, ...]:
        """The fields among these that differ from their defaults, in their order."""
        return tuple(
            field.name for field in fields(self) if field.name in among and getattr(self, field.name) != field.default
        )

    def given(self, among: Container[str]) -> tuple[str, ...]:
        """What is asked for among these fields, as whoever asks writes it."""
        return tuple(map(part, self.differing(among)))

    @property
    def targets_named(self) -> tuple[str, ...]:
        """The servers that are named."""
        return ()


@dataclass(frozen=True, kw_only=True)
class LoadAsk(RequestAsk):
    """A load of a server: its URL, a command that starts it, or None for that of redline.yaml."""

    server: str | None = None
    path: str | None = None
    connections: int = defaults.LOAD_CONNECTIONS
    connections_at_start: int | None = None
    duration: str | None = None
    rate: str | float | None = None
    arrivals: Arrivals | None = None
    replay: Path | None = None
    recorded: Recorded | None = None
    speed: str | float | None = None
    depth: int = 1
    think: str | None = None
    pace: str | None = None
    stages: tuple[str, ...] = ()
    count: int | None = None
    objective: tuple[str, ...] = ()
    abort_when: tuple[str, ...] = ()
    requests_per_connection: int | None = None
    backend: str = "auto"
    spin: bool = False
    threads: int = 1
    warmup: str | None = None
    seed: int = 1

    @property
    def is_open(self) -> bool:
        """Whether requests are due at times of their own."""
        return self.rate is not None or self.replay is not None

    @property
    def targets_named(self) -> tuple[str, ...]:
        """The server, if it is named."""
        return () if self.server is None else (self.server,)


@dataclass(frozen=True, kw_only=True)
class ComparisonAsk(RequestAsk):
    """A comparison of B with A: commands, URLs or revisions, or the two servers of redline.yaml."""

    a: str | None = None
    b: str | None = None
    git: str | None = None
    names: tuple[str, ...] | None = None
    path: str | None = None
    route: str | None = None
    budget: str | None = None
    users: int | None = None
    rate: str | float | None = None
    replay: Path | None = None
    recorded: Recorded | None = None
    speed: str | float | None = None
    metric: str = "cpu"
    abort_when: tuple[str, ...] = ()
    same_answers: bool = False
    parallel: bool = False
    why: bool = False
    builds: int = 1
    seed: int = 1
    threshold: str | None = None

    @property
    def targets_named(self) -> tuple[str, ...]:
        """Those of the two that are named."""
        return tuple(target for target in (self.a, self.b) if target is not None)


@dataclass(frozen=True, kw_only=True)
class SearchAsk(RequestAsk):
    """A search for the highest rate, or the most users, that meet an objective; `targets` may be suites."""

    targets: tuple[str, ...] = ()
    git: str | None = None
    path: str | None = None
    objective: tuple[str, ...] = ()
    abort_when: tuple[str, ...] = ()
    servers: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    quick: bool = False
    budget: str | None = None
    duration: str | None = None
    warmup: str | None = None
    by_users: bool = False
    start: str | float | None = None
    probes: int = defaults.SEARCH_PROBES
    precision: str = defaults.SEARCH_PRECISION
    trials: int | None = None
    no_beyond: bool = False
    on: str | None = None
    seed: int | None = None
    arrivals: Arrivals | None = None
    replay: Path | None = None
    recorded: Recorded | None = None
    connections: int | None = None
    threads: int | None = None
    threshold: str | None = None

    @property
    def targets_named(self) -> tuple[str, ...]:
        """All of them."""
        return self.targets


@dataclass(frozen=True, kw_only=True)
class SuiteAsk:
    """Parts of a suite, and what is changed in it."""

    servers: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    scenarios: tuple[str, ...] = ()
    loads: tuple[str, ...] = ()
    users: int | None = None
    duration: str | None = None
    warmup: str | None = None
    trials: int | None = None
    seed: int | None = None
    quick: bool = False
    profile: tuple[str, ...] = ()
    scale: str | float | None = None
    screen: bool = False
