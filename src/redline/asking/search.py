"""A search that is asked for, as a suite: servers that a load probes in turn. Pure, but for files."""

import string
from collections.abc import Callable
from math import ceil

from redline.asking.asks import DETECTED, SearchAsk
from redline.asking.keepalive import kept_alive_or_not
from redline.asking.naming import naming, refuse
from redline.asking.project import chosen_of, searched_objectives
from redline.asking.requests import Placed, aborted_when, compared, of_project, replayed, settings
from redline.asking.search_recordings import check_is_speed
from redline.asking.written import NO_CATALOGUE, Sourced
from redline.errors import UsageError
from redline.limits.probe_loads import FIRST_PER_S, FIRST_USERS
from redline.quantities import parse_duration
from redline.schema.suite import DETECTION_NS
from redline.search.times import CONNECTIONS, PROBE, RUNNING_PROBE, RUNNING_WARM_UP, TRIALS, least_ns, probe_times
from redline.suite import SHORTEST_PROBE_NS, Catalogue
from redline.suite.project import Project
from redline.suite.urls import is_url
from redline.wording import part


def search_document(
    ask: SearchAsk,
    ends: Callable[[str], tuple[str, str]],
    placed: Placed,
    project: Project | None = None,
    known: Catalogue = NO_CATALOGUE,
) -> dict[str, object]:
    """Return the suite that is asked for. Raises UsageError.

    Several servers are named A, B, C, …; the first is the baseline. `ends` resolves a range to two revisions. `project`
    is a redline.yaml with the servers, if none is named, and with the objective. `known` has servers that may be named.
    """
    if project is None:
        targets = _targets(ask, ends)
        asked = compared(dict(zip(string.ascii_uppercase, targets, strict=False)), ask, placed, known)
        running = [is_url(target) for target in targets]
    else:
        asked = of_project(project, ask, placed)
        named, chosen = project.written.servers or [], chosen_of(project, ask.servers)
        servers = [named[index] for index in chosen] or named
        running = [server.url is not None for server in servers for _ in server.route] or [False]
        asked.pop("baseline", None)
        if len(running) > 1:
            asked["baseline"] = servers[0].name
        if project.written.objective and not ask.objective:
            asked["objective"] = searched_objectives(project)
    lasts, warmup = _lengths(ask, len(running), starts=not all(running))
    loads = {PROBE: {**(_closed(ask) if ask.by_users else _open(ask, placed)), "for": lasts}}
    given = aborted_when(ask.abort_when) | settings(ask, "timeout", "threshold", "seed")
    return kept_alive_or_not(asked | {"loads": loads, "warmup": warmup, "design": "interleaved"} | given, ask)


_OF_RATES = frozenset(("arrivals", "replay", "connections"))


def _closed(ask: SearchAsk) -> dict[str, object]:
    """Return the load of the first users. Raises UsageError."""
    refuse(ask.given(_OF_RATES), f"{part('by_users')} varies users, with a connection each, and takes no")
    return {"closed": {"users": FIRST_USERS if ask.start is None else Sourced(part("start", ask.start), ask.start)}}


def _open(ask: SearchAsk, placed: Placed) -> dict[str, object]:
    """Return the load of the first rate, or of a recording. Raises UsageError."""
    connections = CONNECTIONS if ask.connections is None else ask.connections
    return {"open": {**_due(ask, placed), "connections": Sourced(part("connections", connections), connections)}}


def _due(ask: SearchAsk, placed: Placed) -> dict[str, object]:
    """Return when requests are due: at a rate, or as they were recorded. Raises UsageError."""
    start = part("start", ask.start)
    given = replayed(ask, placed)
    if given is None:
        rate = FIRST_PER_S if ask.start is None else Sourced(start, ask.start)
        return {"rate": rate, **settings(ask, "arrivals")}
    if ask.arrivals is not None:
        message = part("arrivals", ask.arrivals) + ": " + part("replay") + " says when requests are due"
        raise UsageError(message, hint=f"leave out {part('arrivals')} or {part('replay')}")
    if ask.budget is not None:
        message = part("budget", ask.budget) + ": how long a probe of a recording takes depends on its speed"
        raise UsageError(message, hint=f"give {part('duration')}, which is how long it takes at the first speed")
    if ask.start is None:
        return {"arrivals": given}
    check_is_speed(ask.start)
    assert isinstance(given.value, dict), "as `replayed` makes it"
    return {"arrivals": Sourced(given.source, {**given.value, "speed": Sourced(start, ask.start)})}


def _targets(ask: SearchAsk, ends: Callable[[str], tuple[str, str]]) -> tuple[str, ...]:
    """Return commands, URLs, servers and revisions. Raises UsageError."""
    if ask.git is not None and ask.targets:
        message = part("git") + f" names the servers, and so does {ask.targets[0]}"
        raise UsageError(message, hint="leave out either")
    targets = ends(ask.git) if ask.git is not None else ask.targets
    if len(targets) > len(string.ascii_uppercase):
        raise UsageError(f"{len(targets)} servers are too many", hint=f"give {len(string.ascii_uppercase)} at most")
    return targets


def _lengths(ask: SearchAsk, servers: int, *, starts: bool) -> tuple[object, object]:
    """Return the length of a probe, and the warm-up. Raises UsageError.

    Where a warm-up is detected, that of a recording has its longest time: a suite detects none under a load that
    changes, and the users who warm up a server of a search do not change.
    """
    detects: object = {"detect": {}} if ask.replay is None else _exact(DETECTION_NS)
    warmup = detects if starts else RUNNING_WARM_UP
    length = RUNNING_PROBE if ask.duration is None else ask.duration
    lasts: object = Sourced(part("duration", length), length)
    if ask.budget is not None:
        if ask.duration is not None:
            message = part("budget") + " sets the length of a probe, and so does " + part("duration")
            raise UsageError(message, hint="leave out either")
        budget = part("budget", ask.budget)
        with naming(budget):
            lasts_ns = parse_duration(ask.budget)
        trials = (TRIALS if ask.trials is None else ask.trials) if starts else 0
        times = probe_times(lasts_ns, servers, ask.probes, trials)
        if times.probe_ns < SHORTEST_PROBE_NS:
            least = f"{ceil(least_ns(servers, trials) / 1e9)}s"
            too_short = budget + f" is too short: this search takes {least} at least, with the shortest probes"
            raise UsageError(too_short, hint=f"give {part('budget', least)} or more, or leave it out")
        lasts = Sourced(budget, _exact(times.probe_ns))
        longest = Sourced(budget, _exact(times.warmup_ns))
        warmup = {"detect": {"at_most": longest}} if times.detects else longest
    if ask.warmup is not None:
        given = detects if ask.warmup == DETECTED else ask.warmup
        warmup = Sourced(part("warmup", ask.warmup), given)
    return lasts, warmup


def _exact(ns: int) -> str:
    """Write a time as suites do, in whole milliseconds."""
    return f"{max(ns // 1_000_000, 1)}ms"
