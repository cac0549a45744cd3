"""Read /proc for processes. Every reader returns None or nothing for a process that has ended."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from redline.lazily import dataclass

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")
_SHARED = re.compile(rb"^RssShmem:\s+(\d+) kB$", re.MULTILINE)
_OOM_KILLS = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)
_OPEN_FILES = re.compile(rb"^Max open files\s+(\d+)", re.MULTILINE)
VMSTAT = "/proc/vmstat"
_BLOCK_BYTES = 512
_FIRST_FILES = 64
"""The files to look at: a runtime opens its mapped files when it starts; a server may have thousands of connections."""


@dataclass(frozen=True)
class Stat:
    """/proc/PID/stat: command name, state letter, parent, threads, resident memory, CPU time and page faults.

    CPU time is counted in ticks of 10 ms.
    """

    name: bytes
    state: str
    parent: int
    threads: int
    rss_bytes: int
    cpu_ns: int
    minor_faults: int = 0
    major_faults: int = 0


def read_bytes(path: str) -> bytes:
    """Return a file's content, empty if it is gone. Plain system calls: monitors call this ten times a second."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 1 << 16):
            parts.append(part)
            if len(part) < 1 << 11:  # a record is far shorter than a page: this was the last record
                break
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


@contextmanager
def temporary_files(process: str) -> Iterator[int]:
    """Yield a descriptor of the `/tmp` that a process sees, if /proc has it. Raises OSError, also if it is a link.

    An absolute link would lead from its root into a folder of this machine.
    """
    root = os.open(f"{process}/root", os.O_PATH | os.O_DIRECTORY)
    try:
        folder = os.open("tmp", os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=root)
    finally:
        os.close(root)
    try:
        yield folder
    finally:
        os.close(folder)


def oom_kills() -> int | None:
    """The number of processes that the kernel has killed for lack of memory since it booted; None if not known."""
    match = _OOM_KILLS.search(read_bytes(VMSTAT))
    return int(match[1]) if match else None


def oom_kills_since(before: int | None) -> int | None:
    """Return how many processes it has killed since `oom_kills` was `before`; None if unknown."""
    now = oom_kills()
    return None if before is None or now is None else now - before


def read_stat(pid: int) -> Stat | None:
    """Return the process's status. The command's name may hold spaces and brackets: fields follow the last bracket."""
    head, _, tail = read_bytes(f"/proc/{pid}/stat").rpartition(b")")
    fields = tail.split()
    if len(fields) < 22:
        return None
    name = head.partition(b"(")[2]
    cpu_ns = (int(fields[11]) + int(fields[12])) * TICK_NS
    faults = int(fields[7]), int(fields[9])
    return Stat(
        name, fields[0].decode(), int(fields[1]), int(fields[17]), int(fields[21]) * PAGE_BYTES, cpu_ns, *faults
    )


def memory_files(pid: int) -> tuple[str, ...]:
    """Anonymous memory (memfd_create(2)) among its first open files, as paths below /proc."""
    paths = (f"/proc/{pid}/fd/{number}" for number in range(_FIRST_FILES))
    return tuple(path for path in paths if _linked(path).startswith("/memfd:"))


def _linked(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115 -- one of many, and fast
    except OSError:
        return ""


def missing_rss_bytes(pid: int, files: tuple[str, ...]) -> int:
    """Return the bytes of these files that resident memory does not count; negative if it counts more than they hold.

    It counts a page of a file as often as the process maps it, and not at all if unmapped. Z keeps its heap in such
    a file, commits all of it there, and maps it three times before JDK 23.
    """
    shared = _SHARED.search(read_bytes(f"/proc/{pid}/status"))
    try:
        stats = [os.stat(file) for file in files]  # noqa: PTH116
    except OSError:
        return 0
    held = {(stat.st_dev, stat.st_ino): stat.st_blocks * _BLOCK_BYTES for stat in stats}
    return sum(held.values()) - int(shared[1]) * 1024 if shared else 0


def process_ids() -> list[int]:
    """Return all visible processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 -- names only, and fast


def children() -> dict[int, list[int]]:
    """Return the children of all processes, inherited children too."""
    by_parent: dict[int, list[int]] = {}
    for pid in process_ids():
        stat = read_stat(pid)
        if stat is not None:
            by_parent.setdefault(stat.parent, []).append(pid)
    return by_parent


def tree(root: int) -> tuple[int, ...]:
    """Return the process and its descendants; empty if it has ended."""
    below = children()
    if read_stat(root) is None:
        return ()
    return with_descendants(root, below)


def threads(root: int) -> frozenset[int]:
    """Return the numbers of the threads of the process and its descendants."""
    return frozenset(thread for pid in tree(root) for thread in threads_of(pid))


def with_descendants(root: int, below: Mapping[int, Iterable[int]]) -> tuple[int, ...]:
    """Return the process and its descendants, given the children of processes."""
    pids = [root]
    for pid in pids:
        pids += below.get(pid, ())
    return tuple(pids)


def line_of(pid: int) -> tuple[int, ...]:
    """Return the process and its ancestors."""
    line: list[int] = []
    while pid > 0 and pid not in line:
        line.append(pid)
        stat = read_stat(pid)
        pid = stat.parent if stat is not None else 0
    return tuple(line)


def open_sockets(pid: int) -> frozenset[int] | None:
    """Return inodes of a process's sockets; None if this user may not see them."""
    try:
        with os.scandir(f"/proc/{pid}/fd") as entries:
            links = [_linked(entry.path) for entry in entries]
    except PermissionError:
        return None
    except OSError:
        return frozenset()
    return frozenset(int(link[8:-1]) for link in links if link.startswith("socket:["))


def open_files(pid: int) -> int | None:
    """Return how many descriptors a process has open, 0 if it has ended; None if this user may not see them."""
    folder = f"/proc/{pid}/fd"
    try:
        # From Linux 6.2 on the size of the folder is their number; before, it is 0.
        return os.stat(folder).st_size or len(os.listdir(folder))  # noqa: PTH116, PTH208 -- names only, and fast
    except PermissionError:
        return None
    except OSError:
        return 0


def open_files_limit(pid: int) -> int | None:
    """Return how many descriptors a process may have open; None without a limit, and if it is not known."""
    match = _OPEN_FILES.search(read_bytes(f"/proc/{pid}/limits"))
    return int(match[1]) if match else None


def working_folder(pid: int) -> str:
    """Return the folder that a process works in; empty if it has ended, or this user may not see it."""
    return _linked(f"/proc/{pid}/cwd")


def name_of(pid: int) -> str:
    """`nginx (4711)`: the command's name and the process."""
    stat = read_stat(pid)
    return f"{stat.name.decode(errors='replace')} ({pid})" if stat is not None else f"process {pid}"


def threads_of(pid: int, proc: str = "/proc") -> list[int]:
    """The ids of a process's threads."""
    try:
        return [int(name) for name in os.listdir(f"{proc}/{pid}/task")]  # noqa: PTH208
    except OSError:
        return []
