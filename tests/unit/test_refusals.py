"""What the system refuses is named with its limit and how to raise it; other errors stay what they are."""

import errno
import resource
import threading
from pathlib import Path

import pytest

from redline import refusals
from redline.driving.ending import EngineEnding
from redline.driving.engine import EngineDriver
from redline.errors import DriveError
from redline.refusals import RefusedError, as_refusal, refusal_of

MB = 1_000_000


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[int, tuple[int, int]]:
    """The limits of this process, as it reads them: none unless the test sets some."""
    set_ = dict[int, tuple[int, int]]()
    monkeypatch.setattr(resource, "getrlimit", lambda limit: set_.get(limit, (resource.RLIM_INFINITY,) * 2))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    return set_


NO_THREAD = RuntimeError("can't start new thread")
NO_FORK = BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")


@pytest.mark.parametrize(
    ("error", "limit", "value", "says", "hint"),
    [
        (
            NO_THREAD,
            resource.RLIMIT_AS,
            1 * MB,
            "another thread: the address space of a process is limited to 1 MB",
            "-v",
        ),
        (NO_THREAD, resource.RLIMIT_DATA, 1 * MB, "another thread: the data of a process is limited to 1 MB", "-d"),
        (
            NO_THREAD,
            resource.RLIMIT_NPROC,
            40,
            "another thread: this user may have 40 processes and threads",
            "-u 4096",
        ),
        (NO_FORK, resource.RLIMIT_NPROC, 40, "another process: this user may have 40 processes and threads", "-u 4096"),
        (MemoryError(), resource.RLIMIT_AS, 1 * MB, "more memory: the address space of a process", "-v"),
        (OSError(errno.ENOMEM, "x"), resource.RLIMIT_AS, 1 * MB, "more memory: the address space of a process", "-v"),
        (ImportError("x.so: failed to map segment from shared object"), resource.RLIMIT_AS, MB, "more memory", "-v"),
        (OSError(errno.EMFILE, "Too many open files"), resource.RLIMIT_NOFILE, 64, "a process may have 64", "-n 4096"),
    ],
)
def test_each_refusal_names_its_limit(
    error: Exception, limit: int, value: int, says: str, hint: str, limits: dict[int, tuple[int, int]]
) -> None:
    limits[limit] = (value, resource.RLIM_INFINITY)
    refused = refusal_of(error)
    assert refused is not None
    assert says in refused.message
    assert refused.hint.startswith(f"raise the limit: `ulimit {hint}")
    limits[limit] = (value, value)
    assert "let root raise the hard limit" in str(refusal_of(error))


@pytest.mark.parametrize("error", [NO_THREAD, NO_FORK, MemoryError(), OSError(errno.ENFILE, "x")])
def test_without_a_limit_the_machine_or_its_container_is_named(
    error: Exception, limits: dict[int, tuple[int, int]]
) -> None:
    assert not limits
    refused = refusal_of(error)
    assert refused is not None
    assert "machine, or its container" in refused.message or "all processes together" in refused.message


def test_a_limit_that_is_far_away_is_not_blamed(limits: dict[int, tuple[int, int]]) -> None:
    limits[resource.RLIMIT_AS] = (1 << 60, 1 << 60)
    limits[resource.RLIMIT_NPROC] = (7, 7)
    assert "may have 7 processes" in str(refusal_of(NO_THREAD))


@pytest.mark.parametrize(
    "error",
    [RuntimeError("other"), OSError(errno.ENOSPC, "full"), FileNotFoundError(), ImportError("no module"), KeyError()],
)
def test_other_errors_stay(error: Exception) -> None:
    assert refusal_of(error) is None
    with pytest.raises(type(error)), as_refusal():
        raise error


@pytest.mark.parametrize(("limit", "least"), [(resource.RLIMIT_AS, 256), (resource.RLIMIT_DATA, 128)])
def test_no_work_begins_with_too_little_memory(limit: int, least: int, limits: dict[int, tuple[int, int]]) -> None:
    refusals.check_memory()
    limits[limit] = (least * MB, least * MB)
    refusals.check_memory()
    limits[limit] = (least * MB - 1, least * MB)
    with pytest.raises(RefusedError, match="is limited to"):
        refusals.check_memory()


def test_a_thread_that_cannot_start_fails_the_load_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: threading.Thread) -> None:
        raise NO_THREAD

    driver = EngineDriver(tmp_path)
    monkeypatch.setattr(EngineDriver, "_run_to_its_end", lambda *_: refuse(threading.current_thread()))
    with pytest.raises(DriveError, match="the system refused another thread"):
        driver._run(None, {}, None)  # type: ignore[arg-type] # none of them is used


def test_an_engine_without_memory_is_no_fault_of_its_own(limits: dict[int, tuple[int, int]]) -> None:
    limits[resource.RLIMIT_AS] = (300 * MB, 300 * MB)
    ending = EngineEnding(-6, "memory allocation of 270336 bytes failed\nstack backtrace:")
    assert str(ending).endswith("the address space of a process is limited to 300 MB (`ulimit -v`)")
    assert "ulimit -v" in ending.hint
    assert "fault of the engine" in EngineEnding(-6, "assertion failed").hint
