"""A comparison that is asked for, as a suite: a duet of two servers within a time budget. Pure, but for files."""

import re
from collections.abc import Callable, Mapping

from redline.asking.asks import ComparisonAsk
from redline.asking.keepalive import kept_alive_or_not
from redline.asking.project import budget_of, default_budget, loads_of, parts_of, variants_of
from redline.asking.requests import (
    Placed,
    aborted_when,
    check_targets_are_whole,
    compared,
    describes_requests,
    is_command,
    of_project,
    replayed,
    settings,
)
from redline.asking.written import NO_CATALOGUE, Sourced
from redline.defaults import AB_USERS
from redline.errors import UsageError
from redline.model.variant import DIRECT
from redline.schema.suite import OWN_NAME
from redline.suite import Catalogue
from redline.suite.project import Project
from redline.suite.urls import is_url
from redline.wording import part

Ends = Callable[[str], tuple[str, str]]
"""Resolves a range such as `main..HEAD`, or a revision that is compared with the work tree, to two revisions."""


def comparison_document(
    ask: ComparisonAsk,
    ends: Ends,
    placed: Placed,
    project: Project | None = None,
    requests: int = 1,
    known: Catalogue = NO_CATALOGUE,
) -> dict[str, object]:
    """Return the suite that is asked for. Raises UsageError.

    `project` is a redline.yaml whose two servers are compared if none are named. `requests` counts those of a revision,
    whose own file lists them. `known` has servers that may be named.
    """
    loads: dict[str, object] = {"load": _load(ask, placed)}
    has_names = ask.route is not None or any(target in known.servers for target in ask.targets_named)
    if ask.names is not None and (project is not None or has_names):
        raise UsageError(part("names") + ": these servers have names of their own", hint="leave it out")
    if project is None and ask.route is not None:
        document = compared({"A": _one_target(ask, ask.route)}, ask, placed, known)
    elif project is None:
        document = compared(dict(zip(_names(ask.names), _targets(ask, ends, known), strict=True)), ask, placed, known)
    else:
        document = of_project(project, ask, placed)
        if ask.route is None:
            _check_two(project)
        else:
            _check_direct(project, ask.route)
        loads = loads if ask.differing({"users", "rate", "replay"}) else loads_of(project)
    parts = requests
    if "scenarios" in document:
        chosen = () if describes_requests(ask) else ask.scenarios
        parts = parts_of(document["scenarios"], chosen) * len(loads)
    budget = default_budget(2, parts) if project is None else budget_of(project, 2, parts)
    if ask.route is not None:
        document["servers"] = [_also_through(server, ask.route) for server in _servers(document)]
    document |= {"loads": loads, "budget": budget, "metric": Sourced(part("metric", ask.metric), ask.metric)}
    document |= settings(ask, "budget", "timeout", "threshold", "seed")
    if ask.builds != 1:
        document["builds"] = Sourced(part("builds", str(ask.builds)), ask.builds)
    document |= {name: Sourced(part(name), True) for name in ("same_answers", "why") if getattr(ask, name)}
    if ask.parallel:
        document["design"] = Sourced(part("parallel"), "parallel-duet")
    return kept_alive_or_not(document | aborted_when(ask.abort_when), ask)


def _names(written: tuple[str, ...] | None) -> tuple[str, ...]:
    """What A and B are called. Raises UsageError."""
    if written is None:
        return "A", "B"
    names = tuple(map(_as_name, written))
    if len(names) != 2 or names[0] == names[1]:
        hint = f"such as {part('names', 'main,this pull request')}"
        raise UsageError(part("names", ",".join(written)) + " are not two names", hint=hint)
    wrong = next((name for name in names if not re.fullmatch(OWN_NAME, name)), None)
    if wrong is not None:
        hint = "use letters, digits, . _ ~ and -, and single spaces between words"
        raise UsageError(part("names") + f": {wrong!r} is no name", hint=hint)
    return names


def _as_name(ref: str) -> str:
    """Names are parts of file names, so what else a branch may hold, such as `/`, becomes `-`."""
    allowed = re.compile(r"[A-Za-z0-9._~ -]")
    return "".join("-" if it.isprintable() and not allowed.match(it) else it for it in ref.strip()).lstrip("-")


def _servers(document: Mapping[str, object]) -> list[dict[str, object]]:
    servers = document["servers"]
    assert isinstance(servers, list), "it was made so"
    return servers


def _also_through(server: Mapping[str, object], route: str) -> dict[str, object]:
    return {**server, "route": Sourced(part("route", route), [DIRECT, route])}


def _one_target(ask: ComparisonAsk, route: str) -> str:
    """Return the only server, which is reached directly and through a proxy. Raises UsageError."""
    given = ask.targets_named
    if ask.git is not None or len(given) != 1:
        message = part("route", route) + " compares a server with itself behind a proxy"
        raise UsageError(message, hint=f"give one command, URL or revision, and no {part('git')}")
    check_targets_are_whole(given)
    return given[0]


def _check_direct(project: Project, route: str) -> None:
    """Raise UsageError unless a redline.yaml names exactly one server, without a route."""
    file, named = project.document.file, len(project.written.servers or [0])
    if named > 1:
        hint = f"write `route: [direct, {route}]` of a server there; or give one command or URL"
        raise UsageError(f"{file} names {named} servers, and " + part("route") + " takes a single server", hint=hint)
    if project.written.servers and project.written.servers[0].route != [DIRECT]:
        message = f"{file} says how its server is reached, and so does " + part("route")
        raise UsageError(message, hint=f"leave out {part('route')}")


def _check_two(project: Project) -> None:
    """Raise UsageError if a redline.yaml has more than two servers, or routes to them."""
    named = variants_of(project)
    if named > 2:
        hint = "`redline run` compares the first with all others; or give two commands or URLs"
        raise UsageError(f"{project.document.file} names {named} servers, and ab compares two", hint=hint)


def _targets(ask: ComparisonAsk, ends: Ends, known: Catalogue) -> tuple[str, str]:
    """Return A and B: commands, URLs, servers `known` or revisions. Raises UsageError."""
    given = ask.targets_named
    check_targets_are_whole(given)
    if ask.git is not None:
        if given:
            message = part("git") + " names both sides, and so does " + given[0]
            raise UsageError(message, hint=f"leave out {part('git')}, or A and B")
        return ends(ask.git)
    if len(given) == 2:
        return given[0], given[1]
    if not given:
        hint = "give two commands such as './old --port {port}', two URLs, or revisions such as main..HEAD"
        raise UsageError("there are no two servers to compare", hint=hint)
    if is_url(given[0]) or is_command(given[0]) or given[0] in known.servers:
        raise UsageError(
            f"{given[0]} is compared with nothing", hint="give another command, URL, server or revision as B"
        )
    return ends(given[0])


def _load(ask: ComparisonAsk, placed: Placed) -> dict[str, object]:
    if ask.users is not None and ask.rate is not None:
        raise UsageError("a load has users or a rate", hint="leave out one of the two")
    source = part("load", f"closed:{ask.users}" if ask.rate is None else f"open:{ask.rate}")
    if ask.replay is not None:
        if ask.users is not None or ask.rate is not None:
            message = source + ": " + part("replay") + " says when requests are due"
            raise UsageError(message, hint=f"leave it out, or {part('replay')}")
        return {"open": {"arrivals": replayed(ask, placed)}}
    if ask.rate is not None:
        return {"open": {"rate": Sourced(source, ask.rate)}}
    return {"closed": {"users": Sourced(source, AB_USERS if ask.users is None else ask.users)}}
