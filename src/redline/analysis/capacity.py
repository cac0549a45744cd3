"""The capacities that a capacity run measured; rates may be shares of them."""

from redline.analysis.results import CellResult, judge_run
from redline.model import Metric, Run
from redline.suite import Capacities, capacity_loads

Group = tuple[str, str, str]


def capacities(run: Run) -> Capacities:
    """The capacity of every subject of a capacity run by its slug, or why it has none.

    A group is a baseline and all cells compared with it, directly or not, in a scenario under a load. Its capacity is
    the least throughput of its cells, a rate that all of them can sustain. A group has no capacity if a cell lacks a
    valid throughput. Skipped cells have no capacity, and do not affect the others.
    """
    suite = run.manifest.plan.suite
    subjects = [cell for cell in judge_run(run).values() if cell.cell.role == "subject"]
    groups: dict[Group, list[CellResult]] = {}
    for subject in subjects:
        cell = subject.cell
        group = (suite.group_of(cell.variant.slug), cell.scenario.name, cell.load.name)
        groups.setdefault(group, []).append(subject)
    per_s: dict[str, float] = {}
    missing = {cell.slug: f"without a capacity: {cell.reason}" for cell in run.manifest.plan.skipped}
    for members in groups.values():
        slugs = [member.cell.slug for member in members]
        throughputs = [_throughput(member) for member in members]
        rates = [rate for rate in throughputs if rate is not None]
        if len(rates) == len(members):
            per_s |= dict.fromkeys(slugs, min(rates))
        else:
            reasons = [
                f"{member.cell.slug}: {member.why_invalid or 'no usable trials'}"
                for member, rate in zip(members, throughputs, strict=True)
                if rate is None
            ]
            missing |= dict.fromkeys(slugs, f"without a capacity: {'; '.join(reasons)}")
    return Capacities(per_s=per_s, missing=missing)


def with_stage(about: str, run: Run) -> str:
    """The suite's `about`, and which of the suite's two runs is reported, if it has two."""
    plan = run.manifest.plan
    first = {load.name for load in capacity_loads(plan.suite)}
    names = " and ".join(sorted(first))
    stage = ""
    if any(cell.load.share for cell in plan.cells.values()):
        stage = (
            f"rates are shares of the capacity under {names}, the least of each group, as the run in capacity/ found it"
        )
    elif any(cell.load.name in first for cell in plan.cells.values()):
        stage = f"this is the capacity under {names}, of which rates of the run around it are shares"
    return "; ".join(part for part in (about, stage) if part)


def _throughput(cell: CellResult) -> float | None:
    """Right answers per second; None if they are not known, or the server failed."""
    if not cell.comparable or not cell.having(Metric.THROUGHPUT):
        return None
    return cell.sample(Metric.THROUGHPUT).value or None
