"""What a plain request costs this engine and an older one, without Python: the same job for both."""

import json
from pathlib import Path

from bench.cost.engine import BACKENDS, Exchange, Work, closed, read
from bench.traffic.tools import USERS, Called, Tool, Wanted
from redline.extras.peers import PeerOutput

AT_MOST_MORE = 1.02


def engines(now: Path, before: Path, port: int, core: int) -> list[tuple[Tool, Tool]]:
    """This engine and the older one, of each backend, with a job for the oracle on that port."""
    return [
        (
            _tool(f"engine ({backend})", now, backend, port, core),
            _tool(f"before ({backend})", before, backend, port, core),
        )
        for backend in BACKENDS
    ]


def _tool(name: str, binary: Path, backend: str, port: int, core: int) -> Tool:
    def call(wanted: Wanted) -> Called:
        job = Work(Exchange(port), closed(USERS), wanted.seconds, (core,)).job(backend)
        written = wanted.file("job.json", json.dumps(job))
        command = ["sh", "-c", 'exec "$0" < "$1"', str(binary.absolute()), str(written)]
        return Called(command, lambda output: _read(output, backend))

    return Tool(name, "", call)


def _read(output: str, backend: str) -> PeerOutput:
    """What the events say; nothing without a result."""
    events = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    if not events or events[-1]["event"] != "result":
        return PeerOutput()
    ran = read(events, backend)
    return PeerOutput(requests=ran.requests, rate_per_s=ran.rate_per_s, faults=ran.faults)
