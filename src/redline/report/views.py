"""A report's cells by scenario and load, the comparisons of a cell, and findings gathered over all cells."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redline.document import format as fmt
from redline.document.blocks import Line, Span, line
from redline.findings import RULES, servers_doing
from redline.findings.failed import SERVER_DIED, trial_failed
from redline.model import CellReport, Comparison, Finding, FindingKind, Grade, Metric, Report
from redline.report.boards import against_in_short


@dataclass(frozen=True)
class Group:
    """The cells of a scenario under a load: chains from their start upward, ceilings last.

    `against` are short names of the baselines of compared cells, by cell id; empty if the group has a single baseline.
    """

    scenario: str
    load: str
    load_text: str
    cells: tuple[CellReport, ...]
    against: dict[str, str]

    @property
    def baseline(self) -> str:
        """The only baseline's server; empty if there is none or several."""
        names = [cell.server for cell in self.cells if cell.is_baseline]
        return names[0] if len(names) == 1 else ""

    @property
    def own_loads(self) -> bool:
        """Whether loads differ, such as rates that are shares of capacities."""
        return len({cell.load_text for cell in self.cells}) > 1

    @property
    def title(self) -> str:
        """`SimpleGet · saturate`."""
        return f"{self.scenario} · {self.load}"

    def where(self, cells: Sequence[CellReport]) -> str:
        """`SimpleGet · saturate: `, with what distinguishes the group among all cells of a report; or an empty text."""
        scenarios, loads = {cell.scenario for cell in cells}, {cell.load for cell in cells}
        names = (self.scenario if len(scenarios) > 1 else "", self.load if len(loads) > 1 else "")
        text = " · ".join(filter(None, names))
        return text and f"{text}: "

    def heading(self, more: str = "") -> Line:
        """The title with its load, and further text."""
        return line((self.title, "strong"), (f" {self.load_text}{more}", "dim"))


@dataclass(frozen=True)
class FindingGroup:
    """The findings of a kind, grade and advice: messages, with the slugs of their cells."""

    kind: FindingKind
    grade: Grade
    advice: str
    messages: dict[str, tuple[str, ...]]
    log_tail: str = ""
    """The end of the server's output in the first affected trial that has any."""

    @property
    def slugs(self) -> tuple[str, ...]:
        """The affected cells."""
        return tuple(dict.fromkeys(slug for slugs in self.messages.values() for slug in slugs))

    def where(self, cells: int) -> str:
        """Name the cells, in a report of this many cells."""
        return "every cell" if len(self.slugs) == cells > 1 else ", ".join(self.slugs)


def common_load(cells: Iterable[CellReport]) -> str:
    """The load of these cells in words; empty without cells."""
    texts = {cell.load_text for cell in cells}
    return "not the same for all" if len(texts) > 1 else "".join(texts)


def load_line(load: str, cells: Iterable[CellReport]) -> Line:
    """`saturate  closed, 64 users`, a heading."""
    return line(load, (f" {common_load(cells)}", "dim"))


def better(metric: Metric) -> str:
    """`more is better`, or `response time`; empty where nothing else is to say: less is better."""
    if metric.higher_is_better:
        return "more is better"
    return "response time" if metric.value.startswith("p") else ""


def signs() -> Line:
    """The verdicts with their signs."""
    spans = (Span(f"{sign.mark} {sign.words}", sign) for sign in fmt.VerdictSign)
    return (*(sign for span in spans for sign in (span, Span(" "))), Span("no sign: described, not judged"))


def only_judged(comparisons: Iterable[Comparison]) -> str:
    """`only CPU per request is judged`: why other metrics have no verdict; empty if nothing is judged."""
    judged = [fmt.label(metric) for metric in dict.fromkeys(one.metric for one in comparisons if one.primary)]
    if len(judged) < 2:
        return f"only {judged[0]} is judged" if judged else ""
    return f"only {', '.join(judged[:-1])} and {judged[-1]} are judged"


