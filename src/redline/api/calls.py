"""`load`, `ab`, `limit` and `run`: the arguments become what is asked for, and the rest is the command's way."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, TypeVar, Unpack

from rich.console import Console

from redline import analysis, api, defaults
from redline.api.arguments import checked_call
from redline.api.suites import WrittenSuite
from redline.api.work import at_work, console, folder_for
from redline.asking import places
from redline.asking.asks import Arrivals, ComparisonAsk, Listed, LoadAsk, SearchAsk, SuiteAsk, split
from redline.asking.opening import opened
from redline.asking.suites import suite_or_project
from redline.cli import commands
from redline.cli.turns import turn_of
from redline.driving.secrets import masked_call
from redline.entry_points import extra
from redline.errors import UsageError
from redline.files import as_store_error
from redline.quantities import parse_duration
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.quiet import Quiet
from redline.running.views_ahead import OF_VIEWS
from redline.schema.document import UnwrittenDocument, plain_data
from redline.wording import Call, advising, asked_by

if TYPE_CHECKING:  # what a load needs before it begins is imported alone
    from redline.running.session import SessionEnd

Requests = str | Path | Sequence[Mapping[str, object]]
"""A file of requests, or a list of them as such a file has it: `[{"name": "items", "get": "/items"}]`."""
Time = str | timedelta
A = TypeVar("A", LoadAsk, ComparisonAsk, SearchAsk, SuiteAsk)
R = TypeVar("R", "api.RunResult", "api.SearchResult")
_ADVICE = {
    "no suite": "give the file of a suite, or a redline.Suite; `redline init --help` says how to write that file"
}


class RequestOptions(TypedDict, total=False):
    """The request of `load`, `ab` and `limit`, and how its server is reached; all of it has a default.

    `requests`: several, in place of `method`, `headers`, `user` (`NAME:PASSWORD`), `oauth2_bearer`, `aws_sigv4`
    (`aws:amz:REGION:SERVICE`, with the key and its secret as `user`), `body` (a text, bytes, or the path of a file),
    `status` and `events`, which says that the answer is a stream of events: `sse until 20 stall 2s`. `scenarios`: only
    those of these names. `timeout`: when a request is given up. `http2`: speak HTTP/2.
    `insecure`: accept any certificate; `cacert`: one that is trusted; `cert` and `key`: the client's own.
    `target_is_mine`: hosts that are yours to load. The others say how a running server is reached, as the flags of
    those names do.
    """

    requests: Requests
    scenarios: str | Sequence[str]
    method: str
    headers: Mapping[str, str | Sequence[str]]
    user: str
    oauth2_bearer: str
    aws_sigv4: str
    body: str | bytes | Path
    compressed: bool
    status: int
    events: str
    timeout: Time
    http2: bool
    insecure: bool
    cacert: str | Path
    cert: str | Path
    key: str | Path
    sni: str
    tls_min: Literal["1.2", "1.3"]
    tls_max: Literal["1.2", "1.3"]
    ciphers: str
    no_session_resumption: bool
    unix_socket: str | Path
    connect_to: str | Sequence[str]
    resolve: str | Sequence[str]
    addresses: Literal["first", "all"]
    sources: str | Sequence[str]
    proxy: str
    target_is_mine: str | Sequence[str]


def load(  # noqa: PLR0913 - all but the first are named
    server: str | None = None,
    *,
    path: str | None = None,
    rate: float | str | None = None,
    users: int | None = None,
    connections: int | None = None,
    duration: Time | None = None,
    warmup: Time | None = None,
    objective: str | Sequence[str] = (),
    abort_when: str | Sequence[str] = (),
    replay: str | Path | None = None,
    speed: float | str | None = None,
    arrivals: Arrivals | None = None,
    think: Time | None = None,
    stages: str | Sequence[str] = (),
    depth: int = 1,
    count: int | None = None,
    threads: int = 1,
    seed: int = 1,
    wait: Time | None = None,
    alone: bool = False,
    log: str | Path | None = None,
    keep: str | Path | None = None,
    progress: bool = False,
    **request: Unpack[RequestOptions],
) -> "api.RunResult":
    """Load a running server by its URL, a command that is started for it, or the server of redline.yaml.

    As `redline load`: open at a `rate` of requests per second, on so many `connections`; else closed with `users`.
    `path` is what a command is asked for. The warm-up takes a second; with a `count` there is none, and that many
    requests are sent. `replay` is a file of due times, an access log or a HAR, replayed at `speed`.
    `log` is a file for single requests, .parquet or .csv, which `read_requests` reads.
    `keep` is a folder for the recording and its report. Ctrl-C raises MeasurementInterrupted, with what was measured.
    Raises RedlineError.
    """
    given = locals()
    is_open = rate is not None or replay is not None
    chosen = users if connections is None else connections
    own = {"connections": defaults.LOAD_CONNECTIONS if chosen is None else chosen}
    with _asked(LoadAsk, load, given, {} if is_open else {"connections": "users"}, **own) as asked:
        if not is_open and connections is not None:
            raise UsageError("connections are of a load with a rate", hint="give users=…, or a rate")
        if is_open and users is not None:
            raise UsageError("users are of a load without a rate", hint="give connections=…, or leave out the rate")
        order = commands.LoadOrder(
            opened(asked.ask)[0],
            asked.command,
            asked.folder,
            is_kept=keep is not None,
            needs_report=True,
            log=_path(log),
            later=(*OF_VIEWS, "redline.api.results"),
        )
        loaded = commands.measure(order, asked.workplace, commands.LoadOutputs(asked.shown))
        assert loaded.report is not None, "it is needed"
        result = api.RunResult(loaded.report, _path(keep))
    if loaded.unlogged is not None:
        raise loaded.unlogged
    return _whole(result, interrupted=loaded.result.ended == "interrupted")


def ab(  # noqa: PLR0913 - all but two are named
    a: str | None = None,
    b: str | None = None,
    *,
    git: str | None = None,
    path: str | None = None,
    route: str | None = None,
    names: Sequence[str] | None = None,
    budget: Time | None = None,
    users: int | None = None,
    rate: float | str | None = None,
    replay: str | Path | None = None,
    speed: float | str | None = None,
    metric: defaults.DuetMetric = "cpu",
    abort_when: str | Sequence[str] = (),
    threshold: str | None = None,
    same_answers: bool = False,
    parallel: bool = False,
    why: bool = False,
    builds: int = 1,
    seed: int = 1,
    wait_quiet: bool = False,
    wait: Time | None = None,
    alone: bool = False,
    keep: str | Path | None = None,
    progress: bool = False,
    **request: Unpack[RequestOptions],
) -> "api.RunResult":
    """Compare B with A, which are commands, URLs or revisions, or the two servers of redline.yaml: as `redline ab`.

    `budget` is how long it measures in all. The load has so many `users`, or a `rate` of requests per second, or
    replays a file, `replay`, at a `speed`.
    With `why`, further starts say in which functions their CPU time differs (`report.why` of the result). Revisions are
    built `builds` times.
    `verdict`, `slower` and `change` of the result are about B; `select("A")` and `select("B")` have their levels. Two
    `names` stand for A and B.
    Ctrl-C raises MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    with _asked(ComparisonAsk, ab, locals()) as asked:
        shown, view = asked.shown, commands.SessionView(asked.shown)
        ask = opened(asked.ask)[0]
        session = commands.created_comparison(ask, asked.command, asked.folder, asked.workplace, view, shown)
        if wait_quiet:
            commands.wait_until_quiet(shown)
        return _ended(session.execute(is_kept=keep is not None), keep)


