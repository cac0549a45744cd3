"""docs/reference/exports.md names every format, column and metric that there is, and no other."""

import re
from pathlib import Path

from redline.analysis.intervals import IntervalRow
from redline.driving.intervals import MOST_INTERVALS
from redline.extras.profiling.texts import MOST_THREADS
from redline.extras.telemetry import meter
from redline.extras.telemetry.openmetrics import exposition
from redline.extras.telemetry.pushing import EVERY_S
from redline.render.formats import FORMATS, Needs
from tests.unit.extras.telemetry.test_meter import loaded

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "exports.md").read_text()


def first_column(section: str, heads: str) -> list[str]:
    """The names in the first column of a table of a section, which begins with these heads."""
    text = f"\n{PAGE}".partition(f"\n{section}\n")[2].partition("\n## ")[0]
    rows = text.partition(f"\n{heads}\n")[2].split("\n")[1:]
    table = rows[: next(place for place, row in enumerate(rows) if not row.startswith("|"))]
    return [name for row in table for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def test_every_format_stands_in_the_table() -> None:
    made_of = {Needs.REPORT: "report", Needs.RECORDINGS: "recordings"}
    for form in FORMATS.values():
        files = f"a file for each {form.holds}" if form.holds else "one"
        row = f"| `{form.name}` | {form.what} | {form.readers} | {made_of[form.needs]} | {files} |"
        assert row.replace("(exports.md#", "(#") in PAGE.splitlines()
    named = first_column("# Exports: formats that other tools read", "| format | what | for | made of | files |")
    assert named == [*FORMATS]


def test_no_other_format_is_named_in_the_docs_or_on_the_page() -> None:
    root = Path(__file__).parents[3]
    files = [*root.glob("docs/**/*.md"), root / "README.md", *root.glob("src/redline/**/*.py")]
    files += root.glob("src/redline/**/*.j2")
    command = re.compile(r"redline report\b[^\n`]*?--format\s+([a-z][\w-]*)")
    named = {name for file in files for name in command.findall(file.read_text(encoding="utf-8"))}
    assert named - {"chat"} <= {*FORMATS}, "chat: that of a package, in the guide to formats of your own"
    assert len(named) > 10


def test_every_column_is_explained() -> None:
    named = first_column("## Intervals", "| column | meaning |")
    assert [name for name in named if name not in {"ok", "unsent"}] == list(IntervalRow.model_fields)


def test_numbers_are_those_of_the_code() -> None:
    assert f"keeps at most {MOST_INTERVALS:,} of a measurement" in PAGE
    assert f"then the {MOST_THREADS} heaviest" in PAGE
    assert EVERY_S == 5
    assert "every five seconds" in PAGE


def test_every_metric_and_attribute_is_explained() -> None:
    metrics = [meter.SERVICE, meter.RESPONSE, meter.REQUESTS, meter.ENGINE_CPU, meter.SERVER_CPU]
    metrics.append(meter.SERVER_MEMORY)
    assert first_column("## Metrics", "| at OpenTelemetry | in OpenMetrics | what |") == [it.name for it in metrics]
    served = re.findall(r"^# TYPE (\S+) (\S+)$", exposition(loaded()), flags=re.MULTILINE)
    for name, kind in served:
        assert f"`{name}{'_total' if kind == 'counter' else ''}`" in PAGE
    attributes = [*meter.attributes(meter.MeteredTrial("a", "b", "c"), "measure"), "error.type"]
    assert first_column("## Metrics", "| attribute | label | what |") == attributes
    assert f"The last {meter.MOST_TRIALS} trials are shown" in PAGE
