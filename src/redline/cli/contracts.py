"""The JSON documents of `--json` of commands that load nothing: published in docs/reference/cli.schema.json."""

from typing import Literal

from pydantic import Field

from redline.analysis.doctor import Advice
from redline.analysis.rejudged import Rejudged, RejudgedAnswer, RejudgedEnding, ValidityChange
from redline.analysis.resolution import ShownDifference
from redline.model import (
    ClockReading,
    Environment,
    Finding,
    Frozen,
    Leg,
    LostStarts,
    Plan,
    Role,
    Share,
    Skipped,
)
from redline.model.base import omitted_if_default
from redline.model.limits import LimitAnswer


class PlannedCell(Frozen):
    """The summary of a planned cell."""

    cell_id: str
    slug: str
    role: Literal["subject", "ceiling"]
    trials: int
    warmup_ns: int
    warmup_detect: bool = omitted_if_default(
        default=False, description="`warmup_ns` is the maximum: the warm-up ends when the server is steady"
    )
    duration_ns: int
    share: Share | None = omitted_if_default(
        None, description="present if its rate is a share of a capacity; its id is then not yet known"
    )


class CheckResult(Frozen):
    """`redline check --json`: the plan of a suite."""

    format: Literal["redline.check/1"] = "redline.check/1"
    suite: str
    seed: int
    capacity: tuple[PlannedCell, ...] = omitted_if_default(
        (), description="cells that are measured first, because rates are shares of their throughput"
    )
    cells: tuple[PlannedCell, ...]
    skipped: tuple[Skipped, ...]
    trials: int
    duets: int = omitted_if_default(0, description="starts of duets")
    profiled: int = omitted_if_default(0, description="further trials, each with a profiler")
    unprofiled: tuple[Skipped, ...] = omitted_if_default((), description="profiles that cannot be made, and why")
    expected_length_ns: int = Field(description="an estimate: warm-up, measurement and server starts; no builds")
    least_length_ns: int = omitted_if_default(
        0, description="what the starts that a budget makes in any case take at least; absent without a budget"
    )
    shows: tuple[ShownDifference, ...] = omitted_if_default(
        (), description="what the plan can show, by the last run of these cells on this machine; absent if unknown"
    )


class JudgeResult(Frozen):
    """`redline judge --json`: a run's recordings judged by today's rules."""

    format: Literal["redline.judge/1"] = "redline.judge/1"
    run: str
    not_compared: str = Field(default="", description="why the stored judgement of the run is not available")
    findings: tuple[Finding, ...] = Field(description="of every cell, by today's rules")
    lost_starts: tuple[LostStarts, ...] = omitted_if_default((), "the starts of duets that give no ratio, and why")
    invalid: tuple[str, ...] = Field(description="ids of the cells whose numbers are not shown")
    changes: tuple[Rejudged, ...] = Field(description="differences from the findings of the stored results.json")
    turned: tuple[ValidityChange, ...] = Field(description="cells that became invalid, or valid again")
    written: bool = Field(description="whether the stored views were written again")


class SearchJudgeResult(Frozen):
    """`redline judge --json` of a search: its recordings judged by today's rules."""

    format: Literal["redline.judge-search/1"] = "redline.judge-search/1"
    search: str
    not_compared: str = Field(default="", description="why the stored judgement of the search is not available")
    answers: dict[str, tuple[LimitAnswer, ...]] = Field(description="by the slug of each cell, by today's rules")
    findings: tuple[Finding, ...] = Field(description="of every cell, by today's rules")
    answers_changed: tuple[RejudgedAnswer, ...] = Field(description="differences from the stored results.json")
    endings_changed: tuple[RejudgedEnding, ...] = Field(description="cells whose search is now seen to end otherwise")
    written: bool = Field(description="whether the stored views were written again")


class ListedOption(Frozen):
    """The purpose of a server's option, and its value if a suite gives none."""

    about: str
    default: str | int | bool


class ListedServer(Frozen):
    """A server or proxy, and whether it can be used here."""

    name: str
    kind: Literal["server", "proxy"] = omitted_if_default("server")
    about: str
    runtime: str
    options: dict[str, tuple[str | int | bool, ...]]
    protocols: tuple[Leg, ...] = Field(default=("h1",), description="the legs that it can serve")
    upstream: tuple[Leg, ...] = omitted_if_default((), description="the legs of a proxy to the server behind it")
    state: Literal["built", "not built", "cannot be built", "in place"] = Field(
        description="in place: of redline.yaml, which says how it is built, if at all"
    )
    reason: str = ""
    about_options: dict[str, ListedOption] = omitted_if_default({})
    origin: Literal["redline.yaml", "catalogue", "built-in"] = Field(
        default="built-in", description="whose it is: of the user's file or catalogue near this folder, or Redline's"
    )
    written_in: str = Field(default="", description="the file that says so")
    hides_built_in: bool = omitted_if_default(
        default=False, description="whether a built-in server of the same name is not used here"
    )


