"""Why a run that decides by itself made so many trials, in one sentence."""

from redline.model import Precision
from redline.report import format as fmt


def rounds_told(precision: Precision) -> str:
    """`7 rounds: all main comparisons are within ±2%, the widest (rust.axum.SimpleGet.saturate) ±1.8%`."""
    rounds = f"{precision.rounds} round{'' if precision.rounds == 1 else 's'}"
    if precision.ended == "no valid trial":
        return f"{rounds}: {_lost(precision)}"
    ended = {"at most": ", the most that were allowed", "budget": ", until the budget was spent"}.get(precision.ended)
    return f"{rounds}{ended or ''}: {_known(precision)}{_without(precision)}"


def _known(precision: Precision) -> str:
    asked = f"±{fmt.percent(precision.asked)}"
    if precision.half_width is None or precision.cell_id is None:
        return f"no main comparison has an interval yet; {asked} is asked for"
    widest = f"the widest ({_slug(precision.cell_id)}) ±{fmt.percent(precision.half_width)}"
    if precision.half_width <= precision.asked:
        return f"all main comparisons are within {asked}, {widest}"
    return f"not all main comparisons are within {asked}, {widest}"


def _lost(precision: Precision) -> str:
    lost = ", ".join(map(_slug, precision.lost)) or "a main comparison"
    return (
        f"no valid trial of {lost}, so more rounds would not tell more; ±{fmt.percent(precision.asked)} was asked for"
    )


def _without(precision: Precision) -> str:
    if not precision.without or precision.half_width is None:
        return ""
    return f"; without an interval: {', '.join(map(_slug, precision.without))}"


def _slug(cell_id: str) -> str:
    return cell_id.rpartition("-")[0]
