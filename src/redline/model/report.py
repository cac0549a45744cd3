"""The view of a run, which all renderers show: the published format of `--json`."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from redline.model.base import Frozen, omitted_if_default
from redline.model.by_request import MixCpu, RequestRatio
from redline.model.cell_report import CellReport
from redline.model.claim import ClaimResult
from redline.model.distribution import SharesCompared
from redline.model.duet import LostStarts
from redline.model.environment import Environment
from redline.model.estimate import Comparison, Estimate, Metric
from redline.model.finding import Finding
from redline.model.hosts import UsedHost
from redline.model.judged import PairSpeed, Precision
from redline.model.plan import Skipped
from redline.model.profiled import ProfileReport
from redline.model.run import Kind, SameBuilds
from redline.model.timeline import DuetTimeline
from redline.model.validity import Bound
from redline.model.why import WhyReport

REPORT_FORMAT: Literal["redline.report/1"] = "redline.report/1"


class Layer(Frozen):
    """The cost of a server on top of another: a step of a chain, or all of its steps.

    The comparisons say why the two may not be compared, `refused` why there is nothing to compare.
    """

    server: str = Field(description="a variant's slug")
    against: str = Field(description="the slug of the server below it")
    throughput: Comparison | None = Field(default=None, description="null if the load determines the throughput")
    cpu: Comparison | None = Field(default=None, description="of CPU time per request, as a ratio")
    cpu_ns: Estimate | None = Field(default=None, description="CPU time per request, `server` minus `against`")
    refused: str = ""

    @property
    def why_not(self) -> tuple[str, ...]:
        """The distinct reasons why numbers are missing."""
        reasons = [self.refused, *(comparison.refused for comparison in (self.throughput, self.cpu) if comparison)]
        return tuple(dict.fromkeys(reason for reason in reasons if reason))


class Waterfall(Frozen):
    """A chain of layers in a scenario under a load, from the bottom upward. `whole` compares its two ends."""

    scenario: str
    load: str
    base: str = Field(description="the slug of the server at the bottom")
    base_throughput: Estimate | None = Field(description="null if the load determines it, or if it is unknown")
    base_cpu: Estimate | None = Field(description="CPU time per request; null if unknown")
    steps: tuple[Layer, ...] = Field(min_length=2)
    whole: Layer

    def with_whole(self, throughput: Comparison | None, cpu: Comparison | None) -> "Waterfall":
        """The chain with other comparisons of its two ends."""
        whole = self.whole.model_copy(update={"throughput": throughput, "cpu": cpu})
        return self.model_copy(update={"whole": whole})


class RunReport(Frozen):
    """Origin of the run, and how to repeat it."""

    kind: Kind = omitted_if_default("run")
    alone: bool = omitted_if_default(default=True, description="servers were also measured alone, not in duets only")
    same: SameBuilds | None = omitted_if_default(None, "why nothing was measured: both builds are the same server")
    servers: dict[str, str] = omitted_if_default({}, "the user's servers, by slug: a command, an address or a revision")
    starts: int = omitted_if_default(0, "starts of the servers of duets")
    seconds: float = omitted_if_default(0.0, "duration of these starts")
    launch_seconds: float = omitted_if_default(0.0, "duration of the launches among it, until the servers were ready")
    setup_seconds: float = omitted_if_default(
        0.0, "duration of the servers' `before`, `prepare` and `after`, which no budget counts"
    )
    interrupted: bool = omitted_if_default(default=False, description="starts of a comparison are missing or cut short")
    aborted_by: str = omitted_if_default("", "the condition of `abort_when` that ended a duet")
    name: str
    suite: str
    about: str
    started_unix_ns: int
    command: str
    seed: int
    complete: bool = Field(description="whether every required trial has its recording")
    trials_done: int
    trials_planned: int
    threshold: float
    suite_text: str
    trials_repeated: int = omitted_if_default(0, "trials and duets repeated because of steal, in them or their partner")
    trials_moved: int = omitted_if_default(0, "trials repeated on other hosts, because a host was lost")
    precision: Precision | None = omitted_if_default(None, "only if the suite leaves the number of trials open")


class Effect(Frozen):
    """The cost of a change on an axis of a server, all else being equal.

    `axis` is an option, `flags`, `route`, or `in` (where it runs), whose `reference` is the first value in the suite;
    or `scenario`, if a scenario names another by `against`.
    """

    axis: str
    value: str
    reference: str
    comparison: Comparison

    def of(self, comparison: Comparison) -> "Effect":
        """The effect with its comparison judged."""
        return self.model_copy(update={"comparison": comparison})


class LevelEffect(Frozen):
    """The ratio of an axis's value to its first value, averaged over the other axes."""

    value: str
    ratio: Estimate


class MainEffect(Frozen):
    """Whether an axis matters. `levels` are all of its values except the first, `reference`.

    `matters`: its values differ, by Holm's adjusted p. `too small`: all intervals are within the threshold. No verdict:
    the metric is only described, or there are too few trials.
    """

    axis: str
    reference: str
    levels: tuple[LevelEffect, ...]
    p: float | None = omitted_if_default(None, "probability of such differences if no value differs")
    p_adjusted: float | None = omitted_if_default(None, "among all axes of the report in this metric")
    resolution: float | None = Field(description="the relative half width of its widest interval")
    verdict: Literal["matters", "too small", "not shown"] | None
    mixed_with: tuple[str, ...] = Field(description="interactions such as `gc x heap` that cannot be separated from it")

    def with_verdict(self, verdict: Literal["matters", "too small", "not shown"], p_adjusted: float) -> "MainEffect":
        """The effect with its verdict."""
        return self.model_copy(update={"verdict": verdict, "p_adjusted": p_adjusted})


