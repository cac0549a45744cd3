"""Join several suites into one search: one suite, and the objectives of every cell. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redline.errors import UsageError
from redline.model import Cell, Objective, Suite
from redline.suite.planning import make_plan

T = TypeVar("T")

_FOR_ALL = {"seed": "seed", "threshold": "threshold", "load_hosts": "hosts", "host_retries": "hosts"}
"""Properties that all joined suites share, and their keys in a suite."""


@dataclass(frozen=True)
class SearchPart:
    """A suite to search, as `to_search` returns it, and its objectives by the names of their sets.

    `name` is the user's name for it: its file, or a server that is searched like the suite.
    """

    name: str
    suite: Suite
    sets: Mapping[str, tuple[Objective, ...]]

    @property
    def cells(self) -> Iterable[Cell]:
        """The cells of the suite."""
        return make_plan(self.suite).cells.values()

    def not_compared_with(self, first: "SearchPart") -> str:
        """The reason why no cell of this suite is compared with the first suite; empty if some are."""
        workloads = [{(cell.scenario.name, cell.load.name) for cell in part.cells} for part in (self, first)]
        if not set.intersection(*workloads):
            return "they have no scenario and load in common"
        if not set(self.sets.values()) & set(first.sets.values()):
            return "they have no objective in common"
        return ""


def join_suites(parts: Sequence[SearchPart]) -> Suite:
    """Join all servers, scenarios and loads into one suite.

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
                hint = "give both the same value: all suites of a search share it"
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
    """The sets of objectives of all suites, and the names of every cell's sets, by cell id.

    Equal sets are merged under the first name. If a name stands for different sets, the suite is added to it.
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
    """Merge the items of a kind from all suites, by name. Raises UsageError if a name stands for two things."""
    known = dict[str, tuple[str, T]]()
    for part in parts:
        for item in items(part):
            owner, same = known.setdefault(name(item), (part.name, item))
            if same == item:
                continue
            if isinstance(item, Cell):
                hint = "write the same `warmup`, `timeout` and `engine` in both, or remove the server from one suite"
                raise UsageError(f"{part.name} and {owner} measure {item.slug} differently", hint=hint)
            message = f"the {kind} `{name(item)}` of {part.name} is not that of {owner}"
            raise UsageError(message, hint="give both the same definition, or rename one of them")
    return tuple(item for _, item in known.values())
