"""The report of a run or of a comparison: its outline, and the sections that stand in no room of their own."""

from collections.abc import Iterator

from redline.model import Grade, Report
from redline.report.document import Medium, Page, Section, line
from redline.report.outline import Chapter, Head, outlined
from redline.report.sections.answer import run_answer
from redline.report.sections.doubt import caveats_section
from redline.report.sections.findings import findings_section
from redline.report.sections.layers import layer_sections
from redline.report.sections.main_effects import main_effect_sections
from redline.report.sections.measured import built_section, measured, repeat_run
from redline.report.sections.memory import memory_sections
from redline.report.sections.overlays import overlay_sections
from redline.report.sections.parts import done_text, hosts_section, page_facts, skipped_section
from redline.report.sections.plots import payload, plots_section
from redline.report.sections.profiles import profile_sections, profiles_payload
from redline.report.sections.ratios import comparison_sections, effect_sections, ratio_scales
from redline.report.sections.results import results_section
from redline.report.sections.trials import precision_text

_PAGE_AND_MARKDOWN = Medium.PAGE | Medium.MARKDOWN

OUTLINE: tuple[Chapter[Report], ...] = (
    Chapter(run_answer, leads=True),
    Chapter(caveats_section, leads=True),
    Chapter(layer_sections),
    Chapter(comparison_sections),
    Chapter(main_effect_sections),
    Chapter(effect_sections),
    Chapter(results_section),
    Chapter(profile_sections),
    Chapter(findings_section),
    Chapter(plots_section, on=Medium.PAGE),
    Chapter(overlay_sections, on=Medium.MARKDOWN),
    Chapter(memory_sections),
    Chapter(lambda report: skipped_section(report.skipped)),
    Chapter(lambda report: hosts_section(report.hosts, report.pairs)),
    Chapter(measured, on=Medium.PAGE),
    Chapter(built_section, on=_PAGE_AND_MARKDOWN),
    Chapter(repeat_run, on=_PAGE_AND_MARKDOWN),
)


def run_summary(report: Report) -> Iterator[Section]:
    """The report for a terminal."""
    return _text(report, Medium.TERMINAL)


def run_comment(report: Report) -> Iterator[Section]:
    """The report in Markdown, for a pull request."""
    return _text(report, Medium.MARKDOWN)


def _text(report: Report, medium: Medium) -> Iterator[Section]:
    yield _head(report).section
    yield from outlined(OUTLINE, report, medium)


def run_page(report: Report) -> Page:
    """The report as a page."""
    head, flames = _head(report), profiles_payload(report)
    return Page(
        title=head.title,
        brand="Redline",
        about=report.run.about,
        facts=head.facts,
        notices=head.notices,
        sections=tuple(outlined(OUTLINE, report, Medium.PAGE)),
        footer="Response time runs from when a request was due; service time from when it was written. "
        "Intervals hold the true value with 95% confidence, given these trials on this machine.",
        data=payload(report) if flames is None else {**payload(report), "profiles": flames},
        scripts=("page.js",) if flames is None else ("page.js", "flame.js"),
        scales=tuple(ratio_scales(report).values()),
    )


def _head(report: Report) -> Head:
    run = report.run
    servers = (line((f"{name}:", "strong"), f" {text}") for name, text in run.servers.items())
    precision = (line((f"{precision_text(run.precision)}.", "dim")),) if run.precision else ()
    unfinished = "" if run.complete else f"{done_text(run)} were measured. redline run --resume continues from here."
    notice = (line(("! This run is not complete: ", Grade.WARN), unfinished),) if unfinished else ()
    return Head(
        title=run.suite,
        facts=page_facts(report.environment, run.started_unix_ns, done_text(run), run.seed),
        notices=(*servers, *precision, *notice),
    )
