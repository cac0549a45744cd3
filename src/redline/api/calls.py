"""`load`, `ab`, `limit` and `run`: the arguments become the flags of the command, and the rest is the command's way."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from redline import defaults
from redline.analysis.compare import not_compared
from redline.api.arguments import checked_call
from redline.api.results import MeasurementInterrupted, RunResult, SearchResult
from redline.api.suites import WrittenSuite, plain_data
from redline.api.words import in_words_of_python
from redline.api.work import at_work, console, folder_for
from redline.cli import places
from redline.cli.command_line import AbFlags, Arrivals, DuetMetric, LimitFlags, LoadFlags, RunFlags
from redline.cli.commands import ab as ab_command
from redline.cli.commands import limit as limit_command
from redline.cli.commands import load as load_command
from redline.cli.commands import run as run_command
from redline.cli.declaring import Flags
from redline.cli.experiment import search
from redline.cli.load_view import load_section
from redline.cli.quiet import wait_until_quiet
from redline.cli.session_view import SessionView
from redline.cli.turns import turn_of
from redline.errors import UsageError
from redline.running.assembly import Workplace
from redline.running.manifests import Source
from redline.running.session import SessionEnd
from redline.running.views import run_report
from redline.suite.schema.document import UnwrittenDocument

Requests = str | Path | Sequence[Mapping[str, object]]
"""A file of requests, or a list of them as such a file has it: `[{"name": "items", "get": "/items"}]`."""
Time = str | timedelta
F = TypeVar("F", bound=Flags)
_FILES = ("cacert", "cert", "key", "unix_socket")
_LISTS = ("connect_to", "resolve", "sources")


class RequestOptions(TypedDict, total=False):
    """The request of `load`, `ab` and `limit`, and how its server is reached; all of it has a default.

    `requests`: several, in place of `method`, `headers`, `user` (`NAME:PASSWORD`), `oauth2_bearer`, `aws_sigv4`
    (`aws:amz:REGION:SERVICE`, with the key and its secret as `user`), `body` (a text, or the path of a file), `status`
    and `events`, which says that the answer is a stream of events: `sse until 20 stall 2s`. `scenarios`: only those of
    these names. `timeout`: when a request is given up. `http2`: speak HTTP/2.
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
    body: str | Path
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
    duration: Time = defaults.LOAD_LENGTH,
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
    keep: str | Path | None = None,
    progress: bool = False,
    **request: Unpack[RequestOptions],
) -> RunResult:
    """Load a running server by its URL, a command that is started for it, or the server of redline.yaml.

    As `redline load`: open at a `rate` of requests per second, on so many `connections`; else closed with `users`.
    `path` is what a command is asked for. The warm-up takes a second; with a `count` there is none, and that many
    requests are sent. `replay` is a file of due times, an access log or a HAR, replayed at `speed`.
    `keep` is a folder for the recording and its report. Ctrl-C raises MeasurementInterrupted, with what was measured.
    Raises RedlineError.
    """
    called = checked_call(load, locals())
    given = {"users": users, "connections": connections}
    is_open = rate is not None or replay is not None
    if not is_open and connections is not None:
        raise UsageError("connections are of a load with a rate", hint="give users=…, or a rate")
    if is_open and users is not None:
        raise UsageError("users are of a load without a rate", hint="give connections=…, or leave out the rate")
    chosen = next((number for number in given.values() if number is not None), None)
    flags = _flags(
        LoadFlags,
        called,
        request,
        url=server,
        path=path,
        rate=_text(rate),
        connections=chosen,
        duration=_text(duration),
        warmup=_text(warmup),
        objective=_listed(objective),
        abort_when=_listed(abort_when),
        replay=_path(replay),
        speed=_text(speed),
        arrivals=arrivals,
        think=_text(think),
        stages=_listed(stages),
        depth=depth,
        count=count,
        threads=threads,
        seed=seed,
        wait=_text(wait),
        alone=alone,
        output=_path(keep),
    )
    names = {"connections": "connections" if is_open else "users"}
    with in_words_of_python(LoadFlags, names, [server]), at_work() as stack:
        folder = folder_for(keep, stack)
        shown = console(progress=progress)
        workplace = Workplace(None, stack, places.of_suite, turn=turn_of(flags, "", shown))
        outputs = load_command.LoadOutputs(shown)
        store, _, made = load_command.measure(flags, folder, workplace, outputs)
        result = RunResult(run_report(store), _path(keep), lambda: [load_section(made)])
    if made.ended == "interrupted":
        raise MeasurementInterrupted(result)
    return result


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
    metric: DuetMetric = "cpu",
    abort_when: str | Sequence[str] = (),
    threshold: str | None = None,
    same_answers: bool = False,
    parallel: bool = False,
    seed: int = 1,
    wait_quiet: bool = False,
    wait: Time | None = None,
    alone: bool = False,
    keep: str | Path | None = None,
    progress: bool = False,
    **request: Unpack[RequestOptions],
) -> RunResult:
    """Compare B with A, which are commands, URLs or revisions, or the two servers of redline.yaml: as `redline ab`.

    `budget` is how long it measures in all. The load has so many `users`, or a `rate` of requests per second, or
    replays a file, `replay`, at a `speed`.
    `verdict`, `slower` and `change` of the result are about B; `select("A")` and `select("B")` have their levels. Two
    `names` stand for A and B.
    Ctrl-C raises MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    called = checked_call(ab, locals())
    if users is not None and rate is not None:
        raise UsageError("a load has users or a rate", hint="leave out one of the two")
    shape = f"open:{rate}" if rate is not None else defaults.AB_LOAD if users is None else f"closed:{users}"
    flags = _flags(
        AbFlags,
        called,
        request,
        a=a,
        b=b,
        git=git,
        path=path,
        route=route,
        names=None if names is None else ",".join(names),
        lasts=_text(budget),
        load=shape,
        replay=_path(replay),
        speed=_text(speed),
        metric=metric,
        abort_when=_listed(abort_when),
        threshold=threshold,
        same_answers=same_answers,
        parallel=parallel,
        seed=seed,
        wait=_text(wait),
        alone=alone,
        output=_path(keep),
    )
    if users is not None or rate is not None:
        flags.typed = frozenset({"load"})  # it goes before the loads of redline.yaml, also where it is the default
    with in_words_of_python(AbFlags, {"load": "the load"}, [a, b]), at_work() as stack:
        shown = console(progress=progress)
        workplace = Workplace(None, stack, places.of_suite, turn=turn_of(flags, "", shown))
        session = ab_command.created(flags, folder_for(keep, stack), workplace, SessionView(shown), shown)
        if wait_quiet:
            wait_until_quiet(shown)
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
) -> SearchResult:
    """Find the highest rate at which servers meet an objective: as `redline limit`.

    `targets` are commands, URLs, revisions or files of suites; without any, redline.yaml has the servers. `budget` is
    about the most that it takes in all. `replay` is what is sent, as in `load`, and `start` then a speed, such as 2x.
    The search of a suite is kept in `runs`, as by the command, where `keep` names no folder. Ctrl-C raises
    MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    called = checked_call(limit, locals())
    flags = _flags(
        LimitFlags,
        called,
        request,
        targets=list(targets),
        objective=_listed(objective),
        abort_when=_listed(abort_when),
        git=git,
        path=path,
        lasts=_text(budget),
        duration=_text(duration),
        warmup=_text(warmup),
        start=_text(start),
        probes=probes,
        precision=precision,
        trials=trials,
        no_beyond=no_beyond,
        arrivals=arrivals,
        replay=_path(replay),
        connections=connections,
        threads=threads,
        threshold=threshold,
        seed=seed,
        wait=_text(wait),
        alone=alone,
        output=_path(keep),
    )
    with in_words_of_python(LimitFlags, commands=targets), at_work() as stack:
        shown = console(progress=progress)
        view = SessionView(shown)
        workplace = Workplace(None, stack, places.of_suite, turn=turn_of(flags, "", shown))
        session = limit_command.created(flags, workplace, view, shown)
        if wait_quiet:
            wait_until_quiet(shown)
        report, interrupted = search(session, view, is_kept=session.is_kept)
        result = SearchResult(report, session.store.folder if session.is_kept else None)
    if interrupted:
        raise MeasurementInterrupted(result)
    return result


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
) -> RunResult:
    """Run a suite, or the servers of redline.yaml: as `redline run`.

    What is named besides the suite selects parts of it, and changes it. `keep` is a folder for all recordings and the
    report. Ctrl-C raises MeasurementInterrupted, with what was measured. Raises RedlineError.
    """
    called = checked_call(run, locals())
    given = None if suite is None else suite if isinstance(suite, WrittenSuite) else WrittenSuite.read(suite)
    with in_words_of_python(RunFlags), at_work() as stack:
        flags = _flags(
            RunFlags,
            called,
            {},
            suite=given.file if given else None,
            servers=_listed(servers),
            scenarios=_listed(scenarios),
            loads=_listed(loads),
            options=[f"{name}={_option(value)}" for name, value in (options or {}).items()],
            users=users,
            duration=_text(duration),
            warmup=_text(warmup),
            trials=trials,
            seed=seed,
            quick=quick,
            profile=_listed(profile),
            scale=_text(scale),
            screen=screen,
            on=on,
            wait=_text(wait),
            alone=alone,
            output=folder_for(keep, stack),
        )
        shown = console(progress=progress)
        workplace = Workplace(on, stack, places.of_suite, turn=turn_of(flags, "", shown, on))
        if given is None or given.file is not None:
            session = run_command.created(flags, workplace, SessionView(shown), shown)
        else:
            resolved, text = given.resolved(flags)
            source, near = Source(called, text=text), given.folder / "suite.yaml"
            session = run_command.created_of(resolved, source, near, flags, workplace, SessionView(shown), shown)
        if wait_quiet:
            wait_until_quiet(shown)
        return _ended(session.execute(is_kept=keep is not None), keep)


