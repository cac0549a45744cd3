"""The result of an import: what a file of another tool asks for, as `--requests` reads it. Pure."""

from typing import Literal, NamedTuple

from redline.lazily import dataclass
from redline.schema.document import Plain

MOST_REQUESTS = 500
FEW_REQUESTS = 10
"""The default number of requests for a redline.yaml, which measures every request separately."""

Kind = Literal["request", "secret", "made", "value"]


@dataclass(frozen=True)
class Wanted:
    """Options of an import: names of secrets to keep, in lower case, the host to keep, and the number of requests.

    `times`: whether the times of the requests are read too.
    """

    keep: frozenset[str] = frozenset()
    host: str | None = None
    most: int = MOST_REQUESTS
    times: bool = False


class Foreign(NamedTuple):
    """A file of another tool: what it is, and what to do."""

    what: str
    hint: str


@dataclass(frozen=True)
class ImportNote:
    """A note about requests: their number, the reason, and an example.

    Depending on `kind` they are left out, sent without a secret, with generated values, or with recorded values that
    a server may no longer take.
    """

    count: int
    why: str
    example: str
    kind: Kind = "request"


class Arrival(NamedTuple):
    """A recorded request: its time since the first, in nanoseconds, and its index in the list of requests."""

    at_ns: int
    request: int


@dataclass(frozen=True)
class Imported:
    """The result of an import: `requests` as `--requests` reads them, most frequent first, and notes on omissions.

    `counts` are the numbers of original requests behind them. `host` is their destination, if the file says it.
    `arrivals` are those of the requests in the list, in their order in time, if wanted; `spread`: the file has whole
    seconds.
    """

    form: str
    requests: list[dict[str, Plain]]
    counts: list[int]
    left_out: list[ImportNote]
    host: str = ""
    body_files: tuple[str, ...] = ()
    arrivals: tuple["Arrival", ...] = ()
    spread: bool = False

    @property
    def total(self) -> int:
        """The number of requests in the file, listed and left out."""
        return sum(self.counts) + sum(left.count for left in self.left_out if left.kind == "request")
