"""The starts of duets that give no ratio: how many of which servers, why, and what to do about it. Pure."""

from collections.abc import Iterator, Sequence

from redline.findings.starts import BASELINE, block_ns, failing, is_whole, why_lost
from redline.findings.warm_duet import FEWEST_MEASURED, FEWEST_OF_COURSE
from redline.model import AttachedServer, DuetRecording, LostStarts, Run
from redline.quantities import duration
from redline.suite.budget import advised, longest_of_conversations_ns, start_times
from redline.wording import part


def lost_starts(run: Run) -> tuple[LostStarts, ...]:
    """The lost starts of every duet that has some, in the order in which they were first made."""
    starts: dict[tuple[str, ...], list[DuetRecording]] = {}
    for recording in run.duets:
        starts.setdefault(recording.cell_ids, []).append(recording)
    return tuple(lost for made in starts.values() for lost in _lost(run, made))


def _lost(run: Run, made: Sequence[DuetRecording]) -> Iterator[LostStarts]:
    """The lost ones among the starts of a duet, if any."""
    cell_ids = made[0].cell_ids[:-1]
    cells = [run.manifest.plan.cells[cell_id] for cell_id in cell_ids]
    names = tuple(cell.variant.slug for cell in cells)
    reasons = [(start, why) for start in made if (why := why_lost(start, names))]
    if not reasons:
        return
    first, why = reasons[0]
    wrong = first.failure is not None and (first.failure.stage, first.failure.kind) == ("verify", "wrong_answer")
    yield LostStarts(
        cell_ids=cell_ids,
        servers=names,
        scenario=cells[BASELINE].scenario.name,
        load=cells[BASELINE].load.name,
        lost=len(reasons),
        made=len(made),
        reason=why,
        hint=_hint(run, first, names),
        given_up=wrong and not run.manifest.plan.suite.alone and any(map(is_whole, run.duets)),
    )


def _hint(run: Run, start: DuetRecording, names: Sequence[str]) -> str:
    """What to do about a lost start: what its failure says, or how long to measure."""
    if start.failure is not None:
        return start.failure.hint
    targets = range(1, len(names))
    if any(failing([start], (names[BASELINE], names[target]), target) for target in targets):
        return "fix what the failure names"
    needed_ns = FEWEST_MEASURED * block_ns(start)
    if not needed_ns:
        return "measure for longer, or load them more"
    return _longer(run, start, needed_ns)


def _longer(run: Run, start: DuetRecording, needed_ns: int) -> str:
    """How to measure all servers of a start together for this long."""
    suite = run.manifest.plan.suite
    if suite.alone or suite.auto is None or suite.auto.budget_ns is None:
        return f"measure for {duration(needed_ns / len(start.cell_ids))}: `for` of the load"
    parts = len(suite.scenarios) * len(suite.loads)
    once = all(isinstance(variant.entry, AttachedServer) for variant in suite.variants)
    servers = len(start.cell_ids)
    talks = any(request.stream is not None for scenario in suite.scenarios for request in scenario.requests)
    # Their blocks have precedence over the warm-up, which has one at least.
    whole_ns = needed_ns // FEWEST_MEASURED * (FEWEST_OF_COURSE + 1)

    def fits(budget_ns: int) -> bool:
        longest_ns = longest_of_conversations_ns(budget_ns, parts, once=once) if talks else 0
        return longest_ns >= whole_ns or (
            start_times(budget_ns, servers, parts, once=once).measure_ns * servers >= needed_ns
        )

    if text := advised(fits):
        return f"give {part('budget', text)}"
    return "such answers take too long for a comparison in turn: `redline run` compares trials of each server alone"
