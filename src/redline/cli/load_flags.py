"""Read the flags of `redline load`: the server, its requests, and the load."""

import math
from pathlib import Path

from redline import peers
from redline.cli.catalogues import proxies_of
from redline.cli.command_line import LoadFlags
from redline.cli.flags import DETECTED, check_is_no_file, naming, split
from redline.cli.keepalive import kept_alive_or_not
from redline.cli.origins import project_name
from redline.cli.project_document import in_its_words, scenarios_of, variants_of
from redline.cli.request_flags import (
    Placed,
    aborted_when,
    describes_requests,
    is_command,
    of_project,
    path_of,
    placed_here,
    referenced,
    replayed,
    scenarios,
    servers,
    settings,
    take_recording,
)
from redline.cli.show import Terminal
from redline.cli.written import Given, read_written
from redline.defaults import LOAD_WARM_UP, NO_WARM_UP
from redline.errors import UsageError
from redline.model import Closed, Suite
from redline.quantities import parse_duration, parse_speed
from redline.suite.project import Origins, Project
from redline.suite.urls import base_of, check_is_reachable, is_like_a_url, is_secure, is_url

_NO_SERVER = (
    "give its URL: redline load http://127.0.0.1:8080/; or its command: redline load './shop {port}'; or write a "
    "redline.yaml: see `redline init --help`"
)


def as_like(flags: LoadFlags) -> "tuple[LoadFlags, peers.Like | None]":
    """Return the flags with the load of `--like`, if given; other flags take precedence. Raises UsageError."""
    if flags.like is None:
        return flags, None
    like = peers.read_like(flags.like)
    own = {name: getattr(flags, name) for name in flags.declared()}
    given = {name: value for name, value in own.items() if name in flags.typed or flags.given(among={name})}
    values = own | dict(like.flags) | given
    if values["url"] is not None and not (is_url(str(values["url"])) and is_secure(str(values["url"]))):
        values |= {"insecure": flags.insecure, "cacert": flags.cacert}
    made = LoadFlags(**values)
    made.typed = flags.typed
    return made, like


def load_suite(flags: LoadFlags, project: Project | None = None) -> tuple[Suite, str]:
    """Return the suite of a single load, and its text. Raises UsageError, which names the flag."""
    document = load_document(flags, placed_here(flags), project)
    origins, known = Origins(folder=str(Path.cwd())), proxies_of(document, Path.cwd())
    name = "load" if project is None else project_name(project)
    with in_its_words(project):
        suite, text = read_written(document, name, referenced(flags, project), origins, catalogue=known)
    closed = isinstance(suite.loads[0].shape, Closed)
    if closed and any(objective.metric == "achieved" for objective in suite.objectives):
        raise UsageError("--objective: `achieved` is a share of a rate, and this load has none", hint="give -R")
    return suite, text


def load_document(flags: LoadFlags, placed: Placed, project: Project | None = None) -> dict[str, object]:
    """Return the document of a single load: one server, one scenario, one trial. Raises UsageError.

    `project` is a redline.yaml with the server, if the flags name none.
    """
    take_recording(flags)
    asked = _asked(flags, placed) if project is None else _asked_of(project, flags, placed)
    if flags.warmup == DETECTED and (flags.stages or flags.replay):
        hint = "give a time, such as --warmup 10s"
        raise UsageError("--warmup auto needs a load that does not change by design", hint=hint)
    written = flags.written()
    document: dict[str, object] = {
        **asked,
        "loads": {"load": _load(flags, placed)},
        "warmup": Given(written["warmup"], {"detect": {}} if flags.warmup == DETECTED else _warm_up(flags)),
        "trials": 1,
        "seed": Given(written["seed"], flags.seed),
        "engine": {"backend": flags.backend, "spin": flags.spin},
    }
    document |= settings(flags, "timeout")
    document |= aborted_when(flags.abort_when)
    if flags.objective:
        document["objective"] = Given("--objective", flags.objective)
    return kept_alive_or_not(document, flags)


def _asked(flags: LoadFlags, placed: Placed) -> dict[str, object]:
    """Return the server of the URL and its requests. Raises UsageError."""
    if flags.url is None:
        raise UsageError("no server is named", hint=_NO_SERVER)
    if names_command(flags):
        if flags.follow:
            message = f"--follow: the server of `{flags.url}` does not run yet"
            raise UsageError(message, hint="leave it out, and give the path that is requested: --path")
        if flags.path is not None and (flags.requests is not None or flags.listed is not None):
            message = f"--path '{flags.path}': requests say what is requested"
            raise UsageError(message, hint="leave out one of the two")
        path = path_of({}, "/" if flags.path is None else flags.path)
        *_, asked = scenarios(flags, path, placed)
        return {"servers": servers({"server": flags.url}, flags, placed), "scenarios": [asked]}
    if flags.path is not None:
        raise UsageError(f"--path '{flags.path}' is for a command", hint="write it into the URL")
    check_is_no_file(flags.url)
    *_, asked = scenarios(flags, path_of({"server": flags.url}, None), placed)
    return {"servers": servers({"server": base_of(flags.url)}, flags, placed), "scenarios": [asked]}


