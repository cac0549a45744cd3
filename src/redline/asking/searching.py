"""Searches that are asked for: of suites, or of servers that are named."""

import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Any

from redline.asking import places
from redline.asking.asks import DETECTED, SearchAsk
from redline.asking.catalogues import catalogue_of, named_in
from redline.asking.naming import at_least_one, naming, read_part, read_workers, refuse
from redline.asking.origins import FromRepository, project_name
from redline.asking.project import in_its_words
from redline.asking.requests import (
    check_targets_are_whole,
    describes_requests,
    referenced,
    servers,
)
from redline.asking.search import search_document
from redline.asking.search_recordings import at_first_speed, refuse_short_recordings
from redline.asking.suites import of_search, read_suite_file
from redline.asking.written import read_written
from redline.defaults import ALONE
from redline.errors import UsageError
from redline.limits.probe_loads import FIRST_PER_S, FIRST_USERS, MOST_USERS, lowest_per_s
from redline.model import Load, Objective, Profile, Suite, Variant
from redline.model.search import SearchTerms
from redline.quantities import did_you_mean, duration, parse_duration, parse_rate
from redline.running.searching import SearchRequest
from redline.schema.abort_when import parse_abort_rule
from redline.schema.objectives import Selectable
from redline.schema.suite import PrecisionSchema
from redline.search.change import LOOKS
from redline.search.steps import QUANTILES
from redline.search.stretch import shortest_probe_ns
from redline.search.times import CONNECTIONS, FEW_ERRORS, FEW_SHARE, PROBE, RUNNING_PROBE, TRIALS
from redline.suite import parse_objectives, to_search
from redline.suite.joining import SearchPart, join_sets, join_suites
from redline.suite.project import Project
from redline.suite.urls import base_of, is_url, is_websocket, read_url
from redline.suite.validate.overrides import Overrides
from redline.wording import part

_OF_STARTS = frozenset(("trials", "no_beyond"))

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class AskedSearch:
    """A search that is asked for, with the text of its suites, and the file of the first, if it has one.

    For suites, also the loads and the kinds of profiles that are left out, and why some suites are not compared.
    """

    request: SearchRequest
    text: str
    file: str = ""
    ignored: tuple[str, ...] = ()
    unprofiled: tuple[Profile, ...] = ()
    not_compared: tuple[str, ...] = ()

    @property
    def most_probes(self) -> int:
        """The most probes of a cell, without those of its curve."""
        terms = self.request.terms
        sets = max(map(len, terms.asked.values()), default=len(terms.sets))
        return terms.probes + 2 * max(terms.trials, 1) * sets + LOOKS * terms.looks


def is_suite(target: str) -> bool:
    """Whether a target is a suite file, and not a URL or a command (which has its port in braces)."""
    return Path(target).suffix in {".yaml", ".yml"} and not is_url(target) and "{" not in target


def read_suites_search(ask: SearchAsk, repository: FromRepository) -> AskedSearch:
    """Return the search of one or several suites, and of further servers that are named. Raises UsageError."""
    trials = _trials(ask.trials)
    parts, texts, ignored, unprofiled = list[SearchPart](), list[str](), list[str](), list[Profile]()
    files = [str(places.ready_suite(Path(target))) for target in ask.targets if is_suite(target)]
    for file in files:
        written, text = read_suite_file(Path(file), of_search(ask))
        with naming(file) if len(files) > 1 else nullcontext():
            suite, left_out = to_search(at_first_speed(_aborting(written, ask), ask), trials, by_users=ask.by_users)
            suite = _with_first_users(suite, ask)
            sets = _suite_sets(ask, suite)
            within_timeout(sets, suite.timeout_ns, f"`timeout` {duration(suite.timeout_ns)}", "`timeout`")
            _refuse_what_cannot_be(sets, suite)
            refuse_short_recordings(suite, by_warm_up=False)
        parts.append(SearchPart(file, suite, sets))
        texts.append(text)
        ignored += left_out
        unprofiled += written.profile
    first = parts[0]
    if servers := _servers_beside(ask, first, repository):
        names = ", ".join(target for target in ask.targets if not is_suite(target))
        parts.insert(1, SearchPart(names, first.suite.keeping(servers), first.sets))
    whole = join_suites(parts)
    if len(parts) == 1:
        terms, text = _terms(ask, first.sets, whole.loads, trials=trials, beyond=not ask.no_beyond), texts[0]
    else:
        sets, asked = join_sets(parts)
        terms = _terms(ask, sets, whole.loads, asked=asked, trials=trials, beyond=not ask.no_beyond)
        named = (f"# {Path(file).name}\n{text.rstrip()}\n" for file, text in zip(files, texts, strict=True))
        text = "---\n".join(named)
    return AskedSearch(
        SearchRequest(whole, terms, tuple(part.suite for part in parts)),
        text,
        str(Path(files[0]).resolve()),
        tuple(dict.fromkeys(ignored)),
        tuple(dict.fromkeys(unprofiled)),
        tuple(
            f"{part.name} is not compared with {first.name}: {why}"
            for part in parts[1:]
            if (why := part.not_compared_with(first))
        ),
    )


