"""The caveats of a report are three lines."""

import pytest

from redline.analysis import build_report
from redline.document.blocks import Prose, Section
from redline.model import Grade, Report, Verdict
from redline.model.limits import CellLimit, LimitReport
from redline.report.doubt import caveats_section, limit_caveats
from tests.fakes import limits, reports
from tests.fakes.compared import compared_run
from tests.fakes.report_cells import finding


def said(report: Report) -> list[str]:
    return lines_of(next(caveats_section(report)))


def lines_of(section: Section) -> list[str]:
    block, *_ = section.blocks
    assert isinstance(block, Prose)
    return ["".join(span.text for span in each) for each in block.lines]


def test_of_a_good_run_it_says_how_its_trials_scatter_and_that_nothing_was_found() -> None:
    report = reports.healthy()
    decided = tuple(one for one in report.comparisons if one.verdict is not Verdict.INCONCLUSIVE)
    limits, biases, left_out = said(report.model_copy(update={"comparisons": decided}))
    assert limits.startswith("What limits precision: trials of a cell differ by ")
    assert limits.endswith("% (the median cell)")
    assert biases == "What biases, and which way: nothing was found"
    assert left_out == "What was left out: nothing: all of 60 trials count"


def test_warnings_say_what_they_do_to_the_numbers_and_in_how_many_cells() -> None:
    limits, biases, left_out = said(reports.skipping())
    assert "(the median cell); cpu-steal in every cell" in limits
    assert biases == (
        "What biases, and which way: throughput is too low and response times are too high, of all servers alike "
        "(cpu-steal in every cell); response times are too high (rate-missed in 1 cell)"
    )
    assert left_out == (
        "What was left out: 1 of 60 trials; 1 of 12 cells has no valid result; 4 cells skipped; 9 trials not made"
    )


def test_undecided_comparisons_are_counted_with_what_the_coarsest_could_show() -> None:
    report = reports.healthy()
    one = next(each for each in report.comparisons if each.verdict)
    open_ = one.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    cells = tuple(
        cell.model_copy(update={"findings": (finding("resolution", Grade.NOTE, "Shows 28%.", "", cell.cell_id),)})
        for cell in report.cells
    )
    limits, _, _, further = said(report.model_copy(update={"cells": cells, "comparisons": (open_,)}))
    assert limits.endswith("; 1 of 1 comparison undecided")
    assert further == "What to do next: Shows 28%."


def test_numbers_that_are_not_shown_have_no_doubts() -> None:
    report = reports.doubtful()
    (bad,) = [cell for cell in report.cells if not cell.valid]
    limits, biases, left_out = said(report.model_copy(update={"cells": (bad,), "comparisons": ()}))
    assert limits == "What limits precision: no number is shown"
    assert biases == "What biases, and which way: no number is shown"
    assert "1 of 1 cell has no valid result" in left_out


def test_a_trial_that_was_left_out_is_counted_with_its_reason() -> None:
    assert said(reports.died())[2] == "What was left out: 1 of 5 trials (server-died 1)"


def test_notes_do_neither() -> None:
    report = reports.doubtful()
    notes = tuple(
        cell.model_copy(
            update={"findings": tuple(one.model_copy(update={"grade": Grade.NOTE}) for one in cell.findings)}
        )
        for cell in report.cells
    )
    limits, biases, _ = said(report.model_copy(update={"cells": notes}))
    assert "cpu-steal" not in limits
    assert biases.endswith("nothing was found")


def test_what_else_measured_is_named_also_by_a_note() -> None:
    message = "Another measurement of Redline ran on this machine meanwhile: redline ab (pid 7)."
    report = reports.healthy()
    cells = tuple(
        cell.model_copy(update={"findings": (finding("other-load", Grade.NOTE, message, "", cell.cell_id),)})
        for cell in report.cells
    )
    assert said(report.model_copy(update={"cells": cells}))[-1] == f"What else measured: {message}"
    busy = [
        finding("other-load", Grade.NOTE, f"{lab} ran; others used {share}.", "", "c") for lab in "ab" for share in "79"
    ]
    several = tuple(cell.model_copy(update={"findings": tuple(busy)}) for cell in report.cells)
    labs = said(report.model_copy(update={"cells": several}))[-1]
    assert labs == "What else measured: a ran; others used 7. b ran; others used 7.", "each once"
    search = limits.by_hand()
    searched = tuple(cell.model_copy(update={"findings": cells[0].findings}) for cell in search.cells)
    (section,) = limit_caveats(search.model_copy(update={"cells": searched}))
    assert lines_of(section)[-1] == f"What else measured: {message}"