class ListedSuite(Frozen):
    """A ready suite. `name` is what `redline run` takes."""

    file: str
    name: str = ""
    about: str


class ListResult(Frozen):
    """`redline list --json`."""

    format: Literal["redline.list/1"] = "redline.list/1"
    servers: tuple[ListedServer, ...]
    scenarios: dict[str, str] = Field(description="name -> description")
    suites: tuple[ListedSuite, ...]


Registry = Literal["Maven", "crates.io", "npm", "PyPI", "Go"]


class OutdatedPackage(Frozen):
    """A package of which a registry has a newer stable release than the catalogue."""

    registry: Registry
    package: str
    version: str = Field(description="the one in the catalogue")
    newest: str
    files: tuple[str, ...] = Field(description="the files that name the version")


class UnansweredPackages(Frozen):
    """Packages whose newest release a registry did not say, and why."""

    registry: Registry
    packages: tuple[str, ...]
    reason: str


class OutdatedResult(Frozen):
    """`redline list --outdated --json`."""

    format: Literal["redline.outdated/1"] = "redline.outdated/1"
    packages: int = Field(description="how many the catalogue names in a version")
    outdated: tuple[OutdatedPackage, ...]
    unanswered: tuple[UnansweredPackages, ...] = omitted_if_default(())


class BuiltServer(Frozen):
    """A server of the catalogue, and the state of its build."""

    name: str
    state: Literal["built", "stood", "failed"] = Field(description="built now, already up to date, or failed to build")
    hash: str | None = Field(description="content hash of the build; null if it failed")
    took_ns: int | None = Field(
        description="how long the build command ran, the same for all servers that it built; null if none ran"
    )
    reason: str = Field(default="", description="why it could not be built; may have several lines")
    hint: str = ""


class BuildResult(Frozen):
    """`redline build --json`."""

    format: Literal["redline.build/1"] = "redline.build/1"
    servers: tuple[BuiltServer, ...]


class HostResult(Frozen):
    """A host in `redline doctor --hosts`."""

    name: str
    role: Role
    address: str
    environment: Environment
    clock: ClockReading | None
    advice: tuple[Advice, ...]


class DoctorResult(Frozen):
    """`redline doctor --json`."""

    format: Literal["redline.doctor/1"] = "redline.doctor/1"
    environment: Environment = Field(description="of the machine that it ran on")
    advice: tuple[Advice, ...] = Field(description="on that machine; empty if it examined others")
    hosts: tuple[HostResult, ...] = omitted_if_default(())


def check_result(
    plan: Plan,
    expected_length_ns: int,
    least_length_ns: int = 0,
    first: Plan | None = None,
    shows: tuple[ShownDifference, ...] = (),
) -> CheckResult:
    """The published view of a plan, and of the plan of capacities before it."""
    before = first if first and first.cells else None
    return CheckResult(
        suite=plan.suite.name,
        seed=plan.suite.seed,
        capacity=_planned(before) if before else (),
        cells=_planned(plan),
        skipped=tuple(dict.fromkeys((*(before.skipped if before else ()), *plan.skipped))),
        trials=len(plan.trials) + (len(before.trials) if before else 0),
        duets=len(plan.duets) + (len(before.duets) if before else 0),
        profiled=len(plan.profiled),
        unprofiled=plan.unprofiled,
        expected_length_ns=expected_length_ns,
        least_length_ns=least_length_ns,
        shows=shows,
    )


def _planned(plan: Plan) -> tuple[PlannedCell, ...]:
    return tuple(
        PlannedCell(
            cell_id=cell_id,
            slug=cell.slug,
            role=cell.role,
            trials=sum(trial.cell_id == cell_id for trial in plan.trials),
            warmup_ns=cell.warmup_ns,
            warmup_detect=cell.warmup_detect,
            duration_ns=cell.load.duration_ns,
            share=cell.load.share,
        )
        for cell_id, cell in plan.cells.items()
    )