def limit(  # noqa: PLR0913 - all but the servers are named
    *targets: str,
    objective: str | Sequence[str] = (),
    abort_when: str | Sequence[str] = (),
    git: str | None = None,
    path: str | None = None,
    budget: Time | None = None,
    duration: Time | None = None,
    warmup: Time | None = None,
    by_users: bool = False,
    start: float | str | None = None,
    probes: int = defaults.SEARCH_PROBES,
    precision: str = defaults.SEARCH_PRECISION,
    trials: int | None = None,
    no_beyond: bool = False,
    arrivals: Arrivals | None = None,
    replay: str | Path | None = None,
    connections: int | None = None,
    threads: int | None = None,
    threshold: str | None = None,
    seed: int | None = None,
    wait_quiet: bool = False,
    wait: Time | None = None,
    alone: bool = False,
    keep: str | Path | None = None,
    progress: bool = False,
    **request: Unpack[RequestOptions],
) -> "api.SearchResult":
    """Find the highest rate, or `by_users` the most users, with which servers meet an objective: as `redline limit`.

    `targets` are commands, URLs, revisions or files of suites; without any, redline.yaml has the servers. `budget` is
    about the most that it takes in all. `replay` is what is sent, as in `load`, and `start` then a speed, such as 2x.
    The search of a suite is kept in `runs`, as by the command, where `keep` names no folder. Ctrl-C raises
    MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    with _asked(SearchAsk, limit, locals()) as asked:
        shown, view = asked.shown, commands.SessionView(asked.shown)
        ask = opened(asked.ask)[0]
        session = commands.created_search(ask, asked.command, _path(keep), asked.workplace, view, shown)
        if wait_quiet:
            with session.uncounted():
                commands.wait_until_quiet(shown)
        report, interrupted = commands.search(session, view, is_kept=session.is_kept)
        result = api.SearchResult(report, session.store.folder if session.is_kept else None)
    return _whole(result, interrupted=interrupted)


def run(  # noqa: PLR0913 - all but the suite are named
    suite: WrittenSuite | str | Path | None = None,
    *,
    servers: str | Sequence[str] = (),
    scenarios: str | Sequence[str] = (),
    loads: str | Sequence[str] = (),
    options: Mapping[str, object] | None = None,
    users: int | None = None,
    duration: Time | None = None,
    warmup: Time | None = None,
    trials: int | None = None,
    seed: int | None = None,
    quick: bool = False,
    profile: str | Sequence[str] = (),
    scale: str | float | None = None,
    screen: bool = False,
    on: str | None = None,
    wait_quiet: bool = False,
    wait: Time | None = None,
    alone: bool = False,
    keep: str | Path | None = None,
    progress: bool = False,
) -> "api.RunResult":
    """Run a suite, or the servers of redline.yaml: as `redline run`.

    What is named besides the suite selects parts of it, and changes it. `keep` is a folder for all recordings and the
    report. Ctrl-C raises MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    with _asked(SuiteAsk, run, locals()) as asked:
        written = suite if suite is None or isinstance(suite, WrittenSuite) else WrittenSuite.read(suite)
        common = asked.folder, asked.workplace, commands.SessionView(asked.shown), asked.shown
        if written is None or written.file is not None:
            file = suite_or_project(None) if written is None or written.file is None else written.file
            session = commands.created_run(file, asked.ask, asked.command, *common)
        else:
            resolved, text = written.resolved(asked.ask)
            source, near = Source(asked.command(), text=text), written.folder / "suite.yaml"
            session = commands.created_run_of(resolved, source, near, *common)
        quiet = Quiet(parse_duration(defaults.QUIET) / 1e9) if wait_quiet else None
        return _ended(session.execute(is_kept=keep is not None, quiet=quiet), keep)


