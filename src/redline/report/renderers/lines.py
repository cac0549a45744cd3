"""What a line of a board is called: the server without the options that its whole group of lines has in common."""

from collections.abc import Iterable
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
    """How lines are named: `defaults` are the values that slugs do not tell, `axis` the option that is stepped on."""

    defaults: dict[str, str]
    axis: str = ""

    def lines(self, pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Line]:
        """A line for each pair of slugs. What both have of their options is the setting, told where it varies."""
        shared = {pair: _shared(*pair) for pair in pairs}
        axes = {name for tokens in shared.values() for name in tokens} - {self.axis}
        varying = sorted(name for name in axes if len({tokens.get(name) for tokens in shared.values()}) > 1)
        return {
            (ours, theirs): Line(
                _without(ours, {*tokens, self.axis}),
                _without(theirs, {*tokens, self.axis}),
                self._told(tokens, varying),
            )
            for (ours, theirs), tokens in shared.items()
        }

    def _told(self, shared: dict[str, str], varying: Iterable[str]) -> str:
        said = (
            shared.get(name) or (f"{name}={self.defaults[name]}" if name in self.defaults else "") for name in varying
        )
        return " ".join(text for text in said if text)


def defaults_told(report: Report) -> dict[str, str]:
    """The values of options that slugs leave out, by option, as far as the effects of these options tell them."""
    names = {cell.cell_id: cell.server for cell in report.cells}
    found = {}
    for effect in report.effects:
        sides = ((effect.comparison.cell_id, effect.value), (effect.comparison.baseline_id, effect.reference))
        for cell_id, value in sides if effect.axis != SCENARIO else ():
            if effect.axis not in _options(names.get(cell_id, "")):
                found[effect.axis] = value
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


def _without(slug: str, hidden: set[str]) -> str:
    name, *tokens = slug.split("+")
    return "+".join([name, *(token for token in tokens if token.partition("=")[0] not in hidden)])
