"""The flags of `redline limit` as a search: of a suite, or of servers that the flags name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redline.cli.command_line import LimitFlags
from redline.cli.flags import at_least_one, command_line, naming, read_flag, read_suite_file, read_workers, refuse
from redline.cli.limit_document import limit_document
from redline.cli.origins import FromRepository
from redline.cli.request_flags import referenced
from redline.cli.written import read_written
from redline.errors import UsageError
from redline.model import Objective, Profile, Suite
from redline.model.search import SearchTerms
from redline.quantities import duration, parse_rate
from redline.running.searching import SearchRequest
from redline.running.session import Source
from redline.search.steps import QUANTILES
from redline.search.times import CONNECTIONS, FEW_ERRORS, FEW_SHARE, TRIALS
from redline.suite import parse_objectives, to_search
from redline.suite.schema.suite import PrecisionSchema

_OF_STARTS = {"trials", "no_beyond"}

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class ServersSearch:
    """The search of servers that flags name, and the suite that it is."""

    request: SearchRequest
    source: Source


@dataclass(frozen=True)
class SuiteSearch:
    """The search of a suite, where it comes from, and what is left out: loads by name, and kinds of profiles."""

    request: SearchRequest
    source: Source
    ignored: tuple[str, ...]
    unprofiled: tuple[Profile, ...]


def read_suite_search(file: Path, flags: LimitFlags) -> SuiteSearch:
    """What is searched of a suite. Raises UsageError."""
    trials = _trials(flags.trials)
    written, text = read_suite_file(file, flags)
    suite, ignored = to_search(written, trials)
    sets = _suite_sets(flags, suite)
    within_timeout(sets, suite.timeout_ns, f"`timeout` {duration(suite.timeout_ns)}")
    _refuse_without_objective(sets, suite)
    terms = _terms(flags, sets, trials=trials, beyond=not flags.no_beyond)
    source = Source(command_line(), str(file.resolve()), text)
    return SuiteSearch(SearchRequest(suite, terms), source, ignored, written.profile)


def read_servers_search(flags: LimitFlags, repository: FromRepository) -> ServersSearch:
    """What is searched of servers that flags name. Raises UsageError."""
    if not flags.objective:
        raise UsageError("nothing says what is to be met", hint="give --objective 'p99 < 200ms, errors < 0.1%'")
    sets = read_sets(flags.objective)
    document = limit_document(flags, repository.ends, str)
    written, text = read_written(document, "limit", referenced(flags), repository.origins())
    starts = not all(variant.is_attached for variant in written.variants)
    if not starts:
        refuse(flags.given(among=_OF_STARTS), "a server that is running already is not started, and takes no")
    trials = _trials(flags.trials) if starts else 0
    with naming(f"--for {flags.lasts}" if flags.lasts else f"-d {flags.duration}"):
        suite, _ = to_search(written, max(trials, 1))
    within_timeout(sets, suite.timeout_ns, f"--timeout {flags.timeout or duration(suite.timeout_ns)}")
    connections = CONNECTIONS if flags.connections is None else flags.connections
    by_probe = len(suite.variants) > 1
    terms = _terms(
        flags,
        sets,
        trials=trials,
        by_warm_up=flags.start is None,
        beyond=starts and not by_probe and not flags.no_beyond,
        curve=starts and not by_probe,
        by_probe=by_probe,
        workers=None
        if starts and flags.threads is None
        else read_workers(1 if flags.threads is None else flags.threads, connections),
    )
    return ServersSearch(SearchRequest(suite, terms), Source(command_line(), text=text))


def read_sets(texts: list[str]) -> dict[str, tuple[Objective, ...]]:
    """Objectives by name; one without a name is its own. Raises UsageError."""
    sets: dict[str, tuple[Objective, ...]] = {}
    for text in texts:
        name, colon, conditions = text.partition(":")
        with naming("--objective"):
            found = parse_objectives(conditions if colon else text)
        name = (name if colon else text).strip()
        if name in sets:
            raise UsageError(f"--objective: `{name}` is given twice", hint="write both in one, with a comma")
        sets[name] = found
    return _with_few_errors(sets)


def _terms(flags: LimitFlags, sets: Sets, **given: Any) -> SearchTerms:
    return SearchTerms(
        sets=dict(sets),
        start_per_s=_start_per_s(flags),
        probes=at_least_one("--probes", flags.probes),
        precision=read_flag("--precision", flags.precision, "precision", PrecisionSchema),
        **given,
    )


def _with_few_errors(sets: Sets) -> dict[str, tuple[Objective, ...]]:
    """The sets, with fewer than 1% of errors where they say nothing of errors: a server that only refuses is fast."""
    return {
        name: found if any(each.metric == "errors" for each in found) else (*found, *_few_errors(found))
        for name, found in sets.items()
    }


def _few_errors(conditions: tuple[Objective, ...]) -> Iterator[Objective]:
    """The condition of errors, for the loads and scenarios that these conditions are for."""
    for load, scenario in dict.fromkeys((condition.load, condition.scenario) for condition in conditions):
        yield Objective(metric="errors", below=True, limit=FEW_SHARE, text=FEW_ERRORS, load=load, scenario=scenario)


def _suite_sets(flags: LimitFlags, suite: Suite) -> dict[str, tuple[Objective, ...]]:
    """The flags' objectives, else the suite's. Raises UsageError when there are none."""
    if flags.objective:
        return read_sets(flags.objective)
    if suite.objective_sets:
        return _with_few_errors(suite.objective_sets)
    if suite.objectives:
        return _with_few_errors({", ".join(each.text for each in suite.objectives): suite.objectives})
    raise UsageError(
        "nothing says what is to be met",
        hint="give --objective 'p99 < 200ms, errors < 0.1%', or write `objective: p99 < 200ms` in the suite",
    )


def within_timeout(sets: Sets, timeout_ns: int, timeout: str) -> None:
    """Raises UsageError for a limit of latency that no request can exceed, since it is given up before.

    `timeout` is where the timeout is said, with its value.
    """
    for each in (condition for conditions in sets.values() for condition in conditions):
        if each.metric in (*QUANTILES, "max") and each.limit >= timeout_ns:
            raise UsageError(
                f"the objective `{each.text}` is not below {timeout}, at which requests time out",
                hint=f"raise {timeout.split(maxsplit=1)[0]} well above the limit",
            )


def _refuse_without_objective(sets: Sets, suite: Suite) -> None:
    """Raise UsageError for a scenario and load that no condition is for."""
    conditions = [each for found in sets.values() for each in found]
    for scenario in suite.scenarios:
        for load in suite.loads:
            if not any(
                condition.load in {None, load.name} and condition.scenario in {None, scenario.name}
                for condition in conditions
            ):
                raise UsageError(
                    f"no objective is for {scenario.name} under {load.name}",
                    hint="give one that is, or choose others with -m and -l",
                )


def _trials(given: int | None) -> int:
    trials = TRIALS if given is None else at_least_one("--trials", given)
    if trials < 2:
        raise UsageError(
            f"--trials {trials} says nothing of how starts differ", hint="give --trials 2 or more, or leave it out"
        )
    return trials


def _start_per_s(flags: LimitFlags) -> float | None:
    """The first rate, where it was given. Raises UsageError."""
    if flags.start is None:
        return None
    with naming(f"--start {flags.start}"):
        return parse_rate(flags.start)