def read_requests(file: str | Path) -> Any:
    """Read the single requests that `load(…, log=file)` or `redline load --log` wrote, as a `pyarrow.Table`.

    Its `one_of` is 1, or how many requests each row stands for in a sample. Raises UsageError without pyarrow, and
    StoreError where there is no such file.
    """
    path = Path(file)
    with as_store_error(path, begun=False):
        return extra("exports", "read_requests()").request_table(path)


@dataclass(frozen=True)
class _Asked(Generic[A]):
    """What a call asks for, how the call is written, and with what and where it is measured."""

    ask: A
    command: Callable[[], str]
    folder: Path
    workplace: Workplace
    shown: Console


@contextmanager
def _asked(
    kind: type[A],
    function: Callable[..., object],
    given: Mapping[str, Any],
    names: Mapping[str, str] = {},
    **own: object,
) -> Iterator[_Asked[A]]:
    """What the arguments of a call ask for, `own` fields as they are, for a block that measures it.

    Errors name parameters; `names` are those that are not called as their parts. Raises TypeError and UsageError.
    """
    command = partial(masked_call, checked_call(function, given))
    with asked_by(Call(names)), advising(_ADVICE), at_work() as stack:
        ask, shown, on = _ask(kind, function, given, **own), console(progress=given["progress"]), given.get("on")
        turn = turn_of(f"redline.{function.__name__}", shown, _text(given["wait"]), alone=given["alone"], on=on)
        workplace = Workplace(on, stack, places.of_suite, turn=turn)
        yield _Asked(ask, command, folder_for(given["keep"], stack), workplace, shown)


