"""Judge servers beside the others under the same scenario and load. Pure."""

from collections.abc import Iterable, Mapping
from statistics import median

from redline.analysis.results import CellResult
from redline.analysis.trials import TrialResult
from redline.findings import judge_among
from redline.findings.across import SeenAmong, SeenServer
from redline.model import CellReport, Counts, Finding
from redline.suite.load_text import load_text


def findings_across(
    results: Mapping[str, CellResult], reports: Mapping[str, CellReport]
) -> dict[str, tuple[Finding, ...]]:
    """The findings about cells that only others with the same scenario and load show, by cell id.

    Cells without a valid result of trials are left out, and so are ceilings.
    """
    groups: dict[tuple[str, str], dict[str, SeenServer]] = {}
    for cell_id, result in results.items():
        cell = result.cell
        if cell.role == "subject" and result.valid and result.used and not result.perturbed:
            key = cell.scenario.name, f"{cell.load.name} {load_text(cell.load)}"
            groups.setdefault(key, {})[cell_id] = _seen_server(result, reports[cell_id])
    return {
        cell_id: judge_among(SeenAmong(tuple(servers.values()), place))
        for servers in groups.values()
        for place, cell_id in enumerate(servers)
    }


def _seen_server(result: CellResult, report: CellReport) -> SeenServer:
    used = [trial for trial in result.trials if trial.used]
    return SeenServer(
        cell=result.cell,
        estimates=report.estimates,
        counts=report.counts,
        sizes=tuple(_sizes(used)),
        bodies=_bodies(used),
        trials=len(used),
        server_share=_median(trial.server_share for trial in used),
        engine_share=_median(trial.engine_share for trial in used),
        findings=(*(finding for trial in used for finding in trial.findings), *result.own_findings),
    )


def _sizes(used: Iterable[TrialResult]) -> Iterable[float]:
    """The mean bytes received for a right answer, by trial with such answers."""
    for trial in used:
        counts = trial.numbers.traffic.counts if trial.numbers.traffic else Counts()
        if counts.completed and counts.bytes_received:
            yield counts.bytes_received / counts.completed


def _bodies(used: Iterable[TrialResult]) -> tuple[tuple[float, ...], ...]:
    """The mean bytes of the bodies of each of several requests, by trial in which all of its answers were right."""
    trials = [trial.numbers.traffic.requests for trial in used if trial.numbers.traffic]
    if not trials or len({len(requests) for requests in trials}) > 1:
        return ()
    return tuple(
        tuple(request.body_bytes / request.answers for request in same if request.answers == request.outcomes.ok > 0)
        for same in zip(*trials, strict=True)
    )


def _median(shares: Iterable[float | None]) -> float | None:
    """The median; None unless all are known."""
    given = list(shares)
    known = [share for share in given if share is not None]
    return median(known) if known and len(known) == len(given) else None
