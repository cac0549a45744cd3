"""Profiles: libraries, functions and threads, their differences, and the flame graphs' data."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypedDict

from redline.document import format as fmt
from redline.document.blocks import (
    Block,
    Column,
    Fold,
    Line,
    Look,
    Medium,
    Prose,
    Section,
    Span,
    Table,
    TableCell,
    filled,
    key,
    line,
    words,
)
from redline.document.figures import Flames, Heat, Legend, Stacked, StackedBars
from redline.model import Estimate, HeatMap, Metric, Points, ProfileChange, ProfileKind, ProfileReport, Report

TITLE = "Where the time goes"
OF: Mapping[ProfileKind, str] = {
    "cpu": "CPU time",
    "wall": "time of threads, running or not",
    "alloc": "memory allocated",
    "lock": "time waiting for locks",
}
_PURPOSES = {
    "Java Heap": "the heap",
    "Class": "classes",
    "Thread": "stacks of threads",
    "Code": "compiled code",
    "GC": "the collector",
    "Compiler": "the compilers",
    "Other": "buffers outside of the heap (Other)",
    "Symbol": "symbols",
    "Native Memory Tracking": "counting this",
}
"""The meanings of HotSpot's names; other names stand as they are."""
_COLOURS = 8
_LIBRARIES = 16
_LEAST = 0.005
"""Shares and points below a half percent are left out of tables on a terminal and of sentences."""
_ALPHA = 0.05
_NAMED = 5
_FUNCTIONS = 5
_THREADS = 6
_WIDE = 4.0
_SKEWED = 0.1
"""The skew of an interval from which its ends are given in place of its half width."""
_IN_FULL = 4
"""Up to this number of profiles text shows functions; the page always does."""
_WITH_CALLEES = 2
"""Up to this number of profiles side by side text shows the total time of libraries; the page always does."""
_ALWAYS = frozenset({"Thread", "Other"})
"""Threads' stacks and buffers are always shown, however small they are."""
_LEVELS = 6
_FAINT = 0.02
"""A library whose share of every column is below this never looks dark: it would be noise."""
_BIASES = (
    "Profiled on **extra starts**, which no other number includes. Each sample counts for the innermost library on its "
    "stack; runtimes' own libraries count for their callers, the kernel for none. Intervals of 95% say how well these "
    "starts are known; others may differ."
)
_HOW = (
    " Width is the share of samples, colour the library. Click a frame, or press Enter on it, to zoom; arrows move, "
    "Escape zooms out."
)


class PlotProfile(TypedDict):
    """A profile for the page: its name, the value of a sample, its baselines, and its tree.

    `nodes` are depth, frame, weight and weight in slow moments of the nodes, in preorder; `against` is the index of its
    baseline, else of the lowest rate.
    """

    name: str
    group: str
    kind: str
    unit: str
    total: int
    slow: int
    cpu: float | None
    against: int | None
    nodes: list[int]


class PlotProfiles(TypedDict):
    """All flame graphs of a page. `of` are the libraries of frames, -1 for none; `colours` those of libraries."""

    frames: list[str]
    of: list[int]
    libraries: list[str]
    colours: list[int]
    profiles: list[PlotProfile]


def profile_sections(report: Report) -> Iterator[Section]:
    """Differences per scenario, load and kind, and the libraries and functions with the largest shares.

    The page also has bars, a flame graph, heat maps, threads and files.
    """
    groups: dict[str, list[ProfileReport]] = {}
    for profile in report.profiles:
        groups.setdefault(_title(profile), []).append(profile)
    if not groups and (report.why or not report.unprofiled):
        return
    colours = _colours(report)
    unprofiled = (f"Not profiled: {cell.slug}: {cell.reason}." for cell in report.unprofiled)
    blocks: list[Block | None] = [Prose((key(_BIASES),), on=Medium.PAGE), Prose.of(unprofiled, listed=True)]
    in_full = len(report.profiles) <= _IN_FULL
    for title, members in groups.items():
        bars = _bars(members, colours)
        every = Fold(line("All libraries with intervals"), (_libraries(members),), open=False, on=Medium.PAGE)
        inner = (
            Prose(tuple(_sentences(members, report)), listed=True),
            replace(_libraries(members, _LEAST, _LIBRARIES), on=Medium.TEXT if bars else Medium.EVERYWHERE),
            bars,
            every if bars else None,
            *(_in_text(members) if in_full else ()),
            _native(members),
            Prose.of(_notes(members), "dim"),
        )
        blocks.append(Fold(line(title), tuple(filled(*inner))))
    sound = _sound(report.profiles)
    if sound:
        least = max(profile.graph.least for profile in sound)
        pruned = f"Frames below {fmt.percent(least)} of a profile are left out."
        blocks += [Flames("Flame graph"), Prose((key(f"{_HOW.strip()} {pruned}"),), on=Medium.PAGE)]
    for profile in sound:
        blocks.append(Fold(line(_heading(profile)), tuple(_details(profile)), open=False, on=Medium.PAGE))
    yield Section(TITLE, tuple(filled(*blocks)), anchor="profiles")