def _aborting(suite: Suite, ask: SearchAsk) -> Suite:
    """Return the suite with what is to end a probe early, if that is asked for. Raises UsageError."""
    if not ask.abort_when:
        return suite
    with naming(part("abort_when")):
        return suite.aborted_when(tuple(map(parse_abort_rule, ask.abort_when)))


def _with_first_users(suite: Suite, ask: SearchAsk) -> Suite:
    """Return the suite with as many users in its closed loads as are asked to begin. Raises UsageError."""
    if ask.start is None or not all(load.by_users for load in suite.loads):
        return suite
    if not isinstance(ask.start, int) or not 1 <= ask.start <= MOST_USERS:
        message = part("start", ask.start) + ": a search by users begins with a whole number of them"
        raise UsageError(message, hint=f"give 1 to {MOST_USERS:,}, such as {part('start', FIRST_USERS)}")
    return suite.under(tuple(load.of_users(ask.start) for load in suite.loads), suite.warmup_by)


def _servers_beside(ask: SearchAsk, first: SearchPart, repository: FromRepository) -> tuple[Variant, ...]:
    """Return the servers that are named besides suites; they get the first suite's requests. Raises UsageError."""
    letters = zip(string.ascii_uppercase, ask.targets, strict=False)
    targets = {letter: target for letter, target in letters if not is_suite(target)}
    if not targets:
        return ()
    if len(ask.targets) > len(string.ascii_uppercase):
        most = len(string.ascii_uppercase)
        raise UsageError(f"{len(ask.targets)} targets are too many", hint=f"give {most} at most")
    check_targets_are_whole(tuple(targets.values()))
    for target in targets.values():
        if is_url(target) and read_url(target)[1] != "/":
            raise UsageError(f"{target}: {first.name} says what is requested", hint=f"give {base_of(target)}")
        if is_websocket(target) and any(it.request.websocket is None for it in first.suite.scenarios):
            message = f"{target} is a WebSocket, and {first.name} loads requests"
            raise UsageError(message, hint=f"give {base_of(target)}")
    entries = servers(targets, ask, str)
    load = {"open": {"rate": FIRST_PER_S, "connections": CONNECTIONS}, "for": RUNNING_PROBE}
    request = first.suite.scenarios[0].request
    path = request.path if request.method == "GET" and "{" not in request.path else "/"
    asked = {"name": ALONE, "get": path}  # the readiness request
    document = {"servers": entries, "scenarios": [asked], "loads": {PROBE: load}}
    return read_written(document, "limit", referenced(ask), repository.origins())[0].variants


def read_servers_search(ask: SearchAsk, repository: FromRepository, project: Project | None = None) -> AskedSearch:
    """Return the search of servers that are named, or that a redline.yaml has. Raises UsageError."""
    if not ask.objective and (project is None or not project.written.objective):
        hint = _example()
        more = f", or write `objective: p99 < 200ms` in {project.document.file}" if project else ""
        raise UsageError("nothing says what is to be met", hint=hint + more)
    read_sets(ask.objective)  # what is wrong with most of it is said before revisions are looked up
    document = search_document(ask, repository.ends, str, project, named_in(ask.targets))
    scenarios = ask.scenarios if project and not describes_requests(ask) else ()
    selected = Overrides(servers=ask.servers, scenarios=scenarios)
    known = catalogue_of(document, repository.folder)
    name = "limit" if project is None else project_name(project)
    with in_its_words(project):
        written, text = read_written(document, name, referenced(ask, project), repository.origins(), selected, known)
    sets = _suite_sets(ask, written)
    starts = not all(variant.is_attached for variant in written.variants)
    if ask.replay is not None and (starts if ask.warmup is None else ask.warmup == DETECTED):
        written = written.warming_up(written.warmup_ns, detect=True)
    if not starts:
        refuse(ask.given(_OF_STARTS), "a server that is running already is not started, and takes no")
    trials = _trials(ask.trials) if starts else 0
    lengths = [part(name, getattr(ask, name)) for name in ("budget", "duration") if getattr(ask, name) is not None]
    with naming(lengths[0]) if lengths else nullcontext():
        suite, _ = to_search(written, max(trials, 1), by_users=ask.by_users)
    _refuse_what_cannot_be(sets, suite)
    refuse_short_recordings(suite, by_warm_up=ask.start is None)
    within_timeout(sets, suite.timeout_ns, part("timeout", ask.timeout or duration(suite.timeout_ns)), part("timeout"))
    connections = max(load.connections for load in suite.loads)
    by_probe = len(suite.variants) > 1
    terms = _terms(
        ask,
        sets,
        suite.loads,
        trials=trials,
        by_warm_up=ask.start is None and not ask.by_users,
        beyond=starts and not by_probe and not ask.no_beyond,
        curve=starts and not by_probe,
        by_probe=by_probe,
        lasts_ns=None if ask.budget is None else parse_duration(ask.budget),
        workers=None
        if starts and ask.threads is None
        else read_workers(1 if ask.threads is None else ask.threads, connections),
    )
    return AskedSearch(SearchRequest(suite, terms), text)


