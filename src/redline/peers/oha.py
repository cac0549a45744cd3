"""oha (https://github.com/hatoo/oha)."""

from typing import Literal

from redline.peers.adapter import Asked, known, positive
from redline.peers.json_output import member, read_object

_NAMES = {0.5: "p50", 0.9: "p90", 0.99: "p99", 0.999: "p99.9"}


class Oha:
    """Constant rate with its correction for late answers."""

    name = "oha"
    tried_with = "1.16.0"
    loop: Literal["open", "closed"] = "open"
    settles_s = 0.0
    note = ""

    def version_command(self) -> list[str]:
        """Prints `oha 1.16.0`."""
        return ["--version"]

    def commands(self, asked: Asked) -> list[list[str]]:
        """JSON instead of its screen."""
        load = ["-z", f"{asked.seconds:g}s", "-c", str(asked.connections), "-q", f"{asked.rate_per_s:g}"]
        return [[*load, "--latency-correction", "--no-tui", "--output-format", "json", asked.url]]

    def read(self, output: str) -> dict[float, float]:
        """Its percentiles are in seconds."""
        told = read_object(output)
        percentiles = member(told, "latencyPercentiles")
        found = {q: positive(percentiles.get(name), 1e9) for q, name in _NAMES.items()}
        found[1.0] = positive(member(told, "summary").get("slowest"), 1e9)
        return known(found)
