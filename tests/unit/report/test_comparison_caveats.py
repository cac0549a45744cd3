"""How reports show the basis of comparisons: adjusted p-values, caveats, and percentiles not given."""

import pytest

from redline.analysis.cells import too_few
from redline.analysis.compare import CAVEAT
from redline.document import format as fmt
from redline.model import Comparison, Estimate, Histogram, Metric, Report, TooFew, Verdict
from redline.render import RENDERERS
from redline.report.views import caveats
from tests.fakes import reports
from tests.fakes.published import published

SHORT = TooFew(metric=Metric.P9999, needs=100_000, missing=38_112)


def comparison(p: float | None, adjusted: float | None, family: int | None, verdict: Verdict) -> Comparison:
    ratio = Estimate(value=1.05, low=1.01, high=1.09, unit="ratio", n=5, method="given")
    return Comparison(
        metric=Metric.P99,
        cell_id="a",
        baseline_id="b",
        ratio=ratio,
        verdict=verdict,
        threshold=0.02,
        p=p,
        p_adjusted=adjusted,
        family=family,
    )


def with_caveats() -> Report:
    """The healthy report, with one verdict held back, a caveat, and a cell with too few requests for p99.99."""
    made = reports.healthy()
    held = comparison(0.012, 0.24, 20, Verdict.INCONCLUSIVE)
    first = next(c for c in made.comparisons if c.metric is Metric.P99)
    update = {"ratio": held.ratio, "verdict": held.verdict, "p": 0.012, "p_adjusted": 0.24, "family": 20}
    changed = first.model_copy(update={**update, "caveat": CAVEAT})
    cells = [
        cell.model_copy(update={"too_few": (SHORT,)}) if cell.cell_id == first.cell_id else cell for cell in made.cells
    ]
    comparisons = [changed if each is first else each for each in made.comparisons]
    return made.model_copy(update={"comparisons": tuple(comparisons), "cells": tuple(cells)})


@pytest.mark.parametrize(
    ("made", "chances", "held"),
    [
        (comparison(None, None, None, Verdict.INCONCLUSIVE), "", ""),
        (comparison(0.03, 0.03, 1, Verdict.SLOWER), "p 0.03", ""),
        (
            comparison(0.00001, 0.0002, 20, Verdict.SLOWER),
            "p <0.0001, 0.0002 adjusted for 20 comparisons",
            "",
        ),
        (
            comparison(0.012, 0.24, 20, Verdict.INCONCLUSIVE),
            "p 0.012, 0.24 adjusted for 20 comparisons",
            "(p 0.24 among 20)",
        ),
    ],
)
def test_chances_in_words(made: Comparison, chances: str, held: str) -> None:
    assert (fmt.chances(made), fmt.held_back(made)) == (chances, held)


def test_what_a_percentile_needs_in_words() -> None:
    assert fmt.too_few(SHORT) == "p99.99 needs 100,000 requests, 38,112 more"


def test_percentiles_that_a_count_cannot_give() -> None:
    made = too_few(Histogram.of([1_000_000] * 61_888))
    assert made == (SHORT,)
    few = too_few(Histogram.of([1_000_000] * 150))
    assert [(one.metric, one.missing) for one in few] == [
        (Metric.P95, 50),
        (Metric.P99, 850),
        (Metric.P999, 9_850),
        (Metric.P9999, 99_850),
    ]
    assert too_few(Histogram()) == ()


@pytest.mark.parametrize("form", ["md", "html"])
def test_reports_show_them(form: str) -> None:
    text = RENDERERS[form](with_caveats()).decode()
    assert "(p 0.24 among 20)" in text
    assert text.count("Users of a closed load wait for their answers") == 1
    assert "38,112 more" in text
    plain = RENDERERS[form](reports.healthy()).decode()
    assert "among 20" not in plain
    assert "of a closed load wait" not in plain


def test_json_holds_them_only_where_they_are() -> None:
    made = with_caveats()
    assert Report.model_validate_json(made.model_dump_json()) == published(made)
    plain = reports.healthy().model_dump_json()
    assert "p_adjusted" not in plain
    assert "too_few" not in plain
    assert caveats(made) == {CAVEAT: (Metric.P99,)}
