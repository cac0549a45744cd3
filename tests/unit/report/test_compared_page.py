"""The page of two runs that are compared."""

from redline.document.blocks import Items
from redline.model import Finding, Grade
from redline.model.compared import CompareResult
from redline.report.compared_page import compared_page


def finding(position: int | None, grade: Grade = Grade.WARN) -> Finding:
    return Finding(
        kind="cpu-steal",
        grade=grade,
        message="m.",
        advice="Do.",
        cell_id="rust.hyper.Get.steady-0123abcd",
        position=position,
    )


def where(findings: tuple[Finding, ...], of_base: int | None) -> list[str]:
    """Where the page says that they are."""
    result = CompareResult(
        base="monday",
        other="tuesday",
        comparisons=(),
        unmatched=(),
        environment_differs=(),
        findings=findings,
        of_base=of_base,
    )
    (section,) = (each for each in compared_page(result).sections if each.title == "Findings")
    (items,) = section.blocks
    assert isinstance(items, Items)
    return [item.lines[-1][0].text for item in items.items]


def test_a_finding_names_its_run_and_how_many_trials_have_it() -> None:
    found = finding(2), finding(5), finding(7, Grade.NOTE), finding(None)
    assert where(found, 3) == ["in monday: rust.hyper.Get.steady, 2 trials", "in tuesday: rust.hyper.Get.steady"]
    assert where(found[:1], 0) == ["in tuesday: rust.hyper.Get.steady, 1 trial"]


def test_findings_of_one_run_need_no_name() -> None:
    assert where((finding(2),), None) == ["in rust.hyper.Get.steady, 1 trial"]
