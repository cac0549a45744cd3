"""Comparisons of two user servers only by duets, several scenarios in a start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from redline.analysis.compare import Question, metrics_asked, with_verdicts
from redline.analysis.duet import Duet, in_duet
from redline.findings.starts import is_whole
from redline.model import (
    AutoTrials,
    Cell,
    Closed,
    Comparison,
    Counts,
    DuetRecording,
    Estimate,
    Finding,
    Histogram,
    Load,
    Manifest,
    Metric,
    Outcomes,
    Plan,
    PlannedDuet,
    Run,
    Scenario,
    ServerEntry,
    Suite,
    Variant,
    Verdict,
)
from redline.model.catalogue import Start
from redline.model.exchange import Request
from tests.fakes.duets import simulated_duet
from tests.fakes.recordings import EPOCH_UNIX_NS, simulated_environment

LOAD = Load(name="load", shape=Closed(users=64), duration_ns=5_000_000_000)
SECOND = 10**9


@dataclass(frozen=True)
class Cost:
    """What B costs in a scenario relative to A, and how much slices scatter."""

    factor: float = 1.0
    noise: float = 0.003


def server(name: str) -> Variant:
    """A server of the user's."""
    command = ("sh", "-c", f"./{name.lower()} --port {{port}}")
    return Variant(
        entry=ServerEntry(name=name, about="", runtime="native", family_folder=".", start=Start(command=command))
    )


def compared_run(
    costs: Mapping[str, Cost] | None = None,
    *,
    starts: int = 6,
    interrupted: bool = False,
    load: Load = LOAD,
    first_start: int = 0,
    names: tuple[str, str] = ("A", "B"),
) -> Run:
    """B over A in every scenario, by name, in starts that serve all of them; the last may be cut short.

    The scenario `mix` holds the requests of the others. Starts scatter by their numbers, from `first_start` on.
    """
    costs = costs or {"home": Cost(1.05)}
    requests = {name: Request(path=f"/{name}") for name in costs if name != "mix"}
    first, *others = requests.values()
    mix = Scenario(name="mix", request=first, others=tuple(others))
    scenarios = tuple(Scenario(name=name, request=requests[name]) if name in requests else mix for name in costs)
    pair = (server(names[0]), server(names[1]))
    cells = {
        (variant.slug, scenario.name): Cell(
            variant=variant, scenario=scenario, load=load, warmup_ns=SECOND, timeout_ns=5 * SECOND
        )
        for variant in pair
        for scenario in scenarios
    }
    planned: list[PlannedDuet] = []
    recordings: list[DuetRecording] = []
    for start in range(starts):
        for scenario in scenarios:
            ids = (cells[names[0], scenario.name].id, cells[names[1], scenario.name].id)
            position = len(planned)
            planned.append(PlannedDuet(cell_ids=ids, round=start, position=position, seed=1))
            cost = costs[scenario.name]
            seen = simulated_duet(
                first_start + start, (1.0, cost.factor), cell_ids=ids, position=position, noise=cost.noise
            )
            recordings.append(_answered(seen, cut=interrupted and start == starts - 1))
    suite = Suite(
        name="compared",
        variants=pair,
        baseline=names[0],
        scenarios=scenarios,
        loads=(load,),
        warmup_ns=SECOND,
        trials=50,
        auto=AutoTrials(at_least=3, budget_ns=60 * SECOND),
        design="duet",
        alone=False,
    )
    manifest = Manifest(
        kind="comparison",
        name="20260921-101500-compared",
        created_unix_ns=EPOCH_UNIX_NS,
        command="redline ab './a --port {port}' './b --port {port}'",
        suite_file="redline ab",
        suite_text="servers: [A, B]\n",
        plan=Plan(suite=suite, cells={cell.id: cell for cell in cells.values()}, trials=(), duets=tuple(planned)),
        environment=simulated_environment(),
    )
    return Run(manifest=manifest, recordings=(), duets=tuple(recordings))


def with_a_further_duet(run: Run) -> Run:
    """The same run of a scenario, in which a server C is compared with A in a duet of its own, before that of B."""
    plan, several = run.manifest.plan, len(run.duets)
    baseline, other = plan.cells.values()
    third = Cell(**{**dict(other), "variant": server("C")})
    planned = [
        duet.model_copy(update={"cell_ids": (baseline.id, third.id), "position": duet.position + several})
        for duet in plan.duets
    ]
    made = [
        duet.model_copy(update={"cell_ids": (baseline.id, third.id, baseline.id), "position": duet.position + several})
        for duet in run.duets
    ]
    changed = {"cells": {**plan.cells, third.id: third}, "duets": (*planned, *plan.duets)}
    manifest = run.manifest.with_plan(plan.model_copy(update=changed))
    return run.model_copy(update={"manifest": manifest, "duets": (*run.duets, *made)})


@cache
def _times() -> Histogram:
    return Histogram.of([1_000_000 + 500 * at for at in range(2_000)])


def _answered(recording: DuetRecording, *, cut: bool) -> DuetRecording:
    """The recording with answers that took a millisecond or two."""
    assert recording.traffic is not None
    times = _times()
    counts = Counts(due=2_000, completed=2_000, outcomes=Outcomes(ok=2_000))
    targets = tuple(
        target.model_copy(update={"counts": counts, "response": times, "service": times})
        for target in recording.traffic.targets
    )
    changed = {"targets": targets, "ended": "interrupted" if cut else "complete"}
    return recording.model_copy(update={"traffic": recording.traffic.model_copy(update=changed)})


@dataclass(frozen=True)
class ComparedStarts:
    """The result of starts of A, B and A again for B over A, in the primary metric of the comparison."""

    duet: Duet
    metric: Metric
    findings: tuple[Finding, ...]

    @property
    def comparison(self) -> Comparison:
        """The comparison with its verdict."""
        return self.in_metric(self.metric)

    def in_metric(self, metric: Metric) -> Comparison:
        """The comparison in another metric, as if the verdict were about that."""
        blank = Comparison(
            metric=metric, cell_id="B", baseline_id="A", ratio=None, verdict=None, threshold=0.02, primary=True
        )
        (judged,) = with_verdicts([in_duet(blank, self.duet)], lambda _: Question("B against A", "B"))
        return judged

    @property
    def ratio(self) -> Estimate:
        """B over A; fails the test where it is not known."""
        assert self.comparison.ratio is not None
        return self.comparison.ratio

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on B; None where there are too few starts."""
        return self.comparison.verdict

    @property
    def unsettled(self) -> str:
        """Why the ratio may yet move, if its interval depends on that; empty if not."""
        assert self.comparison.duet is not None
        return self.comparison.duet.unsettled

    def said(self, kind: str) -> list[str]:
        """The messages of all findings of a kind."""
        return [each.message for each in self.findings if each.kind == kind]


def compared_starts(
    recordings: Sequence[DuetRecording], *, closed: bool = True, detects: bool = False
) -> ComparedStarts:
    """The starts compared, under users who wait for answers or at a rate; each server has one core."""
    duet = Duet(tuple(filter(is_whole, recordings)), saturates=closed, detects=detects, cores=1)
    (metric,) = metrics_asked(LOAD, compared_run(starts=1).manifest.plan.suite, duet)
    return ComparedStarts(duet, metric, duet.findings)
