"""A load that is asked for, as a suite of one trial: the server, its requests, and the load."""

from pathlib import Path

from redline.asking.asks import DETECTED, LoadAsk
from redline.asking.catalogues import catalogue_of, named_in
from redline.asking.keepalive import kept_alive_or_not
from redline.asking.opening import length_of
from redline.asking.origins import project_name
from redline.asking.project import in_its_words, scenarios_of, variants_of
from redline.asking.requests import (
    Placed,
    aborted_when,
    describes_requests,
    is_command,
    of_project,
    opened_by,
    path_of,
    placed_here,
    referenced,
    replayed,
    scenarios,
    scenarios_named,
    servers,
    settings,
)
from redline.asking.suites import check_is_no_file
from redline.asking.written import Sourced, read_written
from redline.defaults import LOAD_WARM_UP, NO_WARM_UP
from redline.errors import UsageError
from redline.model import Suite
from redline.suite.project import Origins, Project
from redline.suite.urls import base_of, check_is_reachable, is_like_a_url, is_url
from redline.wording import part

_NO_SERVER = (
    "give its URL, such as http://127.0.0.1:8080/, or its command, such as './shop {port}'; or write a redline.yaml: "
    "see `redline init --help`"
)


def load_suite(ask: LoadAsk, project: Project | None = None, *, with_text: bool = True) -> tuple[Suite, str]:
    """Return the suite of a single load, and its text if it is wanted. Raises UsageError, which names what is wrong."""
    document = load_document(ask, placed_here(ask), project)
    origins, known = Origins(folder=str(Path.cwd())), catalogue_of(document, Path.cwd())
    name = "load" if project is None else project_name(project)
    with in_its_words(project):
        suite, text = read_written(
            document, name, referenced(ask, project), origins, catalogue=known, with_text=with_text
        )
    if not suite.loads[0].is_scheduled and any(objective.metric == "achieved" for objective in suite.objectives):
        message = part("objective") + ": `achieved` is a share of a rate, and this load has none"
        raise UsageError(message, hint=f"give {part('rate')}, or {part('pace')}")
    return suite, text


def load_document(ask: LoadAsk, placed: Placed, project: Project | None = None) -> dict[str, object]:
    """Return the document of a single load: one server, one scenario, one trial. Raises UsageError.

    `project` is a redline.yaml with the server, if none is named.
    """
    asked = _server_and_requests(ask, placed) if project is None else _asked_of(project, ask, placed)
    if ask.warmup == DETECTED and (ask.stages or ask.replay):
        message = part("warmup", DETECTED) + " needs a load that does not change by design"
        raise UsageError(message, hint=f"give a time, such as {part('warmup', '10s')}")
    # A load of so many requests sends no others, unless it is asked to.
    default = LOAD_WARM_UP if ask.count is None else NO_WARM_UP
    warmup = default if ask.warmup is None else ask.warmup
    document: dict[str, object] = {
        **asked,
        "loads": {"load": _load(ask, placed)},
        "warmup": Sourced(part("warmup", warmup), {"detect": {}} if warmup == DETECTED else warmup),
        "trials": 1,
        "seed": Sourced(part("seed", ask.seed), ask.seed),
        "engine": {"backend": ask.backend, "spin": ask.spin},
    }
    document |= settings(ask, "timeout")
    document |= aborted_when(ask.abort_when)
    if ask.objective:
        document["objective"] = Sourced(part("objective"), [*ask.objective])
    return kept_alive_or_not(document, ask)


def _server_and_requests(ask: LoadAsk, placed: Placed) -> dict[str, object]:
    """Return the server that is named and its requests. Raises UsageError."""
    if ask.server is None:
        raise UsageError("no server is named", hint=_NO_SERVER)
    known = named_in([ask.server])
    if known.servers or names_command(ask):
        if ask.path is not None and ask.listed is not None:
            message = part("path", ask.path) + ": requests say what is requested"
            raise UsageError(message, hint="leave out one of the two")
        entry = known.servers.get(ask.server)
        otherwise = entry.ready.path if entry else "/"
        path = path_of({}, otherwise if ask.path is None else ask.path)
        named = scenarios_named({"server": ask.server}, ask, known)
        if len(named) > 1:
            message = (
                part("scenarios", ",".join(ask.scenarios)) + f": a load takes one scenario, and these are {len(named)}"
            )
            raise UsageError(message, hint="`redline run` measures several")
        *_, asked = named or scenarios(ask, path, placed)
        return {"servers": servers({"server": ask.server}, ask, placed, known), "scenarios": [asked]}
    if ask.path is not None:
        raise UsageError(part("path", ask.path) + " is for a command", hint="write it into the URL")
    check_is_no_file(ask.server)
    urls = {"server": ask.server}
    *_, asked = scenarios(ask, path_of(urls, None), placed, opens=opened_by(urls))
    return {"servers": servers({"server": base_of(ask.server)}, ask, placed), "scenarios": [asked]}


