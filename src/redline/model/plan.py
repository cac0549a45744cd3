"""From a suite to its plan: Suite, Cell, PlannedTrial and Plan."""

import hashlib
import json
import re
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Literal

from pydantic import Field, model_validator

from redline.model.base import Frozen, omitted_if_default
from redline.model.catalogue import Revision
from redline.model.claim import Claim
from redline.model.estimate import Metric
from redline.model.exchange import Scenario
from redline.model.load import EngineMode, Load
from redline.model.profile import Profile
from redline.model.streams import MessageMetric
from redline.model.variant import Variant

Design = Literal["interleaved", "duet", "parallel-duet"]
"""How servers are compared: by trials of each alone, or also by duets, whose servers are loaded in turn or at once."""

COPY = "number of the build of its servers that runs, from 0"
PLACES = "numbers of the sets of cores, the control's last, if servers are loaded at the same time"
DETECTED = "`warmup_ns` is the maximum: the measurement begins as soon as the server is steady"
WARMED_BY = "the load of the warm-up, if it differs; the cell's own load then runs for 15 s before it counts"
SAMPLED_NS = 2_000_000_000
"""The least measurement of each server in a sampled duet: profilers take up to a second to begin on a busy machine."""
SETTLING_NS = 15_000_000_000
"""How long a cell's own load runs after `warmup_by` before it counts.

Few users do not reach all code that many do, nor prepare a server for a rate. http4s near its limit needed 8 to 12 s
until no backlog was left; Spring Boot under 128 users became faster for 12 s."""


class Objective(Frozen):
    """A condition such as p99 < 200 ms or errors < 0.1%, for all cells, or those of a load, scenario or request."""

    metric: (
        Literal["p50", "p75", "p90", "p95", "p99", "p99.9", "max", "errors", "achieved", "aborted", "goodput"]
        | MessageMetric
    )
    below: bool
    limit: float = Field(description="nanoseconds for a percentile, a share (0 to 1) for the others")
    text: str
    load: str | None = omitted_if_default(None, "the load that it applies to; absent: all loads")
    scenario: str | None = omitted_if_default(None, "the scenario that it applies to; absent: all scenarios")
    request: str | None = omitted_if_default(
        None, "the one of a scenario's several requests that it applies to, by its name or as `GET /items`; absent: all"
    )

    @property
    def times(self) -> str:
        """The times of messages that it is about: one of `MESSAGE_TIMES`; empty for any other metric."""
        return self.metric.partition(" ")[0] if " " in self.metric else ""

    @property
    def on_everything(self) -> "Objective":
        """The same condition, for all requests together."""
        return self.model_copy(update={"request": None})

    def applies_to(self, cell: "Cell") -> bool:
        """Whether the cell has to meet it. Only a load with a rate or a pace has one to achieve."""
        return (
            self.load in (None, cell.load.name)
            and self.scenario in (None, cell.scenario.name)
            and (self.request is None or self.request in cell.scenario.several_labels)
            and (self.metric != "achieved" or cell.load.is_scheduled)
        )


def never_aborted(rules: "Iterable[AbortRule]") -> Objective:
    """The condition of a search that none of these rules ends a probe."""
    text = f"never {' or '.join(rule.text for rule in rules)}"
    return Objective(metric="aborted", below=True, limit=0.0, text=text)


class AbortRule(Frozen):
    """A condition such as errors > 5% that ends a load once it has held for a time."""

    metric: Literal["errors", "p50", "p75", "p90", "p95", "p99", "p99.9", "max"] | MessageMetric
    limit: float = Field(description="a share (0 to 1) for errors, nanoseconds for the others")
    for_ns: int = Field(gt=0)
    text: str


class AutoTrials(Frozen):
    """From `at_least` to `Suite.trials` rounds, until comparisons are precise enough or the budget is spent.

    All comparisons with baselines count, and cells without a baseline, in the main metric of their load. `precision`
    is the relative half width of their intervals; without it, only the budget decides.
    """

    precision: float | None = Field(default=None, gt=0, lt=1)
    at_least: int = Field(ge=1)
    budget_ns: int | None = omitted_if_default(None, "no further round begins once trials have taken this long", gt=0)


