"""How a budget is spent: how long a start warms its servers up, and how long it measures them. Pure.

Each start gives one ratio of its servers for each scenario, and the interval is over starts: so there should be many.
But a start is worth little where its servers are cold, and nobody knows beforehand what a command runs. Warm-ups are
detected (`findings.warm_duet`), so their times here are maxima; what they leave over goes into further starts.
"""

from dataclasses import dataclass

MOST_COMPARED = 3
"""With one baseline in one duet: all of them are alive at once, and share memory and caches."""
FEWEST_STARTS = 3
"""However little time there is: the interval is over starts, and of two it is hardly one."""
_MOST_STARTS, _LONGEST_START_NS = 5, 60_000_000_000
"""So many starts, and none longer, of servers that are warm late. What is warm sooner has more and shorter ones."""
_LONG_ENOUGH_NS, _SHORTEST_START_NS = 30_000_000_000, 3_000_000_000
"""Where there is little time, starts are longer than that rather than cold, and never shorter."""
_LONGER_FOR_ANOTHER_NS = 12_000_000_000
"""How much longer a start may be for each further scenario: three servers on a JVM need 7 s at least until they are
seen to be warm, others 2 s."""
_SHORTEST_WARM_UP_NS = 3_000_000_000
"""That of all servers of a start, for each further scenario: in less none is seen to be warm."""
_LONGEST_FIRST_NS = 50_000_000_000
"""Most is compiled, loaded and cached by the first scenario of a start: it has half of the warm-up, up to this."""
_MEASURED = 1 / 6
"""The share of a start that is measured, after its warm-ups."""
_MEASURED_ONCE = 3 / 4
"""The same of the only start of servers that run already."""


@dataclass(frozen=True)
class StartTimes:
    """How long each server of a start is loaded, in nanoseconds, with each scenario under each load.

    `warmup_ns` is the longest warm-up for the first that is measured, `warmup_again_ns` for each further one.
    """

    warmup_ns: int
    warmup_again_ns: int
    measure_ns: int


def start_times(budget_ns: int, servers: int, parts: int = 1, *, once: bool) -> StartTimes:
    """The times of a start in a comparison of `servers`, the control included, that may take `budget_ns`.

    `parts` is how many scenarios and loads a start measures; `once` is for servers that cannot be started.
    """
    if once:
        start_ns, measured = budget_ns, _MEASURED_ONCE
    else:
        start_ns = min(budget_ns // _MOST_STARTS, _LONGEST_START_NS)
        start_ns = max(start_ns, min(budget_ns // FEWEST_STARTS, _LONG_ENOUGH_NS), _SHORTEST_START_NS)
        longer_ns = _LONGEST_START_NS + (parts - 1) * _LONGER_FOR_ANOTHER_NS
        start_ns = start_ns if parts == 1 else max(start_ns, min(budget_ns // FEWEST_STARTS, longer_ns))
        measured = _MEASURED
    measure_ns = int(start_ns * measured)
    warmup_ns = start_ns - measure_ns
    first_ns = warmup_ns if parts == 1 else min(warmup_ns // 2, _LONGEST_FIRST_NS)
    again_ns = 0 if parts == 1 else max((warmup_ns - first_ns) // (parts - 1), _SHORTEST_WARM_UP_NS)
    return StartTimes(first_ns // servers, again_ns // servers, measure_ns // parts // servers)


def most_starts(budget_ns: int, shortest_ns: int) -> int:
    """How many starts there can be at most, each of which takes `shortest_ns` at least."""
    return max(FEWEST_STARTS, -(-budget_ns // max(shortest_ns, 1)))