def _in_text(members: Sequence[ProfileReport]) -> Iterator[Block]:
    """The functions of profiles, which the page has in their own folds."""
    for profile in _sound(members):
        name = _name(profile, members)
        yield replace(_functions(profile, _FUNCTIONS, line((name, "strong"))), on=Medium.TEXT)
        changed = _changed(profile.change, _FUNCTIONS, f"{name}: functions that differ most from the baseline")
        yield replace(changed, on=Medium.TEXT)


def has_profiles(report: Report) -> bool:
    """Whether any profile can be drawn."""
    return bool(_sound(report.profiles))


def profiles_payload(report: Report) -> PlotProfiles | None:
    """The data of all flame graphs; frames that profiles share are stored once."""
    sound = _sound(report.profiles)
    if not sound:
        return None
    libraries = _colours(report)
    numbers = {name: place for place, name in enumerate(libraries)}
    frames: dict[str, int] = {}
    of: list[int] = []
    places = {(profile.cell_id, profile.kind, profile.subject): place for place, profile in enumerate(sound)}
    profiles: list[PlotProfile] = []
    for profile in sound:
        local = []
        for frame, library in zip(profile.graph.frames, profile.graph.libraries, strict=True):
            if frame not in frames:
                frames[frame] = len(frames)
                of.append(numbers.get(library, -1))
            local.append(frames[frame])
        held = profile.change or profile.by_rate
        flat = [
            part for node in profile.graph.nodes for part in (node.depth, local[node.frame], node.weight, node.slow)
        ]
        profiles.append(
            {
                "name": profile.server,
                "group": _title(profile),
                "kind": f"{profile.subject} {profile.kind}",
                "unit": profile.unit,
                "total": profile.graph.total,
                "slow": profile.graph.slow,
                "cpu": profile.cpu_per_request_ns,
                "against": places.get((held.against, profile.kind, profile.subject)) if held else None,
                "nodes": flat,
            }
        )
    return {
        "frames": list(frames),
        "of": of,
        "libraries": list(libraries),
        "colours": list(libraries.values()),
        "profiles": profiles,
    }


def sentence(change: ProfileChange, server: str, baseline: str) -> Line:
    """`http4s.tapir against http4s.vanilla: +24.0% CPU per request [+23.1, +24.9]. Points of it: tapir +3.9 ±0.4, …`.

    If the ratio is too uncertain to say what a library costs, their shares may still differ.
    """
    listed = _listed(change.libraries)
    if not change.against:
        return line(f"{server}, slow moments against the rest, in points of share: ", *listed, ".")
    begin, none = f"{server} against {baseline}", "no library differs by more than chance"
    if change.ratio is None:
        return line(f"{begin}, in points of share: ", *(listed or [none]), ".")
    total = f"{begin}: {fmt.change(change.ratio)} CPU per request {fmt.change_bounds(change.ratio)}"
    if listed:
        return line(f"{total.rstrip()}. In points of that: ", *listed, ".")
    if by_share := _listed(change.shares):
        unknown = "What each library adds to that is not known; in points of share: "
        return line(f"{total.rstrip()}. {unknown}", *by_share, ".")
    return line(f"{total.rstrip()}. {none.capitalize()}.")


