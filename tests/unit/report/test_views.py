"""What all renderers need of a report."""

from redline.document.format import VerdictSign
from redline.model import Grade, Verdict
from redline.report.views import (
    colours,
    comparisons_by_cell,
    finding_groups,
    groups,
    invalid_reason,
    tally,
    weighed_findings,
)
from tests.fakes import reports
from tests.fakes.layers import CHAIN, layered


def test_groups_hold_the_baseline_first_and_the_ceiling_last() -> None:
    report = reports.healthy()
    backwards = report.model_copy(update={"cells": tuple(reversed(report.cells))})
    for group in groups(backwards):
        assert group.cells[0].is_baseline
        assert group.cells[-1].role == "ceiling"
    assert sum(len(group.cells) for group in groups(backwards)) == len(report.cells)


def test_a_chain_stands_from_what_it_begins_with_upward() -> None:
    made = layered()
    turned = made.model_copy(update={"cells": tuple(reversed(made.cells))})
    for group in groups(turned):
        assert tuple(cell.server for cell in group.cells) == CHAIN
        assert group.against[group.cells[-1].cell_id] == CHAIN[-2].replace("+log=on", "")


def test_servers_come_once_and_ceilings_last() -> None:
    assert tuple(colours(reports.healthy())) == ("rust.hyper", "rust.axum", "oracle.null")


def test_what_is_reported_of_many_cells_is_reported_once_and_the_gravest_first() -> None:
    report = reports.doubtful()
    found = finding_groups(report)
    assert [doubt.grade for doubt in found] == [Grade.INVALID, Grade.WARN, Grade.NOTE]
    steal = next(doubt for doubt in found if doubt.kind == "cpu-steal")
    assert len(steal.messages) == 1
    assert len(steal.slugs) == len(report.cells)
    assert steal.where(len(report.cells)) == "every cell"


def test_what_left_a_trial_out_is_a_warning_about_a_cell_that_stands() -> None:
    (cell,) = reports.died().cells
    assert [f.grade for f in cell.findings] == [Grade.INVALID]
    (said,) = weighed_findings(cell)
    assert (said.kind, said.grade) == ("server-died", Grade.WARN)
    assert said.message == "1 of 5 trials left out: Failed in stage load: it panicked."
    (doubt,) = finding_groups(reports.died())
    assert (doubt.grade, *doubt.messages) == (Grade.WARN, said.message)
    assert doubt.log_tail.startswith("<b>panicked")


def test_milder_doubts_of_a_trial_that_is_left_out_weigh_on_nothing() -> None:
    (cell,) = reports.died().cells
    steal = cell.findings[0].model_copy(update={"kind": "cpu-steal", "grade": Grade.WARN})
    both = cell.model_copy(update={"findings": (*cell.findings, steal)})
    assert weighed_findings(both) == weighed_findings(cell)
    used = steal.model_copy(update={"kind": "unsteady", "position": cell.trials[0].position})
    (_, said) = weighed_findings(cell.model_copy(update={"findings": (*cell.findings, used)}))
    assert said == used.model_copy(update={"message": f"{used.message} (In 1 of 4 trials.)"})


def test_a_finding_of_many_trials_is_one_of_their_cell() -> None:
    (cell,) = reports.died().cells
    positions = [trial.position for trial in cell.trials if trial.used]
    one = cell.findings[0].model_copy(update={"kind": "cpu-steal", "message": "Stolen."})

    def weighed(*grades: Grade) -> tuple[tuple[Grade, str], ...]:
        each = zip(grades, positions, strict=False)
        found = tuple(one.model_copy(update={"grade": grade, "position": position}) for grade, position in each)
        return tuple(
            (said.grade, said.message) for said in weighed_findings(cell.model_copy(update={"findings": found}))
        )

    assert weighed(Grade.NOTE, Grade.WARN, Grade.WARN) == ((Grade.WARN, "Stolen. (In 3 of 4 trials.)"),)
    assert weighed(Grade.WARN) == ((Grade.NOTE, "Stolen. (In 1 of 4 trials.)"),)


def test_an_invalid_cell_keeps_its_findings_as_they_are() -> None:
    (cell,) = reports.died().cells
    (finding,) = cell.findings
    expected = finding.model_copy(update={"message": f"{finding.message} (In 1 of 5 trials.)"})
    assert weighed_findings(cell.model_copy(update={"valid": False})) == (expected,)


def test_what_is_good_to_know_is_reported_last_and_marks_no_number() -> None:
    report = reports.doubtful()
    note = next(f for cell in report.cells for f in cell.findings if f.kind == "cpu-steal")
    good = note.model_copy(update={"kind": "server-limited", "grade": Grade.NOTE})
    cells = tuple(cell.model_copy(update={"findings": (good, *cell.findings)}) for cell in report.cells)
    assert [reports.marks(cell) for cell in cells] == [reports.marks(cell) for cell in report.cells]
    assert finding_groups(report.model_copy(update={"cells": cells}))[-1].kind == "server-limited"


def test_no_finding_is_lost() -> None:
    report = reports.skipping()
    asked = {(f.kind, f.message, cell.slug) for cell in report.cells for f in cell.findings}
    groups_ = finding_groups(report)
    shown = {(d.kind, said, slug) for d in groups_ for said, slugs in d.messages.items() for slug in slugs}
    assert shown == asked


def test_an_invalid_cell_always_has_a_reason() -> None:
    bad = next(cell for cell in reports.doubtful().cells if not cell.valid)
    assert invalid_reason(bad) == "Sent 14,210/s of 20,000/s (71%)."
    assert invalid_reason(bad.model_copy(update={"findings": ()})) == "No trial of this cell can be used."


def test_the_tally_counts_every_verdict_but_the_ceilings() -> None:
    report = reports.healthy()
    assert sum(tally(report).values()) == sum(one.primary for one in report.comparisons)
    assert list(tally(report)) == [sign for sign in VerdictSign if sign in tally(report)]
    assert len(tally(report)) > 2
    ceiling = next(cell for cell in report.cells if cell.role == "ceiling")
    extra = report.comparisons[0].model_copy(update={"cell_id": ceiling.cell_id, "verdict": Verdict.FASTER})
    assert tally(report.model_copy(update={"comparisons": (*report.comparisons, extra)})) == tally(report)


def test_comparisons_are_found_by_cell_and_metric() -> None:
    report = reports.healthy()
    found = comparisons_by_cell(report)
    assert [c for by_metric in found.values() for c in by_metric.values()] == list(report.comparisons)