def _ended(end: SessionEnd, keep: str | Path | None) -> RunResult:
    """The result of a session. Raises MeasurementInterrupted."""
    store, report = end.parts[-1]
    result = RunResult(report, _path(keep), not_compared=not_compared(store.manifest().plan))
    if end.interrupted:
        raise MeasurementInterrupted(result)
    return result


def _flags(kind: type[F], called: str, request: RequestOptions | Mapping[str, Any], **values: Any) -> F:
    """The flags of a command, in the form that a command line gives them. Raises TypeError and UsageError."""
    unknown = sorted(set(request) - set(RequestOptions.__annotations__))
    if unknown:
        raise TypeError(f"there is no argument {unknown[0]!r}: see help(redline.{called.partition('(')[0][8:]})")
    options: dict[str, Any] = dict(request)
    listed, requests = None, options.pop("requests", None)
    if isinstance(requests, (str, Path)):
        options["requests"] = Path(requests)
    elif requests is not None:
        listed = UnwrittenDocument("requests", plain_data(list(requests), "the list of requests"))
    if "headers" in options:
        options["headers"] = _headers(options["headers"])
    if "body" in options:
        options["body"] = _body(options["body"])
    options |= {name: Path(options[name]) for name in _FILES if name in options}
    options |= {name: _listed(options[name]) for name in _LISTS if name in options}
    options["mine"] = _listed(options.pop("target_is_mine", ()))
    options["scenarios"] = _listed(options.pop("scenarios", ()))
    options["timeout"] = _text(options.get("timeout"))
    known = kind.declared()
    given = {name: value for name, value in (options | values).items() if name in known and value is not None}
    flags = kind(**given)
    flags.called, flags.listed = called, listed
    return flags


def _text(value: Time | float | None) -> str | None:
    """A length or a rate as a flag has it."""
    if isinstance(value, timedelta):
        return f"{value / timedelta(microseconds=1):.0f}us"
    return None if value is None else str(value)


def _listed(given: str | Sequence[str]) -> list[str]:
    return [given] if isinstance(given, str) else [str(item) for item in given]


def _headers(given: Mapping[str, str | Sequence[str]]) -> list[str]:
    return [f"{name}: {value}" for name, values in given.items() for value in _listed(values)]


def _body(given: str | Path) -> str:
    """The body as a flag has it. Raises UsageError for a text that the flag would take for a file."""
    if isinstance(given, Path):
        return f"@{given}"
    if given.startswith("@"):
        hint = 'write it in a list: requests=[{"name": "post", "post": "/", "body": "@…"}]; or give a Path to a file'
        raise UsageError("a body that begins with @ would be a file", hint=hint)
    return given


def _option(value: object) -> str:
    """An option of a server as a suite has it: on and off are texts there."""
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _path(keep: str | Path | None) -> Path | None:
    return None if keep is None else Path(keep)
