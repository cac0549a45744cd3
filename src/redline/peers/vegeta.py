"""vegeta (https://github.com/tsenart/vegeta)."""

from typing import Literal

from redline.peers.adapter import Asked, known, positive
from redline.peers.json_output import member, read_object

_NAMES = {0.5: "50th", 0.9: "90th", 0.99: "99th", 1.0: "max"}


class Vegeta:
    """Attacks into a file and reports from it; it has no p99.9.

    Its reader was tried against the form that its README documents, and against no output of a vegeta that was run.
    """

    name = "vegeta"
    tried_with = "the form that its README documents"
    loop: Literal["open", "closed"] = "open"
    settles_s = 0.0
    note = "times from the actual send"

    def version_command(self) -> list[str]:
        """Prints `Version: …` among other lines."""
        return ["-version"]

    def commands(self, asked: Asked) -> list[list[str]]:
        """Two calls, with a file of targets and one of results between them."""
        targets, results = asked.scratch / "vegeta.targets", asked.scratch / "vegeta.bin"
        targets.write_text(f"GET {asked.url}\n")
        connections = [f"-connections={asked.connections}", f"-max-connections={asked.connections}"]
        load = [f"-rate={asked.rate_per_s:.0f}", f"-duration={asked.seconds:g}s", *connections]
        return [
            ["attack", *load, f"-targets={targets}", f"-output={results}"],
            ["report", "-type=json", str(results)],
        ]

    def read(self, output: str) -> dict[float, float]:
        """Its times are in nanoseconds."""
        latencies = member(read_object(output), "latencies")
        return known({q: positive(latencies.get(name), 1.0) for q, name in _NAMES.items()})
