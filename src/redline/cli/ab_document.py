"""`redline ab` as a suite document: a duet of two servers within a time budget. Pure, but for files."""

import re
from collections.abc import Callable, Mapping

from redline.cli.command_line import AbFlags
from redline.cli.flags import split
from redline.cli.keepalive import kept_alive_or_not
from redline.cli.project_document import budget_of, default_budget, loads_of, parts_of, variants_of
from redline.cli.request_flags import (
    Placed,
    aborted_when,
    check_targets_are_whole,
    compared,
    describes_requests,
    is_command,
    of_project,
    replayed,
    settings,
    take_recording,
)
from redline.cli.written import Given
from redline.errors import UsageError
from redline.model.variant import DIRECT
from redline.suite.project import Project
from redline.suite.schema.suite import OWN_NAME
from redline.suite.urls import is_url

_LOAD = re.compile(r"closed:(\d+)|open:(.+)")


def ab_document(
    flags: AbFlags,
    ends: Callable[[str], tuple[str, str]],
    placed: Placed,
    project: Project | None = None,
    requests: int = 1,
) -> dict[str, object]:
    """Return the suite that the flags ask for. Raises UsageError.

    `ends` resolves a range such as `main..HEAD`, or a revision that is compared with the work tree, to two revisions.
    `project` is a redline.yaml whose two servers are compared if the flags name none. `requests` counts those of a
    revision, whose own file lists them.
    """
    take_recording(flags)
    loads: dict[str, object] = {"load": _load(flags, placed)}
    if flags.names is not None and (project is not None or flags.route is not None):
        raise UsageError("--names: these servers have names of their own", hint="leave it out")
    if project is None and flags.route is not None:
        document = compared({"A": _one_target(flags)}, flags, placed)
    elif project is None:
        document = compared(dict(zip(_names(flags.names), _targets(flags, ends), strict=True)), flags, placed)
    else:
        document = of_project(project, flags, placed)
        if flags.route is None:
            _check_two(project)
        else:
            _check_direct(project, flags.route)
        by_flag = "load" in flags.typed or flags.given(among={"load", "replay"})
        loads = loads if by_flag else loads_of(project)
    parts = requests
    if "scenarios" in document:
        chosen = () if describes_requests(flags) else split(flags.scenarios)
        parts = parts_of(document["scenarios"], chosen) * len(loads)
    budget = default_budget(2, parts) if project is None else budget_of(project, 2, parts)
    if flags.route is not None:
        document["servers"] = [_also_through(server, flags.route) for server in _servers(document)]
    document |= {
        "loads": loads,
        "budget": budget if flags.lasts is None else Given(f"--for {flags.lasts}", flags.lasts),
        "metric": Given(f"--metric {flags.metric}", flags.metric),
    }
    if flags.same_answers:
        document["same_answers"] = Given("--same-answers", True)
    if flags.parallel:
        document["design"] = Given("--parallel", "parallel-duet")
    document |= aborted_when(flags.abort_when) | settings(flags, "timeout", "threshold", "seed")
    return kept_alive_or_not(document, flags)


def _names(written: str | None) -> tuple[str, ...]:
    """What A and B are called. Names are parts of file names, so a branch's `/` becomes `-`. Raises UsageError."""
    if written is None:
        return "A", "B"
    names = tuple(name.strip().replace("/", "-") for name in written.split(","))
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--names {written} are not two names", hint="such as --names 'main,this pull request'")
    wrong = next((name for name in names if not re.fullmatch(OWN_NAME, name)), None)
    if wrong is not None:
        hint = "use letters, digits, . _ ~ and -, and single spaces between words"
        raise UsageError(f"--names: {wrong!r} is no name", hint=hint)
    return names


def _servers(document: Mapping[str, object]) -> list[dict[str, object]]:
    servers = document["servers"]
    assert isinstance(servers, list), "it was made so"
    return servers


def _also_through(server: Mapping[str, object], route: str) -> dict[str, object]:
    return {**server, "route": Given(f"--route {route}", [DIRECT, route])}


def _one_target(flags: AbFlags) -> str:
    """Return the only server, which is reached directly and through a proxy. Raises UsageError."""
    given = [target for target in (flags.a, flags.b) if target is not None]
    if flags.git is not None or len(given) != 1:
        message = f"--route {flags.route} compares a server with itself behind a proxy"
        raise UsageError(message, hint="give one command, URL or revision, and no --git")
    check_targets_are_whole(given)
    return given[0]


def _check_direct(project: Project, route: str) -> None:
    """Raise UsageError unless a redline.yaml names exactly one server, without a route."""
    file, named = project.document.file, len(project.written.servers or [0])
    if named > 1:
        hint = f"write `route: [direct, {route}]` of a server there; or give one command or URL"
        raise UsageError(f"{file} names {named} servers, and --route takes a single server", hint=hint)
    if project.written.servers and project.written.servers[0].route != [DIRECT]:
        raise UsageError(f"{file} says how its server is reached, and so does --route", hint="leave out --route")


def _check_two(project: Project) -> None:
    """Raise UsageError if a redline.yaml has more than two servers, or routes to them."""
    named = variants_of(project)
    if named > 2:
        hint = "`redline run` compares the first with all others; or give two commands or URLs"
        raise UsageError(f"{project.document.file} names {named} servers, and ab compares two", hint=hint)


def _targets(flags: AbFlags, ends: Callable[[str], tuple[str, str]]) -> tuple[str, str]:
    """Return A and B: commands, URLs or revisions. Raises UsageError."""
    given = [target for target in (flags.a, flags.b) if target is not None]
    check_targets_are_whole(given)
    if flags.git is not None:
        if given:
            raise UsageError(f"--git names both sides, and so does {given[0]}", hint="leave out --git, or A and B")
        return ends(flags.git)
    if len(given) == 2:
        return given[0], given[1]
    if not given:
        hint = "give two commands such as './old --port {port}', two URLs, or revisions such as main..HEAD"
        raise UsageError("there are no two servers to compare", hint=hint)
    if is_url(given[0]) or is_command(given[0]):
        raise UsageError(f"{given[0]} is compared with nothing", hint="give another command, URL or revision as B")
    return ends(given[0])


def _load(flags: AbFlags, placed: Placed) -> dict[str, object]:
    text = flags.load
    if flags.replay is not None:
        if "load" in flags.typed or flags.given(among={"load"}):
            raise UsageError(f"--load {text}: --replay says when requests are due", hint="leave out --load or --replay")
        return {"open": {"arrivals": replayed(flags, placed)}}
    written = _LOAD.fullmatch(text)
    if written is None:
        raise UsageError(f"--load {text} is not a load", hint="write closed:64 (users) or open:2000/s (a rate)")
    users, rate = written.groups()
    source = f"--load {text}"
    return {"closed": {"users": Given(source, int(users))}} if users else {"open": {"rate": Given(source, rate)}}
