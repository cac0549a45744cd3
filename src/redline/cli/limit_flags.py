"""The flags of `redline limit` read into what is searched: of a suite, or of a server that is running."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from redline.analysis.search_state import FIRST_PER_S
from redline.cli.command_line import LimitFlags
from redline.cli.flags import (
    at_least_one,
    command_line,
    naming,
    read_flag,
    read_schema,
    read_suite_file,
    read_warm_up_flag,
    read_workers,
)
from redline.cli.load_flags import read_target
from redline.errors import UsageError
from redline.model import Objective, Profile, Suite
from redline.model.search import SearchTerms
from redline.quantities import duration, parse_rate
from redline.running.searching import SearchRequest
from redline.running.session import Source
from redline.search.steps import QUANTILES
from redline.suite import parse_objectives, to_search
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.suite import PrecisionSchema

TRIALS = 3
"""Fresh starts at the ends of each answer."""
FEW_ERRORS = "errors < 1%"
"""What a set of objectives asks for that says nothing of errors."""

Sets = Mapping[str, tuple[Objective, ...]]


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
    request = _request(flags, suite, sets, trials=trials, beyond=not flags.no_beyond)
    return SuiteSearch(request, Source(command_line(), str(file.resolve()), text), ignored, written.profile)


def read_url_search(url: str, flags: LimitFlags) -> SearchRequest:
    """What is searched of a running server: as of a suite of one server, scenario and load. Raises UsageError."""
    if not flags.objective:
        raise UsageError("nothing says what is to be met", hint="give --objective 'p99 < 200ms, errors < 0.1%'")
    sets = read_sets(flags.objective)
    variant, scenario = read_target(url, flags, "limit")
    connections = 256 if flags.connections is None else flags.connections
    length, timeout = flags.duration or "5s", flags.timeout or "5s"
    given: dict[str | int, str] = {"for": f"-d {length}", "connections": f"-c {connections}"}
    arrivals = flags.arrivals or "poisson"
    shape = {"rate": _start_per_s(flags) or FIRST_PER_S, "arrivals": arrivals, "connections": connections}
    load = read_schema(LoadSchema, given, {"for": length, "open": shape}).load("probe")
    warmup_ns, warmup_detect = read_warm_up_flag(flags.warmup or "1s")
    suite = Suite(
        name=url,
        variants=(variant,),
        scenarios=(scenario,),
        loads=(load,),
        warmup_ns=warmup_ns,
        warmup_detect=warmup_detect,
        trials=1,
        seed=read_flag("--seed", 1 if flags.seed is None else flags.seed, "seed"),
        timeout_ns=read_flag("--timeout", timeout, "timeout"),
    )
    with naming(f"-d {length}"):
        to_search(suite, trials=1)
    within_timeout(sets, suite.timeout_ns, f"--timeout {timeout}")
    workers = read_workers(1 if flags.threads is None else flags.threads, connections)
    return _request(flags, suite, sets, by_warm_up=flags.start is None, workers=workers)


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


def _request(
    flags: LimitFlags,
    suite: Suite,
    sets: Sets,
    *,
    trials: int = 0,
    beyond: bool = False,
    by_warm_up: bool = False,
    workers: int | None = None,
) -> SearchRequest:
    terms = SearchTerms(
        sets=dict(sets),
        start_per_s=_start_per_s(flags),
        by_warm_up=by_warm_up,
        probes=at_least_one("--probes", flags.probes),
        precision=read_flag("--precision", flags.precision, "precision", PrecisionSchema),
        trials=trials,
        beyond=beyond,
        workers=workers,
    )
    return SearchRequest(suite, terms)


def _with_few_errors(sets: Sets) -> dict[str, tuple[Objective, ...]]:
    """Where nothing is said of errors, fewer than 1% are asked for: a server that only refuses is fast."""
    few = parse_objectives(FEW_ERRORS)
    return {
        name: found if any(each.metric == "errors" for each in found) else (*found, *few)
        for name, found in sets.items()
    }


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
    for each in (one for conditions in sets.values() for one in conditions):
        if each.metric in (*QUANTILES, "max") and each.limit >= timeout_ns:
            raise UsageError(
                f"the objective `{each.text}` is not below {timeout}, at which requests time out",
                hint=f"raise {timeout.split(maxsplit=1)[0]} well above the limit",
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