class Suite(Frozen):
    """A suite, validated and resolved against the catalogue."""

    name: str
    about: str = ""
    variants: tuple[Variant, ...]
    baseline: str | None = Field(default=None, description="slug of the variant that the others are compared with")
    baselines: dict[str, str] = omitted_if_default({}, "the baseline's slug by variant slug, if there are several")
    ceiling: Variant | None = Field(default=None, description="the server that shows the limit of this machine")
    scenarios: tuple[Scenario, ...]
    loads: tuple[Load, ...]
    warmup_ns: int = Field(ge=0)
    warmup_detect: bool = omitted_if_default(default=False, description=DETECTED)
    warmup_by: Load | None = omitted_if_default(None, WARMED_BY)
    warms_counted: bool = omitted_if_default(default=True, description="loads that end by a count are warmed up, too")
    warmup_again_ns: int | None = omitted_if_default(None, "of a start's further loads; absent: as for its first", ge=0)
    trials: int = Field(ge=1, description="of each cell; with `auto`, at most")
    auto: AutoTrials | None = omitted_if_default(None)
    builds: int = omitted_if_default(1, "how often each server is built; rounds take them in turn", ge=1)
    rest_ns: int = omitted_if_default(0, "how long nothing runs before each start but the first", ge=0)
    seed: int = 1
    design: Design = omitted_if_default("interleaved")
    alone: bool = omitted_if_default(default=True, description="each server is also measured alone; else only in duets")
    metric: Metric | None = omitted_if_default(None, "the metric of verdicts; absent: the loads' primary metrics")
    same_answers: bool = omitted_if_default(default=False, description="a duet whose servers answer differently fails")
    timeout_ns: int = Field(default=5_000_000_000, gt=0)
    threshold: float = Field(default=0.02, gt=0, description="the smallest relative difference that matters")
    objectives: tuple[Objective, ...] = ()
    abort_when: tuple[AbortRule, ...] = omitted_if_default((), "what ends loads early")
    claims: tuple[Claim, ...] = omitted_if_default((), "what somebody published about its cells")
    objective_sets: dict[str, tuple[Objective, ...]] = omitted_if_default({}, "sets of objectives by name, if named")
    profile: tuple[Profile, ...] = omitted_if_default((), "profiles that further trials of each cell make")
    why: bool = omitted_if_default(default=False, description="sampled starts of duets account for the differences")
    driver: str | None = omitted_if_default(None, "the driver of another package, in place of redline-engine")
    monitors: tuple[str, ...] = omitted_if_default((), "monitors of other packages that watch every trial")
    engine: EngineMode = omitted_if_default(EngineMode())
    load_hosts: int = omitted_if_default(1, "load hosts per server, if servers run on other hosts", ge=1)
    fit: bool = omitted_if_default(default=False, description="users will be cut to the number that the hosts can hold")
    host_retries: int = omitted_if_default(0, "repetitions on other hosts of a trial that ended with its host", ge=0)
    screened: dict[str, int] = omitted_if_default(
        {}, "for a screen: the number of possible variants by server; some are in `variants`"
    )

    def within_budget(
        self, *, loads: tuple[Load, ...], trials: int, at_least: int, warm_up: tuple[int, int | None] | None
    ) -> "Suite":
        """The suite with the values of its budget. `warm_up`: the maxima of a start's first and of further warm-ups."""
        first = {} if warm_up is None else {"warmup_ns": warm_up[0], "warmup_detect": True}
        again = {} if warm_up is None else {"warmup_again_ns": warm_up[1]}
        auto = self.auto and AutoTrials(at_least=at_least, budget_ns=self.auto.budget_ns)
        return self.model_copy(update={"loads": loads, "trials": trials, "auto": auto, **first, **again})

    def lasting(self, trials: int, budget_ns: int | None = None) -> "Suite":
        """The suite with at most `trials` rounds, and another budget if given."""
        auto = self.auto
        if auto is not None and budget_ns is not None:
            auto = AutoTrials(precision=auto.precision, at_least=auto.at_least, budget_ns=budget_ns)
        return self.model_copy(update={"trials": trials, "auto": auto})

    def keeping(self, variants: tuple[Variant, ...]) -> "Suite":
        """The suite with these of its variants; a baseline that is left out is dropped."""
        slugs = {variant.slug for variant in variants}
        baseline = self.baseline if self.baseline in slugs else None
        baselines = {slug: of for slug, of in self.baselines.items() if slug in slugs and of in slugs}
        return self.model_copy(update={"variants": variants, "baseline": baseline, "baselines": baselines})

    def joined(
        self,
        *,
        name: str,
        variants: tuple[Variant, ...],
        scenarios: tuple[Scenario, ...],
        loads: tuple[Load, ...],
        baselines: dict[str, str],
    ) -> "Suite":
        """The suite joined with the items of others. `baselines` has every variant that is compared."""
        parts = {"variants": variants, "scenarios": scenarios, "loads": loads}
        return self.model_copy(update={"name": name, "baseline": None, "baselines": baselines, **parts})

    def screening(self, possible: dict[str, int]) -> "Suite":
        """The suite as a fraction of this number of possible variants by server."""
        return self.model_copy(update={"screened": possible})

    def of_second_revision(self, revision: Revision) -> "Suite":
        """The suite of two revisions with another one for the second."""
        first, second = self.variants
        return self.model_copy(update={"variants": (first, second.at_revision(revision))})

    def accounting(self, first: Revision, second: Revision) -> "Suite":
        """The suite of two other revisions, whose difference sampled starts account for."""
        pair = tuple(one.at_revision(to) for one, to in zip(self.variants, (first, second), strict=True))
        return self.model_copy(update={"variants": pair, "why": True})

    def without_why(self) -> "Suite":
        """The suite without sampled starts."""
        return self.model_copy(update={"why": False})

    def asking(self, scenarios: tuple[Scenario, ...]) -> "Suite":
        """The suite with other scenarios."""
        return self.model_copy(update={"scenarios": scenarios})

    def under(self, loads: tuple[Load, ...], warmup_by: Load | None) -> "Suite":
        """The suite under other loads, and with another load to warm up, if any."""
        return self.model_copy(update={"loads": loads, "warmup_by": warmup_by})

    def warming_up(self, warmup_ns: int, *, detect: bool) -> "Suite":
        """The suite with another warm-up, which is the maximum with `detect`."""
        return self.model_copy(update={"warmup_ns": warmup_ns, "warmup_detect": detect})

    def aborted_when(self, rules: tuple[AbortRule, ...]) -> "Suite":
        """The suite with other conditions that end loads early."""
        return self.model_copy(update={"abort_when": rules})

    def repeated(self, trials: int) -> "Suite":
        """The suite with exactly this number of trials of each cell."""
        return self.model_copy(update={"trials": trials, "auto": None})

    def seeded(self, seed: int) -> "Suite":
        """The suite with another seed."""
        return self.model_copy(update={"seed": seed})

    def profiling(self, profile: tuple[Profile, ...]) -> "Suite":
        """The suite with other profiles."""
        return self.model_copy(update={"profile": profile})

    def fitted(self, about: str) -> "Suite":
        """The suite once its users are cut to what the hosts hold; `about` says so."""
        return self.model_copy(update={"fit": False, "about": about})

    def for_search(self, trials: int) -> "Suite":
        """The suite without keys only for runs, with `trials` fresh starts at the ends of each answer."""
        of_runs = {
            "ceiling": None,
            "auto": None,
            "design": "interleaved",
            "alone": True,
            "builds": 1,
            "profile": (),
            "why": False,
        }
        return self.model_copy(update={**of_runs, "rest_ns": 0, "trials": trials})

    @property
    def has_duets(self) -> bool:
        """Whether servers are also compared by duets."""
        return self.design != "interleaved"

    def baseline_of(self, slug: str) -> str | None:
        """The slug of a variant's baseline; None at the bottom of a chain."""
        baseline = self.baselines.get(slug, self.baseline)
        return None if baseline == slug else baseline

    def chain_of(self, slug: str) -> tuple[str, ...]:
        """The slugs of its chain, from the bottom, which has no baseline, to this variant."""
        chain = [slug]
        while (baseline := self.baseline_of(chain[-1])) is not None and baseline not in chain:
            chain.append(baseline)
        return tuple(reversed(chain))

    def group_of(self, slug: str) -> str:
        """The slug at the bottom of its chain, which identifies its group."""
        return self.chain_of(slug)[0]


