"""Finds peers on the PATH and asks them one load each."""

import re
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass, replace

from redline.peers.adapter import LONGEST_OUTPUT, Adapter, Asked
from redline.peers.h2load import H2load
from redline.peers.k6 import K6
from redline.peers.oha import Oha
from redline.peers.vegeta import Vegeta
from redline.peers.wrk import Wrk, Wrk2
from redline.selftest.cores import on_cores
from redline.selftest.results import PeerAnswer, Quantile

ADAPTERS: tuple[Adapter, ...] = (Wrk2(), Oha(), Vegeta(), K6(), H2load(), Wrk())
_BY_NAME = {adapter.name: adapter for adapter in ADAPTERS}
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_WITHIN_S = 10.0
_SPARE_S = 30.0


@dataclass(frozen=True)
class Peer:
    """A tool that is there, and the version that it says it is; empty when it says none."""

    adapter: Adapter
    binary: str
    version: str


def find_peer(name: str, path: str | None = None) -> Peer | None:
    """That one, looked for along `path`, or the PATH when it is not given. Raises KeyError for a name of no adapter."""
    adapter, binary = _BY_NAME[name], shutil.which(name, path=path)
    return Peer(adapter, binary, _version(adapter, binary)) if binary else None


def find_peers() -> tuple[Peer, ...]:
    """All that are on the PATH."""
    return tuple(peer for adapter in ADAPTERS if (peer := find_peer(adapter.name)) is not None)


def ask(peer: Peer, asked: Asked) -> PeerAnswer:
    """What it says of this load; a note where it says nothing. It loads longer where it has to settle first."""
    asked = replace(asked, seconds=asked.seconds + peer.adapter.settles_s)
    output, note = "", peer.adapter.note
    for arguments in peer.adapter.commands(asked):
        try:
            output = _call([peer.binary, *arguments], asked.whole_seconds + _SPARE_S, asked.cpus)
        except (OSError, subprocess.SubprocessError) as error:
            output, note = "", f"gave no answer: {type(error).__name__}"
            break
    found = peer.adapter.read(output)
    if not found and note == peer.adapter.note:
        note = "gave no answer that can be read"
    return PeerAnswer(
        peer=peer.adapter.name,
        version=peer.version,
        tried_with=peer.adapter.tried_with,
        loop=peer.adapter.loop,
        points=tuple(Quantile(q=q, ns=ns) for q, ns in sorted(found.items())),
        note=note,
    )


def _version(adapter: Adapter, binary: str) -> str:
    try:
        done = subprocess.run(
            [binary, *adapter.version_command()],
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
    """The start of its standard output, with a limit in time. Raises OSError and SubprocessError."""
    with tempfile.TemporaryFile() as output:
        with on_cores(cpus):
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.DEVNULL)
        try:
            code = process.wait(within_s)
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            with suppress(ProcessLookupError):
                process.wait()
        if code != 0:
            raise subprocess.CalledProcessError(code, command)
        output.seek(0)
        return output.read(LONGEST_OUTPUT).decode("utf-8", "replace")
