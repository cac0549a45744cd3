"""Plots as files of SVG: sound XML, with what the page draws and nothing from elsewhere."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from typer.testing import CliRunner, Result

from redline.analysis import build_report
from redline.cli.command_line import app
from redline.document.blocks import ChangeCell, Column, Strip, Table
from redline.document.format import VerdictSign
from redline.document.scales import Scale, scale_from_zero, time_scale
from redline.errors import UsageError
from redline.extras.exports import recorded_files
from redline.render.svg import svg_files
from redline.render.svg.chart import Chart, ChartLine, draw_chart
from redline.render.svg.elements import CHARACTER, WIDTH
from redline.render.svg.forest_picture import draw_forest
from redline.report.forest import forest
from redline.report.plots import payload
from redline.running.views import search_report
from redline.storage.runs import RunStore
from tests.fakes.behaviour import GOOD
from tests.fakes.histories import comparison
from tests.fakes.layers import layered
from tests.fakes.profiles import report_with_profiles
from tests.fakes.recordings import simulated_run
from tests.fakes.stored import kept
from tests.golden import FOLDER

SVG = "{http://www.w3.org/2000/svg}"
REPORT = build_report(simulated_run(trials=3))


def redline(*args: str | Path) -> Result:
    return CliRunner().invoke(app, ["report", *map(str, args)])


def texts(content: bytes) -> list[str]:
    return [element.text or "" for element in ET.fromstring(content).iter(f"{SVG}text")]


def test_a_run_has_a_file_for_each_plot_of_the_page() -> None:
    files = svg_files(REPORT)
    kinds = ("response-percentiles", "service-percentiles", "throughput", "p50", "p99")
    loads, servers = ("saturate", "steady"), ("rust.hyper", "rust.axum", "oracle.null")
    maps = [f"SimpleGet.{load}.{server}.heat-map.svg" for load in loads for server in servers]
    shares = ("histogram", "rust.axum-minus-rust.hyper")
    plots = [f"SimpleGet.{load}.{kind}.svg" for load in loads for kind in kinds]
    plots.remove("SimpleGet.steady.p99.svg")  # its intervals have too few requests
    compared = [f"SimpleGet.{load}.{kind}.svg" for load in loads for kind in shares]
    assert list(files) == ["changes.svg", *plots, *maps, *compared]
    for name in (*plots, *compared):
        content = files[name]
        assert "minus" in name or {"rust.hyper", "rust.axum", "oracle.null (ceiling)"} <= set(texts(content))
        assert b"http" not in content.replace(b"http://www.w3.org/2000/svg", b"")


def test_a_line_has_the_points_of_the_page() -> None:
    (group, *_) = payload(REPORT)["groups"]
    content = svg_files(REPORT)["SimpleGet.saturate.response-percentiles.svg"]
    paths = [path.get("d", "") for path in ET.fromstring(content).iter(f"{SVG}path") if path.get("fill") == "none"]
    drawn = sum(len(re.findall("[ML]", path)) for path in paths)
    tails = sum(min(1, len(curve["response"]["x"]) - curve["response"]["certain"]) for curve in group["curves"])
    assert drawn == sum(len(curve["response"]["x"]) for curve in group["curves"]) + tails
    assert len(list(ET.fromstring(content).iter(f"{SVG}polygon"))) == len(group["curves"]), "a band for each"
    throughput = svg_files(REPORT)["SimpleGet.saturate.throughput.svg"]
    assert len(list(ET.fromstring(throughput).iter(f"{SVG}polygon"))) == len(group["courses"])


def test_a_heat_map_has_a_rectangle_for_each_step_and_row_of_the_middle_trial() -> None:
    cell = next(cell for cell in REPORT.cells if cell.slug == "rust.hyper.SimpleGet.steady")
    middle = sorted(cell.trials, key=lambda trial: trial.rate_per_s or 0)[1]
    timeline = next(one for one in cell.trial_timelines if one.position == middle.position)
    content = svg_files(REPORT)["SimpleGet.steady.rust.hyper.heat-map.svg"]
    shades = [path for path in ET.fromstring(content).iter(f"{SVG}path") if path.get("fill-opacity")]
    drawn = sum(path.get("d", "").count("M") for path in shades)
    assert drawn == sum(count > 0 for column in timeline.heat for count in column.counts) > 0
    darkest = max(shades, key=lambda path: float(path.get("fill-opacity", 0)))
    most = max(count for column in timeline.heat for count in column.counts)
    assert darkest.get("fill-opacity") == "1.0"
    assert darkest.get("d", "").count("M") >= sum(column.counts.count(most) for column in timeline.heat)
    assert "warm-up" in texts(content)


def test_the_picture_beside_the_answer_has_every_ratio() -> None:
    rows = [row for table in forest(REPORT) for row in table.rows]
    shown = texts(svg_files(REPORT)["changes.svg"])
    assert all(any(text.startswith(row[3].text) for text in shown) for row in rows if isinstance(row[3], ChangeCell))
    named = [text for text in shown if text.startswith("rust.axum")]
    assert len(named) == len(rows) > 0


def test_what_stands_beside_a_ratio_is_within_the_picture() -> None:
    scale = Scale(0.5, 2.0, ((1.0, "0"),), log=True, origin=1.0)
    unsure = ChangeCell("+1,230.0%", "[not known]", VerdictSign.INCONCLUSIVE)
    row = ("cpu", "a", Strip(scale, "point", 1.0), unsure)
    content = draw_forest([Table((Column("", scale=scale),), (row,))], "x")
    (text,) = (text for text in ET.fromstring(content).iter(f"{SVG}text") if "not known" in (text.text or ""))
    assert float(text.get("x", "")) + CHARACTER * len(text.text or "") <= WIDTH


def test_an_interval_that_goes_on_has_an_arrow() -> None:
    scale = Scale(0.5, 2.0, ((1.0, "0"),), log=True, origin=1.0, band=(0.98, 1.02))
    within, beyond = (Strip(scale, "point", 1.0, 0.9, high, None) for high in (1.1, 9.0))
    pictures = [
        draw_forest([Table((Column("", scale=scale),), (("cpu", "a", strip, ChangeCell("+1%")),))], "x").decode()
        for strip in (within, beyond)
    ]
    assert [picture.count("v8") for picture in pictures] == [2, 1]


def test_every_point_lies_within_the_plot() -> None:
    for content in svg_files(REPORT).values():
        for path in ET.fromstring(content).iter(f"{SVG}path"):
            for x, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", "")):
                assert 0 <= float(x) <= 900
                assert 0 <= float(y) <= 520


def test_a_search_has_its_curve() -> None:
    files = svg_files(search_report(RunStore(FOLDER / "search-1")))
    assert any(name.endswith(".curve.svg") for name in files)
    for content in files.values():
        assert ET.fromstring(content).tag == f"{SVG}svg"


def test_an_overload_test_that_saw_nothing_is_not_drawn() -> None:
    report = search_report(RunStore(FOLDER / "search-1"))
    (cell,) = report.cells
    assert cell.beyond is not None
    seen = svg_files(report)
    assert any("overload" in name for name in seen)
    unseen = cell.model_copy(update={"beyond": cell.beyond.model_copy(update={"course": ()})})
    files = svg_files(report.model_copy(update={"cells": (unseen,)}))
    assert list(files) == [name for name in seen if "overload" not in name]


def test_the_command_writes_them(tmp_path: Path) -> None:
    kept(tmp_path / "run", simulated_run({"rust.hyper": GOOD}, trials=2))
    done = redline(tmp_path / "run", "--format", "svg", "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    files = sorted((tmp_path / "out").iterdir())
    assert done.stderr == f"{len(files)} files in {tmp_path / 'out'}\n"
    assert {file.suffix for file in files} == {".svg"}
    refused = redline(tmp_path / "run", "--format", "svg").exception
    assert isinstance(refused, UsageError)
    assert "plots, and a svg file holds a single plot" in refused.message
    kept(tmp_path / "empty", comparison(0).model_copy(update={"duets": ()}))
    assert "has no valid result to draw" in str(redline(tmp_path / "empty", "--format", "svg").exception)


def test_a_histogram_is_as_high_as_its_shares(tmp_path: Path) -> None:
    content = svg_files(REPORT)["SimpleGet.saturate.histogram.svg"]
    bands = list(ET.fromstring(content).iter(f"{SVG}polygon"))
    assert len(bands) == 3
    for band in bands:
        points = [tuple(map(float, point.split(","))) for point in band.get("points", "").split()]
        upper, base = points[: len(points) // 2], points[-1][1]
        assert all(y <= base for _, y in upper)
        assert len({x for x, _ in upper}) == len(upper) // 2 + 1, "each bin ends where the next begins"


def test_the_difference_is_below_zero_where_fewer_are_answered() -> None:
    (part, *_) = REPORT.shares
    content = svg_files(REPORT)["SimpleGet.saturate.rust.axum-minus-rust.hyper.svg"]
    zero, line = (
        [float(y) for _, y in re.findall(r"[ML]([\d.]+) ([\d.]+)", path.get("d", ""))]
        for path in ET.fromstring(content).iter(f"{SVG}path")
        if path.get("fill") == "none"
    )
    assert (max(line) > zero[0]) == (part.farthest.difference < 0)
    assert len(line) == len(part.points)


def test_profiles_have_flame_graphs_alone_and_against_their_baselines() -> None:
    report = report_with_profiles()
    files = {name: ET.fromstring(content) for name, content in svg_files(report).items() if "flames" in name}
    assert len(files) == sum(1 + bool(profile.change or profile.by_rate) for profile in report.profiles)
    alone = files["http4s.tapir.SimpleGet.saturate.server-cpu-flames.svg"]
    titles = [title.text or "" for group in alone.iter(f"{SVG}g") for title in group.iter(f"{SVG}title")]
    assert titles[0] == "all: 100%"
    assert any("ServerInterpreter.apply: 19" in title for title in titles)
    for root in files.values():
        boxes = [rect for group in root.iter(f"{SVG}g") for rect in group.iter(f"{SVG}rect")]
        assert all(0 <= float(box.get("x", -1)) <= 900 - float(box.get("width", 900)) for box in boxes)
    name = "http4s.tapir.SimpleGet.saturate.server-cpu-flames-against-http4s.vanilla.SimpleGet.saturate.svg"
    said = [title.text or "" for title in files[name].iter(f"{SVG}title")]
    assert re.match(r"all: 100%, [\d.]+ µs against [\d.]+ µs in http4s.vanilla", said[1])
    assert any("against 0" in title for title in said), "a frame that the baseline does not have"


def test_waterfalls_and_bars_of_libraries_are_drawn_with_their_names() -> None:
    files = svg_files(layered())
    falls = {name: content for name, content in files.items() if name.startswith("layers.")}
    assert len(falls) == sum(bool(fall.base_throughput) + bool(fall.base_cpu) for fall in layered().layers) > 0
    for content in falls.values():
        assert {step.server for step in layered().layers[0].steps} & set(texts(content))
        assert len([box for box in ET.fromstring(content).iter(f"{SVG}rect") if box.get("height") == "12"]) > 1
    report = report_with_profiles()
    bars = [content for name, content in svg_files(report).items() if name.startswith("libraries.")]
    assert len(bars) == len({(profile.scenario, profile.load) for profile in report.profiles})
    for content in bars:
        titles = [title.text or "" for group in ET.fromstring(content).iter(f"{SVG}g") for title in group]
        assert any(title.startswith("tapir's interpreter ") for title in titles)
        assert {"http4s.vanilla", "http4s.tapir", "all others"} <= set(texts(content))


def test_png_is_made_of_every_plot_or_refused_with_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path / "run", simulated_run({"rust.hyper": GOOD}, trials=2))
    done = redline(tmp_path / "run", "--format", "png", "-o", tmp_path / "out")
    if shutil.which("fc-list") and subprocess.check_output(["fc-list"]):
        assert done.exit_code == 0, done.output
        files = sorted((tmp_path / "out").iterdir())
        assert {file.read_bytes()[:8] for file in files} == {b"\x89PNG\r\n\x1a\n"}
    else:
        assert "no font" in str(done.exception)
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    refused = redline(tmp_path / "run", "--format", "png", "-o", tmp_path / "none").exception
    assert isinstance(refused, UsageError)
    assert "needs the package resvg-py" in refused.message
    blank = SimpleNamespace(svg_to_bytes=lambda **_: b"")
    monkeypatch.setitem(sys.modules, "resvg_py", blank)
    refused = redline(tmp_path / "run", "--format", "png", "-o", tmp_path / "none").exception
    assert isinstance(refused, UsageError)
    assert "no font" in refused.message
    assert not (tmp_path / "none").exists()


def test_the_png_of_a_single_plot_goes_to_stdout_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(tmp_path / "run", simulated_run({"rust.hyper": GOOD}, trials=2))
    picture = b"\x89PNG\r\n\x1a\n\xff"
    monkeypatch.setattr(recorded_files, "svg_files", lambda _: {"a.svg": b"<svg/>"})
    monkeypatch.setattr(recorded_files, "png_maker", lambda: lambda _: picture)
    assert redline(tmp_path / "run", "--format", "png").stdout_bytes == picture


def test_a_long_name_of_a_plot_fits_a_file_system() -> None:
    cells = tuple(cell.model_copy(update={"scenario": "s" * 400}) for cell in REPORT.cells)
    files = svg_files(REPORT.model_copy(update={"cells": cells}))
    assert len(files) == len(svg_files(REPORT))
    assert max(map(len, files)) < 255


def test_texts_of_servers_are_no_markup() -> None:
    scale = Scale(0.0, 1.0)
    chart = Chart("<b>", "a & b\u202e", scale, scale, "x", "y", (ChartLine("</svg>\x00", "red", (((0.0, 1.0),),)),))
    assert {"<b>", "a & b\\u202e", "</svg>\\u0000"} <= set(texts(draw_chart(chart)))


@pytest.mark.parametrize(("low", "high"), [(1e6, 2e6), (1e3, 1e9), (5e5, 5.2e5), (7.0, 7.0)])
def test_a_scale_of_times_holds_all_and_marks_some(low: float, high: float) -> None:
    scale = time_scale([low, high])
    assert scale is not None
    assert scale.holds(low)
    assert scale.holds(high)
    assert all(scale.holds(at) for at, _ in scale.ticks)
    assert len({label for _, label in scale.ticks}) == len(scale.ticks) > 0


def test_a_scale_from_zero_begins_there() -> None:
    scale = scale_from_zero(950.0, lambda at: f"{at:.2f} /s")
    assert scale.ticks[0] == (0.0, "0 /s")
    assert scale.high > 950