def _listed(points: Iterable[Points]) -> list[str | tuple[str, Look]]:
    """The first significant libraries: `tapir +3.9 ±0.4, cats …`."""
    listed: list[str | tuple[str, Look]] = []
    for library in [library for library in points if _is_certain(library)][:_NAMED]:
        listed += [", " if listed else "", (library.name, "strong"), f" {_points(library.points)}"]
    return listed


def _is_certain(library: Points) -> bool:
    """Whether it is large enough to name, and significant."""
    return abs(library.points.value) >= _LEAST and library.p_adjusted is not None and library.p_adjusted < _ALPHA


def _points(estimate: Estimate) -> str:
    """`+3.9 ±0.4`, or `+51.0 [+23.4, +109.2]` if the interval is skewed."""
    text = fmt.signed(100 * estimate.value, 1)
    if estimate.low is None or estimate.high is None:
        return text
    below, above = 100 * (estimate.value - estimate.low), 100 * (estimate.high - estimate.value)
    if abs(above - below) > _SKEWED * (above + below):
        return f"{text} [{fmt.signed(100 * estimate.low, 1)}, {fmt.signed(100 * estimate.high, 1)}]"
    return f"{text} ±{(below + above) / 2:.1f}"


def _title(profile: ProfileReport) -> str:
    of = f"{OF[profile.kind]} of the {profile.subject}" if profile.subject != "server" else OF[profile.kind]
    return f"{of[0].upper()}{of[1:]} · {profile.scenario} · {profile.load}"


def _name(profile: ProfileReport, members: Sequence[ProfileReport]) -> str:
    return profile.server if len({member.server for member in members}) == len(members) else profile.slug


def _heading(profile: ProfileReport) -> str:
    return f"{profile.server} · {_title(profile)}"


def _sound(members: Iterable[ProfileReport]) -> tuple[ProfileReport, ...]:
    return tuple(member for member in members if not member.problem)


def _sentences(members: Sequence[ProfileReport], report: Report) -> Iterator[Line]:
    servers = {cell.cell_id: cell.server for cell in report.cells}
    loads = {cell.cell_id: cell.load for cell in report.cells}
    for member in members:
        if member.problem:
            yield line((f"{_name(member, members)} has no profile: ", "strong"), f"{member.problem}.")
        elif member.change:
            yield sentence(member.change, member.server, servers.get(member.change.against, "its baseline"))
    for profile in _sound(members):
        if change := profile.by_rate:
            against = loads.get(change.against, "a lower rate")
            yield sentence(change, f"{profile.server} under {profile.load}", against)
    for profile in _sound(members):
        if profile.slow and any(_is_certain(library) for library in profile.slow.libraries):
            yield sentence(profile.slow, profile.server, "")


def _libraries(members: Sequence[ProfileReport], least: float = 0.0, most: int | None = None) -> Table:
    """A row per library with at least this share anywhere, the largest first; a column per server."""
    sound = _sound(members)
    names = [name for name, share in _largest(sound) if share >= least]
    by_server = [{library.name: library for library in profile.libraries} for profile in sound]
    rows = []
    for name in names[:most]:
        cells = [
            _share(shares[name].share, shares[name].total if len(sound) <= _WITH_CALLEES or least == 0 else None)
            if name in shares
            else words("\u2013", look="dim")
            for shares in by_server
        ]
        rows.append((name, *cells))
    columns = (Column("library"), *(Column(_name(profile, members), "right") for profile in sound))
    return Table(columns, tuple(rows) if sound else ())


def _native(members: Sequence[ProfileReport]) -> Table:
    """A row per purpose of memory, the largest anywhere first; a column per server."""
    sound = [profile for profile in _sound(members) if profile.native]
    by_server = [{part.purpose: part.committed_bytes for part in profile.native} for profile in sound]
    largest = Counter[str]()
    for purposes in by_server:
        largest |= Counter(purposes)
    rows = tuple(
        (
            _PURPOSES.get(purpose, purpose),
            *(fmt.size(purposes[purpose]) if purpose in purposes else "\u2013" for purposes in by_server),
        )
        for purpose, most in largest.most_common()
        if most >= _LEAST * sum(largest.values()) or purpose in _ALWAYS
    )
    columns = (Column("memory that the JVM has for"), *(Column(_name(profile, members), "right") for profile in sound))
    return Table(columns, rows, title=line(("What the JVM itself counts, at the end of the profile", "strong")))


