"""The levels of servers that were measured only in duets."""

from redline.analysis import build_report
from redline.model import CellReport, Counts, DuetRecording, Grade, Outcomes, Run
from redline.render import RENDERERS
from redline.report.views import counts_are_known
from tests.fakes.compared import Cost, compared_run


def failing_at(run: Run, place: int, outcomes: Outcomes) -> Run:
    """The same run, in which the requests to a server ended so in every start."""
    counts = Counts(due=outcomes.total, completed=outcomes.ok, outcomes=outcomes)

    def changed(start: DuetRecording) -> DuetRecording:
        assert start.traffic is not None
        targets = list(start.traffic.targets)
        targets[place] = targets[place].model_copy(update={"counts": counts})
        traffic = start.traffic.model_copy(update={"targets": tuple(targets)})
        return start.model_copy(update={"traffic": traffic})

    return run.model_copy(update={"duets": tuple(map(changed, run.duets))})


def cells_of(run: Run) -> dict[str, CellReport]:
    return {cell.server: cell for cell in build_report(run).cells}


def test_a_server_that_answers_wrongly_has_no_level() -> None:
    run = failing_at(compared_run({"home": Cost(1.05)}, starts=3), 1, Outcomes(ok=1_000, unexpected_status=500))
    sound, failing = cells_of(run).values()
    assert (sound.valid, sound.findings) == (True, ())
    (finding,) = failing.findings
    assert (failing.valid, finding.kind, finding.grade) == (False, "wrong-answers", Grade.INVALID)
    assert finding.message == "1,500 of 4,500 requests to B failed: unexpected status 1,500."
    assert not failing.known
    assert not failing.shows_numbers
    assert not failing.response.count
    assert not any((failing.response_percentiles, failing.slowest, failing.response_curve))
    assert counts_are_known(failing)
    assert failing.counts.outcomes.unexpected_status == 1_500
    rows = [row for row in RENDERERS["csv"](build_report(run)).decode().splitlines() if failing.slug in row]
    assert not any("p99" in row for row in rows if ",true," in row)


def test_a_server_that_gives_no_answers_has_no_level_either() -> None:
    run = failing_at(compared_run({"home": Cost(1.05)}, starts=3), 2, Outcomes(ok=1_000, timeout=500))
    failing, sound = cells_of(run).values()
    assert sound.valid
    assert [(finding.kind, finding.grade) for finding in failing.findings] == [("errors", Grade.INVALID)]


def test_a_server_of_which_few_requests_fail_keeps_its_levels() -> None:
    run = failing_at(compared_run({"home": Cost(1.05)}, starts=3), 1, Outcomes(ok=1_990, unexpected_status=10))
    assert all(cell.valid and cell.known for cell in cells_of(run).values())
