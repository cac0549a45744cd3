"""Recordings -> findings: asks every judge of the table that can be asked."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redline.findings.duet import SeenDuet
from redline.findings.rules import Judge, Seen
from redline.findings.table import JUDGES, RULES
from redline.model import Cell, Finding, Recording, RuntimeFacts, Traffic
from redline.stats import Trial


@dataclass(frozen=True)
class SeenTrial:
    """What is seen of a trial."""

    cell: Cell
    trial: Trial

    @property
    def cell_id(self) -> str:
        """Its cell."""
        return self.trial.recording.cell_id

    @property
    def position(self) -> int | None:
        """Its place in the order of the run."""
        return self.trial.recording.position

    @property
    def traffic(self) -> Traffic | None:
        """What the engine measured."""
        return self.trial.traffic

    @property
    def facts(self) -> RuntimeFacts | None:
        """What the server's runtime reported of itself."""
        return self.trial.recording.runtime


@dataclass(frozen=True)
class SeenCell:
    """A cell with its usable trials in the order of the run, and the ceiling's rate in its scenario and load."""

    cell: Cell
    used: Sequence[Trial]
    planned: int
    ceiling_per_s: float | None
    position: None = None

    @property
    def cell_id(self) -> str:
        """Its id."""
        return self.cell.id


def judge(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """All findings about this recording; see `judge_trial`."""
    return judge_trial(cell, Trial(recording))


def judge_trial(cell: Cell, trial: Trial) -> tuple[Finding, ...]:
    """All findings about a trial, in the order of the table. A trial with an `invalid` finding is not used."""
    traffic, known = trial.traffic, ["trial"]
    if traffic is not None:
        known.append("traffic")
        if traffic.ended != "failing" and traffic.counts.due > 0 and traffic.seconds > 0:
            known += ["requests", "runtime"] if trial.recording.runtime else ["requests"]
            if traffic.counts.completed > 0:  # without an answer, when and how they came is no question
                known.append("answers")
    return _findings(lambda judge: judge.when in known, SeenTrial(cell, trial))


def judge_probe(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What engine, machine, proxies and compilers did to a probe of a search. The search itself judges the rest."""
    traffic = recording.traffic
    if traffic is None or traffic.counts.due == 0 or traffic.seconds <= 0:
        return ()
    return _findings(lambda judge: judge.probes == "all", SeenTrial(cell, Trial(recording)))


def judge_server(cell: Cell, recording: Recording) -> tuple[Finding, ...]:
    """What the first probe of a search says of the server, which stays so."""
    return _findings(lambda judge: judge.probes == "first", SeenTrial(cell, Trial(recording)))


def judge_cell(
    cell: Cell, used: Sequence[Trial], *, planned: int, ceiling_per_s: float | None = None
) -> tuple[Finding, ...]:
    """The findings about a cell as a whole, given its usable trials and the ceiling's rate in its scenario and load."""
    in_order = sorted(used, key=lambda trial: trial.recording.position)
    return _findings(lambda judge: judge.when == "cell", SeenCell(cell, in_order, planned, ceiling_per_s))


def judge_duet(duet: SeenDuet) -> tuple[Finding, ...]:
    """The findings about a duet."""
    return _findings(lambda judge: judge.when == "duet", duet)


def _findings(asks: Callable[[Judge], bool], seen: Seen) -> tuple[Finding, ...]:
    findings = [finding for judge in JUDGES if asks(judge) for finding in judge.findings(seen)]
    return tuple(sorted(findings, key=lambda finding: _PLACES[finding.kind]))


_PLACES = {kind: place for place, kind in enumerate(RULES)}
