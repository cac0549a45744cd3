"""The page without a browser: its content, and what it must never contain."""

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from redline.document import format as fmt
from redline.model import Grade, Objective, ObjectiveResult, Report, Verdict
from redline.render import RENDERERS
from tests.fakes import layers, reports, studies
from tests.fakes.pages import data, page

ROOT = Path(__file__).parents[3]
VENDOR = ROOT / "src/redline/render/html/assets/vendor"
ALL: list[Callable[[], Report]] = [
    reports.healthy,
    reports.alone,
    reports.doubtful,
    reports.skipping,
    reports.died,
    reports.nasty,
    studies.small,
    layers.refusing,
]


@pytest.mark.parametrize("make", ALL)
def test_it_is_well_formed_and_the_same_every_time(make: Callable[[], Report]) -> None:
    parsed = page(make())
    assert parsed.open == []
    assert RENDERERS["html"](make()) == RENDERERS["html"](make())
    ids = [attributes["id"] for _, attributes in parsed.tags if "id" in attributes]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("make", ALL)
def test_nothing_is_loaded_and_nothing_but_our_own_text_may_act(make: Callable[[], Report]) -> None:
    parsed = page(make())
    policy = next(a["content"] for tag, a in parsed.tags if a.get("http-equiv") == "Content-Security-Policy")
    data_block, tables_block, *scripts = parsed.raw["script"]
    assert data_block
    assert tables_block
    for text in (*scripts, *parsed.raw["style"]):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, attributes in parsed.tags:
        assert tag != "img"
        assert "style" not in attributes, "an inline style would be refused by the policy"
        assert not [name for name in attributes if name.startswith("on")]
        assert "src" not in attributes
        assert attributes.get("href", "#").startswith(("#", "data:image/svg+xml,"))


def test_hostile_text_stays_text() -> None:
    parsed = page(reports.nasty())
    assert len(parsed.raw["script"]) == 8
    assert all("<" not in block for block in parsed.raw["script"][:2])
    assert "document.title='pwned'" in parsed.text


def test_every_number_stands_with_its_interval_ratio_and_verdict() -> None:
    text = page(reports.healthy()).text
    assert "89.7 k/s ±0.7%" in text
    assert "−6.6% ▼ slower [−7.6, −5.6]" in text  # noqa: RUF001
    assert "−9.0% ▲ faster [−13.6, −4.4]" in text  # noqa: RUF001
    assert "+3.0% ? inconclusive [−3.6, +9.6]" not in text  # noqa: RUF001
    assert "+3.0% [−3.6, +9.6]" in text, "described and not judged"  # noqa: RUF001


def test_the_ceiling_is_no_competitor() -> None:
    report = reports.healthy()
    ceiling, baseline = report.cells[2], report.cells[0]
    win = report.comparisons[0].model_copy(
        update={"cell_id": ceiling.cell_id, "baseline_id": baseline.cell_id, "verdict": Verdict.FASTER}
    )
    with_win = page(report.model_copy(update={"comparisons": (*report.comparisons, win)})).text
    assert "this machine's ceiling" in with_win
    assert with_win.count("▲ faster") == page(report).text.count("▲ faster")


def test_an_invalid_cell_shows_its_finding_in_place_of_its_number() -> None:
    report = reports.doubtful()
    bad = next(cell for cell in report.cells if not cell.valid)
    parsed = page(report)
    assert "No number : Sent 14,210/s of 20,000/s (71%). Lower the rate" in parsed.text
    assert "Not drawn, because there is no valid measurement: rust.axum." in parsed.text
    group = data(parsed)["groups"][-1]
    assert (
        len(group["curves"]) == len([c for c in report.cells if c.scenario == bad.scenario and c.load == bad.load]) - 1
    )


def test_what_was_skipped_is_reported_with_its_reason() -> None:
    text = page(reports.skipping()).text
    assert text.count("mvn is not on the PATH") == 1
    slugs = [skipped.slug for skipped in reports.skipping().skipped]
    assert len(slugs) == 4
    assert ", ".join(slugs) in text.replace(" .", ".")
    assert "This run is not complete: 51 of 60 trials" in text


def test_all_that_is_needed_to_repeat_the_run_is_there() -> None:
    report = reports.healthy()
    text = page(report).text
    for needed in (
        report.run.command,
        report.run.name,
        "seed 42",
        report.environment.commit,
        report.environment.kernel,
        report.environment.cpu_model,
        " ".join(report.run.suite_text.split()),
    ):
        assert needed in text


def test_what_was_built_stands_with_its_runtime_once() -> None:
    report = reports.healthy()
    text = page(report).text
    for cell in report.cells[:3]:
        assert text.count(f"{cell.server} rustc 1.95.0 {cell.build[:12]}") == 1
    assert report.cells[0].build not in text


def test_the_end_of_a_failed_servers_output_is_shown_and_escaped() -> None:
    report = reports.died()
    html = RENDERERS["html"](report).decode()
    assert html.count("<code>&lt;b&gt;panicked&lt;/b&gt; at src/main.rs:7\nexit</code>") == 2
    assert "<b>panicked" not in html


