"""Flame graphs as files, from the same data as the page's: each profile alone, and against its baseline."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from redline.document.figures import FlameDifference
from redline.model import Report, Verdict
from redline.quantities import duration, percent
from redline.render.svg.elements import CHARACTER, INK, MUTED, WIDTH, add, add_text, as_file, new_picture
from redline.render.svg.run_charts import SERIES
from redline.report.profiles import PlotProfile, PlotProfiles, profiles_payload
from redline.report.why import difference_flames
from redline.visible import visible

_ROW, _TOP, _SIDE, _FOOT = 19, 50, 16, 30
_LEAST = 0.6
"""Narrower frames are left out, in pixels, as on the page."""
_TEXT_FROM = 28
_SAME = 0.02
_MORE, _LESS, _FEWER, _PLAIN, _NONE = "#c4501b", "#2462c9", "#1f8a70", "#e7e8ea", "#9aa0a9"


@dataclass
class _Frame:
    """A node of the tree: its frame, -1 for all; its weight here and in the baseline; and its callees by frame."""

    frame: int
    library: int
    weight: float = 0.0
    other: float = 0.0
    below: dict[int, "_Frame"] = field(default_factory=dict)


def flame_files(report: Report) -> Iterator[tuple[str, bytes]]:
    """Each picture by a name such as `http4s.tapir.SimpleGet.saturate.server-cpu-flames`."""
    data = profiles_payload(report)
    if data is None:
        return
    sound = [profile for profile in report.profiles if not profile.problem]
    for profile, drawn in zip(sound, data["profiles"], strict=True):
        name = f"{profile.slug}.{profile.subject}-{profile.kind}-flames"
        yield name, _draw(data, drawn, None)
        if drawn["against"] is not None:
            other = sound[drawn["against"]]
            yield f"{name}-against-{other.slug}", _draw(data, drawn, data["profiles"][drawn["against"]])


def difference_files(report: Report) -> Iterator[tuple[str, bytes]]:
    """The flame graph of each difference that is divided, by a name such as `B.requests.load.why`."""
    slugs = {cell.cell_id: cell.slug for cell in report.cells}
    for why in report.why:
        for flames in difference_flames(report, why):
            yield f"{slugs[why.cell_id]}.why", _draw_difference(flames)


def _draw_difference(flames: FlameDifference) -> bytes:
    svg = new_picture(flames.title, "", _TOP + flames.rows * _ROW + _FOOT)
    for box in flames.boxes:
        width = box.width * (WIDTH - 2 * _SIDE)
        if width < _LEAST:
            continue
        x, y = _SIDE + box.start * (WIDTH - 2 * _SIDE), _TOP + box.row * _ROW
        group = add(svg, "g")
        ET.SubElement(group, "title").text = visible(box.about)
        colour = _NONE if box.verdict is None else _MORE if box.verdict is Verdict.SLOWER else _FEWER
        add(
            group, "rect", x=round(x, 2), y=y, width=round(max(width - 0.8, 0.4), 2), height=_ROW - 1, fill=colour,
            fill_opacity=0.45,
        )  # fmt: skip
        if width > _TEXT_FROM and (text := _fitted(box.name, int((width - 9) / CHARACTER))):
            add_text(group, x + 4, y + 13, text, fill=INK)
    add_text(svg, _SIDE, _TOP + flames.rows * _ROW + 20, flames.hint, fill=MUTED)
    return as_file(svg)


def _draw(data: PlotProfiles, profile: PlotProfile, against: PlotProfile | None) -> bytes:
    """The file. Against another, frames are as wide as here, and their colour says how they differ."""
    per_request = against is not None and bool(profile["cpu"]) and bool(against["cpu"])
    own = _worth(profile, per_request=per_request)
    top = _Frame(-1, -1, profile["total"] * own)
    _grow(top, data, profile, own)
    if against is not None:
        theirs = _worth(against, per_request=per_request)
        top.other = against["total"] * theirs
        _grow(top, data, against, theirs, is_other=True)
    boxes = list(_boxes(top))
    rows = 1 + max(row for _, row, _, _ in boxes)
    unit = "CPU time per request" if per_request else "its share"
    about = f"{profile['group']}: {profile['name']}"
    if against is not None:
        about += (
            f"; {unit} against {against['name']} ({against['group']})"
            if against["group"] != profile["group"]
            else (f"; {unit} against {against['name']}")
        )
    svg = new_picture(
        "Flame graph" if against is None else "Flame graph of a difference", about, _TOP + rows * _ROW + _FOOT
    )
    for frame, row, x, width in boxes:
        _box(svg, data, top, frame, (x, _TOP + row * _ROW, width), against and against["name"], per_request=per_request)
    key = (
        "width: share of samples; colour: the library that it counts for; the outermost frame is above"
        if against is None
        else "width: share of samples here; orange: more than there, blue: less, grey: the same"
    )
    add_text(svg, _SIDE, _TOP + rows * _ROW + 20, key, fill=MUTED)
    return as_file(svg)


def _worth(profile: PlotProfile, *, per_request: bool) -> float:
    """What a unit of weight is worth: CPU time per request, or a share."""
    return ((profile["cpu"] or 1.0) if per_request else 1.0) / (profile["total"] or 1)


def _grow(top: _Frame, data: PlotProfiles, profile: PlotProfile, worth: float, *, is_other: bool = False) -> None:
    """Add the stacks of a profile, all threads together; what a thread of a library does is the library's."""
    nodes, path, owner = profile["nodes"], [top], -1
    for at in range(0, len(nodes), 4):
        depth, frame, weight = nodes[at : at + 3]
        if depth == 0:
            owner = data["of"][frame]
            continue
        above = path[depth - 1]
        library = data["of"][frame] if owner < 0 else owner
        node = above.below.setdefault(frame, _Frame(frame, library))
        if is_other:
            node.other += weight * worth
        else:
            node.weight += weight * worth
        path[depth:] = [node]


