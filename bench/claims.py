"""Tables of what studies published, and of what was measured here: `docs/studies/*/claims.md`.

`python -m bench.claims` writes them, and `runs.txt` with the runs behind them, from `claims.yaml` and the stored
reports beside it. No number of a table is written by hand. A claim *agrees* only if the interval lies within what was
published, *differs* only if outside. Neither where starts were not warm (`doubt`), nor by a single trial.
`python -m bench.claims STUDY NAME=DIR...` first stores the reports of runs, under these names.
"""

import csv
import gzip
import io
import math
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from redline.schema.claims import TOLERANCE, expectation, parse_ratio
from redline.version import VERSION

ROOT = Path(__file__).parents[1]
STUDIES = ROOT / "docs" / "studies"
UNITS = {"k/s": 1e3, "/s": 1.0, "s": 1.0, "ms": 1e-3, "µs": 1e-6, "GiB": 2**30, "MiB": 2**20, "KiB": 2**10}
_BOUND = r"([\u2212+]?[\d.,]+)"
_SIGN = "([▲▼△▽≈?])"
_CHANGE = re.compile(rf"{_BOUND}%(?: {_SIGN};?|;)? ?\[{_BOUND}, {_BOUND}\](?: {_SIGN})?")
_LEVEL = re.compile(r"([\d.,]+) ?(k/s|/s|ms|µs|s|GiB|MiB|KiB)(?:/s)?(?: ±([\d.,]+)%| ([\d.,]+)\u2013([\d.,]+))?$")
_SHARE = re.compile(r"(?:[\d.]+% ±[\d.]+;? )?([\d.]+%(?: ±[\d.]+)?)(?: with what it calls)?$")
_REPEAT = re.compile(r"redline ([\d.]+) · ([0-9a-f]{7})[0-9a-f]*(\+dirty)? · kernel \S+ · (redline .+)$")
_SUBJECT = re.compile(r"\*\*([^*]+)\*\*(?: (?!\|)(.*))?$")
COLUMNS = ("report", "section", "row", "column", "text")
KINDS = ("measured", "nearest", "not measured", "cannot", "done")


@dataclass(frozen=True)
class Measured:
    """A figure of a stored report: its text, and its interval; changes in percent are ratios here."""

    text: str
    low: float | None
    high: float | None
    undecided: bool = False
    """Whether its report calls the change inconclusive: among others, it may be chance."""


@cache
def rows(study: str) -> tuple[dict[str, str], ...]:
    """The stored reports of a study, one dictionary for each cell of a table."""
    with gzip.open(STUDIES / study / "reports.csv.gz", "rt", newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))


