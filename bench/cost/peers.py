"""The other load generators: how each is asked for all that it can, and what it says of the requests that it made.

Finding them, their versions and their percentiles are those of the selftest. It asks them for a rate, the cases for as
much as they can, in most cases: so the command lines differ.
"""

import math
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from bench.cost.pairs import Client, Ran
from redline.errors import DriveError
from redline.peers import Peer, find_peer
from redline.peers.adapter import Adapter
from redline.peers.json_output import read_object
from redline.peers.k6 import one_request

FOLDER = "REDLINE_PEERS"
_AROUND_S = 30
_REQUESTS = re.compile(r"(\d+) requests in")
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
_WRONG = re.compile(r"Socket errors: .*|Non-2xx.*")
_H2LOAD = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored")
_H2LOAD_RATE = re.compile(r"finished in .*?, ([\d.]+) req/s")
_H2LOAD_TLS = re.compile(r"^(?:TLS Protocol|Cipher): (\S+)$", re.MULTILINE)


@cache
def find(name: str) -> Peer | None:
    """That peer: in the folder that REDLINE_PEERS names, or on the PATH. Asked for its version but once."""
    places = (os.environ.get(FOLDER), os.environ.get("PATH", os.defpath))
    return find_peer(name, os.pathsep.join(place for place in places if place))


def version(name: str) -> str:
    """Its name and version."""
    found = find(name)
    if found is None:
        return f"{name} not installed"
    return f"{name} {found.version or 'of unknown version'}"


@dataclass(frozen=True)
class Asked:
    """What a peer is to do: `extra` are arguments before the address, `scratch` is a folder for its files."""

    url: str
    connections: int
    seconds: int
    core: int
    scratch: Path
    extra: tuple[str, ...] = ()


def peer(name: str, asked: Asked, program: str | None = None) -> Client | None:
    """That peer, doing that; None when it is not installed."""
    found = find(program or name)
    if found is None:
        return None
    command, read = _COMMANDS[found.adapter.name]
    return Client(name, lambda: timed(found.adapter, read, _run(asked, [found.binary, *command(asked)])))


def timed(adapter: Adapter, read: Callable[[str], Ran], output: str) -> Ran:
    """What it printed, with the percentiles that the selftest's adapter finds in it; NaN where it reports none."""
    ran, times_ns = read(output), adapter.read(output)
    p50_us, p99_us = (times_ns.get(q, math.nan) / 1000 for q in (0.5, 0.99))
    return replace(ran, p50_us=p50_us, p99_us=p99_us)


def _run(asked: Asked, command: list[str]) -> str:
    """What it prints. Raises DriveError when it fails."""
    pinned = ["taskset", "--cpu-list", str(asked.core), *command]
    try:
        done = subprocess.run(pinned, capture_output=True, text=True, check=True, timeout=asked.seconds + _AROUND_S)
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", "") or getattr(error, "stdout", "") or ""
        raise DriveError(f"{command[0]}: {error} {said[-300:]}", hint="run it by hand") from error
    return done.stdout


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


def _wrk(asked: Asked) -> list[str]:
    return ["-t1", f"-c{asked.connections}", f"-d{asked.seconds}s", *asked.extra, asked.url]


def read_wrk(output: str) -> Ran:
    """What wrk or wrk2 printed. Raises DriveError when it is nothing of theirs."""
    requests, rate, wrong = _REQUESTS.search(output), _RATE.search(output), _WRONG.search(output)
    if requests is None or rate is None:
        raise DriveError(f"wrk said what this bench cannot read: {output[:200]!r}", hint="use wrk 4.1 or newer")
    return Ran(int(requests[1]), float(rate[1]), wrong[0].strip() if wrong else "")


def _h2load(asked: Asked) -> list[str]:
    return ["-t1", f"-c{asked.connections}", f"-D{asked.seconds}", *asked.extra, asked.url]


def read_h2load(output: str) -> Ran:
    """What h2load printed. Raises DriveError when it is nothing of its."""
    requests, rate = _H2LOAD.search(output), _H2LOAD_RATE.search(output)
    if requests is None or rate is None:
        raise DriveError(
            f"h2load said what this bench cannot read: {output[-300:]!r}", hint="use nghttp2 1.40 or newer"
        )
    failed, errored = int(requests[3]), int(requests[4])
    faults = f"{failed} failed, {errored} errored" if failed + errored else ""
    return Ran(int(requests[2]), float(rate[1]), faults, note=" ".join(_H2LOAD_TLS.findall(output)))


def _oha(asked: Asked) -> list[str]:
    load = ["-z", f"{asked.seconds}s", "-c", str(asked.connections)]
    return [*load, "--no-tui", "--output-format", "json", asked.url]


def read_oha(output: str) -> Ran:
    """What oha printed; requests that the end cut off are no fault. Raises DriveError and LookupError."""
    told = _object("oha", output)
    right = sum(n for code, n in told["statusCodeDistribution"].items() if code == "200")
    faults = {kind: n for kind, n in told.get("errorDistribution", {}).items() if "aborted due to deadline" not in kind}
    return Ran(right, told["summary"]["requestsPerSec"], ", ".join(f"{n} {kind}" for kind, n in faults.items()))


def _k6(asked: Asked) -> list[str]:
    script = asked.scratch / "k6.js"
    options = {"vus": asked.connections, "duration": f"{asked.seconds}s", "discardResponseBodies": True}
    script.write_text(one_request(asked.url, options))
    return ["run", "--quiet", "--no-usage-report", str(script)]


def read_k6(output: str) -> Ran:
    """What k6 printed. Raises DriveError and LookupError."""
    metrics = _object("k6", output)["metrics"]
    requests, failed = metrics["http_reqs"]["values"], metrics["http_req_failed"]["values"]
    faults = f"{failed['rate']:.2%} failed" if failed["rate"] else ""
    return Ran(round(requests["count"]), float(requests["rate"]), faults)


def _object(name: str, output: str) -> dict[str, Any]:
    found = read_object(output)
    if not found:
        raise DriveError(f"{name} said what this bench cannot read: {output[:200]!r}", hint="run it by hand")
    return found


_COMMANDS: dict[str, tuple[Callable[[Asked], list[str]], Callable[[str], Ran]]] = {
    "wrk": (_wrk, read_wrk),
    "wrk2": (_wrk, read_wrk),
    "h2load": (_h2load, read_h2load),
    "oha": (_oha, read_oha),
    "k6": (_k6, read_k6),
}
