"""The figures of a page. Their content also stands in tables."""

from dataclasses import dataclass
from typing import Literal

from redline.document.blocks import ChangeCell, PageBlock
from redline.document.scales import Scale
from redline.model import Verdict


@dataclass(frozen=True)
class Bar:
    """A bar with its start, its end and the end's interval, and the trials behind it; no change, so no `verdict`."""

    start: float
    end: float
    low: float | None
    high: float | None
    verdict: Verdict | None
    dots: tuple[float, ...] = ()


@dataclass(frozen=True)
class BarChart(PageBlock):
    """Named rows with a bar, or None, and its value as text. In a `joined` chart bars begin where the last ended."""

    title: str
    label: str
    scale: Scale
    rows: tuple[tuple[str, Bar | None, ChangeCell | str], ...]
    hint: str = ""
    joined: bool = False


@dataclass(frozen=True)
class Tile:
    """A number to see at a glance: its name, its text with what is beside it, whether it is bad, why to doubt it."""

    name: str
    value: str
    beside: str = ""
    is_bad: bool = False
    doubt: str = ""


@dataclass(frozen=True)
class Tiles(PageBlock):
    """Numbers to see at a glance."""

    tiles: tuple[Tile, ...]


@dataclass(frozen=True)
class Plot:
    """A plot that the page's script draws from the page's data, by kind and place."""

    kind: str
    title: str
    label: str


@dataclass(frozen=True)
class Legend:
    """An entry of a legend; `series` is its colour."""

    name: str
    series: int
    sign: Literal["subject", "ceiling", "box", "cross"] = "subject"


@dataclass(frozen=True)
class Plots(PageBlock):
    """Plots of a subject, which has this place in the page's data; `toggles` lets readers hide series."""

    place: int
    plots: tuple[Plot, ...]
    legend: tuple[Legend, ...]
    toggles: bool = False


@dataclass(frozen=True)
class Distributions(PageBlock):
    """Distributions of cells that the reader chooses, and differences of pairs if there are any, from the page's data.

    The script writes the choices, since a study has hundreds of cells.
    """

    has_pairs: bool


@dataclass(frozen=True)
class Stacked:
    """A bar of a length up to 1, with its value as text, and its parts, which add up to 1: colour, share and name.

    Colour -1 is for all parts without a colour.
    """

    name: str
    length: float
    value: str
    parts: tuple[tuple[int, float, str], ...]


@dataclass(frozen=True)
class StackedBars(PageBlock):
    """Named bars of coloured parts."""

    title: str
    rows: tuple[Stacked, ...]
    legend: tuple[Legend, ...]


@dataclass(frozen=True)
class Heat(PageBlock):
    """Rows of levels from 0 over time; above them a line, on a log scale, and marks below columns."""

    title: str
    label: str
    rows: tuple[tuple[str, tuple[int, ...]], ...]
    curve: tuple[int | None, ...]
    marks: tuple[bool, ...]
    curve_label: str
    hint: str = ""


@dataclass(frozen=True)
class RunCourse:
    """A number from run to run: `points` are its value and its interval's ends, or None for a run without it.

    `eras` are the points at which another era begins; `changes` the points from which the level differs. `first` and
    `last` name the first and the last run, `ticks` are values of the scale, as numbers and as text, the lowest first.
    """

    title: str
    hint: str
    value: str
    label: str
    points: tuple[tuple[float, float | None, float | None] | None, ...]
    ticks: tuple[tuple[float, str], ...]
    first: str
    last: str
    eras: tuple[int, ...] = ()
    changes: tuple[tuple[int, Verdict], ...] = ()


@dataclass(frozen=True)
class Courses(PageBlock):
    """Courses, side by side where there is room."""

    courses: tuple[RunCourse, ...]


@dataclass(frozen=True)
class Flames(PageBlock):
    """The flame graphs of the page's data; its script draws a single graph at a time."""

    title: str


@dataclass(frozen=True)
class FlameBox:
    """A frame: where it begins and how wide it is, of 1; its verdict, or None if that is not sure."""

    name: str
    about: str
    row: int
    start: float
    width: float
    verdict: Verdict | None


@dataclass(frozen=True)
class FlameDifference(PageBlock):
    """A flame graph of two profiles in one, whose colours say what surely differs; callers are above."""

    title: str
    label: str
    boxes: tuple[FlameBox, ...]
    hint: str

    @property
    def rows(self) -> int:
        """The number of rows."""
        return 1 + max(box.row for box in self.boxes)


@dataclass(frozen=True)
class Pivot(PageBlock):
    """A table of all cells of the page's data, which its script lays out as a reader chooses."""

    title: str


@dataclass(frozen=True)
class Panels(PageBlock):
    """Figures, side by side where there is room."""

    blocks: tuple[BarChart, ...]


@dataclass(frozen=True)
class TimeView(PageBlock):
    """Panels on one time axis, of which the page's script draws one item at a time; `name` is their place in its data.

    `noun` is what an item is; `label` names the view. With a `place`, it shows only the item there.
    """

    name: Literal["trials", "duets", "probes"]
    noun: str
    label: str
    place: int | None = None
