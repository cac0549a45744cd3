"""Where the host takes the CPU time of a probe the search waits, and makes it again."""

import pytest

from redline.running.steal_retry import WAITS_S, Patience
from redline.search import Evidence, Proposal

STEP = Proposal(1000.0, "doubled")


class Host:
    """Disturbs the first probes, and knows for how long was waited."""

    def __init__(self, disturbs: int, why: str = "the host took 30% of it") -> None:
        self.disturbs, self.why = disturbs, why
        self.told: list[float] = []
        self.paused: list[float] = []
        self.whys: list[str] = []
        self.patience = Patience(self.told.append, self.paused.append)

    def probe(self, step: Proposal) -> Evidence:
        self.whys.append(step.why)
        taken = len(self.whys) <= self.disturbs
        return Evidence(step.rate_per_s, (), client=self.why if taken else "", passing=taken)

    def undisturbed(self) -> Evidence:
        return self.patience.undisturbed(STEP, self.probe)


@pytest.mark.parametrize("disturbs", [0, 1, 3])
def test_a_disturbed_probe_is_made_again_until_it_is_not(disturbs: int) -> None:
    host = Host(disturbs)
    assert not host.undisturbed().client
    assert host.told == host.paused == list(WAITS_S[:disturbs])
    assert host.whys == ["doubled", *["again: the host had taken CPU time"] * disturbs]


def test_patience_ends_and_what_was_seen_last_counts() -> None:
    host = Host(disturbs=100)
    assert host.undisturbed().client == host.why
    assert host.told == list(WAITS_S)
    made = len(host.whys)
    assert host.undisturbed().client == host.why, "it is one patience for all probes of a search"
    assert (len(host.whys), host.told) == (made + 1, list(WAITS_S))


def test_what_does_not_pass_is_not_waited_for() -> None:
    host = Host(disturbs=0)
    evidence = host.patience.undisturbed(STEP, lambda step: Evidence(step.rate_per_s, (), client="give -c more"))
    assert (evidence.client, host.told) == ("give -c more", [])
