"""The other load generators as clients of this bench: found, run on their core, and held to have reported something."""

import math
import os
from functools import cache
from pathlib import Path

from bench.cost.pairs import Client, Ran
from redline.errors import DriveError
from redline.extras.peers import Peer, PeerLoad, PeerOutput, find_peer, run_peer

FOLDER = "REDLINE_PEERS"


@cache
def find(name: str) -> Peer | None:
    """That peer: in the folder that REDLINE_PEERS names, or on the PATH. Its version is read once."""
    places = (os.environ.get(FOLDER), os.environ.get("PATH", os.defpath))
    return find_peer(name, os.pathsep.join(place for place in places if place))


def version(name: str) -> str:
    """Its name and version."""
    found = find(name)
    if found is None:
        return f"{name} not installed"
    return f"{name} {found.version or 'of unknown version'}"


def client(name: str, load: PeerLoad, program: str | None = None) -> Client | None:
    """That peer with that load; None when it is not installed. `name` is for the table."""
    found = find(program or name)
    if found is None:
        return None
    return Client(name, lambda: ran(name, run_peer(found, load)))


def ran(name: str, output: PeerOutput) -> Ran:
    """What the peer reports; NaN where it reports no percentile. Raises DriveError when it reports no requests."""
    if output.requests is None or output.rate_per_s is None:
        raise DriveError(f"{name} printed nothing that this bench can read", hint="run it by hand")
    p50_us, p99_us = (output.latencies_ns.get(q, math.nan) / 1000 for q in (0.5, 0.99))
    return Ran(output.requests, output.rate_per_s, output.faults, p50_us, p99_us, output.tls)


def pipelining(depth: int, path: str, scratch: Path) -> tuple[str, ...]:
    """Arguments that make wrk write `depth` requests at once; it counts the answers."""
    script = scratch / f"pipelined{depth}.lua"
    script.write_text(
        "init = function(args)\n"
        "  local each = {}\n"
        f"  for i = 1, {depth} do each[i] = wrk.format('GET', '{path}') end\n"
        "  batch = table.concat(each)\n"
        "end\n"
        "request = function() return batch end\n"
    )
    return ("-s", str(script))


def uploading(size: int, scratch: Path) -> tuple[str, ...]:
    """Arguments that make wrk post so many bytes; it formats the request once and sends it again and again."""
    script = scratch / f"upload{size}.lua"
    script.write_text(f"wrk.method = 'POST'\nwrk.body = string.rep('x', {size})\n")
    return ("-s", str(script))
