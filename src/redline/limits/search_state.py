"""The state of the search on a cell, from the recordings of its loads: while it runs, is resumed, or is judged.

Pure: the state follows from the plan and the recordings alone.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from redline.analysis.own_servers import own_server
from redline.analysis.percentiles import journey_report
from redline.findings import Pace, judge_probe, judge_search, judge_server, judge_starts
from redline.findings.failed import LEFT_OVER, all_failed
from redline.limits.answers import (
    answer,
    messages_seen,
    probe,
    probe_bounds,
    report_of_messages,
    reports_by_request,
    requests_seen,
    with_curve,
)
from redline.limits.doubts import Seen
from redline.limits.probe_loads import (
    FIRST_PER_S,
    FIRST_SHARE,
    MOST_USERS,
    OVERLOAD_TEST,
    answered_at_last_per_s,
    lasts_ns,
    load_text,
    lowest_per_s,
    requests_per_journey,
    searched_load,
    slice_of,
    under_probe,
    with_users,
)
from redline.model import (
    Cell,
    Finding,
    Load,
    Manifest,
    Objective,
    Open,
    ServerFacts,
    Traffic,
)
from redline.model.limits import Beyond, CellLimit, LimitProbe, LimitStart, ProbePhase, SearchEnd
from redline.model.load import SentStretch
from redline.model.percentile import Effect
from redline.model.plan import never_aborted
from redline.model.search import LoadPhase, ProbeRecording, SearchTerms
from redline.model.timeline import SearchedLoad
from redline.quantities import duration, paced, rate, significant, speed, users
from redline.search import Converged, Doomed, Evidence, Exhausted, Proposal, Search, Settings
from redline.search.client import (
    busy_connections,
    busy_users,
    busy_workers,
    calmest_ns,
    disturbed,
    errors_missed,
    failing,
    lacking,
    late_engine,
    stolen,
)
from redline.search.curve import CURVE_SHARES, curve, rates_for_curve
from redline.search.evidence import overloaded
from redline.search.overload import OverloadPlan, judge_overload, overload_plan
from redline.search.stretch import FEWEST, SPAN, asked_stretch, at_rate, at_speed, stretch_of

_PROBES: Mapping[LoadPhase, ProbePhase] = {"search": "search", "confirm": "confirm", "curve": "curve"}


@dataclass
class SearchState:
    """The evidence of a cell's loads so far, the next load, or how the search ended."""

    manifest: Manifest
    cell: Cell
    leads: Sequence["SearchState"] = ()
    """The searches before it whose servers get the same load: of a recording they decide how much of it is sent."""
    probes: list[LimitProbe] = field(default_factory=list)
    starts: list[LimitStart] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    made: list[SearchedLoad] = field(default_factory=list)
    broken: str = ""
    left_out: str = ""
    """What there was no time for, once the time of the search is over."""
    retries: int = 0
    loads: int = 0
    next_start: int = 0
    search: Search = field(init=False)
    stretch: SentStretch | None = field(init=False, default=None)
    """What all probes send of a recording; None for loads with a rate."""
    _step: Proposal | Converged | Exhausted | Doomed = field(init=False)
    _pending: Evidence | None = None
    _overload: ProbeRecording | None = None
    _curve_made: int = 0
    _curve_wanted: tuple[float, ...] | None = None
    _calm_ns: int | None = None
    _build: tuple[str, str] = ("", "")
    _host: str = ""
    _encoded: dict[str, None] = field(default_factory=dict)
    _paces: list[Pace] = field(default_factory=list)
    _servers: dict[int, ServerFacts] = field(default_factory=dict)
    """The server of each start."""

    def __post_init__(self) -> None:
        if self.cell.load.is_replay:
            self.stretch = asked_stretch(self.cell.load)
        self.search = Search(self.sets, self.settings)
        self._step = self.search.next()

    @property
    def terms(self) -> SearchTerms:
        """The terms of the search on the cell."""
        return self.manifest.terms

    @property
    def settings(self) -> Settings:
        """The settings of the search."""
        load, by_users = self.cell.load, self.cell.load.by_users
        first = load.connections if by_users else self.terms.start_per_s or load.open_shape.rate_per_s or FIRST_PER_S
        settings = Settings(
            lowest_per_s=1 if by_users else lowest_per_s(load.duration_ns),
            highest_per_s=MOST_USERS if by_users else Settings.highest_per_s,
            start_per_s=first,
            by_users=by_users,
            lower="" if by_users else "for lower rates give longer probes (-d)",
            probes=self.terms.probes,
            precision=self.terms.precision,
            trials=0 if self.cell.variant.is_attached else self.terms.trials,
            looks=self.terms.looks,
        )
        if self.stretch is None:
            return settings
        return self._within_stretch(settings, self.stretch, self.stretch.per_s * load.open_shape.speed)

    def _within_stretch(self, settings: Settings, stretch: SentStretch, start_per_s: float) -> Settings:
        """The settings for a stretch of a recording, whose length in seconds limits the speeds that can be tried."""
        asked_s = self.cell.load.duration_ns / 1e9
        highest_per_s = stretch.requests * SPAN / asked_s
        start_per_s = min(start_per_s, highest_per_s)
        lasts = duration(self.cell.load.duration_ns / SPAN)
        return replace(
            settings,
            start_per_s=start_per_s,
            lowest_per_s=start_per_s / SPAN,
            highest_per_s=highest_per_s,
            recorded_per_s=stretch.per_s,
            lower=f"begin slower: --start {speed(start_per_s / SPAN / stretch.per_s)}",
            higher=f"the recording lasts only {lasts} then: take a longer one, or give shorter probes (-d)"
            if stretch.requests == len(self.cell.load.open_shape.replayed_ns)
            else f"begin faster: --start {speed(highest_per_s / stretch.per_s)}",
        )

    def load_at(self, rate_per_s: float) -> Load:
        """The load of a probe at this rate, or with as many users."""
        load = self.cell.load
        if load.by_users:
            return with_users(self.cell, round(rate_per_s))
        return load.at_rate(rate_per_s) if self.stretch is None else at_rate(load, self.stretch, rate_per_s)

    def _as_sent(self, made: ProbeRecording) -> Load:
        """The load of a recording, with the times that it does not keep itself."""
        shape = made.load.shape
        if not isinstance(shape, Open) or shape.stretch is None:
            return made.load
        return at_speed(self.cell.load, shape.stretch, shape.speed).lasting(made.load.duration_ns)

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """The objectives of all sets: the engine's tolerable lateness depends on them."""
        return tuple(objective for conditions in self.sets.values() for objective in conditions)

    @cached_property
    def sets(self) -> Mapping[str, tuple[Objective, ...]]:
        """The objectives of the cell by the names of their sets."""
        asked = self.terms.asked.get(self.cell.id, self.terms.sets)
        conditions_of = {
            name: tuple(condition for condition in conditions if condition.applies_to(self.cell))
            for name, conditions in self.terms.sets.items()
            if name in asked
        }
        never = (never_aborted(rules),) if (rules := self.cell.abort_when) else ()
        return {name: (*conditions, *never) for name, conditions in conditions_of.items() if conditions}

    def add(self, made: ProbeRecording) -> Evidence | None:
        """Take in another load. Returns its evidence if it was a probe with traffic."""
        recording = made.recording
        self.loads, self.next_start = max(self.loads, recording.position + 1), max(self.next_start, made.start + 1)
        self.retries += made.again
        self._host = recording.host or self._host
        if recording.server is not None:
            self._build = recording.server.build, recording.server.runtime_version
            self._servers.setdefault(made.start, recording.server)
        if recording.traffic is not None:
            self._encoded |= dict.fromkeys(recording.traffic.encoded)
        if recording.traffic is not None and made.phase != "start":
            by_users = self.settings.by_users
            self.made.append(searched_load(made, recording.traffic, len(self.probes), by_users=by_users))
        if made.phase in ("overload", "over"):
            self._add_end(made)
            return None
        self.broken = self._failure_of(made)
        if made.phase == "warmup" and not self.broken:
            self._add_warm_up(made)
        if made.phase == "approach" and recording.traffic is not None:
            self._calm_ns = calmest_ns(recording.traffic, self._calm_ns)
        if made.phase == "curve":
            self.curve_left()  # what the curve lacks is decided before the first probe for it
        phase = _PROBES.get(made.phase)
        if recording.traffic is None or phase is None:
            return None
        evidence, bounds = self._evidence(made, recording.traffic)
        cut = made.cut or bool(recording.traffic.aborted_by)
        ignored = LEFT_OVER if cut else ()  # requests left over when Redline ended the probe are no failures
        failures = tuple(failure for failure in recording.traffic.failures if failure.outcome not in ignored)
        self.probes.append(
            probe(
                evidence,
                self.sets,
                made.why,
                phase,
                fresh=phase == "confirm",
                start=made.start,
                began_s=self._began_s(made),
                failures=failures,
                requests=reports_by_request(self.cell.scenario, recording.traffic, evidence, bounds),
                bounds=bounds,
                journeys=journey_report(self.cell.scenario, [recording.traffic.journeys], evidence.seconds),
                streams=report_of_messages(self.cell.scenario, recording.traffic, evidence, bounds),
                recording=made.stored_as(self.cell),
            )
        )
        if not self.broken:
            self._take(made, evidence)
        return evidence

    def _began_s(self, made: ProbeRecording) -> float:
        """When a load began, in seconds since the search began, by the clock of the lab."""
        return max(made.recording.started_unix_ns - self.manifest.created_unix_ns, 0) / 1e9

    def _add_end(self, made: ProbeRecording) -> None:
        """Take in the overload test, or that there was no time for more."""
        if made.phase == "overload":
            self._overload = made
            return
        self.next()  # takes in the last probe
        self.left_out = made.why

    def next(self) -> Proposal | Converged | Exhausted | Doomed:
        """The search's next proposal, or its end."""
        if self._pending is not None:
            self.search.add(self._pending)
            self._pending, self._step = None, self.search.next()
        return self._step

    def curve_left(self) -> tuple[float, ...]:
        """The rates that the curve still needs, once the search has ended: a search stays near the limit."""
        if self.cell.variant.is_attached or not self.terms.curve or self.cell.load.by_users:
            return ()
        if self._curve_wanted is None:
            self._curve_wanted = rates_for_curve(curve(self.probes), self.settings.lowest_per_s)
        return self._curve_wanted[self._curve_made :]

    def overload_wanted(self) -> OverloadPlan | str:
        """The overload test that follows the search, or why there is none."""
        if self.cell.variant.is_attached or not self.terms.beyond:
            starts = not self.cell.variant.is_attached
            return "it was not asked for" if starts else "that is for servers that Redline starts"
        if self.cell.load.by_users or self.stretch is not None:
            own = "users wait for their answers" if self.stretch is None else "a recording has its own times"
            return f"it needs rates, and {own}"
        if self.cell.abort_when:
            return "`abort_when` would end it: it overloads the server"
        limits, evidence = self.search.limits(), self.search.evidence
        answered_per_s = max((shown.answered_per_s for shown in evidence if not shown.client), default=0.0)
        ends = [(limit.low_per_s, limit.high_per_s) for limit in limits]
        if answered_per_s == 0 or all(high is None for _, high in ends):
            return "no rate above the limit is known"
        plan = overload_plan(ends, answered_per_s, self.cell.load.duration_ns / 1e9)
        if self.search.client_limited(plan.overload_per_s):
            return f"the client is the limit, not the server, below {rate(plan.overload_per_s)}"
        return plan

    @property
    def ended(self) -> bool:
        """Whether nothing is left to do for this cell."""
        if self.broken or self.left_out:
            return True
        if isinstance(self.next(), Proposal) or self.curve_left():
            return False
        return self._overload is not None or isinstance(self.overload_wanted(), str)

    def longest_left_ns(self) -> int:
        """The longest that the rest of the search takes, roughly, in nanoseconds, without waits for a busy host."""
        starts, loads = 1, self.settings.most_probes(len(self.sets))
        if not self.cell.variant.is_attached:
            starts += self.settings.trials
            loads += len(CURVE_SHARES) * self.terms.curve + OVERLOAD_TEST * self.terms.beyond
        return lasts_ns(self.cell, max(0, loads - len(self.probes)), max(0, starts - len(self.starts)))

    def limit(self) -> CellLimit:
        """The published state of the cell."""
        step = self.next()
        answers = self.search.limits() if isinstance(step, Proposal) or self.broken else step.limits
        ended, reason = self._ending(step)
        build, runtime = self._build
        seen = Seen(tuple(self.probes), tuple(self.findings))
        cell, paths = self.cell, {request.path for request in self.cell.scenario.requests}
        limit = CellLimit(
            slug=cell.slug,
            server=cell.variant.slug,
            target=own_server(
                cell.variant,
                paths.pop() if len(paths) == 1 else "",
                opens_websocket=cell.scenario.request.websocket is not None,
            ),
            scenario=cell.scenario.name,
            load=load_text(cell, self.stretch),
            stretch=self.stretch,
            build=build,
            runtime_version=runtime,
            encoded=tuple(self._encoded),
            host=self._host,
            ended=ended,
            reason=reason,
            left_out=self.left_out,
            confirmed=isinstance(step, Converged) and step.confirmed and not self.broken,
            limits=tuple(answer(limit, self.search, seen) for limit in answers) if self.search.evidence else (),
            probes=tuple(self.probes),
            starts=tuple(self.starts),
            findings=(
                *self.findings,
                *judge_starts(self.cell, tuple(self._servers.values())),
                *judge_search(self.cell, self._paces),
            ),
            loads=tuple(self.made),
        )
        return with_curve(limit, self._beyond(step))

    def _ending(self, step: Proposal | Converged | Exhausted | Doomed) -> tuple[SearchEnd, str]:
        """How the search ended, and why if that says more."""
        if self.broken:
            return "broken", self.broken
        match step:
            case Converged():
                return "converged", ""
            case Exhausted():
                return "exhausted", ""
            case Doomed():
                return "doomed", step.reason
            case Proposal() if self.left_out:
                sides = [(limit.low_per_s, limit.high_per_s) for limit in self.search.limits()]
                return ("converged" if sides and None not in chain(*sides) else "exhausted"), ""
            case Proposal():
                return "interrupted", ""

    def _take(self, made: ProbeRecording, evidence: Evidence) -> None:
        if made.phase == "curve":
            self._curve_made += not made.again
            return
        if not made.again:
            self.next()
        self._pending = evidence

    def _add_warm_up(self, made: ProbeRecording) -> None:
        traffic, cell = made.recording.traffic, self.cell
        if self.terms.by_warm_up and traffic is not None and not self.probes:
            first_per_s = FIRST_SHARE * answered_at_last_per_s(traffic) / requests_per_journey(traffic)
            if first_per_s > 0:
                self._begin_at(float(significant(first_per_s, 2)))
                self._step = self.search.next()
        if cell.variant.is_attached:  # resumed, it is warmed up again, and is still the same start
            self.starts.clear()
        if not cell.warmup_detect:
            self.starts.append(LimitStart(warmed_ns=cell.warmup_ns))
        elif traffic is not None:
            began_ns = traffic.measure_start_ns
            self.starts.append(LimitStart(warmed_ns=began_ns, steady=began_ns < cell.warmup_ns))

    def _begin_at(self, first_per_s: float) -> None:
        """Begin at a rate; of a recording send what lasts as long as a probe at this rate, to all servers the same."""
        settings, load = self.search.settings, self.cell.load
        if self.stretch is None:
            self.search.settings = replace(settings, start_per_s=first_per_s)
            return
        if lead := next((lead for lead in self.leads if lead.starts and lead.stretch is not None), None):
            self.stretch, self.search.settings = lead.stretch, lead.search.settings
            return
        self.stretch = stretch_of(load.open_shape, max(FEWEST, round(first_per_s * load.duration_ns / 1e9)))
        first = float(significant(first_per_s / self.stretch.per_s, 2)) * self.stretch.per_s
        self.search.settings = self._within_stretch(settings, self.stretch, first)

    def _evidence(self, made: ProbeRecording, traffic: Traffic) -> tuple[Evidence, dict[str, Effect]]:
        """The evidence of a probe, why it may show nothing about the server, and which percentiles are bounds."""
        cut, aborted = made.cut or bool(traffic.aborted_by), traffic.aborted_by
        slices = tuple(slice_of(interval, cut=cut) for interval in traffic.intervals if interval.phase != "warmup")
        evidence = Evidence(made.tried, slices, hopeless=made.cut, start=made.start, aborted=aborted)
        evidence = replace(evidence, by_users=self.cell.load.by_users)
        evidence = replace(evidence, requests=dict(requests_seen(self.cell.scenario, traffic, cut=cut)))
        evidence = replace(evidence, messages=dict(messages_seen(self.cell.scenario, traffic)))
        if self.stretch is not None:
            evidence = replace(evidence, speed=made.load.open_shape.speed)
        evidence = self._limited(evidence, made, traffic)
        if not self.probes:  # findings about the server itself concern no single probe
            doubts = judge_server(self.cell, made.recording)
            self.findings.extend(finding.about(self.cell.id, None) for finding in doubts)
        if evidence.is_queue and not (evidence.client or evidence.requests or evidence.messages):
            full = overloaded(evidence)
            if full or not any(slice_.errors for slice_ in evidence.slices):  # an error takes another time
                pace = Pace.of(made.recording, evidence.response, evidence.answered_per_s, overloaded=full)
                self._paces.append(pace)
        findings = self._probe_findings(made)
        self.findings.extend(findings)
        evidence = disturbed(evidence, findings, self.objectives, patient=made.retries_left > 0)
        return evidence, probe_bounds(self.cell, traffic, findings)

    def _probe_findings(self, made: ProbeRecording) -> tuple[Finding, ...]:
        """The findings about engine and machine during a load."""
        findings = judge_probe(under_probe(self.cell, self._as_sent(made)), made.recording)
        return tuple(finding.about(self.cell.id, len(self.probes)) for finding in findings)

    def _limited(self, evidence: Evidence, made: ProbeRecording, traffic: Traffic) -> Evidence:
        """The evidence, marked with why the load generator was the limit, if it was."""
        self._calm_ns = calmest_ns(traffic, self._calm_ns)
        if lacked := lacking(traffic):
            return replace(evidence, client=lacked, hopeless=False)
        waited = errors_missed(evidence, traffic, self.objectives, waited=True)
        if busy := self._too_busy(made, traffic):
            return replace(evidence, client=busy, lengthens=True, missed=waited, hopeless=False)
        evidence = replace(evidence, missed=errors_missed(evidence, traffic, self.objectives))
        if failing(traffic):
            return evidence
        late = late_engine(evidence, traffic, (*self.objectives, *self._held(evidence)), self.cell.scenario)
        if late.client or self.cell.load.by_users:
            return late
        full = busy_connections(traffic, made.load.connections, self._calm_ns, made.load.most_in_flight)
        journey = self.cell.scenario.journey
        if not full and journey is not None and journey.once:
            full = busy_users(traffic, journey.users_of(made.load.connections), self._calm_ns)
        return replace(evidence, client=full, lengthens=True, missed=waited, hopeless=False) if full else evidence

    def _held(self, evidence: Evidence) -> Iterator[Objective]:
        """What the rule on response times that ended a probe asks for: a late engine may be why it held."""
        for rule in self.cell.abort_when:
            if rule.metric != "errors" and evidence.aborted.startswith(rule.text):
                yield Objective(metric=rule.metric, below=True, limit=rule.limit, text=rule.text)

    def _too_busy(self, made: ProbeRecording, traffic: Traffic) -> str:
        """A message if the engine's workers had no time left; workers that spin are always busy."""
        return "" if self.cell.engine.spin else busy_workers(traffic, made.workers)

    def _beyond(self, step: Proposal | Converged | Exhausted | Doomed) -> Beyond | str:
        if self._overload is None:
            plan = self.overload_wanted()
            if isinstance(plan, str) and not isinstance(step, Proposal):
                return plan
            if self.left_out and self.terms.beyond:
                return "the time of the search was over"
            never = self.cell.variant.is_attached or not self.terms.beyond
            return plan if isinstance(plan, str) and never else "it was not reached"
        made = self._overload
        traffic, failure = made.recording.traffic, made.recording.failure
        plan = self._as_loaded(made)
        client = ""
        if traffic is not None:
            client = lacking(traffic) or self._too_busy(made, traffic) or stolen(self._probe_findings(made))
        slices = [slice_of(interval) for interval in traffic.intervals if interval.phase != "warmup"] if traffic else []
        failed = self._failure_of(made)
        died, stopped = (failed, "") if failure is not None and failure.kind == "died" else ("", failed)
        return judge_overload(plan, slices, died=died, stopped=stopped, client=client)

    def _as_loaded(self, made: ProbeRecording) -> OverloadPlan:
        """The plan of an overload test from its load: later rules might plan another."""
        shape = made.load.open_shape
        plan = self.overload_wanted()
        if isinstance(plan, OverloadPlan) and plan.shape(self.cell.load.open_shape) == shape:
            return plan
        before_s, overload_s = shape.stages[0].over_ns / 1e9, shape.stages[2].over_ns / 1e9
        seconds = made.load.duration_ns / 1e9
        answered_per_s = max((evidence.answered_per_s for evidence in self.search.evidence), default=0.0)
        return replace(
            overload_plan([], answered_per_s, self.cell.load.duration_ns / 1e9),
            calm_per_s=made.rate_per_s,
            overload_per_s=shape.stages[1].to,
            before_s=before_s,
            overload_s=overload_s,
            after_s=seconds - before_s - overload_s,
        )

    def _failure_of(self, made: ProbeRecording) -> str:
        """Why the search could not go on after a load; empty if it could."""
        failure = made.recording.failure
        name, warms = self.cell.variant.slug, made.phase in ("warmup", "approach")
        if failure is None:
            traffic = made.recording.traffic
            why = all_failed(traffic) if warms and traffic is not None else ""
            return f"{name} gave no right answer while it was warmed up: {why}" if why else ""
        if failure.kind == "died":
            match made.phase:
                case "start" if self.cell.variant.is_attached:
                    return failure.message  # it need not have run at all
                case "start":
                    when = "before any load"
                case "warmup" | "approach":
                    when = "while it was warmed up"
                case _:
                    most_per_s = 0.0 if made.load.by_users else made.load.open_shape.most_per_s
                    when = f"at {self._rate_text(most_per_s or made.tried)}"
            return f"{name} died {when}: {failure.message}"
        if failure.kind == "wrong_answer" and failure.stage == "load" and warms:
            return f"{name} gave no right answer while it was warmed up: {failure.message}"
        if failure.kind == "wrong_answer" and failure.stage == "load":
            return f"{name} gives no right answer any more after {self._rate_text(made.tried)}: {failure.message}"
        return failure.message

    def _rate_text(self, rate_per_s: float) -> str:
        if self.cell.load.by_users:
            return users(rate_per_s)
        return paced(rate(rate_per_s), None if self.stretch is None else rate_per_s / self.stretch.per_s)


def search_state(
    manifest: Manifest, cell: Cell, made: Iterable[ProbeRecording], before: Iterable[SearchState] = ()
) -> SearchState:
    """The state of a cell's search after these loads; `before` are the searches before it, in the search's order."""
    load = cell.scenario.name, cell.load.name
    leads = tuple(other for other in before if (other.cell.scenario.name, other.cell.load.name) == load)
    state = SearchState(manifest, cell, leads)
    for recording in made:
        state.add(recording)
    return state