class Cell(Frozen):
    """Variant x scenario x load."""

    variant: Variant
    scenario: Scenario
    load: Load
    warmup_ns: int
    warmup_detect: bool = omitted_if_default(default=False, description=DETECTED)
    warmup_by: Load | None = omitted_if_default(None, WARMED_BY)
    timeout_ns: int
    engine: EngineMode = omitted_if_default(EngineMode())
    role: Literal["subject", "ceiling"] = "subject"
    abort_when: tuple[AbortRule, ...] = omitted_if_default((), "what ends its load early")

    def under(self, load: Load, *, warmup_ns: int | None = None) -> "Cell":
        """The same server and scenario under another load, which with `warmup_ns` is also the warm-up."""
        warm = {} if warmup_ns is None else {"warmup_ns": warmup_ns, "warmup_detect": False, "warmup_by": None}
        return self.model_copy(update={"load": load, **warm})

    @property
    def to_its_end(self) -> "Cell":
        """The same cell, whose load no condition ends early."""
        return self.model_copy(update={"abort_when": ()})

    def warmed_by_its_load(self) -> "Cell":
        """The same cell, warmed up by its own load."""
        return self.model_copy(update={"warmup_by": None})

    def warming_up_for(self, warmup_ns: int) -> "Cell":
        """The same cell with another length of its warm-up, the maximum if its end is detected."""
        return self.model_copy(update={"warmup_ns": warmup_ns})

    @property
    def settling(self) -> "Cell":
        """The cell after a warm-up by another load: its own load settles briefly before it counts."""
        return self.warmed_by_its_load().warming_up_for(self.settling_ns)

    @property
    def slug(self) -> str:
        """A readable name that is safe as a file name, whatever its parts are: `rust.axum.SimpleGet.saturate`."""
        return cell_slug(self.variant.slug, self.scenario.name, self.load.name)

    def full_slug(self, threads: Iterable[int]) -> str:
        """The slug with all that it omits, in a fixed order: `….SimpleGet.saturate.t2.c64.d10s`.

        The values of all axes, the scenario, the load, the engine's `threads` in its trials (`t0` without any), the
        maximum number of connections, and the duration.
        """
        ms, rest = divmod(self.load.duration_ns, 1_000_000)
        duration = f"{self.load.duration_ns}ns" if rest else f"{ms}ms" if ms % 1000 else f"{ms // 1000}s"
        loaded = (f"t{'-'.join(map(str, sorted(set(threads)))) or 0}", f"c{self.load.connections}", f"d{duration}")
        return _as_file_name(".".join([self.variant.full_slug, self.scenario.name, self.load.name, *loaded]))

    @property
    def settling_ns(self) -> int:
        """The time for its own load to settle after a warm-up by another load; 0 without `warmup_by`."""
        return min(SETTLING_NS, self.warmup_ns) if self.warmup_by else 0

    @property
    def under_profiler(self) -> "Cell":
        """The cell for a profiled trial: measured twice as long, a quarter before and a quarter after the profile.

        A load that changes, or that ends by count, is profiled as a whole.
        """
        if not self.load.goes_on_alike:
            return self
        return self.model_copy(update={"load": self.load.model_copy(update={"duration_ns": 2 * self.load.duration_ns})})

    @property
    def under_samplers(self) -> "Cell":
        """The cell in a sampled duet: measured three times as long or more, the first quarter without profilers."""
        if not self.load.goes_on_alike:
            return self
        return self.under(self.load.lasting(max(3 * self.load.duration_ns, SAMPLED_NS)))

    @property
    def unprofiled_ns(self) -> int:
        """The measurement time of a cell before its profile; `under_profiler` also after it."""
        return self.load.duration_ns // 4 if self.load.goes_on_alike else 0

    @property
    def id(self) -> str:
        """The slug and eight hex digits of the hash of everything that affects the measurement."""
        content = {
            **self.variant.content,
            "scenario": self.scenario.asked(),
            "load": self.load.model_dump(mode="json"),
            "warmup_ns": self.warmup_ns,
            "timeout_ns": self.timeout_ns,
            **self.model_dump(mode="json", include={"engine", "warmup_detect", "warmup_by"}),
        }
        text = json.dumps(content, sort_keys=True)
        return f"{self.slug}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def cell_slug(server: str, scenario: str, load: str) -> str:
    """The slug of a cell, from the slug of its server and the names of its scenario and load."""
    return _as_file_name(f"{server}.{scenario}.{load}")


