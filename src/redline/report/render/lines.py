"""What a line of a board is called: the server without the options that its whole group of lines has in common."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redline.model import Report

SCENARIO = "scenario"
"""The one axis of effects that is no option."""


@dataclass(frozen=True)
class Line:
    """One server against another, both with the same `setting`, such as `interceptor=off`; empty when none varies."""

    server: str
    against: str
    setting: str


@dataclass(frozen=True)
class Naming:
    """How lines are named: `axis` is the option that is stepped on.

    `defaults` are the values that slugs do not tell, by server and option: two servers may have different ones.
    """

    defaults: Mapping[tuple[str, str], str]
    axis: str = ""

    def lines(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Line]:
        """A line for each pair of slugs, no two alike. What both have of their options is the setting, where it varies.

        Should two pairs come out alike, all are named by their whole slugs: no number may take another's place.
        """
        shared = {pair: _shared(*pair) for pair in pairs}
        axes = {name for tokens in shared.values() for name in tokens} - {self.axis}
        varying = sorted(name for name in axes if len({tokens.get(name) for tokens in shared.values()}) > 1)
        lines = {
            (ours, theirs): Line(
                _without(ours, {*tokens, self.axis}),
                _without(theirs, {*tokens, self.axis}),
                " ".join(text for name in varying if (text := tokens.get(name) or self._default(ours, theirs, name))),
            )
            for (ours, theirs), tokens in shared.items()
        }
        alike = len(set(lines.values())) < len(lines)
        return {pair: Line(*pair, "") for pair in lines} if alike else lines

    def _default(self, ours: str, theirs: str, name: str) -> str:
        """The option with the value that both have without telling it; empty when that is not one known value."""
        if name in _options(ours) or name in _options(theirs):
            return ""
        value, other = (self.defaults.get((_server(slug), name)) for slug in (ours, theirs))
        return f"{name}={value}" if value is not None and value == other else ""


def defaults_told(report: Report) -> dict[tuple[str, str], str]:
    """The values of options that slugs leave out, by server and option, as far as effects of these options tell."""
    names = {cell.cell_id: cell.server for cell in report.cells}
    found = {}
    for effect in report.effects:
        sides = ((effect.comparison.cell_id, effect.value), (effect.comparison.baseline_id, effect.reference))
        for cell_id, value in sides if effect.axis != SCENARIO else ():
            slug = names.get(cell_id, "")
            if slug and effect.axis not in _options(slug):
                found[_server(slug), effect.axis] = value
    return found


def against_in_short(server: str, against: str) -> str:
    """What a server is held against, without the options that both have alike."""
    return _without(against, set(_shared(server, against)))


def _shared(server: str, against: str) -> dict[str, str]:
    """The options, by name, that both slugs tell with the same value."""
    ours, theirs = _options(server), _options(against)
    return {name: token for name, token in ours.items() if theirs.get(name) == token}


def _options(slug: str) -> dict[str, str]:
    """What a slug tells beside the server's name: `interceptor=off` by `interceptor`, `http2` by itself."""
    return {token.partition("=")[0]: token for token in slug.split("+")[1:]}


def _server(slug: str) -> str:
    return slug.partition("+")[0]


def _without(slug: str, hidden: set[str]) -> str:
    name, *tokens = slug.split("+")
    return "+".join([name, *(token for token in tokens if token.partition("=")[0] not in hidden)])
