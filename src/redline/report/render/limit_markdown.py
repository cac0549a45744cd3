"""A limit as Markdown, fit for a comment on a pull request."""

from redline.model.limits import CellLimit, LimitReport
from redline.report import format as fmt
from redline.report.render import limit_words as words
from redline.report.render.escaping import safe

_COLUMNS = ("server", "objectives", "met up to", "missed from", "", "knee")


class LimitMarkdownRenderer:
    """LimitReport -> GitHub-flavoured Markdown. Texts are escaped; they call nobody, hide no link, hold no HTML."""

    def render(self, report: LimitReport) -> bytes:
        """A heading, the answers, what was past each edge, what was skipped, how to repeat the search."""
        blocks = [_head(report), _answers(report), *_cells(report), *_skipped(report), _foot(report)]
        return ("\n\n".join(block for block in blocks if block) + "\n").encode(errors="replace")


def _head(report: LimitReport) -> str:
    machine = report.environment
    facts = [
        fmt.instant(report.started_unix_ns),
        f"{sum(len(cell.probes) for cell in report.cells)} probes",
        f"{safe(machine.cpu_model or 'unknown CPU')}, {machine.cores} cores",
        f"seed {report.seed}",
        f"asked for ±{fmt.percent(report.precision)}",
    ]
    return f"## {safe(words.title(report))}\n\n{' · '.join(facts)}"


def _answers(report: LimitReport) -> str:
    rows = [row for cell in report.cells for row in _rows(cell, several=len({c.scenario for c in report.cells}) > 1)]
    if not rows:
        return ""
    return "\n".join([f"| {' | '.join(_COLUMNS)} |", "|---|---|---:|---:|---|---:|", *rows])


def _rows(cell: CellLimit, *, several: bool) -> list[str]:
    name = f"**{safe(cell.slug)}**" + (f"<br>{safe(cell.scenario)}" if several else "")
    knee = words.rate_told(cell.knee.rate_per_s) if cell.knee else ""
    if not cell.limits:
        return [f"| {name} | | | | {safe(words.ended_told(cell))} | {knee} |"]
    rows = []
    for place, answer in enumerate(cell.limits):
        asked = ", ".join(answer.conditions)
        told = safe(answer.name) + (f"<br>{safe(asked)}" if asked != answer.name else "")
        how = [words.half_width(answer), words.method_told(answer), "" if answer.decided else "wider than asked"]
        columns = [
            name if place == 0 else "",
            told,
            words.rate_told(answer.passed_per_s),
            words.rate_told(answer.failed_per_s),
            "<br>".join(safe(part) for part in (*how, answer.reason) if part),
            knee if place == 0 else "",
        ]
        rows.append(f"| {' | '.join(columns)} |")
    return rows


def _cells(report: LimitReport) -> list[str]:
    blocks = [_cell(cell) for cell in report.cells]
    return ["### Around the edge", *blocks] if any(blocks) else []


def _cell(cell: CellLimit) -> str:
    knee = words.knee_of(cell)
    told = [
        words.ended_told(cell),
        words.confirmed_told(cell),
        words.starts_told(cell),
        words.client_told(cell),
        *words.doubts_told(cell),
        f"knee {knee}" if knee else "",
        *(f"past the edge: {each}" for each in words.beyond_told(cell)),
    ]
    lines = [f"- {safe(each)}" for each in told if each]
    return "\n".join([f"**{safe(cell.slug)}**, {safe(cell.scenario)}, {safe(cell.load)}\n", *lines])


def _skipped(report: LimitReport) -> list[str]:
    listed = "\n".join(f"- **{safe(skip.slug)}**: {safe(skip.reason)}" for skip in report.skipped)
    return ["### Skipped", listed] if listed else []


def _foot(report: LimitReport) -> str:
    machine = report.environment
    parts = [f"redline {machine.redline}", machine.commit, f"kernel {machine.kernel}", report.command]
    return "Repeat: " + " · ".join(safe(part) for part in parts if part)