def _as_file_name(text: str) -> str:
    return re.sub(r"[/\0]", "_", text)


class PlannedTrial(Frozen):
    """The `round`-th execution of a cell, at `position` in the run's order (both from 0), with the load's seed."""

    cell_id: str
    round: int
    position: int
    seed: int
    build_number: int = omitted_if_default(0, COPY)
    profile: Profile | None = omitted_if_default(None, "its profile; its numbers are not used")

    def at(self, position: int) -> "PlannedTrial":
        """The same trial at another position."""
        return self.model_copy(update={"position": position})


class PlannedDuet(Frozen):
    """Several servers that are loaded in short slices: a baseline, and servers that are compared with it.

    The cells differ only in their variants; the first is the baseline's, which runs again as a control without a
    cell. `round`, `position` and `seed` are as in PlannedTrial. A start serves all duets of a round with the same
    servers, which follow each other.
    """

    cell_ids: tuple[str, ...] = Field(min_length=1)
    round: int
    position: int
    seed: int
    places: tuple[int, ...] = omitted_if_default((), PLACES)
    build_number: int = omitted_if_default(0, COPY)
    warmup_ns: int | None = omitted_if_default(None, "the longest warm-up of a server; absent: as its cells say", ge=0)
    profile: Literal["cpu"] | None = omitted_if_default(None, "the profile of every server; its ratios are not used")

    def sampled(self) -> "PlannedDuet":
        """The same duet with a profiler on each server."""
        return self.model_copy(update={"profile": "cpu"})

    def at(self, position: int) -> "PlannedDuet":
        """The same duet at another position."""
        return self.model_copy(update={"position": position})