def _share(own: Estimate, total: Estimate | None) -> TableCell:
    return words(_percent(own), "" if total is None else f"{_percent(total)} with what it calls")


def _percent(share: Estimate) -> str:
    half = "" if share.low is None or share.high is None else f" ±{50 * (share.high - share.low):.1f}"
    return f"{100 * share.value:.1f}%{half}"


def _functions(profile: ProfileReport, most: int, title: Line = ()) -> Table:
    """The functions with the most own time. Their names are long: they come last, where a terminal folds them."""
    rows = tuple(
        (f"{100 * frame.self_share:.1f}%", f"{100 * frame.total_share:.1f}%", frame.library, frame.frame)
        for frame in profile.frames[:most]
    )
    columns = (Column("self", "right"), Column("with callees", "right"), Column("counts for"), Column("function"))
    return Table(columns, rows, title=title)


def _changed(change: ProfileChange | None, most: int, title: str) -> Table:
    """The functions that explain a difference, if they are significant."""
    certain = [frame for frame in change.frames if _is_certain(frame)][:most] if change else []
    rows = tuple((_points(frame.points), frame.name) for frame in certain)
    return Table((Column("points", "right"), Column("function")), rows, title=line((title, "strong")))


def _notes(members: Sequence[ProfileReport]) -> Iterator[str]:
    """Describe the samples and their profiler; once if all are alike."""
    by: dict[str, list[str]] = {}
    for profile in _sound(members):
        lost = f", {fmt.integer(profile.lost)} lost" if profile.lost else ""
        every = fmt.size(profile.interval) if profile.kind == "alloc" else fmt.duration(profile.interval)
        starts = "one start" if len(profile.positions) == 1 else f"{len(profile.positions)} starts"
        by.setdefault(f"{profile.profiler}, {profile.event}, every {every}, {starts}", []).append(
            f"{_name(profile, members)} {fmt.integer(profile.samples)} samples{lost}"
        )
    for how, samples in by.items():
        yield f"Sampled by {how}: {', '.join(samples)}."
    for profile in _sound(members):
        if profile.cut:
            yield (
                f"{fmt.percent(profile.cut)} of the samples of {_name(profile, members)} have stacks deeper than "
                f"{profile.deepest} frames: their outer callers are unknown, so totals of these are at least what is "
                "shown. To follow them further: `sysctl kernel.perf_event_max_stack=1024`."
            )
    for profile in _sound(members):
        if profile.unknown:
            yield f"Unknown in {_name(profile, members)}, because {profile.unknown}."
    for profile in _sound(members):
        threads = ", ".join(
            f"{thread.name}{f' ({thread.threads})' if thread.threads > 1 else ''} {fmt.percent(thread.share)}"
            for thread in profile.threads[:_THREADS]
        )
        if len(profile.threads) > 1:
            yield f"Threads of {_name(profile, members)}: {threads}."
    if costs := [f"{_name(profile, members)} {_overhead(profile)}" for profile in _sound(members) if profile.overhead]:
        yield f"Under the profiler: {'; '.join(costs)}."


def _overhead(profile: ProfileReport) -> str:
    """`CPU per request +3.1% [+1.0, +5.2], throughput -2.0% [-2.9, -1.1]`."""
    shown = (Metric.CPU_PER_REQUEST, Metric.THROUGHPUT)
    return ", ".join(
        f"{fmt.label(metric)} {_cost(profile.overhead[metric])}" for metric in shown if metric in profile.overhead
    )


def _cost(ratio: Estimate) -> str:
    """Not known if trials differ so much that digits would mean nothing."""
    known = ratio.low is not None and ratio.high is not None and ratio.high < _WIDE * ratio.low
    return fmt.with_bounds(ratio) if known else "not known"


def _colours(report: Report) -> dict[str, int]:
    """The colours of libraries, the largest first; -1 for none."""
    ranked = _largest(_sound(report.profiles))
    return {name: place if place < _COLOURS else -1 for place, (name, _) in enumerate(ranked)}


