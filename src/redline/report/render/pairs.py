"""Comparisons by round of which some rounds have only one side, in words."""

from collections.abc import Iterable

from redline.model import Comparison, Report


def lone_rounds(report: Report) -> tuple[str, ...]:
    """Of all that the report compares: with baselines, and step by step."""
    return lone_rounds_of((*report.comparisons, *(effect.comparison for effect in report.effects)))


def lone_rounds_of(comparisons: Iterable[Comparison]) -> tuple[str, ...]:
    """`4 of 6 rounds have a valid trial of both: rust.axum.SimpleGet.saturate and rust.hyper.SimpleGet.saturate`."""
    found: dict[tuple[str, str], str] = {}
    for one in comparisons:
        if one.rounds is not None and one.ratio is not None:
            found.setdefault(
                (one.cell_id, one.baseline_id),
                f"{one.ratio.n} of {one.rounds} rounds have a valid trial of both: "
                f"{_slug(one.cell_id)} and {_slug(one.baseline_id)}",
            )
    return tuple(found.values())


def _slug(cell_id: str) -> str:
    return cell_id.rpartition("-")[0]
