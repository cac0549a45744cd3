"""Reads /proc for processes. Every reader gives None or nothing for a process that has ended."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Stat:
    """Of /proc/PID/stat: the command's name, the state letter, the parent, the number of threads, resident memory."""

    name: bytes
    state: str
    parent: int
    threads: int
    rss_bytes: int


def read_bytes(path: str) -> bytes:
    """The file, or nothing when it is not there any more; plain calls, because probes make them ten times a second."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
            if len(part) < 1 << 11:  # a record is far shorter than a page: this was the last of them
                break
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def read_stat(pid: int) -> Stat | None:
    """What the process is doing. The command's name may hold spaces and brackets, so fields count from the last one."""
    head, _, tail = read_bytes(f"/proc/{pid}/stat").rpartition(b")")
    fields = tail.split()
    if len(fields) < 22:
        return None
    name = head.partition(b"(")[2]
    return Stat(name, fields[0].decode(), int(fields[1]), int(fields[17]), int(fields[21]) * PAGE_BYTES)


def process_ids() -> list[int]:
    """All processes that this one can see."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- names only, and fast


def tree(root: int) -> tuple[int, ...]:
    """The process and all below it, by their parents; empty when it has ended."""
    children: dict[int, list[int]] = {}
    for pid in process_ids():
        stat = read_stat(pid)
        if stat is not None:
            children.setdefault(stat.parent, []).append(pid)
    if read_stat(root) is None:
        return ()
    found = [root]
    for pid in found:
        found += children.get(pid, ())
    return tuple(found)


def threads_of(pid: int) -> list[int]:
    """The ids of a process's threads."""
    try:
        return [int(name) for name in os.listdir(f"/proc/{pid}/task")]  # noqa: PTH208
    except OSError:
        return []


def listening_inodes(port: int) -> frozenset[str]:
    """The inodes of the TCP sockets that listen on this port, at any address; empty when the kernel does not say."""
    pattern = re.compile(rb"^ *\d+: [0-9A-F]+:%04X [0-9A-F]+:0000 0A(?: +\S+){5} +(\d+)" % port, re.MULTILINE)
    return frozenset(
        match[1].decode() for table in ("tcp", "tcp6") for match in pattern.finditer(_whole(f"/proc/net/{table}"))
    )


def holds_socket(pid: int, inodes: frozenset[str]) -> bool:
    """Whether one of the process's descriptors is one of these sockets."""
    wanted = {f"socket:[{inode}]" for inode in inodes}
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") in wanted:  # noqa: PTH115
                return True
        except OSError:
            continue
    return False


def _whole(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
