"""Rates that are a share of a capacity: what they may be a share of, and what becomes of them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redline.model import Cell, Load, Open, Share, Suite
from redline.suite.schema.document import Path
from redline.suite.schema.load import LoadSchema
from redline.suite.schema.units import HIGHEST_RATE_PER_S, clip, did_you_mean
from redline.suite.validate.checking import Sheet

_LOWEST_RATE_PER_S = 1e-6  # as the engine takes it: docs/reference/engine-protocol.md


@dataclass(frozen=True)
class Capacities:
    """What was measured before the rates: for each cell by its slug its group's capacity, or why there is none."""

    per_s: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def share_of(load: Load) -> Share | None:
    """What its rate is a share of; None where the rate is a number of its own."""
    return load.shape.share if isinstance(load.shape, Open) else None


def share_text(share: Share) -> str:
    """`50% of saturate`."""
    return f"{share.share * 100:.10g}% of {share.of}"


def capacity_loads(suite: Suite) -> tuple[Load, ...]:
    """The loads that others are a share of, in the order of the suite. They are measured first, and only then."""
    needed = {share.of for load in suite.loads if (share := share_of(load))}
    return tuple(load for load in suite.loads if load.name in needed)


def capacity_slug(cell: Cell) -> str | None:
    """The slug of the cell whose capacity this one's rate is a share of."""
    share = share_of(cell.load)
    if share is None:
        return None
    return cell.model_copy(update={"load": cell.load.model_copy(update={"name": share.of})}).slug


def with_rate(cell: Cell, capacities: Capacities) -> Cell | str:
    """The cell with the rate that its capacity gives it, to three significant digits; or why there is none.

    More digits would tell of an exactness that no capacity has, and make runs of the same rates look different.
    A cell whose rate is a number of its own stays as it is.
    """
    share, slug = share_of(cell.load), capacity_slug(cell)
    if share is None or slug is None:
        return cell
    if slug not in capacities.per_s:
        return capacities.missing.get(slug, f"{share.of} was not measured")
    rate_per_s = float(f"{share.share * capacities.per_s[slug]:.3g}")
    if rate_per_s > HIGHEST_RATE_PER_S:
        return (
            f"{share_text(share)} is {rate_per_s:,.0f}/s, and {HIGHEST_RATE_PER_S:,.0f}/s is the most that may be asked"
        )
    if rate_per_s < _LOWEST_RATE_PER_S:
        return f"{share_text(share)} is {rate_per_s:g}/s, and {_LOWEST_RATE_PER_S:g}/s is the least that may be asked"
    shape = cell.load.shape.model_copy(update={"rate_per_s": rate_per_s})
    return cell.model_copy(update={"load": cell.load.model_copy(update={"shape": shape})})


def check_shares(sheet: Sheet) -> None:
    """Note every rate that is a share of what shows no capacity: only constant users who never wait do."""
    loads = {str(path[-1]): sheet.sound(LoadSchema, path) for path in sheet.items(("loads",))}
    for name, written in loads.items():
        rate = written.open.rate if written and written.open else None
        if isinstance(rate, Share):
            _check_share(sheet, ("loads", name, "open", "rate"), rate.of, loads)


def _check_share(sheet: Sheet, path: Path, of: str, loads: Mapping[str, LoadSchema | None]) -> None:
    written = loads.get(of)
    if of in loads and written is None:
        return  # its own problem is told
    able = tuple(name for name, load in loads.items() if load and not _wrong_with(name, load))
    known = f"a rate may be a share of: {', '.join(able)}" if able else "add a load with `closed: {users: ...}`"
    if written is None:
        sheet.wrong(path, f"there is no load `{clip(of)}` in this suite", did_you_mean(of, able) or known)
    elif wrong := _wrong_with(of, written):
        sheet.wrong(path, wrong, known)


def _wrong_with(name: str, load: LoadSchema) -> str:
    """Why the load shows no capacity; empty when it does."""
    closed = load.closed
    if closed is None:
        return f"`{name}` is an open load, which shows no capacity"
    if closed.steps:
        return f"the users of `{name}` change, so it shows no one capacity"
    waits = "pace" if closed.pace is not None else "think" if closed.think is not None else ""
    return f"the users of `{name}` have a `{waits}`, so it shows no capacity" if waits else ""
