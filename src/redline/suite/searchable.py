"""A suite whose loads are searched for their limit: what probes are made like. Pure."""

from redline.errors import Problem, UsageError
from redline.model import Closed, Load, Suite

SHORTEST_PROBE_NS = 1_000_000_000
_ADD = "add one such as `probe: {open: {rate: 1000, connections: 256}, for: 5s}`: the search begins at its rate"


def to_search(suite: Suite, trials: int) -> tuple[Suite, tuple[str, ...]]:
    """The suite with its open loads alone, and the names of the others. Raises UsageError with every problem.

    An open load says how probes are made: the first rate, arrivals, connections, length. `trials` are fresh starts at
    the ends of each answer; the ceiling and the suite's own number of trials are for runs.
    """
    loads = tuple(load for load in suite.loads if not isinstance(load.shape, Closed))
    if not loads:
        raise UsageError(f"the suite {suite.name} has no open load, and a search is made of open loads", hint=_ADD)
    problems = [problem for load in loads if (problem := _problem(load)) is not None]
    if problems:
        raise UsageError.of(tuple(problems))
    kept = {"loads": loads, "ceiling": None, "trials": trials, "auto": None}
    return suite.model_copy(update=kept), tuple(load.name for load in suite.loads if load not in loads)


def _problem(load: Load) -> Problem | None:
    """Why no probe can be made like this load."""
    shape = load.shape
    assert not isinstance(shape, Closed), "only open loads are asked"
    name = f"the load `{load.name}`"
    if shape.share is not None:
        hint = "a search finds the rate: give the load one of its own to begin at, such as `rate: 1000`"
        return Problem(f"{name} has a rate that is a share of a capacity", hint)
    if load.changes or load.count is not None:
        hint = "leave out its stages, its count and what it replays, or measure it with `redline run`"
        return Problem(f"{name} has no constant rate for a time, as probes have", hint)
    if load.duration_ns < SHORTEST_PROBE_NS:
        return Problem(f"{name} is too short for a probe", "a probe takes 1 s at least: give -d 1s or more")
    return None