def _boxes(top: _Frame) -> Iterator[tuple[_Frame, int, float, float]]:
    """Each frame that is wide enough, with its row, its beginning and its width in pixels."""
    waiting = [(top, 0, float(_SIDE), float(WIDTH - 2 * _SIDE))]
    while waiting:
        frame, row, x, width = waiting.pop()
        yield frame, row, x, width
        for below in sorted(frame.below.values(), key=lambda other: -other.weight):
            share = width * below.weight / frame.weight if frame.weight else 0.0
            if share >= _LEAST:
                waiting.append((below, row + 1, x, share))
            x += share


def _box(  # noqa: PLR0913, PLR0917 - a frame, and what it is drawn against
    svg: ET.Element,
    data: PlotProfiles,
    top: _Frame,
    frame: _Frame,
    place: tuple[float, int, float],
    against: str | None,
    *,
    per_request: bool,
) -> None:
    x, y, width = place
    name = "all" if frame.frame < 0 else data["frames"][frame.frame]
    group = add(svg, "g")
    said = f"{name}: {percent(frame.weight / (top.weight or 1.0))}"
    if against is not None:
        amount = duration if per_request else percent
        said += f", {amount(frame.weight)} against {amount(frame.other)} in {against}"
    ET.SubElement(group, "title").text = visible(said)
    colour, opacity = _fill(data, frame, is_difference=against is not None)
    add(
        group, "rect", x=round(x, 2), y=y, width=round(max(width - 0.8, 0.4), 2), height=_ROW - 1, fill=colour,
        fill_opacity=round(opacity, 2),
    )  # fmt: skip
    if width > _TEXT_FROM and (text := _fitted(name, int((width - 9) / CHARACTER))):
        add_text(group, x + 4, y + 13, text, fill=INK)


def _fill(data: PlotProfiles, frame: _Frame, *, is_difference: bool) -> tuple[str, float]:
    if is_difference:
        change = (frame.weight - frame.other) / max(frame.weight, frame.other, 1e-12)
        if frame.frame < 0 or abs(change) < _SAME:
            return _PLAIN, 1.0
        return (_MORE if change > 0 else _LESS), 0.12 + 0.5 * abs(change)
    if frame.frame < 0:
        return _PLAIN, 1.0
    colour = data["colours"][frame.library] if frame.library >= 0 else -1
    return (SERIES[colour] if colour >= 0 else _NONE), 0.34 + 0.05 * (frame.frame % 4)


def _fitted(name: str, most: int) -> str:
    """As much of the name's end as fits: the function says more than its package."""
    if len(name) <= most:
        return name
    for sign in ".:/":
        last = name.rpartition(sign)[2]
        if 2 < len(last) <= most:
            return last
    return f"{name[: most - 1]}…" if most > 3 else ""
