"""Main effects: which axes of a server matter, their values' effects, and for a screen the full matrix's command."""

import math
from collections.abc import Iterable, Iterator, Sequence

from redline.document import format as fmt
from redline.document.blocks import Block, ChangeCell, Column, Line, Prose, Section, Table, TableCell, filled, line
from redline.model import Estimate, MainEffect, MainEffects, Report

_RESOLUTIONS = {
    "III": "Resolution III: main effects are mixed with interactions of two axes",
    "IV": "Resolution IV: main effects are clear of interactions of two axes, and these are mixed with each other",
    "V": "Resolution V: neither main effects nor interactions of two axes are mixed with each other",
}
_NAMED = 2
"""The most interactions named as mixed with an axis."""


def main_effect_sections(report: Report) -> Iterator[Section]:
    """A sentence per server, scenario and load about what matters; a table of main effects; what to run next."""
    if not report.main_effects:
        return
    parts: dict[tuple[str, str, str], list[MainEffects]] = {}
    for effect in report.main_effects:
        parts.setdefault((effect.server, effect.scenario, effect.load), []).append(effect)
    several = len(parts) > 1
    blocks: list[Block] = []
    for key, effects in parts.items():
        title = line((" · ".join(key), "strong"), f"  {_share(effects[0])}")
        blocks += [Prose((title,))] if several else []
        sentences = Prose(tuple(_effect_lines(effects)), listed=True)
        blocks += [sentences, _table(effects), Prose.of(_mixed(effects[0]), "dim")]
    legend = (
        "Each value against the first of its axis, on average over the other axes: change in percent, [95% interval]. "
        "A round is a block, and what main effects leave, interactions too, is the error."
    )
    first = report.main_effects[0]
    aside = "" if several else f"{first.server}, {_share(first)}"
    after = Prose((line("In full, what matters: ", (report.next_command, "strong")),)) if report.next_command else None
    yield Section("Which axes matter", tuple(filled(Prose.of([legend], "dim"), *blocks, after)), aside, anchor="axes")


def _effect_lines(effects: Iterable[MainEffects]) -> Iterator[Line]:
    """`throughput: gc and heap matter; jdk does not show (resolution 4%)`, per metric with a verdict."""
    for effect in effects:
        if text := effect.refused or sentence(effect.effects):
            yield line((f"{fmt.label(effect.metric)}: ", "dim"), text)


def sentence(effects: Sequence[MainEffect]) -> str:
    """Say which axes matter, are too small to, and do not show; empty if nothing is judged."""
    said, held_back = [], [effect for effect in effects if _held_back(effect)]
    for verdict, singular, plural in (
        ("matters", "matters", "matter"),
        ("too small", "is too small to matter", "are too small to matter"),
        ("not shown", "does not show", "do not show"),
    ):
        those = [effect for effect in effects if effect.verdict == verdict and effect not in held_back]
        if not those:
            continue
        names = " and ".join(filter(None, (", ".join(effect.axis for effect in those[:-1]), those[-1].axis)))
        widest = max((effect.resolution for effect in those if effect.resolution is not None), default=None)
        resolution = f" (resolution {fmt.percent(widest)})" if verdict == "not shown" and widest is not None else ""
        said.append(f"{names} {plural if len(those) > 1 else singular}{resolution}")
    for effect in held_back:
        chance = "" if effect.p_adjusted is None else f" (p {effect.p_adjusted:.2g} among all axes)"
        said.append(f"{effect.axis} reads {_largest(effect)}, which may be chance{chance}")
    return "; ".join(said)


def _held_back(effect: MainEffect) -> bool:
    """Whether the interval of a level excludes 1, but the number of axes does not allow the verdict that it matters."""
    return effect.verdict == "not shown" and any(_excludes_one(level.ratio) for level in effect.levels)


def _excludes_one(ratio: Estimate) -> bool:
    return ratio.low is not None and ratio.high is not None and not ratio.low <= 1 <= ratio.high


def _largest(effect: MainEffect) -> str:
    """`+9.0% [+2.0, +16.5]`, the level farthest from 1 whose interval excludes it."""
    ratios = (level.ratio for level in effect.levels if _excludes_one(level.ratio))
    largest = max(ratios, key=lambda ratio: abs(math.log(ratio.value)))
    return fmt.with_bounds(largest)


def _share(effects: MainEffects) -> str:
    return f"{effects.variants} of {effects.possible} variants"


def _table(effects: Sequence[MainEffects]) -> Table:
    """A row per value of an axis but the first, a column per metric."""
    shown = [column for column in effects if column.effects]
    changes = [
        {(effect.axis, level.value): _change(level.ratio) for effect in column.effects for level in effect.levels}
        for column in shown
    ]
    rows: tuple[tuple[TableCell, ...], ...] = tuple(
        (
            f"{effect.axis}: {level.value} against {effect.reference}",
            *(column.get((effect.axis, level.value), ChangeCell("not known")) for column in changes),
        )
        for effect in (shown[0].effects if shown else ())
        for level in effect.levels
    )
    columns = (Column("value"), *(Column(fmt.label(column.metric), "right") for column in shown))
    return Table(columns, rows, look="tiles")


def _change(ratio: Estimate) -> ChangeCell:
    return ChangeCell(fmt.change(ratio), fmt.change_bounds(ratio), size=abs(ratio.value - 1))


def _mixed(effects: MainEffects) -> Iterator[str]:
    """Say what a fraction cannot distinguish."""
    if effects.effects and effects.variants < effects.possible:
        yield f"{_RESOLUTIONS[effects.resolution]}."
    for effect in effects.effects:
        if effect.mixed_with:
            more = len(effect.mixed_with) - _NAMED
            rest = f" and {fmt.count(more, 'other interaction')}" if more > 0 else ""
            yield f"{effect.axis} is mixed with {', '.join(effect.mixed_with[:_NAMED])}{rest}."
        if not effect.levels:
            yield f"{effect.axis}: these variants cannot distinguish it from other axes."
