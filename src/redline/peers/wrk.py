"""wrk (https://github.com/wg/wrk) and wrk2 (https://github.com/giltene/wrk2), which print alike."""

import re
from typing import Literal

from redline.peers.adapter import Asked, known, time_ns

_LINE = re.compile(r"^ *(\d{1,3}(?:\.\d+)?)% +(\S+) *$", re.MULTILINE)
_LARGEST = re.compile(r"^ *Latency +\S+ +\S+ +(\S+)", re.MULTILINE)


class Wrk:
    """Closed loop only; it has no p99.9."""

    name = "wrk"
    tried_with = "4.1.0"
    loop: Literal["open", "closed"] = "closed"
    settles_s = 0.0
    note = "cannot hold a rate: a closed load on as many connections"

    def version_command(self) -> list[str]:
        """It exits with 1 and says its version in the first line."""
        return ["-v"]

    def commands(self, asked: Asked) -> list[list[str]]:
        """One thread; as many users as connections."""
        return [["-t1", f"-c{asked.connections}", f"-d{asked.whole_seconds}s", "--latency", asked.url]]

    def read(self, output: str) -> dict[float, float]:
        """The distribution, and the largest from the statistics of threads."""
        found = {round(float(share) / 100, 9): time_ns(text) for share, text in _LINE.findall(output)}
        largest = _LARGEST.search(output)
        if largest is not None and 1.0 not in found:
            found[1.0] = time_ns(largest[1])
        return known(found)


class Wrk2(Wrk):
    """Constant rate; the first ten seconds calibrate it and are not counted."""

    name = "wrk2"
    tried_with = "4.0.0 (44a94c1)"
    loop: Literal["open", "closed"] = "open"
    settles_s = 10.0
    note = ""

    def commands(self, asked: Asked) -> list[list[str]]:
        """One thread at that rate."""
        (command,) = super().commands(asked)
        return [[f"-R{max(1, round(asked.rate_per_s))}", *command]]