class Skipped(Frozen):
    """A cell that is not run, and the reason. Every report shows it."""

    slug: str
    reason: str
    cause: Literal["suite", "machine"] | None = omitted_if_default(
        None,
        "suite: it rules the cell out; machine: something is missing, such as a build; absent in earlier plans",
    )


class Plan(Frozen):
    """Trials and duets in seeded order: a round holds all cells and duets once. `profiled` trials come after them."""

    suite: Suite
    cells: dict[str, Cell] = Field(description="by cell id")
    trials: tuple[PlannedTrial, ...]
    duets: tuple[PlannedDuet, ...] = omitted_if_default((), "their positions are among those of the trials")
    profiled: tuple[PlannedTrial, ...] = omitted_if_default((), "further trials, with a profiler")
    unprofiled: tuple[Skipped, ...] = omitted_if_default((), "profiles that cannot be made, and why")
    sampled: tuple[PlannedDuet, ...] = omitted_if_default((), "further duets, with a profiler on each server")
    skipped: tuple[Skipped, ...] = ()

    @model_validator(mode="after")
    def _has_its_cells(self) -> "Plan":
        named = {trial.cell_id for trial in (*self.trials, *self.profiled)}
        named.update(*(duet.cell_ids for duet in (*self.duets, *self.sampled)))
        if lacking := sorted(named - self.cells.keys()):
            raise ValueError(f"it has no cell `{lacking[0]}`, which it plans to load")
        return self

    def extended(self, suite: Suite, trials: tuple[PlannedTrial, ...], duets: tuple[PlannedDuet, ...]) -> "Plan":
        """The plan with further trials and duets, for a suite with more rounds."""
        return self.model_copy(
            update={"suite": suite, "trials": (*self.trials, *trials), "duets": (*self.duets, *duets)}
        )

    def of_suite(self, suite: Suite) -> "Plan":
        """The plan with another suite, of the same trials and duets."""
        return self.model_copy(update={"suite": suite})

    def profiling(self, trials: tuple[PlannedTrial, ...], without: tuple[Skipped, ...]) -> "Plan":
        """The plan with these profiled trials, and the reasons for missing profiles."""
        return self.model_copy(update={"profiled": trials, "unprofiled": without})

    def sampling(self, duets: tuple[PlannedDuet, ...], without: tuple[Skipped, ...]) -> "Plan":
        """The plan with these sampled duets, and the reasons for missing profiles."""
        return self.model_copy(update={"sampled": duets, "unprofiled": without})

    @property
    def steps(self) -> tuple[PlannedTrial | PlannedDuet, ...]:
        """Trials and duets by position."""
        return tuple(sorted((*self.trials, *self.duets), key=lambda step: step.position))

    @property
    def length(self) -> int:
        """The number of trials and duets, those with a profiler included."""
        return len(self.trials) + len(self.duets) + len(self.profiled) + len(self.sampled)

    @property
    def next_position(self) -> int:
        """The position of the next trial or duet that is added."""
        steps: tuple[PlannedTrial | PlannedDuet, ...] = (*self.steps, *self.profiled, *self.sampled)
        return 1 + max((step.position for step in steps), default=-1)

    def only(self, done: AbstractSet[int]) -> "Plan":
        """The plan without trials and duets, those with a profiler aside, that are not at these positions."""
        return self.model_copy(
            update={
                "trials": tuple(trial for trial in self.trials if trial.position in done),
                "duets": tuple(duet for duet in self.duets if duet.position in done),
            }
        )

    @property
    def not_run_here(self) -> dict[str, str]:
        """The reasons why this machine could not run cells, by slug; without cells that the suite rules out."""
        return {skipped.slug: skipped.reason for skipped in self.skipped if skipped.cause != "suite"}
