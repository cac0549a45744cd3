"""The measurements that run on this machine, of this user and others: each is a locked file in a shared directory.

A lock belongs to an open file (flock(2)) and ends with its process, however that ends: the file that a killed process
left behind is locked by nobody, and does not count. Anybody may write there, so what a file says is only shown.
"""

import fcntl
import json
import os
import pwd
import re
import secrets
import stat
import time
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Literal

from redline.lazily import dataclass
from redline.visible import visible

State = Literal["waiting", "measuring", "alone"]
NAMED_BY = "REDLINE_MEASUREMENTS"
"""The variable that names another directory."""
_FOLDER = "redline-measurements"
_PARENTS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - in both, everybody may write
_NAME = re.compile(r"([0-9a-f]{16})\.(waiting|measuring|alone)")
_MOST_FILES, _MOST_BYTES, _MOST_SHOWN = 1_000, 1_024, 80
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LOOKS, _LOOK_AGAIN_S = 3, 0.01


@dataclass(frozen=True)
class Measurement:
    """A measurement as its file names it; the user and the moment since when it waits or measures are the system's.

    `pid` is None if the file does not say it, and that of its own namespace.
    """

    name: str
    state: State
    command: str
    pid: int | None
    user: str
    since_unix_ns: int

    @property
    def is_waiting(self) -> bool:
        """Whether it waits for its turn."""
        return self.state == "waiting"

    @property
    def turn(self) -> tuple[int, str]:
        """What measures or waits for longer is lower."""
        return self.since_unix_ns, self.name

    def __str__(self) -> str:
        """Name it for people: `redline ab (pid 12, of anna, since 12:31:05)`."""
        pid = "" if self.pid is None else f"pid {self.pid}, "
        since = time.strftime("%H:%M:%S", time.localtime(self.since_unix_ns / 1e9))
        return f"{self.command} ({pid}of {self.user}, since {since}{', alone' if self.state == 'alone' else ''})"


@dataclass
class Measurements:
    """A directory of measurements, each with a file of its own. `own` are the names of this process's."""

    folder: Path
    own: set[str] = field(default_factory=set)

    def others(self, *, than: "OwnMeasurement | None" = None) -> tuple[Measurement, ...]:
        """What other processes measure or wait for now, by their turns; or all but an own entry."""
        own = self.own if than is None else {than.token}
        return tuple(sorted(filter(None, map(self._read, self._names(own))), key=lambda it: it.turn))

    def _names(self, own: Container[str]) -> Iterator[str]:
        with suppress(OSError), os.scandir(self.folder) as entries:
            for entry in islice(entries, _MOST_FILES):
                known = _NAME.fullmatch(entry.name)
                if known and known[1] not in own:
                    yield entry.name

    def _read(self, name: str) -> Measurement | None:
        """The measurement of a file, unless nobody holds it; a file that a killed process of ours left is removed."""
        file = self.folder / name
        try:
            opened = os.open(file, _OPEN)
        except OSError:
            return None
        try:
            status = os.fstat(opened)
            if not stat.S_ISREG(status.st_mode):
                return None
            if not _is_held(opened):
                if status.st_uid == os.geteuid():
                    with suppress(OSError):
                        file.unlink()
                return None
            command, pid = _parse_measurement(os.pread(opened, _MOST_BYTES, 0))
        except OSError:
            return None
        finally:
            os.close(opened)
        token, _, state = name.partition(".")
        return Measurement(token, state, command, pid, _user(status.st_uid), status.st_mtime_ns)  # type: ignore[arg-type]

    @contextmanager
    def entered(self, command: str, state: State) -> Iterator["OwnMeasurement"]:
        """Be among the measurements for a block. Raises OSError."""
        token = secrets.token_hex(8)
        hidden = self.folder / f".{token}"
        opened = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        entry = OwnMeasurement(self.folder, token, opened)
        self.own.add(token)
        try:
            os.fchmod(opened, 0o644)  # others name it, whatever the umask
            os.write(opened, json.dumps({"command": command, "pid": os.getpid()}).encode())
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            entry.become(state)  # none has seen it before it was locked
            yield entry
        finally:
            self.own.discard(token)
            for left in (hidden, entry.file):
                with suppress(OSError):
                    left.unlink(missing_ok=True)
            os.close(opened)


@dataclass
class OwnMeasurement:
    """An own measurement, whose file is open and locked."""

    folder: Path
    token: str
    opened: int
    state: State | Literal[""] = ""

    @property
    def file(self) -> Path:
        """Where others see it."""
        return self.folder / f"{'' if self.state else '.'}{self.token}{self.state and '.'}{self.state}"

    @property
    def turn(self) -> tuple[int, str]:
        """As that of a `Measurement`."""
        return os.fstat(self.opened).st_mtime_ns, self.token

    def become(self, state: State) -> None:
        """Wait or measure from now on. Raises OSError."""
        before = self.file
        os.utime(self.opened)
        before.rename(self.folder / f"{self.token}.{state}")
        self.state = state


_known: dict[Path, Measurements] = {}


def measurements() -> Measurements | None:
    """Those of this machine; None where no directory is shared by its users."""
    if named := os.environ.get(NAMED_BY):
        folder = Path(named)
        _make(folder)
        return _known.setdefault(folder, Measurements(folder)) if folder.is_dir() else None
    for folder in (parent / _FOLDER for parent in _PARENTS if _is_shared(parent)):
        _make(folder)
        if _is_shared(folder):
            return _known.setdefault(folder, Measurements(folder))
    return None


def _make(folder: Path) -> None:
    """Make a directory in which all users may write, and remove only what is theirs; nothing if it is there."""
    with suppress(OSError):
        folder.mkdir()
        folder.chmod(0o1777)


def _is_shared(folder: Path) -> bool:
    """Whether it is such a directory, soon after it was made too."""
    for _ in range(_LOOKS):
        try:
            mode = folder.lstat().st_mode
        except OSError:
            return False
        if not stat.S_ISDIR(mode) or mode & 0o1777 == 0o1777:
            return stat.S_ISDIR(mode)
        time.sleep(_LOOK_AGAIN_S)
    return False


def _is_held(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _parse_measurement(content: bytes) -> tuple[str, int | None]:
    """The command and the process id that a file names; anybody may have written it."""
    try:
        known = json.loads(content)
        command, pid = known["command"], known["pid"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return "a measurement", None
    shown = visible(" ".join(str(command).split()))[:_MOST_SHOWN] if isinstance(command, str) else ""
    return shown or "a measurement", pid if type(pid) is int and 0 < pid < 2**31 else None


def _user(uid: int) -> str:
    try:
        return visible(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return f"user {uid}"