def names_command(flags: LoadFlags) -> bool:
    """Whether the flags name a command, which is started for the load, in place of a URL. Raises UsageError."""
    if flags.url is None or is_url(flags.url) or is_like_a_url(flags.url):
        return False
    check_is_reachable(flags.url)
    return is_command(flags.url)


def _asked_of(project: Project, flags: LoadFlags, placed: Placed) -> dict[str, object]:
    """Return the only server of a redline.yaml and its requests. Raises UsageError if it has several."""
    named = len(project.written.servers or [0])
    if named == 1 < variants_of(project):
        hint = "`redline run` compares them; or give the URL of a server that is running"
        raise UsageError(f"{project.document.file} has {variants_of(project)} routes, and a load takes one", hint=hint)
    if named > 1:
        hint = "`redline run` compares them; or give the URL of a server that is running"
        raise UsageError(f"{project.document.file} names {named} servers, and a load takes one", hint=hint)
    document, globs = of_project(project, flags, placed), split(flags.scenarios)
    asked = document["scenarios"] if describes_requests(flags) else scenarios_of(project, globs or ("*",))
    assert isinstance(asked, list), "both are lists"
    if not asked:
        names = ", ".join(request.name for request in project.written.requests or ())
        raise UsageError(
            f"-m {','.join(globs)}: there is no such request", hint=f"{project.document.file} has: {names}"
        )
    return document | {"scenarios": asked[-1:]}


def _load(flags: LoadFlags, placed: Placed) -> dict[str, object]:
    """Return the load: open with a rate or a file to replay, else closed. Raises UsageError."""
    is_open = flags.rate is not None or flags.replay is not None
    _check_combination(flags, is_open=is_open)
    written = flags.written()
    if is_open:
        shape: dict[str, object] = {
            **settings(flags, "rate"),
            "arrivals": replayed(flags, placed) or flags.arrivals,
            "connections": Given(written["connections"], flags.connections),
            **settings(flags, "connections_at_start"),
        }
    else:
        kind, colon, mean = (flags.think or "").partition(":")
        think = {"exponential": mean} if colon and kind == "exp" else flags.think
        shape = {
            "users": Given(written["connections"], flags.connections),
            "think": think and Given(written["think"], think),
            **settings(flags, "pace"),
        }
    shape |= settings(flags, "depth", "requests_per_connection")
    if flags.stages:
        stages = [Given(f"--stage {text}", _stage(text, in_users=not is_open)) for text in flags.stages]
        shape["stages"] = Given(f"--stage {' --stage '.join(flags.stages)}", stages)
    return {
        "open" if is_open else "closed": {key: value for key, value in shape.items() if value is not None},
        "for": Given(written["duration"], _length(flags)),
        **settings(flags, "count"),
    }


def _warm_up(flags: LoadFlags) -> str:
    """How long to warm up. A load of so many requests sends no others, unless it is asked to."""
    return flags.warmup or (NO_WARM_UP if flags.count is not None else LOAD_WARM_UP)


def _length(flags: LoadFlags) -> str:
    """How long to measure: by default no longer than a recording lasts; say so if it is not sent to its end."""
    if flags.recorded is None:
        return flags.duration
    with naming("--speed"):
        speed = parse_speed(flags.speed or 1)
    recorded_ms = round(flags.recorded.last_ns / speed) // 1_000_000 + 1
    if recorded_ms * 1_000_000 <= parse_duration(flags.duration):
        return flags.duration if "duration" in flags.typed else f"{recorded_ms}ms"
    if not flags.called and not flags.quiet:
        said = f"the first {flags.duration} of it are sent; -d {math.ceil(recorded_ms / 1000)}s sends all"
        Terminal(stderr=True).print(said, highlight=False, soft_wrap=True)
    return flags.duration


def _stage(text: str, *, in_users: bool) -> dict[str, object]:
    to, colon, over = text.rpartition(":")
    if not colon or not to or (in_users and not to.isdecimal()):
        what = "users" if in_users else "requests per second"
        raise UsageError(f"--stage {text} is not a stage", hint=f"write {what} and how long: --stage 1000:10s")
    return {"to": int(to) if in_users else to, "over": over}


def _check_combination(flags: LoadFlags, *, is_open: bool) -> None:
    """Raise UsageError if a flag of closed loads is given with an open load, or the other way round."""
    if flags.arrivals is not None and flags.replay is not None:
        raise UsageError(
            f"--arrivals {flags.arrivals}: --replay says when requests are due", hint="leave out --arrivals or --replay"
        )
    if flags.arrivals is not None and flags.rate is None:
        message = f"--arrivals {flags.arrivals}: in a closed load, requests follow the answers"
        raise UsageError(message, hint="add a rate, such as -R 5000, or leave out --arrivals")
    if flags.connections_at_start is not None and not is_open:
        message = f"--connections-at-start {flags.connections_at_start}: a closed load opens a connection for each user"
        raise UsageError(message, hint="add a rate, such as -R 5000, or leave it out")
    for flag, value in (("--think", flags.think), ("--pace", flags.pace)):
        if value is not None and is_open:
            opens = "--replay" if flags.rate is None else "-R"
            raise UsageError(
                f"{flag} {value}: only users of a closed load have that", hint=f"leave out {opens} or {flag}"
            )
