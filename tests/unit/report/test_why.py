"""Functions as a report names them, and the waterfall of what they cost."""

import pytest

from redline.analysis import build_report
from redline.document.blocks import Prose
from redline.document.figures import BarChart, FlameDifference, Panels
from redline.model import CodeCost, Estimate, Metric, Report, Verdict
from redline.render.renderers import as_html
from redline.render.svg import svg_files
from redline.report.why import name_of, why_sections
from tests.unit.profiles.test_why import sampled_run


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("io.netty.handler.codec.http.HttpObjectEncoder.writeOutList", "HttpObjectEncoder.writeOutList"),
        ("java.lang.invoke.VarHandleLongs$FieldInstanceReadWrite.get", "VarHandleLongs$FieldInstanceReadWrite.get"),
        ("Petstore.serve", "Petstore.serve"),
        ("serde_json::ser::to_string", "serde_json::ser::to_string"),
        ("net/http.(*conn).serve", "net/http.(*conn).serve"),
        ("uvicorn.protocols.http.run", "uvicorn.protocols.http.run"),
        ("tcp_sendmsg_[k]", "tcp_sendmsg (kernel)"),
    ],
)
def test_a_function_is_named_without_the_packages_of_its_class(name: str, shown: str) -> None:
    difference = Estimate(value=1, low=0, high=2, unit="ns", n=8, method="t")
    cost = CodeCost(name=name, before_ns=1, after_ns=2, difference_ns=difference, p_adjusted=0.01)
    assert name_of(cost) == shown


def waterfall(report: Report) -> BarChart:
    (section,) = why_sections(report)
    (panels,) = (block for block in section.blocks if isinstance(block, Panels))
    return panels.blocks[0]


def test_the_bars_of_a_waterfall_lead_from_nothing_to_the_whole_difference() -> None:
    report = build_report(sampled_run())
    chart = waterfall(report)
    assert [name for name, _, _ in chart.rows] == ["seldom", "many small ones", "not accounted for", "all together"]
    bars = [bar for _, bar, _ in chart.rows if bar is not None]
    assert [bar.start for bar in bars] == [0.0, bars[0].end, bars[1].end, 0.0]
    assert bars[2].end == pytest.approx(bars[3].end)
    (why,) = report.why
    assert why.whole_ns is not None
    assert bars[3].end == why.whole_ns.value
    assert all(chart.scale.holds(end) for bar in bars for end in (bar.start, bar.end))


def test_the_whole_is_no_coarser_than_its_interval() -> None:
    report = build_report(sampled_run())
    ratio = Estimate(value=1.124, low=1.08, high=1.17, unit="ratio", n=8, method="t")
    comparisons = tuple(
        one.model_copy(update={"ratio": ratio}) if one.metric is Metric.CPU_PER_REQUEST else one
        for one in report.comparisons
    )
    (section,) = why_sections(report.model_copy(update={"comparisons": comparisons}))
    (said,) = (block for block in section.blocks if isinstance(block, Prose) and block.listed)
    assert said.lines[0][0].text.startswith("B needs 12.4% more CPU per request [+8.0, +17.0], ")


def test_only_what_is_sure_has_the_colour_of_a_verdict() -> None:
    chart = waterfall(build_report(sampled_run()))
    verdicts = [bar.verdict for _, bar, _ in chart.rows if bar is not None]
    assert (verdicts[0], verdicts[1], verdicts[-1]) == (Verdict.SLOWER, Verdict.INCONCLUSIVE, Verdict.SLOWER)
    cheaper = {"A": {"often": 0.6, "seldom": 0.4}, "B": {"often": 0.6, "seldom": 0.3}}
    report = build_report(sampled_run(cheaper))
    assert [cost.difference_ns.value < 0 for cost in report.why[0].functions] == [True]
    (first, *_) = (bar.verdict for _, bar, _ in waterfall(report).rows if bar is not None)
    assert first is Verdict.FASTER


def test_functions_beyond_the_table_are_one_bar() -> None:
    report = build_report(sampled_run())
    (why,) = report.why
    many = why.model_copy(update={"functions": why.functions * 12})
    chart = waterfall(report.model_copy(update={"why": (many,)}))
    assert [name for name, _, _ in chart.rows][9:11] == ["seldom", "2 further functions"]
    bar = chart.rows[10][1]
    assert bar is not None
    assert bar.end - bar.start == pytest.approx(2 * why.functions[0].difference_ns.value)
    assert (bar.low, bar.high) == (None, None)


def test_a_flame_graph_of_both_servers_has_the_colour_of_what_is_sure() -> None:
    report = build_report(sampled_run())
    (section,) = why_sections(report)
    (flames,) = (block for block in section.blocks if isinstance(block, FlameDifference))
    assert [(box.name, box.row) for box in flames.boxes] == [("all", 0), ("serve", 1), ("often", 2), ("seldom", 2)]
    verdicts = {box.name: box.verdict for box in flames.boxes}
    assert (verdicts["often"], verdicts["seldom"]) == (None, Verdict.SLOWER)
    often, seldom = flames.boxes[2:]
    assert seldom.start == pytest.approx(often.start + often.width)
    assert often.width + seldom.width == pytest.approx(1.0)
    assert seldom.about.endswith("grew")


def test_the_flame_graph_is_on_the_page_and_a_picture() -> None:
    report = build_report(sampled_run())
    page = as_html(report).decode()
    assert '<rect class="fill slower" width="100%" height="18"/><text x="4" y="13">seldom</text>' in page
    (picture,) = (content for name, content in svg_files(report).items() if name.endswith(".why.svg"))
    assert b"seldom" in picture
    assert b"surely grew" in picture


def test_without_samples_there_is_no_flame_graph() -> None:
    (section,) = why_sections(build_report(sampled_run(problem="perf is not installed")))
    assert not [block for block in section.blocks if isinstance(block, FlameDifference)]