def groups(report: Report) -> tuple[Group, ...]:
    """The report's cells by scenario and load, in the order in which they first appear."""
    baseline_of = {comparison.cell_id: comparison.baseline_id for comparison in report.comparisons}
    members: dict[tuple[str, str], list[CellReport]] = {}
    for cell in report.cells:
        members.setdefault((cell.scenario, cell.load), []).append(cell)
    return tuple(_group(*key, cells, baseline_of) for key, cells in members.items())


def _group(scenario: str, load: str, cells: list[CellReport], baseline_of: dict[str, str]) -> Group:
    names = {cell.cell_id: cell.server for cell in cells}
    bases = {cell.cell_id: baseline_of[cell.cell_id] for cell in cells if cell.cell_id in baseline_of}
    several = sum(cell.is_baseline for cell in cells) > 1
    return Group(
        scenario,
        load,
        common_load(cells),
        _families(cells, bases),
        {cell: against_in_short(names[cell], names.get(base, base)) for cell, base in bases.items()} if several else {},
    )


def _families(cells: list[CellReport], bases: dict[str, str]) -> tuple[CellReport, ...]:
    """Baselines in their order, each before the cells compared with it; then cells that stand alone; then ceilings."""
    places = {cell.cell_id: place for place, cell in enumerate(cells)}

    def order(cell: CellReport) -> tuple[bool, bool, list[int]]:
        chain = [cell.cell_id]
        while (base := bases.get(chain[-1], "")) in places and base not in chain:
            chain.append(base)
        alone = len(chain) == 1 and not cell.is_baseline
        return cell.role == "ceiling", alone, [] if alone else [places[cell] for cell in reversed(chain)]

    return tuple(sorted(cells, key=order))


def colours(report: Report) -> dict[str, int]:
    """The colours of servers in all charts: subjects in order of appearance, then ceilings."""
    ordered = sorted(report.cells, key=lambda cell: cell.role == "ceiling")
    return {server: place for place, server in enumerate(dict.fromkeys(cell.server for cell in ordered))}


def comparisons_by_cell(report: Report) -> dict[str, dict[Metric, Comparison]]:
    """The comparisons by cell and metric, without cells that are not compared."""
    by_cell: dict[str, dict[Metric, Comparison]] = {}
    for comparison in report.comparisons:
        by_cell.setdefault(comparison.cell_id, {})[comparison.metric] = comparison
    return by_cell


def caveats(report: Report) -> dict[str, tuple[Metric, ...]]:
    """Caveats before taking some comparisons for findings of their own, and their metrics."""
    metrics_by_caveat: dict[str, dict[Metric, None]] = {}
    for comparison in report.comparisons:
        if comparison.caveat:
            metrics_by_caveat.setdefault(comparison.caveat, {})[comparison.metric] = None
    return {caveat: tuple(metrics) for caveat, metrics in metrics_by_caveat.items()}


def weighed_findings(cell: CellReport) -> tuple[Finding, ...]:
    """The cell's findings as they weigh on its numbers: the gravest first, once per kind.

    No number of a valid cell rests on a trial that was left out. The finding that excluded the trial is then a warning
    about the cell, and the trial's milder findings say nothing about it. A passing disturbance of the machine is a note
    about a cell if it affected fewer than half of the trials.
    """
    unused = {trial.position for trial in cell.trials if not trial.used} if cell.valid else set[int]()
    kinds: dict[tuple[FindingKind, bool], list[Finding]] = {}
    for finding in cell.findings:
        left_out = finding.position in unused
        if not left_out or finding.grade is Grade.INVALID:
            kinds.setdefault((finding.kind, left_out), []).append(finding)
    used = len(cell.trials) - len(unused)
    folded = (_left_out(cell, alike) if out else _folded(alike, used) for (_, out), alike in kinds.items())
    return tuple(sorted(folded, key=lambda finding: -finding.grade.weight))


