"""Distributions on the page: what its plots are drawn from adds up, and what is said of them is true."""

import itertools
import json
from dataclasses import replace
from functools import cache

import pytest

from redline.analysis import build_report
from redline.document.blocks import Prose
from redline.model import AnsweredBy, BandedPercentile, Histogram, Percentile, Report
from redline.render import RENDERERS
from redline.report.curves import distribution
from redline.report.distributions import (
    BINS_IN_TEN,
    distributions_fold,
    distributions_payload,
    farthest_line,
)
from redline.report.plots import drawn_curves, payload, plots_section
from tests.fakes.compared import Cost, compared_run
from tests.fakes.recordings import simulated_run
from tests.fakes.reports import died


@cache
def built() -> Report:
    return build_report(simulated_run(trials=3))


def texts(report: Report) -> str:
    (section,) = plots_section(report)
    blocks = [*section.blocks, *(inner for block in section.blocks for inner in getattr(block, "blocks", ()))]
    return " ".join(
        span.text for block in blocks if isinstance(block, Prose) for spans in block.lines for span in spans
    )


def test_every_request_is_in_a_bin() -> None:
    data = distributions_payload(built(), drawn_curves(built()))
    by_name = {cell["name"]: cell for cell in data["cells"]}
    assert len(by_name) == len(data["cells"]) == len(built().cells)
    for cell in data["cells"]:
        assert sum(cell["bins"]) == cell["count"] > 0
        assert cell["first"] > 0, "a bin has an edge before it"
        assert cell["first"] + len(cell["bins"]) <= len(data["edges"])
    edges = data["edges"]
    assert edges == sorted(set(edges))
    ratios = [later / earlier for earlier, later in itertools.pairwise(edges)]
    assert all(ratio == pytest.approx(10 ** (1 / BINS_IN_TEN), rel=0.02) for ratio in ratios)


def test_a_cell_refers_to_the_curve_that_a_group_has() -> None:
    data, plots = distributions_payload(built(), drawn_curves(built())), payload(built())
    for cell in data["cells"]:
        group, place = cell["drawn"]
        curve = plots["groups"][group]["curves"][place]
        assert plots["servers"][curve["s"]] in cell["name"]
    without = distributions_payload(built(), [])
    assert all("curve" in cell and "drawn" not in cell for cell in without["cells"])


def test_the_pair_of_a_comparison_is_chosen_first() -> None:
    report = build_report(compared_run({"home": Cost(1.3)}))
    data = distributions_payload(report, drawn_curves(report))
    (difference,) = data["differences"]
    assert {difference["cell"], difference["baseline"]} == set(data["chosen"])
    assert difference["about"] == "6 starts"
    low, high = difference["low"], difference["high"]
    for at, ours in enumerate(difference["ours"]):
        assert low[at] - 1e-4 <= ours - difference["theirs"][at] <= high[at] + 1e-4


def test_a_band_is_drawn_where_there_are_two_trials_and_said_to_be_missing_where_not() -> None:
    curve = distribution(0, built().cells[1])["response"]
    assert len(curve["low"]) == len(curve["x"]) == len(curve["high"])
    assert curve["low"][-1] is None, "the slowest request has no interval"
    assert "Its band is the 95% interval" in texts(built())
    single = build_report(simulated_run(trials=1))
    assert "low" not in distribution(0, single.cells[1])["response"]
    assert "an interval needs two trials or starts" in texts(single)
    mixed = single.model_copy(update={"cells": (built().cells[0], *single.cells[1:])})
    assert f"Without a band, because an interval needs two trials or starts: {single.cells[1].slug}" in texts(mixed)


def test_a_percentile_with_ten_requests_above_it_is_no_tail() -> None:
    cell = built().cells[1]
    few = cell.model_copy(
        update={
            "response": Histogram.of([float(10_000 * n) for n in range(1, 101)]),
            "response_curve": (BandedPercentile(q=0.9, ns=900_000),),  # 100 * (1 - 0.9) is less than 10 as a float
            "response_percentiles": (Percentile(q=1.0, ns=1_000_000),),
        }
    )
    assert distribution(0, few)["response"]["certain"] == 1


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((-0.131, -0.109), "has answered 12.0 points fewer of its requests than A [10.9, 13.1]: 43.1% against 55.1%."),
        ((-0.14, 0.02), "fewer of its requests than A [\u22122.0, 14.0]: 43.1% against 55.1%"),
        ((None, None), "fewer of its requests than A: 43.1% against 55.1%"),
    ],
)
def test_where_two_are_farthest_apart_is_said(ends: tuple[float | None, float | None], said: str) -> None:
    (part, *_) = built().shares
    point = AnsweredBy(ns=2_000_000, cell=0.431, baseline=0.551, difference=-0.12, low=ends[0], high=ends[1])
    names = {part.cell_id: "B", part.baseline_id: "A"}
    only = part.model_copy(update={"points": (point,)})
    text = "".join(span.text for span in farthest_line(only, names))
    assert text.startswith("B against A: within 2.00 ms B")
    assert said in text
    assert ("includes 0" in text) == (ends[1] == 0.02)
    cold = only.model_copy(update={"unsettled": "in 1 of 3 starts the servers were not warm"})
    warned = "".join(span.text for span in farthest_line(cold, names))
    assert ("does not allow for this: in 1 of 3 starts" in warned) == (ends[0] is not None)
    even = replace(point, difference=0.0)
    same = "".join(span.text for span in farthest_line(part.model_copy(update={"points": (even,)}), names))
    assert same == "B against A: both have answered the same share of their requests within every time."


def test_a_report_of_an_earlier_version_has_neither_bands_nor_differences() -> None:
    cells = tuple(cell.model_copy(update={"response_curve": (), "service_curve": ()}) for cell in built().cells)
    earlier = built().model_copy(update={"cells": cells, "shares": ()})
    assert Report.model_validate_json(earlier.model_dump_json()).shares == ()
    data = distributions_payload(earlier, drawn_curves(earlier))
    assert data["differences"] == []
    assert len(data["chosen"]) == 2
    assert b'data-of="pair"' not in RENDERERS["html"](earlier)


def test_nothing_valid_leaves_no_choice() -> None:
    none = died().model_copy(update={"cells": (), "comparisons": (), "shares": ()})
    assert distributions_fold(none) is None
    assert json.loads(json.dumps(distributions_payload(none, [])))["cells"] == []
