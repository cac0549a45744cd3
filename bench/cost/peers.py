"""The other load generators: where they are, how each is asked, and what it says of the requests that it made."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.cost.pairs import Client, Ran
from redline.errors import DriveError

FOLDER = "REDLINE_PEERS"
_AROUND_S = 30
_VERSION = {"wrk": "-v", "wrk2": "-v", "h2load": "--version", "oha": "--version", "k6": "version", "vegeta": "-version"}
_REQUESTS = re.compile(r"(\d+) requests in")
_RATE = re.compile(r"Requests/sec:\s+([\d.]+)")
_WRONG = re.compile(r"Socket errors: .*|Non-2xx.*")
_PERCENTILE = re.compile(r"^ *(50|99)\.?0*% +([\d.]+)(us|ms|s|m)$", re.MULTILINE)
_IN_US = {"us": 1.0, "ms": 1e3, "s": 1e6, "m": 6e7}
_H2LOAD = re.compile(r"requests: \d+ total, \d+ started, (\d+) done, (\d+) succeeded, (\d+) failed, (\d+) errored")
_H2LOAD_RATE = re.compile(r"finished in .*?, ([\d.]+) req/s")
_H2LOAD_TLS = re.compile(r"^(?:TLS Protocol|Cipher): (\S+)$", re.MULTILINE)


def find(name: str) -> str | None:
    """Its path: in the folder that REDLINE_PEERS names, or on the PATH."""
    folder = os.environ.get(FOLDER)
    return (folder and shutil.which(name, path=folder)) or shutil.which(name)


def version(name: str) -> str:
    """The first word with a digit and a dot in what it says of its version, after its name."""
    path = find(name)
    if path is None:
        return f"{name} not installed"
    done = subprocess.run([path, _VERSION[name]], capture_output=True, text=True, check=False, timeout=20)
    found = re.search(r"\S*\d+\.\d+\S*", done.stdout + done.stderr)
    return f"{name} {found[0].removeprefix(f'{name}/') if found else 'of unknown version'}"


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
    path = find(program or name)
    if path is None:
        return None
    command, read = _COMMANDS[program or name]
    return Client(name, lambda: read(_run(asked, [path, *command(asked)])))


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
    times = {share: float(number) * _IN_US[unit] for share, number, unit in _PERCENTILE.findall(output)}
    nan = float("nan")
    faults = wrong[0].strip() if wrong else ""
    return Ran(int(requests[1]), float(rate[1]), faults, times.get("50", nan), times.get("99", nan))


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


def _read_oha(output: str) -> Ran:
    told = json.loads(output)
    right = sum(n for code, n in told["statusCodeDistribution"].items() if code == "200")
    faults = {kind: n for kind, n in told.get("errorDistribution", {}).items() if "aborted due to deadline" not in kind}
    return Ran(right, told["summary"]["requestsPerSec"], ", ".join(f"{n} {kind}" for kind, n in faults.items()))


def _k6(asked: Asked) -> list[str]:
    script = asked.scratch / "k6.js"
    options = {"vus": asked.connections, "duration": f"{asked.seconds}s", "discardResponseBodies": True}
    script.write_text(
        "import http from 'k6/http';\n"
        f"export const options = {json.dumps(options)};\n"
        f"export default function () {{ http.get({json.dumps(asked.url)}); }}\n"
        "export function handleSummary(data) { return { stdout: JSON.stringify(data) }; }\n"
    )
    return ["run", "--quiet", "--no-usage-report", str(script)]


def _read_k6(output: str) -> Ran:
    metrics = json.loads(output[output.index("{") :])["metrics"]
    requests, failed = metrics["http_reqs"]["values"], metrics["http_req_failed"]["values"]
    faults = f"{failed['rate']:.2%} failed" if failed["rate"] else ""
    return Ran(round(requests["count"]), float(requests["rate"]), faults)


_COMMANDS: dict[str, tuple[Callable[[Asked], list[str]], Callable[[str], Ran]]] = {
    "wrk": (_wrk, read_wrk),
    "wrk2": (_wrk, read_wrk),
    "h2load": (_h2load, read_h2load),
    "oha": (_oha, _read_oha),
    "k6": (_k6, _read_k6),
}
