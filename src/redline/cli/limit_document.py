"""`redline limit` as a suite document: servers that an open load probes in turn. Pure, but for files."""

import string
from collections.abc import Callable
from math import ceil

from redline.analysis.probe_loads import FIRST_PER_S
from redline.cli.command_line import LimitFlags
from redline.cli.flags import DETECTED, naming, split
from redline.cli.keepalive import kept_alive_or_not
from redline.cli.limit_recording import check_is_speed
from redline.cli.project_document import chosen_of, searched_objectives
from redline.cli.request_flags import Placed, aborted_when, compared, of_project, replayed, settings
from redline.cli.written import Given
from redline.errors import UsageError
from redline.quantities import parse_duration
from redline.search.times import CONNECTIONS, PROBE, RUNNING_PROBE, RUNNING_WARM_UP, TRIALS, least_ns, probe_times
from redline.suite import SHORTEST_PROBE_NS
from redline.suite.project import Project
from redline.suite.schema.suite import DETECTION_NS
from redline.suite.urls import is_url


def limit_document(
    flags: LimitFlags, ends: Callable[[str], tuple[str, str]], placed: Placed, project: Project | None = None
) -> dict[str, object]:
    """Return the suite that the flags ask for. Raises UsageError.

    Several servers are named A, B, C, …; the first is the baseline. `ends` resolves a range to two revisions. `project`
    is a redline.yaml with the servers, if the flags name none, and with the objective.
    """
    if project is None:
        targets = _targets(flags, ends)
        asked = compared(dict(zip(string.ascii_uppercase, targets, strict=False)), flags, placed)
        running = [is_url(target) for target in targets]
    else:
        asked = of_project(project, flags, placed)
        named, chosen = project.written.servers or [], chosen_of(project, split(flags.servers))
        servers = [named[index] for index in chosen] or named
        running = [server.url is not None for server in servers for _ in server.route] or [False]
        asked.pop("baseline", None)
        if len(running) > 1:
            asked["baseline"] = servers[0].name
        if project.written.objective and not flags.objective:
            asked["objective"] = searched_objectives(project)
    lasts, warmup = _lengths(flags, len(running), starts=not all(running))
    connections = CONNECTIONS if flags.connections is None else flags.connections
    shape = {**_due(flags, placed), "connections": Given(f"-c {connections}", connections)}
    loads = {PROBE: {"open": shape, "for": lasts}}
    given = aborted_when(flags.abort_when) | settings(flags, "timeout", "threshold", "seed")
    return kept_alive_or_not(asked | {"loads": loads, "warmup": warmup, "design": "interleaved"} | given, flags)


def _due(flags: LimitFlags, placed: Placed) -> dict[str, object]:
    """Return when requests are due: at a rate, or as they were recorded. Raises UsageError."""
    start = f"--start {flags.start}"
    given = replayed(flags, placed)
    if given is None:
        rate = FIRST_PER_S if flags.start is None else Given(start, flags.start)
        return {"rate": rate, **settings(flags, "arrivals")}
    if flags.arrivals is not None:
        message = f"--arrivals {flags.arrivals}: --replay says when requests are due"
        raise UsageError(message, hint="leave out --arrivals or --replay")
    if flags.lasts is not None:
        message = f"--for {flags.lasts}: how long a probe of a recording takes depends on its speed"
        raise UsageError(message, hint="give -d, which is how long it takes at the first speed")
    if flags.start is None:
        return {"arrivals": given}
    check_is_speed(flags.start)
    assert isinstance(given.value, dict), "as `replayed` makes it"
    return {"arrivals": Given(given.source, {**given.value, "speed": Given(start, flags.start)})}


def _targets(flags: LimitFlags, ends: Callable[[str], tuple[str, str]]) -> tuple[str, ...]:
    """Return commands, URLs and revisions. Raises UsageError."""
    if flags.git is not None and flags.targets:
        raise UsageError(f"--git names the servers, and so does {flags.targets[0]}", hint="leave out either")
    targets = ends(flags.git) if flags.git is not None else tuple(flags.targets)
    if len(targets) > len(string.ascii_uppercase):
        raise UsageError(f"{len(targets)} servers are too many", hint=f"give {len(string.ascii_uppercase)} at most")
    return targets


def _lengths(flags: LimitFlags, servers: int, *, starts: bool) -> tuple[object, object]:
    """Return the length of a probe, and the warm-up. Raises UsageError.

    Where a warm-up is detected, that of a recording has its longest time: a suite detects none under a load that
    changes, and the users who warm up a server of a search do not change.
    """
    detects: object = {"detect": {}} if flags.replay is None else _exact(DETECTION_NS)
    warmup = detects if starts else RUNNING_WARM_UP
    lasts: object = Given(f"-d {flags.duration or RUNNING_PROBE}", flags.duration or RUNNING_PROBE)
    if flags.lasts is not None:
        if flags.duration is not None:
            raise UsageError("--for sets the length of a probe, and so does -d", hint="leave out either")
        with naming(f"--for {flags.lasts}"):
            lasts_ns = parse_duration(flags.lasts)
        trials = (TRIALS if flags.trials is None else flags.trials) if starts else 0
        times = probe_times(lasts_ns, servers, flags.probes, trials)
        if times.probe_ns < SHORTEST_PROBE_NS:
            least = f"{ceil(least_ns(servers, trials) / 1e9)}s"
            message = f"--for {flags.lasts} is too short: this search takes {least} at least, with the shortest probes"
            raise UsageError(message, hint=f"give --for {least} or more, or leave it out")
        lasts = Given(f"--for {flags.lasts}", _exact(times.probe_ns))
        longest = Given(f"--for {flags.lasts}", _exact(times.warmup_ns))
        warmup = {"detect": {"at_most": longest}} if times.detects else longest
    if flags.warmup is not None:
        given = detects if flags.warmup == DETECTED else flags.warmup
        warmup = Given(f"--warmup {flags.warmup}", given)
    return lasts, warmup


def _exact(ns: int) -> str:
    """Write a time as suites do, in whole milliseconds."""
    return f"{max(ns // 1_000_000, 1)}ms"
