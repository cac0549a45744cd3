"""Several suites as one search: one suite, and the objectives that each cell is asked for. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redline.errors import UsageError
from redline.model import Cell, Objective, Suite
from redline.suite.planning import make_plan

T = TypeVar("T")

_FOR_ALL = {"seed": "seed", "threshold": "threshold", "load_hosts": "hosts", "host_retries": "hosts"}
"""What joined suites have once, and the key that says it in a suite."""


@dataclass(frozen=True)
class SearchPart:
    """A suite that is searched, as `to_search` makes it, and its objectives by the names of their sets.

    `name` is what the user calls it: its file, or a server that is searched like the suite.
    """

    name: str
    suite: Suite
    sets: Mapping[str, tuple[Objective, ...]]

    @property
    def cells(self) -> Iterable[Cell]:
        """The cells of the suite."""
        return make_plan(self.suite).cells.values()

    def not_compared_with(self, first: "SearchPart") -> str:
        """Why no cell of this suite is compared with the first; empty where some are."""
        workloads = [{(cell.scenario.name, cell.load.name) for cell in part.cells} for part in (self, first)]
        if not set.intersection(*workloads):
            return "they have no scenario and load in common"
        if not set(self.sets.values()) & set(first.sets.values()):
            return "they have no objective in common"
        return ""


def join_suites(parts: Sequence[SearchPart]) -> Suite:
    """All servers, scenarios and loads in one suite.

    A server without a baseline in its suite is compared with the baseline of the first suite, or else with the first
    server there. Servers of the first suite are compared as it says. Raises UsageError where suites contradict each
    other.
    """
    first, *others = parts
    if not others:
        return first.suite
    for key, written in _FOR_ALL.items():
        for part in others:
            if getattr(part.suite, key) != getattr(first.suite, key):
                hint = "write both alike: there is one for all suites of a search"
                raise UsageError(f"`{written}` of {part.name} is not that of {first.name}", hint=hint)
    variants = _united("server", parts, lambda part: part.suite.variants, lambda variant: variant.slug)
    scenarios = _united("scenario", parts, lambda part: part.suite.scenarios, lambda scenario: scenario.name)
    loads = _united("load", parts, lambda part: part.suite.loads, lambda load: load.name)
    _united("cell", parts, lambda part: part.cells, lambda cell: cell.slug)
    anchor = first.suite.group_of(first.suite.variants[0].slug)
    baselines = dict[str, str | None]()
    for part in parts:
        for variant in part.suite.variants:
            own = part.suite.baseline_of(variant.slug)
            baselines.setdefault(variant.slug, own if own or part is first or variant.slug == anchor else anchor)
    return first.suite.joined(
        name=" and ".join(dict.fromkeys(part.suite.name for part in parts)),
        variants=variants,
        scenarios=scenarios,
        loads=loads,
        baselines={slug: baseline for slug, baseline in baselines.items() if baseline},
    )


def join_sets(parts: Sequence[SearchPart]) -> tuple[dict[str, tuple[Objective, ...]], dict[str, tuple[str, ...]]]:
    """The sets of objectives of all suites, and the names of those that a cell is asked for, by its id.

    Equal sets are one, under the first name. A name that stands for different sets also names the suite.
    """
    sets, asked = dict[str, tuple[Objective, ...]](), dict[str, dict[str, None]]()
    for part in parts:
        names = list[str]()
        for name, conditions in part.sets.items():
            known = next((known for known, same in sets.items() if same == conditions), None)
            names.append(known or (f"{name} ({part.name})" if name in sets else name))
            sets.setdefault(names[-1], conditions)
        for cell in part.cells:
            asked.setdefault(cell.id, {}).update(dict.fromkeys(names))
    return sets, {cell_id: tuple(names) for cell_id, names in asked.items()}


def _united(
    kind: str, parts: Sequence[SearchPart], items: Callable[[SearchPart], Iterable[T]], name: Callable[[T], str]
) -> tuple[T, ...]:
    """What the suites have of a kind, by name. Raises UsageError where one name stands for two things."""
    known = dict[str, tuple[str, T]]()
    for part in parts:
        for item in items(part):
            owner, same = known.setdefault(name(item), (part.name, item))
            if same == item:
                continue
            if isinstance(item, Cell):
                hint = "write the same `warmup`, `timeout` and `engine` in both, or leave the server out of one"
                raise UsageError(f"{part.name} measures {item.slug} otherwise than {owner}", hint=hint)
            message = f"the {kind} `{name(item)}` of {part.name} is not that of {owner}"
            raise UsageError(message, hint="write both alike, or give one of them another name")
    return tuple(item for _, item in known.values())