def _left_out(cell: CellReport, alike: Sequence[Finding]) -> Finding:
    message = f"{len(alike)} of {fmt.count(len(cell.trials), 'trial')} left out: {alike[0].message}"
    return alike[0].said(Grade.WARN, message)


def _folded(alike: Sequence[Finding], used: int) -> Finding:
    """Return the gravest of a kind, with the number of affected trials."""
    worst = max(alike, key=lambda finding: finding.grade.weight)
    if worst.position is None or used < 2:
        return worst
    as_grave = sum(finding.grade is worst.grade for finding in alike)
    passes = RULES[worst.kind].passes and 2 * as_grave < used and worst.grade is Grade.WARN
    message = f"{worst.message} (In {len(alike)} of {used} trials.)"
    return worst.said(Grade.NOTE if passes else worst.grade, message)


def has_result(cell: CellReport) -> bool:
    """Whether anything was shown of a server: of an invalid cell some numbers, unless the server itself failed."""
    trials: dict[int | None, list[Finding]] = {}
    for finding in cell.findings:
        trials.setdefault(finding.position, []).append(finding)
    return cell.valid or (cell.shows_numbers and not any(map(servers_doing, trials.values())))


def counts_are_known(cell: CellReport) -> bool:
    """Whether how many requests and journeys ended how is sure: of an invalid cell too, unless a finding touches it."""
    touched = any(
        "counts" in RULES[finding.kind].touches for finding in cell.findings if finding.grade is Grade.INVALID
    )
    return cell.valid or (not touched and cell.says_what_is_known)


def invalid_reason(cell: CellReport) -> str:
    """Say why an invalid cell shows no number: a message per kind of its `invalid` findings."""
    return " ".join(f.message for f in invalid_findings(cell)) or "No trial of this cell can be used."


def invalid_findings(cell: CellReport) -> tuple[Finding, ...]:
    """The cell's `invalid` findings, the first per kind."""
    kinds: dict[FindingKind, Finding] = {}
    for finding in cell.findings:
        if finding.grade is Grade.INVALID:
            kinds.setdefault(finding.kind, finding)
    return tuple(kinds.values())


def finding_groups(report: Report) -> tuple[FindingGroup, ...]:
    """The findings of all cells and duets, gravest first, notes last; a repeated finding is listed once."""
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    reported = [
        (cell.slug, finding, _log_tail(cell, finding)) for cell in report.cells for finding in weighed_findings(cell)
    ]
    for comparison in report.comparisons:
        slug = slugs.get(comparison.cell_id, comparison.cell_id)
        reported += [(slug, finding, "") for finding in (comparison.duet.findings if comparison.duet else ())]
    kinds: dict[tuple[FindingKind, Grade, str], dict[str, list[str]]] = {}
    tails: dict[tuple[FindingKind, Grade, str], str] = {}
    for slug, finding, tail in reported:
        key = finding.kind, finding.grade, finding.advice
        kinds.setdefault(key, {}).setdefault(finding.message, []).append(slug)
        tails[key] = tails.get(key) or tail
    gathered = [
        FindingGroup(*key, {message: tuple(dict.fromkeys(cells)) for message, cells in messages.items()}, tails[key])
        for key, messages in kinds.items()
    ]
    return tuple(sorted(gathered, key=lambda doubt: (-doubt.grade.weight, RULES[doubt.kind].reassures)))


def _log_tail(cell: CellReport, finding: Finding) -> str:
    if finding.kind not in (SERVER_DIED.kind, trial_failed.kind):
        return ""
    return next((trial.log_tail for trial in cell.trials if trial.position == finding.position), "")


def tally(report: Report) -> dict[fmt.VerdictSign, int]:
    """Count the comparisons per verdict; the ceiling is no competitor and does not count."""
    ceilings = {cell.cell_id for cell in report.cells if cell.role == "ceiling"}
    verdicts = [fmt.VerdictSign.of(c) for c in report.comparisons if c.cell_id not in ceilings]
    return {verdict: verdicts.count(verdict) for verdict in fmt.VerdictSign if verdict in verdicts}
