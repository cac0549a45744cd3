"""Caveats, in three lines: what limits the precision of a report, what biases it, and what was left out."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from statistics import mean, median, stdev

from redline.document import format as fmt
from redline.document.blocks import Medium, Prose, Section, line
from redline.findings import RULES, in_modes, machine
from redline.findings.cell import RESOLUTION
from redline.model import CellReport, Comparison, Finding, FindingKind, Grade, Metric, Report, Verdict
from redline.model.limits import AnyReport, CellLimit, LimitAnswer, LimitReport
from redline.quantities import significant
from redline.report import dots
from redline.report.parts import lost_name
from redline.report.views import weighed_findings
from redline.search.stretch import FEWEST
from redline.suite.load_text import is_open

_NAMED = 12
"""The most comparisons that are named as not known well."""
_MOST_BESIDE = 2
"""The most findings about other measurements that are repeated."""
_FARTHER = 4
"""How far below or above the rates that were tried another search begins."""
_FEWEST = 3
"""The fewest trials of a cell whose scatter is reported."""


def caveats_section(report: Report) -> Iterator[Section]:
    """The caveats of a run."""
    run = report.run
    if run.same is not None:  # nothing was measured
        return
    all_of = fmt.count(sum(len(cell.trials) for cell in report.cells), "trial")
    all_of = all_of if run.alone else fmt.count(run.starts, "start")
    known = _shows_numbers(report)
    limits = _limits(report) if known else ""  # doubts of numbers that are not shown are none
    biases = _ways(_grave(report), len(report.cells)) if known else ""
    yield _section((limits, biases, _left_out(report)), all_of, report, _next(report))


def _shows_numbers(report: Report) -> bool:
    return bool(report.comparisons) or any(cell.shows_numbers for cell in report.cells)


def limit_caveats(report: LimitReport) -> Iterator[Section]:
    """The caveats of a search."""
    if report.same is not None:  # nothing was searched
        return
    kinds = [kind for cell in report.cells for kind in _grave_kinds(cell.findings)]
    known = [answer for cell in report.cells for answer in cell.limits if _is_whole(answer)]
    wide = sum(not answer.decided for answer in known)
    precision = [f"{wide:,} of {fmt.count(len(known), 'limit')} wider than the goal"] if wide else []
    precision += _kinds((kind for kind in kinds if RULES[kind].scatters), len(report.cells))
    probes = fmt.count(sum(len(cell.probes) for cell in report.cells), "probe")
    yield _section(
        ("; ".join(precision), _ways(kinds, len(report.cells)), _spoilt(report)), probes, report, _next_search(report)
    )


def _is_whole(answer: LimitAnswer) -> bool:
    """Whether both sides of the limit are known."""
    return answer.passed is not None and answer.failed is not None


def _lacks_limit(cell: CellLimit) -> bool:
    return not any(map(_is_whole, cell.limits))


def _next_search(report: LimitReport) -> str:
    """The command that goes on with a search that was cut short, or that searches where a limit may be."""
    texts: list[str] = []
    probes = [probe for cell in report.cells for probe in cell.probes]
    if not probes or any(probe.recording for probe in probes):  # it is kept
        resumed = "redline limit --resume DIR, with the directory of this report,"
        texts += [f"{resumed} goes on" for cell in report.cells if cell.ended == "interrupted"]
        broken = (cell.slug for cell in report.cells if cell.ended == "broken")
        texts += [f"remove the last file of probes/{slug}, and {resumed} tries it again" for slug in broken]
    if report.command.startswith("redline limit "):
        ended = (cell for cell in report.cells if cell.ended in ("doomed", "exhausted"))
        texts += [_anew(report.command, flags) for cell in ended if (flags := flags_next(cell))]
    reasons = (answer.reason for cell in report.cells for answer in cell.limits)
    wanting = (reason for reason in reasons if "would decide it" in reason)
    return "; ".join(dict.fromkeys((*texts, *islice(wanting, 1))))


def _anew(command: str, flags: Mapping[str, str]) -> str:
    """The command of a search with these flags in place of its own, in another directory than its own."""
    long = {"-o": "--output", "-d": "--duration"}
    left_out = [name for flag in ("-o", *flags) for name in (flag, long.get(flag, flag))]
    words, kept = iter(shlex.split(command)), list[str]()
    for word in words:
        if word in left_out:
            next(words, None)
        elif word != "--open" and not any(word.startswith(f"{name}=") for name in left_out):
            kept.append(word)
    return shlex.join([*kept, *chain(*flags.items())])


def flags_next(cell: CellLimit) -> Mapping[str, str]:
    """Where another search begins: below all that missed, or above all that met; empty if unclear.

    The lowest rate of a search follows from the length of its probes.
    """
    rates = [probe.tried for probe in cell.probes if not probe.is_void]
    if not rates or cell.stretch is not None:
        return {}
    if all(answer.passed is None and answer.met_at is None for answer in cell.limits):
        least, lasts_s = min(rates) / _FARTHER, max(probe.seconds for probe in cell.probes)
        if any(probe.errors for probe in cell.probes) or (cell.by_users and least < 1):
            return {}
        if not cell.by_users and least * lasts_s < FEWEST:
            return {"-d": f"{round(_FARTHER * lasts_s)}s"}
        return {"--start": significant(least, 2)}
    if all(answer.failed is None and answer.missed_at is None for answer in cell.limits):
        return {"--start": significant(max(rates) * _FARTHER, 2)}
    return {}


def _spoilt(report: LimitReport) -> str:
    probes = [probe for cell in report.cells for probe in cell.probes]
    parts = []
    if spoilt := sum(probe.is_void for probe in probes):
        parts.append(f"{spoilt:,} of {fmt.count(len(probes), 'probe')}, of which nothing is known of the server")
    if lacking := [cell.server for cell in report.cells if _lacks_limit(cell)]:
        parts.append(f"no limit of {', '.join(dict.fromkeys(lacking))}")
    if report.skipped:
        parts.append(f"{fmt.count(len(report.skipped), 'cell')} skipped")
    return "; ".join(parts)


def _section(three: tuple[str, str, str], all_of: str, report: AnyReport, further: str = "") -> Section:
    """Three lines, then what to do next, what is damaged, and what earlier versions lack.

    Markdown has also those of the three that say nothing.
    """
    limits, biases, left_out = three
    nothing = "no number is shown" if isinstance(report, Report) and not _shows_numbers(report) else "nothing was found"
    texts = {
        "What limits precision": (limits, nothing),
        "What biases, and which way": (biases, nothing),
        "What was left out": (left_out, f"nothing: all of {all_of} count"),
    }
    if further:
        texts["What to do next"] = (further, "")
    if beside := _measured_beside(report):
        texts["What else measured"] = (beside, "")
    if report.unread:
        texts["What cannot be read"] = ("; ".join(report.unread), "")
    if report.unrecorded:
        texts["What a version before 0.1.0 did not record"] = ("; ".join(report.unrecorded), "")
    everything = tuple(line((f"{name}:", "strong"), f" {text or none}") for name, (text, none) in texts.items())
    known = tuple(line((f"{name}:", "strong"), f" {text}") for name, (text, _) in texts.items() if text)
    none = Prose.of([] if known else [f"Nothing to doubt was found: all of {all_of} count."], "dim", on=Medium.PAGE)
    told = Prose(known, listed=True, on=Medium.TERMINAL | Medium.PAGE)
    blocks = (Prose(everything, listed=True, on=Medium.MARKDOWN), told, none)
    return Section("Caveats", blocks, anchor="caveats", tucked=True)


def _measured_beside(report: AnyReport) -> str:
    """What other labs measured at the same time, also where it hardly changed the numbers: each lab once."""
    if isinstance(report, LimitReport):
        findings = [finding for cell in report.cells for finding in cell.findings]
    else:
        findings = [finding for of_cell in report.findings.values() for finding in of_cell]
    beside = [finding.message for finding in findings if finding.kind == machine.other_load.kind]
    said = {message.partition(";")[0]: message for message in reversed(beside)}
    return " ".join(list(reversed(said.values()))[:_MOST_BESIDE])


def _limits(report: Report) -> str:
    shares = [share for cell in report.cells if (share := scatter(cell)) is not None]
    parts = [f"trials of a cell differ by {fmt.percent(round(median(shares), 3))} (the median cell)"] if shares else []
    parts += _kinds((kind for kind in _grave(report) if RULES[kind].scatters), len(report.cells))
    return "; ".join((*parts, *_modes(report), *_wide(report), *_undecided(report)))


def _wide(report: Report) -> Iterator[str]:
    """Name comparisons that had too little time, and their precision: `not known to 2%: /search (±3.1%)`."""
    if report.run.alone:
        return
    scenarios = {cell.cell_id: cell.scenario for cell in report.cells}
    wide: dict[str, float] = {}
    for comparison in report.comparisons:
        if comparison.primary and comparison.resolution is not None and comparison.resolution > report.run.threshold:
            wide[comparison.cell_id] = max(comparison.resolution, wide.get(comparison.cell_id, 0.0))
    if wide:
        widest = sorted(wide.items(), key=lambda item: -item[1])[:_NAMED]
        named = ", ".join(f"{scenarios.get(cell_id, cell_id)} (±{fmt.percent(half)})" for cell_id, half in widest)
        more = f" and {len(wide) - _NAMED} more" if len(wide) > _NAMED else ""
        yield f"not known to {fmt.percent(report.run.threshold)}, for which more time helps: {named}{more}"


def _modes(report: Report) -> Iterator[str]:
    speeds = [trial.core_speed for cell in report.cells for trial in cell.trials if trial.core_speed is not None]
    if said := in_modes(speeds):
        yield f"host mode: {said} (probably by what else the host ran on the same cores)"


def _undecided(report: Report) -> Iterator[str]:
    """Count the comparisons that did not decide."""
    if undecided := _inconclusive(report):
        judged = sum(comparison.verdict is not None for comparison in report.comparisons)
        yield f"{len(undecided):,} of {fmt.count(judged, 'comparison')} undecided"


def _inconclusive(report: Report) -> list[Comparison]:
    return [one for one in report.comparisons if one.verdict is Verdict.INCONCLUSIVE and one.resolution]


def _next(report: Report) -> str:
    """Repeat the finding about the coarsest comparison that did not decide: it says what would show more."""
    if not (undecided := _inconclusive(report)):
        return ""
    coarsest = max(undecided, key=lambda comparison: comparison.resolution or 0.0)
    said = (
        finding.message
        for cell in report.cells
        for finding in cell.findings
        if cell.cell_id == coarsest.cell_id and finding.kind == RESOLUTION.kind
    )
    return next(said, "")


def scatter(cell: CellReport) -> float | None:
    """The standard deviation of its trials relative to their mean, in the metric that a server can improve."""
    metric = Metric.P99 if is_open(cell.load_text) else Metric.THROUGHPUT
    values = list(dots.by_round(cell, metric).values())
    return stdev(values) / mean(values) if cell.shows_numbers and len(values) >= _FEWEST else None


def _ways(kinds: Iterable[FindingKind], cells: int) -> str:
    """Say in which direction these findings bias numbers; a kind is listed once per cell that has it."""
    ways: dict[str, list[FindingKind]] = {}
    for kind in kinds:
        if RULES[kind].biases:
            ways.setdefault(RULES[kind].biases, []).append(kind)
    return "; ".join(f"{way} ({', '.join(_kinds(alike, cells))})" for way, alike in ways.items())


def _grave(report: Report) -> Iterator[FindingKind]:
    """Yield the kinds of findings that weigh on cells and are not notes."""
    for cell in report.cells:
        yield from (finding.kind for finding in weighed_findings(cell) if finding.grade is not Grade.NOTE)
    duets = {comparison.cell_id: comparison.duet for comparison in report.comparisons if comparison.duet}
    for duet in duets.values():
        yield from _grave_kinds(duet.findings)


def _grave_kinds(findings: Iterable[Finding]) -> dict[FindingKind, None]:
    return dict.fromkeys(finding.kind for finding in findings if finding.grade is not Grade.NOTE)


def _kinds(kinds: Iterable[FindingKind], cells: int) -> list[str]:
    """`cpu-steal in 5 cells`, the most frequent first; of a single cell their names."""
    counted = Counter(kinds).most_common()
    if cells == 1:
        return [kind for kind, _ in counted]
    return [f"{kind} in {'every cell' if number == cells else fmt.count(number, 'cell')}" for kind, number in counted]


def _cold_starts(report: Report) -> list[str]:
    """Cold starts that comparisons leave out: `1 of 4 of B.r5`."""
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    known = [(comparison.cell_id, comparison.duet) for comparison in report.comparisons if comparison.duet is not None]
    duets = dict(sorted(known, key=lambda pair: pair[1].starts))  # of all metrics, the one with most starts
    return [
        f"{duet.left_out:,} of {duet.starts + duet.left_out:,} of {slugs.get(cell_id, cell_id)}"
        for cell_id, duet in duets.items()
        if duet.left_out
    ]


def _left_out(report: Report) -> str:
    trials = [(cell, trial) for cell in report.cells for trial in cell.trials]
    unused = {(cell.cell_id, trial.position) for cell, trial in trials if not (trial.used or trial.partly)}
    reasons = Counter(
        finding.kind
        for cell in report.cells
        for finding in cell.findings
        if finding.grade is Grade.INVALID and (cell.cell_id, finding.position) in unused
    )
    doubtful = [cell for cell in report.cells if not cell.valid and cell.trials]
    invalid = [cell for cell in doubtful if not cell.shows_numbers]
    parts = []
    if unused:
        why = ", ".join(f"{kind} {number:,}" for kind, number in reasons.most_common())
        parts.append(f"{len(unused):,} of {fmt.count(len(trials), 'trial')}{f' ({why})' if why else ''}")
    if invalid:
        have = "has" if len(invalid) == 1 else "have"
        parts.append(f"{len(invalid):,} of {fmt.count(len(report.cells), 'cell')} {have} no valid result")
    if partly := len(doubtful) - len(invalid):
        have = "has" if partly == 1 else "have"
        parts.append(f"{partly:,} of {fmt.count(len(report.cells), 'cell')} {have} numbers that are not known")
    if report.skipped:
        parts.append(f"{fmt.count(len(report.skipped), 'cell')} skipped")
    if lost := [f"{starts.lost:,} of {starts.made:,} of {lost_name(starts)}" for starts in report.lost_starts]:
        parts.append(f"lost starts: {', '.join(lost)}")
    if cold := _cold_starts(report):
        parts.append(f"cold starts: {', '.join(cold)}")
    if repeated := report.run.trials_repeated:
        # Trials with their partners, and duets; their measurements were not looked at.
        parts.append(f"{fmt.count(repeated, 'recording')}, repeated because of steal")
    if moved := report.run.trials_moved:
        parts.append(f"{fmt.count(moved, 'trial')} made again on other hosts, because one was lost")
    if report.run.alone and (missing := report.run.trials_planned - report.run.trials_done):
        parts.append(f"{fmt.count(missing, 'trial')} not made")
    return "; ".join(parts)
