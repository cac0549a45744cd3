"""h2load of nghttp2 (https://nghttp2.org)."""

import re
from typing import Literal

from redline.peers.adapter import Asked, known, time_ns

_MOST_CLIENTS = 64
_TIMES = re.compile(r"^time for request: +(.+)$", re.MULTILINE)
_HEADS = re.compile(r"^ +min +max +(.+)$", re.MULTILINE)
_COLUMNS = {"median": 0.5, "p95": 0.95, "p99": 0.99}


class H2load:
    """Its rate is per client, and held by a timer of 10 ms."""

    name = "h2load"
    tried_with = "nghttp2 1.52.0"
    loop: Literal["open", "closed"] = "open"
    settles_s = 0.0
    note = "its rate comes in bursts, and a client that waits sends later"

    def version_command(self) -> list[str]:
        """Prints `h2load nghttp2/1.52.0`."""
        return ["--version"]

    def commands(self, asked: Asked) -> list[list[str]]:
        """HTTP/1.1, the rate shared out among the clients."""
        clients = min(asked.connections, _MOST_CLIENTS)
        rate = f"--rps={asked.rate_per_s / clients:g}"
        return [["--h1", f"-c{clients}", f"-D{asked.whole_seconds}", rate, asked.url]]

    def read(self, output: str) -> dict[float, float]:
        """The largest; later versions have a median, p95 and p99 as well."""
        heads, times = _HEADS.search(output), _TIMES.search(output)
        if times is None:
            return {}
        values = times[1].split()
        found = {1.0: time_ns(values[1]) if len(values) > 1 else None}
        names = ["min", "max", *(heads[1].split() if heads else ())]
        for name, text in zip(names, values, strict=False):
            if name in _COLUMNS:
                found[_COLUMNS[name]] = time_ns(text)
        return known(found)
