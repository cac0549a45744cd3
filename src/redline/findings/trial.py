"""Apply all applicable judges of the table to recordings, and decide what findings mean for a trial's use."""

from collections.abc import Iterable, Sequence
from functools import cache

from redline.findings.across import SeenAmong
from redline.findings.cell import kept_services, observe_kept
from redline.findings.duet import SeenDuet
from redline.findings.failed import trial_failed
from redline.findings.load import rate_missed
from redline.findings.rules import Judge, When
from redline.findings.signatures import Pace
from redline.findings.table import JUDGES, RULES
from redline.model import Cell, Failure, Finding, FindingKind, Grade, Recording, ServerFacts
from redline.stats import Trial


def judge(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """All findings about a recording; see `judge_trial`."""
    return judge_trial(cell, Trial(recording))


def judge_trial(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
    """All findings about a trial, in the order of the table. A trial with an `invalid` finding is not used."""
    traffic = trial.traffic
    known: list[When] = ["trial"]
    if traffic is not None:
        known.append("traffic")
        if traffic.ended != "failing" and traffic.counts.due > 0 and traffic.seconds > 0:
            known += ["requests", "runtime"] if trial.recording.runtime else ["requests"]
            if traffic.counts.completed > 0:  # without answers, their timing is no question
                known.append("answers")
    return _of_trial(cell, trial, _judges_of(*known))


def judge_probe(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """The findings about engine, machine, proxies and compilers in a search's probe. The search judges the rest."""
    traffic = recording.traffic
    if traffic is None or traffic.counts.due == 0 or traffic.seconds <= 0:
        return ()
    found = _of_trial(cell, Trial(recording), [judge for judge in JUDGES if judge.probes == "all"])
    return tuple(map(_without_service_times, found))


def _without_service_times(finding: Finding) -> Finding:
    """A finding in a search, which shows none."""
    rule = RULES[finding.kind]
    if finding.advice != rule.advice:
        return finding
    return finding.advising(rule.advice_without_service_times)


def judge_server(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """The findings about the server from a search's first probe, which hold for all probes."""
    return _of_trial(cell, Trial(recording), [judge for judge in JUDGES if judge.probes == "first"])


def judge_starts(cell: Cell, servers: Sequence[ServerFacts]) -> tuple[Finding, ...]:
    """The findings about the starts of a search's server, by the facts of each start."""
    said = observe_kept(cell.variant.entry.name, servers)
    return tuple(kept_services.findings(said, cell.id, None)) if said is not None else ()


def judge_search(cell: Cell, paces: Sequence[Pace]) -> tuple[Finding, ...]:
    """The findings that only several probes of a search show together."""
    return _findings(_judges_of("search"), {"paces": paces}, cell.id)


def judge_cell(
    cell: Cell, used: Sequence[Trial], *, planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The findings about a cell as a whole, given its usable trials and the ceiling's rate in its scenario and load."""
    in_order = sorted(used, key=lambda trial: trial.recording.position)
    seen = {"cell": cell, "used": in_order, "planned": planned, "ceiling_per_s": ceiling_per_s}
    return _findings(_judges_of("cell"), seen, cell.id)


def judge_among(among: SeenAmong) -> tuple[Finding, ...]:
    """The findings about a server that only others under the same scenario and load show."""
    return _findings(_judges_of("among"), {"among": among}, among.own.cell.id)


def judge_duet(duet: SeenDuet) -> tuple[Finding, ...]:
    """The findings about a duet."""
    return _findings(_judges_of("duet"), {"duet": duet}, duet.cell_id)


@cache
def _judges_of(*known: When) -> tuple[Judge, ...]:
    """The judges that need one of these alone."""
    return tuple(judge for judge in JUDGES if judge.when in known)


def _of_trial(cell: Cell, trial: Trial, judges: Iterable[Judge]) -> tuple[Finding, ...]:
    recording = trial.recording
    seen = {"cell": cell, "trial": trial, "traffic": trial.traffic, "facts": recording.runtime}
    return _findings(judges, seen, recording.cell_id, recording.position)


def _findings(
    judges: Iterable[Judge], seen: dict[str, object], cell_id: str, position: int | None = None
) -> tuple[Finding, ...]:
    findings = [finding for judge in judges for finding in judge.findings(seen, cell_id, position)]
    return tuple(sorted(findings, key=lambda finding: _PLACES[finding.kind]))


_PLACES = {kind: place for place, kind in enumerate(RULES)}


def usable(recording: Recording, findings: Sequence[Finding]) -> bool:
    """Whether all of a cell's numbers may rest on this trial: it has traffic, and none of its findings is `invalid`."""
    return recording.traffic is not None and all(finding.grade is not Grade.INVALID for finding in findings)


def servers_doing(findings: Sequence[Finding], failure: Failure | None = None) -> tuple[FindingKind, ...]:
    """The findings by which the server made a load invalid; empty if it is valid, or invalid for other reasons.

    A rate missed because the client was the limit does not count, nor does a failure of the engine.
    """
    grave = [finding.kind for finding in findings if finding.grade is Grade.INVALID]
    clients = {rate_missed.kind} if any(RULES[kind].blames == "client" for kind in grave) else set()
    if of_engine(failure):
        clients.add(trial_failed.kind)
    return tuple(kind for kind in grave if RULES[kind].blames == "server" and kind not in clients)


def of_engine(failure: Failure | None) -> bool:
    """Whether a trial failed because of the load generator, which says nothing about the server."""
    return failure is not None and failure.kind == "engine"


def is_valid(made: int, used: int) -> bool:
    """Whether a cell's numbers may be shown as results, by the numbers of trials made and usable.

    At least half must be usable, and at least two if two were made: the rest does not describe a cell that mostly
    fails.
    """
    return used >= max(1, min(2, made)) and 2 * used >= made