class MainEffects(Frozen):
    """The main effects of a server's axes under a load in a metric, from its variants or a fraction of them."""

    server: str
    scenario: str
    load: str
    metric: Metric
    variants: int = Field(description="variants with valid trials")
    possible: int = Field(description="variants of the full matrix")
    resolution: Literal["III", "IV", "V"] = Field(
        description="III: main effects are mixed with interactions of two axes; IV: only interactions with each other"
    )
    effects: tuple[MainEffect, ...]
    refused: str = omitted_if_default("", "why there are no effects")

    def having(self, effects: tuple[MainEffect, ...]) -> "MainEffects":
        """The same report with these effects."""
        return self.model_copy(update={"effects": effects})


class Place(Frozen):
    """A cell in a ranking, ordered by the report's comparisons. Cells share a rank if nothing distinguishes them."""

    rank: int = Field(ge=1)
    cell_id: str
    estimate: Estimate | None = Field(description="by trials of the server alone; null if only a bound is known")
    bound: Bound | None = omitted_if_default(None, "what is known in place of the estimate, which decides the place")
    ratio: Estimate | None = omitted_if_default(None, "to its baseline; it determines the place")
    in_duets: bool = omitted_if_default(default=False, description="whether that ratio is from duets")

    def after(self, others: int) -> "Place":
        """The same place behind so many others."""
        return self.model_copy(update={"rank": self.rank + others})


class Ranking(Frozen):
    """The subjects of a scenario and load with the same setting, best first in the load's primary metric.

    Ranked are cells whose number has an interval, or a bound that decides its place.
    """

    scenario: str
    load: str
    setting: str = Field(description="such as `interceptor=off`; empty if no shared option varies")
    metric: Metric
    places: tuple[Place, ...]
    without: dict[str, str] = omitted_if_default({}, "why other cells are not ranked, by their ids")


_LONG = ("cells", "shares")
"""The fields of a report that grow with its cells and have most of its text, in their order."""


class Report(Frozen):
    """The report of a run."""

    format: Literal["redline.report/1"] = REPORT_FORMAT
    run: RunReport
    environment: Environment
    hosts: tuple[UsedHost, ...] = omitted_if_default((), "where trials ran, if not on this machine")
    pairs: tuple[PairSpeed, ...] = omitted_if_default((), "how pairs of hosts compared before the run")
    cells: tuple[CellReport, ...]
    comparisons: tuple[Comparison, ...]
    claims: tuple[ClaimResult, ...] = omitted_if_default((), "what was published about the cells, and what holds")
    request_ratios: tuple[RequestRatio, ...] = omitted_if_default(
        (), "response times by request as ratios to the baseline's, of mixes in duets; they are no verdicts"
    )
    cpu_by_request: tuple[MixCpu, ...] = omitted_if_default(
        (), "how CPU time in a mix divides among its requests, of duets that also measured each by itself"
    )
    shares: tuple[SharesCompared, ...] = omitted_if_default(
        (), "the shares of requests that cells and their baselines answered by a time; absent in earlier reports"
    )
    layers: tuple[Waterfall, ...] = omitted_if_default((), "only if baselines have baselines themselves")
    effects: tuple[Effect, ...] = omitted_if_default(())
    rankings: tuple[Ranking, ...] = omitted_if_default(())
    main_effects: tuple[MainEffects, ...] = omitted_if_default((), "of a screen, or of servers that have several axes")
    next_command: str = omitted_if_default("", "after a screen: runs the full matrix of the axes that matter")
    profiles: tuple[ProfileReport, ...] = omitted_if_default(())
    unprofiled: tuple[Skipped, ...] = omitted_if_default((), "profiles that were not made, and why")
    why: tuple[WhyReport, ...] = omitted_if_default((), "the functions in which compared servers differ")
    skipped: tuple[Skipped, ...]
    lost_starts: tuple[LostStarts, ...] = omitted_if_default((), "the starts of duets that give no ratio, and why")
    duet_timelines: SkipJsonSchema[tuple[DuetTimeline, ...]] = Field(default=(), exclude=True)  # for pages alone
    unrecorded: tuple[str, ...] = omitted_if_default((), "what a version before 0.1.0 did not record of it")
    unread: tuple[str, ...] = omitted_if_default((), "stored files that cannot be read, or not be used, and why")

    def json_pieces(self) -> Iterator[bytes]:
        """Yield `json_bytes(indent=2)` in pieces, of which each has one cell or less: a long report is never whole."""
        long = {name: rows for name in _LONG if len(rows := getattr(self, name)) > 1}
        rest = self.model_copy(update={name: rows[:1] for name, rows in long.items()}).json_bytes(indent=2)
        for name, rows in long.items():
            end = rest.index(b"\n  ]", rest.index(f'\n  "{name}": ['.encode()))
            yield rest[:end]
            for row in rows[1:]:
                yield b",\n    " + row.json_bytes(indent=2).replace(b"\n", b"\n    ")
            rest = rest[end:]
        yield rest

    @property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """All findings of each cell, by its id: about its trials, and about its duets with baselines."""
        of_cells = {cell.cell_id: dict.fromkeys(cell.findings) for cell in self.cells}
        for comparison in self.comparisons:
            if comparison.duet:
                of_cells.setdefault(comparison.cell_id, {}).update(dict.fromkeys(comparison.duet.findings))
        return {cell_id: tuple(findings) for cell_id, findings in of_cells.items()}

    def with_full_slugs(self) -> "Report":
        """The report whose cells have their full slugs in place of their slugs."""
        cells = tuple(cell.model_copy(update={"slug": cell.full_slug}) for cell in self.cells)
        return self.model_copy(update={"cells": cells})
