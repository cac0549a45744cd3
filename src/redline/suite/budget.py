"""How a budget is spent: how long a start warms its servers up, and how long it measures them. Pure.

Each start gives one ratio of its servers for each scenario, and the interval is over starts, so more starts are better.
But a start with cold servers is worth little, and nobody knows beforehand what a command runs. The end of a warm-up is
detected (`findings.warm_duet`), so the times here are maxima; the time left over goes into further starts.
"""

from collections.abc import Callable

from redline.lazily import dataclass

MOST_COMPARED = 3
"""The most servers compared with a baseline in a duet: all are alive at once, and share memory and caches."""
FEWEST_STARTS = 3
"""The minimum, however short the budget: the interval is over starts, and two starts hardly give an interval."""
_MOST_STARTS, _LONGEST_START_NS = 5, 60_000_000_000
"""Limits for servers that warm up slowly. Servers that are warm sooner get more and shorter starts."""
_LONGEST_COLD_NS = 180_000_000_000
"""A long budget lets servers that are not warm by then warm up for longer, rather than start cold more often. Three
servers on a JVM with a user each, on one core, take two minutes."""
_LONG_ENOUGH_NS, SHORTEST_START_NS = 30_000_000_000, 3_000_000_000
"""A short budget gives fewer starts, up to the first length, rather than cold starts. The second is the minimum."""
_LONGER_FOR_ANOTHER_NS = 12_000_000_000
"""The extra length of a start for each further scenario: three servers on a JVM need at least 7 s until they are
detected as warm, other servers 2 s."""
_SHORTEST_WARM_UP_NS = 3_000_000_000
"""The warm-up of all servers of a start for each further scenario: in less time no server is detected as warm."""
_LONGEST_FIRST_NS = 90_000_000_000
"""The first scenario of a start compiles, loads and caches most: it gets half of the warm-up, up to this."""
_MEASURED = 1 / 6
"""The share of a start that is measured, after its warm-ups."""
_MEASURED_ONCE = 3 / 4
"""The measured share of the only start of servers that are already running."""
_LONGEST_OF_CONVERSATIONS_NS = 3600_000_000_000
"""The engine's limit."""
_ADVISED_S = {"20s": 20, "30s": 30, "60s": 60, "2m": 120, "3m": 180, "5m": 300, "10m": 600, "20m": 1200, "1h": 3600}


@dataclass(frozen=True)
class StartTimes:
    """How long each server of a start is loaded, in nanoseconds, with each scenario under each load.

    `warmup_ns` is the longest warm-up for the first scenario and load, `warmup_again_ns` for every further pair.
    """

    warmup_ns: int
    warmup_again_ns: int
    measure_ns: int


def start_times(budget_ns: int, servers: int, parts: int = 1, *, once: bool) -> StartTimes:
    """The times of a start in a comparison of `servers`, the control included, that may take `budget_ns`.

    `parts` is the number of scenario-load pairs that a start measures; `once` is for servers that cannot be started.
    """
    if once:
        start_ns = coldest_ns = budget_ns
        measured = _MEASURED_ONCE
    else:
        others_ns, starts = (parts - 1) * _LONGER_FOR_ANOTHER_NS, _MOST_STARTS if parts == 1 else FEWEST_STARTS
        start_ns = min(budget_ns // starts, _LONGEST_START_NS + others_ns)
        start_ns = max(start_ns, min(budget_ns // FEWEST_STARTS, _LONG_ENOUGH_NS), SHORTEST_START_NS)
        coldest_ns = max(start_ns, min(budget_ns // starts, _LONGEST_COLD_NS + others_ns))
        measured = _MEASURED
    measure_ns = int(start_ns * measured)
    warmup_ns = coldest_ns - measure_ns
    first_ns = warmup_ns if parts == 1 else min(warmup_ns // 2, _LONGEST_FIRST_NS)
    again_ns = 0 if parts == 1 else max((warmup_ns - first_ns) // (parts - 1), _SHORTEST_WARM_UP_NS)
    return StartTimes(first_ns // servers, again_ns // servers, measure_ns // parts // servers)


def most_starts(budget_ns: int, shortest_ns: int) -> int:
    """The maximum number of starts in a budget, if every start takes at least `shortest_ns`."""
    return max(FEWEST_STARTS, -(-budget_ns // max(shortest_ns, 1)))


def advised(fits: Callable[[int], bool]) -> str:
    """The first advised budget that fits, given in nanoseconds: `5m`; empty if none does."""
    return next((text for text, seconds in _ADVISED_S.items() if fits(seconds * 10**9)), "")


def longest_of_conversations_ns(budget_ns: int, duets: int, *, once: bool) -> int:
    """How long a start may load servers, if as many duets share the budget: conversations may need more than usual."""
    return min(budget_ns // max(duets, 1) // (1 if once else FEWEST_STARTS), _LONGEST_OF_CONVERSATIONS_NS)
