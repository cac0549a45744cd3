"""Sections that several kinds of report have: what was skipped, and how to repeat what was done."""

from collections.abc import Iterable, Iterator

from redline.model import Environment, Skipped
from redline.report import format as fmt
from redline.report.document import Item, Items, Prose, Section, line


def machine_line(machine: Environment) -> str:
    """`AMD EPYC 7763 64-Core Processor, 2 cores`."""
    return f"{machine.cpu_model or 'unknown CPU'}, {machine.cores} core{'' if machine.cores == 1 else 's'}"


def skipped_section(skipped: Iterable[Skipped]) -> Iterator[Section]:
    """Each reason with its cells; nothing where nothing was skipped."""
    reasons: dict[str, list[str]] = {}
    for skip in skipped:
        reasons.setdefault(skip.reason, []).append(skip.slug)
    items = (Item(line(reason), (line((", ".join(slugs), "dim")),)) for reason, slugs in reasons.items())
    if reasons:
        count = fmt.count(sum(map(len, reasons.values())), "cell")
        yield Section(f"Skipped: {count}", (Items(tuple(items)),))


def repeat_section(machine: Environment, command: str, *before: str) -> Section:
    """The versions and the command with which to do it again, below what else there is to say."""
    parts = (f"redline {machine.redline}", machine.commit, f"kernel {machine.kernel}", command)
    return Section("", (Prose.of((*before, "Repeat: " + " · ".join(part for part in parts if part))),))
