"""The flags of `redline limit` read into what is searched: of a suite, or of a server that is running."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from redline.analysis.search_state import FIRST_PER_S
from redline.cli import places
from redline.cli.command_line import Arrivals
from redline.cli.flags import DETECTED, at_least_one, command_line, duration_ns, read_seed, read_timeout, read_workers
from redline.cli.load_target import read_picks, read_request, read_server, read_tls, read_url
from redline.errors import UsageError
from redline.model import Load, Objective, Open, Scenario, Suite
from redline.quantities import duration
from redline.running.session import SearchRequest, Source
from redline.search.steps import QUANTILES
from redline.suite import (
    DETECTION_NS,
    SHORTEST_PROBE_NS,
    Overrides,
    WrongValueError,
    load_catalogue,
    parse_objectives,
    parse_rate,
    parse_share,
    read_suite,
    read_text,
    referenced_files,
    to_search,
)
from redline.suite.schema.load import MOST_CONNECTIONS

TRIALS = 3
"""Fresh starts at the ends of each answer."""
FEW_ERRORS = "errors < 1%"
"""What a set of objectives asks for that says nothing of errors."""

Sets = Mapping[str, tuple[Objective, ...]]


@dataclass(frozen=True)
class LimitFlags:
    """The flags that suites and URLs share, as they were written; None where one was left out."""

    target: str
    objectives: list[str]
    start: str | None
    probes: int
    precision: str
    duration: str | None
    warmup: str | None
    seed: int | None
    output: Path | None

    @property
    def start_per_s(self) -> float | None:
        """The first rate, where it was given. Raises UsageError."""
        return None if self.start is None else _quantity("--start", self.start, parse_rate)


@dataclass(frozen=True)
class SuiteFlags:
    """The flags for suites alone."""

    overrides: Overrides
    trials: int | None
    beyond: bool


@dataclass(frozen=True)
class UrlFlags:
    """The flags for URLs alone: a suite says these things itself. None where one was left out."""

    arrivals: Arrivals | None = None
    connections: int | None = None
    timeout: str | None = None
    headers: list[str] | None = None
    method: str | None = None
    body: str | None = None
    status: int | None = None
    http2: bool = False
    insecure: bool = False
    cacert: Path | None = None
    threads: int | None = None


@dataclass(frozen=True)
class SuiteSearch:
    """The search of a suite, where it comes from, and the names of the loads that are not searched."""

    request: SearchRequest
    source: Source
    ignored: tuple[str, ...]


def read_suite_search(flags: LimitFlags, only: SuiteFlags) -> SuiteSearch:
    """What is searched of a suite. Raises UsageError."""
    file = Path(flags.target)
    text = read_text(file)
    trials = _trials(only.trials)
    catalogue = load_catalogue(places.catalogue(file))
    asked = read_suite(text, str(file), catalogue, only.overrides, referenced_files(file))
    suite, ignored = to_search(asked, trials)
    sets = _suite_sets(flags, suite)
    _within_timeout(sets, suite.timeout_ns, f"`timeout` {duration(suite.timeout_ns)}")
    request = _request(flags, suite, sets, trials=trials, beyond=only.beyond)
    return SuiteSearch(request, Source(command_line(), str(file.resolve()), text), ignored)


def read_url_search(flags: LimitFlags, only: UrlFlags) -> SearchRequest:
    """What is searched of a running server: as of a suite of one server, scenario and load. Raises UsageError."""
    if not flags.objectives:
        raise UsageError("nothing says what is to be met", hint="give --objective 'p99 < 200ms, errors < 0.1%'")
    sets = read_sets(flags.objectives)
    endpoint, path = read_url(flags.target)
    tls = read_tls(flags.target, only.cacert, insecure=only.insecure)
    status = 200 if only.status is None else only.status
    request = read_request(path, only.method, only.headers or [], only.body, status, http2=only.http2)
    connections = 256 if only.connections is None else at_least_one("-c", only.connections, MOST_CONNECTIONS)
    shape = Open(
        rate_per_s=flags.start_per_s or FIRST_PER_S,
        arrivals=(only.arrivals or Arrivals.POISSON).value,
        connections=connections,
    )
    detected = flags.warmup == DETECTED
    suite = Suite(
        name=flags.target,
        variants=(read_server(endpoint, tls, http2=only.http2),),
        scenarios=(Scenario(name="limit", request=request, picks=read_picks(request)),),
        loads=(Load(name="probe", shape=shape, duration_ns=_probe_ns("-d", flags.duration or "5s")),),
        warmup_ns=DETECTION_NS if detected else duration_ns("--warmup", flags.warmup or "1s", least_ns=0),
        warmup_detect=detected,
        trials=1,
        seed=1 if flags.seed is None else read_seed(flags.seed),
        timeout_ns=read_timeout(only.timeout or "5s"),
    )
    _within_timeout(sets, suite.timeout_ns, f"--timeout {only.timeout or '5s'}")
    workers = read_workers(1 if only.threads is None else only.threads, connections)
    return _request(flags, suite, sets, url=flags.target, workers=workers, is_kept=flags.output is not None)


def read_sets(texts: list[str]) -> dict[str, tuple[Objective, ...]]:
    """Objectives by name; one without a name is its own. Raises UsageError."""
    sets: dict[str, tuple[Objective, ...]] = {}
    for text in texts:
        name, colon, conditions = text.partition(":")
        try:
            found = parse_objectives(conditions if colon else text)
        except WrongValueError as error:
            raise UsageError(f"--objective: {error.message}", hint=error.hint) from None
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
    url: str = "",
    workers: int | None = None,
    is_kept: bool = True,
) -> SearchRequest:
    return SearchRequest(
        suite=suite,
        sets=sets,
        start_per_s=flags.start_per_s,
        probes=at_least_one("--probes", flags.probes),
        precision=_quantity("--precision", flags.precision, parse_share),
        trials=trials,
        beyond=beyond,
        url=url,
        workers=workers,
        is_kept=is_kept,
    )


def _with_few_errors(sets: Sets) -> dict[str, tuple[Objective, ...]]:
    """Where nothing is said of errors, fewer than 1% are asked for: a server that only refuses is fast."""
    few = parse_objectives(FEW_ERRORS)
    return {
        name: found if any(each.metric == "errors" for each in found) else (*found, *few)
        for name, found in sets.items()
    }


def _suite_sets(flags: LimitFlags, suite: Suite) -> dict[str, tuple[Objective, ...]]:
    """The flags' objectives, else the suite's. Raises UsageError when there are none."""
    if flags.objectives:
        return read_sets(flags.objectives)
    if suite.objective_sets:
        return _with_few_errors(suite.objective_sets)
    if suite.objectives:
        return _with_few_errors({", ".join(each.text for each in suite.objectives): suite.objectives})
    raise UsageError(
        "nothing says what is to be met",
        hint="give --objective 'p99 < 200ms, errors < 0.1%', or write `objective: p99 < 200ms` in the suite",
    )


def _within_timeout(sets: Sets, timeout_ns: int, timeout: str) -> None:
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


def _probe_ns(flag: str, text: str) -> int:
    """The length of a probe. Raises UsageError."""
    found_ns = duration_ns(flag, text)
    if found_ns < SHORTEST_PROBE_NS:
        raise UsageError(f"{flag} {text} is too short", hint=f"a probe takes 1 s at least: give {flag} 1s or more")
    return found_ns


def _quantity(flag: str, text: str, parse: Callable[[str], float]) -> float:
    """A flag's number, more than 0. Raises UsageError."""
    try:
        found = parse(text)
    except WrongValueError as error:
        raise UsageError(f"{flag}: {error.message}", hint=error.hint) from None
    if found <= 0:
        raise UsageError(f"{flag} {text} is not possible", hint=f"give {flag} more than 0")
    return found
