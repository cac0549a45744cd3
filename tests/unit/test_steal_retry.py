"""Where the host takes the CPU time of a probe the search waits, and makes it again."""

from redline.running.steal_retry import WAITS_S, StealRetry


def test_each_wait_is_said_and_taken_and_they_end() -> None:
    said: list[float] = []
    paused: list[float] = []
    retry = StealRetry(said.append, paused.append)
    assert retry.left == len(WAITS_S)
    for made, wait_s in enumerate(WAITS_S, 1):
        assert retry.wait()
        assert said[-1] == paused[-1] == wait_s
        assert retry.left == len(WAITS_S) - made
    assert not retry.wait()
    assert said == paused == list(WAITS_S)
