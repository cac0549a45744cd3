"""Comparisons laid out: servers in rows, scenarios and loads in columns, a board per metric."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from redline.model import CellReport, Comparison, Metric, Report

SCENARIO = "scenario"
"""The axis of effects that is not an option."""


@dataclass(frozen=True)
class ServerPair:
    """A server against another, both with the same `setting`, such as `interceptor=off`; empty if none varies."""

    server: str
    against: str
    setting: str


@dataclass(frozen=True)
class Naming:
    """How rows are named: `axis` is the option that is stepped on.

    `defaults` are the option values that slugs leave out, by server and option: servers may have different defaults.
    """

    defaults: Mapping[tuple[str, str], str]
    axis: str = ""

    def named(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], ServerPair]:
        """Name rows by pair of slugs, no two alike. Options that both have are the setting, if it varies.

        If two pairs come out alike, all are named by their whole slugs: no number may take another's place.
        """
        shared = {pair: _shared(*pair) for pair in pairs}
        axes = {name for tokens in shared.values() for name in tokens} - {self.axis}
        varying = sorted(name for name in axes if len({tokens.get(name) for tokens in shared.values()}) > 1)
        lines = {
            (ours, theirs): ServerPair(
                _without(ours, {*tokens, self.axis}),
                _without(theirs, {*tokens, self.axis}),
                " ".join(text for name in varying if (text := tokens.get(name) or self._default(ours, theirs, name))),
            )
            for (ours, theirs), tokens in shared.items()
        }
        alike = len(set(lines.values())) < len(lines)
        return {pair: ServerPair(*pair, "") for pair in lines} if alike else lines

    def _default(self, ours: str, theirs: str, name: str) -> str:
        """Return the option with the default that both share; empty if that is not a single known value."""
        if name in _options(ours) or name in _options(theirs):
            return ""
        value, other = (self.defaults.get((_server(slug), name)) for slug in (ours, theirs))
        return f"{name}={value}" if value is not None and value == other else ""


def known_defaults(report: Report) -> dict[tuple[str, str], str]:
    """Return the option values that slugs leave out, by server and option, as far as effects of these options show."""
    names = {cell.cell_id: cell.server for cell in report.cells}
    defaults = {}
    for effect in report.effects:
        sides = ((effect.comparison.cell_id, effect.value), (effect.comparison.baseline_id, effect.reference))
        for cell_id, value in sides if effect.axis != SCENARIO else ():
            slug = names.get(cell_id, "")
            if slug and effect.axis not in _options(slug):
                defaults[_server(slug), effect.axis] = value
    return defaults


def against_in_short(server: str, against: str) -> str:
    """Return a server's baseline, without the options that both share."""
    return _without(against, set(_shared(server, against)))


def _shared(server: str, against: str) -> dict[str, str]:
    """Return the options, by name, that both slugs give with the same value."""
    ours, theirs = _options(server), _options(against)
    return {name: token for name, token in ours.items() if theirs.get(name) == token}


def _options(slug: str) -> dict[str, str]:
    """Return the options in a slug after the server's name: `interceptor=off` by `interceptor`, `http2` by itself."""
    return {token.partition("=")[0]: token for token in slug.split("+")[1:]}


def _server(slug: str) -> str:
    return slug.partition("+")[0]


def _without(slug: str, hidden: set[str]) -> str:
    name, *tokens = slug.split("+")
    return "+".join([name, *(token for token in tokens if token.partition("=")[0] not in hidden)])


@dataclass(frozen=True)
class Workload:
    """A scenario under a load."""

    scenario: str
    load: str