def reported(name: str, markdown: str) -> Iterator[dict[str, str]]:
    """The rows of `reports.csv.gz` that hold a report of a run: its paragraphs, and the cells of its tables."""
    section = subject = ""
    header: list[str] = []
    for line in markdown.splitlines():
        if line.startswith("#"):
            section, subject, header = _plain(line.lstrip("#")), "", []
        elif line.startswith("|"):
            cells = [_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
            if not header:
                header = cells
            elif any(cell.strip("-:") for cell in cells):
                where = f"{section} / {subject}" if subject else section
                for column, text in zip(header[1:], cells[1:], strict=True):
                    yield dict(zip(COLUMNS, (name, where, cells[0], column, text), strict=True))
        else:
            header = []
            if bold := _SUBJECT.match(line):
                subject = _plain(bold[1])
            if text := _plain(line):
                yield dict(zip(COLUMNS, (name, section, "", "", text), strict=True))


def _plain(text: str) -> str:
    """Markdown's text without its marks."""
    text = re.sub(r"<[^>]+>", " ", text.replace("**", "").replace("&NoBreak;", ""))
    return " ".join(re.sub(r"\\(.)", r"\1", text).split())


def store(study: str, reports: Mapping[str, str]) -> None:
    """Put reports, as Markdown by their names, among those of a study, in place of earlier ones of these names."""
    file = STUDIES / study / "reports.csv.gz"
    file.parent.mkdir(exist_ok=True)
    kept = [row for row in rows(study) if row["report"] not in reports] if file.exists() else []
    for name, markdown in reports.items():
        kept += reported(name, markdown)
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    file.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    rows.cache_clear()


def measured(reference: Any, study: str) -> Measured:
    """The figure that `report | section | row | column` names, or the ratio of two.

    `report | pattern` names what the pattern's group finds in the paragraphs of a report, without an interval.
    """
    if isinstance(reference, Mapping):
        return _ratio(measured(reference["of"], study), measured(reference["to"], study))
    name, *where = (part.strip() for part in reference.split(" | "))
    other, _, report = name.rpartition("/")
    of_report = [each for each in rows(other or study) if each["report"] == report]
    if len(where) == 1:
        matches = [re.search(where[0], each["text"]) for each in of_report if not each["column"]]
        found = [match[1] for match in matches if match]
    else:
        section, row, column = where
        found = [
            each["text"]
            for each in of_report
            if (each["section"], each["column"]) == (section, column)
            and (each["row"] == row or each["row"].startswith(row + " "))
        ]
    if len(found) != 1:
        raise ValueError(f"{study}: {reference!r} names {len(found)} stored figures, not one")
    return Measured(found[0], None, None) if len(where) == 1 else parsed(found[0])


def parsed(text: str) -> Measured:
    """A figure as reports write it: `+5.6% [+1.2, +9.7]`, `55.0 k/s ±6.2%`, a value and its ends, or a share.

    A share of a profile counts with what is called. Its error is that of sampling one start: it says nothing of others.
    """
    if change := _CHANGE.match(text):
        low, high = (1 + _number(change[bound]) / 100 for bound in (3, 4))
        undecided = "?" in (change[2], change[5])  # older reports wrote the sign last
        return Measured(f"{change[1]}%{' ?' * undecided} [{change[3]}, {change[4]}]", low, high, undecided)
    if share := _SHARE.match(text):
        return Measured(share[1], None, None)
    first = text.split(";", maxsplit=1)[0].strip()
    if (level := _LEVEL.match(first)) is None:
        raise ValueError(f"not a figure: {text!r}")
    value, unit = _number(level[1]), UNITS[level[2]]
    if level[3]:
        factor = 1 + _number(level[3]) / 100
        return Measured(first, value * unit / factor, value * unit * factor)
    if level[4]:
        low, high = (_number(bound) * unit for bound in level.groups()[3:])
        return Measured(f"{level[1]} {level[2]} ({level[4]}\u2013{level[5]})", low, high)
    return Measured(first, None, None)


def _number(text: str) -> float:
    return float(text.replace("\u2212", "-").replace(",", ""))


def _ratio(of: Measured, to: Measured) -> Measured:
    """The ratio of two levels, as wide as both intervals allow; the middle is that of the logarithms."""
    if of.low is None or of.high is None or to.low is None or to.high is None:
        raise ValueError(f"a ratio needs two intervals: {of.text} / {to.text}")
    low, high = of.low / to.high, of.high / to.low
    middle, *ends = (f"{each:.2g}" if each < 100 else f"{each:.0f}" for each in (math.sqrt(low * high), low, high))
    return Measured(f"\u00d7 {middle} ({ends[0]}\u2013{ends[1]})", low, high)


def verdict(figure: Measured, expected: str | float, because: str = "", doubt: str = "") -> str:
    """What the interval says about the claim: `agrees`, `differs`, or `not known` where it holds both, or in doubt."""
    if doubt:
        return f"not known: {doubt}"
    low, most = expectation(str(expected), parse_ratio)
    high = math.inf if most is None else most
    if figure.low is None or figure.high is None:
        return "not known: one trial has no interval"
    if figure.undecided and low <= 1 <= high:
        return "not known"
    if low <= figure.low and figure.high <= high:
        return "**agrees**"
    if figure.high < low or figure.low > high:
        return f"**differs**, because {because}" if because else "**differs**"
    return "not known"


def claims(study: str) -> list[dict[str, Any]]:
    """The claims of a study as `claims.yaml` has them."""
    return list(YAML(typ="safe").load(STUDIES / study / "claims.yaml")["claims"])


def _row(claim: dict[str, Any], study: str) -> tuple[str, str]:
    """What was measured, and the verdict."""
    (kind,) = (kind for kind in KINDS if kind in claim)
    value = claim[kind]
    figures = {name: measured(each, study).text for name, each in claim.get("figures", {}).items()}
    said = {key: claim.get(key, "").format(**figures) for key in ("because", "doubt", "but", "note", "what")}
    match kind:
        case "measured":
            figure = measured(value, study)
            note = f" ({said['note']})" if said["note"] else ""
            answer = verdict(figure, claim.get("expected", ""), said["because"], said["doubt"])
            return f" {figure.text} {_runs(value)} ", answer + note
        case "nearest":
            return f" {measured(value, study).text} {_runs(value)} ", f"nearest: {said['but']}"
        case "not measured":
            return "", f"not measured{f': {value}' if value else ''}"
        case "cannot":
            return "", f"cannot be measured here, because {value}"
    return f" `{value}` ", f"done: {said['what']}"


def _names(reference: Any) -> Iterator[str]:
    for each in reference.values() if isinstance(reference, Mapping) else [reference]:
        yield str(each).split(" | ")[0].strip()


def _runs(reference: Any) -> str:
    return ", ".join(f"`{name}`" for name in dict.fromkeys(_names(reference)))


def _used(of_study: list[dict[str, Any]]) -> list[str]:
    """The runs behind a table, in the order of its rows."""
    references = [each[kind] for each in of_study for kind in ("measured", "nearest", "done") if kind in each]
    references += [figure for each in of_study for figure in each.get("figures", {}).values()]
    return list(dict.fromkeys(name for reference in references for name in _names(reference)))


def _repeat(name: str, study: str) -> tuple[str, str, str]:
    """The version and the commit that made a run, and its command."""
    other, _, report = name.rpartition("/")
    for each in rows(other or study):
        if each["report"] == report and (found := _REPEAT.search(each["text"])):
            return found[1], found[2] + (found[3] or ""), found[4]
    raise ValueError(f"{study}: the stored report {name!r} does not say how to repeat it")


def page(study: str) -> str:
    """The table of a study's claims."""
    of_study = claims(study)
    lines = [
        f"# Published claims: {study}",
        "",
        f"*Agrees*: the interval lies within the published, \u00b1{TOLERANCE:.0%}; *differs*: outside, for reasons",
        "that were not measured unless said. *Nearest*: not what was claimed. \u00d7: a ratio of levels, as wide as",
        "their intervals allow. ?: inconclusive in its run, so it may be no change.",
        f"[The study](../{study}.md), [its runs](runs.txt).",
        "",
        "| | published | measured | verdict |",
        "|---|---|---|---|",
    ]
    lines += [f"| {each['id']} | {each['claim']} |{'| '.join(_row(each, study))} |" for each in of_study]
    return "\n".join(lines) + "\n"


def runs(study: str) -> str:
    """A line for each run behind the table: its name, what made it, and its command."""
    lines = []
    for name in _used(claims(study)):
        version, commit, command = _repeat(name, study)
        named = commit if version == VERSION else f"Redline {version}, {commit}"
        suites = [word for word in command.split() if word.endswith(".yaml")]
        lost = "" if all((ROOT / suite).is_file() for suite in suites) else " (this suite was not kept)"
        lines.append(f"{name} ({named}): {re.sub(r' -o [^ ]+', '', command)}{lost}\n")
    return "".join(lines)


def studies() -> list[str]:
    """The studies that follow a published one."""
    return sorted(path.parent.name for path in STUDIES.glob("*/claims.yaml"))


def _markdown(folder: str) -> str:
    command = [sys.executable, "-m", "redline", "report", folder, "--format", "md"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


if __name__ == "__main__":
    if len(sys.argv) > 1:
        store(sys.argv[1], {name: _markdown(folder) for name, folder in (each.split("=", 1) for each in sys.argv[2:])})
    for each in studies():
        (STUDIES / each / "claims.md").write_text(page(each), encoding="utf-8")
        (STUDIES / each / "runs.txt").write_text(runs(each), encoding="utf-8")
