"""What of a run is undecided: what further starts are for, in their order, and how long they take."""

from redline.analysis import build_report
from redline.analysis.undecided import SURE_P, what_is_undecided
from redline.model import Comparison, Report, Run, Verdict
from redline.suite import expected_starts_ns
from tests.fakes.compared import Cost, compared_run

COSTS = {"clear": Cost(1.5, noise=0.001), "level": Cost(1.0, noise=0.05)}


def judged(run: Run) -> Report:
    return build_report(run)


def changed(report: Report, scenario: str, **update: object) -> Report:
    """The report with other primary comparisons of a scenario."""

    def of(comparison: Comparison) -> Comparison:
        is_it = comparison.primary and f".{scenario}." in comparison.cell_id
        return comparison.model_copy(update=update) if is_it else comparison

    return report.model_copy(update={"comparisons": tuple(map(of, report.comparisons))})


def test_what_is_sure_gets_no_further_starts() -> None:
    run = compared_run(COSTS, starts=6)
    plan, report = run.manifest.plan, judged(run)
    report = changed(report, "clear", verdict=Verdict.SLOWER, p=SURE_P, refused="")
    report = changed(report, "level", verdict=Verdict.INCONCLUSIVE, p=0.3, refused="")
    known = what_is_undecided(plan, report)
    (duet,) = {duet.cell_ids for duet in plan.duets if ".level." in duet.cell_ids[0]}
    assert known.groups == (duet,)
    assert (known.decided, known.impossible, known.names) == (0, 0, ("B.level.load",))
    assert known.sure == len([each for each in report.comparisons if each.primary and ".clear." in each.cell_id])
    assert known.round_ns == expected_starts_ns(plan, [duet])
    assert what_is_undecided(plan, report, pace=2.0).round_ns == 2 * known.round_ns


def test_what_is_decided_but_not_sure_comes_after_what_is_undecided() -> None:
    run = compared_run(COSTS, starts=6)
    plan, report = run.manifest.plan, judged(run)
    for first, second in (("clear", "level"), ("level", "clear")):
        one = changed(report, first, verdict=Verdict.SLOWER, p=2 * SURE_P, refused="")
        known = what_is_undecided(plan, changed(one, second, verdict=None, p=None, refused=""))
        assert [group[0].split(".")[1] for group in known.groups] == [second, first]
        assert known.sure == 0


def test_what_is_equivalent_is_sure_by_its_own_p() -> None:
    run = compared_run({"level": Cost()}, starts=6)
    plan, report = run.manifest.plan, judged(run)
    sure = changed(report, "level", verdict=Verdict.EQUIVALENT, p=0.9, p_equivalent=SURE_P, refused="")
    assert what_is_undecided(plan, sure).groups == ()
    unsure = changed(report, "level", verdict=Verdict.EQUIVALENT, p=SURE_P, p_equivalent=0.02, refused="")
    assert what_is_undecided(plan, unsure).groups != ()


def test_no_start_is_spent_on_what_cannot_be_compared() -> None:
    run = compared_run({"home": Cost()}, starts=4)
    report = changed(judged(run), "home", verdict=None, refused="it never answered")
    known = what_is_undecided(run.manifest.plan, report)
    assert (known.groups, known.round_ns, known.names) == ((), 0, ())
    assert known.impossible > 0


def test_the_fewest_starts_come_first() -> None:
    run = compared_run({"a": Cost(), "b": Cost()}, starts=4)
    plan, report = run.manifest.plan, judged(run)
    for scenario in ("a", "b"):
        report = changed(report, scenario, verdict=Verdict.INCONCLUSIVE, p=0.5, refused="")
    fewer = plan.only({duet.position for duet in plan.duets if not (duet.round == 3 and ".b." in duet.cell_ids[0])})
    known = what_is_undecided(fewer, report)
    assert [group[0].split(".")[1] for group in known.groups] == ["b", "a"]
