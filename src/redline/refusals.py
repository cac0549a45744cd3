"""What the system refused this process (a thread, a process, memory, a file), which limit that is, and how to raise it.

It is imported before all else: what it needs itself takes neither time nor memory.
"""

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from redline.errors import RedlineError

WANTED_ADDRESS_SPACE_MB = 1000
_NO_THREAD = "can't start new thread"
_NO_MAPPING = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")
_MARGIN = 48 << 20
"""A process that is refused memory is this near its limit: a thread wants 8 MB of stack, an arena 64."""
_MEMORY_LIMITS = (
    (resource.RLIMIT_AS, "the address space of a process", "v", 0, 256_000_000),
    (resource.RLIMIT_DATA, "the data of a process", "d", 5, 128_000_000),
)
"""The limits, their names, their options of `ulimit`, and where `/proc/self/statm` says what is used.

Below the bytes no command begins: libraries in C and Rust end the process where they get no memory.
"""


class RefusedError(RedlineError):
    """The system refused this process what it needs; the hint says how to raise the limit."""


@contextmanager
def as_refusal() -> Iterator[None]:
    """Raise RefusedError in place of the exceptions with which Python says that the system refused something."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError, ImportError) as error:
        if (refused := refusal_of(error)) is not None:
            raise refused from error
        raise


def refusal_of(error: BaseException) -> RefusedError | None:
    """Say what the system refused; None for any other error."""
    number = error.errno if isinstance(error, OSError) else None
    match number:
        case errno.EMFILE:
            return _of_files()
        case errno.ENFILE:
            return RefusedError(
                "the system refused another open file: all processes together have as many as it allows",
                hint="end what is not needed, or raise the limit: `sysctl fs.file-max`",
            )
        case errno.EAGAIN if isinstance(error, BlockingIOError) and error.filename is None:
            return _of_processes("process")
    if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
        return _of_memory("thread") or _of_processes("thread")
    is_unmapped = isinstance(error, ImportError) and any(said in str(error) for said in _NO_MAPPING)
    if isinstance(error, MemoryError) or number == errno.ENOMEM or is_unmapped:
        return _of_memory("memory") or _no_memory()
    return None


def check_memory() -> None:
    """Raise RefusedError if memory is limited to less than any work needs."""
    for limit, *_, least in _MEMORY_LIMITS:
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY and soft < least and (refused := _of_memory("memory", by_all=True)):
            raise refused


def of_engine() -> RefusedError:
    """Say that the engine, which has the limits of this process, was refused memory."""
    return _of_memory("memory", by_all=True) or _no_memory()


def _no_memory() -> RefusedError:
    return RefusedError(
        "the system refused more memory: this machine, or its container, has none left",
        hint="free memory, or give it more (`free -m`; `memory.max` of the container)",
    )


def _of_memory(refused: str, *, by_all: bool = False) -> RefusedError | None:
    """The refusal by a limit of memory that this process has nearly reached, or `by_all` limits; None without one."""
    for limit, of, option, column, _ in _MEMORY_LIMITS:
        soft, hard = resource.getrlimit(limit)
        if soft == resource.RLIM_INFINITY or not (by_all or _used_bytes(column) >= soft - _MARGIN):
            continue
        raising = f"ulimit -{option} {WANTED_ADDRESS_SPACE_MB * 1024}"
        return RefusedError(
            f"the system refused {_more(refused)}: {of} is limited to {soft // 1_000_000:,} MB (`ulimit -{option}`)",
            hint=f"{_raise(raising, hard, WANTED_ADDRESS_SPACE_MB << 20)}, which is enough for most runs",
        )
    return None


def _of_processes(refused: str) -> RefusedError:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    if soft == resource.RLIM_INFINITY or os.geteuid() == 0:  # the limit is not for root
        return RefusedError(
            f"the system refused {_more(refused)}: this machine, or its container, has as many as it allows",
            hint="end what is not needed, or raise `pids.max` of the container (`--pids-limit`, TasksMax in systemd)",
        )
    return RefusedError(
        f"the system refused {_more(refused)}: this user may have {soft:,} processes and threads (`ulimit -u`)",
        hint=f"{_raise('ulimit -u 4096', hard, 4096)} (LimitNPROC in systemd)",
    )


def _of_files() -> RefusedError:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return RefusedError(
        f"the system refused another open file: a process may have {soft:,} (`ulimit -n`)",
        hint=f"{_raise('ulimit -n 4096', hard, 4096)} (LimitNOFILE in systemd)",
    )


def _more(refused: str) -> str:
    return "more memory" if refused == "memory" else f"another {refused}"


def _raise(command: str, hard: int, wanted: int) -> str:
    """How to raise a limit: as root, where the hard limit is too low."""
    is_free = hard in (resource.RLIM_INFINITY, -1) or hard >= wanted
    return f"raise the limit: `{command}`" if is_free else f"let root raise the hard limit: `{command}`"


def _used_bytes(column: int) -> int:
    """What this process uses of its memory, by a column of `/proc/self/statm`; a lot if that cannot be read."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - little is imported here
            return int(file.read().split()[column]) * resource.getpagesize()
    except (OSError, MemoryError, ValueError, IndexError):
        return 1 << 62