def _whole(result: R, *, interrupted: bool) -> R:
    """The result. Raises MeasurementInterrupted with that of an interrupted measurement."""
    if interrupted:
        raise api.MeasurementInterrupted(result)
    return result


def _ended(end: "SessionEnd", keep: str | Path | None) -> "api.RunResult":
    store, report = end.parts[-1]
    not_compared = analysis.not_compared(store.manifest().plan)
    return _whole(api.RunResult(report, _path(keep), not_compared=not_compared), interrupted=end.interrupted)


def _ask(kind: type[A], function: Callable[..., object], given: Mapping[str, Any], **own: object) -> A:
    request: dict[str, Any] = given.get("request", {})
    if unknown := sorted(set(request) - set(RequestOptions.__annotations__)):
        raise TypeError(f"there is no argument {unknown[0]!r}: see help(redline.{function.__name__})")
    asked = {field.name: given[field.name] for field in fields(kind) if given.get(field.name) is not None} | request
    requests = asked.pop("requests", None)
    if isinstance(requests, (str, os.PathLike)):
        asked["requests"] = Path(requests)
    elif requests is not None:
        data = plain_data(list(requests), "the list of requests")
        asked["listed"] = Listed(UnwrittenDocument("requests", data))
    for names, read in _READ.items():
        asked |= {name: read(asked[name]) for name in names if name in asked}
    made: A = kind(**asked | own)
    return made


def _text(value: Time | None) -> str | None:
    """A length of time as suites have it."""
    return f"{value / timedelta(microseconds=1):.0f}us" if isinstance(value, timedelta) else value


def _number(value: float | str) -> float | str:
    """A number of any library as one of Python's."""
    return int(value) if isinstance(value, Integral) else float(value) if isinstance(value, Real) else value


def _listed(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(map(str, given))


def _options(options: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """Options of a server as a suite has them: on and off are texts there."""
    texts = {True: "on", False: "off"}
    return tuple((name, texts[value] if isinstance(value, bool) else str(value)) for name, value in options.items())


def _path(keep: str | Path | None) -> Path | None:
    return None if keep is None else Path(keep)


_READ: Mapping[tuple[str, ...], Callable[[Any], object]] = {
    ("duration", "warmup", "think", "budget", "timeout"): _text,
    ("rate", "speed", "start"): _number,
    ("replay", "cacert", "cert", "key", "unix_socket"): Path,
    ("body",): lambda body: Path(body) if isinstance(body, os.PathLike) else body,
    ("headers",): lambda headers: tuple((name, value) for name, values in headers.items() for value in _listed(values)),
    ("objective", "abort_when", "stages", "connect_to", "resolve", "sources", "target_is_mine"): _listed,
    ("servers", "scenarios", "loads", "profile"): lambda names: split(_listed(names)),
    ("options",): _options,
    ("names",): tuple,
}
"""How arguments of these names are read, whichever function has them; others are what is asked for."""
