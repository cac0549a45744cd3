"""The view of a limit as a page: answers on one axis, and what stands in the section of each cell."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from jinja2 import Environment
from markupsafe import Markup

from redline.model.limits import CellLimit, LimitAnswer, LimitProbe, LimitReport
from redline.quantities import rate
from redline.report.render.html.limit_plots import drawn, known_percentiles, payload
from redline.report.render.html.shell import asset, machine_facts, policy, templates
from redline.report.sections import limit as words

COLOURS = {"p50": 2, "p90": 0, "p99": 1, "p99.9": 3}
"""As the script has them."""

_UNFOLDED = 3
_MOST_TICKS = 6
_PARTS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))


@dataclass(frozen=True)
class RateTick:
    """A labelled position; `at` is in percent of the width."""

    at: float
    text: str


@dataclass(frozen=True)
class RateAxis:
    """Rates on a log axis, from `low` to `high` per second."""

    low: float
    high: float

    @classmethod
    def of(cls, rates: Iterable[float]) -> "RateAxis | None":
        """Wide enough for all of them; None for none."""
        known = [each for each in rates if each > 0]
        if not known:
            return None
        room = max((max(known) / min(known)) ** 0.08, 1.1)
        return cls(min(known) / room, max(known) * room)

    def at(self, per_s: float) -> float:
        """Percent of the axis, held to its edges."""
        share = math.log(max(per_s, self.low) / self.low) / math.log(self.high / self.low)
        return round(100 * min(1.0, share), 2)

    @property
    def ticks(self) -> tuple[RateTick, ...]:
        """Round rates, as many as there is room for."""
        found: list[float] = []
        for parts in _PARTS:
            decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            rounds = [part * 10.0**decade for decade in decades for part in parts]
            inside = [each for each in rounds if self.low <= each <= self.high]
            if len(inside) > _MOST_TICKS:
                break
            found = inside
        return tuple(RateTick(self.at(each), rate(each)) for each in found)


@dataclass(frozen=True)
class Strip:
    """An answer on the axis, in percent. A side that is not known reaches the axis's end; those that are are `ends`."""

    start: float
    width: float
    ends: tuple[float, ...]
    knee: float | None


@dataclass(frozen=True)
class AnswerRow:
    """One set of objectives of one cell, whose `section` tells more; `place` among its cell's `rows`."""

    cell: CellLimit
    section: int
    place: int
    answer: LimitAnswer | None
    strip: Strip | None
    rows: int

    @property
    def known(self) -> str:
        """How it is known, and whether it is as narrow as was asked."""
        assert self.answer is not None
        return words.method_text(self.answer) + ("" if self.answer.decided else "; wider than the goal")

    @property
    def conditions(self) -> str:
        """What was asked, where the set's name does not say it."""
        assert self.answer is not None
        asked = ", ".join(self.answer.conditions)
        return "" if asked == self.answer.name else asked


@dataclass(frozen=True)
class CellSection:
    """One cell: its words, and whether it has a curve."""

    cell: CellLimit
    place: int
    drawn: bool

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """What is said of it, each with a heading."""
        return tuple(words.facts_of(self.cell))

    @property
    def percentiles(self) -> tuple[tuple[str, int], ...]:
        """Those that some point of its curve tells: name and colour."""
        return tuple((name, colour) for name, colour in COLOURS.items() if name in known_percentiles(self.cell))

    @property
    def bands(self) -> tuple[tuple[int, str], ...]:
        """The answers that are shaded in its curve: colour and name."""
        limits = enumerate(self.cell.limits)
        return tuple((i % 8, a.name) for i, a in limits if a.passed_per_s is not None and a.failed_per_s is not None)


@dataclass(frozen=True)
class LimitPage:
    """The whole page."""

    report: LimitReport
    axis: RateAxis | None
    rows: tuple[AnswerRow, ...]
    sections: tuple[CellSection, ...]

    @property
    def folds(self) -> bool:
        """Whether all cells but the first are folded away."""
        return len(self.sections) > _UNFOLDED

    @property
    def several_scenarios(self) -> bool:
        """Whether the scenario has to be shown."""
        return len({cell.scenario for cell in self.report.cells}) > 1


def limit_page(report: LimitReport) -> LimitPage:
    """Lay the report out."""
    axis = RateAxis.of(_rates(report.cells))
    sections = tuple(CellSection(cell, place, drawn(cell)) for place, cell in enumerate(report.cells))
    return LimitPage(report, axis, tuple(row for section in sections for row in _rows(section, axis)), sections)


def _rates(cells: Sequence[CellLimit]) -> Iterable[float]:
    for cell in cells:
        for answer in cell.limits:
            yield from (each for each in (answer.passed_per_s, answer.failed_per_s) if each is not None)
        if cell.knee is not None:
            yield cell.knee.rate_per_s


def _rows(section: CellSection, axis: RateAxis | None) -> Iterable[AnswerRow]:
    cell, limits = section.cell, section.cell.limits
    if not limits:
        yield AnswerRow(cell, section.place, 0, None, None, 1)
    for place, answer in enumerate(limits):
        strip = _strip(cell, answer, axis) if axis else None
        yield AnswerRow(cell, section.place, place, answer, strip, len(limits))


def _strip(cell: CellLimit, answer: LimitAnswer, axis: RateAxis) -> Strip | None:
    low, high = answer.passed_per_s, answer.failed_per_s
    knee = None if cell.knee is None else axis.at(cell.knee.rate_per_s)
    if low is None and high is None:
        return None
    start, end = 0.0 if low is None else axis.at(low), 100.0 if high is None else axis.at(high)
    return Strip(start, round(end - start, 2), tuple(axis.at(each) for each in (low, high) if each is not None), knee)


def probe_note(probe: LimitProbe) -> str:
    """What there is to say of a probe beside its numbers."""
    phase = {"search": "", "curve": "for the curve", "confirm": "to confirm"}[probe.phase]
    state = "hopeless: ended early" if probe.hopeless else "did not keep up" if probe.overloaded else ""
    client = f"not the server: {probe.client}" if probe.client else ""
    start = f"start {probe.start + 1}" if probe.fresh or probe.start else ""
    return "; ".join(part for part in (state, client, phase or probe.why, start) if part)


class LimitHtmlRenderer:
    """LimitReport -> HTML. Texts are escaped; a content security policy allows our own style and scripts by hash."""

    def render(self, report: LimitReport) -> bytes:
        """The whole page; the same report gives the same bytes."""
        style = "\n".join(map(asset, ("vendor/uPlot.min.css", "page.css", "limit.css")))
        scripts = tuple(map(asset, ("vendor/uPlot.iife.min.js", "plot.js", "limit.js")))
        text = (
            _templates()
            .get_template("limit.html.j2")
            .render(
                report=report,
                page=limit_page(report),
                title=words.title(report),
                machine=machine_facts(report.environment),
                # Its `<`, `>` and `&` are written as JSON escapes, so it cannot leave its element.
                data=Markup(payload(report.cells)),  # noqa: S704
                style=Markup(style),  # noqa: S704
                scripts=tuple(map(Markup, scripts)),
                policy=policy(style, *scripts),
            )
        )
        return text.encode(errors="replace")


@cache
def _templates() -> Environment:
    made = templates().overlay()
    own = {"words": words, "rate": rate, "probe_note": probe_note}
    made.globals = {**templates().globals, **own}
    return made