def _largest(profiles: Iterable[ProfileReport]) -> list[tuple[str, float]]:
    """The libraries with their largest shares, in descending order."""
    largest: dict[str, float] = {}
    for profile in profiles:
        for library in profile.libraries:
            largest[library.name] = max(largest.get(library.name, 0.0), library.share.value)
    return sorted(largest.items(), key=lambda known: (-known[1], known[0]))


def _parts(profile: ProfileReport, colours: Mapping[str, int]) -> tuple[tuple[int, float, str], ...]:
    """The coloured libraries in the order of their colours, so that bars can be compared; then all others."""
    shares = {library.name: library.share.value for library in profile.libraries}
    shown = [(colour, shares[name], name) for name, colour in colours.items() if colour >= 0 and name in shares]
    rest = 1 - sum(share for _, share, _ in shown)
    return (*shown, *(((-1, rest, "all others"),) if rest >= 0.0005 else ()))


def _bars(members: Sequence[ProfileReport], colours: Mapping[str, int]) -> StackedBars | None:
    """A bar per profile, as long as its CPU time per request if that is known for all."""
    sound = _sound(members)
    if not sound:
        return None
    costs = [profile.cpu_per_request_ns for profile in sound]
    known = [cost for cost in costs if cost]
    most = max(known, default=0.0) if len(known) == len(sound) else 0.0
    rows = tuple(
        Stacked(
            _name(profile, members),
            cost / most if most and cost else 1.0,
            fmt.duration(cost) if most and cost else "",
            _parts(profile, colours),
        )
        for profile, cost in zip(sound, costs, strict=True)
    )
    present = {library.name for profile in sound for library in profile.libraries}
    named = tuple(Legend(name, colour, "box") for name, colour in colours.items() if colour >= 0 and name in present)
    title = "CPU time per request by library" if most else "Share by library"
    return StackedBars(title, rows, (*named, Legend("all others", -1, "box")))


def _details(profile: ProfileReport) -> Iterator[Block]:
    yield _functions(profile, len(profile.frames), line(("Functions that ran most", "strong")))
    yield from filled(
        _changed(profile.change, len(profile.frames), "Functions that differ most from the baseline, in points"),
        _changed(profile.by_rate, len(profile.frames), "Functions that differ most from the lowest rate, in points"),
        _changed(profile.slow, len(profile.frames), "Functions of slow moments, in points of share"),
    )
    threads = tuple(
        (thread.name, fmt.integer(thread.threads), f"{100 * thread.share:.1f}%") for thread in profile.threads
    )
    if threads:
        columns = (Column("threads"), Column("number", "right"), Column("share", "right"))
        yield Table(columns, threads, title=line(("Threads, by name without numbers", "strong")))
    if profile.heat and any(profile.heat.totals):
        yield _heat(profile, profile.heat)
    links = tuple(Span(file.name.rpartition("/")[2], link=file.name) for file in profile.files)
    if links:
        parted = tuple(part for link in links for part in (Span(", "), link))[1:]
        yield Prose(((Span("Files: "), *parted),))


def _heat(profile: ProfileReport, heat: HeatMap) -> Heat:
    """The shares of libraries over time, relative to their own maximum: small libraries have a course, too."""
    levels = []
    for row in heat.rows:
        shares = [weight / total if total else 0.0 for weight, total in zip(row.weights, heat.totals, strict=True)]
        most = max(_FAINT, *shares)
        mean = sum(row.weights) / max(1, sum(heat.totals))
        name = f"{row.name} {fmt.percent(mean)}"
        levels.append((name, tuple(min(_LEVELS - 1, int(share / most * _LEVELS)) for share in shares)))
    lasts = fmt.duration(1e9 * heat.column_s)
    known = [ns for ns in heat.p99_ns if ns]
    span = f"p99 {fmt.duration(min(known))} to {fmt.duration(max(known))}" if known else ""
    label = f"{_heading(profile)}: the share of each library over time, in columns of {lasts}"
    hint = f"columns of {lasts}; each row is darkest where its own share is largest"
    return Heat("Over time", label, tuple(levels), heat.p99_ns, heat.slow, span, hint)