def test_an_objective_missed_in_spite_of_its_number_says_why_once() -> None:
    report = reports.died()
    p99 = Objective(metric="p99", below=True, limit=1e9, text="p99 < 1 s")
    lost = ObjectiveResult(objective=p99, actual=1e6, met=False, reason="1 of 5 trials lost to server-died")
    cell = report.cells[0].model_copy(update={"objectives": (lost, lost)})
    text = page(report.model_copy(update={"cells": (cell,)})).text
    assert "✗ p99 < 1 s ✗ p99 < 1 s 1 of 5 trials lost to server-died" in text
    assert "1.00 ms ✗ missed : 1 of 5 trials lost to server-died" in text


def test_a_doubt_is_marked_once_beside_a_server_at_its_gravest() -> None:
    report = reports.doubtful()
    steal = next(f for f in report.cells[0].findings if f.kind == "cpu-steal")
    noted = steal.model_copy(update={"grade": Grade.NOTE})
    cell = report.cells[0].model_copy(update={"findings": (noted, steal)})
    html = RENDERERS["html"](report.model_copy(update={"cells": (cell,)})).decode()
    assert re.findall(r'href="#(finding-[a-z-]+)"', html) == ["finding-warn-cpu-steal"]


def test_nothing_says_invalid_beside_numbers_that_stand() -> None:
    text = page(reports.died()).text
    assert "✕" not in text
    assert "! server-died" in text


def test_curves_hold_the_percentiles_on_an_axis_of_nines() -> None:
    report = reports.healthy()
    curve = data(page(report))["groups"][0]["curves"][0]["response"]
    points = dict(zip(curve["x"], curve["y"], strict=True))
    expected = {point.q: point.ns for point in report.cells[0].response_percentiles}
    assert min(points) == pytest.approx(math.log10(2), abs=1e-4), "it begins at the median"
    assert (points[min(points)], points[1.0], points[3.0]) == pytest.approx(
        (expected[0.5], expected[0.9], expected[0.999]), rel=5e-4
    )
    assert curve["y"][-1] == pytest.approx(expected[1.0], rel=5e-4)
    assert curve["certain"] == len(
        [q for q in expected if q >= 0.5 and round(report.cells[0].response.count * (1 - q), 6) >= 10]
    )


def test_every_percentile_stands_under_its_own_head() -> None:
    report = reports.healthy()
    few, many = report.cells[0], report.cells[1]
    few = few.model_copy(update={"response_percentiles": few.response_percentiles[:6] + few.response_percentiles[-1:]})
    html = RENDERERS["html"](report.model_copy(update={"cells": (few, many)})).decode()
    table = html.split("<b>Percentiles of the response time")[1].split("</table>")[0]
    head, *rows = (re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table))
    shares = [fmt.percent(point.q) for point in many.response_percentiles]
    assert head == ["server", "time", *shares]
    for row, points in zip(rows[::2], (few.response_percentiles, many.response_percentiles), strict=True):
        expected = {fmt.percent(point.q): fmt.duration(point.ns) for point in points}
        assert row[2:] == [expected.get(share, "") for share in shares]


def test_trials_meet_at_the_same_instants_in_spite_of_jitter() -> None:
    report = reports.healthy()
    shaken = [
        cell.model_copy(
            update={"timeline": tuple(replace(m, at_s=m.at_s + 0.003 * (m.position % 5)) for m in cell.timeline)}
        )
        for cell in report.cells
    ]
    group = data(page(report.model_copy(update={"cells": tuple(shaken)})))["groups"][0]
    assert len(group["t"]) == 25
    middle, low, high = group["courses"][0]["rate"]
    assert all(a <= b <= c for a, b, c in zip(low, middle, high, strict=True))
    assert 0.45 < group["warm"] < 0.56


@pytest.mark.parametrize(
    ("folder", "file", "package", "banner"),
    [
        (VENDOR, "uPlot.iife.min.js", "uplot", rb"\(v([0-9.]+)\)"),
        (ROOT / "tests/e2e/vendor", "axe.min.js", "axe-core", rb"axe v([0-9.]+)"),
    ],
)
def test_a_bundled_library_is_the_one_that_its_readme_and_the_lock_file_name(
    folder: Path, file: str, package: str, banner: bytes
) -> None:
    readme, library = (folder / "README.md").read_text(), (folder / file).read_bytes()
    assert hashlib.sha256(library).hexdigest() in readme
    version = re.search(banner, library)
    assert version is not None
    assert version[1].decode() in readme
    lock = json.loads((ROOT / "scripts/page/package-lock.json").read_text())
    assert lock["packages"][f"node_modules/{package}"]["version"] == version[1].decode()
    assert folder != VENDOR or b"</script" not in library.lower()


def test_times_that_are_the_same_are_reported_once() -> None:
    groups = data(page(reports.healthy()))["groups"]
    assert ["service" in curve for curve in groups[0]["curves"]] == [False] * 3
    assert ["service" in curve for curve in groups[1]["curves"]] == [True] * 3