def starts_server(ask: LoadAsk) -> bool:
    """Whether a command or a server of the catalogue is named, which is started for the load. Raises UsageError."""
    return names_command(ask) or (ask.server is not None and bool(named_in([ask.server]).servers))


def names_command(ask: LoadAsk) -> bool:
    """Whether a command is named, in place of a URL. Raises UsageError."""
    if ask.server is None or is_url(ask.server) or is_like_a_url(ask.server):
        return False
    check_is_reachable(ask.server)
    return is_command(ask.server)


def _asked_of(project: Project, ask: LoadAsk, placed: Placed) -> dict[str, object]:
    """Return the only server of a redline.yaml and its requests. Raises UsageError if it has several."""
    named = len(project.written.servers or [0])
    if named == 1 < variants_of(project):
        hint = "`redline run` compares them; or give the URL of a server that is running"
        raise UsageError(f"{project.document.file} has {variants_of(project)} routes, and a load takes one", hint=hint)
    if named > 1:
        hint = "`redline run` compares them; or give the URL of a server that is running"
        raise UsageError(f"{project.document.file} names {named} servers, and a load takes one", hint=hint)
    document = of_project(project, ask, placed)
    asked = document["scenarios"] if describes_requests(ask) else scenarios_of(project, ask.scenarios or ("*",))
    assert isinstance(asked, list), "both are lists"
    if not asked:
        names = ", ".join(request.name for request in project.written.requests or ())
        message = part("scenarios", ",".join(ask.scenarios)) + ": there is no such request"
        raise UsageError(message, hint=f"{project.document.file} has: {names}")
    return document | {"scenarios": asked[-1:]}


def _load(ask: LoadAsk, placed: Placed) -> dict[str, object]:
    """Return the load: open with a rate or a file to replay, else closed. Raises UsageError."""
    _check_combination(ask)
    connections = Sourced(part("connections", ask.connections), ask.connections)
    if ask.is_open:
        shape: dict[str, object] = {
            **settings(ask, "rate"),
            "arrivals": replayed(ask, placed) or ask.arrivals,
            "connections": connections,
            **settings(ask, "connections_at_start"),
        }
    else:
        kind, colon, mean = (ask.think or "").partition(":")
        think = {"exponential": mean} if colon and kind == "exp" else ask.think
        shape = {"users": connections, "think": None if think is None else Sourced(part("think", ask.think), think)}
        shape |= settings(ask, "pace")
    shape |= settings(ask, "depth", "requests_per_connection")
    if ask.stages:
        stages = [Sourced(part("stages", text), _stage(text, in_users=not ask.is_open)) for text in ask.stages]
        shape["stages"] = Sourced(part("stages", ask.stages), stages)
    length = length_of(ask)
    return {
        "open" if ask.is_open else "closed": {key: value for key, value in shape.items() if value is not None},
        "for": Sourced(part("duration", length), length),
        **settings(ask, "count"),
    }


def _stage(text: str, *, in_users: bool) -> dict[str, object]:
    to, colon, over = text.rpartition(":")
    if not colon or not to or (in_users and not to.isdecimal()):
        hint = f"write {'users' if in_users else 'requests per second'} and how long: {part('stages', '1000:10s')}"
        raise UsageError(part("stages", text) + " is not a stage", hint=hint)
    return {"to": int(to) if in_users else to, "over": over}


def _check_combination(ask: LoadAsk) -> None:
    """Raise UsageError if something of closed loads is asked of an open load, or the other way round."""
    if ask.arrivals is not None and ask.replay is not None:
        message = part("arrivals", ask.arrivals) + ": " + part("replay") + " says when requests are due"
        raise UsageError(message, hint=f"leave out {part('arrivals')} or {part('replay')}")
    add = f"add a rate, such as {part('rate', 5000)}, or leave"
    if ask.arrivals is not None and ask.rate is None:
        message = part("arrivals", ask.arrivals) + ": in a closed load, requests follow the answers"
        raise UsageError(message, hint=f"{add} out {part('arrivals')}")
    if ask.connections_at_start is not None and not ask.is_open:
        asked = part("connections_at_start", ask.connections_at_start)
        raise UsageError(asked + ": a closed load opens a connection for each user", hint=f"{add} it out")
    for name in ask.differing({"think", "pace"}) if ask.is_open else ():
        message = part(name, getattr(ask, name)) + ": only users of a closed load have that"
        opens = part("replay" if ask.rate is None else "rate")
        raise UsageError(message, hint=f"leave out {opens} or {part(name)}")
