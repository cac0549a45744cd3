"""Send commands to a running JVM over its socket for tools, as `jcmd` does, but without starting a second JVM.

`jcmd` takes 0.4 s of CPU time, and on a machine under load seconds, before it says anything to the server.
The protocol is that of HotSpot's AttachListener (src/hotspot/os/posix/attachListener_posix.cpp), version 1.
"""

import os
import signal
import socket
import stat
import struct
import time
from contextlib import suppress
from pathlib import Path

from redline.extras.profiling.sampler import ProfilerError
from redline.linux.procfs import temporary_files

_OPENS_WITHIN_S = 10.0
_ANSWERS_WITHIN_S = 30.0
_PAUSE_S = 0.005
_VERSION = "1"
_CREDENTIALS = struct.Struct("3i")  # process, user and group


def load_agent(pid: int, library: Path, options: str) -> None:
    """Load an agent into a JVM, or call the loaded agent. Raises ProfilerError and OSError."""
    answer = _ask(pid, "load", str(library), "true", options)
    if answer[0] != "0" or "return code: 0" not in answer[1:]:
        said = " ".join(filter(None, answer[1:])) or f"status {answer[0]}"
        raise ProfilerError(f"the JVM did not load {library.name}, and said: {said}; its log may say more")


def ask_as_jcmd(pid: int, command: str) -> str:
    """Return a JVM's answer to a command of `jcmd`. Raises ProfilerError and OSError."""
    status, *lines = _ask(pid, "jcmd", command, "", "")
    if status != "0":
        raise ProfilerError(f"the JVM refused {command}: {' '.join(filter(None, lines)) or f'status {status}'}")
    return "\n".join(lines)


def _ask(pid: int, *words: str) -> list[str]:
    """Return the lines of the answer: the first is a status."""
    with _connected(pid) as connection:
        connection.sendall(b"".join(word.encode() + b"\0" for word in (_VERSION, *words)))
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode(errors="replace").split("\n")


def _connected(pid: int) -> socket.socket:
    """Connect to the JVM's socket, which it opens upon SIGQUIT if a certain file exists."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    own_pid = next((line.split()[-1] for line in status if line.startswith("NSpid:")), str(pid))
    address, trigger = f".java_pid{own_pid}", f".attach_pid{own_pid}"
    with temporary_files(f"/proc/{pid}") as folder:
        if not _is_socket(address, folder):
            _make(trigger, folder)
            try:
                os.kill(pid, signal.SIGQUIT)
                deadline = time.monotonic() + _OPENS_WITHIN_S
                while not _is_socket(address, folder):
                    if time.monotonic() > deadline:
                        raise ProfilerError(f"the JVM opened no socket for its tools within {_OPENS_WITHIN_S:g} s")
                    time.sleep(_PAUSE_S)
            finally:
                _remove(trigger, folder)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(_ANSWERS_WITHIN_S)
            connection.connect(f"/proc/self/fd/{folder}/{address}")
            _refuse_another(connection, pid, address)
        except BaseException:
            connection.close()
            raise
        return connection


def _refuse_another(connection: socket.socket, pid: int, address: str) -> None:
    """Raise ProfilerError unless the socket is the JVM's own: any user can make a socket of that name."""
    listens, _, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
    if listens != pid:
        raise ProfilerError(f"{address} is not the socket of the JVM, process {pid}, but of process {listens}")


def _is_socket(name: str, folder: int) -> bool:
    try:
        return stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _make(trigger: str, folder: int) -> None:
    """Make a new file without following a link, since any user can write to the folder. Raises OSError."""
    _remove(trigger, folder)
    os.close(os.open(trigger, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder))


def _remove(trigger: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        os.unlink(trigger, dir_fd=folder)