def read_sets(texts: Sequence[str], known: Selectable | None = None) -> dict[str, tuple[Objective, ...]]:
    """Read objectives by name; the text of an objective without a name is its name. Raises UsageError.

    `known` has the requests that conditions may be about: `items: p99 < 20ms` is about a request of this name, and
    else the set of this name. While they are not known, conditions about requests are not read.
    """
    sets: dict[str, tuple[Objective, ...]] = {}
    for text in texts:
        name, conditions = _name_and_conditions(text, known or Selectable())
        if known is None and ":" in conditions:
            continue
        with naming(part("objective")):
            parsed = parse_objectives(conditions, known or Selectable())
        if name in sets:
            raise UsageError(
                part("objective") + f": `{name}` is given twice", hint="write both in one objective, with a comma"
            )
        sets[name] = parsed
    return _with_few_errors(sets, {} if known is None else known.requests)


def _example() -> str:
    return f"give {part('objective', 'p99 < 200ms, errors < 0.1%')}"


def written_objective(ask: SearchAsk, sets: Iterable[str]) -> object:
    """The objectives that are asked for, as suites have them; `sets` are their names, in the same order."""
    if len(ask.objective) == 1 and [*sets] == [ask.objective[0].strip()]:
        return ask.objective[0]
    named = zip(sets, ask.objective, strict=True)
    return {name: text if name == text.strip() else text.partition(":")[2].strip() for name, text in named}


def _name_and_conditions(text: str, known: Selectable) -> tuple[str, str]:
    """Return the name of a set and its conditions; a set without a name has its text as its name. Raises UsageError."""
    name, colon, conditions = (part.strip() for part in text.partition(":"))
    of_request = known.is_request(name) or re.match(r"(?:[^:]+/)?[A-Z]+ /", name)
    if not colon or of_request or re.search("[<>=,]", name):
        return text.strip(), text
    labels = {label for labels in known.requests.values() for label in labels}
    if hint := did_you_mean(name, tuple(labels)):
        hint = f"{hint} Or give the objective a name that is like no request's"
        raise UsageError(part("objective", text) + f": there is no request `{name}`", hint=hint)
    return name, conditions


def _terms(ask: SearchAsk, sets: Sets, loads: Sequence[Load], **given: Any) -> SearchTerms:
    return SearchTerms(
        sets=dict(sets),
        start_per_s=_start_per_s(ask, loads),
        probes=at_least_one("probes", ask.probes),
        precision=read_part("precision", ask.precision, "precision", PrecisionSchema),
        looks=True,
        **given,
    )


def _with_few_errors(sets: Sets, requests: Mapping[str, Sequence[str]]) -> dict[str, tuple[Objective, ...]]:
    """Add `errors < 1%` to sets without a condition on all errors: a server that only refuses is fast.

    `requests` are the labels of requests by scenario, for scenarios that have several.
    """
    return {
        name: given
        if any(condition.metric == "errors" and condition.request is None for condition in given)
        else (*given, *_few_errors(given, requests))
        for name, given in sets.items()
    }


def _few_errors(conditions: tuple[Objective, ...], requests: Mapping[str, Sequence[str]]) -> Iterator[Objective]:
    """Yield the condition on errors, for the loads and scenarios of these conditions."""
    places = [
        (condition.load, scenario)
        for condition in conditions
        for scenario in (
            [condition.scenario]
            if condition.request is None or condition.scenario is not None
            else [name for name, labels in requests.items() if condition.request in labels]
        )
    ]
    for load, scenario in [(None, None)] if (None, None) in places else dict.fromkeys(places):
        yield Objective(metric="errors", below=True, limit=FEW_SHARE, text=FEW_ERRORS, load=load, scenario=scenario)


