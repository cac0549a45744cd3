"""Recordings -> findings: every function of the table that can be asked is asked."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redline.findings.duet import SeenDuet
from redline.findings.rules import Judge
from redline.findings.table import JUDGES, RULES
from redline.model import Cell, Finding, Recording, Traffic
from redline.stats import Trial


@dataclass(frozen=True)
class SeenTrial:
    """What is seen of a trial. Only what can be asked without traffic is asked without."""

    cell: Cell
    trial: Trial
    traffic: Traffic | None


@dataclass(frozen=True)
class SeenCell:
    """A cell with its usable trials in the order of the run, and the ceiling's rate in its scenario and load."""

    cell: Cell
    used: Sequence[Trial]
    planned: int
    ceiling_per_s: float | None


def judge(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """All findings about this recording; see `judge_trial`."""
    return judge_trial(cell, Trial(recording))


def judge_trial(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
    """All findings about a trial, in the order of the table. A trial with an `invalid` finding is not used."""
    traffic, known = trial.traffic, ["trial"]
    if traffic is not None:
        known.append("traffic")
        if traffic.ended != "failing" and traffic.counts.due > 0 and traffic.seconds > 0:
            known.append("requests")
            if traffic.counts.completed > 0:  # without an answer, when and how they came is no question
                known.append("answers")
    return _ask([one for one in JUDGES if one.when in known], SeenTrial(cell, trial, traffic))


def judge_probe(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What engine, machine, proxies and compilers did to a probe of a search. All else is what it is to find out."""
    return _judge_probe(cell, recording, "all")


def judge_server(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What is known of the server of a search by its first probe, and stays so."""
    return _judge_probe(cell, recording, "first")


def _judge_probe(cell: Cell, recording: Recording, probes: str) -> tuple[Finding, ...]:
    traffic = recording.traffic
    if probes == "all" and (traffic is None or traffic.counts.due == 0 or traffic.seconds <= 0):
        return ()
    return _ask([one for one in JUDGES if one.probes == probes], SeenTrial(cell, Trial(recording), traffic))


def judge_cell(
    cell: Cell, used: Sequence[Trial], *, planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The findings about a cell as a whole, given its usable trials and the ceiling's rate in its scenario and load."""
    in_order = sorted(used, key=lambda trial: trial.recording.position)
    return _ask([one for one in JUDGES if one.when == "cell"], SeenCell(cell, in_order, planned, ceiling_per_s))


def judge_duet(duet: SeenDuet) -> tuple[Finding, ...]:
    """The findings about a duet."""
    return _in_order(finding for judge in JUDGES if judge.when == "duet" for finding in judge(duet))


def _ask(judges: Sequence[Judge], seen: SeenTrial | SeenCell) -> tuple[Finding, ...]:
    return _in_order(finding for judge in judges for finding in judge.of(seen))


def _in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda finding: _PLACES[finding.kind]))


_PLACES = {kind: place for place, kind in enumerate(RULES)}