@dataclass(frozen=True)
class Board:
    """The comparisons of a metric by row and column, with the report's cells; uncompared pairs have no entry."""

    metric: Metric
    comparisons: dict[tuple[ServerPair, Workload], Comparison]
    cells: Mapping[str, CellReport]

    @cached_property
    def lines(self) -> tuple[ServerPair, ...]:
        """The rows in the report's order, by setting."""
        lines = tuple(dict.fromkeys(line for line, _ in self.comparisons))
        return tuple(line for setting in self.settings for line in lines if line.setting == setting)

    @cached_property
    def columns(self) -> tuple[Workload, ...]:
        """The columns in the report's order, by load."""
        columns = tuple(dict.fromkeys(column for _, column in self.comparisons))
        return tuple(column for load in self.loads for column in columns if column.load == load)

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """The settings of rows."""
        return tuple(dict.fromkeys(line.setting for line, _ in self.comparisons))

    @cached_property
    def loads(self) -> tuple[str, ...]:
        """The loads."""
        return tuple(dict.fromkeys(column.load for _, column in self.comparisons))

    @property
    def scenarios(self) -> tuple[str, ...]:
        """The scenarios."""
        return tuple(dict.fromkeys(column.scenario for column in self.columns))

    @property
    def against(self) -> str:
        """The baseline of every row; empty if they differ."""
        names = {line.against for line in self.lines}
        return names.pop() if len(names) == 1 else ""

    def parts(self, most_numbers: int = 48, most_columns: int = 6) -> tuple[tuple[str, "Board"], ...]:
        """Yield a part per load with its name; few numbers of several loads stay together, under no name."""
        if len(self.loads) > 1 and len(self.comparisons) <= most_numbers and len(self.columns) <= most_columns:
            return (("", self),)
        return tuple((load, self.under(load)) for load in self.loads)

    def title_of(self, column: Workload) -> str:
        """What distinguishes the column from the others: scenario, load or both."""
        names = (column.scenario if len(self.scenarios) > 1 else "", column.load if len(self.loads) > 1 else "")
        return " · ".join(name for name in names if name) or column.scenario

    def under(self, load: str) -> "Board":
        """The part that belongs to a load."""
        here = {key: comparison for key, comparison in self.comparisons.items() if key[1].load == load}
        return Board(self.metric, here, self.cells)


def cost_boards(report: Report) -> tuple[Board, ...]:
    """The cost of servers against their baselines, a board per metric; empty if nothing is compared."""
    cells = {cell.cell_id: cell for cell in report.cells}
    shown = [c for c in report.comparisons if c.cell_id in cells and cells[c.cell_id].role == "subject"]
    return _boards(shown, cells, Naming(known_defaults(report)))


@dataclass(frozen=True)
class EffectBoards:
    """A step on an axis, with a board per metric.

    The title is `interceptor: server-log against off`; for scenarios only the two names.
    """

    axis: str
    title: str
    boards: tuple[Board, ...]


def steps(report: Report) -> Iterator[EffectBoards]:
    """Return the effects by axis, value and reference, in the order in which they first appear."""
    cells = {cell.cell_id: cell for cell in report.cells}
    defaults = known_defaults(report)
    gathered: dict[tuple[str, str, str], list[Comparison]] = {}
    for effect in report.effects:
        if effect.comparison.cell_id in cells:
            gathered.setdefault((effect.axis, effect.value, effect.reference), []).append(effect.comparison)
    for (axis, value, reference), comparisons in gathered.items():
        title = f"{'' if axis == SCENARIO else f'{axis}: '}{value} against {reference}"
        yield EffectBoards(axis, title, _boards(comparisons, cells, Naming(defaults, axis)))


def _boards(kept: list[Comparison], cells: dict[str, CellReport], naming: Naming) -> tuple[Board, ...]:
    """Return a board for every metric in which something could be compared."""
    servers = {c.cell_id: cells[c.cell_id].server for c in kept} | {
        c.baseline_id: cells[c.baseline_id].server if c.baseline_id in cells else c.baseline_id for c in kept
    }
    lines = naming.named({(servers[c.cell_id], servers[c.baseline_id]) for c in kept})
    by_metric: dict[Metric, dict[tuple[ServerPair, Workload], Comparison]] = {metric: {} for metric in Metric}
    for c in kept:
        cell = cells[c.cell_id]
        place = lines[servers[c.cell_id], servers[c.baseline_id]], Workload(cell.scenario, cell.load)
        by_metric[c.metric][place] = c
    return tuple(
        Board(metric, compared, cells)
        for metric, compared in by_metric.items()
        if any(c.says_something for c in compared.values())
    )


def refusals(board: Board) -> Iterator[tuple[int, str, tuple[tuple[ServerPair, Workload], ...]]]:
    """Yield the reasons why comparisons were refused, numbered from 1, with the places."""
    reasons: dict[str, list[tuple[ServerPair, Workload]]] = {}
    for line in board.lines:
        for column in board.columns:
            comparison = board.comparisons.get((line, column))
            if comparison is not None and comparison.ratio is None:
                reasons.setdefault(comparison.refused or "no reason was given", []).append((line, column))
    for number, (reason, places) in enumerate(reasons.items(), 1):
        yield number, reason, tuple(places)
