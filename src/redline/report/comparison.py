"""A list of comparisons as sections: changes with intervals and verdicts."""

from collections.abc import Iterable, Iterator

from redline.document import format as fmt
from redline.document.blocks import Column, Prose, Section, Table, TextCell, filled, line, words
from redline.model import Comparison
from redline.report.trials import lone_rounds_of

_COLUMNS = (Column(""), Column("", "right"), Column("", "right"), Column(""))


BY_RATIOS = "These are ratios of ratios: how far each server is from the same baseline, which ran beside it."


def pair_sections(
    comparisons: Iterable[Comparison], *, base: str, other: str, by_ratios: bool = False
) -> Iterator[Section]:
    """A table per cell and baseline; `base` and `other` name the runs, `by_ratios` as in `CompareResult`.

    Metrics without a verdict are left out if they could not be compared.
    """
    said = (Prose.of([BY_RATIOS], "dim"),) if by_ratios else ()
    yield Section(f"{other} against {base}" if base != other else f"{base} against its baseline", said)
    by_pair: dict[tuple[str, str], list[Comparison]] = {}
    for comparison in comparisons:
        if comparison.says_something:
            by_pair.setdefault((comparison.cell_id, comparison.baseline_id), []).append(comparison)
    for (cell_id, baseline_id), rows in by_pair.items():
        against = f"against {fmt.slug_of(baseline_id)}" if baseline_id != cell_id else ""
        rounds = Prose.of((text.partition(":")[0] for text in lone_rounds_of(rows)), "dim", listed=True)
        yield Section(fmt.slug_of(cell_id), tuple(filled(Table(_COLUMNS, tuple(map(_row, rows))), rounds)), against)


def _row(comparison: Comparison) -> tuple[TextCell, ...]:
    if comparison.ratio is None:
        return (
            words(fmt.label(comparison.metric)),
            words(),
            words(),
            words(f"not compared: {comparison.refused}", look="dim"),
        )
    why = comparison.why_no_verdict
    verdict = f"no verdict: {why}" if comparison.primary else "described, not judged"
    if comparison.verdict and not why:
        verdict = fmt.verdict(comparison)
    return (
        words(fmt.label(comparison.metric)),
        words(fmt.change(comparison.ratio)),
        TextCell((line((fmt.change_bounds(comparison.ratio), "dim")),)),
        words(verdict, look=fmt.VerdictSign.of(comparison) or ""),
    )
