"""What a search does where the host takes its CPU time: it waits, and makes the probe again."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from redline.search import Evidence, Proposal

WAITS_S = (5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0)
"""Before a probe is made again, in seconds: hosts are busy for a moment or for minutes. Of one search, all together."""


@dataclass
class Patience:
    """Of one search. `tell` is given how many seconds it waits."""

    tell: Callable[[float], None]
    pause: Callable[[float], None] = time.sleep
    _left: list[float] = field(default_factory=lambda: list(WAITS_S))

    @property
    def left(self) -> bool:
        """Whether a probe can be made again."""
        return bool(self._left)

    def undisturbed(self, step: Proposal, probe: Callable[[Proposal], Evidence]) -> Evidence:
        """What the probe shows, made again while the host disturbs it; the last one where patience ends before that."""
        evidence = probe(step)
        while evidence.passing and self._left:
            wait_s = self._left.pop(0)
            self.tell(wait_s)
            self.pause(wait_s)
            evidence = probe(replace(step, why="again: the host had taken CPU time"))
        return evidence
