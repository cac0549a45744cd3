"""The findings of a search: a kind once for all of its cells, with the number of probes that have it."""

from collections.abc import Iterator, Sequence

from redline.model import Finding, FindingKind, Grade
from redline.model.limits import CellLimit, LimitReport
from redline.report import format as fmt
from redline.report.document import Item, Items, Medium, Prose, Section, filled, line
from redline.report.sections.limit_probes import rate_text

_Found = tuple[CellLimit, Finding]


def search_findings(report: LimitReport) -> Iterator[Section]:
    """Yield the findings about servers, then those about probes: the worst of a kind, and no notes about probes."""
    of_servers: dict[tuple[FindingKind, str], list[_Found]] = {}
    of_probes: dict[FindingKind, list[_Found]] = {}
    for cell in report.cells:
        for finding in cell.findings:
            if finding.position is None:
                of_servers.setdefault((finding.kind, finding.message), []).append((cell, finding))
            elif finding.grade is not Grade.NOTE:
                of_probes.setdefault(finding.kind, []).append((cell, finding))
    names = {cell.slug: server_names(report)[place] for place, cell in enumerate(report.cells)}
    items = [_item(alike[0][1], ", ".join(names[cell.slug] for cell, _ in alike)) for alike in of_servers.values()]
    for alike in of_probes.values():
        cell, worst = max(alike, key=lambda found: found[1].grade.weight)
        probes = sum(len(cell.probes) for cell in report.cells)
        of = f" of {names[cell.slug]}" if len(report.cells) > 1 else ""
        rate = rate_text(cell.probes[worst.position or 0].rate_per_s)
        items.append(_item(worst, f"{len(alike)} of {fmt.count(probes, 'probe')}, for example at {rate}{of}"))
    none = Prose.of([] if items else ["No reason to doubt any of these numbers was found."], "dim", on=Medium.PAGE)
    found = Items(tuple(items), folded=True) if items else None
    yield Section("Findings", tuple(filled(none, found)), anchor="findings", count=len(items))


def server_names(report: LimitReport) -> Sequence[str]:
    """The names of the cells: those of their servers, if cells differ in nothing else."""
    alike = len({cell.slug.removeprefix(cell.server) for cell in report.cells}) == 1
    return [cell.server if alike else cell.slug for cell in report.cells]


def _item(finding: Finding, where: str) -> Item:
    head = line((f"{fmt.GRADE_MARKS[finding.grade]} {finding.grade}", finding.grade), " ", (finding.kind, "strong"))
    return Item(head, (line(finding.message), line(f"→ {finding.advice}"), line((f"in {where}", "dim"))))
