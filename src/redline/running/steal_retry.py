"""Makes a load again after a while where the host took its CPU time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

WAITS_S = (5.0, 10.0, 20.0, 40.0, 60.0, 60.0, 60.0)
"""Before a probe is made again, in seconds: hosts are busy for a moment or for minutes. Of one search, all together."""


@dataclass
class StealRetry:
    """The waits that one search has left. `tell` is given how many seconds it waits."""

    tell: Callable[[float], None]
    pause: Callable[[float], None] = time.sleep
    waits_s: list[float] = field(default_factory=lambda: list(WAITS_S))

    @property
    def left(self) -> int:
        """How often a probe can be made again."""
        return len(self.waits_s)

    def wait(self) -> bool:
        """Wait until a probe may be made again; False, at once, where none is left."""
        if not self.waits_s:
            return False
        wait_s = self.waits_s.pop(0)
        self.tell(wait_s)
        self.pause(wait_s)
        return True
