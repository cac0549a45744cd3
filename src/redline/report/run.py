"""The report of a run or of a comparison: its outline, and the sections without their own module."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from redline.document import format as fmt
from redline.document.blocks import Figures, Head, Line, Medium, Section, line
from redline.document.outline import Chapter, Outline
from redline.model import Grade, Report
from redline.report.answer import run_answer
from redline.report.by_request import request_sections
from redline.report.claims import claims_section, claims_summary
from redline.report.distributions import cells_with_curves, distributions_payload
from redline.report.doubt import caveats_section
from redline.report.duet_blocks import blocks_section, duet_items
from redline.report.explorer import explorer_payload, explorer_section, has_explorer
from redline.report.findings import findings_section
from redline.report.forest import forest, scale_of
from redline.report.layers import layer_sections
from redline.report.main_effects import main_effect_sections
from redline.report.measured import built_section, measured, repeat_run
from redline.report.memory import memory_sections
from redline.report.overlays import overlay_sections
from redline.report.parts import done_text, hosts_section, lost_section, page_facts, skipped_section
from redline.report.plots import drawn_curves, payload, plots_section
from redline.report.profiles import has_profiles, profile_sections, profiles_payload
from redline.report.ratios import comparison_sections, effect_sections
from redline.report.results import encoded_section, one_way_section, results_section
from redline.report.single import (
    besides_loads,
    deviations_section,
    is_single,
    load_sections,
    of_several,
    of_single,
    tiles,
)
from redline.report.slowest import slowest_section
from redline.report.streams import stream_sections
from redline.report.table import table_section
from redline.report.timelines import trial_items, trials_section
from redline.report.trials import precision_text
from redline.report.watched import watched_sections
from redline.report.why import why_sections

UNFINISHED = "! This run is not complete: "
"""The beginning of the notice about a run that lacks recordings."""


def _answer(report: Report) -> Iterator[Section]:
    for section in run_answer(report):
        blocks = section.blocks if (shown := tiles(report)) is None else (shown, *section.blocks)
        yield replace(section, blocks=blocks, picture=forest(report))


def _first_plots(report: Report) -> Iterator[Section]:
    """The distribution of a single cell and its course; without numbers only what was recorded over time."""
    return plots_section(report) if report.cells[0].shows_numbers else trials_section(report)


def _other_plots(report: Report) -> Iterator[Section]:
    return trials_section(report) if report.cells[0].shows_numbers else plots_section(report)


_CHAPTERS: tuple[Chapter[Report], ...] = (
    Chapter(_answer, leads=True),
    Chapter(claims_summary, on=Medium.TERMINAL, leads=True),
    Chapter(caveats_section, leads=True),
    Chapter(claims_section, on=Medium.WRITTEN, leads=True),
    Chapter(of_single(_first_plots), on=Medium.PAGE, leads=True),
    Chapter(of_single(findings_section), on=Medium.PAGE, leads=True),
    Chapter(of_single(_other_plots), on=Medium.PAGE),
    Chapter(deviations_section, on=Medium.PAGE),
    Chapter(table_section, on=Medium.PAGE),
    Chapter(explorer_section, on=Medium.PAGE),
    Chapter(claims_section, on=Medium.TERMINAL),
    Chapter(layer_sections),
    Chapter(comparison_sections),
    Chapter(main_effect_sections),
    Chapter(effect_sections),
    Chapter(load_sections, on=Medium.TERMINAL),
    Chapter(besides_loads(results_section), on=Medium.TERMINAL),
    Chapter(results_section, on=Medium.MARKDOWN),
    Chapter(one_way_section, on=Medium.TEXT),
    Chapter(encoded_section, on=Medium.TEXT),
    Chapter(besides_loads(request_sections), on=Medium.TERMINAL),
    Chapter(request_sections, on=Medium.WRITTEN),
    Chapter(slowest_section, on=Medium.MARKDOWN),
    Chapter(stream_sections),
    Chapter(why_sections),
    Chapter(profile_sections),
    Chapter(findings_section, on=Medium.TEXT),
    Chapter(of_several(findings_section), on=Medium.PAGE),
    Chapter(of_several(plots_section), on=Medium.PAGE),
    Chapter(of_several(trials_section), on=Medium.PAGE),
    Chapter(blocks_section, on=Medium.PAGE),
    Chapter(overlay_sections, on=Medium.MARKDOWN),
    Chapter(memory_sections),
    Chapter(watched_sections),
    Chapter(lambda report: lost_section(report.lost_starts)),
    Chapter(lambda report: skipped_section(report.skipped)),
    Chapter(lambda report: hosts_section(report.hosts, report.pairs)),
    Chapter(measured, on=Medium.PAGE),
    Chapter(built_section, on=Medium.MARKDOWN),
    Chapter(repeat_run, on=Medium.WRITTEN),
)


def _head(report: Report) -> Head:
    run = report.run
    servers = tuple(line((f"{name}:", "strong"), f" {text}") for name, text in run.servers.items())
    is_load = run.kind == "load" and is_single(report)
    precision = (line((f"{precision_text(run.precision)}.", "dim")),) if run.precision else ()
    notice = tuple(_notices(report))
    return Head(
        _loaded(report) if is_load else run.suite,
        page_facts(report.environment, run.started_unix_ns, done_text(run), run.seed),
        () if is_load else servers,
        (*precision, *notice),
        about=report.cells[0].load_text if is_load else run.about,
        footer="Response time runs from when a request was due; service time from when it was written. "
        "Intervals hold the true value with 95% confidence, given these trials on this machine.",
    )


def _loaded(report: Report) -> str:
    """The address or the command of the only server."""
    cell = report.cells[0]
    return report.run.servers.get(cell.server, cell.server)


def _notices(report: Report) -> Iterator[Line]:
    run = report.run
    if run.aborted_by:
        yield line(("! Aborted by ", Grade.WARN), f"{run.aborted_by}.")
    if lost := sum(starts.lost for starts in report.lost_starts):
        said = f"! {fmt.count(lost, 'start')} of duets {'is' if lost == 1 else 'are'} lost"
        none = any(starts.all for starts in report.lost_starts)
        yield line((said, Grade.WARN), "; some servers are not compared in any." if none else ".")
    if not run.aborted_by and not run.complete:
        yield line((UNFINISHED, Grade.WARN), f"{done_text(run)}. If it is kept, --resume continues from here.")


class _FigureData(NamedTuple):
    """Data that the page of some reports has, and the scripts and styles that draw it."""

    name: str
    is_known: Callable[[Report], bool]
    make: Callable[[Report], object]
    scripts: tuple[str, ...]
    styles: tuple[str, ...] = ()


def _times(report: Report) -> dict[str, object]:
    views = {"trials": trial_items(report), "duets": duet_items(report)}
    return {name: items for name, items in views.items() if items}


_DRAWN = (
    _FigureData("profiles", has_profiles, profiles_payload, ("flame.js",)),
    _FigureData(
        "distributions",
        lambda report: bool(cells_with_curves(report)),
        lambda report: distributions_payload(report, drawn_curves(report)),
        ("distributions.js",),
        ("distributions.css",),
    ),
    _FigureData("explorer", has_explorer, explorer_payload, ("explorer.js",), ("explorer.css",)),
    _FigureData(
        "times",
        lambda report: bool(report.duet_timelines) or any(cell.trial_timelines for cell in report.cells),
        _times,
        ("time.js",),
        ("time.css",),
    ),
)


def _figures(report: Report) -> Figures:
    drawn = [each for each in _DRAWN if each.is_known(report)]
    return Figures(
        ("table.js", "percentiles.js", "page.js", *(script for each in drawn for script in each.scripts)),
        lambda: {**payload(report), **{each.name: each.make(report) for each in drawn}},
        tuple(map(scale_of, forest(report))),
        tuple(style for each in drawn for style in each.styles),
    )


OUTLINE = Outline(_head, _CHAPTERS, _figures)
