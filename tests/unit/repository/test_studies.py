"""The page of a study matches the reports of its runs."""

import csv
import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from redline.cli.command_line import app

STUDIES = Path(__file__).parents[3] / "docs" / "studies"
PAGES = sorted(STUDIES.glob("*.md"))
FIGURE = re.compile(r"[\u2212+]\d[\d,.]*%(?: \?)?(?: \[[^\]]*\])?|\d[\d.]* (?:k/s|ms|µs) ±[\d.]+%")
LEVEL = re.compile(r"(?<=\| )\d[\d.]* (?:ms|µs|s)(?= \|)")
CELL = re.compile(r"\d[\d.,]*(?: ?(?:k/s|/s|ms|µs|ns|s|MiB|KiB|GiB|%))?(?: ±[\d.]+%?| \([\d.]+\u2013[\d.]+\))?")
NOT_OF_A_RUN = {"hosts": ("8.8 s", "0.0 s", "6.7 s", "0.6 s", "20.1 s")}
"""What `tests/e2e/test_ray_failures.py` prints."""
OF_ONE_RUN = {"websocket"}
"""Studies of a single run with a trial of each server, whose figures have no intervals."""
MOST_WORDS = 1500
HOUR_NS = 3600 * 10**9


def reported(study: str) -> str:
    """The numbers of a study's reports."""
    with gzip.open(STUDIES / study / "reports.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["report"] for row in rows}
    return "\n".join(row["text"] for row in rows)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_figure_of_a_study_stands_in_the_report_of_its_run(page: Path) -> None:
    text = reported(page.stem)
    reports = text + re.sub("% [▲▼≈?](; | )", "% ", text)  # a page may leave out the sign of the verdict
    reports += re.sub(r"% (\[[^\]]*\]) \?", r"% ? \1", text)  # older reports wrote it last
    figure = LEVEL if page.stem in OF_ONE_RUN else FIGURE
    figures = figure.findall(" ".join(page.read_text().split()))
    assert len(figures) >= 8
    assert [figure for figure in figures if figure not in reports] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_cell_of_a_table_that_is_a_figure_stands_in_a_report(page: Path) -> None:
    text = reported(page.stem)
    lines = [line.replace("*", "").strip("|") for line in page.read_text().splitlines() if line.startswith("|")]
    cells = [cell.strip() for line in lines for cell in line.split("|")[1:]]
    figures = [cell for cell in cells if CELL.fullmatch(cell) and cell not in NOT_OF_A_RUN.get(page.stem, ())]
    assert len(figures) >= 8
    stored = [re.escape(re.sub(r"[()]", "", figure)) for figure in figures]
    assert [each for each in stored if not re.search(rf"(?<![\d.,]){each}(?!\d|[.,]\d)", text)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_reports_that_a_page_names_are_kept(page: Path) -> None:
    with gzip.open(STUDIES / page.stem / "reports.csv.gz", "rt", newline="") as file:
        kept = {row["report"] for row in csv.DictReader(file)}
    assert f"{page.stem}/reports.csv.gz" in page.read_text()
    fewest = 1 if page.stem in OF_ONE_RUN else 3
    assert len(kept) >= fewest
    assert len([name for name in kept if f"`{name}`" in page.read_text()]) >= fewest


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_short(page: Path) -> None:
    words = [word for word in page.read_text().split() if any(map(str.isalnum, word))]
    assert len(words) <= MOST_WORDS


def test_the_rates_while_warming_up_are_those_of_the_recording() -> None:
    with (STUDIES / "tapir" / "warm-up.csv").open() as file:
        rates = {(row["server"], int(row["second"])): float(row["answered_per_s"]) for row in csv.DictReader(file)}
    page = " ".join((STUDIES / "tapir.md").read_text().split())
    said = [
        ("http4s.tapir", 9, "http4s.tapir answered 2,300 in its tenth second"),
        ("http4s.tapir", 17, "8,000 in its eighteenth"),
        ("http4s.tapir", 23, "22,000 in its twenty-fourth"),
        ("play.tapir", 10, "2,300 in its eleventh second"),
        ("play.tapir", 25, "3,600 in its twenty-sixth"),
        ("play.tapir", 54, "11,500 in its fifty-fifth"),
    ]
    for server, second, words in said:
        assert words in page
        rate = float(re.findall(r"\d+,\d+", words)[0].replace(",", ""))
        assert abs(rates[server, second] - rate) <= 60, words


@pytest.mark.long
def test_all_that_is_asked_of_tapir_fits_into_a_night() -> None:
    """Four hours for all, and as many for what is not sure: what its first lines and the page of the study say."""
    suite = STUDIES.parents[1] / "suites" / "tapir-night.yaml"
    done = CliRunner().invoke(app, ["check", str(suite), "--json"], catch_exceptions=False)
    plan = json.loads(done.stdout)
    assert plan["expected_length_ns"] == 4 * HOUR_NS
    assert plan["least_length_ns"] < 2 * HOUR_NS
    command = "redline run suites/tapir-night.yaml --more 4h"
    assert command in suite.read_text()
    assert command in (STUDIES / "tapir.md").read_text()
    whole = CliRunner().invoke(app, ["check", str(suite.with_name("tapir.yaml")), "--json"], catch_exceptions=False)

    def asked(document: Any) -> set[str]:
        return {cell["slug"] for cell in document["cells"] if cell["role"] == "subject"}

    assert asked(plan) == asked(json.loads(whole.stdout))


def test_servers_are_compared_by_their_own_clocks_in_duets_too() -> None:
    suite = STUDIES.parents[1] / "suites" / "timestamp.yaml"
    done = CliRunner().invoke(app, ["check", str(suite), "-l", "even", "--json"], catch_exceptions=False)
    plan = json.loads(done.stdout)
    pairs, starts = 5, 5
    assert plan["duets"] == pairs * starts


@pytest.mark.parametrize(
    ("flags", "hours"), [((), 209), (("--quick", "-u", "128", "-m", "SimpleGet,PostBytes"), 7)], ids=["all", "a part"]
)
def test_the_hours_of_a_suite_are_those_that_check_says(flags: tuple[str, ...], hours: int) -> None:
    suite = STUDIES.parents[1] / "suites" / "tapir.yaml"
    done = CliRunner().invoke(app, ["check", str(suite), *flags], catch_exceptions=False)
    found = re.search(r"about (\d+) h (\d+) min", " ".join(done.stdout.split()))
    assert found is not None
    assert round(int(found[1]) + int(found[2]) / 60) == hours
    page = " ".join((STUDIES / "tapir.md").read_text().split())
    assert f"in {hours} h" in page
    assert " ".join(flags) in page
    assert f"{hours} hours" in suite.read_text()
