"""How servers warmed up, in words: one line for all cells of a group of which the same is said."""

from collections.abc import Iterable

from redline.model import CellReport, Warming, WarmUp
from redline.quantities import duration, percent

_ORDER: tuple[Warming, ...] = ("flat", "warmed up", "slowing down", "never steady")


def warm_ups(cells: Iterable[CellReport]) -> list[tuple[str, str]]:
    """Servers, with commas, and what is said of them; nothing of cells whose trials were too short to tell."""
    said: dict[str, list[str]] = {}
    for cell in cells:
        if text := warm_up_text(cell):
            said.setdefault(text, []).append(cell.server)
    return [(", ".join(servers), text) for text, servers in said.items()]


def warm_up_text(cell: CellReport) -> str:
    """`3 of 5 trials flat, 2 warmed up after 4.20 s to 6.10 s; measured from 8.40 s to 12.5 s`; empty: not known."""
    seen = [trial.warm_up for trial in cell.trials if trial.warm_up]
    if not seen:
        return ""
    kinds = {kind: [each for each in seen if each.kind == kind] for kind in _ORDER}
    told = [(kind, found) for kind, found in kinds.items() if found]
    of = f" of {len(cell.trials)} trials"
    alone = len(told) == 1 and len(seen) == len(cell.trials)
    parts = [
        ("" if alone else f"{len(found)}{of if first == 0 else ''} ") + _told(kind, found)
        for first, (kind, found) in enumerate(told)
    ]
    return f"{', '.join(parts)}; measured from {_range(each.measured_from_ns for each in seen)}"


def trial_text(warm_up: WarmUp | None) -> str:
    """`warmed up after 4.20 s, measured from 8.40 s`; empty when not known."""
    return f"{_told(warm_up.kind, [warm_up])}, measured from {duration(warm_up.measured_from_ns)}" if warm_up else ""


def _told(kind: Warming, found: list[WarmUp]) -> str:
    if kind == "warmed up":
        return f"warmed up after {_range(each.steady_from_ns or 0 for each in found)}"
    if kind == "slowing down":
        return f"slowing down, by {percent(max(each.lost or 0.0 for each in found))}"
    return kind


def _range(times_ns: Iterable[int]) -> str:
    ordered = sorted(times_ns)
    ends = dict.fromkeys((duration(ordered[0]), duration(ordered[-1])))
    return " to ".join(ends)
