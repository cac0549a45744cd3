"""Published claims in reports: a sentence at once, and a row for every claim."""

import pytest

from redline.document.blocks import Medium, Section, Table, lines_of
from redline.model import Estimate, Metric
from redline.model.claim import Claim, ClaimResult, ClaimState
from redline.report.claims import claims_section, claims_summary
from redline.report.run import OUTLINE
from tests.fakes import reports

RATIO = Estimate(value=0.82, low=0.79, high=0.85, unit="ratio", n=5, method="")
LEVEL = Estimate(value=4.35e5, low=4.2e5, high=4.5e5, unit="ns", n=5, method="")


def result(state: ClaimState, measured: Estimate | None = None, **claim: str) -> ClaimResult:
    return ClaimResult(
        claim=Claim.model_validate({"text": "so", "of": "a.B.c", **claim}),
        state=state,
        measured=measured,
        reason="no JDK" if state == "not measured" else "",
    )


def text(section: Section) -> str:
    return "\n".join(
        "".join(span.text for span in line) for block in section.blocks for line in getattr(block, "lines", ())
    )


@pytest.mark.parametrize(
    ("states", "said"),
    [
        (["agrees"], "Of 1 published claim 1 agrees."),
        (["differs", "agrees", "differs"], "Of 3 published claims 1 agrees and 2 differ."),
        (
            ["not measured", "not known", "agrees", "agrees", "differs"],
            "Of 5 published claims 2 agree, 1 differs, 1 is not known and 1 is not measured.",
        ),
        (["not known", "not known"], "Of 2 published claims 2 are not known."),
    ],
)
def test_a_sentence_counts_them(states: list[ClaimState], said: str) -> None:
    report = reports.healthy().model_copy(update={"claims": tuple(map(result, states))})
    (summary,) = claims_summary(report)
    (section,) = claims_section(report)
    assert text(summary) == said
    assert text(section).startswith(said)


def test_a_row_has_what_was_published_and_what_was_measured() -> None:
    claims = (
        result("agrees", RATIO, id="T2", to="a.C.c", expected="0.8", metric=Metric.THROUGHPUT.value),
        result("differs", LEVEL, expected="< 100us", metric=Metric.P99.value),
        result("not measured"),
    )
    report = reports.healthy().model_copy(update={"claims": claims})
    (section,) = claims_section(report)
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    rows = [["".join(span.text for line in lines_of(cell) for span in line) for cell in row] for row in table.rows]
    assert rows == [
        ["T2", "so", "throughput ratio 0.8", "\u00d7 0.820 [0.790, 0.850]", "agrees"],
        ["", "so", "p99 < 100us", "435 \u00b5s [420\u2013450 \u00b5s]", "differs"],
        ["", "so", "", "", "not measured (1)"],
    ]


def test_a_reason_stands_once_below_the_table() -> None:
    """A cell of the table is too narrow for it."""
    claims = [
        result("not measured").model_copy(update={"reason": reason})
        for reason in ("a.B.c: no JDK", "not asked", "a.B.c: no JDK")
    ]
    report = reports.healthy().model_copy(update={"claims": tuple(claims)})
    (section,) = claims_section(report)
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    states = ["".join(span.text for line in lines_of(row[-1]) for span in line) for row in table.rows]
    assert states == ["not measured (1)", "not measured (2)", "not measured (1)"]
    assert text(section).splitlines()[-2:] == ["1. no JDK", "2. not asked"]


def test_they_lead_the_page_and_are_counted_at_the_end_of_a_run() -> None:
    report = reports.healthy().model_copy(update={"claims": (result("agrees", RATIO, to="a.C.c", expected="0.8"),)})
    titles = [section.title for section in OUTLINE.sections(report, Medium.PAGE)]
    assert "Published claims" in titles[:3]
    (brief,) = (each for each in OUTLINE.brief(report) if each.title == "Published claims")
    assert not [block for block in brief.blocks if isinstance(block, Table)]
    assert "Published claims" not in [each.title for each in OUTLINE.sections(reports.healthy(), Medium.TERMINAL)]
