"""Find peers on the PATH and run them."""

import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import IO

from redline.errors import DriveError
from redline.extras.peers.adapters import ADAPTERS, PeerAdapter, PeerLoad
from redline.extras.peers.outputs.reading import PeerOutput
from redline.linux.scheduling import on_cores

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_WITHIN_S = 10.0
_SPARE_S = 30.0
_LONGEST_OUTPUT = 1 << 20
_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Peer:
    """An installed tool and its version; the version is empty if it prints none."""

    adapter: PeerAdapter
    binary: str
    version: str


def find_peer(name: str, path: str | None = None) -> Peer | None:
    """Return the tool of that name on `path`, by default the PATH; None if it is not installed. Raises KeyError."""
    adapter, binary = {peer.name: peer for peer in ADAPTERS}[name], shutil.which(name, path=path)
    return Peer(adapter, binary, _version(adapter, binary)) if binary else None


def find_peers() -> tuple[Peer, ...]:
    """All peers on the PATH."""
    return tuple(peer for adapter in ADAPTERS if (peer := find_peer(adapter.name)) is not None)


def run_peer(peer: Peer, load: PeerLoad) -> PeerOutput:
    """Run a load. Raises DriveError if the tool fails, cannot be run, or does not end in time."""
    output = ""
    for arguments in peer.adapter.commands(load):
        output = _call([peer.binary, *arguments], load.whole_seconds + _SPARE_S, load.cpus)
    return peer.adapter.read(output)


def _version(adapter: PeerAdapter, binary: str) -> str:
    try:
        done = subprocess.run(
            [binary, *adapter.version_arguments],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_VERSION_WITHIN_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    match = _VERSION.search((done.stdout + done.stderr).split("runtime", 1)[0].split("Runtime", 1)[0])
    return match[0] if match else ""


def _call(command: list[str], within_s: float, cpus: tuple[int, ...]) -> str:
    """Return the start of the command's standard output. Raises DriveError."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        try:
            with on_cores(cpus):
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            try:
                code = process.wait(within_s)
            finally:
                process.kill()
                process.wait()
        except (OSError, subprocess.SubprocessError) as error:
            raise _failed(command, str(error)) from error
        if code != 0:
            message = _text(errors).strip() or _text(output).strip()
            raise _failed(command, f"ended with code {code}: {message[-_LONGEST_MESSAGE:] or 'it printed nothing'}")
        return _text(output)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_LONGEST_OUTPUT).decode("utf-8", "replace")


def _failed(command: list[str], why: str) -> DriveError:
    return DriveError(f"{command[0]}: {why}", hint=f"run it by hand: {shlex.join(command)}")