def kept(report: LimitReport) -> LimitReport:
    """The report of a search whose recordings are kept."""
    cells = list[CellLimit]()
    for cell in report.cells:
        probes = tuple(probe.model_copy(update={"recording": "probes/x/0001.json"}) for probe in cell.probes)
        cells.append(cell.model_copy(update={"probes": probes}))
    return report.model_copy(update={"cells": tuple(cells)})


def test_a_search_has_the_three_lines_too() -> None:
    limits_, biases, left_out, further = lines_of(next(limit_caveats(kept(limits.by_hand()))))
    assert limits_.startswith("What limits precision: ")
    assert biases.startswith("What biases, and which way: ")
    assert " of 5 probes, of which nothing is known of the server; no limit of go.nethttp" in left_out
    assert further == f"What to do next: {RESUMED} goes on"


RESUMED = "redline limit --resume DIR, with the directory of this report,"


@pytest.mark.parametrize(
    "reason",
    [
        "about --probes 29 would decide it, or probes 2.4 times as long",
        "starts differ: about --trials 11 would decide it",
        "probes differ by 12%, however long they are: about --probes 150 would decide it",
    ],
)
def test_what_would_decide_a_limit_is_done_next_and_what_would_not_is_left_out(reason: str) -> None:
    def last_line(reason: str) -> str:
        busy = limits.busy()
        wide = tuple(one.model_copy(update={"decided": False, "reason": reason}) for one in busy.limits)
        return lines_of(next(limit_caveats(limits.report(busy.model_copy(update={"limits": wide})))))[-1]

    assert last_line(reason) == f"What to do next: {reason}"
    assert "What to do next" not in last_line("starts differ too much: 40 of them would not decide it")


def test_a_search_that_is_not_kept_is_not_resumed() -> None:
    assert all("--resume" not in each for each in lines_of(next(limit_caveats(limits.by_hand()))))


def test_a_server_that_could_not_be_searched_is_tried_again_without_its_last_file() -> None:
    report = kept(limits.by_hand())
    cells = tuple(cell.model_copy(update={"ended": "broken"}) for cell in report.cells[:1])
    *_, further = lines_of(next(limit_caveats(report.model_copy(update={"cells": cells}))))
    assert further == f"What to do next: remove the last file of probes/rust.hyper+http2, and {RESUMED} tries it again"


@pytest.mark.parametrize(
    ("given", "seconds", "says"),
    [
        ("'./a b' -o out --open --start 500 -m 'a b'", 20.0, "'./a b' -m 'a b' --start 12"),
        ("URL --output=out --start=500 -d 20s", 20.0, "URL -d 20s --start 12"),
        ("URL -d 2s --start 500", 2.0, "URL --start 500 -d 8s"),
        ("URL --duration=2s", 2.0, "URL -d 8s"),
    ],
)
def test_another_search_begins_where_it_may_find_a_limit_and_is_kept_elsewhere(
    given: str, seconds: float, says: str
) -> None:
    doomed = limits.doomed()
    probes = tuple(probe.model_copy(update={"seconds": seconds}) for probe in doomed.probes)
    report = limits.report(doomed.model_copy(update={"probes": probes}), command=f"redline limit {given}")
    assert lines_of(next(limit_caveats(report)))[-1] == f"What to do next: redline limit {says}"


def test_a_search_without_a_limit_counts_none_and_says_where_to_look() -> None:
    doomed = limits.doomed()
    assert {answer.passed_per_s for answer in doomed.limits} == {None}
    command = "redline limit URL --objective 'p99 < 50ms'"
    lines = lines_of(next(limit_caveats(limits.report(doomed, command=command))))
    assert lines[0] == "What limits precision: nothing was found"
    assert "no limit of clojure.ring" in lines[2]
    assert lines[3] == f"What to do next: {command} -d 8s"
    both = lines_of(next(limit_caveats(limits.report(limits.busy(), doomed))))
    assert "2 of 2 limits wider than the goal" in both[0]
    assert not any(
        line.startswith("What to do next") and "--start" in line
        for line in lines_of(next(limit_caveats(limits.report(limits.busy(), command=command))))
    )


def test_cold_starts_that_do_not_count_are_said() -> None:
    report = build_report(compared_run(starts=4))
    comparisons = tuple(
        comparison.model_copy(update={"duet": comparison.duet.model_copy(update={"left_out": 2})})
        for comparison in report.comparisons
        if comparison.duet is not None
    )
    (slug,) = {cell.slug for cell in report.cells if cell.cell_id == comparisons[0].cell_id}
    *_, before = said(report)
    assert before == "What was left out: nothing: all of 4 starts count"
    *_, after = said(report.model_copy(update={"comparisons": comparisons}))
    assert after == f"What was left out: cold starts: 2 of 6 of {slug}"
