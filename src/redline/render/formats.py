"""The table of formats in which results are written: by `redline report`, `--json`, a session's views, and from Python.

It imports nothing heavy: `--help` and shell completion list the names, and what writes a format is loaded with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import import_module
from typing import Any


class Needs(StrEnum):
    """What a format is made of."""

    REPORT = "report"
    RECORDINGS = "recordings"


@dataclass(frozen=True)
class ResultFormat:
    """A format that Redline writes.

    `maker` names the function that makes it, in a module or in what is no core. Of a report it takes the report, of
    recordings a `RecordedIn` (`running/formats.py`). It returns the document as bytes, or piece by piece; or, where
    `holds` says what a single file holds, all files by their names. Without a folder only the files with the ending
    `alone` are written.
    """

    name: str
    maker: str
    what: str
    readers: str
    needs: Needs = Needs.REPORT
    ending: str = ""
    """The ending of a file that people save in this format, if it is this format's alone."""
    view: str = ""
    """The file of each session's directory that is in this format."""
    holds: str = ""
    alone: str = ""
    log: str = ""
    """The format that has the same of all in one file."""
    has_slugs: bool = False
    """Whether its names of cells can be the full slugs."""
    is_binary: bool = False

    def load(self) -> Any:
        """Import what makes it. Raises UsageError where that is no core, and absent."""
        module, _, name = self.maker.partition(":")
        return getattr(_exports(self.name) if module == _EXPORTS else import_module(module), name)


_RENDER = "redline.render"
_EXPORTS = "exports"
"""What writes the formats of other tools, which is no core."""


def _exports(form: str) -> Any:
    from redline.entry_points import extra  # noqa: PLC0415 - reading what is installed takes long

    return extra(_EXPORTS, f"the format {form}")


_OF_REPORTS = (
    ResultFormat(
        "html",
        f"{_RENDER}.renderers:as_html",
        "the report",
        "people",
        ending=".html",
        view="report.html",
    ),
    ResultFormat(
        "csv",
        f"{_RENDER}.renderers:as_csv",
        "estimates, verdicts, findings",
        "[spreadsheets](results.md)",
        ending=".csv",
        view="results.csv",
        has_slugs=True,
    ),
    ResultFormat(
        "parquet",
        f"{_EXPORTS}:parquet",
        "the rows of `csv`, with types",
        "[data frames](exports.md#data-frames)",
        ending=".parquet",
        has_slugs=True,
        is_binary=True,
    ),
    ResultFormat(
        "json",
        f"{_RENDER}.renderers:as_json",
        "the report",
        "[programs](results.md)",
        ending=".json",
        view="results.json",
    ),
    ResultFormat("md", f"{_RENDER}.renderers:as_markdown", "the report", "a comment on a pull request", ending=".md"),
    ResultFormat(
        "junit",
        f"{_RENDER}.renderers:as_junit",
        "a case for each comparison, objective and missing result",
        "[CI servers](results.md#junit)",
        ending=".xml",
    ),
    ResultFormat("bmf", f"{_EXPORTS}:bmf", "the estimates", "[Bencher](results.md#numbers-over-time)"),
    ResultFormat(
        "benchmark",
        f"{_EXPORTS}:smaller_is_better",
        "the estimates",
        "[github-action-benchmark](results.md#numbers-over-time)",
    ),
    ResultFormat(
        "annotations",
        f"{_RENDER}.renderers:as_annotations",
        "the cases of `junit` as notices and warnings",
        "GitHub Actions",
    ),
)
_OF_RECORDINGS = (
    ResultFormat(
        "hgrm",
        f"{_EXPORTS}:hgrm",
        "every distribution",
        "[the tools of HdrHistogram](results.md#hdrhistogram)",
        Needs.RECORDINGS,
        holds="distribution",
        alone=".response.hgrm",
        log="hlog",
        has_slugs=True,
    ),
    ResultFormat(
        "hlog",
        f"{_EXPORTS}:hlog",
        "every distribution",
        "[the tools of HdrHistogram](results.md#hdrhistogram)",
        Needs.RECORDINGS,
        ending=".hlog",
        has_slugs=True,
    ),
    ResultFormat(
        "intervals-csv",
        f"{_EXPORTS}:intervals_csv",
        "a row for each interval of every trial",
        "[data frames, plots of your own](exports.md#intervals)",
        Needs.RECORDINGS,
    ),
    ResultFormat(
        "intervals-ndjson",
        f"{_EXPORTS}:intervals_ndjson",
        "a row for each interval of every trial",
        "[databases](exports.md#intervals)",
        Needs.RECORDINGS,
        ending=".ndjson",
    ),
    ResultFormat(
        "collapsed",
        f"{_EXPORTS}:collapsed_stacks",
        "every profile",
        "[flamegraph.pl, inferno](exports.md#profiles)",
        Needs.RECORDINGS,
        holds="profile",
    ),
    ResultFormat(
        "speedscope",
        f"{_EXPORTS}:speedscope_files",
        "every profile",
        "[speedscope](exports.md#profiles)",
        Needs.RECORDINGS,
        holds="profile",
    ),
)
_PICTURES = (
    ResultFormat(
        "svg", f"{_EXPORTS}:svg_files", "the plots of the page", "[papers, wikis](exports.md#plots)", holds="plot"
    ),
    ResultFormat(
        "png",
        f"{_EXPORTS}:png_files",
        "the plots of the page",
        "[slides](exports.md#plots)",
        holds="plot",
        is_binary=True,
    ),
)
FORMATS: Mapping[str, ResultFormat] = {form.name: form for form in (*_OF_REPORTS, *_OF_RECORDINGS, *_PICTURES)}
FILE_ENDINGS: Mapping[str, ResultFormat] = {form.ending: form for form in FORMATS.values() if form.ending}
"""The format of a file by its ending."""