def _suite_sets(ask: SearchAsk, suite: Suite) -> dict[str, tuple[Objective, ...]]:
    """Return the objectives that are asked for, else the suite's. Raises UsageError if there are none."""
    known = Selectable.of((), suite.scenarios).without_places()
    requests = known.requests
    if ask.objective:
        return read_sets(ask.objective, known)
    if suite.objective_sets:
        return _with_few_errors(suite.objective_sets, requests)
    if suite.objectives:
        name = ", ".join(objective.text for objective in suite.objectives)
        return _with_few_errors({name: suite.objectives}, requests)
    raise UsageError(
        "nothing says what is to be met",
        hint=f"{_example()}, or write `objective: p99 < 200ms` in the suite",
    )


def within_timeout(sets: Sets, timeout_ns: int, timeout: str, name: str) -> None:
    """Raise UsageError for a latency limit that no request can exceed, since it times out before.

    `timeout` is what sets the timeout, with its value, and `name` without.
    """
    for condition in (condition for conditions in sets.values() for condition in conditions):
        if condition.metric in (*QUANTILES, "max") and condition.limit >= timeout_ns:
            raise UsageError(
                f"the objective `{condition.text}` is not below {timeout}, when requests time out",
                hint=f"raise {name} well above the limit",
            )


def _refuse_what_cannot_be(sets: Sets, suite: Suite) -> None:
    """Raise UsageError for what no search can do.

    That is a scenario and load without a condition, rows that are taken once, or a rule that lasts longer than a probe.
    """
    shortest_ns = min(shortest_probe_ns(load) for load in suite.loads)
    by_users = all(load.by_users for load in suite.loads)
    if long := next((rule for rule in suite.abort_when if rule.for_ns > shortest_ns), None):
        message = f"`{long.text}` cannot end a probe of {duration(shortest_ns)}, the shortest there may be"
        raise UsageError(message, hint="shorten its time, or make probes longer")
    if (longest_ns := max(scenario.longest_stream_ns for scenario in suite.scenarios)) > shortest_ns:
        why = "outlast a probe" if by_users else "have not all joined when a probe ends"
        message = f"users who stay for {duration(longest_ns)} {why}, which takes "
        hint = "let them stay for a shorter time, or make probes longer"
        raise UsageError(message + duration(shortest_ns), hint=hint)
    if once := next((scenario.name for scenario in suite.scenarios if scenario.takes_rows_once), None):
        message = f"`{once}` takes no row twice, and every probe of a search begins with the first"
        raise UsageError(message, hint="write `use: turn`")
    conditions = [condition for given in sets.values() for condition in given]
    if by_users and any(condition.metric == "achieved" for condition in conditions):
        message = "`achieved` is a share of a rate, and a search by users has none"
        raise UsageError(message, hint="give another objective, such as `p99 < 200ms`")
    judged = {
        (scenario.name, load.name): any(
            condition.load in {None, load.name}
            and condition.scenario in {None, scenario.name}
            and (condition.request is None or condition.request in scenario.several_labels)
            for condition in conditions
        )
        for scenario in suite.scenarios
        for load in suite.loads
    }
    if lacking := next((names for names, is_judged in judged.items() if not is_judged), None):
        others = dict.fromkeys(scenario for (scenario, _), is_judged in judged.items() if is_judged)
        instead = f"choose others with {part('scenarios')} and {part('loads')}"
        if others:
            instead = f"search others alone: {part('scenarios', ','.join(others))}"
        hint = f"give an objective for it, or {instead}"
        raise UsageError(f"no objective is for `{lacking[0]}` under the load `{lacking[1]}`", hint=hint)


def _trials(given: int | None) -> int:
    trials = TRIALS if given is None else at_least_one("trials", given)
    if trials < 2:
        message = part("trials", trials) + " says nothing of how starts differ"
        raise UsageError(message, hint=f"give {part('trials', 2)} or more, or leave it out")
    return trials


def _start_per_s(ask: SearchAsk, loads: Sequence[Load]) -> float | None:
    """Return the first rate, if given; recordings and users begin as their loads say.

    Raises UsageError for a rate that is too low for the length of the probes.
    """
    rated = [load for load in loads if not (load.is_replay or load.by_users)]
    if ask.start is None or not rated:
        return None
    with naming(part("start", ask.start)):
        first = parse_rate(ask.start)
    shortest_ns = min(load.duration_ns for load in rated)
    if first < (lowest := lowest_per_s(shortest_ns)):
        message = part("start", ask.start) + f": the lowest rate of probes of {duration(shortest_ns)} is {lowest:g}/s"
        longer = part("duration", f"{ceil(lowest / first * shortest_ns / 1e9)}s")
        raise UsageError(message, hint=f"give longer probes ({longer}), or begin at {part('start', f'{lowest:g}')}")
    return first
