"""The report of a search, from the recordings of its loads. Pure."""

from collections.abc import Iterable, Mapping

from redline.analysis.unrecorded import unrecorded_of_search
from redline.limits.judged_search import judged_search
from redline.limits.ratios import limit_comparisons
from redline.limits.search_state import SearchState
from redline.model import Manifest, Plan
from redline.model.limits import CellLimit, LimitReport
from redline.model.search import ProbeRecording


def search_order(plan: Plan) -> tuple[str, ...]:
    """The ids of the cells in the order of their searches: the seeded order of the plan's first round."""
    return tuple(trial.cell_id for trial in plan.trials if trial.round == 0)


def limit_report(
    manifest: Manifest, made: Mapping[str, Iterable[ProbeRecording]], unread: Iterable[str] = ()
) -> LimitReport:
    """The report of a search so far, from its recordings by cell id; `unread` says which others cannot be read.

    Cells with recordings, and the next cell to be searched, are in the plan's order. Of one that cannot be judged
    nothing is known, with the reason.
    """
    terms, limits, states, said = manifest.terms, dict[str, CellLimit](), list[SearchState](), list(unread)
    began_all, first = manifest.same is None, None
    for cell_id in search_order(manifest.plan):
        cell = manifest.plan.cells[cell_id]
        recorded = tuple(made.get(cell_id, ()))
        first = first or next((each.recording for each in recorded), None)
        judged = judged_search(manifest, cell, recorded, states)
        said += judged.unused
        if recorded or began_all:
            limits[cell_id] = judged.limit
        if judged.state is not None:
            states.append(judged.state)
        began_all = began_all and judged.ended
    suite = manifest.plan.suite
    cells = tuple(cell for cell in manifest.plan.cells.values() if cell.id in limits)
    targets = dict.fromkeys(limits[cell.id].target or limits[cell.id].server for cell in cells)
    return LimitReport(
        suite=suite.name
        if manifest.suite_file
        else " and ".join(targets or (manifest.same.servers if manifest.same else ())),
        about=suite.about,
        started_unix_ns=manifest.created_unix_ns,
        command=manifest.command,
        seed=suite.seed,
        precision=terms.precision,
        environment=manifest.environment,
        hosts=manifest.hosts,
        same=manifest.same,
        cells=tuple(limits[cell.id] for cell in cells),
        comparisons=limit_comparisons(cells, limits, suite),
        skipped=manifest.plan.skipped,
        suite_text=manifest.suite_text,
        unrecorded=unrecorded_of_search(manifest, first),
        unread=tuple(said),
    )
