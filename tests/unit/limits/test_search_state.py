"""What the probes of a search show together."""

from redline.limits.search_state import SearchState
from redline.model.search import ProbeRecording
from tests.fakes.behaviour import Behaviour
from tests.fakes.recordings import simulated_recording
from tests.fakes.searched import CELL, plan_of

SLOW = Behaviour(response_ns=10e6, spread=0.05, server_busy=0.1)


def searched(*probes: tuple[float, float], failed: int = 0) -> SearchState:
    """A search whose probes have these rates, and the share of the requests that is answered in time."""
    state = SearchState(plan_of(CELL), CELL)
    for position, (rate_per_s, achieved) in enumerate(probes):
        load = CELL.load.at_rate(rate_per_s)
        behaviour = Behaviour(**{**vars(SLOW), "achieved": achieved, "outcomes": {"timeout": failed} if failed else {}})
        recording = simulated_recording(CELL.model_copy(update={"load": load}), behaviour, position=position)
        state.add(ProbeRecording(phase="search", load=load, workers=1, retries_left=0, recording=recording))
    return state


def pools(state: SearchState) -> list[str]:
    return [finding.message for finding in state.limit().findings if finding.kind == "pool-of-workers"]


def test_a_pool_of_workers_shows_in_what_a_server_answers_with_light_load_and_beyond_its_limit() -> None:
    (said,) = pools(searched((100, 1.0), (800, 0.5), (300, 1.0)))
    assert "a pool of 4 workers" in said
    assert pools(searched((100, 1.0), (300, 1.0))) == [], "it was never overloaded"
    assert pools(searched((300, 1.0), (800, 0.5))) == [], "requests may wait at 300/s of 400/s"
    assert pools(searched((100, 1.0), (800, 0.5), failed=1)) == [], "times of errors are none of work"
